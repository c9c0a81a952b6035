/* Iteration-level schedulers are tested rule by rule: vllm-v0, vllm-v1, vllm-priority (both modes),
 * sarathi and sarathi-hetero (clauses.md E.1 to E.3). In the toy times of tests/helpers/rules.h n
 * rows take 0.03 n + 1 ms, and 1 ms more with a token. A decode alone takes 3 ms. KV has blocks of
 * 16 tokens. check_async_scheduling.c tests asynchronous scheduling of vllm-v1. */
#include "tests/helpers/rules.h"

/* ---- rules that they share ---- */

/* There are 12 blocks of KV. BE0 (96 tokens) and BE1 (95) take six each: 191 rows, 7.73. BE0's
 * decode needs a seventh. So BE1, the last to arrive, is recomputed, and BE0 decodes alone: 10.73,
 * 13.73 and 16.73. BE2 (50: four blocks) came at 1 and would fit next to BE0's seven. But BE1 (96
 * rows now) is before it, and does not fit. At 16.73 both run: 146 rows, 6.38, until 23.11. */
static bool recompute_the_last(const char *policy, const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 192;
    struct scenario_request q[] = {
        {BE, 0, 96, 4, 0, 0}, {BE, 0, 95, 2, 0, 0}, {BE, 0.001, 50, 1, 0, 0}};
    rules_run(policy, "", extra, q, 3);
    return rules_tokens_at(0, 4, (double[]){7.73, 10.73, 13.73, 16.73}) &&
           rules_tokens_at(1, 2, (double[]){7.73, 23.11}) && rules_starts(2, 16.73) &&
           sc.records[0].preemptions == 0 && sc.records[1].preemptions == 1;
}

static bool v0_recomputes_the_last_arrived(const char *extra)
{
    return recompute_the_last("vllm-v0", extra);
}

static bool v1_recomputes_the_last_running(const char *extra)
{
    return recompute_the_last("vllm-v1", extra);
}

static bool sarathi_recomputes_the_last(const char *extra)
{
    return recompute_the_last("sarathi", extra);
}

/* There are 12 blocks of KV, and an iteration has 128 tokens. 28 rows of BE1 would fit next to
 * BE0's 100. But its eight blocks do not fit next to BE0's seven, so it starts when BE0 has its
 * third token. */
static bool whole_prompt_must_fit(const char *policy, const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 192;
    struct scenario_request q[] = {{BE, 0, 100, 3, 0, 0}, {BE, 0, 120, 1, 0, 0}};
    rules_run(policy, "max_num_batched_tokens=128", extra, q, 2);
    return sc.records[0].finish_ns == sc.records[1].start_ns && sc.records[0].tokens_n == 3;
}

static bool sarathi_admits_when_the_whole_prompt_fits(const char *extra)
{
    return whole_prompt_must_fit("sarathi", extra);
}

static bool hetero_admits_when_the_whole_prompt_fits(const char *extra)
{
    return whole_prompt_must_fit("sarathi-hetero", extra);
}

/* There are seven blocks of KV. BE0 (70 tokens, 3 of output) takes five, and BE1 (20, 2 of output)
 * the others. Both have room in their last block. Still Sarathi wants a free block for BE0's second
 * token at 4.7, so BE1 is preempted, and BE0 decodes until 7.7. Then BE1 computes 21 rows again
 * next to BE0's third token: 2.66. */
static bool a_decode_wants_a_block(const char *policy, const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 112;
    struct scenario_request q[] = {{BE, 0, 70, 3, 0, 0}, {BE, 0, 20, 2, 0, 0}};
    rules_run(policy, "", extra, q, 2);
    return rules_tokens_at(0, 2, (double[]){4.7, 7.7});
}

static bool sarathi_wants_a_free_block_for_a_decode(const char *extra)
{
    return a_decode_wants_a_block("sarathi", extra) && rules_finishes(0, 10.36) &&
           rules_finishes(1, 10.36);
}

/* BE1's prompt runs alone, 2.63, and BE0's third token after it. */
static bool v0_wants_a_free_block_for_a_decode(const char *extra)
{
    return a_decode_wants_a_block("vllm-v0", extra) && rules_finishes(1, 10.33) &&
           rules_finishes(0, 13.33);
}

