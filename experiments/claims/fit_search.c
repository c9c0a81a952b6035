/* Waves of simulated points, each where most claims may still hold together. */
#include <gsl/gsl_qrng.h>

#include "experiments/claims/fit.h"
#include "sim/base/rng.h"

#define FIRST_PER_PARAMETER 4 /* points of the first wave */
#define WAVE 24               /* points of every later wave */
#define CANDIDATES 6000       /* evaluated by the emulators before each wave */
#define CLIMBS 48             /* of these, improved by random steps on the emulators */
#define STEPS 120
#define APART 0.12 /* least distance of points of a wave, as a share of the cube's diagonal */

struct candidate {
    double u[FIT_MAX_PARAMETERS];
    double promise;
};

/* Soft count of claims that may hold: each counts nearly 1 up to FIT_HOLDS, and less beyond. */
static double promise(const struct fit *f, const double *implausibility)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < f->claims.n; i++) {
        double beyond = fmax(0.0, implausibility[i] - 0.75 * FIT_HOLDS);
        sum += exp(-beyond * beyond);
    }
    return sum;
}

static double simulated_promise(const struct fit *f, const struct fit_point *p)
{
    double far[FIT_MAX_CLAIMS];
    fit_point_implausibility(f, p, far);
    return promise(f, far);
}

SORT_BY(by_promise, struct candidate, SORT_DOWN(promise))

/* The most promising simulated points so far, best first; at most n. */
static uint32_t parents(const struct fit *f, uint32_t *index, uint32_t n)
{
    OWNED struct candidate *all = xcalloc(f->n_points + 1, sizeof *all);
    for (uint32_t i = 0; i < f->n_points; i++) {
        all[i].u[0] = i;
        all[i].promise = simulated_promise(f, &f->points[i]);
    }
    qsort(all, f->n_points, sizeof *all, by_promise);
    uint32_t taken = f->n_points < n ? f->n_points : n;
    for (uint32_t i = 0; i < taken; i++) {
        index[i] = (uint32_t)all[i].u[0];
    }
    return taken;
}

/* Half of the candidates are anywhere, half around the best points. */
static void candidates_make(const struct fit *f, struct candidate *c, struct rng *r)
{
    uint32_t index[16];
    uint32_t n_parents = parents(f, index, 16);
    for (uint32_t i = 0; i < CANDIDATES; i++) {
        for (uint32_t k = 0; k < f->parameters.n; k++) {
            c[i].u[k] = rng_uniform(r);
        }
        if (i % 2 == 0 || n_parents == 0) {
            fit_under_draw(f, r, c[i].u);
            continue;
        }
        const double *from = f->points[index[i / 2 % n_parents]].u;
        double width = i % 4 == 1 ? 0.08 : 0.2;
        for (uint32_t k = 0; k < f->parameters.n; k++) {
            double u = from[k] + width * rng_normal(r);
            u = u < 0.0 ? -u : u > 1.0 ? 2.0 - u : u;
            c[i].u[k] = fmin(fmax(u, 0.0), 1.0);
        }
        fit_under_nearest(f, c[i].u);
    }
}

static bool far_from(const struct fit *f, const double *u,
                     const double (*others)[FIT_MAX_PARAMETERS], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        double d2 = 0.0;
        for (uint32_t k = 0; k < f->parameters.n; k++) {
            d2 += (u[k] - others[i][k]) * (u[k] - others[i][k]);
        }
        if (d2 < APART * APART * f->parameters.n) {
            return false;
        }
    }
    return true;
}

/* Waves alternate: one uses the full error of the emulators (exploration), the next hardly any
 * (exploitation). */
static double emulated_promise(const struct fit *f, const double *u, double *mean, double *sd)
{
    double far[FIT_MAX_CLAIMS];
    OWNED double *error = xcalloc(f->n_checks, sizeof *error);
    double trust = f->n_points / WAVE % 2 == 0 ? 1.0 : 0.25;
    for (uint32_t k = 0; k < f->n_checks; k++) {
        error[k] = trust * fit_emulator_error(f->emulator)[k];
    }
    fit_emulator_at(f->emulator, u, mean, sd);
    fit_implausibility(f, mean, sd, error, far);
    return promise(f, far);
}

