/* Comparisons: common random numbers, and results that depend on nothing they should not. */
#include <cjson/cJSON.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/compare.h"
#include "experiments/run/plugin.h"
#include "experiments/run/runner.h"
#include "policies/registry.h"
#include "sim/base/rng.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

#define WORKLOAD "mixed:reactive_per_min=6,proactive_per_min=6,duration_s=60"
#define REPLICATIONS 3

static struct config_options options;
static struct config config;
static struct config_policy policies[3];
static struct err err;

static void crash(struct sched *s)
{
    (void)s;
    abort();
}

static void ignore_arrival(struct sched *s, const struct request *r)
{
    (void)s;
    (void)r;
}

static const struct policy_ops crashing = {.name = "crashing",
                                           .summary = "aborts",
                                           .contract = POLICY_CONTRACT,
                                           .request_arrived = ignore_arrival,
                                           .schedule = crash};

static void setup(void)
{
    options = config_options_default();
    options.workload = WORKLOAD;
    options.seed = 11;
    err = (struct err)ERR_INIT;
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    ck_assert_int_eq(config_policy_parse(&policies[0], "fcfs", &err), 0);
    ck_assert_int_eq(config_policy_parse(&policies[1], "openvino-cb", &err), 0);
    policies[2] = (struct config_policy){.ops = &crashing, .label = "crashing"};
}

static void teardown(void)
{
    config_fini(&config);
    err_fini(&err);
}

static struct compare_plan plan_of(const struct config_policy *p, uint32_t n, uint32_t parallel)
{
    return (struct compare_plan){.config = &config,
                                 .options = &options,
                                 .policies = p,
                                 .n_policies = n,
                                 .replications = REPLICATIONS,
                                 .how.parallel = parallel,
                                 .how.cpu_limit_s = 60.0,
                                 .arrivals = CONFIG_AS_WRITTEN};
}

static void expect_same(const struct compare_result *a, uint32_t p, const struct compare_result *b,
                        uint32_t q)
{
    ck_assert_uint_eq(a->n_metrics, b->n_metrics);
    for (size_t k = 0; k < a->n_metrics; k++) {
        const double *x = compare_values(a, p, a->names[k].name);
        const double *y = compare_values(b, q, a->names[k].name);
        ck_assert_msg(memcmp(x, y, REPLICATIONS * sizeof *x) == 0, "%s differs", a->names[k].name);
    }
}

START_TEST(results_do_not_depend_on_workers_or_order_of_policies)
{
    struct config_policy turned[2] = {policies[1], policies[0]};
    struct compare_plan one = plan_of(policies, 2, 1);
    struct compare_plan many = plan_of(turned, 2, 4);
    struct compare_result a;
    struct compare_result b;
    compare_run(&one, &a);
    compare_run(&many, &b);
    ck_assert_uint_eq(a.n_failures, 0);
    ck_assert_uint_eq(b.n_failures, 0);
    expect_same(&a, 0, &b, 1);
    expect_same(&a, 1, &b, 0);
    compare_result_fini(&a);
    compare_result_fini(&b);
}
END_TEST

/* Every policy of the tree, one run after the other in a process, and each in a process of its own:
 * what one leaves behind would be seen. */
START_TEST(a_process_that_has_run_others_runs_the_same)
{
    size_t n = 0;
    const struct policy_ops *const *all = policy_list(&n);
    struct config_policy *each = calloc(n, sizeof *each);
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(config_policy_parse(&each[i], all[i]->name, &err), 0);
    }
    struct compare_plan together = plan_of(each, (uint32_t)n, 1);
    struct compare_plan apart = together;
    apart.how.cells_per_worker = 1;
    struct compare_result a;
    struct compare_result b;
    compare_run(&together, &a);
    compare_run(&apart, &b);
    ck_assert_uint_lt(a.n_failures, n); /* of 3 n: sd-npu needs another machine */
    ck_assert_uint_eq(a.n_failures, b.n_failures);
    for (uint32_t i = 0; i < n; i++) {
        expect_same(&a, i, &b, i);
    }
    compare_result_fini(&a);
    compare_result_fini(&b);
    free(each);
    /* A shared object shares no process: nobody knows what its code leaves. */
    ck_assert(plugin_is_code("./mine.so") && plugin_is_code("mine.so:key=1"));
    ck_assert(!plugin_is_code("edf") && !plugin_is_code("python:mine.py:Mine"));
    ck_assert(!plugin_is_code("exec:./mine.so"));
}
END_TEST