/* Both decode at once, in 2.06. */
static bool v1_wants_what_a_decode_needs(const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 112;
    struct scenario_request q[] = {{BE, 0, 70, 3, 0, 0}, {BE, 0, 20, 2, 0, 0}};
    rules_run("vllm-v1", "", extra, q, 2);
    return rules_finishes(1, 6.76) && rules_finishes(0, 9.76);
}

/* BE0 (90 tokens, 3 of output) has six of seven blocks. At 4.7 BE1 (16) takes the seventh. No
 * block is left for BE0's next one, which it does not need. 17 rows take 2.51, and then a decode
 * follows. */
static bool sarathi_admits_into_the_last_block(const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 112;
    struct scenario_request q[] = {{BE, 0, 90, 3, 0, 0}, {BE, 0.001, 16, 1, 0, 0}};
    rules_run("sarathi", "", extra, q, 2);
    return rules_starts(1, 4.7) && rules_finishes(1, 7.21) && rules_finishes(0, 10.21);
}

/* ---- vllm-v0 ---- */

/* BE1 and BE2 come at 1. At 5 a step has their prompts alone (200 rows: 8). Then all three decode
 * (2.09), so BE0's second token waits for both. */
static bool v0_runs_prompts_before_decodes(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 2, 0, 0}, {BE, 0.001, 100, 2, 0, 0}, {BE, 0.001, 100, 2, 0, 0}};
    rules_run("vllm-v0", "", extra, q, 3);
    return rules_tokens_at(0, 2, (double[]){5, 15.09}) &&
           rules_tokens_at(2, 2, (double[]){13, 15.09});
}

/* A step has 512 tokens, and BE0's 400 leave 112. BE1 (200) is not cut. BE2 (50) would fit, but
 * does not pass it. So both start at 14. */
static bool v0_stops_at_the_first_that_does_not_fit(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 400, 1, 0, 0}, {BE, 0, 200, 1, 0, 0}, {BE, 0, 50, 1, 0, 0}};
    rules_run("vllm-v0", "", extra, q, 3);
    return rules_starts(1, 14) && rules_starts(2, 14) && rules_finishes(2, 23.5);
}

/* BE0 (3 of output) has the only place until 5 + 6 = 11. */
static bool v0_has_a_sequence_limit(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 100, 3, 0, 0}, {BE, 0.001, 100, 1, 0, 0}};
    rules_run("vllm-v0", "max_num_seqs=1", extra, q, 2);
    return rules_starts(1, 11);
}

/* There are 20 blocks. BE0 has seven, and 13 (208 tokens) are free. BE1 needs 100 + 0.4 * 320 =
 * 228, so it waits for BE0's end. */
static bool v0_leaves_a_watermark(const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 320;
    struct scenario_request q[] = {{BE, 0, 100, 3, 0, 0}, {BE, 0.001, 100, 1, 0, 0}};
    rules_run("vllm-v0", "watermark_frac=0.4", extra, q, 2);
    return rules_starts(1, 11);
}

/* 0.14 of 20 blocks are 2.8, so two are left free. BE0 has seven, and BE1 takes 11 of the other
 * 13. */
static bool v0_leaves_whole_blocks(const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 320;
    struct scenario_request q[] = {{BE, 0, 100, 3, 0, 0}, {BE, 0.001, 176, 1, 0, 0}};
    rules_run("vllm-v0", "watermark_frac=0.14", extra, q, 2);
    return rules_starts(1, 5);
}

/* ---- vllm-v1 ---- */

/* At 5 BE0's decode and BE1's 100 rows are one iteration: 101 rows, 5.03. */
static bool v1_mixes_decodes_and_prompts(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 100, 2, 0, 0}, {BE, 0.001, 100, 1, 0, 0}};
    rules_run("vllm-v1", "", extra, q, 2);
    return rules_tokens_at(0, 2, (double[]){5, 10.03}) && rules_finishes(1, 10.03);
}

/* BE0 (50) prefills 0-3.5. With 64 tokens an iteration, its decode leaves 63 rows to BE1 (100):
 * 3.92. The other 37 follow: 38 rows, 3.14. */
