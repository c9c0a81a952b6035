/* agent-xpu-v1 is tested clause by clause (clauses.md A.3 to A.8), on the toy machine.
 *
 * One layer takes these ms, unless a scenario says otherwise:
 *
 *   QKV            4 a chunk of 256 rows on the NPU, 4/256 a row on the iGPU
 *   FFN            8 a chunk on the NPU, 8/256 a row on the iGPU
 *   attention      10, on the iGPU only
 *   head           1
 *   fused layer    of a decode: as each scenario says
 *
 * Every kernel draws 5 of 100 GB/s. There are no host costs and no contention, and annotations are
 * exact.
 *
 * Each scenario is a function that runs with extra parameters and returns whether its
 * expectation holds. The matrix runs each with the ablation switches of its row. It must fail
 * with exactly those that a minus marks. So each scenario can fail, and fails for the clause
 * that it is about. */
#include "tests/conformance/agent_xpu_v1_machine.h"
#include "tests/helpers/suite.h"

/* ---- A.3 preemption, A.4 resumption ---- */

/* BE0 (512) starts QKV at 0, with chunks 0-4 and 4-8. RT1 (256) arrives at 1, and the running chunk
 * ends at 4. RT1's QKV runs 4-8, on the NPU, since NPU and iGPU both take 4. Its attention runs
 * 8-18, FFN 18-26 and the head 26-27. */
static bool preempts_at_the_kernel_boundary(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 512, 1, 0, 0}, {RT, 0.001, 256, 1, 0, 0}};
    run("", extra, q, 2);
    return at(kernel(1, NPU, OP_QKV), 4, 8) && sc.records[1].first_token_ns == MS(27);
}

/* The model has two layers, and BE0 decodes (20 ms a layer) from 45 on. RT1 (256) arrives at 46.
 * Its attention is ready at 50, and runs when the kernel of the batch ends, at 65. The batch
 * continues later. */
static bool decode_stops_at_its_kernel_and_goes_on(const char *extra)
{
    machine(2, 20);
    struct scenario_request q[] = {{BE, 0, 256, 2, 0, 0}, {RT, 0.046, 256, 1, 0, 0}};
    run("", extra, q, 2);
    return at(kernel(0, IGPU, OP_LAYER), 45, 65) && at(kernel(1, IGPU, OP_MHA), 65, 75) &&
           sc.records[0].generated == 2;
}

/* While RT0 prefills (0-23), BE1 (1024) arrives at 1 and BE2 (256) at 2. Nothing is backfilled. BE2
 * has the smaller ETC (23 against 16 + 10 + 32 + 1 = 59), so it starts at 23, and BE1 at 46. */
static bool smallest_etc_is_resumed_first(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {
        {RT, 0, 256, 1, 0, 0}, {BE, 0.001, 1024, 1, 0, 0}, {BE, 0.002, 256, 1, 0, 0}};
    run("inter_backfill=false", extra, q, 3);
    return sc.records[2].start_ns == MS(23) && sc.records[1].start_ns == MS(46);
}

/* T_starve is 10 ms. At 23 both are starved, BE1 for longer. So it is first, until 82. */
static bool starved_prefills_go_before_small_ones(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {
        {RT, 0, 256, 1, 0, 0}, {BE, 0.001, 1024, 1, 0, 0}, {BE, 0.002, 256, 1, 0, 0}};
    char own[64];
    (void)snprintf(own, sizeof own, "inter_backfill=false,%s", unless("t_starve_s=0.01", extra));
    run(own, "", q, 3);
    return sc.records[1].start_ns == MS(23) && sc.records[2].start_ns == MS(82);
}

/* BE0 is stopped at 4 and resumed at 27. With a context switch of 5 ms its second chunk starts at
 * 32. */
