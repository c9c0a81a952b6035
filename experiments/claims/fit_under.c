/* Constraints of a fit: checks that need no run, computed from the cost model. */
#include "experiments/claims/fit.h"
#include "experiments/run/expr.h"
#include "sim/base/rng.h"

#define BATCH 64
#define GRID 1024   /* points of the grid at most */
#define DESCENT 16  /* batches that search for points that the grid did not have */
#define PARENTS 8   /* points from which a batch of a descent starts */
#define POOL 400    /* most points that fulfil all */
#define GROWTH 2048 /* points tried for it */

/* ---- reading ---- */

/* Keeps a claim's checks that need no run, and counts those for information, too. */
static void drop_runs(const struct claims *all, struct claim *c)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < c->n_checks; k++) {
        struct expr_names names = {(void *)(uintptr_t)&all->books[c->book], quantities_fixed};
        char message[EXPR_MESSAGE_BYTES];
        double v;
        if (expr_eval(c->checks[k].value, &names, &v, message) == 0) {
            c->checks[kept] = c->checks[k];
            c->checks[kept++].informative = false;
        }
    }
    c->n_checks = kept;
}

static int under_read(const struct fit_options *o, struct claims *c, struct err *e)
{
    *c = (struct claims){.n = 0};
    for (uint32_t i = 0; i < o->n_files; i++) {
        (void)claims_read(c, o->files[i], e);
    }
    int rc = e->n > 0 ? -EINVAL : claims_select(c, o->under, o->n_under, e);
    rc = rc == 0 ? claims_choose(c, "stated", e) : rc;
    for (uint32_t i = 0; i < c->n && rc == 0; i++) {
        drop_runs(c, &c->v[i]);
        if (c->v[i].n_checks == 0) {
            rc = err_add(e, "--under: %s has no check that needs no run", c->v[i].id);
        }
    }
    claims_set_by(c, NULL, "the point was chosen so that the claim holds");
    return rc == 0 ? claims_change(c, o->fixed, e) : rc;
}

/* Relative distance of a check from holding; 0: it holds. */
static double miss(const struct claim_check *k)
{
    double x = k->mean.mean;
    if (claim_verdict_holds(k->verdict)) {
        return 0.0;
    }
    double bound = x < k->low ? k->low : k->high;
    return isfinite(x) ? 1e-3 + fabs(x - bound) / fmax(fabs(bound), 1e-9) : 1e3;
}

int fit_under_judge(const struct fit *f, const double *u, struct claims *out, struct err *e)
{
    struct setup setup;
    struct quantities_options run = f->o->run;
    run.replications = 1;
    fit_setup(&f->parameters, u, &setup);
    int rc = under_read(f->o, out, e);
    rc = rc == 0 ? claims_change(out, &setup, e) : rc;
    return rc == 0 ? claims_run(out, &run, e) : rc;
}

static void take(struct fit_priced *p, const struct claim *c, uint32_t n)
{
    p->holds = 0;
    p->sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        p->miss[i] = 0.0;
        for (uint32_t k = 0; k < c[i].n_checks; k++) {
            p->miss[i] += miss(&c[i].checks[k]);
            p->sum += c[i].checks[k].mean.mean;
        }
        p->holds |= p->miss[i] <= 0.0 ? 1u << i : 0;
    }
}

/* Computes the constraints at n points, and keeps these. */
static int price(struct fit_under *c, struct fit *f, struct fit_priced *p, uint32_t n)
{
    struct setup setups[BATCH] = {{.set = {.n = 0}}};
    SCOPED(claims_fini) struct claims claims;
    struct quantities_options run = f->o->run;
    run.replications = 1;
    int rc = under_read(f->o, &claims, f->e);
    for (uint32_t i = 0; i < n; i++) {
        fit_setup(&f->parameters, p[i].u, &setups[i]);
    }
    rc = rc == 0 ? fit_spread(&claims, setups, n, f->e) : rc;
    rc = rc == 0 ? claims_run(&claims, &run, f->e) : rc;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        take(&p[i], &claims.v[i * c->n_claims], c->n_claims);
        LIST_ADD(c->seen, c->n_seen, p[i]);
    }
    return rc;
}

/* ---- the grid ---- */

/* Values of the other parameters while one is varied: two diagonals, and every level, because a
 * number may only matter with one of the levels. */
static double elsewhere(const struct fit_parameter *p, uint32_t j, uint32_t place)
{
    double diagonal = place % 2 == 0 || j % 2 == 0 ? 0.3 : 0.7;
    return p->n_levels > 0 ? (place % p->n_levels + 0.5) / p->n_levels : diagonal;
}

