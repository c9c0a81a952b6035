/* Fits each parameter to the points. A parameter that they do not determine keeps its starting
 * value. */
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>

#include "experiments/validation/calibrate_impl.h"
#include "sim/base/scope_gsl.h"

#define DETERMINED_SD 0.5 /* the points determine a parameter to better than a factor of 1.65 */
#define SIGMA_START 0.1
#define AT_BOUND 2e-3    /* of the range of v: a parameter this close to its bound is at it */
#define PROFILE_RISE 4.0 /* of the sum: two standard errors */
#define PROFILE_STEPS 12 /* halvings, to less than a thousandth of the range of v */
#define MIN_POINTS 4     /* two for each of rate and bandwidth; the prior determines the others */
#define MIN_MODELS 2
#define MIN_POINTS_LEFT 2
/* A row that is faster than DDR's peak allows by more than rounding and errors of the assumed bytes
 * per weight is a mistake, or of another machine. */
#define IMPOSSIBLE_RATIO 1.5

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
    bool leaving = false; /* one of two models may remain: start values determine the rest */
    for (size_t i = 0; i < s->n; i++) {
        leaving = leaving || s->rows[i].left_out;
    }
    if (n_used < (leaving ? MIN_POINTS_LEFT : MIN_POINTS) ||
        n_models < (leaving ? 1 : MIN_MODELS)) {
        return err_add(e,
                       "%s %s %s, %u bits: %zu point%s of %zu model%s; a fit needs at least %d "
                       "points of %d models; --measured updates from fewer",
                       s->soc->machine.name, s->soc->machine.devices[s->device].name, r->runtime,
                       r->weight_bits, n_used, text_plural(n_used), n_models, text_plural(n_models),
                       MIN_POINTS, MIN_MODELS);
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

/* Derivative of v of a parameter (or of its groups' offset) by a coordinate of the search. */
static double slope_of(const struct calibrate_problem *p, const gsl_vector *u, int k,
                       size_t coordinate)
{
    const struct calibrate_space *s = &p->space;
    if (coordinate < (size_t)s->n) {
        double t = calibrate_t_at(s, u, (int)coordinate);
        return s->index[coordinate] == k ? (s->high[k] - s->low[k]) * t * (1.0 - t) : 0.0;
    }
    size_t at = coordinate - (size_t)s->n;
    bool rate = k == CALIBRATE_RATE;
    bool bandwidth = k == CALIBRATE_BANDWIDTH || k == CALIBRATE_ONE_BANDWIDTH;
    uint32_t own = 0;
    for (uint32_t g = 0; g < p->set->n_groups; g++) {
        own += p->set->groups[g].own;
    }
    bool mine = p->set->groups[at / 2].own && ((at % 2 == 0 && rate) || (at % 2 == 1 && bandwidth));
    return mine ? CALIBRATE_OFFSET_SD / own : 0.0;
}

/* Fills the covariance of the entry's v from that of u. */
static void covariance(const struct calibrate_problem *p, const struct calibrate_solver *v,
                       struct calibrate_fit *out)
{
    size_t n = v->u->size;
    SCOPED(matrix_drop) gsl_matrix *cov = gsl_matrix_alloc(n, n);
    (void)gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(v->w), 0.0, cov);
    memset(out->covariance, 0, sizeof out->covariance);
    for (int i = 0; i < p->space.n; i++) {
        for (int j = 0; j < p->space.n; j++) {
            int a = p->space.index[i];
            int b = p->space.index[j];
            double sum = 0.0;
            for (size_t x = 0; x < n; x++) {
                double sx = slope_of(p, v->u, a, x);
                for (size_t y = 0; sx != 0.0 && y < n; y++) {
                    sum += sx * slope_of(p, v->u, b, y) * gsl_matrix_get(cov, x, y);
                }
            }
            out->covariance[a][b] = sum;
        }
    }
}

