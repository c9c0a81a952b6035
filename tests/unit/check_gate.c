/* The gate gives verdicts on made-up measurements, and reads and writes its file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/gate/gate.h"
#include "tests/helpers/suite.h"

#define MISSING ((double)NAN)
#define TESTED 60 /* replications of a fresh group */

/* One group "g", one policy "p", the metrics "latency" (lower), "rate" (higher), "share". */
static char names[3][64] = {"latency", "rate", "share"};
static double values_before[3 * TESTED], values_now[3 * TESTED];
static double covariates_before[TESTED * GATE_COVARIATES], covariates_now[TESTED * GATE_COVARIATES];
static char group_name[] = "g", policy_name[] = "p";
static struct gate_baseline baseline;
static struct gate_cell before, now;

static void setup(void)
{
    for (int i = 0; i < 3 * TESTED; i++) {
        values_before[i] = values_now[i] = 10.0;
    }
    memset(covariates_before, 0, sizeof covariates_before);
    memset(covariates_now, 0, sizeof covariates_now);
    memset(&baseline, 0, sizeof baseline);
    baseline.n_groups = 1;
    baseline.groups[0] = (struct gate_group){
        .name = "g",
        .replications = 2,
        .policies = {"p"},
        .n_policies = 1,
        .metrics = {{"latency", METRIC_BETTER_LOWER, 0.01},
                    {"rate", METRIC_BETTER_HIGHER, 0.01},
                    {"share", METRIC_BETTER_NEITHER, 0.01}},
        .n_metrics = 3,
    };
    before = (struct gate_cell){.group = group_name,
                                .policy = policy_name,
                                .present = true,
                                .replications = 2,
                                .verdicts = {2, 0, 0},
                                .n_metrics = 3,
                                .names = names,
                                .values = values_before};
    now = before;
    now.values = values_now;
}

static void make_fresh(void)
{
    baseline.groups[0].fresh = true;
    baseline.groups[0].replications = before.replications = now.replications = TESTED;
    before.verdicts[0] = now.verdicts[0] = TESTED;
    before.covariates = covariates_before;
    now.covariates = covariates_now;
    for (int m = 0; m < 3; m++) {
        for (int i = 0; i < TESTED; i++) { /* +-10 % */
            values_before[m * TESTED + i] = i % 2 == 0 ? 11.0 : 9.0;
            values_now[m * TESTED + i] = i % 2 == 0 ? 11.0 : 9.0;
        }
    }
}

/* Judges and returns the verdict of one row; its alarm flag in *alarm. */
static enum gate_verdict judged(const char *metric, bool *alarm)
{
    struct gate_cells a = {.v = &before, .n = 1};
    struct gate_cells b = {.v = &now, .n = 1};
    struct gate_report r;
    gate_judge(&baseline, &a, &b, true, &r);
    enum gate_verdict v = GATE_VERDICTS;
    for (uint32_t i = 0; i < r.n; i++) {
        if (strcmp(r.rows[i].metric, metric) == 0) {
            v = r.rows[i].verdict;
            *alarm = r.rows[i].alarm;
        }
    }
    return v;
}

static void expect(const char *metric, enum gate_verdict want, bool want_alarm)
{
    bool alarm = false;
    ck_assert_str_eq(gate_verdict_names[judged(metric, &alarm)], gate_verdict_names[want]);
    ck_assert_int_eq(alarm, want_alarm);
}

START_TEST(what_repeats_exactly_is_ok)
{
    values_before[0] = values_now[0] = MISSING; /* undefined before and after is the same, too */
    expect("status", GATE_OK, false);
    expect("latency", GATE_OK, false);
    expect("share", GATE_OK, false);
}
END_TEST

START_TEST(size_and_direction_of_an_exact_change_decide)
{
    /* Two runs of 10, tolerance 1 %: 10.08 is +0.8 %; 10.3 is +3 %; 9.7 -3 %. */
    values_now[0] = 10.08;
    expect("latency", GATE_DRIFT, false);
    values_now[0] = 10.3;
    expect("latency", GATE_REGRESSION, true);
    values_now[0] = 9.7;
    expect("latency", GATE_GAIN, false);
    values_now[2] = 10.3; /* the second metric of two runs each: a rate, so higher is better */
    expect("rate", GATE_GAIN, false);
    values_now[2] = 9.7;
    expect("rate", GATE_REGRESSION, true);
    values_now[4] = 20.0;
    expect("share", GATE_DRIFT, false);
}
END_TEST

