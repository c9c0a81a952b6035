/* One interpreter for many runs of a policy in Python.
 *
 * The zygote is a process in the jail of the policy (jail.h). It has loaded the interpreter, the
 * package xpusim and modules of the standard library, and no line of the policy has run in it. Each
 * run is a fork of it, which first closes what is not its own, installs the filter that forbids
 * other processes, and then loads the policy. So nothing of one run reaches another: code of the
 * policy only ever runs in the process of one run (policies/python/xpusim/zygote.py). */
#pragma once

#include "policies/external/process.h"

struct zygote {
    pid_t pid;    /* 0: none */
    pid_t owner;  /* whose child it is: not of a fork of that process */
    int control;  /* a socket: requests and answers */
    bool useless; /* it could not be started, or has died: runs start a program each */
};

/* Starts argv (process_start) with its end of the control socket as descriptor 3. Waits up to
 * limit_s until it is ready. False: it is useless here. */
bool zygote_start(struct zygote *z, char *const argv[], const struct jail *jail, double limit_s);
/* A process of a run, its standard input and output are fds[0] and fds[1]. Its number; -1: none. */
pid_t zygote_fork(struct zygote *z, const int fds[2]);
/* waitpid of that process. One at a time. */
pid_t zygote_wait(struct zygote *z, int *status, bool wait);
