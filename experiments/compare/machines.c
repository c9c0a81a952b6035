#include "experiments/compare/machines.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>

#include "experiments/run/interval.h"
#include "experiments/run/models.h"
#include "sim/base/hash.h"
#include "sim/base/json.h"
#include "sim/base/portable.h"
#include "sim/base/rng.h"
#include "sim/base/scope_gsl.h"

#define RESIDUAL_TOKENS 1024 /* length of prompt or context for residuals: an ordinary one */
#define MAX_SD 1.5           /* largest sd of a fitted logarithm */

/* ---- drawing ---- */

/* Standard normal scores, a Latin hypercube in each factor. */
static void scores(struct machines *m, uint64_t seed)
{
    uint32_t n = m->n_draws;
    OWNED uint32_t *order = xmalloc((n + 1) * sizeof *order);
    for (uint32_t k = 0; k < m->n_factors; k++) {
        struct rng r;
        rng_init(&r, rng_key(seed, RNG_MACHINE, k, 0));
        for (uint32_t i = 0; i < n; i++) {
            uint32_t j = rng_below(&r, i + 1);
            order[i] = j < i ? order[j] : i;
            order[j] = i;
        }
        for (uint32_t i = 0; i < n; i++) {
            double u = (order[i] + fmin(fmax(rng_uniform(&r), 1e-6), 1.0 - 1e-6)) / n;
            m->z[(size_t)i * m->n_factors + k] = gsl_cdf_ugaussian_Pinv(u);
        }
    }
}

/* Half of the probability is on either side of the nominal value. */
static double of_range(const struct machine_factor *x, double z)
{
    double u = gsl_cdf_ugaussian_P(z);
    double share = u < 0.5 ? 2.0 * u : 2.0 * u - 1.0;
    double a = u < 0.5 ? x->low : x->nominal;
    double b = u < 0.5 ? x->nominal : x->high;
    return portable_round(a > 0.0 ? a * pow(b / a, share) : a + share * (b - a));
}

/* Cholesky factor of the covariance of the fit that starts at factor `first`. */
static gsl_matrix *root_of(const struct config *c, const struct machines *m, uint32_t first,
                           uint32_t n)
{
    const char *bad;
    const struct machine_factor *x = &m->factor[first];
    OWNED char *path = xformat("%.*sfit.ln_covariance", (int)(x->name - x->path), x->path);
    const cJSON *cov = json_find_path(c->tree, path, &bad);
    gsl_matrix *a = gsl_matrix_alloc(n, n);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            const cJSON *row = cJSON_GetArrayItem(cov, (int)i);
            double v = cJSON_GetArrayItem(row, (int)j)->valuedouble;
            gsl_matrix_set(a, i, j, v + (i == j ? 1e-4 * v + 1e-12 : 0.0)); /* rounded digits */
        }
    }
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    if (gsl_linalg_cholesky_decomp1(a) != GSL_SUCCESS) { /* rounding: take them as independent */
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t j = 0; j < n; j++) {
                const cJSON *row = cJSON_GetArrayItem(cov, (int)i);
                double v = cJSON_GetArrayItem(row, (int)j)->valuedouble;
                gsl_matrix_set(a, i, j, i == j ? sqrt(v) : 0.0);
            }
        }
    }
    (void)gsl_set_error_handler(handler);
    return a;
}

static void draw_fit(const struct config *c, struct machines *m, uint32_t first)
{
    uint32_t n = 0;
    while (first + n < m->n_factors && m->factor[first + n].kind == MACHINE_FIT &&
           m->factor[first + n].group == first) {
        n++;
    }
    SCOPED(matrix_drop) gsl_matrix *l = root_of(c, m, first, n);
    for (uint32_t i = 0; i < m->n_draws; i++) {
        const double *z = &m->z[(size_t)i * m->n_factors + first];
        for (uint32_t k = 0; k < n; k++) {
            double v = 0.0;
            for (uint32_t j = 0; j <= k; j++) {
                v += gsl_matrix_get(l, k, j) * z[j];
            }
            const struct machine_factor *x = &m->factor[first + k];
            double offset = x->number->offset;
            v = fmin(fmax(v, -MAX_SD * 3.0), MAX_SD * 3.0);
            m->value[(size_t)i * m->n_factors + first + k] =
                portable_round(fmax((x->nominal + offset) * exp(v) - offset, 0.0));
        }
    }
}

