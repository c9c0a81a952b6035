/* The adjusted two-sample test and Holm's correction against textbook numbers. */
#include <math.h>

#include "sim/base/rng.h"
#include "sim/stats/stats_shift.h"
#include "tests/helpers/suite.h"

START_TEST(without_covariates_it_is_the_pooled_t_test)
{
    /* 1..5 and 3..7 differ by a shift of 2. Both variances are 2.5, the standard error is sqrt(2.5
     * * (1/5 + 1/5)) = 1, and there are 8 degrees of freedom. P(t_8 > 2) = 0.0403 (any table:
     * t(0.95, 8) = 1.860, t(0.975, 8) = 2.306). */
    const double a[] = {1, 2, 3, 4, 5};
    const double b[] = {3, 4, 5, 6, 7};
    struct stats_shift s =
        stats_shift((struct stats_sample){a, NULL, 5}, (struct stats_sample){b, NULL, 5}, 0);
    ck_assert_double_eq_tol(s.shift, 2.0, 1e-12);
    ck_assert_double_eq_tol(s.se, 1.0, 1e-12);
    ck_assert_double_eq(s.df, 8.0);
    ck_assert_double_eq_tol(s.base_mean, 3.0, 1e-12);
    ck_assert_double_eq_tol(stats_shift_p_above(&s, 0.0), 0.0403, 5e-5);
    ck_assert_double_eq_tol(stats_shift_p_below(&s, 0.0), 1.0 - 0.0403, 5e-5);
    /* Against a true shift of 2 the estimate is the median. */
    ck_assert_double_eq_tol(stats_shift_p_above(&s, 2.0), 0.5, 1e-12);
}
END_TEST

START_TEST(a_covariate_that_explains_the_difference_leaves_the_rest)
{
    /* The first sample has y = 10 c, and the second 1 more, with noise +0.1 and -0.1 at equal c.
     * The second sample has larger c, so its plain mean is 10 * (3.5 - 1.5) + 1 = 21 higher. In
     * each sample c is symmetric about its mean and the noise is orthogonal to c, so least squares
     * gives 1. Residuals are all 0.1, so sigma^2 = 8 * 0.01 / (8 - 3) = 0.016. Within samples sum
     * (c - mean)^2 = 1 + 1 = 2. The variance of the shift is sigma^2 (1/4 + 1/4 + (3.5 - 1.5)^2 /
     * 2) = 0.016 * 2.5. */
    const double c0[] = {1, 1, 2, 2};
    const double c1[] = {3, 3, 4, 4};
    double y0[4];
    double y1[4];
    for (int i = 0; i < 4; i++) {
        double noise = i % 2 == 0 ? 0.1 : -0.1;
        y0[i] = 10 * c0[i] + noise;
        y1[i] = 10 * c1[i] + 1 + noise;
    }
    struct stats_shift s =
        stats_shift((struct stats_sample){y0, c0, 4}, (struct stats_sample){y1, c1, 4}, 1);
    ck_assert_double_eq_tol(s.shift, 1.0, 1e-12);
    ck_assert_double_eq(s.df, 5.0);
    ck_assert_double_eq_tol(s.se, sqrt(0.016 * 2.5), 1e-12);
}
END_TEST

START_TEST(constant_and_repeated_covariates_take_no_part)
{
    /* Columns are constant, c, 3c - 2. The two that vary together have one degree of freedom. */
    const double c0[] = {7, 1, 1, 7, 2, 4, 7, 4, 10, 7, 3, 7};
    const double c1[] = {7, 2, 4, 7, 5, 13, 7, 1, 1, 7, 0, -2};
    const double only0[] = {1, 2, 4, 3};
    const double only1[] = {2, 5, 1, 0};
    const double y0[] = {1, 2, 2, 5};
    const double y1[] = {3, 5, 4, 4};
    struct stats_shift all =
        stats_shift((struct stats_sample){y0, c0, 4}, (struct stats_sample){y1, c1, 4}, 3);
    struct stats_shift one =
        stats_shift((struct stats_sample){y0, only0, 4}, (struct stats_sample){y1, only1, 4}, 1);
    ck_assert_double_eq(all.df, 5.0);
    ck_assert_double_eq_tol(all.shift, one.shift, 1e-10);
    ck_assert_double_eq_tol(all.se, one.se, 1e-10);
}
END_TEST

START_TEST(equal_values_have_no_shift_and_certain_ones_are_certain)
{
    const double a[] = {2, 2, 2};
    const double b[] = {3, 3, 3};
    struct stats_shift s =
        stats_shift((struct stats_sample){a, NULL, 3}, (struct stats_sample){a, NULL, 3}, 0);
    ck_assert_double_eq(stats_shift_p_above(&s, 0.0), 1.0);
    ck_assert_double_eq(stats_shift_p_below(&s, 0.0), 1.0);
    s = stats_shift((struct stats_sample){a, NULL, 3}, (struct stats_sample){b, NULL, 3}, 0);
    ck_assert_double_eq(stats_shift_p_above(&s, 0.5), 0.0);
    ck_assert_double_eq(stats_shift_p_below(&s, 0.0), 1.0);
}
END_TEST

