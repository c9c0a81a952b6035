#include "sim/base/quantile.h"

#include "sim/base/hash.h"

#include <float.h>
#include <gsl/gsl_statistics_double.h>

/* Sketch buckets: ratio 1.01 between bounds, so a bucket's geometric middle is within 0.5 % of
 * every value in it. 1e-9 .. 1e9 needs ln(1e18)/ln(1.01) = 4166 of them; one more for values below.
 */
#define SKETCH_LOW 1e-9
#define SKETCH_BINS 4170
#define SKETCH_LOG_RATIO 0.00995033085316808 /* ln 1.01 */

/* The bucket of a value, by its logarithm. */
static size_t bin_by_log(double x)
{
    if (!(x > SKETCH_LOW)) {
        return 0;
    }
    double b = log(x / SKETCH_LOW) / SKETCH_LOG_RATIO;
    return b >= SKETCH_BINS - 2 ? SKETCH_BINS - 1 : (size_t)b + 1;
}

/* The same without a logarithm. Doubles with the same exponent and the same first bits of their
 * mantissa are a cell; its values differ by less than 1 %, so a cell has one bound of buckets
 * inside at most: below it is one bucket, from it on the next. */
#define CELL_SHIFT 45       /* 7 bits of the mantissa: 1 / 128 */
#define CELL_FIRST 0x3e0ULL /* the exponent of 2^-31, below SKETCH_LOW */
#define CELLS (63u << 7)    /* up to 2^32 */

static struct sketch_cell {
    double bound;  /* below it the bucket is the one before `next` */
    uint32_t next; /* 0 while nobody asked */
} cells[CELLS];

static double of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The first value of the bucket after `bin`, which lies between the two bit patterns: near where
 * exp has it. */
static double bound_between(uint64_t low, uint64_t high, size_t bin)
{
    uint64_t near = hash_bits(SKETCH_LOW * exp((double)bin * SKETCH_LOG_RATIO));
    uint64_t below = near - 64;
    uint64_t above = near + 64;
    low = below > low && below < high && bin_by_log(of_bits(below)) == bin ? below : low;
    high = above > low && above < high && bin_by_log(of_bits(above)) != bin ? above : high;
    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2;
        *(bin_by_log(of_bits(mid)) == bin ? &low : &high) = mid;
    }
    SIM_ASSERT(bin_by_log(of_bits(low)) == bin && bin_by_log(of_bits(high)) == bin + 1);
    return of_bits(high);
}

/* Most samples are alike, so a cell is filled when a value first falls into it. */
static void cell_fill(uint64_t i)
{
    uint64_t low = ((CELL_FIRST << 7) + i) << CELL_SHIFT;
    uint64_t high = low + (1ULL << CELL_SHIFT); /* one past */
    struct sketch_cell *c = &cells[i];
    size_t bin = bin_by_log(of_bits(low));
    bool whole = bin_by_log(of_bits(high - 1)) == bin;
    c->bound = whole ? (double)INFINITY : bound_between(low, high, bin);
    c->next = (uint32_t)bin + 1;
}

/* The cell of a value, CELLS or more when it has none: negative numbers too. */
static inline uint64_t cell_of(double x)
{
    return (hash_bits(x) >> CELL_SHIFT) - (CELL_FIRST << 7);
}

static inline size_t bin_in(const struct sketch_cell *c, double x)
{
    return (size_t)c->next - 1 + (x >= c->bound ? 1 : 0);
}

/* Where nobody asked before, or there is no cell; many are zero: nothing was waited for. Apart, so
 * that the usual way is short. */
__attribute__((noinline)) static size_t bin_first(double x)
{
    uint64_t i = cell_of(x);
    if (i >= CELLS) {
        return x == 0.0 ? 0 : bin_by_log(x);
    }
    cell_fill(i);
    return bin_in(&cells[i], x);
}

static inline size_t bin_of(double x)
{
    uint64_t i = cell_of(x);
    size_t bin = i < CELLS && cells[i].next != 0 ? bin_in(&cells[i], x) : bin_first(x);
    SIM_ASSERT(bin == bin_by_log(x));
    return bin;
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

static void store(struct sample *s, double x, uint32_t count)
{
    s->v = xroom(s->v, s->n + count, &s->cap, sizeof *s->v);
    s->n_ranks = 0;
    for (uint32_t i = 0; i < count; i++) {
        s->v[s->n++] = x;
    }
}

static inline void add_sum(struct sample *s, double add)
{
    SIM_ASSERT(!isnan(add)); /* one would make every mean of the run none */
    double t = s->sum + add;
    /* Neumaier: keeps what the addition lost. */
    s->comp += fabs(s->sum) >= fabs(add) ? (s->sum - t) + add : (add - t) + s->sum;
    s->sum = t;
}

static inline void note(struct sample *s, double x, uint32_t count)
{
    add_sum(s, x * count);
    s->min = x < s->min ? x : s->min;
    s->max = x > s->max ? x : s->max;
}

/* Of many samples that a run has, most stay empty. */
static void bins_make(struct sample *s)
{
    if (s->bins == NULL) {
        s->bins = xcalloc(SKETCH_BINS, sizeof *s->bins);
    }
}

void sample_add_n(struct sample *s, double x, uint32_t count)
{
    note(s, x, count);
    if (!s->sketch) {
        store(s, x, count);
        return;
    }
    bins_make(s);
    s->bins[bin_of(x)] += count;
    s->n += count;
}

void sample_add(struct sample *s, double x)
{
    sample_add_n(s, x, 1);
}

/* Of a sketch: in a copy that nobody else sees, whose sums stay in registers. */
static inline void sketch_all(struct sample *s, const double *x, const uint32_t *count, size_t n)
{
    struct sample t = *s;
    for (size_t i = 0; i < n; i++) {
        uint32_t times = count != NULL ? count[i] : 1;
        note(&t, x[i], times);
        t.bins[bin_of(x[i])] += times;
        t.n += times;
    }
    s->n = t.n;
    s->comp = t.comp;
    s->max = t.max;
    s->sum = t.sum;
    s->min = t.min;
}

void sample_add_all(struct sample *s, const double *x, const uint32_t *count, size_t n)
{
    if (!s->sketch) {
        for (size_t i = 0; i < n; i++) {
            sample_add_n(s, x[i], count != NULL ? count[i] : 1);
        }
        return;
    }
    if (n == 0) {
        return; /* no bins for a sample that may stay empty */
    }
    bins_make(s);
    if (count != NULL) {
        sketch_all(s, x, count, n);
    } else {
        sketch_all(s, x, NULL, n);
    }
}

void sample_merge(struct sample *s, const struct sample *o)
{
    if (o->n == 0) {
        return;
    }
    if (s->sketch) {
        bins_make(s);
        size_t last = bin_of(o->max);
        for (size_t i = bin_of(o->min); i <= last; i++) { /* greater values, later buckets */
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
    out->sum = s->sum; /* as they are: a merge adds them up */
    out->comp = s->comp;
}

double sample_mean(const struct sample *s)
{
    SIM_ASSERT(s->n == 0 || s->min <= s->max);
    return s->n == 0 ? (double)NAN : (s->sum + s->comp) / (double)s->n;
}

/* The value by which a bucket is reported. */
static double middle_of(size_t bin)
{
    return bin == 0 ? 0.0 : SKETCH_LOW * exp(((double)bin - 0.5) * SKETCH_LOG_RATIO);
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

/* Selection between the nearest ranks that are known: others need not be looked at again. */
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
    /* p*n may land a rounding above the whole number it stands for (0.07 * 100 does); a slack of
     * two roundings keeps ceil from taking the next value. */
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
