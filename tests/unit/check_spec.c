/* Experiment files: which points there are, and what each asks for. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "experiments/sweep/spec.h"
#include "tests/helpers/suite.h"

static char path[64];
static struct spec spec;
static struct spec_point point;
static struct err err;

static void setup(void)
{
    (void)snprintf(path, sizeof path, "/tmp/xpusim-spec-%ld.json", (long)getpid());
    err = (struct err)ERR_INIT;
    memset(&spec, 0, sizeof spec);
    memset(&point, 0, sizeof point);
}

static void teardown(void)
{
    err_fini(&err);
    (void)remove(path);
}

static int load(const char *text, bool yes)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
    return spec_load(&spec, path, yes, &err);
}

static void load_good(const char *text)
{
    ck_assert_msg(load(text, false) == 0, "%s", err.n > 0 ? err.lines[0] : "no message");
}

static void go_to(uint64_t p)
{
    ck_assert_msg(spec_point(&spec, p, &point, &err) == 0, "%s", err.lines[0]);
}

START_TEST(the_last_dimension_runs_fastest)
{
    /* axes, then zip, then rows: 2 x 3 x 2 = 12 points; 11 = 1 * 6 + 2 * 2 + 1, 7 = 1 * 6 + 0 * 2 +
     * 1
     */
    load_good("{\"axes\": {\"policy\": [\"fcfs\", \"edf\"]},"
              " \"zip\": [{\"rate\": [1, 2, 3], \"soc\": [\"a\", \"b\", \"c\"]}],"
              " \"rows\": [{\"seed\": 5}, {\"seed\": 6, \"llm\": \"m\"}]}");
    ck_assert_uint_eq(spec.n_points, 12);
    go_to(11);
    ck_assert_str_eq(point.policy, "edf");
    ck_assert(point.arrivals.rate_scale == 3.0);
    ck_assert_str_eq(point.options.soc, "c");
    ck_assert_uint_eq(point.options.seed, 6);
    ck_assert_str_eq(point.options.llm, "m");
    go_to(6);
    ck_assert_str_eq(point.policy, "edf");
    ck_assert(point.arrivals.rate_scale == 1.0);
    ck_assert_str_eq(point.options.soc, "a");
    ck_assert_uint_eq(point.options.seed, 5);
    ck_assert_str_eq(point.options.llm, CONFIG_DEFAULT_LLM);
}
END_TEST

START_TEST(a_range_has_both_ends)
{
    /* 0.1 + 4 * 0.1 in floating point is 0.5 and must be among them: 5 values */
    load_good("{\"base\": {\"policy\": \"fcfs\"},"
              " \"axes\": {\"rate\": {\"from\": 0.1, \"to\": 0.5, \"step\": 0.1}}}");
    ck_assert_uint_eq(spec.n_points, 5);
    go_to(4);
    ck_assert_double_eq_tol(point.arrivals.rate_scale, 0.5, 1e-12);
}
END_TEST

START_TEST(keys_of_a_workload_and_of_a_policy_meet_the_varied_one)
{
    load_good("{\"base\": {\"workload\": \"mixed:duration_s=60,cv=2\", \"workload.duration_s\": 90,"
              " \"params.t_age_s\": 7},"
              " \"axes\": {\"policy\": [\"agent-xpu-v2:b_rf=3\", \"agent-xpu-v2\"]}}");
    go_to(0);
    ck_assert_str_eq(point.options.workload, "mixed:cv=2,duration_s=90");
    ck_assert_str_eq(point.policy, "agent-xpu-v2:b_rf=3,t_age_s=7");
    go_to(1);
    ck_assert_str_eq(point.policy, "agent-xpu-v2:t_age_s=7");
}
END_TEST

