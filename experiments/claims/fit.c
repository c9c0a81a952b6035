/* A fit: constraints, search, and confirmation of the best points on fresh traces. */
#include "experiments/claims/fit.h"

/* Fills the claims' verdicts at u, on set number `set` of fresh traces. */
static int judge_point(const struct fit *f, const double *u, uint32_t set, uint32_t traces,
                       struct fit_witness *out)
{
    struct setup setup;
    struct quantities_options options = f->o->run;
    options.replications = traces;
    options.seed += 1000000ull * set;
    *out = (struct fit_witness){.holds = 0};
    memcpy(out->u, u, sizeof out->u);
    fit_setup(&f->parameters, u, &setup);
    int rc = fit_claims_read(f->o, &out->judged, f->e);
    rc = rc == 0 ? claims_change(&out->judged, &setup, f->e) : rc;
    rc = rc == 0 ? claims_run(&out->judged, &options, f->e) : rc;
    for (uint32_t i = 0; i < out->judged.n; i++) {
        out->holds |= claim_verdict_holds(out->judged.v[i].verdict) ? 1u << i : 0;
        out->compatible |= out->judged.v[i].verdict == CLAIM_COMPATIBLE ? 1u << i : 0;
    }
    return rc;
}

uint32_t fit_confirm_each(const struct fit_options *o)
{
    return o->confirm_each > 0 ? o->confirm_each : 1 + o->confirm / 4;
}

/* Whether more claims hold at a than at b. Ties are decided by the number of compatible claims. */
static bool more_holds(const struct fit_confirmed *a, const struct fit_confirmed *b)
{
    uint32_t na = fit_set_size(a->holds);
    uint32_t nb = fit_set_size(b->holds);
    return na != nb ? na > nb : fit_set_size(a->compatible) > fit_set_size(b->compatible);
}

/* The best of many noisy points is partly lucky. So the most promising points get verdicts on more
 * traces, and the best of these again, on traces that were not used for the choice. */
static int confirm(struct fit *f)
{
    uint32_t points[FIT_CONFIRMED] = {0};
    uint32_t n = fit_best_points(f, points);
    const struct fit_confirmed *best = &f->confirmed[0];
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        struct fit_witness w;
        rc = judge_point(f, f->points[points[i]].u, 1, fit_confirm_each(f->o), &w);
        f->confirmed[i] = (struct fit_confirmed){points[i], w.holds, w.compatible};
        f->n_confirmed++;
        best = more_holds(&f->confirmed[i], best) ? &f->confirmed[i] : best;
        claims_fini(&w.judged);
        if (rc == 0 && !f->o->quiet) {
            (void)fprintf(stderr, "fit: point %u of %u confirmed\n", i + 1, n);
        }
    }
    rc = rc == 0 ? judge_point(f, f->points[best->point].u, 2, f->o->confirm, &f->witness) : rc;
    if (rc != 0) {
        claims_fini(&f->witness.judged);
    }
    return rc;
}

int claims_fit(struct fit *f)
{
    int rc = fit_points_resume(f, f->e);
    rc = rc == 0 ? fit_under_find(f) : rc;
    if (rc != 0 || (f->o->n_under > 0 && f->under.n_pool == 0)) {
        return rc; /* the constraints exclude each other: nothing to search */
    }
    rc = fit_search(f);
    return rc == 0 ? confirm(f) : rc;
}
