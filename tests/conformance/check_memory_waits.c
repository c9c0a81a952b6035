/* Requests that wait for KV, under policies that serve several at once. On the iGPU of the toy
 * machine, QKV takes 4 ms, attention 10, FFN 8 and the head 1. */
#include <errno.h>
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/model.h"
#include "tests/helpers/steps.h"
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

/* Five requests of 33 + 8 tokens have 3 blocks of 16 each, and there are 16 blocks. All decode
 * together: 165 rows, then 5 rows for each of 7 tokens. With states of 4.5 blocks, so 5, each has 8
 * blocks, and two fit: after two pairs of 8 steps the last one is alone. A token takes 1 MB. */
START_TEST(as_many_decode_as_their_states_leave_room_for)
{
    static const struct scenario_request q[] = {{BE, 0, 33, 8, 0, 0},
                                                {BE, 0, 33, 8, 0, 0},
                                                {BE, 0, 33, 8, 0, 0},
                                                {BE, 0, 33, 8, 0, 0},
                                                {BE, 0, 33, 8, 0, 0}};
    steps_init(&sc, 16);
    sc.llm.kv_state_bytes = _i * 4.5 * 16e6;
    steps_run(&sc, policy_find("vllm-v1"), "", 16, q, 5);
    const uint32_t *together = STEPS(165, 5, 5, 5, 5, 5, 5, 5);
    const uint32_t *pairs =
        STEPS(66, 2, 2, 2, 2, 2, 2, 2, 66, 2, 2, 2, 2, 2, 2, 2, 33, 1, 1, 1, 1, 1, 1, 1);
    steps_rows(&sc, _i == 0 ? together : pairs);
    ck_assert_uint_eq(sc.result.kv_peak_tokens, _i == 0 ? 5 * 48 : 2 * 128);
    ck_assert_double_eq(sc.result.memory_peak_bytes, 1e9 + (_i == 0 ? 240e6 : 256e6));
    scenario_fini(&sc);
}
END_TEST

/* A request of 33 + 8 tokens has 3 blocks and 5 for its states: 128 tokens. It fits into 8 blocks
 * and not into 7. */
START_TEST(a_request_fits_with_its_states)
{
    static const struct scenario_request q = {BE, 0, 33, 8, 0, 0};
    for (uint32_t blocks = 7; blocks <= 8; blocks++) {
        machine(16 * blocks);
        sc.llm.kv_state_bytes = 4.5 * 16e6;
        scenario_policy(&sc, policy_find("fcfs"), "");
        ck_assert_int_eq(scenario_run(&sc, &q, 1, false), blocks == 8 ? 0 : -ENOMEM);
        bool said =
            strstr(sc.result.message, "request 0 needs 121 KV tokens, the machine holds 112");
        ck_assert(said == (blocks == 7));
        scenario_fini(&sc);
    }
}
END_TEST

/* Qwen3.6 35B with 8-bit KV: a block of 16 tokens has 16 x 10,240 B, and states of 65,863,680 B are
 * 402 of them. Requests of 1,010 + 8 tokens have 64 blocks more: 466, and 1,864 are enough for four
 * at once. With one block less three are. */
START_TEST(memory_holds_so_many_sequences_of_a_model_with_states)
{
    static const struct scenario_request q[] = {{BE, 0, 1010, 8, 0, 0},
                                                {BE, 0, 1010, 8, 0, 0},
                                                {BE, 0, 1010, 8, 0, 0},
                                                {BE, 0, 1010, 8, 0, 0},
                                                {BE, 0, 1010, 8, 0, 0}};
    struct model m;
    model_init(&m, "qwen3.6-35b-a3b", "extended");
    steps_init(&sc, 16);
    sc.llm.kv_bytes_per_token = m.llm.kv_bytes_per_token;
    sc.llm.kv_state_bytes = m.llm.kv_state_bytes;
    steps_run(&sc, policy_find("vllm-v1"), "max_num_batched_tokens=8192", 1864 - (uint32_t)_i, q,
              5);
    ck_assert_uint_eq(sc.result.kv_peak_tokens, (_i == 0 ? 4 : 3) * 466 * 16);
    ck_assert_uint_eq(sc.result.counters[COUNTER_KV_RECOMPUTE_EVICTIONS], 0);
    scenario_fini(&sc);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_wait_for_memory_gives_no_credit),
    TEST(who_gave_way_waits_in_arrival_order),
    LOOP(as_many_decode_as_their_states_leave_room_for, 2),
    TEST(a_request_fits_with_its_states),
    LOOP(memory_holds_so_many_sequences_of_a_model_with_states, 2),
};
SUITE_MAIN("memory waits", suite)
