/* The score of a suite, by hand, and how often luck passes. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/arena/ledger.h"
#include "experiments/arena/score.h"
#include "sim/base/input.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

#define N 3
static const bool served[10] = {false};

/* The reference is 1, so that the gain is -ln of the policy's value. */
static const double ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

static struct score_pair pair_of(const double *policy)
{
    return (struct score_pair){.policy = policy, .reference = ones, .lost = served, .scored = true};
}

START_TEST(a_mean_gain_has_students_interval)
{
    /* Gains are 0.1, 0.2, 0.3, with mean 0.2, error 0.1 / sqrt 3 and t = 2 sqrt 3. With 2
     * degrees of freedom P(T > t) = 1/2 - t / (2 sqrt(2 + t^2)) = 1/2 - sqrt(12) / (2 sqrt(14))
     * = 0.03709. */
    double x[N] = {exp(-0.1), exp(-0.2), exp(-0.3)};
    struct score_pair p = pair_of(x);
    struct score_cell c;
    struct score s = score_of(&p, 1, N, &c);
    ck_assert_double_eq_tol(s.gain.mean, 0.2, 1e-12);
    ck_assert_double_eq_tol(s.p_better, 0.5 - sqrt(12.0) / (2.0 * sqrt(14.0)), 1e-9);
    ck_assert(score_passes(&s, 1));
    ck_assert(!score_passes(&s, 2)); /* 0.037 > 0.05 / 2 */
    ck_assert_uint_eq(s.regressions, 0);
}
END_TEST

START_TEST(no_gain_counts_more_than_twice)
{
    /* Ten times as good at one point, 20 % worse at another: (ln 2 - ln 1.2) / 2. */
    double good[N] = {0.1, 0.1, 0.1};
    double bad[N] = {1.2, 1.2, 1.2};
    struct score_pair p[2] = {pair_of(good), pair_of(bad)};
    struct score_cell c[2];
    struct score s = score_of(p, 2, N, c);
    ck_assert_double_eq_tol(s.gain.mean, (log(2.0) - log(1.2)) / 2.0, 1e-12);
    ck_assert_double_eq_tol(c[0].gain.mean, log(10.0), 1e-12); /* as it is, for people */
    ck_assert(!c[0].regression && c[1].regression);
    ck_assert(!score_passes(&s, 1)); /* with any score */
}
END_TEST

START_TEST(more_is_better_where_the_metric_says_so)
{
    double x[N] = {1.5, 1.5, 1.5};
    struct score_pair p = pair_of(x);
    struct score_cell c;
    p.gain = true;
    ck_assert_double_eq_tol(score_of(&p, 1, N, &c).gain.mean, log(1.5), 1e-12);
}
END_TEST

START_TEST(who_leaves_requests_has_the_worst_gain_there)
{
    /* It is twice as good in two replications, and lost in the third: (2 ln 2 - ln 2) / 3. */
    double x[N] = {0.5, 0.5, 0.25};
    bool lost[N] = {false, false, true};
    struct score_pair p = pair_of(x);
    struct score_cell c;
    p.lost = lost;
    struct score s = score_of(&p, 1, N, &c);
    ck_assert_double_eq_tol(s.gain.mean, log(2.0) / 3.0, 1e-12);
    ck_assert_uint_eq(c.lost, 1);
    ck_assert(c.regression);
}
END_TEST

START_TEST(unscored_points_count_for_regressions_alone)
{
    double same[N] = {1, 1, 1};
    double bad[N] = {1.1, 1.1, 1.1};
    struct score_pair p[2] = {pair_of(same), pair_of(bad)};
    struct score_cell c[2];
    p[1].scored = false;
    struct score s = score_of(p, 2, N, c);
    ck_assert_double_eq(s.gain.mean, 0.0);
    ck_assert_double_eq(s.p_better, 1.0); /* equal values are no evidence */
    ck_assert_uint_eq(s.regressions, 1);
}
END_TEST

START_TEST(a_regression_survives_holms_correction)
{
    /* Losses are 0.1, 0.2, 0.3 beyond ln 1.01 = 0.00995. So t = 0.19005 / (0.1 / sqrt 3) =
     * 3.2918, and p = 1/2 - 3.2918 / (2 sqrt(2 + 10.836)) = 0.0406. Alone it is one, and twice
     * it is 0.081. */
    double x[N] = {exp(0.1), exp(0.2), exp(0.3)};
    struct score_pair p[2] = {pair_of(x), pair_of(x)};
    struct score_cell c[2];
    ck_assert_uint_eq(score_of(p, 1, N, c).regressions, 1);
    ck_assert_double_eq_tol(c[0].p_worse, 0.0406, 1e-4);
    ck_assert_uint_eq(score_of(p, 2, N, c).regressions, 0);
    ck_assert_double_eq_tol(c[0].p_holm, 0.0812, 2e-4);
}
END_TEST

