/* The gate's rows to the last word and number: what happened, chances worked out again, the first
 * decisions, the review. */
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
    memset(&report, 0, sizeof report);
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
    for (int alarms = 0; alarms < 2; alarms++) {
        (void)snprintf(now.message, sizeof now.message, "boom");
        now.failed = 1;
        before.failed = 0;
        judge(alarms == 1);
        says("status", GATE_STATUS, true, "1 of 2 runs failed, were 0 of 2: boom");
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

/* Of k of n marked now where j of n were: the chance of k or more, by counting. */
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

/* ---- which decision changed first ---- */

START_TEST(the_first_rows_of_policies_that_changed_are_looked_at)
{
    static struct gate_row rows[] = {
        {.group = "g", .policy = "a", .metric = "m", .verdict = GATE_DRIFT},
        {.group = "g", .policy = "b", .metric = "m", .verdict = GATE_REGRESSION, .alarm = true},
        {.group = "g", .policy = "a", .metric = "n", .verdict = GATE_REGRESSION, .alarm = true},
        {.group = "g", .policy = "b", .metric = "n", .verdict = GATE_REGRESSION, .alarm = true},
        {.group = "h",
         .policy = "b",
         .metric = "m",
         .verdict = GATE_STATUS,
         .alarm = true,
         .quiet = true},
        {.group = "h", .policy = "c", .metric = "m", .verdict = GATE_ADDED, .alarm = true},
        {.group = "h", .policy = "d", .metric = "m", .verdict = GATE_REMOVED, .alarm = true},
        {.group = "p",
         .policy = "e",
         .metric = GATE_PARAMETERS,
         .verdict = GATE_STATUS,
         .alarm = true},
        {.group = "h", .policy = "f", .metric = "m", .verdict = GATE_OK},
        {.group = "h", .policy = "b", .metric = "n", .verdict = GATE_GAIN},
        {.group = "h", .policy = "a", .metric = "n", .verdict = GATE_GAIN},
        {.group = "i", .policy = "a", .metric = "n", .verdict = GATE_GAIN},
        {.group = "k", .policy = "a", .metric = "n", .verdict = GATE_GAIN},
    };
    /* alarms first: g b, g a; then h b, h a, i a, and there are no more than five */
    static const int want[] = {1, 2, 9, 10, 11};
    struct gate_report all = {.rows = rows, .n = sizeof rows / sizeof rows[0]};
    struct gate_firsts firsts;
    gate_first_find(&baseline, &all, NULL, NULL, &firsts);
    ck_assert_uint_eq(firsts.n, GATE_MAX_FIRST);
    for (int i = 0; i < GATE_MAX_FIRST; i++) {
        ck_assert_ptr_eq(firsts.v[i].row, &rows[want[i]]);
        ck_assert_uint_eq(firsts.v[i].replications, 0);
    }
}
END_TEST

static struct gate_row moved = {.group = "g",
                                .policy = "a,b",
                                .metric = "reactive.ttft_s.p90",
                                .verdict = GATE_REGRESSION,
                                .alarm = true,
                                .better = METRIC_BETTER_LOWER,
                                .before = 2.0,
                                .after = 3.0,
                                .change_frac = 0.5,
                                .p = 0.00001,
                                .fresh = true,
                                .detail = "a < b"};

static char *form_of(struct document *d, const char *form)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    document_put(d, form, f);
    (void)fclose(f);
    return text;
}

