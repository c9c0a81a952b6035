/* Critical paths of jobs: a fork with a join and a conversation by hand, and random graphs under
 * many policies. A job must take exactly as long as its path. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/conformance/scenario.h"
#include "experiments/run/runner.h"
#include "policies/registry.h"
#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/metrics/critical.h"
#include "tests/helpers/randomgraph.h"
#include "tests/helpers/randomrun.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

enum { GRAPHS = 300 };

static struct scenario sc;
static struct critical_path path;

/* On the toy iGPU a prompt of any length takes 5 ms and a decode 3 ms, in order of arrival, one at
 * a time. */
static void setup(void)
{
    scenario_init(&sc);
    scenario_cost(&sc, -1, OP_QKV, 5 - 3e-6, 0, 0);
    scenario_cost(&sc, -1, OP_LAYER, 3 - 1e-6, 0, 0);
    scenario_policy(&sc, policy_find("fcfs"), "");
    path = (struct critical_path){0};
}

static void teardown(void)
{
    trace_graph_free(sc.trace.graph);
    sc.trace.graph = NULL;
    scenario_fini(&sc);
}

static struct explain *run(uint32_t request_id)
{
    struct explain *x = explain_new(&sc.machine, EXPLAIN_ALL);
    explain_price(x, &sc.model);
    sc.setup.observers[sc.setup.n_observers++] = explain_observer(x);
    ck_assert_msg(scenario_again(&sc) == 0, "%s", sc.result.message);
    ck_assert_int_eq(critical_find(&sc.trace, x, request_id, &path), 0);
    return x;
}

static void same_ms(int64_t ns, double ms)
{
    ck_assert_msg(llabs(ns - MS(ms)) <= 20, "%lld ns, not %g ms", (long long)ns, ms);
}

/* parents: digits; by letters from `a` on they are followed by a gap of 5 ms. */
static void row(struct trace_builder *b, uint32_t id, uint32_t session, uint16_t turn,
                uint32_t output, double gap_ms, bool tool, bool background, const char *parents)
{
    struct trace_row r = {.request_id = id,
                          .session_id = session,
                          .turn = turn,
                          .input_tokens = 16,
                          .output_tokens = output,
                          .max_output_tokens = 16,
                          .arrival_ns = MS(gap_ms),
                          .after_tool = tool,
                          .next = TRACE_NO_ROW};
    struct trace_node node = trace_node_none();
    node.background = background;
    for (; *parents != '\0'; parents++) {
        node.parents = xgrow(node.parents, node.n_parents, sizeof *node.parents);
        bool later = *parents >= 'a';
        node.parents[node.n_parents++] =
            (struct trace_parent){(uint32_t)(*parents - (later ? 'a' : '0')), later ? MS(5) : 0};
    }
    trace_builder_add(b, &r, NULL);
    trace_builder_node(b, &node);
    free(node.parents);
}

static void build(struct trace_builder *b)
{
    struct err e = ERR_INIT;
    trace_fini(&sc.trace);
    ck_assert_msg(trace_build(b, false, "by hand", &sc.trace, &e) == 0, "%s",
                  e.n > 0 ? e.lines[0] : "");
    trace_builder_fini(b);
    err_fini(&e);
}

/* Request 0 runs 0 to 8 (a prompt and a decode). Its subagent 2 arrives at 9 and runs to 17.
 * Subagent 1 arrives at 10, waits 7 behind subagent 2, and runs to 22. Request 3 waits for both and
 * 4 more, and runs 26 to 31. Request 4, in the background, runs 31 to 39 and does not count.
 *
 * The path is 0, 1, 3: 8, a gap of 2, 12 of which 7 wait, a gap of 4, and 5. */
START_TEST(a_fork_and_a_join_by_hand)
{
    struct trace_builder b;
    trace_builder_init(&b);
    row(&b, 0, 0, 0, 2, 0, false, false, "");
    row(&b, 1, 1, 0, 1, 2, false, false, "0");
    row(&b, 2, 2, 0, 2, 1, true, false, "0");
    row(&b, 3, 3, 0, 1, 4, true, false, "12");
    row(&b, 4, 4, 0, 2, 20, true, true, "0");
    build(&b);
    struct explain *x = run(2);
    static const uint32_t steps[] = {0, 1, 3};
    ck_assert_uint_eq(path.n, 5);
    ck_assert_uint_eq(path.n_steps, 3);
    for (int i = 0; i < 3; i++) {
        const struct critical_request *r = &path.v[path.steps[i]];
        ck_assert_uint_eq(sc.trace.rows[r->row].request_id, steps[i]);
        ck_assert(r->on_path && r->why->request_id == steps[i]);
    }
    ck_assert(path.complete);
    same_ms(path.end_ns - path.first_ns, 31);
    same_ms(path.ns[EXPLAIN_COMPUTE] + path.ns[EXPLAIN_HOST], 18);
    same_ms(path.ns[EXPLAIN_QUEUE_SAME], 7);
    same_ms(path.gap_ns[CRITICAL_GAP_THINK], 2);
    same_ms(path.gap_ns[CRITICAL_GAP_TOOL], 4);
    ck_assert_int_eq(path.gap_ns[CRITICAL_GAP_START], 0);
    const struct explanation *one = path.v[path.steps[1]].why;
    ck_assert_uint_eq(one->n_blockers, 1);
    ck_assert_uint_eq(one->blockers[0].request_id, 2); /* the other subagent was in the way */
    same_ms(one->blockers[0].queue_ns, 7);
    ck_assert_int_eq(critical_find(&sc.trace, x, 99, &(struct critical_path){0}), -ENOENT);
    explain_free(x);
}
END_TEST

