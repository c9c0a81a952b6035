/* agent-xpu-v2 where clauses meet (clauses.md B.2 to B.8), to the nanosecond, on the toy
 * machine.
 *
 * One layer, unless stated: an NPU chunk of 256 rows takes 4 ms for QKV and 8 ms for FFN, and the
 * iGPU takes 4/256 and 8/256 ms a row. Attention takes 10 ms on the iGPU and 6 on the NPU, the head
 * 1 on either, and a fused decode layer 1. In the decode loop several sequences cost their rows.
 * Compiling takes so long that no kernel is ready, unless stated. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

extern const struct policy_ops policy_agent_xpu_v2_ops;

static struct scenario sc;

static void setup(void)
{
    scenario_init(&sc);
    scenario_agent_xpu(&sc, 1);
    scenario_cost(&sc, NPU, OP_MHA, 6, 0, 5);
    scenario_cost(&sc, NPU, OP_HEAD, 1, 0, 5);
}

static void teardown(void)
{
    scenario_fini(&sc);
}

static void run(const char *params, const struct scenario_request *q, uint32_t n)
{
    scenario_policy(&sc, &policy_agent_xpu_v2_ops, params);
    scenario_check(&sc, q, n);
}

/* Returns the first kernel of a request's op on a device in a layer, and fails where there is
 * none. */
static const struct scenario_kernel *kernel(uint32_t request, int device, enum op_kind op,
                                            uint32_t layer)
{
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        if (k->request == request && k->device == device && k->op == op && k->layer == layer) {
            return k;
        }
    }
    ck_abort_msg("request %u has no such kernel", request);
    return NULL;
}

static void runs(uint32_t request, int device, enum op_kind op, uint32_t layer, double begin_ms,
                 double end_ms)
{
    const struct scenario_kernel *k = kernel(request, device, op, layer);
    ck_assert_msg(k->begin_ns == MS(begin_ms) && k->end_ns == MS(end_ms),
                  "request %u op %d layer %u runs %.6f..%.6f ms, not %.3f..%.3f", request, (int)op,
                  layer, units_ms_from_ns(k->begin_ns), units_ms_from_ns(k->end_ns), begin_ms,
                  end_ms);
}

static void first_token(uint32_t request, double ms)
{
    ck_assert_msg(sc.records[request].first_token_ns == MS(ms),
                  "request %u: first token at %.6f ms, not %.3f", request,
                  units_ms_from_ns(sc.records[request].first_token_ns), ms);
}

/* ---- B.2, B.5: the rows of each device ---- */

/* BE0 has 300 rows, a chunk and 44. Its QKV runs 0-4 on the NPU, and the margin takes 44 * 4/256 =
 * 0.6875 ms on the iGPU. MHA runs 4-14, FFN 14-22 and 14-15.375, and the head 22-23. */
START_TEST(a_proactive_margin_runs_on_the_igpu)
{
    static const struct scenario_request q[] = {{BE, 0, 300, 1, 0, 0}};
    run("", q, 1);
    runs(0, NPU, OP_QKV, 0, 0, 4);
    runs(0, IGPU, OP_QKV, 0, 0, 0.6875);
    runs(0, IGPU, OP_MHA, 0, 4, 14);
    runs(0, NPU, OP_FFN, 0, 14, 22);
    runs(0, IGPU, OP_FFN, 0, 14, 15.375);
    first_token(0, 23);
}
END_TEST

static bool on_igpu(uint32_t request, enum op_kind op)
{
    bool any = false;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        any = any || (k->request == request && k->device == IGPU && k->op == op);
    }
    return any;
}

/* The iGPU takes 0.1 and 0.2 ms a row here. With the margin there, a prompt of 456 (a chunk and 200
 * rows) has its QKV until 20, attention until 30 and FFN until 70: token at 71. Two chunks on the
 * NPU take 8 ms: QKV 0-8, attention 8-18, FFN 18-34, token at 35. That holds for both classes, as
 * the split of a reactive one takes 8 ms too. On the usual iGPU the margin of 300 stays where it
 * was. */
