/* A session's KV while a tool runs (clauses.md E.16) is tested rule by rule. Toy times are in
 * tests/helpers/rules.h. */
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/rules.h"
#include "tests/helpers/two_models.h"

/* Turn 0 (96 tokens, six blocks) takes 2.88 + 2 = 4.88, and then its tool takes `gap`. Turn 1 (160)
 * takes 64 rows, 1.92 + 2 = 3.92, with the KV of turn 0, and 160 rows, 6.8, without it. Returns
 * true when turn 1 ends at that ms. */
static bool after_tool_of(const char *policy, const char *own, const char *extra, double gap_ms,
                          double swap_gb_per_s, double ends)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    sc.machine.swap_bytes_per_s = swap_gb_per_s * 1e9;
    struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0}, {RT, gap_ms / 1e3, 160, 1, 5, 96}};
    rules_run(policy, own, extra, q, 2);
    return rules_finishes(1, ends);
}

static bool after_tool(const char *own, const char *extra, double gap_ms, double swap_gb_per_s,
                       double ends)
{
    return after_tool_of("sjf-input", own, extra, gap_ms, swap_gb_per_s, ends);
}

/* Prompts below a chunk run on the iGPU alone, so both Agent.xpu policies take the same times. */
static const char *const agents[] = {"agent-xpu-v1", "agent-xpu-v2"};

static bool after_tool_of_agents(const char *own, const char *extra, double gap_ms,
                                 double swap_gb_per_s, double ends)
{
    bool both = true;
    for (int i = 0; i < 2; i++) {
        both = after_tool_of(agents[i], own, extra, gap_ms, swap_gb_per_s, ends) && both;
        scenario_fini(&sc);
    }
    return both;
}

/* There are 16 blocks. RT0 (96, then a tool of 10 ms) and RT1 (64 + 20) share the first iteration,
 * to 4.8 + 2 = 6.8. RT1 then decodes every 3 ms and holds five blocks. BE2 (96) comes at 7 and
 * needs six, where five are free: the cache would admit it at 9.8 and drop RT0's KV. Because that
 * is preserved, the turn that comes at 16.8 joins at 18.8 with 64 rows: 0.03 * 65 + 2 = 3.95:
 * 22.75. BE2 joins then: 0.03 * 97 + 2 = 4.91: 27.66. */
static bool preserve_keeps_kv_from_others(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    sc.setup.kv_capacity_tokens = 256;
    struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0},
                                   {RT, 0, 64, 20, 0, 0},
                                   {BE, 0.007, 96, 1, 0, 0},
                                   {RT, 0.010, 160, 1, 5, 96}};
    rules_run("sjf-input", "gap_kv=preserve", extra, q, 4);
    return rules_finishes(3, 22.75) && rules_finishes(2, 27.66);
}

/* Six of eleven blocks are preserved. BE1 needs six and would wait for a tool of 1 s with the
 * machine idle. So the session gives way, and BE1 runs 6-10.88. */
static bool kept_kv_gives_way_when_nobody_could_run(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    sc.setup.kv_capacity_tokens = 176;
    struct scenario_request q[] = {
        {RT, 0, 96, 1, 5, 0}, {BE, 0.006, 96, 1, 0, 0}, {RT, 1, 160, 1, 5, 96}};
    rules_run("sjf-input", "gap_kv=preserve", extra, q, 3);
    return rules_finishes(1, 10.88) && rules_finishes(2, 1004.88 + 6.8);
}

/* There are two layers and 51 blocks, and flash moves 400 tokens in 1 ms. BE0's first 416 rows take
 * 2 * (0.03 * 416 + 1) = 26.96 and leave 26 blocks. RT1 (416) comes at 28, and BE0's kernel of 384
 * rows ends at 26.96 + 3.84 = 30.8. BE0 loses the pass, and its KV goes out until 31.84. RT1 then
 * runs for 27.96, to 59.8, and its 26 blocks are preserved for a tool of 1 s. So 25 are free, and
 * BE0 cannot have its own back, not by itself either, and the session gives way. BE0's KV is back
 * at 60.84, and 2 * (0.03 * 384 + 1) + 1 = 26.04 make 86.88. */
