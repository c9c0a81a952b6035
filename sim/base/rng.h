/* Random numbers in keyed streams, so that a new policy or purpose changes no other draws.
 *
 * Generator: xoshiro256++ (Blackman and Vigna 2019, public domain algorithm), state filled by
 * splitmix64 from a 64-bit key. A stream's key mixes (seed, purpose, a, b); two different tuples
 * give independent streams for all practical purposes. GSL's distributions can draw from it as a
 * gsl_rng_type. */
#pragma once

#include <gsl/gsl_rng.h>
#include <stdint.h>

struct rng {
    uint64_t s[4];
};

/* The purpose of a stream. Never renumber: recorded results depend on it. */
enum rng_purpose {
    RNG_ARRIVAL_REACTIVE = 1,
    RNG_ARRIVAL_PROACTIVE = 2,
    RNG_LENGTH_REACTIVE = 3,
    RNG_LENGTH_PROACTIVE = 4,
    RNG_GAP = 5,
    RNG_ACTIVITY = 6,
    RNG_ANNOTATION = 7,
    RNG_TRUTH = 8,
    RNG_BOOTSTRAP = 9,
    RNG_SPECULATION = 10,
    RNG_TEST = 11,
    RNG_POLICY = 12,
    RNG_BACKEND = 13,
    RNG_TUNE = 14,
    RNG_FIT = 15,
    RNG_MACHINE = 16,
    RNG_FALSIFY = 17,
    RNG_RESAMPLE = 18,
    RNG_WORKLOAD = 19,
    RNG_HANG = 20,
};

/* One step of splitmix64 (Steele, Lea, Flood 2014), constants as published: a bijective 64-bit
 * mixer, also used for hashing keys. Each step adds RNG_MIX_STEP to the state. */
#define RNG_MIX_STEP 0x9E3779B97F4A7C15ULL
static inline uint64_t rng_mix64(uint64_t x)
{
    uint64_t z = x + RNG_MIX_STEP;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

uint64_t rng_key(uint64_t seed, enum rng_purpose purpose, uint64_t a, uint64_t b);

/* The largest seed in options and files: a JSON number is exact up to 2^53. */
#define RNG_SEED_MAX 9007199254740992ULL

/* A seed for options and files: the upper 53 bits. */
static inline uint64_t rng_seed(uint64_t key)
{
    return key >> 11;
}

void rng_init(struct rng *r, uint64_t key);
uint64_t rng_u64(struct rng *r);
double rng_uniform(struct rng *r);                  /* [0,1), 53 bits */
uint32_t rng_below(struct rng *r, uint32_t n);      /* [0,n), unbiased; n > 0 */
double rng_exponential(struct rng *r, double mean); /* by inversion */
double rng_normal(struct rng *r);                   /* standard normal by inversion */

/* A standard normal as a pure function of its key, without state. */
double rng_normal_of_key(uint64_t key);

/* This generator behind GSL's interface; gsl_rng_set calls rng_init(seed). */
extern const gsl_rng_type *rng_gsl_type;
/* A GSL generator for a stream's key; the caller frees it with gsl_rng_free. */
gsl_rng *rng_gsl_new(uint64_t key);
