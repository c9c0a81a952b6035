/* agent-xpu-v2 is tested clause by clause (clauses.md B.2 to B.8), on the toy machine.
 *
 * One layer takes these ms, unless a scenario says otherwise:
 *
 *   QKV            4 a chunk of 256 rows on the NPU, 4/256 a row on the iGPU
 *   FFN            8 a chunk on the NPU, 8/256 a row on the iGPU
 *   attention      10 on the iGPU, 6 on the NPU
 *   head           1
 *   fused layer    of a decode: as each scenario says
 *
 * There are no host costs and no contention, and annotations are exact.
 *
 * Each scenario is a function that runs with extra parameters and returns whether its expectation
 * holds. The clause matrix runs every scenario with every ablation switch. It must fail exactly
 * where the table says, so each scenario fails for the clause that it is about. */
#include <string.h>

#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

extern const struct policy_ops policy_agent_xpu_v2_ops;

static struct scenario sc; /* large: one per process, tests run forked */

static void machine(uint32_t layers, double decode_layer_ms)
{
    scenario_init(&sc);
    sc.llm.n_layers = layers;
    scenario_agent_xpu(&sc, decode_layer_ms);
    scenario_cost(&sc, NPU, OP_MHA, 6, 0, 5);
    scenario_cost(&sc, NPU, OP_HEAD, 1, 0, 5);
}

static void run(const char *own, const char *extra, const struct scenario_request *q, uint32_t n)
{
    char params[256];
    (void)snprintf(params, sizeof params, "%s%s%s", own,
                   own[0] != '\0' && extra[0] != '\0' ? "," : "", extra);
    scenario_policy(&sc, &policy_agent_xpu_v2_ops, params);
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

/* Returns the sequences of the decode pass that runs at that instant, or 0 where none does. */
static uint32_t decode_rows_at(double ms)
{
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        bool decode = k->op == OP_LAYER || (k->op == OP_QKV && k->rows < 32);
        if (decode && k->begin_ns <= MS(ms) && MS(ms) < k->end_ns) {
            return k->rows;
        }
    }
    return 0;
}

/* B.2: BE (512 tokens) starts QKV at 0, with chunks 0-4 and 4-8. RT (256) arrives at 1, and the
 * running chunk ends at 4. RT's QKV runs 4-8 on the NPU (m* = 1, since NPU and iGPU both take 4).
 * Its attention runs 8-18, FFN 18-26 and the head 26-27. BE continues at 27 with its second chunk,
 * 27-31. */
static bool preempts_at_the_kernel_boundary(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 512, 1, 0, 0}, {RT, 0.001, 256, 1, 0, 0}};
    run("", extra, q, 2);
    return at(kernel(1, NPU, OP_QKV), 4, 8) && sc.records[1].first_token_ns == MS(27) &&
           at(scenario_kernel_find(&sc, 1, 0, NPU, OP_QKV), 27, 31);
}

/* B.2: an arrival exactly at a kernel boundary (4 ms) preempts there. So RT's QKV runs 4-8. */
static bool preempts_at_a_boundary_it_meets_exactly(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 512, 1, 0, 0}, {RT, 0.004, 256, 1, 0, 0}};
    run("", extra, q, 2);
    return at(kernel(1, NPU, OP_QKV), 4, 8);
}

/* 4.4: reactive tasks do not preempt each other. RT0 runs alone: QKV 0-4, attention 4-14, FFN 14-22
 * and head 22-23. RT1 starts at 23. */
static bool reactive_waits_for_reactive(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{RT, 0, 256, 1, 0, 0}, {RT, 0.001, 256, 1, 0, 0}};
    run("", extra, q, 2);
    return sc.records[0].first_token_ns == MS(23) && sc.records[1].start_ns == MS(23);
}

/* The dual queue: while RT0 prefills, BE1 arrives at 1 and RT2 at 2. RT2 is next at 23, and BE1 at
 * 46. */
