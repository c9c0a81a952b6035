#include "hwmodels/kernel_fit.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>

#include "hwmodels/kernel_fit_impl.h"
#include "sim/base/scope_gsl.h"

#define MAX_ITERATIONS 400
#define TOLERANCE 1e-10
#define SINGULAR 1e-9 /* limit for singular values of undetermined directions */
#define STEP 1e-5     /* relative step of difference quotients */

/* The parameter at an index, or a default for index -1. */
static double get(const struct fit_problem *f, const double *x, int index, double otherwise)
{
    return index < 0 ? otherwise : fit_from_x(f->fit->params[index].param, x[index]);
}

static void fit_curve(const struct fit_problem *f, const double *x, const struct kernel_cell *c,
                      struct kernel_curve *out)
{
    const struct fit_device *d = &f->devices[c->device];
    bool stream = c->row->op == KERNEL_READ || c->row->op == KERNEL_COPY;
    out->launch_s = 0.0; /* streams are long */
    out->flop_per_s = HUGE_VAL;
    out->knee = 1.0;
    if (stream) {
        out->bytes_per_s = get(f, x, c->row->op == KERNEL_READ ? d->read : d->copy, HUGE_VAL);
    } else if (c->row->op == KERNEL_KNOB) {
        out->bytes_per_s = get(f, x, d->read, HUGE_VAL);
        out->flop_per_s = get(f, x, d->knob_rate, HUGE_VAL);
        out->knee = get(f, x, d->knob_knee, 1.0);
    } else {
        const struct fit_group *g = &f->groups[c->group];
        double one = get(f, x, g->bandwidth_one, -1.0);
        double many = get(f, x, g->bandwidth, one);
        /* One row is a different kernel (GEMV) with a separate bandwidth. A width measured only
         * with one row uses that for all. */
        out->bytes_per_s = c->row->rows == 1 && one > 0.0 ? one : many;
        out->flop_per_s = kernel_op_is_attention(c->row->op) ? get(f, x, d->attention, HUGE_VAL)
                                                             : get(f, x, g->rate, HUGE_VAL);
        out->knee = get(f, x, g->knee, 1.0);
        out->launch_s = get(f, x, g->launch, 0.0);
    }
}

static double alone_s(const struct fit_problem *f, const double *x, const struct kernel_cell *c)
{
    struct kernel_curve curve;
    fit_curve(f, x, c, &curve);
    return kernel_model_seconds(&curve, c->row->flop, c->row->bytes);
}

/* The model at parameters x (fitting coordinates). */
static double fit_predict(const struct fit_problem *f, const double *x, const struct kernel_cell *c)
{
    if (c->partner < 0) {
        return alone_s(f, x, c);
    }
    const struct kernel_cell *p = &f->fit->cells[c->partner];
    struct kernel_curve curve;
    fit_curve(f, x, c, &curve);
    struct kernel_contention m = {get(f, x, f->cap, HUGE_VAL), get(f, x, f->sharpness, 1.0)};
    return kernel_model_slowdown(&curve, c->row->flop, c->row->bytes,
                                 p->row->bytes / alone_s(f, x, p), &m,
                                 get(f, x, fit_lambda(f->fit, c), 0.0));
}

/* ---- the least squares ---- */

/* One of the two stages: a fit of some parameters, with the others fixed, to some points. */
struct stage {
    const struct fit_problem *f;
    uint32_t first_param, n_params;
    uint32_t first_point, n_points;
};

static int residuals_at(const struct stage *s, const double *x, gsl_vector *out)
{
    const struct fit_problem *f = s->f;
    double predicted = 0.0;
    for (uint32_t i = 0; i < s->n_points; i++) {
        const struct fit_point *p = &f->points[s->first_point + i];
        const struct kernel_cell *c = &f->fit->cells[p->cell];
        /* Points are sorted by cell, and repetitions of a kernel have one prediction. */
        if (i == 0 || p->cell != p[-1].cell) {
            predicted = fit_predict(f, x, c);
        }
        if (!(predicted > 0.0) || !isfinite(predicted)) {
            return GSL_EDOM; /* the solver then shortens the step */
        }
        gsl_vector_set(out, i, (log(predicted) - p->log_value) * p->weight);
    }
    return GSL_SUCCESS;
}

static int residuals(const gsl_vector *v, void *data, gsl_vector *out)
{
    const struct stage *s = data;
    double x[KERNEL_FIT_MAX_PARAMS];
    memcpy(x, s->f->x, sizeof x);
    for (uint32_t i = 0; i < s->n_params; i++) {
        x[s->first_param + i] = gsl_vector_get(v, i);
    }
    return residuals_at(s, x, out);
}

SORT_BY(by_cell, struct fit_point, SORT_UP(cell), SORT_UP(repetition))