static int by_value(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x;
    uint64_t b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

/* A sweep may have at most so many. With 32 bits n^2 / 2^33 = 128 pairs would be equal. 2^53 is the
 * last whole number up to which a double, and so JSON, holds all. */
START_TEST(a_million_replications_have_a_million_seeds)
{
    enum { N = 1 << 20 };
    uint64_t *seeds = malloc(N * sizeof *seeds);
    ck_assert_ptr_nonnull(seeds);
    uint32_t large = 0;
    uint32_t alike = 0;
    for (uint32_t k = 0; k < N; k++) {
        seeds[k] = config_seed(1, k);
        large += seeds[k] >= 1ULL << 53 ? 1 : 0;
    }
    qsort(seeds, N, sizeof *seeds, by_value);
    for (uint32_t k = 1; k < N; k++) {
        alike += seeds[k] == seeds[k - 1] ? 1 : 0;
    }
    ck_assert_uint_eq(large, 0);
    ck_assert_uint_eq(alike, 0);
    free(seeds);
}
END_TEST

START_TEST(policies_meet_the_same_requests_and_replications_differ)
{
    struct compare_plan plan = plan_of(policies, 2, 2);
    struct compare_result r;
    compare_run(&plan, &r);
    const double *a = compare_values(&r, 0, "reactive.arrival_rate_req_per_min");
    const double *b = compare_values(&r, 1, "reactive.arrival_rate_req_per_min");
    for (uint32_t k = 0; k < REPLICATIONS; k++) {
        ck_assert_double_eq(a[k], b[k]);
    }
    ck_assert_double_ne(a[0], a[1]);
    ck_assert_double_ne(a[1], a[2]);
    ck_assert_ptr_null(compare_values(&r, 0, "no.such.metric"));
    compare_result_fini(&r);
    ck_assert_uint_eq(config_seed(11, 0), 11);
    ck_assert_uint_ne(config_seed(11, 1), config_seed(12, 1));
    ck_assert_uint_ne(config_seed(11, 1), config_seed(11, 2));
}
END_TEST

START_TEST(the_first_replication_is_a_plain_run_with_the_seed)
{
    struct compare_plan plan = plan_of(policies, 1, 1);
    struct compare_result r;
    compare_run(&plan, &r);
    struct trace t;
    struct runner_options ro = {.samples = RUNNER_SAMPLES_EXACT};
    struct runner_result single;
    ck_assert_int_eq(config_trace(&options, options.seed, CONFIG_AS_WRITTEN, &t, &err), 0);
    ck_assert_int_eq(runner_run(&config, &policies[0], &t, options.seed, &ro, &single, &err), 0);
    for (size_t k = 0; k < single.metrics.n; k++) {
        const double *x = compare_values(&r, 0, single.metrics.v[k].name);
        ck_assert_msg(x != NULL && memcmp(x, &single.metrics.v[k].value, sizeof *x) == 0,
                      "%s differs", single.metrics.v[k].name);
    }
    /* The names that can be asked for beforehand are those a run gives. */
    struct metric_list names = {0};
    runner_metric_names(&config, false, &names);
    ck_assert_uint_eq(names.n, single.metrics.n);
    for (size_t k = 0; k < names.n; k++) {
        ck_assert_str_eq(names.v[k].name, single.metrics.v[k].name);
    }
    metric_list_fini(&names);
    runner_result_fini(&single);
    trace_fini(&t);
    compare_result_fini(&r);
}
END_TEST

START_TEST(a_policy_that_crashes_costs_its_own_runs_only)
{
    struct config_policy both[2] = {policies[2], policies[0]};
    struct compare_plan plan = plan_of(both, 2, 2);
    struct compare_result r;
    compare_run(&plan, &r);
    ck_assert_uint_eq(r.n_failures, REPLICATIONS);
    for (uint32_t i = 0; i < r.n_failures; i++) {
        ck_assert_uint_eq(r.failures[i].policy, 0);
        ck_assert_uint_eq(r.failures[i].replication, i);
        ck_assert_ptr_nonnull(strstr(r.failures[i].message, "signal"));
    }
    const double *bad = compare_values(&r, 0, "all.finished");
    const double *good = compare_values(&r, 1, "all.finished");
    for (uint32_t k = 0; k < REPLICATIONS; k++) {
        ck_assert_double_nan(bad[k]);
        ck_assert_double_gt(good[k], 0.0);
    }
    compare_result_fini(&r);
}
END_TEST

START_TEST(json_holds_mean_interval_and_paired_difference)
{
    /* By hand: base 1 2 3, other 2 4 6: difference 1 2 3, mean 2, half-width 4.30265 / sqrt 3. */
    struct metric names[] = {{"m", 0.0}};
    double values[] = {1, 2, 3, 2, 4, 6};
    struct compare_result r = {.n_policies = 2,
                               .replications = 3,
                               .n_metrics = 1,
                               .n_plain = 1,
                               .names = names,
                               .values = values};
    struct compare_plan plan = plan_of(policies, 2, 1);
    struct document *d = document_new();
    compare_document(&plan, &r, NULL, 0, true, d);
    cJSON *tree = document_json(d);
    const cJSON *root = cJSON_GetObjectItem(tree, "policies");
    const cJSON *m = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "openvino-cb"), "m");
    ck_assert_double_eq(cJSON_GetObjectItem(m, "mean")->valuedouble, 4.0);
    ck_assert_int_eq(cJSON_GetObjectItem(m, "n")->valueint, 3);
    ck_assert_double_eq(cJSON_GetObjectItem(m, "diff")->valuedouble, 2.0);
    ck_assert_double_eq_tol(cJSON_GetObjectItem(m, "diff_low")->valuedouble,
                            2.0 - 4.302653 / sqrt(3.0), 1e-5);
    ck_assert_str_eq(cJSON_GetObjectItem(m, "verdict")->valuestring,
                     "no difference shown at n=3"); /* 2 - 2.48 < 0 */
    ck_assert_ptr_null(
        cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(root, "fcfs"), "m"), "diff"));
    cJSON_Delete(tree);
}
END_TEST

