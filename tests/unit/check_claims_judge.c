/* Verdicts on claims are computed by hand. */
#include <math.h>

#include "experiments/claims/headlines.h"
#include "tests/helpers/suite.h"

/* ---- verdicts: five single traces 8, 9, 10, 11, 12: mean 10, sd sqrt(2.5), and with
 * t(0.975, 4) = 2.7764 the interval is 10 -+ 2.7764 * sqrt(2.5 / 5) = 10 -+ 1.963 ---- */

static double traces[] = {8, 9, 10, 11, 12};

static struct claim_check number(double low, double high, double neutral)
{
    return (struct claim_check){.name = "check",
                                .unit = "",
                                .kind = CHECK_NUMBER,
                                .low = low,
                                .high = high,
                                .neutral = neutral,
                                .tolerance_frac = 0.1,
                                .x = traces};
}

static struct claim_check order(enum check_kind kind, double bound)
{
    struct claim_check k = number(bound, bound, (double)NAN);
    k.kind = kind;
    return k;
}

static enum claim_verdict judged(struct claim_check k)
{
    struct claim c = {.id = "X", .n_checks = 1};
    c.checks[0] = k;
    claim_judge(&c, 5);
    return c.verdict;
}

START_TEST(a_number_within_the_range_of_single_traces_is_reproduced)
{
    ck_assert_int_eq(judged(number(12.0, 12.0, (double)NAN)),
                     CLAIM_REPRODUCED); /* the largest trace */
    ck_assert_int_eq(judged(number(12.1, 12.1, (double)NAN)), CLAIM_NOT_REPRODUCED);
    ck_assert_int_eq(judged(number(12.1, 15.0, (double)NAN)), CLAIM_NOT_REPRODUCED);
    ck_assert_int_eq(judged(number(11.9, 15.0, (double)NAN)), CLAIM_REPRODUCED); /* ranges meet */
    struct claim c = {.id = "X", .n_checks = 1};
    c.checks[0] = number(11.5, 11.5, (double)NAN);
    claim_judge(&c, 5);
    ck_assert_double_eq(c.checks[0].percentile, 80.0); /* 4 of 5 lie below */
    ck_assert_double_eq_tol(c.checks[0].mean.low, 10.0 - 1.963, 0.001);
}
END_TEST

START_TEST(a_number_beyond_the_traces_but_on_the_same_side_of_neutral_is_the_direction)
{
    ck_assert_int_eq(judged(number(20.0, 20.0, 8.0)), CLAIM_DIRECTION);      /* 8 < 8.037 */
    ck_assert_int_eq(judged(number(20.0, 20.0, 8.1)), CLAIM_NOT_REPRODUCED); /* 8.1 > 8.037 */
    ck_assert_int_eq(judged(number(2.0, 2.0, 11.0)), CLAIM_NOT_REPRODUCED);  /* 11 < 11.963 */
    ck_assert_int_eq(judged(number(2.0, 2.0, 12.0)), CLAIM_DIRECTION);
    /* in range, but the mean is not shown to be on the published side */
    ck_assert_int_eq(judged(number(11.0, 11.0, 9.0)), CLAIM_NOT_REPRODUCED);
}
END_TEST

/* The five traces span 4. That is as wide as the effect from neutral 7 to 11, and wider than that
 * from 8. A published range is an effect of its own width. */
START_TEST(a_number_is_not_decided_by_traces_spread_wider_than_the_effect)
{
    ck_assert_int_eq(judged(number(11.0, 11.0, 7.0)), CLAIM_REPRODUCED);
    ck_assert_int_eq(judged(number(11.0, 11.0, 7.5)), CLAIM_COMPATIBLE);
    ck_assert_int_eq(judged(number(9.0, 13.1, 8.0)),
                     CLAIM_REPRODUCED); /* middle 11.05, width 4.1 */
    ck_assert_int_eq(judged(number(3.9, 3.9, (double)NAN)), CLAIM_NOT_REPRODUCED);
    struct claim_check noisy = number(2.0, 2.0, (double)NAN);
    static double spread[] = {1, 2, 3, 4, 5}; /* 4 wide, twice the 2 that is published */
    noisy.x = spread;
    ck_assert_int_eq(judged(noisy), CLAIM_COMPATIBLE);
}
END_TEST

START_TEST(an_order_needs_the_whole_interval_and_its_mean_alone_is_the_direction)
{
    ck_assert_int_eq(judged(order(CHECK_ABOVE, 8.0)), CLAIM_REPRODUCED);
    ck_assert_int_eq(judged(order(CHECK_ABOVE, 9.0)), CLAIM_DIRECTION);
    ck_assert_int_eq(judged(order(CHECK_ABOVE, 10.5)), CLAIM_NOT_REPRODUCED);
    ck_assert_int_eq(judged(order(CHECK_BELOW, 12.0)), CLAIM_REPRODUCED);
    ck_assert_int_eq(judged(order(CHECK_BELOW, 11.0)), CLAIM_DIRECTION);
    ck_assert_int_eq(judged(order(CHECK_BELOW, 9.5)), CLAIM_NOT_REPRODUCED);
}
END_TEST

