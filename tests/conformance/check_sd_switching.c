/* sd-npu's graph switching is tested block by block (clauses.md D.1, D.2, D.5). One layer is one
 * block. On the NPU a kernel takes 0.1 ms and 0.9 / 256 ms a row, and attention, FFN and head 1 ns.
 * A block of a chunk of 256 takes 1 ms on the prefill graph and 8 * (0.1 + 0.9 / 8) = 1.7 ms on the
 * decode graph of 32 rows. A decode step takes 0.2125 ms a block. Loading a block takes load_ms,
 * one after the other. */
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

#define DECODE_MS 0.2125

static struct scenario sc;

static void teardown(void)
{
    scenario_fini(&sc);
}

static void serve(const char *strategy, uint32_t blocks, double load_ms,
                  const struct scenario_request *q, uint32_t n)
{
    char params[128];
    scenario_init(&sc);
    sc.machine.devices[NPU].static_attention = false;
    sc.llm.n_layers = blocks;
    sc.llm.weight_bytes = load_ms * 1e6 * blocks; /* 1 GB/s */
    scenario_cost(&sc, NPU, OP_QKV, 0.1, 0.9 / 256, 0);
    (void)snprintf(params, sizeof params, "strategy=%s,blocks=%u,speculate=false", strategy,
                   blocks);
    scenario_policy(&sc, policy_find("sd-npu"), params);
    scenario_check(&sc, q, n);
}

static void run(const char *strategy, uint32_t blocks, double load_ms, uint32_t chunks)
{
    struct scenario_request q[] = {{RT, 0, 256 * chunks, 2, 0, 0}};
    serve(strategy, blocks, load_ms, q, 1);
}

/* A difference of 200 ns is allowed, because kernels of 1 ns are rounding here. */
static void near_ms(int64_t got_ns, double want_ms)
{
    ck_assert_msg(llabs(got_ns - MS(want_ms)) <= 200, "at %.6f ms, not %.4f",
                  units_ms_from_ns(got_ns), want_ms);
}

static void tokens(double first_ms, double second_ms)
{
    near_ms(sc.records[0].token_ns[0], first_ms);
    near_ms(sc.records[0].token_ns[1], second_ms);
}

/* Says when the first QKV kernel of a block in a chunk must begin. */
static void begins(uint32_t chunk, uint32_t block, double ms)
{
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        if (k->op == OP_QKV && k->layer == block && k->pass == 1 + chunk) {
            near_ms(k->begin_ns, ms);
            return;
        }
    }
    ck_abort_msg("chunk %u has no block %u", chunk, block);
}

/* Three blocks compute two chunks in 6 ms. Then there are three loads of 2 ms, the last block's
 * first, so the first block of the step waits until 12. */
START_TEST(sync_loads_after_the_prompt)
{
    run("sync", 3, 2, 2);
    tokens(6, 12 + 3 * DECODE_MS);
}
END_TEST

static uint64_t noted(const char *counter)
{
    for (uint32_t i = 0; i < sc.result.n_policy_counters; i++) {
        if (strcmp(sc.result.policy_counter_names[i], counter) == 0) {
            return sc.result.policy_counters[i];
        }
    }
    return 0;
}

/* Three blocks compute two chunks that fill their graph of 256 rows, and one row on that of 32. */
START_TEST(only_rows_that_nobody_asked_for_are_padding)
{
    run("sync", 3, 2, 2);
    ck_assert_uint_eq(noted("block_rows"), 3 * (2 * 256 + 1));
    ck_assert_uint_eq(noted("block_padding_rows"), 3 * 31);
}
END_TEST

/* In the last chunk a block that has ended loads at once: 4-6, 6-8, 8-10 ms. In the step block 0
 * runs at 6, block 1 at 8, and block 2 at 10. The first chunk keeps all its graphs. */
START_TEST(naive_async_loads_behind_the_last_chunk)
{
    run("naive-async", 3, 2, 2);
    tokens(6, 10 + DECODE_MS);
}
END_TEST

