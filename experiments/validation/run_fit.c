#include "experiments/validation/run_fit.h"

#include <gsl/gsl_multimin.h>

#include "sim/base/json.h"
#include "sim/base/scope_gsl.h"

#define MAX_ITERATIONS 150 /* of the simplex, for each start */
#define MIN_STEP_LN 0.05   /* least first step of a factor: 5 % */
#define MAX_STEP_LN 0.5    /* greatest: 65 % */
#define MAX_RESTARTS 8
#define GAIN_END_FRAC 1e-3 /* a restart that gains less ends the search */
#define SIZE_END_FRAC 1e-3 /* simplex size in units of the first step */
/* first step of the compass search, in units of the simplex's first step */
#define COMPASS_STEP 0.4
#define COMPASS_END 2e-3
/* Distances within which a number is at a bound, in units of the first step. An objective that
 * jumps ends a search a little before values that cannot be simulated. The value 0 can be
 * simulated, so only the resolution of the search counts there. */
#define BOUND_STEP 0.05
#define ZERO_STEP (2.0 * COMPASS_END)
#define REFUSED 1e3 /* objective of values that cannot be simulated; others are below 30 */

/* ---- keys ---- */

static int too_short(const char *text, struct err *e)
{
    return err_add(e, "--fit %s: must be 1 to %d keys, as in bandwidth,rate", text,
                   RUN_FIT_MAX_KEYS);
}

/* The full path of a name in the runtime entry of the only device, or in the device. NULL with an
 * error. */
static const char *expand(const struct config *c, const char *name, struct err *e)
{
    if (strchr(name, '.') != NULL) {
        return xkeep(xstrdup(name));
    }
    if (c->soc.machine.n_devices != 1) {
        return err_null(e,
                        "--fit %s: the machine has %u devices: give a path, as in "
                        "soc.devices.%s.runtimes.0.%s",
                        name, c->soc.machine.n_devices, c->soc.machine.devices[0].name, name);
    }
    enum soc_match match;
    uint32_t k = soc_runtime_find(&c->soc.devices[0], NULL, c->llm.weight_bits, &match);
    const char *device = c->soc.machine.devices[0].name;
    const char *bad;
    const char *path = xkeep(xformat("soc.devices.%s.runtimes.%u.%s", device, k, name));
    return json_find_path(c->tree, path, &bad) != NULL
               ? path
               : xkeep(xformat("soc.devices.%s.%s", device, name));
}

static int key_read(const struct config *c, const char *name, struct run_fit_key *key,
                    struct err *e)
{
    key->path = expand(c, name, e);
    if (key->path == NULL) {
        return -EINVAL;
    }
    const char *bad;
    const cJSON *node = json_find_path(c->tree, key->path, &bad);
    const cJSON *value = json_member(node, "value");
    const cJSON *unit = json_member(node, "unit");
    if (!cJSON_IsNumber(value) || !cJSON_IsString(unit)) {
        return err_add(e, "--fit %s: there is no number with a unit at %s", name, key->path);
    }
    key->unit = xkeep(xstrdup(unit->valuestring));
    key->datasheet = value->valuedouble;
    key->low = json_number(node, "low");
    key->high = json_number(node, "high");
    key->fitted = key->datasheet;
    if (key->datasheet == 0.0 && key->high <= 0.0) {
        return err_add(e, "--fit %s: is 0 in the file, which gives no range (high) to try", name);
    }
    return 0;
}

int run_fit_keys(const struct config *c, const char *text, struct run_fit *fit, struct err *e)
{
    memset(fit, 0, sizeof *fit);
    for (const char *p = text;; p++) {
        size_t len = strcspn(p, ",");
        if (len == 0 || fit->n_keys == RUN_FIT_MAX_KEYS) {
            return too_short(text, e);
        }
        struct run_fit_key *key = &fit->key[fit->n_keys];
        char *name = xformat("%.*s", (int)len, p);
        int rc = key_read(c, name, key, e);
        free(name);
        if (rc != 0) {
            return rc;
        }
        for (uint32_t i = 0; i < fit->n_keys; i++) {
            if (strcmp(fit->key[i].path, key->path) == 0) {
                return err_add(e, "--fit %s: %.*s is given twice", text, (int)len, p);
            }
        }
        fit->n_keys++;
        p += len;
        if (*p == '\0') {
            return 0;
        }
    }
}

/* ---- evaluation ---- */

/* A simulated point. Points are kept, because searches return to them: restarts from an optimum,
 * and the fit of every half of the requests. */
struct point {
    double at[RUN_FIT_MAX_KEYS];
    /* owned; |ln| errors of E2E and TTFT of each request of the fit; NULL: refused */
    double *apart;
};

