/* The `mixed` generator: a reactive and a proactive stream of requests with real lengths.
 *
 * Random streams are keyed by purpose and class, so that a change of one class's rate does not
 * change the other class, and every policy of a comparison gets the same trace. The engine draws no
 * randomness of the workload. */
#pragma once

#include "sim/api/trace.h"
#include "traces/arrivals.h"
#include "traces/spec_keys.h"

/* Keys: numbers and texts. workload.c holds their names, defaults, ranges and help. */
enum {
    MIXED_REACTIVE_PER_MIN,
    MIXED_PROACTIVE_PER_MIN,
    MIXED_DURATION_S,
    MIXED_OUTPUT_SCALE,
    MIXED_CV,
    MIXED_THINK_S,
    MIXED_TOOL_S,
    MIXED_SESSIONS,
    MIXED_USERS,
    MIXED_BURST,
    MIXED_ACTIVE_SHARE,
    MIXED_ACTIVITY_PERIOD_S,
    MIXED_REACTIVE_INPUT_SCALE, /* the first of four scales: by class, inputs first */
    MIXED_PROACTIVE_INPUT_SCALE,
    MIXED_REACTIVE_OUTPUT_SCALE,
    MIXED_PROACTIVE_OUTPUT_SCALE,
    MIXED_INPUT_CAP,
    MIXED_NUMBERS
};
enum {
    MIXED_REACTIVE,  /* dataset of reactive requests */
    MIXED_PROACTIVE, /* dataset of proactive requests */
    MIXED_ARRIVAL,
    MIXED_EVENTS, /* recorded events for replay */
    MIXED_TEXTS
};

struct mixed {
    double v[MIXED_NUMBERS];
    const char *t[MIXED_TEXTS]; /* kept or borrowed */
    enum arrival_kind arrival;
    uint64_t seed;
};

/* `m` is checked (ranges, arrival kind). Errors name `spec`. */
int mixed_generate(const struct mixed *m, const char *spec, struct trace *out, struct err *e);
