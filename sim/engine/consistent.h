/* Invariants of the machine when an instant is over: rates are settled, nobody is in the middle
 * of anything. Walks everything, the events in the queue too; called under SIM_ASSERT only. It
 * names the clause that is broken and ends the process. */
#pragma once

#include "sim/engine/engine.h"

/* Queue, jobs, devices, channels, frames, power. */
bool engine_consistent(const struct engine *e);
/* Are the stored DDR shares those that the contention model gives the running jobs now? */
bool ddr_consistent(const struct engine *e);
