#include "experiments/falsify/falsify.h"

#include "sim/base/rng.h"

#define GENERATION 16    /* scenarios per generation; twice as many in the first */
#define ELITE_SHARE 4    /* one in this many makes the next generation */
#define SMOOTHING 0.7    /* weight of the new mean and width over the old */
#define LEAST_WIDTH 0.04 /* of the unit interval, so that the search never stops varying */
#define KEPT_SHARE 0.5   /* of the confirmed loss, which a smaller change must keep */
#define STEPS_BACK 3     /* halvings of the way to the nominal value */

/* First replications of the steps, each of which has its own seeds. */
enum { FIRST_SEARCH = 0, FIRST_CONFIRM = 100000, FIRST_SHRINK = 200000, FIRST_TELL = 300000 };

struct scenario {
    struct space_point p;
    double loss; /* mean; NaN: excluded */
    uint32_t number;
};

struct falsify {
    const struct falsify_options *o;
    const struct space *s;
    struct falsify_result *out;
    falsify_measure *measure;
    void *ctx;
    struct space_point nominal;
    double *loss; /* owned; of the last measurement */
    /* The present generation, and the distribution of the next one. */
    struct scenario w[2 * GENERATION];
    double mean[SPACE_MAX_AXES], width[SPACE_MAX_AXES];
    struct rng rng;
};

static double mean_of(const double *x, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        sum += x[i];
    }
    return sum / n; /* one NaN gives NaN, and excludes the scenario */
}

/* Excluded scenarios come last, and the earlier of equal ones first. */
SORT_BY(worse, struct scenario, (isnan(a->loss) ? 1 : 0) - (isnan(b->loss) ? 1 : 0),
        SORT_DOWN(loss), SORT_UP(number))

/* Makes a Latin hypercube: one value in each n-th of every axis, paired at random. The first
 * scenario is the nominal one. */
static void spread(struct falsify *h, uint32_t n)
{
    OWNED uint32_t *order = xmalloc(n * sizeof *order);
    for (uint32_t a = 0; a < h->s->n; a++) {
        for (uint32_t i = 0; i < n; i++) {
            uint32_t j = rng_below(&h->rng, i + 1);
            order[i] = j < i ? order[j] : i;
            order[j] = i;
        }
        for (uint32_t i = 0; i < n; i++) {
            h->w[i].p.u[a] = (order[i] + rng_uniform(&h->rng)) / n;
        }
    }
    h->w[0].p = h->nominal;
}

static void around(struct falsify *h, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t a = 0; a < h->s->n; a++) {
            double u = h->mean[a] + h->width[a] * rng_normal(&h->rng);
            h->w[i].p.u[a] = fmin(fmax(u, 0.0), 1.0);
        }
    }
}

/* Updates mean and width from the best scenarios of a sorted generation. */
static void learn(struct falsify *h, uint32_t n, bool first)
{
    const struct scenario *w = h->w;
    uint32_t elite = n / ELITE_SHARE > 2 ? n / ELITE_SHARE : 2;
    while (elite > 0 && isnan(w[elite - 1].loss)) {
        elite--;
    }
    double weight = first ? 1.0 : SMOOTHING;
    for (uint32_t a = 0; a < h->s->n && elite > 0; a++) {
        double mean = 0.0;
        double squares = 0.0;
        for (uint32_t i = 0; i < elite; i++) {
            mean += w[i].p.u[a] / elite;
        }
        for (uint32_t i = 0; i < elite; i++) {
            squares += (w[i].p.u[a] - mean) * (w[i].p.u[a] - mean) / elite;
        }
        h->mean[a] += weight * (mean - h->mean[a]);
        h->width[a] += weight * (sqrt(squares) - h->width[a]);
        h->width[a] = fmax(h->width[a], LEAST_WIDTH);
        SIM_ASSERT(h->mean[a] >= 0.0 && h->mean[a] <= 1.0 && h->width[a] <= 0.5);
    }
}

static void measure(struct falsify *h, const struct space_point *points, uint32_t n_points,
                    uint32_t first, uint32_t n)
{
    h->loss = xrealloc(h->loss, ((size_t)n_points * n + 1) * sizeof *h->loss);
    h->measure(h->ctx, &(struct falsify_ask){points, n_points, first, n}, h->loss);
}

/* Measures one point on the seeds of a step. */
static struct stats_interval confirm(struct falsify *h, const struct space_point *p, uint32_t first)
{
    measure(h, p, 1, first, h->o->confirm);
    return stats_mean(h->loss, h->o->confirm, STATS_LEVEL_FRAC);
}

