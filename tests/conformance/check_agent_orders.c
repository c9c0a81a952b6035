/* Orders for agents and their users are tested rule by rule: sglang-lpm, autellix-like,
 * critical-path, andes and pantheon (clauses.md E.13, E.17, E.21 to E.23). Each scenario must hold,
 * and must fail with the switches that its row of the table names. In the toy times of
 * tests/helpers/rules.h a prompt of n tokens takes 0.03 n + 2 ms, and a decode 3 ms. All instants
 * are in ms. */
#include "tests/helpers/rules.h"

/* ---- sglang-lpm ---- */

/* Requests run one at a time. BE0 (96) ends at 4.88, and BE1 (400) at 18.88. BE2 (100) came at 2.
 * The next turn of BE0's session came at 7.88, with 96 of its 160 tokens cached. It is first: 64
 * rows take 3.92, until 22.8. */
static bool lpm_takes_the_longest_cached_prefix(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 96, 1, 5, 0},
                                   {BE, 0.001, 400, 1, 0, 0},
                                   {BE, 0.002, 100, 1, 0, 0},
                                   {BE, 0.003, 160, 1, 5, 96}};
    rules_run("sglang-lpm", "max_num_seqs=1", extra, q, 4);
    return rules_finishes(3, 22.8) && rules_starts(2, 22.8);
}

/* With max_sorted=1 two waiting requests are too many to sort, so they run in order of arrival. */
static bool lpm_leaves_a_long_queue_as_it_is(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 96, 1, 5, 0},
                                   {BE, 0.001, 400, 1, 0, 0},
                                   {BE, 0.002, 100, 1, 0, 0},
                                   {BE, 0.003, 160, 1, 5, 96}};
    rules_run("sglang-lpm", "max_num_seqs=1,max_sorted=1", extra, q, 4);
    return rules_starts(2, 18.88) && rules_finishes(3, 23.88 + 3.92);
}

/* BE0 decodes from 5 on. BE1 (100), which comes at 6, has the next step to itself: 8-13. */
static bool lpm_serves_prompts_before_decodes(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 100, 3, 0, 0}, {BE, 0.006, 100, 1, 0, 0}};
    rules_run("sglang-lpm", "", extra, q, 2);
    return rules_finishes(1, 13) && rules_tokens_at(0, 3, (double[]){5, 8, 16});
}

/* A prompt of 1000 is cut at the budget of 512. First come 512 rows in 16.36 ms, without a token,
 * and then 488, which count as 31 blocks of 16. BE1 comes at 1. It has the block that is left of
 * the second step, 0.03 * 504 + 1 + 1 = 17.12, and 84 rows in a third, 4.52. */
static bool lpm_goes_on_with_a_cut_prompt_first(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 1000, 2, 0, 0}, {BE, 0.001, 100, 1, 0, 0}};
    rules_run("sglang-lpm", "", extra, q, 2);
    return rules_tokens_at(0, 2, (double[]){16.36 + 17.12, 16.36 + 17.12 + 4.52 + 3}) &&
           rules_finishes(1, 16.36 + 17.12 + 4.52);
}

#define HEADER                                                                                     \
    "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,"   \
    "prefix_group,background,parent_ids\n"

/* Request 0 (100) runs until 5. Requests 1 and 2 (200 each) share 160 tokens, and find nothing
 * cached. Request 3 (100) shares nothing. The step at 5 admits 1 and puts 2 behind 3. The budget of
 * 320 is then full with 13 blocks and 7: 300 rows in 11 ms. At 16 request 2 finds ten blocks
 * cached, and 40 rows take 3.2. */
static bool lpm_computes_a_shared_prefix_once(const char *extra)
{
    rules_machine(1);
    rules_graph(HEADER "0,0,0,proactive,0,,100,1,0,,,\n"
                       "1,1,0,proactive,0.001,,200,1,160,7,,\n"
                       "2,2,0,proactive,0.001,,200,1,160,7,,\n"
                       "3,3,0,proactive,0.002,,100,1,0,,,");
    rules_run("sglang-lpm", "max_num_batched_tokens=320", extra, NULL, 0);
    return rules_finishes(1, 16) && rules_finishes(3, 16) && rules_finishes(2, 19.2);
}

/* Here request 4 comes between 1 and 2. It begins as request 0 does, so it finds 96 of its 200
 * tokens cached and is first. 104 rows of it, 200 of 1 and 100 of 3 fill the step: 404 rows in 27
 * blocks, 14.12 ms. It does not matter to 1 and 2 that a request came between them. */
