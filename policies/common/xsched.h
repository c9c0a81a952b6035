/* XSched's preemption levels as a parameter (clauses.md E.4). On a stop, of the kernels in the
 * device's queue:
 *   1       all of them run
 *   2       those not begun are taken back
 *   3       the running one is interrupted, and continues later
 *   device  1 or 2, by what the device can
 */
#pragma once

#include "sim/api/policy.h"
#include "sim/base/base.h"

enum xsched_level { XSCHED_LEVEL_DEVICE, XSCHED_LEVEL_1, XSCHED_LEVEL_2, XSCHED_LEVEL_3 };

#define XSCHED_LEVEL_CHOICES "device", "1", "2", "3"
#define XSCHED_LEVEL_HELP                                                                          \
    "XSched level of a preemption: kernels handed over run, are taken back, the running one is "   \
    "interrupted (E.4); device: 1 or 2, as it can"

static inline bool xsched_can(const struct device *d, int64_t level)
{
    SIM_ASSERT(level >= XSCHED_LEVEL_DEVICE && level <= XSCHED_LEVEL_3);
    return (level != XSCHED_LEVEL_2 || d->can_withdraw) &&
           (level != XSCHED_LEVEL_3 || d->can_suspend);
}

static inline struct preempt_spec xsched_stop(int64_t level)
{
    return (struct preempt_spec){.now = level == XSCHED_LEVEL_3, .drain = level == XSCHED_LEVEL_1};
}
