/* A run that several machines served: the queue's rules against simulations of one machine. */
#include <string.h>

#include "experiments/validation/run_score.h"
#include "sim/base/arena.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

#define MAX_N 8

static struct config config;
static struct config_policy policy;
static struct err err;

static void setup(void)
{
    struct config_options o = config_options_default();
    err = (struct err)ERR_INIT;
    o.soc = "rtx-pro-6000";
    o.llm = "llama-3.1-8b-bf16";
    ck_assert_int_eq(config_load(&config, &o, &err), 0);
    ck_assert_int_eq(config_policy_parse(&policy, "vllm-v1:max_num_seqs=1", &err), 0);
}

static void teardown(void)
{
    config_fini(&config);
    err_fini(&err);
}

struct wanted {
    double arrival_s;
    uint32_t input_tokens, output_tokens;
};

/* Returns the latencies of the requests on `replicas` machines. */
static void replay(const struct wanted *w, uint32_t n, uint32_t replicas, int queue,
                   struct measured_latency out[MAX_N])
{
    struct measured_run run = {.replicas = {replicas, queue}};
    struct trace_builder b;
    trace_builder_init(&b);
    for (uint32_t i = 0; i < n; i++) {
        struct trace_row row = {.arrival_ns = (int64_t)(1e9 * w[i].arrival_s),
                                .request_id = i,
                                .session_id = i,
                                .input_tokens = w[i].input_tokens,
                                .output_tokens = w[i].output_tokens,
                                .max_output_tokens = 1024,
                                .next = TRACE_NO_ROW};
        trace_builder_add(&b, &row, NULL);
    }
    ck_assert_int_eq(trace_build(&b, true, "run", &run.trace, &err), 0);
    trace_builder_fini(&b);
    ck_assert_int_eq(run_replay(&config, &policy, &run, n, 1, out, &err), 0);
    trace_fini(&run.trace);
}

/* Pairs of equal requests come at one instant. Each replica serves one of every pair, as one
 * machine serves the run of single ones. One machine for all of them is slower. */
START_TEST(round_robin_deals_in_turn)
{
    struct wanted pairs[MAX_N];
    struct wanted singles[MAX_N / 2];
    struct measured_latency two[MAX_N];
    struct measured_latency one[MAX_N];
    struct measured_latency all[MAX_N];
    for (uint32_t i = 0; i < MAX_N; i++) {
        uint32_t k = i / 2;
        pairs[i] = (struct wanted){0.3 * k, 100 + 400 * k, 20 + 10 * (k % 3)};
        singles[k] = pairs[i];
    }
    replay(pairs, MAX_N, 2, MEASURED_ROUND_ROBIN, two);
    replay(singles, MAX_N / 2, 1, MEASURED_ROUND_ROBIN, one);
    replay(pairs, MAX_N, 1, MEASURED_ROUND_ROBIN, all);
    for (uint32_t i = 0; i < MAX_N; i++) {
        ck_assert_double_eq(two[i].e2e_s, one[i / 2].e2e_s);
        ck_assert_double_eq(two[i].ttft_s, one[i / 2].ttft_s);
    }
    ck_assert_double_gt(all[1].e2e_s, 1.9 * two[1].e2e_s);
}
END_TEST

/* A long answer occupies the first replica, and a short one the second, which is done when the
 * third request arrives. Round-robin sends the third to the long answer, where it waits. The rule
 * of the fewest requests does not. The fourth then finds one request at each, and is sent to the
 * first. */
START_TEST(the_fewest_unfinished_requests_decide)
{
    const struct wanted w[4] = {{0.0, 100, 900}, {0.001, 100, 5}, {1.0, 100, 5}, {1.001, 100, 5}};
    struct measured_latency turn[MAX_N];
    struct measured_latency fewest[MAX_N];
    struct measured_latency alone[MAX_N];
    replay(w, 1, 1, MEASURED_ROUND_ROBIN, alone); /* it lasts beyond the third arrival */
    ck_assert_double_gt(alone[0].e2e_s, 2.0);
    replay(&w[2], 1, 1, MEASURED_ROUND_ROBIN, alone);
    replay(w, 4, 2, MEASURED_ROUND_ROBIN, turn);
    replay(w, 4, 2, MEASURED_LEAST_OUTSTANDING, fewest);
    ck_assert_double_eq_tol(fewest[1].e2e_s, alone[0].e2e_s, 1e-6);
    ck_assert_double_eq_tol(fewest[2].e2e_s, alone[0].e2e_s, 1e-6);
    ck_assert_double_gt(turn[2].e2e_s, 1.0);
    ck_assert_double_gt(fewest[3].e2e_s, 1.0);
    ck_assert_double_eq_tol(turn[3].e2e_s, alone[0].e2e_s, 1e-6);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("run_replicas", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(round_robin_deals_in_turn),
    TEST(the_fewest_unfinished_requests_decide),
};
SUITE_MAIN("run_replicas", suite)
