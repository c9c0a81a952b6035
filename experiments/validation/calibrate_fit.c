/* The minimisation: GSL's nonlinear least squares inside a loop that renews robust weights. */
#include <errno.h>
#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/validation/calibrate.h"
#include "sim/base/arena.h"

#define PRIOR_SD 1.0        /* of ln(parameter) around the file's value */
#define DETERMINED_SD 0.5   /* a parameter the points fix to better than a factor of 1.65 */
#define CAUCHY_TUNING 2.385 /* 95 % efficiency under normal errors (Holland and Welsch 1977) */
#define SIGMA_MIN 0.01      /* residuals below 1 % are not told from rounding in published tables */
#define SIGMA_START 0.1
#define MAX_ROUNDS 50
#define ROUND_TOLERANCE 1e-6 /* of v, between rounds */
#define MAX_STEPS 200
#define STEP 1e-4    /* of finite differences: kernel times are whole nanoseconds */
#define MIN_POINTS 4 /* two for each of rate and bandwidth; the prior holds the others */
#define MIN_MODELS 2
#define MIN_POINTS_LEFT 2
/* Measured faster than DDR's peak allows by more than table rounding and what the assumed bytes per
 * weight may be off: such a row belongs to another machine or is a mistake. */
#define IMPOSSIBLE_RATIO 1.5

const char *const calibrate_param_names[CALIBRATE_N_PARAMS] = {
    "rate",       "bandwidth",         "launch",         "row_fill", "attention",
    "width_fill", "one_row.bandwidth", "one_row.launch",
};

/* Parameter k in terms of v: exp(v), or `offset` (exp(v) - 1) for those that may be 0. */
struct space {
    double low[CALIBRATE_N_PARAMS], high[CALIBRATE_N_PARAMS]; /* of v */
    double start[CALIBRATE_N_PARAMS];                         /* of v: the file's values */
    double offset[CALIBRATE_N_PARAMS];                        /* 0: v is ln x */
    int index[CALIBRATE_N_PARAMS];                            /* parameter of each free one */
    int n;
};

struct problem {
    struct calibrate_set *set;
    const struct space *space;
    struct soc_runtime base;
    double sigma;
    size_t n_rows; /* not left out */
};

static double v_of(double x, double offset)
{
    return offset > 0.0 ? log1p(x / offset) : log(x);
}

static double x_of(double v, double offset)
{
    return offset > 0.0 ? offset * expm1(v) : exp(v);
}

static void bound(struct space *s, int k, double x, double low, double high, double offset)
{
    s->offset[k] = offset;
    s->low[k] = v_of(low, offset);
    s->high[k] = v_of(high, offset);
    double margin = 1e-3 * (s->high[k] - s->low[k]); /* the transform never reaches its ends */
    s->start[k] = fmin(fmax(v_of(x, offset), s->low[k] + margin), s->high[k] - margin);
    s->index[s->n++] = k;
}

/* The entry as it was before it was ever fitted. */
struct soc_runtime calibrate_start(const struct soc_runtime *r)
{
    struct soc_runtime b = *r;
    if (r->start.given) {
        b.many.flop_per_s = b.one.flop_per_s = r->start.flop_per_s;
        b.many.bytes_per_s = r->start.bytes_per_s;
        b.many.launch_s = r->start.launch_s;
        b.one.bytes_per_s = r->start.one_bytes_per_s;
        b.one.launch_s = r->start.one_launch_s;
        b.fill_rows = r->start.fill_rows;
        b.attention_frac = r->start.attention_frac;
        b.width_fill = r->start.width_fill;
    }
    return b;
}

