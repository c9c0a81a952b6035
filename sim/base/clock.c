#include "sim/base/clock.h"

#include <sys/resource.h>

#include "sim/base/units.h"

int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t clock_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

double clock_now_s(void)
{
    return 1e-9 * (double)clock_now_ns();
}

double clock_processor_s(int who)
{
    struct rusage u;
    (void)getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}
