#include "experiments/validation/update.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>

#include "experiments/validation/calibrate_report.h"
#include "sim/base/json.h"
#include "sim/base/scope_gsl.h"

#define RANGE_SD (2.0 * 1.959964) /* width of a range of 95 %, in standard deviations */
#define STEP 1e-4                 /* of finite differences */
#define JITTER 1e-9               /* share of a variance; keeps fully correlated entries regular */
#define MAX_STEPS 200
/* At most this share of a transfer's variance is that of models, because both are estimates. With
 * 0.25 or 0.75, medians of left-out iGPUs move by up to 0.3 points, and of NPU prompts by 1.2. */
#define MODELS_SHARE 0.5

/* ---- prior ---- */

static enum conformal_phase phase_of_param(int k)
{
    switch (k) {
    case CALIBRATE_BANDWIDTH:
    case CALIBRATE_ONE_BANDWIDTH:
        return CONFORMAL_DECODE;
    case CALIBRATE_LAUNCH:
    case CALIBRATE_ONE_LAUNCH:
    case CALIBRATE_ENQUEUE:
    case CALIBRATE_FILL:
        return CONFORMAL_SHORT_PREFILL;
    default:
        return CONFORMAL_PREFILL;
    }
}

/* Share of the variance that is common to the entries of a device. */
static double correlation(const struct update *u, int k)
{
    const struct spread *s = &u->spread[0][phase_of_param(k)];
    double machine = s->machine_sd * s->machine_sd;
    double all = machine + s->width_sd * s->width_sd;
    return all > 0.0 ? machine / all : 0.0;
}

/* Standard deviation of a number by the wider side of its range, because a limit of the data sheet
 * may cut the other side. The range of a copy is the error of transfers, in which models err, too.
 * Their part is removed, because predictions and rows have it of their own (tail_sd, noise). */
static double prior_sd(const struct update *u, const cJSON *entry, int k)
{
    const char *bad;
    const cJSON *q = json_find_path((cJSON *)(uintptr_t)entry, calibrate_param_names[k], &bad);
    if (q == NULL) {
        return 0.0;
    }
    double offset = calibrate_offsets[k] / calibrate_file_unit[k];
    double v = calibrate_v_of(json_number(q, "value"), offset);
    double low = json_number(q, "low");
    double below = low + offset > 0.0 ? v - calibrate_v_of(low, offset) : 0.0;
    double above = calibrate_v_of(json_number(q, "high"), offset) - v;
    double sd = fmax(below, above) * 2.0 / RANGE_SD;
    double models = u->soc->like[0] != '\0' ? u->spread[0][phase_of_param(k)].tail_sd : 0.0;
    return sqrt(sd * sd - fmin(models * models, MODELS_SHARE * sd * sd));
}

void update_init(struct update *u, const struct soc *soc, const cJSON *tree, uint8_t device,
                 const struct conformal *table)
{
    const struct soc_device *d = &soc->devices[device];
    enum device_kind kind = soc->machine.devices[device].kind;
    *u = (struct update){.soc = soc, .device = device};
    enum transfer_kin kin =
        transfer_kin_of(table, soc->like, soc->family[0] != '\0' ? soc->family : soc->machine.name);
    for (int i = 0; i < 2 * UPDATE_PHASES; i++) {
        enum conformal_phase phase = (enum conformal_phase)(i / 2);
        u->spread[i % 2][phase] = spread_of(table, kind, phase, i % 2 == 1, kin, NULL);
    }
    size_t most = (size_t)d->n_runtimes * CALIBRATE_N_PARAMS;
    OWNED double *sd = xmalloc((most + 1) * sizeof *sd);
    u->params = xmalloc((most + 1) * sizeof *u->params);
    const cJSON *entries =
        json_member(cJSON_GetArrayItem(json_member(tree, "devices"), device), "runtimes");
    for (uint32_t r = 0; r < d->n_runtimes; r++) {
        for (int k = 0; k < CALIBRATE_N_PARAMS; k++) {
            sd[u->n] = prior_sd(u, cJSON_GetArrayItem(entries, (int)r), k);
            if (sd[u->n] > 0.0) {
                u->params[u->n++] = (struct update_param){r, k};
            }
        }
    }
    if (u->n == 0) {
        return;
    }
    u->mean = gsl_vector_alloc(u->n);
    u->covariance = gsl_matrix_calloc(u->n, u->n);
    for (size_t i = 0; i < u->n; i++) {
        const struct update_param *a = &u->params[i];
        double x = calibrate_param_get(&d->runtimes[a->runtime], a->k);
        gsl_vector_set(u->mean, i, calibrate_v_of(x, calibrate_offsets[a->k]));
        for (size_t j = 0; j < u->n; j++) {
            double rho = i == j                   ? 1.0 + JITTER
                         : u->params[j].k == a->k ? correlation(u, a->k)
                                                  : 0.0;
            double shared = fmin(sd[i], sd[j]);
            gsl_matrix_set(u->covariance, i, j, rho * shared * shared);
        }
    }
    for (size_t i = 0; i < u->n; i++) {
        SIM_ASSERT(gsl_matrix_get(u->covariance, i, i) >= sd[i] * sd[i]);
        SIM_ASSERT(fabs(gsl_matrix_get(u->covariance, i, 0) -
                        gsl_matrix_get(u->covariance, 0, i)) <= 1e-12 * sd[i] * sd[0]);
    }
}

