#include "experiments/compare/uncertainty.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/uncertainty_impl.h"
#include "experiments/run/study.h"
#include "sim/base/arena.h"

#define UNCERTAINTY_ENDS 3 /* the file's value and two ends of a range */

/* A difference of a pair to be known, with one factor at x. */
struct uncertainty_ask {
    const struct uncertainty_pair *pair;
    uint32_t factor;
    double x;
    double *difference; /* where it goes: mean of UNCERTAINTY_FLIP_RUNS */
};

/* ---- runs ---- */

static struct study_cell cell_of(const struct uncertainty *u, uint32_t policy, uint32_t replication,
                                 const struct config *c)
{
    return (struct study_cell){
        .config = c,
        .options = u->plan->options,
        .policy = &u->plan->policies[policy],
        .seed = config_seed(u->plan->options->seed, replication),
        .arrivals = u->plan->arrivals,
    };
}

/* Cell number (machine * repeats + repeat) * n_policies + policy. In the worker, which ends
 * afterwards, so nothing is freed. */
static int machine_cell(void *ctx, uint64_t index, struct study_cell *out, struct err *e)
{
    const struct uncertainty *u = ctx;
    uint32_t run = (uint32_t)(index / u->n_policies);
    uint32_t machine = run / UNCERTAINTY_REPEATS;
    uint32_t k = uncertainty_replication(u->plan, machine, run % UNCERTAINTY_REPEATS);
    struct config *c = xcalloc(1, sizeof *c);
    *out = cell_of(u, (uint32_t)(index % u->n_policies), u->plan->first + k, c);
    return machines_load(&u->machines, u->plan->options, machine, 0, 0.0, c, e);
}

/* Cell number (ask * runs + run) * 2, and one more for the baseline's. Likewise. */
static int flip_cell(void *ctx, uint64_t index, struct study_cell *out, struct err *e)
{
    const struct uncertainty *u = ctx;
    const struct uncertainty_ask *a = &u->asks[index / 2 / UNCERTAINTY_FLIP_RUNS];
    struct config *c = xcalloc(1, sizeof *c);
    *out = cell_of(u, index % 2 == 0 ? a->pair->policy : u->plan->baseline,
                   (uint32_t)(index / 2 % UNCERTAINTY_FLIP_RUNS), c);
    return machines_load(&u->machines, u->plan->options, UINT32_MAX, a->factor, a->x, c, e);
}

/* Did all of these run, the policies of one machine and replication? */
static bool all_ran(struct uncertainty *u, const struct study_outcome *o, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (o[i].status != 0) {
            if (u->n_failed++ == 0) {
                (void)fprintf(stderr, "xpusim: note: a drawn machine could not run: %s\n",
                              o[i].message);
            }
            return false;
        }
    }
    return true;
}

uint32_t uncertainty_replication(const struct compare_plan *plan, uint32_t machine, uint32_t repeat)
{
    /* The replications of the comparison itself, in turn: their differences on the file's machine
     * are known and serve as a control. */
    return (machine * UNCERTAINTY_REPEATS + repeat) % plan->replications;
}

static void take_machines(struct uncertainty *u, const struct study_outcomes *came)
{
    uint32_t policies = u->n_policies;
    size_t n = (size_t)policies * u->n_metrics;
    u->value = xmalloc((came->n / policies * n + 1) * sizeof *u->value);
    for (uint32_t i = 0; i < came->n / policies; i++) {
        const struct study_outcome *of = &came->v[i * policies];
        /* A machine counts when all policies ran on it, else they would be compared on different
         * ones. */
        bool ran = all_ran(u, of, policies);
        for (size_t k = 0; k < n; k++) {
            u->value[i * n + k] =
                ran ? study_value(&of[k / u->n_metrics], u->metrics[k % u->n_metrics])
                    : METRIC_UNDEFINED;
        }
    }
}

/* ---- flip points ---- */

static void ask(struct uncertainty *u, const struct uncertainty_pair *p, uint32_t factor, double x,
                double *difference)
{
    u->asks[u->n_asks++] = (struct uncertainty_ask){p, factor, x, difference};
}

/* The first asks for the file's value of a factor and the ends of its range, where they differ. */
static void ask_ends(struct uncertainty *u, const struct uncertainty_pair *p,
                     struct uncertainty_share *s)
{
    const struct machine_factor *f = &u->machines.factor[s->factor];
    ask(u, p, s->factor, f->nominal, &s->difference_file);
    if (f->low != f->nominal) {
        ask(u, p, s->factor, f->low, &s->difference_low);
    }
    if (f->high != f->nominal) {
        ask(u, p, s->factor, f->high, &s->difference_high);
    }
}

