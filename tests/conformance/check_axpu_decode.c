/* The decode loop of agent-xpu-v2 and the prefills next to it (clauses.md B.2, B.3, B.4, B.6, B.7),
 * to the nanosecond. elastic=off throughout, so prompts of whole chunks use the iGPU for attention
 * and head only. One layer takes these ms:
 *
 *   NPU    QKV 4, FFN 8, attention 6 and head 1, a chunk of 256 rows
 *   iGPU   QKV 1, attention 3, FFN 2, head 1, a fused decode layer 5
 *
 * So a prompt of 256 takes 4 + 3 + 8 + 1 = 16, and with compiled attention 4 + 6 + 8 + 1 = 19 on
 * the NPU alone. A decode step takes 5 + 1 = 6 for one sequence, and 1 + 3 + 2 + 1 = 7 for
 * several. */
#include <string.h>

#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

extern const struct policy_ops policy_agent_xpu_v2_ops;

static struct scenario sc;

static void setup(void)
{
    scenario_init(&sc);
    scenario_cost(&sc, NPU, OP_QKV, 4, 0, 5);
    scenario_cost(&sc, NPU, OP_FFN, 8, 0, 5);
    scenario_cost(&sc, NPU, OP_MHA, 6, 0, 5);
    scenario_cost(&sc, NPU, OP_HEAD, 1, 0, 5);
    scenario_cost(&sc, IGPU, OP_QKV, 1, 0, 5);
    scenario_cost(&sc, IGPU, OP_FFN, 2, 0, 5);
    scenario_cost(&sc, IGPU, OP_MHA, 3, 0, 5);
    scenario_cost(&sc, IGPU, OP_HEAD, 1, 0, 5);
    scenario_cost(&sc, IGPU, OP_LAYER, 5, 0, 5);
}

static void teardown(void)
{
    scenario_fini(&sc);
}

static void run(const char *params, const struct scenario_request *q, uint32_t n)
{
    char all[256];
    (void)snprintf(all, sizeof all, "elastic=off%s%s", params[0] == '\0' ? "" : ",", params);
    scenario_policy(&sc, &policy_agent_xpu_v2_ops, all);
    scenario_check(&sc, q, n);
}

/* The first n tokens of the request must come at these instants. */
static void tokens_at(uint32_t request, uint32_t n, const double *ms)
{
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_gt(sc.records[request].tokens_n, i);
        ck_assert_msg(sc.records[request].token_ns[i] == MS(ms[i]),
                      "request %u token %u at %.6f ms, not %.3f", request, i,
                      units_ms_from_ns(sc.records[request].token_ns[i]), ms[i]);
    }
}

static void runs(uint32_t request, int device, enum op_kind op, double begin_ms, double end_ms)
{
    const struct scenario_kernel *k = scenario_kernel_find(&sc, 0, request, device, op);
    ck_assert_msg(k != NULL, "request %u: no such kernel", request);
    ck_assert_msg(k->begin_ns == MS(begin_ms) && k->end_ns == MS(end_ms),
                  "request %u op %d runs %.6f..%.6f ms, not %.3f..%.3f", request, (int)op,
                  units_ms_from_ns(k->begin_ns), units_ms_from_ns(k->end_ns), begin_ms, end_ms);
}

/* ---- B.3, B.4 ---- */

static const struct scenario_request join[] = {{RT, 0, 256, 7, 0, 0}, {RT, 0.017, 256, 3, 0, 0}};

/* RT0 prefills 0-16 and decodes: layer 16-21. RT1 comes at 17 and has QKV 17-21. At 21 its
 * attention is before RT0's head: 21-24. The head runs 24-25: RT0's token 2. RT1's FFN runs 24-32
 * on the NPU, and meanwhile RT0 has token 3 at 31 and its next layer 31-36. RT1's head is ready at
 * 32, and runs at the end of that kernel, 36-37: its first token. RT0's iteration ends with its
 * head, 37-38: token 4. Only then RT1 joins. Both get tokens at 45 and 52, where RT1 ends, and RT0
 * alone ends at 58. */