START_TEST(a_covariate_that_tells_the_samples_apart_leaves_nothing_to_test)
{
    const double a[] = {1, 2, 3};
    const double b[] = {4, 6, 5};
    const double zeros[] = {0, 0, 0};
    const double ones[] = {1, 1, 1};
    struct stats_shift s =
        stats_shift((struct stats_sample){a, zeros, 3}, (struct stats_sample){b, ones, 3}, 1);
    ck_assert(isnan(s.shift));
    ck_assert_double_eq(stats_shift_p_above(&s, 0.0), 1.0);
}
END_TEST

START_TEST(too_few_values_are_not_tested)
{
    const double a[] = {2, (double)NAN};
    const double b[] = {3, (double)INFINITY};
    struct stats_shift s =
        stats_shift((struct stats_sample){a, NULL, 2}, (struct stats_sample){b, NULL, 2}, 0);
    ck_assert_uint_eq(s.n_base, 1);
    ck_assert(isnan(s.shift)); /* 2 values, 2 columns: nothing is left to judge by */
    ck_assert_double_eq(stats_shift_p_above(&s, 0.0), 1.0);
}
END_TEST

/* Values are missing at random in both samples. The answer is, to the last bit, that of samples
 * without these rows. */
START_TEST(a_missing_value_takes_its_covariates_with_it)
{
    enum { MOST = 40, COVARIATES = 3 };
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 7, 0));
    for (int round = 0; round < 200; round++) {
        double y[2][MOST], c[2][MOST * COVARIATES], kept_y[2][MOST], kept_c[2][MOST * COVARIATES];
        size_t n[2], kept[2] = {0, 0};
        for (int k = 0; k < 2; k++) {
            n[k] = 8 + rng_below(&r, MOST - 8);
            for (size_t i = 0; i < n[k]; i++) {
                bool missing = rng_below(&r, 4) == 0;
                y[k][i] = missing ? (double)NAN : rng_normal(&r);
                kept_y[k][kept[k]] = y[k][i];
                for (size_t j = 0; j < COVARIATES; j++) {
                    c[k][i * COVARIATES + j] = rng_normal(&r);
                    kept_c[k][kept[k] * COVARIATES + j] = c[k][i * COVARIATES + j];
                }
                kept[k] += missing ? 0 : 1;
            }
        }
        struct stats_shift a = stats_shift((struct stats_sample){y[0], c[0], n[0]},
                                           (struct stats_sample){y[1], c[1], n[1]}, COVARIATES);
        struct stats_shift b =
            stats_shift((struct stats_sample){kept_y[0], kept_c[0], kept[0]},
                        (struct stats_sample){kept_y[1], kept_c[1], kept[1]}, COVARIATES);
        ck_assert_uint_eq(a.n_base, b.n_base);
        ck_assert_uint_eq(a.n_now, b.n_now);
        ck_assert(a.shift == b.shift || (isnan(a.shift) && isnan(b.shift)));
        ck_assert(a.se == b.se || (isnan(a.se) && isnan(b.se)));
        ck_assert(a.df == b.df);
    }
}
END_TEST

START_TEST(holm_steps_down_and_keeps_order)
{
    /* Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04; the last may not be
     * below the one before: 0.06. */
    const double p[] = {0.01, 0.04, 0.03, 0.005};
    double a[4];
    stats_holm(p, 4, a);
    ck_assert_double_eq_tol(a[0], 0.03, 1e-15);
    ck_assert_double_eq_tol(a[1], 0.06, 1e-15);
    ck_assert_double_eq_tol(a[2], 0.06, 1e-15);
    ck_assert_double_eq_tol(a[3], 0.02, 1e-15);
}
END_TEST

START_TEST(holm_counts_only_tests_that_were_made_and_stops_at_one)
{
    double p[] = {(double)NAN, 0.9, 0.4}; /* 0.4 * 2 = 0.8; 0.9 * 1 */
    stats_holm(p, 3, p);
    ck_assert(isnan(p[0]));
    ck_assert_double_eq_tol(p[1], 0.9, 1e-15);
    ck_assert_double_eq_tol(p[2], 0.8, 1e-15);
    double q[] = {0.7, 0.8}; /* 1.4, then 0.8 raised to it: both 1 */
    stats_holm(q, 2, q);
    ck_assert_double_eq(q[0], 1.0);
    ck_assert_double_eq(q[1], 1.0);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(without_covariates_it_is_the_pooled_t_test),
    TEST(a_covariate_that_explains_the_difference_leaves_the_rest),
    TEST(constant_and_repeated_covariates_take_no_part),
    TEST(equal_values_have_no_shift_and_certain_ones_are_certain),
    TEST(a_covariate_that_tells_the_samples_apart_leaves_nothing_to_test),
    TEST(too_few_values_are_not_tested),
    TEST(a_missing_value_takes_its_covariates_with_it),
    TEST(holm_steps_down_and_keeps_order),
    TEST(holm_counts_only_tests_that_were_made_and_stops_at_one),
};
SUITE_MAIN("stats_shift", suite)
