#include "experiments/falsify/falsify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/rng.h"

#define GENERATION 16    /* scenarios of a later generation; the first has two of them */
#define ELITE_SHARE 4    /* one in so many is kept */
#define SMOOTHING 0.7    /* weight of the new mean and width over the old */
#define LEAST_WIDTH 0.04 /* of the unit interval: never quite certain */
#define KEPT_SHARE 0.5   /* of the confirmed loss that a smaller change must show */
#define STEPS_BACK 3     /* halvings of the way to the nominal value */

/* Seeds of the steps: replications from here on. */
enum { FIRST_SEARCH = 0, FIRST_CONFIRM = 100000, FIRST_SHRINK = 200000, FIRST_TELL = 300000 };

struct scenario {
    struct space_point p;
    double loss; /* mean; NaN: out */
};

enum step { GIVEN, SEARCH, CONFIRM, GIVE_UP, GO_BACK, TELL, OVER };

struct falsify {
    const struct falsify_options *o;
    const struct space *s;
    struct falsify_result *out;
    enum step step;
    struct space_point asked[2 * GENERATION]; /* what is measured now */
    uint32_t n;
    double mean[SPACE_MAX_AXES], width[SPACE_MAX_AXES];
    struct rng rng;
    struct scenario worst; /* so far */
    /* Of the shrinking: */
    struct space_point nominal, p; /* where it is */
    uint32_t order[SPACE_MAX_AXES], n_order, at;
    bool smaller;    /* this time through all axes one was given up */
    int halvings;    /* of the way back on the axis `at` */
    double way_back; /* on it, the next step */
};

static double mean_of(const double *x, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        sum += x[i];
    }
    return sum / n; /* one that is not defined makes it undefined: the scenario is out */
}

/* Worst first; scenarios that are out last. Equal ones keep their order. */
static int worse(const void *x, const void *y)
{
    double a = ((const struct scenario *)x)->loss;
    double b = ((const struct scenario *)y)->loss;
    if (isnan(a) || isnan(b)) {
        return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
    }
    return (a < b) - (a > b);
}

/* One value in each n-th of every axis, paired at random; the nominal scenario is among them. */
static void spread(struct falsify *h, uint32_t n)
{
    uint32_t *order = xmalloc(n * sizeof *order);
    for (uint32_t a = 0; a < h->s->n; a++) {
        for (uint32_t i = 0; i < n; i++) {
            uint32_t j = rng_below(&h->rng, i + 1);
            order[i] = j < i ? order[j] : i;
            order[j] = i;
        }
        for (uint32_t i = 0; i < n; i++) {
            h->asked[i].u[a] = (order[i] + rng_uniform(&h->rng)) / n;
        }
    }
    free(order);
    h->asked[0] = h->nominal;
}

static void around(struct falsify *h, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t a = 0; a < h->s->n; a++) {
            double u = h->mean[a] + h->width[a] * rng_normal(&h->rng);
            h->asked[i].u[a] = fmin(fmax(u, 0.0), 1.0);
        }
    }
}

/* Mean and width of the best of a generation, sorted. */
static void learn(struct falsify *h, const struct scenario *w, uint32_t n, bool first)
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

static void ask_one(struct falsify *h, enum step step, const struct space_point *p)
{
    h->step = step;
    h->asked[0] = *p;
    h->n = 1;
}

static void ask_generation(struct falsify *h)
{
    uint32_t left = h->o->budget - h->out->n_tried;
    bool first = h->out->n_tried == 0;
    uint32_t n = first ? 2 * GENERATION : GENERATION;
    h->step = SEARCH;
    h->n = n < left ? n : left;
    memset(h->asked, 0, sizeof h->asked);
    (first ? spread : around)(h, h->n);
}

static void take_generation(struct falsify *h, const double *loss)
{
    struct falsify_result *out = h->out;
    struct scenario w[2 * GENERATION];
    bool first = out->n_tried == 0;
    for (uint32_t i = 0; i < h->n; i++) {
        uint32_t n = h->o->replications;
        w[i] = (struct scenario){h->asked[i], mean_of(&loss[(size_t)i * n], n)};
        out->n_out += isnan(w[i].loss) ? 1 : 0;
    }
    qsort(w, h->n, sizeof *w, worse);
    h->worst = worse(&w[0], &h->worst) < 0 ? w[0] : h->worst;
    learn(h, w, h->n, first);
    out->n_tried += h->n;
    out->worst = h->worst.p;
    out->worst_searched = h->worst.loss;
}