static bool kept_kv_gives_way_to_kv_on_flash(const char *extra)
{
    rules_machine(2);
    sc.gaps_are_tools = true;
    sc.setup.kv_capacity_tokens = 816;
    sc.machine.swap_bytes_per_s = 400e9;
    struct scenario_request q[] = {
        {BE, 0, 800, 1, 0, 0}, {RT, 0.028, 416, 1, 5, 0}, {RT, 1, 432, 1, 5, 416}};
    rules_run("sjf-input", "preempt=kernel,kv=swap,token_budget=416,max_batch=1,gap_kv=preserve",
              extra, q, 3);
    return rules_finishes(1, 59.8) && rules_finishes(0, 86.88);
}

/* There are eleven blocks. RT0 leaves six, and BE1, which ends at 13.92, four. BE2 needs four at
 * 20. Under LRU RT0's would go, and its next turn at 1004.88 would prefill 160 rows. BE1's go, so
 * that turn prefills 64: 3.92. BE1's next turn at 5013.92 prefills all of its 80 rows: 4.4. */
static bool reactive_kv_gives_way_last(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    sc.setup.kv_capacity_tokens = 176;
    struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0},
                                   {BE, 0.010, 64, 1, 6, 0},
                                   {BE, 0.020, 64, 1, 0, 0},
                                   {RT, 1, 160, 1, 5, 96},
                                   {BE, 5, 80, 1, 6, 64}};
    rules_run("sjf-input", "gap_kv=reactive", extra, q, 5);
    return rules_finishes(3, 1004.88 + 3.92) && rules_finishes(4, 5013.92 + 4.4);
}

/* The turn ends at 4.88 + 10 + 6.8. */
static bool discard_prefills_the_whole_prompt(const char *extra)
{
    return after_tool("gap_kv=discard", extra, 10, 1, 21.68);
}

/* 96 MB go out at 96 GB/s 4.88-5.88 and come back 14.88-15.88, and then the turn takes 3.92. */
static bool swap_reads_the_kv_back(const char *extra)
{
    return after_tool("gap_kv=swap", extra, 10, 96, 19.8);
}

/* There are six blocks, and flash moves 4 tokens in 1 ms. RT0 (16) ends at 2.48 and goes out until
 * 6.48. RT1 has 32 of its 64 tokens at 4.44. RT2 (32) prefills to 7.4 and decodes three times, to
 * 16.4. RT0's next turn (24) comes at 8, is read from 10.4 to 14.4, and has one block. At 16.4
 * RT2's three blocks go out, until 25.15, and no request runs until then. The turn lacks a block
 * and joins no pass, so its own one counts as free again. RT1 lacks two, and to take that one would
 * not help it. The turn then takes 8 rows, 2.24, and not 24. */
static bool kv_that_counts_as_free_makes_no_room(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    sc.setup.kv_capacity_tokens = 96;
    sc.machine.swap_bytes_per_s = 4e9;
    struct scenario_request q[] = {{RT, 0, 16, 1, 5, 0},
                                   {RT, 0.002, 64, 1, 0, 0},
                                   {RT, 0.003, 32, 4, 6, 0},
                                   {RT, 0.00552, 24, 1, 5, 16},
                                   {RT, 1, 80, 1, 6, 35}};
    rules_run("sjf-input", "gap_kv=swap,max_batch=1,token_budget=32", extra, q, 5);
    return rules_finishes(2, 16.4) && rules_finishes(3, 27.39);
}

/* There are seven blocks, and flash moves 4 tokens in 1 ms. RT0 (16) ends at 2.48, its client has
 * been charged 18, and its block is free at 6.48. RT1 (100) then runs until 11.48, and its seven
 * blocks go out until 36.48. RT0's turn has come at 7 and finds no memory at 11.48, so it is not
 * admitted. RT2 (16) comes at 12 for a client without service, and is first at 36.48, until 38.96.
 * The turn then takes 4 ms to read and 24 rows, 2.72. */
static bool who_finds_no_memory_is_not_admitted(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    sc.setup.kv_capacity_tokens = 112;
    sc.machine.swap_bytes_per_s = 4e9;
    struct scenario_request q[] = {{RT, 0, 16, 1, 5, 0},
                                   {RT, 0.001, 100, 1, 6, 0},
                                   {RT, 0.012, 16, 1, 0, 0},
                                   {RT, 0.00452, 40, 1, 5, 16},
                                   {RT, 1, 110, 1, 6, 100}};
    rules_extra(3)->client_id = 1000;
    rules_extra(4)->client_id = 1001;
    rules_run("vtc", "gap_kv=swap,max_batch=1,lift=false", extra, q, 5);
    return rules_finishes(2, 38.96) && rules_finishes(3, 45.68);
}

