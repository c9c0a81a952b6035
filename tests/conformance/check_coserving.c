/* conserve-like, hygen-like and the batch cap of agent-xpu-v2 are tested rule by rule (clauses.md
 * E.12, B.7). Toy times are those of tests/helpers/rules.h. */
#include <string.h>

#include "tests/helpers/rules.h"

/* ---- conserve-like ---- */

/* RT0 (100 tokens) has its first token at 3 + 1 + 1 = 5, and decodes. BE1 (1000) came at 1. With 10
 * ms a token, 0.03 (1 + n) + 2 <= 10 allows n = 265 offline tokens: 0.03 * 266 + 2 = 9.98. So
 * tokens come at 5, 14.98 and 24.96. */
static bool conserve_fills_up_to_the_token_slo(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{RT, 0, 100, 10, 0, 0}, {BE, 0.001, 1000, 1, 0, 0}};
    rules_run("conserve-like", "tbt_slo_s=0.01", extra, q, 2);
    return rules_tokens_at(0, 3, (double[]){5, 14.98, 24.96});
}

/* Both come at 0, and RT0's first token is due at 11. 0.03 (100 + n) + 2 <= 11 allows n = 200, so
 * RT0 has its token exactly at 11. */
static bool conserve_fills_up_to_the_first_token_slo(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{RT, 0, 100, 1, 0, 0}, {BE, 0, 1000, 1, 0, 0}};
    rules_run("conserve-like", "ttft_slo_s=0.011", extra, q, 2);
    return rules_finishes(0, 11) && rules_starts(1, 0);
}

/* Two layers take 0.03 * 400 + 1 = 13 ms each. RT1 comes at 5, and the safepoint is the end of
 * layer 1, at 13. Its first token is already overdue, so no offline tokens are added: 2 (3 + 1) + 1
 * = 9, until 22. BE0 then runs from its beginning: 2 * 13 + 1 = 27, until 49. */
static bool conserve_aborts_at_a_safepoint(const char *extra)
{
    rules_machine(2);
    struct scenario_request q[] = {{BE, 0, 400, 1, 0, 0}, {RT, 0.005, 100, 1, 0, 0}};
    rules_run("conserve-like", "ttft_slo_s=0.001", extra, q, 2);
    return rules_starts(1, 13) && rules_finishes(1, 22) && rules_finishes(0, 49);
}

/* There is one seat, and BE0 has it. RT1 has it from the safepoint on, and then BE0 again, as in
 * the test above. */
static bool conserve_gives_an_online_request_the_seat(const char *extra)
{
    rules_machine(2);
    struct scenario_request q[] = {{BE, 0, 400, 1, 0, 0}, {RT, 0.005, 100, 1, 0, 0}};
    rules_run("conserve-like", "ttft_slo_s=0.001,max_num_seqs=1", extra, q, 2);
    return rules_starts(1, 13) && rules_finishes(1, 22) && rules_finishes(0, 49);
}

/* There are two seats. BE0 and BE1 prefill 0-8 (0.03 * 200 + 2) and decode. RT2 comes at 9, the
 * layer ends at 9.06, and RT2 has a seat. BE0 decodes with the other one: 0.03 * 101 + 2 = 5.03, to
 * 14.09. Then RT2 has gone, and both decode: 0.03 * 2 + 2 = 2.06, to 16.15. */
static bool conserve_offline_keeps_the_other_seats(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 9, 0, 0}, {BE, 0, 100, 9, 0, 0}, {RT, 0.009, 100, 1, 0, 0}};
    rules_run("conserve-like", "max_num_seqs=2", extra, q, 3);
    return rules_finishes(2, 14.09) && rules_tokens_at(0, 3, (double[]){8, 14.09, 16.15}) &&
           rules_tokens_at(1, 2, (double[]){8, 16.15});
}

