/* Rules of policies that show only where several things meet, by hand. Toy times:
 * tests/helpers/rules.h. */
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/rules.h"
#include "tests/helpers/suite.h"

static void teardown(void)
{
    scenario_fini(&sc);
}

/* To a microsecond: ops that cost nothing take 1 ns each. */
static void starts(uint32_t request, double ms)
{
    int64_t got_ns = sc.records[request].start_ns;
    ck_assert_msg(llabs(got_ns - MS(ms)) < 1000, "request %u starts at %.6f, not %.3f", request,
                  units_ms_from_ns(got_ns), ms);
}

static void finishes(uint32_t request, double ms)
{
    ck_assert_msg(rules_finishes(request, ms), "request %u finishes at %.6f, not %.3f", request,
                  units_ms_from_ns(sc.records[request].finish_ns), ms);
}

/* A prompt of n takes n + 1 ms, and one token is expected, 1 ms more: isolated n + 2. Proactive
 * priority 0.5. RT0 (199) runs 0-200. BE1 (8, isolated 10) came at 1 and has 0.5 + 0.5 * 199 / 10 =
 * 10.45 tokens at 200: it rose through the bands of 1 and 3 to that of 9 and is the only candidate,
 * 200-209. Then BE2 (98, isolated 100, since 100) has 0.5 + 0.5 * 109 / 100 = 1.045, BE3 (48,
 * isolated 50, since 190) 0.5 + 0.5 * 19 / 50 = 0.69: the threshold falls to 1, BE2 is the
 * candidate. Were BE1 still counted in the band of 3, nobody would be, and the shorter BE3 next. */
START_TEST(prema_forgets_who_left_a_band)
{
    static const struct scenario_request q[] = {{RT, 0, 199, 1, 0, 0},
                                                {BE, 0.001, 8, 1, 0, 0},
                                                {BE, 0.1, 98, 1, 0, 0},
                                                {BE, 0.19, 48, 1, 0, 0}};
    scenario_init(&sc);
    scenario_cost(&sc, -1, OP_FFN, 0, 1, 5);
    scenario_cost(&sc, -1, OP_HEAD, 1, 0, 5);
    rules_run("prema", "max_batch=1,expected_output=1,proactive_priority=0.5", "", q, 4);
    starts(1, 200);
    starts(2, 209);
    starts(3, 308);
}
END_TEST

/* Recomputing 96 tokens in chunks of 48 takes 0.03 * 48 + 1 ms each, and the head's 1 ms
 * once: 5.88. Without calls seen KV lives as long. A turn that comes 5.8 ms after the first ended
 * (at 5.88) finds it: 48 and 16 rows more, 2.44 + 0.48 + 2. One that comes after 6.4 does not:
 * three chunks of 48 and 16 rows. Were every chunk sampled, recomputing would take 6.88. */
START_TEST(a_chunk_that_is_not_the_last_is_not_sampled_in_estimates)
{
    static const struct {
        double gap_ms, ends_ms;
    } cases[] = {{5.8, 5.88 + 5.8 + 2.44 + 2.48}, {6.4, 5.88 + 6.4 + 3 * 2.44 + 2.48}};
    rules_machine(1);
    sc.gaps_are_tools = true;
    struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0},
                                   {RT, cases[_i].gap_ms / 1e3, 160, 1, 5, 96}};
    rules_run("sjf-input", "gap_kv=ttl,token_budget=48", "", q, 2);
    finishes(0, 5.88);
    finishes(1, cases[_i].ends_ms);
}
END_TEST

/* One at a time, always by prefix, 21 blocks. BE0 (160 tokens) and BE1 (96) leave 10 and 6 blocks
 * to their sessions; RT2 (64 tokens, then 39 decodes of 3 ms) runs 12-132.92. BE3, the second turn
 * of BE1's session, and BE4, that of BE0's, come meanwhile and find 96 and 160 tokens. RT2's sixth
 * block takes the prefix of the newer: BE4 has none now, and BE3 the longest. */
START_TEST(hygen_forgets_a_prefix_that_the_cache_has_dropped)
{
    static const struct scenario_request q[] = {{BE, 0, 160, 1, 5, 0},
                                                {BE, 0, 96, 1, 6, 0},
                                                {RT, 0.012, 64, 40, 0, 0},
                                                {BE, 0.008, 160, 1, 6, 96},
                                                {BE, 0.023, 224, 1, 5, 160}};
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 21 * 16;
    rules_run("hygen-like", "max_num_seqs=1,utility=1", "", q, 5);
    finishes(2, 132.92);
    starts(3, 132.92);
    starts(4, 132.92 + 3.92);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("rarities", .teardown = teardown),
    TEST(prema_forgets_who_left_a_band),
    TEST(hygen_forgets_a_prefix_that_the_cache_has_dropped),
    LOOP(a_chunk_that_is_not_the_last_is_not_sampled_in_estimates, 2),
};
SUITE_MAIN("rarities", suite)
