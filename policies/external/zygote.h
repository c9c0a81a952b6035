/* One start for many runs of a policy in another process.
 *
 * The zygote is a process in the jail of the policy (jail.h). For a class of a Python file it has
 * loaded the interpreter, the package xpusim and modules of the standard library. For a plug-in it
 * is this program. No line of the policy has run in it. Each run is a fork of it, which first
 * closes what is not its own, installs the filter that forbids other processes, and then loads the
 * policy. So nothing of one run reaches another: code of the policy only ever runs in the process
 * of one run (policies/python/xpusim/zygote.py, zygote_child.c). */
#pragma once

#include "policies/external/process.h"

#define ZYGOTE_FDS 4
#define ZYGOTE_TEXT 64 /* of a request */

struct zygote {
    pid_t pid;    /* 0: none */
    pid_t owner;  /* whose child it is: not of a fork of that process */
    int control;  /* a socket: requests and answers */
    bool useless; /* it could not be started, or has died: runs start a program each */
};

/* Starts argv (process_start) with its end of the control socket as descriptor 3. Waits up to
 * limit_s until it is ready. False: it is useless here. */
bool zygote_start(struct zygote *z, char *const argv[], const struct jail *jail, double limit_s);
/* A process of a run. Its standard input and output are fds[0] and fds[1], and it has the others
 * from 3 on. about: a word of text for it, or "". Its number; -1: none. */
pid_t zygote_fork(struct zygote *z, const char *about, const int *fds, int n);
/* waitpid of that process. One at a time. */
pid_t zygote_wait(struct zygote *z, int *status, bool wait);

/* In a process that zygote_start has started: forks for every request. Returns in each fork, which
 * is confined then, with the text about it; the caller frees it. */
char *zygote_serve(void);
