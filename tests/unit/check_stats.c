/* Intervals and verdicts are compared with textbook numbers. */
#include <math.h>

#include "sim/stats/stats.h"
#include "tests/helpers/suite.h"

#define MISSING ((double)NAN)

START_TEST(mean_interval_uses_students_t)
{
    /* 1..5: mean 3, variance 10/4 = 2.5, standard error sqrt(2.5/5) = 0.70711; t(0.975, 4) = 2.7764
     * (any table): half-width 1.96324. */
    const double x[] = {1, 2, 3, 4, 5};
    struct stats_interval s = stats_mean(x, 5, 0.95);
    ck_assert_uint_eq(s.n, 5);
    ck_assert_double_eq_tol(s.mean, 3.0, 1e-15);
    ck_assert_double_eq_tol(s.sd, sqrt(2.5), 1e-15);
    ck_assert_double_eq_tol(stats_half_width(&s), 1.96324, 2e-5);
    ck_assert_double_eq_tol(s.low + s.high, 6.0, 1e-12);
    /* At 90 % t(0.95, 4) = 2.1318, so the half-width is 1.50744. */
    s = stats_mean(x, 5, 0.90);
    ck_assert_double_eq_tol(stats_half_width(&s), 1.50744, 4e-5);
}
END_TEST

START_TEST(paired_interval_agrees_with_students_sleep_data)
{
    /* Student (1908), hours of sleep gained with two drugs, ten patients. Published: mean
     * difference -1.58, t = -4.0621 with 9 degrees of freedom, 95 % interval -2.4599 to -0.7001. */
    const double a[] = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
    const double b[] = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
    struct stats_paired p = stats_paired(a, b, 10, STATS_LEVEL_FRAC);
    ck_assert_uint_eq(p.diff.n, 10);
    ck_assert_double_eq_tol(p.diff.mean, -1.58, 1e-12);
    ck_assert_double_eq_tol(p.diff.mean / (p.diff.sd / sqrt(10.0)), -4.0621, 5e-5);
    ck_assert_double_eq_tol(p.diff.low, -2.4599, 5e-5);
    ck_assert_double_eq_tol(p.diff.high, -0.7001, 5e-5);
    ck_assert_double_eq_tol(p.base_mean, 2.33, 1e-12);
    ck_assert_double_eq_tol(stats_p(&p), 0.002833, 5e-7); /* published with the data */
    ck_assert_int_eq(stats_judge(&p), STATS_LOWER);
    /* The difference is 1.58 / 2.33 = 67.8 %. */
    ck_assert_str_eq(stats_verdict(&p), "lower by 68 % (significant)");
}
END_TEST

START_TEST(a_shift_common_to_both_policies_does_not_widen_a_paired_interval)
{
    /* The values spread over tens, and each pair differs by 1 or 2. The mean is 1.5 with standard
     * deviation 0.57735. The half-width is t(0.975, 3) 3.1824 * 0.57735 / 2 = 0.91869. */
    const double base[] = {10, 20, 50, 90};
    const double x[] = {11, 22, 51, 92};
    struct stats_paired p = stats_paired(x, base, 4, 0.95);
    ck_assert_double_eq_tol(stats_half_width(&p.diff), 0.91869, 2e-5);
    ck_assert_int_eq(stats_judge(&p), STATS_HIGHER);
}
END_TEST

START_TEST(a_difference_too_small_to_matter_is_equality_and_not_significance)
{
    /* Baseline mean 1000, so 1 % is 10. Differences 1 and 2, twice: 1.5 +- 0.91869 lies within. */
    const double base[] = {700, 900, 1100, 1300};
    const double x[] = {701, 902, 1101, 1302};
    struct stats_paired p = stats_paired(x, base, 4, 0.95);
    ck_assert_int_eq(stats_judge(&p), STATS_EQUAL);
    ck_assert_str_eq(stats_verdict(&p), "equal within 1 %");
    p.relevance_frac = 0.002; /* 2: the interval reaches to 2.4187 */
    ck_assert_int_eq(stats_judge(&p), STATS_HIGHER);
    ck_assert_str_eq(stats_verdict(&p), "higher by 0.1 % (significant)");
    p.relevance_frac = 0.0024187; /* just */
    ck_assert_int_eq(stats_judge(&p), STATS_EQUAL);
    /* An interval around 0 that reaches beyond 1 % shows neither. */
    const double wide[] = {680, 920, 1080, 1320};
    p = stats_paired(wide, base, 4, 0.95);
    ck_assert_int_eq(stats_judge(&p), STATS_NOT_SHOWN);
    /* And one within shows equality where nothing was "shown" before: +-1. */
    const double near[] = {699, 901, 1099, 1301};
    p = stats_paired(near, base, 4, 0.95);
    ck_assert_int_eq(stats_judge(&p), STATS_EQUAL);
}
END_TEST