struct problem {
    const struct config_options *options;
    const struct config_policy *policy;
    const struct measured_run *run;
    struct run_fit *fit;
    struct measured_latency *simulated; /* scratch */
    uint32_t out;                       /* bit b: block b of the requests of the fit is left out */
    struct point *points;               /* owned; run_fit.evaluations simulated points */
    size_t capacity;
};

int run_fit_load(const struct config_options *o, const struct run_fit *fit, struct config *c,
                 struct err *e)
{
    struct config_options with = *o;
    if (o->n_sets + fit->n_keys > CONFIG_MAX_SETS) {
        memset(c, 0, sizeof *c);
        return err_add(e, "--set: more than %d overrides", CONFIG_MAX_SETS);
    }
    for (uint32_t i = 0; i < fit->n_keys; i++) {
        with.sets[with.n_sets++] = xkeep(xformat("%s=%.17g", fit->key[i].path, fit->key[i].fitted));
    }
    return config_load(c, &with, e);
}

/* The first step of a number. It is the unit of its coordinate, so that all have the same size. */
static double step_ln(const struct run_fit_key *key)
{
    double down = log(key->datasheet / fmax(key->low, key->datasheet / 100.0));
    double up = log(fmax(key->high, key->datasheet) / key->datasheet);
    double step = fmin(fmax(fmax(down, up) / 4.0, MIN_STEP_LN), MAX_STEP_LN);
    return down >= up ? -step : step;
}

static double value_of(const struct run_fit_key *key, double x)
{
    if (key->datasheet > 0.0) {
        return key->datasheet * exp(x * step_ln(key));
    }
    return fabs(x) * key->high / 4.0;
}

static void place(struct run_fit *fit, const gsl_vector *x)
{
    for (uint32_t i = 0; i < fit->n_keys; i++) {
        fit->key[i].fitted = value_of(&fit->key[i], gsl_vector_get(x, i));
    }
}

/* Simulates with fit->key[].fitted. Adds an error if that is impossible. */
static void simulate(struct problem *q, struct point *p, struct err *e)
{
    SCOPED(config_fini) struct config c;
    size_t n = q->fit->n_requests;
    p->apart = NULL;
    for (uint32_t i = 0; i < q->fit->n_keys; i++) {
        p->at[i] = q->fit->key[i].fitted;
    }
    if (run_fit_load(q->options, q->fit, &c, e) == 0 &&
        run_replay(&c, q->policy, q->run, n, q->options->seed, q->simulated, e) == 0) {
        p->apart = xmalloc(2 * n * sizeof *p->apart);
        for (size_t i = 0; i < n; i++) {
            p->apart[2 * i] = fabs(log(q->simulated[i].e2e_s / q->run->measured[i].e2e_s));
            p->apart[2 * i + 1] = fabs(log(q->simulated[i].ttft_s / q->run->measured[i].ttft_s));
        }
    }
}

static bool is_at(const struct run_fit *fit, const struct point *p)
{
    bool same = true;
    for (uint32_t i = 0; i < fit->n_keys; i++) {
        same = same && p->at[i] == fit->key[i].fitted;
    }
    return same;
}

/* The objective at fit->key[].fitted. */
static double evaluate(struct problem *q, struct err *e)
{
    struct run_fit *fit = q->fit;
    uint32_t k = 0;
    while (k < fit->evaluations && !is_at(fit, &q->points[k])) {
        k++;
    }
    if (k == fit->evaluations) {
        if (k == q->capacity) {
            q->capacity = 2 * q->capacity + 64;
            q->points = xrealloc(q->points, q->capacity * sizeof *q->points);
        }
        simulate(q, &q->points[fit->evaluations++], e);
    }
    const double *apart = q->points[k].apart;
    size_t counted = 0;
    double sum = 0.0;
    for (size_t i = 0; apart != NULL && i < fit->n_requests; i++) {
        if ((q->out >> (i * RUN_FIT_BLOCKS / fit->n_requests) & 1) == 0) {
            counted++;
            sum += apart[2 * i];
            sum += apart[2 * i + 1];
        }
    }
    return apart == NULL ? REFUSED : sum / (double)counted;
}

static double objective(const gsl_vector *x, void *params)
{
    struct problem *q = params;
    SCOPED(err_fini) struct err e = ERR_INIT;
    place(q->fit, x);
    return evaluate(q, &e);
}

/* ---- minimisation ---- */