/* Two blocks (1 + 1 ms) hide one load, and there are four blocks and two chunks. At 0 {0, 1}
 * compute and the last block outside, 3, loads 0-2. At 2 {2, 3} compute (1 + 1.7), and block 1
 * loads 2-4. Block 3 runs on its new graph 3-4.7. In chunk 2, at 4.7, {0, 1} compute (1 + 1.7), and
 * block 2 loads 4.7-6.7. At 7.4 {2, 3} compute (1.7 each), and block 0 loads 7.4-9.4. The prompt
 * ends at 10.8, and all blocks have switched. */
START_TEST(progressive_switches_the_last_block_that_others_hide)
{
    run("progressive", 4, 2, 2);
    begins(0, 2, 2);
    begins(0, 3, 3);
    begins(1, 0, 4.7);
    begins(1, 1, 5.7);
    begins(1, 2, 7.4);
    begins(1, 3, 9.1);
    tokens(10.8, 10.8 + 4 * DECODE_MS);
}
END_TEST

/* Three blocks of 1 ms hide one load of 3. At 0 all of them are needed for that, so none can load.
 * At 1 two are left to compute, and block 0 is not one of them, so it loads 1-4. The prompt ends at
 * 3. Then blocks 2 and 1 load, 4-7 and 7-10. The step runs block 0, block 1 at 10, and block 2. */
START_TEST(progressive_loads_at_the_tail_what_computes_no_more)
{
    run("progressive", 3, 3, 1);
    tokens(3, 10 + 2 * DECODE_MS);
}
END_TEST

/* There are three blocks, three chunks and loads of 1.9 ms. 5.7 ms of loading begin when 5 of 9
 * blocks are left, at 4 (chunk 1). Block 0 loads 4-5.9, hidden by 1 and 2. At 6 three are left, and
 * loads of 3.8 ms: block 2 loads 6-7.9, hidden by 0 (1.7) and 1 (1). At 8.7 one is left, and block
 * 1 computes no more: it loads 8.7-10.6, while 2 takes 1.7 ms. The step begins with block 0 at
 * 10.4, and block 1 has come when it is needed. */
START_TEST(late_start_begins_when_the_rest_lasts_as_long_as_the_loads)
{
    run("late-start", 3, 1.9, 3);
    begins(1, 2, 5);
    begins(2, 0, 6);
    begins(2, 1, 7.7);
    begins(2, 2, 8.7);
    tokens(10.4, 10.4 + 3 * DECODE_MS);
}
END_TEST

/* Two blocks, loads of 2 ms. Block 0 loads from 1 on. Request 0 ends at 2 with its only token, so
 * nobody decodes on it: block 0 has its graph for prompts again at 4, and the three chunks of
 * request 1 end at 10. On the other graph it would begin at 3 and take 0.7 ms more a chunk: 11.1.
 */
START_TEST(a_graph_on_its_way_for_nobody_is_taken_back)
{
    struct scenario_request q[] = {{RT, 0, 256, 1, 0, 0}, {RT, 0, 768, 1, 0, 0}};
    serve("naive-async", 2, 2, q, 2);
    near_ms(sc.records[0].token_ns[0], 2);
    near_ms(sc.records[1].token_ns[0], 10);
}
END_TEST

/* Two blocks, loads of 2 ms. Request 0: block 0 loads at 1, block 1 at 3, so its second token comes
 * at 5.2125. Then both go back, by 7.2125 and 9.2125. Request 1 computes block 1 from there on, and
 * meanwhile block 0 computes no more: it loads at once, up to 11.2125, and block 1 after it. */
START_TEST(a_block_that_waited_for_its_graph_hides_a_load)
{
    struct scenario_request q[] = {{RT, 0, 256, 2, 0, 0}, {RT, 0, 256, 2, 0, 0}};
    serve("progressive", 2, 2, q, 2);
    near_ms(sc.records[0].token_ns[1], 5 + DECODE_MS);
    near_ms(sc.records[1].token_ns[0], 10 + DECODE_MS);
    near_ms(sc.records[1].token_ns[1], 13 + 2 * DECODE_MS);
}
END_TEST

