/* Regret: the distance of policies from oracle-lb (bound.h), which no schedule beats, and from a
 * clairvoyant reference (clairvoyant.h), the best of a stated class in hindsight. Both are computed
 * for each replication's workload, so regret is paired: its interval is that of value minus
 * reference per replication. Against the bound it is never negative; a policy whose schedules are
 * not in the reference's class may beat the reference. */
#pragma once

#include "experiments/compare/clairvoyant.h"
#include "experiments/compare/compare.h"

struct regret {
    uint32_t replications;
    double *bound, *best;  /* owned; [metric of clairvoyant_metrics][replication]; NaN: undefined */
    uint32_t n_exhaustive; /* replications whose reference is exhaustive */
    uint32_t n_schedules;  /* of the reference, over all replications */
};

/* Refuses a plan without a bound, with the reason: random kernel times, a horizon, requests that
 * may be cancelled. 0 or -EINVAL. */
int regret_check(const struct compare_plan *plan, struct err *e);

/* Computes the bound and runs the reference. Precondition: regret_check passed. The results are
 * kept. */
void regret_run(struct regret *r, const struct compare_plan *plan);

/* Adds a block per metric: both references, then every policy with its distances. Data: {class,
 * exhaustive_replications, replications, schedules, oracle_lb: {metric: {mean, low, high, n}},
 * clairvoyant: {same}, policies}. Each policy has {metric: {oracle_lb: {diff, diff_low, diff_high,
 * ratio, ratio_low, ratio_high, n}, clairvoyant: {same}}}. A diff is regret: positive is worse. */
void regret_document(const struct compare_plan *plan, const struct compare_result *r,
                     const struct regret *g, struct document *d);