static void search(struct falsify *h)
{
    struct falsify_result *out = h->out;
    struct scenario worst = {.loss = (double)NAN};
    while (out->n_tried < h->o->budget) {
        struct space_point points[2 * GENERATION];
        uint32_t left = h->o->budget - out->n_tried;
        bool first = out->n_tried == 0;
        uint32_t n = first ? 2 * GENERATION : GENERATION;
        n = n < left ? n : left;
        memset(h->w, 0, sizeof h->w);
        (first ? spread : around)(h, n);
        for (uint32_t i = 0; i < n; i++) {
            points[i] = h->w[i].p;
        }
        uint32_t replications = h->o->replications;
        measure(h, points, n, FIRST_SEARCH, replications);
        for (uint32_t i = 0; i < n; i++) {
            h->w[i].number = out->n_tried + i;
            h->w[i].loss = mean_of(&h->loss[(size_t)i * replications], replications);
            out->n_out += isnan(h->w[i].loss) ? 1 : 0;
        }
        qsort(h->w, n, sizeof *h->w, worse);
        worst = worse(&h->w[0], &worst) < 0 ? h->w[0] : worst;
        SIM_ASSERT(isnan(h->w[n - 1].loss) || h->w[0].loss >= h->w[n - 1].loss);
        learn(h, n, first);
        out->n_tried += n;
        SIM_ASSERT(out->n_out <= out->n_tried && out->n_tried <= h->o->budget);
    }
    out->worst = worst.p;
    out->worst_searched = worst.loss;
}

static bool loses(const struct falsify *h, const struct stats_interval *s)
{
    return s->n == h->o->confirm && s->low > log1p(h->o->relevance_frac);
}

/* Lists the axes that p changes, nearest to nominal first, which is the order of their removal. */
static uint32_t order_axes(const struct falsify *h, const struct space_point *p, uint32_t *order)
{
    const struct space_point *nominal = &h->nominal;
    uint32_t n = 0;
    for (uint32_t a = 0; a < h->s->n; a++) {
        if (space_is_nominal(h->s, p, a)) {
            continue;
        }
        uint32_t i = n++;
        double d = fabs(p->u[a] - nominal->u[a]);
        for (; i > 0 && fabs(p->u[order[i - 1]] - nominal->u[order[i - 1]]) > d; i--) {
            order[i] = order[i - 1];
        }
        order[i] = a;
    }
    SIM_ASSERT(n <= h->s->n);
    return n;
}

/* Moves an axis of p to u if the policy still loses enough there. */
static bool take_change(struct falsify *h, struct space_point *p, uint32_t axis, double u)
{
    struct space_point less = *p;
    less.u[axis] = u;
    struct stats_interval s = confirm(h, &less, FIRST_SHRINK);
    bool taken = loses(h, &s) && s.mean >= KEPT_SHARE * h->out->worst_confirmed.mean;
    *p = taken ? less : *p;
    return taken;
}

/* Moves axes back to nominal until none can be, then the others part of the way. */
static struct space_point shrink(struct falsify *h)
{
    struct space_point p = h->out->worst;
    uint32_t order[SPACE_MAX_AXES];
    bool smaller = true;
    while (smaller) {
        uint32_t n = order_axes(h, &p, order);
        smaller = false;
        for (uint32_t i = 0; i < n; i++) {
            smaller = take_change(h, &p, order[i], h->nominal.u[order[i]]) || smaller;
        }
    }
    uint32_t n = order_axes(h, &p, order);
    for (uint32_t i = 0; i < n; i++) {
        double way_back = (h->nominal.u[order[i]] - p.u[order[i]]) / 2.0;
        for (int k = 0; k < STEPS_BACK; k++, way_back /= 2.0) {
            (void)take_change(h, &p, order[i], p.u[order[i]] + way_back);
        }
    }
    return p;
}

void falsify_search(const struct falsify_options *o, const struct space *s, falsify_measure *by,
                    void *ctx, struct falsify_result *out)
{
    memset(out, 0, sizeof *out);
    out->least_first = FIRST_TELL;
    out->worst_confirmed = stats_mean(NULL, 0, STATS_LEVEL_FRAC);
    OWNED struct falsify *h = xcalloc(1, sizeof *h);
    *h = (struct falsify){
        .o = o, .s = s, .out = out, .measure = by, .ctx = ctx, .nominal = space_nominal(s)};
    rng_init(&h->rng, rng_key(o->seed, RNG_FALSIFY, 0, 0));
    for (uint32_t a = 0; a < s->n; a++) {
        h->mean[a] = h->width[a] = 0.5;
    }
    out->given = confirm(h, &h->nominal, FIRST_CONFIRM);
    search(h);
    if (!isnan(out->worst_searched)) {
        out->worst_confirmed = confirm(h, &out->worst, FIRST_CONFIRM);
        out->found = loses(h, &out->worst_confirmed);
    }
    if (out->found) {
        out->least = shrink(h);
        out->least_confirmed = confirm(h, &out->least, FIRST_TELL);
        memcpy(out->least_loss, h->loss, o->confirm * sizeof *out->least_loss);
    }
    free(h->loss);
}
