#include "experiments/compare/uncertainty.h"

#include "experiments/compare/uncertainty_impl.h"
#include "experiments/run/study.h"

#define UNCERTAINTY_ENDS 3 /* the file's value and two ends of a range */

/* A machine: a draw, or, with draw UINT32_MAX, the file's with one factor at x. */
struct variant {
    const struct machines *machines;
    uint32_t draw, factor;
    double x;
};

/* A requested difference: policy minus baseline in the pair's metric, on this machine. */
struct question {
    struct variant on;
    const struct uncertainty_pair *pair;
    double *difference; /* result: the mean of UNCERTAINTY_FLIP_RUNS runs */
};

/* The requests of all factors, which run together. */
struct questions {
    struct question *v; /* owned */
    uint32_t n;
};

/* ---- runs ---- */

static int load(struct study_cell *c, struct err *e)
{
    const struct variant *v = c->from;
    struct config *own = xcalloc(1, sizeof *own);
    c->config = own;
    return machines_load(v->machines, c->options, v->draw, v->factor, v->x, own, e);
}

static struct study_cell cell_on(const struct uncertainty *u, const struct variant *on,
                                 uint32_t policy, uint32_t replication)
{
    struct study_cell c = compare_cell(u->plan, policy, replication);
    c.load = load;
    c.from = on;
    return c;
}

static struct study_outcomes run_cells(struct uncertainty *u, struct study_cell *cells, uint32_t n)
{
    struct study_outcomes runs = study_run(cells, n, &u->plan->how);
    u->runs += n;
    free(cells);
    return runs;
}

/* Whether all policies of a machine and replication ran. */
static bool all_ran(struct uncertainty *u, const struct study_outcome *o, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (o[i].status != 0) {
            if (o[i].status != STUDY_NO_REQUESTS && u->n_failed++ == 0) {
                (void)fprintf(stderr, "xpusim: note: a drawn machine could not run: %s\n",
                              o[i].message);
            }
            return false;
        }
    }
    return true;
}

/* Number of runs that a battery or the horizon ended. */
static uint32_t count_cut(const struct study_outcome *o, uint32_t n)
{
    uint32_t cut = 0;
    for (uint32_t i = 0; i < n; i++) {
        cut += study_value(&o[i], "all.unfinished") > 0.0 || study_battery_empty(&o[i]);
    }
    return cut;
}

/* Runs every policy on every drawn machine, UNCERTAINTY_REPEATS times. */
static void run_machines(struct uncertainty *u)
{
    uint32_t policies = u->n_policies;
    uint32_t n_runs = u->machines.n_draws * UNCERTAINTY_REPEATS; /* of each policy */
    OWNED struct variant *drawn = xcalloc(u->machines.n_draws + 1, sizeof *drawn);
    struct study_cell *cells = xcalloc((size_t)n_runs * policies + 1, sizeof *cells);
    for (uint32_t i = 0; i < n_runs; i++) {
        uint32_t machine = i / UNCERTAINTY_REPEATS;
        uint32_t k = uncertainty_replication(u->plan, machine, i % UNCERTAINTY_REPEATS);
        drawn[machine] = (struct variant){.machines = &u->machines, .draw = machine};
        for (uint32_t p = 0; p < policies; p++) {
            cells[i * policies + p] = cell_on(u, &drawn[machine], p, k);
        }
    }
    SCOPED(study_outcomes_fini) struct study_outcomes runs = run_cells(u, cells, n_runs * policies);
    size_t n = (size_t)policies * u->n_metrics;
    u->value = xmalloc((n_runs * n + 1) * sizeof *u->value);
    for (uint32_t i = 0; i < n_runs; i++) {
        const struct study_outcome *of = &runs.v[i * policies];
        /* A machine only counts if all policies ran on it, so that they are compared on the same
         * ones. */
        bool ran = all_ran(u, of, policies);
        u->n_cut += ran ? count_cut(of, policies) : 0;
        for (size_t k = 0; k < n; k++) {
            u->value[i * n + k] =
                ran ? study_value(&of[k / u->n_metrics], u->metrics[k % u->n_metrics])
                    : METRIC_UNDEFINED;
        }
    }
}

/* ---- flip points ---- */

static void ask(const struct uncertainty *u, struct questions *q, const struct uncertainty_pair *p,
                uint32_t factor, double x, double *difference)
{
    q->v[q->n++] = (struct question){{&u->machines, UINT32_MAX, factor, x}, p, difference};
}

/* Requests the file's value of a factor and the ends of its range, if they differ. */
static void ask_ends(const struct uncertainty *u, struct questions *q,
                     const struct uncertainty_pair *p, struct uncertainty_share *s)
{
    const struct machine_factor *f = &u->machines.factor[s->factor];
    ask(u, q, p, s->factor, f->nominal, &s->difference_file);
    if (f->low != f->nominal) {
        ask(u, q, p, s->factor, f->low, &s->difference_low);
    }
    if (f->high != f->nominal) {
        ask(u, q, p, s->factor, f->high, &s->difference_high);
    }
}