/* There are 12 blocks of KV. BE0 (96 tokens, and growing) has 7, and RT1 (100) needs 7, so BE0
 * gives up its KV. BE0 prefills 0-4.88 (2.88 + 2) and decodes. RT1 comes at 6, the layer ends at
 * 6.88, and RT1 has its token at 11.88. BE0 prefills 96 + 1 tokens again, 2.91 + 2, so its second
 * token is at 16.79. */
static bool conserve_offline_pays_for_memory(const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 192;
    struct scenario_request q[] = {{BE, 0, 96, 3, 0, 0}, {RT, 0.006, 100, 1, 0, 0}};
    rules_run("conserve-like", "", extra, q, 2);
    return rules_finishes(1, 11.88) && rules_tokens_at(0, 2, (double[]){4.88, 16.79}) &&
           sc.result.counters[COUNTER_KV_RECOMPUTE_EVICTIONS] == 1;
}

/* There are 12 blocks of KV. RT0 (96) and RT1 (95) have tokens at 7.73. RT0 needs a seventh block,
 * so RT1 gives way, and RT0 decodes until 13.73. Then RT1 computes 95 + 1 again. It has had a
 * token, so its 6.68 ms a token count, and not its second to a first token: 0.03 (96 + n) + 2
 * <= 6.68 allows n = 60 of BE2's 80. */
static bool conserve_keeps_the_token_slo_after_an_eviction(const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 192;
    struct scenario_request q[] = {
        {RT, 0, 96, 3, 0, 0}, {RT, 0, 95, 2, 0, 0}, {BE, 0.012, 80, 1, 0, 0}};
    rules_run("conserve-like", "ttft_slo_s=1,tbt_slo_s=0.00668", extra, q, 3);
    return rules_tokens_at(0, 3, (double[]){7.73, 10.73, 13.73}) &&
           rules_tokens_at(1, 2, (double[]){7.73, 20.41});
}

/* ---- hygen-like ---- */

/* The fit is exact here: 2 + 0.03 P + 0.03 D. A budget of 10 ms gives BE0 266 tokens at a time,
 * although no online request is there. The predictor counts a head that this iteration does not
 * have: it takes 0.03 * 266 + 1 = 8.98. So RT1, which came at 1, starts at 8.98. */
static bool hygen_bounds_offline_iterations_too(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 1000, 1, 0, 0}, {RT, 0.001, 100, 1, 0, 0}};
    rules_run("hygen-like", "latency_budget_ms=10", extra, q, 2);
    return rules_starts(1, 8.98);
}

/* RT0 decodes from 5 on. 2 + 0.03 (1 + n) <= 10 allows 265 offline tokens, as for conserve-like. */
static bool hygen_fills_up_to_the_budget(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{RT, 0, 100, 10, 0, 0}, {BE, 0.001, 1000, 1, 0, 0}};
    rules_run("hygen-like", "latency_budget_ms=10", extra, q, 2);
    return rules_tokens_at(0, 3, (double[]){5, 14.98, 24.96});
}

/* Requests run one at a time. BE0 (turn 0 of a session) ends at 5. Its turn 1 comes at 6 with 100
 * of 160 tokens cached. BE1, BE2 and BE3 came at 2, 3 and 4. Admissions alternate between age and
 * prefix: BE0 (age), BE1 (prefix, and no request has one), BE2 (age), turn 1 (prefix), BE3. */
static bool hygen_takes_cached_prefixes_every_other_time(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 100, 1, 5, 0},
                                   {BE, 0.002, 500, 1, 0, 0},
                                   {BE, 0.003, 500, 1, 0, 0},
                                   {BE, 0.004, 500, 1, 0, 0},
                                   {BE, 0.001, 160, 1, 5, 100}};
    rules_run("hygen-like", "max_num_seqs=1", extra, q, 5);
    int64_t turn = sc.records[4].start_ns;
    return sc.records[2].start_ns < turn && turn < sc.records[3].start_ns;
}

/* BE0 has the first 96 tokens of group 7, and ends at 0.03 * 100 + 2 = 5. They are cached only
 * then, long after BE1 and BE2 came. BE2 begins with them too. */
