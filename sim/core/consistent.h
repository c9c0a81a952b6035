/* Invariants of the core. They hold before the first call of `schedule` in an instant and after the
 * last one; elsewhere a change may be half done. The checks walk all live objects, so they cost
 * O(live) and run under SIM_ASSERT only. A check that fails names the broken clause and ends the
 * process. It returns true otherwise, so that SIM_ASSERT can contain it. */
#pragma once

#include "sim/core/core.h"
#include "sim/core/objects.h"

/* Requests, their passes, KV, cold KV, residents and the memory they share. */
bool core_consistent(const struct core *c);
/* One pass, which has a live request. */
bool pass_consistent(const struct core *c, const struct full_pass *p);
/* Does the shape say what the segments sum to? */
bool pass_shape_adds_up(const struct core *c, const struct full_pass *p);

/* Which states may follow a state of a request, pass, launch, resident or kept KV: bit sets, by the
 * state. */
extern const unsigned after_request[], after_pass[], after_launch[], after_resident[], after_cold[];

/* Every change of a state uses this: BECOMES(pass, p->state, PASS_STATE_READY). */
#define BECOMES(kind, state, to)                                                                   \
    do {                                                                                           \
        SIM_ASSERT((after_##kind[state] >> (to)&1u) != 0);                                         \
        (state) = (to);                                                                            \
    } while (0)
