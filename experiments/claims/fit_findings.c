/* Concludes a search: conflicts, remaining ranges, and parameters worth measuring. */
#include "experiments/claims/fit.h"
#include "sim/base/rng.h"

#define SAMPLES 8000 /* samples of the cube, evaluated by the emulators */
#define BINS 5
struct sample {
    double u[FIT_MAX_PARAMETERS];
    uint32_t possible; /* claims not ruled out, a bit each */
    uint32_t likely;   /* claims that may hold */
};

static uint32_t set_where(const struct fit *f, const double *far, double at_most)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < f->claims.n; i++) {
        set |= far[i] <= at_most ? 1u << i : 0;
    }
    return set;
}

/* Emulated samples of the cube, then the simulated points, without the emulators' error. */
static struct sample *samples_make(const struct fit *f, uint32_t *n)
{
    struct sample *s = xcalloc(SAMPLES + f->n_points, sizeof *s);
    OWNED double *mean = xcalloc(f->n_checks, sizeof *mean);
    OWNED double *sd = xcalloc(f->n_checks, sizeof *sd);
    double far[FIT_MAX_CLAIMS];
    struct rng r;
    rng_init(&r, rng_key(f->o->run.seed, RNG_FIT, UINT32_MAX, 0));
    for (uint32_t i = 0; i < SAMPLES; i++) {
        for (uint32_t k = 0; k < f->parameters.n; k++) {
            s[i].u[k] = rng_uniform(&r);
        }
        fit_under_draw(f, &r, s[i].u);
        fit_emulator_at(f->emulator, s[i].u, mean, sd);
        fit_implausibility(f, mean, sd, fit_emulator_error(f->emulator), far);
        s[i].possible = set_where(f, far, FIT_RULED_OUT);
        s[i].likely = set_where(f, far, FIT_HOLDS);
    }
    for (uint32_t i = 0; i < f->n_points; i++) {
        struct sample *x = &s[SAMPLES + i];
        memcpy(x->u, f->points[i].u, sizeof x->u);
        fit_point_implausibility(f, &f->points[i], far);
        x->possible = set_where(f, far, FIT_RULED_OUT);
        x->likely = set_where(f, far, FIT_HOLDS);
    }
    *n = SAMPLES + f->n_points;
    return s;
}

/* ---- conflicts ---- */

static bool somewhere(const struct sample *s, uint32_t n, uint32_t set)
{
    for (uint32_t i = 0; i < n; i++) {
        if ((s[i].possible & set) == set) {
            return true;
        }
    }
    return false;
}

static void conflict_try(struct fit_findings *g, const struct sample *s, uint32_t n, uint32_t set)
{
    for (uint32_t i = 0; i < g->n_conflicts; i++) {
        if ((g->conflicts[i] & set) == g->conflicts[i]) {
            return; /* not a smallest one */
        }
    }
    if (g->n_conflicts < FIT_MAX_CONFLICTS && !somewhere(s, n, set)) {
        g->conflicts[g->n_conflicts++] = set;
    }
}

/* Finds sets of one, two and three claims that are not possible together in any sample. */
static void conflicts_find(const struct fit *f, struct fit_findings *g, const struct sample *s,
                           uint32_t n)
{
    /* Smallest sets first, because a claim that fails alone fails in every pair, which is no
     * information on the other claim. */
    uint32_t m = f->claims.n;
    for (uint32_t a = 0; a < m; a++) {
        conflict_try(g, s, n, 1u << a);
    }
    for (uint32_t a = 0; a < m; a++) {
        for (uint32_t b = a + 1; b < m; b++) {
            conflict_try(g, s, n, 1u << a | 1u << b);
        }
    }
    for (uint32_t a = 0; a < m; a++) {
        for (uint32_t b = a + 1; b < m; b++) {
            for (uint32_t c = b + 1; c < m; c++) {
                conflict_try(g, s, n, 1u << a | 1u << b | 1u << c);
            }
        }
    }
}

/* ---- ranges ---- */

static void range_of(const struct fit *f, const struct sample *s, uint32_t n, uint32_t set,
                     double *left, double *low, double *high)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < f->parameters.n; k++) {
        low[k] = 1.0;
        high[k] = 0.0;
    }
    for (uint32_t i = 0; i < n; i++) {
        if ((s[i].possible & set) != set) {
            continue;
        }
        /* The remaining share is of the cube's volume, without simulated points, which are
         * concentrated where claims hold. For the range they do count. */
        kept += i < SAMPLES;
        for (uint32_t k = 0; k < f->parameters.n; k++) {
            low[k] = fmin(low[k], s[i].u[k]);
            high[k] = fmax(high[k], s[i].u[k]);
        }
    }
    *left = (double)kept / SAMPLES;
}

