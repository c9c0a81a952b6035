#include <gsl/gsl_math.h>
#include <gsl/gsl_statistics_double.h>

#include "sim/stats/stats_intervals.h"

#define MIN_VALUES 200
#define BATCHES 10
#define DROPPED_FRAC 0.1
#define MIN_GROUPS 200 /* of a scale: fewer give no reliable number of crossings */
#define MIN_LENGTHS 60 /* correlation lengths that a series must have */
#define WIDEN_LENGTHS 50.0
#define HEAVY_TAIL 5.0

/* Correlation of neighbours from how often they lie on different sides of the median: for normal
 * values P(different) = acos(phi) / pi (Rice). Unlike products it does not depend on the largest
 * values, whose absence makes a short series look uncorrelated. spare: k doubles. */
static double side_correlation(const double *y, size_t k, double *spare)
{
    memcpy(spare, y, k * sizeof *y);
    double median = gsl_stats_select(spare, 1, k, k / 2);
    size_t above = 0;
    size_t changes = 0;
    for (size_t i = 0; i < k; i++) {
        above += y[i] > median;
        changes += i > 0 && (y[i] > median) != (y[i - 1] > median);
    }
    double p = (double)above / (double)k; /* 0.5, except for ties */
    if (p <= 0.0) {
        return 0.0; /* no value is above the median */
    }
    double different = (double)changes / (double)(k - 1) / (4.0 * p * (1.0 - p));
    return different < 0.5 ? cos(M_PI * different) : 0.0;
}

/* The number of values with the information of one independent value about the mean, at least 1. It
 * is the maximum over scales (single values, pairs, fours, ...), which also detects slow changes
 * under fast noise. For an autoregression it would be (1 + phi) / (1 - phi). Waiting times in M/M/1
 * have rare long busy periods, which the median does not show. HEAVY_TAIL makes the result right
 * for them at loads from 0.3 to 0.95: 4, 12, 37, 410, 1700. */
static double correlation_length(const double *x, size_t n)
{
    OWNED double *y = xmalloc(2 * n * sizeof *y);
    memcpy(y, x, n * sizeof *y);
    double longest = 1.0;
    size_t k = n;
    for (double scale = 1.0; k >= MIN_GROUPS || scale == 1.0; scale *= 2.0, k /= 2) {
        double phi = side_correlation(y, k, y + n);
        double length = phi < 1.0 ? HEAVY_TAIL * scale * phi / (1.0 - phi) : (double)n;
        SIM_ASSERT(phi >= 0.0 && phi <= 1.0 && length >= 0.0);
        longest = fmax(longest, length);
        for (size_t i = 0; i < k / 2; i++) {
            y[i] = (y[2 * i] + y[2 * i + 1]) / 2.0;
        }
    }
    return longest;
}

/* Means of BATCHES equal batches at the end of x. */
static void batch_means(const double *x, size_t n, double *means)
{
    size_t size = n / BATCHES;
    const double *from = x + (n - size * BATCHES);
    for (uint32_t b = 0; b < BATCHES; b++) {
        double sum = 0.0;
        for (size_t i = 0; i < size; i++) {
            sum += from[b * size + i];
        }
        means[b] = sum / (double)size;
    }
}

int stats_steady(const char *what, const double *x, size_t n, bool overloaded, double level_frac,
                 struct stats_steady *out, struct err *e)
{
    *out = (struct stats_steady){.n = n, .batches = BATCHES};
    if (overloaded) {
        return err_add(e,
                       "%s: no steady state: the run is OVERLOADED, its latencies grow with the "
                       "length of the trace",
                       what);
    }
    if (n < MIN_VALUES) {
        return err_add(e, "%s: too few values for batch means: %zu (at least %d)", what, n,
                       MIN_VALUES);
    }
    out->dropped = (size_t)(DROPPED_FRAC * (double)n);
    x += out->dropped;
    n -= out->dropped;
    out->correlation_length = correlation_length(x, n);
    double lengths = (double)n / out->correlation_length;
    if (lengths < MIN_LENGTHS) {
        return err_add(e,
                       "%s: no interval: %zu values that hang together over some %.0f are worth "
                       "%.0f independent ones, and %d are needed: run about %.0f times as long",
                       what, n, out->correlation_length, lengths, MIN_LENGTHS,
                       ceil(2.0 * MIN_LENGTHS / lengths));
    }
    double means[BATCHES];
    batch_means(x, n, means);
    out->mean = stats_mean(means, BATCHES, level_frac);
    double wider = (1.0 + WIDEN_LENGTHS / lengths) * stats_half_width(&out->mean);
    out->mean.low = out->mean.mean - wider;
    out->mean.high = out->mean.mean + wider;
    return 0;
}
