/* Worker processes. Each does many jobs, so that few processes are started. Only jobs in progress
 * are in memory. (jobs.h, on top of this, is for a few jobs whose results are needed together.)
 *
 * A job that crashes, never returns, or exceeds its memory affects no other job. Its worker dies,
 * the job's result gives the reason, and another worker takes the next job. A worker is also
 * replaced after jobs_per_worker jobs, so that leaks of a plug-in do not add up. */
#pragma once

#include "experiments/run/worker.h"

struct pool_worker; /* opaque: the worker's side */

struct pool {
    uint32_t parallel;        /* workers, >= 1 */
    uint32_t jobs_per_worker; /* then it is replaced; 1: a process for every job */
    /* CPU time of each job, rounded up to whole seconds; 0: no limit. A job may also wait (sleep,
     * lock) for that time, but at most POOL_WAIT_LIMIT_S, and take POOL_CLOCK_FACTOR times as long
     * in wall-clock time. */
    double cpu_limit_s;
    uint64_t memory_limit_bytes; /* address space of a worker; 0: none */
    void *ctx;                   /* borrowed, for the functions below */
    /* In the parent: number of the next job; false if there is none now. */
    bool (*next)(void *ctx, uint64_t *job);
    /* In the parent: whether the job of this key must be done, or its result exists. NULL: no job
     * calls pool_wanted. */
    bool (*wanted)(void *ctx, uint64_t job, const char *key);
    /* In the worker: does the job and fills r (data by malloc; freed after it was sent). */
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
 *   -ENOMEM   a worker without a limit ran out of memory: as -EINTR
 *   -errno    no worker can be started
 */
int pool_run(const struct pool *p);

/* In work: calls the parent's `wanted`. If it is false, return with r unchanged. */
bool pool_wanted(struct pool_worker *w, const char *key);
