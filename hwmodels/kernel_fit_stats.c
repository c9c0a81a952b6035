/* Scatter, drift, intervals and the lack-of-fit test. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>

#include "hwmodels/kernel_fit_impl.h"

#define CONFIDENCE 0.95
#define WRONG_LEVEL 0.01       /* of the lack-of-fit test */
#define WRONG_MISFIT_FRAC 0.01 /* smaller misfits do not matter here, however significant */
#define RESOLVED_FRAC 0.5      /* largest half-width of an interval over the value */
#define RESOLVED_LAMBDA 0.05   /* the same for a sensitivity, absolute */
#define MIN_NOISE_FRAC 1e-5
#define FIRST_NOISE_FRAC 0.01 /* without repetitions */

static bool is_alone(const struct fit_problem *f, const struct fit_point *p)
{
    return f->fit->cells[p->cell].partner < 0;
}

/* Points are sorted by cell: [first, end) of the cell at `first`. */
static uint32_t cell_end(const struct fit_problem *f, uint32_t first)
{
    uint32_t end = first;
    while (end < f->n_points && f->points[end].cell == f->points[first].cell) {
        end++;
    }
    return end;
}

static double cell_mean(const struct fit_problem *f, uint32_t first, uint32_t end)
{
    double sum = 0.0;
    for (uint32_t i = first; i < end; i++) {
        sum += f->points[i].log_value;
    }
    return sum / (end - first);
}

/* Removes a repetition's mean deviation from its isolated times: a repetition that was slower as a
 * whole (another clock or placement) is no error of the model. Slowdowns are ratios within a
 * bracket. */
void fit_remove_drift(struct fit_problem *f)
{
    uint32_t n = f->fit->n_repetitions;
    OWNED double *sum = xcalloc(n + 1, sizeof *sum);
    OWNED double *weight = xcalloc(n + 1, sizeof *weight);
    for (uint32_t i = 0, end; i < f->n_points; i = end) {
        end = cell_end(f, i);
        double mean = cell_mean(f, i, end);
        for (uint32_t k = i; k < end && is_alone(f, &f->points[k]); k++) {
            const struct fit_point *p = &f->points[k];
            /* Deviations from the cell's mean, so that drift does not depend on the fitted model.
             */
            sum[p->repetition] += p->weight * p->weight * (p->log_value - mean);
            weight[p->repetition] += p->weight * p->weight;
        }
    }
    double squares = 0.0;
    uint32_t used = 0;
    for (uint32_t r = 0; r < n; r++) {
        if (weight[r] > 0.0) {
            sum[r] /= weight[r];
            squares += sum[r] * sum[r];
            used++;
        }
    }
    for (uint32_t i = 0; i < f->n_points; i++) {
        if (is_alone(f, &f->points[i])) {
            f->points[i].log_value -= sum[f->points[i].repetition];
        }
    }
    double var = used > 1 ? squares / (used - 1) : 0.0;
    f->fit->drift_frac = sqrt(var);
    f->drift_var = used > 0 ? var / used : 0.0;
}

/* Scatter of repetitions around their cell's mean. */
struct scatter {
    double squares, weighted_squares;
    double sampling; /* part of `squares` explained by the windows' samples */
    double dof;
    uint32_t cells;
};

static void scatter_of(const struct fit_problem *f, bool alone, struct scatter *out)
{
    *out = (struct scatter){0.0, 0.0, 0.0, 0.0, 0};
    for (uint32_t i = 0, end; i < f->n_points; i = end) {
        end = cell_end(f, i);
        if (is_alone(f, &f->points[i]) != alone) {
            continue;
        }
        double mean = cell_mean(f, i, end);
        for (uint32_t k = i; k < end; k++) {
            const struct fit_point *p = &f->points[k];
            out->squares += pow(p->log_value - mean, 2.0);
            out->weighted_squares += pow(p->weight * (p->log_value - mean), 2.0);
        }
        out->sampling += f->points[i].var * (end - i - 1);
        out->dof += end - i - 1;
        out->cells++;
    }
    if (alone && f->fit->n_repetitions > 0) { /* one mean per repetition is removed */
        out->dof -= f->fit->n_repetitions - 1;
    }
}

/* Windows of a cell have about equally many samples, so they share their mean variance. */
static void pool_sampling(struct fit_problem *f)
{
    for (uint32_t i = 0, end; i < f->n_points; i = end) {
        end = cell_end(f, i);
        double sum = 0.0;
        for (uint32_t k = i; k < end; k++) {
            sum += f->points[k].var;
        }
        for (uint32_t k = i; k < end; k++) {
            f->points[k].var = sum / (end - i);
        }
    }
}

/* Variance of a row = that of its samples (long kernels have few) + that between windows (the rest
 * of the scatter between repetitions: a number for isolated times and one for slowdowns). */
void fit_weigh(struct fit_problem *f)
{
    pool_sampling(f);
    for (int alone = 0; alone < 2; alone++) {
        struct scatter s;
        scatter_of(f, alone == 1, &s);
        /* Not negative: samples may explain all of the scatter. */
        double between = s.dof >= 1.0 ? fmax(0.0, (s.squares - s.sampling) / s.dof)
                                      : FIRST_NOISE_FRAC * FIRST_NOISE_FRAC;
        for (uint32_t i = 0; i < f->n_points; i++) {
            struct fit_point *p = &f->points[i];
            if (is_alone(f, p) == (alone == 1)) {
                /* A floor, so that rows without any scatter (a simulated device) do not weigh
                 * infinitely. */
                p->weight = 1.0 / sqrt(fmax(p->var + between, MIN_NOISE_FRAC * MIN_NOISE_FRAC));
            }
        }
    }
}