/* The turn comes 0.5 ms into the transfer and ends at 4.88 + 0.5 + 3.92. */
static bool a_turn_that_comes_before_the_kv_is_out_finds_it(const char *extra)
{
    return after_tool("gap_kv=swap", extra, 0.5, 96, 9.3);
}

/* Recomputing wastes 4.88 ms * 96 / 2, and 96 tokens held waste as much in 2.44 ms. Flash is too
 * slow. */
static bool infercept_keeps_over_a_short_call(const char *extra)
{
    return after_tool("gap_kv=infercept", extra, 2.4, 1, 4.88 + 2.4 + 3.92);
}

static bool infercept_discards_over_a_longer_one(const char *extra)
{
    return after_tool("gap_kv=infercept", extra, 2.5, 1, 4.88 + 2.5 + 6.8);
}

/* A transfer of 1 ms wastes 2 ms * 96, so KV goes out 6.88-7.88 and returns in 1 ms. */
static bool infercept_swaps_where_that_is_cheapest(const char *extra)
{
    return after_tool("gap_kv=infercept", extra, 10, 96, 19.8);
}

static bool infercept_swaps_not_before_it_pays(const char *extra)
{
    return after_tool("gap_kv=infercept", extra, 1.9, 96, 4.88 + 1.9 + 3.92);
}

/* Out and back waste 2 ms * 96, so KV is held for 2 ms, and a turn that comes 0.5 ms into the
 * transfer finds it. If only the way out counted, KV would be out by then, and 1 ms away. */
static bool infercept_counts_the_way_back(const char *extra)
{
    return after_tool("gap_kv=infercept", extra, 2.5, 96, 4.88 + 2.5 + 3.92);
}

/* A token has as many bytes of a draft model's KV, too, and the rate is doubled, so times are those
 * above. */
static bool agents_count_the_kv_of_a_model_that_drafts(const char *extra)
{
    static struct two_models two;
    static const struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0}, {RT, 2.5e-3, 160, 1, 5, 96}};
    rules_machine(1);
    two_models_init(&sc, &two);
    sc.setup.draft_model = 1;
    sc.gaps_are_tools = true;
    sc.machine.swap_bytes_per_s = 192e9;
    rules_run("agent-xpu-v2", "gap_kv=infercept,speculate=igpu,drafter=model", extra, q, 2);
    return rules_finishes(1, 4.88 + 2.5 + 3.92);
}

/* 90 tokens, in blocks for 96, and nobody else. Recomputing wastes 4.7 ms * 90 / 2, as much as 2.35
 * ms of the call. After 2.5 ms the turn finds nothing: 4.7 + 2.5 + 6.8. */
static bool infercept_counts_no_block_of_its_own_as_others(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    struct scenario_request q[] = {{RT, 0, 90, 1, 5, 0}, {RT, 2.5e-3, 160, 1, 5, 90}};
    rules_run("sjf-input", "gap_kv=infercept", extra, q, 2);
    return rules_finishes(1, 14.0);
}

/* States take as much as 96 tokens. Recomputing 96 tokens wastes 4.88 ms * (48 + 96), as much as
 * 3.66 ms of all 192. The turn comes sooner and finds its KV, or later and finds nothing. */
static bool states_count(const char *extra, double gap_s, double end_ms)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    sc.llm.kv_state_bytes = 96.0 * sc.llm.kv_bytes_per_token;
    struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0}, {RT, gap_s, 160, 1, 5, 96}};
    rules_run("sjf-input", "gap_kv=infercept", extra, q, 2);
    return rules_finishes(1, end_ms);
}

static bool infercept_counts_states_that_it_keeps(const char *extra)
{
    return states_count(extra, 3.5e-3, 4.88 + 3.5 + 3.92);
}

static bool infercept_counts_no_states_of_its_own_as_others(const char *extra)
{
    return states_count(extra, 3.8e-3, 4.88 + 3.8 + 6.8);
}

