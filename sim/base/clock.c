#include "sim/base/clock.h"

#include <stdatomic.h>
#include <sys/resource.h>

#include "sim/base/base.h"

#define STEP_NS 1000000 /* smaller steps back are differences between processors' clocks */

int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t clock_now_ns(void)
{
    static _Atomic int64_t shift_ns;
    static _Atomic int64_t last_ns;
    int64_t shift = atomic_load(&shift_ns);
    int64_t now = clock_ns(CLOCK_MONOTONIC) + shift;
    int64_t last = atomic_load(&last_ns);
    if (now < last) {
        if (last - now > STEP_NS) { /* set back by an unknown time: continue from `last` */
            (void)atomic_compare_exchange_strong(&shift_ns, &shift, shift + last - now);
        }
        return last;
    }
    while (now > last && !atomic_compare_exchange_weak(&last_ns, &last, now)) {
    }
    return now;
}

struct timespec clock_after(int64_t ns)
{
    int64_t at = clock_ns(CLOCK_MONOTONIC) + ns;
    return (struct timespec){at / NS_PER_S, at % NS_PER_S};
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
