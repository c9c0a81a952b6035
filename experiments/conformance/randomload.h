/* Random small workloads and machines: everything follows from one seed. */
#pragma once

#include "experiments/conformance/scenario.h"
#include "sim/base/rng.h"

/* Fills machine, costs and up to max requests; returns how many. Mixed classes, bursts, some
 * sessions with turns and prefixes, KV from roomy to just enough, noise, host costs, every
 * contention form, sometimes a graphics user or a power limit. */
uint32_t randomload_make(struct scenario *sc, struct scenario_request *q, uint32_t max,
                         uint64_t seed);

/* A number between low and high, evenly in its logarithm. */
double randomload_between(struct rng *r, double low, double high);
/* One of the words, which NULL ends. */
const char *randomload_word(struct rng *r, const char *const *words);
/* "name=value" with a value of a parameter: any choice; a number near its default, or anywhere.
 * Returns how long it is. */
size_t randomload_param(char *out, size_t size, struct rng *r, const struct policy_param *p);
