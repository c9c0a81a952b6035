/* The papers' baselines are tested rule by rule (clauses.md C.1, C.3, C.4, E.10, E.11), on the toy
 * machine. There is one layer, unless stated. An NPU chunk of 256 rows takes 4 ms for QKV and 8 for
 * FFN, and iGPU and CPU take 4/256 and 8/256 ms a row. Attention takes 10 ms and the head 1. So 256
 * tokens prefill in 4 + 10 + 8 + 1 = 23 ms on one device. There are no host costs and no
 * contention, and annotations are exact.
 *
 * Each scenario is a function that runs with extra parameters and returns whether its expectation
 * holds. The matrix runs every scenario with every ablation switch of its policy. It must fail
 * exactly where the table says, so each scenario can fail. */
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

static struct scenario sc; /* large: one per process, tests run forked */

static void machine(uint32_t layers, double decode_layer_ms)
{
    scenario_init(&sc);
    sc.llm.n_layers = layers;
    scenario_cost(&sc, -1, OP_QKV, 0, 4.0 / 256, 5);
    scenario_cost(&sc, -1, OP_FFN, 0, 8.0 / 256, 5);
    scenario_cost(&sc, -1, OP_MHA, 10, 0, 5);
    scenario_cost(&sc, -1, OP_HEAD, 1, 0, 5);
    scenario_cost(&sc, -1, OP_LAYER, decode_layer_ms, 0, 5);
    scenario_cost(&sc, NPU, OP_QKV, 4, 0, 5);
    scenario_cost(&sc, NPU, OP_FFN, 8, 0, 5);
}

static void run(const char *policy, const char *own, const char *extra,
                const struct scenario_request *q, uint32_t n)
{
    char params[256];
    (void)snprintf(params, sizeof params, "%s%s%s", own,
                   own[0] != '\0' && extra[0] != '\0' ? "," : "", extra);
    scenario_policy(&sc, policy_find(policy), params);
    scenario_check(&sc, q, n);
}

static bool at(const struct scenario_kernel *k, double begin_ms, double end_ms)
{
    return k != NULL && k->begin_ns == MS(begin_ms) && k->end_ns == MS(end_ms);
}

static const struct scenario_kernel *kernel(uint32_t request, int device, enum op_kind op)
{
    return scenario_kernel_find(&sc, 0, request, device, op);
}

static bool finishes(uint32_t request, double ms)
{
    return sc.records[request].finish_ns == MS(ms);
}

/* Returns the device time of kernels of passes that this request led. */
static int64_t work_ns(uint32_t request)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        sum += k->request == request ? k->end_ns - k->begin_ns : 0;
    }
    return sum;
}

/* Returns the most rows of a QKV kernel on a device, or 0 where there is none. */
static uint32_t most_rows(int device)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        most = k->device == device && k->op == OP_QKV && k->rows > most ? k->rows : most;
    }
    return most;
}

/* ---- npu-serial (C.3) ---- */

/* QKV runs on the NPU 0-4, attention on the iGPU 4-14, FFN on the NPU 14-22 and the head on the
 * iGPU 22-23. Then come two decode tokens of 1 + 1 ms on the iGPU: 25 and 27. */
static bool npu_serial_alternates_npu_and_igpu(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 256, 3, 0, 0}};
    run("npu-serial", "", extra, q, 1);
    return at(kernel(0, NPU, OP_QKV), 0, 4) && at(kernel(0, IGPU, OP_MHA), 4, 14) &&
           at(kernel(0, NPU, OP_FFN), 14, 22) && at(kernel(0, IGPU, OP_HEAD), 22, 23) &&
           finishes(0, 27);
}

/* The second request, reactive or not, starts when the first has ended at 27. */
static bool npu_serial_serves_one_request_to_its_end(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 256, 3, 0, 0}, {RT, 0.001, 256, 1, 0, 0}};
    run("npu-serial", "", extra, q, 2);
    return sc.records[1].start_ns == MS(27) && finishes(1, 50);
}

/* 300 tokens are two padded chunks: 8 + 10 + 16 + 1 = 35 ms. */
static bool npu_serial_pads_the_margin(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 300, 1, 0, 0}};
    run("npu-serial", "", extra, q, 1);
    return finishes(0, 35) && kernel(0, IGPU, OP_QKV) == NULL;
}

