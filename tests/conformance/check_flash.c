/* KV that memory pressure takes is moved to flash (policies/common/flash.h). Toy times are those of
 * tests/helpers/rules.h, and a token of KV is 1 MB.
 *
 * BE0 and BE1 (64 tokens, 60 of output) prefill one after the other, to 3.92 and 7.84, and decode
 * together, 2.06 a step. Twelve blocks hold 96 tokens of each. So step 33 finds no block, at 7.84 +
 * 32 * 2.06 = 73.76. BE1, the newest, gives up its KV. BE0 has 27 tokens left, of 3 ms each alone.
 * BE1 has room for its 96 only when BE0 has ended. */
#include "tests/helpers/rules.h"
#include "tests/helpers/two_models.h"

static const char *const agents[] = {"agent-xpu-v1", "agent-xpu-v2"};

/* Returns whether under both policies BE0 and BE1 end, and BE2 begins, at the three instants of
 * `ms`. */
static bool two_in_twelve_blocks(const char *own, const char *extra, double swap_gb_per_s,
                                 const double ms[3])
{
    static const struct scenario_request q[] = {
        {BE, 0, 64, 60, 0, 0}, {BE, 0, 64, 60, 0, 0}, {BE, 0.1, 16, 1, 0, 0}};
    bool both = true;
    for (int i = 0; i < 2; i++) {
        rules_machine(1);
        sc.machine.swap_bytes_per_s = swap_gb_per_s * 1e9;
        sc.setup.kv_capacity_tokens = 192;
        rules_run(agents[i], own, extra, q, ms[2] > 0.0 ? 3 : 2);
        both = rules_finishes(0, ms[0]) && rules_finishes(1, ms[1]) && both;
        both = (ms[2] == 0.0 || rules_starts(2, ms[2])) && both;
        scenario_fini(&sc);
    }
    return both;
}

/* 96 MB at 96 GB/s leave 73.76-74.76, and BE0 waits for that: 74.76 + 81 = 155.76. They are back at
 * 156.76, and 81 more are left. Both ways take 2 ms, and computing 96 tokens takes 4.88. So
 * flash=cheaper decides for flash too. */
static bool a_victim_comes_back_from_flash(const char *extra)
{
    return two_in_twelve_blocks("flash=always", extra, 96, (const double[]){155.76, 237.76, 0});
}

/* At 24 GB/s both ways take 8 ms. So BE1's KV is dropped, and BE0 continues at once: 73.76 + 81 =
 * 154.76. Then 97 tokens are prefilled, 4.91, which gives the next one, and 26 are left. */
static bool what_is_computed_sooner_is_dropped(const char *extra)
{
    return two_in_twelve_blocks("flash=cheaper", extra, 24, (const double[]){154.76, 237.67, 0});
}

/* At 48 GB/s the KV of a second model, which drafts, doubles the bytes. So the ends are those at 24
 * GB/s. */
static bool the_kv_of_a_model_that_drafts_goes_along(const char *extra)
{
    static struct two_models two;
    static const struct scenario_request q[] = {{BE, 0, 64, 60, 0, 0}, {BE, 0, 64, 60, 0, 0}};
    rules_machine(1);
    two_models_init(&sc, &two);
    sc.setup.draft_model = 1;
    sc.machine.swap_bytes_per_s = 48e9;
    sc.setup.kv_capacity_tokens = 192;
    rules_run("agent-xpu-v2", "flash=cheaper,speculate=igpu,drafter=model", extra, q, 2);
    return rules_finishes(0, 154.76) && rules_finishes(1, 237.67);
}

/* BE2 (16 tokens) comes at 100, and there are five free blocks. But BE1 came before it, so BE2
 * begins when BE1 is on its way back. It has its token at 158.24, and BE1 decodes from then on. */
static bool no_prompt_begins_before_who_is_on_flash(const char *extra)
{
    return two_in_twelve_blocks("flash=always", extra, 96,
                                (const double[]){155.76, 239.24, 155.76});
}

static bool three_in_18_blocks(const char *extra, uint32_t output, const double ms[3])
{
    const struct scenario_request q[] = {
        {BE, 0, 64, 60, 0, 0}, {BE, 0, 64, output, 0, 0}, {BE, 0, 64, 60, 0, 0}};
    rules_machine(1);
    sc.machine.swap_bytes_per_s = 96e9;
    sc.setup.kv_capacity_tokens = 288;
    rules_run("agent-xpu-v2", "flash=always", extra, q, 3);
    return rules_finishes(0, ms[0]) && rules_finishes(1, ms[1]) && rules_finishes(2, ms[2]);
}