START_TEST(what_happened_to_a_decision_is_a_sentence)
{
    const struct {
        struct gate_first f;
        const char *text;
    } cases[] = {
        {{.replications = 0}, NULL},
        {{.replications = 1, .message = "it broke"}, "it broke"},
        {{.replications = 4, .known = true},
         "every decision is the same in 4 replications; only what they cost has changed"},
        {{.replications = 2,
          .known = true,
          .differs = true,
          .decision = 7,
          .now_s = 2.5,
          .old_s = 1.5,
          .now = "form 1",
          .old = "form 1",
          .seed = 9},
         "decision 7 comes later: `form 1`, at 1.500000 s before, at 2.500000 s now (seed 9)"},
        {{.replications = 2,
          .known = true,
          .differs = true,
          .decision = 7,
          .now_s = 0.5,
          .old_s = 1.5,
          .now = "form 1",
          .old = "form 1",
          .seed = 9},
         "decision 7 comes sooner: `form 1`, at 1.500000 s before, at 0.500000 s now (seed 9)"},
        {{.replications = 2,
          .known = true,
          .differs = true,
          .decision = 8,
          .now_s = 0.5,
          .old_s = 1.25,
          .now = "form 2",
          .old = "form 1",
          .seed = 10},
         "decision 8 is another: `form 1` at 1.250000 s before, `form 2` at 0.500000 s now (seed "
         "10)"}};
    struct gate_firsts all = {.n = 0};
    char want[1024] = "";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *text = gate_first_text(&cases[i].f);
        ck_assert(cases[i].text == NULL ? text == NULL
                                        : text != NULL && strcmp(text, cases[i].text) == 0);
        if (i < GATE_MAX_FIRST) {
            all.v[all.n] = cases[i].f;
            all.v[all.n++].row = &moved;
            size_t n = strlen(want);
            (void)snprintf(want + n, sizeof want - n, "%s%s%s", i > 0 ? "g, a,b: " : "",
                           i > 0 ? text : "", i > 0 ? "\n" : "");
        }
    }
    struct document *d = document_new();
    gate_first_document(&all, d);
    OWNED char *text = form_of(d, "text");
    ck_assert_msg(strstr(text, want) != NULL, "%s\nnot\n%s", text, want);
    cJSON *tree = document_json(d);
    const cJSON *rows = cJSON_GetObjectItem(tree, "first_decisions");
    ck_assert_int_eq(cJSON_GetArraySize(rows), 4);
    OWNED char *third = json_text(cJSON_GetArrayItem(rows, 2), false);
    ck_assert_str_eq(strtok(third, "\n"),
                     "{\"group\":\"g\",\"policy\":\"a,b\",\"seed\":\"9\",\"differs\":true,"
                     "\"decision\":7,\"before_s\":1.5,"
                     "\"before\":\"form 1\",\"now_s\":2.5,\"now\":\"form 1\",\"message\":\"\"}");
    cJSON_Delete(tree);
}
END_TEST

/* ---- the review ---- */

static const char reviewed[] =
    "### xpusim gate: 5 rows: 1 OK, 1 REGRESSION, 1 DRIFT, 1 STATUS, 1 ADDED; FAILED\n"
    "\n"
    "| verdict | group | policy | metric | baseline | measured | change | what happened |\n"
    "|---|---|---|---|---|---|---|---|\n"
    "| **REGRESSION** | g | a,b | `reactive.ttft_s.p90`: P90 reactive time to first token (s), "
    "lower is better | 2 | 3 | +50.00 % | a < b |\n"
    "| **STATUS** | h | c | `status`: run status | - | - | - | broke |\n"
    "| DRIFT | h | c | `parameters`: values of the policy's parameters | 4 | 4.002 | +5.0e-02 % | "
    "|\n"
    "\n"
    "The first decision that is now another, of the policies that changed:\n"
    "\n"
    "- g, a,b: decision 8 is another: `form 1` at 1.250000 s before, `form 2` at 0.500000 s now "
    "(seed 10)\n"
    "\n"
    "      xpusim diff --policy a,b --soc s --llm 'l m' --workload w --set x=1 --set y=2 --seed 10 "
    "--against OLD/build/xpusim\n"
    "\n"
    "- h, c\n"
    "\n"
    "      xpusim diff --policy c --soc s2 --llm l2 --trace t.csv --seed 6 --against "
    "OLD/build/xpusim\n"
    "\n"
    "To accept these values, record and commit them:\n"
    "\n"
    "    xpusim gate --baseline base.json --update\n";

