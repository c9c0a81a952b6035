/* What a fit asks for: the points of the search, in batches, then those to be confirmed. Each is
 * the claims at a point, judged as ever. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "experiments/claims/fit.h"
#include "sim/base/arena.h"
#include "sim/base/clock.h"

#define BATCH 8 /* points whose runs are given to the workers together */

struct fit_rounds {
    double (*u)[FIT_MAX_PARAMETERS]; /* owned: points of the wave; those before `at` are done */
    uint32_t n, at;
    /* What is running: a batch of the wave, or one point to be confirmed. */
    bool confirms;
    struct setup setups[BATCH];
    uint32_t n_setups;
    struct claims claims;
    struct quantities_options options;
    struct err failed;
    struct claims_run run;
    double before_s;
};

/* ---- points of the search ---- */

/* The rows of `stated` once more for every set-up: row s * n + i is claim i under set-up s. */
static int spread(struct claims *c, const struct setup *setups, uint32_t n, struct err *e)
{
    uint32_t n_claims = c->n;
    int rc = 0;
    c->v = xrealloc(c->v, (size_t)n_claims * n * sizeof *c->v);
    for (uint32_t s = n; s-- > 0 && rc == 0;) {
        for (uint32_t i = 0; i < n_claims && rc == 0; i++) {
            struct claim one = c->v[i];
            rc = s > 0 || n == 1 ? setup_add(&one.setup, &setups[s], e) : 0;
            c->v[s * n_claims + i] = one;
        }
    }
    for (uint32_t i = 0; i < n_claims && rc == 0 && n > 1; i++) {
        rc = setup_add(&c->v[i].setup, &setups[0], e);
    }
    c->n = n_claims * n;
    return rc;
}

static void take(struct fit *f, struct fit_point *p, const struct claim *judged)
{
    for (uint32_t k = 0; k < f->n_checks; k++) {
        const struct claim *stated = &f->claims.v[f->checks[k].claim];
        const struct claim *c = &judged[f->checks[k].claim];
        const struct claim_check *x = &c->checks[f->checks[k].check - stated->checks];
        p->mean[k] = x->mean.mean;
        p->sd[k] = x->mean.n > 1 ? x->mean.sd : 0.0;
    }
}

/* The next points of the wave. */
static int begin_batch(struct fit *f, struct fit_rounds *r)
{
    r->n_setups = r->n - r->at < BATCH ? r->n - r->at : BATCH;
    for (uint32_t i = 0; i < r->n_setups; i++) {
        fit_setup(&f->parameters, r->u[r->at + i], &r->setups[i]);
    }
    r->options = f->o->run;
    r->before_s = clock_processor_s(RUSAGE_CHILDREN);
    int rc = fit_claims_read(f->o, &r->claims, f->e);
    return rc == 0 ? spread(&r->claims, r->setups, r->n_setups, f->e) : rc;
}

/* Runs that fail (a queue that outgrows the memory, the time limit) leave their values undefined:
 * what they would have shown is not known, and the search goes on. */
static int finish_batch(struct fit *f, struct fit_rounds *r)
{
    f->cpu_s += clock_processor_s(RUSAGE_CHILDREN) - r->before_s;
    if (r->run.rc == -EINVAL) {
        return err_add(f->e, "%s", r->failed.n > 0 ? r->failed.lines[0] : "bad point");
    }
    for (uint32_t i = 0; i < r->n_setups; i++) {
        take(f, fit_point_add(f, r->u[r->at++]), &r->claims.v[i * f->claims.n]);
    }
    int rc = fit_points_keep(f, f->e);
    if (!f->o->quiet) {
        (void)fprintf(stderr, "fit: %u points, %.0f s of processor time\n", f->n_points, f->cpu_s);
    }
    return rc;
}

/* ---- points to be confirmed ---- */

/* The claims as the ordinary judge finds them at u, on the `set`-th set of fresh traces. */
static int begin_point(struct fit *f, struct fit_rounds *r, const double *u, uint32_t set)
{
    r->n_setups = 1;
    fit_setup(&f->parameters, u, &r->setups[0]);
    r->options = f->o->run;
    r->options.replications = f->o->confirm;
    r->options.seed = f->o->run.seed + 1000000ull * set;
    int rc = fit_claims_read(f->o, &r->claims, f->e);
    return rc == 0 ? claims_change(&r->claims, &r->setups[0], f->e) : rc;
}

static int finish_point(struct fit *f, struct fit_rounds *r)
{
    for (uint32_t i = 0; i < r->claims.n; i++) {
        r->claims.v[i].setup = (struct setup){.set = {.n = 0}}; /* its texts go with the set-up */
    }
    if (r->run.rc == 0) {
        fit_confirm_take(f, &r->claims);
    }
    return r->run.rc;
}

/* ---- one after the other ---- */

/* What is next; false: all is known, or something went wrong. */
static bool begin(struct fit *f, struct fit_rounds *r)
{
    const double *u;
    uint32_t set;
    while (r->at == r->n && !r->confirms && f->rc == 0) {
        free(r->u);
        r->u = NULL;
        r->at = 0;
        r->confirms = !fit_search_next(f, &r->u, &r->n);
    }
    if (f->rc == 0 && !r->confirms) {
        f->rc = begin_batch(f, r);
    } else if (f->rc == 0 && fit_confirm_next(f, &u, &set)) {
        f->rc = begin_point(f, r, u, set);
    } else {
        return false;
    }
    r->failed = (struct err)ERR_INIT;
    r->run = (struct claims_run){
        .claims = &r->claims, .options = &r->options, .e = r->confirms ? f->e : &r->failed};
    return true;
}

static void finish(struct fit *f, struct fit_rounds *r)
{
    if (f->rc == 0) {
        f->rc = (r->confirms ? finish_point : finish_batch)(f, r);
    }
    err_fini(&r->failed);
    claims_fini(&r->claims);
    for (uint32_t i = 0; i < r->n_setups; i++) {
        fit_setup_fini(&r->setups[i]);
    }
}

bool claims_fit_judge(void *ctx, const struct study_outcomes *came, struct study *next)
{
    struct fit *f = ctx;
    if (came == NULL) {
        f->rounds = xcalloc(1, sizeof *f->rounds);
        f->rc = fit_points_resume(f, f->e);
    }
    struct fit_rounds *r = f->rounds;
    for (bool runs = came != NULL; runs || begin(f, r); runs = false, came = NULL) {
        if (f->rc == 0 && claims_judge(&r->run, came, next)) {
            return true;
        }
        finish(f, r);
    }
    free(r->u);
    free(r);
    f->rounds = NULL;
    return false;
}
