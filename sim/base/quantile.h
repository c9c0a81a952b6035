/* Samples and their quantiles: exact by default, a labelled sketch on request.
 *
 * Exact mode stores every value (8 bytes each). Sketch mode counts values in 128 buckets per
 * octave: a reported quantile is within 0.5 % of a true sample quantile, for values in [1e-9, 1e9];
 * mean, minimum, maximum and count stay exact. Quantiles use the nearest-rank rule: the p-quantile
 * of n sorted values is value number ceil(p*n) (clauses.md F: "nearest-rank; print n"). */
#pragma once

#include "sim/base/base.h"

#define SAMPLE_RANKS 4

struct sample {
    bool sketch;
    double *v;     /* exact mode: owned values */
    size_t n, cap; /* n counts values in both modes */
    /* exact mode: ranks (from 0, ascending) selected since the last value was added. v is
     * partitioned at each: v[rank] is in place, smaller values before it and greater ones after
     * it. */
    size_t ranks[SAMPLE_RANKS];
    uint32_t n_ranks;
    uint64_t *bins;   /* sketch mode: owned counts, NULL before the first value */
    double sum, comp; /* Neumaier-compensated sum, and its compensation */
    double min, max;
};

void sample_init(struct sample *s, bool sketch);
void sample_fini(struct sample *s);
void sample_add(struct sample *s, double x);
/* Adds x `count` times (one token gap shared by a whole batch). */
void sample_add_n(struct sample *s, double x, uint32_t count);
/* Adds every value of o. Both are exact, or both are sketches. */
void sample_merge(struct sample *s, const struct sample *o);
/* Copies s into an empty sample of the same mode. */
void sample_copy(struct sample *out, const struct sample *s);
double sample_mean(const struct sample *s); /* NaN when empty */
/* By selection, O(n); reorders the values. NaN when empty. */
double sample_quantile(struct sample *s, double p);
/* Number of values at most x. A sketch counts up to some limit within 0.5 % of x. O(n). */
size_t sample_count_upto(const struct sample *s, double x);
/* As sample_quantile, of n values that the caller owns, and which are reordered. */
double sample_quantile_of(double *v, size_t n, double p);
