/* These tests of agent-xpu-v1 show since when a prefill is pending, and since when it ages
 * (clauses.md A.4, A.8), over a preemption. Toy times are of one layer. An NPU chunk of 256 rows
 * takes 4 ms for QKV and 8 ms for FFN. The iGPU takes as long per 256 rows. Attention takes 10 ms
 * and the head 1 ms, on the iGPU. */
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/two_models.h"

static struct scenario sc;

static void setup(void)
{
    scenario_init(&sc);
    scenario_agent_xpu(&sc, 1);
}

static void teardown(void)
{
    scenario_fini(&sc);
}

static void run(const char *params, const struct scenario_request *q, uint32_t n)
{
    scenario_policy(&sc, policy_find("agent-xpu-v1"), params);
    scenario_check(&sc, q, n);
}

/* BE0 (512) is stopped by RT1 (256, comes at 1) when its first chunk ends, at 4, and RT1 ends at
 * 27. BE2 came at 2. With T_starve 24 ms BE2 has been pending for 25 and is starved. BE0, for 23,
 * is not, so BE2 goes first. If BE0 were pending since it came, or since RT1 came, it would be
 * starved for longer. */
START_TEST(a_stopped_prefill_is_pending_since_its_kernel_ended)
{
    static const struct scenario_request q[] = {
        {BE, 0, 512, 1, 0, 0}, {RT, 0.001, 256, 1, 0, 0}, {BE, 0.002, 256, 1, 0, 0}};
    run("inter_backfill=false,t_starve_s=0.024", q, 3);
    ck_assert_int_eq(sc.records[1].first_token_ns, MS(27));
    ck_assert_int_eq(sc.records[2].start_ns, MS(27));
}
END_TEST

/* BE0 (256) alone: QKV until 4, attention until 14, FFN until 22, head until 23. Its launches end
 * and none is stopped, so no context switch of 5 ms is due between them. */
START_TEST(a_prefill_that_nobody_stopped_pays_no_context_switch)
{
    static const struct scenario_request q[] = {{BE, 0, 256, 1, 0, 0}};
    run("ctx_switch_us=5000", q, 1);
    ck_assert_int_eq(sc.records[0].first_token_ns, MS(23));
}
END_TEST

/* BE0 (256) is between two kernels when RT2 comes, at 4, and pending since then. At 27 it has been
 * so for 23 ms, less than T_starve, and BE1 for 25, so BE1 goes first. */
START_TEST(a_prefill_displaced_between_two_kernels_is_pending_since_then)
{
    static const struct scenario_request q[] = {
        {BE, 0, 256, 1, 0, 0}, {BE, 0.002, 256, 1, 0, 0}, {RT, 0.004, 256, 1, 0, 0}};
    run("inter_backfill=false,t_starve_s=0.024", q, 3);
    ck_assert_int_eq(sc.records[2].first_token_ns, MS(27));
    ck_assert_int_eq(sc.records[1].start_ns, MS(27));
}
END_TEST

/* RT1 (512) has all on the NPU but attention and head: QKV 4-12, attention 12-22, FFN 22-38. BE0,
 * which stopped at 4, came at 0 and is of age at 30. It has the iGPU then, for its second chunk,
 * although it has been pending for 26 ms only. */
START_TEST(a_preemption_makes_nobody_young)
{
    static const struct scenario_request q[] = {{BE, 0, 512, 1, 0, 0}, {RT, 0.001, 512, 1, 0, 0}};
    run("inter_backfill=false,elastic=false,t_age_s=0.03", q, 2);
    const struct scenario_kernel *k = scenario_kernel_find(&sc, 0, 0, IGPU, OP_QKV);
    ck_assert_ptr_nonnull(k);
    ck_assert_int_eq(k->begin_ns, MS(30));
}
END_TEST

/* RT0 (2048) has the NPU for its QKV until 32, and the iGPU idles. BE1, there since 1 and not
 * begun, is of age at 6. It has the iGPU then, when nothing else happens. */
START_TEST(who_waits_begins_when_it_comes_of_age)
{
    static const struct scenario_request q[] = {{RT, 0, 2048, 1, 0, 0}, {BE, 0.001, 256, 1, 0, 0}};
    run("inter_backfill=false,elastic=false,t_age_s=0.005", q, 2);
    ck_assert_int_eq(sc.records[1].start_ns, MS(6));
}
END_TEST

/* RT0 (1024) runs. BE1 (4096) is of age at 6 and works at the same time on the iGPU. When RT0
 * has its token BE1 continues, although BE2 (256) would take less. BE2 begins when BE1 has its
 * token. */