static bool reactive_queue_goes_first(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {
        {RT, 0, 256, 1, 0, 0}, {BE, 0.001, 256, 1, 0, 0}, {RT, 0.002, 256, 1, 0, 0}};
    run("", extra, q, 3);
    return sc.records[2].start_ns == MS(23) && sc.records[1].start_ns == MS(46);
}

/* There is one proactive activation buffer. RT1, whose prefill ends at 27, suspends BE0 at 4. BE2
 * waits from 2 on, and starts only after BE0 has ended: second chunk 27-31, attention 31-41, FFN
 * 41-57 and head 57-58. */
static bool suspended_prefill_resumes_before_another_starts(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {
        {BE, 0, 512, 1, 0, 0}, {RT, 0.001, 256, 1, 0, 0}, {BE, 0.002, 256, 1, 0, 0}};
    run("", extra, q, 3);
    return sc.records[0].first_token_ns == MS(58) && sc.records[2].start_ns == MS(58);
}

/* B.4 is tested in two layers here. BE0's prefill is QKV 0-4, MHA -14, FFN -22, QKV -26, MHA -36,
 * FFN -44, head -45. So it decodes from 45 on, in layers of 20 ms. RT1 (256) arrives at 46, and its
 * QKV runs on the NPU 46-50. Its attention is ready at 50, in the decode layer 45-65. So it runs
 * 65-75, before the second layer of the decode. */
static bool prefill_attention_passes_decode_at_its_kernel_boundary(const char *extra)
{
    machine(2, 20);
    struct scenario_request q[] = {{BE, 0, 256, 3, 0, 0}, {RT, 0.046, 256, 1, 0, 0}};
    run("", extra, q, 2);
    return at(kernel(1, IGPU, OP_MHA), 65, 75) && at(kernel(1, NPU, OP_QKV), 46, 50);
}

/* B.5 with idle decode: RT has 512 tokens. m* = 1, since the NPU takes 4 and 256 rows on the iGPU
 * take 4. QKV runs 0-4, attention 4-14, FFN (8 and 8) 14-22 and the head 22-23. On the NPU alone it
 * would take 8 + 10 + 16 + 1 = 35. */
static bool idle_split_balances_npu_and_igpu(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{RT, 0, 512, 1, 0, 0}};
    run("", extra, q, 1);
    return sc.records[0].first_token_ns == MS(23) && kernel(0, IGPU, OP_QKV) != NULL &&
           kernel(0, IGPU, OP_QKV)->rows == 256;
}

/* Algorithm 1 of the public text makes the difference of the two ends least. The iGPU takes 7 and
 * 14 ms a chunk here, and RT has two chunks and 64 rows. For QKV m = 1 ends at 4 and 8.75 ms, 4.75
 * apart. m = 2 ends at 8 and 1.75, 6.25 apart but sooner. FFN is twice that. So it takes 8.75 + 10
 * + 17.5 + 1 instead of 8 + 10 + 16 + 1. */
static bool balanced_split_may_end_later(const char *extra)
{
    double first_token_ms[2];
    for (int i = 0; i < 2; i++) {
        machine(1, 1);
        scenario_cost(&sc, IGPU, OP_QKV, 0, 7.0 / 256, 5);
        scenario_cost(&sc, IGPU, OP_FFN, 0, 14.0 / 256, 5);
        struct scenario_request q[] = {{RT, 0, 576, 1, 0, 0}};
        run(i == 0 ? "split=balance" : "", extra, q, 1);
        first_token_ms[i] = (double)sc.records[0].first_token_ns / 1e6;
        if (i == 0) {
            scenario_fini(&sc);
        }
    }
    return first_token_ms[0] == 37.25 && first_token_ms[1] == 35;
}