static bool v1_cuts_prompts_at_the_budget(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 50, 3, 0, 0}, {BE, 0.001, 100, 1, 0, 0}};
    rules_run("vllm-v1", "max_num_batched_tokens=64", extra, q, 2);
    return rules_tokens_at(0, 3, (double[]){3.5, 7.42, 10.56}) && rules_finishes(1, 10.56);
}

/* BE0 gets 40 rows at a time: 70 rows with BE1's 30 (4.1). Then it is alone and gets the other 60
 * at once (3.8): 7.9. */
static bool v1_limits_the_rows_of_one_prompt(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 100, 1, 0, 0}, {BE, 0, 30, 1, 0, 0}};
    rules_run("vllm-v1", "long_prefill_token_threshold=40", extra, q, 2);
    return rules_finishes(1, 4.1) && rules_finishes(0, 7.9);
}

/* A prompt gets 40 rows at a time: 80 rows (3.4) twice, and 31 rows (2.93): 9.73. BE0's decode then
 * takes BE1's KV. No request is admitted in such an iteration, so it runs alone: 12.73. BE1's first
 * 40 rows are in the next one: 41 rows, 3.23. */
static bool v1_admits_nothing_after_preempting(const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 192;
    struct scenario_request q[] = {{BE, 0, 96, 3, 0, 0}, {BE, 0, 95, 2, 0, 0}};
    rules_run("vllm-v1", "long_prefill_token_threshold=40,reserve_full_isl=false", extra, q, 2);
    return rules_tokens_at(0, 3, (double[]){9.73, 12.73, 15.96}) && sc.records[1].preemptions == 1;
}

/* ---- vllm-priority ---- */

/* There is one place. At 5 RT2 is before BE1, which came first. */
static bool admission_by_class(const char *mode, const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.001, 100, 1, 0, 0}, {RT, 0.002, 100, 1, 0, 0}};
    rules_run("vllm-priority", mode, extra, q, 3);
    return rules_starts(2, 5) && rules_starts(1, 10);
}

static bool priority_v0_admits_by_class(const char *extra)
{
    return admission_by_class("mode=v0,max_num_seqs=1", extra);
}

static bool priority_v1_admits_by_class(const char *extra)
{
    return admission_by_class("mode=v1,max_num_seqs=1", extra);
}

/* Within a class the smaller priority of the trace is first. */
static bool priority_obeys_the_trace(const char *extra)
{
    rules_machine(1);
    rules_extra(1)->priority = 5;
    rules_extra(2)->priority = 1;
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.001, 100, 1, 0, 0}, {BE, 0.002, 100, 1, 0, 0}};
    rules_run("vllm-priority", "max_num_seqs=1", extra, q, 3);
    return rules_starts(2, 5) && rules_starts(1, 10);
}

/* A class comes before any priority, up to the largest and the smallest that there are. */
static bool priority_stays_within_its_class(const char *extra)
{
    static const int32_t priorities[4][2] = {
        {0, 0}, {0, 1000000001}, {0, INT32_MAX}, {INT32_MIN, INT32_MAX}};
    bool holds = true;
    rules_machine(1);
    for (int i = 0; i < 4; i++) {
        rules_extra(1)->priority = priorities[i][0];
        rules_extra(2)->priority = priorities[i][1];
        struct scenario_request q[] = {
            {BE, 0, 100, 1, 0, 0}, {BE, 0.001, 100, 1, 0, 0}, {RT, 0.002, 100, 1, 0, 0}};
        rules_run("vllm-priority", "max_num_seqs=1", extra, q, 3);
        holds = holds && rules_starts(2, 5) && rules_starts(1, 10);
    }
    return holds;
}

/* The memory is that of the first test (191 rows: 7.73). But here the last request is reactive, so
 * BE0 is recomputed instead. RT1 decodes at 10.73 and 13.73, and BE0 (97 rows: 4.91) returns at
 * 13.73. */