static bool a_context_switch_can_cost(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 512, 1, 0, 0}, {RT, 0.001, 256, 1, 0, 0}};
    char own[64];
    (void)snprintf(own, sizeof own, "inter_backfill=false,%s", unless("ctx_switch_us=5000", extra));
    run(own, "", q, 2);
    return begins(second(0, NPU, OP_QKV), 32);
}

/* ---- A.9 elastic reactive prefill ---- */

/* 512 tokens are one chunk on the NPU and 256 rows on the iGPU: 4 + 10 + 8 + 1 = 23 instead of
 * 35. */
static bool reactive_prefill_uses_both_devices(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{RT, 0, 512, 1, 0, 0}};
    run("", extra, q, 1);
    return sc.records[0].first_token_ns == MS(23);
}

/* RT0 decodes from 23 on. RT1 (512) arrives at 24 and keeps to the default mapping: all its QKV
 * runs on the NPU, 24-32. */
static bool it_does_not_while_reactive_work_decodes(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{RT, 0, 256, 40, 0, 0}, {RT, 0.024, 512, 1, 0, 0}};
    run("", extra, q, 2);
    return begins(second(1, NPU, OP_QKV), 28) && kernel(1, IGPU, OP_QKV) == NULL;
}

/* ---- A.5 backfill ---- */

/* Structural slack: A's attention has the iGPU 8-18, so B (512) fills the NPU 8-16. */
static bool attention_leaves_the_npu_to_another_prefill(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 512, 1, 0, 0}, {BE, 0, 512, 1, 0, 0}};
    run("balance=false", extra, q, 2);
    return begins(kernel(1, NPU, OP_QKV), 8);
}

/* RT0's QKV runs 0-4 and its attention 4-14. BE1 (1024, 16 ms of QKV) gets the two chunks that end
 * in the window, 4-12. The other two follow at 22, when RT0 no longer needs the NPU. */
static bool backfill_is_cut_to_the_window(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{RT, 0, 256, 1, 0, 0}, {BE, 0.001, 1024, 1, 0, 0}};
    run("balance=false", extra, q, 2);
    uint32_t before = 0;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        bool qkv = k->request == 1 && k->op == OP_QKV;
        before += qkv && k->end_ns <= MS(14);
        if (qkv && k->begin_ns > MS(8) && k->begin_ns < MS(22)) {
            return false;
        }
    }
    return before == 2 && at(kernel(0, NPU, OP_FFN), 14, 22);
}

/* With attention of 3 ms no chunk of 4 ms fits (4-7). So RT0's FFN runs 7-15, and BE1 starts at
 * 15. */
static bool backfill_must_end_in_time(const char *extra)
{
    machine(1, 1);
    scenario_cost(&sc, IGPU, OP_MHA, 3, 0, 5);
    struct scenario_request q[] = {{RT, 0, 256, 1, 0, 0}, {BE, 0.001, 256, 1, 0, 0}};
    run("balance=false", extra, q, 2);
    return at(kernel(0, NPU, OP_FFN), 7, 15) && begins(kernel(1, NPU, OP_QKV), 15);
}

/* BE0 decodes (three layers of 6 ms) from 3 * 22 + 1 = 67 on. RT1 (1024) arrives at 68 and needs
 * the iGPU when its QKV ends, at 84. The running layer ends at 73 and one more fits (73-79). A
 * third would not (85). So the reactive attention is not late: 84-94. */
static bool decode_fills_the_igpu_of_a_reactive_prefill(const char *extra)
{
    machine(3, 6);
    struct scenario_request q[] = {{BE, 0, 256, 3, 0, 0}, {RT, 0.068, 1024, 1, 0, 0}};
    run("elastic=false", extra, q, 2);
    uint32_t layers = 0;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        layers += k->request == 0 && k->op == OP_LAYER && k->end_ns <= MS(84);
    }
    return layers == 2 && at(kernel(1, IGPU, OP_MHA), 84, 94);
}

/* Decode layers take 12 ms: t(1) = 13 and t(2) = 2 * 12/256 + 11 = 11.1 < 1.1 * 13. So BE1 joins
 * RT0. */
