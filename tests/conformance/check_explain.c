/* Explanations: exact sums under every policy, and causes against times computed by hand. */
#include <stdio.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "experiments/report/interference.h"
#include "policies/registry.h"
#include "sim/metrics/explain.h"
#include "tests/helpers/suite.h"

enum { RUNS = 100, MAX_REQUESTS = 16 };

static struct scenario sc;
static struct scenario_request q[MAX_REQUESTS];

static const struct policy_ops *policy_of(int i)
{
    size_t n;
    return policy_list(&n)[i];
}

static void prepare(const struct policy_ops *ops)
{
    if (strcmp(ops->name, "sd-npu") == 0) {
        sc.machine.devices[NPU].static_attention = false; /* its graphs hold the attention */
        sc.llm.n_layers = 6;
    }
    scenario_policy(&sc, ops, "");
}

static struct explain *run(uint32_t n, uint32_t request)
{
    struct explain *x = explain_new(&sc.machine, request);
    explain_price(x, &sc.model);
    sc.setup.observers[1] = explain_observer(x);
    sc.setup.n_observers = 2;
    int rc = scenario_run(&sc, q, n, false);
    ck_assert_msg(rc == 0, "%s", sc.result.message);
    return x;
}

static int64_t total(const struct explanation *e)
{
    int64_t sum = 0;
    for (int c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
        ck_assert_msg(e->ns[c] >= 0, "request %u: %s %lld", e->request_id, explain_cause_names[c],
                      (long long)e->ns[c]);
        sum += e->ns[c];
    }
    return sum;
}

START_TEST(causes_sum_to_the_latency_of_every_request)
{
    const struct policy_ops *ops = policy_of(_i);
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        uint32_t n = randomload_make(&sc, q, MAX_REQUESTS, 1000 + seed);
        prepare(ops);
        struct explain *x = run(n, EXPLAIN_ALL);
        for (uint32_t i = 0; i < n; i++) {
            const struct explanation *e = explain_find(x, i);
            ck_assert_msg(e != NULL, "%s, load %llu: no request %u", ops->name,
                          (unsigned long long)seed, i);
            int64_t latency = sc.records[i].finish_ns - sc.records[i].arrival_ns;
            ck_assert_msg(total(e) == latency, "%s, load %llu, request %u: %lld of %lld ns",
                          ops->name, (unsigned long long)seed, i, (long long)total(e),
                          (long long)latency);
            int64_t shared = e->ns[EXPLAIN_SHARED_PASS];
            int64_t queue = e->ns[EXPLAIN_KERNEL_TAIL] + e->ns[EXPLAIN_BATCHING] +
                            e->ns[EXPLAIN_HELD_BACK] + e->ns[EXPLAIN_QUEUE_SAME] +
                            e->ns[EXPLAIN_QUEUE_OTHER];
            for (size_t k = 0; k < e->n_blockers; k++) {
                queue -= e->blockers[k].tail_ns + e->blockers[k].queue_ns;
                shared -= e->blockers[k].shared_ns;
            }
            ck_assert_int_eq(queue, 0); /* other requests were in the way all that time */
            ck_assert_int_eq(shared, 0);
        }
        explain_free(x);
        scenario_fini(&sc);
    }
}
END_TEST

/* An explanation of one request must be equal to that of all. */
START_TEST(one_request_alone_is_explained_alike)
{
    const struct policy_ops *ops = policy_of(_i);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        uint32_t n = randomload_make(&sc, q, MAX_REQUESTS, seed);
        prepare(ops);
        struct explain *all = run(n, EXPLAIN_ALL);
        scenario_fini(&sc);
        (void)randomload_make(&sc, q, MAX_REQUESTS, seed);
        prepare(ops);
        struct explain *one = run(n, n / 2);
        ck_assert_mem_eq(explain_find(all, n / 2)->ns, explain_find(one, n / 2)->ns,
                         sizeof(int64_t) * EXPLAIN_CAUSE_COUNT);
        ck_assert_ptr_null(explain_find(one, 0));
        explain_free(all);
        explain_free(one);
        scenario_fini(&sc);
    }
}
END_TEST