static bool lpm_looks_at_each_that_shares(const char *extra)
{
    rules_machine(1);
    rules_graph(HEADER "0,0,0,proactive,0,,100,1,96,9,,\n"
                       "1,1,0,proactive,0.001,,200,1,160,7,,\n"
                       "4,4,0,proactive,0.0015,,200,1,96,9,,\n"
                       "2,2,0,proactive,0.002,,200,1,160,7,,\n"
                       "3,3,0,proactive,0.003,,100,1,0,,,");
    rules_run("sglang-lpm", "max_num_batched_tokens=432", extra, NULL, 0);
    return rules_finishes(4, 19.12) && rules_finishes(1, 19.12) && rules_finishes(3, 19.12) &&
           rules_finishes(2, 22.32);
}

/* ---- autellix-like: queue k has services below 5 2^(k+1) ms, and a quantum of 5 2^k ms ---- */

static void clients(uint32_t n, const uint32_t *client)
{
    for (uint32_t i = 0; i < n; i++) {
        rules_extra(i)->client_id = client[i];
    }
}

#define T0 "max_batch=1,t0_s=0.005,beta=1000"

/* BE0 runs 0-11 and BE1 11-16. BE2, of BE0's program, comes at 12. It has 11 ms of service, so it
 * is in queue 1. BE3, of a new program, comes at 13 and is first. */
static bool autellix_inherits_the_programs_service(const char *extra)
{
    rules_machine(1);
    clients(4, (uint32_t[]){1, 3, 1, 2});
    struct scenario_request q[] = {{BE, 0, 300, 1, 0, 0},
                                   {BE, 0.0105, 100, 1, 0, 0},
                                   {BE, 0.012, 100, 1, 0, 0},
                                   {BE, 0.013, 100, 1, 0, 0}};
    rules_run("autellix-like", T0, extra, q, 4);
    return rules_starts(3, 16) && rules_starts(2, 21);
}

/* Two calls of program 1 and one each of programs 2 and 4 take 11 ms each: 0-44. BE4 runs 44-49.
 * Meanwhile BE5 of program 2, BE6 of program 1 and BE7 of program 4 come. The longest path of each
 * program is 11 ms, queue 1, so they run in order of arrival. The sum would be 22 ms in program 1,
 * queue 2. */
static bool autellix_inherits_the_longest_path(const char *extra)
{
    rules_machine(1);
    clients(8, (uint32_t[]){1, 1, 2, 4, 3, 2, 1, 4});
    struct scenario_request q[] = {{BE, 0, 300, 1, 0, 0},      {BE, 0.0001, 300, 1, 0, 0},
                                   {BE, 0.0002, 300, 1, 0, 0}, {BE, 0.0003, 300, 1, 0, 0},
                                   {BE, 0.043, 100, 1, 0, 0},  {BE, 0.045, 100, 1, 0, 0},
                                   {BE, 0.046, 100, 1, 0, 0},  {BE, 0.047, 100, 1, 0, 0}};
    rules_run("autellix-like", T0 ",mode=atlas", extra, q, 8);
    return rules_starts(5, 49) && rules_starts(6, 54) && rules_starts(7, 59);
}

/* BE0 has used 5 ms at 5, and 8 ms, more than its quantum, at 8. So it is in queue 1, and BE1,
 * which came at 6, in queue 0. */
static bool autellix_demotes_after_the_quantum(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 100, 10, 0, 0}, {BE, 0.006, 100, 1, 0, 0}};
    rules_run("autellix-like", T0, extra, q, 2);
    return rules_starts(1, 8) && rules_tokens_at(0, 3, (double[]){5, 8, 16});
}

/* BE2, of BE0's program (0-11: 11 ms), comes at 12 and waits in queue 1. Others that just came are
 * before it at 11, 16, 21, 26 and 31. At 36 it has waited 24 >= 2 * 11, so it is moved to the top,
 * where it is the earliest. */
static bool autellix_promotes_who_waited_long(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[9] = {
        {BE, 0, 300, 1, 0, 0}, {BE, 0.0105, 100, 1, 0, 0}, {BE, 0.012, 100, 1, 0, 0}};
    for (int i = 3; i < 9; i++) {
        q[i] = (struct scenario_request){BE, 0.005 * i + 0.0005, 100, 1, 0, 0};
    }
    clients(9, (uint32_t[]){1, 2, 1, 3, 4, 5, 6, 7, 8});
    rules_run("autellix-like", "max_batch=1,t0_s=0.005,beta=2", extra, q, 9);
    return rules_starts(6, 31) && rules_starts(2, 36) && rules_starts(7, 41);
}