/* p_holm of a metric, NaN where there is none. */
static double holm_of(const cJSON *tree, const char *metric)
{
    const cJSON *root = cJSON_GetObjectItem(tree, "policies");
    const cJSON *m = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "openvino-cb"), metric);
    const cJSON *p = cJSON_GetObjectItem(m, "p_holm");
    return cJSON_IsNumber(p) ? p->valuedouble : (double)NAN;
}

static double p_of(const cJSON *tree, const char *metric)
{
    const cJSON *root = cJSON_GetObjectItem(tree, "policies");
    const cJSON *m = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "openvino-cb"), metric);
    return cJSON_GetObjectItem(m, "p")->valuedouble;
}

/* Three metrics are judged, "d" is only there. The first has half of the level, its p doubles. Holm
 * takes the smaller p of the other two twice and the larger once. That p is doubled for their half
 * of the level. With all of the level it stays, but is at least the first's. The lesser counts. */
START_TEST(p_holm_is_over_what_is_judged_and_the_first_metric_comes_first)
{
    static const char *const judged[] = {"a", "b", "c"};
    struct metric names[] = {{"a", 0.0}, {"b", 0.0}, {"c", 0.0}, {"d", 0.0}};
    double values[32] = {0};
    static const double differences[4][4] = {
        {10, 11, 12, 11}, {4, 6, 5, 9}, {1, -1, 2, 1.5}, {1, 2, 3, 4}};
    for (int m = 0; m < 4; m++) {
        memcpy(&values[16 + 4 * m], differences[m], sizeof differences[m]);
    }
    struct compare_result r = {
        .n_policies = 2, .replications = 4, .n_metrics = 4, .names = names, .values = values};
    struct compare_plan plan = plan_of(policies, 2, 1);
    struct document *d = document_new();
    compare_document(&plan, &r, judged, 3, true, d);
    cJSON *tree = document_json(d);
    double a = p_of(tree, "a");
    double b = p_of(tree, "b");
    double c = p_of(tree, "c");
    ck_assert(a < b && b < c && c < 0.5);
    ck_assert_double_eq_tol(holm_of(tree, "a"), 2.0 * a, 1e-12);
    ck_assert_double_eq_tol(holm_of(tree, "b"), fmin(4.0 * b, fmax(2.0 * b, 2.0 * a)), 1e-12);
    ck_assert_double_eq_tol(holm_of(tree, "c"), fmin(2.0 * c, fmax(c, 2.0 * a)), 1e-12);
    ck_assert_double_nan(holm_of(tree, "d"));
    cJSON_Delete(tree);
}
END_TEST