static int64_t of(const struct explain *x, uint32_t request, enum explain_cause cause)
{
    return explain_find(x, request)->ns[cause];
}

static void plain(const char *policy, const char *params)
{
    scenario_init(&sc);
    scenario_cost(&sc, -1, OP_QKV, 1, 0, 0);
    scenario_cost(&sc, -1, OP_MHA, 2, 0, 0);
    scenario_cost(&sc, -1, OP_FFN, 3, 0, 0);
    scenario_cost(&sc, -1, OP_HEAD, 4, 0, 0);
    scenario_cost(&sc, -1, OP_LAYER, 6, 0, 0);
    scenario_policy(&sc, policy_find(policy), params);
}

/* A prompt of 256 takes 1 (NPU) + 2 (iGPU) + 3 (NPU) + 4 (iGPU) = 10 ms, and a decode step 6 + 4.
 * RT0 prefills 0-10. BE1 waits from 0 on, and starts on the NPU at 10.
 *
 * Until then the NPU is busy with the other class 0-1 (the iGPU has served no prompt yet). It is
 * busy 3-6 while the iGPU is idle: held back. It is idle 1-3 and 6-10: held.
 *
 * BE1 has QKV 10-11. RT0's layer is asked to stop and ends at 16. BE1 has attention 16-18 and FFN
 * 18-21. RT0's head is asked too and ends at 22, and BE1's head runs 22-26. With b_rf=1 BE1 is left
 * out of RT0's four steps 26-66 and ends at 76. With b_rf=0 it joins at 26, and both have a token
 * at 36. */
START_TEST(what_the_policy_could_have_served_is_held_back)
{
    static const struct {
        const char *params;
        int64_t held_back_ms, end_ms;
    } cases[] = {{"elastic=off,warmup=false,memory_rule=off,b_rf=1", 3 + 40, 76},
                 {"elastic=off,warmup=false,memory_rule=off,b_rf=0", 3, 36}};
    const int64_t ms = NS_PER_MS;
    for (int i = 0; i < 2; i++) {
        plain("agent-xpu-v2", cases[i].params);
        q[0] = (struct scenario_request){REQUEST_CLASS_REACTIVE, 0.0, 256, 6, 0, 0};
        q[1] = (struct scenario_request){REQUEST_CLASS_PROACTIVE, 0.0, 256, 2, 0, 0};
        struct explain *x = run(2, EXPLAIN_ALL);
        ck_assert_int_eq(sc.records[1].finish_ns, cases[i].end_ms * ms);
        ck_assert_int_eq(of(x, 1, EXPLAIN_HELD_BACK), cases[i].held_back_ms * ms);
        ck_assert_int_eq(of(x, 1, EXPLAIN_HELD), (2 + 4) * ms);
        ck_assert_int_eq(of(x, 1, EXPLAIN_QUEUE_OTHER), 1 * ms);
        ck_assert_int_eq(of(x, 1, EXPLAIN_KERNEL_TAIL), (5 + 1) * ms);
        ck_assert_int_eq(of(x, 1, EXPLAIN_BATCHING), 0);
        ck_assert_int_eq(of(x, 1, EXPLAIN_COMPUTE), 20 * ms);
        explain_free(x);
        scenario_fini(&sc);
    }
}
END_TEST

/* In order of arrival, with one layer, a pass takes 1 + 2 + 3 + 4 = 10 ms. A decode step of one
 * sequence takes 10 too, fused or not (6 + 4). Request 0 (two tokens) runs 0..20 ms. Requests 1 and
 * 2 (reactive) come at 5 ms and wait 15 ms for the other class. Request 2 then waits 10 ms for
 * request 1, which is of its own class. */