/* The end of the range at which the order turns, if it does. */
static void take_ends(const struct uncertainty *u, struct uncertainty_share *s)
{
    const struct machine_factor *f = &u->machines.factor[s->factor];
    double d0 = s->difference_file;
    s->difference_low = f->low != f->nominal ? s->difference_low : d0;
    s->difference_high = f->high != f->nominal ? s->difference_high : d0;
    bool low = s->difference_low * d0 < 0.0;
    s->holds_at = f->nominal;
    s->difference_holds = d0;
    s->turns_at = low ? f->low : f->high;
    s->difference_turns = low ? s->difference_low : s->difference_high;
    /* Where the order turns at both ends the lower one is sought; false where one of the runs
     * failed, since NaN is not below 0. */
    s->flips = s->difference_turns * d0 < 0.0;
    s->idle = s->difference_low == d0 && s->difference_high == d0; /* NaN is equal to nothing */
}

static double middle_of(double a, double b)
{
    /* Half-way in logarithms, as rates and bandwidths are thought of. */
    return a > 0.0 && b > 0.0 ? sqrt(a * b) : 0.5 * (a + b);
}

/* Between which two runs the order turns. */
static void take_middle(struct uncertainty_share *s)
{
    bool turned = s->difference_middle * s->difference_file < 0.0;
    *(turned ? &s->turns_at : &s->holds_at) = s->middle;
    *(turned ? &s->difference_turns : &s->difference_holds) = s->difference_middle;
}

static void take_asks(struct uncertainty *u, const struct study_outcomes *came)
{
    for (uint32_t i = 0; i < u->n_asks; i++) {
        const struct uncertainty_ask *a = &u->asks[i];
        const struct study_outcome *of = &came->v[i * UNCERTAINTY_FLIP_RUNS * 2];
        const char *metric = u->metrics[a->pair->metric];
        double sum = 0.0;
        for (uint32_t k = 0; k < UNCERTAINTY_FLIP_RUNS; k++, of += 2) {
            bool ran = all_ran(u, of, 2);
            sum +=
                ran ? study_value(&of[0], metric) - study_value(&of[1], metric) : METRIC_UNDEFINED;
        }
        *a->difference = sum / UNCERTAINTY_FLIP_RUNS;
    }
    u->n_asks = 0;
}

/* Takes what came of a factor's asks, and makes its next ones. */
static void go_on(struct uncertainty *u, const struct uncertainty_pair *p,
                  struct uncertainty_share *s)
{
    const uint32_t round = s->round++;
    if (round == 0) {
        ask_ends(u, p, s);
        return;
    }
    if (round == 1) {
        take_ends(u, s);
    } else if (s->flips && round <= UNCERTAINTY_FLIP_STEPS + 1) {
        take_middle(s);
    }
    if (s->flips && round <= UNCERTAINTY_FLIP_STEPS) {
        s->middle = middle_of(s->holds_at, s->turns_at);
        ask(u, p, s->factor, s->middle, &s->difference_middle);
    }
}

/* ---- all of it ---- */

static void ask_machines(struct uncertainty *u, struct study *next)
{
    u->n_policies = u->plan->n_policies;
    next->n = (uint64_t)u->machines.n_draws * UNCERTAINTY_REPEATS * u->n_policies;
    next->cell = machine_cell;
}

/* All factors of all pairs advance together, a round at a time. The first that are not idle. */
static void ask_flips(struct uncertainty *u, struct study *next)
{
    for (uint32_t i = 0; i < u->n_pairs; i++) {
        struct uncertainty_pair *p = &u->pairs[i];
        uint32_t shown = 0;
        for (uint32_t k = 0; p->metric == 0 && k < p->n_top && shown < UNCERTAINTY_TOP; k++) {
            if (!p->top[k].idle) {
                go_on(u, p, &p->top[k]);
            }
            shown += !p->top[k].idle;
        }
    }
    next->n = (uint64_t)u->n_asks * UNCERTAINTY_FLIP_RUNS * 2;
    next->cell = flip_cell;
}

bool uncertainty_judge(void *ctx, const struct study_outcomes *came, struct study *next)
{
    struct uncertainty *u = ctx;
    *next = (struct study){.how = u->plan->how, .samples = u->plan->samples, .ctx = u};
    if (came == NULL) {
        ask_machines(u, next);
    } else if (u->value == NULL) {
        take_machines(u, came);
        uncertainty_analyse(u);
        u->asks =
            xcalloc((size_t)u->n_pairs * UNCERTAINTY_TOP * UNCERTAINTY_ENDS + 1, sizeof *u->asks);
        ask_flips(u, next);
    } else {
        take_asks(u, came);
        ask_flips(u, next);
    }
    for (uint32_t i = 0; next->n == 0 && i < u->n_pairs; i++) {
        uncertainty_conclude(&u->pairs[i]);
    }
    u->runs += (uint32_t)next->n;
    return next->n > 0;
}

void uncertainty_fini(struct uncertainty *u)
{
    machines_fini(&u->machines);
    free(u->value);
    free(u->pairs);
    free(u->best_frac);
    free(u->asks);
    *u = (struct uncertainty){0};
}