/* Fills the entry: the pool's values with the mean offset of its own groups, within the bounds. */
static void entry_fill(const struct calibrate_problem *p, const gsl_vector *u,
                       struct calibrate_fit *out)
{
    const struct calibrate_space *s = &p->space;
    struct soc_runtime *r = &out->params;
    *r = calibrate_params_at(s, &p->base, u);
    double mean[2] = {0.0, 0.0};
    uint32_t own = 0;
    for (uint32_t g = 0; g < p->set->n_groups; g++) {
        own += p->set->groups[g].own;
        for (int which = 0; which < 2; which++) {
            out->offset[g][which] = calibrate_offset_at(s, u, (int)g, which);
            mean[which] += p->set->groups[g].own ? out->offset[g][which] : 0.0;
        }
    }
    for (int k = 0; k < CALIBRATE_N_PARAMS; k++) {
        double x = calibrate_param_get(r, k);
        if (own > 0 && k == CALIBRATE_RATE) {
            x *= exp(mean[0] / own);
        } else if (own > 0 && (k == CALIBRATE_BANDWIDTH || k == CALIBRATE_ONE_BANDWIDTH) &&
                   out->state[k] != CALIBRATE_HELD) {
            x *= exp(mean[1] / own);
        }
        if (s->high[k] > s->low[k]) {
            x = fmin(x, calibrate_x_of(s->high[k], s->offset[k]));
        }
        if (s->offset[k] > 0.0 && x < 1e-3 * s->offset[k]) {
            x = 0.0; /* the transform only approaches its bound */
        }
        calibrate_param_set(r, k, x);
        out->value[k] = x;
    }
    if (!r->one_row_own) {
        r->one = r->many;
    }
}

/* Whether a parameter may be undetermined: not rate and bandwidth. But if one-row kernels have a
 * separate bandwidth, all prompts may be bound by the rate. */
static bool may_be_vague(const struct soc_runtime *r, int k)
{
    return k > CALIBRATE_BANDWIDTH || (k == CALIBRATE_BANDWIDTH && r->one_row_own);
}

/* Fixes parameters at their values in the file: first those that the points do not determine, then
 * those at their bound. Returns how many it fixed. */
static int hold_spare(struct calibrate_problem *p, const struct calibrate_solver *v, bool first,
                      struct calibrate_fit *out)
{
    struct calibrate_space *s = &p->space;
    int spare[CALIBRATE_N_PARAMS];
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        int k = s->index[i];
        double t = calibrate_t_at(s, v->u, i);
        bool inside = t > AT_BOUND && t < 1.0 - AT_BOUND;
        bool vague = !(sqrt(out->covariance[k][k]) < DETERMINED_SD);
        if (first && inside && vague && may_be_vague(&p->base, k)) {
            out->state[k] = CALIBRATE_HELD; /* base has the start */
            spare[n++] = k;
        } else if (!first && !inside) {
            out->state[k] = CALIBRATE_BOUND;
            calibrate_param_set(&p->base, k,
                                calibrate_x_of(t < 0.5 ? s->low[k] : s->high[k], s->offset[k]));
            spare[n++] = k;
        }
    }
    for (int i = 0; i < n; i++) {
        calibrate_space_hold(s, spare[i]);
    }
    if (!p->base.one_row_own) {
        p->base.one = p->base.many;
    }
    return n;
}

/* The minimised sum with parameter k, now at its bound, at v instead. */
static double profile(const struct calibrate_problem *p, int k, double v)
{
    struct calibrate_problem at = *p;
    calibrate_param_set(&at.base, k, calibrate_x_of(v, p->space.offset[k]));
    if (!at.base.one_row_own) {
        at.base.one = at.base.many;
    }
    SCOPED(calibrate_solver_fini) struct calibrate_solver solver;
    calibrate_solver_init(&solver, &at);
    double sum =
        calibrate_minimise(&at, &solver) == 0 ? calibrate_objective(&solver) : (double)INFINITY;
    return sum + pow((v - p->space.start[k]) / CALIBRATE_PRIOR_SD, 2.0);
}

/* Fills the range of parameter k at its bound, from its profile. */
static void reach(const struct calibrate_problem *p, int k, struct calibrate_fit *out)
{
    const struct calibrate_space *s = &p->space;
    double at = calibrate_v_of(calibrate_param_get(&p->base, k), s->offset[k]);
    bool low = at - s->low[k] < s->high[k] - at;
    double near = at;
    double far = low ? s->high[k] : s->low[k];
    double limit = profile(p, k, at) + PROFILE_RISE;
    for (int i = 0; i < PROFILE_STEPS; i++) {
        double middle = 0.5 * (near + far);
        if (profile(p, k, middle) < limit) {
            near = middle;
        } else {
            far = middle;
        }
    }
    out->low[k] = calibrate_x_of(fmin(at, far), s->offset[k]);
    out->high[k] = calibrate_x_of(fmax(at, far), s->offset[k]);
}