START_TEST(queues_by_class_and_by_request)
{
    plain("fcfs", "");
    q[0] = (struct scenario_request){REQUEST_CLASS_PROACTIVE, 0.0, 8, 2, 0, 0};
    q[1] = (struct scenario_request){REQUEST_CLASS_REACTIVE, 0.005, 8, 1, 0, 0};
    q[2] = (struct scenario_request){REQUEST_CLASS_REACTIVE, 0.005, 8, 1, 0, 0};
    struct explain *x = run(3, EXPLAIN_ALL);
    const int64_t ms = NS_PER_MS;
    ck_assert_int_eq(of(x, 0, EXPLAIN_COMPUTE), 20 * ms);
    ck_assert_int_eq(total(explain_find(x, 0)), 20 * ms);
    ck_assert_int_eq(of(x, 1, EXPLAIN_QUEUE_OTHER), 15 * ms);
    ck_assert_int_eq(of(x, 1, EXPLAIN_COMPUTE), 10 * ms);
    ck_assert_int_eq(of(x, 2, EXPLAIN_QUEUE_OTHER), 15 * ms);
    ck_assert_int_eq(of(x, 2, EXPLAIN_QUEUE_SAME), 10 * ms);
    ck_assert_int_eq(of(x, 2, EXPLAIN_COMPUTE), 10 * ms);
    const struct explanation *e = explain_find(x, 2);
    ck_assert_uint_eq(e->n_blockers, 2);
    ck_assert_uint_eq(e->blockers[0].request_id, 0);
    ck_assert_int_eq(e->blockers[0].queue_ns, 15 * ms);
    ck_assert_uint_eq(e->blockers[1].request_id, 1);
    ck_assert_int_eq(e->blockers[1].queue_ns, 10 * ms);
    /* The two reactive ones have 25 + 35 ms, of which 30 behind the proactive one and 10 behind
     * request 1. */
    struct interference m;
    interference_collect(x, &sc.trace, &m);
    ck_assert_uint_eq(m.requests[REQUEST_CLASS_REACTIVE], 2);
    ck_assert_int_eq(m.latency_ns[REQUEST_CLASS_REACTIVE], 60 * ms);
    ck_assert_int_eq(m.queue_ns[REQUEST_CLASS_REACTIVE][REQUEST_CLASS_PROACTIVE], 30 * ms);
    ck_assert_int_eq(m.queue_ns[REQUEST_CLASS_REACTIVE][REQUEST_CLASS_REACTIVE], 10 * ms);
    ck_assert_int_eq(m.queue_ns[REQUEST_CLASS_PROACTIVE][REQUEST_CLASS_REACTIVE], 0);
    ck_assert_int_eq(m.cause_ns[REQUEST_CLASS_PROACTIVE][EXPLAIN_COMPUTE], 20 * ms);
    explain_free(x);
    scenario_fini(&sc);
}
END_TEST

/* Every launch has a lead of 0.1 + 0.2 + 0.3 ms, and every token 0.5 ms of sampling. Alone, a
 * request of one token takes 10 ms of kernels and 1.1 ms of host. */
START_TEST(host_time_is_lead_and_sampling)
{
    plain("fcfs", "");
    sc.machine.schedule_ns = units_ns_from_us(100);
    sc.machine.sample_ns_per_token = units_ns_from_us(500);
    for (int d = 0; d < 3; d++) {
        sc.machine.devices[d].submit_ns = units_ns_from_us(200);
        sc.machine.devices[d].completion_ns = units_ns_from_us(300);
    }
    q[0] = (struct scenario_request){REQUEST_CLASS_PROACTIVE, 0.0, 8, 1, 0, 0};
    struct explain *x = run(1, 0);
    ck_assert_int_eq(of(x, 0, EXPLAIN_HOST), units_ns_from_us(1100));
    ck_assert_int_eq(of(x, 0, EXPLAIN_COMPUTE), 10 * NS_PER_MS);
    ck_assert_int_eq(total(explain_find(x, 0)), units_ns_from_us(11100));
    explain_free(x);
    scenario_fini(&sc);
}
END_TEST

