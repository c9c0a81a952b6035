/* Named counters of refused actions and rare events: a rising count says what a policy does wrong,
 * or what the machine had to do. Shown in results as counters.NAME. */
#pragma once

#include <stdbool.h>

enum counter {
#define COUNTER(id, name) COUNTER_##id,
#include "sim/core/counters.def"
#undef COUNTER
    COUNTER_COUNT
};

extern const char *const counter_names[COUNTER_COUNT]; /* "launch_device_busy", ... */

/* Is it a count of actions that were refused as wrong? KV that ran out is none: to ask is how a
 * policy finds out. */
bool counter_is_refusal(enum counter which);
