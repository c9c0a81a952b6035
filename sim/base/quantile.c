#include "sim/base/quantile.h"

#include <float.h>
#include <gsl/gsl_statistics_double.h>

/* A sketch's bucket is the exponent of a double and the first 7 bits of its fraction: 128 buckets
 * of equal width between two powers of two. So the middle of a bucket is within 1/256 of its
 * values, and no library's logarithm decides on the bucket. Buckets cover 2^-30 to 2^30. Bucket 0
 * has all smaller values, and the last one all greater values. */
#define SKETCH_SHIFT (52 - 7)
#define SKETCH_FIRST ((uint64_t)(1023 - 30) << 7)
#define SKETCH_BINS (1 + (60 << 7))
#define SKETCH_LOW 0x1p-30

/* Index of the bucket of x. */
static size_t bin_of(double x)
{
    if (!(x >= SKETCH_LOW)) {
        return 0;
    }
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof bits);
    uint64_t b = (bits >> SKETCH_SHIFT) - SKETCH_FIRST + 1;
    return b < SKETCH_BINS ? b : SKETCH_BINS - 1;
}

void sample_init(struct sample *s, bool sketch)
{
    memset(s, 0, sizeof *s);
    s->sketch = sketch;
    s->min = (double)INFINITY;
    s->max = -(double)INFINITY;
}

void sample_fini(struct sample *s)
{
    free(s->v);
    free(s->bins);
    memset(s, 0, sizeof *s);
}

static inline void add_sum(struct sample *s, double add)
{
    SIM_ASSERT(!isnan(add)); /* would make all means of the run NaN */
    double t = s->sum + add;
    /* Neumaier: adds up the rounding errors. */
    s->comp += fabs(s->sum) >= fabs(add) ? (s->sum - t) + add : (add - t) + s->sum;
    s->sum = t;
}

static inline void note(struct sample *s, double x, uint32_t count)
{
    add_sum(s, x * count);
    s->min = x < s->min ? x : s->min;
    s->max = x > s->max ? x : s->max;
}

/* Allocates the bins with the first value, because most samples of a run stay empty. */
static void bins_make(struct sample *s)
{
    if (s->bins == NULL) {
        s->bins = xcalloc(SKETCH_BINS, sizeof *s->bins);
    }
}

/* Adds the first values of a sketch, or any to an exact sample. Not inlined, so that the fast path
 * saves no registers. */
__attribute__((noinline)) static void add_apart(struct sample *s, double x, uint32_t count)
{
    if (s->sketch) {
        bins_make(s);
        s->bins[bin_of(x)] += count;
        s->n += count;
        return;
    }
    s->v = xroom(s->v, s->n + count, &s->cap, sizeof *s->v);
    s->n_ranks = 0;
    for (uint32_t i = 0; i < count; i++) {
        s->v[s->n++] = x;
    }
}

void sample_add_n(struct sample *s, double x, uint32_t count)
{
    note(s, x, count);
    if (s->bins == NULL) {
        add_apart(s, x, count);
        return;
    }
    s->bins[bin_of(x)] += count;
    s->n += count;
}

void sample_add(struct sample *s, double x)
{
    sample_add_n(s, x, 1);
}

void sample_merge(struct sample *s, const struct sample *o)
{
    if (o->n == 0) {
        return;
    }
    if (s->sketch) {
        bins_make(s);
        size_t last = bin_of(o->max);
        for (size_t i = bin_of(o->min); i <= last; i++) { /* bin_of is monotonic */
            s->bins[i] += o->bins[i];
        }
    } else {
        s->v = xroom(s->v, s->n + o->n, &s->cap, sizeof *s->v);
        memcpy(s->v + s->n, o->v, o->n * sizeof *o->v);
        s->n_ranks = 0;
    }
    s->n += o->n;
    add_sum(s, o->sum);
    add_sum(s, o->comp);
    s->min = o->min < s->min ? o->min : s->min;
    s->max = o->max > s->max ? o->max : s->max;
}

