/* Bootstrap, ratio, quantile and steady-state intervals: hand-made cases. Coverage is measured in
 * tests/oracle/check_coverage.c. */
#include <math.h>
#include <string.h>

#include "experiments/compare/compare.h"
#include "sim/base/rng.h"
#include "sim/stats/stats_intervals.h"
#include "tests/helpers/suite.h"

#define MISSING ((double)NAN)

START_TEST(a_bound_of_the_ratio_puts_zero_on_the_edge_of_the_difference)
{
    /* Fieller's bounds are the r at which the t interval of mean(x - r base) just touches 0, so the
     * plain interval checks them. */
    const double x[] = {10.2, 12.1, 8.7, 13.0, 9.9, 11.4};
    const double base[] = {8.0, 9.9, 7.1, 9.2, 8.8, 8.1};
    struct stats_interval s = stats_ratio(x, base, 6, 0.95);
    ck_assert_double_eq_tol(s.mean, 65.3 / 51.1, 1e-14);
    ck_assert(s.low < s.mean && s.mean < s.high);
    double d[6];
    for (int i = 0; i < 6; i++) {
        d[i] = x[i] - s.low * base[i];
    }
    ck_assert_double_eq_tol(stats_mean(d, 6, 0.95).low, 0.0, 1e-12);
    for (int i = 0; i < 6; i++) {
        d[i] = x[i] - s.high * base[i];
    }
    ck_assert_double_eq_tol(stats_mean(d, 6, 0.95).high, 0.0, 1e-12);
}
END_TEST

START_TEST(proportional_pairs_have_a_certain_ratio)
{
    const double x[] = {2, 6, 14, MISSING, 4};
    const double base[] = {1, 3, 7, 5, MISSING};
    struct stats_interval s = stats_ratio(x, base, 5, 0.95);
    ck_assert_uint_eq(s.n, 3);
    ck_assert_double_eq_tol(s.mean, 2.0, 1e-15);
    /* The base itself is not shown to differ from 0 at n = 3 (mean 3.67, half-width 7.6): no bound.
     */
    ck_assert(isnan(s.low) && isnan(s.high));
    const double many[] = {2, 6, 14, 8, 10, 4};
    const double half[] = {1, 3, 7, 4, 5, 2};
    s = stats_ratio(many, half, 6, 0.95);
    ck_assert_double_eq_tol(s.low, 2.0, 1e-7);
    ck_assert_double_eq_tol(s.high, 2.0, 1e-7);
}
END_TEST

START_TEST(bootstrap_bounds_depend_on_data_only)
{
    const double x[] = {1, 5, 2, 9, 4, 30, 3, 3, 8, MISSING, 6};
    struct stats_interval a = stats_bootstrap(x, 11, 0.95);
    struct stats_interval other = stats_bootstrap(x, 8, 0.95); /* other resamples in between */
    struct stats_interval b = stats_bootstrap(x, 11, 0.95);
    ck_assert_uint_eq(a.n, 10);
    ck_assert_double_eq_tol(a.mean, 7.1, 1e-14);
    ck_assert_double_eq(a.low, b.low);
    ck_assert_double_eq(a.high, b.high);
    ck_assert_double_ne(a.high, other.high);
    /* Data with a long right tail: more room above the mean than below, which t cannot give. */
    ck_assert_double_gt(a.high - a.mean, a.mean - a.low);
}
END_TEST

/* Wherever values are missing: what is left decides, in its order. */
START_TEST(missing_values_are_no_part_of_it)
{
    const double x[] = {1, 5, 2, 9, 4, 30, 3, 3, 8, 6};
    struct stats_interval want = stats_bootstrap(x, 10, 0.95);
    for (size_t at = 0; at <= 10; at++) {
        double y[12];
        for (size_t i = 0; i < 12; i++) {
            bool missing = i == at || i == at + 1;
            y[i] = missing ? (i % 2 == 0 ? MISSING : (double)INFINITY) : x[i < at ? i : i - 2];
        }
        struct stats_interval s = stats_bootstrap(y, 12, 0.95);
        ck_assert_uint_eq(s.n, 10);
        ck_assert(s.mean == want.mean && s.low == want.low && s.high == want.high);
        enum stats_method how[2];
        s = stats_reported(y, 12, &how[0]);
        struct stats_interval reported = stats_reported(x, 10, &how[1]);
        ck_assert(how[0] == how[1] && s.low == reported.low && s.high == reported.high);
    }
}
END_TEST