START_TEST(a_new_sequence_joins_at_the_iteration_boundary)
{
    run("", join, 2);
    tokens_at(0, 7, (double[]){16, 25, 31, 38, 45, 52, 58});
    tokens_at(1, 3, (double[]){37, 45, 52});
}
END_TEST

/* With yield=iteration RT1's attention, ready at 21, waits for the end of the step at 22: 22-25.
 * RT0's next step runs 25-31, and RT1's FFN 25-33. The next step runs 31-37, and then RT1's head,
 * 37-38. Both have tokens at 45. */
START_TEST(decode_that_yields_by_iteration_makes_prefill_wait_for_the_step)
{
    run("yield=iteration", join, 2);
    tokens_at(0, 5, (double[]){16, 22, 31, 37, 45});
    tokens_at(1, 2, (double[]){38, 45});
}
END_TEST

/* With prefill_first=false decode is never idle until RT0 has its 7 tokens: 16 + 6 * 6 = 52. Then
 * RT1's attention runs 52-55, FFN 55-63 and the head 63-64. */
START_TEST(without_prefill_first_decode_keeps_the_igpu)
{
    run("prefill_first=false", join, 2);
    tokens_at(0, 7, (double[]){16, 22, 28, 34, 40, 46, 52});
    tokens_at(1, 3, (double[]){64, 70, 76});
}
END_TEST

/* A proactive prefill is before reactive decode too: RT1 has the same instants as a proactive
 * request. */
START_TEST(proactive_prefill_passes_reactive_decode)
{
    struct scenario_request q[2];
    memcpy(q, join, sizeof q);
    q[1].cls = BE;
    run("", q, 2);
    tokens_at(0, 7, (double[]){16, 25, 31, 38, 45, 52, 58});
    tokens_at(1, 3, (double[]){37, 45, 52});
}
END_TEST

/* ---- B.7 ---- */

/* With warm_reactive=true all meet in the decode loop. RT0 prefills 0-16 on NPU and iGPU. Meanwhile
 * attention is compiled for 256 tokens, so the others prefill on the NPU alone, 19 ms each: RT1 35,
 * RT2 54, RT3 73, BE4 92.
 *
 * Decode has the iGPU. RT0 alone has tokens at 16 + 6 = 22, 28, 34 and 40 (RT1 came at 35). With
 * others a step takes 7 ms: 47, 54, 61, 68, 75, 82, 89, 96, 103 and so on. At 96 the candidates are
 * four RT and BE4, more than B_rf = 3. So BE4 waits, and no RT ever does.
 *
 * RT1 (11 tokens: 35, 47, ... 110) leaves at 110. RT0 (20 tokens) has token 5 at 40 and token 20
 * at 40 + 15 * 7 = 145. From then on RT2, RT3 and BE4 are three, and BE4's second token comes at
 * 152. */
static const struct scenario_request crowd[] = {{RT, 0, 256, 20, 0, 0},
                                                {RT, 0, 256, 11, 0, 0},
                                                {RT, 0, 256, 60, 0, 0},
                                                {RT, 0, 256, 60, 0, 0},
                                                {BE, 0, 256, 10, 0, 0}};

START_TEST(reactive_sequences_are_never_evicted_and_the_evicted_return)
{
    sc.machine.compile_fixed_ns = 1;
    run("warm_reactive=true", crowd, 5);
    tokens_at(0, 6, (double[]){16, 22, 28, 34, 40, 47});
    tokens_at(1, 2, (double[]){35, 47});
    tokens_at(2, 2, (double[]){54, 61});
    tokens_at(3, 2, (double[]){73, 82});
    ck_assert_int_eq(sc.records[1].finish_ns, MS(110));
    ck_assert_int_eq(sc.records[0].finish_ns, MS(145));
    tokens_at(4, 3, (double[]){92, 152, 159});
    for (uint32_t r = 2; r < 4; r++) { /* a step is 7 ms, also where a request waits */
        for (uint32_t i = 2; i < 20; i++) {
            ck_assert_int_eq(sc.records[r].token_ns[i] - sc.records[r].token_ns[i - 1], MS(7));
        }
    }
}
END_TEST

