/* vllm-v1 and vllm-priority are tested step by step (docs/clauses.md E.1, E.3): which decisions
 * vLLM takes when KV is short. Each scenario is a workload on which a former version of the policy
 * differed from vLLM's own scheduler, made as small as possible (tests/originals). KV blocks hold
 * 16 tokens. */
#include "tests/helpers/steps.h"
#include "tests/helpers/suite.h"

extern const struct policy_ops policy_vllm_v1_ops, policy_vllm_priority_ops;

#define RT REQUEST_CLASS_REACTIVE
#define BE REQUEST_CLASS_PROACTIVE

static struct scenario sc;

static void setup(void)
{
    steps_init(&sc, 16);
}

static void teardown(void)
{
    scenario_fini(&sc);
}

/* Prompts of 17, 32 and 17 run in chunks of at most 8, in five blocks. In steps 1 and 2 each fills
 * a block. In step 3 request 0 takes a fourth and has its token, and request 1 takes the fifth.
 * Request 2 finds none, is the last and so the victim. In step 4 requests 0 and 1 fill their blocks
 * and end. One block is free, and a chunk of request 2 fits it. In step 5 it is alone, and nothing
 * limits its chunk. */
START_TEST(admission_counts_the_blocks_that_are_free)
{
    struct scenario_request q[] = {
        {BE, 0, 17, 2, 0, 0}, {BE, 0, 32, 1, 0, 0}, {BE, 0, 17, 1, 0, 0}};
    steps_run(&sc, &policy_vllm_v1_ops, "long_prefill_token_threshold=8,reserve_full_isl=false", 5,
              q, 3);
    steps_rows(&sc, STEPS(24, 24, 9, 17, 9));
    steps_tokens(&sc, 0, STEPS(3, 4));
    steps_tokens(&sc, 2, STEPS(5));
}
END_TEST

/* A whole prompt must fit here. 17 tokens want two blocks, so request 2 comes when the others have
 * ended. */
START_TEST(admission_wants_blocks_for_the_whole_prompt)
{
    struct scenario_request q[] = {
        {BE, 0, 17, 2, 0, 0}, {BE, 0, 32, 1, 0, 0}, {BE, 0, 17, 1, 0, 0}};
    steps_run(&sc, &policy_vllm_v1_ops, "long_prefill_token_threshold=8", 5, q, 3);
    steps_rows(&sc, STEPS(24, 24, 9, 9, 17));
}
END_TEST

/* There are six blocks. In step 1 run reactive request 0 (16 tokens: one block) and proactive
 * request 1 (47: three). In step 2 they have 17 tokens in two and 48 in three, and reactive request
 * 2 has 8 in one. In step 3 token 49 of request 1 wants a block. It has the worst key and is its
 * own victim, and the iteration takes none behind it. Steps 4 and 5 run requests 0 and 2. In step 6
 * request 1 computes 47 + 2 tokens again. */
START_TEST(a_request_that_is_its_own_victim_ends_the_list)
{
    struct scenario_request q[] = {
        {RT, 0, 16, 5, 0, 0}, {BE, 0, 47, 3, 0, 0}, {RT, 0.0005, 8, 3, 0, 0}};
    steps_run(&sc, &policy_vllm_priority_ops, "", 6, q, 3);
    steps_rows(&sc, STEPS(63, 10, 1, 2, 2, 49));
    steps_tokens(&sc, 0, STEPS(1, 2, 3, 4, 5));
    steps_tokens(&sc, 1, STEPS(1, 2, 6));
    steps_tokens(&sc, 2, STEPS(2, 4, 5));
}
END_TEST

/* There are five blocks. Step 1 runs proactive request 0 (32 tokens: two). Step 2 runs its token 33
 * (three), and reactive request 1 (31: two). In step 4 request 0 is in the batch when token 33 of
 * request 1 wants a block, and leaves it again. In step 6 it computes 32 + 3 tokens. */
START_TEST(a_victim_that_is_in_the_batch_leaves_it)
{
    struct scenario_request q[] = {{BE, 0, 32, 4, 0, 0}, {RT, 0.0005, 31, 4, 0, 0}};
    steps_run(&sc, &policy_vllm_priority_ops, "", 5, q, 2);
    steps_rows(&sc, STEPS(32, 32, 2, 1, 1, 35));
    steps_tokens(&sc, 0, STEPS(1, 2, 3, 6));
    steps_tokens(&sc, 1, STEPS(2, 3, 4, 5));
}
END_TEST

