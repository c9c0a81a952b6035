/* Usual models: intervals are stated for them, and one is proposed as the next measurement. */
#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>

#include "experiments/validation/update.h"
#include "sim/base/scope_gsl.h"

#define LONG_TOKENS 1024
#define SHORT_TOKENS 32

/* ---- selection ---- */

struct counted {
    const char *model;
    size_t n;
};

SORT_BY(most_first, struct counted, SORT_DOWN(n), SORT_TEXT(model))

/* Fills the models of a size class, sorted by their number of published times. Returns how many. */
static size_t count_models(const struct conformal *c, bool small, struct counted *out)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct conformal_row *r = &c->v[i];
        if (r->left != CONFORMAL_MODEL || r->phase > CONFORMAL_DECODE ||
            (r->weights < SPREAD_SMALL_WEIGHTS) != small) {
            continue;
        }
        size_t k = 0;
        while (k < n && strcmp(out[k].model, r->model) != 0) {
            k++;
        }
        if (k == n) {
            out[n++] = (struct counted){r->model, 0};
        }
        out[k].n++;
    }
    if (n > 1) {
        qsort(out, n, sizeof *out, most_first);
    }
    return n;
}

static struct point point_of(const struct update *u, const struct soc_runtime *entry,
                             const char *model, enum conformal_phase phase)
{
    return (struct point){.soc = u->soc->machine.name,
                          .device = u->soc->machine.devices[u->device].name,
                          .runtime = entry->runtime,
                          .model = model,
                          .source = "",
                          .weight_bits = entry->weight_bits,
                          .batch = 1,
                          .input_tokens =
                              phase == CONFORMAL_SHORT_PREFILL ? SHORT_TOKENS : LONG_TOKENS,
                          .metric = phase == CONFORMAL_DECODE ? POINT_TPOT_MS : POINT_TTFT_MS,
                          .value = 1.0};
}

static void add(const struct update *u, const struct catalog *c, const struct soc_runtime *entry,
                const char *model, struct update_usual *out)
{
    struct update_benchmark *b = xcalloc(1, sizeof *b);
    bool all = true;
    for (int phase = 0; phase < UPDATE_PHASES; phase++) {
        b->points[phase] = point_of(u, entry, model, (enum conformal_phase)phase);
        b->rows[phase].point = &b->points[phase];
        predict_bind(c, &b->points[phase], &b->rows[phase].k);
        all = all && b->rows[phase].k.reason == NULL && b->rows[phase].k.match == SOC_MATCH_EXACT;
    }
    if (!all) {
        free(b);
        return;
    }
    LIST_ADD(out->v, out->n, b);
}

void update_usual(const struct update *u, const struct catalog *c, const char *runtime, bool small,
                  size_t max, struct update_usual *out)
{
    *out = (struct update_usual){0};
    const struct soc_device *d = &u->soc->devices[u->device];
    OWNED struct counted *models = xmalloc((c->residuals.n + 1) * sizeof *models);
    size_t n = count_models(&c->residuals, small, models);
    for (size_t i = 0; i < n && i < max; i++) {
        for (uint32_t r = 0; r < d->n_runtimes; r++) {
            if (strcmp(d->runtimes[r].runtime, runtime) == 0) {
                add(u, c, &d->runtimes[r], models[i].model, out);
            }
        }
    }
}

void update_usual_fini(struct update_usual *x)
{
    for (size_t i = 0; i < x->n; i++) {
        free(x->v[i]);
    }
    free(x->v);
    *x = (struct update_usual){0};
}

/* ---- intervals ---- */

double update_error_sd(const struct update *u, const struct update_usual *x, uint32_t runtime,
                       enum conformal_phase phase)
{
    double sum = 0.0;
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++) {
        const struct update_row *row = &x->v[i]->rows[phase];
        if (row->k.runtime == runtime) {
            double sd = update_predict(u, row).sd;
            sum += sd * sd;
            n++;
        }
    }
    return n > 0 ? sqrt(sum / (double)n) : (double)NAN;
}

/* ---- the next measurement ---- */

/* A benchmark with gradients H (phases x state) and noise R reduces the covariance C by
 * C H' (H C H' + R)^-1 H C. It reduces a mean of variances g'Cg by the trace of
 * (H C H' + R)^-1 (H C) G (C H'), where G is the mean of g g'. */
static double gain(const struct update *u, const struct update_benchmark *b, const gsl_matrix *hc,
                   const gsl_matrix *h, const gsl_matrix *g)
{
    SCOPED(matrix_drop) gsl_matrix *s = update_noise(u, b->rows, UPDATE_PHASES);
    SCOPED(matrix_drop) gsl_matrix *hcg = gsl_matrix_alloc(UPDATE_PHASES, u->n);
    SCOPED(matrix_drop) gsl_matrix *m = gsl_matrix_alloc(UPDATE_PHASES, UPDATE_PHASES);
    gsl_blas_dgemm(CblasNoTrans, CblasTrans, 1.0, hc, h, 1.0, s);
    gsl_blas_dgemm(CblasNoTrans, CblasNoTrans, 1.0, hc, g, 0.0, hcg);
    gsl_blas_dgemm(CblasNoTrans, CblasTrans, 1.0, hcg, hc, 0.0, m);
    gsl_linalg_cholesky_decomp1(s);
    double trace = 0.0;
    for (size_t i = 0; i < UPDATE_PHASES; i++) {
        gsl_vector_view column = gsl_matrix_column(m, i);
        gsl_linalg_cholesky_svx(s, &column.vector);
        trace += gsl_matrix_get(m, i, i);
    }
    return trace;
}

void update_gains(const struct update *u, const struct update_usual *x, double *share)
{
    size_t rows = x->n * UPDATE_PHASES;
    if (rows == 0 || u->n == 0) {
        return;
    }
    SCOPED(matrix_drop) gsl_matrix *h = gsl_matrix_alloc(rows, u->n);
    SCOPED(matrix_drop) gsl_matrix *hc = gsl_matrix_alloc(rows, u->n);
    SCOPED(matrix_drop) gsl_matrix *g = gsl_matrix_alloc(u->n, u->n);
    for (size_t i = 0; i < rows; i++) {
        gsl_vector_view row = gsl_matrix_row(h, i);
        update_gradient(u, &x->v[i / UPDATE_PHASES]->rows[i % UPDATE_PHASES], &row.vector);
    }
    gsl_blas_dgemm(CblasNoTrans, CblasNoTrans, 1.0, h, u->covariance, 0.0, hc);
    gsl_blas_dgemm(CblasTrans, CblasNoTrans, 1.0 / (double)rows, h, h, 0.0, g);
    double now = 0.0;
    for (size_t i = 0; i < rows; i++) {
        gsl_vector_const_view a = gsl_matrix_const_row(h, i);
        gsl_vector_const_view b = gsl_matrix_const_row(hc, i);
        double v;
        gsl_blas_ddot(&a.vector, &b.vector, &v);
        now += v / (double)rows;
    }
    for (size_t i = 0; i < x->n; i++) {
        gsl_matrix_const_view hci =
            gsl_matrix_const_submatrix(hc, i * UPDATE_PHASES, 0, UPDATE_PHASES, u->n);
        gsl_matrix_const_view hi =
            gsl_matrix_const_submatrix(h, i * UPDATE_PHASES, 0, UPDATE_PHASES, u->n);
        share[i] = gain(u, x->v[i], &hci.matrix, &hi.matrix, g) / now;
    }
}
