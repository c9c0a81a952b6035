/* Rates that workloads offer by themselves, computed by hand: compare --load and search. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/config.h"
#include "sim/base/json.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

/* A job every 10 s until 100 s, of so many turns that come 30 s after the answer before them. */
static void jobs_put(const char *turns)
{
    OWNED char *text =
        xformat("{\"duration_s\": 100, \"clients\": [{\"name\": \"a\", \"every_s\": 10, \"turns\": "
                "%s, \"new_tokens\": 20, \"prompt_tokens\": 50, \"answer_tokens\": 4, \"gap_s\": "
                "30}]}",
                turns);
    folder_put("jobs.json", text);
}

static struct said loaded(void)
{
    return COMMANDED(cmd_compare, "--policy", "edf", "--policy", "fcfs", "--workload", "jobs.json",
                     "--load", "0.5", "--replications", "2", "--json", "--jobs", "1");
}

/* Ten jobs begin in 100 s: 6 a minute. Each brings its turns, which the workload offers, too:
 * that they come later than the first ones does not make them fewer. The rate of a load is that
 * share of what the baseline can do. */
START_TEST(later_turns_are_offered_as_often_as_first_ones)
{
    static const double turns[] = {1, 4};
    for (int i = 0; i < 2; i++) {
        folder_enter();
        jobs_put(i == 0 ? "1" : "4");
        SCOPED(said_fini) struct said s = loaded();
        folder_leave();
        ck_assert_msg(s.status == EXIT_OK, "%s", s.err);
        SCOPED(json_drop) cJSON *tree = cJSON_Parse(s.out);
        double offered = json_number(tree, "offered_req_per_min");
        ck_assert_double_eq_tol(offered, 6.0 * turns[i], 1e-6);
        const cJSON *load = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "loads"), 0);
        ck_assert_double_eq_tol(json_number(load, "rate_scale"),
                                0.5 * json_number(tree, "capacity_req_per_min") / offered, 1e-9);
    }
}
END_TEST

/* A recorded trace has a rate of its own, too: five requests of which one comes every 10 s are four
 * gaps in 40 s, 6 a minute. The run that measures the capacity has them closer, and that is no rate
 * of theirs. */
START_TEST(a_recorded_trace_offers_its_own_rate)
{
    folder_enter();
    folder_put("t.csv", "# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,"
                        "input_tokens,output_tokens,prefix_tokens\n0,0,0,reactive,3,,50,4,0\n"
                        "1,1,0,reactive,13,,50,4,0\n2,2,0,reactive,23,,50,4,0\n"
                        "3,3,0,reactive,33,,50,4,0\n4,4,0,reactive,43,,50,4,0\n");
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_compare, "--policy", "edf", "--policy", "fcfs", "--trace",
                              "t.csv", "--load", "0.5", "--json", "--jobs", "1");
    folder_leave();
    ck_assert_msg(s.status == EXIT_OK, "%s", s.err);
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(s.out);
    ck_assert_double_eq_tol(json_number(tree, "offered_req_per_min"), 6.0, 1e-6);
}
END_TEST

/* A job of four requests every minute, for a minute: it comes at 0, and nothing else. That is four
 * a minute, though there is no gap between two jobs to tell. */
START_TEST(one_job_in_the_time_of_one_is_a_rate)
{
    folder_enter();
    folder_put("jobs.json", "{\"duration_s\": 60, \"clients\": [{\"name\": \"a\", \"every_s\": 60, "
                            "\"turns\": 4, \"new_tokens\": 20, \"prompt_tokens\": 50, "
                            "\"answer_tokens\": 4, \"gap_s\": 30}]}");
    SCOPED(said_fini) struct said s = loaded();
    folder_leave();
    ck_assert_msg(s.status == EXIT_OK, "%s", s.err);
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(s.out);
    ck_assert_double_eq_tol(json_number(tree, "offered_req_per_min"), 4.0, 1e-9);
}
END_TEST

/* A document of a search has tests at the factors 1 and 2, with so many requests a minute. */
static void has_rates(const cJSON *search, double per_min)
{
    const cJSON *of = cJSON_GetObjectItem(cJSON_GetObjectItem(search, "policies"), "fcfs");
    const cJSON *tests = cJSON_GetObjectItem(of, "tests");
    ck_assert_int_ge(cJSON_GetArraySize(tests), 2);
    for (int i = 0; i < 2; i++) {
        const cJSON *t = cJSON_GetArrayItem(tests, i);
        ck_assert_double_eq(json_number(t, "rate_scale"), i + 1.0);
        ck_assert_double_eq_tol(json_number(t, "req_per_min"), per_min * (i + 1), 1e-9);
    }
}

/* A search runs these ten jobs: 6 a minute at the workload's own rate, 20 in 100 s at twice that.
 * At a point of a suite with twice the rate it begins at 12 a minute. */
