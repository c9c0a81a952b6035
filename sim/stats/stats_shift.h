/* Tests for a shift between two samples that were drawn with different random numbers, adjusted for
 * known covariates of the workloads; and corrections for several tests.
 *
 * Two builds run on fresh seeds share no noise, so their values cannot be paired. But the traces
 * cause much of the spread between replications: longer answers were drawn, more requests came.
 * Those covariates are known, and no scheduler changes them. So the model is
 *     y = a + shift * [second sample] + sum_j b_j * covariate_j + error
 * (analysis of covariance), fitted by least squares on both samples together; `shift` has Student's
 * t interval with n - rank degrees of freedom. Without covariates it is the pooled t test. */
#pragma once

#include "sim/base/base.h"

struct stats_shift {
    double shift, se; /* NaN if there are too few values for the covariates */
    double df;
    double base_mean;       /* of the values used */
    uint32_t n_base, n_now; /* number of finite values */
};

/* One sample: n values; the k covariates of value i start at covariates[i * k]. All borrowed. */
struct stats_sample {
    const double *values;
    const double *covariates; /* NULL when k is 0 */
    size_t n;
};

/* Estimates now - base. Ignores covariates that are constant or dependent. O((n + m) k^2). */
struct stats_shift stats_shift(struct stats_sample base, struct stats_sample now, size_t k);

/* p-value of a shift estimate at least as high (low) as this one if the true shift were `by`.
 * Without any spread: 0 or 1. 1 if the shift is undefined. */
double stats_shift_p_above(const struct stats_shift *s, double by);
double stats_shift_p_below(const struct stats_shift *s, double by);

/* Holm's step-down correction: the chance that adjusted[i] <= alpha for any true null hypothesis is
 * at most alpha. adjusted may be p. NaNs stay NaN and do not count. O(n log n). */
void stats_holm(const double *p, size_t n, double *adjusted);
