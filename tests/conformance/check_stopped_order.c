/* These tests show for which request a pass stops, and whether a stopped pass or another request is
 * next. The first that waits is not as it seems: its key has grown while it waited, or its KV is on
 * flash. Times are computed by hand from those of tests/helpers/rules.h, with ten layers. A prompt
 * of n takes 10 (0.03 n + 1) + 1 ms, a decode 21. So 10 rows take 14 ms, 50 rows 26, 64 rows 30.2,
 * 96 rows 39.8, 200 rows 71, and 100 rows 41 (QKV 1, attention 1, FFN 2). */
#include "tests/helpers/rules.h"
#include "tests/helpers/suite.h"

/* An answer is expected to take one decode. Request 3 runs from 14 on, with a key of 41 + 21 = 62.
 * Requests 1 and 2 come at 24, and are a job. Its path is 71 + 21 = 92, the key of 2. Request 1 (26
 * + 21 = 47) may wait for 45 ms, and has a key of 137. When 1 came it was the whole job, with a key
 * of 47. */
START_TEST(nothing_stops_for_a_key_that_has_grown)
{
    rules_machine(10);
    rules_graph("request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,"
                "prefix_tokens,parent_ids\n"
                "0,0,0,reactive,0,,10,1,0,\n"
                "3,3,0,reactive,0.001,,100,1,0,\n"
                "1,1,0,reactive,,0.01,50,1,0,0\n"
                "2,2,0,reactive,,0.01,200,1,0,0");
    rules_run("critical-path", "max_batch=1,expected_output=1,preempt=kernel", "", NULL, 0);
    ck_assert(rules_finishes(3, 55));
    ck_assert(rules_finishes(2, 126) && rules_finishes(1, 152));
}
END_TEST

/* Sessions in order of arrival are 5, P and O. Turn 0 of session 5 runs to 39.8, and its KV is on
 * flash at 41.3 (96 MB at 64 GB/s). P runs from 39.8 on. Turn 1 comes at 50.3, and P stops at 51.8,
 * so that the KV is read back, to 53.3. Meanwhile P continues, and not O. It stops at 53.8, turn 1
 * runs to 84, and P does the other 27 of its 41 ms. */
START_TEST(who_was_stopped_continues_while_kv_comes_back)
{
    rules_machine(10);
    sc.gaps_are_tools = true;
    sc.machine.swap_bytes_per_s = 64e9;
    struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0},
                                   {RT, 0.001, 100, 1, 0, 0},
                                   {RT, 0.002, 50, 1, 0, 0},
                                   {RT, 0.0105, 160, 1, 5, 96}};
    rules_run("program-fcfs", "max_batch=1,preempt=kernel,gap_kv=swap", "", q, 4);
    ck_assert(rules_starts(3, 53.8) && rules_finishes(3, 84));
    ck_assert(rules_finishes(1, 111));
    ck_assert(rules_starts(2, 111) && rules_finishes(2, 137));
}
END_TEST

/* There are 32 blocks. H has its first token at 59. P comes then and is shorter, so H waits with
 * ten blocks. P takes 16, from 59 to 146.8, 8.68 ms a layer. T comes at 100 and needs ten, where
 * six are free, so it takes those of H. P stops at 102.4, T runs 59 ms, and P does its other
 * 44.4. */
START_TEST(a_pass_stops_for_who_may_take_memory_from_others)
{
    rules_machine(10);
    sc.setup.kv_capacity_tokens = 512;
    struct scenario_request q[] = {
        {BE, 0, 160, 100, 0, 0}, {BE, 0.059, 256, 1, 0, 0}, {RT, 0.100, 160, 1, 0, 0}};
    rules_run("srpt", "max_batch=1,preempt=kernel", "", q, 3);
    ck_assert(rules_tokens_at(0, 1, (double[]){59}));
    ck_assert(rules_starts(2, 102.4) && rules_finishes(2, 161.4));
    ck_assert(rules_finishes(1, 205.8));
}
END_TEST

/* T needs 17 blocks, and six free ones with ten of H are one too few. So P runs to its end, and T
 * 92.6 ms behind it. */
