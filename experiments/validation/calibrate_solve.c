/* The minimisation: GSL's nonlinear least squares inside a loop that updates the scale of errors.
 */
#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

#include "experiments/validation/calibrate_impl.h"
#include "sim/base/scope_gsl.h"

#define CAUCHY_TUNING 2.385 /* 95 % efficiency under normal errors (Holland and Welsch 1977) */
#define SIGMA_MIN 0.01      /* smaller residuals are rounding of published tables */
#define MAX_ROUNDS 50
#define SIGMA_TOLERANCE 1e-6 /* of its logarithm, between rounds */
#define MAX_STEPS 200
#define STEP 1e-4 /* of finite differences */

struct soc_runtime calibrate_start(const struct soc_runtime *r)
{
    struct soc_runtime b = *r;
    if (r->start.given) {
        b.many.flop_per_s = b.one.flop_per_s = r->start.flop_per_s;
        b.many.bytes_per_s = r->start.bytes_per_s;
        b.many.launch_s = r->start.launch_s;
        b.one.bytes_per_s = r->start.one_bytes_per_s;
        b.one.launch_s = r->start.one_launch_s;
        b.enqueue_s = r->start.enqueue_s;
        b.prompt_enqueue_s = r->start.prompt_enqueue_s;
        b.special_attention_frac = r->start.special_attention_frac;
        b.fill_rows = r->start.fill_rows;
        b.attention_frac = r->start.attention_frac;
        b.width_fill = r->start.width_fill;
    }
    return b;
}

static double ln_error(const struct calibrate_row *row, struct roofline *model,
                       const struct soc_runtime *params, double ln_rate, double ln_bandwidth)
{
    struct soc_runtime r = *params;
    double rate = row->rate_scale * exp(ln_rate);
    double bandwidth = row->bandwidth_scale * exp(ln_bandwidth);
    r.many.flop_per_s *= rate;
    r.one.flop_per_s *= rate;
    r.many.bytes_per_s *= bandwidth;
    r.one.bytes_per_s *= bandwidth;
    return log(predict_smooth_s(model, &row->k, row->point, &r) / row->seconds);
}

double calibrate_error(const struct calibrate_row *row, const struct soc_runtime *params)
{
    struct roofline model;
    predict_model(&row->k, &model);
    return ln_error(row, &model, params, 0.0, 0.0);
}

double calibrate_start_error(const struct calibrate_set *s, const struct calibrate_row *row)
{
    struct soc_runtime start = calibrate_start(&s->soc->devices[s->device].runtimes[s->runtime]);
    return calibrate_error(row, &start);
}

static double row_error(const struct calibrate_problem *p, const gsl_vector *u,
                        const struct soc_runtime *r, size_t i)
{
    const struct calibrate_row *row = &p->set->rows[i];
    return ln_error(row, &p->models[i], r, calibrate_offset_at(&p->space, u, row->group, 0),
                    calibrate_offset_at(&p->space, u, row->group, 1));
}

/* Its square is Cauchy's loss. */
static double cauchy(double z)
{
    double x = z / CAUCHY_TUNING;
    return copysign(CAUCHY_TUNING * sqrt(log1p(x * x)), z);
}

static int residuals(const gsl_vector *u, void *data, gsl_vector *f)
{
    const struct calibrate_problem *p = data;
    const struct calibrate_space *s = &p->space;
    struct soc_runtime r = calibrate_params_at(s, &p->base, u);
    size_t at = 0;
    for (size_t i = 0; i < p->set->n; i++) {
        const struct calibrate_row *row = &p->set->rows[i];
        if (!row->left_out) {
            gsl_vector_set(f, at++, cauchy(row_error(p, u, &r, i) / p->sigma));
        }
    }
    for (int i = 0; i < s->n; i++) {
        double away = calibrate_v_at(s, u, i) - s->start[s->index[i]];
        gsl_vector_set(f, at++, away / CALIBRATE_PRIOR_SD);
    }
    for (size_t i = (size_t)s->n; i < u->size; i++) {
        gsl_vector_set(f, at++, gsl_vector_get(u, i));
    }
    SIM_ASSERT(at == f->size);
    return GSL_SUCCESS;
}