/* BE2 has three tokens here, and others come until 75.5. It is due at the top at 12 + 22 = 34, runs
 * for 8 ms from 36 on, and is in queue 1 again at 44. It then has 19 ms with the 11 of its program.
 * Its waiting counts from 34, so it is due at 34 + 8 + 2 * 19 = 80 and runs again at 84. If it
 * counted from 12, it would be due at 58. */
static bool autellix_counts_from_the_promotion(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[16] = {
        {BE, 0, 300, 1, 0, 0}, {BE, 0.0105, 100, 1, 0, 0}, {BE, 0.012, 100, 3, 0, 0}};
    uint32_t client[16] = {1, 2, 1};
    for (uint32_t i = 3; i < 16; i++) {
        q[i] = (struct scenario_request){BE, 0.005 * i + 0.0005, 100, 1, 0, 0};
        client[i] = i;
    }
    clients(16, client);
    rules_run("autellix-like", "max_batch=1,t0_s=0.005,beta=2", extra, q, 16);
    return rules_tokens_at(2, 3, (double[]){41, 44, 87});
}

/* ---- critical-path: one at a time; an answer is expected to take one decode, 3 ms ---- */

#define ONE "max_batch=1,expected_output=1"

/* At 5 request 0 ends, and 1 (100: 5 + 3 = 8) and 2 (400: 14 + 3 = 17) of its job come. Request 3
 * (300: 11 + 3 = 14) is a job of its own. The path of the first job is 17. So 3 is first, 5-16.
 * Then comes 2, 16-30, and at last 1, which has slack, 30-35. */
static bool path_orders_jobs_and_slack_within(const char *extra)
{
    rules_machine(1);
    rules_graph(HEADER "0,0,0,reactive,0,,100,1,0,,,\n"
                       "3,3,0,reactive,0.001,,300,1,0,,,\n"
                       "1,1,0,reactive,,0,100,1,0,,,0\n"
                       "2,2,0,reactive,,0,400,1,0,,,0");
    rules_run("critical-path", ONE, extra, NULL, 0);
    return rules_finishes(3, 16) && rules_finishes(2, 30) && rules_finishes(1, 35);
}

/* Request 2 (250: 9.5 + 3 = 12.5) is the path. Request 1 (8) has a slack of 4.5 and a key of 17,
 * and 3 (330: 11.9 + 3) has a key of 14.9. When 2 ends, at 14.5, the path is 8, so 1 runs before
 * 3. */
static bool path_shortens_when_a_request_leaves(const char *extra)
{
    rules_machine(1);
    rules_graph(HEADER "0,0,0,reactive,0,,100,1,0,,,\n"
                       "3,3,0,reactive,0.001,,330,1,0,,,\n"
                       "1,1,0,reactive,,0,100,1,0,,,0\n"
                       "2,2,0,reactive,,0,250,1,0,,,0");
    rules_run("critical-path", ONE, extra, NULL, 0);
    return rules_finishes(2, 14.5) && rules_finishes(1, 19.5) && rules_starts(3, 19.5);
}

/* The path is the longest of 100 (8), 150 (9.5) and 250 (12.5): 5-14.5. Then the path is 9.5. It
 * runs before 4 (330: 14.9), and so does 100 after it. So 4 starts at 26, for every order in which
 * the three come. */
static bool path_shortens_whoever_of_three_leaves(const char *extra)
{
    static const int rows[] = {100, 150, 250};
    bool all = true;
    for (int i = 0; i < 3; i++) {
        OWNED char *graph = xformat(HEADER "0,0,0,reactive,0,,100,1,0,,,\n"
                                           "4,4,0,reactive,0.001,,330,1,0,,,\n"
                                           "1,1,0,reactive,,0,%d,1,0,,,0\n"
                                           "2,2,0,reactive,,0,%d,1,0,,,0\n"
                                           "3,3,0,reactive,,0,%d,1,0,,,0",
                                    rows[i], rows[(i + 1) % 3], rows[(i + 2) % 3]);
        rules_machine(1);
        rules_graph(graph);
        rules_run("critical-path", ONE, extra, NULL, 0);
        all = rules_finishes(1 + (uint32_t)(2 - i + 3) % 3, 14.5) && rules_starts(4, 26) && all;
        scenario_fini(&sc);
    }
    rules_machine(1);
    return all;
}

