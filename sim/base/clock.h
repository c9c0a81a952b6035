/* Real clocks, for measurements and progress messages. No result of a simulation depends on
 * them. */
#pragma once

#include <stdint.h>
#include <time.h>

int64_t clock_ns(clockid_t clock);
/* Nanoseconds since an arbitrary instant. Never decreases, even if CLOCK_MONOTONIC does. */
int64_t clock_now_ns(void);
/* The instant `ns` from now on CLOCK_MONOTONIC, for pthread_cond_timedwait. */
struct timespec clock_after(int64_t ns);
double clock_now_s(void);
/* Processor time in seconds. who: RUSAGE_SELF, or RUSAGE_CHILDREN for children that have ended. */
double clock_processor_s(int who);