START_TEST(a_margin_goes_where_the_op_ends_sooner)
{
    static const struct scenario_request one[2][1] = {{{BE, 0, 456, 1, 0, 0}},
                                                      {{RT, 0, 456, 1, 0, 0}}};
    static const struct scenario_request small[] = {{BE, 0, 300, 1, 0, 0}};
    for (int i = 0; i < 4; i++) {
        scenario_cost(&sc, IGPU, OP_QKV, 0, 0.1, 5);
        scenario_cost(&sc, IGPU, OP_FFN, 0, 0.2, 5);
        run(i < 2 ? "margin=choose" : "", one[i % 2], 1);
        first_token(0, i < 2 ? 35 : 71);
        ck_assert_int_eq(on_igpu(0, OP_QKV), i >= 2);
        teardown();
        setup();
    }
    run("margin=choose", small, 1);
    first_token(0, 23);
}
END_TEST

/* RT0 decodes from 11.75 on. BE1 (300) comes at 20, and has its margin on the NPU: two chunks,
 * 20-28. */
START_TEST(next_to_reactive_decodes_a_margin_leaves_the_igpu)
{
    static const struct scenario_request q[] = {{RT, 0, 16, 60, 0, 0}, {BE, 0.020, 300, 1, 0, 0}};
    run("margin=choose", q, 2);
    runs(1, NPU, OP_QKV, 0, 20, 24);
    ck_assert(!on_igpu(1, OP_QKV) && !on_igpu(1, OP_FFN) && on_igpu(1, OP_MHA));
    teardown();
    setup();
    run("", q, 2);
    ck_assert(on_igpu(1, OP_QKV) && on_igpu(1, OP_FFN));
}
END_TEST

/* BE0 (256) prefills to 23 and decodes from then on, in kernels of 1 ms. RT1 (1024) arrives at 24.
 * Busy decode raises m* = 2 of 4 chunks to ceil(0.75 * 4) = 3: 24-36 on the NPU. The iGPU's 256
 * rows take 4 ms and end no earlier, so they run 32-36. After attention (36-46) FFN runs in the
 * same way: 46-70 on the NPU, and 8 ms on the iGPU, 62-70. The head runs 70-71. With beta=0.5,
 * ceil(0.5 * 4) = 2 = m*. Both take 8 ms, so there is nothing to defer. With elastic=static m* = 2
 * at once. Both have QKV 24-32, attention 32-42, FFN 42-58 and the head 58-59. */
START_TEST(a_busy_decode_keeps_most_of_the_igpu)
{
    static const struct scenario_request q[] = {{BE, 0, 256, 60, 0, 0}, {RT, 0.024, 1024, 1, 0, 0}};
    run("", q, 2);
    runs(1, NPU, OP_QKV, 0, 24, 28);
    runs(1, IGPU, OP_QKV, 0, 32, 36);
    runs(1, IGPU, OP_MHA, 0, 36, 46);
    runs(1, IGPU, OP_FFN, 0, 62, 70);
    first_token(1, 71);
    static const char *const equal[] = {"beta=0.5", "elastic=static"};
    for (int i = 0; i < 2; i++) {
        teardown();
        setup();
        run(equal[i], q, 2);
        runs(1, IGPU, OP_QKV, 0, 24, 32);
        runs(1, IGPU, OP_MHA, 0, 32, 42);
        first_token(1, 59);
    }
    teardown();
    setup();
    run("elastic=off", q, 2); /* 16 ms, attention 10, 32 ms, head */
    first_token(1, 24 + 16 + 10 + 32 + 1);
}
END_TEST

/* RT0 (300) has QKV 0-4 with its margin on the iGPU, and MHA 4-14. BE1 (256) arrives at 1 and is
 * aged at 6. It takes the iGPU when attention has ended: QKV 14-18, MHA 18-28, FFN 28-36. RT0's FFN
 * keeps to the NPU, with the margin padded into a second chunk: 14-22-30. Its head waits for BE1's
 * kernel: 36-37. Then BE1's head runs, 37-38. Without ageing RT0 has its token at 23, and BE1 is
 * next, at 46. */
