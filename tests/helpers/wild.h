/* A policy that does anything the contract allows: random passes, spans, shares, devices, yield
 * points, stops, resets, cancelled passes, KV moves, compilations, loads and evictions. After a
 * while it gets tired, and undoes nothing any more, so that every run ends. */
#pragma once

#include "sim/api/policy.h"

extern const struct policy_ops wild;       /* no graphs */
extern const struct policy_ops wild_loads; /* declares a graph version of two blocks, and uses it */

extern const struct policy_ops wild_sheds; /* drops requests, too */

/* It gives up in the n-th call of its schedule, as when its process dies; 0: never. */
extern uint32_t wild_dies_in;
extern uint32_t wild_calls; /* of schedule so far; set it to 0 before a run */
