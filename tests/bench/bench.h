/* Measuring: CPU time of a region, median of seven runs after a warm-up. Nothing here decides a
 * test; every figure is printed beside a reference measured in the same process. */
#pragma once

#include <stdint.h>

/* Seconds of CPU time that fn(arg) takes: one warm-up, then the median of seven. */
double bench_seconds(void (*fn)(void *arg), void *arg);
/* CPU seconds of this process so far. */
double bench_cpu_s(void);
/* Peak resident memory of this process, MB. */
double bench_peak_mb(void);