static bool proactive_decodes_join_reactive_ones(const char *extra)
{
    machine(1, 12);
    struct scenario_request q[] = {{RT, 0, 256, 40, 0, 0}, {BE, 0, 256, 40, 0, 0}};
    run("", extra, q, 2);
    return largest_batch(0) == 2;
}

static const struct scenario_request five[] = {{RT, 0, 256, 60, 0, 0},
                                               {BE, 0, 256, 60, 0, 0},
                                               {BE, 0, 256, 60, 0, 0},
                                               {BE, 0, 256, 60, 0, 0},
                                               {BE, 0, 256, 60, 0, 0}};

/* QKV takes 1 ms a row here, so t(B) = B (1 + 8/256) + 11. t(1) = 12.03, t(2) = 13.06 = 1.086
 * t(1) and t(3) = 14.09 = 1.17 t(1). With eps 0.1 B_max is 2. With 0.5 all five fit (16.2 = 1.34
 * t(1)). */
static void costly_rows(void)
{
    machine(1, 11.03125);
    scenario_cost(&sc, IGPU, OP_QKV, 0, 1, 5);
}

static bool batch_grows_while_it_costs_next_to_nothing(const char *extra)
{
    costly_rows();
    run("", extra, five, 5);
    return largest_batch(0) == 2;
}

/* Without a reactive request B_max bounds nothing. All five decode together, although t(5) = 16.2
 * is 1.34 times t(1). Only max_batch bounds them. */
static bool a_proactive_batch_is_not_bounded_by_the_cost_to_reactive_ones(const char *extra)
{
    costly_rows();
    struct scenario_request q[5];
    memcpy(q, five, sizeof q);
    q[0].cls = BE;
    run("", extra, q, 5);
    return largest_batch(-1) == 5;
}

static bool batch_cap_bounds_what_epsilon_allows(const char *extra)
{
    costly_rows();
    char own[64];
    (void)snprintf(own, sizeof own, "epsilon=1,%s", unless("batch_cap=3", extra));
    run(own, "", five, 5);
    return largest_batch(0) == 3;
}

/* RT0 decodes 23-140 (nine tokens of 13 ms). BE1 (256) arrives at 24 and has its QKV on the NPU
 * 24-28. Its attention needs the iGPU, which reactive decode uses, so it waits until 140. */
static bool backfill_keeps_off_the_reactive_device(const char *extra)
{
    machine(1, 12);
    struct scenario_request q[] = {{RT, 0, 256, 10, 0, 0}, {BE, 0.024, 256, 1, 0, 0}};
    run("affinity=strict", extra, q, 2);
    return at(kernel(1, NPU, OP_QKV), 24, 28) && begins(kernel(1, IGPU, OP_MHA), 140);
}

/* "When possible": attention has no other device. So after the first iteration, 23-36, the
 * attention of 10 ms runs 36-46. */
static bool one_kernel_runs_between_two_iterations(const char *extra)
{
    machine(1, 12);
    struct scenario_request q[] = {{RT, 0, 256, 10, 0, 0}, {BE, 0.024, 256, 1, 0, 0}};
    run("", extra, q, 2);
    return at(kernel(1, IGPU, OP_MHA), 36, 46);
}

/* Two kernels could fill one window. NPU chunks take 2 ms (QKV) and 2.5 ms (FFN), and attention 3
 * ms.
 *
 * BE0 (512) has QKV 0-4 and attention 4-7, and its FFN is ready at 7. BE1 (768) has QKV chunks 4-6
 * and 6-8. RT2 arrives at 7.5 and stops its third. RT2 has QKV 8-10 and attention 10-13. So at 10
 * there is a window of 3 ms, for one chunk of BE0's FFN or of BE1's QKV. */