/* A difference without a p has none after the correction, and does not count. The question's 0.01
 * is doubled. 0.02 is the only p of the second family: it stays, being no less than that of the
 * question. Where the question has no p, the others have all of the level. */
START_TEST(without_a_p_there_is_none_to_correct)
{
    double p[] = {0.01, NAN, 0.02, NAN};
    significance_adjust(p, 1, 3);
    ck_assert_double_eq_tol(p[0], 0.02, 1e-15);
    ck_assert_double_eq_tol(p[2], 0.02, 1e-15);
    ck_assert(isnan(p[1]) && isnan(p[3]));
    double q[] = {NAN, NAN, 0.03};
    significance_adjust(q, 1, 2);
    ck_assert(isnan(q[0]) && isnan(q[1]));
    ck_assert_double_eq_tol(q[2], 0.03, 1e-15);
}
END_TEST

/* Equal policies, ten metrics: anything found in any of them is false. 5 % of 400 are 20; 31 is
 * two and a half standard deviations above. AA_TRIALS asks for more. */
START_TEST(nothing_is_found_where_nothing_is)
{
    static const char *const judged[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    enum { METRICS = 10, VALUES = 10 };
    uint32_t trials = getenv("AA_TRIALS") != NULL ? (uint32_t)atoi(getenv("AA_TRIALS")) : 400;
    gsl_rng *g = rng_gsl_new(rng_key(15, RNG_TEST, 3, 0));
    uint32_t found = 0;
    uint32_t uncorrected = 0;
    for (uint32_t k = 0; k < trials; k++) {
        struct metric names[METRICS];
        double values[2 * METRICS * VALUES];
        double shared[2 * VALUES];
        for (int i = 0; i < 2 * VALUES; i++) {
            shared[i] = gsl_ran_gaussian(g, 1.0); /* metrics of a run go together */
        }
        for (int i = 0; i < 2 * METRICS * VALUES; i++) {
            int run = i / (METRICS * VALUES) * VALUES + i % VALUES;
            values[i] = 10.0 + shared[run] + gsl_ran_gaussian(g, 1.0);
        }
        for (int m = 0; m < METRICS; m++) {
            (void)snprintf(names[m].name, sizeof names[m].name, "%s", judged[m]);
        }
        struct compare_result r = {.n_policies = 2,
                                   .replications = VALUES,
                                   .n_metrics = METRICS,
                                   .names = names,
                                   .values = values};
        struct compare_plan plan = plan_of(policies, 2, 1);
        struct document *d = document_new();
        compare_document(&plan, &r, judged, METRICS, false, d);
        cJSON *tree = document_json(d);
        bool any = false;
        bool plain = false;
        for (int m = 0; m < METRICS; m++) {
            any = any || holm_of(tree, judged[m]) <= 0.05;
            plain = plain || p_of(tree, judged[m]) <= 0.05;
        }
        found += any ? 1 : 0;
        uncorrected += plain ? 1 : 0;
        cJSON_Delete(tree);
    }
    gsl_rng_free(g);
    printf("oracle: of %u A/A comparisons of ten metrics %.1f %% find something, %.1f %% without "
           "correction\n",
           trials, 100.0 * found / trials, 100.0 * uncorrected / trials);
    (void)fflush(stdout);
    ck_assert_uint_le(found * 400, 31 * trials);
    ck_assert_uint_ge(uncorrected * 5, trials); /* they are many */
}
END_TEST

/* A workload without random numbers gives the same run for every seed, which is one observation. */
START_TEST(equal_replications_are_one_observation)
{
    static const char *const cases[][3] = {{"w1:n=2", "3", "0"},
                                           {"w1:n=2", "3", "0.1"},
                                           {"w1:n=2", "1", "0"},
                                           {"tweet:n=2", "3", "0"}};
    for (int i = 0; i < 4; i++) {
        OWNED char *noise = xformat("sim.truth_sigma=%s", cases[i][2]);
        SCOPED(said_fini)
        struct said s = COMMANDED(cmd_compare, "--policy", "fcfs", "--policy", "edf", "--workload",
                                  cases[i][0], "--replications", cases[i][1], "--set", noise, "-q");
        const char *said = strstr(s.out, "\nwarning: all 3 replications are the same run");
        ck_assert_msg(s.status == EXIT_OK && (said != NULL) == (i == 0), "%d: %s", i, s.out);
    }
}
END_TEST

/* No device does a prompt of 512 tokens in 0.1 s, and the third request arrives after that. */
START_TEST(what_did_not_finish_is_warned_of)
{
    folder_enter();
    folder_put("t.csv", "# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,"
                        "input_tokens,output_tokens,prefix_tokens\n0,0,0,reactive,0,,512,1,0\n"
                        "1,1,0,proactive,0.01,,512,1,0\n2,2,0,reactive,0.2,,512,1,0\n");
    SCOPED(said_fini)
    struct said cut =
        COMMANDED(cmd_compare, "--policy", "fcfs", "--policy", "edf", "--trace", "t.csv", "-q",
                  "--set", "sim.horizon_s=0.1", "--metric", "all.arrived");
    ck_assert_msg(
        strstr(cut.out,
               "\nwarning: requests that did not finish (cancelled, dropped or cut off): 2 "
               "of 2 under fcfs, 2 of 2 under edf. Latencies do not cover them\n") != NULL,
        "%s", cut.out);
    SCOPED(said_fini)
    struct said whole =
        COMMANDED(cmd_compare, "--policy", "fcfs", "--policy", "edf", "--trace", "t.csv", "-q");
    ck_assert_int_eq(whole.status, EXIT_OK);
    ck_assert_ptr_null(strstr(whole.out, "did not finish"));
    /* The second is cancelled before any device could have done the prompt before it. */
    folder_put("t.csv",
               "# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,"
               "input_tokens,output_tokens,prefix_tokens,cancel_s\n0,0,0,reactive,0,,512,1,"
               "0,\n1,1,0,reactive,0.01,,512,1,0,0.1\n2,2,0,reactive,0.2,,512,1,0,\n");
    SCOPED(said_fini)
    struct said left =
        COMMANDED(cmd_compare, "--policy", "fcfs", "--policy", "edf", "--trace", "t.csv", "-q");
    ck_assert_msg(strstr(left.out, ": 1 of 3 under fcfs, 1 of 3 under edf. ") != NULL, "%s",
                  left.out);
    folder_leave();
}
END_TEST

/* A recording of one request at `at_s`; below 0: of none. */
static void put_recording(const char *name, int at_s)
{
    OWNED char *row = at_s < 0 ? xstrdup("") : xformat("0,0,0,reactive,%d,,300,20,0\n", at_s);
    OWNED char *text = xformat("# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,"
                               "gap_s,input_tokens,output_tokens,prefix_tokens\n%s",
                               row);
    folder_put(name, text);
}

/* One request by itself takes as long under both, so they are equal in five recordings, and the
 * sixth, of no request, is no failure of theirs. */
START_TEST(a_recording_without_requests_counts_for_nobody)
{
    folder_enter();
    static const char *const words[] = {"--policy", "fcfs",    "--policy", "edf",     "--select",
                                        "0.9",      "-q",      "--trace",  "a.csv",   "--trace",
                                        "b.csv",    "--trace", "c.csv",    "--trace", "d.csv",
                                        "--trace",  "e.csv",   "--trace",  "f.csv",   NULL};
    for (int i = 0; i < 6; i++) {
        char name[] = "a.csv";
        name[0] = (char)(name[0] + i);
        put_recording(name, i == 3 ? -1 : i);
    }
    SCOPED(said_fini) struct said s = commanded(&cmd_compare, words);
    ck_assert_msg(strstr(s.out, "failed") == NULL && strstr(s.out, "\nbest: fcfs, ") != NULL &&
                      strstr(s.out, "\n1 of 6 replications without requests, which count for "
                                    "nobody\n") != NULL,
                  "%s", s.out);
    ck_assert_int_eq(s.status, EXIT_OK);
    folder_put("e.csv", "# xpusim-trace v1\nno,trace\n");
    SCOPED(said_fini) struct said bad = commanded(&cmd_compare, words);
    ck_assert_msg(strstr(bad.out, "\nthe first run that failed: fcfs, seed ") != NULL &&
                      strstr(bad.out, ": e.csv: is no xpusim trace") != NULL &&
                      strstr(bad.out, "\n1 of 6 replications without requests, ") != NULL,
                  "%s", bad.out);
    ck_assert_int_eq(bad.status, EXIT_CHECK_FAILED);
    folder_leave();
}
END_TEST

/* The second of three recordings has no requests: no policy fails, and values are of the other two.
 * A recording that cannot be read is a failure. */
START_TEST(a_comparison_without_requests_in_a_replication_is_no_failure)
{
    folder_enter();
    put_recording("a.csv", 0);
    put_recording("b.csv", -1);
    put_recording("c.csv", 2);
    folder_put("d.csv", "# xpusim-trace v1\nno,trace\n");
    SCOPED(said_fini)
    struct said s =
        COMMANDED(cmd_compare, "--policy", "fcfs", "--policy", "edf", "--trace", "a.csv", "--trace",
                  "b.csv", "--trace", "c.csv", "--metric", "energy_j", "--jobs", "1");
    ck_assert_int_eq(s.status, EXIT_OK);
    ck_assert_str_eq(s.err, "");
    OWNED char *is = squeezed(s.out);
    ck_assert_msg(strstr(is, "\nfcfs 0 2 0 0\nedf 0 2 0 0\n1 of 3 replications without requests, "
                             "which count for nobody\n") != NULL,
                  "%s", is);
    ck_assert_msg(strstr(is, "identical at n=2\n") != NULL, "%s", is);
    SCOPED(said_fini)
    struct said bad = COMMANDED(cmd_compare, "--policy", "fcfs", "--policy", "edf", "--trace",
                                "a.csv", "--trace", "d.csv", "--trace", "c.csv", "--jobs", "1");
    ck_assert_int_eq(bad.status, EXIT_CHECK_FAILED);
    OWNED char *failed = squeezed(bad.out);
    ck_assert_msg(strstr(failed, "\nfcfs 0 2 0 1\nedf 0 2 0 1\n") != NULL, "%s", failed);
    folder_leave();
}
END_TEST

/* Requests of `tweet` are no jobs, so that metric has no value in any run. */
START_TEST(a_selection_by_what_no_run_has)
{
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_compare, "--policy", "fcfs", "--policy", "edf", "--workload",
                              "tweet:n=2", "--select", "0.9", "--metric", "reactive.job_s.mean");
    ck_assert_int_eq(s.status, EXIT_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(s.err, "--metric reactive.job_s.mean: no run has it"));
}
END_TEST