START_TEST(a_review_shows_alarms_first_with_commands)
{
    double none = MISSING;
    struct gate_row rows[] = {
        {.group = "h",
         .policy = "c",
         .metric = GATE_PARAMETERS,
         .verdict = GATE_DRIFT,
         .before = 4.0,
         .after = 4.002,
         .change_frac = 0.0005,
         .p = none},
        {.group = "h", .policy = "d", .metric = "m", .verdict = GATE_OK},
        moved,
        {.group = "h",
         .policy = "e",
         .metric = "m",
         .verdict = GATE_ADDED,
         .alarm = true,
         .quiet = true},
        {.group = "h",
         .policy = "c",
         .metric = "status",
         .verdict = GATE_STATUS,
         .alarm = true,
         .before = none,
         .after = none,
         .change_frac = none,
         .p = none,
         .detail = "broke"},
    };
    struct gate_report r = {.rows = rows, .n = 5, .counts = {1, 1, 1, 0, 1, 1, 0}, .alarms = 3};
    struct gate_firsts firsts = {.n = 2};
    firsts.v[0] = (struct gate_first){.row = &rows[2],
                                      .replications = 1,
                                      .known = true,
                                      .differs = true,
                                      .decision = 8,
                                      .now_s = 0.5,
                                      .old_s = 1.25,
                                      .now = "form 2",
                                      .old = "form 1",
                                      .seed = 10};
    firsts.v[1] = (struct gate_first){.row = &rows[4]};
    baseline.n_groups = 2;
    baseline.groups[0] = (struct gate_group){.name = "g",
                                             .soc = "s",
                                             .llm = "l m",
                                             .workload = "w",
                                             .sets = {"x=1", "y=2"},
                                             .n_sets = 2,
                                             .seed = 5};
    baseline.groups[1] =
        (struct gate_group){.name = "h", .soc = "s2", .llm = "l2", .trace = "t.csv", .seed = 6};
    struct gate_review v = {
        .report = &r, .baseline = &baseline, .firsts = &firsts, .path = "base.json"};
    struct document *d = document_new();
    gate_review(&v, d);
    OWNED char *text = form_of(d, "markdown");
    ck_assert_msg(strcmp(text, reviewed) == 0, "%s", text);
    /* The page has the same words. */
    struct err e = ERR_INIT;
    char *page = NULL;
    size_t n;
    FILE *f = open_memstream(&page, &n);
    v.old = "old program";
    ck_assert_int_eq(gate_review_page(&v, f, &e), 0);
    (void)fclose(f);
    const char *const lines[] = {
        "<p class=headline>5 rows: 1 OK, 1 REGRESSION, 1 DRIFT, 1 STATUS, 1 ADDED; FAILED</p>\n",
        "<tr><td class=overloaded>REGRESSION<td>g<td>a,b<td>reactive.ttft_s.p90<br><small>P90 "
        "reactive time to first token (s), "
        "lower is better</small><td>2<td>3<td>+50.00 %<td>a &lt; b\n"
        "<tr><td class=overloaded>STATUS<td>h<td>c<td>status<br><small>run "
        "status</small><td>-<td>-<td>-<td>broke\n"
        "<tr><td>DRIFT<td>h<td>c<td>parameters<br><small>values of the policy's "
        "parameters</small><td>4<td>4.002<td>+5.0e-02 "
        "%<td>\n</tbody>",
        "<h3>g, a,b</h3>\n<p>decision 8 is another: `form 1` at 1.250000 s before, `form 2` at "
        "0.500000 s now (seed 10).</p>\n<pre>"
        "xpusim diff --policy a,b --soc s --llm 'l m' --workload w --set x=1 --set y=2 --seed 10 "
        "--against 'old program'</pre>\n"
        "<h3>h, c</h3>\n<pre>xpusim diff --policy c --soc s2 --llm l2 --trace t.csv --seed 6 "
        "--against 'old program'</pre>\n",
        "<h2>To accept these values</h2>\n<pre>xpusim gate --baseline base.json --update</pre>\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ck_assert_msg(strstr(page, lines[i]) != NULL, "no %s in %s", lines[i],
                      strstr(page, "<h1>"));
    }
    free(page);
    /* Nothing changed. */
    r = (struct gate_report){.rows = &rows[1], .n = 1, .counts = {1}};
    firsts.n = 0;
    struct document *same = document_new();
    gate_review(&v, same);
    OWNED char *quiet = form_of(same, "markdown");
    ck_assert_msg(strstr(quiet, "### xpusim gate: 1 rows: 1 OK; passed\n") == quiet &&
                      strstr(quiet, "Every value is as it was.\n") != NULL &&
                      strstr(quiet, "accept") == NULL,
                  "%s", quiet);
    f = open_memstream(&page, &n);
    ck_assert_int_eq(gate_review_page(&v, f, &e), 0);
    (void)fclose(f);
    ck_assert(strstr(page, "<p>Every value is as it was.</p>\n</html>\n") != NULL &&
              strstr(page, "<tr>") == NULL);
    free(page);
}
END_TEST