/* A regression that touches one request of a hundred by 3 % moves the mean by 0.03 %. Five of a
 * hundred million are five nanoseconds of a tenth of a second: rounding. */
START_TEST(by_default_only_rounding_is_tolerated)
{
    baseline.groups[0].metrics[0].tolerance_frac = GATE_EXACT_TOLERANCE_FRAC;
    values_now[0] = 10.0 * (1.0 + 5e-8);
    expect("latency", GATE_DRIFT, false);
    values_now[0] = 10.0 * (1.0 - 5e-8);
    expect("latency", GATE_DRIFT, false);
    values_now[0] = 10.0 * 1.0003;
    expect("latency", GATE_REGRESSION, true);
    values_now[0] = 10.0 * 0.9997;
    expect("latency", GATE_GAIN, false);
    values_before[0] = 1.13702e-7; /* a value that is rounding moves by 7e-12, or 60 millionths */
    values_now[0] = 1.13709e-7;
    expect("latency", GATE_DRIFT, false);
    values_now[0] = 1.2e-7; /* by 6.3 nanoseconds of at least 0.1 ms, or 63 millionths */
    expect("latency", GATE_REGRESSION, true);
}
END_TEST

START_TEST(changes_that_cancel_in_the_mean_do_not_cancel)
{
    values_now[0] = 12.0; /* +20 % and -20 %: the mean stays 10 */
    values_now[1] = 8.0;
    expect("latency", GATE_REGRESSION, true);
    values_now[2] = 10.2; /* of a rate +2 % is better, -2 % is worse */
    values_now[3] = 9.8;
    expect("rate", GATE_REGRESSION, true);
}
END_TEST

START_TEST(one_replication_is_enough_and_the_worse_one_counts)
{
    values_now[1] = 10.12; /* +1.2 % of one, +0.6 % of the mean */
    expect("latency", GATE_REGRESSION, true);
    values_now[0] = 5.0; /* a gain of 50 % does not pay for it */
    expect("latency", GATE_REGRESSION, true);
    values_now[1] = 10.05; /* +0.5 % is within the tolerance, the gain is not */
    expect("latency", GATE_GAIN, false);
    values_before[0] = 0.0; /* from nothing to something is beyond every tolerance */
    expect("latency", GATE_REGRESSION, true);
}
END_TEST

START_TEST(a_value_that_is_no_longer_defined_is_an_alarm)
{
    values_now[1] = MISSING;
    expect("latency", GATE_STATUS, true);
    values_now[1] = 10.0;
    values_before[1] = MISSING;
    expect("latency", GATE_STATUS, false);
}
END_TEST

START_TEST(a_worse_verdict_of_the_runs_is_an_alarm_and_a_better_one_is_not)
{
    now.verdicts[0] = 1;
    now.verdicts[2] = 1;
    expect("status", GATE_STATUS, true);
    expect("latency", GATE_OK, false);
    before.verdicts[0] = 0;
    before.verdicts[2] = 2;
    expect("status", GATE_STATUS, false);
}
END_TEST

START_TEST(failing_runs_and_another_workload_are_alarms_for_every_row)
{
    now.failed = 1;
    now.verdicts[0] = 1;
    expect("status", GATE_STATUS, true);
    expect("latency", GATE_STATUS, true);
    setup();
    now.trace_hash = 1;
    expect("status", GATE_STATUS, true);
    expect("share", GATE_STATUS, true);
    setup();
    now.replications = 1;
    expect("rate", GATE_STATUS, true);
}
END_TEST

START_TEST(missing_rows_fail_closed_in_both_directions)
{
    now.n_metrics = 2; /* the build no longer has "share" */
    expect("share", GATE_REMOVED, true);
    setup();
    before.n_metrics = 2;
    expect("share", GATE_ADDED, true);
    setup();
    baseline.groups[0].n_metrics = 2; /* recorded, but taken out of the group */
    expect("share", GATE_REMOVED, true);
    setup();
    now.unknown_policy = true;
    now.failed = 2;
    expect("status", GATE_REMOVED, true);
    expect("latency", GATE_REMOVED, true);
}
END_TEST

START_TEST(policies_without_partner_are_added_or_removed)
{
    struct gate_cells none = {0};
    struct gate_cells one = {.v = &now, .n = 1};
    struct gate_report r;
    gate_judge(&baseline, &none, &one, false, &r); /* against another binary: no alarm */
    ck_assert_uint_eq(r.n, 4);
    ck_assert_uint_eq(r.counts[GATE_ADDED], 4);
    ck_assert_uint_eq(r.alarms, 0);
    gate_judge(&baseline, &none, &one, true, &r);
    ck_assert_uint_eq(r.alarms, 4);
    gate_judge(&baseline, &one, &none, false, &r);
    ck_assert_uint_eq(r.counts[GATE_REMOVED], 4);
    ck_assert_uint_eq(r.alarms, 4);
}
END_TEST

