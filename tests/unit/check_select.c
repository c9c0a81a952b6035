/* Ranking and selection on alternatives whose best is known. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "experiments/compare/select.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

#define MOST 32

/* Values are mean_i + shared + own noise. Common random numbers shift all alternatives equally. */
struct drawn {
    uint32_t k;
    double mean[MOST], sd[MOST], shared_sd;
    bool skewed; /* own noise is exponential, with that standard deviation and mean 0 */
    uint64_t seed;
    uint64_t asked;  /* values */
    uint32_t broken; /* this alternative has no values from replication 12 on; MOST: none */
};

static void measure(void *ctx, const bool *left, uint32_t from, uint32_t to, double *const *values)
{
    struct drawn *x = ctx;
    for (uint32_t r = from; r < to; r++) {
        double shared = x->shared_sd * rng_normal_of_key(rng_key(x->seed, RNG_TEST, r, MOST));
        for (uint32_t i = 0; i < x->k; i++) {
            double own = left[i] ? rng_normal_of_key(rng_key(x->seed, RNG_TEST, r, i)) : 0.0;
            own = x->skewed ? -log(gsl_cdf_ugaussian_P(own)) - 1.0 : own;
            if (left[i]) {
                bool none = i == x->broken && r >= 12;
                values[i][r] = none ? (double)INFINITY : x->mean[i] + shared + x->sd[i] * own;
                x->asked++;
            }
        }
    }
}

static const struct select_options usual = {
    .confidence_frac = 0.95, .delta = 1.0, .first = 10, .most = 100000};

/* ---- by hand ---- */

/* The second is behind by `lead` on average, and by lead + 1 and lead - 1 in turn. */
static void alternate(void *ctx, const bool *left, uint32_t from, uint32_t to,
                      double *const *values)
{
    for (uint32_t r = from; r < to; r++) {
        values[0][r] = left[0] ? 100.0 + r : 0.0;
        values[1][r] = left[1] ? 100.0 + r + *(double *)ctx + (r % 2 == 0 ? 1.0 : -1.0) : 0.0;
    }
}

START_TEST(the_limit_is_that_of_the_closed_form)
{
    /* k = 2 gives beta = 0.05, and r = 10 gives h^2 = 9 (0.1^(-2/9) - 1) = 9 (1.66810 - 1) =
     * 6.0129. The variance of differences lead +- 1 is 10/9. With delta = 0.5 the limit is W = 0.5
     * / 20 (6.0129 * 10/9 / 0.25 - 10) = 0.025 * 16.724 = 0.41810. */
    struct select_options o = usual;
    o.delta = 0.5;
    struct select_result r;
    double lead = 0.419;
    select_by(&o, 2, alternate, &lead, &r);
    ck_assert_uint_eq(r.replications, 10);
    ck_assert(r.decided && r.best == 0 && r.of[0].left && !r.of[1].left);
    ck_assert_uint_eq(r.runs, 20);
    ck_assert_uint_eq(r.equal_runs, 20); /* nobody left before the end */
    lead = 0.417;
    select_by(&o, 2, alternate, &lead, &r);
    ck_assert_uint_eq(r.replications, 12); /* the next look: 10 + 1 + 10 / 10 */
    ck_assert(r.decided && r.best == 0);
    /* This is the fixed number for an equal guarantee. z(0.05) = 1.64485, and over r replications
     * the variance is r / (r - 1). So n = 2.70554 * 40 / 39 / 0.09 = 30.8, and 31 of each are
     * needed. */
    o.delta = 0.3;
    lead = 0.05;
    select_by(&o, 2, alternate, &lead, &r);
    ck_assert_uint_ge(r.replications, 40);
    ck_assert_uint_eq(r.equal_runs, 62);
    o.delta = 0.5;
    lead = 0.417;
    /* Where more is better, the second is ahead. */
    o.gain = true;
    select_by(&o, 2, alternate, &lead, &r);
    ck_assert_uint_eq(r.best, 1);
}
END_TEST

