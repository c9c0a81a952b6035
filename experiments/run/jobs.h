/* Independent jobs, each in its own forked process, so that a job that crashes or never returns
 * affects no other. Results are collected by index, so they do not depend on the number of parallel
 * jobs or the order of their ends. */
#pragma once

#include "experiments/run/worker.h"

struct jobs {
    uint32_t n;         /* jobs, numbered from 0 */
    uint32_t parallel;  /* jobs at once, >= 1 */
    double cpu_limit_s; /* of each job, rounded up to whole seconds; 0: none */
    bool progress;      /* a bar on stderr */
    void *ctx;          /* borrowed, for run */
    /* In the worker: does job `index` and fills r, which is zeroed before (data by malloc). */
    void (*run)(void *ctx, uint32_t index, struct job_result *r);
};

/* Fills results[0 .. n). The caller frees each data. If a worker runs out of memory this process
 * exits, too (out_of_memory), because results without that job would differ. */
void jobs_run(const struct jobs *j, struct job_result *results);