static uint32_t contention_params(const struct kernel_fit *fit)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < fit->n_params; i++) {
        enum kernel_param p = fit->params[i].param;
        n += p == KERNEL_PARAM_CAP || p == KERNEL_PARAM_SHARPNESS || p == KERNEL_PARAM_LAMBDA;
    }
    return n;
}

static void test_form(const struct fit_problem *f, bool alone, struct kernel_lack_of_fit *out)
{
    struct scatter s;
    scatter_of(f, alone, &s);
    double misfit = 0.0; /* of the means of cells, weighted by their rows */
    double weighted = 0.0;
    double chance = 0.0;
    double n = 0.0;
    for (uint32_t i = 0, end; i < f->n_points; i = end) {
        end = cell_end(f, i);
        const struct fit_point *p = &f->points[i];
        if (is_alone(f, p) == alone) {
            double off = cell_mean(f, i, end) - log(f->fit->cells[p->cell].predicted);
            misfit += (end - i) * off * off;
            weighted += (end - i) * pow(p->weight * off, 2.0);
            chance += 1.0 / (p->weight * p->weight);
            n += end - i;
        }
    }
    uint32_t contention = contention_params(f->fit);
    double dof = s.cells - (double)(alone ? f->fit->n_params - contention : contention);
    /* Without repetitions the misfit cannot be tested, and with as many parameters as cells there
     * is none. */
    if (s.dof < 1.0 || dof < 1.0) {
        return;
    }
    out->tested = true;
    out->noise_frac = sqrt(s.squares / s.dof);
    out->f = weighted / dof / (s.weighted_squares / s.dof);
    gsl_error_handler_t *old = gsl_set_error_handler_off(); /* an underflow is a p of 0 */
    out->p = gsl_cdf_fdist_Q(out->f, dof, s.dof);
    (void)gsl_set_error_handler(old);
    /* A cell's mean has the variance of its rows over their number. The excess is misfit of the
     * model. */
    out->misfit_frac = sqrt(fmax(0.0, misfit - chance * dof / s.cells) / n);
    /* Both conditions, because with many precise rows every model is significantly wrong, even if
     * only by 0.1 %. */
    out->wrong = out->p < WRONG_LEVEL && out->misfit_frac > WRONG_MISFIT_FRAC;
}

void fit_lack_of_fit(struct fit_problem *f)
{
    test_form(f, true, &f->fit->alone);
    test_form(f, false, &f->fit->together);
}

/* Derivative of a fitting coordinate with respect to a common slowdown. */
static double drift_slope(enum kernel_param p, double x)
{
    switch (p) {
    case KERNEL_PARAM_KNEE:
    case KERNEL_PARAM_KNOB_KNEE:
    case KERNEL_PARAM_SHARPNESS:
    case KERNEL_PARAM_LAMBDA:
        return 0.0;
    case KERNEL_PARAM_LAUNCH:
        return x;
    default:
        return -1.0;
    }
}

static bool is_resolved(const struct kernel_estimate *q)
{
    double half = (q->high - q->low) / 2.0;
    if (q->param == KERNEL_PARAM_LAMBDA) {
        return half < RESOLVED_LAMBDA || half < RESOLVED_FRAC * fabs(q->value);
    }
    return half < RESOLVED_FRAC * fabs(q->value);
}

void fit_intervals(struct fit_problem *f)
{
    uint32_t n = f->fit->n_params;
    double tail = (1.0 - CONFIDENCE) / (2.0 * n); /* Bonferroni, two-sided */
    for (uint32_t i = 0; i < n; i++) {
        struct kernel_estimate *q = &f->fit->params[i];
        /* Each stage has the degrees of freedom of its points. */
        bool together = f->cap >= 0 && i >= (uint32_t)f->cap;
        double t = gsl_cdf_tdist_Pinv(1.0 - tail, fmax(1.0, f->dof[together]));
        double slope = drift_slope(q->param, f->x[i]);
        double var = f->covariance[(size_t)i * n + i];
        /* The solver reports zero covariance for a direction that the data do not determine. */
        double half =
            var > 0.0 && isfinite(var) ? t * sqrt(var + slope * slope * f->drift_var) : HUGE_VAL;
        bool inverse = q->param == KERNEL_PARAM_KNEE || q->param == KERNEL_PARAM_KNOB_KNEE ||
                       q->param == KERNEL_PARAM_SHARPNESS;
        /* The solver may end on either side of 0, so the absolute value counts for inverse
         * parameters. */
        double x = inverse ? fabs(f->x[i]) : f->x[i];
        double a = x - half;
        double b = x + half;
        q->value = fit_from_x(q->param, x);
        if (inverse) {
            q->low = 1.0 / b;
            q->high = a > 0.0 ? 1.0 / a : HUGE_VAL;
        } else {
            q->low = fit_from_x(q->param, a);
            q->high = fit_from_x(q->param, b);
        }
        q->resolved = isfinite(half) && is_resolved(q);
    }
}