START_TEST(beside_an_aged_prefill_the_margin_is_padded_into_an_npu_chunk)
{
    static const struct scenario_request q[] = {{RT, 0, 300, 1, 0, 0}, {BE, 0.001, 256, 1, 0, 0}};
    run("t_age_s=0.005", q, 2);
    runs(0, IGPU, OP_QKV, 0, 0, 0.6875);
    runs(1, IGPU, OP_QKV, 0, 14, 18);
    runs(1, IGPU, OP_MHA, 0, 18, 28);
    runs(1, IGPU, OP_FFN, 0, 28, 36);
    ck_assert_ptr_null(scenario_kernel_find(&sc, 0, 0, IGPU, OP_FFN));
    first_token(0, 37);
    first_token(1, 38);
    teardown();
    setup();
    run("t_age_s=0.005,ageing=false", q, 2);
    first_token(0, 23);
    first_token(1, 46);
}
END_TEST

/* ---- B.5: the iGPU share ends no earlier than the NPU's, also when that one starts late ---- */

/* BE0 (256) prefills to 23, and decodes from then on, 2 ms a token. BE1 (512) prefills next: QKV
 * 23-27 and 27-31. RT2 (1024) arrives at 24. Decode is busy, so m* = 2 of 4 chunks rises to 3.
 * BE1 has the NPU until 27, so RT2's three chunks run 27-39. The iGPU's 256 rows take 4 ms and
 * end no earlier than 39. So they start at 35, or when the running decode kernel ends, at most 1
 * ms later. */
START_TEST(a_deferred_igpu_share_counts_from_the_real_start_of_the_npu_share)
{
    static const struct scenario_request q[] = {
        {BE, 0, 256, 40, 0, 0}, {BE, 0.0001, 512, 1, 0, 0}, {RT, 0.024, 1024, 1, 0, 0}};
    run("", q, 3);
    runs(2, NPU, OP_QKV, 0, 27, 31);
    const struct scenario_kernel *k = kernel(2, IGPU, OP_QKV, 0);
    ck_assert_uint_eq(k->rows, 256);
    ck_assert_int_ge(k->begin_ns, MS(35));
    ck_assert_int_le(k->begin_ns, MS(36));
}
END_TEST

/* With beta=0.5 the m* of the test above is 2 chunks, 8 ms, as long as the iGPU's 512 rows. A share
 * that is as long waits for its counterpart too. Begun at 24 it would end at 32, before the NPU's
 * 27-35. It starts at 27, or when the running decode kernel ends. */
START_TEST(an_igpu_share_as_long_as_its_counterpart_does_not_end_before_it)
{
    static const struct scenario_request q[] = {
        {BE, 0, 256, 40, 0, 0}, {BE, 0.0001, 512, 1, 0, 0}, {RT, 0.024, 1024, 1, 0, 0}};
    run("beta=0.5", q, 3);
    runs(2, NPU, OP_QKV, 0, 27, 31);
    const struct scenario_kernel *k = kernel(2, IGPU, OP_QKV, 0);
    ck_assert_uint_eq(k->rows, 512);
    ck_assert_int_ge(k->begin_ns, MS(27));
    ck_assert_int_le(k->begin_ns, MS(28));
    ck_assert_int_ge(k->end_ns, MS(35));
}
END_TEST

/* ---- B.6: the memory rule also holds for decode that starts later ---- */

/* Every kernel is memory-bound (ridge 3 > 2). BE0 (256) has QKV 0-4, MHA 4-14, FFN 14-22 and head
 * 22-23. RT1 (512, elastic off, so all on the NPU) arrives at 22.5. Its QKV runs 22.5-26.5-30.5 on
 * the NPU, next to BE0's head. BE0 has its token at 23, but its decode is of the other class than
 * the running NPU kernel, so it waits. At 30.5 attention (30.5-40.5) is first on the iGPU. Then FFN
 * 40.5-48.5-56.5 runs on the NPU, again memory-bound, and then the head, 56.5-57.5. BE0's tokens
 * come at 57.5 + 1 + 1 = 59.5 and at 61.5. */
START_TEST(decode_of_the_other_class_does_not_start_beside_a_memory_bound_npu_kernel)
{
    static const struct scenario_request q[] = {{BE, 0, 256, 3, 0, 0}, {RT, 0.0225, 512, 1, 0, 0}};
    sc.ridge_flop_per_byte = 3.0;
    run("elastic=off", q, 2);
    runs(1, NPU, OP_QKV, 0, 22.5, 26.5);
    runs(1, IGPU, OP_MHA, 0, 30.5, 40.5);
    runs(1, NPU, OP_FFN, 0, 40.5, 48.5);
    first_token(0, 23);
    first_token(1, 57.5);
    ck_assert_int_eq(sc.records[0].token_ns[1], MS(59.5));
    ck_assert_int_eq(sc.records[0].token_ns[2], MS(61.5));
}
END_TEST