START_TEST(a_share_of_the_base_is_of_its_first_stage)
{
    /* The base's values are 100 .. 109: mean 104.5, of which 1 % is 1.045. */
    struct select_options o = usual;
    o.delta = 0.0;
    o.delta_frac = 0.01;
    struct select_result r;
    double lead = 3.0;
    select_by(&o, 2, alternate, &lead, &r);
    ck_assert_double_eq_tol(r.delta, 1.045, 1e-12);
}
END_TEST

START_TEST(equal_ones_end_too_and_the_earlier_is_named)
{
    struct drawn x = {.k = 3, .mean = {5.0, 4.0, 4.0}, .shared_sd = 3.0, .seed = 1, .broken = MOST};
    struct select_result r;
    select_by(&usual, 3, measure, &x, &r);
    ck_assert(r.decided);
    ck_assert_uint_eq(r.best, 1);
    ck_assert_uint_eq(r.replications, 10); /* paired, they do not vary */
    ck_assert_uint_eq(r.runs, x.asked);
}
END_TEST

START_TEST(who_fails_is_out_and_the_limit_of_runs_holds)
{
    struct drawn x = {
        .k = 3, .mean = {0.0, 0.5, 0.5}, .sd = {20.0, 20.0, 20.0}, .seed = 2, .broken = 0};
    struct select_options o = usual;
    o.most = 40;
    struct select_result r;
    select_by(&o, 3, measure, &x, &r);
    ck_assert(!r.decided);
    ck_assert_uint_eq(r.replications, 40);
    ck_assert(r.of[0].failed && !r.of[0].left);
    ck_assert(isnan(select_mean(&r, 0)));
    ck_assert(r.best == 1 || r.best == 2);
    ck_assert_uint_eq(r.of[0].n, 14); /* the looks are 10, 12, 14: it breaks before the third */
}
END_TEST

/* Differences of two alternatives are d and -d in the first replications, and 0 then. So the mean
 * is 0 without any rounding. d is so large that nobody is behind by the limit of runs. The first of
 * the level ones is best, in either direction of a metric, and one that is ahead by a little is
 * best wherever it is. */
static void level(void *ctx, const bool *left, uint32_t from, uint32_t to, double *const *values)
{
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t r = from; r < to && left[i]; r++) {
            double off = 32.0 * (i - 1.0);
            values[i][r] = 100.0 +
                           (r == 0   ? off
                            : r == 1 ? -off
                                     : 0.0) +
                           (i == *(uint32_t *)ctx ? 1.0 / 64.0 : 0.0);
        }
    }
}

START_TEST(the_first_of_level_ones_is_best)
{
    for (uint32_t ahead = 0; ahead < 4; ahead++) {
        for (int gain = 0; gain < 2; gain++) {
            struct select_options o = usual;
            o.most = o.first;
            o.gain = gain == 1;
            struct select_result r;
            select_by(&o, 3, level, &ahead, &r);
            ck_assert(!r.decided && r.of[0].left && r.of[1].left && r.of[2].left);
            uint32_t best = gain == 1 ? ahead % 3 : ahead == 0 ? 1 : 0;
            ck_assert_uint_eq(r.best, best);
        }
    }
}
END_TEST

/* The first `none` alternatives have no value in any replication; the others have 100, 101, .. */
static void undefined(void *ctx, const bool *left, uint32_t from, uint32_t to,
                      double *const *values)
{
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t r = from; r < to && left[i]; r++) {
            values[i][r] = i < *(uint32_t *)ctx ? (double)NAN : 100.0 + r;
        }
    }
}

START_TEST(a_metric_that_nobody_has_ends_the_first_stage)
{
    struct select_options o = usual;
    o.delta = 0.0;
    o.delta_frac = 0.01;
    struct select_result r;
    uint32_t none = 3;
    select_by(&o, 3, undefined, &none, &r);
    ck_assert(!r.decided && isnan(r.delta));
    ck_assert_uint_eq(r.replications, 10);
    ck_assert_uint_eq(r.runs, 30);
    /* Only the last has values: 100 .. 109, of which 1 % is 1.045. */
    none = 2;
    o.most = 10;
    select_by(&o, 3, undefined, &none, &r);
    ck_assert_double_eq_tol(r.delta, 1.045, 1e-12);
}
END_TEST