/* ---- recompute-preempt (C.4 a) ---- */

/* BE0 runs on the iGPU: QKV 0-4, attention 4-14. RT1 arrives at 5 and has the device from 14 to 37.
 * BE0 starts over, 37-60. Its kernels take the 14 ms that were lost and 23 ms, so exactly the lost
 * work is done twice. */
static bool recompute_kills_at_the_kernel_boundary(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 256, 1, 0, 0}, {RT, 0.005, 256, 1, 0, 0}};
    run("recompute-preempt", "", extra, q, 2);
    return sc.records[1].start_ns == MS(14) && finishes(1, 37) && finishes(0, 60) &&
           work_ns(0) == MS(14 + 23) && work_ns(1) == MS(23);
}

/* BE0 has tokens at 23, 26 and 29 (2 ms a layer, 1 ms head). RT1 arrives at 30, kills the fourth at
 * 31, and runs to 54. BE0 prefills 256 + 3 tokens again: 259 * 12/256 + 11 = 23.140625 ms. That
 * gives token 4 at 77.140625, and token 5 follows 3 ms later. */
static bool recompute_prefills_prompt_and_generated_again(const char *extra)
{
    machine(1, 2);
    struct scenario_request q[] = {{BE, 0, 256, 5, 0, 0}, {RT, 0.030, 256, 1, 0, 0}};
    run("recompute-preempt", "", extra, q, 2);
    return finishes(1, 54) && sc.records[0].token_ns[3] == 77140625 && finishes(0, 80.140625);
}

/* RT1 arrives at 30 while RT0 decodes. Reactive requests do not kill each other. So RT0's five
 * tokens come at 23, 26, .. 35, and RT1 runs 35-58. */
static bool recompute_reactive_waits_for_reactive(const char *extra)
{
    machine(1, 2);
    struct scenario_request q[] = {{RT, 0, 256, 5, 0, 0}, {RT, 0.030, 256, 1, 0, 0}};
    run("recompute-preempt", "", extra, q, 2);
    return finishes(0, 35) && finishes(1, 58);
}

/* Requests are not batched, so BE1 starts when BE0 has ended, at 35. */
static bool recompute_runs_one_request_at_a_time(const char *extra)
{
    machine(1, 2);
    struct scenario_request q[] = {{BE, 0, 256, 5, 0, 0}, {BE, 0, 256, 1, 0, 0}};
    run("recompute-preempt", "", extra, q, 2);
    return sc.records[1].start_ns == MS(35);
}

/* RT1 arrives at 5, starts after the reset of 1 ms, at 6, and ends at 29. BE0 ends at 52. */
START_TEST(recompute_can_kill_the_running_kernel)
{
    machine(1, 1);
    sc.machine.devices[IGPU].can_reset = true;
    sc.machine.devices[IGPU].reset_ns = MS(1);
    struct scenario_request q[] = {{BE, 0, 256, 1, 0, 0}, {RT, 0.005, 256, 1, 0, 0}};
    run("recompute-preempt", "kill=immediate", "", q, 2);
    ck_assert(finishes(1, 29) && finishes(0, 52));
    scenario_fini(&sc);
}
END_TEST

/* ---- time-share (C.4 b) ---- */

/* A turn is one op, and the least served request is first. Request 0 has QKV 0-4, 1 has QKV 4-8.
 * Attention runs 8-18 and 18-28, FFN 28-36 and 36-44, and heads 44-45 and 45-46. Processor sharing
 * would end both at 46, so this is within one kernel. */
static bool time_share_alternates_equal_requests(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 256, 1, 0, 0}, {RT, 0, 256, 1, 0, 0}};
    run("time-share", "efficiency=1,quantum_ms=0", extra, q, 2);
    return finishes(0, 45) && finishes(1, 46);
}

/* At half rate a turn of t is followed by a rest of t while two requests share. 0 has 0-4, 1 has
 * 8-12, 0 has 16-26, 1 has 36-46, 0 has 56-64 and 1 has 72-80. 0's head runs 88-89, with a rest to
 * 90, and 1 alone 90-91. */
static bool time_share_charges_its_efficiency(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 256, 1, 0, 0}, {BE, 0, 256, 1, 0, 0}};
    run("time-share", "quantum_ms=0", extra[0] == '\0' ? "efficiency=0.5" : extra, q, 2);
    return finishes(0, 89) && finishes(1, 91);
}