/* A prompt of less than a chunk runs on the iGPU: 1.5625 + 10 + 3.125 + 1 ms. */
static bool a_balanced_split_needs_a_chunk(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{RT, 0, 100, 1, 0, 0}};
    run("split=balance", extra, q, 1);
    return sc.records[0].first_token_ns == MS(15.6875);
}

/* Algorithm 1 gives the NPU all chunks while decode is busy. So the iGPU has none of RT1's four,
 * and there is no rest. */
static bool all_chunks_go_to_the_npu_while_decode_is_busy(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 256, 40, 0, 0}, {RT, 0.024, 1024, 1, 0, 0}};
    run("beta=0", extra, q, 2);
    return kernel(1, NPU, OP_QKV) != NULL && kernel(1, IGPU, OP_QKV) == NULL;
}

/* B.5 with busy decode: BE0 decodes from 23 on. RT1 (1024) arrives at 24. Busy decode raises m* = 2
 * of 4 chunks to ceil(0.75 * 4) = 3. The NPU takes 12 ms (24-36), and the iGPU's 256 rows 4 ms. So
 * its share starts no earlier than 24 + 12 - 4 = 32. */
static bool busy_split_keeps_the_igpu_for_decode(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{BE, 0, 256, 40, 0, 0}, {RT, 0.024, 1024, 1, 0, 0}};
    run("", extra, q, 2);
    const struct scenario_kernel *k = kernel(1, IGPU, OP_QKV);
    return k != NULL && k->rows == 256 && k->begin_ns >= MS(32);
}

/* B.5 after busy decode, in two layers. BE0's prefill is QKV 0-4, MHA -14, FFN -22, QKV -26, MHA
 * -36, FFN -44, head -45. It decodes 3 tokens more, of 3 ms each (two layers and a head of 1 ms).
 * So decode ends soon after RT1's first layer began at 46. Layer 0 leaves 256 rows to the iGPU, and
 * layer 1 again 512. */
static bool full_split_returns_when_decode_goes_idle(const char *extra)
{
    machine(2, 1);
    struct scenario_request q[] = {{BE, 0, 256, 4, 0, 0}, {RT, 0.046, 1024, 1, 0, 0}};
    run("", extra, q, 2);
    uint32_t rows[2] = {0, 0};
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        if (k->request == 1 && k->device == IGPU && k->op == OP_QKV) {
            rows[k->layer] = k->rows;
        }
    }
    return rows[0] == 256 && rows[1] == 512;
}

/* B.6: BE1 (512) arrives at 1, while BE0 prefills until 23. Its attention kernel compiles 1-6 and
 * is ready. So BE1 runs on the NPU alone: QKV 23-31, attention 31-37, FFN 37-53 and head 53-54. */
static bool compiled_attention_makes_prefill_pure_npu(const char *extra)
{
    machine(1, 1);
    sc.machine.compile_fixed_ns = MS(5);
    struct scenario_request q[] = {{BE, 0, 256, 1, 0, 0}, {BE, 0.001, 512, 1, 0, 0}};
    run("", extra, q, 2);
    return at(kernel(1, NPU, OP_MHA), 31, 37) && sc.records[1].first_token_ns == MS(54);
}

/* 4.3 (1): BE0's chunk runs until 4, and RT1 (256) arrives at 1. A kernel for RT2 (512) could be
 * ready at 6, and RT2 waits until RT1 has ended, at 27. It is split all the same: QKV 27-31 on
 * both, attention 31-41, FFN 41-49 and head 49-50. On the NPU alone it would have QKV 27-35,
 * attention 35-41, FFN 41-57 and head 57-58. */
static bool reactive_prompt_is_split_however_long_it_waited(const char *extra)
{
    machine(1, 1);
    sc.machine.compile_fixed_ns = MS(5);
    struct scenario_request q[] = {
        {BE, 0, 256, 1, 0, 0}, {RT, 0.001, 256, 1, 0, 0}, {RT, 0.001, 512, 1, 0, 0}};
    run("", extra, q, 3);
    return at(kernel(2, IGPU, OP_QKV), 27, 31) && sc.records[2].first_token_ns == MS(50);
}