/* Two runs have a chance, with one degree of freedom: P(T > t) = 1/2 - atan(t) / pi. Losses 0.4 and
 * 0.6 lie 0.5 - ln 1.01 beyond, their error is 0.1. A single run has none. */
START_TEST(two_runs_are_enough_for_a_chance)
{
    double x[2] = {exp(0.4), exp(0.6)};
    struct score_pair p = pair_of(x);
    struct score_cell c;
    struct score s = score_of(&p, 1, 2, &c);
    ck_assert_double_eq_tol(c.p_worse, 0.5 - atan((0.5 - log(1.01)) / 0.1) / acos(-1.0), 1e-9);
    ck_assert_double_eq_tol(s.p_better, 0.5 + atan(5.0) / acos(-1.0), 1e-9);
    s = score_of(&p, 1, 1, &c);
    ck_assert(isnan(c.p_worse) && isnan(s.p_better));
}
END_TEST

START_TEST(a_loss_within_the_relevance_is_none)
{
    double x[N] = {1.009, 1.009, 1.009};
    struct score_pair p = pair_of(x);
    struct score_cell c;
    ck_assert_uint_eq(score_of(&p, 1, N, &c).regressions, 0);
}
END_TEST

START_TEST(of_a_thousand_neutral_candidates_none_or_one_passes)
{
    /* Gains without a mean: 5 % pass alone, which are 50 +- 7. Counted, 0.05 are due in all. */
    enum { CANDIDATES = 1000, POINTS = 4, RUNS = 10 };
    double x[POINTS][RUNS];
    struct score_pair p[POINTS];
    struct score_cell c[POINTS];
    uint32_t alone = 0;
    uint32_t counted = 0;
    for (uint32_t k = 0; k < CANDIDATES; k++) {
        for (uint32_t i = 0; i < POINTS; i++) {
            for (uint32_t r = 0; r < RUNS; r++) {
                x[i][r] = exp(0.1 * rng_normal_of_key(rng_key(7, RNG_TEST, k, i * RUNS + r)));
            }
            p[i] = pair_of(x[i]);
        }
        struct score s = score_of(p, POINTS, RUNS, c);
        s.regressions = 0; /* the level of the score is the question */
        alone += score_passes(&s, 1) ? 1 : 0;
        counted += score_passes(&s, CANDIDATES) ? 1 : 0;
    }
    ck_assert_uint_ge(alone, 29);
    ck_assert_uint_le(alone, 71);
    ck_assert_uint_le(counted, 1);
}
END_TEST

START_TEST(the_ledger_counts_candidates_once)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/xpusim-ledger-%ld.csv", (long)getpid());
    struct err e = ERR_INIT;
    struct ledger_entry a = {.suite = "1", .policy = "edf:max_batch=1,x=\"2\"", .code = 7};
    struct ledger_entry b = {.suite = "1", .policy = "edf", .code = 0};
    struct ledger_count n;
    ck_assert_int_eq(ledger_read(path, &a, &n, &e), 0); /* nothing is there */
    ck_assert_uint_eq(n.candidates, 0);
    ck_assert_int_eq(ledger_append(path, &a, &e), 0);
    ck_assert_int_eq(ledger_append(path, &a, &e), 0);
    ck_assert_int_eq(ledger_append(path, &b, &e), 0);
    b.sealed = true;
    ck_assert_int_eq(ledger_append(path, &b, &e), 0);
    ck_assert_int_eq(ledger_read(path, &a, &n, &e), 0);
    ck_assert_uint_eq(n.candidates, 2);
    ck_assert_uint_eq(n.sealed, 1);
    ck_assert(n.seen && !n.seen_sealed);
    a.code = 8; /* the same file with other code is another candidate */
    ck_assert_int_eq(ledger_read(path, &a, &n, &e), 0);
    ck_assert(!n.seen);
    ck_assert_int_eq(ledger_read(path, &b, &n, &e), 0);
    ck_assert(n.seen_sealed);
    (void)remove(path);
    err_fini(&e);
}
END_TEST