/* No user waits for 1 (8), and one waits for 2 (17). */
static bool path_puts_the_background_last(const char *extra)
{
    rules_machine(1);
    rules_graph(HEADER "0,0,0,reactive,0,,100,1,0,,,\n"
                       "2,2,0,reactive,0.001,,400,1,0,,,\n"
                       "1,1,0,reactive,,0,100,1,0,,1,0");
    rules_run("critical-path", ONE, extra, NULL, 0);
    return rules_finishes(2, 19) && rules_finishes(1, 24);
}

/* Session 0 waits for 1 (100: 8), and will answer once more: 11. So 3 (150: 6.5 + 3 = 9.5) is
 * first, 5-11.5. */
static bool path_counts_the_answers_of_those_who_wait(const char *extra)
{
    rules_machine(1);
    rules_graph(HEADER "0,0,0,reactive,0,,100,1,0,,,\n"
                       "3,3,0,reactive,0.001,,150,1,0,,,\n"
                       "1,1,0,reactive,,0,100,1,0,,,0\n"
                       "2,0,1,reactive,,0,110,1,0,,,1");
    rules_run("critical-path", ONE, extra, NULL, 0);
    return rules_finishes(3, 11.5) && rules_finishes(1, 16.5);
}

/* ---- andes: one at a time; the first token is expected at once ---- */

/* A user reads 100 tokens a second, so one in 10 ms, and the policy looks 10 ms ahead. RT0 has
 * tokens at 5 and 8. At 8 its user has read 0.3 of 2, which is enough for 10 ms: no gain. RT1,
 * which came at 6, runs 8-13. At 13 0.8 of 2 tokens are read, still enough. RT1's user has one
 * token, just enough too, so the first to come is first: 16. Then RT0's user has 1.9 left and RT1's
 * 0.7, so RT1 runs: 19. */
static bool andes_serves_who_has_nothing_to_read(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{RT, 0, 100, 10, 0, 0}, {RT, 0.006, 100, 10, 0, 0}};
    rules_run("andes", "max_batch=1,ttft_s=0,read_tokens_per_s=100,horizon_s=0.01", extra, q, 2);
    return rules_tokens_at(0, 3, (double[]){5, 8, 16}) && rules_tokens_at(1, 2, (double[]){13, 19});
}

/* A user reads 1000 tokens a second, and the policy looks 10 ms ahead. At 14 RT0 (400) has its
 * first token, and RT1 (100) came at 10. The areas are in tokens times ms.
 *
 * RT0 has 0.5 + 9 = 9.5 where it waits. Served, its user reads 1.5 tokens in 1.5 ms and then one in
 * 3: 1.125 + 12.75 + 12.04 = 25.9. With 24^2 / 2 expected, the gain is 0.057. RT1 has its prompt
 * after 5 ms, and then reads one in 3 for 5: 4.17 of 14^2 / 2, so 0.043. Divided by the tokens of
 * context, 401 and 100, RT1 is first. */
static bool andes_counts_gain_per_token_of_context(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{RT, 0, 400, 10, 0, 0}, {RT, 0.01, 100, 10, 0, 0}};
    rules_run("andes", "max_batch=1,ttft_s=0,read_tokens_per_s=1000,horizon_s=0.01", extra, q, 2);
    return rules_starts(1, 14);
}

/* The first test, but with the first token expected after 12 ms. At 8 nothing is expected of RT1 in
 * the next 10 ms, and RT0's user does not read yet. So there is no gain, and the first to come is
 * first: 11. Then RT1's user will read from 18 on, with the prompt done at 16, so RT1 runs. */
static bool andes_lets_who_expects_nothing_yet_wait(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{RT, 0, 100, 10, 0, 0}, {RT, 0.006, 100, 10, 0, 0}};
    rules_run("andes", "max_batch=1,ttft_s=0.012,read_tokens_per_s=100,horizon_s=0.01", extra, q,
              2);
    return rules_tokens_at(0, 3, (double[]){5, 8, 11}) && rules_tokens_at(1, 1, (double[]){16});
}

/* A user reads 1000 tokens a second. The first token is expected after 30 ms, and the policy looks
 * 40 ms ahead. At 5 both can be read from 32 on, for 13 ms. RT1 (400) would have its first token at
 * 19, and 13 / 3 more by then. These and one in 3 ms make 21.1 + 42.3 + 7.0 = 70.4. RT2 (100) has
 * 22 / 3 by then: 60.5 + 22 + 0.7 = 83.2. So it is first. Without the tokens that wait to be read
 * both have 28.2, and RT1 would be first. */