/* Request 1 arrives at 16, in 0's FFN of 14-22. At half rate the six shared ms cost a rest of six.
 * 1 begins at 0's 16, and 0 has 22 then. 1 has QKV 28-32 and attention 36-46. 0's head runs 56-57,
 * with a rest to 58. 1 alone has FFN 58-66 and head 66-67. */
static bool time_share_charges_nothing_for_time_alone(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 256, 1, 0, 0}, {BE, 0.016, 256, 1, 0, 0}};
    run("time-share", "quantum_ms=0", extra[0] == '\0' ? "efficiency=0.5" : extra, q, 2);
    return finishes(0, 57) && finishes(1, 67);
}

/* Ten layers take 221 ms alone. Request 1 arrives at 110, when request 0 has 111 left. With
 * processor sharing 0 ends at 110 + 2 * 111 = 332, and 1, which has had 111, at 442. A policy that
 * lets 1 catch up ends it first. The tolerance is the largest kernel, 10 ms. */
static bool time_share_follows_processor_sharing(const char *extra)
{
    machine(10, 1);
    struct scenario_request q[] = {{BE, 0, 256, 1, 0, 0}, {BE, 0.110, 256, 1, 0, 0}};
    run("time-share", "efficiency=1,quantum_ms=0", extra, q, 2);
    return llabs(sc.records[0].finish_ns - MS(332)) <= MS(10) &&
           llabs(sc.records[1].finish_ns - MS(442)) <= MS(10);
}

/* A time-shared device shares by itself: both end at 46, or with its efficiency of 0.5 at 92. */
START_TEST(time_share_uses_a_time_shared_device)
{
    struct scenario_request q[] = {{BE, 0, 256, 1, 0, 0}, {BE, 0, 256, 1, 0, 0}};
    for (int half = 0; half < 2; half++) {
        machine(1, 1);
        sc.machine.devices[IGPU].sharing = DEVICE_TIME_SHARED;
        sc.machine.devices[IGPU].shared_efficiency_frac = half ? 0.5 : 1.0;
        run("time-share", "", "", q, 2);
        ck_assert(finishes(0, half ? 92 : 46) && finishes(1, half ? 92 : 46));
        scenario_fini(&sc);
    }
}
END_TEST

/* ---- orca (C.4 c, E.1) ---- */

/* BE0 prefills 0-23 and decodes 23-29. RT1 (512) arrives at 24, and joins with its whole prompt at
 * the boundary. So 513 rows begin at 29: 513 * 12/256 + 10 + 1 = 35.046875. */
static bool orca_joins_at_the_boundary_with_the_whole_prompt(const char *extra)
{
    machine(1, 5);
    struct scenario_request q[] = {{BE, 0, 256, 3, 0, 0}, {RT, 0.024, 512, 1, 0, 0}};
    run("orca", "", extra, q, 2);
    return most_rows(IGPU) == 513 && sc.records[1].start_ns == MS(29) &&
           sc.records[1].first_token_ns == MS(29) + 35046875 && finishes(0, 64.046875);
}

/* Each may grow to 256 + 1024 = 1280 tokens, so two fit in 2600, and the first iteration has two
 * prompts. By prompts alone all three (768 rows) would fit. */
static bool orca_reserves_the_largest_kv(const char *extra)
{
    machine(1, 5);
    sc.setup.kv_capacity_tokens = 2600;
    struct scenario_request q[] = {
        {BE, 0, 256, 2, 0, 0}, {BE, 0, 256, 2, 0, 0}, {BE, 0, 256, 2, 0, 0}};
    run("orca", "", extra, q, 3);
    return most_rows(IGPU) == 512 && sc.records[2].start_ns > sc.records[0].finish_ns - 1;
}

/* ---- llama-cpp (C.1) ---- */

/* Slots that were never used are taken from the last on, so requests 3 and 2 come before 1 and 0.
 * Step 1 has 4 * 256 prompt tokens in micro-batches of 512, of 8 + 10 + 16 + 1 = 35 ms each: 35 and
 * 70. Steps 2 and 3 have four tokens, 4 * 12/256 + 11 = 11.1875 ms: 92.375. Then a slot is free for
 * request 4. */
