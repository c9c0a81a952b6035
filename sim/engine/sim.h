/* One simulation run on the virtual clock: everything goes in by sim_setup, everything comes out by
 * observers and sim_result. Runs share nothing, so any number may follow each other in a process.
 *
 * Cost: O(log n) per event in the number of pending events, a handful; memory grows with live
 * requests, not with the trace. */
#pragma once

#include "sim/core/run.h"

/* Runs to the end. Returns result->status. Errors of the setup (a policy whose needs the executor
 * lacks, no memory for the weights) are -EINVAL with a message. Never ends the process for anything
 * a policy does through its contract. */
int sim_run(const struct sim_setup *setup, struct sim_result *result);
