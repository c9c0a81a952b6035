/* A process that forks for many runs of an external policy, because a start is slow.
 *
 * The zygote is in the jail of the policy (jail.h). For a class of a Python file it has loaded the
 * interpreter, the package xpusim and modules of the standard library. For a plug-in it is this
 * program. It has run no code of the policy. Each run is a fork of it, which first closes foreign
 * descriptors, installs the filter that forbids other processes, and then loads the policy. So runs
 * cannot affect each other: code of the policy only runs in the process of one run
 * (policies/python/xpusim/zygote.py, zygote_child.c). */
#pragma once

#include "policies/external/process.h"

#define ZYGOTE_FDS 4
#define ZYGOTE_TEXT 64 /* longest request, with NUL */

struct zygote {
    pid_t pid;    /* 0: none */
    pid_t owner;  /* its parent; a fork of the parent must not use it */
    int control;  /* socket for requests and answers */
    bool useless; /* not started, or died: start a program per run */
};

/* Starts argv (process_start) with one end of the control socket as descriptor 3. Waits up to
 * limit_s until it is ready. Returns false, and sets `useless`, if it fails. */
bool zygote_start(struct zygote *z, char *const argv[], const struct jail *jail, double limit_s);
/* Forks a process for a run. Its standard input and output are fds[0] and fds[1], and the others
 * get the descriptors from 3 on. about: a word for it, or "". Returns its pid, or -1. */
pid_t zygote_fork(struct zygote *z, const char *about, const int *fds, int n);
/* As waitpid, for the last process of zygote_fork. */
pid_t zygote_wait(struct zygote *z, int *status, bool wait);

/* In a process that zygote_start started: forks for every request. Returns in each fork, which is
 * confined, with the text `about`; the caller frees it. */
char *zygote_serve(void);