/* A token of the first model has the KV of four of the second, whose turn of 96 tokens ends
 * at 4.88. RT1 (64 tokens of the first) then has four blocks: to recompute for it wastes 4.88 * (48
 * + 4 * 64) and more, and 96 tokens are held for 15 ms. RT1 prefills for 3.92 and decodes
 * until 17.8; the turn has come at 14.88 and takes 64 rows, 3.92. */
static bool infercept_counts_the_bytes_of_other_models(const char *extra)
{
    static struct two_models two;
    static const struct scenario_request q[] = {
        {RT, 0, 96, 1, 5, 0}, {RT, 0.001, 64, 4, 0, 0}, {RT, 0.010, 160, 1, 5, 96}};
    rules_machine(1);
    two_models_init(&sc, &two);
    sc.llm.kv_bytes_per_token *= 4.0;
    sc.gaps_are_tools = true;
    scenario_policy(&sc, policy_find("sjf-input"), *extra != 0 ? extra : "gap_kv=infercept");
    ck_assert_int_eq(two_models_run(&sc, q, (const uint8_t[]){1, 0, 1}, NULL, 3, false), 0);
    return rules_finishes(1, 17.8) && rules_finishes(2, 21.72);
}

/* A transfer has 2 ms more. RT0 (1920, in four parts) ends at 62.6, and to swap wastes 24 ms *
 * 1920, less than 62.6 * 960. So its KV is on its way out from 86.6 to 98.6. RT1 (96) ends at 90.
 * Nobody else is here, so to recompute it wastes 4.88 * 48, as much as 2.44 ms of the call, and to
 * swap it twice as much. Its turn comes at 95 and computes all of its prompt, 6.8. */
static bool infercept_counts_nobody_who_is_on_the_way_out(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    sc.machine.swap_bytes_per_s = 192e9;
    sc.machine.swap_fixed_ns = MS(2);
    struct scenario_request q[] = {{RT, 0, 1920, 1, 5, 0},
                                   {RT, 0.08512, 96, 1, 6, 0},
                                   {RT, 1.0, 1984, 1, 5, 1920},
                                   {RT, 0.005, 160, 1, 6, 96}};
    rules_run("sjf-input", "gap_kv=infercept", extra, q, 4);
    return rules_finishes(3, 101.8);
}

/* Again RT0's 120 blocks go out from 86.6 to 98.6. RT1 (192, twelve blocks) ends at 95, and its KV
 * stays for 3.88 ms. RT2 (200) comes at 96 and needs 13 of the four blocks that are left. It waits
 * for RT0's, and runs for 8 ms from 98.6. The turn of RT1 comes at 98.7 and finds its KV, so it
 * takes 64 rows, 3.92. A session is judged 1 ns after its break-even. */
static bool nobody_takes_kept_kv_while_other_kv_goes_out(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    sc.machine.swap_bytes_per_s = 192e9;
    sc.machine.swap_fixed_ns = MS(2);
    sc.setup.kv_capacity_tokens = 136 * 16;
    struct scenario_request q[] = {{RT, 0, 1920, 1, 5, 0},
                                   {RT, 0.08724, 192, 1, 6, 0},
                                   {RT, 0.096, 200, 1, 0, 0},
                                   {RT, 1.0, 1984, 1, 5, 1920},
                                   {RT, 0.0037, 256, 1, 6, 192}};
    rules_run("sjf-input", "gap_kv=infercept", extra, q, 5);
    return rules_finishes(2, 106.600001) && rules_finishes(4, 110.520001);
}

/* The policy is informed that calls take 1 s, so it discards at once: 4.88 + 2.4 + 6.8. */
static bool infercept_believes_what_it_is_told(const char *extra)
{
    return after_tool("gap_kv=infercept,gap_s=1", extra, 2.4, 1, 14.08);
}

/* RT1 (64 tokens, then 5 blocks) decodes, and would wait for a recomputation. That wastes 4.88 *
 * (48 + 80), so 96 tokens are held for 6.5 ms. They share the first iteration, 4.8 + 2 = 6.8. The
 * tool takes 6 ms, so turn 1 comes at 12.8, the end of an iteration, and takes 0.03 * 65 + 2 =
 * 3.95. */
static bool infercept_counts_those_who_would_wait(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    struct scenario_request q[] = {
        {RT, 0, 96, 1, 5, 0}, {RT, 0, 64, 12, 0, 0}, {RT, 0.006, 160, 1, 5, 96}};
    rules_run("sjf-input", "gap_kv=infercept", extra, q, 3);
    return rules_finishes(2, 16.75);
}

