/* The score of a policy on a suite: one number for the improvement over the reference.
 *
 *   gain    of a metric at a point in a replication: ln(reference / policy), or the inverse ratio
 *           if more is better. > 0 is better. Both have the same requests
 *   clip    a gain counts at most ln 2 either way, so that no single point decides
 *   score   exp of the mean clipped gain over points, metrics and replications, a geometric mean.
 *           1.2 means 20 % better
 *
 * Replications are independent. The interval of their mean gains is Student's t, and that of the
 * score its exp. A replication in which the policy failed, or left a request that the reference
 * served, has the worst gain in every metric, so refusing work does not pay.
 *
 * A regression is a metric at a point, scored or not, that is worse by more than
 * SCORE_RELEVANCE_FRAC (one-sided t test of unclipped gains), also after Holm's correction over all
 * of them. */
#pragma once

#include "sim/stats/stats.h"

#define SCORE_CLIP 0.6931471805599453 /* ln 2 */
#define SCORE_RELEVANCE_FRAC 0.01
#define SCORE_LEVEL_FRAC 0.05 /* probability of a false positive */

/* One metric at one point: n replications of both policies. */
struct score_pair {
    const double *policy, *reference; /* borrowed; NaN where not defined */
    const bool *lost;                 /* borrowed; the policy failed or left requests there */
    bool gain;                        /* more is better */
    bool scored;
};

struct score_cell {
    struct stats_interval gain; /* unclipped, of the n replications without loss */
    double p_worse, p_holm;     /* p-values of a loss beyond the relevance; NaN: unknown */
    uint32_t lost;              /* replications */
    bool regression;
};

struct score {
    struct stats_interval gain; /* mean clipped gain over replications */
    double p_better;            /* one-sided p-value of the gain */
    uint32_t regressions;
};

/* cells: room for one per pair. A pair without defined values does not count. O(pairs x n). */
struct score score_of(const struct score_pair *pairs, uint32_t n_pairs, uint32_t n,
                      struct score_cell *cells);

/* Fills the mean clipped gain of each of n replications. */
void score_gains(const struct score_pair *pairs, uint32_t n_pairs, uint32_t n, double *into);

/* Whether a candidate passes: it is better at the level divided by the number of tried candidates
 * (Bonferroni), and has no regression. */
bool score_passes(const struct score *s, uint32_t candidates);