/* Finds the end of the range at which the order is reversed, if it is. */
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
    /* If the order is reversed at both ends, the lower one is used. False if a run failed, because
     * NaN is not below 0. */
    s->flips = s->difference_turns * d0 < 0.0;
    s->idle = s->difference_low == d0 && s->difference_high == d0; /* NaN is not equal */
}

static double middle_of(double a, double b)
{
    /* Halfway in logarithms, for rates and bandwidths. */
    return a > 0.0 && b > 0.0 ? sqrt(a * b) : 0.5 * (a + b);
}

/* Updates the two runs between which the order is reversed. */
static void take_middle(struct uncertainty_share *s)
{
    bool turned = s->difference_middle * s->difference_file < 0.0;
    *(turned ? &s->turns_at : &s->holds_at) = s->middle;
    *(turned ? &s->difference_turns : &s->difference_holds) = s->difference_middle;
}

/* Whether the requests of a replication have no difference on the file's machine: none of a class.
 */
static bool has_none(const struct uncertainty *u, const struct uncertainty_pair *p, uint32_t k)
{
    const char *metric = u->metrics[p->metric];
    return k < u->nominal->replications &&
           isnan(compare_values(u->nominal, p->policy, metric)[k] -
                 compare_values(u->nominal, u->plan->baseline, metric)[k]);
}

/* Runs both sides of every request. */
static void answer(struct uncertainty *u, const struct questions *q)
{
    uint32_t n = 0;
    struct study_cell *cells = xcalloc((size_t)q->n * UNCERTAINTY_FLIP_RUNS * 2 + 1, sizeof *cells);
    for (uint32_t i = 0; i < q->n; i++) {
        const struct question *one = &q->v[i];
        for (uint32_t k = 0; k < UNCERTAINTY_FLIP_RUNS; k++) {
            cells[n++] = cell_on(u, &one->on, one->pair->policy, k);
            cells[n++] = cell_on(u, &one->on, u->plan->baseline, k);
        }
    }
    SCOPED(study_outcomes_fini) struct study_outcomes runs = run_cells(u, cells, n);
    const struct study_outcome *of = runs.v;
    for (uint32_t i = 0; i < q->n; i++) {
        const char *metric = u->metrics[q->v[i].pair->metric];
        double sum = 0.0;
        uint32_t counted = 0;
        for (uint32_t k = 0; k < UNCERTAINTY_FLIP_RUNS; k++, of += 2) {
            bool ran = all_ran(u, of, 2);
            double d =
                ran ? study_value(&of[0], metric) - study_value(&of[1], metric) : METRIC_UNDEFINED;
            bool none = has_none(u, q->v[i].pair, k);
            sum += none ? 0.0 : d;
            counted += !none;
        }
        *q->v[i].difference = sum / counted;
    }
}

/* Uses the results to narrow this factor's flip point, and adds the next requests. */
static void flip_step(const struct uncertainty *u, struct questions *q,
                      const struct uncertainty_pair *p, struct uncertainty_share *s)
{
    const uint32_t round = s->round++;
    if (round == 0) {
        ask_ends(u, q, p, s);
        return;
    }
    if (round == 1) {
        take_ends(u, s);
    } else if (s->flips && round <= UNCERTAINTY_FLIP_STEPS + 1) {
        take_middle(s);
    }
    if (s->flips && round <= UNCERTAINTY_FLIP_STEPS) {
        s->middle = middle_of(s->holds_at, s->turns_at);
        ask(u, q, p, s->factor, s->middle, &s->difference_middle);
    }
}

/* The first factors of all pairs that are not idle advance together, a step at a time. */
static void find_flips(struct uncertainty *u)
{
    struct questions q = {
        xcalloc((size_t)u->n_pairs * UNCERTAINTY_TOP * UNCERTAINTY_ENDS + 1, sizeof *q.v), 0};
    do {
        q.n = 0;
        for (uint32_t i = 0; i < u->n_pairs; i++) {
            struct uncertainty_pair *p = &u->pairs[i];
            uint32_t shown = 0;
            for (uint32_t k = 0; p->metric == 0 && k < p->n_top && shown < UNCERTAINTY_TOP; k++) {
                if (!p->top[k].idle) {
                    flip_step(u, &q, p, &p->top[k]);
                }
                shown += !p->top[k].idle;
            }
        }
        answer(u, &q);
    } while (q.n > 0);
    free(q.v);
}

void uncertainty_run(struct uncertainty *u)
{
    u->n_policies = u->plan->n_policies;
    run_machines(u);
    uncertainty_analyse(u);
    find_flips(u);
    for (uint32_t i = 0; i < u->n_pairs; i++) {
        uncertainty_conclude(&u->pairs[i]);
    }
}