START_TEST(who_came_of_age_goes_on_when_the_reactive_one_is_through)
{
    static const struct scenario_request q[] = {
        {RT, 0, 1024, 1, 0, 0}, {BE, 0.001, 4096, 1, 0, 0}, {BE, 0.002, 256, 1, 0, 0}};
    run("inter_backfill=false,t_age_s=0.005,t_starve_s=inf", q, 3);
    ck_assert_int_lt(sc.records[0].first_token_ns, sc.records[1].first_token_ns);
    ck_assert_int_ge(sc.records[2].start_ns, sc.records[1].first_token_ns);
}
END_TEST

/* There is room for 44 blocks of 16 tokens. BE0 and BE1 (256 each) decode, and BE2 (300), which
 * comes at 0.1 s, has no room to begin. RT3 (256), which comes at 0.2 s, takes BE1's KV, and has
 * its token some 20 ms later. Then BE2 has been pending for longer than T_starve and goes first.
 * BE1 came before it and would take less, but waits only since it lost its KV. */
START_TEST(who_lost_its_kv_hides_nobody_that_starves)
{
    sc.machine.memory_bytes = 1e9 + 44 * 16e6;
    static const struct scenario_request q[] = {{BE, 0, 256, 60, 0, 0},
                                                {BE, 0.001, 256, 60, 0, 0},
                                                {BE, 0.1, 300, 1, 0, 0},
                                                {RT, 0.2, 256, 1, 0, 0}};
    run("inter_backfill=false,t_starve_s=0.05", q, 4);
    ck_assert_uint_eq(sc.records[1].preemptions, 1);
    ck_assert_int_eq(sc.records[2].start_ns, sc.records[3].first_token_ns);
}
END_TEST

/* There is room for 44 blocks of 16 tokens. BE0's next turn (384, of which 256 are in the cache)
 * comes while RT1 runs, and 17 ms are left of it. RT2 (512), which begins next, takes the blocks of
 * that prefix, and 29 ms are left. BE3 (300) takes 25, so it goes first. */
START_TEST(who_lost_its_prefix_has_more_to_do)
{
    sc.machine.memory_bytes = 1e9 + 44 * 16e6;
    static const struct scenario_request q[] = {{BE, 0, 256, 1, 1, 0},
                                                {RT, 0.0235, 256, 1, 0, 0},
                                                {RT, 0.03, 512, 1, 0, 0},
                                                {BE, 0.031, 300, 1, 0, 0},
                                                {BE, 0.001, 384, 1, 1, 256}};
    run("inter_backfill=false", q, 5);
    ck_assert_int_lt(sc.records[4].arrival_ns, sc.records[3].arrival_ns);
    ck_assert_int_eq(sc.records[3].start_ns, sc.records[2].first_token_ns);
    ck_assert_int_eq(sc.records[4].start_ns, sc.records[3].first_token_ns);
}
END_TEST

/* All run on the iGPU, and BE0 (200) takes 3.125 + 10 + 6.25 + 1 = 20.375 ms. BE1 (240), BE2 (100:
 * 15.7 ms) and BE3 (200) wait. BE3 begins with the same 160 tokens as BE0, and has 40 left when
 * that has ended: 12.9 ms, so it goes first. */
START_TEST(who_found_a_prefix_since_it_came_has_less_to_do)
{
    static struct two_models two;
    static const struct scenario_request q[] = {{BE, 0, 200, 1, 0, 160},
                                                {BE, 0.001, 240, 1, 0, 0},
                                                {BE, 0.002, 100, 1, 0, 0},
                                                {BE, 0.003, 200, 1, 0, 160}};
    scenario_policy(&sc, policy_find("agent-xpu-v1"), "inter_backfill=false");
    two_models_init(&sc, &two);
    ck_assert_int_eq(two_models_run(&sc, q, (const uint8_t[]){0, 0, 0, 0},
                                    (const uint32_t[]){7, 0, 0, 7}, 4, false),
                     0);
    ck_assert_int_eq(sc.records[3].start_ns, MS(20.375));
    ck_assert_int_eq(sc.records[2].start_ns, sc.records[3].first_token_ns);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(a_prefill_that_nobody_stopped_pays_no_context_switch),
    TEST(a_stopped_prefill_is_pending_since_its_kernel_ended),
    TEST(a_prefill_displaced_between_two_kernels_is_pending_since_then),
    TEST(a_preemption_makes_nobody_young),
    TEST(who_waits_begins_when_it_comes_of_age),
    TEST(who_came_of_age_goes_on_when_the_reactive_one_is_through),
    TEST(who_lost_its_kv_hides_nobody_that_starves),
    TEST(who_lost_its_prefix_has_more_to_do),
    TEST(who_found_a_prefix_since_it_came_has_less_to_do),
};
SUITE_MAIN("agent-xpu-v1 waiting", suite)
