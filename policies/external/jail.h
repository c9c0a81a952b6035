/* A sandbox for a policy's process, so that it cannot get information that it must not use.
 *
 * After jail_enter, a process and all programs that it executes
 *   - read and execute only the files of the system (/usr, /lib ...) and those of struct jail. So
 *     there is no /proc, no working folder, no home, no trace, no result;
 *   - write only to their standard streams and /dev/null;
 *   - have no sockets, no shared memory, no message queues, no keyrings, no performance counters;
 *   - cannot see, signal or trace another process, and start none unless `forks`;
 *   - have no capability and gain none by execution;
 *   - have the environment of jail_environment, and only the standard streams and `kept` open;
 *   - have limits on memory, files and CPU time.
 * They can still measure time, and detect whether a path exists.
 *
 * The means are Landlock (Linux 5.13, no privilege) and a seccomp filter. If user namespaces work,
 * the process is also in new network, IPC, UTS and mount namespaces. There is no PID namespace: its
 * first process would ignore the signals that end a faulty program, and without /proc and signals
 * there is nothing left to hide. */
#pragma once

#include "sim/base/base.h"

/* Whether a process can be confined here; else *why (unless NULL) is the reason. Checked once.
 * XPUSIM_JAIL=off in the environment disables jails, for programs that need more. */
bool jail_works(const char **why);

/* The files of a jail beyond those of the system. Paths that do not exist are ignored. */
struct jail {
    const char *const *reads; /* files and folders to read and execute; NULL-terminated */
    const char *const *lists; /* folders whose names may be read; NULL-terminated */
    const char *folder;       /* working folder; NULL: the parent's, whose name is then readable */
    int keeps;                /* number of `kept`, which get the descriptors from 3 on */
    int kept[2];
    bool forks; /* may start processes, as a shell does; they are confined, too, and stay in its
                   group */
    bool warms; /* a zygote: starts the processes of runs, which confine themselves further
                   (zygote.h) */
};

/* In a child after fork, before exec: confines this process for good. Returns 0, or -errno with an
 * undefined state: the caller must exit. Makes system calls only. */
int jail_enter(const struct jail *j);

/* The environment in a jail, NULL-terminated: only the variables to find programs, libraries and
 * the time zone. Relative folders are made absolute, because a jail may work in another folder.
 * With `warms`, PYTHONPATH is called XPUSIM_PYTHONPATH, so that only the system's modules are
 * loaded at the start. Built once from the current environment; never freed. */
char **jail_environment(bool warms);