START_TEST(a_search_says_how_many_come_in_the_workloads_time)
{
    folder_enter();
    jobs_put("1");
    folder_put("s.json",
               "{\"name\": \"s\", \"suite\": {\"about\": \"a\", \"references\": [\"fcfs\"]}, "
               "\"rows\": [{\"point\": \"x\", \"workload\": \"jobs.json\", \"rate\": 2}], "
               "\"metrics\": [\"energy_j\"]}");
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_search, "--policy", "fcfs", "--workload", "jobs.json", "--slo",
                              "reactive.e2e_s.p90<=100", "--replications", "3", "--precision",
                              "0.9", "--json", "--jobs", "1");
    SCOPED(said_fini)
    struct said suite = COMMANDED(cmd_search, "--policy", "fcfs", "--suite", "./s.json", "--slo",
                                  "reactive.e2e_s.p90<=100", "--replications", "3", "--precision",
                                  "0.9", "--json", "--jobs", "1");
    folder_leave();
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(s.out);
    has_rates(tree, 6.0);
    SCOPED(json_drop) cJSON *points = cJSON_Parse(suite.out);
    ck_assert_msg(points != NULL, "%s", suite.err);
    has_rates(cJSON_GetArrayItem(cJSON_GetObjectItem(points, "points"), 0), 12.0);
}
END_TEST

/* Two a minute for half a minute: of eight seeds some have no request. These end no search, and
 * count with half a minute each in the rate. A load takes the first three seeds. */
START_TEST(seeds_without_requests_have_their_time)
{
    static const char load[] = "mixed:reactive_per_min=2,proactive_per_min=0,duration_s=30";
    SCOPED(err_fini) struct err e = ERR_INIT;
    double arrived[8];
    double all = 0.0;
    for (uint32_t i = 0; i < 8; i++) {
        SCOPED(trace_fini) struct trace t = {0};
        int rc = trace_generate(load, config_seed(2, i), 1.0, &t, &e);
        ck_assert(rc == (t.n > 0 ? 0 : -ENODATA));
        all += arrived[i] = (double)t.n;
    }
    ck_assert(arrived[0] > 0.0 && (arrived[1] == 0.0 || arrived[2] == 0.0));
    folder_enter();
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_search, "--policy", "fcfs", "--workload", load, "--seed", "2",
                              "--slo", "reactive.e2e_s.mean<=1000", "--replications", "8",
                              "--precision", "9", "--json", "--jobs", "1");
    SCOPED(said_fini)
    struct said c = COMMANDED(cmd_compare, "--policy", "fcfs", "--workload", load, "--seed", "2",
                              "--load", "0.5", "--replications", "8", "--json", "--jobs", "1");
    SCOPED(said_fini)
    struct said none = COMMANDED(cmd_compare, "--policy", "fcfs", "--workload", load, "--seed", "2",
                                 "--load", "0.01", "--replications", "2", "--jobs", "1");
    folder_leave();
    ck_assert_ptr_nonnull(strstr(none.out, "  2 of 2 replications without requests, "));
    ck_assert_ptr_null(strstr(none.out, "the same run"));
    ck_assert_int_eq(none.status, EXIT_CHECK_FAILED);
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(s.out);
    const cJSON *of = cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "policies"), "fcfs");
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(of, "tests"), 0);
    ck_assert_msg(cJSON_IsString(cJSON_GetObjectItem(first, "outcome")), "%s%s", s.out, s.err);
    ck_assert_str_eq(cJSON_GetObjectItem(first, "outcome")->valuestring, "met");
    ck_assert_double_eq_tol(json_number(first, "req_per_min"), all / 4.0, 1e-9);
    SCOPED(json_drop) cJSON *loads = cJSON_Parse(c.out);
    ck_assert_msg(c.status == EXIT_OK, "%s", c.err);
    ck_assert_double_eq_tol(json_number(loads, "offered_req_per_min"),
                            (arrived[0] + arrived[1] + arrived[2]) / 1.5, 1e-9);
}
END_TEST

/* No machine does a hundred prompts of 2,000 tokens with 1 J, and its rate until then is no
 * capacity. */
START_TEST(an_empty_battery_leaves_no_capacity)
{
    folder_enter();
    folder_put("jobs.json",
               "{\"duration_s\": 100, \"machine\": [{\"at_s\": 0, \"battery_j\": 1, "
               "\"battery_full_j\": 1, \"source\": \"battery\"}], \"clients\": [{\"name\": \"a\", "
               "\"every_s\": 1, \"prompt_tokens\": 2000, \"answer_tokens\": 4}]}");
    SCOPED(said_fini) struct said s = loaded();
    folder_leave();
    ck_assert_int_eq(s.status, EXIT_CHECK_FAILED);
    ck_assert_msg(strstr(s.err, "--load: the battery is empty before the capacity of edf is "
                                "measured") != NULL,
                  "%s", s.err);
}
END_TEST