/* The policy's own row, between a recorded text and one of now; NULL: no text. */
static struct gate_row parameters_row(char *was, char *is, bool added_alarms)
{
    char name[] = "p";
    struct gate_parameters x = {name, was};
    struct gate_parameters y = {name, is};
    struct gate_cells a = {.parameters = &x, .n_parameters = was != NULL};
    struct gate_cells b = {.parameters = &y, .n_parameters = is != NULL};
    struct gate_report r;
    struct gate_row row = {0};
    gate_judge(&baseline, &a, &b, added_alarms, &r);
    ck_assert_uint_le(r.n, 1);
    if (r.n == 1) {
        row = r.rows[0];
        ck_assert_str_eq(row.policy, "p");
        ck_assert_str_eq(row.metric, "parameters");
    }
    return row;
}

START_TEST(another_default_is_a_row_that_names_it)
{
    char old[] = "batch=32,age_s=900,mode=a";
    char same[] = "batch=32,age_s=900,mode=a";
    char two[] = "batch=31,age_s=900.5,mode=a";
    char more[] = "batch=32,age_s=900,mode=a,ag=9";
    char fewer[] = "batch=32,mode=a";
    struct gate_row row = parameters_row(old, same, true);
    ck_assert(row.verdict == GATE_OK && !row.alarm);
    row = parameters_row(old, two, true);
    ck_assert(row.verdict == GATE_STATUS && row.alarm);
    ck_assert_str_eq(row.detail, "batch=31, was 32, age_s=900.5, was 900");
    row = parameters_row(old, more, false);
    ck_assert(row.verdict == GATE_STATUS && row.alarm);
    ck_assert_str_eq(row.detail, "ag=9 is new");
    row = parameters_row(old, fewer, true);
    ck_assert_str_eq(row.detail, "age_s=900 is gone");
    row = parameters_row(NULL, old, true); /* a file that has none */
    ck_assert(row.verdict == GATE_ADDED && row.alarm);
    ck_assert_ptr_null(parameters_row(NULL, old, false).policy); /* another binary says none */
}
END_TEST

START_TEST(a_fresh_shift_beyond_noise_and_tolerance_alarms)
{
    /* Over 60 values the standard deviation of log 11, log 9 is 0.1012. With 60 values a side the
     * standard error is 0.1012 * sqrt(2/60) = 0.0185. +10 % gives (0.0953 - log 1.01) / 0.0185 =
     * 4.6 standard errors. That is p = 5e-6, times at most 3 tests. Then +2 % gives 0.5 standard
     * errors. */
    make_fresh();
    expect("latency", GATE_OK, false);
    for (int i = 0; i < TESTED; i++) {
        values_now[i] *= 1.10;
    }
    expect("latency", GATE_REGRESSION, true);
    expect("rate", GATE_OK, false);
    for (int i = 0; i < TESTED; i++) {
        values_now[i] *= 1.02 / 1.10;
    }
    expect("latency", GATE_OK, false);
    for (int i = 0; i < TESTED; i++) { /* "rate" falls, "share" moves */
        values_now[TESTED + i] *= 0.9;
        values_now[2 * TESTED + i] *= 0.9;
    }
    expect("rate", GATE_REGRESSION, true);
    expect("share", GATE_DRIFT, false);
}
END_TEST

/* As above: the standard error is 0.1003 * sqrt(120/118) * sqrt(2/60) = 0.01847. Three rows can be
 * alarms, so the first has 1 %/3, which is 2.713 standard errors: 1.01 * exp(0.0501) = 1.0619. */
START_TEST(a_fresh_row_that_is_ok_says_what_it_would_have_seen)
{
    make_fresh();
    struct gate_report r;
    gate_judge(&baseline, &(struct gate_cells){.v = &before, .n = 1},
               &(struct gate_cells){.v = &now, .n = 1}, true, &r);
    ck_assert_str_eq(r.rows[1].metric, "latency");
    ck_assert_str_eq(gate_detail(&r, &r.rows[1]), "a shift of 6.2 % would show half of the time");
    ck_assert_str_eq(gate_detail(&r, &r.rows[3]), ""); /* of no direction, so never an alarm */
}
END_TEST