static void draw_residual(const struct config *c, const struct conformal *table, struct machines *m,
                          uint32_t k)
{
    struct machine_factor *x = &m->factor[k];
    const struct machine *machine = &c->soc.machine;
    const struct llm *llm = models_llm(c, x->model);
    struct conformal_query q = {.soc = machine->name,
                                .family = c->soc.family,
                                .kind = machine->devices[x->device].kind,
                                .phase = x->decode ? CONFORMAL_DECODE : CONFORMAL_PREFILL,
                                .weights = llm->body_weights + llm->head_weights,
                                .tokens = RESIDUAL_TOKENS,
                                .mixture = llm->n_experts > 0};
    const uint32_t n = m->n_draws;
    OWNED double *u = xmalloc(((size_t)n + 2) * sizeof *u);
    OWNED double *error = xmalloc(((size_t)n + 2) * sizeof *error);
    for (uint32_t i = 0; i < n; i++) {
        u[i] = gsl_cdf_ugaussian_P(m->z[(size_t)i * m->n_factors + k]);
    }
    u[n] = (1.0 - MACHINES_LEVEL_FRAC) / 2.0;
    u[n + 1] = (1.0 + MACHINES_LEVEL_FRAC) / 2.0;
    conformal_draws(table, &q, u, n + 2, error);
    for (uint32_t i = 0; i < n; i++) {
        m->value[(size_t)i * m->n_factors + k] = portable_exp(error[i]);
    }
    x->low = portable_exp(error[n]);
    x->high = portable_exp(error[n + 1]);
    if (x->model == 0) { /* those of a kind and phase once */
        struct conformal_coverage rows =
            conformal_cover_draws(table, q.kind, q.phase, MACHINES_LEVEL_FRAC);
        m->n_rows += rows.n;
        m->n_rows_inside += rows.inside;
    }
}

int machines_draw(const struct config *c, const struct config_options *o, uint32_t n,
                  struct machines *out, struct err *e)
{
    *out = (struct machines){.n_draws = n};
    const struct conformal *table = interval_table(e);
    if (table == NULL) {
        return -EINVAL;
    }
    size_t before = e->n;
    (void)machines_find(c, out, e);
    if (o->n_sets + out->n_factors > CONFIG_MAX_SETS) {
        (void)err_add(e,
                      "--uncertainty: %u numbers are uncertain and --set states %u; together at "
                      "most %d",
                      out->n_factors, o->n_sets, CONFIG_MAX_SETS);
    }
    size_t cells = (size_t)n * out->n_factors + 1;
    out->value = xmalloc(cells * sizeof *out->value);
    out->z = xmalloc(cells * sizeof *out->z);
    scores(out, o->seed);
    for (uint32_t k = 0; k < out->n_factors && e->n == before; k++) {
        const struct machine_factor *x = &out->factor[k];
        if (x->kind == MACHINE_RESIDUAL) {
            draw_residual(c, table, out, k);
        } else if (x->kind == MACHINE_FIT && x->group == k) {
            draw_fit(c, out, k);
        }
        for (uint32_t i = 0; x->kind == MACHINE_RANGE && i < n; i++) {
            size_t at = (size_t)i * out->n_factors + k;
            out->value[at] = of_range(x, out->z[at]);
        }
    }
    return e->n == before ? 0 : -EINVAL;
}

void machines_fini(struct machines *m)
{
    free(m->value);
    free(m->z);
    *m = (struct machines){0};
}

/* ---- loading ---- */

static double at(const struct machines *m, uint32_t draw, uint32_t k, double x, uint32_t factor)
{
    if (draw != UINT32_MAX) {
        return m->value[(size_t)draw * m->n_factors + factor];
    }
    return factor == k ? x : m->factor[factor].nominal;
}