START_TEST(a_closed_loop_has_no_rate)
{
    folder_enter();
    folder_put("jobs.json", "{\"duration_s\": 100, \"clients\": [{\"name\": \"a\", \"think_s\": 5, "
                            "\"prompt_tokens\": 50, \"answer_tokens\": 4}]}");
    SCOPED(said_fini) struct said s = loaded();
    folder_leave();
    ck_assert_int_eq(s.status, EXIT_CHECK_FAILED);
    ck_assert_msg(strstr(s.err, "--load: this workload has no rate") != NULL &&
                      strstr(s.err, "--workload coding-agent:rate=2") != NULL,
                  "%s", s.err);
}
END_TEST

/* A person asks again 5 s after an answer, and a mail comes every 10 s. A load makes the mails come
 * faster, and not the person. So a machine that is asked for all at once still waits for the
 * person, and its rate then is no capacity. */
START_TEST(a_closed_loop_among_others_leaves_no_rate)
{
    folder_enter();
    folder_put("jobs.json",
               "{\"duration_s\": 100, \"clients\": [{\"name\": \"a\", \"think_s\": 5, "
               "\"prompt_tokens\": 50, \"answer_tokens\": 4}, {\"name\": \"b\", \"every_s\": 10, "
               "\"prompt_tokens\": 50, \"answer_tokens\": 4}]}");
    SCOPED(said_fini) struct said s = loaded();
    SCOPED(said_fini)
    struct said users = COMMANDED(cmd_compare, "--policy", "edf", "--workload",
                                  "mixed:arrival=closed,users=2,duration_s=60", "--load", "0.5",
                                  "--replications", "2", "--jobs", "1");
    folder_leave();
    ck_assert_int_eq(s.status, EXIT_CHECK_FAILED);
    ck_assert_msg(strstr(s.err, "clients of a closed loop wait for answers") != NULL, "%s", s.err);
    ck_assert_msg(strstr(users.err, "clients of a closed loop wait for answers") != NULL, "%s",
                  users.err);
}
END_TEST

/* A point of a suite that has no load keeps no other one from its loads. */
START_TEST(a_point_without_a_load_is_one_point)
{
    folder_enter();
    folder_put(
        "s.json",
        "{\"name\": \"s\", \"suite\": {\"about\": \"a\", \"references\": [\"fcfs\"]}, \"rows\": "
        "[{\"point\": \"loop\", \"workload\": \"mixed:arrival=closed,users=2,duration_s=60\"}, "
        "{\"point\": \"open\", \"workload\": \"mixed:duration_s=120\"}], "
        "\"replications\": 2, \"metrics\": [\"all.e2e_s.mean\"]}");
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_compare, "--policy", "edf", "--policy", "fcfs", "--suite",
                              "s.json", "--load", "0.5", "--json", "--jobs", "1");
    folder_leave();
    ck_assert_int_eq(s.status, EXIT_CHECK_FAILED);
    ck_assert_msg(strstr(s.err, "point loop: --load: this workload has no rate") != NULL, "%s",
                  s.err);
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(s.out);
    const cJSON *open = cJSON_GetArrayItem(json_member(tree, "points"), 1);
    ck_assert_msg(json_number(open, "capacity_req_per_min") > 0.0, "%s", s.err);
    ck_assert_int_eq(cJSON_GetArraySize(json_member(open, "loads")), 1);
}
END_TEST

/* Pauses are no work. An edf of one sequence serves one request at a time, so its capacity is what
 * requests without company take: 60 s over their mean. Nobody waits for the pauses of 30 s, which
 * are 90 s of each job. The last job alone leaves the machine idle in between. */
START_TEST(capacity_is_work_without_pauses)
{
    folder_enter();
    jobs_put("4");
    SCOPED(said_fini)
    struct said load =
        COMMANDED(cmd_compare, "--policy", "edf:max_batch=1", "--workload", "jobs.json", "--load",
                  "0.5", "--replications", "1", "--json", "--jobs", "1");
    SCOPED(said_fini)
    struct said alone = COMMANDED(cmd_run, "--policy", "edf:max_batch=1", "--workload",
                                  "jobs.json:rate=0.05", "--json");
    folder_leave();
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(load.out);
    SCOPED(json_drop) cJSON *one = cJSON_Parse(alone.out);
    double capacity = json_number(tree, "capacity_req_per_min");
    double most = 60.0 / json_number(json_member(one, "metrics"), "all.e2e_s.mean");
    ck_assert_msg(capacity > 0.9 * most && capacity <= most * (1.0 + 1e-9), "%g of %g: %s",
                  capacity, most, load.err);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(later_turns_are_offered_as_often_as_first_ones),
    TEST(a_recorded_trace_offers_its_own_rate),
    TEST(one_job_in_the_time_of_one_is_a_rate),
    TEST(a_search_says_how_many_come_in_the_workloads_time),
    TEST(seeds_without_requests_have_their_time),
    TEST(an_empty_battery_leaves_no_capacity),
    TEST(a_closed_loop_has_no_rate),
    TEST(a_closed_loop_among_others_leaves_no_rate),
    TEST(a_point_without_a_load_is_one_point),
    TEST(capacity_is_work_without_pauses),
};
SUITE_MAIN("capacity", suite)
