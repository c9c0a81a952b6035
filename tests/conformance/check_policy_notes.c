/* Counters of policies (sched_note) are computed by hand, because nothing else of a run shows them.
 * Sessions' KV is tested on the toy machine of tests/helpers/rules.h, and the graphs of sd-npu on
 * that of check_sd_switching.c. */
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

static struct scenario sc;

static void teardown(void)
{
    scenario_fini(&sc);
}

/* A counter that was never noted is 0. */
static uint64_t noted(const char *counter)
{
    for (uint32_t i = 0; i < sc.result.n_policy_counters; i++) {
        if (strcmp(sc.result.policy_counter_names[i], counter) == 0) {
            return sc.result.policy_counters[i];
        }
    }
    return 0;
}

/* Turn 0 (96 tokens) takes 4.88 ms, and then its tool runs. check_tool_gaps.c computes what
 * keeping, dropping and swapping waste. 2.44 ms of holding are worth computing again, and 2 ms a
 * transfer at 96 GB/s. */
static const struct {
    const char *params;
    double gap_ms, swap_gb_per_s;
    uint64_t kept, discarded, swapped;
} gaps[] = {
    {"gap_kv=cache", 10, 96, 0, 0, 0},
    {"gap_kv=reactive", 10, 96, 0, 0, 0},
    {"gap_kv=preserve", 10, 96, 1, 0, 0},
    {"gap_kv=discard", 10, 96, 0, 1, 0},
    {"gap_kv=swap", 10, 96, 0, 0, 1},
    {"gap_kv=ttl,gap_s=0.009", 10, 96, 1, 1, 0},
    {"gap_kv=ttl,gap_s=0.012", 10, 96, 1, 0, 0},
    {"gap_kv=infercept", 2.4, 1, 1, 0, 0},
    {"gap_kv=infercept", 2.5, 1, 1, 1, 0},
    {"gap_kv=infercept", 1.9, 96, 1, 0, 0},
    {"gap_kv=infercept", 10, 96, 1, 0, 1},
    {"gap_kv=infercept,gap_s=1", 10, 1, 0, 1, 0},
    {"gap_kv=infercept,gap_s=1", 10, 96, 0, 0, 1},
};

START_TEST(what_becomes_of_kv_is_counted)
{
    static const char *const policies[] = {"sjf-input", "edf"};
    for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; i++) {
        struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0},
                                       {RT, gaps[i].gap_ms / 1e3, 160, 1, 5, 96}};
        scenario_init(&sc);
        scenario_cost(&sc, -1, OP_QKV, 0, 0.01, 0);
        scenario_cost(&sc, -1, OP_FFN, 0, 0.02, 0);
        scenario_cost(&sc, -1, OP_MHA, 1, 0, 0);
        scenario_cost(&sc, -1, OP_HEAD, 1, 0, 0);
        scenario_cost(&sc, -1, OP_LAYER, 2, 0, 0);
        sc.llm.kv_bytes_per_token = 1e6;
        sc.setup.prefix_reuse = true;
        sc.gaps_are_tools = true;
        sc.machine.swap_bytes_per_s = gaps[i].swap_gb_per_s * 1e9;
        sc.machine.swap_fixed_ns = 0;
        scenario_policy(&sc, policy_find(policies[_i]), gaps[i].params);
        scenario_check(&sc, q, 2);
        ck_assert_msg(noted("gap_kept") == gaps[i].kept &&
                          noted("gap_discarded") == gaps[i].discarded &&
                          noted("gap_swapped") == gaps[i].swapped,
                      "%s over %.1f ms: kept %u, discarded %u, swapped %u", gaps[i].params,
                      gaps[i].gap_ms, (unsigned)noted("gap_kept"), (unsigned)noted("gap_discarded"),
                      (unsigned)noted("gap_swapped"));
        scenario_fini(&sc);
    }
    scenario_init(&sc);
}
END_TEST

static bool has_gaps(const struct policy_ops *ops)
{
    const struct policy_param *p = ops->params;
    while (p != NULL && p->name != NULL && strcmp(p->name, "gap_kv") != 0) {
        p++;
    }
    return p != NULL && p->name != NULL;
}

/* Turns have 96, 300, 400 and 500 tokens. Each takes at least 0.03 ms a token to compute again, and
 * at most 2 ms more in all. Before any call was seen, KV is kept for as long as that takes.
 *
 * With calls of 1 and 2 ms the first is in time (96: 2.88). It is known then that 1 ms is enough,
 * and the KV of turn 1 is given up in the second.
 *
 * With calls of 6, 1 and 3 ms the first is late (4.88 at most), and the second in time for the 6 ms
 * that are known (9 to compute again). For both calls a time to live of 6 ms costs 6 + 1 held, 1 ms
 * costs 1 + 1 and 12 again, and 0 ms costs 24. 6 ms is least, so the third is in time. */
static const struct {
    double gap_ms[3];
    uint32_t tools, discarded;
} lives[] = {{{1, 2}, 2, 1}, {{6, 1, 3}, 3, 1}};

