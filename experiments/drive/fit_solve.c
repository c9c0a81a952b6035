/* The arithmetic of a fit: samples of one part, regression, tables, and how well they fit. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_multifit.h>
#include <gsl/gsl_sort.h>

#include "experiments/drive/fit_impl.h"
#include "sim/base/scope_gsl.h"

/* ---- kernels of one part ---- */

struct sample *samples_add(struct samples *s)
{
    s->v = xgrow(s->v, s->n, sizeof *s->v);
    return &s->v[s->n++];
}

static int by_terms(const struct sample *p, const struct sample *q)
{
    for (int i = 0; i < SAMPLE_TERMS; i++) {
        if (p->x[i] != q->x[i]) {
            return p->x[i] < q->x[i] ? -1 : 1;
        }
    }
    return 0;
}

static int by_work(const void *a, const void *b)
{
    const struct sample *p = a;
    const struct sample *q = b;
    int terms = by_terms(p, q);
    return terms != 0 ? terms : (p->t_s > q->t_s) - (p->t_s < q->t_s);
}

/* Compares bytes. No term is -0 or NaN, so an order by numbers agrees. */
static bool same_work(const struct sample *a, const struct sample *b)
{
    for (int i = 0; i < SAMPLE_TERMS; i++) {
        SIM_ASSERT((a->x[i] == b->x[i]) == (memcmp(&a->x[i], &b->x[i], sizeof a->x[i]) == 0));
    }
    return memcmp(a->x, b->x, sizeof a->x) == 0;
}

bool samples_sorted(const struct samples *s)
{
    for (size_t i = 1; i < s->n; i++) {
        if (by_terms(&s->v[i - 1], &s->v[i]) > 0) {
            return false;
        }
    }
    return true;
}

void samples_screen(struct samples *s)
{
    if (s->n > 0) {
        qsort(s->v, s->n, sizeof *s->v, by_work);
    }
    size_t kept = 0;
    uint32_t lost_before = s->lost;
    SIM_ASSERT(samples_sorted(s));
    for (size_t i = 0; i < s->n;) {
        size_t end = i;
        while (end < s->n && same_work(&s->v[i], &s->v[end])) {
            end++;
        }
        /* A kernel that takes this many medians of equal work had lost its core to another process.
         * The median of two is the longer one, because two cannot show which is the outlier. */
        double limit = FIT_LOST_CORE * s->v[(i + end) / 2].t_s;
        for (size_t k = i; k < end; k++) {
            if (s->v[k].t_s <= limit) {
                s->v[kept++] = s->v[k];
            } else {
                s->lost++;
            }
        }
        i = end;
    }
    /* The median is always kept. */
    SIM_ASSERT(kept + (s->lost - lost_before) == s->n && 2 * kept >= s->n);
    s->n = kept;
}

uint32_t samples_kinds(const struct samples *s)
{
    uint32_t kinds = 0;
    SIM_ASSERT(samples_sorted(s)); /* equal work is adjacent */
    for (size_t i = 0; i < s->n; i++) {
        kinds += i == 0 || !same_work(&s->v[i - 1], &s->v[i]);
    }
    return kinds;
}

void samples_judge(const struct samples *s, uint32_t n_params, struct fit_part *part)
{
    OWNED double *error = xcalloc(s->n, sizeof *error);
    double lack = 0.0, pure = 0.0;
    size_t groups = 0;
    SIM_ASSERT(s->n > 0 && samples_sorted(s));
    for (size_t i = 0; i < s->n;) {
        size_t end = i;
        double mean = 0.0;
        while (end < s->n && same_work(&s->v[i], &s->v[end])) {
            SIM_ASSERT(s->v[end].fitted_s > 0.0 && s->v[end].t_s > 0.0);
            mean += s->v[end].t_s / s->v[end].fitted_s - 1.0;
            end++;
        }
        mean /= (double)(end - i);
        for (size_t k = i; k < end; k++) {
            double r = s->v[k].t_s / s->v[k].fitted_s - 1.0;
            error[k] = fabs(s->v[k].fitted_s / s->v[k].t_s - 1.0);
            pure += (r - mean) * (r - mean);
        }
        lack += (double)(end - i) * mean * mean;
        groups++;
        i = end;
    }
    gsl_sort(error, 1, s->n);
    part->n = (uint32_t)s->n;
    part->lost = s->lost;
    part->median_frac = error[s->n / 2];
    part->p90_frac = error[(size_t)(0.9 * (double)(s->n - 1))];
    /* F test of lack of fit: the spread of groups of equal work around the model, against the
     * spread within the groups. */
    double df1 = (double)groups - n_params;
    double df2 = (double)(s->n - groups);
    part->lack_of_fit_p = df1 > 0.0 && df2 > 0.0 && pure > 0.0
                              ? gsl_cdf_fdist_Q(lack / df1 / (pure / df2), df1, df2)
                              : (double)NAN;
    SIM_ASSERT(groups == samples_kinds(s) && part->median_frac <= part->p90_frac);
    SIM_ASSERT(!(part->lack_of_fit_p < 0.0) && !(part->lack_of_fit_p > 1.0));
}

