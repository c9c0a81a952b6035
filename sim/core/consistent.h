/* Invariants of the core. They hold before the first call of `schedule` in an instant and after the
 * last one, but not in the middle of a change. The checks walk all live objects, so they cost
 * O(live) and run under SIM_ASSERT only. A check that fails names the broken clause and ends the
 * process. It returns true otherwise, so that SIM_ASSERT can contain it. */
#pragma once

#include "sim/core/core.h"
#include "sim/core/objects.h"

/* Checks requests, their passes, KV, cold KV, residents and the memory that they share. */
bool core_consistent(const struct core *c);
/* Checks one pass that has a live request. */
bool pass_consistent(const struct core *c, const struct full_pass *p);
/* Whether the pass's shape is the sum of its segments. */
bool pass_shape_adds_up(const struct core *c, const struct full_pass *p);

/* The states that may follow each state of a request, pass, launch, resident or cold KV: bit sets,
 * indexed by state. */
extern const unsigned after_request[], after_pass[], after_launch[], after_resident[], after_cold[];

/* Changes a state, and asserts that it may follow: BECOMES(pass, p->state, PASS_STATE_READY). */
#define BECOMES(kind, state, to)                                                                   \
    do {                                                                                           \
        SIM_ASSERT((after_##kind[state] >> (to)&1u) != 0);                                         \
        (state) = (to);                                                                            \
    } while (0)