/* Policies that divide prompts into an NPU's chunks have none to divide where it takes any rows.
 * The others of a policy's replications fail for the same reason, and that is one line. */
START_TEST(what_all_replications_fail_of_is_said_once)
{
    static const char *const of_chunks[] = {"agent-xpu-v1", "agent-xpu-v2", "hetero-split", "hpf",
                                            "llm-npu",      "npu-serial",   "pd-static"};
    for (size_t i = 0; i < sizeof of_chunks / sizeof of_chunks[0]; i++) {
        SCOPED(said_fini)
        struct said s = COMMANDED(cmd_compare, "--policy", "fcfs", "--policy", of_chunks[i],
                                  "--workload", "tweet:n=2", "--replications", "3", "-q", "--set",
                                  "soc.devices.npu.chunk_rows=0");
        OWNED char *line = xformat(
            "xpusim: error: %s, replication 0 (seed 1) and 2 others: policy %s, seed 1, t=0 ns, "
            "event "
            "0: it divides prompts into static chunks of the NPU, and this NPU takes any number of "
            "rows (its runtime has chunk_rows 0; where the SoC file has another one, take it, as "
            "on "
            "ryzen-ai-max-395: `--set soc.devices.npu.runtime=fastflowlm`)\n",
            of_chunks[i], of_chunks[i]);
        ck_assert_int_eq(s.status, EXIT_CHECK_FAILED);
        ck_assert_str_eq(s.err, line);
    }
}
END_TEST

