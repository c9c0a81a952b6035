#include "experiments/run/jobs.h"

#include "experiments/run/pool.h"
#include "experiments/shell/progress.h"

struct batch {
    const struct jobs *jobs;
    struct job_result *results;
    bool *ended; /* owned; indexed by job */
    uint32_t next, done;
    struct progress progress;
};

static bool next(void *ctx, uint64_t *job)
{
    struct batch *b = ctx;
    SIM_ASSERT(b->done <= b->next); /* a job ends after its start */
    *job = b->next;
    return b->next++ < b->jobs->n;
}

static void work(void *ctx, uint64_t job, struct pool_worker *w UNUSED, struct job_result *r)
{
    struct batch *b = ctx;
    b->jobs->run(b->jobs->ctx, (uint32_t)job, r);
}

static void done(void *ctx, uint64_t job, const struct job_result *r)
{
    struct batch *b = ctx;
    SIM_ASSERT(job < b->next && job < b->jobs->n && !b->ended[job]);
    struct job_result *out = &b->results[job];
    *out = *r;
    out->data = r->size > 0 ? xmalloc(r->size) : NULL;
    if (r->size > 0) {
        memcpy(out->data, r->data, r->size);
    }
    b->ended[job] = true;
    progress_show(&b->progress, ++b->done);
}

void jobs_run(const struct jobs *j, struct job_result *results)
{
    if (j->n == 0) {
        return;
    }
    struct batch b = {.jobs = j, .results = results, .ended = xcalloc(j->n, sizeof *b.ended)};
    memset(results, 0, j->n * sizeof *results);
    progress_start(&b.progress, j->progress, j->n);
    struct pool pool = {.parallel = j->parallel < j->n ? j->parallel : j->n,
                        .jobs_per_worker = 1,
                        .cpu_limit_s = j->cpu_limit_s,
                        .ctx = &b,
                        .next = next,
                        .work = work,
                        .done = done};
    int rc = pool_run(&pool);
    progress_end(&b.progress);
    SIM_ASSERT(rc != 0 || b.done == j->n);
    if (rc == -ENOMEM) { /* not the job's fault, so there is no result without it */
        out_of_memory(0);
    }
    for (uint32_t i = 0; i < j->n && rc != 0; i++) { /* no process could be started */
        if (!b.ended[i]) {
            results[i].status = -EIO;
            (void)snprintf(results[i].message, JOBS_MESSAGE_BYTES, "cannot start a process: %s",
                           strerror(-rc));
        }
    }
    free(b.ended);
}