/* RT0 (96) and RT1 (192) end at 0.03 * 288 + 2 = 10.64, and calls are said to take 1 s. Swap is
 * best for both (0.5 and 1 ms at 192 GB/s). The budget is one transfer, and the other is discarded
 * (4.88 * 48 against 7.76 * 96 wasted), so RT1 has it. RT0's turn 1 comes at 30.64 and takes 6.8.
 * RT1's comes at 50.64 and takes 1 ms to read and 64 rows in 3.92. */
static bool infercept_gives_the_swap_budget_to_the_most_wasteful(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    sc.machine.swap_bytes_per_s = 192e9;
    struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0},
                                   {RT, 0, 192, 1, 6, 0},
                                   {RT, 0.020, 160, 1, 5, 96},
                                   {RT, 0.040, 256, 1, 6, 192}};
    rules_run("sjf-input", "gap_kv=infercept,gap_s=1", extra, q, 4);
    return rules_finishes(2, 37.44) && rules_finishes(3, 55.56);
}

/* RT0 (1920, in four parts) ends at 62.6. Holding it is dearer than two transfers of 10 ms from
 * 82.6 on, so it goes out until 92.6. RT1 (96) ends at 77.22 + 4.88 = 82.1, and RT2 (192) behind it
 * at 89.86. Both wait for the budget. At 92.6 RT1 has wasted 10.5 * 96 = 1008 by staying, but
 * recomputing costs 4.88 * 48 = 234. RT2 has wasted 2.74 * 192 = 526 of 7.76 * 96 = 745. So 234 and
 * 526 cannot be helped: RT2 has the budget, and RT1 is discarded. Turn 1 of RT1 comes at 122.1 and
 * takes 6.8. That of RT2 comes at 169.86 and takes 1 ms to read, then 3.92. */
static bool infercept_counts_what_cannot_be_helped(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    sc.machine.swap_bytes_per_s = 192e9;
    struct scenario_request q[] = {{RT, 0, 1920, 1, 5, 0},     {RT, 0.07722, 96, 1, 6, 0},
                                   {RT, 0.079, 192, 1, 7, 0},  {RT, 1.0, 1984, 1, 5, 1920},
                                   {RT, 0.040, 160, 1, 6, 96}, {RT, 0.080, 256, 1, 7, 192}};
    rules_run("sjf-input", "gap_kv=infercept", extra, q, 6);
    return rules_finishes(4, 128.9) && rules_finishes(5, 174.78);
}

/* KV has 10 ms to live. */
static bool ttl_keeps_for_its_time(const char *extra)
{
    return after_tool("gap_kv=ttl,gap_s=0.01", extra, 10, 1, 18.8);
}

static bool ttl_drops_after_its_time(const char *extra)
{
    return after_tool("gap_kv=ttl,gap_s=0.01", extra, 11, 1, 22.68);
}

/* Before any call was seen, KV lives as long as recomputing takes, 4.88. */
static bool ttl_begins_with_the_reload_cost(const char *extra)
{
    return after_tool("gap_kv=ttl", extra, 4.8, 1, 13.6);
}

/* One call of 3 ms was seen, so KV lives 3 ms, not the 6.8 that recomputing 160 tokens takes. Turn
 * 0 ends at 4.88, and turn 1 at 7.88 + 3.92 = 11.8. After 4 ms turn 2 (224) finds nothing: 15.8 +
 * 6.72 + 2. */
static bool ttl_learns_from_calls_seen(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    struct scenario_request q[] = {
        {RT, 0, 96, 1, 5, 0}, {RT, 0.003, 160, 1, 5, 96}, {RT, 0.004, 224, 1, 5, 160}};
    rules_run("sjf-input", "gap_kv=ttl", extra, q, 3);
    return rules_finishes(1, 11.8) && rules_finishes(2, 24.52);
}

/* Calls of 3 and 100 ms were seen. To live for 3 ms costs 3 + (3 + 4.88), and to be dropped at once
 * twice 4.88, which is less. So a third call of 2 ms finds nothing: it comes at 206.88 and takes
 * 6.8. */