static void ranges(const struct calibrate_problem *p, struct calibrate_fit *out)
{
    bool leaving = false;
    for (size_t i = 0; i < p->set->n; i++) {
        leaving = leaving || p->set->rows[i].left_out;
    }
    for (int k = 0; k < CALIBRATE_N_PARAMS; k++) {
        double x = out->value[k];
        double sd = sqrt(out->covariance[k][k]);
        out->low[k] = out->high[k] = x;
        if (out->state[k] == CALIBRATE_FITTED) {
            double v = calibrate_v_of(x, p->space.offset[k]);
            out->se[k] = sd * (x + p->space.offset[k]); /* dx/dv = x + offset */
            out->low[k] = fmax(0.0, calibrate_x_of(v - 2.0 * sd, p->space.offset[k]));
            out->high[k] = calibrate_x_of(fmin(v + 2.0 * sd, p->space.high[k]), p->space.offset[k]);
        } else if (out->state[k] == CALIBRATE_BOUND && !leaving) {
            reach(p, k, out);
        }
    }
}

/* Whether a parameter is at its bound. There its slope vanishes, so its variance is meaningless. */
static bool at_bound(const struct calibrate_problem *p, const struct calibrate_solver *v, int k)
{
    for (int i = 0; i < p->space.n; i++) {
        double t = calibrate_t_at(&p->space, v->u, i);
        if (p->space.index[i] == k) {
            return t < AT_BOUND || t > 1.0 - AT_BOUND;
        }
    }
    return true; /* fixed there */
}

static int refuse_singular(const struct calibrate_problem *p, const struct calibrate_solver *v,
                           const struct calibrate_fit *fit, struct err *e)
{
    const struct calibrate_set *s = p->set;
    const struct soc_runtime *r = &s->soc->devices[s->device].runtimes[s->runtime];
    size_t before = e->n;
    for (int k = CALIBRATE_RATE; k <= CALIBRATE_BANDWIDTH; k++) {
        if (!may_be_vague(r, k) && !(sqrt(fit->covariance[k][k]) < DETERMINED_SD) &&
            !at_bound(p, v, k)) {
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
    }
    calibrate_group(s);
    out->n_used = n_used;
    out->n_models = count_models(s);
    if (check(s, n_used, out->n_models, e) != 0) {
        return -EINVAL;
    }
    struct calibrate_problem p = {
        .set = s,
        .base = calibrate_start(&s->soc->devices[s->device].runtimes[s->runtime]),
        .sigma = SIGMA_START,
        .n_rows = n_used,
        .models = xmalloc(s->n * sizeof *p.models)};
    if (s->roofline) {
        p.base.fill_rows = p.base.width_fill = p.base.enqueue_s = 0.0;
        p.base.prompt_enqueue_s = p.base.special_attention_frac = 0.0;
    }
    for (size_t i = 0; i < s->n; i++) {
        predict_model(&s->rows[i].k, &p.models[i]);
    }
    calibrate_space_fill(s, &p.base, &p.space);
    memcpy(p.at, p.space.start, sizeof p.at);
    for (int i = 0; i < p.space.n; i++) {
        out->state[p.space.index[i]] = CALIBRATE_FITTED;
    }
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    int rc = 0;
    for (int round = 0, spare = 1; rc == 0 && (spare > 0 || round < 2); round++) {
        SCOPED(calibrate_solver_fini) struct calibrate_solver v;
        calibrate_solver_init(&v, &p);
        rc = calibrate_settle(&p, &v);
        if (rc == 0) {
            covariance(&p, &v, out);
            entry_fill(&p, v.u, out);
            rc = refuse_singular(&p, &v, out, e);
            calibrate_solver_keep(&v, &p);
            spare = hold_spare(&p, &v, round == 0, out);
        } else {
            (void)err_add(e, "%s: the fit does not converge", s->soc->machine.name);
        }
    }
    if (rc == 0) {
        ranges(&p, out);
    }
    (void)gsl_set_error_handler(handler);
    free(p.models);
    out->rounds = p.rounds;
    out->sigma = p.sigma;
    return rc;
}
