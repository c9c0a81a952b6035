/* Worker processes. Each takes job after job, so that the cost of starting a process is not paid
 * per run. Only the jobs in hand are kept in memory. (jobs.h, on top of this, is for a few jobs
 * whose results are needed together.)
 *
 * A job that crashes, never returns, or takes more memory than it may costs only itself. Its worker
 * dies, the job gets a result that says why, and another worker takes the next job. A worker is
 * also replaced after jobs_per_worker jobs, so that leaks of a plug-in do not add up. */
#pragma once

#include "experiments/run/worker.h"

struct pool_worker; /* opaque: the worker's end of the line */

struct pool {
    uint32_t parallel;        /* workers, >= 1 */
    uint32_t jobs_per_worker; /* then a fresh one; 1: a process of its own for every job */
    /* CPU time of each job, rounded up to whole seconds; 0: no limit. A job may wait (a sleep, a
     * lock) for as long, but at most POOL_WAIT_LIMIT_S, and it may take POOL_CLOCK_FACTOR times as
     * long by the clock. */
    double cpu_limit_s;
    uint64_t memory_limit_bytes; /* address space of a worker; 0: none */
    void *ctx;                   /* borrowed, for the four below */
    /* In the parent: number of the next job; false when there is none now. */
    bool (*next)(void *ctx, uint64_t *job);
    /* In the parent: is the job of this key to be done, or is its result there already? NULL when
     * no job asks. */
    bool (*wanted)(void *ctx, uint64_t job, const char *key);
    /* In the worker: does the job, fills r (data by malloc; freed after it was sent). */
    void (*work)(void *ctx, uint64_t job, struct pool_worker *w, struct job_result *r);
    /* In the parent: a job was done, in any order. */
    void (*done)(void *ctx, uint64_t job, const struct job_result *r);
    /* In the parent, after every event and every 50 ms: false stops everything. NULL: never stops.
     */
    bool (*go_on)(void *ctx);
};

#define POOL_WAIT_LIMIT_S 60.0
#define POOL_CLOCK_FACTOR 10.0

/* Runs until there is no next job and all are done. Returns
 *   0         all done
 *   -EINTR    go_on stopped it: workers are killed, their jobs not reported
 *   -ENOMEM   a worker without a limit ran out of memory: the same
 *   -errno    no worker can be started
 */
int pool_run(const struct pool *p);

/* In work: asks the parent's `wanted`. A job that is not wanted returns with r untouched. */
bool pool_wanted(struct pool_worker *w, const char *key);
