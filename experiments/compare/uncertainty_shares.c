/* Finds the uncertain numbers that decide the order of two policies, by their shares of the
 * variance of the difference. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

#include "experiments/compare/uncertainty_impl.h"
#include "sim/base/rng.h"
#include "sim/base/scope_gsl.h"
#include "sim/metrics/metric_table.h"

double uncertainty_first_order(const double *x, const double *y, const size_t *pick, size_t n,
                               double *fit)
{
    /* With three coefficients, fewer points have too few degrees of freedom. */
    if (n < 5) {
        return 0.0;
    }
    SCOPED(matrix_drop) gsl_matrix *a = gsl_matrix_alloc(n, 3);
    SCOPED(vector_drop) gsl_vector *b = gsl_vector_alloc(n);
    for (size_t i = 0; i < n; i++) {
        size_t k = pick != NULL ? pick[i] : i;
        gsl_matrix_set(a, i, 0, 1.0);
        gsl_matrix_set(a, i, 1, x[k]);
        /* Linear and quadratic terms: a first-order model of a monotone response to a normal score.
         */
        gsl_matrix_set(a, i, 2, x[k] * x[k]);
        gsl_vector_set(b, i, y[k]);
    }
    SCOPED(vector_drop) gsl_vector *c = gsl_vector_alloc(3);
    SCOPED(matrix_drop) gsl_matrix *cov = gsl_matrix_alloc(3, 3);
    gsl_multifit_linear_workspace *w = gsl_multifit_linear_alloc(n, 3);
    double chi2 = 0.0;
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    (void)gsl_multifit_linear(a, b, c, cov, &chi2, w);
    (void)gsl_set_error_handler(handler);
    double tss = gsl_stats_tss(b->data, 1, n);
    for (size_t i = 0; fit != NULL && i < n; i++) {
        fit[i] = gsl_vector_get(c, 0) + gsl_vector_get(c, 1) * gsl_matrix_get(a, i, 1) +
                 gsl_vector_get(c, 2) * gsl_matrix_get(a, i, 2);
    }
    gsl_multifit_linear_free(w);
    /* Adjusted for the coefficients, because with few machines noise explains a share, too. */
    double adjusted = tss > 0.0 ? 1.0 - chi2 / tss * (double)(n - 1) / (double)(n - 3) : 0.0;
    return fmax(0.0, adjusted);
}

/* Computes normal scores of the differences' ranks, because a few overloaded machines would
 * dominate every variance. *zero: the score of a difference of 0. */
static void rank(struct uncertainty_work *w, double *zero)
{
    OWNED size_t *order = xmalloc((w->n + 1) * sizeof *order);
    gsl_sort_index(order, w->m, 1, w->n);
    uint32_t below = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        w->y[order[i]] = gsl_cdf_ugaussian_Pinv((i + 0.5) / w->n);
        below += w->m[i] < 0.0;
    }
    /* At least half a machine from either end: none of n below 0 does not prove that none is. */
    double share = fmin(fmax((double)below / w->n, 0.5 / w->n), 1.0 - 0.5 / w->n);
    *zero = gsl_cdf_ugaussian_Pinv(share);
}

/* Computes standardised scores of a factor from its normal scores, or from the logarithm of a
 * jointly drawn one. */
static void scores(struct uncertainty_work *w, uint32_t factor)
{
    const struct machines *m = &w->u->machines;
    bool joint = m->factor[factor].kind == MACHINE_FIT;
    double offset = m->factor[factor].number->offset;
    for (uint32_t i = 0; i < w->n; i++) {
        size_t at = (size_t)w->machine[i] * m->n_factors + factor;
        w->score[i] = joint ? log(fmax(m->value[at] + offset, 1e-300)) : m->z[at];
    }
    double sd = w->n > 1 ? gsl_stats_sd(w->score, 1, w->n) : 0.0;
    double mean = w->n > 0 ? gsl_stats_mean(w->score, 1, w->n) : 0.0;
    for (uint32_t i = 0; i < w->n && sd > 0.0; i++) {
        w->score[i] = (w->score[i] - mean) / sd;
    }
}

