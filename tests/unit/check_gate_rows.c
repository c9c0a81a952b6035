/* The gate's rows to the last word and number: what happened, and chances worked out again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/gate/gate.h"
#include "sim/base/json.h"
#include "sim/base/scope.h"
#include "sim/stats/stats_shift.h"
#include "tests/helpers/suite.h"

#define MISSING ((double)NAN)
#define RUNS 40
#define METRICS 4

static char names[METRICS][64] = {"latency", "rate", "share", "extra"};
static char group_name[] = "g", policy_name[] = "p";
static double before_values[METRICS * RUNS], now_values[METRICS * RUNS];
static double before_covariates[RUNS * GATE_COVARIATES], now_covariates[RUNS * GATE_COVARIATES];
static struct gate_baseline baseline;
static struct gate_cell before, now;
static struct gate_report report;

static void setup(void)
{
    memset(&baseline, 0, sizeof baseline);
    memset(before_covariates, 0, sizeof before_covariates);
    memset(now_covariates, 0, sizeof now_covariates);
    baseline.n_groups = 1;
    baseline.groups[0] = (struct gate_group){.name = "g",
                                             .replications = 2,
                                             .metrics = {{"latency", METRIC_BETTER_LOWER, 0.01},
                                                         {"rate", METRIC_BETTER_HIGHER, 0.02},
                                                         {"share", METRIC_BETTER_NEITHER, 0.01}},
                                             .n_metrics = 3};
    before = (struct gate_cell){.group = group_name,
                                .policy = policy_name,
                                .present = true,
                                .replications = 2,
                                .verdicts = {2, 0, 0},
                                .n_metrics = 3,
                                .names = names,
                                .values = before_values};
    now = before;
    now.values = now_values;
    for (int i = 0; i < METRICS * RUNS; i++) {
        before_values[i] = now_values[i] = 10.0;
    }
}

static void judge(bool added_alarms)
{
    struct gate_cells a = {.v = &before, .n = 1};
    struct gate_cells b = {.v = &now, .n = 1};
    gate_judge(&baseline, &a, &b, added_alarms, &report);
}

static const struct gate_row *row_of(const char *metric)
{
    for (uint32_t i = 0; i < report.n; i++) {
        if (strcmp(report.rows[i].metric, metric) == 0) {
            return &report.rows[i];
        }
    }
    ck_abort_msg("no row of %s", metric);
    return NULL;
}

static void says(const char *metric, enum gate_verdict v, bool alarm, const char *detail)
{
    const struct gate_row *row = row_of(metric);
    ck_assert_str_eq(gate_verdict_names[row->verdict], gate_verdict_names[v]);
    ck_assert_int_eq(row->alarm, alarm);
    ck_assert_str_eq(row->detail, detail);
}

/* ---- exact ---- */

