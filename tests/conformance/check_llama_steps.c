/* llama-cpp must take the decisions of llama.cpp's server about slots and batches, step by step
 * (docs/clauses.md C.1). Each scenario is a workload on which a former version of the policy
 * differed from the server's own loop, made as small as possible (tests/originals). The last four
 * are differences that remain (policies/README.md). */
#include "tests/helpers/steps.h"
#include "tests/helpers/suite.h"

extern const struct policy_ops policy_llama_cpp_ops;

static struct scenario sc;

static void setup(void)
{
    steps_init(&sc, 1);
}

static void teardown(void)
{
    scenario_fini(&sc);
}

static void run(const char *params, uint32_t cells, const struct scenario_request *q, uint32_t n)
{
    char all[128];
    snprintf(all, sizeof all, "device=igpu,%s", params);
    steps_run(&sc, &policy_llama_cpp_ops, all, cells, q, n);
}

/* The last of the slots never used is taken first, and prompts come by slot number. So request 1 is
 * in slot 1, and request 0 in slot 2. */
START_TEST(of_a_burst_the_newest_comes_first)
{
    struct scenario_request q[] = {{BE, 0, 8, 1, 0, 0}, {BE, 0, 8, 1, 0, 0}};
    run("slots=2,n_batch=8", 100, q, 2);
    steps_rows(&sc, STEPS(8, 8));
    steps_tokens(&sc, 1, STEPS(1));
    steps_tokens(&sc, 0, STEPS(2));
}
END_TEST

/* Step 1 ends requests 2, 1 and 0 in slots 1, 2 and 3. Slot 1 puts request 3 at the head of the
 * queue, and slot 2 then puts request 4 before it. So request 4 gets slot 1, and all 32 tokens of
 * step 2. */
START_TEST(slots_left_in_one_step_take_who_waited_in_reverse)
{
    struct scenario_request q[] = {{BE, 0, 1, 1, 0, 0},
                                   {BE, 0, 1, 1, 0, 0},
                                   {BE, 0, 1, 1, 0, 0},
                                   {BE, 0, 1, 1, 0, 0},
                                   {BE, 0, 32, 1, 0, 0}};
    run("slots=3,n_batch=32", 100, q, 5);
    steps_rows(&sc, STEPS(3, 32, 1));
    steps_tokens(&sc, 4, STEPS(2));
    steps_tokens(&sc, 3, STEPS(3));
}
END_TEST

/* Requests 3 and 4 come during step 1 here. Neither was turned away, so they keep their order.
 * Request 3 gets slot 1. */
START_TEST(slots_left_in_one_step_take_who_came_during_it_in_order)
{
    struct scenario_request q[] = {{BE, 0, 1, 1, 0, 0},
                                   {BE, 0, 1, 1, 0, 0},
                                   {BE, 0, 1, 1, 0, 0},
                                   {BE, 0.0005, 1, 1, 0, 0},
                                   {BE, 0.0006, 32, 1, 0, 0}};
    run("slots=3,n_batch=32", 100, q, 5);
    steps_rows(&sc, STEPS(3, 32, 1));
    steps_tokens(&sc, 3, STEPS(2));
    steps_tokens(&sc, 4, STEPS(3));
}
END_TEST

/* Micro-batches have one token. Slot 1 has request 1, and slot 2 request 0. Micro-batches 1 and 2,
 * of step 1, have a token of each prompt. Step 2 has the rest of request 0's prompt (3) and request
 * 1's second token (4).
 *
 * Both requests end with this step. Slot 1 is left first, though its micro-batch came last. It is
 * given to request 3, which was put before request 2. */
START_TEST(slots_are_left_by_number_at_the_end_of_the_step)
{
    struct scenario_request q[] = {
        {BE, 0, 2, 1, 0, 0}, {BE, 0, 1, 2, 0, 0}, {BE, 0, 1, 1, 0, 0}, {BE, 0, 1, 1, 0, 0}};
    run("slots=2,n_batch=2,n_ubatch=1", 100, q, 4);
    steps_tokens(&sc, 1, STEPS(1, 4));
    steps_tokens(&sc, 3, STEPS(5));
    steps_tokens(&sc, 2, STEPS(6));
}
END_TEST

/* Two prompts of 10 have 16 cells of KV, so n_batch is 16. */
START_TEST(a_step_is_no_larger_than_the_kv_cache)
{
    struct scenario_request q[] = {{BE, 0, 10, 1, 0, 0}, {BE, 0, 10, 1, 0, 0}};
    run("slots=2", 16, q, 2);
    steps_rows(&sc, STEPS(16, 4));
    ck_assert_uint_eq(sc.records[0].preemptions + sc.records[1].preemptions, 0);
}
END_TEST

START_TEST(without_continuous_batching_prompts_wait_for_who_generates)
{
    struct scenario_request q[] = {{BE, 0, 2, 3, 0, 0}, {BE, 0.0005, 2, 1, 0, 0}};
    run("slots=2,cont_batching=false", 100, q, 2);
    steps_rows(&sc, STEPS(2, 1, 1, 2));
    steps_tokens(&sc, 1, STEPS(4));
}
END_TEST

/* In step 1 request 0 in slot 3 ends, and request 1 in slot 2 continues. During step 2 request 2
 * comes, the next turn of request 0's session (17 tokens, 8 of them found), and then request 3 (15
 * tokens). */
static const struct scenario_request turn_and_rival[] = {
    {BE, 0, 8, 1, 7, 0}, {BE, 0, 1, 6, 0, 0}, {BE, 0.0005, 17, 1, 7, 9}, {BE, 0.0016, 15, 1, 0, 0}};