START_TEST(nothing_stops_for_who_needs_more_than_may_be_taken)
{
    rules_machine(10);
    sc.setup.kv_capacity_tokens = 512;
    struct scenario_request q[] = {
        {BE, 0, 160, 100, 0, 0}, {BE, 0.059, 256, 1, 0, 0}, {RT, 0.100, 272, 1, 0, 0}};
    rules_run("srpt", "max_batch=1,preempt=kernel", "", q, 3);
    ck_assert(rules_finishes(1, 146.8));
    ck_assert(rules_starts(2, 146.8) && rules_finishes(2, 239.4));
    ck_assert_uint_eq(sc.result.counters[COUNTER_PREEMPT_ASKED], 0);
}
END_TEST

/* States of a sequence take 3 blocks. H has 13, P takes 19, and T needs the 13 of H. */
START_TEST(states_of_who_waits_are_memory_to_take)
{
    rules_machine(10);
    sc.setup.kv_capacity_tokens = 512;
    sc.llm.kv_state_bytes = 48e6;
    struct scenario_request q[] = {
        {BE, 0, 160, 100, 0, 0}, {BE, 0.059, 256, 1, 0, 0}, {RT, 0.100, 160, 1, 0, 0}};
    rules_run("srpt", "max_batch=1,preempt=kernel", "", q, 3);
    ck_assert(rules_starts(2, 102.4) && rules_finishes(2, 161.4));
}
END_TEST

/* They are lost with a pass: P has 28 of 32 blocks, and T needs 31. It takes 145.4. */
START_TEST(states_of_a_pass_that_is_lost_are_memory_to_take)
{
    rules_machine(10);
    sc.setup.kv_capacity_tokens = 512;
    sc.llm.kv_state_bytes = 48e6;
    struct scenario_request q[] = {{BE, 0, 400, 1, 0, 0}, {RT, 0.050, 448, 1, 0, 0}};
    rules_run("srpt", "max_batch=1,preempt=kernel,kv=recompute", "", q, 2);
    ck_assert(rules_starts(1, 52) && rules_finishes(1, 197.4));
    ck_assert(rules_finishes(0, 328.4));
}
END_TEST

/* Turn 0 runs to 39.8. Its six blocks and 3 of states are on flash at 42.05. Only then does P find
 * ten of 18, for 41 ms. Turn 1 comes at 50.3, and eight are free, where it needs nine. So P runs to
 * its end at 83.05. Turn 1 is back at 85.3 and has 64 rows left. */
START_TEST(nothing_stops_for_who_finds_no_room_for_its_states)
{
    rules_machine(10);
    sc.gaps_are_tools = true;
    sc.machine.swap_bytes_per_s = 64e9;
    sc.setup.kv_capacity_tokens = 288;
    sc.llm.kv_state_bytes = 48e6;
    struct scenario_request q[] = {
        {RT, 0, 96, 1, 5, 0}, {RT, 0.001, 100, 1, 0, 0}, {RT, 0.0105, 160, 1, 5, 96}};
    rules_run("program-fcfs", "max_batch=1,preempt=kernel,gap_kv=swap", "", q, 3);
    ck_assert(rules_starts(1, 42.05) && rules_finishes(1, 83.05));
    ck_assert(rules_starts(2, 85.3) && rules_finishes(2, 115.5));
    ck_assert_uint_eq(sc.result.counters[COUNTER_PREEMPT_ASKED], 0);
}
END_TEST

/* P takes 25 of 32 blocks and loses them where it stops. T comes at 50 and needs ten. So P stops at
 * 52, at the end of its fourth layer of 13 ms, and does all of its 131 ms behind T's 59. */
START_TEST(a_pass_stops_for_who_gets_the_memory_that_it_loses)
{
    rules_machine(10);
    sc.setup.kv_capacity_tokens = 512;
    struct scenario_request q[] = {{BE, 0, 400, 1, 0, 0}, {RT, 0.050, 160, 1, 0, 0}};
    rules_run("srpt", "max_batch=1,preempt=kernel,kv=recompute", "", q, 2);
    ck_assert(rules_starts(1, 52) && rules_finishes(1, 111));
    ck_assert(rules_finishes(0, 242));
}
END_TEST