/* The file line by line, and what is said of one that cannot be read or written. */
START_TEST(the_ledger_is_written_whole)
{
    const char *path = tempfile_make(".csv");
    struct err e = ERR_INIT;
    struct ledger_entry a = {.suite = "00ff",
                             .policy = "edf:max_batch=1,x=\"2\"",
                             .code = 0x1234,
                             .score = 1.0625,
                             .p = 0.03125,
                             .regressions = 2};
    ck_assert_int_eq(ledger_append(path, &a, &e), 0);
    a.sealed = a.passes = true;
    a.policy = "";
    a.code = UINT64_MAX;
    a.regressions = 0;
    ck_assert_int_eq(ledger_append(path, &a, &e), 0);
    OWNED char *text = input_text(path, 1 << 16, &e);
    ck_assert_str_eq(
        text, "split,suite,policy,code,score,p,regressions,passes\n"
              "public,00ff,\"edf:max_batch=1,x=\"\"2\"\"\",0000000000001234h,1.0625,0.03125,2,no\n"
              "sealed,00ff,\"\",ffffffffffffffffh,1.0625,0.03125,0,yes\n");
    struct ledger_count n;
    memset(&n, 0xff, sizeof n);
    tempfile_put("split,suite,policy\npublic,1,edf\n");
    ck_assert_int_eq(ledger_read(path, &a, &n, &e), -EINVAL);
    ck_assert(n.candidates == 0 && n.sealed == 0 && !n.seen && !n.seen_sealed);
    ck_assert_uint_eq(e.n, 1);
    OWNED char *lacks = xformat("%s: ", path);
    ck_assert(strncmp(e.lines[0], lacks, strlen(lacks)) == 0 && strstr(e.lines[0], "code") != NULL);
    tempfile_remove();
    ck_assert_int_eq(mkdir(path, 0700), 0); /* a folder */
    ck_assert_int_eq(ledger_append(path, &a, &e), -EINVAL);
    OWNED char *folder = xformat("%s: cannot write: %s", path, strerror(EISDIR));
    ck_assert_str_eq(e.lines[1], folder);
    (void)rmdir(path);
    ck_assert_int_eq(ledger_append("/dev/full", &a, &e), -EINVAL);
    OWNED char *full = xformat("/dev/full: cannot write: %s", strerror(ENOSPC));
    ck_assert_str_eq(e.lines[2], full);
    err_fini(&e);
}
END_TEST

/* The ledger has seen a policy if one line has its name and its code. For the sealed split that
 * line must be sealed, and of the same suite. The first line counts as any other. */
START_TEST(the_ledger_knows_whom_it_saw)
{
    const char *path = tempfile_make(".csv");
    struct err e = ERR_INIT;
    static const struct {
        const char *suite, *policy;
        uint64_t code;
        bool seen, seen_sealed;
    } all[] = {
        {"1", "edf", 5, true, true},   {"2", "edf", 5, true, false}, {"1", "edf", 6, true, false},
        {"1", "fcfs", 5, true, false}, {"2", "fcfs", 5, true, true}, {"1", "srpt", 5, false, false},
        {"1", "edf", 7, false, false},
    };
    static const struct ledger_entry lines[] = {
        {.sealed = true, .suite = "1", .policy = "edf", .code = 5},
        {.suite = "1", .policy = "edf", .code = 6},
        {.sealed = true, .suite = "2", .policy = "fcfs", .code = 5},
        {.suite = "1", .policy = "edf", .code = 5},
    };
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(ledger_append(path, &lines[i], &e), 0);
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct ledger_entry asked = {
            .suite = all[i].suite, .policy = all[i].policy, .code = all[i].code};
        struct ledger_count n;
        ck_assert_int_eq(ledger_read(path, &asked, &n, &e), 0);
        ck_assert(n.candidates == 3 && n.sealed == 2);
        ck_assert_msg(n.seen == all[i].seen && n.seen_sealed == all[i].seen_sealed, "%zu", i);
    }
    tempfile_remove();
    err_fini(&e);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_mean_gain_has_students_interval),
    TEST(no_gain_counts_more_than_twice),
    TEST(more_is_better_where_the_metric_says_so),
    TEST(who_leaves_requests_has_the_worst_gain_there),
    TEST(unscored_points_count_for_regressions_alone),
    TEST(a_regression_survives_holms_correction),
    TEST(two_runs_are_enough_for_a_chance),
    TEST(a_loss_within_the_relevance_is_none),
    TEST(of_a_thousand_neutral_candidates_none_or_one_passes),
    TEST(the_ledger_counts_candidates_once),
    TEST(the_ledger_is_written_whole),
    TEST(the_ledger_knows_whom_it_saw),
};
SUITE_MAIN("score", suite)
