/* Intervals for data that Student's t does not cover well: means of skewed data, ratios of two
 * means, and the steady state of one long run. tests/oracle/check_coverage.c measures the coverage
 * of each on known distributions.
 *
 * All functions drop non-finite values, and return NaN bounds for insufficient data. */
#pragma once

#include "sim/stats/stats.h"

/* ---- bootstrap (stats_bootstrap.c) ---- */

#define STATS_RESAMPLES 1999 /* (B + 1) * 0.025 is whole, so that bounds are resampled values */

/* Bootstrap-t interval of the mean (Efron 1979; Hall 1988: error O(1/n), also for skewed data). The
 * quantiles of (resampled mean - mean) / resampled standard error replace Student's. The resamples
 * depend on n only, so equal data always give equal bounds. Needs 3 values that are not all equal.
 * Where most values are equal, many resamples have equal values alone, and no standard error. Then
 * each bound is the wider one of these and Student's.
 * O(n * STATS_RESAMPLES). */
struct stats_interval stats_bootstrap(const double *x, size_t n, double level_frac);

/* The interval of a mean in all tables, documents and figures. Student's interval misses the tail
 * of few skewed values. For 8 to 19 values whose skewness exceeds 0.5 in size (below 12 values:
 * 0.3), the bootstrap's interval of a higher level replaces it. That covers at least 93 % of such
 * means (experiments/compare/COVERAGE.md). With 3 to 7 values the bootstrap's would be over ten
 * times as wide. Then Student's is kept, and covers 85 % if the skewness is over 1. */
#define STATS_SKEWED_LEVEL_FRAC 0.98
enum stats_method { STATS_STUDENT, STATS_BOOTSTRAP, STATS_TOO_FEW };
/* *method is set to the kind of interval; method may be NULL. */
struct stats_interval stats_reported(const double *x, size_t n, enum stats_method *method);
/* The reported interval of the mean of x - base, over the pairs with both values. */
struct stats_paired stats_reported_paired(const double *x, const double *base, size_t n);

/* ---- ratio of paired means (stats_ratio.c) ---- */

/* mean(x) / mean(base) over the pairs, with Fieller's interval (1954), exact for normal pairs. The
 * bounds are NaN if the base's mean is not significantly different from 0, because the confidence
 * set is then unbounded. sd is NaN. */
struct stats_interval stats_ratio(const double *x, const double *base, size_t n, double level_frac);

/* ---- steady state of one run (stats_batch.c) ---- */

struct stats_steady {
    struct stats_interval mean;
    size_t n;       /* values given */
    size_t dropped; /* of these, dropped as the transient */
    uint32_t batches;
    double correlation_length; /* values with the information of one independent value */
};

/* Mean of a stationary series in order (waiting times, latencies of successive requests) that may
 * start with a transient. The first tenth is dropped. The rest is split into 10 batches. Their
 * means give Student's interval, widened by 1 + 50 / (independent values). `what` names the series
 * in errors. O(n log n). Returns 0, or -EINVAL with the reason:
 *   the run was overloaded (there is no steady state);
 *   there are fewer than 200 values;
 *   their correlation makes them worth fewer than 60 independent ones.
 *
 * This deviates from MSER-5 (White 1997), and from batches accepted by their own correlation, for
 * two reasons. A cut chosen from the values drops the expensive start of a run that is stationary
 * from its beginning (M/M/1 at load 0.9, 10,000 customers: bias -6 %, 72 % covered). A run that
 * lacks the rare long busy periods looks short-ranged, so a test of its variances accepts just the
 * wrong runs. Here cut and refusal depend on counts, and on the number of crossings of the median.
 * Measured coverage: experiments/compare/COVERAGE.md. */
int stats_steady(const char *what, const double *x, size_t n, bool overloaded, double level_frac,
                 struct stats_steady *out, struct err *e);