static void two_candidates(const char *own, const char *extra)
{
    struct scenario_request q[] = {
        {BE, 0, 512, 1, 0, 0}, {BE, 0, 768, 1, 0, 0}, {RT, 0.0075, 256, 1, 0, 0}};
    run(own, extra, q, 3);
}

static void two_candidate_machine(double qkv_gb_per_s)
{
    machine(1, 1);
    scenario_cost(&sc, NPU, OP_QKV, 2, 0, qkv_gb_per_s);
    scenario_cost(&sc, NPU, OP_FFN, 2.5, 0, 5);
    scenario_cost(&sc, IGPU, OP_MHA, 3, 0, 5);
}

/* All have as many flop per byte, so a kernel that moves twice the bytes a second does twice the
 * work per joule. BE1's QKV (10 GB/s) runs before BE0's FFN, though BE0 has the smaller ETC. */
static bool most_work_per_joule_fills_the_window(const char *extra)
{
    two_candidate_machine(10);
    two_candidates("balance=false", extra);
    return begins(kernel(1, NPU, OP_QKV), 4) && scenario_kernel_find(&sc, 0, 1, NPU, OP_QKV) &&
           kernel(0, NPU, OP_FFN)->begin_ns > MS(10);
}

/* Without that order the smaller ETC decides: 2 * 2.5 + 1 = 6 ms for BE0, and more for BE1. */
static bool ties_go_to_the_smaller_etc(const char *extra)
{
    two_candidate_machine(10);
    two_candidates("balance=false,energy_order=false", extra);
    return begins(kernel(0, NPU, OP_FFN), 10);
}

/* Intensities differ: QKV and attention have 0.5 flop per byte (memory-bound), and FFN 2. */
static void (*toy_kernel)(const struct hwmodel *, const struct kernel_query *,
                          struct kernel_cost *);

static void mixed_kernel(const struct hwmodel *m, const struct kernel_query *q,
                         struct kernel_cost *out)
{
    toy_kernel(m, q, out);
    out->flop = out->bytes * (q->op == OP_FFN ? 2.0 : 0.5);
}

static struct hwmodel_ops mixed_ops;

static void mixed_intensity(void)
{
    toy_kernel = sc.model.ops->kernel;
    mixed_ops = *sc.model.ops;
    mixed_ops.kernel = mixed_kernel;
    sc.model.ops = &mixed_ops;
}

/* A.7 (ii): next to RT2's memory-bound attention the compute-bound FFN is first. By work per joule
 * it would be QKV, which does 25 Gflop/s per 20 W at 50 GB/s, and FFN at 5 GB/s only 10. */
static bool complementary_kernels_overlap(const char *extra)
{
    two_candidate_machine(50);
    mixed_intensity();
    two_candidates("balance=false,pressure=off", extra);
    return begins(kernel(0, NPU, OP_FFN), 10);
}

/* ---- A.6 memory pressure ---- */

/* Decode draws 75 of 100 GB/s, which is above tau_high. RT0 decodes 23-140. BE1, there from 24 on,
 * cannot even start its QKV on the idle NPU. The clause defeats all backfill. */
static bool lone_decode_blocks_backfill(const char *extra)
{
    machine(1, 12);
    scenario_cost(&sc, IGPU, OP_LAYER, 12, 0, 75);
    struct scenario_request q[] = {{RT, 0, 256, 10, 0, 0}, {BE, 0.024, 256, 1, 0, 0}};
    run("", extra, q, 2);
    return sc.records[1].start_ns == MS(140);
}

/* The rule of pressure comes before the class. RT1 arrives at 46 and waits for the proactive decode
 * kernel (one of two layers, 45-57), although the NPU is idle. */
static bool reactive_kernel_waits_for_the_memory(const char *extra)
{
    machine(2, 12);
    scenario_cost(&sc, IGPU, OP_LAYER, 12, 0, 75);
    struct scenario_request q[] = {{BE, 0, 256, 3, 0, 0}, {RT, 0.046, 256, 1, 0, 0}};
    run("", extra, q, 2);
    return at(kernel(1, NPU, OP_QKV), 57, 61);
}