static bool victim_by_class(const char *mode, const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 192;
    struct scenario_request q[] = {{BE, 0, 96, 2, 0, 0}, {RT, 0, 95, 3, 0, 0}};
    rules_run("vllm-priority", mode, extra, q, 2);
    return rules_tokens_at(1, 3, (double[]){7.73, 10.73, 13.73}) &&
           rules_tokens_at(0, 2, (double[]){7.73, 18.64}) && sc.records[0].preemptions == 1 &&
           sc.records[1].preemptions == 0;
}

static bool priority_v0_recomputes_the_least_urgent(const char *extra)
{
    return victim_by_class("mode=v0,watermark_frac=0", extra);
}

static bool priority_v1_recomputes_the_least_urgent(const char *extra)
{
    return victim_by_class("mode=v1", extra);
}

/* BE0 has the one place, with tokens at 5 and 8, when RT1 comes at 6. In v0 RT1 takes the place at
 * 8 (50 rows: 3.5), and then BE0 prefills 102 rows: 5.06. */
static bool priority_v0_takes_a_place_by_force(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 100, 4, 0, 0}, {RT, 0.006, 50, 1, 0, 0}};
    rules_run("vllm-priority", "mode=v0,max_num_seqs=1", extra, q, 2);
    return rules_starts(1, 8) && rules_tokens_at(0, 3, (double[]){5, 8, 16.56});
}

/* In v1 RT1 does not take the place, so BE0 ends at 14. */
static bool priority_v1_takes_no_place_by_force(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 100, 4, 0, 0}, {RT, 0.006, 50, 1, 0, 0}};
    rules_run("vllm-priority", "mode=v1,max_num_seqs=1", extra, q, 2);
    return rules_starts(1, 14) && rules_finishes(0, 14);
}

/* In v0 RT1 takes memory by force too. BE0 (150) has ten of twelve blocks, and RT1 (50) needs four.
 * 150 rows take 6.5. */
static bool priority_v0_takes_memory_by_force(const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 192;
    struct scenario_request q[] = {{BE, 0, 150, 3, 0, 0}, {RT, 0.006, 50, 1, 0, 0}};
    rules_run("vllm-priority", "mode=v0", extra, q, 2);
    return rules_starts(1, 6.5) && sc.records[0].preemptions == 1;
}

/* RT1 comes at 0.5, while BE0's 300 rows run (QKV to 3, attention to 4, FFN to 10, head to 11).
 * The iteration stops at 3 and is lost. RT1 runs alone (100 rows: 5), and then BE0 from its
 * beginning. */
static bool interrupts_at_a_kernel(const char *mode, const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 300, 1, 0, 0}, {RT, 0.0005, 100, 1, 0, 0}};
    rules_run("vllm-priority", mode, extra, q, 2);
    return rules_starts(1, 3) && rules_finishes(1, 8) && rules_finishes(0, 19);
}

static bool priority_v0_interrupts_at_a_kernel(const char *extra)
{
    return interrupts_at_a_kernel("mode=v0,interrupt=true", extra);
}

static bool priority_v1_interrupts_at_a_kernel(const char *extra)
{
    return interrupts_at_a_kernel("mode=v1,interrupt=true", extra);
}

/* RT0 is in the iteration, so RT2 waits for it. In the second test the request has no place, so it
 * stops no iteration either. */
static bool priority_interrupts_no_class_of_its_own(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {RT, 0, 100, 1, 0, 0}, {BE, 0, 200, 1, 0, 0}, {RT, 0.0005, 100, 1, 0, 0}};
    rules_run("vllm-priority", "interrupt=true", extra, q, 3);
    return rules_starts(2, 11) && sc.n_kernels == 8;
}

static bool priority_interrupts_for_nobody_without_a_place(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 300, 1, 0, 0}, {RT, 0.0005, 100, 1, 0, 0}};
    rules_run("vllm-priority", "interrupt=true,max_num_seqs=1", extra, q, 2);
    return rules_starts(1, 11) && rules_finishes(0, 11);
}

/* ---- sarathi ---- */

/* BE0 gets a token in every iteration, as in v1_cuts_prompts_at_the_budget. */
static bool sarathi_stalls_no_decode(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 50, 3, 0, 0}, {BE, 0.001, 100, 1, 0, 0}};
    rules_run("sarathi", "max_num_batched_tokens=64", extra, q, 2);
    return rules_tokens_at(0, 3, (double[]){3.5, 7.42, 10.56}) && rules_finishes(1, 10.56);
}