static bool ttl_drops_at_once_where_that_is_cheapest(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0},
                                   {RT, 0.2, 96, 1, 6, 0},
                                   {RT, 0.003, 160, 1, 5, 96},
                                   {RT, 0.1, 224, 1, 5, 160},
                                   {RT, 0.002, 160, 1, 6, 96}};
    rules_run("sjf-input", "gap_kv=ttl", extra, q, 5);
    return rules_finishes(2, 11.8) && rules_finishes(4, 213.68);
}

static bool agents_discard(const char *extra)
{
    return after_tool_of_agents("gap_kv=discard", extra, 10, 1, 21.68);
}

static bool agents_read_swapped_kv_back(const char *extra)
{
    return after_tool_of_agents("gap_kv=swap", extra, 10, 96, 19.8);
}

static bool agents_keep_over_a_short_call(const char *extra)
{
    return after_tool_of_agents("gap_kv=infercept", extra, 2.4, 1, 4.88 + 2.4 + 3.92);
}

static bool agents_discard_over_a_longer_one(const char *extra)
{
    return after_tool_of_agents("gap_kv=infercept", extra, 2.5, 1, 4.88 + 2.5 + 6.8);
}

static bool agents_drop_after_the_time_to_live(const char *extra)
{
    return after_tool_of_agents("gap_kv=ttl,gap_s=0.01", extra, 11, 1, 22.68);
}

/* There are 16 blocks. RT0 (96, then a tool of 10 ms) ends at 4.88. RT1 (64 + 20) follows, to 4.88
 * + 3.92 = 8.8, and decodes every 3 ms with five blocks. BE2 (96) comes at 9 and needs six, where
 * five are free: the cache would admit it. Because KV is preserved, the turn that comes at 14.88
 * finds it. The turn takes the iGPU when the decode layer ends at 16.8, for 64 rows, until 20.72.
 * BE2 begins after that. */
static bool agents_preserve_kv_from_others(const char *extra)
{
    bool both = true;
    for (int i = 0; i < 2; i++) {
        rules_machine(1);
        sc.gaps_are_tools = true;
        sc.setup.kv_capacity_tokens = 256;
        struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0},
                                       {RT, 0, 64, 20, 0, 0},
                                       {BE, 0.009, 96, 1, 0, 0},
                                       {RT, 0.010, 160, 1, 5, 96}};
        rules_run(agents[i], "gap_kv=preserve", extra, q, 4);
        both = rules_finishes(3, 20.72) && sc.records[2].start_ns >= MS(20.72) && both;
        scenario_fini(&sc);
    }
    return both;
}

/* This is as in kept_kv_gives_way_when_nobody_could_run. */
static bool agents_give_kept_kv_up_when_nobody_could_run(const char *extra)
{
    bool both = true;
    for (int i = 0; i < 2; i++) {
        rules_machine(1);
        sc.gaps_are_tools = true;
        sc.setup.kv_capacity_tokens = 176;
        struct scenario_request q[] = {
            {RT, 0, 96, 1, 5, 0}, {BE, 0.006, 96, 1, 0, 0}, {RT, 1, 160, 1, 5, 96}};
        rules_run(agents[i], "gap_kv=preserve", extra, q, 3);
        both = rules_finishes(1, 10.88) && rules_finishes(2, 1004.88 + 6.8) && both;
        scenario_fini(&sc);
    }
    return both;
}

/* 20 blocks. RT0 (96) ends at 4.88, and its six blocks are out at 5.88. RT1 (96) ends at 9.76, and
 * decodes until 18.76 with seven. RT2 (240) comes at 10 and finds 13 blocks, not 15. RT0's next
 * turn comes at 11 behind it, and has its six blocks back at 12. So RT2 finds 14 at 18.76, and
 * nobody runs: the turn's give way. RT2 takes 9.2, and the turn prefills all of its 112
 * tokens: 5.36. */
static bool agents_drop_what_came_back_for_who_is_before_it(const char *extra)
{
    bool both = true;
    for (int i = 0; i < 2; i++) {
        rules_machine(1);
        sc.gaps_are_tools = true;
        sc.machine.swap_bytes_per_s = 96e9;
        sc.setup.kv_capacity_tokens = 320;
        struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0},
                                       {RT, 0.001, 96, 4, 0, 0},
                                       {RT, 0.010, 240, 1, 0, 0},
                                       {RT, 0.00612, 112, 1, 5, 96}};
        rules_run(agents[i], "gap_kv=swap", extra, q, 4);
        both = rules_finishes(2, 27.96) && rules_finishes(3, 33.32) && both;
        scenario_fini(&sc);
    }
    return both;
}