/* Physical bounds: at most the datasheet's rate and the DDR's peak, at least a thousandth. */
static void space_fill(const struct calibrate_set *set, const struct soc_runtime *r,
                       struct space *s)
{
    memset(s, 0, sizeof *s);
    double peak = set->soc->devices[set->device].peak_flop_per_s;
    double ddr = set->soc->machine.ddr_peak_bytes_per_s;
    bound(s, CALIBRATE_RATE, r->many.flop_per_s, 1e-3 * peak, peak, 0.0);
    bound(s, CALIBRATE_BANDWIDTH, r->many.bytes_per_s, 1e-3 * ddr, ddr, 0.0);
    bound(s, CALIBRATE_LAUNCH, r->many.launch_s, 0.0, 10e-3, 1e-6);
    bound(s, CALIBRATE_FILL, r->fill_rows, 0.0, 2000.0, 1.0);
    bound(s, CALIBRATE_ATTENTION, r->attention_frac, 5e-3, 4.0, 0.0);
    if (r->width_fill_own) {
        bound(s, CALIBRATE_WIDTH, r->width_fill, 0.0, 50000.0, 100.0);
    }
    if (r->one_row_own) {
        bound(s, CALIBRATE_ONE_BANDWIDTH, r->one.bytes_per_s, 1e-3 * ddr, ddr, 0.0);
        bound(s, CALIBRATE_ONE_LAUNCH, r->one.launch_s, 0.0, 10e-3, 1e-6);
    }
}

static double v_at(const struct space *s, const gsl_vector *u, int i)
{
    int k = s->index[i];
    return s->low[k] + (s->high[k] - s->low[k]) / (1.0 + exp(-gsl_vector_get(u, (size_t)i)));
}

static double u_at(const struct space *s, int k, double v)
{
    double t = (v - s->low[k]) / (s->high[k] - s->low[k]);
    return log(t / (1.0 - t));
}

static void set_param(struct soc_runtime *r, int k, double x)
{
    switch ((enum calibrate_param)k) {
    case CALIBRATE_RATE:
        r->many.flop_per_s = x;
        r->one.flop_per_s = x;
        break;
    case CALIBRATE_BANDWIDTH:
        r->many.bytes_per_s = x;
        break;
    case CALIBRATE_LAUNCH:
        r->many.launch_s = x;
        break;
    case CALIBRATE_FILL:
        r->fill_rows = x;
        break;
    case CALIBRATE_ATTENTION:
        r->attention_frac = x;
        break;
    case CALIBRATE_WIDTH:
        r->width_fill = x;
        break;
    case CALIBRATE_ONE_BANDWIDTH:
        r->one.bytes_per_s = x;
        break;
    case CALIBRATE_ONE_LAUNCH:
        r->one.launch_s = x;
        break;
    case CALIBRATE_N_PARAMS:
        break;
    }
}

static struct soc_runtime params_at(const struct problem *p, const gsl_vector *u)
{
    struct soc_runtime r = p->base;
    for (int i = 0; i < p->space->n; i++) {
        int k = p->space->index[i];
        set_param(&r, k, x_of(v_at(p->space, u, i), p->space->offset[k]));
    }
    if (!r.one_row_own) {
        r.one = r.many;
    }
    return r;
}

static double ln_error(const struct calibrate_row *row, const struct soc_runtime *params)
{
    struct soc_runtime r = *params;
    r.many.flop_per_s *= row->rate_scale;
    r.one.flop_per_s *= row->rate_scale;
    r.many.bytes_per_s *= row->bandwidth_scale;
    r.one.bytes_per_s *= row->bandwidth_scale;
    return log(predict_price(&row->k, row->point, &r).seconds / row->seconds);
}

double calibrate_start_error(const struct calibrate_set *s, const struct calibrate_row *row)
{
    struct soc_runtime start = calibrate_start(&s->soc->devices[s->device].runtimes[s->runtime]);
    return ln_error(row, &start);
}

static int residuals(const gsl_vector *u, void *data, gsl_vector *f)
{
    const struct problem *p = data;
    struct soc_runtime r = params_at(p, u);
    size_t at = 0;
    for (size_t i = 0; i < p->set->n; i++) {
        const struct calibrate_row *row = &p->set->rows[i];
        if (!row->left_out) {
            gsl_vector_set(f, at++, sqrt(row->weight) * ln_error(row, &r) / p->sigma);
        }
    }
    for (int i = 0; i < p->space->n; i++) {
        double away = v_at(p->space, u, i) - p->space->start[p->space->index[i]];
        gsl_vector_set(f, at++, away / PRIOR_SD);
    }
    return GSL_SUCCESS;
}

