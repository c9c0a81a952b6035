/* Random traces with everything a trace file can say: bursts, sessions with tools and people,
 * prefixes, cancellation, targets, priorities, sessions that end. Everything follows from one
 * number. */
#pragma once

#include "sim/api/trace.h"

/* The caller frees it with trace_fini. */
void randomtrace_make(struct trace *out, uint64_t number);
