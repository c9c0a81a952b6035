/* The score of a policy on a suite: how much better than the reference, in one number.
 *
 *   gain    of a metric at a point in a replication: ln(reference / policy), or the other way
 *           round where more is better. Above 0 is better. Both met the same requests
 *   clip    a gain counts at most ln 2 either way, so that no point decides alone
 *   score   exp of the mean clipped gain over points, metrics and replications, a geometric mean.
 *           1.2 means 20 % better
 *
 * Replications are independent. Their mean gains have Student's t interval, and the score has its
 * exp. A replication in which the policy failed, or left a request that the reference served, has
 * the worst gain in every metric: nobody gains by refusing work.
 *
 * A regression is a metric at a point, scored or not, that is worse by more than
 * SCORE_RELEVANCE_FRAC (one-sided t test of the gains as they are), also after Holm's correction
 * over all of them. */
#pragma once

#include "sim/stats/stats.h"

#define SCORE_CLIP 0.6931471805599453 /* ln 2 */
#define SCORE_RELEVANCE_FRAC 0.01
#define SCORE_LEVEL_FRAC 0.05 /* chance of a false statement */

/* One metric at one point: n replications of both policies. */
struct score_pair {
    const double *policy, *reference; /* borrowed; NaN where not defined */
    const bool *lost;                 /* borrowed; the policy failed or left requests there */
    bool gain;                        /* more is better */
    bool scored;
};

struct score_cell {
    struct stats_interval gain; /* as it is, of the replications that were served; n of them */
    double p_worse, p_holm;     /* of a loss beyond the relevance; NaN: not known */
    uint32_t lost;              /* replications */
    bool regression;
};

struct score {
    struct stats_interval gain; /* mean clipped gain over replications */
    double p_better;            /* one-sided chance of so high a gain if there were none */
    uint32_t regressions;
};

/* cells: room for one per pair. A pair that is nowhere defined takes no part. O(pairs x n). */
struct score score_of(const struct score_pair *pairs, uint32_t n_pairs, uint32_t n,
                      struct score_cell *cells);

/* The mean clipped gain of each replication, into n values. */
void score_gains(const struct score_pair *pairs, uint32_t n_pairs, uint32_t n, double *into);

/* Whether a candidate passes: it is better at the level divided by the number of candidates that
 * were looked at (Bonferroni), and has no regression. */
bool score_passes(const struct score *s, uint32_t candidates);