/* Request 0 has 62 ms of work and runs until 10, when the first of five requests of 26 ms stops it.
 * Each of these comes before the last one has ended. At 140 request 0 has been there for twice 62
 * ms. That would have earned it 3 tokens, and none of the others a place among the candidates. But
 * it ran for ten of these, and its wait since it stopped counts at the end of that wait. So the
 * last is a candidate, and shorter. */
START_TEST(who_is_served_earns_no_tokens)
{
    struct scenario_request q[7] = {{BE, 0, 100, 1, 0, 0}, {BE, 0.0095, 50, 1, 0, 0}};
    for (int i = 2; i < 7; i++) {
        q[i] = (struct scenario_request){BE, 0.035 + 0.026 * (i - 2), 50, 1, 0, 0};
    }
    rules_machine(10);
    rules_run("prema", "max_batch=1,class=blind,preempt=kernel,expected_output=1", "", q, 7);
    ck_assert(rules_starts(1, 10) && rules_starts(5, 114) && rules_starts(6, 140));
    ck_assert(rules_finishes(0, 197));
}
END_TEST

/* Request 0 stops at 8 for 1, which has 9 tokens. Then those with 3 are no candidates, not even the
 * shortest, which came while 0 ran on to its boundary. */
START_TEST(a_stop_has_the_candidates_of_its_instant)
{
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {RT, 0.0062, 50, 1, 0, 0}, {BE, 0.007, 10, 1, 0, 0}};
    rules_machine(10);
    rules_run("prema",
              "max_batch=1,class=blind,preempt=kernel,expected_output=1,proactive_priority=3",
              _i == 0 ? "" : "kv=recompute", q, 3);
    ck_assert(rules_starts(1, 8) && rules_starts(2, 34));
}
END_TEST

/* Request 0 has 62 ms of work, and loses it at 10, 46, 82 and 126 for requests of 26 ms, which end
 * at 36, 72 and 108. So it has waited ever since it came: at 124, in its fourth pass, it has earned
 * 3 tokens. At the stop at 126 it is the only candidate, and the last of the others comes after
 * it. */
START_TEST(who_loses_a_pass_is_ranked_by_its_wait_at_once)
{
    struct scenario_request q[] = {{BE, 0, 100, 1, 0, 0},
                                   {BE, 0.0095, 50, 1, 0, 0},
                                   {BE, 0.0455, 50, 1, 0, 0},
                                   {BE, 0.0815, 50, 1, 0, 0},
                                   {BE, 0.1255, 50, 1, 0, 0}};
    rules_machine(10);
    rules_run("prema", "max_batch=1,class=blind,preempt=kernel,kv=recompute,expected_output=1", "",
              q, 5);
    ck_assert(rules_starts(1, 10) && rules_starts(2, 46) && rules_starts(3, 82));
    ck_assert(rules_finishes(0, 167) && rules_finishes(4, 193));
}
END_TEST

/* Laxity is counted less the present here. Request 0 has 200 - 41 ms and stops at 10 with 169, for
 * 1, which has 185 - 26. That stops at 20, with 169 as well, for 2. The last that stopped continues
 * first. */
START_TEST(of_equals_the_last_that_stopped_goes_on)
{
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.0095, 50, 1, 0, 0}, {BE, 0.0195, 50, 1, 0, 0}};
    rules_machine(10);
    rules_extra(0)->deadline_ns = 200000000;
    rules_extra(1)->deadline_ns = 185000000 - 9500000;
    rules_extra(2)->deadline_ns = 50000000 - 19500000;
    rules_run("llf", "max_batch=1,preempt=kernel", "", q, 3);
    ck_assert(rules_starts(1, 10) && rules_starts(2, 20));
    ck_assert(rules_finishes(1, 62) && rules_finishes(0, 93));
}
END_TEST

/* A reactive request of 14 ms comes 2.5 ms after each begin of request 0, which stops at 4 and
 * begins again at 18. Its seventeenth begin, at 288, is its last, because it has lost sixteen
 * passes. */