/* Iterations have 64 rows: BE0 64 (2.92), BE0 36 and BE1 28 (3.92), BE1 64 (2.92). BE2 starts with
 * BE1's last eight, at 9.76. */
static bool sarathi_finishes_prompts_in_order(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0, 100, 1, 0, 0}, {BE, 0, 10, 1, 0, 0}};
    rules_run("sarathi", "max_num_batched_tokens=64", extra, q, 3);
    return rules_starts(1, 2.92) && rules_starts(2, 9.76);
}

/* The budget is 128, 96, 64 and 32 as a prompt passes 0, 64, 128 and 192 tokens. So 300 rows run as
 * 128, 64, 32, 32, 32 and 12: 4.84 + 2.92 + 3 * 1.96 + 2.36 = 16. */
static bool sarathi_shrinks_the_chunk(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 300, 1, 0, 0}};
    rules_run("sarathi",
              "dynamic_chunk=true,high_chunk=128,low_chunk=32,chunk_stages=4,chunk_span=256", extra,
              q, 1);
    return rules_finishes(0, 16);
}

/* From 128 to 32 in six stages of 100 tokens the budget is 128, 108, 89, 70, 51 and 32. The nearest
 * multiples of 32 are 128, 96, 96, 64, 64 and 32. So 500 tokens take six passes (128, 96, 96, 64,
 * 64, 52): 0.03 x 500 + 6 + 1 = 22.
 *
 * In three stages the middle one is 80, as near to 64 as to 96. It is 64, the even multiple, and
 * 224 tokens take three passes, 0.03 x 224 + 3 + 1 = 10.72.
 *
 * With a low chunk below 32 the budgets are its multiples. So 64 tokens take passes of 40, 20 and
 * 4, 0.03 x 64 + 3 + 1 = 5.92. */
static bool sarathi_takes_the_nearest_multiple(const char *extra)
{
    rules_machine(1);
    struct scenario_request six[] = {{BE, 0, 500, 1, 0, 0}};
    rules_run("sarathi",
              "dynamic_chunk=true,high_chunk=128,low_chunk=32,chunk_stages=6,chunk_span=600", extra,
              six, 1);
    bool nearest = rules_finishes(0, 22);
    scenario_fini(&sc);
    rules_machine(1);
    struct scenario_request three[] = {{BE, 0, 224, 1, 0, 0}};
    rules_run("sarathi",
              "dynamic_chunk=true,high_chunk=128,low_chunk=32,chunk_stages=3,chunk_span=300", extra,
              three, 1);
    nearest = nearest && rules_finishes(0, 10.72);
    scenario_fini(&sc);
    rules_machine(1);
    struct scenario_request low[] = {{BE, 0, 64, 1, 0, 0}};
    rules_run("sarathi",
              "dynamic_chunk=true,high_chunk=40,low_chunk=20,chunk_stages=2,chunk_span=2", extra,
              low, 1);
    return nearest && rules_finishes(0, 5.92);
}

/* The watermark is two of 200 blocks. BE0 has seven from 0 on, so 193 are free. BE1 wants 192, and
 * waits until BE0 ends with its third token, at 11. */
static bool sarathi_leaves_a_watermark(const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 3200;
    struct scenario_request q[] = {{BE, 0, 100, 3, 0, 0}, {BE, 0.001, 3072, 1, 0, 0}};
    rules_run("sarathi", "", extra, q, 2);
    return rules_starts(1, 11);
}

/* ---- sarathi-hetero: a chunk takes QKV 2.56 and FFN 5.12 on the NPU (256 rows, padded), and
 * attention and head 1 each on the iGPU: 9.68 ms alone ---- */

/* BE0 prefills 0-9.68. Then its decode (2 + 1) runs on the iGPU, 9.68-12.68, while BE1's QKV runs
 * on the NPU to 12.24. BE1 has attention 12.68-13.68, FFN to 18.8 and head to 19.8. Only then the
 * next iteration begins, so BE0's third token is at 22.8. */
