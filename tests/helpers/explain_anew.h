/* Why requests took as long as they did, from what an observer of its own kept of a run: plain
 * loops apply the head of sim/metrics/explain.h (tests/oracle/check_explain_anew.c). */
#pragma once

#include "experiments/conformance/scenario.h"
#include "sim/metrics/explain.h"

enum { EXPLAIN_ANEW_MOST = 24 }; /* requests; their ids are below */

struct explained {
    int64_t ns[EXPLAIN_CAUSE_COUNT];
    /* By request that was in the way, as struct explain_blocker has it. */
    int64_t tail_ns[EXPLAIN_ANEW_MOST], queue_ns[EXPLAIN_ANEW_MOST], shared_ns[EXPLAIN_ANEW_MOST];
};

/* The observer of one run of the scenario. It calls `left` for each request that leaves. */
struct observer *explain_anew_observer(const struct scenario *s,
                                       void (*left)(uint32_t id, const struct explained *is));
/* Frees what it keeps. */
void explain_anew_forget(void);
