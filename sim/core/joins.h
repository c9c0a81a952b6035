/* Request graphs: rows that arrive when others have ended, and rows that end with another one. */
#pragma once

#include "sim/base/base.h"

struct core;
struct full_request;
struct joins;

/* NULL if the trace has no graph. Cost: rows and edges. Memory is the run's. */
struct joins *joins_new(struct core *c);

/* Called when a row is due. Returns false if the row has ended with another one; its children then
 * start as if it had arrived and left. */
bool joins_may_arrive(struct core *c, uint32_t row);
/* Fills in the members of an arrived request that describe its job. */
void joins_arrived(struct core *c, uint32_t row, struct full_request *r);
/* Called when the request of a row has left. Schedules the arrival of children whose last parent it
 * was, and cancels requests that end with it. */
void joins_left(struct core *c, uint32_t row);