void sample_copy(struct sample *out, const struct sample *s)
{
    SIM_ASSERT(out->n == 0 && out->sketch == s->sketch);
    sample_merge(out, s);
    out->sum = s->sum; /* copy exactly; a merge adds comp to sum */
    out->comp = s->comp;
}

double sample_mean(const struct sample *s)
{
    SIM_ASSERT(s->n == 0 || s->min <= s->max);
    return s->n == 0 ? (double)NAN : (s->sum + s->comp) / (double)s->n;
}

/* The value that is reported for a bucket. */
static double middle_of(size_t bin)
{
    uint64_t bits = ((2 * (bin - 1 + SKETCH_FIRST)) | 1) << (SKETCH_SHIFT - 1);
    double x = 0.0;
    memcpy(&x, &bits, sizeof x);
    return bin == 0 ? 0.0 : x;
}

static double sketch_quantile(const struct sample *s, size_t rank)
{
    uint64_t seen = 0;
    size_t last = bin_of(s->max);
    for (size_t i = bin_of(s->min); i <= last; i++) {
        seen += s->bins[i];
        if (seen >= rank) {
            double x = middle_of(i);
            return x < s->min ? s->min : x > s->max ? s->max : x;
        }
    }
    return s->max;
}

static size_t sketch_count_upto(const struct sample *s, double x)
{
    size_t n = 0;
    for (size_t i = 0; i < SKETCH_BINS && middle_of(i) <= x; i++) {
        n += s->bins[i];
    }
    return n;
}

size_t sample_count_upto(const struct sample *s, double x)
{
    if (s->n == 0 || x < s->min) {
        return 0;
    }
    if (x >= s->max) {
        return s->n;
    }
    if (s->sketch) {
        return sketch_count_upto(s, x);
    }
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        n += s->v[i] <= x;
    }
    return n;
}

/* Selects between the nearest known ranks; the values outside are known to be smaller or
 * greater. */
static double value_at(struct sample *s, size_t rank)
{
    uint32_t above = 0;
    while (above < s->n_ranks && s->ranks[above] < rank) {
        above++;
    }
    if (above < s->n_ranks && s->ranks[above] == rank) {
        return s->v[rank];
    }
    size_t from = above > 0 ? s->ranks[above - 1] + 1 : 0;
    size_t until = above < s->n_ranks ? s->ranks[above] : s->n;
    SIM_ASSERT(from <= rank && rank < until && until <= s->n);
    double x = gsl_stats_select(s->v + from, 1, until - from, rank - from);
    SIM_ASSERT(from == 0 || s->v[from - 1] <= x);
    SIM_ASSERT(until == s->n || x <= s->v[until]);
    if (s->n_ranks < SAMPLE_RANKS) {
        memmove(&s->ranks[above + 1], &s->ranks[above], (s->n_ranks - above) * sizeof s->ranks[0]);
        s->ranks[above] = rank;
        s->n_ranks++;
    }
    return x;
}

double sample_quantile(struct sample *s, double p)
{
    if (s->n == 0) {
        return (double)NAN;
    }
    /* Rounding may put p*n just above the intended whole number (0.07 * 100 is one case). A slack
     * of two roundings keeps ceil from taking the next value. */
    double rank_exact = ceil(p * (double)s->n * (1.0 - 2.0 * DBL_EPSILON));
    SIM_ASSERT(p >= 0.0 && p <= 1.0);
    size_t rank = rank_exact < 1.0 ? 1 : (size_t)rank_exact;
    rank = rank > s->n ? s->n : rank;
    if (s->sketch) {
        return sketch_quantile(s, rank);
    }
    return value_at(s, rank - 1);
}

double sample_quantile_of(double *v, size_t n, double p)
{
    struct sample s = {.v = v, .n = n, .cap = n};
    return sample_quantile(&s, p);
}
