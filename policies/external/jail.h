/* A process that sees nothing of its parent: for policies that may want to know what they must not.
 *
 * After jail_enter, a process and all programs that it becomes
 *   - read and execute the files of the system (/usr, /lib ...), those it was given, and no other.
 *     So there is no /proc, no working folder, no home, no trace, no result;
 *   - write nothing except to its standard streams and /dev/null;
 *   - have no sockets, no shared memory, no message queues, no keyrings, no performance counters;
 *   - neither see nor signal nor trace another process, and start none unless `forks`;
 *   - have no capability and gain none by execution;
 *   - have the environment of jail_environment, and only the three standard streams and what
 * `keeps` says open;
 *   - have limits on memory, files and CPU time.
 * It can still measure time, and learn whether a path exists.
 *
 * The means are Landlock (Linux 5.13, no privilege) and a seccomp filter. Where user namespaces
 * work, the process is also in new network, IPC, UTS and mount namespaces. There is no PID
 * namespace: its first process ignores the signals that end a program that misbehaves, and without
 * /proc and signals nothing is left for it to hide. */
#pragma once

#include "sim/base/base.h"

/* Whether a new process can be confined here; else *why (unless NULL) says what lacks. Asked once a
 * process. The variable XPUSIM_JAIL=off says no: for programs that need what a jail takes. */
bool jail_works(const char **why);

/* One jail: its files besides those of the system. Paths that do not exist are left out. */
struct jail {
    const char *const *reads; /* files and folders to read and execute; NULL-terminated */
    const char *const *lists; /* folders of which it may read the names; NULL-terminated */
    const char *folder;       /* it works in; NULL: its parent's, of which it can read the name */
    int keeps;                /* descriptors that it has from 3 on: */
    int kept[2];
    bool forks; /* it may start processes of its own, as a shell does; they are confined too, and
                   stay in its process group */
    bool warms; /* it starts the process of each run, which confines itself further before it does
                   anything of a policy (zygote.h) */
};

/* In a child after fork, before exec: confines this process for good. 0, or -errno with nothing
 * certain: the caller ends. It makes system calls only. */
int jail_enter(const struct jail *j);

/* The environment in a jail, NULL-terminated, has how to find programs, libraries and time zone,
 * and nothing else. Relative folders of its paths are made absolute, since a jail may work in
 * another folder. One that `warms` has PYTHONPATH under the name XPUSIM_PYTHONPATH, so that it
 * begins with what is the system's. Built once from the current one; the process owns it. */
char **jail_environment(bool warms);
