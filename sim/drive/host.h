/* The threads, clocks and files that the executor uses. Each member is the POSIX function of its
 * name, with the same contract. A test can run the executor on a virtual host
 * (tests/helpers/virtual.h), where a seed chooses every interleaving. */
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct drive_host {
    int (*thread_create)(pthread_t *t, const pthread_attr_t *a, void *(*main)(void *), void *arg);
    int (*thread_join)(pthread_t t, void **result);
    int (*thread_detach)(pthread_t t);
    pthread_t (*thread_self)(void);
    int (*mutex_lock)(pthread_mutex_t *m);
    int (*mutex_unlock)(pthread_mutex_t *m);
    int (*cond_wait)(pthread_cond_t *c, pthread_mutex_t *m);
    int (*cond_timedwait)(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until);
    int (*cond_signal)(pthread_cond_t *c);
    int (*cond_broadcast)(pthread_cond_t *c);
    int64_t (*now_ns)(void);              /* clock_now_ns: never goes back, but may jump */
    struct timespec (*after)(int64_t ns); /* clock_after: for cond_timedwait */
    int64_t (*cpu_ns)(void);              /* processor time of the calling thread */
    ssize_t (*pread)(int file, void *data, size_t bytes, off_t at);
    ssize_t (*pwrite)(int file, const void *data, size_t bytes, off_t at);
    int (*fdatasync)(int file);
    /* Creates an unnamed file in a folder. Returns a descriptor that the caller closes, or
     * -errno. */
    int (*swap_open)(const char *folder);
};

extern const struct drive_host drive_host_posix;

/* If a thread was detached because it hangs, ends the process with that status without the exit
 * handlers of libraries, whose data the thread may use. Otherwise it returns. */
void drive_host_leave(int status);
