/* Clocks of this computer, for measuring and for people; no result of a simulation depends on one.
 */
#pragma once

#include <stdint.h>
#include <time.h>

int64_t clock_ns(clockid_t clock);
/* Since some instant in the past; never set back. */
int64_t clock_now_ns(void);
double clock_now_s(void);
/* Processor time so far of RUSAGE_SELF, or of the RUSAGE_CHILDREN that have ended. */
double clock_processor_s(int who);
