#include "sim/core/counters.h"

const char *const counter_names[COUNTER_COUNT] = {
    [COUNTER_LAUNCH_DEVICE_BUSY] = "launch_device_busy",
    [COUNTER_LAUNCH_BAD_SPAN] = "launch_bad_span",
    [COUNTER_LAUNCH_MISSING_RESIDENT] = "launch_missing_resident",
    [COUNTER_LAUNCH_UNSUPPORTED] = "launch_unsupported",
    [COUNTER_PASS_BAD_SEGMENT] = "pass_bad_segment",
    [COUNTER_PASS_NO_MEMORY] = "pass_no_memory",
    [COUNTER_PASS_CANCELLED] = "pass_cancelled",
    [COUNTER_PREEMPT_REFUSED] = "preempt_refused",
    [COUNTER_EVICT_REFUSED] = "evict_refused",
    [COUNTER_RESIDENT_REFUSED] = "resident_refused",
    [COUNTER_TIMER_REFUSED] = "timer_refused",
    [COUNTER_SHED_REFUSED] = "shed_refused",
    [COUNTER_ORACLE_REFUSED] = "oracle_refused",
    [COUNTER_OUTSIDE_SCHEDULE] = "outside_schedule",
    [COUNTER_PREEMPT_ASKED] = "preempt_asked",
    [COUNTER_LAUNCH_YIELDED] = "launch_yielded",
    [COUNTER_LAUNCH_WITHDRAWN] = "launch_withdrawn",
    [COUNTER_LAUNCH_RESET] = "launch_reset",
    [COUNTER_KV_RECOMPUTE_EVICTIONS] = "kv_recompute_evictions",
    [COUNTER_KV_SWAP_OUTS] = "kv_swap_outs",
    [COUNTER_KV_SWAP_INS] = "kv_swap_ins",
    [COUNTER_KV_COLD_DROPS] = "kv_cold_drops",
    [COUNTER_COMPILES] = "compiles",
    [COUNTER_COMPILES_CANCELLED] = "compiles_cancelled",
    [COUNTER_LOADS] = "loads",
    [COUNTER_SCHEDULE_ROUNDS] = "schedule_rounds",
    [COUNTER_KERNELS_OUTSIDE_ENVELOPE] = "kernels_outside_envelope",
    [COUNTER_MEMORY_SHED] = "memory_shed",
};

bool counter_is_refusal(enum counter which)
{
    return which <= COUNTER_OUTSIDE_SCHEDULE && which != COUNTER_PASS_NO_MEMORY &&
           which != COUNTER_PASS_CANCELLED;
}