#define MOVES 3 /* values of the varied parameter: both ends and the middle */

/* A parameter without effect on any check at these points is left to the search. */
static int active_find(struct fit_under *c, struct fit *f)
{
    uint32_t places = 2;
    for (uint32_t k = 0; k < f->parameters.n; k++) {
        uint32_t levels = f->parameters.v[k].n_levels;
        places = levels > places ? levels : places;
    }
    for (uint32_t k = 0; k < f->parameters.n; k++) {
        struct fit_priced p[MOVES * FIT_MAX_LEVELS] = {{.sum = 0.0}};
        for (uint32_t i = 0; i < MOVES * places; i++) {
            for (uint32_t j = 0; j < f->parameters.n; j++) {
                p[i].u[j] = elsewhere(&f->parameters.v[j], j, i / MOVES);
            }
            p[i].u[k] = (i % MOVES) / (MOVES - 1.0);
        }
        if (f->parameters.v[k].changes.set.n == 0) {
            continue; /* kernels do not depend on policy and workload */
        }
        uint32_t before = c->n_seen;
        int rc = price(c, f, p, MOVES * places);
        if (rc != 0) {
            return rc;
        }
        bool moved = false;
        for (uint32_t i = 0; i < MOVES * places; i++) {
            moved = moved || p[i].sum != p[i - i % MOVES].sum;
        }
        c->n_seen = before;
        if (moved) {
            c->active[c->n_active++] = k;
        }
    }
    return 0;
}

/* Every combination of as many values of each active parameter as GRID allows, including both ends;
 * levels are all used. Parameters without effect are in the middle. */
static int grid(struct fit_under *c, struct fit *f)
{
    uint32_t levels = 2;
    while (c->n_active > 0 && pow(levels + 1.0, c->n_active) <= GRID && levels < 64) {
        levels++;
    }
    uint32_t of[FIT_MAX_PARAMETERS];
    c->n_grid = 1;
    for (uint32_t k = 0; k < c->n_active; k++) {
        uint32_t own = f->parameters.v[c->active[k]].n_levels;
        of[k] = own > 0 ? own : levels;
        c->n_grid *= of[k];
    }
    int rc = 0;
    for (uint32_t at = 0; at < c->n_grid && rc == 0; at += BATCH) {
        struct fit_priced p[BATCH] = {{.sum = 0.0}};
        uint32_t n = c->n_grid - at < BATCH ? c->n_grid - at : BATCH;
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t k = 0; k < f->parameters.n; k++) {
                p[i].u[k] = 0.5;
            }
            uint32_t index = at + i;
            for (uint32_t k = 0; k < c->n_active; k++) {
                p[i].u[c->active[k]] = (index % of[k]) / (of[k] - 1.0);
                index /= of[k];
            }
        }
        rc = price(c, f, p, n);
    }
    return rc;
}

/* ---- points that the grid did not have ---- */

/* Distance of a point from all claims of a set. */
static double far(const struct fit_priced *p, uint32_t set)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < FIT_MAX_CLAIMS; i++) {
        sum += (set >> i & 1u) != 0 ? p->miss[i] : 0.0;
    }
    return sum;
}

static bool somewhere(const struct fit_under *c, uint32_t set)
{
    for (uint32_t i = 0; i < c->n_seen; i++) {
        if ((c->seen[i].holds & set) == set) {
            return true;
        }
    }
    return false;
}

/* The n points nearest to a set, nearest first, by n passes over all, which cost little against a
 * batch. */
static uint32_t nearest(const struct fit_under *c, uint32_t set, uint32_t *index, uint32_t n)
{
    uint32_t found = 0;
    for (; found < n && found < c->n_seen; found++) {
        double best = (double)INFINITY;
        for (uint32_t i = 0; i < c->n_seen; i++) {
            bool taken = false;
            for (uint32_t k = 0; k < found; k++) {
                taken = taken || index[k] == i;
            }
            double d = far(&c->seen[i], set);
            if (!taken && d < best) {
                best = d;
                index[found] = i;
            }
        }
    }
    return found;
}

/* Changes one to three of the active parameters. */
static void step(const struct fit_under *c, struct fit_priced *p, double width, struct rng *r)
{
    for (uint32_t i = 0; i < 1 + rng_below(r, 3); i++) {
        uint32_t k = c->active[rng_below(r, c->n_active)];
        p->u[k] = fmin(fmax(p->u[k] + width * rng_normal(r), 0.0), 1.0);
    }
}