/* Traces have the values 1 to n. The range of 39 holds the next with probability 38/40 = 95 %. More
 * traces must not widen it. With 399 the 2.5 % quantile is the value of rank 0.025 * 400 = 10, and
 * 390 is the other end. With 99 traces both ends lie halfway between two ranks: 2.5 and 97.5. */
START_TEST(more_traces_do_not_widen_the_range_of_single_traces)
{
    static double x[399];
    for (int i = 0; i < 399; i++) {
        x[i] = 399 - i; /* in no order */
    }
    static const struct {
        uint32_t n;
        double least, most;
    } expected[] = {{39, 361, 399}, {99, 301 + 1.5, 399 - 1.5}, {399, 10, 390}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        struct claim c = {.id = "X", .n_checks = 1};
        c.checks[0] = number(1.0, 1.0, (double)NAN);
        c.checks[0].x = x;
        claim_judge(&c, expected[i].n);
        ck_assert_double_eq_tol(c.checks[0].least, expected[i].least, 1e-9);
        ck_assert_double_eq_tol(c.checks[0].most, expected[i].most, 1e-9);
    }
    struct claim_check outermost = number(399.0, 399.0, (double)NAN);
    outermost.x = x;
    struct claim c = {.id = "X", .n_checks = 1};
    c.checks[0] = outermost;
    claim_judge(&c, 399);
    ck_assert_int_eq(c.verdict, CLAIM_NOT_REPRODUCED); /* one trace in 399 shows it */
}
END_TEST

/* Four of five traces keep "below 12" of a maximum, and the mean of 10 +- 1.963 does. But the trace
 * with 12 breaks it. */
START_TEST(a_bound_on_a_maximum_is_judged_by_the_worst_trace)
{
    struct claim_check k = order(CHECK_BELOW, 12.0);
    ck_assert_int_eq(judged(k), CLAIM_REPRODUCED);
    k.every_trace = true;
    ck_assert_int_eq(judged(k), CLAIM_NOT_REPRODUCED);
    k.low = k.high = 12.5;
    ck_assert_int_eq(judged(k), CLAIM_REPRODUCED);
    k = order(CHECK_ABOVE, 8.0);
    k.every_trace = true;
    ck_assert_int_eq(judged(k), CLAIM_NOT_REPRODUCED);
    k.low = k.high = 7.5;
    ck_assert_int_eq(judged(k), CLAIM_REPRODUCED);
}
END_TEST

START_TEST(what_has_no_spread_is_held_against_its_tolerance)
{
    static double same[] = {10, 10, 10, 10, 10};
    struct claim_check k = number(10.9, 10.9, (double)NAN);
    k.x = same; /* 10 -+ 10 % reaches 11 */
    ck_assert_int_eq(judged(k), CLAIM_REPRODUCED);
    k.low = k.high = 11.1;
    ck_assert_int_eq(judged(k), CLAIM_NOT_REPRODUCED);
}
END_TEST

START_TEST(a_claim_is_as_good_as_its_worst_check_that_counts)
{
    struct claim c = {.id = "X", .n_checks = 2};
    c.checks[0] = order(CHECK_ABOVE, 8.0);
    c.checks[1] = order(CHECK_ABOVE, 9.0);
    claim_judge(&c, 5);
    ck_assert_int_eq(c.verdict, CLAIM_DIRECTION);
    c.checks[1].informative = true;
    claim_judge(&c, 5);
    ck_assert_int_eq(c.verdict, CLAIM_REPRODUCED);
    c.set_by = "the power numbers";
    claim_judge(&c, 5);
    ck_assert_int_eq(c.verdict, CLAIM_CALIBRATED);
    ck_assert_int_eq(c.checks[0].verdict, CLAIM_CALIBRATED);
    c.not_modellable = "no display";
    claim_judge(&c, 5);
    ck_assert_int_eq(c.verdict, CLAIM_NOT_MODELLABLE);
}
END_TEST

START_TEST(what_is_not_decided_does_not_hold)
{
    ck_assert(claim_verdict_holds(CLAIM_REPRODUCED));
    ck_assert(claim_verdict_holds(CLAIM_CALIBRATED));
    ck_assert(!claim_verdict_holds(CLAIM_COMPATIBLE));
    ck_assert(!claim_verdict_holds(CLAIM_DIRECTION));
}
END_TEST

