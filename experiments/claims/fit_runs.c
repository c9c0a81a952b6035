/* Runs the points of a search in batches, and the claims' verdicts at each. */
#include <sys/resource.h>

#include "experiments/claims/fit.h"
#include "sim/base/clock.h"

#define BATCH 8 /* points whose runs are one batch for the workers */

static void take(const struct fit *f, struct fit_point *p, const struct claim *judged)
{
    for (uint32_t k = 0; k < f->n_checks; k++) {
        const struct claim *stated = &f->claims.v[f->checks[k].claim];
        const struct claim *c = &judged[f->checks[k].claim];
        const struct claim_check *x = &c->checks[f->checks[k].check - stated->checks];
        p->mean[k] = x->mean.mean;
        p->sd[k] = x->mean.n > 1 ? x->mean.sd : 0.0;
    }
}

/* Failed runs (a queue that exceeds the memory, the time limit) have undefined values, and the
 * search continues. */
static int run_batch(struct fit *f, const double (*u)[FIT_MAX_PARAMETERS], uint32_t n)
{
    struct setup setups[BATCH];
    SCOPED(claims_fini) struct claims claims;
    SCOPED(err_fini) struct err failed = ERR_INIT;
    for (uint32_t i = 0; i < n; i++) {
        fit_setup(&f->parameters, u[i], &setups[i]);
    }
    double before_s = clock_processor_s(RUSAGE_CHILDREN);
    int rc = fit_claims_read(f->o, &claims, f->e);
    rc = rc == 0 ? fit_spread(&claims, setups, n, f->e) : rc;
    if (rc == 0 && claims_run(&claims, &f->o->run, &failed) == -EINVAL) {
        rc = err_add(f->e, "%s", failed.n > 0 ? failed.lines[0] : "bad point");
    }
    f->cpu_s += clock_processor_s(RUSAGE_CHILDREN) - before_s;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        take(f, fit_point_add(f, u[i]), &claims.v[i * f->claims.n]);
    }
    rc = rc == 0 ? fit_points_keep(f, f->e) : rc;
    if (rc == 0 && !f->o->quiet) {
        (void)fprintf(stderr, "fit: %u point%s, %.0f s of processor time\n", f->n_points,
                      text_plural(f->n_points), f->cpu_s);
    }
    return rc;
}

int fit_points_run(struct fit *f, const double (*u)[FIT_MAX_PARAMETERS], uint32_t n)
{
    int rc = 0;
    for (uint32_t at = 0; at < n && rc == 0; at += BATCH) {
        rc = run_batch(f, u + at, n - at < BATCH ? n - at : BATCH);
    }
    return rc;
}