/* With asynchronous scheduling step 3 is composed when step 2 starts, and then request 1 waits
 * alone. Request 0 ends with step 2, but that does not let request 2, which came during it,
 * join. */
START_TEST(asynchronous_what_was_composed_stays_when_the_others_end)
{
    struct scenario_request q[] = {
        {BE, 0, 1, 2, 0, 0}, {BE, 0.0005, 1, 1, 0, 0}, {BE, 0.0015, 1, 1, 0, 0}};
    steps_run(&sc, &policy_vllm_v1_ops, "async_scheduling=true", 64, q, 3);
    steps_rows(&sc, STEPS(1, 1, 1, 1));
    steps_tokens(&sc, 1, STEPS(3));
    steps_tokens(&sc, 2, STEPS(4));
}
END_TEST

/* With asynchronous scheduling request 0 is still there when step 2 is composed, so a chunk is 8 of
 * the 9 tokens that are left. */
START_TEST(asynchronous_who_is_alone_is_known_when_a_step_is_composed)
{
    struct scenario_request q[] = {{BE, 0, 1, 1, 0, 0}, {BE, 0, 17, 1, 0, 0}};
    steps_run(&sc, &policy_vllm_v1_ops, "async_scheduling=true,long_prefill_token_threshold=8", 64,
              q, 2);
    steps_rows(&sc, STEPS(9, 8, 1));
}
END_TEST

/* With asynchronous scheduling request 1 comes during step 1, when step 2 was composed already.
 * There request 0 was alone, and gets all of its other 9 tokens. */
START_TEST(asynchronous_who_comes_after_a_step_is_composed_is_no_company)
{
    struct scenario_request q[] = {{BE, 0, 73, 1, 0, 0}, {BE, 0.0005, 1, 1, 0, 0}};
    steps_run(&sc, &policy_vllm_v1_ops,
              "async_scheduling=true,long_prefill_token_threshold=8,max_num_batched_tokens=64", 64,
              q, 2);
    steps_rows(&sc, STEPS(64, 9, 1));
}
END_TEST

/* Here the policy differs from vLLM, which finds whole blocks of a prefix. vLLM finds 16 of the 20
 * tokens, and so computes 15 of the turn's 31. */
START_TEST(a_turn_finds_all_of_its_prefix)
{
    struct scenario_request q[] = {{BE, 0, 20, 1, 7, 0}, {BE, 0, 31, 1, 7, 21}};
    steps_run(&sc, &policy_vllm_v1_ops, "", 64, q, 2);
    steps_rows(&sc, STEPS(20, 11));
}
END_TEST

/* Here the policy differs from vLLM with prefix caching. There are four blocks. Request 1 loses its
 * two in step 2, and no other request takes the first of them. vLLM finds it in step 4 and computes
 * 17 tokens. Here request 1 computes 32 + 1. */
START_TEST(a_victim_computes_everything_again)
{
    struct scenario_request q[] = {{BE, 0, 32, 3, 0, 0}, {BE, 0, 32, 2, 0, 0}};
    steps_run(&sc, &policy_vllm_v1_ops, "", 4, q, 2);
    steps_rows(&sc, STEPS(64, 1, 1, 33));
}
END_TEST

/* Here the policy differs from vLLM, which composes step 3 when step 2 starts, with the KV of all
 * that run. Request 0 has two of three blocks, and token 17 of request 1 wants a second. In vLLM
 * request 1 is the last and its own victim: vLLM 0.32.0 and 0.11.0 (22 Nov 2026) compute 32, 2, 17.
 * Here it counts that request 0 ends with step 2: 32, 2, 1. */
START_TEST(asynchronous_who_ends_leaves_its_kv_to_the_next_step)
{
    struct scenario_request q[] = {{BE, 0, 17, 2, 0, 0}, {BE, 0, 15, 3, 0, 0}};
    steps_run(&sc, &policy_vllm_v1_ops, "async_scheduling=true", 3, q, 2);
    steps_rows(&sc, STEPS(32, 2, 1));
    steps_tokens(&sc, 0, STEPS(1, 2));
    steps_tokens(&sc, 1, STEPS(1, 2, 3));
}
END_TEST