/* B.6: a kernel that is not ready when prefill starts is not used. Compiling takes 50 ms, and BE1
 * starts at 23. So its attention runs on the iGPU, and the late compilation is cancelled. */
static bool late_compilation_is_dropped(const char *extra)
{
    machine(1, 1);
    sc.machine.compile_fixed_ns = MS(50);
    struct scenario_request q[] = {{BE, 0, 256, 1, 0, 0}, {BE, 0.001, 512, 1, 0, 0}};
    run("", extra, q, 2);
    return kernel(1, NPU, OP_MHA) == NULL && kernel(1, IGPU, OP_MHA) != NULL &&
           sc.result.counters[COUNTER_COMPILES] - sc.result.counters[COUNTER_COMPILES_CANCELLED] ==
               0;
}

/* B.6, in two layers: RT1 preempts BE0 (512) at 4, and BE0's kernel compiles from 1 on. Its 5 ms
 * end before RT1's prefill does. So when BE0 is resumed, its attention runs on the NPU in both
 * layers. */
static bool resumed_prefill_switches_to_the_npu(const char *extra)
{
    machine(2, 1);
    sc.machine.compile_fixed_ns = MS(5);
    struct scenario_request q[] = {{BE, 0, 512, 1, 0, 0}, {RT, 0.001, 256, 1, 0, 0}};
    run("", extra, q, 2);
    return kernel(0, NPU, OP_MHA) != NULL && kernel(0, IGPU, OP_MHA) == NULL;
}

/* B.6, the contention rule, is tested with every NPU kernel memory-bound (ridge 3 > 2). BE0 decodes
 * from 23 on. RT1 arrives at 30, and its QKV runs on the NPU 30-34. Decode, of the other class,
 * does not overlap with it. */
static bool memory_bound_npu_kernel_holds_decode_of_the_other_class(const char *extra)
{
    machine(1, 1);
    sc.ridge_flop_per_byte = 3.0;
    struct scenario_request q[] = {{BE, 0, 256, 30, 0, 0}, {RT, 0.030, 256, 1, 0, 0}};
    run("", extra, q, 2);
    const struct scenario_kernel *k = kernel(1, NPU, OP_QKV);
    return k != NULL && k->begin_ns == MS(30) && decode_rows_at(31.5) == 0 &&
           decode_rows_at(33.5) == 0;
}

/* Sets a machine for batches. Attention compiles in no time, so a request that waits prefills on
 * the NPU alone: QKV 4, attention 6, FFN 8 and head 1 are 19 ms. It needs no iGPU, so all requests
 * meet in the decode loop under any arbitration. By B.7 RT0 and four BE decode together in a batch
 * of B_rf = 3. */
static void batch_machine(void)
{
    machine(1, 1);
    sc.machine.compile_fixed_ns = 1;
}

static const struct scenario_request five[] = {{RT, 0, 256, 60, 0, 0},
                                               {BE, 0, 256, 60, 0, 0},
                                               {BE, 0, 256, 60, 0, 0},
                                               {BE, 0, 256, 60, 0, 0},
                                               {BE, 0, 256, 60, 0, 0}};

/* Returns the largest decode batch, with `with_first` among those that hold request 0. A reactive
 * request is first in its batch. */
static uint32_t largest_batch(bool with_first)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        if ((!with_first || k->request == 0) && k->op == OP_QKV && k->rows < 32 && k->rows > most) {
            most = k->rows;
        }
    }
    return most;
}

static bool mixed_batch_is_capped(const char *extra)
{
    batch_machine();
    run("", extra, five, 5);
    return largest_batch(true) == 3;
}