void update_fini(struct update *u)
{
    free(u->params);
    if (u->mean != NULL) {
        gsl_vector_free(u->mean);
        gsl_matrix_free(u->covariance);
    }
    *u = (struct update){0};
}

static bool same_number(const struct update *a, size_t i, const struct update *b, size_t j)
{
    const struct soc_runtime *x = &a->soc->devices[a->device].runtimes[a->params[i].runtime];
    const struct soc_runtime *y = &b->soc->devices[b->device].runtimes[b->params[j].runtime];
    return a->params[i].k == b->params[j].k && x->weight_bits == y->weight_bits &&
           strcmp(x->runtime, y->runtime) == 0;
}

void update_average(struct update *u, const struct update *other, const double *weight, size_t n)
{
    double all = 1.0;
    double squares = 1.0;
    for (size_t k = 0; k < n; k++) {
        all += weight[k];
        squares += weight[k] * weight[k];
    }
    for (size_t i = 0; i < u->n; i++) {
        double sum = gsl_vector_get(u->mean, i);
        double weights = 1.0;
        for (size_t k = 0; k < n; k++) {
            for (size_t j = 0; j < other[k].n; j++) {
                if (same_number(u, i, &other[k], j)) {
                    sum += weight[k] * gsl_vector_get(other[k].mean, j);
                    weights += weight[k];
                }
            }
        }
        gsl_vector_set(u->mean, i, sum / weights);
    }
    if (u->n > 0) {
        (void)gsl_matrix_scale(u->covariance, 0.5 + 0.5 * squares / (all * all));
    }
}

/* ---- the model ---- */

static void set_param(const struct update *u, struct soc_runtime *r, int k, double v)
{
    double x = fmax(0.0, calibrate_x_of(v, calibrate_offsets[k]));
    if (k == CALIBRATE_BANDWIDTH || k == CALIBRATE_ONE_BANDWIDTH) {
        x = fmin(x, u->soc->machine.ddr_peak_bytes_per_s);
    }
    calibrate_param_set(r, k, x);
}

static struct soc_runtime entry_at(const struct update *u, const gsl_vector *x, uint32_t runtime)
{
    struct soc_runtime r = u->soc->devices[u->device].runtimes[runtime];
    for (size_t i = 0; i < u->n; i++) {
        if (u->params[i].runtime == runtime) {
            set_param(u, &r, u->params[i].k, gsl_vector_get(x, i));
        }
    }
    if (!r.one_row_own) {
        r.one = r.many;
    }
    return r;
}

struct soc_runtime update_entry(const struct update *u, uint32_t runtime)
{
    return entry_at(u, u->mean, runtime);
}

static double ln_seconds(const struct update *u, const struct update_row *row, const gsl_vector *x)
{
    struct soc_runtime r = entry_at(u, x, row->k.runtime);
    struct roofline model;
    predict_model(&row->k, &model);
    return log(predict_smooth_s(&model, &row->k, row->point, &r));
}

/* d ln seconds / d x by central differences. Numbers of other entries have 0. */
static void gradient(const struct update *u, const struct update_row *row, const gsl_vector *x,
                     gsl_vector *out)
{
    SCOPED(vector_drop) gsl_vector *at = gsl_vector_alloc(x->size);
    gsl_vector_memcpy(at, x);
    gsl_vector_set_zero(out);
    for (size_t i = 0; i < u->n; i++) {
        if (u->params[i].runtime == row->k.runtime) {
            double v = gsl_vector_get(x, i);
            gsl_vector_set(at, i, v + STEP);
            double above = ln_seconds(u, row, at);
            gsl_vector_set(at, i, v - STEP);
            gsl_vector_set(out, i, (above - ln_seconds(u, row, at)) / (2.0 * STEP));
            gsl_vector_set(at, i, v);
        }
    }
}