START_TEST(what_the_workload_explains_is_no_regression)
{
    /* The second side drew longer answers (covariate 3 higher by 1 in the mean), and latency is
     * exp(0.1 * length) with small noise: +10.5 % in the plain mean, nothing when adjusted. */
    make_fresh();
    for (int i = 0; i < TESTED; i++) {
        double length = i % 10;
        double noise = i % 3 == 0 ? 0.002 : -0.001;
        covariates_before[i * GATE_COVARIATES + 3] = length;
        covariates_now[i * GATE_COVARIATES + 3] = length + 1.0;
        values_before[i] = exp(0.1 * length + noise);
        values_now[i] = exp(0.1 * (length + 1.0) + noise);
    }
    expect("latency", GATE_OK, false);
}
END_TEST

START_TEST(vanishing_values_and_overload_alarm_in_fresh_groups)
{
    /* 12 of 60 undefined, 0 of 60 before: hypergeometric chance C(60,12)/C(120,12) = 1.3e-4; twice
     * that over 3 tests is below 1 %. */
    make_fresh();
    for (int i = 0; i < 12; i++) {
        values_now[i] = MISSING;
    }
    expect("latency", GATE_REGRESSION, true);
    make_fresh();
    now.verdicts[0] = TESTED - 12;
    now.verdicts[2] = 12;
    expect("status", GATE_STATUS, true);
    now.verdicts[0] = TESTED - 1; /* one of 60: chance 1/2 */
    now.verdicts[2] = 1;
    expect("status", GATE_OK, false);
    for (int i = 0; i < TESTED; i++) {
        values_now[i] = MISSING;
    }
    expect("latency", GATE_STATUS, true);
}
END_TEST

/* ---- the file ---- */

static const char spec[] =
    "{\"format\": 1, \"groups\": [{\"name\": \"g\", \"soc\": \"s\", \"llm\": \"l\", \"workload\": "
    "\"w\", \"test\": \"exact\", \"seed\": 3, \"policies\": [\"p\"], \"metrics\": [{\"name\": "
    "\"latency\", \"better\": \"lower\"}]}]%s}\n";

static char path[] = "/tmp/check-gate-XXXXXX";