/* At 200 C nothing is slowed: 0 of the time is lost, at full speed. Frames come by an event, so
 * that the machine's settings alone do not say that there are any. Without limit and frames there
 * is neither. */
START_TEST(conditional_metrics_are_compared_where_a_run_has_them)
{
    folder_enter();
    folder_put("screen.json", "{\"machine\": [{\"at_s\": 0, \"frames_per_s\": 30}]}");
    SCOPED(said_fini)
    struct said s =
        COMMANDED(cmd_compare, "--policy", "fcfs", "--policy", "edf", "--workload", "tweet:n=2",
                  "--set", "sim.power.limit=thermal", "--set", "sim.power.limit_c=200", "--machine",
                  "screen.json", "--metric", "throttle.lost_frac", "--metric", "throttle.speed_min",
                  "--metric", "graphics.frames", "--replications", "2", "--csv", "-q");
    ck_assert_int_eq(s.status, EXIT_OK);
    ck_assert_msg(strstr(s.out, "fcfs,throttle.lost_frac,0,") != NULL &&
                      strstr(s.out, "edf,throttle.speed_min,1,") != NULL &&
                      strstr(s.out, "edf,graphics.frames,") != NULL,
                  "%s", s.out);
    SCOPED(said_fini)
    struct said none =
        COMMANDED(cmd_compare, "--policy", "fcfs", "--policy", "edf", "--workload", "tweet:n=2",
                  "--metric", "graphics.frames", "--metric", "throttle.lost_frac", "-q");
    folder_leave();
    ck_assert_int_eq(none.status, EXIT_BAD_INPUT);
    ck_assert_str_eq(none.err, "xpusim: error: --metric graphics.frames: no run has it\n"
                               "xpusim: error: --metric throttle.lost_frac: no run has it\n");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("compare", .setup = setup, .teardown = teardown, .timeout_s = 120),
    TEST(results_do_not_depend_on_workers_or_order_of_policies),
    TEST(a_process_that_has_run_others_runs_the_same),
    TEST(a_million_replications_have_a_million_seeds),
    TEST(policies_meet_the_same_requests_and_replications_differ),
    TEST(the_first_replication_is_a_plain_run_with_the_seed),
    TEST(a_policy_that_crashes_costs_its_own_runs_only),
    TEST(json_holds_mean_interval_and_paired_difference),
    TEST(p_holm_is_over_what_is_judged_and_the_first_metric_comes_first),
    TEST(without_a_p_there_is_none_to_correct),
    TEST(nothing_is_found_where_nothing_is),
    TEST(equal_replications_are_one_observation),
    TEST(what_did_not_finish_is_warned_of),
    TEST(a_recording_without_requests_counts_for_nobody),
    TEST(a_comparison_without_requests_in_a_replication_is_no_failure),
    TEST(a_selection_by_what_no_run_has),
    TEST(what_all_replications_fail_of_is_said_once),
    TEST(conditional_metrics_are_compared_where_a_run_has_them),
};
SUITE_MAIN("compare", suite)