/* ---- B.6 and B.8: an aged prefill keeps the kernel compiled for it ---- */

/* There is room for one compiled kernel, in two layers. RT0 (1024, m* = 2 of 4) has QKV 0-8, MHA
 * 8-18, FFN 18-34, QKV 34-42 and MHA 42-52. BE1 (512) arrives at 1, and its attention kernel is
 * compiled at 1.5. At 50 it is aged. It starts on the iGPU when that is free, at 52: QKV in two
 * chunks until 60, MHA 60-70, FFN 70-86. Meanwhile RT0's second FFN has the NPU alone: 52-84. BE2
 * (300) arrives at 53 and wants a kernel of its own, but the one there is BE1's. RT0's head runs
 * 86-87. Then BE1 is the serial prefill and continues with its second layer. That was planned for
 * the iGPU (86) before RT0 ended: QKV 87-95. Then it runs on the NPU: MHA 95-101, FFN 101-117, head
 * 117-118. */
START_TEST(an_aged_prefill_keeps_its_compiled_kernel)
{
    static const struct scenario_request q[] = {
        {RT, 0, 1024, 1, 0, 0}, {BE, 0.001, 512, 1, 0, 0}, {BE, 0.053, 300, 1, 0, 0}};
    sc.llm.n_layers = 2;
    sc.machine.compile_fixed_ns = MS(0.5);
    run("t_age_s=0.049,cache_entries=1", q, 3);
    runs(1, IGPU, OP_QKV, 0, 52, 56);
    runs(0, NPU, OP_FFN, 1, 52, 60);
    runs(1, IGPU, OP_MHA, 0, 60, 70);
    first_token(0, 87);
    runs(1, IGPU, OP_QKV, 1, 87, 91);
    runs(1, NPU, OP_MHA, 1, 95, 101);
    first_token(1, 118);
    ck_assert_uint_eq(sc.result.counters[COUNTER_LAUNCH_MISSING_RESIDENT], 0);
}
END_TEST

/* RT0 (2048) has the NPU for its QKV until 32, and the iGPU idles. BE1, there from 1 on, is aged at
 * 6. It must get the iGPU then, at an instant at which nothing else happens. */
START_TEST(who_waits_begins_when_it_comes_of_age)
{
    static const struct scenario_request q[] = {{RT, 0, 2048, 1, 0, 0}, {BE, 0.001, 256, 1, 0, 0}};
    run("elastic=off,warmup=false,t_age_s=0.005", q, 2);
    runs(1, IGPU, OP_QKV, 0, 6, 10);
}
END_TEST

/* ---- B.10: memory is short ---- */

/* There are 80 blocks of 16 tokens, 1280. BE0 (512 tokens) prefills, and RT1 (1024 tokens, 64
 * blocks) preempts it at 4. BE0's 32 blocks leave 48, so its prefill is given up. Its user
 * cancelled it at 0.5 ms, while it ran. So it leaves with its pass, and no request waits for it. */
START_TEST(a_cancelled_prefill_that_gives_up_its_memory_is_gone)
{
    static const struct scenario_request q[] = {
        {BE, 0, 512, 4, 0, 0}, {RT, 0.001, 1024, 1, 0, 0}, {BE, 0.002, 256, 1, 0, 0}};
    sc.setup.kv_capacity_tokens = 1280;
    sc.trace.extras = xcalloc(3, sizeof *sc.trace.extras);
    for (uint32_t i = 0; i < 3; i++) {
        sc.trace.extras[i] = (struct trace_extra){.ttft_slo_ns = TIME_NEVER_NS,
                                                  .tbt_slo_ns = TIME_NEVER_NS,
                                                  .deadline_ns = TIME_NEVER_NS,
                                                  .cancel_ns = i == 0 ? MS(0.5) : TIME_NEVER_NS,
                                                  .until_ns = TIME_NEVER_NS};
    }
    run("", q, 3);
    ck_assert_int_eq((int)sc.records[0].state, (int)REQUEST_STATE_SHED);
    ck_assert_uint_eq(sc.result.audit.finished, 2);
}
END_TEST