/* Refuses a number without effect, which would make the fit singular. */
static int check_effect(struct problem *q, double start, struct err *e)
{
    for (uint32_t i = 0; i < q->fit->n_keys; i++) {
        struct run_fit_key *key = &q->fit->key[i];
        key->fitted = value_of(key, 1.0);
        SCOPED(err_fini) struct err ignored = ERR_INIT;
        double v = evaluate(q, &ignored);
        key->fitted = key->datasheet;
        if (v == start) {
            return err_add(e,
                           "--fit %s: has no effect on the first %zu requests: the fit is singular",
                           key->path, q->fit->n_requests);
        }
    }
    return 0;
}

/* Minimises from x with first steps of `step`. x gets the end. Returns whether the simplex shrank
 * to it. */
static bool minimise(struct problem *q, gsl_vector *x, double step)
{
    gsl_multimin_function f = {objective, q->fit->n_keys, q};
    SCOPED(vector_drop) gsl_vector *steps = gsl_vector_alloc(q->fit->n_keys);
    gsl_vector_set_all(steps, step);
    gsl_multimin_fminimizer *m =
        gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, q->fit->n_keys);
    int status = gsl_multimin_fminimizer_set(m, &f, x, steps) == 0 ? GSL_CONTINUE : GSL_FAILURE;
    for (int i = 0; i < MAX_ITERATIONS && status == GSL_CONTINUE; i++) {
        if (gsl_multimin_fminimizer_iterate(m) != 0) {
            break;
        }
        status = gsl_multimin_test_size(gsl_multimin_fminimizer_size(m), SIZE_END_FRAC);
    }
    (void)gsl_vector_memcpy(x, gsl_multimin_fminimizer_x(m));
    q->fit->objective = gsl_multimin_fminimizer_minimum(m);
    gsl_multimin_fminimizer_free(m);
    return status == GSL_SUCCESS;
}

/* Latencies jump if a request just makes or misses an iteration, so a simplex may shrink too early.
 * So one starts in every corner of a box, at a quarter and three quarters of each range. The best
 * one restarts from its end until that gains nothing. */
static void search(struct problem *q, gsl_vector *best)
{
    struct run_fit *fit = q->fit;
    double least = fit->objective_before; /* at x = 0, with the file's values */
    gsl_vector *x = gsl_vector_alloc(fit->n_keys);
    for (uint32_t corner = 0; corner < 1u << fit->n_keys; corner++) {
        for (uint32_t i = 0; i < fit->n_keys; i++) {
            gsl_vector_set(x, i, (corner >> i & 1) != 0 ? 3.0 : 1.0);
        }
        (void)minimise(q, x, 1.0);
        if (fit->objective < least) {
            least = fit->objective;
            (void)gsl_vector_memcpy(best, x);
        }
    }
    gsl_vector_free(x);
    for (int i = 0; i < MAX_RESTARTS; i++) {
        fit->converged = minimise(q, best, i % 2 == 0 ? 0.5 : -0.5);
        if (fit->objective > least * (1.0 - GAIN_END_FRAC)) {
            return;
        }
        least = fit->objective;
    }
}

/* Compass search from x along every coordinate and every diagonal of two. Steps halve if none
 * gains. At the minimum of an objective that jumps, no step of any size gains. */
static double compass(struct problem *q, gsl_vector *x, double least, double step)
{
    size_t n = q->fit->n_keys;
    SCOPED(vector_drop) gsl_vector *at = gsl_vector_alloc(n);
    for (; step > COMPASS_END; step *= 0.5) {
        for (bool gained = true; gained;) {
            gained = false;
            for (size_t d = 0; d < 2 * n * n; d++) { /* i == j: one coordinate; else two */
                size_t i = d / 2 % n;
                size_t j = d / 2 / n;
                (void)gsl_vector_memcpy(at, x);
                double sign = d % 2 == 0 ? 1.0 : -1.0;
                double other = i < j ? sign : -sign; /* both diagonals */
                gsl_vector_set(at, i, gsl_vector_get(x, i) + sign * step);
                if (i != j) {
                    gsl_vector_set(at, j, gsl_vector_get(x, j) + other * step);
                }
                double v = objective(at, q);
                if (v < least * (1.0 - 1e-9)) {
                    least = v;
                    (void)gsl_vector_memcpy(x, at);
                    gained = true;
                }
            }
        }
    }
    return least;
}

/* Refines the simplex's end, and each submodel, with one number at its value in the file. */
static void refine(struct problem *q, gsl_vector *best)
{
    struct run_fit *fit = q->fit;
    size_t n = fit->n_keys;
    double least = compass(q, best, objective(best, q), COMPASS_STEP);
    SCOPED(vector_drop) gsl_vector *x = gsl_vector_alloc(n);
    for (size_t i = 0; n > 1 && i < n; i++) {
        (void)gsl_vector_memcpy(x, best);
        gsl_vector_set(x, i, 0.0);
        double v = compass(q, x, objective(x, q), COMPASS_STEP);
        if (v < least) {
            least = v;
            (void)gsl_vector_memcpy(best, x);
        }
    }
    fit->objective = least;
    fit->converged = true;
}

