/* Independent pieces of work in worker processes, so that one which crashes or never returns costs
 * only itself. Every job runs in a process of its own, forked when a place is free. Results are
 * collected by index, so they do not depend on how many jobs run at once or which ends first. */
#pragma once

#include "experiments/run/worker.h"

struct jobs {
    uint32_t n;         /* jobs, numbered from 0 */
    uint32_t parallel;  /* at once, >= 1 */
    double cpu_limit_s; /* of each job, rounded up to whole seconds; 0: none */
    bool progress;      /* a bar on stderr */
    void *ctx;          /* borrowed, for run */
    /* In the worker: does job `index`, fills r (data by malloc). r is zeroed before. */
    void (*run)(void *ctx, uint32_t index, struct job_result *r);
};

/* Fills results[0 .. n). The caller frees each data. A worker that runs out of memory ends this
 * process too (out_of_memory): results without it would be others. */
void jobs_run(const struct jobs *j, struct job_result *results);
