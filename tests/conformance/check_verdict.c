/* The verdict judges the load, not the order. Policies that always work while there is work, and
 * order it differently, get the same one on the same trace, because all leave about as much work
 * behind at every instant. These are whole runs of the shipped machine. */
#include <stdio.h>
#include <stdlib.h>

#include "experiments/run/runner.h"
#include "tests/helpers/randomrun.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

static const char *const policies[] = {"openvino-cb", "edf", "vtc"};
enum { POLICIES = 3 };

struct judged {
    enum metrics_verdict verdict;
    double drain_s, window_s, number, drawn_j;
};

static struct judged judge(const char *policy, const char *workload)
{
    static struct randomrun run;
    static struct config c;
    static struct config_policy p;
    struct trace t;
    struct runner_result r;
    struct err e = ERR_INIT;
    run = (struct randomrun){.soc = "core-ultra-5-125h", .llm = "llama-3.2-3b", .seed = 1};
    (void)snprintf(run.policy, sizeof run.policy, "%s", policy);
    (void)snprintf(run.workload, sizeof run.workload, "%s", workload);
    ck_assert(randomrun_load(&run, &c, &p, &t));
    struct runner_options opt = {0};
    ck_assert_int_eq(runner_run(&c, &p, &t, run.seed, &opt, &r, &e), 0);
    struct judged j = {r.verdict, metric_list_find(&r.metrics, "drain_s")->value,
                       metric_list_find(&r.metrics, "arrival_window_s")->value,
                       metric_list_find(&r.metrics, "backlog.verdict")->value,
                       metric_list_find(&r.metrics, "battery.drawn_j")->value};
    runner_result_fini(&r);
    trace_fini(&t);
    config_fini(&c);
    err_fini(&e);
    return j;
}

/* All policies must give this verdict. Returns the largest time to drain divided by the
 * smallest. */
static double all_say(enum metrics_verdict want, const char *workload)
{
    double least = HUGE_VAL;
    double most = 0.0;
    for (int i = 0; i < POLICIES; i++) {
        struct judged j = judge(policies[i], workload);
        printf("verdict: %s, %s: %s, %.0f s to drain after %.0f s\n", workload, policies[i],
               metrics_verdict_names[j.verdict], j.drain_s, j.window_s);
        ck_assert_int_eq((int)j.verdict, (int)want);
        least = fmin(least, j.drain_s);
        most = fmax(most, j.drain_s);
    }
    return most / least;
}

/* Too short a run may leave one order without a verdict, but no two contradict each other. */
static void nobody_says(enum metrics_verdict wrong, const char *workload)
{
    double least = HUGE_VAL;
    double most = 0.0;
    for (int i = 0; i < POLICIES; i++) {
        struct judged j = judge(policies[i], workload);
        ck_assert_int_ne((int)j.verdict, (int)wrong);
        least = fmin(least, j.drain_s);
        most = fmax(most, j.drain_s);
    }
    ck_assert_double_lt(most, 1.1 * least);
}

/* 45 requests a minute come to a machine that serves about 27. */
START_TEST(an_overload_is_one_for_every_order)
{
    double spread = all_say(METRICS_OVERLOADED,
                            "mixed:reactive_per_min=15,proactive_per_min=30,duration_s=600");
    ck_assert_double_lt(spread, 1.1);
    all_say(METRICS_STABLE, "mixed:reactive_per_min=1,proactive_per_min=2,duration_s=600");
}
END_TEST

/* The load is as in the Mooncake trace: bursts, prompts of many thousand tokens, short answers.
 * There are few requests, each of more than a minute, so the number in the system says little. Half
 * an hour of them is too short for a verdict under every order, and an hour and a half are not. */
#define LONG_PROMPTS "cv=2,arrival=gamma,reactive_input_scale=8,output_scale=0.5"

START_TEST(long_prompts_in_bursts_are_judged_alike)
{
    nobody_says(METRICS_STABLE,
                "mixed:reactive_per_min=2.5,proactive_per_min=1.25,duration_s=1800," LONG_PROMPTS);
    all_say(METRICS_OVERLOADED,
            "mixed:reactive_per_min=2.5,proactive_per_min=1.25,duration_s=5400," LONG_PROMPTS);
    all_say(METRICS_STABLE,
            "mixed:reactive_per_min=0.2,proactive_per_min=0.1,duration_s=5400," LONG_PROMPTS);
}
END_TEST

/* Three users who wait for their answers cannot leave more than three requests behind. */
START_TEST(a_closed_loop_of_few_users_is_stable)
{
    all_say(METRICS_STABLE,
            "mixed:arrival=closed,users=3,think_s=5,proactive_per_min=0,duration_s=900");
}
END_TEST

/* 1 kJ does not last for 15 minutes on a machine that draws over 3 W at rest, and 1 MJ does, at
 * below 100 W. The backlog of a run that was cut says nothing of its load. */
START_TEST(a_run_that_an_empty_battery_ended_says_so)
{
    const double charge_j[] = {1e3, 1e6};
    for (int i = 0; i < 2; i++) {
        char text[256];
        const char *path = tempfile_make(".json");
        (void)snprintf(text, sizeof text,
                       "{\"duration_s\": 900, \"machine\": [{\"at_s\": 0, \"battery_j\": %g, "
                       "\"battery_full_j\": 1e6, \"source\": \"battery\"}]}",
                       charge_j[i]);
        tempfile_put(text);
        for (int k = 0; k < POLICIES; k++) {
            struct judged j = judge(policies[k], path);
            ck_assert_int_eq(j.verdict == METRICS_BATTERY_EMPTY, i == 0);
            ck_assert_double_eq(j.number, (double)j.verdict);
            ck_assert(i == 0 ? fabs(j.drawn_j - 1e3) < 1e-3 : j.drawn_j > 1e3);
        }
        tempfile_remove();
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("verdict", .timeout_s = 60),
    TEST(an_overload_is_one_for_every_order),
    TEST(long_prompts_in_bursts_are_judged_alike),
    TEST(a_closed_loop_of_few_users_is_stable),
    TEST(a_run_that_an_empty_battery_ended_says_so),
};
SUITE_MAIN("verdict", suite)
