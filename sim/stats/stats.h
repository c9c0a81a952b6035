/* Means, paired differences, and statements about them.
 *
 * Replications of two policies on the same trace (common random numbers) are pairs. The difference
 * of each pair is one observation. The mean difference has Student's t interval with n - 1 degrees
 * of freedom. A NaN (metric not defined in that replication) drops its pair. */
#pragma once

#include "sim/base/base.h"

#define STATS_LEVEL_FRAC 0.95
/* A difference of less than this share of the baseline's mean matters to nobody. */
#define STATS_RELEVANCE_FRAC 0.01

struct stats_interval {
    double mean, low, high; /* NaN where undefined: mean of nothing, interval of one value */
    double sd;              /* of one observation */
    uint32_t n;             /* observations used */
};

/* Interval of the mean of the finite values among n. level_frac in (0, 1). */
struct stats_interval stats_mean(const double *x, size_t n, double level_frac);

struct stats_paired {
    struct stats_interval diff; /* x - base */
    double base_mean;           /* over the pairs used */
    double relevance_frac;      /* STATS_RELEVANCE_FRAC, unless the caller sets another; 0: none */
};

struct stats_paired stats_paired(const double *x, const double *base, size_t n, double level_frac);

/* Half-width of the interval; NaN where there is none. */
double stats_half_width(const struct stats_interval *s);

enum stats_finding {
    STATS_UNDEFINED,   /* no pair has both values */
    STATS_IDENTICAL,   /* every pair is equal */
    STATS_NO_INTERVAL, /* one pair: a difference, but nothing to judge it by */
    STATS_EQUAL,       /* the interval lies within the relevance around 0 (equivalence) */
    STATS_NOT_SHOWN,   /* the interval holds 0 */
    STATS_LOWER,       /* the interval lies below 0 */
    STATS_HIGHER
};

enum stats_finding stats_judge(const struct stats_paired *p);

/* Two-sided chance of so large a mean difference if there were none (Student's t); NaN where there
 * is no interval. Below 1 - level exactly when the interval excludes 0. */
double stats_p(const struct stats_paired *p);

/* In words: "lower by 12 % (significant)", "equal within 1 %", "no difference shown at n=10",
 * "identical at n=10", "higher by 3.1 % (n=1, no interval)", "not defined". Relative to the
 * baseline's mean; absolute when that is 0. Nobody frees it. */
const char *stats_verdict(const struct stats_paired *p);

/* "12.35 [11.95, 12.75]": as many decimals as show two digits of the interval's half-width (of the
 * value, where there is no interval), the same for all three. NaN prints as "-". Nobody frees it.
 */
const char *stats_format(const struct stats_interval *s);