/* Keeps the optimum and its covariance, scaled by the residuals. */
static void take_optimum(struct fit_problem *f, const struct stage *s,
                         const gsl_multifit_nlinear_workspace *w, double dof)
{
    size_t n = f->fit->n_params;
    gsl_matrix_view all = gsl_matrix_view_array(f->covariance, n, n);
    gsl_matrix_view block =
        gsl_matrix_submatrix(&all.matrix, s->first_param, s->first_param, s->n_params, s->n_params);
    for (uint32_t i = 0; i < s->n_params; i++) {
        f->x[s->first_param + i] = gsl_vector_get(w->x, i);
    }
    double chi2;
    (void)gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(w), SINGULAR, &block.matrix);
    /* Weights are 1 / standard deviation, so chi2 over its degrees of freedom is 1 if the model is
     * right. If it is wrong, standard errors grow with the misfit. */
    (void)gsl_blas_ddot(w->f, w->f, &chi2);
    (void)gsl_matrix_scale(&block.matrix, chi2 / dof);
}

static int solve(struct fit_problem *f, const struct stage *s, double dof)
{
    gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    /* Moré's scaling does not depend on the units of parameters, and QR is more accurate than the
     * normal equations. */
    how.scale = gsl_multifit_nlinear_scale_more;
    how.solver = gsl_multifit_nlinear_solver_qr;
    gsl_multifit_nlinear_workspace *w =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how, s->n_points, s->n_params);
    /* GSL needs a pointer that is not const. */
    struct stage copy = *s;
    gsl_multifit_nlinear_fdf what = {
        .f = residuals, .n = s->n_points, .p = s->n_params, .params = &copy};
    gsl_vector_view start = gsl_vector_view_array(f->x + s->first_param, s->n_params);
    int info = 0;
    int rc = gsl_multifit_nlinear_init(&start.vector, &what, w);
    if (rc == GSL_SUCCESS) {
        rc = gsl_multifit_nlinear_driver(MAX_ITERATIONS, TOLERANCE, TOLERANCE, 0.0, NULL, NULL,
                                         &info, w);
    }
    rc = rc == GSL_ENOPROG ? GSL_SUCCESS : rc; /* no progress: converged up to rounding */
    if (rc == GSL_SUCCESS) {
        take_optimum(f, s, w, dof);
        f->fit->iterations += (uint32_t)gsl_multifit_nlinear_niter(w);
    }
    gsl_multifit_nlinear_free(w);
    return rc;
}

/* Derivatives of a stage's residuals by some parameters, by central differences. */
static int jacobian(const struct stage *s, uint32_t first, uint32_t n, gsl_matrix *out)
{
    double x[KERNEL_FIT_MAX_PARAMS];
    int rc = 0;
    for (uint32_t j = 0; j < n && rc == 0; j++) {
        double h = STEP * fmax(1.0, fabs(s->f->x[first + j]));
        SCOPED(vector_drop) gsl_vector *below = gsl_vector_alloc(s->n_points);
        SCOPED(vector_drop) gsl_vector *above = gsl_vector_alloc(s->n_points);
        memcpy(x, s->f->x, sizeof x);
        x[first + j] -= h;
        rc = residuals_at(s, x, below);
        x[first + j] += 2.0 * h;
        rc = rc == 0 ? residuals_at(s, x, above) : rc;
        (void)gsl_vector_sub(above, below);
        (void)gsl_vector_scale(above, 0.5 / h);
        (void)gsl_matrix_set_col(out, j, above);
    }
    return rc;
}

/* The second stage treats the first one's parameters S as known. Errors of S move its optimum C by
 * dC/dS = -(Jc' Jc)^-1 Jc' Js, so its covariance grows by (dC/dS) cov(S) (dC/dS)'. */
static void propagate(struct fit_problem *f, const struct stage *alone, const struct stage *pairs,
                      double chi2_per_dof)
{
    uint32_t s = alone->n_params;
    uint32_t c = pairs->n_params;
    size_t n = f->fit->n_params;
    gsl_matrix_view all = gsl_matrix_view_array(f->covariance, n, n);
    gsl_matrix_view cov_s = gsl_matrix_submatrix(&all.matrix, 0, 0, s, s);
    gsl_matrix_view cov_c = gsl_matrix_submatrix(&all.matrix, s, s, c, c);
    SCOPED(matrix_drop) gsl_matrix *js = gsl_matrix_alloc(pairs->n_points, s);
    SCOPED(matrix_drop) gsl_matrix *jc = gsl_matrix_alloc(pairs->n_points, c);
    SCOPED(matrix_drop) gsl_matrix *jcs = gsl_matrix_alloc(c, s);
    SCOPED(matrix_drop) gsl_matrix *slope = gsl_matrix_alloc(c, s);
    SCOPED(matrix_drop) gsl_matrix *moved = gsl_matrix_alloc(c, s);
    if (jacobian(pairs, 0, s, js) == 0 && jacobian(pairs, s, c, jc) == 0) {
        (void)gsl_blas_dgemm(CblasTrans, CblasNoTrans, 1.0, jc, js, 0.0, jcs);
        (void)gsl_blas_dgemm(CblasNoTrans, CblasNoTrans, 1.0 / chi2_per_dof, &cov_c.matrix, jcs,
                             0.0, slope);
        (void)gsl_blas_dgemm(CblasNoTrans, CblasNoTrans, 1.0, slope, &cov_s.matrix, 0.0, moved);
        (void)gsl_blas_dgemm(CblasNoTrans, CblasTrans, 1.0, moved, slope, 1.0, &cov_c.matrix);
    }
}

