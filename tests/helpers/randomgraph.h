/* Random request graphs: joins, forks, sessions, background requests, cancellation with another
 * one. Everything follows from the seed. */
#pragma once

#include "sim/api/trace.h"

#define RANDOMGRAPH_ROWS 24 /* at most */

/* Ids are places: parents come before their children, so that there is no circle. Times are whole
 * milliseconds, so that many are equal. The caller frees it
 * with trace_fini. */
void randomgraph_make(uint64_t seed, struct trace *out);
