#include "experiments/compare/uncertainty.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/uncertainty_impl.h"
#include "experiments/run/runner.h"
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
    const char *const *metrics;
    uint32_t n_metrics;
};

static void first_error(const struct err *e, struct job_result *r)
{
    r->status = -1;
    (void)snprintf(r->message, sizeof r->message, "%s", e->n > 0 ? e->lines[0] : "unknown error");
}

/* In the worker: the process ends afterwards, so nothing is freed. */
static void run_probe(void *ctx, uint32_t index, struct job_result *out)
{
    const struct probes *q = ctx;
    const struct probe *p = &q->v[index];
    const struct compare_plan *plan = q->plan;
    struct err e = ERR_INIT;
    struct config *c = xcalloc(1, sizeof *c);
    struct trace t = {0};
    uint64_t seed = compare_seed(plan->options->seed, p->replication);
    if (machines_load(q->machines, plan->options, p->draw, p->factor, p->x, c, &e) != 0 ||
        config_trace(plan->options, seed, plan->arrivals, &t, &e) != 0) {
        first_error(&e, out);
        return;
    }
    double *values = xmalloc((size_t)plan->n_policies * q->n_metrics * sizeof *values);
    for (uint32_t i = 0; i < plan->n_policies; i++) {
        struct runner_options opt = {.sketch = plan->sketch};
        struct runner_result r;
        int rc = runner_run(c, &plan->policies[i], &t, seed, &opt, &r, &e);
        if (rc != 0 || r.sim.status != 0) {
            out->status = -1;
            (void)snprintf(out->message, sizeof out->message, "%.*s", JOBS_MESSAGE_BYTES - 1,
                           r.sim.message);
            return;
        }
        for (uint32_t m = 0; m < q->n_metrics; m++) {
            const struct metric *x = metric_list_find(&r.metrics, q->metrics[m]);
            values[(size_t)i * q->n_metrics + m] = x != NULL ? x->value : METRIC_UNDEFINED;
        }
    }
    out->data = values;
    out->size = (size_t)plan->n_policies * q->n_metrics * sizeof *values;
}

/* Runs the probes; values[probe][policy][metric], NaN where a run failed. Returns how many did. */
static uint32_t run_probes(const struct uncertainty *u, const struct compare_plan *plan,
                           const struct probe *v, uint32_t n, double *values)
{
    struct probes q = {plan, &u->machines, v, u->metrics, u->n_metrics};
    struct job_result *jobs = xcalloc(n + 1, sizeof *jobs);
    struct jobs j = {.n = n,
                     .parallel = plan->parallel,
                     .cpu_limit_s = plan->cpu_limit_s,
                     .progress = plan->progress,
                     .ctx = &q,
                     .run = run_probe};
    jobs_run(&j, jobs);
    size_t row = (size_t)plan->n_policies * u->n_metrics;
    uint32_t failed = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool ok = jobs[i].status == 0 && jobs[i].size == row * sizeof *values;
        for (size_t k = 0; k < row; k++) {
            values[i * row + k] = ok ? ((double *)jobs[i].data)[k] : METRIC_UNDEFINED;
        }
        if (!ok && failed++ == 0) {
            (void)fprintf(stderr, "xpusim: note: a drawn machine could not run: %s\n",
                          jobs[i].message);
        }
        free(jobs[i].data);
    }
    free(jobs);
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
