/* Units and conversions: units are converted only here.
 *
 * Instants and durations are int64_t nanoseconds; rates are double. A duration computed in floating
 * point becomes an integer once, here, by rounding to the nearest nanosecond. So every later sum is
 * exact, and results do not depend on the order of additions. */
#pragma once

#include <math.h>
#include <stdint.h>

#define NS_PER_S 1000000000LL
#define NS_PER_MS 1000000LL
#define NS_PER_US 1000LL
#define TIME_NEVER_NS INT64_MAX
/* The last instant of a run (146 years): adding a duration to an instant cannot overflow. */
#define TIME_LAST_NS (INT64_MAX / 2)

/* Exact sum of nanoseconds or bytes over many requests, kernels or engines; cannot overflow. */
__extension__ typedef __int128 units_sum;

static inline double units_s_from_ns(int64_t t_ns)
{
    return (double)t_ns / 1e9;
}

static inline double units_ms_from_ns(int64_t t_ns)
{
    return (double)t_ns / 1e6;
}

static inline double units_us_from_ns(int64_t t_ns)
{
    return (double)t_ns / 1e3;
}

/* llround for 0 <= x < 2^62, inline; exact, because x - i is. */
static inline int64_t units_round(double x)
{
    int64_t i = (int64_t)x;
    return i + (x - (double)i >= 0.5 ? 1 : 0);
}

/* ceil for 0 <= x < 2^62, inline and exact. */
static inline int64_t units_ceil(double x)
{
    int64_t i = (int64_t)x;
    return i + ((double)i < x ? 1 : 0);
}

/* Nearest nanosecond; precondition |t_s| < 9.2e9 (292 years). */
static inline int64_t units_ns_from_s(double t_s)
{
    return (int64_t)llround(t_s * 1e9);
}

static inline int64_t units_ns_from_ms(double t_ms)
{
    return (int64_t)llround(t_ms * 1e6);
}

static inline int64_t units_ns_from_us(double t_us)
{
    return (int64_t)llround(t_us * 1e3);
}