/* A kernel boundary stops the proactive pass. The reactive request, which comes at 2.5 ms, waits
 * 0.5 ms for the rest of the attention kernel (1..3 ms), and for nothing else. The stopped request
 * lost its three ms, and waits for the 10 ms of the other. No pass of it had ended, so computing it
 * again is no recomputation. */
START_TEST(the_tail_of_a_stopped_kernel_has_a_name)
{
    plain("recompute-preempt", "");
    q[0] = (struct scenario_request){REQUEST_CLASS_PROACTIVE, 0.0, 8, 1, 0, 0};
    q[1] = (struct scenario_request){REQUEST_CLASS_REACTIVE, 0.0025, 8, 1, 0, 0};
    struct explain *x = run(2, EXPLAIN_ALL);
    ck_assert_int_eq(of(x, 1, EXPLAIN_KERNEL_TAIL), units_ns_from_us(500));
    ck_assert_int_eq(of(x, 1, EXPLAIN_COMPUTE), 10 * NS_PER_MS);
    ck_assert_int_eq(total(explain_find(x, 1)), units_ns_from_us(10500));
    ck_assert_uint_eq(explain_find(x, 1)->n_blockers, 1);
    ck_assert_uint_eq(explain_find(x, 1)->blockers[0].request_id, 0);
    ck_assert_int_eq(explain_find(x, 1)->blockers[0].tail_ns, units_ns_from_us(500));
    ck_assert_int_eq(of(x, 0, EXPLAIN_QUEUE_OTHER), 10 * NS_PER_MS);
    ck_assert_int_eq(of(x, 0, EXPLAIN_COMPUTE), 13 * NS_PER_MS);
    explain_free(x);
    scenario_fini(&sc);
}
END_TEST

/* The proactive request has its first token at 10 ms. It decodes when the reactive one comes at
 * 12.5 ms. The fused layer (10..16 ms) ends, and then its KV is dropped. It waits 10 ms because of
 * its eviction. Then it computes its 8 + 1 tokens, 8 of them for the second time. That is 10 ms of
 * recomputation, which gives its second token. */
START_TEST(lost_kv_costs_a_gap_and_work_done_twice)
{
    plain("recompute-preempt", "");
    scenario_cost(&sc, -1, OP_LAYER, 6, 0, 0);
    q[0] = (struct scenario_request){REQUEST_CLASS_PROACTIVE, 0.0, 8, 2, 0, 0};
    q[1] = (struct scenario_request){REQUEST_CLASS_REACTIVE, 0.0125, 8, 1, 0, 0};
    struct explain *x = run(2, EXPLAIN_ALL);
    ck_assert_int_eq(of(x, 0, EXPLAIN_EVICTION), 10 * NS_PER_MS);
    ck_assert_int_eq(of(x, 0, EXPLAIN_RECOMPUTE), 10 * NS_PER_MS);
    ck_assert_int_eq(of(x, 0, EXPLAIN_QUEUE_OTHER) + of(x, 0, EXPLAIN_QUEUE_SAME), 0);
    explain_free(x);
    scenario_fini(&sc);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("explain", .timeout_s = 60),
    LOOP_OVER(causes_sum_to_the_latency_of_every_request, suite_policies),
    LOOP_OVER(one_request_alone_is_explained_alike, suite_policies),
    TEST(what_the_policy_could_have_served_is_held_back),
    TEST(queues_by_class_and_by_request),
    TEST(host_time_is_lead_and_sampling),
    TEST(the_tail_of_a_stopped_kernel_has_a_name),
    TEST(lost_kv_costs_a_gap_and_work_done_twice),
};
SUITE_MAIN("explain", suite)
