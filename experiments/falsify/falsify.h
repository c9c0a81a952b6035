/* Searches for the scenario (space.h) in which a policy loses most to a baseline, and confirms it.
 *
 * The search maximises the mean over replications of ln(metric of the policy / of the baseline) on
 * the same requests, so that 0.69 is twice as bad. The ratio is inverted for metrics where more is
 * better.
 *
 * 1. Search: cross-entropy. The first generation is a Latin hypercube over the space. Every later
 * one is normal around the best quarter of the one before. Every scenario has the same seeds.
 * Scenarios in which a run fails, or the metric is undefined or 0, are excluded.
 *
 * 2. Confirm: the worst scenario is repeated on fresh seeds, because the worst of many is partly
 * luck. It counts as found if its interval is above the relevance.
 *
 * 3. Shrink: axes return to the values of the options, the least important first, then partly. A
 * step is kept if the policy still loses by more than the relevance and half of the confirmed loss
 * (in logarithms). It uses a third set of seeds; the reported result uses a fourth.
 *
 * The result depends only on the seed, not on the number of parallel runs. */
#pragma once

#include "experiments/falsify/space.h"
#include "experiments/shell/document.h"
#include "sim/stats/stats.h"

#define FALSIFY_MAX_REPLICATIONS 1000

struct falsify_options {
    const char *metric;    /* borrowed */
    uint32_t budget;       /* scenarios of the search */
    uint32_t replications; /* of each scenario */
    uint32_t confirm;      /* replications of every later step */
    double relevance_frac;
    uint64_t seed;
};

struct falsify_result {
    struct stats_interval given; /* loss in the unchanged scenario, on fresh seeds */
    uint32_t n_tried, n_out;     /* scenarios of the search; excluded ones */
    struct space_point worst;    /* of the search */
    double worst_searched;       /* its mean loss in the search; NaN: all were excluded */
    struct stats_interval worst_confirmed;
    bool found;
    struct space_point least; /* shrunk; valid when found */
    struct stats_interval least_confirmed;
    double least_loss[FALSIFY_MAX_REPLICATIONS]; /* by replication, from least_first */
    uint32_t least_first;
};

/* A request to measure replications first .. first + n - 1 of every point. */
struct falsify_ask {
    const struct space_point *points;
    uint32_t n_points, first, n;
};
/* Fills loss[point][replication]; NaN: undefined. */
typedef void falsify_measure(void *ctx, const struct falsify_ask *ask, double *loss);

void falsify_search(const struct falsify_options *o, const struct space *s,
                    falsify_measure *measure, void *ctx, struct falsify_result *out);