void update_gradient(const struct update *u, const struct update_row *row, gsl_vector *out)
{
    gradient(u, row, u->mean, out);
}

/* ---- noise ---- */

bool update_is_small(const struct llm *m)
{
    return m->body_weights + m->head_weights < SPREAD_SMALL_WEIGHTS;
}

static const struct spread *spread_of_row(const struct update *u, const struct update_row *row)
{
    const struct point *p = row->point;
    return &u->spread[update_is_small(&row->k.llm)]
                     [conformal_phase_of(point_is_prefill(p), p->input_tokens)];
}

static double noise(const struct update *u, const struct update_row *a, const struct update_row *b)
{
    const struct spread *s = spread_of_row(u, a);
    bool shared = s == spread_of_row(u, b) && strcmp(a->k.llm.name, b->k.llm.name) == 0;
    double own = a == b ? s->row_sd * s->row_sd : 0.0;
    return own + (shared ? s->model_sd * s->model_sd : 0.0);
}

gsl_matrix *update_noise(const struct update *u, const struct update_row *rows, size_t n)
{
    gsl_matrix *r = gsl_matrix_alloc(n, n);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            gsl_matrix_set(r, i, j, noise(u, &rows[i], &rows[j]));
        }
    }
    return r;
}

/* ---- the mode ---- */

/* The state is x = mean + L z with standard normal z. Residuals are the whitened rows, then z. */
struct mode {
    const struct update *u;
    const struct update_row *rows;
    size_t n;
    gsl_matrix *l; /* Cholesky factor L of the prior */
    gsl_matrix *r; /* Cholesky factor of the noise */
    gsl_multifit_nlinear_fdf fdf;
    gsl_multifit_nlinear_workspace *w;
};

static void state_at(const struct mode *m, const gsl_vector *z, gsl_vector *x)
{
    gsl_vector_memcpy(x, z);
    gsl_blas_dtrmv(CblasLower, CblasNoTrans, CblasNonUnit, m->l, x);
    gsl_vector_add(x, m->u->mean);
}

static int residuals(const gsl_vector *z, void *data, gsl_vector *f)
{
    const struct mode *m = data;
    SCOPED(vector_drop) gsl_vector *x = gsl_vector_alloc(z->size);
    state_at(m, z, x);
    for (size_t i = 0; i < m->n; i++) {
        double measured = log(point_pass_seconds(m->rows[i].point));
        gsl_vector_set(f, i, ln_seconds(m->u, &m->rows[i], x) - measured);
    }
    gsl_vector_view first = gsl_vector_subvector(f, 0, m->n);
    gsl_blas_dtrsv(CblasLower, CblasNoTrans, CblasNonUnit, m->r, &first.vector);
    gsl_vector_view rest = gsl_vector_subvector(f, m->n, z->size);
    gsl_vector_memcpy(&rest.vector, z);
    return GSL_SUCCESS;
}

static int jacobian(const gsl_vector *z, void *data, gsl_matrix *j)
{
    const struct mode *m = data;
    SCOPED(vector_drop) gsl_vector *x = gsl_vector_alloc(z->size);
    SCOPED(vector_drop) gsl_vector *g = gsl_vector_alloc(z->size);
    state_at(m, z, x);
    gsl_matrix_set_zero(j);
    for (size_t i = 0; i < m->n; i++) {
        gradient(m->u, &m->rows[i], x, g);
        gsl_blas_dtrmv(CblasLower, CblasTrans, CblasNonUnit, m->l, g);
        gsl_matrix_set_row(j, i, g);
    }
    gsl_matrix_view first = gsl_matrix_submatrix(j, 0, 0, m->n, z->size);
    gsl_blas_dtrsm(CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, 1.0, m->r, &first.matrix);
    for (size_t i = 0; i < z->size; i++) {
        gsl_matrix_set(j, m->n + i, i, 1.0);
    }
    return GSL_SUCCESS;
}

/* Keeps the mean at the mode, and the covariance L (J'J)^-1 L'. */
static void keep(struct update *u, const struct mode *m)
{
    size_t n = u->n;
    SCOPED(vector_drop) gsl_vector *x = gsl_vector_alloc(n);
    SCOPED(matrix_drop) gsl_matrix *c = gsl_matrix_alloc(n, n);
    state_at(m, gsl_multifit_nlinear_position(m->w), x);
    gsl_vector_memcpy(u->mean, x);
    (void)gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(m->w), 0.0, c);
    gsl_blas_dtrmm(CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, 1.0, m->l, c);
    gsl_blas_dtrmm(CblasRight, CblasLower, CblasTrans, CblasNonUnit, 1.0, m->l, c);
    gsl_matrix_memcpy(u->covariance, c);
}

