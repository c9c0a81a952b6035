/* Single-server queues on the project's event queue and integer clock. They include the M/M/1 of
 * the recorded workload: a Poisson source of rate 0.9, and one exponential server of rate 1. It
 * serves `customers` first come, first served, until none is left. An arrival at an idle server
 * draws the service time first, and then the next gap. */
#pragma once

#include <stdint.h>

#include "sim/base/rng.h"

/* Exponential variates by the 256-layer ziggurat of Marsaglia and Tsang (2000), with one 64-bit
 * draw each. The high 32 bits are the value, and the low 8 the layer. */
struct ziggurat {
    uint32_t k[256];
    double w[256], f[256];
};

void ziggurat_init(struct ziggurat *z);
double ziggurat_tail(const struct ziggurat *z, struct rng *r, uint32_t value, uint32_t layer);

static inline double ziggurat_exponential(const struct ziggurat *z, struct rng *r)
{
    uint64_t u = rng_u64(r);
    uint32_t value = (uint32_t)(u >> 32);
    uint32_t layer = (uint32_t)(u & 255);
    return value < z->k[layer] ? value * z->w[layer] : ziggurat_tail(z, r, value, layer);
}

/* Mean time in system, s. Uses eventq with function-pointer handlers and a nanosecond clock. */
double queue_mm1(uint64_t customers, uint64_t seed);
/* Mean time in system, s, by a hand-written loop in double: the limit of what is possible. */
double queue_mm1_limit(uint64_t customers, uint64_t seed);
