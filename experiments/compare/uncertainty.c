#include "experiments/compare/uncertainty.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/uncertainty_impl.h"
#include "experiments/run/study.h"
#include "sim/base/arena.h"

/* ---- runs ---- */

/* One machine, one replication, every policy. */
struct probe {
    uint32_t draw; /* UINT32_MAX: the file's, with `factor` at x */
    uint32_t factor;
    double x;
    uint32_t replication;
};

struct probes {
    const struct compare_plan *plan;
    const struct machines *machines;
    const struct probe *v;
};

/* Cell number probe * n_policies + policy. */
static int cell(void *ctx, uint64_t index, struct study_cell *out, struct err *e)
{
    const struct probes *q = ctx;
    const struct compare_plan *plan = q->plan;
    const struct probe *p = &q->v[index / plan->n_policies];
    struct config *c = xcalloc(1, sizeof *c);
    *out = (struct study_cell){
        .config = c,
        .options = plan->options,
        .policy = &plan->policies[index % plan->n_policies],
        .seed = compare_seed(plan->options->seed, p->replication),
        .arrivals = plan->arrivals,
    };
    return machines_load(q->machines, plan->options, p->draw, p->factor, p->x, c, e);
}

/* The first run that failed of one probe's, or NULL. */
static const struct study_outcome *failed_of(const struct study_outcome *o, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (o[i].status != 0) {
            return &o[i];
        }
    }
    return NULL;
}

/* Runs the probes; values[probe][policy][metric], NaN where a run failed. Returns how many did. */
static uint32_t run_probes(const struct uncertainty *u, const struct compare_plan *plan,
                           const struct probe *v, uint32_t n, double *values)
{
    uint32_t policies = plan->n_policies;
    struct probes q = {plan, &u->machines, v};
    struct study s = {
        .n = n * policies, .how = plan->how, .sketch = plan->sketch, .ctx = &q, .cell = cell};
    struct study_outcomes o;
    study_run(&s, &o);
    uint32_t failed = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct study_outcome *bad = failed_of(&o.v[i * policies], policies);
        for (uint32_t k = 0; k < policies * u->n_metrics; k++) {
            const struct study_outcome *one = &o.v[i * policies + k / u->n_metrics];
            values[(size_t)i * policies * u->n_metrics + k] =
                bad == NULL ? study_value(one, u->metrics[k % u->n_metrics]) : METRIC_UNDEFINED;
        }
        if (bad != NULL && failed++ == 0) {
            (void)fprintf(stderr, "xpusim: note: a drawn machine could not run: %s\n",
                          bad->message);
        }
    }
    study_outcomes_fini(&o);
    return failed;
}

/* ---- flip points ---- */

/* Mean difference of a pair with one factor at x. */
static double difference_at(struct uncertainty *u, const struct compare_plan *plan,
                            const struct uncertainty_pair *p, uint32_t factor, double x)
{
    struct compare_plan two = *plan;
    struct config_policy policies[2] = {plan->policies[p->policy], plan->policies[plan->baseline]};
    two.policies = policies;
    two.n_policies = 2;
    struct probe v[UNCERTAINTY_FLIP_RUNS];
    for (uint32_t i = 0; i < UNCERTAINTY_FLIP_RUNS; i++) {
        v[i] = (struct probe){UINT32_MAX, factor, x, i};
    }
    double *values = xmalloc(UNCERTAINTY_FLIP_RUNS * 2 * u->n_metrics * sizeof *values);
    u->n_failed += run_probes(u, &two, v, UNCERTAINTY_FLIP_RUNS, values);
    u->runs += 2 * UNCERTAINTY_FLIP_RUNS;
    double sum = 0.0;
    for (uint32_t i = 0; i < UNCERTAINTY_FLIP_RUNS; i++) {
        const double *a = &values[(size_t)i * 2 * u->n_metrics];
        sum += a[p->metric] - a[u->n_metrics + p->metric];
    }
    free(values);
    return sum / UNCERTAINTY_FLIP_RUNS;
}

static double middle_of(double a, double b)
{
    return a > 0.0 && b > 0.0 ? sqrt(a * b) : 0.5 * (a + b);
}

/* The end of the range at which the order turns, and between which two runs it does. */
static void find_flip(struct uncertainty *u, const struct compare_plan *plan,
                      const struct uncertainty_pair *p, struct uncertainty_share *s)
{
    const struct machine_factor *f = &u->machines.factor[s->factor];
    double d0 = difference_at(u, plan, p, s->factor, f->nominal);
    const double ends[] = {f->low, f->high};
    double d[2];
    for (int i = 0; i < 2; i++) {
        d[i] = ends[i] != f->nominal ? difference_at(u, plan, p, s->factor, ends[i]) : d0;
    }
    s->difference_file = d0;
    s->difference_low = d[0];
    s->difference_high = d[1];
    int end = d[0] * d0 < 0.0 ? 0 : 1;
    s->flips = d[end] * d0 < 0.0;
    s->holds_at = f->nominal;
    s->difference_holds = d0;
    s->turns_at = ends[end];
    s->difference_turns = d[end];
    for (int i = 0; s->flips && i < UNCERTAINTY_FLIP_STEPS; i++) {
        double m = middle_of(s->holds_at, s->turns_at);
        double dm = difference_at(u, plan, p, s->factor, m);
        bool turned = dm * d0 < 0.0;
        *(turned ? &s->turns_at : &s->holds_at) = m;
        *(turned ? &s->difference_turns : &s->difference_holds) = dm;
    }
}

/* ---- all of it ---- */

uint32_t uncertainty_replication(const struct compare_plan *plan, uint32_t machine, uint32_t repeat)
{
    return (machine * UNCERTAINTY_REPEATS + repeat) % plan->replications;
}

static void run_machines(const struct compare_plan *plan, struct uncertainty *u)
{
    uint32_t n = u->machines.n_draws * UNCERTAINTY_REPEATS;
    struct probe *v = xmalloc((n + 1) * sizeof *v);
    for (uint32_t i = 0; i < n; i++) { /* replications take turns, two for each machine */
        uint32_t machine = i / UNCERTAINTY_REPEATS;
        uint32_t k = uncertainty_replication(plan, machine, i % UNCERTAINTY_REPEATS);
        v[i] = (struct probe){machine, 0, 0.0, plan->first + k};
    }
    u->value = xmalloc((size_t)(n + 1) * plan->n_policies * u->n_metrics * sizeof *u->value);
    u->n_failed = run_probes(u, plan, v, n, u->value);
    u->runs = n * plan->n_policies;
    free(v);
}

int uncertainty_run(const struct compare_plan *plan, const struct compare_result *nominal,
                    const char *const *metrics, uint32_t n_metrics, uint32_t n_machines,
                    struct uncertainty *out, struct err *e)
{
    *out = (struct uncertainty){
        .metrics = metrics, .n_metrics = n_metrics, .n_policies = plan->n_policies};
    if (machines_draw(plan->config, plan->options->seed, n_machines, &out->machines, e) != 0) {
        return -EINVAL;
    }
    run_machines(plan, out);
    uncertainty_analyse(plan, nominal, out);
    for (uint32_t i = 0; i < out->n_pairs; i++) {
        struct uncertainty_pair *p = &out->pairs[i];
        for (uint32_t k = 0; p->metric == 0 && k < p->n_top; k++) {
            find_flip(out, plan, p, &p->top[k]);
        }
    }
    return 0;
}

void uncertainty_fini(struct uncertainty *u)
{
    machines_fini(&u->machines);
    free(u->value);
    free(u->pairs);
    free(u->best_frac);
    *u = (struct uncertainty){0};
}