START_TEST(bootstrap_moves_with_scale_and_place)
{
    /* t values are the same for a + b x, so bounds map. */
    double x[12];
    double y[12];
    for (int i = 0; i < 12; i++) {
        x[i] = i * i;
        y[i] = 1000.0 + 3.0 * x[i];
    }
    struct stats_interval a = stats_bootstrap(x, 12, 0.95);
    struct stats_interval b = stats_bootstrap(y, 12, 0.95);
    ck_assert_double_eq_tol(b.low, 1000.0 + 3.0 * a.low, 1e-9);
    ck_assert_double_eq_tol(b.high, 1000.0 + 3.0 * a.high, 1e-9);
}
END_TEST

static bool same_interval(struct stats_interval a, struct stats_interval b)
{
    double x[] = {a.mean, a.sd, a.low, a.high};
    double y[] = {b.mean, b.sd, b.low, b.high};
    bool same = a.n == b.n;
    for (int i = 0; i < 4; i++) {
        same = same && (x[i] == y[i] || (isnan(x[i]) && isnan(y[i])));
    }
    return same;
}

/* Values that are not finite are dropped, wherever they are: at the begin, the end, next to each
 * other. A pair is dropped whole. Skewed values, so that the bootstrap is what is reported. */
START_TEST(values_that_are_not_finite_are_as_if_they_were_not_there)
{
    enum { N = 10, MOST = 14 };
    static const double finite[N] = {1, 2, 1.5, 30, 2.5, 1.25, 9, 3, 2, 1.75};
    static const double base[N] = {2, 1, 2.5, 20, 3.5, 2.25, 8, 1, 4, 0.5};
    static const double odd[] = {NAN, INFINITY, -INFINITY, NAN};
    for (uint32_t places = 1; places < 1u << N; places += 37) { /* before which values */
        double x[MOST];
        double y[MOST];
        size_t n = 0;
        uint32_t k = 0;
        for (uint32_t i = 0; i <= N; i++) {
            bool here = i == N ? k < 4 && places % 2 > 0 : (places >> i & 1) != 0 && k < 3;
            if (here) {
                x[n] = places % 3 == 0 ? 5.0 : odd[k]; /* of a pair one is enough */
                y[n++] = places % 3 == 0 ? odd[k] : 7.0;
                k++;
            }
            if (i < N) {
                x[n] = finite[i];
                y[n++] = base[i];
            }
        }
        if (places % 3 != 0) {
            ck_assert(same_interval(stats_mean(x, n, 0.9), stats_mean(finite, N, 0.9)));
            ck_assert(same_interval(stats_bootstrap(x, n, 0.9), stats_bootstrap(finite, N, 0.9)));
            enum stats_method method = STATS_STUDENT;
            ck_assert(
                same_interval(stats_reported(x, n, &method), stats_reported(finite, N, NULL)));
            ck_assert(method == STATS_BOOTSTRAP);
        }
        ck_assert(same_interval(stats_ratio(x, y, n, 0.9), stats_ratio(finite, base, N, 0.9)));
        ck_assert(same_interval(stats_paired(x, y, n, 0.9).diff,
                                stats_paired(finite, base, N, 0.9).diff));
        ck_assert(same_interval(stats_reported_paired(x, y, n).diff,
                                stats_reported_paired(finite, base, N).diff));
    }
}
END_TEST

START_TEST(equal_values_have_no_bootstrap)
{
    const double x[] = {3, 3, 3, 3};
    struct stats_interval s = stats_bootstrap(x, 4, 0.95);
    ck_assert_double_eq(s.mean, 3.0);
    ck_assert(isnan(s.low));
}
END_TEST