/* A metric's two values before and now, the row's words, and its means. */
static const struct {
    int metric;
    double before[2], now[2];
    enum gate_verdict verdict;
    const char *detail;
} exact[] = {
    {0, {10, 20}, {10.3, 20}, GATE_REGRESSION, "replication 0 worse by 3 %, tolerance 1 %"},
    {0, {10, 20}, {10, 19}, GATE_GAIN, "replication 1 better by 5 %, tolerance 1 %"},
    {0, {10, 20}, {10.05, 20}, GATE_DRIFT, "replication 0 worse by 0.5 %, tolerance 1 %"},
    {0, {10, 20}, {10, 19.9}, GATE_DRIFT, "replication 1 better by 0.5 %, tolerance 1 %"},
    /* at the tolerance it is within: 1 % of 100 */
    {0, {100, 100}, {101, 100}, GATE_DRIFT, "replication 0 worse by 1 %, tolerance 1 %"},
    {0,
     {10, 20},
     {10.3, 19},
     GATE_REGRESSION,
     "mean improved; replication 0 worse by 3 %, tolerance 1 %"},
    {0,
     {10, 100},
     {9.8, 100.9},
     GATE_GAIN,
     "mean is worse; replication 0 better by 2 %, tolerance 1 %"},
    {0, {10, 10}, {10.2, 10.4}, GATE_REGRESSION, "replication 1 worse by 4 %, tolerance 1 %"},
    {0, {10, 10}, {9.6, 9.8}, GATE_GAIN, "replication 0 better by 4 %, tolerance 1 %"},
    {0, {-10, 10}, {-9, 10}, GATE_REGRESSION, "replication 0 worse by 10 %, tolerance 1 %"},
    {0,
     {0, 10},
     {5e-5, 10},
     GATE_REGRESSION,
     "replication 0 worse by 50 %, tolerance 1 %"}, /* of 1e-4 */
    {0,
     {10, 20},
     {12, 18},
     GATE_REGRESSION,
     "replication 0 worse by 20 %, tolerance 1 %"}, /* the mean stays */
    {1, {10, 20}, {10, 21}, GATE_GAIN, "replication 1 better by 5 %, tolerance 2 %"},
    {1,
     {10, 20},
     {9.7, 21},
     GATE_REGRESSION,
     "mean improved; replication 0 worse by 3 %, tolerance 2 %"},
    {1, {10, 20}, {9.7, 20}, GATE_REGRESSION, "replication 0 worse by 3 %, tolerance 2 %"},
    {2, {10, 20}, {10, 16}, GATE_DRIFT, "replication 1: -20 %"},
    {2, {10, 20}, {12, 16}, GATE_DRIFT, "replication 0: +20 %"}, /* the first of equal ones */
};

START_TEST(an_exact_row_says_which_replication_changed_how_much)
{
    int m = exact[_i].metric;
    memcpy(&before_values[2 * m], exact[_i].before, 2 * sizeof(double));
    memcpy(&now_values[2 * m], exact[_i].now, 2 * sizeof(double));
    judge(true);
    says(names[m], exact[_i].verdict, exact[_i].verdict == GATE_REGRESSION, exact[_i].detail);
    const struct gate_row *row = row_of(names[m]);
    double a = (exact[_i].before[0] + exact[_i].before[1]) / 2.0;
    double b = (exact[_i].now[0] + exact[_i].now[1]) / 2.0;
    ck_assert(row->before == a && row->after == b && !row->fresh && isnan(row->p));
    ck_assert(a == 0.0 ? isnan(row->change_frac)
                       : fabs(row->change_frac - (b - a) / fabs(a)) < 1e-15);
    ck_assert_int_eq(row->better, baseline.groups[0].metrics[m].better);
    ck_assert_uint_eq(report.n, 4);
    ck_assert_uint_eq(report.counts[GATE_OK], 3);
    ck_assert_uint_eq(report.counts[exact[_i].verdict], 1);
    ck_assert_uint_eq(report.alarms, exact[_i].verdict == GATE_REGRESSION);
}
END_TEST