/* B.7: a batch of one class has no such cap, so five BE decode together. */
static bool homogeneous_batch_is_not_capped(const char *extra)
{
    batch_machine();
    struct scenario_request q[5];
    memcpy(q, five, sizeof q);
    q[0].cls = BE;
    run("", extra, q, 5);
    return largest_batch(false) == 5;
}

/* B.7, eviction: BE1 (300 tokens, the oldest), BE2 (290) and BE3 (280, the newest) are all in
 * bucket 1 (256..511) while they decode with RT0. One must leave. The newest is evicted first, so
 * BE3 starts to decode last. With buckets of one token it would be the longest, BE1. */
static bool inside_a_bucket_the_newest_is_evicted(const char *extra)
{
    machine(1, 1);
    struct scenario_request q[] = {{RT, 0, 256, 100, 0, 0},
                                   {BE, 0.0001, 300, 30, 0, 0},
                                   {BE, 0.0002, 290, 30, 0, 0},
                                   {BE, 0.0003, 280, 30, 0, 0}};
    run("", extra, q, 4);
    return sc.records[1].finish_ns < sc.records[3].finish_ns &&
           sc.records[2].finish_ns < sc.records[3].finish_ns &&
           sc.records[1].token_ns[20] - sc.records[1].token_ns[19] < MS(30);
}

/* B.7: the request of the longer bucket is evicted first, although it arrived first. BE1 has 600
 * tokens, and BE2 and BE3 have 256. */
static bool longer_bucket_is_evicted_first(const char *extra)
{
    batch_machine();
    struct scenario_request q[] = {{RT, 0, 256, 300, 0, 0},
                                   {BE, 0.0001, 600, 20, 0, 0},
                                   {BE, 0.0002, 256, 40, 0, 0},
                                   {BE, 0.0003, 256, 40, 0, 0}};
    run("", extra, q, 4);
    return sc.records[2].finish_ns < sc.records[1].finish_ns &&
           sc.records[3].finish_ns < sc.records[1].finish_ns;
}

/* Algorithm 2 as printed: BE1, the longest, stays, and one of the others waits. They have as many
 * tokens to produce as BE1. */
static bool printed_order_keeps_the_longest(const char *extra)
{
    batch_machine();
    struct scenario_request q[] = {{RT, 0, 256, 300, 0, 0},
                                   {BE, 0.0001, 600, 40, 0, 0},
                                   {BE, 0.0002, 256, 40, 0, 0},
                                   {BE, 0.0003, 256, 40, 0, 0}};
    run("piggyback=long", extra, q, 4);
    return sc.records[1].finish_ns < sc.records[3].finish_ns;
}

/* "Newly arrived" means newly in the batch. RT0 decodes all the time with two of BE1 (512 tokens),
 * BE2 (480) and BE3 (256). When all three decode BE1, in the longest bucket, is evicted.
 *
 * With its 32nd token BE2 reaches that bucket. It survives, and BE1 is the newcomer, though it is
 * the older request. So BE2 gets a token in every iteration (11 ms and a fraction a row) to its
 * end. By the age of requests the two would change places. */
static bool survivor_stays_before_an_older_newcomer(const char *extra)
{
    batch_machine();
    struct scenario_request q[] = {{RT, 0, 256, 300, 0, 0},
                                   {BE, 0.0001, 512, 200, 0, 0},
                                   {BE, 0.0002, 480, 60, 0, 0},
                                   {BE, 0.0003, 256, 200, 0, 0}};
    run("", extra, q, 4);
    for (uint32_t i = 25; i < 60; i++) {
        if (sc.records[2].token_ns[i] - sc.records[2].token_ns[i - 1] > MS(12)) {
            return false;
        }
    }
    return sc.records[1].token_ns[40] > sc.records[2].finish_ns;
}

