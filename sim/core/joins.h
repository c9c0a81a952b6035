/* Request graphs: the rows that arrive when a request ends, and those that end with it. A trace
 * with chains of turns alone needs none of this. */
#pragma once

#include "sim/base/base.h"

struct core;
struct full_request;
struct joins;

/* NULL where the trace has no graph. Cost: rows and edges. It lives as long as the run. */
struct joins *joins_new(struct core *c);

/* The instant of a row has come. False: the row ended with another request before. Its children
 * then start as if it had arrived and left. */
bool joins_may_arrive(struct core *c, uint32_t row);
/* The row has arrived as this request: fills in what its client says of its job. */
void joins_arrived(struct core *c, uint32_t row, struct full_request *r);
/* The request of a row has left. Children whose last parent it was are announced to the executor.
 * Requests that end with it are cancelled. */
void joins_left(struct core *c, uint32_t row);
