/* Random small workloads and machines for conformance tests: everything follows from one seed. */
#pragma once

#include "sim/base/rng.h"
#include "tests/helpers/scenario.h"

/* Fills machine, costs and up to max requests; returns how many. Mixed classes, bursts, some
 * sessions with turns and prefixes, KV from roomy to just enough, noise, host costs, every
 * contention form, sometimes a graphics user or a power limit. */
uint32_t randomload_make(struct scenario *sc, struct scenario_request *q, uint32_t max,
                         uint64_t seed);
/* Does the machine have what the policy needs and does its init accept it? Prints "skipped: ..." */
bool randomload_suits(struct scenario *sc, const struct policy_ops *ops);