static bool llama_request_waits_for_a_slot(const char *extra)
{
    machine(1, 5);
    struct scenario_request q[5];
    for (int i = 0; i < 5; i++) {
        q[i] = (struct scenario_request){BE, 0, 256, 3, 0, 0};
    }
    run("llama-cpp", "", extra, q, 5);
    return sc.records[3].first_token_ns == MS(35) && sc.records[2].first_token_ns == MS(35) &&
           sc.records[0].first_token_ns == MS(70) && finishes(0, 92.375) &&
           sc.records[4].start_ns == MS(92.375);
}

/* 1024 tokens run as two micro-batches of 512 rows. Only the second has a head: 34 + 35. */
static bool llama_runs_micro_batches(const char *extra)
{
    machine(1, 5);
    struct scenario_request q[] = {{BE, 0, 1024, 1, 0, 0}};
    run("llama-cpp", "", extra, q, 1);
    return most_rows(CPU) == 512 && finishes(0, 34 + 35);
}

/* Request 0 generates from 23 on, and request 1 brings 4096 prompt tokens at 24. Request 0's next
 * token (29) is on its way. Then each step gives it one token and takes 2047 of the prompt. So
 * tokens come at the ends of steps 2, 3 and 4, all before or with request 1's first. */
static bool llama_step_is_bounded_by_n_batch(const char *extra)
{
    machine(1, 5);
    struct scenario_request q[] = {{BE, 0, 256, 30, 0, 0}, {BE, 0.024, 4096, 1, 0, 0}};
    run("llama-cpp", "", extra, q, 2);
    uint32_t before = 0;
    for (uint32_t i = 0; i < 30; i++) {
        before += sc.records[0].token_ns[i] <= sc.records[1].first_token_ns;
    }
    return before == 2 + 3;
}

/* The first paper's form does not batch. Both run alone in turn, and no kernel has two rows. */
static bool llama_ps_does_not_batch(const char *extra)
{
    machine(1, 5);
    struct scenario_request q[] = {{BE, 0, 256, 4, 0, 0}, {BE, 0, 256, 4, 0, 0}};
    run("llama-cpp", extra[0] == '\0' ? "form=ps" : "", extra, q, 2);
    bool batched = false;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        batched = batched || sc.kernels[i].rows == 2 || sc.kernels[i].rows == 512;
    }
    /* Each takes 23 + 3 * 6 = 41 ms. Sharing ends the first less than a kernel (10 ms) before
     * 82. */
    return !batched && finishes(1, 82) && sc.records[0].finish_ns > MS(72);
}

/* ---- pd-static and pd-mixed (E.10) ---- */

/* BE0 decodes from 23 on, 2 ms a token. RT1 arrives at 24, and its QKV runs on the NPU 24-28. BE0
 * continues next to it, with tokens at 25, 27 and 29. */
static bool pd_decode_goes_on_beside_prefill(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 256, 20, 0, 0}, {RT, 0.024, 256, 1, 0, 0}};
    run("pd-static", "", extra, q, 2);
    return at(kernel(1, NPU, OP_QKV), 24, 28) && sc.records[0].token_ns[2] == MS(27);
}

/* In two layers BE0's prefill ends at 45 (2 * 22 + 1), and decode layers take 20 ms: 45-65. RT1
 * arrives at 46 and has QKV 46-50. Its attention is ready at 50, and follows the running kernel:
 * 65-75. */
static bool pd_attention_waits_for_a_kernel_of_decode(const char *extra)
{
    machine(2, 20);
    struct scenario_request q[] = {{BE, 0, 256, 3, 0, 0}, {RT, 0.046, 256, 1, 0, 0}};
    run("pd-static", "", extra, q, 2);
    return at(kernel(1, NPU, OP_QKV), 46, 50) && at(kernel(1, IGPU, OP_MHA), 65, 75);
}

/* Every launch on the iGPU has 9 ms of host work before it. BE0 has QKV 0-4, attention 13-23, FFN
 * 23-31 and head 40-41. Its decode runs its layer from 50 to 51. RT1's QKV ends at 50.5, so its
 * attention is next, 60-70, with FFN 70-78. BE0's head, one op, is asked for at 70 and runs 79-80,
 * though RT1's head waits from 78 on. That follows, 89-90. */
