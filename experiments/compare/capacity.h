/* How much a machine can do under a policy, by which loads are stated (compare --load). */
#pragma once

#include "experiments/compare/compare.h"

struct capacity {
    double req_per_min;         /* of the baseline when it never waits for work */
    double offered_req_per_min; /* of the workload as it is */
};

/* Saturated runs of the baseline: its completions per minute over the busy period, and the rate at
 * which the workload asks, both averaged over a few replications. 0, or -EINVAL with an error. */
int capacity_measure(const struct compare_plan *plan, struct capacity *out, struct err *e);