static bool hetero_decodes_beside_chunks(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 100, 3, 0, 0}, {BE, 0.001, 100, 1, 0, 0}};
    rules_run("sarathi-hetero", "", extra, q, 2);
    return rules_tokens_at(0, 3, (double[]){9.68, 12.68, 22.8}) && rules_finishes(1, 19.8);
}

/* Both passes share 64 tokens. BE0's decode leaves 63 rows to BE1's chunk, and then 37 are left. */
static bool hetero_shares_one_budget(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 50, 4, 0, 0}, {BE, 0.001, 100, 1, 0, 0}};
    rules_run("sarathi-hetero", "max_num_batched_tokens=64", extra, q, 2);
    const struct scenario_kernel *a = scenario_kernel_find(&sc, 0, 1, NPU, OP_QKV);
    const struct scenario_kernel *b =
        a == NULL ? NULL
                  : scenario_kernel_find(&sc, (uint32_t)(a - sc.kernels) + 1, 1, NPU, OP_QKV);
    return b != NULL && a->rows == 63 && b->rows == 37;
}

/* BE0 has all three blocks, and room in the last one. Still its decode wants a free block, so at
 * 9.68 it gives way to itself. Nobody else is there, so at once it computes 47 rows again. */
static bool hetero_begins_again_who_gave_way_alone(const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 48;
    struct scenario_request q[] = {{BE, 0, 46, 2, 0, 0}};
    rules_run("sarathi-hetero", "", extra, q, 1);
    return rules_tokens_at(0, 2, (double[]){9.68, 19.36}) && sc.records[0].preemptions == 1;
}

/* Request 0 takes 120 tokens, and 1 as many more. When both have some 256 there is no KV left, and
 * 1 starts over. It is the first to wait, and finds no room until 0 has ended. So 2 waits behind
 * it. */
static bool orca_lets_nobody_pass_who_starts_over(const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 512;
    struct scenario_request q[] = {
        {BE, 0, 160, 120, 0, 0}, {BE, 0.001, 160, 200, 0, 0}, {BE, 0.002, 16, 1, 0, 0}};
    rules_run("orca", "reserve=false,max_num_seqs=2", extra, q, 3);
    return sc.result.counters[COUNTER_KV_RECOMPUTE_EVICTIONS] == 1 &&
           sc.records[2].start_ns == sc.records[0].finish_ns;
}

/* A prompt of 64 tokens is as large as the budget, of which 32 are taken. So it waits. */
static bool openvino_prompt_of_the_budget_waits(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 32, 1, 0, 0}, {BE, 0, 64, 1, 0, 0}};
    rules_run("openvino-cb", "variant=vllm,max_num_batched_tokens=64", extra, q, 2);
    return rules_starts(1, 2.96);
}

