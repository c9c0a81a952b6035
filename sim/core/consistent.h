/* What must hold of the core whenever nobody is in the middle of changing it: before a policy is
 * asked and after it has rested. The checks walk everything there is, in O(what is live), and are
 * called under SIM_ASSERT only. Each names the clause that is broken and ends the process; so
 * what they return is true, and is there to be asserted. */
#pragma once

#include "sim/core/core.h"
#include "sim/core/objects.h"

/* Requests, their passes, KV, cold KV, residents and the memory they share. */
bool core_consistent(const struct core *c);
/* A pass that some live request is in, or a request's KV, by itself. */
bool pass_consistent(const struct core *c, const struct full_pass *p);
bool request_consistent(const struct core *c, const struct full_request *r);
/* Does the shape say what the segments sum to? */
bool pass_shape_adds_up(const struct full_pass *p);

/* Which state of a request, pass, launch, resident or kept KV may follow which. Whoever changes a
 * state asserts it here. */

/* May the one state follow the other? A state again is no change, and none of the pairs. */
bool request_may_become(enum request_state from, enum request_state to);
bool pass_may_become(enum pass_state from, enum pass_state to);
bool launch_may_become(enum launch_state from, enum launch_state to);
bool resident_may_become(enum resident_state from, enum resident_state to);
bool cold_may_become(enum cold_state from, enum cold_state to);