static bool andes_counts_tokens_that_nobody_reads_yet(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {RT, 0, 100, 1, 0, 0}, {RT, 0.002, 400, 10, 0, 0}, {RT, 0.002, 100, 10, 0, 0}};
    rules_run("andes",
              "max_batch=1,ttft_s=0.03,read_tokens_per_s=1000,horizon_s=0.04,per_token=false",
              extra, q, 3);
    return rules_starts(2, 5);
}

/* The policy looks 20 ms ahead, and prompts run in pieces of 100. A request whose user has read
 * nothing, and whose prompt takes l ms more, gains (20 - l)^2 of (20 + age)^2.
 *
 * At 4 a piece of RT0 (200) is done, and the other takes 5: (15 / 24)^2 = 0.39. RT1 (150, 6.5 ms)
 * came at 1: (13.5 / 23)^2 = 0.34. So RT0 continues, until 9. With all of its prompt to do, 8 ms,
 * RT1 would be first. Divided by tokens of context, 200 and 150, it is. */
static bool andes_counts_what_is_left_of_a_prompt(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{RT, 0, 200, 1, 0, 0}, {RT, 0.001, 150, 1, 0, 0}};
    rules_run("andes",
              "max_batch=1,token_budget=100,ttft_s=0,read_tokens_per_s=100,horizon_s=0.02,"
              "per_token=false",
              extra, q, 2);
    return rules_finishes(0, 9) && rules_finishes(1, 16.5);
}

/* ---- pantheon ---- */

/* There are two layers. RT0 (400) has kernels 0-4, 4-5, 5-13, 13-17, 17-18 and 18-26, and the head
 * 26-27. RT1 (100) takes 9, and comes at 2 with a deadline. */
static void two_reactive(const char *extra, double deadline_ms)
{
    rules_machine(2);
    rules_extra(0)->deadline_ns = MS(100);
    rules_extra(1)->deadline_ns = MS(deadline_ms);
    struct scenario_request q[] = {{RT, 0, 400, 1, 0, 0}, {RT, 0.002, 100, 1, 0, 0}};
    rules_run("pantheon", "", extra, q, 2);
}

/* RT1 is due at 52. So RT0 stops at the end of its layer, 13, and continues at 22 with 14 ms
 * left. */
static bool pantheon_preempts_a_reactive_request_by_deadline(const char *extra)
{
    two_reactive(extra, 50);
    return rules_starts(1, 13) && rules_finishes(1, 22) && rules_finishes(0, 36);
}

/* RT1 is due at 202, after RT0, so it waits. */
static bool pantheon_leaves_the_earlier_deadline(const char *extra)
{
    two_reactive(extra, 200);
    return rules_finishes(0, 27) && rules_starts(1, 27);
}

/* RT0 has its first token at 5, and two decodes to run by 100. RT1 comes at 6 and is due at 50. The
 * decode's layer ends at 7, RT1 runs 7-12, and RT0's head 12-13. */
static bool pantheon_has_one_deadline_for_the_answer(const char *extra)
{
    rules_machine(1);
    rules_extra(0)->deadline_ns = MS(100);
    rules_extra(1)->deadline_ns = MS(44);
    struct scenario_request q[] = {{RT, 0, 100, 3, 0, 0}, {RT, 0.006, 100, 1, 0, 0}};
    rules_run("pantheon", "", extra, q, 2);
    return rules_finishes(1, 12) && rules_tokens_at(0, 3, (double[]){5, 13, 16});
}

/* A place is free next to RT0, and BE1 does not get it. */
static bool pantheon_serves_reactive_requests_alone(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{RT, 0, 100, 3, 0, 0}, {BE, 0.001, 100, 1, 0, 0}};
    rules_run("pantheon", "max_batch=2", extra, q, 2);
    return rules_finishes(0, 11) && rules_starts(1, 11);
}

/* In one layer a prompt of 100 takes 5. RT2 is due in 31 years, and runs before BE1, which came
 * first. No key of a reactive request may reach those of the background. */
static bool pantheon_puts_no_deadline_behind_the_background(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {RT, 0, 100, 1, 0, 0}, {BE, 0.001, 100, 1, 0, 0}, {RT, 0.002, 100, 1, 0, 0}};
    rules_run("pantheon", "deadline_s=1e9", extra, q, 3);
    return rules_starts(2, 5) && rules_starts(1, 10);
}