/* ---- regression with coefficients that are not negative ---- */

void samples_regress(struct samples *s, uint32_t p, struct fit_number *c)
{
    bool used[SAMPLE_TERMS] = {false};
    SIM_ASSERT(p > 0 && p <= SAMPLE_TERMS);
    /* A regressor that is always 0 gets no coefficient. */
    for (uint32_t i = 0; i < p; i++) {
        for (size_t k = 0; k < s->n; k++) {
            used[i] = used[i] || s->v[k].x[i] != 0.0;
        }
    }
    memset(c, 0, p * sizeof *c);
    for (bool again = true; again;) {
        again = false;
        uint32_t map[SAMPLE_TERMS];
        uint32_t m = 0;
        for (uint32_t i = 0; i < p; i++) {
            if (used[i]) {
                map[m++] = i;
            }
        }
        if (m == 0 || s->n <= m) {
            break;
        }
        SCOPED(matrix_drop) gsl_matrix *x = gsl_matrix_alloc(s->n, m);
        SCOPED(vector_drop) gsl_vector *y = gsl_vector_alloc(s->n);
        SCOPED(vector_drop) gsl_vector *b = gsl_vector_alloc(m);
        SCOPED(matrix_drop) gsl_matrix *cov = gsl_matrix_alloc(m, m);
        for (size_t k = 0; k < s->n; k++) {
            for (uint32_t i = 0; i < m; i++) {
                /* Relative errors give a kernel of 10 us as much weight as one of 10 ms. */
                gsl_matrix_set(x, k, i, s->v[k].x[map[i]] / s->v[k].t_s);
            }
            gsl_vector_set(y, k, 1.0);
        }
        gsl_multifit_linear_workspace *w = gsl_multifit_linear_alloc(s->n, m);
        double chisq;
        size_t rank;
        gsl_multifit_linear_tsvd(x, y, 1e-10, b, cov, &chisq, &rank, w);
        int worst = -1;
        for (uint32_t i = 0; i < m; i++) {
            double v = gsl_vector_get(b, i);
            double sd = sqrt(gsl_matrix_get(cov, i, i));
            c[map[i]] = (struct fit_number){v, fmax(0.0, v - Z95 * sd), v + Z95 * sd};
            if (v < 0.0 && (worst < 0 || v < gsl_vector_get(b, (size_t)worst))) {
                worst = (int)i;
            }
        }
        /* Drops the most negative coefficient and fits again, because another one may have been
         * negative only to compensate for it. */
        if (worst >= 0) {
            used[map[worst]] = false;
            c[map[worst]] = (struct fit_number){0};
            again = true;
        }
        gsl_multifit_linear_free(w);
    }
    for (uint32_t i = 0; i < p; i++) {
        SIM_ASSERT(c[i].value >= 0.0 && (used[i] || c[i].value == 0.0) && fit_number_ok(c[i]));
        SIM_ASSERT(!used[i] || c[i].value > 0.0 || s->n <= p); /* each used one is solved */
    }
    /* Least squares of relative errors come out low: a prediction that is too short is off by at
     * most 1, one that is too long has no limit. So all coefficients are scaled to the total
     * measured time. */
    samples_scale(s, p, c);
}

