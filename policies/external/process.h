/* A child process that answers lines with lines, within a time limit. It ends with its parent. */
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/types.h>

#include "policies/external/jail.h"

struct zygote;

struct process {
    pid_t pid; /* 0: none */
    int to, from;
    double limit_s;        /* wall clock, for one line each way */
    struct text in;        /* what has been read; the line handed out stays until the next one */
    size_t used;           /* bytes of `in` handed out */
    char failure[256];     /* why it cannot continue; "" while it can */
    sigset_t before;       /* signals that its thread blocked when it was started */
    bool quiet, broke;     /* SIGPIPE waits; one does, of this pipe */
    struct zygote *zygote; /* whose child it is; NULL: this process's */
    cpu_set_t home;        /* processors that this thread may use */
    bool together;         /* it uses one of them alone */
    int64_t chosen_ns;     /* when the scheduler could last choose that one */
};

/* Starts argv (NULL-terminated, argv[0] searched in PATH) with its standard input and output on
 * pipes, standard error left as it is, in a process group of its own. `jail`: how it is confined;
 * NULL: not at all. 0 or -errno with `failure`. Until process_end, in the same thread, SIGPIPE
 * waits: one process at a time. */
int process_start(struct process *p, char *const argv[], const struct jail *jail, double limit_s);
/* Starts one by a fork of a process that has loaded the program (zygote.h). kept: two
 * descriptors that it has from 3 on; NULL: none. about: text for it. Like process_start otherwise.
 */
int process_start_of(struct process *p, struct zygote *z, const char *about, const int *kept,
                     double limit_s);
/* For a process that stays: closes its pipes. It ends with this process. */
void process_keep(struct process *p);
/* Writes n bytes. 0 or -EIO with `failure`: it ended, or did not read in time. Its output before it
 * ended can be received still. */
int process_send(struct process *p, const char *bytes, size_t n);
/* The next line, without its end, NUL-terminated; valid until the next call. NULL with `failure`:
 * it ended, gave none in time, or more than there is room for. */
char *process_receive(struct process *p);
/* Before it is given the turn: while turns are frequent, both are on one processor, since a switch
 * between two takes three times as long. Every 20 ms the scheduler may choose another. */
void process_together(struct process *p);
/* For a process that answers elsewhere, in shared memory, and holds its output open while it is
 * there. True with `failure`: it has ended, has written something, or it is later than
 * deadline_ns (process_deadline_ns, when its answer was awaited). */
bool process_has_ended(struct process *p, int64_t deadline_ns);
int64_t process_deadline_ns(const struct process *p);
/* Anything it has said beyond the line handed out last. */
size_t process_unasked(const struct process *p);
/* Closes its input, lets it end by itself for a second, then kills its group. Any number of times.
 */
void process_end(struct process *p);