/* Eight of nine values are 0 and one is 1: a mean and a standard error of 1/9. A third of the
 * resamples has zeros alone, and no t value. No other resample has one below that of one 1,
 * which is 0, and P(t > 1.9) is below 2 %. So both bounds are Student's, whose quantile of 99 % is
 * 2.896459 at 8 degrees of freedom (printed tables). The upper one was the mean itself. */
START_TEST(a_rare_value_has_students_bounds)
{
    const double x[9] = {0, 0, 0, 1, 0, 0, 0, 0, 0};
    struct stats_interval s = stats_bootstrap(x, 9, 0.98);
    ck_assert_double_eq_tol(s.low, (1.0 - 2.896459) / 9.0, 1e-6);
    ck_assert_double_eq_tol(s.high, (1.0 + 2.896459) / 9.0, 1e-6);
    enum stats_method how;
    struct stats_interval reported = stats_reported(x, 9, &how);
    ck_assert(how == STATS_BOOTSTRAP && reported.low == s.low && reported.high == s.high);
}
END_TEST

START_TEST(steady_state_starts_after_the_transient)
{
    /* 500 values, the first 50 at 100, then -1, +1, ...: a tenth goes; of the other 450, 10 batches
     * of 45: means +-1/45, five of each, so a mean of 0. */
    double x[500];
    for (int i = 0; i < 500; i++) {
        x[i] = i < 50 ? 100.0 : i % 2 == 0 ? -1.0 : 1.0;
    }
    struct stats_steady s;
    struct err e = ERR_INIT;
    ck_assert_int_eq(stats_steady("x", x, 500, false, 0.95, &s, &e), 0);
    ck_assert_uint_eq(s.dropped, 50);
    ck_assert_uint_eq(s.batches, 10);
    ck_assert_double_eq_tol(s.mean.mean, 0.0, 1e-15);
    /* Every value lies on the other side than its neighbour: each is worth one. Sample s.d. of the
     * means (1/45) sqrt(10/9), t(9) = 2.262157: half width 2.262157 * 0.0222222 * 1.0540926 /
     * sqrt(10) = 0.0167567, wider by 1 + 50/450. */
    ck_assert_double_eq(s.correlation_length, 1.0);
    ck_assert_double_eq_tol(s.mean.high, 0.0167567 * (1.0 + 50.0 / 450.0), 1e-7);
    ck_assert_double_eq_tol(s.mean.low, -0.0167567 * (1.0 + 50.0 / 450.0), 1e-7);
}
END_TEST

/* A tenth of 1000 to 1019 values is dropped. The last ones, ten times a batch's size, make the
 * mean: those between are in neither, so that each of the last is in one batch. */
START_TEST(the_last_values_make_the_batches)
{
    double x[1019];
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 8, 0));
    for (size_t n = 1000; n <= 1019; n++) {
        size_t size = (n - n / 10) / 10;
        double sum = 0.0;
        for (size_t i = 0; i < n; i++) {
            x[i] = rng_normal(&r);
            sum += i >= n - 10 * size ? x[i] : 0.0;
        }
        struct stats_steady s;
        struct err e = ERR_INIT;
        ck_assert_int_eq(stats_steady("x", x, n, false, 0.95, &s, &e), 0);
        ck_assert_double_eq_tol(s.mean.mean, sum / (10.0 * (double)size), 1e-12);
    }
}
END_TEST

START_TEST(values_that_stay_on_one_side_are_worth_less)
{
    /* Three are below, three above, and so on. The last 396 values count (one scale: half of them
     * are fewer than 200). 132 of 395 neighbours differ, so phi = cos(132 pi / 395) = 0.4977. The
     * length is 5 * 0.4977 / 0.5023 = 4.954. */
    double x[440];
    for (int i = 0; i < 440; i++) {
        x[i] = i / 3 % 2 == 0 ? -1.0 - 1e-6 * i : 1.0 + 1e-6 * i;
    }
    struct stats_steady s;
    struct err e = ERR_INIT;
    ck_assert_int_eq(stats_steady("x", x, 440, false, 0.95, &s, &e), 0);
    ck_assert_double_eq_tol(s.correlation_length, 4.954, 0.001);
}
END_TEST

