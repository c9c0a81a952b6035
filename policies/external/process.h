/* A child process that answers a line with a line, within a time limit. It ends with its parent. */
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/types.h>

#include "policies/external/jail.h"

struct zygote;

struct process {
    pid_t pid; /* 0: none */
    int to, from;
    double limit_s;        /* wall-clock limit to send or to receive a line */
    struct text in;        /* bytes read; the returned line is valid until the next call */
    size_t used;           /* bytes of `in` returned so far */
    char failure[256];     /* why it cannot continue; "" if it can */
    sigset_t before;       /* signal mask of the thread at the start */
    bool quiet, broke;     /* SIGPIPE is blocked; one is pending, of this pipe */
    struct zygote *zygote; /* parent of the process; NULL: this process */
    cpu_set_t home;        /* affinity of this thread before */
    bool together;         /* pinned to one processor, with the child */
    int64_t chosen_ns;     /* when the scheduler was last free to choose the processor */
};

/* Starts argv (NULL-terminated, argv[0] searched in PATH) in a new process group. Its standard
 * input and output are pipes; standard error is inherited. jail NULL: not confined. Returns 0, or
 * -errno with `failure`. SIGPIPE is blocked until process_end in the same thread, so only one
 * process at a time. */
int process_start(struct process *p, char *const argv[], const struct jail *jail, double limit_s);
/* As process_start, but the zygote forks the process. kept: two descriptors that it gets as 3 and
 * 4; NULL: none. about: a text for it. */
int process_start_of(struct process *p, struct zygote *z, const char *about, const int *kept,
                     double limit_s);
/* Closes the pipes of a process that continues. It ends with this process. */
void process_keep(struct process *p);
/* Writes n bytes. Returns 0, or -EIO with `failure`: it ended, or did not read in time. Its last
 * output can still be received. */
int process_send(struct process *p, const char *bytes, size_t n);
/* Returns the next line, NUL-terminated without its end; valid until the next call. NULL with
 * `failure`: it ended, did not answer in time, or wrote too long a line. */
char *process_receive(struct process *p);
/* Called before the turn is passed. While turns are frequent, pins both processes to one processor,
 * because a switch between two takes three times as long. Unpins every 20 ms. */
void process_together(struct process *p);
/* For a process that answers in shared memory, and keeps its output open as long as it lives. True
 * with `failure`: it ended, wrote something, or missed deadline_ns (process_deadline_ns at the
 * begin of the wait). */
bool process_has_ended(struct process *p, int64_t deadline_ns);
int64_t process_deadline_ns(const struct process *p);
/* Bytes that were read beyond the last returned line. */
size_t process_unasked(const struct process *p);
/* Closes its input, waits a second for its end, then kills its group. May be called again. */
void process_end(struct process *p);
