/* fcfs, openvino-cb and batches of recompute-preempt are computed by hand (clauses.md C.2, C.4 a).
 * In the one layer QKV takes 0.01 ms and FFN 0.02 ms a row, attention 1 ms a pass, the head 1 ms,
 * and a fused decode layer 2 ms. So a pass of n rows takes 0.03 n + 1 ms, and 1 ms more when it
 * yields tokens. A decode of one sequence takes 3 ms. */

#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

extern const struct policy_ops policy_fcfs_ops, policy_openvino_cb_ops,
    policy_recompute_preempt_ops;

static struct scenario sc;

static void run(const struct policy_ops *ops, const char *params, const struct scenario_request *q,
                uint32_t n)
{
    scenario_policy(&sc, ops, params);
    scenario_check(&sc, q, n);
}

static void setup(void)
{
    scenario_init(&sc);
    scenario_batching(&sc);
}

static void teardown(void)
{
    scenario_fini(&sc);
}

/* Request 0 has 100 rows, 3 + 1 + 1 = 5 ms, and then 3 ms a token: 5 and 8. Request 1 starts at 8,
 * although it came at 1 and is reactive. Its 50 rows take 1.5 + 2 = 3.5: 11.5 and 14.5. */
START_TEST(fcfs_serves_one_after_the_other)
{
    struct scenario_request q[] = {{BE, 0, 100, 2, 0, 0}, {RT, 0.001, 50, 2, 0, 0}};
    run(&policy_fcfs_ops, "", q, 2);
    scenario_tokens_at(&sc, 0, 2, (double[]){5, 8});
    scenario_tokens_at(&sc, 1, 2, (double[]){11.5, 14.5});
    ck_assert_int_eq(sc.records[1].start_ns, MS(8));
}
END_TEST

/* The default variant, sf256. Request 0 (300 rows) takes the whole budget of pass 1: 256 rows, 7.68
 * + 1 = 8.68. Pass 2 has its last 44 rows, and then 212 rows of request 1 (400 rows, which came at
 * 1). That is 256 rows and one head row: 8.68 + 7.68 + 1 + 1 = 18.36, with a token of request 0.
 * Pass 3 has one decode row of request 0 first, and then the other 188 rows of request 1. 189 rows
 * take 5.67 + 2 = 7.67, until 26.03, with a token of each. */
START_TEST(split_fuse_decodes_first_and_fills_the_budget_with_prompts_in_order)
{
    struct scenario_request q[] = {{BE, 0, 300, 2, 0, 0}, {RT, 0.001, 400, 1, 0, 0}};
    run(&policy_openvino_cb_ops, "", q, 2);
    scenario_tokens_at(&sc, 0, 2, (double[]){18.36, 26.03});
    scenario_tokens_at(&sc, 1, 1, (double[]){26.03});
}
END_TEST

/* With variant=whole request 0 runs alone: 300 rows, 9 + 2 = 11. Then one decode row and all 400
 * rows run: 401 rows, 12.03 + 2 = 14.03, until 25.03. */
START_TEST(whole_variant_takes_whole_prompts)
{
    struct scenario_request q[] = {{BE, 0, 300, 2, 0, 0}, {RT, 0.001, 400, 1, 0, 0}};
    run(&policy_openvino_cb_ops, "variant=whole", q, 2);
    scenario_tokens_at(&sc, 0, 2, (double[]){11, 25.03});
    scenario_tokens_at(&sc, 1, 1, (double[]){25.03});
}
END_TEST

/* With variant=vllm a step has either prompts or decodes. The prompt of request 0 runs 0-11. Then
 * that of request 1 runs, 400 rows, 12 + 2 = 14, until 25. Then request 0 has its second token
 * alone, at 28. */
START_TEST(vllm_variant_never_mixes_prompts_and_decodes)
{
    struct scenario_request q[] = {{BE, 0, 300, 2, 0, 0}, {RT, 0.001, 400, 1, 0, 0}};
    run(&policy_openvino_cb_ops, "variant=vllm", q, 2);
    scenario_tokens_at(&sc, 0, 2, (double[]){11, 28});
    scenario_tokens_at(&sc, 1, 1, (double[]){25});
}
END_TEST

/* There is KV for 384 tokens, and prompts of 60 take four blocks of 16. 64 tokens are left free for
 * each request in progress. The second finds 320 for its 60 + 2 * 64, the third 256 for 60 + 3 *
 * 64, and the fourth 192 for 60 + 4 * 64. So three decode together, and the fourth prompt begins
 * when they have ended. The fifth finds 320 for 60 + 2 * 64, and joins the fourth. */
START_TEST(recompute_leaves_room_for_each_of_those_that_come_at_once)
{
    sc.setup.kv_capacity_tokens = 384;
    sc.setup.kv_block_tokens = 16;
    struct scenario_request q[5];
    for (int i = 0; i < 5; i++) {
        q[i] = (struct scenario_request){REQUEST_CLASS_PROACTIVE, 0, 60, 4, 0, 0};
    }
    run(&policy_recompute_preempt_ops, "max_batch=8", q, 5);
    for (int i = 0; i < 3; i++) {
        ck_assert(sc.records[i].token_ns[3] == sc.records[3].start_ns);
    }
    ck_assert(sc.records[3].token_ns[0] == sc.records[4].start_ns);
    ck_assert(sc.records[3].token_ns[1] == sc.records[4].token_ns[1]);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(fcfs_serves_one_after_the_other),
    TEST(split_fuse_decodes_first_and_fills_the_budget_with_prompts_in_order),
    TEST(whole_variant_takes_whole_prompts),
    TEST(vllm_variant_never_mixes_prompts_and_decodes),
    TEST(recompute_leaves_room_for_each_of_those_that_come_at_once),
};
SUITE_MAIN("batching", suite)