static bool pd_a_single_op_is_not_stopped(const char *extra)
{
    machine(1, 1);
    sc.machine.devices[IGPU].submit_ns = MS(9);
    struct scenario_request q[] = {{BE, 0, 256, 2, 0, 0}, {RT, 0.0465, 256, 1, 0, 0}};
    run("pd-static", "", extra, q, 2);
    return at(kernel(1, IGPU, OP_MHA), 60, 70) && finishes(0, 80) && finishes(1, 90);
}

/* There are no classes. RT1 waits for the end of BE0's prefill, 16 + 10 + 32 + 1 = 59. */
static bool pd_prefill_is_in_arrival_order(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 1024, 1, 0, 0}, {RT, 0.001, 256, 1, 0, 0}};
    run("pd-static", "", extra, q, 2);
    return sc.records[1].start_ns == MS(59);
}

/* 300 tokens are a chunk on the NPU and, next to it, 44 rows on the iGPU: 4 + 10 + 8 + 1. */
static bool pd_margin_runs_on_the_igpu(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 300, 1, 0, 0}};
    run("pd-static", "", extra, q, 1);
    return finishes(0, 23) && kernel(0, IGPU, OP_QKV) != NULL &&
           kernel(0, IGPU, OP_QKV)->rows == 44;
}

/* BE0 decodes from 23 on. RT1 has a chunk and 44 rows: QKV on the NPU 24.5-28.5, and its margin on
 * the iGPU 25-25.6875. BE0's next passes begin at 25.6875 and 27.6875. The second stops at 28.6875,
 * between its ops, for RT1's attention, until 38.6875. Its head has waited since then, so it is
 * before the margin of the FFN. That is ready at 38.6875, and runs 39.6875-41.0625. */
static bool pd_who_waited_longer_has_the_igpu(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 256, 20, 0, 0}, {RT, 0.0245, 300, 1, 0, 0}};
    run("pd-static", "", extra, q, 2);
    return at(kernel(1, IGPU, OP_MHA), 28.6875, 38.6875) &&
           at(kernel(1, IGPU, OP_FFN), 39.6875, 41.0625);
}

/* Decode takes every request: three of them, prefilled one after another, end up in one batch. */
static bool pd_decode_batch_is_unlimited(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {
        {BE, 0, 256, 60, 0, 0}, {BE, 0, 256, 60, 0, 0}, {BE, 0, 256, 60, 0, 0}};
    run("pd-static", "", extra, q, 3);
    return most_rows(IGPU) == 3;
}

/* 1024 tokens wait for the NPU when request 1 arrives at 1. That is above 1000, so the iGPU
 * prefills it from 1 on. BE0's attention, ready at 16, has its turn in between. */
static bool pd_mixed_borrows_the_igpu(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 1024, 1, 0, 0}, {BE, 0.001, 256, 1, 0, 0}};
    run("pd-mixed", extra[0] == '\0' ? "limit_tokens=1000" : "", extra, q, 2);
    return at(kernel(1, IGPU, OP_QKV), 1, 5) && kernel(1, NPU, OP_QKV) == NULL;
}

/* 1024 tokens wait, which is the limit itself. So the prompt runs where the first one does. */
static bool pd_mixed_borrows_above_its_limit_only(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 1024, 1, 0, 0}, {BE, 0.001, 256, 1, 0, 0}};
    run("pd-mixed", extra[0] == '\0' ? "limit_tokens=1024" : "", extra, q, 2);
    return kernel(1, NPU, OP_QKV) != NULL;
}

/* The prompt runs in iterations of 512 tokens next to the decodes. */
static bool pd_mixed_takes_chunks(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 1024, 1, 0, 0}, {BE, 0.001, 1000, 1, 0, 0}};
    run("pd-mixed", "limit_tokens=1000", extra, q, 2);
    return kernel(1, IGPU, OP_QKV) != NULL && most_rows(IGPU) == 512;
}

/* 512 tokens are 300 of the second prompt on the iGPU, and 212 of the third. */
static bool pd_mixed_takes_what_a_prompt_leaves(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 1024, 1, 0, 0},
                                   {BE, 0.001, 300, 1, 0, 0},
                                   {BE, 0.002, 300, 1, 0, 0},
                                   {BE, 0.002, 300, 1, 0, 0}};
    run("pd-mixed", "limit_tokens=1000", extra, q, 4);
    return most_rows(IGPU) == 512;
}

/* ---- hetero-split (E.11) ---- */