static void bootstrap(const struct uncertainty_work *w, uint64_t seed, struct uncertainty_share *s)
{
    double x[BOOTSTRAPS];
    OWNED size_t *pick = xmalloc((w->n + 1) * sizeof *pick);
    struct rng r;
    rng_init(&r, rng_key(seed, RNG_BOOTSTRAP, s->factor, 17));
    for (int b = 0; b < BOOTSTRAPS; b++) {
        for (uint32_t i = 0; i < w->n; i++) {
            pick[i] = rng_below(&r, w->n);
        }
        x[b] = fmin(1.0, uncertainty_first_order(w->score, w->y, pick, w->n, NULL) /
                             fmax(w->kept_frac, 0.05));
    }
    gsl_sort(x, 1, BOOTSTRAPS);
    s->low = gsl_stats_quantile_from_sorted_data(x, 1, BOOTSTRAPS, 0.025);
    s->high = gsl_stats_quantile_from_sorted_data(x, 1, BOOTSTRAPS, 0.975);
}

/* Expected probability of a wrong order once the factor is known. Given its score, that of the
 * difference is normal around the quadratic fit, with the residual variance. */
static double wrong_when_known(const struct uncertainty_work *w, double share, double zero)
{
    OWNED double *fit = xmalloc((w->n + 1) * sizeof *fit);
    (void)uncertainty_first_order(w->score, w->y, NULL, w->n, fit);
    double var = gsl_stats_variance(w->y, 1, w->n);
    double sd = sqrt(fmax(1e-12 * var, var * (1.0 - fmin(share, 1.0))));
    double sum = 0.0;
    for (uint32_t i = 0; i < w->n && sd > 0.0; i++) {
        double p = gsl_cdf_ugaussian_P((zero - fit[i]) / sd);
        sum += fmin(p, 1.0 - p) / w->n;
    }
    return sum;
}

SORT_BY(larger_share, struct uncertainty_share, SORT_DOWN(share), SORT_UP(factor))

/* Whether settings or events of the machine limit power, or a battery may end a run. */
static bool is_power_limited(const struct uncertainty *u)
{
    static const char *const signs[] = {"throttle.lost_frac", "battery.end_frac"};
    bool limited = u->plan->config->sim.power.limit != CONFIG_LIMIT_NONE;
    for (uint32_t i = 0; i < 2 * u->n_policies; i++) {
        const double *x = compare_values(u->nominal, i / 2, signs[i % 2]);
        for (uint32_t k = 0; x != NULL && k < u->nominal->replications; k++) {
            limited = limited || isfinite(x[k]);
        }
    }
    return limited;
}

/* Whether a factor affects a metric. A power affects powers and energies, and with limited power
 * also times. */
static bool bears_on(const struct uncertainty *u, const struct machine_factor *f,
                     const char *metric)
{
    const struct metric_descriptor *d = metric_describe(metric);
    bool of_power = d != NULL && (d->unit[0] == 'J' || d->unit[0] == 'W');
    return strcmp(f->unit, "W") != 0 || of_power || is_power_limited(u);
}

void uncertainty_shares(struct uncertainty_work *w, uint64_t seed, struct uncertainty_pair *p)
{
    uint32_t n = w->u->machines.n_factors;
    double zero;
    rank(w, &zero);
    OWNED struct uncertainty_share *all = xcalloc(n + 1, sizeof *all);
    for (uint32_t k = 0; k < n; k++) {
        if (!bears_on(w->u, &w->u->machines.factor[k], w->u->metrics[p->metric])) {
            continue;
        }
        scores(w, k);
        double s = uncertainty_first_order(w->score, w->y, NULL, w->n, NULL);
        all[k] = (struct uncertainty_share){.factor = k,
                                            .share = fmin(1.0, s / fmax(w->kept_frac, 0.05))};
    }
    qsort(all, n, sizeof *all, larger_share);
    uint32_t most = p->metric == 0 ? UNCERTAINTY_CANDIDATES : UNCERTAINTY_TOP;
    for (; p->n_top < most && p->n_top < n && all[p->n_top].share > 0.0; p->n_top++) {
        struct uncertainty_share *s = &p->top[p->n_top];
        *s = all[p->n_top];
        scores(w, s->factor);
        bootstrap(w, seed, s);
        s->wrong_after = wrong_when_known(w, s->share, zero);
    }
}

void uncertainty_conclude(struct uncertainty_pair *p)
{
    uint32_t kept = 0;
    double wrong = fmin(p->better_frac, 1.0 - p->better_frac);
    double most = 0.0;
    for (uint32_t k = 0; k < p->n_top && kept < UNCERTAINTY_TOP; k++) {
        if (p->top[k].idle) {
            p->n_idle++;
            continue;
        }
        p->top[kept] = p->top[k];
        double gain = wrong - p->top[kept].wrong_after;
        if (gain > most) {
            most = gain;
            p->next = (int)kept;
        }
        kept++;
    }
    p->n_top = kept;
}
