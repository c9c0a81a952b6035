/* How far one sample lies from another that was drawn with other random numbers, after what the
 * workloads themselves explain has been taken out; and several such tests at once.
 *
 * Two builds run on fresh seeds share no noise, so their values cannot be paired. But much of the
 * spread between replications is the trace's doing: longer answers were drawn, more requests came.
 * Those covariates are known, and no scheduler changes them. So the model is
 *     y = a + shift * [second sample] + sum_j b_j * covariate_j + error
 * (analysis of covariance), fitted by least squares with both samples together; `shift` has
 * Student's t interval with n - rank degrees of freedom. Without covariates it is the pooled t
 * test. */
#pragma once

#include "sim/base/base.h"

struct stats_shift {
    double shift, se; /* NaN when there are too few values for the covariates */
    double df;
    double base_mean;       /* of the values used */
    uint32_t n_base, n_now; /* values used: the finite ones */
};

/* One sample: n values, and k covariates of value i at covariates[i * k]. All borrowed. */
struct stats_sample {
    const double *values;
    const double *covariates; /* NULL when k is 0 */
    size_t n;
};

/* now - base. A covariate that does not vary, or repeats others, takes no part. O((n + m) k^2). */
struct stats_shift stats_shift(struct stats_sample base, struct stats_sample now, size_t k);

/* Chance of a shift estimate at least as high (low) as this one if the true shift were `by`. With
 * no spread at all: 0 or 1. 1 where the shift is undefined. */
double stats_shift_p_above(const struct stats_shift *s, double by);
double stats_shift_p_below(const struct stats_shift *s, double by);

/* Holm's step-down correction: adjusted[i] <= alpha holds for any true hypothesis at most with
 * chance alpha, over all n together. adjusted may be p. NaN stays NaN and does not count.
 * O(n log n). */
void stats_holm(const double *p, size_t n, double *adjusted);