START_TEST(a_status_row_says_what_runs_did)
{
    now_values[1] = MISSING;
    judge(true);
    says("latency", GATE_STATUS, true, "defined in 1 of 2 runs, was in 2");
    ck_assert(row_of("latency")->after == 10.0);
    before_values[0] = MISSING; /* as many as before, but others */
    judge(true);
    says("latency", GATE_STATUS, true, "defined in 1 of 2 runs, was in 1");
    now_values[0] = before_values[0] = 10.0;
    now_values[1] = 10.0;
    before_values[1] = MISSING;
    judge(true);
    says("latency", GATE_STATUS, false, "defined in 2 of 2 runs, was in 1");
    before_values[1] = 10.0;
    const struct {
        uint32_t before[3], now[3];
        bool alarm;
        const char *detail;
    } verdicts[] = {
        {{2, 0, 0}, {1, 1, 0}, true, "stable, undecided, overloaded: 1, 1, 0, were 2, 0, 0"},
        {{0, 2, 0}, {1, 0, 1}, false, "stable, undecided, overloaded: 1, 0, 1, were 0, 2, 0"},
        {{0, 2, 0}, {0, 1, 1}, true, "stable, undecided, overloaded: 0, 1, 1, were 0, 2, 0"},
        {{0, 0, 2}, {2, 0, 0}, false, "stable, undecided, overloaded: 2, 0, 0, were 0, 0, 2"}};
    for (size_t i = 0; i < sizeof verdicts / sizeof verdicts[0]; i++) {
        memcpy(before.verdicts, verdicts[i].before, sizeof before.verdicts);
        memcpy(now.verdicts, verdicts[i].now, sizeof now.verdicts);
        judge(true);
        says("status", GATE_STATUS, verdicts[i].alarm, verdicts[i].detail);
        says("latency", GATE_OK, false, "");
    }
#define WHY                                                                                        \
    "policy edf, seed 1, t=63932750020 ns, event 118: AttributeError: 'Request' object has no "    \
    "attribute 'arival_ns', did you mean 'arrival_ns'? (policies/edf.py:26, key)"
    for (int alarms = 0; alarms < 2; alarms++) {
        (void)snprintf(now.message, sizeof now.message, "%s", WHY);
        now.failed = 1;
        before.failed = 0;
        judge(alarms == 1);
        says("status", GATE_STATUS, true, "1 of 2 runs failed, were 0 of 2: " WHY);
        says("latency", GATE_STATUS, true, "not compared");
        ck_assert(row_of("latency")->quiet && !row_of("status")->quiet);
        now.failed = 0;
        now.message[0] = '\0';
        before.failed = 2; /* what failed before is recorded again: an alarm against a file */
        judge(alarms == 1);
        says("status", GATE_STATUS, alarms == 1, "0 of 2 runs failed, were 2 of 2");
        says("latency", GATE_STATUS, alarms == 1, "not compared");
    }
    now.failed = 2;
    judge(true);
    says("status", GATE_OK, false, "fails as before");
    now.failed = before.failed = 0;
    now.replications = 1;
    judge(true);
    says("status", GATE_STATUS, true, "recorded with another test or number of replications");
    now.replications = 2;
    now.trace_hash = 1;
    judge(true);
    says("status", GATE_STATUS, true, "the workload is another: its traces differ");
}
END_TEST

START_TEST(rows_without_a_partner_say_why)
{
    now.n_metrics = 2;
    judge(true);
    says("share", GATE_REMOVED, true, "no run has a metric of that name");
    setup();
    before.n_metrics = 2;
    for (int alarms = 0; alarms < 2; alarms++) {
        judge(alarms == 1);
        says("share", GATE_ADDED, alarms == 1, "no baseline");
    }
    setup();
    before.n_metrics = METRICS;
    judge(true);
    says("extra", GATE_REMOVED, true, "no longer asked for");
    ck_assert_uint_eq(report.n, 5);
    setup();
    now.unknown_policy = true;
    judge(true);
    says("status", GATE_REMOVED, true, "this build has no such policy");
    says("rate", GATE_REMOVED, true, "this build has no such policy");
    ck_assert(row_of("rate")->quiet && !row_of("status")->quiet);
    setup();
    before.unknown_policy = true;
    judge(false);
    says("status", GATE_ADDED, false, "no baseline");
    struct gate_cells none = {0};
    struct gate_cells one = {.v = &now, .n = 1};
    now.unknown_policy = true;
    gate_judge(&baseline, &none, &one, true, &report);
    says("status", GATE_STATUS, true, "this build has no such policy");
    gate_judge(&baseline, &one, &none, true, &report);
    says("status", GATE_REMOVED, true, "no longer asked for");
}
END_TEST

/* ---- fresh ---- */

/* Chances of latency, rate, share and status before any correction; NaN: none. */
struct chances {
    double worse[4], better[4], any[4];
};

/* By definition: the sorted chances times how many are left, never below one before. */
static double holm(const double *p, int n, int i)
{
    double worst = 0.0;
    int m = 0;
    for (int k = 0; k < n; k++) {
        m += !isnan(p[k]);
    }
    if (isnan(p[i])) {
        return MISSING;
    }
    for (int k = 0; k < n; k++) {
        int ahead = 0;
        for (int l = 0; l < n; l++) {
            ahead += p[l] < p[k];
        }
        worst = p[k] <= p[i] ? fmax(worst, fmin(1.0, (m - ahead) * p[k])) : worst;
    }
    return worst;
}