/* 512 tokens are one chunk on each engine, of 4 and 8 ms: 4 + 10 + 8 + 1 = 23 instead of 35. */
static bool split_balances_both_engines(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 512, 1, 0, 0}};
    run("hetero-split", "", extra, q, 1);
    return finishes(0, 23) && kernel(0, IGPU, OP_QKV) != NULL &&
           kernel(0, IGPU, OP_QKV)->rows == 256;
}

/* The solver counts the barrier where both engines work. QKV takes 8 ms on the iGPU alone. With a
 * barrier of 3 ms a cut takes 4.5 + 3 = 7.5, so it is cut. With 5 ms it takes 9.5, so the iGPU has
 * all of QKV. FFN is cut in both cases (8 + 5 < 16). */
START_TEST(split_counts_the_barrier)
{
    static const double sync_ms[] = {3, 5};
    for (int i = 0; i < 2; i++) {
        machine(1, 1);
        scenario_cost(&sc, NPU, OP_QKV, 4.5, 0, 5); /* two chunks on the NPU alone: 9 */
        sc.machine.sync_ns = MS(sync_ms[i]);
        struct scenario_request q[] = {{BE, 0, 512, 1, 0, 0}};
        run("hetero-split", "", "", q, 1);
        ck_assert_int_eq(kernel(0, NPU, OP_QKV) != NULL, i == 0);
        ck_assert_ptr_nonnull(kernel(0, NPU, OP_FFN));
        scenario_fini(&sc);
    }
}
END_TEST

/* Request 0 decodes from 23 on, and request 1 (512) arrives at 23.5. Its prefill has both engines
 * to itself (25-48, after the running token), since the partition does not depend on decode. */
static bool split_does_not_react_to_decode(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 256, 20, 0, 0}, {RT, 0.0235, 512, 1, 0, 0}};
    run("hetero-split", "", extra, q, 2);
    return at(kernel(1, NPU, OP_QKV), 25, 29) && sc.records[1].first_token_ns == MS(48) &&
           sc.records[0].token_ns[1] == MS(25) && sc.records[0].token_ns[2] > MS(48);
}

/* Two decode together on the iGPU. The solver sees that a static NPU chunk (4 ms) costs more than
 * two rows on the iGPU. */
static bool split_decode_is_the_solvers_choice(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 256, 9, 0, 0}, {BE, 0, 256, 9, 0, 0}};
    run("hetero-split", "", extra, q, 2);
    bool npu = false;
    bool pair = false;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        npu = npu || (k->device == NPU && k->rows == 1);
        pair = pair || (k->device == IGPU && k->op == OP_QKV && k->rows == 2);
    }
    return pair && !npu;
}

/* decode=rows cuts a batch of two by the share of bandwidth, here one row each. */
START_TEST(split_by_bandwidth_gives_each_engine_its_rows)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 256, 9, 0, 0}, {BE, 0, 256, 9, 0, 0}};
    run("hetero-split", "decode=rows", "", q, 2);
    const struct scenario_kernel *npu = NULL;
    for (uint32_t i = 0; i < sc.n_kernels && npu == NULL; i++) {
        npu = sc.kernels[i].device == NPU && sc.kernels[i].rows == 1 ? &sc.kernels[i] : NULL;
    }
    ck_assert_ptr_nonnull(npu);
    scenario_fini(&sc);
}
END_TEST

/* ---- the matrix ---- */

struct row {
    const char *name;
    bool (*holds)(const char *extra);
    const char *switches; /* of its policy, separated by spaces */
    const char *breaks;   /* those that make it fail */
};

#define NPU_SERIAL "margin=igpu"
#define RECOMPUTE "kill=never keep_context=true max_batch=8"
#define TIME_SHARE "max_requests=1 efficiency=1"
#define ORCA "reserve=false max_num_seqs=1"
#define LLAMA "slots=16 n_ubatch=4096 n_batch=100000 form=server"
#define PD "yield=iteration margin=npu max_batch=1"
#define SPLIT "split=false decode=rows max_batch=1"

