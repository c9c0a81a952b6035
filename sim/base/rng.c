#include "sim/base/rng.h"

#include <gsl/gsl_cdf.h>

#include "sim/base/base.h"

uint64_t rng_key(uint64_t seed, enum rng_purpose purpose, uint64_t a, uint64_t b)
{
    uint64_t h = rng_mix64(seed);
    h = rng_mix64(h ^ (uint64_t)purpose);
    h = rng_mix64(h ^ a);
    return rng_mix64(h ^ b);
}

void rng_init(struct rng *r, uint64_t key)
{
    for (int i = 0; i < 4; i++) {
        r->s[i] = rng_mix64(key);
        key += RNG_MIX_STEP;
    }
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

/* xoshiro256++ 1.0 (Blackman, Vigna 2019). */
uint64_t rng_u64(struct rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotl(s[0] + s[3], 23) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

static double uniform_of(uint64_t x)
{
    return (double)(x >> 11) * 0x1.0p-53;
}

/* In (0,1): the midpoint of one of 2^53 equal intervals, so that inverses stay finite. */
static double open_uniform_of(uint64_t x)
{
    return ((double)(x >> 11) + 0.5) * 0x1.0p-53;
}

double rng_uniform(struct rng *r)
{
    return uniform_of(rng_u64(r));
}

uint32_t rng_below(struct rng *r, uint32_t n)
{
    /* Rejects draws from the largest multiple of n on. It is within n of UINT64_MAX, so it is
     * rarely computed: a division costs more than the draw. */
    SIM_ASSERT(n > 0);
    uint64_t x = rng_u64(r);
    while (x > UINT64_MAX - n && x >= UINT64_MAX - UINT64_MAX % n) {
        x = rng_u64(r);
    }
    return (uint32_t)(x % n);
}

double rng_exponential(struct rng *r, double mean)
{
    SIM_ASSERT(mean >= 0.0);
    return -mean * log1p(-rng_uniform(r)); /* log of 1 - u in (0, 1] is finite */
}

double rng_normal(struct rng *r)
{
    return gsl_cdf_ugaussian_Pinv(open_uniform_of(rng_u64(r)));
}

double rng_normal_of_key(uint64_t key)
{
    return gsl_cdf_ugaussian_Pinv(open_uniform_of(rng_mix64(key)));
}

/* ---- GSL's interface ---- */

static void gsl_set(void *state, unsigned long seed)
{
    rng_init(state, seed);
}

static unsigned long gsl_get(void *state)
{
    return (unsigned long)(rng_u64(state) >> 32);
}

static double gsl_get_double(void *state)
{
    return rng_uniform(state);
}

static const gsl_rng_type xoshiro = {"xoshiro256++", 0xffffffffUL,  0, sizeof(struct rng), gsl_set,
                                     gsl_get,        gsl_get_double};
const gsl_rng_type *rng_gsl_type = &xoshiro;

gsl_rng *rng_gsl_new(uint64_t key)
{
    gsl_rng *g = gsl_rng_alloc(rng_gsl_type);
    rng_init(g->state, key);
    return g;
}