static struct stats_shift shift_of(int metric, bool logs)
{
    static double a[RUNS], b[RUNS];
    for (int i = 0; i < RUNS; i++) {
        a[i] = logs ? log(before_values[metric * RUNS + i]) : before_values[metric * RUNS + i];
        b[i] = logs ? log(now_values[metric * RUNS + i]) : now_values[metric * RUNS + i];
    }
    return stats_shift((struct stats_sample){a, before_covariates, RUNS},
                       (struct stats_sample){b, now_covariates, RUNS}, GATE_COVARIATES);
}

/* The chance that k or more of n runs are marked now where j were before, by counting. */
static double marked_or_more(int j, int k)
{
    double sum = 0.0;
    for (int now_marked = k; now_marked <= j + k && now_marked <= RUNS; now_marked++) {
        int rest = j + k - now_marked;
        double ways =
            lgamma(RUNS + 1.0) - lgamma(now_marked + 1.0) - lgamma(RUNS - now_marked + 1.0) +
            lgamma(RUNS + 1.0) - lgamma(rest + 1.0) - lgamma(RUNS - rest + 1.0) -
            (lgamma(2.0 * RUNS + 1.0) - lgamma(j + k + 1.0) - lgamma(2.0 * RUNS - j - k + 1.0));
        sum += rest <= RUNS ? exp(ways) : 0.0;
    }
    return k == 0 ? 1.0 : sum;
}

/* Scales of what is now, over before; runs overloaded before and now. */
static const struct {
    double scale[3];
    int overloaded_before, overloaded_now, vanished;
    bool negative; /* shares about 0, so without logarithms */
} fresh[] = {{{1.0, 1.0, 1.0}, 0, 0, 0, false},     {{1.1, 1.0, 1.0}, 1, 3, 0, false},
             {{0.9, 0.9, 0.9}, 0, 12, 0, false},    {{1.03, 1.1, 1.0}, 12, 0, 0, false},
             {{1.0, 0.97, 1.02}, 3, 1, 9, false},   {{0.8, 1.2, 1.3}, 0, 0, 0, true},
             {{1.045, 0.955, 0.96}, 2, 5, 0, true}, {{0.97, 1.02, 1.04}, 9, 0, 14, true}};