/* Every policy with rules for tool gaps learns from them. */
START_TEST(the_time_to_live_is_learned)
{
    size_t n;
    uint32_t tried = 0;
    const struct policy_ops *const *all = policy_list(&n);
    for (size_t i = 0; i < n; i++) {
        if (!has_gaps(all[i])) {
            continue;
        }
        const double *ms = lives[_i].gap_ms;
        struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0},
                                       {RT, ms[0] / 1e3, 300, 1, 5, 96},
                                       {RT, ms[1] / 1e3, 400, 1, 5, 300},
                                       {RT, ms[2] / 1e3, 500, 1, 5, 400}};
        scenario_init(&sc);
        scenario_cost(&sc, -1, OP_QKV, 0, 0.01, 0);
        scenario_cost(&sc, -1, OP_FFN, 0, 0.02, 0);
        scenario_cost(&sc, -1, OP_MHA, 1, 0, 0);
        scenario_cost(&sc, -1, OP_HEAD, 1, 0, 0);
        scenario_cost(&sc, -1, OP_LAYER, 2, 0, 0);
        sc.setup.prefix_reuse = true;
        sc.gaps_are_tools = true;
        scenario_policy(&sc, all[i], "gap_kv=ttl");
        scenario_check(&sc, q, lives[_i].tools + 1);
        ck_assert_msg(noted("gap_kept") == lives[_i].tools &&
                          noted("gap_discarded") == lives[_i].discarded,
                      "%s: kept %u, discarded %u", all[i]->name, (unsigned)noted("gap_kept"),
                      (unsigned)noted("gap_discarded"));
        scenario_fini(&sc);
        tried++;
    }
    ck_assert_uint_gt(tried, 5);
    scenario_init(&sc);
}
END_TEST

/* There are three blocks and two chunks, and the prompt ends at 6 ms. Under sync the first block of
 * the step waits for the last of three loads, until 12. Under naive-async block 1 waits from 6.2125
 * to 8, and block 2 from 8.2125 to 10. Progressive over four blocks hides all loads of 2 ms. */
static const struct {
    const char *strategy;
    uint32_t blocks;
    uint64_t stall_us;
} stalls[] = {{"sync", 3, 6000}, {"naive-async", 3, 2 * 1787}, {"progressive", 4, 0}};

START_TEST(waiting_for_graphs_is_counted)
{
    struct scenario_request q[] = {{RT, 0, 512, 2, 0, 0}};
    char params[128];
    scenario_init(&sc);
    sc.machine.devices[NPU].static_attention = false;
    sc.llm.n_layers = stalls[_i].blocks;
    sc.llm.weight_bytes = 2e6 * stalls[_i].blocks; /* 2 ms each at 1 GB/s */
    scenario_cost(&sc, NPU, OP_QKV, 0.1, 0.9 / 256, 0);
    (void)snprintf(params, sizeof params, "strategy=%s,blocks=%u,speculate=false",
                   stalls[_i].strategy, stalls[_i].blocks);
    scenario_policy(&sc, policy_find("sd-npu"), params);
    scenario_check(&sc, q, 1);
    uint64_t us = noted("graph_stall_us"); /* kernels of 1 ns are rounding here */
    ck_assert_msg(us + 2 >= stalls[_i].stall_us && us <= stalls[_i].stall_us + 2, "%u us",
                  (unsigned)us);
}
END_TEST

/* agent-xpu-v1 backfills nothing where no request could be backfilled, or where it is switched off.
 * While a reactive one decodes on the iGPU (20 ms a token), the NPU takes a proactive prompt. */
START_TEST(backfilling_is_counted)
{
    struct scenario_request q[] = {{RT, 0, 1024, 30, 0, 0}, {BE, 0.001, 1024, 30, 1, 0}};
    static const char *const params[] = {"inter_backfill=true", "inter_backfill=true",
                                         "inter_backfill=false"};
    for (int i = 0; i < 3; i++) {
        scenario_init(&sc);
        scenario_cost(&sc, -1, OP_QKV, 0, 0.016, 5);
        scenario_cost(&sc, -1, OP_FFN, 0, 0.031, 5);
        scenario_cost(&sc, -1, OP_MHA, 10, 0, 5);
        scenario_cost(&sc, -1, OP_HEAD, 1, 0, 5);
        scenario_cost(&sc, -1, OP_LAYER, 20, 0, 5);
        scenario_policy(&sc, policy_find("agent-xpu-v1"), params[i]);
        scenario_check(&sc, q, i == 0 ? 1 : 2);
        ck_assert_msg(i == 1 ? noted("backfilled") > 0 : noted("backfilled") == 0, "case %d: %u", i,
                      (unsigned)noted("backfilled"));
        scenario_fini(&sc);
    }
    scenario_init(&sc);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("policy notes", .teardown = teardown),
    LOOP(what_becomes_of_kv_is_counted, 2),
    LOOP(the_time_to_live_is_learned, 2),
    LOOP(waiting_for_graphs_is_counted, 3),
    TEST(backfilling_is_counted),
};
SUITE_MAIN("policy_notes", suite)
