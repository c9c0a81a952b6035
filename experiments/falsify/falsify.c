#include "experiments/falsify/falsify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/rng.h"

#define GENERATION 16    /* worlds of a later generation; the first has two of them */
#define ELITE_SHARE 4    /* one in so many is kept */
#define SMOOTHING 0.7    /* weight of the new mean and width over the old */
#define LEAST_WIDTH 0.04 /* of the unit interval: never quite certain */
#define KEPT_SHARE 0.5   /* of the confirmed loss that a smaller change must show */
#define STEPS_BACK 3     /* halvings of the way to the nominal value */

/* Seeds of the steps: replications from here on. */
enum { FIRST_SEARCH = 0, FIRST_CONFIRM = 100000, FIRST_SHRINK = 200000, FIRST_TELL = 300000 };

struct world {
    struct space_point p;
    double loss; /* mean; NaN: out */
};

struct search {
    const struct falsify_options *o;
    const struct space *s;
    const struct falsify_source *source;
    struct falsify_result *out;
    double mean[SPACE_MAX_AXES], width[SPACE_MAX_AXES];
    struct rng rng;
};

static double mean_of(const double *x, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        sum += x[i];
    }
    return sum / n; /* one that is not defined makes it undefined: the world is out */
}

/* Worst first; worlds that are out last. Equal ones keep their order. */
static int worse(const void *x, const void *y)
{
    double a = ((const struct world *)x)->loss;
    double b = ((const struct world *)y)->loss;
    if (isnan(a) || isnan(b)) {
        return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
    }
    return (a < b) - (a > b);
}

static void measure(struct search *h, struct world *w, uint32_t n, uint32_t first,
                    uint32_t replications)
{
    struct space_point *points = xmalloc(n * sizeof *points);
    double *loss = xmalloc((size_t)n * replications * sizeof *loss);
    for (uint32_t i = 0; i < n; i++) {
        points[i] = w[i].p;
    }
    h->source->measure(h->source->ctx, points, n, first, replications, loss);
    for (uint32_t i = 0; i < n; i++) {
        w[i].loss = mean_of(&loss[(size_t)i * replications], replications);
    }
    h->out->n_worlds += n;
    free(points);
    free(loss);
}

/* One value in each n-th of every axis, paired at random; the nominal world is among them. */
static void spread(struct search *h, struct world *w, uint32_t n)
{
    uint32_t *order = xmalloc(n * sizeof *order);
    for (uint32_t a = 0; a < h->s->n; a++) {
        for (uint32_t i = 0; i < n; i++) {
            uint32_t j = rng_below(&h->rng, i + 1);
            order[i] = j < i ? order[j] : i;
            order[j] = i;
        }
        for (uint32_t i = 0; i < n; i++) {
            w[i].p.u[a] = (order[i] + rng_uniform(&h->rng)) / n;
        }
    }
    free(order);
    w[0].p = space_nominal(h->s);
}

static void around(struct search *h, struct world *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t a = 0; a < h->s->n; a++) {
            double u = h->mean[a] + h->width[a] * rng_normal(&h->rng);
            w[i].p.u[a] = fmin(fmax(u, 0.0), 1.0);
        }
    }
}

/* Mean and width of the best of a generation, sorted. */
static void learn(struct search *h, const struct world *w, uint32_t n, bool first)
{
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
    }
}

static void search(struct search *h)
{
    struct falsify_result *out = h->out;
    struct world w[2 * GENERATION];
    struct world worst = {.loss = (double)NAN};
    for (uint32_t a = 0; a < h->s->n; a++) {
        h->mean[a] = 0.5;
        h->width[a] = 0.5;
    }
    for (bool first = true; out->n_tried < h->o->budget; first = false) {
        uint32_t left = h->o->budget - out->n_tried;
        uint32_t n = first ? 2 * GENERATION : GENERATION;
        n = n < left ? n : left;
        memset(w, 0, sizeof w);
        (first ? spread : around)(h, w, n);
        measure(h, w, n, FIRST_SEARCH, h->o->replications);
        for (uint32_t i = 0; i < n; i++) {
            out->n_out += isnan(w[i].loss) ? 1 : 0;
        }
        qsort(w, n, sizeof *w, worse);
        worst = worse(&w[0], &worst) < 0 ? w[0] : worst;
        learn(h, w, n, first);
        out->n_tried += n;
    }
    out->worst = worst.p;
    out->worst_searched = worst.loss;
}