/* Searches for a point where all of a set hold, starting from the nearest ones. */
static int descend(struct fit_under *c, struct fit *f, uint32_t set, struct rng *r)
{
    int rc = 0;
    for (uint32_t round = 0; round < DESCENT && rc == 0 && !somewhere(c, set); round++) {
        uint32_t parents[PARENTS];
        struct fit_priced p[BATCH];
        uint32_t n = nearest(c, set, parents, PARENTS);
        for (uint32_t i = 0; i < BATCH; i++) {
            p[i] = c->seen[parents[i % n]];
            step(c, &p[i], 0.2 / (1.0 + round / 2), r);
        }
        rc = price(c, f, p, BATCH);
    }
    return rc;
}

/* Finds the smallest sets, of at most three claims, that hold nowhere. */
static int conflicts(struct fit_under *c, struct fit *f, struct rng *r)
{
    int rc = 0;
    uint32_t all = (1u << c->n_claims) - 1u;
    for (uint32_t size = 1; size <= 3 && rc == 0; size++) {
        for (uint32_t set = 1; set <= all && rc == 0; set++) {
            bool known = fit_set_size(set) != size;
            for (uint32_t i = 0; i < c->n_conflicts; i++) {
                known = known || (c->conflicts[i] & set) == c->conflicts[i];
            }
            if (!known) {
                rc = descend(c, f, set, r);
                if (rc == 0 && !somewhere(c, set) && c->n_conflicts < FIT_MAX_CONFLICTS) {
                    c->conflicts[c->n_conflicts++] = set;
                }
            }
        }
    }
    return rc;
}

/* ---- the pool ---- */

/* Finds further points where all hold, by random steps from known ones. */
static int pool(struct fit_under *c, struct fit *f, struct rng *r)
{
    uint32_t all = (1u << c->n_claims) - 1u;
    uint32_t from = 0;
    int rc = 0;
    for (uint32_t tried = 0; rc == 0; tried += BATCH) {
        for (; from < c->n_seen && c->n_pool < POOL; from++) {
            if (c->seen[from].holds == all) {
                LIST_ADD(c->pool, c->n_pool, c->seen[from]);
            }
        }
        if (c->n_pool == 0 || c->n_pool == POOL || tried >= GROWTH || c->n_active == 0) {
            return 0;
        }
        struct fit_priced p[BATCH];
        for (uint32_t i = 0; i < BATCH; i++) {
            p[i] = c->pool[rng_below(r, c->n_pool)];
            step(c, &p[i], 0.25, r);
        }
        rc = price(c, f, p, BATCH);
    }
    return rc;
}

int fit_under_find(struct fit *f)
{
    struct fit_under *c = &f->under;
    struct rng r;
    if (f->o->n_under == 0) {
        return 0;
    }
    rng_init(&r, rng_key(f->o->run.seed, RNG_FIT, UINT32_MAX, 1));
    int rc = under_read(f->o, &c->stated, f->e);
    if (rc != 0) {
        return rc;
    }
    if (c->stated.n > FIT_MAX_CLAIMS) {
        return err_add(f->e, "--under: more than %d claims", FIT_MAX_CLAIMS);
    }
    c->n_claims = c->stated.n;
    rc = active_find(c, f);
    rc = rc == 0 ? grid(c, f) : rc;
    rc = rc == 0 ? descend(c, f, (1u << c->n_claims) - 1u, &r) : rc;
    rc = rc == 0 ? pool(c, f, &r) : rc;
    return rc == 0 && c->n_pool == 0 ? conflicts(c, f, &r) : rc;
}

/* ---- for the search ---- */

static void put(const struct fit_under *c, const struct fit_priced *p, double *u)
{
    for (uint32_t k = 0; k < c->n_active; k++) {
        u[c->active[k]] = p->u[c->active[k]];
    }
}

void fit_under_draw(const struct fit *f, struct rng *r, double *u)
{
    if (f->under.n_pool > 0) {
        put(&f->under, &f->under.pool[rng_below(r, f->under.n_pool)], u);
    }
}

void fit_under_nearest(const struct fit *f, double *u)
{
    const struct fit_under *c = &f->under;
    const struct fit_priced *best = NULL;
    double least = (double)INFINITY;
    for (uint32_t i = 0; i < c->n_pool; i++) {
        double d = 0.0;
        for (uint32_t k = 0; k < c->n_active; k++) {
            double x = c->pool[i].u[c->active[k]] - u[c->active[k]];
            d += x * x;
        }
        if (d < least) {
            least = d;
            best = &c->pool[i];
        }
    }
    if (best != NULL) {
        put(c, best, u);
    }
}
