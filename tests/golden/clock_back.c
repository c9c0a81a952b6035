/* For LD_PRELOAD: after 300 readings the computer's clock is a minute less, for who reads it and
 * for who waits by it. Hypervisors have done so. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BACK_S 60

static atomic_int n;

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, t);
    if (clock == CLOCK_MONOTONIC && atomic_fetch_add(&n, 1) > 300) {
        t->tv_sec -= BACK_S;
    }
    return rc;
}

int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
    struct timespec at = *until;
    at.tv_sec += atomic_load(&n) > 300 ? BACK_S : 0;
    return pthread_cond_clockwait(c, m, CLOCK_MONOTONIC, &at);
}