/* The medium tier: decode draws 45 GB/s, and all kernels are memory-bound (ridge 3). BE1 (20 GB/s
 * on the NPU) arrives at 24. The sum of 0.65 is below tau_high, but two memory-bound kernels do not
 * pair. So BE1 waits for the end of the iteration, 23-36. */
static void medium_tier(double ridge)
{
    machine(1, 12);
    sc.ridge_flop_per_byte = ridge;
    scenario_cost(&sc, IGPU, OP_LAYER, 12, 0, 45);
    scenario_cost(&sc, NPU, OP_QKV, 4, 0, 20);
}

static bool memory_bound_kernels_do_not_pair(const char *extra)
{
    medium_tier(3.0);
    struct scenario_request q[] = {{BE, 0, 256, 3, 0, 0}, {BE, 0.024, 256, 1, 0, 0}};
    run("", extra, q, 2);
    return begins(kernel(1, NPU, OP_QKV), 36);
}

/* Compute-bound (ridge 1), the pair runs at once. */
static bool compute_bound_kernels_pair(const char *extra)
{
    medium_tier(1.0);
    struct scenario_request q[] = {{BE, 0, 256, 3, 0, 0}, {BE, 0.024, 256, 1, 0, 0}};
    run("", extra, q, 2);
    return begins(kernel(1, NPU, OP_QKV), 24);
}

/* BE1 is held back at 24, with a T_starve of 5 ms. At the next event, BE2's arrival at 30, it
 * counts as a reactive request. */
static bool a_starved_deferred_kernel_pairs_all_the_same(const char *extra)
{
    medium_tier(3.0);
    struct scenario_request q[] = {
        {BE, 0, 256, 3, 0, 0}, {BE, 0.024, 256, 1, 0, 0}, {BE, 0.030, 256, 1, 0, 0}};
    run(unless("t_starve_s=0.005", extra), "", q, 3);
    return begins(kernel(1, NPU, OP_QKV), 30);
}

/* ---- A.8 practical rules ---- */

/* BE1 waits behind a long reactive prefill of 8 chunks and a margin, in two layers. With a T_age of
 * 5 ms it is promoted at 6. RT0 has its QKV on both devices (1034 rows on the iGPU until 16.15625),
 * and its attention on the iGPU until 26.15625. Then BE1 has the iGPU, and all 2058 rows of RT0's
 * FFN run on the NPU. */
static bool aged_proactive_prefill_gets_the_igpu(const char *extra)
{
    machine(2, 1);
    struct scenario_request q[] = {{RT, 0, 2058, 1, 0, 0}, {BE, 0.001, 256, 1, 0, 0}};
    run("t_age_s=0.005,inter_backfill=false", extra, q, 2);
    const struct scenario_kernel *ffn = kernel(0, NPU, OP_FFN);
    return begins(kernel(1, IGPU, OP_QKV), 26.15625) && ffn != NULL && ffn->rows == 2058;
}

/* A and B (1024) come at 0. A has QKV 0-16 and attention 16-26, and B has QKV on the NPU 16-32. At
 * 26 A's FFN would end at 32 + 32 = 64 on the NPU, and at 26 + 32 = 58 on the idle iGPU. That is 32
 * ms against 38, a gain of 16 %. */
static bool a_saturated_npu_sheds_work_to_the_igpu(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 1024, 1, 0, 0}, {BE, 0, 1024, 1, 0, 0}};
    run("", extra, q, 2);
    return at(kernel(0, IGPU, OP_FFN), 26, 58) && kernel(0, NPU, OP_FFN) == NULL;
}

/* A's FFN is 1024 rows for the NPU and a margin of 128 for the iGPU, where all 1152 take 36 ms. At
 * 26 the NPU is busy with 1024 of B's 1200 rows until 32, and would do A's until 64: a gain of 2 in
 * 38 ms is too little. With 1280 rows, until 36, it is 6 in 42. */