/* There are two roots. Request 1 comes 3 ms after 0, waits 5 until it is served, and is the one
 * that 2 waits for. So the path begins with it, 3 ms after the job did: 3, 10, 1 and 5. */
START_TEST(a_path_may_begin_after_the_job)
{
    struct trace_builder b;
    trace_builder_init(&b);
    row(&b, 0, 0, 0, 2, 0, false, false, "");
    row(&b, 1, 1, 0, 1, 3, false, false, "");
    row(&b, 2, 2, 0, 1, 1, true, false, "01");
    build(&b);
    struct explain *x = run(0);
    ck_assert_uint_eq(path.n_steps, 2);
    ck_assert_uint_eq(sc.trace.rows[path.v[path.steps[0]].row].request_id, 1);
    same_ms(path.gap_ns[CRITICAL_GAP_START], 3);
    same_ms(path.ns[EXPLAIN_QUEUE_SAME], 5);
    same_ms(path.end_ns - path.first_ns, 19);
    explain_free(x);
}
END_TEST

/* Requests 1 and 2 run 5 to 10 and 10 to 15. Request 3 waits for 1 and 5 ms more, and for 2. Both
 * are over at 15 ms, and the first in the trace is on the path, whichever is named first. */
START_TEST(of_two_that_are_over_at_once_the_first_is_on_the_path)
{
    struct trace_builder b;
    trace_builder_init(&b);
    row(&b, 0, 0, 0, 1, 0, false, false, "");
    row(&b, 1, 1, 0, 1, 0, false, false, "0");
    row(&b, 2, 2, 0, 1, 0, false, false, "0");
    row(&b, 3, 3, 0, 1, 0, true, false, _i == 0 ? "b2" : "2b");
    build(&b);
    struct explain *x = run(3);
    ck_assert_uint_eq(path.n_steps, 3);
    ck_assert_uint_eq(sc.trace.rows[path.v[path.steps[1]].row].request_id, 1);
    ck_assert_int_eq(path.end_ns - path.first_ns, MS(20));
    explain_free(x);
}
END_TEST

/* Request 0 runs 0 to 8. Request 1 comes 2 ms later and runs 10 to 15. It starts a job, but request
 * 2 waits for both, 4 ms, so all three are one job. Its path has all of them: 8 + 2 + 5 + 4 + 5. */
START_TEST(one_that_starts_a_job_may_be_inside_it)
{
    struct trace_builder b;
    trace_builder_init(&b);
    row(&b, 0, 0, 0, 2, 0, false, false, "");
    row(&b, 1, 1, 0, 1, 2, false, false, "0");
    b.v[1].node.starts_job = true;
    row(&b, 2, 2, 0, 1, 4, false, false, "01");
    build(&b);
    struct explain *x = run(0);
    ck_assert_uint_eq(path.n_steps, 3);
    same_ms(path.end_ns - path.first_ns, 24);
    same_ms(path.gap_ns[CRITICAL_GAP_THINK], 6);
    ck_assert_int_eq(path.gap_ns[CRITICAL_GAP_START], 0);
    explain_free(x);
}
END_TEST

/* Request 0 runs 0 to 8, and its end cancels request 1, which would start the next job at 16. So
 * request 2 comes 4 ms after that, at 20, and runs to 25. It also waits for request 3, which has
 * come at 1 and runs 8 to 13, so that it could have come at 17. Nothing in the job says why it came
 * at 20: the path begins with it, 19 ms after the job did. */
START_TEST(a_path_begins_behind_what_never_arrived_after_another_job)
{
    struct trace_builder b;
    trace_builder_init(&b);
    row(&b, 0, 0, 0, 2, 0, false, false, "");
    row(&b, 1, 1, 0, 1, 3, false, false, "a");
    b.v[1].node.starts_job = true;
    b.v[1].node.ends_with = 0;
    row(&b, 2, 2, 0, 1, 4, false, false, "13");
    row(&b, 3, 3, 0, 1, 1, false, false, "");
    build(&b);
    struct explain *x = run(2);
    ck_assert_uint_eq(path.n_steps, 1);
    ck_assert_uint_eq(sc.trace.rows[path.v[path.steps[0]].row].request_id, 2);
    same_ms(path.end_ns - path.first_ns, 24);
    same_ms(path.gap_ns[CRITICAL_GAP_START], 19);
    explain_free(x);
}
END_TEST

