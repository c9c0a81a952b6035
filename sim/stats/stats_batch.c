#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/stats/stats_intervals.h"

#define GROUP 5 /* the 5 of MSER-5 */
#define MIN_VALUES 200
#define MANY_BATCHES 20
#define FEW_BATCHES 10
#define ONE_SIDED_95 1.645 /* of a standard normal */

/* MSER-5: groups to drop, the d that minimises sum (x_i - mean)^2 / (k - d)^2 over i >= d, with d
 * up to k - 5 groups (of a handful the statistic is noise). */
static size_t transient(const double *x, size_t k)
{
    double sum = 0.0;
    double squares = 0.0;
    double best = HUGE_VAL;
    size_t best_d = 0;
    /* From the end, so that each suffix's moments follow from the one before (Welford). */
    for (size_t i = k; i-- > 0;) {
        double n = (double)(k - i);
        double d = x[i] - (n > 1.0 ? sum / (n - 1.0) : x[i]);
        squares += d * d * (n - 1.0) / n;
        sum += x[i];
        double score = squares / (n * n);
        if (i <= k / 2 && score <= best) { /* of equal ones the longest series */
            best = score;
            best_d = i;
        }
    }
    return best_d;
}

/* Means of `batches` equal batches of the last values of x. */
static void batch_means(const double *x, size_t n, uint32_t batches, double *means)
{
    size_t size = n / batches;
    const double *from = x + (n - size * batches);
    for (uint32_t b = 0; b < batches; b++) {
        double sum = 0.0;
        for (size_t i = 0; i < size; i++) {
            sum += from[b * size + i];
        }
        means[b] = sum / (double)size;
    }
}

static double lag1_of(const double *x, uint32_t n)
{
    double mean = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        mean += x[i] / n;
    }
    double products = 0.0;
    double squares = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        squares += (x[i] - mean) * (x[i] - mean);
        products += i > 0 ? (x[i] - mean) * (x[i - 1] - mean) : 0.0;
    }
    return squares > 0.0 ? products / squares : 0.0;
}

/* Fills mean, batches and lag1; false when the batches hang together: a correlation that 19 of 20
 * independent series stay below (mean -1/b, s.d. about 1/sqrt(b)). */
static bool try_batches(const double *x, size_t n, uint32_t batches, double level_frac,
                        struct stats_steady *out)
{
    double means[MANY_BATCHES];
    batch_means(x, n, batches, means);
    out->batches = batches;
    out->lag1 = lag1_of(means, batches);
    out->mean = stats_mean(means, batches, level_frac);
    return out->lag1 <= ONE_SIDED_95 / sqrt(batches) - 1.0 / batches;
}

int stats_steady(const char *what, const double *x, size_t n, bool overloaded, double level_frac,
                 struct stats_steady *out, struct err *e)
{
    *out = (struct stats_steady){.n = n};
    if (overloaded) {
        return err_add(e,
                       "%s: no steady state: the run is OVERLOADED, its latencies grow with the "
                       "length of the trace",
                       what);
    }
    if (n < MIN_VALUES) {
        return err_add(e, "%s: %zu values are too few for batch means (at least %d)", what, n,
                       MIN_VALUES);
    }
    size_t k = n / GROUP;
    double *groups = xmalloc(k * sizeof *groups);
    for (size_t i = 0; i < k; i++) {
        groups[i] = 0.0;
        for (size_t j = 0; j < GROUP; j++) {
            groups[i] += x[i * GROUP + j] / GROUP;
        }
    }
    size_t d = transient(groups, k);
    free(groups);
    out->dropped = d * GROUP;
    if (d == k / 2) {
        return err_add(e, "%s: the transient reaches to half of the %zu values: run longer", what,
                       n);
    }
    const double *rest = x + out->dropped;
    size_t n_rest = n - out->dropped;
    if (!try_batches(rest, n_rest, MANY_BATCHES, level_frac, out) &&
        !try_batches(rest, n_rest, FEW_BATCHES, level_frac, out)) {
        return err_add(e,
                       "%s: means of %d batches still hang together (correlation %.2f): too "
                       "short a run for how slowly it changes",
                       what, FEW_BATCHES, out->lag1);
    }
    return 0;
}
