/* Worker processes: their limits, and descriptions of their ends. */
#pragma once

#include <sys/types.h>

#include "sim/base/base.h"

#define JOBS_MESSAGE_BYTES 512

struct job_result {
    int status;      /* 0, the job's status, or -EIO if its process died */
    int exit_status; /* if the process died: 128 + signal, or its exit status; else 0 */
    char message[JOBS_MESSAGE_BYTES]; /* "" when fine */
    void *data;                       /* owned; size bytes, or NULL */
    size_t size;
};

/* Limits the CPU time of this process. At the limit it prints `message` on stderr and exits with
 * status 1. For commands that run in one process. The message is copied. */
void worker_limit_self(double cpu_limit_s, const char *message);

/* Limits this process to limit_s more seconds of CPU time. It is a soft limit, so every job can set
 * it again. 0: no limit. */
void worker_limit_cpu(double limit_s);
/* Call it first in a forked worker: disables core dumps, and sends it SIGTERM when its parent ends.
 */
void worker_become(pid_t parent);
/* Protects results from a policy. Its standard output, such as a plug-in's printf, goes to standard
 * error and is counted, because only the parent prints results. If the process crashes or exits,
 * files that it is writing are removed. */
void worker_isolate(void);
uint64_t worker_stdout_bytes(void);
/* Whether a process waits (for a lock, asleep) instead of computing. False if it has children, for
 * which it may wait, or if this is unknown. */
bool worker_waits(pid_t pid);
/* Describes the death of a worker, from its wait status, in r->status (-EIO; -ENOMEM if its memory
 * ran out) and r->message. */
void worker_describe_death(int wait_status, double cpu_limit_s, struct job_result *r);

/* Number of online processors: the default of --jobs. */
uint32_t worker_processors(void);