static const struct row rows[] = {
#define ROW(f, s, b)                                                                               \
    {                                                                                              \
#f, f, s, b                                                                                \
    }
    ROW(npu_serial_alternates_npu_and_igpu, NPU_SERIAL, ""),
    ROW(npu_serial_serves_one_request_to_its_end, NPU_SERIAL, ""),
    ROW(npu_serial_pads_the_margin, NPU_SERIAL, "margin=igpu"),
    ROW(recompute_kills_at_the_kernel_boundary, RECOMPUTE, "kill=never"),
    ROW(recompute_prefills_prompt_and_generated_again, RECOMPUTE, "kill=never keep_context=true"),
    ROW(recompute_reactive_waits_for_reactive, "kill=never keep_context=true", ""),
    ROW(recompute_runs_one_request_at_a_time, RECOMPUTE, "max_batch=8"),
    ROW(time_share_alternates_equal_requests, "max_requests=1", "max_requests=1"),
    ROW(time_share_charges_its_efficiency, TIME_SHARE, TIME_SHARE),
    ROW(time_share_charges_nothing_for_time_alone, TIME_SHARE, TIME_SHARE),
    ROW(time_share_follows_processor_sharing, "max_requests=1", "max_requests=1"),
    ROW(orca_joins_at_the_boundary_with_the_whole_prompt, ORCA, "max_num_seqs=1"),
    ROW(orca_reserves_the_largest_kv, ORCA, ORCA),
    ROW(llama_request_waits_for_a_slot, LLAMA, "slots=16 n_ubatch=4096"),
    ROW(llama_runs_micro_batches, LLAMA, "n_ubatch=4096"),
    ROW(llama_step_is_bounded_by_n_batch, LLAMA, "n_batch=100000"),
    ROW(llama_ps_does_not_batch, "form=server", "form=server"),
    ROW(pd_decode_goes_on_beside_prefill, PD, ""),
    ROW(pd_attention_waits_for_a_kernel_of_decode, PD, "yield=iteration"),
    ROW(pd_a_single_op_is_not_stopped, "yield=iteration margin=npu", "yield=iteration"),
    ROW(pd_prefill_is_in_arrival_order, PD, ""),
    ROW(pd_margin_runs_on_the_igpu, PD, "margin=npu"),
    ROW(pd_who_waited_longer_has_the_igpu, PD, "yield=iteration margin=npu"),
    ROW(pd_decode_batch_is_unlimited, PD, "max_batch=1"),
    ROW(pd_mixed_borrows_the_igpu, "limit_tokens=2048", "limit_tokens=2048"),
    ROW(pd_mixed_borrows_above_its_limit_only, "limit_tokens=1023", "limit_tokens=1023"),
    ROW(pd_mixed_takes_chunks, "mixed_tokens=2000", "mixed_tokens=2000"),
    ROW(pd_mixed_takes_what_a_prompt_leaves, "mixed_tokens=2000", "mixed_tokens=2000"),
    ROW(split_balances_both_engines, SPLIT, "split=false"),
    ROW(split_does_not_react_to_decode, SPLIT, "split=false max_batch=1"),
    ROW(split_decode_is_the_solvers_choice, SPLIT, "decode=rows max_batch=1"),
#undef ROW
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

START_TEST(scenario_holds)
{
    ck_assert_msg(rows[_i].holds(""), "%s", rows[_i].name);
    scenario_fini(&sc);
}
END_TEST

START_TEST(disabling_a_rule_fails_exactly_its_scenarios)
{
    char list[128];
    char broken[128];
    (void)snprintf(list, sizeof list, "%s", rows[_i].switches);
    for (char *save = NULL, *p = strtok_r(list, " ", &save); p != NULL;
         p = strtok_r(NULL, " ", &save)) {
        bool holds = rows[_i].holds(p);
        scenario_fini(&sc);
        bool expected = true;
        (void)snprintf(broken, sizeof broken, "%s", rows[_i].breaks);
        for (char *save2 = NULL, *b = strtok_r(broken, " ", &save2); b != NULL;
             b = strtok_r(NULL, " ", &save2)) {
            expected = expected && strcmp(b, p) != 0;
        }
        ck_assert_msg(holds == expected, "%s with %s %s", rows[_i].name, p,
                      holds ? "still holds" : "fails");
    }
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(scenario_holds, N_ROWS),
    LOOP(disabling_a_rule_fails_exactly_its_scenarios, N_ROWS),
    TEST(recompute_can_kill_the_running_kernel),
    TEST(time_share_uses_a_time_shared_device),
    TEST(split_counts_the_barrier),
    TEST(split_by_bandwidth_gives_each_engine_its_rows),
};
SUITE_MAIN("baselines", suite)