/* RT1 (1280, five chunks) comes while BE0 decodes, with beta = 0.35. So m* = 3 (12 ms against 8)
 * rises to the next whole chunk above 0.65 * 5 = 3.25: four, 24-40 on the NPU. The iGPU's one
 * chunk, 4 ms, ends no earlier: 36-40. */
START_TEST(a_share_between_two_chunks_goes_to_the_npu)
{
    static const struct scenario_request q[] = {{BE, 0, 256, 60, 0, 0}, {RT, 0.024, 1280, 1, 0, 0}};
    run("beta=0.35", q, 2);
    runs(1, NPU, OP_QKV, 0, 24, 28);
    runs(1, IGPU, OP_QKV, 0, 36, 40);
    ck_assert_uint_eq(kernel(1, IGPU, OP_QKV, 0)->rows, 256);
}
END_TEST

/* ---- B.1 and B.8: suspended prompts and ageing ---- */

/* RT2 (256) stops BE0 (512) after its first chunk, at 4. It has QKV 4-8, attention 8-18, FFN 18-26
 * and head 26-27. BE0 and BE1 came together, and both are aged at 27. There is a second buffer, but
 * BE1 is not older. So BE0 continues: QKV 27-31, attention 31-41, FFN 41-57, head 57-58. */
START_TEST(an_aged_prompt_does_not_pass_an_older_suspended_one)
{
    static const struct scenario_request q[] = {
        {BE, 0, 512, 1, 0, 0}, {BE, 0, 256, 1, 0, 0}, {RT, 0.001, 256, 1, 0, 0}};
    run("suspended=2,aged_max=0,t_age_s=0.027", q, 3);
    first_token(2, 27);
    first_token(0, 58);
    runs(1, NPU, OP_QKV, 0, 58, 62);
}
END_TEST

/* There are 88 blocks of 16 tokens. BE0 (256) has its token at 23 and decodes. BE1 (512, 32 blocks)
 * begins. RT2 (800, 50 blocks) comes at 24 and finds fewer than it needs. BE1's kernel still runs,
 * so its blocks are not asked for. At 25 BE0, between two tokens, gives up its blocks, which leaves
 * 56. BE1 is stopped at 27. RT2 has QKV in two chunks 27-35, attention 35-45, FFN 45-61 and head
 * 61-62. BE0 is aged at 60 and is older than BE1, but BE1 has the one buffer. So BE1 continues,
 * 62-66. */
START_TEST(an_aged_prompt_needs_a_buffer)
{
    static const struct scenario_request q[] = {
        {BE, 0, 256, 9, 0, 0}, {BE, 0.020, 512, 1, 0, 0}, {RT, 0.024, 800, 1, 0, 0}};
    sc.setup.kv_capacity_tokens = 88 * 16;
    run("t_age_s=0.06", q, 3);
    first_token(2, 62);
    ck_assert_uint_eq(sc.result.counters[COUNTER_KV_RECOMPUTE_EVICTIONS], 1);
    ck_assert_uint_eq(sc.result.counters[COUNTER_LAUNCH_BAD_SPAN], 0); /* a refused cancel is one */
    uint32_t chunk = 0;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        if (k->request == 1 && k->device == NPU && k->op == OP_QKV) {
            ck_assert_int_eq(k->begin_ns, MS(chunk == 0 ? 23 : 62));
            chunk++;
        }
    }
    ck_assert_uint_eq(chunk, 2);
}
END_TEST

/* One of a request's kernels of an op must begin at that instant. */
static void again(uint32_t request, int device, enum op_kind op, double begin_ms)
{
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        if (k->request == request && k->device == device && k->op == op &&
            k->begin_ns == MS(begin_ms)) {
            return;
        }
    }
    ck_abort_msg("request %u: no op %d begins at %.3f ms", request, (int)op, begin_ms);
}

