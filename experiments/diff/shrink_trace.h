/* Reduces a trace with a property: removes sessions (shrink.h), then last turns, then halves
 * lengths, as long as the trace keeps the property. */
#pragma once

#include "sim/api/trace.h"
#include "sim/base/base.h"

struct shrink_trace {
    void *ctx;
    /* Whether the trace has the property. Must be true for the given one. */
    bool (*shows)(void *ctx, const struct trace *t);
    uint32_t max_tests; /* at this limit the result may not be minimal */
    double limit_s;     /* the same for the time; 0: no limit */
    bool on_terminal;   /* prints the number of tests on stderr */
};

/* Replaces *t, which the caller owns, by a smaller trace. Returns the number of tests. */
uint32_t shrink_trace_run(const struct shrink_trace *s, struct trace *t);
