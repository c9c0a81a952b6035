/* Which state of a request, pass, launch, resident or kept KV may follow which. Whoever changes a
 * state asserts it here. */
#pragma once

#include "sim/core/objects.h"

/* May the one state follow the other? A state again is no change, and none of the pairs. */
bool request_may_become(enum request_state from, enum request_state to);
bool pass_may_become(enum pass_state from, enum pass_state to);
bool launch_may_become(enum launch_state from, enum launch_state to);
bool resident_may_become(enum resident_state from, enum resident_state to);
bool cold_may_become(enum cold_state from, enum cold_state to);
