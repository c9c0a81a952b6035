/* One simulation run in virtual time. Its input is sim_setup, its output sim_result and the calls
 * of observers. Runs share no state, so a process may do any number of them.
 *
 * Cost: O(log n) per event, with n pending events (a handful). Memory grows with live requests, not
 * with the trace. */
#pragma once

#include "sim/core/run.h"

/* Runs to the end. Returns result->status. Errors of the setup (a policy whose needs the executor
 * lacks, no memory for the weights) are -EINVAL with a message. Never ends the process for anything
 * a policy does through its contract. */
int sim_run(const struct sim_setup *setup, struct sim_result *result);