/* Request 2 gets slot 3, which holds 8 of its 17 tokens. So request 3 gets slot 1, and the other 15
 * tokens of step 3. Step 4 has request 1's token and 9 of request 2. */
START_TEST(a_turn_goes_to_the_slot_that_holds_the_one_before)
{
    run("slots=3,n_batch=16", 100, turn_and_rival, 4);
    steps_rows(&sc, STEPS(9, 1, 16, 10, 1, 1));
    steps_tokens(&sc, 3, STEPS(3));
    steps_tokens(&sc, 2, STEPS(4));
}
END_TEST

/* A slot must hold more than half of the prompt, and 8 of 17 are less. Slot 1, never used, is next.
 * Step 3 has request 2's 9 tokens and 6 of request 3. */
START_TEST(a_slot_that_holds_too_little_is_not_chosen)
{
    run("slots=3,n_batch=16,similarity=0.5", 100, turn_and_rival, 4);
    steps_rows(&sc, STEPS(9, 1, 16, 10, 1, 1));
    steps_tokens(&sc, 2, STEPS(3));
    steps_tokens(&sc, 3, STEPS(4));
}
END_TEST

/* In step 1 requests 0 and 1 are in slots 4 and 3. During step 2 request 2 comes, for slot 2, and
 * the KV of slot 4 is moved to main memory. So the turn, request 3, gets slot 1, never used, and
 * request 4 gets slot 4. Step 4 has tokens of 1 and 2, 9 of the turn and 5 of request 4. Step 5 has
 * its other 10. */
START_TEST(a_slot_holds_a_turn_until_anybody_gets_a_slot)
{
    struct scenario_request q[] = {{BE, 0, 8, 1, 7, 0},
                                   {BE, 0, 1, 6, 0, 0},
                                   {BE, 0.0015, 1, 3, 0, 0},
                                   {BE, 0.0015, 17, 1, 7, 9},
                                   {BE, 0.0026, 15, 1, 0, 0}};
    run("slots=4,n_batch=16", 100, q, 5);
    steps_rows(&sc, STEPS(9, 1, 2, 16, 12, 1));
    steps_tokens(&sc, 3, STEPS(4));
    steps_tokens(&sc, 4, STEPS(5));
}
END_TEST

/* This differs from the server, which compares the tokens even where it may not use them. With its
 * prompt cache off it would choose slot 3, and serve request 3 first. Here step 3 has 15 of request
 * 2's 17 tokens, and step 4 its other 2 and 13 of request 3. */
START_TEST(with_the_prompt_cache_off_nobody_knows_what_a_slot_holds)
{
    sc.setup.prefix_reuse = false;
    run("slots=3,n_batch=16", 100, turn_and_rival, 4);
    steps_tokens(&sc, 3, STEPS(5));
    steps_tokens(&sc, 2, STEPS(4));
}
END_TEST

/* This differs from the server in two points. One of the turn's 10 tokens is no reason to choose
 * the slot that holds it. And an idle slot's KV is moved to main memory only when the next request
 * has its own. So the server computes all 10. */
START_TEST(a_turn_finds_the_one_before_wherever_it_is)
{
    struct scenario_request q[] = {{BE, 0, 1, 1, 7, 0}, {BE, 0.0005, 10, 1, 7, 2}};
    run("slots=2", 100, q, 2);
    steps_rows(&sc, STEPS(1, 9));
}
END_TEST

/* This differs from the server, which copies idle sessions to main memory and would find 8 of the
 * turn's 12 tokens there. Here they were evicted for request 1's 16. */
START_TEST(the_kv_of_an_idle_session_gives_way)
{
    struct scenario_request q[] = {
        {BE, 0, 8, 1, 7, 0}, {BE, 0.0015, 16, 1, 0, 0}, {BE, 0.0025, 12, 1, 7, 9}};
    run("slots=2", 20, q, 3);
    steps_rows(&sc, STEPS(8, 16, 12));
}
END_TEST

/* This differs from the server, which would refuse both in step 2. There are five cells and two
 * prompts of 2. Request 1 entered last, and starts over (2 + 1 tokens) when request 0 has ended. */
START_TEST(short_of_kv_who_entered_last_starts_over)
{
    struct scenario_request q[] = {{BE, 0, 2, 3, 0, 0}, {BE, 0, 2, 3, 0, 0}};
    run("slots=2", 5, q, 2);
    steps_rows(&sc, STEPS(4, 1, 1, 3, 1));
    steps_tokens(&sc, 0, STEPS(1, 2, 3));
    steps_tokens(&sc, 1, STEPS(1, 4, 5));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("steps", .setup = setup, .teardown = teardown),
    TEST(of_a_burst_the_newest_comes_first),
    TEST(slots_left_in_one_step_take_who_waited_in_reverse),
    TEST(slots_left_in_one_step_take_who_came_during_it_in_order),
    TEST(slots_are_left_by_number_at_the_end_of_the_step),
    TEST(a_step_is_no_larger_than_the_kv_cache),
    TEST(without_continuous_batching_prompts_wait_for_who_generates),
    TEST(a_turn_goes_to_the_slot_that_holds_the_one_before),
    TEST(a_slot_that_holds_too_little_is_not_chosen),
    TEST(a_slot_holds_a_turn_until_anybody_gets_a_slot),
    TEST(with_the_prompt_cache_off_nobody_knows_what_a_slot_holds),
    TEST(a_turn_finds_the_one_before_wherever_it_is),
    TEST(the_kv_of_an_idle_session_gives_way),
    TEST(short_of_kv_who_entered_last_starts_over),
};
SUITE_MAIN("llama-steps", suite)
