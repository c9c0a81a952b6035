/* Named counters of refused actions and rare events: they show what a policy does wrong, or what
 * the machine had to do. Results have them as counters.NAME. */
#pragma once

#include <stdbool.h>

enum counter {
#define COUNTER(id, name) COUNTER_##id,
#include "sim/core/counters.def"
#undef COUNTER
    COUNTER_COUNT
};

extern const char *const counter_names[COUNTER_COUNT]; /* "launch_device_busy", ... */

/* Whether the counter is of actions that were refused as wrong. Lack of KV is not wrong, because a
 * policy finds out by trying. */
bool counter_is_refusal(enum counter which);