/* Two claims that both hold: only the one that a set-up was fitted to is no test of it. */
START_TEST(a_claim_that_was_fitted_is_never_called_reproduced)
{
    struct claim v[2] = {{.id = "X1", .n_checks = 1}, {.id = "X2", .n_checks = 1}};
    struct claims all = {.v = v, .n = 2};
    claims_set_by(&all, "X1", "fitted");
    for (int i = 0; i < 2; i++) {
        v[i].checks[0] = order(CHECK_ABOVE, 8.0);
        claim_judge(&v[i], 5);
    }
    ck_assert_int_eq(v[0].verdict, CLAIM_CALIBRATED);
    ck_assert_int_eq(v[1].verdict, CLAIM_REPRODUCED);
    claims_set_by(&all, NULL, "all were");
    ck_assert_str_eq(v[0].set_by, "fitted");
    ck_assert_str_eq(v[1].set_by, "all were");
}
END_TEST

START_TEST(a_value_that_is_not_defined_is_not_reproduced)
{
    static double undefined[5];
    for (int i = 0; i < 5; i++) {
        undefined[i] = (double)NAN;
    }
    struct claim_check k = order(CHECK_ABOVE, 0.0);
    k.x = undefined;
    ck_assert_int_eq(judged(k), CLAIM_NOT_REPRODUCED);
}
END_TEST

/* ---- headlines on drawn machines ---- */

/* The file's machine has 10 and 30 on two traces, and 20 in the mean of all. Machines of 11 and 31,
 * of 9 and 29, and of 15 and 33 differ from it by 1, -1 and (5 + 3) / 2 = 4: 21, 19, 24. The fourth
 * has no value. Ranks 0.1 and 3.9 of three values are the least and the most. */
START_TEST(a_drawn_machine_counts_by_its_difference_from_the_file_s_on_the_same_traces)
{
    double file_x[] = {10, 30, 20};
    double drawn_x[] = {11, 31, 9, 29, 15, 33, (double)NAN, 30};
    struct claim_check file = {.x = file_x, .mean = {.mean = 20.0}};
    struct claim_check drawn = {.x = drawn_x};
    double low;
    double high;
    ck_assert_uint_eq(headline_range(&file, &drawn, 4, &low, &high), 3);
    ck_assert_double_eq_tol(low, 19.0, 1e-12);
    ck_assert_double_eq_tol(high, 24.0, 1e-12);
}
END_TEST

/* 79 machines have 0 to 78 more. The ranks are 0.025 * 80 = 2 and 0.975 * 80 = 78, so 1 and 77
 * more. */
START_TEST(of_many_machines_the_extremes_are_left_out)
{
    double file_x[] = {5, 7};
    double drawn_x[79 * QUANTITIES_MACHINE_TRACES];
    for (int i = 0; i < 79; i++) {
        drawn_x[2 * i] = 5.0 + (78 - i);
        drawn_x[2 * i + 1] = 7.0 + (78 - i);
    }
    struct claim_check file = {.x = file_x, .mean = {.mean = 100.0}};
    struct claim_check drawn = {.x = drawn_x};
    double low;
    double high;
    ck_assert_uint_eq(headline_range(&file, &drawn, 79, &low, &high), 79);
    ck_assert_double_eq_tol(low, 101.0, 1e-12);
    ck_assert_double_eq_tol(high, 177.0, 1e-12);
}
END_TEST

/* The second of three checks is a headline, and the first of two claims has one. */
START_TEST(headlines_are_kept_alone)
{
    struct claim v[2] = {{.id = "X", .n_checks = 3}, {.id = "Y", .n_checks = 1}};
    v[0].checks[1] = number(1, 1, 0);
    v[0].checks[1].headline = "said";
    struct claims c = {.v = v, .n = 2};
    struct err e = ERR_INIT;
    ck_assert_int_eq(claims_headlines(&c, &e), 0);
    ck_assert_uint_eq(c.n, 1);
    ck_assert_uint_eq(c.v[0].n_checks, 1);
    ck_assert_str_eq(c.v[0].checks[0].headline, "said");
    c.v[0].checks[0].headline = NULL;
    ck_assert_int_ne(claims_headlines(&c, &e), 0);
    err_fini(&e);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("claims: verdicts"),
    TEST(a_number_within_the_range_of_single_traces_is_reproduced),
    TEST(a_number_beyond_the_traces_but_on_the_same_side_of_neutral_is_the_direction),
    TEST(a_number_is_not_decided_by_traces_spread_wider_than_the_effect),
    TEST(an_order_needs_the_whole_interval_and_its_mean_alone_is_the_direction),
    TEST(more_traces_do_not_widen_the_range_of_single_traces),
    TEST(a_bound_on_a_maximum_is_judged_by_the_worst_trace),
    TEST(what_has_no_spread_is_held_against_its_tolerance),
    TEST(a_claim_is_as_good_as_its_worst_check_that_counts),
    TEST(what_is_not_decided_does_not_hold),
    TEST(a_claim_that_was_fitted_is_never_called_reproduced),
    TEST(a_value_that_is_not_defined_is_not_reproduced),
    CASE("claims: headlines"),
    TEST(a_drawn_machine_counts_by_its_difference_from_the_file_s_on_the_same_traces),
    TEST(of_many_machines_the_extremes_are_left_out),
    TEST(headlines_are_kept_alone),
};
SUITE_MAIN("claims: verdicts", suite)
