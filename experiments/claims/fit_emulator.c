/* Emulators predict a check's value at points that were not simulated.
 *
 *   y(u) = b0 + sum b_i u_i + c_i u_i^2 + g(u),  g a Gaussian process with covariance
 *   s^2 (exp(-|u - u'|^2 / (2 l^2)) + r 1[u = u'])
 *
 * Least squares give b and c (GSL, with a small ridge). The profiled likelihood on a grid gives l
 * and r for each check. The error is that of predicting each point from all the others, by the
 * closed form a_i / K^-1_ii. Each check has two outputs: the mean, and the logarithm of the spread
 * of single traces. */
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit.h>

#include "experiments/claims/fit.h"
#include "sim/base/scope_gsl.h"

#define SD_FLOOR 1e-6 /* least spread, before the logarithm */

static const double lengths[] = {0.4, 0.7, 1.2, 2.0};
static const double nuggets[] = {0.01, 0.05, 0.2, 0.5, 1.0};
#define N_LENGTHS (sizeof lengths / sizeof lengths[0])
#define N_NUGGETS (sizeof nuggets / sizeof nuggets[0])
#define MAX_TERMS (1 + 2 * FIT_MAX_PARAMETERS)

struct output {
    double trend[MAX_TERMS];
    double *weights;  /* K^-1 (y - trend); owned; NULL: only the trend */
    uint32_t length;  /* index */
    double low, high; /* of the data; predictions exceed them at most by their range */
    double error;
};

struct fit_emulator {
    uint32_t n_points, n_parameters, n_terms, n_checks;
    double (*u)[FIT_MAX_PARAMETERS]; /* owned */
    struct output *v;                /* owned: means, then logarithms of spreads */
    double *error;                   /* owned; of the means */
};

static void terms(const struct fit_emulator *m, const double *u, double *t)
{
    t[0] = 1.0;
    for (uint32_t i = 0; i < m->n_parameters; i++) {
        t[1 + 2 * i] = u[i] - 0.5;
        t[2 + 2 * i] = (u[i] - 0.5) * (u[i] - 0.5);
    }
}

static double distance2(const struct fit_emulator *m, const double *a, const double *b)
{
    double d = 0.0;
    for (uint32_t i = 0; i < m->n_parameters; i++) {
        d += (a[i] - b[i]) * (a[i] - b[i]);
    }
    return d;
}

static double trend_at(const struct fit_emulator *m, const struct output *o, const double *t)
{
    double y = 0.0;
    for (uint32_t k = 0; k < m->n_terms; k++) {
        y += o->trend[k] * t[k];
    }
    return y;
}

/* Least squares with a small ridge, because few points do not determine every term. y becomes the
 * residuals. */
static void trend_fit(const struct fit_emulator *m, struct output *o, double *y)
{
    size_t n = m->n_points;
    SCOPED(matrix_drop) gsl_matrix *x = gsl_matrix_alloc(n, m->n_terms);
    SCOPED(vector_drop) gsl_vector *right = gsl_vector_alloc(n);
    SCOPED(vector_drop) gsl_vector *b = gsl_vector_alloc(m->n_terms);
    gsl_multifit_linear_workspace *w = gsl_multifit_linear_alloc(n, m->n_terms);
    double rnorm;
    double snorm;
    for (size_t i = 0; i < n; i++) {
        double t[MAX_TERMS];
        terms(m, m->u[i], t);
        for (uint32_t k = 0; k < m->n_terms; k++) {
            gsl_matrix_set(x, i, k, t[k]);
        }
        gsl_vector_set(right, i, y[i]);
    }
    (void)gsl_multifit_linear_svd(x, w);
    (void)gsl_multifit_linear_solve(0.1, x, right, b, &rnorm, &snorm, w);
    for (uint32_t k = 0; k < m->n_terms; k++) {
        o->trend[k] = gsl_vector_get(b, k);
    }
    for (size_t i = 0; i < n; i++) {
        double t[MAX_TERMS];
        terms(m, m->u[i], t);
        y[i] -= trend_at(m, o, t);
    }
    gsl_multifit_linear_free(w);
}