/* Robust standard deviation of the rows used, and their Cauchy weights. */
static void weigh(struct problem *p, const struct soc_runtime *r)
{
    double *size = xmalloc(p->n_rows * sizeof *size);
    size_t at = 0;
    for (size_t i = 0; i < p->set->n; i++) {
        struct calibrate_row *row = &p->set->rows[i];
        row->ln_error = ln_error(row, r);
        if (!row->left_out) {
            size[at++] = fabs(row->ln_error);
        }
    }
    gsl_sort(size, 1, at);
    p->sigma = fmax(SIGMA_MIN, gsl_stats_median_from_sorted_data(size, 1, at) / 0.6745);
    free(size);
    for (size_t i = 0; i < p->set->n; i++) {
        struct calibrate_row *row = &p->set->rows[i];
        double z = row->ln_error / (CAUCHY_TUNING * p->sigma);
        row->weight = 1.0 / (1.0 + z * z);
    }
}

static size_t count_models(const struct calibrate_set *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        bool seen = s->rows[i].left_out;
        for (size_t j = 0; j < i && !seen; j++) {
            seen =
                !s->rows[j].left_out && strcmp(s->rows[i].k.llm.name, s->rows[j].k.llm.name) == 0;
        }
        n += !seen;
    }
    return n;
}

static int check(const struct calibrate_set *s, size_t n_used, size_t n_models, struct err *e)
{
    size_t before = e->n;
    const struct soc_runtime *r = &s->soc->devices[s->device].runtimes[s->runtime];
    bool leaving = false; /* what is left of two models is one: the start values hold the rest */
    for (size_t i = 0; i < s->n; i++) {
        leaving = leaving || s->rows[i].left_out;
    }
    if (n_used < (leaving ? MIN_POINTS_LEFT : MIN_POINTS) ||
        n_models < (leaving ? 1 : MIN_MODELS)) {
        return err_add(e,
                       "%s %s %s, %u bits: %zu points of %zu models; a fit needs at least %d "
                       "points of %d models",
                       s->soc->machine.name, s->soc->machine.devices[s->device].name, r->runtime,
                       r->weight_bits, n_used, n_models, MIN_POINTS, MIN_MODELS);
    }
    for (size_t i = 0; i < s->n; i++) {
        const struct calibrate_row *row = &s->rows[i];
        double bytes = predict_price(&row->k, row->point, NULL).bytes;
        double peak = row->k.soc->machine.ddr_peak_bytes_per_s;
        if (bytes / row->seconds > IMPOSSIBLE_RATIO * peak) {
            err_add(e,
                    "line %llu: %s in %g s needs %.3g GB/s; %s has %.3g: impossible, or of another "
                    "machine",
                    (unsigned long long)row->point->line, row->point->model, row->seconds,
                    bytes / row->seconds / 1e9, row->k.soc->machine.name, peak / 1e9);
        }
    }
    return e->n == before ? 0 : -EINVAL;
}

/* One weighted fit from u, which receives the minimum. The solver's J is left for the covariance.
 */
static int minimise(struct problem *p, gsl_multifit_nlinear_workspace *w, gsl_vector *u)
{
    gsl_multifit_nlinear_fdf fdf = {.f = residuals,
                                    .n = p->n_rows + (size_t)p->space->n,
                                    .p = (size_t)p->space->n,
                                    .params = p};
    int info = 0;
    int rc = gsl_multifit_nlinear_init(u, &fdf, w);
    if (rc == GSL_SUCCESS) {
        rc = gsl_multifit_nlinear_driver(MAX_STEPS, 1e-8, 1e-8, 0.0, NULL, NULL, &info, w);
    }
    gsl_vector_memcpy(u, gsl_multifit_nlinear_position(w));
    return rc == GSL_SUCCESS || rc == GSL_EMAXITER || rc == GSL_ENOPROG ? 0 : -EINVAL;
}

