/* Requests that wait for KV, under policies that serve several at once. On the iGPU of the toy
 * machine, QKV takes 4 ms, attention 10, FFN 8 and the head 1. */
#include "policies/registry.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

static struct scenario sc;
static uint32_t lost[3];

static void on_lost(void *self UNUSED, int64_t now_ns UNUSED, const struct request *r,
                    uint64_t tokens UNUSED)
{
    lost[r->id]++;
}

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

/* 28 blocks of 16 tokens. Request 0 decodes, from 17 blocks on. When it takes its 18th, 1 has five
 * and gives way, while 2 has six for its prompt. Request 2 decodes after that, until 0 takes its
 * 20th. Then there is room for the 70 tokens of 1, and not for the 129 of 2. Request 1 came first,
 * so it is first again. */
START_TEST(who_gave_way_waits_in_arrival_order)
{
    machine(448);
    scenario_cost(&sc, -1, OP_LAYER, 5, 0, 5);
    struct scenario_request q[] = {
        {BE, 0, 256, 80, 0, 0}, {BE, 0.080, 64, 60, 0, 0}, {BE, 0.215, 96, 60, 0, 0}};
    scenario_policy(&sc, policy_find("pd-static"), "");
    sc.observer.kv_lost = on_lost;
    scenario_check(&sc, q, 3);
    ck_assert(lost[0] == 0 && lost[1] == 1 && lost[2] == 1);
    ck_assert_int_lt(sc.records[1].finish_ns, sc.records[2].finish_ns);
    scenario_fini(&sc);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_wait_for_memory_gives_no_credit),
    TEST(who_gave_way_waits_in_arrival_order),
};
SUITE_MAIN("memory waits", suite)