/* Tries a covariance on the residuals of the trend. Keeps it if it is likelier. */
static void process_try(const struct fit_emulator *m, struct output *o, const gsl_matrix *factor,
                        const gsl_matrix *inverse, uint32_t length, const double *y, double *best)
{
    size_t n = m->n_points;
    SCOPED(vector_drop) gsl_vector *a = gsl_vector_alloc(n);
    double log_det = 0.0;
    double s2 = 0.0;
    for (size_t i = 0; i < n; i++) {
        gsl_vector_set(a, i, y[i]);
        log_det += 2.0 * log(gsl_matrix_get(factor, i, i));
    }
    (void)gsl_linalg_cholesky_svx(factor, a);
    for (size_t i = 0; i < n; i++) {
        s2 += y[i] * gsl_vector_get(a, i);
    }
    double likelihood = -0.5 * ((double)n * log(fmax(s2, 1e-300) / (double)n) + log_det);
    if (likelihood > *best) {
        double sum = 0.0;
        *best = likelihood;
        o->length = length;
        for (size_t i = 0; i < n; i++) {
            double out = gsl_vector_get(a, i) / gsl_matrix_get(inverse, i, i);
            o->weights[i] = gsl_vector_get(a, i);
            sum += out * out;
        }
        o->error = sqrt(sum / (double)n);
    }
}

/* Tries a covariance for all outputs, with one factorisation. */
static void covariance_try(struct fit_emulator *m, uint32_t length, double nugget,
                           double *const *left, double *best)
{
    size_t n = m->n_points;
    SCOPED(matrix_drop) gsl_matrix *k = gsl_matrix_alloc(n, n);
    SCOPED(matrix_drop) gsl_matrix *inverse = gsl_matrix_alloc(n, n);
    double scale = 2.0 * lengths[length] * lengths[length];
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double v = exp(-distance2(m, m->u[i], m->u[j]) / scale) + (i == j ? nugget : 0.0);
            gsl_matrix_set(k, i, j, v);
            gsl_matrix_set(k, j, i, v);
        }
    }
    (void)gsl_linalg_cholesky_decomp1(k);
    (void)gsl_matrix_memcpy(inverse, k);
    (void)gsl_linalg_cholesky_invert(inverse);
    for (uint32_t c = 0; c < 2 * m->n_checks; c++) {
        process_try(m, &m->v[c], k, inverse, length, left[c], &best[c]);
    }
}

/* The values of an output. Undefined ones get the mean of the others, so they only increase the
 * error. */
static void values_of(const struct fit *f, uint32_t check, bool spread, struct output *o, double *y)
{
    double sum = 0.0;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < f->n_points; i++) {
        double sd = fmax(f->points[i].sd[check], SD_FLOOR);
        y[i] = spread ? log(sd) : f->points[i].mean[check];
        if (isfinite(y[i])) {
            sum += y[i];
            o->low = seen == 0 ? y[i] : fmin(o->low, y[i]);
            o->high = seen == 0 ? y[i] : fmax(o->high, y[i]);
            seen++;
        }
    }
    for (uint32_t i = 0; i < f->n_points; i++) {
        y[i] = isfinite(y[i]) ? y[i] : seen > 0 ? sum / seen : 0.0;
    }
}

struct fit_emulator *fit_emulator_new(const struct fit *f)
{
    struct fit_emulator *m = xcalloc(1, sizeof *m);
    m->n_points = f->n_points;
    m->n_parameters = f->parameters.n;
    m->n_terms = 1 + 2 * m->n_parameters;
    m->n_checks = f->n_checks;
    m->u = xcalloc(m->n_points, sizeof *m->u);
    m->v = xcalloc(2 * (size_t)m->n_checks, sizeof *m->v);
    m->error = xcalloc(m->n_checks, sizeof *m->error);
    OWNED double **left = xcalloc(2 * (size_t)m->n_checks, sizeof(double *));
    OWNED double *best = xcalloc(2 * (size_t)m->n_checks, sizeof *best);
    for (uint32_t i = 0; i < m->n_points; i++) {
        memcpy(m->u[i], f->points[i].u, sizeof m->u[i]);
    }
    for (uint32_t c = 0; c < 2 * m->n_checks; c++) {
        left[c] = xcalloc(m->n_points, sizeof **left);
        values_of(f, c % m->n_checks, c >= m->n_checks, &m->v[c], left[c]);
        trend_fit(m, &m->v[c], left[c]);
        m->v[c].weights = xcalloc(m->n_points, sizeof *m->v[c].weights);
        best[c] = -HUGE_VAL;
    }
    for (uint32_t l = 0; l < N_LENGTHS; l++) {
        for (uint32_t r = 0; r < N_NUGGETS; r++) {
            covariance_try(m, l, nuggets[r], left, best);
        }
    }
    for (uint32_t c = 0; c < 2 * m->n_checks; c++) {
        free(left[c]);
    }
    for (uint32_t c = 0; c < m->n_checks; c++) {
        m->error[c] = m->v[c].error;
    }
    return m;
}