/* A file of lengths lies under a path of 2,000 letters, with a key behind it. */
START_TEST(texts_of_a_point_have_any_length)
{
    char file[2100];
    char text[3000];
    char want[2300];
    (void)snprintf(file, sizeof file, "/%02000d.csv", 1);
    (void)snprintf(text, sizeof text,
                   "{\"base\": {\"policy\": \"fcfs\", \"soc\": \"%.300s\","
                   " \"workload\": \"mixed:reactive=%s\"}, \"axes\": {\"workload.cv\": [2]}}",
                   file, file);
    (void)snprintf(want, sizeof want, "mixed:reactive=%s,cv=2", file);
    load_good(text);
    go_to(0);
    ck_assert_str_eq(point.options.workload, want);
    ck_assert_uint_eq(strlen(point.options.soc), 300);
}
END_TEST

START_TEST(dotted_paths_become_overrides)
{
    load_good("{\"base\": {\"policy\": \"fcfs\", \"sim.truth_sigma\": 0.25}, \"horizon_s\": 30,"
              " \"axes\": {\"sim.prefix_reuse\": [true, false]}}");
    go_to(1);
    ck_assert_uint_eq(point.options.n_sets, 3);
    ck_assert_str_eq(point.options.sets[0], "sim.truth_sigma=0.25");
    ck_assert_str_eq(point.options.sets[1], "sim.prefix_reuse=false");
    ck_assert_str_eq(point.options.sets[2], "sim.horizon_s=30");
}
END_TEST

START_TEST(settings_of_a_point_are_the_varied_ones)
{
    load_good("{\"base\": {\"policy\": \"fcfs\"}, \"axes\": {\"rate\": [1, 2.5]},"
              " \"rows\": [{\"sim.contention\": \"none\"}]}");
    cJSON *o = spec_point_settings(&spec, 1);
    char *text = cJSON_PrintUnformatted(o);
    ck_assert_str_eq(text, "{\"rate\":2.5,\"sim.contention\":\"none\"}");
    cJSON_free(text);
    cJSON_Delete(o);
}
END_TEST

START_TEST(a_million_runs_need_a_word)
{
    static const char text[] = "{\"base\": {\"policy\": \"fcfs\"}, \"replications\": 1000,"
                               " \"axes\": {\"seed\": {\"from\": 1, \"to\": 1000}}}";
    ck_assert_int_ne(load(text, false), 0);
    ck_assert_ptr_nonnull(
        strstr(err.lines[0], "1000000 runs (axes.seed 1000 x replications 1000)"));
    ck_assert_int_eq(load(text, true), 0);
    ck_assert_uint_eq(spec_runs(&spec, spec.replications), 1000000);
}
END_TEST

START_TEST(metrics_are_kept_by_pattern)
{
    load_good(
        "{\"base\": {\"policy\": \"fcfs\"}, \"metrics\": [\"reactive.*.mean\", \"energy_j\"]}");
    ck_assert(spec_keeps(&spec, "reactive.e2e_s.mean"));
    ck_assert(spec_keeps(&spec, "energy_j"));
    ck_assert(!spec_keeps(&spec, "reactive.e2e_s.p90"));
    ck_assert(!spec_keeps(&spec, "energy_j_per_token"));
}
END_TEST

START_TEST(all_errors_of_a_file_come_at_once)
{
    ck_assert_int_ne(load("{\"axes\": {\"speed\": [1, 2], \"rate\": [0, 1, -1]}, \"other\": 1,"
                          " \"replications\": 0}",
                          false),
                     0);
    /* speed is no setting (once, not per value); rate[0] stops that list; replications; other */
    ck_assert_uint_eq(err.n, 4);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all", .setup = setup, .teardown = teardown),
    TEST(the_last_dimension_runs_fastest),
    TEST(a_range_has_both_ends),
    TEST(keys_of_a_workload_and_of_a_policy_meet_the_varied_one),
    TEST(texts_of_a_point_have_any_length),
    TEST(dotted_paths_become_overrides),
    TEST(settings_of_a_point_are_the_varied_ones),
    TEST(a_million_runs_need_a_word),
    TEST(metrics_are_kept_by_pattern),
    TEST(all_errors_of_a_file_come_at_once),
};
SUITE_MAIN("spec", suite)