/* With b_rf=0 and b_rf=5 BE4 joins at the first boundary after 92, and has a token at 103. */
START_TEST(without_the_cap_proactive_sequences_join_at_once)
{
    sc.machine.compile_fixed_ns = 1;
    run("warm_reactive=true,b_rf=0", crowd, 5);
    tokens_at(4, 3, (double[]){92, 103, 110});
    teardown();
    setup();
    sc.machine.compile_fixed_ns = 1;
    run("warm_reactive=true,b_rf=5", crowd, 5);
    tokens_at(4, 3, (double[]){92, 103, 110});
}
END_TEST

/* B.8 (ii): BE4 is aged at 100 ms, and joins above the cap at the next boundary, 103: 110. */
START_TEST(an_aged_sequence_joins_above_the_cap)
{
    sc.machine.compile_fixed_ns = 1;
    run("warm_reactive=true,t_age_s=0.1", crowd, 5);
    tokens_at(4, 3, (double[]){92, 110, 117});
}
END_TEST

/* ---- B.6: the memory rule, every kernel memory-bound (ridge 3 > 2) ---- */

/* The first request decodes from 16 on: layer 16-21. The second arrives at 17. It is of the same
 * class, so its QKV runs at once. */
START_TEST(memory_bound_kernels_of_one_class_overlap)
{
    static const enum request_class cls[] = {RT, BE};
    for (int c = 0; c < 2; c++) {
        setup();
        sc.ridge_flop_per_byte = 3.0;
        struct scenario_request q[] = {{cls[c], 0, 256, 7, 0, 0}, {cls[c], 0.017, 256, 3, 0, 0}};
        run("", q, 2);
        runs(1, NPU, OP_QKV, 17, 21);
        tokens_at(0, 4, (double[]){16, 25, 31, 38});
        teardown();
    }
}
END_TEST

/* RT decodes and BE prefills. BE's QKV waits for the last of RT's six steps of 6 ms, at 52, and not
 * only for the running one, until 22. With t_age_s=0.02 it starts at 37. */
START_TEST(a_memory_bound_proactive_kernel_waits_for_reactive_decode)
{
    static const struct scenario_request q[] = {{RT, 0, 256, 7, 0, 0}, {BE, 0.017, 256, 3, 0, 0}};
    sc.ridge_flop_per_byte = 3.0;
    run("", q, 2);
    runs(1, NPU, OP_QKV, 52, 56);
    teardown();
    setup();
    sc.ridge_flop_per_byte = 3.0;
    run("t_age_s=0.02", q, 2);
    runs(1, NPU, OP_QKV, 37, 41);
    teardown();
    setup();
    sc.ridge_flop_per_byte = 3.0;
    run("memory_rule=off", q, 2);
    runs(1, NPU, OP_QKV, 17, 21);
}
END_TEST

static void (*toy_kernel)(const struct hwmodel *, const struct kernel_query *,
                          struct kernel_cost *);

/* Attention has half a flop per byte, below the ridge of 1, and every other kernel has 2. */
static void memory_bound_attention(const struct hwmodel *m, const struct kernel_query *q,
                                   struct kernel_cost *out)
{
    toy_kernel(m, q, out);
    out->flop = out->bytes * (q->op == OP_MHA ? 0.5 : 2.0);
}

/* RT0 prefills 0-16 and decodes six steps of 6 ms, to 52. BE1 (256) arrives at 1, and its attention
 * is compiled at 6. Its QKV runs 16-20 on the NPU. Its attention there is memory-bound. By the rule
 * of the run it is at once, 20-26, or waits for RT0's end, 52-58, or moves to the iGPU when RT0's
 * layer ends at 21: 21-24. */