/* Random steps of one to three parameters, kept if they are more promising. */
static void climb(const struct fit *f, struct candidate *c, struct rng *r, double *mean, double *sd)
{
    for (uint32_t step = 0; step < STEPS; step++) {
        struct candidate next = *c;
        double width = step < STEPS / 2 ? 0.2 : 0.05;
        for (uint32_t i = 0; i < 1 + step % 3; i++) {
            uint32_t k = rng_below(r, f->parameters.n);
            next.u[k] = fmin(fmax(next.u[k] + width * rng_normal(r), 0.0), 1.0);
        }
        fit_under_nearest(f, next.u);
        next.promise = emulated_promise(f, next.u, mean, sd);
        if (next.promise > c->promise) {
            *c = next;
        }
    }
}

/* Fills at most n points of a wave into u. Returns their number. */
static uint32_t wave(struct fit *f, struct rng *r, uint32_t n, double (*u)[FIT_MAX_PARAMETERS])
{
    OWNED struct candidate *c = xcalloc(CANDIDATES, sizeof *c);
    OWNED double *mean = xcalloc(f->n_checks, sizeof *mean);
    OWNED double *sd = xcalloc(f->n_checks, sizeof *sd);
    uint32_t n_next = 0;
    fit_emulator_free(f->emulator);
    f->emulator = fit_emulator_new(f);
    candidates_make(f, c, r);
    for (uint32_t i = 0; i < CANDIDATES; i++) {
        c[i].promise = emulated_promise(f, c[i].u, mean, sd);
    }
    qsort(c, CANDIDATES, sizeof *c, by_promise);
    for (uint32_t i = 0; i < CLIMBS; i++) {
        climb(f, &c[i], r, mean, sd);
    }
    qsort(c, CANDIDATES, sizeof *c, by_promise);
    for (uint32_t i = 0; i < CANDIDATES && n_next < n; i++) {
        if (far_from(f, c[i].u, (const double(*)[FIT_MAX_PARAMETERS])u, n_next)) {
            memcpy(u[n_next++], c[i].u, sizeof u[0]);
        }
    }
    return n_next;
}

static double best_promise(const struct fit *f)
{
    uint32_t index[1];
    return parents(f, index, 1) > 0 ? simulated_promise(f, &f->points[index[0]]) : 0.0;
}

/* The first wave fills the space; its points in a state file are not repeated. */
static uint32_t first_wave(const struct fit *f, double (**u)[FIT_MAX_PARAMETERS])
{
    gsl_qrng *sobol = gsl_qrng_alloc(gsl_qrng_sobol, f->parameters.n);
    uint32_t n = FIRST_PER_PARAMETER * f->parameters.n;
    n = n < f->o->budget ? n : f->o->budget;
    *u = xcalloc(n + 1, sizeof **u);
    uint32_t done = f->n_points < n ? f->n_points : n;
    struct rng r;
    rng_init(&r, rng_key(f->o->run.seed, RNG_FIT, UINT32_MAX, 2));
    for (uint32_t i = 0; i < n; i++) {
        double *to = (*u)[i < done ? 0 : i - done];
        (void)gsl_qrng_get(sobol, to);
        fit_under_draw(f, &r, to);
    }
    gsl_qrng_free(sobol);
    return n - done;
}

int fit_search(struct fit *f)
{
    uint32_t least = 1 + 2 * f->parameters.n; /* the terms of an emulator's trend */
    if (f->o->budget < least) {
        return err_add(f->e, "--budget %u: %u open parameter%s, which take at least %u points",
                       f->o->budget, f->parameters.n, text_plural(f->parameters.n), least);
    }
    double(*u)[FIT_MAX_PARAMETERS];
    uint32_t n = first_wave(f, &u);
    int rc = fit_points_run(f, (const double(*)[FIT_MAX_PARAMETERS])u, n);
    free(u);
    double best = best_promise(f);
    for (uint32_t idle = 0; rc == 0 && idle < 8 && f->n_points < f->o->budget; f->n_waves++) {
        struct rng r;
        rng_init(&r, rng_key(f->o->run.seed, RNG_FIT, f->n_points, 0)); /* the same when resumed */
        uint32_t left = f->o->budget - f->n_points;
        double next[WAVE][FIT_MAX_PARAMETERS] = {{0}};
        n = wave(f, &r, left < WAVE ? left : WAVE, next);
        rc = fit_points_run(f, (const double(*)[FIT_MAX_PARAMETERS])next, n);
        double now = best_promise(f);
        idle = now > best + 0.02 ? 0 : idle + 1;
        best = fmax(best, now);
    }
    if (rc == 0) {
        fit_emulator_free(f->emulator);
        f->emulator = fit_emulator_new(f);
    }
    return rc;
}
