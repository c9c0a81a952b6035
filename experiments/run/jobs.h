/* Independent pieces of work in worker processes, so that one which crashes or never returns costs
 * itself only. Every job runs in a process of its own, forked when a place is free; what it returns
 * is collected by index, so results do not depend on how many run at once or which ends first. */
#ifndef EXPERIMENTS_RUN_JOBS_H
#define EXPERIMENTS_RUN_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define JOBS_MESSAGE_BYTES 512

struct job_result {
    int status;                       /* 0; what the job returned; -EIO when its process died */
    char message[JOBS_MESSAGE_BYTES]; /* "" when fine */
    void *data;                       /* owned; size bytes, or NULL */
    size_t size;
};

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

/* Limits the CPU time of this very process: when it is used up, `message` goes to stderr and the
 * process exits with status 1. For commands that run in one process. The message is copied. */
void jobs_limit_self(double cpu_limit_s, const char *message);

/* For other kinds of workers (pool.h). The next limit_s seconds of CPU time of this process are its
 * last: the soft limit, so it can be set anew for every job. 0: no limit. */
void jobs_limit_cpu(double limit_s);
/* First in a forked worker: it leaves no core, and is killed when its parent ends. */
void jobs_become_worker(pid_t parent);
/* Why a worker died, from its wait status, into r->status (-EIO; -ENOMEM when its memory ran out)
 * and r->message. */
void jobs_describe_death(int wait_status, double cpu_limit_s, struct job_result *r);

/* Processors that are on line: the default of --jobs. */
uint32_t jobs_processors(void);

#endif