START_TEST(compiled_attention_overlaps_waits_or_moves_beside_reactive_decode)
{
    static const struct {
        const char *rule;
        int device;
        double begin_ms, end_ms;
    } cases[] = {
        {"memory_rule=off", NPU, 20, 26}, {"memory_rule=defer", NPU, 52, 58}, {"", IGPU, 21, 24}};
    static const struct scenario_request q[] = {{RT, 0, 256, 7, 0, 0}, {BE, 0.001, 256, 1, 0, 0}};
    for (int i = 0; i < 3; i++) {
        setup();
        sc.machine.compile_fixed_ns = MS(5);
        toy_kernel = sc.model.ops->kernel;
        struct hwmodel_ops ops = *sc.model.ops;
        ops.kernel = memory_bound_attention;
        sc.model.ops = &ops;
        run(cases[i].rule, q, 2);
        runs(1, cases[i].device, OP_MHA, cases[i].begin_ms, cases[i].end_ms);
        teardown();
    }
}
END_TEST

/* BE decodes, and RT prefills at 17. The running decode kernel (16-21) is not interrupted. BE's
 * head (1 ms) could start at 21, but RT's attention does: 21-24. Then the head would be next to
 * RT's FFN (24-32), so it waits until 32, and until RT's own head has run: 33-34. */
START_TEST(proactive_decode_waits_for_a_memory_bound_reactive_kernel)
{
    static const struct scenario_request q[] = {{BE, 0, 256, 7, 0, 0}, {RT, 0.017, 256, 1, 0, 0}};
    sc.ridge_flop_per_byte = 3.0;
    run("", q, 2);
    runs(1, NPU, OP_QKV, 17, 21);
    runs(1, NPU, OP_FFN, 24, 32);
    tokens_at(1, 1, (double[]){33});
    tokens_at(0, 3, (double[]){16, 34, 40});
}
END_TEST

/* ---- B.2: where a prefill can be stopped ---- */

/* There are two layers. BE0 (512) has QKV 0-4-8, MHA 8-11, FFN 11-19-27 and QKV 27-31-35. RT1
 * arrives at 1. */
START_TEST(preemption_waits_for_the_kernel_the_layer_or_the_prefill)
{
    static const struct scenario_request q[] = {{BE, 0, 512, 1, 0, 0}, {RT, 0.001, 256, 1, 0, 0}};
    /* RT alone has QKV 4, MHA 3 and FFN 8, twice, and the head 1: 31 ms. BE alone takes 27 + 27 + 1
     * = 55. */
    static const struct {
        const char *how;
        double start_ms, rt_ms, be_ms;
    } cases[] = {{"", 4, 35, 86}, {"preempt=layer", 27, 58, 86}, {"preempt=none", 55, 86, 55}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setup();
        sc.llm.n_layers = 2;
        run(cases[i].how, q, 2);
        ck_assert_int_eq(sc.records[1].start_ns, MS(cases[i].start_ms));
        tokens_at(1, 1, &cases[i].rt_ms);
        tokens_at(0, 1, &cases[i].be_ms);
        teardown();
    }
}
END_TEST

/* ---- B.6: the compiler and its cache ---- */

/* With warm_reactive BE1 (512) and RT2 (768) arrive at 1, while RT0 prefills (0-16). RT2's length
 * is another one, so it has a kernel of its own. A compilation takes 10 ms. RT2's is first, 1-11,
 * and RT2 runs on the NPU alone from 16 on: attention 16 + 3 * 4 = 28-34. BE1's is ready at 21. */
START_TEST(reactive_prompts_are_compiled_first)
{
    static const struct scenario_request q[] = {
        {RT, 0, 256, 1, 0, 0}, {BE, 0.001, 512, 1, 0, 0}, {RT, 0.001, 768, 1, 0, 0}};
    sc.machine.compile_fixed_ns = MS(10);
    run("warm_reactive=true", q, 3);
    runs(2, NPU, OP_MHA, 28, 34);
    ck_assert_uint_eq(sc.result.counters[COUNTER_COMPILES], 2);
}
END_TEST

/* BE1 (512) waits behind BE0, so its kernel is compiled and used. A second later two equal prompts
 * come. The kernel is still there, unless kernels unused for half a second are evicted. */