/* There are 90 blocks of 16 tokens. Attention takes 1 ms here, so 256 rows prefill in 14. BE0 and
 * BE1 have their tokens at 14 and 28, and decode together, two sequences in 2.1 ms. BE2 (512, 32
 * blocks) begins at 28. RT3 (800, 50 blocks) comes at 29 and finds too few. At 30.1 both decodes
 * give up their memory, which leaves 58. BE2 is stopped at 32. BE0 and BE1 are aged when RT3 ends,
 * at 58, and are older than BE2. BE0 begins again, and RT4 stops it at 62, until 76. BE1 begins
 * again, and RT5 stops it at 80, until 94. Then three are suspended, BE2 first, BE0 next and BE1
 * last. They continue in this order, and each ends. */
START_TEST(three_suspended_prompts_go_on_in_turn)
{
    static const struct scenario_request q[] = {
        {BE, 0, 256, 60, 0, 0},    {BE, 0, 256, 60, 0, 0},    {BE, 0.001, 512, 1, 0, 0},
        {RT, 0.029, 800, 1, 0, 0}, {RT, 0.059, 256, 1, 0, 0}, {RT, 0.077, 256, 1, 0, 0}};
    scenario_cost(&sc, IGPU, OP_MHA, 1, 0, 5);
    sc.setup.kv_capacity_tokens = 90 * 16;
    run("suspended=3,aged_max=2,t_age_s=0.05", q, 6);
    ck_assert_uint_eq(sc.result.counters[COUNTER_KV_RECOMPUTE_EVICTIONS], 2);
    first_token(4, 76);
    first_token(5, 94);
    first_token(2, 116);         /* second chunk 4, attention 1, FFN 16, head 1 */
    again(0, IGPU, OP_MHA, 116); /* FFN to 125, head to 126 */
    again(1, IGPU, OP_MHA, 126);
}
END_TEST

/* ---- B.6: compiled kernels ---- */

/* A reactive prompt comes each second, and 0.1 ms later a proactive one. That waits, and has a
 * kernel compiled for its length in 0.5 ms if there is none. */
static void one_each_second(const char *params, const uint32_t *lengths, uint32_t n)
{
    struct scenario_request q[16] = {{BE, 0, 1, 1, 0, 0}};
    for (uint32_t i = 0; i < n; i++) {
        q[2 * i] = (struct scenario_request){RT, i, 256, 1, 0, 0};
        q[2 * i + 1] = (struct scenario_request){BE, i + 0.0001, lengths[i], 1, 0, 0};
    }
    sc.machine.compile_fixed_ns = MS(0.5);
    run(params, q, 2 * n);
    for (uint32_t i = 0; i < n; i++) { /* each has its attention there */
        (void)kernel(2 * i + 1, NPU, OP_MHA, 0);
    }
}

/* Two kernels are kept. That of 300 is used again in second 2. So in second 3 that of 400 is
 * evicted for 500, and that of 300 is still there in second 4. */
START_TEST(the_kernel_unused_for_longest_gives_way)
{
    one_each_second("cache_entries=2", (uint32_t[]){300, 400, 300, 500, 300}, 5);
    ck_assert_uint_eq(sc.result.counters[COUNTER_COMPILES], 3);
}
END_TEST

/* After that, 400 is compiled again in second 5, for which 500 is evicted, and 500 in second 7.
 * With room for three no kernel is evicted. */
START_TEST(a_kernel_that_gave_way_is_compiled_again)
{
    static const uint32_t lengths[] = {300, 400, 300, 500, 300, 400, 300, 500};
    one_each_second("cache_entries=2", lengths, 8);
    ck_assert_uint_eq(sc.result.counters[COUNTER_COMPILES], 5);
    teardown();
    setup();
    one_each_second("cache_entries=3", lengths, 8);
    ck_assert_uint_eq(sc.result.counters[COUNTER_COMPILES], 3);
}
END_TEST

/* Kernels expire after 1.5 s without use. That of 300 is used in seconds 0, 1 and 2, and is there
 * in second 3. No prompt uses it in second 4, so it is gone by second 5. */
START_TEST(a_kernel_that_is_used_does_not_expire)
{
    one_each_second("cache_ttl_s=1.5", (uint32_t[]){300, 300, 300, 300, 400, 300}, 6);
    ck_assert_uint_eq(sc.result.counters[COUNTER_COMPILES], 3);
}
END_TEST

