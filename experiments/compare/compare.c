#include "experiments/compare/compare.h"

#include <stdlib.h>
#include <string.h>

#include "experiments/run/runner.h"
#include "experiments/run/study.h"
#include "sim/base/arena.h"
#include "sim/base/rng.h"

#define GOLDEN 0x9e3779b97f4a7c15ULL /* 2^64 / golden ratio: spreads successive numbers */

uint64_t compare_seed(uint64_t seed, uint32_t replication)
{
    return replication == 0 ? seed : rng_seed(rng_mix64(rng_mix64(seed) + GOLDEN * replication));
}

/* Cell number replication * n_policies + policy. */
static int cell(void *ctx, uint32_t index, struct study_cell *out, struct err *e)
{
    const struct compare_plan *plan = ctx;
    (void)e;
    *out = (struct study_cell){
        .config = plan->config,
        .options = plan->options,
        .policy = &plan->policies[index % plan->n_policies],
        .seed = compare_seed(plan->options->seed, plan->first + index / plan->n_policies),
        .arrivals = plan->arrivals,
    };
    return 0;
}

static double *values_at(const struct compare_result *r, uint32_t policy, size_t metric)
{
    return &r->values[((size_t)policy * r->n_metrics + metric) * r->replications];
}

void compare_run(const struct compare_plan *plan, struct compare_result *out)
{
    uint32_t n = plan->n_policies * plan->replications;
    struct compare_plan copy = *plan;
    struct study s = {.n = n,
                      .parallel = plan->parallel,
                      .cpu_limit_s = plan->cpu_limit_s,
                      .progress = plan->progress,
                      .sketch = plan->sketch,
                      .ctx = &copy,
                      .cell = cell};
    struct study_outcome *o = study_run(&s);
    struct metric_list names = {0};
    runner_metric_names(plan->config, &names);
    *out = (struct compare_result){.n_policies = plan->n_policies,
                                   .replications = plan->replications,
                                   .names = names.v,
                                   .failures = xcalloc(n + 1, sizeof *out->failures)};
    for (uint32_t i = 0; i < n && out->n_metrics == 0; i++) { /* none where every run failed */
        out->n_metrics = o[i].status == 0 ? names.n : 0;
    }
    out->values = xmalloc((out->n_metrics * n + 1) * sizeof *out->values);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t policy = i % plan->n_policies;
        uint32_t replication = i / plan->n_policies;
        for (size_t k = 0; k < out->n_metrics; k++) {
            values_at(out, policy, k)[replication] =
                o[i].status == 0 ? o[i].values[k] : METRIC_UNDEFINED;
        }
        if (o[i].status != 0) {
            struct compare_failure *f = &out->failures[out->n_failures++];
            *f = (struct compare_failure){.policy = policy, .replication = replication};
            memcpy(f->message, o[i].message, sizeof f->message);
        }
    }
    study_outcomes_free(o, n);
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
