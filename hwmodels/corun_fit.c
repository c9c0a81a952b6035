/* Fits by the simplex method from a grid of starts: the objective has kinks where a flow begins to
 * saturate, and a start only finds one side of them. Rows of few machines leave some numbers
 * undetermined: no row depends on the number, or two rows pull it in opposite directions equally.
 * Then rounding errors in the sum would decide. A weak penalty for the distance from the start
 * value decides instead, so the result does not depend on the order of rows. */
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multimin.h>

#include "hwmodels/corun.h"
#include "sim/base/scope_gsl.h"

#define STARTS 5 /* of each number, including the ends of its range */
#define ITERATIONS 400
#define SIZE_END 1e-5 /* final size of the simplex, in shares of a number's range */
#define PULL 1e-5     /* penalty at a whole range from the start value */

const char *const corun_knob_names[CORUN_KNOBS + 1] = {"together", "weight", "latency", "minor",
                                                       "balance",  "beside", NULL};

/* Plausible values. No DDR of the table stays below 0.6 of its peak, and none exceeds it. */
static const struct {
    double low, high;
} range[CORUN_KNOBS] = {{0.6, 1.0}, {0.2, 5.0}, {0.0, 2.0}, {0.0, 2.0}, {0.2, 1.5}, {0.0, 2.0}};

static const struct {
    const char *model;
    enum corun_knob knob;
} has[] = {
    {"beside", CORUN_TOGETHER},   {"beside", CORUN_BESIDE},    {"latency", CORUN_TOGETHER},
    {"latency", CORUN_LATENCY},   {"max-min", CORUN_TOGETHER}, {"pccs", CORUN_TOGETHER},
    {"pccs", CORUN_MINOR},        {"pccs", CORUN_BALANCE},     {"proportional", CORUN_TOGETHER},
    {"weighted", CORUN_TOGETHER}, {"weighted", CORUN_WEIGHT},
};

bool corun_has(const char *model, enum corun_knob k)
{
    for (size_t i = 0; i < sizeof has / sizeof has[0]; i++) {
        if (has[i].knob == k && strcmp(has[i].model, model) == 0) {
            return true;
        }
    }
    return false;
}

struct problem {
    const struct contention_ops *model;
    const struct corun_points *points;
    const char *machine, *without;
    double knob[CORUN_KNOBS];
    double start[CORUN_KNOBS]; /* shares of their ranges */
    enum corun_knob free[CORUN_KNOBS];
    size_t n;
};

/* Value of a number at a share of its range, clamped. */
static double of_share(enum corun_knob k, double share)
{
    return range[k].low + fmin(fmax(share, 0.0), 1.0) * (range[k].high - range[k].low);
}

static double objective(const gsl_vector *x, void *ctx)
{
    struct problem *q = ctx;
    double outside = 0.0; /* slope towards the range, because the clamped objective is flat */
    double away = 0.0;
    for (size_t i = 0; i < q->n; i++) {
        double share = gsl_vector_get(x, i);
        q->knob[q->free[i]] = of_share(q->free[i], share);
        outside += fmax(0.0, share - 1.0) + fmax(0.0, -share);
        away += (share - q->start[i]) * (share - q->start[i]);
    }
    return corun_error(q->model, q->knob, q->points, q->machine, q->without) + outside +
           PULL * away;
}

/* One descent. Updates `best` if its result is better. */
static void descend(struct problem *q, size_t start, gsl_multimin_fminimizer *m, gsl_vector *x,
                    gsl_vector *step, double *least, double best[CORUN_KNOBS])
{
    for (size_t i = 0; i < q->n; i++, start /= STARTS) {
        double share = (double)(start % STARTS) / (STARTS - 1);
        gsl_vector_set(x, i, share);
        gsl_vector_set(step, i, (share > 0.5 ? -0.5 : 0.5) / STARTS);
    }
    gsl_multimin_function f = {objective, q->n, q};
    int status = gsl_multimin_fminimizer_set(m, &f, x, step) == 0 ? GSL_CONTINUE : GSL_FAILURE;
    for (int i = 0; i < ITERATIONS && status == GSL_CONTINUE; i++) {
        if (gsl_multimin_fminimizer_iterate(m) != 0) {
            break;
        }
        status = gsl_multimin_test_size(gsl_multimin_fminimizer_size(m), SIZE_END);
    }
    double error = objective(gsl_multimin_fminimizer_x(m), q);
    if (error < *least) {
        *least = error;
        memcpy(best, q->knob, sizeof q->knob);
    }
}

void corun_fit(const struct contention_ops *model, const struct corun_points *p,
               const char *machine, const char *without, double knob[CORUN_KNOBS])
{
    struct problem q = {.model = model, .points = p, .machine = machine, .without = without};
    memcpy(q.knob, knob, sizeof q.knob);
    size_t starts = 1;
    for (int k = 0; k < CORUN_KNOBS; k++) {
        if (corun_has(model->name, (enum corun_knob)k) &&
            (machine == NULL || k != CORUN_TOGETHER)) {
            q.start[q.n] = (knob[k] - range[k].low) / (range[k].high - range[k].low);
            q.free[q.n++] = (enum corun_knob)k;
            starts *= STARTS;
        }
    }
    if (q.n == 0) {
        return;
    }
    gsl_multimin_fminimizer *m =
        gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, q.n);
    SCOPED(vector_drop) gsl_vector *x = gsl_vector_alloc(q.n);
    SCOPED(vector_drop) gsl_vector *step = gsl_vector_alloc(q.n);
    double least = (double)INFINITY;
    double best[CORUN_KNOBS];
    memcpy(best, knob, sizeof best);
    for (size_t s = 0; s < starts; s++) {
        descend(&q, s, m, x, step, &least, best);
    }
    memcpy(knob, best, sizeof best);
    gsl_multimin_fminimizer_free(m);
}