static bool balancing_moves_a_margin_too(const char *extra)
{
    bool holds = true;
    for (uint32_t more = 0; more < 2; more++) {
        machine(1, 1);
        struct scenario_request q[] = {{BE, 0, 1152, 1, 0, 0}, {BE, 0, 1200 + 80 * more, 1, 0, 0}};
        run("", extra, q, 2);
        const struct scenario_kernel *npu = kernel(0, NPU, OP_FFN);
        const struct scenario_kernel *igpu = kernel(0, IGPU, OP_FFN);
        holds = holds && (npu == NULL) == (more == 1) && igpu != NULL && begins(igpu, 26) &&
                igpu->rows == (more == 1 ? 1152 : 128);
        scenario_fini(&sc);
    }
    machine(1, 1); /* for the caller to end */
    return holds;
}

/* A launch of 8 ms counts as hung after 0.4 of that, at 3.2. It stops at its kernel boundary, 4,
 * and the rest is launched on the iGPU, 4-8. */
static bool a_hung_kernel_is_dispatched_elsewhere(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 512, 1, 0, 0}};
    run(unless("hang_s=0.001,hang_factor=0.4", extra), "", q, 1);
    return at(kernel(0, IGPU, OP_QKV), 4, 8) && kernel(0, IGPU, OP_QKV)->rows == 256;
}

/* RT0 prefills, and one proactive request may wait. So the newest two of BE1, BE2 and BE3 are
 * shed. */
static bool the_newest_are_shed(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{RT, 0, 1024, 1, 0, 0},
                                   {BE, 0.001, 256, 1, 0, 0},
                                   {BE, 0.002, 256, 1, 0, 0},
                                   {BE, 0.003, 256, 1, 0, 0}};
    char own[96];
    (void)snprintf(own, sizeof own, "inter_backfill=false,%s",
                   unless("shed=true,shed_queue=1", extra));
    run(own, "", q, 4);
    return sc.records[1].state == REQUEST_STATE_FINISHED &&
           sc.records[2].state == REQUEST_STATE_SHED && sc.records[3].state == REQUEST_STATE_SHED;
}

/* Each has an ETC of 23 ms. With a wait of 30 ms accepted, the second waiting request is shed. */
static bool a_long_predicted_wait_sheds(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {
        {RT, 0, 1024, 1, 0, 0}, {BE, 0.001, 256, 1, 0, 0}, {BE, 0.002, 256, 1, 0, 0}};
    char own[96];
    (void)snprintf(own, sizeof own, "inter_backfill=false,%s",
                   unless("shed=true,shed_wait_s=0.03", extra));
    run(own, "", q, 3);
    return sc.records[1].state == REQUEST_STATE_FINISHED &&
           sc.records[2].state == REQUEST_STATE_SHED;
}

/* ---- the matrix ---- */

struct row {
    const char *name;
    bool (*holds)(const char *extra);
    const char *switches; /* separated by spaces; with -x it must fail */
};

