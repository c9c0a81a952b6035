/* Samples and their quantiles: exact by default, a labelled sketch on request.
 *
 * Exact mode stores every value (8 bytes each). Sketch mode keeps counts in buckets of 128 to the
 * octave: a reported quantile lies within 0.5 % of a true sample quantile, for values in [1e-9,
 * 1e9]; mean, minimum, maximum and count stay exact. Quantiles use the nearest-rank rule: the
 * p-quantile of n sorted values is value number ceil(p*n) (clauses.md F: "nearest-rank; print n").
 */
#pragma once

#include "sim/base/base.h"

#define SAMPLE_RANKS 4

struct sample {
    bool sketch;
    double *v;     /* exact mode: owned values */
    size_t n, cap; /* n counts values in both modes */
    /* exact mode: ranks (from 0, ascending) that were sought since the last value came. Each value
     * of such a rank is in its place, with smaller ones before it and greater ones behind it. */
    size_t ranks[SAMPLE_RANKS];
    uint32_t n_ranks;
    uint64_t *bins;   /* sketch mode: owned counts, NULL while there is none */
    double sum, comp; /* Neumaier-compensated sum */
    double min, max;
};

void sample_init(struct sample *s, bool sketch);
void sample_fini(struct sample *s);
void sample_add(struct sample *s, double x);
/* Adds x, count times (one token gap shared by a whole batch). */
void sample_add_n(struct sample *s, double x, uint32_t count);
/* Adds every value of another one. Both exact, or both sketches. */
void sample_merge(struct sample *s, const struct sample *o);
/* Makes an empty sample what another of the same kind is. */
void sample_copy(struct sample *out, const struct sample *s);
double sample_mean(const struct sample *s); /* NaN when empty */
/* By selection, O(n): the values change places. NaN when empty. */
double sample_quantile(struct sample *s, double p);
/* How many values are at most x. A sketch answers for some limit within 0.5 % of x. O(n). */
size_t sample_count_upto(const struct sample *s, double x);
/* The quantile of n values that the caller owns, by the same rule. */
double sample_quantile_of(double *v, size_t n, double p);
