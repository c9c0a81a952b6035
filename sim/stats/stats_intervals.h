/* Intervals where Student's t is not enough: means over skewed data, ratios of two means,
 * quantiles, and the steady state of one long run. tests/oracle/check_coverage.c measures the
 * coverage of each on known distributions.
 *
 * All drop values that are not finite, and give NaN bounds where the data are not enough. */
#pragma once

#include "sim/stats/stats.h"

/* ---- bootstrap (stats_bootstrap.c) ---- */

#define STATS_RESAMPLES 1999 /* (B + 1) * 0.025 is whole: bounds are resampled values */

/* Bootstrap-t interval of the mean (Efron 1979; Hall 1988: error O(1/n), also for skewed data):
 * the quantiles of (resampled mean - mean) / resampled standard error take the place of Student's.
 * The resamples depend on n alone, so equal data have equal bounds wherever they are printed. Needs
 * 3 values that are not all equal. O(n * STATS_RESAMPLES). */
struct stats_interval stats_bootstrap(const double *x, size_t n, double level_frac);

/* The interval of a mean as every table, document and figure reports it. Student's misses the tail
 * of few skewed values. The bootstrap's of a higher level replaces it where fewer than 20 values
 * have a sample skewness over 0.5 in size (fewer than 12: 0.3). That covers at least 93 % of such
 * means (experiments/compare/COVERAGE.md). With 3 to 7 values the bootstrap's would be over ten
 * times as wide. Then Student's stays, and covers 85 % where the skewness is over 1. */
#define STATS_SKEWED_LEVEL_FRAC 0.98
enum stats_method { STATS_STUDENT, STATS_BOOTSTRAP, STATS_TOO_FEW };
/* method: which of these it is, or NULL. */
struct stats_interval stats_reported(const double *x, size_t n, enum stats_method *method);
/* The reported interval of the mean of x - base, over the pairs with both values. */
struct stats_paired stats_reported_paired(const double *x, const double *base, size_t n);

/* ---- ratio of paired means (stats_ratio.c) ---- */

/* mean(x) / mean(base) over the pairs, with Fieller's interval (1954), exact for normal pairs. NaN
 * bounds where the base's mean is not significantly different from 0: the set is then unbounded.
 * sd is NaN. */
struct stats_interval stats_ratio(const double *x, const double *base, size_t n, double level_frac);

/* ---- steady state of one run (stats_batch.c) ---- */

struct stats_steady {
    struct stats_interval mean;
    size_t n;       /* values given */
    size_t dropped; /* of them, the transient */
    uint32_t batches;
    double correlation_length; /* values that say as much as one independent one */
};

/* Mean of a stationary series in order (waiting times, latencies of successive requests) that may
 * start with a transient. The first tenth is dropped. The rest is cut into 10 batches, and their
 * means give Student's interval, widened by 1 + 50 / (independent values). `what` names the series.
 * O(n log n). Returns 0, or -EINVAL with the reason:
 *   the run was overloaded (there is no steady state);
 *   there are fewer than 200 values;
 *   they are so correlated that they are worth fewer than 60 independent ones.
 *
 * This deviates from MSER-5 (White 1997), and from batches accepted by their own correlation, for
 * two reasons. A cut chosen from the values drops the expensive start of a run that is stationary
 * from its beginning (M/M/1 at load 0.9, 10,000 customers: bias -6 %, 72 % covered). A run that
 * lacks the rare long busy periods looks short-ranged, so a test of its variances accepts just the
 * wrong runs. Here cut and refusal depend on counts, and on the number of crossings of the median.
 * Measured coverage: experiments/compare/COVERAGE.md. */
int stats_steady(const char *what, const double *x, size_t n, bool overloaded, double level_frac,
                 struct stats_steady *out, struct err *e);