/* BE1 comes at 1 and has no deadline, so it is due after 30 s, and so is RT3. BE2 is due at 102 ms,
 * so it is next at 5. BE1 came before RT3, so it runs before it. */
static bool pantheon_gives_everybody_a_deadline(const char *extra)
{
    rules_machine(1);
    rules_extra(2)->deadline_ns = MS(100);
    struct scenario_request q[] = {{BE, 0, 100, 1, 0, 0},
                                   {BE, 0.001, 100, 1, 0, 0},
                                   {BE, 0.002, 100, 1, 0, 0},
                                   {RT, 0.003, 100, 1, 0, 0}};
    rules_run("pantheon", "class=blind,preempt=iteration", extra, q, 4);
    return rules_starts(2, 5) && rules_starts(1, 10) && rules_starts(3, 15);
}

static const struct rule_row all[] = {
    RULE(pantheon_preempts_a_reactive_request_by_deadline, "preempt=iteration preempt=kernel",
         "preempt=iteration preempt=kernel"),
    RULE(pantheon_leaves_the_earlier_deadline, "policy=sjf-input", ""),
    RULE(pantheon_has_one_deadline_for_the_answer, "preempt=iteration", "preempt=iteration"),
    RULE(pantheon_serves_reactive_requests_alone, "class=rt_first", "class=rt_first"),
    RULE(pantheon_puts_no_deadline_behind_the_background, "class=blind", "class=blind"),
    RULE(pantheon_gives_everybody_a_deadline, "class=rt_alone deadline_s=0.05",
         "class=rt_alone deadline_s=0.05"),
    RULE(andes_serves_who_has_nothing_to_read, "read_tokens_per_s=1000 per_token=false",
         "read_tokens_per_s=1000"),
    RULE(andes_lets_who_expects_nothing_yet_wait, "ttft_s=0 horizon_s=1", "ttft_s=0 horizon_s=1"),
    RULE(andes_counts_tokens_that_nobody_reads_yet, "read_tokens_per_s=10", "read_tokens_per_s=10"),
    RULE(andes_counts_gain_per_token_of_context, "per_token=false", "per_token=false"),
    RULE(andes_counts_what_is_left_of_a_prompt, "per_token=true", "per_token=true"),
    RULE(autellix_inherits_the_programs_service, "mode=atlas t0_s=1 beta=1e9", "t0_s=1"),
    RULE(autellix_inherits_the_longest_path, "mode=plas", "mode=plas"),
    RULE(autellix_demotes_after_the_quantum, "t0_s=1", "t0_s=1"),
    RULE(autellix_promotes_who_waited_long, "beta=1000 beta=3", "beta=1000 beta=3"),
    RULE(autellix_counts_from_the_promotion, "beta=1000", "beta=1000"),
    RULE(path_orders_jobs_and_slack_within, "jobs=false slack=false waits=false",
         "jobs=false slack=false"),
    RULE(path_shortens_when_a_request_leaves, "jobs=false slack=false waits=false",
         "jobs=false slack=false"),
    RULE(path_shortens_whoever_of_three_leaves, "jobs=false slack=false waits=false",
         "jobs=false slack=false"),
    RULE(path_puts_the_background_last, "waits=false", "waits=false"),
    RULE(path_counts_the_answers_of_those_who_wait, "waits=false jobs=false", "waits=false"),
    RULE(lpm_takes_the_longest_cached_prefix, "schedule_policy=fcfs in_batch=false max_sorted=1",
         "schedule_policy=fcfs max_sorted=1"),
    RULE(lpm_leaves_a_long_queue_as_it_is, "max_sorted=2 schedule_policy=fcfs", "max_sorted=2"),
    RULE(lpm_serves_prompts_before_decodes, "mixed_chunk=true", "mixed_chunk=true"),
    RULE(lpm_goes_on_with_a_cut_prompt_first, "schedule_policy=fcfs", ""),
    RULE(lpm_computes_a_shared_prefix_once,
         "in_batch=false schedule_policy=fcfs in_batch_tokens=161",
         "in_batch=false schedule_policy=fcfs in_batch_tokens=161"),
    RULE(lpm_looks_at_each_that_shares, "in_batch=false schedule_policy=fcfs",
         "in_batch=false schedule_policy=fcfs"),
};

RULES_MAIN("agent orders", all)
