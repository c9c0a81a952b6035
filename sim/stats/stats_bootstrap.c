#include <gsl/gsl_statistics_double.h>

#include "sim/base/rng.h"
#include "sim/stats/stats_intervals.h"

#define UNDEFINED ((double)NAN)

#define KEPT_VALUES 1024 /* up to this size the draws are cached: 8 MB per thread */

static void draw(struct rng *r, uint32_t n, size_t places, uint32_t *at)
{
    for (size_t i = 0; i < places; i++) {
        at[i] = rng_below(r, n);
    }
}

/* For each element of each resample, the index of a value. It depends on n only, and a comparison
 * computes all its metrics with the same n, so the last table is cached. NULL for large n: the
 * caller then draws equal indices from r, resample by resample. */
static const uint32_t *draws(uint32_t n, struct rng *r)
{
    static _Thread_local struct {
        uint32_t n;
        uint32_t *at; /* never freed */
    } last;
    rng_init(r, rng_key(0, RNG_BOOTSTRAP, 0, 0));
    if (n > KEPT_VALUES) {
        return NULL;
    }
    if (last.at == NULL || last.n != n) {
        size_t places = (size_t)STATS_RESAMPLES * n;
        last.n = n;
        last.at = xrealloc(last.at, places * sizeof *last.at);
        draw(r, n, places, last.at);
    }
    return last.at;
}

/* Mean and standard error of the resample with the indices `at`. */
static void resample(const double *x, uint32_t n, const uint32_t *at, double *mean, double *se)
{
    /* Deviations from x[0]: sums of squares of x would cancel. */
    double sum = 0.0;
    double squares = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        double d = x[at[i]] - x[0];
        sum += d;
        squares += d * d;
    }
    double m = sum / n;
    double variance = (squares - n * m * m) / (n - 1.0);
    *mean = x[0] + m;
    *se = sqrt(fmax(variance, 0.0) / n);
}

/* Stores the t values of the resamples in t; returns the number of those that are defined. */
static size_t t_values(const double *x, uint32_t n, double mean, double spread, double *t)
{
    struct rng r;
    const uint32_t *kept = draws(n, &r);
    OWNED uint32_t *own = kept == NULL ? xmalloc(n * sizeof *own) : NULL;
    size_t used = 0;
    for (size_t b = 0; b < STATS_RESAMPLES; b++) {
        double m = 0.0;
        double se = 0.0;
        if (own != NULL) {
            draw(&r, n, n, own);
        }
        resample(x, n, own != NULL ? own : kept + b * n, &m, &se);
        if (se > 1e-9 * spread) { /* otherwise one value was drawn n times */
            t[used++] = (m - mean) / se;
        }
    }
    return used;
}

struct stats_interval stats_bootstrap(const double *x, size_t n, double level_frac)
{
    const struct stats_interval student = stats_mean(x, n, level_frac);
    struct stats_interval s = student;
    s.low = s.high = UNDEFINED;
    if (s.n < 3 || !(s.sd > 0.0)) {
        return s;
    }
    OWNED double *finite = xmalloc(s.n * sizeof *finite);
    uint32_t used = 0;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(x[i])) {
            finite[used++] = x[i];
        }
    }
    OWNED double *t = xmalloc(STATS_RESAMPLES * sizeof *t);
    size_t n_t = t_values(finite, used, s.mean, s.sd, t);
    /* The k-th smallest of B estimates the k / (B + 1) quantile. */
    double tail = 0.5 * (1.0 - level_frac) * ((double)n_t + 1.0);
    size_t k = (size_t)floor(tail + 1e-9);
    if (k >= 1 && k <= n_t) {
        double se = s.sd / sqrt(s.n);
        s.low = s.mean - gsl_stats_select(t, 1, n_t, n_t - k) * se;
        s.high = s.mean - gsl_stats_select(t, 1, n_t, k - 1) * se;
    }
    if (STATS_RESAMPLES - n_t > k) { /* the tails are among the resamples without a t value */
        s.low = fmin(s.low, student.low);
        s.high = fmax(s.high, student.high);
    }
    return s;
}

/* |skewness| of the finite values; 0 if they are all equal. */
static double skewness(const double *x, size_t n)
{
    double mean = 0.0;
    double k = 0.0;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(x[i])) {
            k += 1.0;
            mean += (x[i] - mean) / k;
        }
    }
    double squares = 0.0;
    double cubes = 0.0;
    for (size_t i = 0; i < n; i++) {
        double d = isfinite(x[i]) ? x[i] - mean : 0.0;
        squares += d * d;
        cubes += d * d * d;
    }
    return squares > 0.0 ? fabs(cubes / k) / pow(squares / k, 1.5) : 0.0;
}

struct stats_interval stats_reported(const double *x, size_t n, enum stats_method *method)
{
    struct stats_interval s = stats_mean(x, n, STATS_LEVEL_FRAC);
    double least = s.n < 8 ? 1.0 : s.n < 12 ? 0.3 : 0.5; /* small samples show less skewness */
    bool skewed = s.n >= 3 && s.n < 20 && skewness(x, n) > least;
    enum stats_method of = !skewed ? STATS_STUDENT : s.n < 8 ? STATS_TOO_FEW : STATS_BOOTSTRAP;
    if (method != NULL) {
        *method = of;
    }
    return of == STATS_BOOTSTRAP ? stats_bootstrap(x, n, STATS_SKEWED_LEVEL_FRAC) : s;
}

struct stats_paired stats_reported_paired(const double *x, const double *base, size_t n)
{
    struct stats_paired p = stats_paired(x, base, n, STATS_LEVEL_FRAC);
    OWNED double *differences = xmalloc((n + 1) * sizeof *differences);
    for (size_t i = 0; i < n; i++) {
        differences[i] = x[i] - base[i];
    }
    p.diff = stats_reported(differences, n, NULL);
    return p;
}