static bool hygen_sees_what_the_cache_has_now(const char *extra)
{
    rules_machine(1);
    rules_graph("request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,"
                "prefix_tokens,prefix_group\n"
                "0,0,0,proactive,0,,100,1,96,7\n"
                "1,1,0,proactive,0.001,,500,1,0,\n"
                "2,2,0,proactive,0.002,,160,1,96,7");
    rules_run("hygen-like", "max_num_seqs=1,utility=1", extra, NULL, 0);
    return rules_starts(2, 5);
}

/* ---- agent-xpu-v2, the cap of a mixed decode batch ---- */

/* Returns the largest decode batch with RT0. A fused layer takes 1.03 ms. The five prompts of 256
 * are done long before RT0 has its 300 tokens, and the BE want 60 each. */
static uint32_t mixed_batch(const char *own, const char *extra)
{
    rules_machine(1);
    scenario_cost(&sc, IGPU, OP_LAYER, 1.03, 0, 5);
    struct scenario_request q[] = {{RT, 0, 256, 300, 0, 0},
                                   {BE, 0, 256, 60, 0, 0},
                                   {BE, 0, 256, 60, 0, 0},
                                   {BE, 0, 256, 60, 0, 0},
                                   {BE, 0, 256, 60, 0, 0}};
    rules_run("agent-xpu-v2", own, extra, q, 5);
    uint32_t most = 0;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        most =
            k->request == 0 && k->op == OP_QKV && k->rows < 32 && k->rows > most ? k->rows : most;
    }
    return most;
}

/* n sequences take 0.03 n + 2 ms: 2.12 with four, 2.15 with five. An SLO of 2.13 allows four. */
static bool axpu_cap_follows_the_slo(const char *extra)
{
    return mixed_batch("cap=slo,tbt_slo_ms=2.13", extra) == 4;
}

/* RT0 alone takes 1.03 + 1 = 2.03 ms. 5 % more, 2.1315, allows four. Epsilon 0 allows only RT0. */
static bool axpu_cap_is_marginal(const char *extra)
{
    return mixed_batch("cap=marginal,epsilon=0.05", extra) == 4;
}

static const struct rule_row all[] = {
    RULE(conserve_fills_up_to_the_token_slo, "offline=always offline=alone safepoint=false",
         "offline=always offline=alone"),
    RULE(conserve_fills_up_to_the_first_token_slo, "offline=always offline=alone safepoint=false",
         "offline=always offline=alone"),
    RULE(conserve_aborts_at_a_safepoint, "offline=always offline=alone safepoint=false",
         "offline=always safepoint=false"),
    RULE(conserve_gives_an_online_request_the_seat, "safepoint=false offline=always",
         "safepoint=false"),
    RULE(conserve_offline_keeps_the_other_seats, "offline=alone max_num_seqs=16",
         "offline=alone max_num_seqs=16"),
    RULE(conserve_offline_pays_for_memory, "safepoint=false", "safepoint=false"),
    RULE(conserve_keeps_the_token_slo_after_an_eviction, "offline=always tbt_slo_s=1",
         "offline=always tbt_slo_s=1"),
    RULE(hygen_bounds_offline_iterations_too, "offline=always offline=alone utility=0",
         "offline=always"),
    RULE(hygen_fills_up_to_the_budget, "offline=always offline=alone utility=0",
         "offline=always offline=alone"),
    RULE(hygen_takes_cached_prefixes_every_other_time, "utility=0 utility=1 offline=always",
         "utility=0 utility=1"),
    RULE(hygen_sees_what_the_cache_has_now, "utility=0 max_num_seqs=2", "utility=0"),
    RULE(axpu_cap_follows_the_slo, "cap=fixed cap=marginal tbt_slo_ms=200",
         "cap=fixed cap=marginal tbt_slo_ms=200"),
    RULE(axpu_cap_is_marginal, "cap=fixed cap=slo epsilon=0", "cap=fixed cap=slo epsilon=0"),
};

RULES_MAIN("co-serving", all)
