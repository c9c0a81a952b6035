/* Requests that wait for KV, under policies that serve several at once. On the iGPU of the toy
 * machine, QKV takes 4 ms, attention 10, FFN 8 and the head 1. */
#include "policies/registry.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

static struct scenario sc;

static void machine(uint64_t kv_tokens)
{
    scenario_init(&sc);
    sc.llm.n_layers = 1;
    sc.setup.kv_capacity_tokens = kv_tokens;
    scenario_cost(&sc, -1, OP_QKV, 4, 0, 5);
    scenario_cost(&sc, -1, OP_MHA, 10, 0, 5);
    scenario_cost(&sc, -1, OP_FFN, 8, 0, 5);
    scenario_cost(&sc, -1, OP_HEAD, 1, 0, 5);
}

/* KV for two prompts of three. Two share until 45: QKV, attention and FFN of each, and the head of
 * request 0. Then request 2 has room. It counts from request 1's 22 ms. Request 1 came first, so
 * its head is next: 45-46. Then request 2 is alone: 46-69. From 0 it would go first, up to 67. */
START_TEST(a_wait_for_memory_gives_no_credit)
{
    machine(600);
    struct scenario_request q[] = {
        {BE, 0, 256, 1, 0, 0}, {BE, 0, 256, 1, 0, 0}, {BE, 0, 256, 1, 0, 0}};
    scenario_policy(&sc, policy_find("time-share"), "efficiency=1,quantum_ms=0");
    scenario_check(&sc, q, 3);
    ck_assert_int_eq(sc.records[0].finish_ns, MS(45));
    ck_assert_int_eq(sc.records[1].finish_ns, MS(46));
    ck_assert_int_eq(sc.records[2].finish_ns, MS(69));
    scenario_fini(&sc);
}
END_TEST

static const struct suite_row suite[] = {TEST(a_wait_for_memory_gives_no_credit)};
SUITE_MAIN("memory waits", suite)