/* B.3: a layer is one fused kernel in a batch of 1, and three kernels in a batch of 2. */
static bool a_batch_of_one_runs_fused_layers(const char *extra)
{
    batch_machine();
    struct scenario_request q[] = {
        {RT, 0, 256, 5, 0, 0}, {BE, 0.5, 256, 30, 0, 0}, {BE, 0.5, 256, 30, 0, 0}};
    run("", extra, q, 3);
    bool pair = false;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        pair = pair || (sc.kernels[i].op == OP_QKV && sc.kernels[i].rows == 2);
    }
    return kernel(0, IGPU, OP_LAYER) != NULL && pair;
}

/* B.8 (i): BE1 waits behind a long reactive prefill, with a T_age of 5 ms. At 6 ms it is aged, and
 * prefills on the iGPU while RT0 keeps the NPU. RT0 has 8 chunks and a margin of 10 rows, which is
 * padded into an NPU chunk from then on. */
static bool aged_proactive_prefill_gets_the_igpu(const char *extra)
{
    machine(2, 1);
    struct scenario_request q[] = {{RT, 0, 2058, 1, 0, 0}, {BE, 0.001, 256, 1, 0, 0}};
    run("t_age_s=0.005", extra, q, 2);
    const struct scenario_kernel *k = kernel(1, -1, OP_QKV);
    return k != NULL && k->device == IGPU && k->begin_ns < sc.records[0].first_token_ns;
}

/* Rule 4.4 is tested in two layers here. RT0 (768, m* = 2 of 3) has QKV 0-8, MHA 8-18, and FFN on
 * the NPU 18-34 and on the iGPU 18-26. BE1 (2048) is aged at 27.5 and takes the idle iGPU: eight
 * chunks of 4 ms, until 31.5, 35.5 and so on. RT0's next QKV keeps to the NPU, 34-46. Its attention
 * waits for the running chunk, until 47.5. A single kernel of 2048 rows would have the iGPU until
 * 59.5. */
static bool aged_prefill_runs_in_chunks(const char *extra)
{
    machine(2, 1);
    struct scenario_request q[] = {{RT, 0, 768, 1, 0, 0}, {BE, 0.001, 2048, 1, 0, 0}};
    run("t_age_s=0.0265", extra, q, 2);
    const struct scenario_kernel *first = kernel(0, IGPU, OP_MHA);
    return at(first, 8, 18) &&
           at(scenario_kernel_find(&sc, (uint32_t)(first - sc.kernels) + 1, 0, IGPU, OP_MHA), 47.5,
              57.5);
}

/* B.8 (ii): aged BE join above B_rf. All five prefill within 23 + 4 * 19 = 99 ms, and then decode.
 * With a T_age of 150 ms the four BE are aged soon after. */
static bool aged_requests_bypass_the_cap(const char *extra)
{
    batch_machine();
    run("t_age_s=0.15,aged_max=0", extra, five, 5);
    return largest_batch(true) == 5;
}

/* Three reactive sequences fill B_rf and decode to the end. Two proactive ones are both above
 * T_age. The older is promoted and joins above B_rf, and the other one when that has left: never
 * both. */
static bool one_aged_request_at_a_time_bypasses_the_cap(const char *extra)
{
    batch_machine();
    struct scenario_request q[] = {{RT, 0, 256, 300, 0, 0},
                                   {RT, 0, 256, 300, 0, 0},
                                   {RT, 0, 256, 300, 0, 0},
                                   {BE, 0, 256, 20, 0, 0},
                                   {BE, 0, 256, 20, 0, 0}};
    run("t_age_s=0.15", extra, q, 5);
    return largest_batch(false) == 4 && sc.records[3].finish_ns < sc.records[4].token_ns[1] &&
           sc.records[4].finish_ns < sc.records[0].finish_ns;
}

/* ---- the matrix ---- */

struct row {
    const char *name;
    bool (*holds)(const char *extra);
    const char *breaks; /* switches that make it fail, separated by spaces */
};

