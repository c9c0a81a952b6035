/* Processes that do work for others: their limits, and what became of them. */
#pragma once

#include <sys/types.h>

#include "sim/base/base.h"

#define JOBS_MESSAGE_BYTES 512

struct job_result {
    int status;      /* 0; what the job returned; -EIO when its process died */
    int exit_status; /* of a process that ended in the job: 128 + signal, or its own; else 0 */
    char message[JOBS_MESSAGE_BYTES]; /* "" when fine */
    void *data;                       /* owned; size bytes, or NULL */
    size_t size;
};

/* Limits the CPU time of this very process: when it is used up, `message` goes to stderr and the
 * process exits with status 1. For commands that run in one process. The message is copied. */
void worker_limit_self(double cpu_limit_s, const char *message);

/* The next limit_s seconds of CPU time of this process are its last: the soft limit, so every job
 * can set it again. 0: no limit. */
void worker_limit_cpu(double limit_s);
/* First in a forked worker: it leaves no core, and is killed when its parent ends. */
void worker_become(pid_t parent);
/* Afterwards a policy can do no harm to the process. Its standard output, such as a plug-in's
 * printf, goes to standard error and is counted, because results are the parent's. A file that is
 * being written when the process crashes or exits is removed. */
void worker_isolate(void);
uint64_t worker_stdout_bytes(void);
/* Does a process wait, for a lock, say, or asleep, rather than compute? One that has children of
 * its own may wait for them. False when nobody can say. */
bool worker_waits(pid_t pid);
/* Why a worker died, from its wait status, into r->status (-EIO; -ENOMEM when its memory ran out)
 * and r->message. */
void worker_describe_death(int wait_status, double cpu_limit_s, struct job_result *r);

/* Processors that are on line: the default of --jobs. */
uint32_t worker_processors(void);