/* Models with the same entry have different residuals, so each further model gets copies. */
static void copy_entries(struct config *c)
{
    for (uint32_t i = 0; i < c->n_more; i++) {
        struct config_model *m = &c->more[i];
        m->own = xcalloc(c->soc.machine.n_devices, sizeof *m->own);
        for (uint32_t d = 0; d < c->soc.machine.n_devices; d++) {
            m->own[d] = *m->truth.runtime[d];
            m->truth.runtime[d] = &m->own[d];
        }
    }
}

static void slow_down_entry(struct soc_runtime *r, bool decode, double factor, double ddr_peak)
{
    for (int i = 0; i < 2; i++) {
        struct soc_curve *curve = i == 0 ? &r->many : &r->one;
        if (decode) {
            curve->bytes_per_s = fmin(ddr_peak, curve->bytes_per_s / factor);
        } else {
            curve->flop_per_s /= factor;
        }
    }
}

/* Divides the rates (prefill) or bandwidths (decode) of a model's entries by its residuals. */
static void slow_down(const struct machines *m, uint32_t draw, uint32_t k, double x,
                      struct config *c)
{
    copy_entries(c);
    for (uint32_t i = 0; i < m->n_factors; i++) {
        const struct machine_factor *f = &m->factor[i];
        double factor = f->kind == MACHINE_RESIDUAL ? at(m, draw, k, x, i) : 1.0;
        if (factor == 1.0) {
            continue;
        }
        /* No setting has the factor, so the hash must, for stores to distinguish the run. */
        c->hash = hash_u64(hash_u64(c->hash, i), hash_bits(factor));
        const struct roofline *of = models_roofline(c, f->model);
        for (uint32_t d = 0; d < c->soc.machine.n_devices; d++) {
            if (c->soc.devices[d].entry == c->soc.devices[f->device].entry) { /* all partitions */
                slow_down_entry((struct soc_runtime *)(uintptr_t)of->runtime[d], f->decode, factor,
                                c->soc.machine.ddr_peak_bytes_per_s);
            }
        }
    }
    for (uint32_t d = 0; d < c->soc.machine.n_devices; d++) {
        /* Boundness is relative to the ceiling, and a slower engine is not less memory-bound. */
        const struct soc_runtime *r = c->truth.runtime[d];
        c->contention_params.ceiling_bytes_per_s[d] = fmax(r->many.bytes_per_s, r->one.bytes_per_s);
    }
}

/* The drawn value of a number, or that of the file if it is certain. */
static double at_path(const struct machines *m, uint32_t draw, uint32_t k, double x,
                      const char *path, double certain)
{
    for (uint32_t i = 0; i < m->n_factors; i++) {
        if (strcmp(m->factor[i].path, path) == 0) {
            return at(m, draw, k, x, i);
        }
    }
    return certain;
}

int machines_load(const struct machines *m, const struct config_options *o, uint32_t draw,
                  uint32_t k, double x, struct config *c, struct err *e)
{
    struct config_options with = *o;
    /* Bandwidths are at most the DDR's peak, and pl1 is at most pl2. */
    double peak = at_path(m, draw, k, x, "soc.ddr.peak", m->ddr_peak);
    double pl2 = at_path(m, draw, k, x, "soc.package.pl2", m->pl2_watts);
    for (uint32_t i = 0; i < m->n_factors; i++) {
        const struct machine_factor *f = &m->factor[i];
        double v = at(m, draw, k, x, i);
        /* Values equal to the file's are not set, because that would mark them as assumed. */
        if (f->kind == MACHINE_RESIDUAL || v == f->nominal) {
            continue;
        }
        SIM_ASSERT(with.n_sets < CONFIG_MAX_SETS); /* machines_draw counted */
        double most = f->number->capped ? peak : strcmp(f->path, "soc.package.pl1") == 0 ? pl2 : v;
        with.sets[with.n_sets++] = xkeep(xformat("%s=%.17g", f->path, fmin(v, most)));
    }
    int rc = config_load(c, &with, e);
    if (rc == 0) {
        slow_down(m, draw, k, x, c);
    }
    return rc;
}
