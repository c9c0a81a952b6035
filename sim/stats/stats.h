/* Means, paired differences, and verdicts on them.
 *
 * Replications of two policies on the same trace (common random numbers) are pairs. The difference
 * of each pair is one observation. The mean difference has Student's t interval with n - 1 degrees
 * of freedom. A NaN (metric not defined in that replication) drops its pair. */
#pragma once

#include "sim/base/base.h"

#define STATS_LEVEL_FRAC 0.95
/* A difference below this share of the baseline's mean counts as irrelevant. */
#define STATS_RELEVANCE_FRAC 0.01

struct stats_interval {
    double mean, low, high; /* NaN if undefined: mean of no values, interval of one value */
    double sd;              /* standard deviation of one observation */
    uint32_t n;             /* finite values */
};

/* Mean of the finite values of x, with its Student's t interval. level_frac is in (0, 1). */
struct stats_interval stats_mean(const double *x, size_t n, double level_frac);

struct stats_paired {
    struct stats_interval diff; /* x - base */
    double base_mean;           /* mean of base over the pairs used */
    double relevance_frac; /* STATS_RELEVANCE_FRAC, unless the caller changes it; 0: no limit */
};

struct stats_paired stats_paired(const double *x, const double *base, size_t n, double level_frac);

/* Half-width of the interval; NaN without an interval. */
double stats_half_width(const struct stats_interval *s);

enum stats_finding {
    STATS_UNDEFINED,   /* no pair has both values */
    STATS_IDENTICAL,   /* every pair has equal values */
    STATS_NO_INTERVAL, /* one pair, whose values differ */
    STATS_EQUAL,       /* equivalent: the interval lies within +- relevance */
    STATS_NOT_SHOWN,   /* the interval contains 0 */
    STATS_LOWER,       /* the interval is below 0 */
    STATS_HIGHER
};

enum stats_finding stats_judge(const struct stats_paired *p);

/* Two-sided p-value of the mean difference (Student's t); NaN without an interval. It is below 1 -
 * level exactly if the interval excludes 0. */
double stats_p(const struct stats_paired *p);

/* The verdict as text: "lower by 12 % (significant)", "equal within 1 %", "no difference shown at
 * n=10", "identical at n=10", "higher by 3.1 % (n=1, no interval)", "not defined". Relative to the
 * baseline's mean; absolute if that is 0. Never freed (xkeep). */
const char *stats_verdict(const struct stats_paired *p);

/* "12.35 [11.95, 12.75]", with enough decimals to show two digits of the interval's half-width.
 * Without an interval: the value, with four digits. "-" without values. Never freed (xkeep). */
const char *stats_format(const struct stats_interval *s);
