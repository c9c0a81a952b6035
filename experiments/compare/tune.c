#include "experiments/compare/tune.h"

#include <gsl/gsl_qrng.h>

#include "policies/params.h"
#include "sim/base/hash.h"
#include "sim/base/portable.h"
#include "sim/base/rng.h"

#define SPREAD 8.0
#define UNLIMITED 1e5
#define UNLIMITED_FROM 1.0
#define UNLIMITED_TO 4096.0
#define SOBOL_DIMENSIONS 40 /* GSL's limit; above it, reverse Halton */

/* ---- the space ---- */

/* Whether the text after the policy's name sets this key. */
static bool is_stated(const char *label, const char *key)
{
    size_t n = strlen(key);
    for (const char *at = strstr(label, key); at != NULL; at = strstr(at + 1, key)) {
        if (at > label && (at[-1] == ':' || at[-1] == ',') && at[n] == '=') {
            return true;
        }
    }
    return false;
}

struct range {
    double low, high;
    bool log;
};

/* False: there is no scale. */
static bool range_of(const struct policy_param *p, struct range *r)
{
    if (p->type == PARAM_BOOL) {
        *r = (struct range){0.0, 1.0, false};
    } else if (p->type == PARAM_CHOICE) {
        *r = (struct range){0.0, -1.0, false};
        while (p->choices[(int)r->high + 1] != NULL) {
            r->high += 1.0;
        }
    } else if (p->type == PARAM_INT && p->def >= UNLIMITED) {
        *r = (struct range){fmax(p->min, UNLIMITED_FROM), fmin(p->max, UNLIMITED_TO), true};
    } else if (p->def > 0.0) {
        *r = (struct range){fmax(p->min, p->def / SPREAD), fmin(p->max, p->def * SPREAD), true};
    } else {
        *r = (struct range){p->min, p->max, false};
        return p->type == PARAM_NUMBER && p->def == 0.0 && p->min >= 0.0 && p->max <= 1.0;
    }
    if (p->type == PARAM_INT) {
        *r = (struct range){ceil(r->low), floor(r->high), r->log};
    }
    return r->high > r->low;
}

/* The value at u in [0, 1), rounded to the printed digits. */
static double value_at(const struct policy_param *p, const struct range *r, double u)
{
    if (p->type == PARAM_BOOL || p->type == PARAM_CHOICE) {
        return floor(u * (r->high + 1.0));
    }
    /* A positive default is a scale, so an eighth and eight times are equally far. */
    double x = r->log ? r->low * pow(r->high / r->low, u) : r->low + (r->high - r->low) * u;
    x = p->type == PARAM_INT ? (double)llround(x) : portable_digits(x, 3);
    return fmin(fmax(x, r->low), r->high);
}

struct space {
    const struct policy_ops *ops;
    uint32_t free[64]; /* parameters that may change */
    struct range range[64];
    double shift[64]; /* of each coordinate, modulo 1 (Cranley and Patterson 1976) */
    uint32_t n;
};

static void space_fill(struct space *s, const struct config_policy *given, uint64_t seed)
{
    *s = (struct space){.ops = given->ops};
    struct rng rng;
    rng_init(&rng, rng_key(seed, RNG_TUNE, hash_string(HASH_INIT, given->ops->name), 0));
    for (uint32_t i = 0; i < policy_params_count(given->ops); i++) {
        const struct policy_param *p = &given->ops->params[i];
        double shift = rng_uniform(&rng); /* drawn for all: a given key changes no other */
        struct range r;
        if (!is_stated(given->label, p->name) && range_of(p, &r)) {
            s->free[s->n] = i;
            s->range[s->n] = r;
            s->shift[s->n++] = shift;
        }
    }
}

static void point_fill(const struct space *s, const double *u, struct policy_params *out)
{
    /* Few parameters at a time: a change of all thirty of a policy loses the good defaults, and
     * does not show the effect of any. */
    double changed = fmin(1.0, TUNE_CHANGED / s->n);
    for (uint32_t k = 0; k < s->n; k++) {
        double x = u[k] + s->shift[k];
        x -= floor(x);
        if (x < changed) {
            const struct policy_param *p = &s->ops->params[s->free[k]];
            out->v[s->free[k]] = value_at(p, &s->range[k], x / changed);
        }
    }
}

static bool is_new(const struct policy_params *all, uint32_t n, const struct policy_params *p)
{
    for (uint32_t i = 0; i < n; i++) {
        if (memcmp(all[i].v, p->v, p->n * sizeof *p->v) == 0) {
            return false;
        }
    }
    return true;
}

uint32_t tune_draw(const struct config_policy *given, uint64_t seed, uint32_t n,
                   struct policy_params *out, uint32_t *n_free)
{
    struct space s;
    space_fill(&s, given, seed);
    if (n_free != NULL) {
        *n_free = s.n;
    }
    /* The untuned policy is a candidate, too. */
    out[0] = given->params;
    uint32_t got = 1;
    if (s.n == 0) {
        return got;
    }
    gsl_qrng *q =
        gsl_qrng_alloc(s.n <= SOBOL_DIMENSIONS ? gsl_qrng_sobol : gsl_qrng_reversehalton, s.n);
    SIM_REQUIRE(q != NULL, "no quasi-random sequence of %u dimensions", s.n);
    /* At most n draws: a space with few choices has fewer than requested. */
    for (uint32_t i = 0; i < n && got < n; i++) {
        double u[64];
        (void)gsl_qrng_get(q, u);
        out[got] = given->params;
        point_fill(&s, u, &out[got]);
        got += is_new(out, got, &out[got]) ? 1 : 0;
    }
    gsl_qrng_free(q);
    return got;
}