static void mode_init(struct mode *m, const struct update *u, const struct update_row *rows,
                      size_t n)
{
    gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    *m = (struct mode){.u = u, .rows = rows, .n = n, .r = update_noise(u, rows, n)};
    m->l = gsl_matrix_alloc(u->n, u->n);
    gsl_matrix_memcpy(m->l, u->covariance);
    gsl_linalg_cholesky_decomp1(m->l);
    gsl_linalg_cholesky_decomp1(m->r);
    m->fdf = (gsl_multifit_nlinear_fdf){
        .f = residuals, .df = jacobian, .n = n + u->n, .p = u->n, .params = m};
    m->w = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how, n + u->n, u->n);
}

static void mode_fini(struct mode *m)
{
    gsl_multifit_nlinear_free(m->w);
    gsl_matrix_free(m->l);
    gsl_matrix_free(m->r);
}

/* Returns GSL_SUCCESS, or the reason why there is none. */
static int mode_find(struct mode *m)
{
    SCOPED(vector_drop) gsl_vector *z = gsl_vector_calloc(m->u->n);
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    int info = 0;
    int rc = gsl_multifit_nlinear_init(z, &m->fdf, m->w);
    if (rc == GSL_SUCCESS) {
        rc = gsl_multifit_nlinear_driver(MAX_STEPS, 1e-8, 1e-8, 0.0, NULL, NULL, &info, m->w);
    }
    (void)gsl_set_error_handler(handler);
    return rc == GSL_EMAXITER || rc == GSL_ENOPROG ? GSL_SUCCESS : rc;
}

int update_take(struct update *u, const struct update_row *rows, size_t n, struct err *e)
{
    if (n == 0 || u->n == 0) {
        return n == 0 ? 0 : err_add(e, "%s: no number has a range", u->soc->machine.name);
    }
    SCOPED(mode_fini) struct mode m;
    mode_init(&m, u, rows, n);
    int rc = mode_find(&m);
    if (rc != GSL_SUCCESS) {
        return err_add(e, "%s: the update found no mode: %s", u->soc->machine.name,
                       gsl_strerror(rc));
    }
    keep(u, &m);
    return 0;
}

/* Laplace's approximation. With f the residuals at the mode, and A their derivatives, the first n
 * rows of J, it is exp(-f'f / 2) / sqrt(det R det(I + A A')). */
double update_ln_evidence(const struct update *u, const struct update_row *rows, size_t n)
{
    SCOPED(mode_fini) struct mode m;
    mode_init(&m, u, rows, n);
    if (mode_find(&m) != GSL_SUCCESS) {
        return -(double)INFINITY;
    }
    SCOPED(matrix_drop) gsl_matrix *s = gsl_matrix_alloc(n, n);
    gsl_matrix_const_view a =
        gsl_matrix_const_submatrix(gsl_multifit_nlinear_jac(m.w), 0, 0, n, u->n);
    gsl_matrix_set_identity(s);
    gsl_blas_dgemm(CblasNoTrans, CblasTrans, 1.0, &a.matrix, &a.matrix, 1.0, s);
    gsl_linalg_cholesky_decomp1(s);
    double square;
    const gsl_vector *f = gsl_multifit_nlinear_residual(m.w);
    gsl_blas_ddot(f, f, &square);
    double ln_density = -0.5 * square;
    for (size_t i = 0; i < n; i++) {
        ln_density -= log(gsl_matrix_get(m.r, i, i)) + log(gsl_matrix_get(s, i, i));
    }
    return ln_density;
}

/* ---- predictions ---- */

struct update_prediction update_predict(const struct update *u, const struct update_row *row)
{
    const struct spread *s = spread_of_row(u, row);
    SCOPED(vector_drop) gsl_vector *g = gsl_vector_alloc(u->n);
    SCOPED(vector_drop) gsl_vector *cg = gsl_vector_alloc(u->n);
    double variance;
    gradient(u, row, u->mean, g);
    gsl_blas_dgemv(CblasNoTrans, 1.0, u->covariance, g, 0.0, cg);
    gsl_blas_ddot(g, cg, &variance);
    return (struct update_prediction){.ln_seconds = ln_seconds(u, row, u->mean),
                                      .state_sd = sqrt(fmax(0.0, variance)),
                                      .sd = sqrt(fmax(0.0, variance) + s->tail_sd * s->tail_sd)};
}
