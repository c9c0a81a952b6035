/* Clocks of this computer, for measuring and for people; no result of a simulation depends on one.
 */
#pragma once

#include <stdint.h>
#include <time.h>

int64_t clock_ns(clockid_t clock);
/* Since some instant in the past; it never goes back, even where the computer's clock does. */
int64_t clock_now_ns(void);
/* The instant in ns from now, as the computer's clock has it: for pthread_cond_timedwait. */
struct timespec clock_after(int64_t ns);
double clock_now_s(void);
/* Processor time so far of RUSAGE_SELF, or of the RUSAGE_CHILDREN that have ended. */
double clock_processor_s(int who);
