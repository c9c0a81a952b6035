/* Where does a policy lose to a baseline? A search for the scenario (space.h) in which it is worst,
 * with a confirmation.
 *
 * The search maximises the mean over replications of ln(metric of the policy / of the baseline) on
 * the same requests, so that 0.69 is twice as bad. Where more is better, the ratio is the other way
 * round.
 *
 * 1. Search: cross-entropy. A first generation spreads over the space (a Latin hypercube). Every
 * later one is normal around the best quarter of the one before. Every scenario has the same seeds.
 * Scenarios in which a run fails, or the metric is not defined or 0, are out.
 *
 * 2. Confirm: the worst scenario again on seeds of its own, since the worst of many is also the
 * luckiest. It counts as found when its interval is above the relevance.
 *
 * 3. Shrink: axes return to the values of the options, the least needed first, then part of the
 * way. This continues as long as the policy still loses by more than the relevance and half of the
 * confirmed loss (in logarithms). It uses a third set of seeds; the reported result uses a fourth.
 *
 * The result depends on the seed only, not on how many runs are made at once. */
#pragma once

#include "experiments/falsify/space.h"
#include "experiments/shell/document.h"
#include "sim/stats/stats.h"

#define FALSIFY_MAX_REPLICATIONS 1000

struct falsify_options {
    const char *metric;    /* borrowed */
    uint32_t budget;       /* scenarios of the search */
    uint32_t replications; /* of each of them */
    uint32_t confirm;      /* replications of every later step */
    double relevance_frac;
    uint64_t seed;
};

struct falsify_result {
    struct stats_interval given; /* where nothing is changed, on fresh seeds */
    uint32_t n_tried, n_out;     /* scenarios of the search; those of them that were out */
    struct space_point worst;    /* of the search */
    double worst_searched;       /* its mean loss there; NaN: all scenarios were out */
    struct stats_interval worst_confirmed;
    bool found;
    struct space_point least; /* shrunk; valid when found */
    struct stats_interval least_confirmed;
    double least_loss[FALSIFY_MAX_REPLICATIONS]; /* of its replications, from least_first on */
    uint32_t least_first;
};

/* Replications first .. first + n - 1 of every point. */
struct falsify_ask {
    const struct space_point *points;
    uint32_t n_points, first, n;
};
/* Fills loss[point][replication]; NaN where it is not defined. */
typedef void falsify_measure(void *ctx, const struct falsify_ask *ask, double *loss);

void falsify_search(const struct falsify_options *o, const struct space *s,
                    falsify_measure *measure, void *ctx, struct falsify_result *out);
