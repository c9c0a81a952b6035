#include "sim/stats/stats.h"

#include "sim/base/portable.h"

#define UNDEFINED ((double)NAN)
#define MAX_DECIMALS 9

/* Two passes, because sums of squares would cancel for nearly equal values. */
static struct stats_interval interval_of(const double *x, size_t n, double level_frac)
{
    struct stats_interval s = {UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED, 0};
    SIM_ASSERT(level_frac > 0.0 && level_frac < 1.0);
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(x[i])) {
            sum += x[i];
            s.n++;
        }
    }
    if (s.n == 0) {
        return s;
    }
    s.mean = sum / s.n;
    if (s.n == 1) {
        return s;
    }
    double squares = 0.0;
    for (size_t i = 0; i < n; i++) {
        double d = isfinite(x[i]) ? x[i] - s.mean : 0.0;
        squares += d * d;
    }
    s.sd = sqrt(squares / (s.n - 1));
    double half = portable_student_quantile(0.5 + 0.5 * level_frac, s.n - 1) * s.sd / sqrt(s.n);
    SIM_ASSERT(half >= 0.0);
    s.low = s.mean - half;
    s.high = s.mean + half;
    return s;
}

struct stats_interval stats_mean(const double *x, size_t n, double level_frac)
{
    return interval_of(x, n, level_frac);
}

struct stats_paired stats_paired(const double *x, const double *base, size_t n, double level_frac)
{
    OWNED double *d = xmalloc((n > 0 ? n : 1) * sizeof *d);
    double base_sum = 0.0;
    uint32_t pairs = 0;
    for (size_t i = 0; i < n; i++) {
        d[i] = x[i] - base[i];
        if (isfinite(d[i])) {
            base_sum += base[i];
            pairs++;
        }
    }
    struct stats_paired p = {interval_of(d, n, level_frac),
                             pairs > 0 ? base_sum / pairs : UNDEFINED, STATS_RELEVANCE_FRAC};
    return p;
}

double stats_half_width(const struct stats_interval *s)
{
    return 0.5 * (s->high - s->low);
}

enum stats_finding stats_judge(const struct stats_paired *p)
{
    const struct stats_interval *d = &p->diff;
    if (d->n == 0) {
        return STATS_UNDEFINED;
    }
    if (d->n == 1) {
        return d->mean == 0.0 ? STATS_IDENTICAL : STATS_NO_INTERVAL;
    }
    if (d->mean == 0.0 && d->sd == 0.0) {
        return STATS_IDENTICAL;
    }
    if (fmax(fabs(d->low), fabs(d->high)) <= p->relevance_frac * fabs(p->base_mean)) {
        return STATS_EQUAL; /* two one-sided tests at (1 - level) / 2 (Schuirmann 1987) */
    }
    if (d->high < 0.0) {
        return STATS_LOWER;
    }
    return d->low > 0.0 ? STATS_HIGHER : STATS_NOT_SHOWN;
}

double stats_p(const struct stats_paired *p)
{
    const struct stats_interval *d = &p->diff;
    if (d->n < 2) {
        return UNDEFINED;
    }
    if (d->sd == 0.0) {
        return d->mean == 0.0 ? 1.0 : 0.0;
    }
    return 2.0 * portable_student_above(fabs(d->mean) / (d->sd / sqrt(d->n)), d->n - 1);
}

/* "12 %", or the absolute difference for a baseline of 0. */
static const char *size_text(const struct stats_paired *p)
{
    double d = fabs(p->diff.mean);
    if (p->base_mean == 0.0) {
        return xkeep(xformat("%.3g", d));
    }
    double percent = 100.0 * d / fabs(p->base_mean);
    percent = percent >= 1000.0 ? 10.0 * round(percent / 10.0) : percent; /* to 3 digits */
    /* Near -100 % a decimal more: 99.7 must not become 100. */
    int decimals = percent < 0.1                                           ? 3
                   : percent < 10.0 || (percent > 90.0 && percent < 100.0) ? 1
                                                                           : 0;
    return xkeep(xformat("%.*f %%", decimals, percent));
}

const char *stats_verdict(const struct stats_paired *p)
{
    const char *by = size_text(p);
    const char *way = p->diff.mean < 0.0 ? "lower" : "higher";
    switch (stats_judge(p)) {
    case STATS_IDENTICAL:
        return xkeep(xformat("identical at n=%u", p->diff.n));
    case STATS_NO_INTERVAL:
        return xkeep(xformat("%s by %s (n=1, no interval)", way, by));
    case STATS_EQUAL:
        return xkeep(xformat("equal within %g %%", 100.0 * p->relevance_frac));
    case STATS_NOT_SHOWN:
        return xkeep(xformat("no difference shown at n=%u", p->diff.n));
    case STATS_LOWER:
    case STATS_HIGHER:
        return xkeep(xformat("%s by %s (significant)", way, by));
    case STATS_UNDEFINED:
        break;
    }
    return "not defined";
}

#define ROUNDING_FRAC 1e-12 /* relative to the mean: error of sums of equal values */

/* Number of decimals that show two significant digits of x. */
static int decimals_for(double x)
{
    if (!(x > 0.0) || !isfinite(x)) {
        return 0;
    }
    int d = 1 - (int)floor(log10(x) + 1e-12);
    return d < 0 ? 0 : d > MAX_DECIMALS ? MAX_DECIMALS : d;
}

const char *stats_format(const struct stats_interval *s)
{
    if (s->n == 0) {
        return "-";
    }
    double half = stats_half_width(s);
    if (!(half > ROUNDING_FRAC * fabs(s->mean))) { /* one value, or all equal: four digits */
        int d = decimals_for(fabs(s->mean));
        d = s->mean == floor(s->mean) && fabs(s->mean) < 1e6 ? 0 : d + 2;
        return xkeep(xformat("%.*f", d > MAX_DECIMALS ? MAX_DECIMALS : d, s->mean));
    }
    int d = decimals_for(half);
    return xkeep(xformat("%.*f [%.*f, %.*f]", d, s->mean, d, s->low, d, s->high));
}