START_TEST(chances_of_a_fresh_group_are_those_of_its_tests)
{
    struct chances c;
    baseline.groups[0].fresh = true;
    before.replications = now.replications = RUNS;
    before.covariates = before_covariates;
    now.covariates = now_covariates;
    before.verdicts[2] = (uint32_t)fresh[_i].overloaded_before;
    now.verdicts[2] = (uint32_t)fresh[_i].overloaded_now;
    before.verdicts[0] = RUNS - before.verdicts[2];
    now.verdicts[0] = RUNS - now.verdicts[2];
    for (int m = 0; m < 3; m++) {
        for (int i = 0; i < RUNS; i++) {
            double away = m == 2 && fresh[_i].negative ? 10.5 : 0.0;
            before_covariates[i * GATE_COVARIATES + 1] = i % 7;
            now_covariates[i * GATE_COVARIATES + 1] = i % 5;
            before_values[m * RUNS + i] = 10.0 + sin(3.0 * i + m) - away + 0.1 * (i % 7);
            now_values[m * RUNS + i] =
                fresh[_i].scale[m] * (10.0 + sin(5.0 * i + m)) - away + 0.1 * (i % 5);
            if (m == 0 && i < fresh[_i].vanished) {
                now_values[i] = MISSING;
            }
        }
    }
    judge(true);
    for (int m = 0; m < 3; m++) {
        const struct gate_metric *metric = &baseline.groups[0].metrics[m];
        const struct gate_row *row = row_of(names[m]);
        bool logs = m < 2 || !fresh[_i].negative;
        struct stats_shift s = shift_of(m, logs);
        double tol = metric->tolerance_frac;
        double up = stats_shift_p_above(&s, logs ? log(1.0 + tol) : tol * fabs(s.base_mean));
        double down = stats_shift_p_below(&s, logs ? log(1.0 - tol) : -tol * fabs(s.base_mean));
        double above = stats_shift_p_above(&s, 0.0);
        double below = stats_shift_p_below(&s, 0.0);
        c.any[m] = fmin(1.0, 2.0 * fmin(above, below));
        c.worse[m] = m == 0 ? up : m == 1 ? down : MISSING;
        c.better[m] = m == 0 ? down : m == 1 ? up : MISSING;
        if (m == 0 && fresh[_i].vanished > 0) {
            c.worse[m] = fmin(1.0, 2.0 * fmin(up, marked_or_more(0, fresh[_i].vanished)));
        }
        ck_assert(row->fresh);
        ck_assert_double_eq_tol(row->before, logs ? exp(s.base_mean) : s.base_mean, 1e-9);
        ck_assert_double_eq_tol(row->after,
                                logs ? exp(s.base_mean + s.shift) : s.base_mean + s.shift, 1e-9);
        ck_assert_double_eq_tol(row->change_frac,
                                logs ? exp(s.shift) - 1.0 : s.shift / fabs(s.base_mean), 1e-9);
    }
    c.any[3] = MISSING;
    c.worse[3] = marked_or_more(fresh[_i].overloaded_before, fresh[_i].overloaded_now);
    c.better[3] = marked_or_more(fresh[_i].overloaded_now, fresh[_i].overloaded_before);
    static const char *const rows[] = {"latency", "rate", "share", "status"};
    for (int k = 0; k < 4; k++) {
        const struct gate_row *row = row_of(rows[k]);
        double worse = holm(c.worse, 4, k);
        double better = holm(c.better, 4, k);
        double any = holm(c.any, 4, k);
        bool status = k == 3;
        enum gate_verdict v = worse <= 0.01    ? status ? GATE_STATUS : GATE_REGRESSION
                              : better <= 0.01 ? status ? GATE_STATUS : GATE_GAIN
                              : any <= 0.01    ? GATE_DRIFT
                                               : GATE_OK;
        double p = worse <= 0.01    ? worse
                   : better <= 0.01 ? better
                   : any <= 0.01    ? any
                   : isnan(worse)   ? any
                                    : worse;
        ck_assert_str_eq(gate_verdict_names[row->verdict], gate_verdict_names[v]);
        ck_assert_int_eq(row->alarm, worse <= 0.01);
        ck_assert_double_eq_tol(row->p, p, 1e-9);
    }
}
END_TEST

START_TEST(a_fresh_value_that_no_run_has_is_told)
{
    baseline.groups[0].fresh = true;
    before.replications = now.replications = RUNS;
    before.verdicts[0] = now.verdicts[0] = RUNS;
    before.covariates = before_covariates;
    now.covariates = now_covariates;
    for (int i = 0; i < RUNS; i++) {
        now_values[i] = before_values[RUNS + i] = MISSING;                /* latency, rate */
        before_values[2 * RUNS + i] = now_values[2 * RUNS + i] = MISSING; /* share */
    }
    judge(true);
    says("latency", GATE_STATUS, true, "not defined in any run");
    says("rate", GATE_STATUS, false, "newly defined");
    says("share", GATE_OK, false, "");
    ck_assert(row_of("latency")->before == 10.0 && isnan(row_of("latency")->after));
    for (int i = 1; i < RUNS; i++) {
        before_values[i] = MISSING;
    }
    now_values[0] = 11.0; /* one value against one cannot be tested */
    judge(true);
    says("latency", GATE_STATUS, true, "too few values to test");
    ck_assert(isnan(row_of("latency")->p));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("gate rows", .setup = setup),
    LOOP(an_exact_row_says_which_replication_changed_how_much, sizeof exact / sizeof exact[0]),
    TEST(a_status_row_says_what_runs_did),
    TEST(rows_without_a_partner_say_why),
    LOOP(chances_of_a_fresh_group_are_those_of_its_tests, sizeof fresh / sizeof fresh[0]),
    TEST(a_fresh_value_that_no_run_has_is_told),
};
SUITE_MAIN("gate rows", suite)
