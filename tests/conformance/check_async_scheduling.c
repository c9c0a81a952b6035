/* vllm-v1 by hand: its async_scheduling, and the requests that it admits. With async_scheduling an
 * iteration is composed when the one before it starts. Toy times are those of check_batching.c: a
 * pass of n rows takes 0.03 n + 1 ms, and 1 ms more when it yields tokens. A decode of one sequence
 * takes 3 ms. */

#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

extern const struct policy_ops policy_vllm_v1_ops;

static struct scenario sc;

static void run(const char *params, const struct scenario_request *q, uint32_t n)
{
    scenario_policy(&sc, &policy_vllm_v1_ops, params);
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

/* Pass 1 has 100 rows, 0 to 5 ms. Request 1 comes at 1 ms, when pass 2 (a decode, 5 to 8) is
 * already composed. Pass 3 takes its 50 rows and a decode: 51 rows, 1.53 + 2 = 3.53, until 11.53.
 * Without async_scheduling pass 2 takes them, until 5 + 3.53 = 8.53, and then request 0 decodes
 * alone, until 11.53. */
START_TEST(a_request_joins_the_second_iteration_that_starts_after_it_came)
{
    struct scenario_request q[] = {{RT, 0, 100, 3, 0, 0}, {RT, 0.001, 50, 1, 0, 0}};
    run("async_scheduling=true", q, 2);
    scenario_tokens_at(&sc, 0, 3, (double[]){5, 8, 11.53});
    scenario_tokens_at(&sc, 1, 1, (double[]){11.53});
}
END_TEST

START_TEST(without_it_a_request_joins_the_next_iteration)
{
    struct scenario_request q[] = {{RT, 0, 100, 3, 0, 0}, {RT, 0.001, 50, 1, 0, 0}};
    run("", q, 2);
    scenario_tokens_at(&sc, 0, 3, (double[]){5, 8.53, 11.53});
    scenario_tokens_at(&sc, 1, 1, (double[]){8.53});
}
END_TEST

/* On an idle machine nothing is composed ahead. 100 rows end at 5, and 50 rows from 10 on take 1.5
 * + 2 = 3.5. */
START_TEST(an_idle_machine_serves_at_once)
{
    struct scenario_request q[] = {{RT, 0, 100, 1, 0, 0}, {RT, 0.010, 50, 1, 0, 0}};
    run("async_scheduling=true", q, 2);
    scenario_tokens_at(&sc, 0, 1, (double[]){5});
    scenario_tokens_at(&sc, 1, 1, (double[]){13.5});
}
END_TEST

/* There is one place. When its request ends nothing else runs, so the next one starts at once, at
 * 5. */
START_TEST(the_last_one_to_finish_hands_over_at_once)
{
    struct scenario_request q[] = {{RT, 0, 100, 1, 0, 0}, {RT, 0.001, 50, 1, 0, 0}};
    run("async_scheduling=true,max_num_seqs=1", q, 2);
    scenario_tokens_at(&sc, 1, 1, (double[]){8.5});
}
END_TEST

/* There are two places. Pass 1 has 200 rows, 6 + 2 = 8. Pass 2 has two decode rows, 0.06 + 2, until
 * 10.06, where request 0 ends. Pass 3 was composed before that, at 8: a decode of request 1 alone,
 * until 13.06. Pass 4 takes a decode and the 50 rows of request 2, there from 0.5 ms on: 13.06 +
 * 3.53 = 16.59. */
START_TEST(a_place_is_taken_one_iteration_after_it_became_free)
{
    struct scenario_request q[] = {
        {RT, 0, 100, 2, 0, 0}, {RT, 0, 100, 4, 0, 0}, {RT, 0.0005, 50, 1, 0, 0}};
    run("async_scheduling=true,max_num_seqs=2", q, 3);
    scenario_tokens_at(&sc, 0, 2, (double[]){8, 10.06});
    scenario_tokens_at(&sc, 1, 4, (double[]){8, 10.06, 13.06, 16.59});
    scenario_tokens_at(&sc, 2, 1, (double[]){16.59});
}
END_TEST

/* There is KV for 320 tokens, and an iteration has 64 rows. Request 0 (160 tokens) runs 64, 64 and
 * 32 rows, until 2.92, 5.84 and 8.80 ms, and then two decodes, until 14.8. Request 1 (200 tokens)
 * does not fit next to it as a whole, so it starts when request 0 is gone. Where only its first
 * chunk has to fit, it starts in the third iteration, of which 32 rows are free. */
START_TEST(a_prompt_is_admitted_when_all_of_it_fits)
{
    struct scenario_request q[] = {{RT, 0, 160, 3, 0, 0}, {RT, 0, 200, 1, 0, 0}};
    sc.setup.kv_capacity_tokens = 320;
    run("max_num_batched_tokens=64", q, 2);
    scenario_tokens_at(&sc, 0, 3, (double[]){8.8, 11.8, 14.8});
    ck_assert_int_eq(sc.records[1].start_ns, MS(14.8));
    ck_assert_uint_eq(sc.records[1].preemptions, 0);
    run("max_num_batched_tokens=64,reserve_full_isl=false", q, 2);
    ck_assert_int_eq(sc.records[1].start_ns, MS(5.84));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(a_request_joins_the_second_iteration_that_starts_after_it_came),
    TEST(without_it_a_request_joins_the_next_iteration),
    TEST(an_idle_machine_serves_at_once),
    TEST(the_last_one_to_finish_hands_over_at_once),
    TEST(a_place_is_taken_one_iteration_after_it_became_free),
    TEST(a_prompt_is_admitted_when_all_of_it_fits),
};
SUITE_MAIN("asynchronous scheduling", suite)