static const char table[] =
    "             group  policy  metric               baseline  measured     change        p\n"
    "REGRESSION   g      a,b     reactive.ttft_s.p90         2         3   +50.00 %  <0.0001  a < "
    "b\n"
    "DRIFT        h      c       m                           4     4.002  +5.0e-02 %   0.0200\n"
    "\n"
    "3 rows: 1 OK, 1 REGRESSION, 1 DRIFT; FAILED\n";

START_TEST(a_table_leaves_out_what_is_ok)
{
    struct gate_row rows[] = {
        moved,
        {.group = "h",
         .policy = "c",
         .metric = "m",
         .verdict = GATE_DRIFT,
         .before = 4.0,
         .after = 4.002,
         .change_frac = 0.0005,
         .p = 0.02},
        {.group = "h",
         .policy = "d",
         .metric = "m",
         .verdict = GATE_OK,
         .before = 1.0,
         .after = 1.0,
         .p = MISSING},
    };
    struct gate_report r = {.rows = rows, .n = 3, .counts = {1, 1, 1}, .alarms = 1};
    struct document *d = document_new();
    gate_document(&r, false, d);
    OWNED char *text = form_of(d, "text");
    OWNED char *packed = xcalloc(1, strlen(text) + 1);
    char *to = packed;
    for (const char *at = text; *at != '\0'; at++) { /* widths of columns are of other tests */
        if (!(*at == ' ' && (at[1] == ' ' || at[1] == '\n'))) {
            *to++ = *at;
        }
    }
    OWNED char *wanted = xcalloc(1, sizeof table);
    to = wanted;
    for (const char *at = table; *at != '\0'; at++) {
        if (!(*at == ' ' && (at[1] == ' ' || at[1] == '\n'))) {
            *to++ = *at;
        }
    }
    ck_assert_msg(strcmp(packed, wanted) == 0, "%s", text);
    cJSON *tree = document_json(d);
    ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(tree, "passed")));
    const cJSON *all = cJSON_GetObjectItem(tree, "rows");
    ck_assert_int_eq(cJSON_GetArraySize(all), 3);
    OWNED char *first = json_text(cJSON_GetArrayItem(all, 0), false);
    ck_assert_str_eq(strtok(first, "\n"),
                     "{\"verdict\":\"REGRESSION\",\"alarm\":true,\"group\":\"g\",\"policy\":\"a,"
                     "b\",\"metric\":\"reactive.ttft_s.p90\","
                     "\"test\":\"fresh\",\"baseline\":2,\"measured\":3,\"change_frac\":0.5,\"p\":"
                     "1e-05,\"detail\":\"a < b\"}");
    OWNED char *counts = json_text(cJSON_GetObjectItem(tree, "counts"), false);
    ck_assert_str_eq(strtok(counts, "\n"), "{\"OK\":1,\"REGRESSION\":1,\"DRIFT\":1,\"GAIN\":0,"
                                           "\"STATUS\":0,\"ADDED\":0,\"REMOVED\":0}");
    cJSON_Delete(tree);
    OWNED char *junit = form_of(d, "junit");
    ck_assert_ptr_nonnull(
        strstr(junit, "REGRESSION: baseline 2, measured 3, change +50.00 % a &lt; b"));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("gate rows", .setup = setup),
    LOOP(an_exact_row_says_which_replication_changed_how_much, sizeof exact / sizeof exact[0]),
    TEST(a_status_row_says_what_runs_did),
    TEST(rows_without_a_partner_say_why),
    LOOP(chances_of_a_fresh_group_are_those_of_its_tests, sizeof fresh / sizeof fresh[0]),
    TEST(a_fresh_value_that_no_run_has_is_told),
    TEST(the_first_rows_of_policies_that_changed_are_looked_at),
    TEST(what_happened_to_a_decision_is_a_sentence),
    TEST(a_review_shows_alarms_first_with_commands),
    TEST(a_table_leaves_out_what_is_ok),
};
SUITE_MAIN("gate rows", suite)