static double chi2_per_dof(const struct stage *s, double dof)
{
    double chi2;
    SCOPED(vector_drop) gsl_vector *r = gsl_vector_alloc(s->n_points);
    (void)residuals_at(s, s->f->x, r);
    (void)gsl_blas_ddot(r, r, &chi2);
    return chi2 / dof;
}

/* Two stages, so that a wrong contention model cannot distort isolated times: first isolated
 * kernels, then contention with their parameters fixed. */
static int solve_stages(struct fit_problem *f, struct err *e)
{
    struct kernel_fit *fit = f->fit;
    uint32_t alone_points = 0;
    while (alone_points < f->n_points && fit->cells[f->points[alone_points].cell].partner < 0) {
        alone_points++;
    }
    /* Parameters of contention follow all others, and points of pairs follow all isolated points.
     * So a stage is a range of parameters and a range of points. */
    uint32_t alone_params = f->cap < 0 ? fit->n_params : (uint32_t)f->cap;
    struct stage alone = {f, 0, alone_params, 0, alone_points};
    struct stage pairs = {f, alone_params, fit->n_params - alone_params, alone_points,
                          f->n_points - alone_points};
    /* Each repetition's drift was estimated from the same points and removed. */
    double lost = fit->n_repetitions > 0 ? fit->n_repetitions - 1.0 : 0.0;
    f->dof[0] = (double)alone_points - alone_params - lost;
    f->dof[1] = (double)pairs.n_points - pairs.n_params;
    if (f->dof[0] < 1.0 || (pairs.n_params > 0 && f->dof[1] < 1.0)) {
        return err_add(e,
                       "%u trusted row%s alone for %u parameters and %u together for %u: measure "
                       "more repetitions",
                       alone_points, text_plural(alone_points), alone_params, pairs.n_points,
                       pairs.n_params);
    }
    gsl_error_handler_t *old = gsl_set_error_handler_off();
    int rc = solve(f, &alone, f->dof[0]);
    if (rc == GSL_SUCCESS && pairs.n_params > 0 && solve(f, &pairs, f->dof[1]) == GSL_SUCCESS) {
        propagate(f, &alone, &pairs, chi2_per_dof(&pairs, f->dof[1]));
    } /* else contention parameters have no covariance: not resolved */
    (void)gsl_set_error_handler(old);
    return rc == GSL_SUCCESS
               ? 0
               : err_add(e,
                         "the fit does not converge (%s) on %u trusted measurement%s: are the rows "
                         "of one machine, and did nothing else run on it? Flagged rows are left "
                         "out; measure again when it is idle",
                         gsl_strerror(rc), f->n_points, text_plural(f->n_points));
}

static void predict_all(struct fit_problem *f)
{
    for (uint32_t i = 0; i < f->fit->n_cells; i++) {
        struct kernel_cell *c = &f->fit->cells[i];
        c->predicted = c->n > 0 ? fit_predict(f, f->x, c) : (double)NAN;
    }
}

int kernel_fit_run(struct kernel_fit *fit, const struct kernel_rows *rows, struct err *e)
{
    memset(fit, 0, sizeof *fit);
    OWNED struct fit_problem *f = xcalloc(1, sizeof *f);
    f->fit = fit;
    int rc = fit_prepare(f, rows, e);
    if (rc == 0) {
        qsort(f->points, f->n_points, sizeof *f->points, by_cell);
        f->covariance = xcalloc((size_t)fit->n_params * fit->n_params, sizeof *f->covariance);
        fit_weigh(f);
        /* The drift is a weighted mean, so weights are computed before it, and again from the
         * scatter without it. */
        fit_remove_drift(f);
        fit_weigh(f);
        rc = solve_stages(f, e);
    }
    if (rc == 0) {
        predict_all(f);
        fit_lack_of_fit(f);
        fit_intervals(f);
        fit_judge(f);
    }
    free(f->points);
    free(f->covariance);
    return rc;
}

const struct kernel_estimate *kernel_fit_find(const struct kernel_fit *fit, enum kernel_param p,
                                              const char *device, uint32_t weight_bits)
{
    for (uint32_t i = 0; i < fit->n_params; i++) {
        const struct kernel_estimate *q = &fit->params[i];
        if (q->param == p && strcmp(q->device, device) == 0 && q->weight_bits == weight_bits) {
            return q;
        }
    }
    return NULL;
}