/* There are as many blocks as possible, and two requests that wait. The state of a block lies next
 * to their queue in memory, and a request is not taken for a block. */
START_TEST(no_block_comes_after_the_last)
{
    struct scenario_request q[] = {
        {RT, 0, 256, 2, 0, 0}, {RT, 0, 256, 2, 0, 0}, {RT, 0, 256, 2, 0, 0}};
    char *log = NULL;
    size_t size = 0;
    scenario_init(&sc);
    sc.machine.devices[NPU].static_attention = false;
    sc.llm.n_layers = 32;
    sc.llm.weight_bytes = 32e6;
    scenario_policy(&sc, policy_find("sd-npu"), "strategy=sync,blocks=32,speculate=false");
    sc.setup.decision_log = open_memstream(&log, &size);
    scenario_check(&sc, q, 3);
    (void)fclose(sc.setup.decision_log);
    ck_assert_ptr_nonnull(strstr(log, " drop 1:31:"));
    ck_assert_msg(strstr(log, " 1:32:") == NULL, "%.60s", strstr(log, " 1:32:"));
    free(log);
}
END_TEST

static uint32_t draft_every_other(const void *params, uint64_t seed, const struct request *r,
                                  const struct trace_text *text, uint64_t step)
{
    (void)params;
    (void)seed;
    (void)r;
    (void)text;
    return step % 2 == 1 ? 3 : 0;
}

static uint32_t accept_all(const void *params, uint64_t seed, const struct request *r,
                           const struct trace_text *text, uint64_t step, uint32_t drafted)
{
    (void)params;
    (void)seed;
    (void)r;
    (void)text;
    (void)step;
    return drafted;
}

/* The drafter has nothing for every other step. With one block the prompt ends at 1 ms. Then come a
 * plain step, 2 ms of drafting and a verification of four rows that emits four tokens, and both
 * again. */
START_TEST(a_step_without_a_draft_is_followed_by_another_draft)
{
    struct scenario_request q[] = {{RT, 0, 256, 11, 0, 0}};
    double at = 1.0;
    uint32_t n = 0;
    scenario_init(&sc);
    sc.machine.devices[NPU].static_attention = false;
    scenario_cost(&sc, NPU, OP_QKV, 0.1, 0.9 / 256, 0);
    sc.setup.draft = draft_every_other;
    sc.setup.accept = accept_all;
    scenario_policy(&sc, policy_find("sd-npu"), "strategy=keep-both,blocks=1,draft_ms=2");
    scenario_check(&sc, q, 1);
    near_ms(sc.records[0].token_ns[n++], at);
    for (int pair = 0; pair < 2; pair++) {
        at += DECODE_MS;
        near_ms(sc.records[0].token_ns[n++], at);
        at += 2.0 + DECODE_MS;
        for (int i = 0; i < 4; i++) {
            near_ms(sc.records[0].token_ns[n++], at);
        }
    }
}
END_TEST

/* init declares the graphs that the strategy uses, with their rows and blocks, and the blocks that
 * are there before the run. It also declares other weights: the CPU's own format of them, EAGLE's
 * draft model (a layer and the head), and calibration. There are two blocks of 1 GB and graphs of
 * 300 and 24 rows. */
