/* The `mixed` generator: a reactive and a proactive stream of requests with real lengths.
 *
 * Streams are keyed by purpose and class: changing one class's rate moves nothing of the other, and
 * every policy of a comparison meets the same trace. All randomness is drawn here, none in the
 * engine. */
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
    MIXED_REACTIVE_INPUT_SCALE, /* four scales: class by class, inputs first */
    MIXED_PROACTIVE_INPUT_SCALE,
    MIXED_REACTIVE_OUTPUT_SCALE,
    MIXED_PROACTIVE_OUTPUT_SCALE,
    MIXED_INPUT_CAP,
    MIXED_NUMBERS
};
enum {
    MIXED_REACTIVE,  /* dataset of reactive requests */
    MIXED_PROACTIVE, /* and of proactive ones */
    MIXED_ARRIVAL,
    MIXED_EVENTS, /* recorded arrivals for replay */
    MIXED_TEXTS
};

struct mixed {
    double v[MIXED_NUMBERS];
    const char *t[MIXED_TEXTS]; /* nobody frees them */
    enum arrival_kind arrival;
    uint64_t seed;
};

/* `m` is checked (ranges, arrival kind). Errors name `spec`. */
int mixed_generate(const struct mixed *m, const char *spec, struct trace *out, struct err *e);