static const struct row rows[] = {
#define ROW(f, s)                                                                                  \
    {                                                                                              \
#f, f, s                                                                                   \
    }
    ROW(preempts_at_the_kernel_boundary, "-preempt=false elastic=false inter_backfill=false"),
    ROW(decode_stops_at_its_kernel_and_goes_on, "-preempt=false resume=fifo inter_backfill=false"),
    ROW(smallest_etc_is_resumed_first, "-resume=fifo preempt=false t_starve_s=inf"),
    ROW(starved_prefills_go_before_small_ones, "-t_starve_s=inf -t_starve_s=30"),
    ROW(a_context_switch_can_cost, "-ctx_switch_us=0"),
    ROW(reactive_prefill_uses_both_devices, "-elastic=false pressure=off"),
    ROW(it_does_not_while_reactive_work_decodes, "elastic=false"),
    ROW(attention_leaves_the_npu_to_another_prefill,
        "-inter_backfill=false -contexts=1 energy_order=false"),
    ROW(backfill_is_cut_to_the_window, "-inter_backfill=false -duration=false elastic=false"),
    ROW(backfill_must_end_in_time, "-duration=false -inter_backfill=false"),
    ROW(decode_fills_the_igpu_of_a_reactive_prefill, "-inter_backfill=false -duration=false"),
    ROW(proactive_decodes_join_reactive_ones, "-intra_backfill=false -batch_cap=1 epsilon=0.2"),
    ROW(batch_grows_while_it_costs_next_to_nothing, "-epsilon=0.5 -epsilon=0 batch_cap=2"),
    ROW(a_proactive_batch_is_not_bounded_by_the_cost_to_reactive_ones,
        "-max_batch=3 batch_cap=2 epsilon=0 intra_backfill=false"),
    ROW(batch_cap_bounds_what_epsilon_allows, "-batch_cap=8"),
    ROW(backfill_keeps_off_the_reactive_device, "pressure=intensity"),
    ROW(one_kernel_runs_between_two_iterations, "-affinity=strict -gap_ms=9 gap_ms=10"),
    ROW(most_work_per_joule_fills_the_window, "-energy_order=false tie=longest"),
    ROW(ties_go_to_the_smaller_etc, "-tie=longest"),
    ROW(complementary_kernels_overlap, "-reorder=false tie=longest"),
    ROW(lone_decode_blocks_backfill, "-pressure=intensity -pressure=off -tau_high=1"),
    ROW(reactive_kernel_waits_for_the_memory, "-pressure=intensity -pressure=off -preempt=false"),
    ROW(memory_bound_kernels_do_not_pair, "-pressure=off -tau_low=0.5 pressure=intensity"),
    ROW(compute_bound_kernels_pair, "-tau_high=0.6 pressure=intensity tau_low=0.1"),
    ROW(a_starved_deferred_kernel_pairs_all_the_same, "-t_starve_s=30"),
    ROW(aged_proactive_prefill_gets_the_igpu, "-ageing=false"),
    ROW(a_saturated_npu_sheds_work_to_the_igpu,
        "-balance=false -balance_gain=0.2 -igpu_cap=0 elastic=false -igpu_cap=0.0001 "
        "igpu_cap=0.0001,igpu_cap_s=1e6 -igpu_cap=0.5,igpu_cap_s=0.001"),
    ROW(balancing_moves_a_margin_too, "-balance=false -balance_gain=0.2 -balance_gain=0.01"),
    ROW(a_hung_kernel_is_dispatched_elsewhere, "-hang_s=0 -hang_s=1"),
    ROW(the_newest_are_shed, "-shed=false -shed=true,shed_queue=2"),
    ROW(a_long_predicted_wait_sheds, "-shed=false -shed=true,shed_wait_s=0.05"),
#undef ROW
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

START_TEST(scenario_holds)
{
    ck_assert_msg(rows[_i].holds(""), "%s", rows[_i].name);
    scenario_fini(&sc);
}
END_TEST

START_TEST(disabling_a_clause_fails_exactly_its_scenarios)
{
    char list[192];
    (void)snprintf(list, sizeof list, "%s", rows[_i].switches);
    for (char *save = NULL, *p = strtok_r(list, " ", &save); p != NULL;
         p = strtok_r(NULL, " ", &save)) {
        bool must_fail = p[0] == '-';
        bool holds = rows[_i].holds(must_fail ? p + 1 : p);
        scenario_fini(&sc);
        ck_assert_msg(holds != must_fail, "%s with %s %s", rows[_i].name, p,
                      holds ? "still holds" : "fails");
    }
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(scenario_holds, N_ROWS),
    LOOP(disabling_a_clause_fails_exactly_its_scenarios, N_ROWS),
};
SUITE_MAIN("agent-xpu-v1", suite)