static void write_spec(const char *text, const char *more)
{
    (void)snprintf(path, sizeof path, "/tmp/check-gate-XXXXXX");
    int fd = mkstemp(path);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    ck_assert_ptr_nonnull(f);
    char whole[4096];
    const char *gap = strstr(text, "%s");
    (void)snprintf(whole, sizeof whole, "%.*s%s%s", (int)(gap - text), text, more, gap + 2);
    (void)fputs(whole, f);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(what_is_written_is_read_back)
{
    write_spec(spec, "");
    struct gate_baseline b;
    struct err e = ERR_INIT;
    ck_assert_int_eq(gate_baseline_read(path, &b, &e), 0);
    ck_assert_uint_eq(b.groups[0].replications, GATE_EXACT_REPLICATIONS);
    ck_assert_double_eq(b.groups[0].metrics[0].tolerance_frac, GATE_EXACT_TOLERANCE_FRAC);
    ck_assert_uint_eq(b.recorded.n, 0);
    values_now[0] = 0.1 + 0.2; /* 0.30000000000000004: 15 digits keep 0.3 */
    values_now[1] = MISSING;
    now.n_metrics = 1;
    now.trace_hash = 0xfedcba9876543210ULL;
    now.verdicts[0] = 1;
    now.empty = 1; /* the replication without a value has no requests */
    struct gate_cells cells = {.v = &now, .n = 1};
    ck_assert_int_eq(gate_baseline_write(path, &b, &cells, &e), 0);
    ck_assert_int_eq(gate_baseline_read(path, &b, &e), 0);
    (void)unlink(path);
    const struct gate_cell *c = gate_cell_find(&b.recorded, "g", "p");
    ck_assert_ptr_nonnull(c);
    ck_assert(c->trace_hash == 0xfedcba9876543210ULL);
    ck_assert(c->empty == 1 && c->failed == 0);
    const double *x = gate_cell_values(c, "latency");
    ck_assert_double_eq_tol(x[0], 0.3, 1e-15);
    ck_assert(isnan(x[1]));
    ck_assert_ptr_null(gate_cell_values(c, "rate"));
}
END_TEST

static void refuse(const char *text, const char *more, const char *want)
{
    write_spec(text, more);
    struct gate_baseline b;
    struct err e = ERR_INIT;
    ck_assert_int_ne(gate_baseline_read(path, &b, &e), 0);
    (void)unlink(path);
    ck_assert_msg(e.n > 0 && strstr(e.lines[0], want) != NULL, "%s", e.n > 0 ? e.lines[0] : "-");
    err_fini(&e);
}

START_TEST(bad_files_are_refused_with_the_key)
{
    refuse(spec, ", \"surprise\": 1", "surprise: unknown key");
    refuse(spec, ", \"results\": [{}]", "results[0].group: missing");
    static const char result[] =
        ", \"results\": [{\"group\": \"g\", \"policy\": \"p\", \"replications\": 2, \"failed\": "
        "0, \"message\": \"\", \"verdicts\": [%s], \"traces\": \"0123456789abcdef\", "
        "\"metrics\": {\"latency\": [1%s]}}]";
    char more[1024];
    (void)snprintf(more, sizeof more, result, "2, 0, 0", "");
    refuse(spec, more, "metrics.latency: must be an array of 2");
    (void)snprintf(more, sizeof more, result, "1, 0, 0", ", 2");
    refuse(spec, more, "do not add up");
    (void)snprintf(more, sizeof more, result, "2, 0, 0", ", \"x\"");
    refuse(spec, more, "must hold numbers");
    refuse("{\"format\": 2, \"groups\": []%s}", "", "format");
    refuse("{\"format\": 1, \"groups\": [{\"name\": \"g\", \"soc\": \"s\", \"llm\": \"l\", "
           "\"test\": \"exact\", \"seed\": 1, \"policies\": [\"p\", \"p\"]}]%s}",
           "", "workload or trace");
}
END_TEST

START_TEST(xml_of_odd_names_stays_xml)
{
    static char odd[] = "a<b>&\"c\"";
    before.policy = now.policy = odd;
    now.trace_hash = 1;
    struct gate_cells a = {.v = &before, .n = 1};
    struct gate_cells b = {.v = &now, .n = 1};
    struct gate_report r;
    gate_judge(&baseline, &a, &b, true, &r);
    char text[8192];
    FILE *f = fmemopen(text, sizeof text, "w");
    struct document *d = document_new();
    gate_document(&r, false, d);
    document_put(d, "junit", f);
    (void)fclose(f);
    ck_assert_ptr_nonnull(strstr(text, "name=\"a&lt;b&gt;&amp;&quot;c&quot; status\""));
    ck_assert_ptr_nonnull(strstr(text, "tests=\"4\" failures=\"4\""));
    ck_assert_ptr_null(strstr(text, "<b>"));
}
END_TEST

/* A table shows one row for a change that all rows of a policy share, unless all are asked for. */
START_TEST(rows_like_their_status_row_are_left_out_of_tables)
{
    now.trace_hash = 1;
    for (int all = 0; all < 2; all++) {
        struct gate_cells a = {.v = &before, .n = 1};
        struct gate_cells b = {.v = &now, .n = 1};
        struct gate_report r;
        gate_judge(&baseline, &a, &b, true, &r);
        char text[8192] = "";
        FILE *f = fmemopen(text, sizeof text, "w");
        struct document *d = document_new();
        gate_document(&r, all == 1, d);
        document_put(d, "text", f);
        (void)fclose(f);
        ck_assert_ptr_nonnull(strstr(text, "status"));
        ck_assert((strstr(text, "latency") != NULL) == (all == 1));
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("gate", .setup = setup),
    TEST(what_repeats_exactly_is_ok),
    TEST(size_and_direction_of_an_exact_change_decide),
    TEST(by_default_only_rounding_is_tolerated),
    TEST(changes_that_cancel_in_the_mean_do_not_cancel),
    TEST(one_replication_is_enough_and_the_worse_one_counts),
    TEST(a_value_that_is_no_longer_defined_is_an_alarm),
    TEST(a_worse_verdict_of_the_runs_is_an_alarm_and_a_better_one_is_not),
    TEST(failing_runs_and_another_workload_are_alarms_for_every_row),
    TEST(missing_rows_fail_closed_in_both_directions),
    TEST(policies_without_partner_are_added_or_removed),
    TEST(another_default_is_a_row_that_names_it),
    TEST(a_fresh_shift_beyond_noise_and_tolerance_alarms),
    TEST(a_fresh_row_that_is_ok_says_what_it_would_have_seen),
    TEST(what_the_workload_explains_is_no_regression),
    TEST(vanishing_values_and_overload_alarm_in_fresh_groups),
    TEST(what_is_written_is_read_back),
    TEST(bad_files_are_refused_with_the_key),
    TEST(xml_of_odd_names_stays_xml),
    TEST(rows_like_their_status_row_are_left_out_of_tables),
};
SUITE_MAIN("gate", suite)
