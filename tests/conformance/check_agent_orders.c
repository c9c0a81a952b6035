/* Orders for agents, rule by rule: sglang-lpm and critical-path (clauses.md E.21, E.22). Toy times:
 * tests/helpers/rules.h: a prompt of n takes 0.03 n + 2 ms, a decode 3 ms. */
#include "tests/helpers/rules.h"

/* ---- sglang-lpm ---- */

/* One at a time. BE0 (96) ends at 4.88, BE1 (400) at 18.88. BE2 (100) came at 2, the next turn of
 * BE0's session at 7.88, with 96 of 160 tokens cached: it goes first, 64 rows in 3.92: 22.8. */
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

/* The same: two wait, and more than one is too many to sort. */
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

/* BE0 decodes since 5. BE1 (100), come at 6, has the next step to itself: 8-13. */
static bool lpm_serves_prompts_before_decodes(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 100, 3, 0, 0}, {BE, 0.006, 100, 1, 0, 0}};
    rules_run("sglang-lpm", "", extra, q, 2);
    return rules_finishes(1, 13) && rules_tokens_at(0, 3, (double[]){5, 8, 16});
}

/* A prompt of 1000 is cut at the budget of 512: 512 rows in 16.36 ms, without a token, and 488 in
 * 16.64: 33. BE1, come at 1, has the 24 tokens that are left of the second step and 76 more in a
 * third, 33.36 in all before: 0.03 * 512 + 1 + 1 = 17.36. */
static bool lpm_goes_on_with_a_cut_prompt_first(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 1000, 2, 0, 0}, {BE, 0.001, 100, 1, 0, 0}};
    rules_run("sglang-lpm", "", extra, q, 2);
    return rules_tokens_at(0, 2, (double[]){16.36 + 17.36, 16.36 + 17.36 + 4.28 + 3}) &&
           rules_finishes(1, 16.36 + 17.36 + 4.28);
}

#define HEADER                                                                                     \
    "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,"   \
    "prefix_group,background,parent_ids\n"

/* Request 0 (100) runs until 5. 1 and 2 (200 each) share 160 tokens, and find nothing cached; 3
 * (100) shares nothing. The step at 5 admits 1, puts 2 behind 3, and the budget of 300 is full: 300
 * rows in 11 ms. At 16, request 2 finds ten blocks: 40 rows, 3.2. */
static bool lpm_computes_a_shared_prefix_once(const char *extra)
{
    rules_machine(1);
    rules_graph(HEADER "0,0,0,proactive,0,,100,1,0,,,\n"
                       "1,1,0,proactive,0.001,,200,1,160,7,,\n"
                       "2,2,0,proactive,0.001,,200,1,160,7,,\n"
                       "3,3,0,proactive,0.002,,100,1,0,,,");
    rules_run("sglang-lpm", "max_num_batched_tokens=300", extra, NULL, 0);
    return rules_finishes(1, 16) && rules_finishes(3, 16) && rules_finishes(2, 19.2);
}

/* ---- critical-path: one at a time, an answer is expected to take one decode, 3 ms ---- */

#define ONE "max_batch=1,expected_output=1"

/* At 5, when request 0 ends, 1 (100: 5 + 3 = 8) and 2 (400: 14 + 3 = 17) of its job come; 3 (300:
 * 11 + 3 = 14) is a job of its own. The path of the first job is 17: 3 goes first, 5-16, then 2,
 * 16-30, and 1, which has slack, 30-35. */
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

/* 2 (250: 9.5 + 3 = 12.5) is the path, 1 (8) has a slack of 4.5 and a key of 17, 3 (330: 11.9 + 3)
 * one of 14.9. When 2 ends at 14.5, the path is 8: 1 goes before 3. */
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

/* Nobody waits for 1 (8), and somebody for 2 (17). */
static bool path_puts_the_background_last(const char *extra)
{
    rules_machine(1);
    rules_graph(HEADER "0,0,0,reactive,0,,100,1,0,,,\n"
                       "2,2,0,reactive,0.001,,400,1,0,,,\n"
                       "1,1,0,reactive,,0,100,1,0,,1,0");
    rules_run("critical-path", ONE, extra, NULL, 0);
    return rules_finishes(2, 19) && rules_finishes(1, 24);
}

/* Session 0 waits for 1 (100: 8), and will answer once more: 11. So 3 (150: 6.5 + 3 = 9.5) goes
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

static const struct rule_row all[] = {
    RULE(path_orders_jobs_and_slack_within, "jobs=false slack=false waits=false",
         "jobs=false slack=false"),
    RULE(path_shortens_when_a_request_leaves, "jobs=false slack=false waits=false",
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
};

RULES_MAIN("agent orders", all)
