/* A study: cells {configuration, policy, workload, seed}, each simulated in a worker process, and
 * what came of each. Whoever judges makes cells and reads outcomes; runs are started here. */
#ifndef EXPERIMENTS_RUN_STUDY_H
#define EXPERIMENTS_RUN_STUDY_H

#include "experiments/run/config.h"
#include "experiments/run/worker.h"

struct study_cell {
    const struct config *config;          /* borrowed, as all of these */
    const struct config_options *options; /* of the workload */
    const struct config_policy *policy;
    uint64_t seed; /* of workload and noise: equal seeds meet equal requests */
    struct config_arrivals arrivals;
};

struct study {
    uint32_t n; /* cells, numbered from 0 */
    uint32_t parallel;
    double cpu_limit_s; /* of a run; 0: none */
    bool progress, sketch;
    void *ctx; /* borrowed */
    /* In the worker, which ends after the run: what it makes need not be freed. 0, or -errno with
     * an error added. */
    int (*cell)(void *ctx, uint32_t index, struct study_cell *out, struct err *e);
};

struct study_outcome {
    int status;                       /* 0, or the run failed and message says why */
    char message[JOBS_MESSAGE_BYTES]; /* "" when fine */
    double *values; /* owned; metrics in the order of runner_metric_names; NULL when it failed */
    size_t n_values;
};

/* Runs all of them; failures do not stop the others. The caller frees with study_outcomes_free. */
struct study_outcome *study_run(const struct study *s);
void study_outcomes_free(struct study_outcome *o, uint32_t n);

#endif
