#include "sim/base/portable.h"
#include "sim/stats/stats_intervals.h"

#define UNDEFINED ((double)NAN)

/* Number and means of the pairs with two finite values; variances and covariance of the means. */
struct moments {
    double n, x, y, xx, yy, xy;
};

static struct moments moments_of(const double *x, const double *y, size_t n)
{
    struct moments m = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (size_t i = 0; i < n; i++) {
        if (isfinite(x[i]) && isfinite(y[i])) {
            m.n += 1.0;
            m.x += x[i];
            m.y += y[i];
        }
    }
    m.x /= m.n;
    m.y /= m.n;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(x[i]) && isfinite(y[i])) {
            m.xx += (x[i] - m.x) * (x[i] - m.x);
            m.yy += (y[i] - m.y) * (y[i] - m.y);
            m.xy += (x[i] - m.x) * (y[i] - m.y);
        }
    }
    double scale = 1.0 / (m.n * (m.n - 1.0));
    m.xx *= scale;
    m.yy *= scale;
    m.xy *= scale;
    return m;
}

struct stats_interval stats_ratio(const double *x, const double *base, size_t n, double level_frac)
{
    struct moments m = moments_of(x, base, n);
    struct stats_interval s = {UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED, (uint32_t)m.n};
    if (m.n < 1.0 || m.y == 0.0) {
        return s;
    }
    s.mean = m.x / m.y;
    if (m.n < 2.0) {
        return s;
    }
    /* The interval consists of all r with (x - r y)^2 <= t^2 Var(x - r y). That is quadratic in r:
     *   r^2 (y^2 - t^2 yy) - 2 r (x y - t^2 xy) + x^2 - t^2 xx <= 0 */
    double t = portable_student_quantile(0.5 + 0.5 * level_frac, m.n - 1.0);
    double a = m.y * m.y - t * t * m.yy;
    double b = m.x * m.y - t * t * m.xy;
    double c = m.x * m.x - t * t * m.xx;
    double root = b * b - a * c;
    if (a > 0.0) { /* the roots are real, because r = x / y satisfies the inequality */
        double half = sqrt(fmax(root, 0.0));
        s.low = (b - half) / a;
        s.high = (b + half) / a;
    }
    return s;
}
