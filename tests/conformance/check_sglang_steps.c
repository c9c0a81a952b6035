/* sglang-lpm is tested step by step (docs/clauses.md E.21): which requests SGLang admits next to
 * the possible answers of others, and which start over when KV is short. Steps are computed by hand
 * from its rules. tests/originals compares it with SGLang's own scheduler. KV is counted in tokens,
 * and `limits` are those of the answers. */
#include "tests/helpers/steps.h"
#include "tests/helpers/suite.h"

extern const struct policy_ops policy_sglang_lpm_ops;

#define BE REQUEST_CLASS_PROACTIVE
#define UNSHARED "new_token_ratio=0,min_new_token_ratio=0"

static struct scenario sc;

static void setup(void)
{
    steps_init(&sc, 1);
}

static void teardown(void)
{
    scenario_fini(&sc);
}

static void run(const char *params, uint32_t tokens, const struct scenario_request *q, uint32_t n,
                const uint32_t *limits)
{
    sc.setup.kv_capacity_tokens = tokens;
    scenario_policy(&sc, &policy_sglang_lpm_ops, params);
    scenario_trace(&sc, q, n);
    for (uint32_t i = 0; i < n; i++) {
        sc.trace.rows[i].max_output_tokens = limits[i];
    }
    sc.observer.wants_kernels = true;
    ck_assert_int_eq(scenario_again(&sc), 0);
}

/* There are 50 tokens. Request 0 wants 10 + 20 and request 1 10 + 5, so 5 are left. Request 2 wants
 * 1 + 4, and more than that must be left. Request 1 has left after step 1. Then 40 are free, of
 * which request 0 is expected to take 0.7 x 19. With a limit of 3 request 2 begins in step 1. */
START_TEST(admission_leaves_room_for_the_whole_answer)
{
    struct scenario_request q[] = {{BE, 0, 10, 2, 0, 0}, {BE, 0, 10, 1, 0, 0}, {BE, 0, 1, 1, 0, 0}};
    run("", 50, q, 3, (uint32_t[]){20, 5, _i == 0 ? 4 : 3});
    steps_rows(&sc, _i == 0 ? STEPS(20, 1, 1) : STEPS(21, 1));
    steps_tokens(&sc, 2, _i == 0 ? STEPS(2) : STEPS(1));
}
END_TEST

/* There are 100 tokens. At step 2 request 0 has 10, and may produce 39 more: 90 - 0.7 x 39 = 62.7
 * are left. Request 1 wants 10 and its limit. With 53 that is 63, so that it waits, and with 52 it
 * is 62. */
START_TEST(running_requests_are_expected_to_produce_a_share)
{
    struct scenario_request q[] = {{BE, 0, 10, 4, 0, 0}, {BE, 0.0005, 10, 1, 0, 0}};
    run("", 100, q, 2, (uint32_t[]){40, _i == 0 ? 53 : 52});
    steps_rows(&sc, _i == 0 ? STEPS(10, 1, 1, 1, 10) : STEPS(10, 10, 1, 1, 1));
}
END_TEST

/* The share falls by a seventh of 0.7 with every step of decodes. At step 4 there were two, request
 * 0 has 12 tokens and may produce 37: 88 - 0.5 x 37 = 69.5. Request 1 wants 10 + 60, or 10 + 59. */
START_TEST(the_share_falls_with_every_step_of_decodes)
{
    struct scenario_request q[] = {{BE, 0, 10, 6, 0, 0}, {BE, 0.0025, 10, 1, 0, 0}};
    run("min_new_token_ratio=0,ratio_decay_steps=7", 100, q, 2,
        (uint32_t[]){40, _i == 0 ? 60 : 59});
    steps_rows(&sc, _i == 0 ? STEPS(10, 1, 1, 1, 1, 1, 10) : STEPS(10, 1, 1, 10, 1, 1, 1));
}
END_TEST

/* There are two places. Request 1 ends with step 2, and request 2 has found none before. It is
 * looked at again when a step of decodes has been composed without request 1. */
START_TEST(a_place_is_free_one_step_of_decodes_later)
{
    struct scenario_request q[] = {{BE, 0, 5, 5, 0, 0}, {BE, 0, 7, 2, 0, 0}, {BE, 0, 3, 1, 0, 0}};
    run("max_num_seqs=2", 1000, q, 3, (uint32_t[]){8, 8, 8});
    steps_rows(&sc, STEPS(12, 2, 1, 3, 1, 1));
    steps_tokens(&sc, 0, STEPS(1, 2, 3, 5, 6));
}
END_TEST

/* Request 1 would have 8 tokens here, but its user gives up during step 2. SGLang runs it to the
 * end of the step (to_finish), and it is among the running ones until the next step is composed. */