#define GRAPH_1 "0 0 graph version=1 rows=300 blocks=2 = 0\n"
#define GRAPH_2 "0 0 graph version=2 rows=24 blocks=2 = 0\n"
#define BLOCK(i, v) "0 0 map 1:" i ":" v " bytes=1000000000 = 0\n"
static const struct {
    const char *params, *declared;
} inits[] = {
    {"strategy=progressive", GRAPH_1 GRAPH_2 BLOCK("0", "1") BLOCK("1", "1")},
    {"strategy=sync", GRAPH_1 GRAPH_2 BLOCK("0", "1") BLOCK("1", "1")},
    {"strategy=naive-async", GRAPH_1 GRAPH_2 BLOCK("0", "1") BLOCK("1", "1")},
    {"strategy=late-start", GRAPH_1 GRAPH_2 BLOCK("0", "1") BLOCK("1", "1")},
    {"strategy=keep-both",
     GRAPH_1 GRAPH_2 BLOCK("0", "1") BLOCK("0", "2") BLOCK("1", "1") BLOCK("1", "2")},
    {"strategy=unified-g1", GRAPH_1 BLOCK("0", "1") BLOCK("1", "1")},
    {"strategy=unified-g2", GRAPH_2 BLOCK("0", "2") BLOCK("1", "2")},
    {"strategy=unified-g1,decode=cpu",
     GRAPH_1 BLOCK("0", "1") BLOCK("1", "1") "0 0 map 1:0:3 bytes=2000000000 = 0\n"},
    {"strategy=unified-g2,drafter=eagle,calibrate_mb=55",
     GRAPH_2 BLOCK("0", "2") BLOCK("1", "2") "0 0 map 1:0:4 bytes=1400000000 = 0\n"
                                             "0 0 map 1:0:5 bytes=55000000 = 0\n"},
    {"strategy=unified-g2,drafter=eagle,calibrate_mb=55,speculate=false",
     GRAPH_2 BLOCK("0", "2") BLOCK("1", "2")}, /* nobody drafts, so no drafter is there */
};

START_TEST(init_declares_the_graphs_of_the_strategy)
{
    struct scenario_request q[] = {{RT, 0, 100, 2, 0, 0}};
    char params[128];
    char *log = NULL;
    size_t size = 0;
    scenario_init(&sc);
    sc.machine.devices[NPU].static_attention = false;
    sc.llm.n_layers = 2;
    sc.llm.weight_bytes = 2e9;
    sc.llm.body_weights = 2e9; /* half a byte each */
    sc.llm.body_bytes_per_weight = 0.5;
    sc.llm.head_weights = 9e8; /* a byte each: 1e9 / 2 + 9e8 is 1.4e9 */
    sc.llm.head_bytes_per_weight = 1.0;
    (void)snprintf(params, sizeof params, "blocks=2,g1=300,g2=24,%s", inits[_i].params);
    scenario_policy(&sc, policy_find("sd-npu"), params);
    sc.setup.drafter = _i % 2 == 1 ? "suffix" : NULL;
    sc.setup.decision_log = open_memstream(&log, &size);
    ck_assert_msg(scenario_run(&sc, q, 1, false) == 0, "%s", sc.result.message);
    (void)fclose(sc.setup.decision_log);
    OWNED char *policy = xformat("policy sd-npu flags=%u%s\n", policy_find("sd-npu")->flags,
                                 _i % 2 == 1 ? " drafter=suffix" : "");
    ck_assert_msg(strncmp(log, policy, strlen(policy)) == 0, "%.200s", log);
    const char *first = log + strlen(policy);
    size_t n = strlen(inits[_i].declared);
    ck_assert_msg(strncmp(first, inits[_i].declared, n) == 0 && strncmp(first + n, "0 ", 2) != 0,
                  "%s:\n%.500s", inits[_i].params, log);
    free(log);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .teardown = teardown),
    TEST(sync_loads_after_the_prompt),
    TEST(only_rows_that_nobody_asked_for_are_padding),
    TEST(naive_async_loads_behind_the_last_chunk),
    TEST(progressive_switches_the_last_block_that_others_hide),
    TEST(progressive_loads_at_the_tail_what_computes_no_more),
    TEST(late_start_begins_when_the_rest_lasts_as_long_as_the_loads),
    TEST(a_graph_on_its_way_for_nobody_is_taken_back),
    TEST(a_block_that_waited_for_its_graph_hides_a_load),
    TEST(no_block_comes_after_the_last),
    TEST(a_step_without_a_draft_is_followed_by_another_draft),
    LOOP(init_declares_the_graphs_of_the_strategy, sizeof inits / sizeof inits[0]),
};
SUITE_MAIN("sd-npu switching", suite)
