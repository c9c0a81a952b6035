/* Named counters of refused actions and rare events: a rising count says what a policy does wrong,
 * or what the machine had to do. Shown in results as counters.NAME. */
#pragma once

#include <stdbool.h>

enum counter {
    COUNTER_LAUNCH_DEVICE_BUSY,      /* launch on a device without a free slot */
    COUNTER_LAUNCH_BAD_SPAN,         /* pass not live, span or rows impossible */
    COUNTER_LAUNCH_MISSING_RESIDENT, /* graph block or compiled kernel not ready */
    COUNTER_LAUNCH_UNSUPPORTED,      /* op, split or yield the device or executor cannot do */
    COUNTER_PASS_BAD_SEGMENT,        /* request gone, in a pass, in the wrong state, bad tokens */
    COUNTER_PASS_NO_MEMORY,          /* KV exhausted */
    COUNTER_PASS_CANCELLED,
    COUNTER_PREEMPT_REFUSED,
    COUNTER_EVICT_REFUSED,
    COUNTER_RESIDENT_REFUSED,
    COUNTER_TIMER_REFUSED, /* in the past */
    COUNTER_SHED_REFUSED,
    COUNTER_ORACLE_REFUSED,   /* hidden data asked for without the flag */
    COUNTER_OUTSIDE_SCHEDULE, /* an action from a notification: those only record */
    COUNTER_PREEMPT_ASKED,
    COUNTER_LAUNCH_YIELDED,
    COUNTER_LAUNCH_WITHDRAWN,
    COUNTER_LAUNCH_RESET,
    COUNTER_KV_RECOMPUTE_EVICTIONS,
    COUNTER_KV_SWAP_OUTS,
    COUNTER_KV_SWAP_INS,
    COUNTER_KV_COLD_DROPS, /* finished sessions' KV dropped for space */
    COUNTER_COMPILES,
    COUNTER_COMPILES_CANCELLED,
    COUNTER_LOADS,
    COUNTER_SCHEDULE_ROUNDS, /* calls of schedule */
    COUNTER_KERNELS_OUTSIDE_ENVELOPE,
    COUNTER_MEMORY_SHED, /* requests that cannot fit while other programs have the memory */
    COUNTER_COUNT
};

extern const char *const counter_names[COUNTER_COUNT]; /* "launch_device_busy", ... */

/* Is it a count of actions that were refused as wrong? KV that ran out is none: to ask is how a
 * policy finds out. */
bool counter_is_refusal(enum counter which);