/* Loss of a world on seeds of a step; the losses of its replications too, where asked for. */
static struct stats_interval judge(struct search *h, const struct space_point *p, uint32_t first,
                                   double *losses)
{
    uint32_t n = h->o->confirm;
    double *loss = xmalloc(n * sizeof *loss);
    h->source->measure(h->source->ctx, p, 1, first, n, loss);
    h->out->n_worlds++;
    struct stats_interval s = stats_mean(loss, n, STATS_LEVEL_FRAC);
    if (losses != NULL) {
        memcpy(losses, loss, n * sizeof *loss);
    }
    free(loss);
    return s;
}

static bool loses(const struct search *h, const struct stats_interval *s)
{
    return s->n == h->o->confirm && s->low > log1p(h->o->relevance_frac);
}

/* Takes the change if the policy still loses enough. */
static bool still(struct search *h, struct space_point *p, uint32_t axis, double u)
{
    struct space_point less = *p;
    less.u[axis] = u;
    struct stats_interval s = judge(h, &less, FIRST_SHRINK, NULL);
    bool yes = loses(h, &s) && s.mean >= KEPT_SHARE * h->out->worst_confirmed.mean;
    if (yes) {
        *p = less;
    }
    return yes;
}

/* Axes in the order in which they are given up: nearest to nominal first. */
static uint32_t by_distance(const struct search *h, const struct space_point *p,
                            const struct space_point *nominal, uint32_t *order)
{
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
    return n;
}

static void shrink(struct search *h)
{
    struct falsify_result *out = h->out;
    struct space_point nominal = space_nominal(h->s);
    struct space_point p = out->worst;
    uint32_t order[SPACE_MAX_AXES];
    for (bool smaller = true; smaller;) { /* until no axis can be given up */
        smaller = false;
        uint32_t n = by_distance(h, &p, &nominal, order);
        for (uint32_t i = 0; i < n; i++) {
            smaller = still(h, &p, order[i], nominal.u[order[i]]) || smaller;
        }
    }
    uint32_t n = by_distance(h, &p, &nominal, order);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t a = order[i];
        double step = (nominal.u[a] - p.u[a]) / 2.0;
        for (int k = 0; k < STEPS_BACK; k++, step /= 2.0) {
            (void)still(h, &p, a, p.u[a] + step);
        }
    }
    out->least = p;
    out->least_first = FIRST_TELL;
    out->least_confirmed = judge(h, &p, FIRST_TELL, out->least_loss);
}

void falsify_find(const struct falsify_options *o, const struct space *s,
                  const struct falsify_source *source, struct falsify_result *out)
{
    memset(out, 0, sizeof *out);
    struct search h = {.o = o, .s = s, .source = source, .out = out};
    rng_init(&h.rng, rng_key(o->seed, RNG_FALSIFY, 0, 0));
    struct space_point nominal = space_nominal(s);
    out->given = judge(&h, &nominal, FIRST_CONFIRM, NULL);
    search(&h);
    if (isnan(out->worst_searched)) {
        out->worst_confirmed = stats_mean(NULL, 0, STATS_LEVEL_FRAC);
        return;
    }
    out->worst_confirmed = judge(&h, &out->worst, FIRST_CONFIRM, NULL);
    out->found = loses(&h, &out->worst_confirmed);
    if (out->found) {
        shrink(&h);
    }
}