START_TEST(a_request_loses_sixteen_passes_at_most)
{
    struct scenario_request q[18] = {{BE, 0, 100, 1, 0, 0}};
    for (int i = 1; i < 18; i++) {
        q[i] = (struct scenario_request){RT, 0.0025 + 0.018 * (i - 1), 10, 1, 0, 0};
    }
    rules_machine(10);
    rules_run("program-fcfs", "max_batch=1,preempt=kernel,kv=recompute", "", q, 18);
    ck_assert(rules_starts(16, 274) && rules_finishes(0, 329) && rules_finishes(17, 343));
}
END_TEST

/* Client 7 has had 10 tokens of prompt and one of answer when its second request is admitted, at
 * 14. A request that comes at 20, of a client that has had nothing, waits for its end, at 55. */
START_TEST(nobody_stops_who_was_admitted)
{
    struct scenario_request q[] = {
        {BE, 0, 10, 1, 0, 0}, {BE, 0.001, 100, 1, 0, 0}, {_i == 0 ? BE : RT, 0.02, 50, 1, 0, 0}};
    rules_machine(10);
    rules_extra(0)->client_id = rules_extra(1)->client_id = 7;
    rules_run("vtc", "max_batch=1,preempt=kernel", "", q, 3);
    ck_assert(rules_starts(1, 14) && rules_starts(2, 55));
}
END_TEST

/* Flash moves 24 tokens in 1 ms, and 31 blocks are there. R (96) ends at 4.88, and its KV is out at
 * 8.88. X (240) ends at 14.08. R's next turn comes at 8.9 and has its six blocks back at 12.9. X's
 * KV goes out until 24.08, and that of Y (48), which ends at 17.52, until 26.08. W (192) came
 * before the turn and needs twelve blocks, where seven are free. The turn keeps its KV, since X's
 * is on its way out: W runs from 24.08 for 7.76 ms, and the turn for 16 rows, 2.48. */
START_TEST(nobody_loses_kv_while_either_of_two_goes_out)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    sc.machine.swap_bytes_per_s = 24e9;
    sc.setup.kv_capacity_tokens = 31 * 16;
    struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0},         {RT, 0.001, 240, 1, 6, 0},
                                   {RT, 0.002, 48, 1, 7, 0},     {RT, 0.003, 192, 1, 0, 0},
                                   {RT, 0.00402, 112, 1, 5, 96}, {RT, 1, 256, 1, 6, 240},
                                   {RT, 1, 64, 1, 7, 48}};
    rules_run(_i == 0 ? "agent-xpu-v1" : "agent-xpu-v2", "gap_kv=swap", "", q, 7);
    ck_assert(rules_finishes(2, 17.52));
    ck_assert(rules_starts(3, 24.08) && rules_finishes(3, 31.84));
    ck_assert(rules_finishes(4, 34.32));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("stopped order"),
    TEST(who_is_served_earns_no_tokens),
    LOOP(a_stop_has_the_candidates_of_its_instant, 2),
    TEST(who_loses_a_pass_is_ranked_by_its_wait_at_once),
    TEST(of_equals_the_last_that_stopped_goes_on),
    TEST(a_request_loses_sixteen_passes_at_most),
    LOOP(nobody_stops_who_was_admitted, 2),
    TEST(nothing_stops_for_a_key_that_has_grown),
    TEST(who_was_stopped_continues_while_kv_comes_back),
    TEST(a_pass_stops_for_who_may_take_memory_from_others),
    TEST(nothing_stops_for_who_needs_more_than_may_be_taken),
    TEST(states_of_who_waits_are_memory_to_take),
    TEST(states_of_a_pass_that_is_lost_are_memory_to_take),
    TEST(nothing_stops_for_who_finds_no_room_for_its_states),
    TEST(a_pass_stops_for_who_gets_the_memory_that_it_loses),
    LOOP(nobody_loses_kv_while_either_of_two_goes_out, 2),
};
SUITE_MAIN("stopped order", suite)
