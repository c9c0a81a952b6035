/* The smallest trace that still shows something: sessions are left out (shrink.h), then last turns,
 * then lengths are halved, as long as it stays. */
#pragma once

#include "sim/api/trace.h"
#include "sim/base/base.h"

struct shrink_trace {
    void *ctx;
    /* Does the trace show it? Must hold for the one given. */
    bool (*shows)(void *ctx, const struct trace *t);
    uint32_t max_tests; /* gives up minimality then, not correctness */
    double limit_s;     /* the same after so long; 0: no limit of time */
    bool on_terminal;   /* shows how many tests are made, on standard error */
};

/* Replaces *t, which the caller owns, by a smaller one. Returns the tests made. */
uint32_t shrink_trace_run(const struct shrink_trace *s, struct trace *t);
