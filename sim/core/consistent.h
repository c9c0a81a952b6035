/* What must hold of the core whenever nobody is in the middle of changing it: before a policy is
 * asked and after it has rested. The checks walk everything there is, in O(what is live), and are
 * called under SIM_ASSERT only. Each names the clause that is broken and ends the process; so
 * what they return is true, and is there to be asserted. */
#pragma once

#include "sim/core/core.h"
#include "sim/core/objects.h"

/* Requests, their passes, KV, cold KV, residents and the memory they share. */
bool core_consistent(const struct core *c);
/* A pass that some live request is in, by itself. */
bool pass_consistent(const struct core *c, const struct full_pass *p);
/* Does the shape say what the segments sum to? */
bool pass_shape_adds_up(const struct full_pass *p);

/* Which states may follow a state of a request, pass, launch, resident or kept KV: bit sets, by the
 * state. */
extern const unsigned after_request[], after_pass[], after_launch[], after_resident[], after_cold[];

/* Whoever changes a state does it by this: BECOMES(pass, p->state, PASS_STATE_READY). */
#define BECOMES(kind, state, to)                                                                   \
    do {                                                                                           \
        SIM_ASSERT((after_##kind[state] >> (to)&1u) != 0);                                         \
        (state) = (to);                                                                            \
    } while (0)