void fit_emulator_free(struct fit_emulator *m)
{
    if (m == NULL) {
        return;
    }
    for (uint32_t c = 0; c < 2 * m->n_checks; c++) {
        free(m->v[c].weights);
    }
    free(m->u);
    free(m->v);
    free(m->error);
    free(m);
}

void fit_emulator_at(const struct fit_emulator *m, const double *u, double *mean, double *sd)
{
    double t[MAX_TERMS];
    OWNED double *k = xcalloc(N_LENGTHS * (size_t)m->n_points, sizeof *k);
    terms(m, u, t);
    for (uint32_t i = 0; i < m->n_points; i++) {
        double d2 = distance2(m, u, m->u[i]);
        for (uint32_t l = 0; l < N_LENGTHS; l++) {
            k[l * (size_t)m->n_points + i] = exp(-d2 / (2.0 * lengths[l] * lengths[l]));
        }
    }
    for (uint32_t c = 0; c < 2 * m->n_checks; c++) {
        const struct output *o = &m->v[c];
        const double *row = &k[o->length * (size_t)m->n_points];
        double y = trend_at(m, o, t);
        for (uint32_t i = 0; i < m->n_points; i++) {
            y += row[i] * o->weights[i];
        }
        double reach = o->high - o->low;
        y = fmin(fmax(y, o->low - reach), o->high + reach);
        if (c < m->n_checks) {
            mean[c] = y;
        } else {
            sd[c - m->n_checks] = exp(y);
        }
    }
}

const double *fit_emulator_error(const struct fit_emulator *m)
{
    return m->error;
}

/* ---- implausibility ---- */

static double check_implausibility(const struct claim_check *k, double mean, double sd,
                                   double error, uint32_t traces)
{
    if (!isfinite(mean)) {
        return 10.0; /* undefined: far from holding */
    }
    if (k->kind != CHECK_NUMBER) {
        double short_by = k->kind == CHECK_ABOVE ? k->low - mean : mean - k->low;
        double of = sqrt(sd * sd / traces + error * error);
        double model = FIT_MODEL_ERROR_FRAC * fabs(k->low);
        return fmax(0.0, 2.0 + short_by / fmax(of, model + 1e-12)); /* 0: it clearly holds */
    }
    double effect = fabs((k->low + k->high) / 2.0 - (isfinite(k->neutral) ? k->neutral : 0.0));
    double target = fmin(fmax(mean, k->low), k->high);
    double model = FIT_MODEL_ERROR_FRAC * effect;
    double far = fabs(target - mean) / sqrt(sd * sd + error * error + model * model);
    bool above = (k->low + k->high) / 2.0 > k->neutral;
    if (isfinite(k->neutral)) { /* and the mean on its side */
        double side = above ? mean - k->neutral : k->neutral - mean;
        far = fmax(far, 2.0 - side / sqrt(sd * sd / traces + error * error + 1e-24));
    }
    return far;
}

void fit_implausibility(const struct fit *f, const double *mean, const double *sd,
                        const double *error, double *out)
{
    for (uint32_t i = 0; i < f->claims.n; i++) {
        out[i] = 0.0;
    }
    for (uint32_t k = 0; k < f->n_checks; k++) {
        double *claim = &out[f->checks[k].claim];
        *claim = fmax(*claim, check_implausibility(f->checks[k].check, mean[k], sd[k], error[k],
                                                   f->o->confirm));
    }
}

void fit_point_implausibility(const struct fit *f, const struct fit_point *p, double *out)
{
    OWNED double *mean = xcalloc(f->n_checks, sizeof *mean);
    OWNED double *sd = xcalloc(f->n_checks, sizeof *sd);
    OWNED double *none = xcalloc(f->n_checks, sizeof *none);
    if (f->emulator != NULL) {
        fit_emulator_at(f->emulator, p->u, mean, sd);
        for (uint32_t k = 0; k < f->n_checks; k++) {
            mean[k] = (mean[k] + p->mean[k]) / 2.0; /* NaN stays NaN */
        }
    } else {
        memcpy(mean, p->mean, f->n_checks * sizeof *mean);
        memcpy(sd, p->sd, f->n_checks * sizeof *sd);
    }
    fit_implausibility(f, mean, sd, none, out);
}