static const struct row rows[] = {
#define ROW(f, b)                                                                                  \
    {                                                                                              \
#f, f, b                                                                                   \
    }
    ROW(preempts_at_the_kernel_boundary, "preempt=none suspended=0"),
    ROW(preempts_at_a_boundary_it_meets_exactly, "preempt=none suspended=0"),
    ROW(reactive_waits_for_reactive, ""),
    ROW(reactive_queue_goes_first, ""),
    ROW(suspended_prefill_resumes_before_another_starts, "preempt=none suspended=0"),
    ROW(prefill_attention_passes_decode_at_its_kernel_boundary,
        "prefill_first=false yield=iteration"),
    ROW(idle_split_balances_npu_and_igpu, "elastic=off"),
    ROW(balanced_split_may_end_later, "elastic=off"),
    ROW(a_balanced_split_needs_a_chunk, ""),
    ROW(all_chunks_go_to_the_npu_while_decode_is_busy, "elastic=static"),
    ROW(busy_split_keeps_the_igpu_for_decode, "elastic=off elastic=static"),
    ROW(full_split_returns_when_decode_goes_idle, "elastic=off elastic=static"),
    ROW(compiled_attention_makes_prefill_pure_npu, "warmup=false"),
    ROW(reactive_prompt_is_split_however_long_it_waited,
        "elastic=off warm_reactive=true preempt=none suspended=0"),
    ROW(late_compilation_is_dropped, ""),
    ROW(resumed_prefill_switches_to_the_npu, "warmup=false preempt=none suspended=0"),
    ROW(memory_bound_npu_kernel_holds_decode_of_the_other_class, "memory_rule=off"),
    ROW(mixed_batch_is_capped, "b_rf=0"),
    ROW(homogeneous_batch_is_not_capped, ""),
    ROW(inside_a_bucket_the_newest_is_evicted, "length_bucket=1"),
    ROW(longer_bucket_is_evicted_first, "b_rf=0"),
    ROW(printed_order_keeps_the_longest, ""),
    ROW(survivor_stays_before_an_older_newcomer, "b_rf=0 length_bucket=1"),
    ROW(a_batch_of_one_runs_fused_layers, ""),
    ROW(aged_proactive_prefill_gets_the_igpu, "ageing=false"),
    ROW(aged_prefill_runs_in_chunks, "elastic=off ageing=false aged_chunks=false"),
    ROW(aged_requests_bypass_the_cap, "ageing=false"),
    ROW(one_aged_request_at_a_time_bypasses_the_cap, "ageing=false b_rf=0 prefill_first=false"),
#undef ROW
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static const char *const switches[] = {
    "prefill_first=false", "yield=iteration", "elastic=off",  "elastic=static",
    "warmup=false",        "memory_rule=off", "b_rf=0",       "length_bucket=1",
    "preempt=none",        "suspended=0",     "ageing=false", "aged_chunks=false",
    "warm_reactive=true"};

static bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = strstr(list, word); p != NULL; p = strstr(p + 1, word)) {
        if ((p == list || p[-1] == ' ') && (p[n] == '\0' || p[n] == ' ')) {
            return true;
        }
    }
    return false;
}

START_TEST(scenario_holds)
{
    ck_assert_msg(rows[_i].holds(""), "%s", rows[_i].name);
    scenario_fini(&sc);
}
END_TEST

START_TEST(disabling_a_clause_fails_exactly_its_scenarios)
{
    for (size_t s = 0; s < sizeof switches / sizeof switches[0]; s++) {
        bool holds = rows[_i].holds(switches[s]);
        scenario_fini(&sc);
        ck_assert_msg(holds == !listed(rows[_i].breaks, switches[s]), "%s with %s %s",
                      rows[_i].name, switches[s], holds ? "still holds" : "fails");
    }
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(scenario_holds, N_ROWS),
    LOOP(disabling_a_clause_fails_exactly_its_scenarios, N_ROWS),
};
SUITE_MAIN("agent-xpu-v2", suite)