void samples_scale(struct samples *s, uint32_t p, struct fit_number *c)
{
    double sum = 0.0, fitted = 0.0;
    for (size_t k = 0; k < s->n; k++) {
        s->v[k].fitted_s = 0.0;
        for (uint32_t i = 0; i < p; i++) {
            s->v[k].fitted_s += c[i].value * s->v[k].x[i];
        }
        sum += s->v[k].t_s;
        fitted += s->v[k].fitted_s;
    }
    double scale = fitted > 0.0 ? sum / fitted : 1.0;
    SIM_ASSERT(scale > 0.0 && isfinite(scale));
    for (uint32_t i = 0; i < p; i++) {
        c[i] = (struct fit_number){c[i].value * scale, c[i].low * scale, c[i].high * scale};
    }
    for (size_t k = 0; k < s->n; k++) {
        s->v[k].fitted_s *= scale;
    }
}

/* ---- tables over rows ---- */

void samples_table(struct samples *s, struct fit_table *t)
{
    double n[SOC_OPS_MAX_POINTS] = {0};
    *t = (struct fit_table){0};
    double sum[SOC_OPS_MAX_POINTS] = {0}, squares[SOC_OPS_MAX_POINTS] = {0};
    double rows[SOC_OPS_MAX_POINTS] = {0};
    int lot = -1;
    /* x[0] is rows, in rising order. */
    SIM_ASSERT(samples_sorted(s) && (s->n == 0 || s->v[0].x[0] >= 1.0));
    for (size_t i = 0; i < s->n; i++) {
        int l = (int)ceil(log2(s->v[i].x[0]) - 1e-9);
        if (l != lot && t->n < SOC_OPS_MAX_POINTS) {
            t->n++;
            lot = l;
        }
        uint32_t k = t->n - 1;
        SIM_ASSERT(l >= lot); /* greater only if the table was full */
        n[k] += 1.0;
        rows[k] += s->v[i].x[0];
        sum[k] += s->v[i].t_s;
        squares[k] += s->v[i].t_s * s->v[i].t_s;
    }
    uint32_t kept = 0;
    for (uint32_t k = 0; k < t->n; k++, kept++) {
        n[kept] = n[k];
        rows[kept] = rows[k];
        sum[kept] = sum[k];
        squares[kept] = squares[k];
        /* More rows never take less time. Neighbours that contradict this are noise, and are pooled
         * (pool adjacent violators). */
        while (kept > 0 && sum[kept] / n[kept] < sum[kept - 1] / n[kept - 1]) {
            n[kept - 1] += n[kept];
            rows[kept - 1] += rows[kept];
            sum[kept - 1] += sum[kept];
            squares[kept - 1] += squares[kept];
            kept--;
        }
    }
    t->n = kept;
    double samples = 0.0;
    for (uint32_t k = 0; k < kept; k++) {
        double mean = sum[k] / n[k];
        SIM_ASSERT(k == 0 || mean >= t->s[k - 1].value);
        SIM_ASSERT(k == 0 || rows[k] / n[k] > t->rows[k - 1]);
        samples += n[k];
        double sd = n[k] > 1.0 ? sqrt(fmax(0.0, squares[k] / n[k] - mean * mean) / n[k]) : 0.0;
        t->rows[k] = rows[k] / n[k];
        t->s[k] = (struct fit_number){mean, fmax(0.0, mean - Z95 * sd), mean + Z95 * sd};
    }
    SIM_ASSERT(samples == (double)s->n); /* each sample is in one lot */
}

void samples_table_fitted(struct samples *s, const struct fit_table *t)
{
    struct soc_ops ops = {.given = true};
    ops.qkv.n = t->n;
    SIM_ASSERT(t->n > 0 && t->n <= SOC_OPS_MAX_POINTS);
    for (uint32_t k = 0; k < t->n; k++) {
        SIM_ASSERT(fit_number_ok(t->s[k]) && t->s[k].value > 0.0);
        ops.qkv.rows[k] = t->rows[k];
        ops.qkv.s[k] = t->s[k].value;
    }
    for (size_t i = 0; i < s->n; i++) {
        struct kernel_query q = {.op = OP_QKV, .padded_rows = (uint32_t)s->v[i].x[0]};
        s->v[i].fitted_s = soc_ops_seconds(&ops, &q);
        SIM_ASSERT(s->v[i].fitted_s > 0.0);
    }
}