/* One request runs at a time. BE0's session came at 0, BE1 (400) at 1, and BE2 (100) at 2. BE0 ends
 * at 4.88, and BE1 at 4.88 + 14 = 18.88. BE0's turn 1, which comes at 7.88, then goes before BE2:
 * 3.92, 22.8. BE2 ends at 27.8. */
static bool programs_keep_their_place_over_a_tool_call(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    struct scenario_request q[] = {{BE, 0, 96, 1, 5, 0},
                                   {BE, 0.001, 400, 1, 0, 0},
                                   {BE, 0.002, 100, 1, 0, 0},
                                   {BE, 0.003, 160, 1, 5, 96}};
    rules_run("program-fcfs", "max_batch=1", extra, q, 4);
    return rules_finishes(3, 22.8) && rules_finishes(2, 27.8);
}

/* Twelve blocks, and no tool. RT1's first token is due at 5, RT0's at 30. RT1 has its own after 96
 * rows, 3.88, and 64, 3.92, at 7.8; the next is due at 32.8, so RT0 is more urgent (30 - 3.92 =
 * 26.08 against 32.8 - 3). Its four blocks cost RT1 its ten, and RT1 now has 161 tokens to prefill:
 * 32.8 - 6.83 = 25.97. But nobody arrives during RT0's prompt: it ends at 7.8 + 3.92 = 11.72. */
static bool a_rule_for_tools_asks_nothing_twice(const char *extra)
{
    rules_machine(1);
    sc.gaps_are_tools = true;
    sc.setup.kv_capacity_tokens = 192;
    rules_extra(0)->ttft_slo_ns = MS(30);
    rules_extra(1)->ttft_slo_ns = MS(5);
    rules_extra(1)->tbt_slo_ns = MS(25);
    struct scenario_request q[] = {{RT, 0, 64, 1, 0, 0}, {RT, 0, 160, 3, 0, 0}};
    rules_run("llf", "preempt=kernel,max_batch=1,token_budget=96,gap_kv=preserve", extra, q, 2);
    return rules_finishes(0, 11.72);
}