static const struct rule_row all[] = {
    RULE(v0_recomputes_the_last_arrived, "requeue=back max_num_seqs=32", "requeue=back"),
    RULE(v1_recomputes_the_last_running, "requeue=back max_num_seqs=32", "requeue=back"),
    RULE(sarathi_recomputes_the_last, "requeue=back max_num_seqs=32", "requeue=back"),
    RULE(v0_runs_prompts_before_decodes, "mixed_steps=true policy=vllm-v1",
         "mixed_steps=true policy=vllm-v1"),
    RULE(v0_stops_at_the_first_that_does_not_fit, "policy=vllm-v1 max_num_batched_tokens=1024",
         "policy=vllm-v1 max_num_batched_tokens=1024"),
    RULE(v0_has_a_sequence_limit, "max_num_seqs=2", "max_num_seqs=2"),
    RULE(v0_leaves_whole_blocks, "watermark_frac=0.15", "watermark_frac=0.15"),
    RULE(v0_leaves_a_watermark, "watermark_frac=0.3 watermark_frac=0.35", "watermark_frac=0.3"),
    RULE(v1_mixes_decodes_and_prompts, "policy=vllm-v0 policy=sarathi", "policy=vllm-v0"),
    RULE(v1_cuts_prompts_at_the_budget,
         "chunked_prefill=false max_num_batched_tokens=512 policy=vllm-v0",
         "chunked_prefill=false max_num_batched_tokens=512 policy=vllm-v0"),
    RULE(v1_limits_the_rows_of_one_prompt, "long_prefill_token_threshold=0",
         "long_prefill_token_threshold=0"),
    RULE(v1_admits_nothing_after_preempting, "admit_after_preemption=true",
         "admit_after_preemption=true"),
    RULE(priority_v0_admits_by_class, "by_priority=false force_preempt=false", "by_priority=false"),
    RULE(priority_v1_admits_by_class, "by_priority=false", "by_priority=false"),
    RULE(priority_obeys_the_trace, "by_priority=false mode=v0", "by_priority=false"),
    RULE(priority_stays_within_its_class, "by_priority=false mode=v0", "by_priority=false"),
    RULE(priority_v0_recomputes_the_least_urgent, "by_priority=false", "by_priority=false"),
    RULE(priority_v1_recomputes_the_least_urgent, "by_priority=false", "by_priority=false"),
    RULE(priority_v0_takes_a_place_by_force, "mode=v1 force_preempt=false by_priority=false",
         "mode=v1 force_preempt=false by_priority=false"),
    RULE(priority_v0_interrupts_at_a_kernel, "interrupt=false by_priority=false",
         "interrupt=false by_priority=false"),
    RULE(priority_v1_interrupts_at_a_kernel, "interrupt=false by_priority=false",
         "interrupt=false by_priority=false"),
    RULE(priority_interrupts_no_class_of_its_own, "interrupt=false", ""),
    RULE(priority_interrupts_for_nobody_without_a_place, "max_num_seqs=2", "max_num_seqs=2"),
    RULE(priority_v1_takes_no_place_by_force, "mode=v0", "mode=v0"),
    RULE(priority_v0_takes_memory_by_force, "mode=v1 force_preempt=false",
         "mode=v1 force_preempt=false"),
    RULE(orca_lets_nobody_pass_who_starts_over, "max_num_seqs=3", "max_num_seqs=3"),
    RULE(openvino_prompt_of_the_budget_waits, "variant=sf256 max_num_batched_tokens=96",
         "variant=sf256 max_num_batched_tokens=96"),
    RULE(sarathi_stalls_no_decode, "stall_free=false max_num_batched_tokens=512",
         "stall_free=false max_num_batched_tokens=512"),
    RULE(sarathi_finishes_prompts_in_order, "max_num_batched_tokens=512 max_num_batched_tokens=128",
         "max_num_batched_tokens=512 max_num_batched_tokens=128"),
    RULE(sarathi_admits_when_the_whole_prompt_fits, "policy=openvino-cb", "policy=openvino-cb"),
    RULE(sarathi_wants_a_free_block_for_a_decode, "policy=vllm-v1", "policy=vllm-v1"),
    RULE(v0_wants_a_free_block_for_a_decode, "policy=vllm-v1", "policy=vllm-v1"),
    RULE(v1_wants_what_a_decode_needs, "policy=sarathi", "policy=sarathi"),
    RULE(sarathi_admits_into_the_last_block, "watermark_frac=0.5", "watermark_frac=0.5"),
    RULE(sarathi_leaves_a_watermark, "watermark_frac=0", "watermark_frac=0"),
    RULE(sarathi_takes_the_nearest_multiple, "dynamic_chunk=false", "dynamic_chunk=false"),
    RULE(sarathi_shrinks_the_chunk, "dynamic_chunk=false chunk_stages=2",
         "dynamic_chunk=false chunk_stages=2"),
    RULE(hetero_decodes_beside_chunks, "parallel=false policy=pd-static policy=sarathi",
         "parallel=false policy=pd-static policy=sarathi"),
    RULE(hetero_shares_one_budget, "max_num_batched_tokens=512", "max_num_batched_tokens=512"),
    RULE(hetero_admits_when_the_whole_prompt_fits, "policy=openvino-cb", "policy=openvino-cb"),
    RULE(hetero_begins_again_who_gave_way_alone, "policy=vllm-v1", "policy=vllm-v1"),
};

RULES_MAIN("iteration level", all)