/* RT0 (2048, m* = 4 of 8) runs for 16 + 10 + 32 + 1 = 59 ms. BE1's kernel is compiled at 0.6 and
 * would expire at 10.6, and BE2's at 11.1. But both prompts wait for them, so they are kept. With
 * room for one kernel BE2 has none, since BE1's is not evicted for it. */
START_TEST(a_kernel_is_kept_for_a_prompt_that_waits)
{
    static const struct scenario_request q[] = {
        {RT, 0, 2048, 1, 0, 0}, {BE, 0.0001, 300, 1, 0, 0}, {BE, 0.0001, 400, 1, 0, 0}};
    sc.machine.compile_fixed_ns = MS(0.5);
    run("cache_ttl_s=0.01", q, 3);
    (void)kernel(1, NPU, OP_MHA, 0);
    (void)kernel(2, NPU, OP_MHA, 0);
    ck_assert_uint_eq(sc.result.counters[COUNTER_COMPILES], 2);
    teardown();
    setup();
    sc.machine.compile_fixed_ns = MS(0.5);
    run("cache_entries=1", q, 3);
    (void)kernel(1, NPU, OP_MHA, 0);
}
END_TEST

/* Two kernels are kept. BE1 (400) and BE2 (500) have theirs compiled while RT0 prefills until 59.
 * BE1, the shorter, runs until 90, and RT3 (256) until 113. BE4 (300) came at 85. From 90 on no
 * prompt wants the kernel of 400, so it is evicted for that of 300. That of 500 is unused for
 * longer, but BE2 waits for it. So BE4 runs on the NPU alone: QKV of two chunks 113-121, attention
 * -127. */
START_TEST(a_kernel_that_nobody_wants_gives_way)
{
    static const struct scenario_request q[] = {{RT, 0, 2048, 1, 0, 0},
                                                {BE, 0.0001, 400, 1, 0, 0},
                                                {BE, 0.0001, 500, 1, 0, 0},
                                                {RT, 0.080, 256, 1, 0, 0},
                                                {BE, 0.085, 300, 1, 0, 0}};
    sc.machine.compile_fixed_ns = MS(0.5);
    run("cache_entries=2,shortest=all,preempt=none", q, 5);
    runs(4, NPU, OP_MHA, 0, 121, 127);
    ck_assert_uint_eq(sc.result.counters[COUNTER_COMPILES], 3);
}
END_TEST

/* BE0 (700) runs until 35, and RT2 (1024, m* = 2 of 4: 8 + 10 + 16 + 1) from 35.5 to 70.5. A kernel
 * takes 14 ms, so that of BE3 (1000) is compiled at 49.6. Then the shortest prompt is next. That is
 * the next turn of a session: 212 tokens of its 900 are left, fewer than the 500 of BE4. Its kernel
 * is compiled at 63.6, in time. */
START_TEST(the_kernel_of_the_shortest_prompt_is_compiled_first)
{
    static const struct scenario_request q[] = {{BE, 0, 700, 1, 7, 0},
                                                {BE, 0.001, 900, 1, 7, 700},
                                                {RT, 0.0355, 1024, 1, 0, 0},
                                                {BE, 0.0356, 1000, 1, 0, 0},
                                                {BE, 0.037, 500, 1, 0, 0}};
    sc.machine.compile_fixed_ns = MS(14);
    run("warm_s=1,shortest=all", q, 5);
    runs(1, NPU, OP_MHA, 0, 74.5, 80.5);
}
END_TEST

/* BE1's three layers take longer than its kernel may be unused. But it is in use until the end. */
START_TEST(a_kernel_does_not_expire_in_the_middle_of_its_prompt)
{
    static const struct scenario_request q[] = {{RT, 0, 256, 1, 0, 0}, {BE, 0.0001, 512, 1, 0, 0}};
    sc.llm.n_layers = 3;
    sc.machine.compile_fixed_ns = MS(0.5);
    run("cache_ttl_s=0.002", q, 2);
    for (uint32_t layer = 0; layer < 3; layer++) {
        (void)kernel(1, NPU, OP_MHA, layer);
    }
    ck_assert_uint_eq(sc.result.counters[COUNTER_LAUNCH_MISSING_RESIDENT], 0);
}
END_TEST

static int run_unseen(const struct sim_setup *setup, struct sim_result *result)
{
    struct sim_setup s = *setup;
    s.n_observers = 0;
    s.decision_log = NULL;
    return sim_run(&s, result);
}