/* Finds numbers at a bound: a short step further cannot be simulated. */
static void find_bounds(struct problem *q, const gsl_vector *best)
{
    struct run_fit *fit = q->fit;
    SCOPED(vector_drop) gsl_vector *x = gsl_vector_alloc(fit->n_keys);
    for (size_t i = 0; i < fit->n_keys; i++) {
        struct run_fit_key *key = &fit->key[i];
        double at = gsl_vector_get(best, i);
        key->at_bound = key->datasheet == 0.0 && fabs(at) <= ZERO_STEP;
        for (int way = -1; way <= 1; way += 2) {
            (void)gsl_vector_memcpy(x, best);
            gsl_vector_set(x, i, at + way * BOUND_STEP);
            key->at_bound = key->at_bound || objective(x, q) == REFUSED;
        }
    }
}

/* Standard errors by balanced half-samples. The requests of the fit form 8 blocks of neighbours,
 * which share queues, and the fit is repeated on the 7 halves of a Hadamard matrix. The variance of
 * a half's estimate around that of all is the variance of the latter (McCarthy 1969). Smaller parts
 * must not be left out: a minimum of absolute values, like a median, would hardly move. */
static void half_samples(struct problem *q, const gsl_vector *best)
{
    struct run_fit *fit = q->fit;
    size_t n = fit->n_keys;
    SCOPED(vector_drop) gsl_vector *x = gsl_vector_alloc(n);
    double sum[RUN_FIT_MAX_KEYS] = {0.0};
    double whole[RUN_FIT_MAX_KEYS];
    place(fit, best);
    for (size_t i = 0; i < n; i++) {
        whole[i] = fit->key[i].fitted;
    }
    for (uint32_t half = 1; half < RUN_FIT_BLOCKS; half++) {
        q->out = 0;
        for (uint32_t block = 0; block < RUN_FIT_BLOCKS; block++) {
            /* the sign in Sylvester's matrix is the parity of the common bits */
            uint32_t both = half & block;
            uint32_t odd = (both ^ both >> 1 ^ both >> 2) & 1;
            q->out |= odd << block;
        }
        (void)gsl_vector_memcpy(x, best);
        (void)compass(q, x, objective(x, q), 0.5 * COMPASS_STEP);
        place(fit, x);
        for (size_t i = 0; i < n; i++) {
            sum[i] += pow(fit->key[i].fitted - whole[i], 2.0) / (RUN_FIT_BLOCKS - 1);
        }
    }
    q->out = 0;
    for (size_t i = 0; i < n; i++) {
        fit->key[i].se = fit->key[i].at_bound ? (double)NAN : sqrt(sum[i]);
    }
}

bool run_fit_lacks(const struct run_score *fitted_on)
{
    return fitted_on->metric[RUN_METRIC_E2E].median > RUN_FIT_LACK_FRAC;
}

int run_fit(const struct config_options *o, const struct config_policy *p,
            const struct measured_run *run, size_t n, struct run_fit *fit, struct err *e)
{
    if (n < RUN_FIT_MIN_REQUESTS_PER_KEY * (size_t)fit->n_keys) {
        return err_add(e,
                       "%zu request%s to fit %u number%s on: at least %d are needed; --fit-on "
                       "first:F takes more of the run's %zu",
                       n, text_plural(n), fit->n_keys, text_plural(fit->n_keys),
                       RUN_FIT_MIN_REQUESTS_PER_KEY * (int)fit->n_keys, run->trace.n);
    }
    struct problem q = {.options = o, .policy = p, .run = run, .fit = fit};
    q.simulated = xmalloc(run->trace.n * sizeof *q.simulated);
    fit->n_requests = n;
    fit->evaluations = 0;
    fit->objective_before = evaluate(&q, e);
    int rc = e->n > 0 ? -EINVAL : check_effect(&q, fit->objective_before, e);
    if (rc == 0) {
        SCOPED(vector_drop) gsl_vector *x = gsl_vector_calloc(fit->n_keys);
        search(&q, x);
        refine(&q, x);
        find_bounds(&q, x);
        half_samples(&q, x);
        place(fit, x);
    }
    for (uint32_t i = 0; i < fit->evaluations; i++) {
        free(q.points[i].apart);
    }
    free(q.points);
    free(q.simulated);
    return rc;
}