static void together_find(const struct fit *f, struct fit_findings *g, const struct sample *s)
{
    for (uint32_t a = 0; a < f->claims.n; a++) {
        for (uint32_t b = 0; b < f->claims.n; b++) {
            uint32_t set = 1u << a | 1u << b;
            uint32_t n = 0;
            for (uint32_t i = 0; i < SAMPLES; i++) {
                n += (s[i].likely & set) == set;
            }
            g->together_frac[a][b] = (double)n / SAMPLES;
        }
    }
}

/* ---- parameters to measure ---- */

/* Variance of "the claim holds" between slices of a parameter over its total variance: the share of
 * the uncertainty that a known slice removes. */
static double settled(const struct sample *s, uint32_t claim, uint32_t parameter)
{
    double n[BINS] = {0.0};
    double held[BINS] = {0.0};
    double all = 0.0;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t bin = (uint32_t)(s[i].u[parameter] * BINS);
        bin = bin < BINS ? bin : BINS - 1;
        double holds = (s[i].likely >> claim & 1u) != 0 ? 1.0 : 0.0;
        n[bin] += 1.0;
        held[bin] += holds;
        all += holds;
    }
    double p = all / SAMPLES;
    double between = 0.0;
    for (int b = 0; b < BINS; b++) {
        double d = n[b] > 0.0 ? held[b] / n[b] - p : 0.0;
        between += n[b] / SAMPLES * d * d;
    }
    return p > 0.0 && p < 1.0 ? between / (p * (1.0 - p)) : 0.0;
}

/* ---- the witness ---- */

struct ranked {
    uint32_t point;
    double sum; /* claims that hold there, minus a little for uncertain ones */
};

SORT_BY(by_sum, struct ranked, SORT_DOWN(sum), SORT_UP(point))

/* Ranks simulated points by the number of claims that hold on their few traces. */
static void rank(const struct fit *f, struct ranked *r)
{
    for (uint32_t i = 0; i < f->n_points; i++) {
        double far[FIT_MAX_CLAIMS];
        r[i] = (struct ranked){.point = i};
        fit_point_implausibility(f, &f->points[i], far);
        for (uint32_t c = 0; c < f->claims.n; c++) {
            /* A further claim adds at least 0.9, and the uncertainty of another subtracts at most
             * 0.1. */
            r[i].sum += far[c] <= FIT_HOLDS ? 1.0 - 0.05 * far[c] : 0.0;
        }
    }
    qsort(r, f->n_points, sizeof *r, by_sum);
}

uint32_t fit_best_points(const struct fit *f, uint32_t *points)
{
    OWNED struct ranked *r = xcalloc(f->n_points + 1, sizeof *r);
    rank(f, r);
    uint32_t n = f->n_points < FIT_CONFIRMED ? f->n_points : FIT_CONFIRMED;
    for (uint32_t i = 0; i < n; i++) {
        points[i] = r[i].point;
    }
    return n;
}

int fit_conclude(struct fit *f, struct fit_findings *out)
{
    *out = (struct fit_findings){.best = f->witness};
    f->witness = (struct fit_witness){.holds = 0};
    if (f->n_points == 0) {
        return 0; /* the constraints exclude each other */
    }
    if (f->o->n_under > 0 && fit_under_judge(f, out->best.u, &out->under, f->e) != 0) {
        return -EINVAL;
    }
    uint32_t n;
    OWNED struct sample *s = samples_make(f, &n);
    conflicts_find(f, out, s, n);
    together_find(f, out, s);
    for (uint32_t i = SAMPLES; i < n; i++) {
        for (uint32_t c = 0; c < f->claims.n; c++) {
            out->plausible[c] += s[i].likely >> c & 1u;
        }
    }
    for (uint32_t i = 0; i <= f->claims.n; i++) {
        uint32_t set = i < f->claims.n ? 1u << i : out->best.holds;
        range_of(f, s, n, set, &out->left_frac[i], out->low[i], out->high[i]);
    }
    for (uint32_t c = 0; c < f->claims.n; c++) {
        for (uint32_t k = 0; k < f->parameters.n; k++) {
            out->settles_frac[c][k] = settled(s, c, k);
        }
    }
    return 0;
}
