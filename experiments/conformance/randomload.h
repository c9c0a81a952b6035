/* Random small workloads and machines, determined by a seed. */
#pragma once

#include "experiments/conformance/scenario.h"
#include "sim/base/rng.h"

/* Fills machine, costs and up to max requests; returns how many. Mixed classes, bursts, some
 * sessions with turns and prefixes, KV from plenty to just enough, noise, host costs, every
 * contention model, sometimes a graphics load or a power limit. */
uint32_t randomload_make(struct scenario *sc, struct scenario_request *q, uint32_t max,
                         uint64_t seed);

/* A random number between low and high, log-uniform. */
double randomload_between(struct rng *r, double low, double high);
/* One of the words, a NULL-terminated list. */
const char *randomload_word(struct rng *r, const char *const *words);
/* Writes "name=value" with a random value of a parameter: any choice; a number near its default, or
 * in its range. Returns the length. */
size_t randomload_param(char *out, size_t size, struct rng *r, const struct policy_param *p);