/* Errors of all rows, and the robust standard deviation of those used. */
static void renew_sigma(struct calibrate_problem *p, const gsl_vector *u)
{
    struct soc_runtime r = calibrate_params_at(&p->space, &p->base, u);
    OWNED double *size = xmalloc(p->n_rows * sizeof *size);
    size_t at = 0;
    for (size_t i = 0; i < p->set->n; i++) {
        struct calibrate_row *row = &p->set->rows[i];
        row->ln_error = row_error(p, u, &r, i);
        if (!row->left_out) {
            size[at++] = fabs(row->ln_error);
        }
    }
    SIM_ASSERT(at == p->n_rows);
    gsl_sort(size, 1, at);
    p->sigma = fmax(SIGMA_MIN, gsl_stats_median_from_sorted_data(size, 1, at) / 0.6745);
}

void calibrate_solver_init(struct calibrate_solver *v, const struct calibrate_problem *p)
{
    gsl_multifit_nlinear_parameters options = gsl_multifit_nlinear_default_parameters();
    options.h_df = STEP;
    options.fdtype = GSL_MULTIFIT_NLINEAR_CTRDIFF;
    size_t n = calibrate_space_size(&p->space);
    v->w = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &options, p->n_rows + n, n);
    v->u = gsl_vector_calloc(n);
    for (int i = 0; i < p->space.n; i++) {
        int k = p->space.index[i];
        gsl_vector_set(v->u, (size_t)i, calibrate_u_at(&p->space, k, p->at[k]));
    }
    for (size_t i = (size_t)p->space.n; i < n; i++) {
        gsl_vector_set(v->u, i, p->offset_at[i - (size_t)p->space.n]);
    }
}

void calibrate_solver_keep(const struct calibrate_solver *v, struct calibrate_problem *p)
{
    const struct calibrate_space *s = &p->space;
    for (int i = 0; i < s->n; i++) { /* slightly inside: the transform never reaches its ends */
        int k = s->index[i];
        double margin = 1e-3 * (s->high[k] - s->low[k]);
        double x = calibrate_v_at(s, v->u, i);
        p->at[k] = fmin(fmax(x, s->low[k] + margin), s->high[k] - margin);
        SIM_ASSERT(s->low[k] < p->at[k] && p->at[k] < s->high[k]);
    }
    for (size_t i = (size_t)s->n; i < v->u->size; i++) {
        p->offset_at[i - (size_t)s->n] = gsl_vector_get(v->u, i);
    }
}

void calibrate_solver_fini(struct calibrate_solver *v)
{
    gsl_vector_free(v->u);
    gsl_multifit_nlinear_free(v->w);
}

int calibrate_minimise(struct calibrate_problem *p, struct calibrate_solver *v)
{
    size_t n = calibrate_space_size(&p->space);
    gsl_multifit_nlinear_fdf fdf = {.f = residuals, .n = p->n_rows + n, .p = n, .params = p};
    int info = 0;
    int rc = gsl_multifit_nlinear_init(v->u, &fdf, v->w);
    if (rc == GSL_SUCCESS) {
        rc = gsl_multifit_nlinear_driver(MAX_STEPS, 1e-8, 1e-8, 0.0, NULL, NULL, &info, v->w);
    }
    gsl_vector_memcpy(v->u, gsl_multifit_nlinear_position(v->w));
    return rc == GSL_SUCCESS || rc == GSL_EMAXITER || rc == GSL_ENOPROG ? 0 : -EINVAL;
}

int calibrate_settle(struct calibrate_problem *p, struct calibrate_solver *v)
{
    int rc = 0;
    double moved = 1.0;
    for (uint32_t round = 0; rc == 0 && moved > SIGMA_TOLERANCE && round < MAX_ROUNDS; round++) {
        double last = p->sigma;
        rc = calibrate_minimise(p, v);
        p->rounds++;
        if (rc == 0) {
            renew_sigma(p, v->u);
        }
        moved = fabs(log(p->sigma / last));
    }
    return rc;
}

double calibrate_objective(const struct calibrate_solver *v)
{
    double norm = gsl_blas_dnrm2(gsl_multifit_nlinear_residual(v->w));
    return norm * norm;
}
