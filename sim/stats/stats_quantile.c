#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/err.h"
#include "sim/stats/stats_intervals.h"

#define UNDEFINED ((double)NAN)

/* With B binomial(n, p), the number of values below the quantile: x_(l) lies above it with chance
 * P(B < l). The largest l for which that is at most `tail`; 0 when there is none. */
static uint32_t lower_rank(uint32_t n, double p, double tail)
{
    uint32_t below = 0; /* P(B < 0) = 0 */
    uint32_t above = n + 1;
    while (above - below > 1) {
        uint32_t l = below + (above - below) / 2;
        if (gsl_cdf_binomial_P(l - 1, p, n) <= tail) {
            below = l;
        } else {
            above = l;
        }
    }
    return below;
}

struct stats_interval stats_quantile(const double *x, size_t n, double p, double level_frac)
{
    SIM_REQUIRE(p > 0.0 && p < 1.0, "p is %g", p);
    struct stats_interval s = {UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED, 0};
    double *v = xmalloc((n + 1) * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        if (isfinite(x[i])) {
            v[s.n++] = x[i];
        }
    }
    if (s.n > 0) {
        gsl_sort(v, 1, s.n);
        double tail = 0.5 * (1.0 - level_frac);
        uint32_t rank = (uint32_t)ceil(p * s.n);
        uint32_t low = lower_rank(s.n, p, tail);
        /* Mirrored: counted from the top, the quantile is the (1 - p)-quantile. */
        uint32_t high = lower_rank(s.n, 1.0 - p, tail);
        s.mean = v[rank > 0 ? rank - 1 : 0];
        s.low = low > 0 ? v[low - 1] : UNDEFINED;
        s.high = high > 0 ? v[s.n - high] : UNDEFINED;
    }
    free(v);
    return s;
}