/* ---- how often it is right ---- */

static uint32_t trials(void)
{
    const char *s = getenv("SELECT_TRIALS");
    return s != NULL ? (uint32_t)strtoul(s, NULL, 10) : 400;
}

/* An end of Wilson's interval of a share. */
static double wilson(double share, double n, double z)
{
    double middle = share + z * z / (2.0 * n);
    double half = z * sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n));
    return (middle + half) / (1.0 + z * z / n);
}

/* Computes the chance of correct selection with its 95 % interval. It fails where the upper end at
 * 99.9 % is below the stated confidence. */
static void check_coverage(const char *name, struct drawn *x, uint32_t best)
{
    const uint32_t n = trials();
    uint32_t right = 0;
    double runs = 0.0;
    double equal = 0.0;
    for (uint32_t t = 0; t < n; t++) {
        struct select_result r;
        x->seed = 1000 + t;
        x->broken = MOST;
        select_by(&usual, x->k, measure, x, &r);
        ck_assert(r.decided);
        right += r.best == best ? 1 : 0;
        runs += (double)r.runs / n;
        equal += (double)r.equal_runs / n;
    }
    double share = (double)right / n;
    (void)printf("unit: selection, %s: right in %.1f %% [%.1f, %.1f] of %u; %.0f runs, equal "
                 "replication %.0f\n",
                 name, 100.0 * share, 100.0 * (1.0 - wilson(1.0 - share, n, 1.96)),
                 100.0 * wilson(share, n, 1.96), n, runs, equal);
    (void)fflush(stdout);
    ck_assert_double_ge(wilson(share, n, 3.09), usual.confidence_frac);
}

/* Everybody is behind the first by delta: the hardest case. */
static struct drawn slippage(uint32_t k, double sd, double shared_sd)
{
    struct drawn x = {.k = k, .shared_sd = shared_sd};
    for (uint32_t i = 0; i < k; i++) {
        x.mean[i] = i == 0 ? 100.0 : 101.0;
        x.sd[i] = sd;
    }
    return x;
}

START_TEST(slippage_of_two)
{
    struct drawn x = slippage(2, 2.0, 10.0);
    check_coverage("slippage, k=2", &x, 0);
}
END_TEST

START_TEST(slippage_of_ten)
{
    struct drawn x = slippage(10, 1.5, 10.0);
    check_coverage("slippage, k=10", &x, 0);
}
END_TEST

START_TEST(slippage_with_unequal_variances)
{
    struct drawn x = slippage(5, 1.0, 3.0);
    x.sd[0] = 3.0;
    x.sd[4] = 0.2;
    check_coverage("slippage, k=5, unequal variances", &x, 0);
}
END_TEST

START_TEST(slippage_with_a_tail)
{
    struct drawn x = slippage(5, 2.0, 3.0);
    x.skewed = true;
    check_coverage("slippage, k=5, exponential noise", &x, 0);
}
END_TEST

START_TEST(many_that_are_far_behind)
{
    /* As 31 policies are: half a delta and more apart, with the best in the middle of the list. */
    struct drawn x = {.k = 31, .shared_sd = 10.0};
    for (uint32_t i = 0; i < x.k; i++) {
        x.mean[i] = 100.0 + abs((int)i - 15) * 2.0;
        x.sd[i] = 2.0;
    }
    check_coverage("spread, k=31", &x, 15);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(the_limit_is_that_of_the_closed_form),
    TEST(a_share_of_the_base_is_of_its_first_stage),
    TEST(equal_ones_end_too_and_the_earlier_is_named),
    TEST(who_fails_is_out_and_the_limit_of_runs_holds),
    TEST(the_first_of_level_ones_is_best),
    TEST(a_metric_that_nobody_has_ends_the_first_stage),
    TEST(slippage_of_two),
    TEST(slippage_of_ten),
    TEST(slippage_with_unequal_variances),
    TEST(slippage_with_a_tail),
    TEST(many_that_are_far_behind),
};
SUITE_MAIN("select", suite)