/* Here the policy differs from vLLM 0.11.0, where request 0, which ends with step 1, still has its
 * place in step 2. With a budget of 8 request 1 computes 7, 7 and 1 there (22 Nov 2026). 0.32.0
 * does as here: 7 and 8. */
START_TEST(asynchronous_who_ends_takes_no_place_in_the_next_step)
{
    struct scenario_request q[] = {{BE, 0, 1, 1, 0, 0}, {BE, 0, 15, 1, 0, 0}};
    steps_run(&sc, &policy_vllm_v1_ops, "async_scheduling=true,max_num_batched_tokens=8", 64, q, 2);
    steps_rows(&sc, STEPS(8, 8));
    steps_tokens(&sc, 1, STEPS(2));
}
END_TEST

/* Here the policy differs from vLLM 0.11.0, which computes 8 and 1 (22 Nov 2026). 0.32.0 computes
 * 9. */
START_TEST(the_threshold_does_not_hold_back_who_is_alone)
{
    struct scenario_request q[] = {{BE, 0, 9, 1, 0, 0}};
    steps_run(&sc, &policy_vllm_v1_ops, "long_prefill_token_threshold=8", 64, q, 1);
    steps_rows(&sc, STEPS(9));
}
END_TEST

/* Prompts have 20 tokens, the budget is 12, and nothing is cut at the budget. Steps 1 and 2 run 8
 * of request 0, and 8 of request 1 do not fit in the 4 that are left. Step 3 runs the last 4 of
 * request 0, and 8 of request 1. In step 4 request 1 is alone, and its 12 fit. */
START_TEST(the_threshold_cuts_where_the_budget_does_not)
{
    struct scenario_request q[] = {{BE, 0, 20, 1, 0, 0}, {BE, 0, 20, 1, 0, 0}};
    steps_run(&sc, &policy_vllm_v1_ops,
              "long_prefill_token_threshold=8,chunked_prefill=false,max_num_batched_tokens=12", 64,
              q, 2);
    steps_rows(&sc, STEPS(8, 8, 12, 12));
}
END_TEST

/* Here the policy differs from vLLM 0.11.0. There are three blocks. Step 1 runs proactive request 0
 * (16 tokens: one). Step 2 runs its token 17 (two), and reactive request 1 (16: one). In step 3
 * request 0 is in the batch when token 17 of request 1 wants a block. 0.11.0 takes the block and
 * leaves its token in the step: 16, 17, 2, 1, 17, 1 (22 Nov 2026). Here and in 0.32.0 it leaves the
 * step: 1 in step 3, so 16 + 2 tokens again in step 5. */
START_TEST(a_victim_that_is_in_the_batch_gets_no_token_of_it)
{
    struct scenario_request q[] = {{BE, 0, 16, 4, 0, 0}, {RT, 0.0005, 16, 3, 0, 0}};
    steps_run(&sc, &policy_vllm_priority_ops, "", 3, q, 2);
    steps_rows(&sc, STEPS(16, 17, 1, 1, 18, 1));
    steps_tokens(&sc, 0, STEPS(1, 2, 5, 6));
    steps_tokens(&sc, 1, STEPS(2, 3, 4));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("steps", .setup = setup, .teardown = teardown),
    TEST(admission_counts_the_blocks_that_are_free),
    TEST(admission_wants_blocks_for_the_whole_prompt),
    TEST(a_request_that_is_its_own_victim_ends_the_list),
    TEST(a_victim_that_is_in_the_batch_leaves_it),
    TEST(asynchronous_what_was_composed_stays_when_the_others_end),
    TEST(asynchronous_who_is_alone_is_known_when_a_step_is_composed),
    TEST(asynchronous_who_comes_after_a_step_is_composed_is_no_company),
    TEST(a_turn_finds_all_of_its_prefix),
    TEST(a_victim_computes_everything_again),
    TEST(asynchronous_who_ends_leaves_its_kv_to_the_next_step),
    TEST(asynchronous_who_ends_takes_no_place_in_the_next_step),
    TEST(the_threshold_does_not_hold_back_who_is_alone),
    TEST(the_threshold_cuts_where_the_budget_does_not),
    TEST(a_victim_that_is_in_the_batch_gets_no_token_of_it),
};
SUITE_MAIN("vllm-steps", suite)