static bool loses(const struct falsify *h, const struct stats_interval *s)
{
    return s->n == h->o->confirm && s->low > log1p(h->o->relevance_frac);
}

/* Axes in the order in which they are given up: nearest to nominal first. */
static void order_axes(struct falsify *h)
{
    const struct space_point *p = &h->p;
    const struct space_point *nominal = &h->nominal;
    uint32_t *order = h->order;
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
    h->n_order = n;
    h->at = 0;
}

/* The next smaller change: axes are given up until none can be, then each goes part of its way. */
static void ask_change(struct falsify *h)
{
    while (h->at == h->n_order) {
        if (h->step == GO_BACK) {
            h->out->least = h->p;
            ask_one(h, TELL, &h->p);
            return;
        }
        h->step = h->smaller ? GIVE_UP : GO_BACK;
        h->smaller = false;
        order_axes(h);
    }
    struct space_point less = h->p;
    uint32_t a = h->order[h->at];
    if (h->step == GO_BACK && h->halvings == 0) {
        h->way_back = (h->nominal.u[a] - h->p.u[a]) / 2.0;
    }
    less.u[a] = h->step == GIVE_UP ? h->nominal.u[a] : h->p.u[a] + h->way_back;
    ask_one(h, h->step, &less);
}

/* Takes the change if the policy still loses enough. */
static void take_change(struct falsify *h, const struct stats_interval *s)
{
    if (loses(h, s) && s->mean >= KEPT_SHARE * h->out->worst_confirmed.mean) {
        h->p = h->asked[0];
        h->smaller = true;
    }
    h->way_back /= 2.0;
    h->halvings = h->step == GO_BACK ? (h->halvings + 1) % STEPS_BACK : 0;
    h->at += h->halvings == 0 ? 1 : 0;
}

struct falsify *falsify_open(const struct falsify_options *o, const struct space *s,
                             struct falsify_result *out)
{
    memset(out, 0, sizeof *out);
    out->least_first = FIRST_TELL;
    out->worst_confirmed = stats_mean(NULL, 0, STATS_LEVEL_FRAC);
    struct falsify *h = xcalloc(1, sizeof *h);
    *h = (struct falsify){.o = o,
                          .s = s,
                          .out = out,
                          .worst.loss = (double)NAN,
                          .nominal = space_nominal(s),
                          .smaller = true};
    rng_init(&h->rng, rng_key(o->seed, RNG_FALSIFY, 0, 0));
    for (uint32_t a = 0; a < s->n; a++) {
        h->mean[a] = 0.5;
        h->width[a] = 0.5;
    }
    ask_one(h, GIVEN, &h->nominal);
    return h;
}

bool falsify_next(const struct falsify *h, struct falsify_ask *ask)
{
    static const uint32_t first[] = {
        FIRST_CONFIRM, FIRST_SEARCH, FIRST_CONFIRM, FIRST_SHRINK, FIRST_SHRINK, FIRST_TELL, 0};
    uint32_t n = h->step == SEARCH ? h->o->replications : h->o->confirm;
    *ask = (struct falsify_ask){h->asked, h->n, first[h->step], n};
    return h->step != OVER;
}

void falsify_take(struct falsify *h, const double *loss)
{
    struct falsify_result *out = h->out;
    struct stats_interval s = {0};
    out->n_scenarios += h->n;
    if (h->step == SEARCH) {
        take_generation(h, loss);
    } else {
        s = stats_mean(loss, h->o->confirm, STATS_LEVEL_FRAC);
    }
    switch (h->step) {
    case GIVEN:
        out->given = s;
        ask_generation(h);
        break;
    case SEARCH:
        if (out->n_tried < h->o->budget) {
            ask_generation(h);
        } else if (isnan(out->worst_searched)) {
            h->step = OVER;
        } else {
            ask_one(h, CONFIRM, &out->worst);
        }
        break;
    case CONFIRM:
        out->worst_confirmed = s;
        out->found = loses(h, &s);
        h->p = out->worst;
        h->step = OVER;
        if (out->found) {
            ask_change(h);
        }
        break;
    case GIVE_UP:
    case GO_BACK:
        take_change(h, &s);
        ask_change(h);
        break;
    default:
        out->least_confirmed = s;
        memcpy(out->least_loss, loss, h->o->confirm * sizeof *loss);
        h->step = OVER;
    }
}

void falsify_close(struct falsify *h)
{
    free(h);
}