/* BE0, BE1 (40 of output) and BE2 fill 18 blocks at 11.76 + 32 * 2.09 = 78.64, and BE2's six are
 * gone at 79.64. BE1 ends seven steps later, at 94.06. BE0 has seven blocks then. With four more of
 * its own, BE2's six have room at once. They are back at 95.06, in BE0's step to 97.06. BE0 has 19
 * tokens left, to 136.20, and BE2 eight more. */
static bool kv_comes_back_beside_a_decode(const char *extra)
{
    return three_in_18_blocks(extra, 40, (const double[]){136.20, 94.06, 160.20});
}

/* BE1 has 50, and ends 17 steps later, at 114.66. BE0 has eight blocks then, and ten are just
 * enough. BE0's step is to 117.66. It has 9 tokens left, to 136.20, and BE2 18 more. */
static bool kv_comes_back_where_there_is_just_enough(const char *extra)
{
    return three_in_18_blocks(extra, 50, (const double[]){136.20, 114.66, 190.20});
}

static bool three_with_states(const char *extra, uint32_t output, const double ms[3])
{
    const struct scenario_request q[] = {
        {BE, 0, 64, 60, 0, 0}, {BE, 0, 64, output, 0, 0}, {BE, 0, 64, 60, 0, 0}};
    rules_machine(1);
    sc.llm.kv_state_bytes = 16e6; /* a block */
    sc.machine.swap_bytes_per_s = 80e9;
    sc.setup.kv_capacity_tokens = 256;
    rules_run("agent-xpu-v2", "flash=always", extra, q, 3);
    return rules_finishes(0, ms[0]) && rules_finishes(1, ms[1]) && rules_finishes(2, ms[2]);
}

/* Each request has states, which take a block, and there are 16 blocks. Three prompts fill 15 until
 * 11.76, and then two need a further one. So BE2's 64 tokens and states, 80 MB, are gone at 12.76.
 * BE1 ends 31 steps later, at 76.62. BE0 has six blocks and its states then, and nine are left: for
 * BE2's four, its states, and four more of BE0. BE2 is back at 77.62, in BE0's step to 79.62. BE0
 * has 27 tokens left, to 135.24, and BE2 32 more.
 *
 * With nine steps more BE1 ends at 95.16, BE0 has seven blocks, and eight are not enough. So BE2
 * comes back when BE0 has ended, at 95.16 + 19 * 3, and has 59 tokens left from 153.16. */
static bool states_come_back_with_the_kv(const char *extra)
{
    bool enough = three_with_states(extra, 32, (const double[]){135.24, 76.62, 231.24});
    scenario_fini(&sc);
    return three_with_states(extra, 41, (const double[]){152.16, 95.16, 330.16}) && enough;
}

/* There are twelve blocks. BE0 (64, 40) has its token at 3.92 and decodes every 3 ms. RT1 (160, ten
 * blocks) comes at 10. At 12.92 BE0 is between two tokens and has 67 tokens, 1 ms at 67 GB/s. RT1
 * runs 13.92-20.72. BE0 is back at 21.72, and 36 tokens are left. */
static bool a_reactive_prompt_waits_for_the_memory(const char *extra)
{
    static const struct scenario_request q[] = {{BE, 0, 64, 40, 0, 0}, {RT, 0.010, 160, 1, 0, 0}};
    rules_machine(1);
    sc.machine.swap_bytes_per_s = 67e9;
    sc.setup.kv_capacity_tokens = 192;
    rules_run("agent-xpu-v2", "flash=always", extra, q, 2);
    return rules_finishes(1, 20.72) && rules_finishes(0, 129.72);
}

static const struct rule_row all[] = {
    RULE(a_victim_comes_back_from_flash, "flash=off flash=cheaper", "flash=off"),
    RULE(what_is_computed_sooner_is_dropped, "flash=off flash=always", "flash=always"),
    RULE(the_kv_of_a_model_that_drafts_goes_along, "flash=off flash=always", "flash=always"),
    RULE(no_prompt_begins_before_who_is_on_flash, "flash=off flash=cheaper", "flash=off"),
    RULE(kv_comes_back_beside_a_decode, "flash=off flash=cheaper", "flash=off"),
    RULE(kv_comes_back_where_there_is_just_enough, "flash=off flash=cheaper", "flash=off"),
    RULE(states_come_back_with_the_kv, "flash=off flash=cheaper", "flash=off"),
    RULE(a_reactive_prompt_waits_for_the_memory, "flash=off", "flash=off"),
};

RULES_MAIN("KV on flash", all)
