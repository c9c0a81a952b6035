#include "sim/stats/stats_shift.h"

#include <gsl/gsl_cblas.h>

#include "sim/base/portable.h"

#define UNDEFINED ((double)NAN)
#define DEPENDENT 1e-9 /* a column with a smaller relative residual is dependent */

/* Finite values of both samples. Columns are contiguous, with equal stride. */
struct design {
    size_t n;
    double *y, *second; /* second: 1 for the second sample, 0 for the first */
    double *columns;    /* 1, then the covariates */
};

static uint32_t add_sample(struct design *d, size_t n_all, struct stats_sample s, size_t k,
                           double second)
{
    uint32_t used = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (!isfinite(s.values[i])) {
            continue;
        }
        d->y[d->n] = s.values[i];
        d->second[d->n] = second;
        d->columns[d->n] = 1.0;
        for (size_t j = 0; j < k; j++) {
            double c = s.covariates[i * k + j];
            d->columns[(1 + j) * n_all + d->n] = isfinite(c) ? c : 0.0;
        }
        d->n++;
        used++;
    }
    return used;
}

/* Subtracts from v its projection on the orthonormal columns q; twice, against rounding. */
static void residual(double *v, const double *q, size_t n_q, size_t stride, size_t n)
{
    for (int pass = 0; pass < 2; pass++) {
        for (size_t j = 0; j < n_q; j++) {
            const double *u = &q[j * stride];
            cblas_daxpy((int)n, -cblas_ddot((int)n, u, 1, v, 1), u, 1, v, 1);
        }
    }
}

/* Gram-Schmidt: makes the columns orthonormal, and drops dependent ones. Returns the number
 * left. */
static size_t orthonormal(double *columns, size_t n_columns, size_t stride, size_t n)
{
    size_t kept = 0;
    for (size_t j = 0; j < n_columns; j++) {
        double *v = &columns[j * stride];
        double before = cblas_dnrm2((int)n, v, 1);
        residual(v, columns, kept, stride, n);
        double after = cblas_dnrm2((int)n, v, 1);
        if (after > DEPENDENT * before) {
            double *to = &columns[kept++ * stride];
            for (size_t i = 0; i < n; i++) {
                to[i] = v[i] / after;
            }
        }
    }
    return kept;
}

/* Least squares by projecting the nuisance columns out of both y and the indicator first (Frisch,
 * Waugh and Lovell): the rest is a regression on one column. */
static void fit(struct design *d, size_t n_all, size_t k, struct stats_shift *out)
{
    int n = (int)d->n;
    size_t kept = orthonormal(d->columns, 1 + k, n_all, d->n);
    double whole = cblas_dnrm2(n, d->second, 1);
    residual(d->second, d->columns, kept, n_all, d->n);
    residual(d->y, d->columns, kept, n_all, d->n);
    double length = cblas_dnrm2(n, d->second, 1);
    double df = (double)d->n - (double)kept - 1.0;
    if (df < 1.0 || length <= DEPENDENT * whole) {
        return; /* the covariates determine the sample of a value */
    }
    out->df = df;
    out->shift = cblas_ddot(n, d->second, 1, d->y, 1) / (length * length);
    cblas_daxpy(n, -out->shift, d->second, 1, d->y, 1);
    out->se = cblas_dnrm2(n, d->y, 1) / sqrt(df) / length;
}

struct stats_shift stats_shift(struct stats_sample base, struct stats_sample now, size_t k)
{
    struct stats_shift out = {UNDEFINED, UNDEFINED, 0.0, UNDEFINED, 0, 0};
    size_t n_all = base.n + now.n + 1;
    struct design d = {0, xmalloc(n_all * sizeof *d.y), xmalloc(n_all * sizeof *d.second),
                       xmalloc(n_all * (1 + k) * sizeof *d.columns)};
    out.n_base = add_sample(&d, n_all, base, k, 0.0);
    double sum = 0.0;
    for (size_t i = 0; i < d.n; i++) {
        sum += d.y[i];
    }
    out.base_mean = out.n_base > 0 ? sum / out.n_base : UNDEFINED;
    out.n_now = add_sample(&d, n_all, now, k, 1.0);
    if (out.n_base > 0 && out.n_now > 0) {
        fit(&d, n_all, k, &out);
    }
    free(d.y);
    free(d.second);
    free(d.columns);
    return out;
}

double stats_shift_p_above(const struct stats_shift *s, double by)
{
    double d = s->shift - by;
    if (!isfinite(d) || !isfinite(s->se)) {
        return 1.0;
    }
    /* A spread below rounding errors counts as none. */
    if (s->se <= 1e-13 * (fabs(s->base_mean) + fabs(s->shift))) {
        return d > 1e-12 * (fabs(s->base_mean) + fabs(by)) ? 0.0 : 1.0;
    }
    return portable_student_above(d / s->se, s->df);
}

double stats_shift_p_below(const struct stats_shift *s, double by)
{
    struct stats_shift mirrored = *s;
    mirrored.shift = -s->shift;
    return stats_shift_p_above(&mirrored, -by);
}

/* ---- several tests ---- */

struct ranked {
    double p;
    size_t index;
};

SORT_BY(by_p, struct ranked, SORT_UP(p), SORT_UP(index))

void stats_holm(const double *p, size_t n, double *adjusted)
{
    OWNED struct ranked *r = xmalloc((n > 0 ? n : 1) * sizeof *r);
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(p[i])) {
            adjusted[i] = p[i];
        } else {
            r[m++] = (struct ranked){p[i], i};
        }
    }
    qsort(r, m, sizeof *r, by_p);
    double highest = 0.0;
    for (size_t k = 0; k < m; k++) {
        double a = (double)(m - k) * r[k].p;
        highest = a > highest ? a : highest;
        adjusted[r[k].index] = highest < 1.0 ? highest : 1.0;
    }
}