/* Which it is; and it is the interval that it is said to be. */
static enum stats_method reported(const double *x, size_t n)
{
    enum stats_method how;
    struct stats_interval got = stats_reported(x, n, &how);
    struct stats_interval want =
        how == STATS_BOOTSTRAP ? stats_bootstrap(x, n, 0.98) : stats_mean(x, n, 0.95);
    ck_assert_int_eq(memcmp(&got.low, &want.low, sizeof got.low), 0);
    ck_assert_int_eq(memcmp(&got.high, &want.high, sizeof got.high), 0);
    return how;
}

START_TEST(skew_is_seen_from_eight_values_to_nineteen)
{
    /* k zeros and a one have the skewness (k - 1) / sqrt(k), 2.27 at k = 7. Even spread has 0. */
    double x[20] = {1.0};
    double even[20];
    for (int i = 0; i < 20; i++) {
        even[i] = i;
    }
    static const struct {
        bool even;
        size_t n;
        enum stats_method how;
    } cases[] = {
        {false, 2, STATS_STUDENT},  {false, 3, STATS_STUDENT},   {false, 4, STATS_TOO_FEW},
        {false, 7, STATS_TOO_FEW},  {false, 8, STATS_BOOTSTRAP}, {false, 19, STATS_BOOTSTRAP},
        {false, 20, STATS_STUDENT}, {true, 10, STATS_STUDENT},   {true, 0, STATS_STUDENT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(reported(cases[i].even ? even : x, cases[i].n), cases[i].how);
    }
    x[3] = (double)NAN; /* not a value: 7 are left */
    ck_assert_int_eq(reported(x, 8), STATS_TOO_FEW);
    /* A one among n has 0.71 of three and 1.15 of four. */
    /* Zeros and ones, 4 and 5, have the skewness (5 - 4) / sqrt(20) = 0.22. 5 and 8 of 13 have
     * 0.47, and 7 and 3 have 0.87. */
    const double little[] = {0, 0, 0, 0, 1, 1, 1, 1, 1};
    const double more[] = {0, 0, 0, 0, 0, 0, 0, 1, 1, 1};
    const double some[] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    ck_assert_int_eq(reported(little, 9), STATS_STUDENT);
    ck_assert_int_eq(reported(some, 13), STATS_STUDENT);
    ck_assert_int_eq(reported(some + 1, 10), STATS_BOOTSTRAP); /* 4 and 6: 0.41 */
    ck_assert_int_eq(reported(more, 10), STATS_BOOTSTRAP);
}
END_TEST

START_TEST(values_that_are_all_alike_have_an_exact_mean)
{
    double x[300];
    for (int i = 0; i < 300; i++) {
        x[i] = 2.5;
    }
    struct stats_steady s;
    struct err e = ERR_INIT;
    ck_assert_int_eq(stats_steady("x", x, 300, false, 0.95, &s, &e), 0);
    ck_assert_double_eq(s.mean.low, 2.5);
    ck_assert_double_eq(s.mean.high, 2.5);
    /* Nearly all are equal: 1 in 10 is higher, and no two of these are neighbours. They change
     * sides as often as independent ones of which a tenth is above, 2 * 0.1 * 0.9, and a little
     * more. */
    for (int i = 0; i < 300; i += 10) {
        x[i] = 9.0;
    }
    ck_assert_int_eq(stats_steady("x", x, 300, false, 0.95, &s, &e), 0);
    ck_assert_double_eq(s.correlation_length, 1.0);
}
END_TEST

static void refuse(const double *x, size_t n, bool overloaded, const char *want)
{
    struct stats_steady s;
    struct err e = ERR_INIT;
    ck_assert_int_ne(stats_steady("ttft_s", x, n, overloaded, 0.95, &s, &e), 0);
    ck_assert_msg(e.n == 1 && strstr(e.lines[0], want) != NULL, "%s", e.lines[0]);
    err_fini(&e);
}

/* In the series of threes above some 4.96 values depend on each other. The last 288 of 320 are
 * worth 58 independent ones, too few, and the last 306 of 340 are worth 62. */
START_TEST(sixty_independent_values_are_the_least)
{
    double x[340];
    for (int i = 0; i < 340; i++) {
        x[i] = i / 3 % 2 == 0 ? -1.0 - 1e-6 * i : 1.0 + 1e-6 * i;
    }
    refuse(x, 320, false, "are worth 58 independent ones, and 60 are needed");
    struct stats_steady s;
    struct err e = ERR_INIT;
    ck_assert_int_eq(stats_steady("x", x, 340, false, 0.95, &s, &e), 0);
}
END_TEST

START_TEST(a_series_without_steady_state_is_refused)
{
    double x[1000];
    for (int i = 0; i < 1000; i++) {
        x[i] = i % 7;
    }
    refuse(x, 1000, true, "ttft_s: no steady state: the run is OVERLOADED");
    refuse(x, 199, false, "too few values for batch means: 199");
    /* A wave of 900 values under a quick +-3: pairs show it. Two changes of side in some 450 of
     * them: phi near 1. */
    for (int i = 0; i < 1000; i++) {
        x[i] = sin(i * 2.0 * 3.14159265358979 / 900.0) + (i % 2 == 0 ? 3.0 : -3.0);
    }
    refuse(x, 1000, false, "ttft_s: no interval: 900 values that hang together");
    for (int i = 0; i < 1000; i++) { /* calm only in the last fifth */
        x[i] = i < 800 ? 1000.0 - i : 200.0;
    }
    refuse(x, 1000, false, "run about");
}
END_TEST

/* Ten skewed differences, of mean -0.0137 and standard error 0.0068: Student's t is 2.00,
 * which 2.262 (9 degrees of freedom) does not show, so there is nothing for a correction to take
 * back. The wide interval of skewed values leaves zero out. Twice as far from zero, t is 3.95 and
 * shows it. */
START_TEST(what_students_test_does_not_show_is_not_significant_alone)
{
    static const double d[] = {-0.0209, -0.0049, -0.0131, 0.0007,  -0.0011,
                               0.0,     0.0,     -0.0073, -0.0707, -0.0197};
    double base[10];
    double x[10];
    for (size_t i = 0; i < 10; i++) {
        base[i] = 1.5;
        x[i] = 1.5 + d[i];
    }
    struct stats_paired p = stats_reported_paired(x, base, 10);
    p.relevance_frac = 0.001;
    ck_assert(p.diff.high < 0.0);
    ck_assert_double_eq_tol(stats_p(&p), 0.076, 0.0005); /* tables of t */
    ck_assert_str_eq(significance_text(&p, stats_p(&p)), "lower by 0.9 % (not significant)");
    ck_assert_str_eq(significance_text(&p, NAN), "lower by 0.9 % (not significant)");
    for (size_t i = 0; i < 10; i++) {
        x[i] -= 0.0133;
    }
    p = stats_reported_paired(x, base, 10);
    ck_assert_str_eq(significance_text(&p, NAN), "lower by 1.8 % (significant)");
    ck_assert_str_eq(significance_text(&p, 0.06),
                     "lower by 1.8 % (not significant after Holm's correction)");
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_bound_of_the_ratio_puts_zero_on_the_edge_of_the_difference),
    TEST(proportional_pairs_have_a_certain_ratio),
    TEST(bootstrap_bounds_depend_on_data_only),
    TEST(missing_values_are_no_part_of_it),
    TEST(bootstrap_moves_with_scale_and_place),
    TEST(values_that_are_not_finite_are_as_if_they_were_not_there),
    TEST(equal_values_have_no_bootstrap),
    TEST(a_rare_value_has_students_bounds),
    TEST(steady_state_starts_after_the_transient),
    TEST(the_last_values_make_the_batches),
    TEST(values_that_stay_on_one_side_are_worth_less),
    TEST(skew_is_seen_from_eight_values_to_nineteen),
    TEST(what_students_test_does_not_show_is_not_significant_alone),
    TEST(values_that_are_all_alike_have_an_exact_mean),
    TEST(a_series_without_steady_state_is_refused),
    TEST(sixty_independent_values_are_the_least),
};
SUITE_MAIN("stats_intervals", suite)