/* 600 rows in 20 layers are 2 chunks on the NPU and 88 rows on the iGPU. So QKV takes 8 ms next to
 * 1.375, attention 10, and FFN 16 next to 2.75, each after 0.5 ms of the host. At the end come 0.5
 * and the head's 1. A layer is 5 launches of 3 + 1 + 3 kernels. Events are the arrival, the ends of
 * 101 launches and of the pass, and the request's. An arrival in layer 9 waits for all of it
 * (preempt=none). */
START_TEST(layers_of_a_prompt_are_alike)
{
    static const struct scenario_request q[] = {{BE, 0, 600, 1, 0, 0}, {RT, 0.345, 600, 1, 0, 0}};
    for (uint32_t n = 1; n <= 2; n++) {
        sc.llm.n_layers = 20;
        sc.machine.schedule_ns = MS(0.5);
        sc.run = run_unseen;
        scenario_policy(&sc, &policy_agent_xpu_v2_ops, "preempt=none,elastic=off");
        ck_assert_int_eq(scenario_run(&sc, q, n, false), 0);
        ck_assert(sc.result.audit.clean);
        ck_assert_msg(llabs(sc.result.end_ns - MS(n * (20 * 35.5 + 1.5))) < 1000, "ends at %.6f",
                      units_ms_from_ns(sc.result.end_ns));
        ck_assert_uint_eq(sc.result.kernels, n * (20 * 7 + 1));
        ck_assert_uint_eq(sc.result.decisions, n * (20 * 5 + 1 + 1));
        ck_assert_uint_eq(sc.result.events, n * (1 + 20 * 5 + 1 + 1 + 1));
    }
}
END_TEST

/* B.8: BE1 (257) is aged at once and has the iGPU, and RT0 (1024) has the NPU for its QKV, 0-16.
 * BE1's QKV is a chunk, 0-4, and one row of 4/256 ms, since the iGPU pads no kernel. */
START_TEST(an_aged_prompt_pays_for_its_own_rows)
{
    static const struct scenario_request q[] = {{RT, 0, 1024, 1, 0, 0}, {BE, 0, 257, 1, 0, 0}};
    run("t_age_s=0", q, 2);
    runs(1, IGPU, OP_QKV, 0, 0, 4);
    runs(1, IGPU, OP_MHA, 0, 4.015625, 14.015625);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(a_proactive_margin_runs_on_the_igpu),
    TEST(a_margin_goes_where_the_op_ends_sooner),
    TEST(next_to_reactive_decodes_a_margin_leaves_the_igpu),
    TEST(a_busy_decode_keeps_most_of_the_igpu),
    TEST(beside_an_aged_prefill_the_margin_is_padded_into_an_npu_chunk),
    TEST(a_deferred_igpu_share_counts_from_the_real_start_of_the_npu_share),
    TEST(an_igpu_share_as_long_as_its_counterpart_does_not_end_before_it),
    TEST(decode_of_the_other_class_does_not_start_beside_a_memory_bound_npu_kernel),
    TEST(an_aged_prefill_keeps_its_compiled_kernel),
    TEST(who_waits_begins_when_it_comes_of_age),
    TEST(a_cancelled_prefill_that_gives_up_its_memory_is_gone),
    TEST(a_share_between_two_chunks_goes_to_the_npu),
    TEST(an_aged_prompt_does_not_pass_an_older_suspended_one),
    TEST(an_aged_prompt_needs_a_buffer),
    TEST(three_suspended_prompts_go_on_in_turn),
    TEST(the_kernel_unused_for_longest_gives_way),
    TEST(a_kernel_that_gave_way_is_compiled_again),
    TEST(a_kernel_that_is_used_does_not_expire),
    TEST(a_kernel_is_kept_for_a_prompt_that_waits),
    TEST(a_kernel_that_nobody_wants_gives_way),
    TEST(the_kernel_of_the_shortest_prompt_is_compiled_first),
    TEST(a_kernel_does_not_expire_in_the_middle_of_its_prompt),
    TEST(layers_of_a_prompt_are_alike),
    TEST(an_aged_prompt_pays_for_its_own_rows),
};
SUITE_MAIN("agent-xpu-v2 corners", suite)
