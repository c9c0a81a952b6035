/* agent-xpu-v2: ties, and the order of requests that wait (clauses.md B.2, B.5, B.10), on the toy
 * machine of check_axpu_corners.c. An NPU chunk of 256 rows takes 4 ms for QKV and 8 for FFN, and
 * the iGPU takes 4/256 and 8/256 ms a row. Attention takes 10 ms on the iGPU and 6 on the NPU, the
 * head 1 ms, and a fused decode layer 1 ms. So a prompt of 256 takes 4 + 10 + 8 + 1 = 23 ms. */
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

static struct scenario sc;

static void setup(void)
{
    scenario_init(&sc);
    scenario_agent_xpu(&sc, 1);
    scenario_cost(&sc, NPU, OP_MHA, 6, 0, 5);
    scenario_cost(&sc, NPU, OP_HEAD, 1, 0, 5);
}

static void teardown(void)
{
    scenario_fini(&sc);
}

static void run(const char *params, const struct scenario_request *q, uint32_t n)
{
    scenario_policy(&sc, policy_find("agent-xpu-v2"), params);
    scenario_check(&sc, q, n);
}

/* BE0 runs until 23. BE1 and BE2 are equally short, so BE1, which came first, is next. */
START_TEST(of_equally_short_prompts_the_first_is_next)
{
    static const struct scenario_request q[] = {
        {BE, 0, 256, 1, 0, 0}, {BE, 0.001, 256, 1, 0, 0}, {BE, 0.002, 256, 1, 0, 0}};
    run("shortest=all", q, 3);
    ck_assert_int_eq(sc.records[1].first_token_ns, MS(46));
    ck_assert_int_eq(sc.records[2].first_token_ns, MS(69));
}
END_TEST

/* BE0 decodes from 23 to 25. RT1 (1024) comes at 23.5, and the iGPU keeps one chunk of four: QKV
 * 23.5-35.5, attention 35.5-45.5. FFN of the same layer is split like QKV, with three chunks of 8
 * ms on the NPU, though no request decodes any more: 45.5-69.5, head 70.5. */
START_TEST(a_layer_keeps_the_answer_of_its_boundary)
{
    static const struct scenario_request q[] = {{BE, 0, 256, 2, 0, 0}, {RT, 0.0235, 1024, 1, 0, 0}};
    run("", q, 2);
    ck_assert_int_eq(sc.records[0].finish_ns, MS(25));
    ck_assert_int_eq(sc.records[1].first_token_ns, MS(70.5));
}
END_TEST

/* There are 48 blocks. BE0 has 16 at 23, and BE1 takes the others before BE0's next token wants one
 * more. BE0 is the only one that waits to decode, so it keeps its blocks, until BE1 has ended at
 * 58. */
START_TEST(the_only_sequence_that_waits_keeps_its_memory)
{
    static const struct scenario_request q[] = {{BE, 0, 256, 3, 0, 0}, {BE, 0.001, 512, 1, 0, 0}};
    sc.setup.kv_capacity_tokens = 48 * 16;
    run("", q, 2);
    ck_assert_int_eq(sc.records[1].finish_ns, MS(58));
    ck_assert_uint_eq(sc.result.counters[COUNTER_KV_RECOMPUTE_EVICTIONS], 0);
    ck_assert_int_eq(sc.records[0].token_ns[1], MS(60));
}
END_TEST

/* There are 32 blocks, which BE0 and BE1 have at 46. BE1 gives up its blocks. It must wait before
 * BE2, which came before that and would find room. */
START_TEST(who_gave_up_its_memory_waits_before_the_others)
{
    static const struct scenario_request q[] = {
        {BE, 0, 256, 20, 0, 0}, {BE, 0.001, 256, 2, 0, 0}, {BE, 0.002, 100, 1, 0, 0}};
    sc.setup.kv_capacity_tokens = 32 * 16;
    run("", q, 3);
    ck_assert_uint_eq(sc.result.counters[COUNTER_KV_RECOMPUTE_EVICTIONS], 1);
    ck_assert_int_eq(sc.records[2].start_ns, sc.records[1].finish_ns);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(of_equally_short_prompts_the_first_is_next),
    TEST(a_layer_keeps_the_answer_of_its_boundary),
    TEST(the_only_sequence_that_waits_keeps_its_memory),
    TEST(who_gave_up_its_memory_waits_before_the_others),
};
SUITE_MAIN("agent-xpu-v2 ties", suite)