START_TEST(compiled_kernels_are_kept_until_they_expire)
{
    static const struct scenario_request q[] = {{BE, 0, 256, 1, 0, 0},
                                                {BE, 0.001, 512, 1, 0, 0},
                                                {BE, 1, 256, 1, 0, 0},
                                                {BE, 1.001, 512, 1, 0, 0}};
    sc.machine.compile_fixed_ns = MS(5);
    run("", q, 4);
    ck_assert_uint_eq(sc.result.counters[COUNTER_COMPILES], 1);
    runs(3, NPU, OP_MHA, 1024, 1030); /* BE2 1000-1016, QKV of two chunks until 1024 */
    teardown();
    setup();
    sc.machine.compile_fixed_ns = MS(5);
    run("cache_ttl_s=0.5", q, 4);
    ck_assert_uint_eq(sc.result.counters[COUNTER_COMPILES], 2);
}
END_TEST

START_TEST(reactive_sequences_that_hold_all_memory_let_the_oldest_go_on)
{
    /* Prompts of 256 (16 blocks) have 40 output tokens, so at their end 256 + 39 tokens need 19
     * blocks each. 34 blocks hold both prompts and one more block each, so both cannot finish
     * together. The newest gives up its KV, and the oldest finishes, and then the other. */
    static const struct scenario_request two[] = {{RT, 0, 256, 40, 0, 0},
                                                  {RT, 0.001, 256, 40, 0, 0}};
    sc.setup.kv_capacity_tokens = 34 * 16;
    run("", two, 2);
    ck_assert_uint_eq(sc.records[0].generated, 40);
    ck_assert_uint_eq(sc.records[1].generated, 40);
    ck_assert_uint_eq(sc.records[0].preemptions, 0);
    ck_assert_uint_ge(sc.records[1].preemptions, 1);
    ck_assert_int_lt(sc.records[0].finish_ns, sc.records[1].finish_ns);
}
END_TEST

/* There are two layers. RT0 has its token at 31 (4 + 3 + 8 ms a layer, and the head) and decodes.
 * RT1's QKV runs on the NPU 31-35, and its attention 36-39, between the two layers of RT0's
 * iteration. BE2 is aged at 34 and wants the iGPU. With a guard the iteration continues first:
 * layer 39-44, head 44-45. */
START_TEST(a_stopped_iteration_of_reactive_requests_goes_on_before_a_guarded_prefill)
{
    static const struct scenario_request q[] = {
        {RT, 0, 256, 2, 0, 0}, {RT, 0.001, 256, 1, 0, 0}, {BE, 0.002, 200, 1, 0, 0}};
    sc.llm.n_layers = 2;
    run("guard=true,t_age_s=0.032", q, 3);
    tokens_at(0, 2, (double[]){31, 45});
    runs(1, IGPU, OP_MHA, 36, 39);
    runs(2, IGPU, OP_QKV, 45, 46);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(a_new_sequence_joins_at_the_iteration_boundary),
    TEST(decode_that_yields_by_iteration_makes_prefill_wait_for_the_step),
    TEST(without_prefill_first_decode_keeps_the_igpu),
    TEST(proactive_prefill_passes_reactive_decode),
    TEST(reactive_sequences_are_never_evicted_and_the_evicted_return),
    TEST(without_the_cap_proactive_sequences_join_at_once),
    TEST(an_aged_sequence_joins_above_the_cap),
    TEST(memory_bound_kernels_of_one_class_overlap),
    TEST(a_memory_bound_proactive_kernel_waits_for_reactive_decode),
    TEST(compiled_attention_overlaps_waits_or_moves_beside_reactive_decode),
    TEST(proactive_decode_waits_for_a_memory_bound_reactive_kernel),
    TEST(preemption_waits_for_the_kernel_the_layer_or_the_prefill),
    TEST(reactive_prompts_are_compiled_first),
    TEST(compiled_kernels_are_kept_until_they_expire),
    TEST(a_stopped_iteration_of_reactive_requests_goes_on_before_a_guarded_prefill),
    TEST(reactive_sequences_that_hold_all_memory_let_the_oldest_go_on),
};
SUITE_MAIN("agent-xpu-v2 decode", suite)
