/* The state of the schedule. */
#pragma once

#include "experiments/report/cells.h"
#include "experiments/report/schedule.h"
#include "experiments/report/spool.h"
#include "sim/base/map.h"
#include "sim/metrics/explain.h"

/* A running launch, or several that were joined. */
struct lane {
    bool running;
    uint32_t launch_id;
    uint32_t set, kind, rows, n;
    int64_t submit_ns, start_ns, end_ns, busy_ns;
    int64_t outside_ns; /* busy outside the calibrated range */
    int64_t outcome;
};
/* Rows of a lane that further launches may join. They are several, because prompts and batches
 * alternate. */
#define SCHEDULE_OPEN 6
enum { KIND_PREFILL, KIND_DECODE, KIND_MIXED };

/* A request that finished or was shed. */
struct left {
    struct request r;
    bool finished;
    int64_t end_ns;
};

/* Sets of request ids by number; equal sets have one number. Many launches in a row have equal
 * batches, so a launch keeps only the number. */
struct sets {
    struct map numbers; /* by the hash of the ids, in their order */
    uint32_t *ids;      /* members of all sets, one after the other */
    size_t n_ids, cap_ids;
    size_t *end; /* of each set in ids */
};

struct schedule {
    struct observer observer;
    const struct machine *machine;
    const struct trace *trace;
    struct schedule_options o;
    struct explain *explain;
    struct spool launches, joined, kernels;
    struct sets sets;
    struct lane lanes[MACHINE_MAX_DEVICES][MACHINE_MAX_SHARED];               /* running */
    struct lane open[MACHINE_MAX_DEVICES][MACHINE_MAX_SHARED][SCHEDULE_OPEN]; /* to be joined */
    int64_t lane_end_ns[MACHINE_MAX_DEVICES][MACHINE_MAX_SHARED];
    int64_t joined_end_ns[MACHINE_MAX_DEVICES][MACHINE_MAX_SHARED];
    struct map kv;   /* uint32_t tokens by request */
    struct map left; /* struct left by request */
    uint64_t kv_tokens, arrived;
    uint32_t live[REQUEST_CLASS_COUNT];
    struct cells cells;
    int64_t ddr_end_ns, end_ns;
};

/* Signals of the cells; those of power follow, one per domain. */
enum {
    DDR_DEMAND,
    DDR_CARRIED,
    KV_TOKENS,
    LIVE_REACTIVE,
    LIVE_PROACTIVE,
    WATTS,
    N_SIGNALS = WATTS + OBSERVER_DOMAINS
};
