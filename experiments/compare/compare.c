#include "experiments/compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/runner.h"
#include "sim/base/arena.h"
#include "sim/base/rng.h"

#define GOLDEN 0x9e3779b97f4a7c15ULL /* 2^64 / golden ratio: spreads successive numbers */

uint64_t compare_seed(uint64_t seed, uint32_t replication)
{
    return replication == 0 ? seed : rng_seed(rng_mix64(rng_mix64(seed) + GOLDEN * replication));
}

/* ---- in the worker ---- */

static void first_error(const struct err *e, struct job_result *r)
{
    r->status = -1;
    (void)snprintf(r->message, sizeof r->message, "%s", e->n > 0 ? e->lines[0] : "unknown error");
}

/* Job number replication * n_policies + policy. Gives back the metrics. */
static void run_one(void *ctx, uint32_t index, struct job_result *out)
{
    const struct compare_plan *plan = ctx;
    const struct config_policy *p = &plan->policies[index % plan->n_policies];
    uint64_t seed = compare_seed(plan->options->seed, plan->first + index / plan->n_policies);
    struct err e = ERR_INIT;
    struct trace t = {0};
    if (config_trace(plan->options, seed, plan->arrivals, &t, &e) != 0) {
        first_error(&e, out);
        return; /* the process ends: nothing to free */
    }
    struct runner_options opt = {.sketch = plan->sketch};
    struct runner_result r;
    out->status = runner_run(plan->config, p, &t, seed, &opt, &r, &e);
    if (out->status == 0 && !r.sim.audit.clean) {
        out->status = -1;
        (void)snprintf(out->message, sizeof out->message, "the audit found a violation");
    } else if (r.sim.status != 0) {
        (void)snprintf(out->message, sizeof out->message, "%.*s", JOBS_MESSAGE_BYTES - 1,
                       r.sim.message);
    } else if (out->status == 0) {
        out->data = r.metrics.v;
        out->size = r.metrics.n * sizeof *r.metrics.v;
    }
}

/* ---- in the parent ---- */

static void add_failure(struct compare_result *out, uint32_t policy, uint32_t replication,
                        const char *message)
{
    struct compare_failure *f = &out->failures[out->n_failures++];
    f->policy = policy;
    f->replication = replication;
    (void)snprintf(f->message, sizeof f->message, "%s", message);
}

static double *values_at(const struct compare_result *r, uint32_t policy, size_t metric)
{
    return &r->values[((size_t)policy * r->n_metrics + metric) * r->replications];
}

void compare_run(const struct compare_plan *plan, struct compare_result *out)
{
    uint32_t n = plan->n_policies * plan->replications;
    struct job_result *jobs = xcalloc(n, sizeof *jobs);
    struct compare_plan copy = *plan;
    struct jobs j = {.n = n,
                     .parallel = plan->parallel,
                     .cpu_limit_s = plan->cpu_limit_s,
                     .progress = plan->progress,
                     .ctx = &copy,
                     .run = run_one};
    jobs_run(&j, jobs);
    *out =
        (struct compare_result){.n_policies = plan->n_policies, .replications = plan->replications};
    out->failures = xcalloc(n, sizeof *out->failures);
    for (uint32_t i = 0; i < n && out->names == NULL; i++) {
        if (jobs[i].status == 0) { /* the names are the same in every run on one machine */
            out->n_metrics = jobs[i].size / sizeof *out->names;
            out->names = xmalloc(jobs[i].size);
            memcpy(out->names, jobs[i].data, jobs[i].size);
        }
    }
    out->values = xmalloc((out->n_metrics * n + 1) * sizeof *out->values);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t policy = i % plan->n_policies;
        uint32_t replication = i / plan->n_policies;
        const struct metric *m = jobs[i].data;
        bool ok = jobs[i].status == 0 && jobs[i].size == out->n_metrics * sizeof *m;
        for (size_t k = 0; k < out->n_metrics; k++) {
            values_at(out, policy, k)[replication] = ok ? m[k].value : METRIC_UNDEFINED;
        }
        if (!ok) {
            add_failure(out, policy, replication, jobs[i].message);
        }
        free(jobs[i].data);
    }
    free(jobs);
}

void compare_result_fini(struct compare_result *r)
{
    free(r->names);
    free(r->values);
    free(r->failures);
    *r = (struct compare_result){0};
}

const double *compare_values(const struct compare_result *r, uint32_t policy, const char *metric)
{
    for (size_t k = 0; k < r->n_metrics; k++) {
        if (strcmp(r->names[k].name, metric) == 0) {
            return values_at(r, policy, k);
        }
    }
    return NULL;
}