static const struct rule_row all[] = {
    RULE(a_rule_for_tools_asks_nothing_twice,
         "gap_kv=cache gap_kv=reactive gap_kv=swap gap_kv=infercept", ""),
    RULE(programs_keep_their_place_over_a_tool_call, "policy=edf policy=sjf-input gap_kv=preserve",
         "policy=edf policy=sjf-input"),
    RULE(preserve_keeps_kv_from_others, "gap_kv=cache gap_kv=discard",
         "gap_kv=cache gap_kv=discard"),
    RULE(kept_kv_gives_way_when_nobody_could_run, "gap_kv=cache", ""),
    RULE(kept_kv_gives_way_to_kv_on_flash, "gap_kv=cache", ""),
    RULE(reactive_kv_gives_way_last, "gap_kv=cache gap_kv=discard gap_kv=preserve",
         "gap_kv=cache gap_kv=discard gap_kv=preserve"),
    RULE(discard_prefills_the_whole_prompt, "gap_kv=cache gap_kv=preserve gap_kv=swap",
         "gap_kv=cache gap_kv=preserve gap_kv=swap"),
    RULE(swap_reads_the_kv_back, "gap_kv=cache gap_kv=preserve gap_kv=discard",
         "gap_kv=cache gap_kv=preserve gap_kv=discard"),
    RULE(a_turn_that_comes_before_the_kv_is_out_finds_it, "gap_kv=discard", "gap_kv=discard"),
    RULE(kv_that_counts_as_free_makes_no_room, "gap_kv=cache gap_kv=discard",
         "gap_kv=cache gap_kv=discard"),
    RULE(who_finds_no_memory_is_not_admitted, "gap_kv=cache", "gap_kv=cache"),
    RULE(infercept_keeps_over_a_short_call, "gap_kv=discard gap_s=1", "gap_kv=discard gap_s=1"),
    RULE(infercept_discards_over_a_longer_one, "gap_kv=cache gap_kv=preserve gap_kv=ttl",
         "gap_kv=cache gap_kv=preserve gap_kv=ttl"),
    RULE(infercept_counts_no_block_of_its_own_as_others, "gap_kv=preserve", "gap_kv=preserve"),
    RULE(infercept_counts_states_that_it_keeps, "gap_kv=discard", "gap_kv=discard"),
    RULE(infercept_counts_no_states_of_its_own_as_others, "gap_kv=preserve", "gap_kv=preserve"),
    RULE(infercept_counts_nobody_who_is_on_the_way_out, "gap_kv=preserve", "gap_kv=preserve"),
    RULE(nobody_takes_kept_kv_while_other_kv_goes_out, "gap_kv=cache", "gap_kv=cache"),
    RULE(infercept_counts_the_bytes_of_other_models, "gap_kv=discard", "gap_kv=discard"),
    RULE(infercept_swaps_where_that_is_cheapest, "gap_kv=cache gap_kv=preserve gap_kv=discard",
         "gap_kv=cache gap_kv=preserve gap_kv=discard"),
    RULE(infercept_swaps_not_before_it_pays, "gap_kv=swap gap_kv=discard gap_s=1",
         "gap_kv=swap gap_kv=discard gap_s=1"),
    RULE(infercept_counts_the_way_back, "gap_kv=discard gap_s=1", "gap_kv=discard gap_s=1"),
    RULE(agents_count_the_kv_of_a_model_that_drafts, "gap_kv=discard gap_s=1",
         "gap_kv=discard gap_s=1"),
    RULE(infercept_believes_what_it_is_told, "gap_s=0 gap_kv=preserve", "gap_s=0 gap_kv=preserve"),
    RULE(infercept_counts_those_who_would_wait, "gap_kv=discard gap_s=1", "gap_kv=discard gap_s=1"),
    RULE(infercept_gives_the_swap_budget_to_the_most_wasteful,
         "gap_kv=swap gap_kv=discard gap_kv=cache gap_s=0",
         "gap_kv=swap gap_kv=discard gap_kv=cache gap_s=0"),
    RULE(infercept_counts_what_cannot_be_helped, "gap_kv=swap gap_kv=discard gap_kv=cache",
         "gap_kv=swap gap_kv=discard gap_kv=cache"),
    RULE(ttl_keeps_for_its_time, "gap_kv=discard gap_s=0.009 gap_s=0",
         "gap_kv=discard gap_s=0.009 gap_s=0"),
    RULE(ttl_drops_after_its_time, "gap_kv=cache gap_kv=preserve gap_s=0.012",
         "gap_kv=cache gap_kv=preserve gap_s=0.012"),
    RULE(ttl_begins_with_the_reload_cost, "gap_s=0.004 gap_kv=infercept gap_kv=discard",
         "gap_s=0.004 gap_kv=infercept gap_kv=discard"),
    RULE(ttl_drops_at_once_where_that_is_cheapest, "gap_kv=preserve gap_s=0.01",
         "gap_kv=preserve gap_s=0.01"),
    RULE(agents_discard, "gap_kv=cache gap_kv=preserve gap_kv=swap",
         "gap_kv=cache gap_kv=preserve gap_kv=swap"),
    RULE(agents_read_swapped_kv_back, "gap_kv=cache gap_kv=preserve gap_kv=discard",
         "gap_kv=cache gap_kv=preserve gap_kv=discard"),
    RULE(agents_keep_over_a_short_call, "gap_kv=discard gap_s=1", "gap_kv=discard gap_s=1"),
    RULE(agents_discard_over_a_longer_one, "gap_kv=cache gap_kv=preserve gap_kv=ttl",
         "gap_kv=cache gap_kv=preserve gap_kv=ttl"),
    RULE(agents_drop_after_the_time_to_live, "gap_kv=cache gap_kv=preserve gap_s=0.012",
         "gap_kv=cache gap_kv=preserve gap_s=0.012"),
    RULE(agents_preserve_kv_from_others, "gap_kv=cache gap_kv=discard",
         "gap_kv=cache gap_kv=discard"),
    RULE(agents_give_kept_kv_up_when_nobody_could_run, "gap_kv=cache", ""),
    RULE(agents_drop_what_came_back_for_who_is_before_it, "gap_kv=preserve gap_kv=discard", ""),
    RULE(ttl_learns_from_calls_seen, "gap_s=0.01 gap_kv=preserve gap_kv=discard",
         "gap_s=0.01 gap_kv=preserve gap_kv=discard"),
};

RULES_MAIN("tool gaps", all)