START_TEST(a_place_of_who_gave_up_is_free_as_late)
{
    struct scenario_request q[] = {{BE, 0, 5, 5, 0, 0}, {BE, 0, 7, 8, 0, 0}, {BE, 0, 3, 1, 0, 0}};
    sc.setup.kv_capacity_tokens = 1000;
    scenario_policy(&sc, &policy_sglang_lpm_ops, "max_num_seqs=2");
    scenario_trace(&sc, q, 3);
    sc.trace.extras = xcalloc(3, sizeof *sc.trace.extras);
    for (uint32_t i = 0; i < 3; i++) {
        sc.trace.rows[i].max_output_tokens = 8;
        sc.trace.extras[i] = (struct trace_extra){.ttft_slo_ns = TIME_NEVER_NS,
                                                  .tbt_slo_ns = TIME_NEVER_NS,
                                                  .deadline_ns = TIME_NEVER_NS,
                                                  .cancel_ns = i == 1 ? MS(1.5) : TIME_NEVER_NS,
                                                  .until_ns = TIME_NEVER_NS};
    }
    sc.observer.wants_kernels = true;
    ck_assert_int_eq(scenario_again(&sc), 0);
    steps_rows(&sc, STEPS(12, 2, 1, 3, 1, 1));
    steps_tokens(&sc, 0, STEPS(1, 2, 3, 5, 6));
    ck_assert_int_eq(sc.records[1].state, REQUEST_STATE_SHED);
    ck_assert_uint_eq(sc.records[1].tokens_n, 2);
}
END_TEST

/* There are 32 tokens. Requests 1 and 2 join 0 in step 3, with 8 and 6 tokens: 19 in all, and 31
 * after step 7. Three more are not there. 1 and 2 have five tokens each, and 0 has six, so the
 * longer prompt, 1, starts over. The others have 11 tokens of at most 20 + 6, and 20 more for each
 * make the share 1. Request 0 may produce 13 more then, where 22 are free. So 9 are too few for 13
 * + 1 of request 1, which waits until 0 has ended. Without those 20 the share is 11 / 27, and 16.7
 * are enough. */
START_TEST(who_has_produced_least_starts_over)
{
    struct scenario_request q[] = {
        {BE, 0, 4, 12, 0, 0}, {BE, 0.0015, 8, 6, 0, 0}, {BE, 0.0016, 6, 6, 0, 0}};
    run(_i == 0 ? UNSHARED : UNSHARED ",retract_steps=0", 32, q, 3, (uint32_t[]){20, 6, 6});
    steps_rows(&sc, _i == 0 ? STEPS(4, 1, 14, 3, 3, 3, 3, 2, 1, 1, 1, 1, 1, 13)
                            : STEPS(4, 1, 14, 3, 3, 3, 3, 2, 13, 1, 1, 1, 1, 1));
    steps_tokens(&sc, 1, _i == 0 ? STEPS(3, 4, 5, 6, 7, 14) : STEPS(3, 4, 5, 6, 7, 9));
    steps_tokens(&sc, 2, STEPS(3, 4, 5, 6, 7, 8));
}
END_TEST

/* Request 3 also waits here, since step 4, for 2 + 18 tokens, so request 1 goes behind it. */
START_TEST(who_starts_over_waits_at_the_end)
{
    struct scenario_request q[] = {{BE, 0, 4, 12, 0, 0},
                                   {BE, 0.0015, 8, 6, 0, 0},
                                   {BE, 0.0016, 6, 6, 0, 0},
                                   {BE, 0.0035, 2, 1, 0, 0}};
    run(UNSHARED, 32, q, 4, (uint32_t[]){20, 6, 6, 18});
    steps_rows(&sc, STEPS(4, 1, 14, 3, 3, 3, 3, 2, 1, 1, 1, 1, 1, 2, 13));
    steps_tokens(&sc, 3, STEPS(14));
}
END_TEST

/* Request 0 decodes and takes one of the budget of 8. So 7 rows of 12 run, and then the other 5. */
START_TEST(mixed_decodes_take_of_the_budget)
{
    struct scenario_request q[] = {{BE, 0, 4, 3, 0, 0}, {BE, 0.0005, 12, 1, 0, 0}};
    run("mixed_chunk=true,max_num_batched_tokens=8", 1000, q, 2, (uint32_t[]){8, 8});
    steps_rows(&sc, STEPS(4, 8, 6));
    steps_tokens(&sc, 0, STEPS(1, 2, 3));
}
END_TEST

/* This is as where requests are expected to produce a share, but request 0 decodes in the same
 * step. Its token is taken first: 89 - 0.7 x 39 = 61.7 are left. Request 1 wants 62 with 52, 61
 * with 51. */
START_TEST(mixed_decodes_take_of_what_is_free)
{
    struct scenario_request q[] = {{BE, 0, 10, 4, 0, 0}, {BE, 0.0005, 10, 1, 0, 0}};
    run("mixed_chunk=true", 100, q, 2, (uint32_t[]){40, _i == 0 ? 52 : 51});
    steps_rows(&sc, _i == 0 ? STEPS(10, 1, 1, 1, 10) : STEPS(10, 11, 1, 1));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("steps", .setup = setup, .teardown = teardown),
    LOOP(admission_leaves_room_for_the_whole_answer, 2),
    LOOP(running_requests_are_expected_to_produce_a_share, 2),
    LOOP(the_share_falls_with_every_step_of_decodes, 2),
    TEST(a_place_is_free_one_step_of_decodes_later),
    TEST(a_place_of_who_gave_up_is_free_as_late),
    LOOP(who_has_produced_least_starts_over, 2),
    TEST(who_starts_over_waits_at_the_end),
    TEST(mixed_decodes_take_of_the_budget),
    LOOP(mixed_decodes_take_of_what_is_free, 2),
};
SUITE_MAIN("sglang-steps", suite)