/* Covariance of v from that of u, and what it says of each parameter. */
static void judge(const struct problem *p, const gsl_multifit_nlinear_workspace *w,
                  const gsl_vector *u, struct calibrate_fit *out)
{
    const struct space *s = p->space;
    size_t n = (size_t)s->n;
    gsl_matrix *cov = gsl_matrix_alloc(n, n);
    (void)gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac((gsl_multifit_nlinear_workspace *)w),
                                     0.0, cov);
    for (int i = 0; i < s->n; i++) {
        for (int j = 0; j < s->n; j++) {
            double slope = 1.0;
            for (int m = 0; m < 2; m++) {
                int q = m == 0 ? i : j;
                int k = s->index[q];
                double t = (v_at(s, u, q) - s->low[k]) / (s->high[k] - s->low[k]);
                slope *= (s->high[k] - s->low[k]) * t * (1.0 - t);
            }
            out->covariance[s->index[i]][s->index[j]] =
                slope * gsl_matrix_get(cov, (size_t)i, (size_t)j);
        }
    }
    gsl_matrix_free(cov);
    for (int i = 0; i < s->n; i++) {
        int k = s->index[i];
        double sd = sqrt(out->covariance[k][k]);
        double v = v_at(s, u, i);
        out->free[k] = true;
        out->determined[k] = sd < DETERMINED_SD;
        out->value[k] = x_of(v, s->offset[k]);
        if (s->offset[k] > 0.0 && out->value[k] < 1e-3 * s->offset[k]) {
            out->value[k] = 0.0; /* the transform only nears its bound */
        }
        out->se[k] = sd * (out->value[k] + s->offset[k]); /* dx/dv = x + offset */
    }
}

static int refuse_singular(const struct calibrate_set *s, const struct calibrate_fit *fit,
                           struct err *e)
{
    const struct soc_runtime *r = &s->soc->devices[s->device].runtimes[s->runtime];
    size_t before = e->n;
    for (int k = CALIBRATE_RATE; k <= CALIBRATE_BANDWIDTH; k++) {
        if (!fit->determined[k] || !isfinite(fit->se[k])) {
            err_add(e,
                    "%s %s %s, %u bits: singular: these points do not determine the %s; they need "
                    "%s",
                    s->soc->machine.name, s->soc->machine.devices[s->device].name, r->runtime,
                    r->weight_bits, calibrate_param_names[k],
                    k == CALIBRATE_RATE ? "long prompts" : "decode times");
        }
    }
    return e->n == before ? 0 : -EINVAL;
}

int calibrate_fit(struct calibrate_set *s, struct calibrate_fit *out, struct err *e)
{
    memset(out, 0, sizeof *out);
    size_t n_used = 0;
    for (size_t i = 0; i < s->n; i++) {
        n_used += !s->rows[i].left_out;
        s->rows[i].weight = 1.0;
    }
    out->n_used = n_used;
    out->n_models = count_models(s);
    if (check(s, n_used, out->n_models, e) != 0) {
        return -EINVAL;
    }
    struct space space;
    struct problem p = {.set = s,
                        .space = &space,
                        .base = calibrate_start(&s->soc->devices[s->device].runtimes[s->runtime]),
                        .sigma = SIGMA_START,
                        .n_rows = n_used};
    space_fill(s, &p.base, &space);
    gsl_multifit_nlinear_parameters options = gsl_multifit_nlinear_default_parameters();
    options.h_df = STEP;
    options.fdtype = GSL_MULTIFIT_NLINEAR_CTRDIFF;
    gsl_multifit_nlinear_workspace *w = gsl_multifit_nlinear_alloc(
        gsl_multifit_nlinear_trust, &options, n_used + (size_t)space.n, (size_t)space.n);
    gsl_vector *u = gsl_vector_alloc((size_t)space.n);
    gsl_vector *last = gsl_vector_alloc((size_t)space.n);
    for (int i = 0; i < space.n; i++) {
        gsl_vector_set(u, (size_t)i, u_at(&space, space.index[i], space.start[space.index[i]]));
    }
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    int rc = 0;
    for (double moved = 1.0; rc == 0 && moved > ROUND_TOLERANCE && out->rounds < MAX_ROUNDS;) {
        gsl_vector_memcpy(last, u);
        rc = minimise(&p, w, u);
        out->params = params_at(&p, u);
        out->rounds++;
        gsl_vector_sub(last, u);
        moved = gsl_blas_dnrm2(last);
        if (rc == 0 && moved > ROUND_TOLERANCE) {
            weigh(&p, &out->params);
        }
    }
    (void)gsl_set_error_handler(handler);
    if (rc == 0) {
        judge(&p, w, u, out);
        out->sigma = p.sigma;
        rc = refuse_singular(s, out, e);
    } else {
        rc = err_add(e, "%s: the fit does not converge", s->soc->machine.name);
    }
    gsl_vector_free(u);
    gsl_vector_free(last);
    gsl_multifit_nlinear_free(w);
    return rc;
}