/* In a trace without a graph a session is a job. Its turns take 5 and 8 ms, and a person thinks for
 * 100. */
START_TEST(a_conversation_is_a_job)
{
    static const struct scenario_request q[] = {{RT, 0, 16, 1, 7, 0}, {RT, 0.1, 16, 2, 7, 0}};
    scenario_trace(&sc, q, 2);
    struct explain *x = run(1);
    ck_assert_uint_eq(path.n_steps, 2);
    same_ms(path.end_ns - path.first_ns, 113);
    same_ms(path.gap_ns[CRITICAL_GAP_THINK], 100);
    explain_free(x);
}
END_TEST

/* ---- random graphs ---- */

/* Each step but the first must arrive one gap after the end of the step before. No request that it
 * waited for may end so late that it could not have arrived. */
static void check_steps(const struct critical_path *p)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct critical_request *r = &p->v[p->steps[i]];
        bool linked = i == 0;
        for (size_t k = 0; k < p->n_edges; k++) {
            const struct critical_edge *e = &p->edges[k];
            if (e->to == p->steps[i]) {
                int64_t due_ns = p->v[e->from].end_ns + e->gap_ns;
                ck_assert_int_le(due_ns, r->arrival_ns);
                linked = linked || (e->from == p->steps[i - 1] && due_ns == r->arrival_ns);
            }
        }
        ck_assert(linked);
    }
}

static void check_run(uint64_t seed, const char *policy, uint32_t *steps, uint32_t *jobs)
{
    static struct randomrun how;
    static struct config c;
    static struct config_policy p;
    struct trace t, unused;
    struct runner_result r;
    struct err e = ERR_INIT;
    randomgraph_make(seed, &t);
    how = (struct randomrun){.soc = "core-ultra-7-155h", .llm = "llama-3.2-1b", .seed = seed};
    (void)snprintf(how.policy, sizeof how.policy, "%s", policy);
    (void)snprintf(how.workload, sizeof how.workload, "w1:n=1");
    ck_assert(randomrun_load(&how, &c, &p, &unused));
    trace_fini(&unused);
    struct explain *x = explain_new(&c.soc.machine, EXPLAIN_ALL);
    explain_price(x, &c.truth.model);
    struct runner_options opt = {.observer = explain_observer(x)};
    ck_assert_int_eq(runner_run(&c, &p, &t, seed, &opt, &r, &e), 0);
    double sum_s = 0.0;
    double n = 0.0;
    for (uint32_t job = 0; job < t.graph->n_jobs; job++) {
        uint32_t row = 0;
        while (t.graph->job[row] != job) {
            row++;
        }
        if (critical_find(&t, x, t.rows[row].request_id, &path) != 0) {
            continue;
        }
        int64_t ns = 0;
        for (int k = 0; k < EXPLAIN_CAUSE_COUNT; k++) {
            ns += path.ns[k];
        }
        for (int k = 0; k < CRITICAL_GAPS; k++) {
            ck_assert_int_ge(path.gap_ns[k], 0);
            ns += path.gap_ns[k];
        }
        ck_assert_ptr_nonnull(path.v[path.steps[0]].why);
        ck_assert_int_eq(ns, path.end_ns - path.first_ns);
        check_steps(&path);
        sum_s += path.complete ? units_s_from_ns(ns) : 0.0;
        n += path.complete;
        *steps += (uint32_t)path.n_steps;
        *jobs += 1;
    }
    double jobs_n = metric_list_find(&r.metrics, "all.job_s.n")->value;
    double mean_s = metric_list_find(&r.metrics, "all.job_s.mean")->value;
    ck_assert_double_eq(n, jobs_n);
    ck_assert(n == 0.0 || fabs(mean_s * n - sum_s) <= 1e-9 * n);
    runner_result_fini(&r);
    config_fini(&c);
    explain_free(x);
    trace_fini(&t);
    err_fini(&e);
}

START_TEST(jobs_of_random_graphs_take_what_their_paths_take)
{
    static const char *const policies[] = {"fcfs",         "edf",     "openvino-cb",
                                           "agent-xpu-v2", "vllm-v1", "time-share"};
    uint32_t steps = 0;
    uint32_t jobs = 0;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        check_run(seed, policies[seed % 6], &steps, &jobs);
    }
    printf("critical paths: %u jobs, %u steps\n", jobs, steps);
    ck_assert_uint_gt(steps, jobs + jobs / 2);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(a_fork_and_a_join_by_hand),
    TEST(a_path_may_begin_after_the_job),
    LOOP(of_two_that_are_over_at_once_the_first_is_on_the_path, 2),
    TEST(one_that_starts_a_job_may_be_inside_it),
    TEST(a_path_begins_behind_what_never_arrived_after_another_job),
    TEST(a_conversation_is_a_job),
    CASE("random", .timeout_s = 120),
    TEST(jobs_of_random_graphs_take_what_their_paths_take),
};
SUITE_MAIN("explain_jobs", suite)