START_TEST(missing_values_drop_their_pair_only)
{
    const double x[] = {2, MISSING, 4, 9};
    const double base[] = {1, 5, MISSING, 7};
    struct stats_paired p = stats_paired(x, base, 4, 0.95);
    /* Pairs (2,1) and (9,7): differences 1 and 2, baseline mean 4. */
    ck_assert_uint_eq(p.diff.n, 2);
    ck_assert_double_eq(p.diff.mean, 1.5);
    ck_assert_double_eq(p.base_mean, 4.0);
    struct stats_interval s = stats_mean(x, 4, 0.95);
    ck_assert_uint_eq(s.n, 3);
    ck_assert_double_eq(s.mean, 5.0);
    s = stats_mean(&x[1], 1, 0.95);
    ck_assert_uint_eq(s.n, 0);
    ck_assert_double_nan(s.mean);
}
END_TEST

START_TEST(verdicts_say_no_more_than_the_data)
{
    const double base[] = {10, 10, 10, 10};
    const double noisy[] = {8, 12, 9, 12}; /* differences -2 2 -1 2: interval holds 0 */
    struct stats_paired p = stats_paired(noisy, base, 4, 0.95);
    ck_assert_str_eq(stats_verdict(&p), "no difference shown at n=4");
    p = stats_paired(base, base, 4, 0.95);
    ck_assert_str_eq(stats_verdict(&p), "identical at n=4");
    p = stats_paired(base, base, 1, 0.95);
    ck_assert_str_eq(stats_verdict(&p), "identical at n=1");
    p = stats_paired(noisy, base, 1, 0.95); /* 8 against 10 */
    ck_assert_str_eq(stats_verdict(&p), "lower by 20 % (n=1, no interval)");
    const double none[] = {MISSING, MISSING};
    p = stats_paired(none, base, 2, 0.95);
    ck_assert_str_eq(stats_verdict(&p), "not defined");
    const double zero[] = {0, 0, 0};
    const double some[] = {2, 3, 4}; /* baseline 0: no percentage. 3 +- 4.303/sqrt 3 = 2.48 */
    p = stats_paired(some, zero, 3, 0.95);
    ck_assert_str_eq(stats_verdict(&p), "higher by 3 (significant)");
    const double large[] = {250, 250, 250, 250}; /* 25 times the baseline */
    p = stats_paired(large, base, 4, 0.95);
    ck_assert_str_eq(stats_verdict(&p), "higher by 2400 % (significant)");
    const double tiny[] = {0.5, 0.5, 0.5, 0.5}; /* 95 % lower */
    p = stats_paired(tiny, base, 4, 0.95);
    ck_assert_str_eq(stats_verdict(&p), "lower by 95.0 % (significant)");
}
END_TEST

START_TEST(digits_follow_the_width_of_the_interval)
{
    struct stats_interval s = {.mean = 12.3456, .low = 11.9456, .high = 12.7456, .n = 5};
    ck_assert_str_eq(stats_format(&s), "12.35 [11.95, 12.75]"); /* half 0.40 */
    s = (struct stats_interval){.mean = 1234.25, .low = 1200.0, .high = 1269.0, .n = 5};
    ck_assert_str_eq(stats_format(&s), "1234 [1200, 1269]"); /* half 34.5 */
    s = (struct stats_interval){.mean = 1.234, .low = 1.174, .high = 1.294, .n = 5};
    ck_assert_str_eq(stats_format(&s), "1.234 [1.174, 1.294]"); /* half 0.060 */
    s = (struct stats_interval){.mean = 0.01234, .low = 0.0121, .high = 0.0126, .n = 5};
    ck_assert_str_eq(stats_format(&s), "0.01234 [0.01210, 0.01260]"); /* half 0.00025 */
    s = (struct stats_interval){.mean = 7.0, .low = MISSING, .high = MISSING, .n = 1};
    ck_assert_str_eq(stats_format(&s), "7");
    s = (struct stats_interval){.mean = 0.123456, .low = MISSING, .high = MISSING, .n = 1};
    ck_assert_str_eq(stats_format(&s), "0.1235");
    /* Ten equal values whose sum is rounded: no interval of ten digits. */
    s = (struct stats_interval){
        .mean = 5.203630164, .low = 5.2036301639999985, .high = 5.2036301640000015, .n = 10};
    ck_assert_str_eq(stats_format(&s), "5.204");
    s = (struct stats_interval){.n = 0};
    ck_assert_str_eq(stats_format(&s), "-");
}
END_TEST

static const struct suite_row suite[] = {
    TEST(mean_interval_uses_students_t),
    TEST(paired_interval_agrees_with_students_sleep_data),
    TEST(a_shift_common_to_both_policies_does_not_widen_a_paired_interval),
    TEST(missing_values_drop_their_pair_only),
    TEST(a_difference_too_small_to_matter_is_equality_and_not_significance),
    TEST(verdicts_say_no_more_than_the_data),
    TEST(digits_follow_the_width_of_the_interval),
};
SUITE_MAIN("stats", suite)
