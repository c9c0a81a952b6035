/* llm-npu by hand (clauses.md E.18). Toy times: a chunk of 256 rows takes 4 ms for QKV and 8 for
 * FFN on the NPU; on the CPU attention takes 10, the head 1, a decode layer 1, and a row 0.1 ms of
 * QKV and 0.2 of FFN. */
#include "policies/registry.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

static struct scenario sc;

static void run(const char *params, const struct scenario_request *q, uint32_t n)
{
    scenario_init(&sc);
    scenario_cost(&sc, NPU, OP_QKV, 4, 0, 5);
    scenario_cost(&sc, NPU, OP_FFN, 8, 0, 5);
    scenario_cost(&sc, CPU, OP_QKV, 0, 0.1, 5);
    scenario_cost(&sc, CPU, OP_FFN, 0, 0.2, 5);
    scenario_cost(&sc, CPU, OP_MHA, 10, 0, 5);
    scenario_cost(&sc, CPU, OP_HEAD, 1, 0, 5);
    scenario_cost(&sc, CPU, OP_LAYER, 1, 0, 5);
    scenario_policy(&sc, policy_find("llm-npu"), params);
    scenario_check(&sc, q, n);
}

/* QKV 0-4, attention 4-14, FFN 14-22, head 22-23; then a decode is a layer and the head, 2 ms. */
START_TEST(a_prompt_alternates_between_npu_and_cpu)
{
    struct scenario_request q[] = {{RT, 0, 256, 3, 0, 0}};
    run("outlier_frac=0", q, 1);
    scenario_tokens_at(&sc, 0, 3, (double[]){23, 25, 27});
    ck_assert_ptr_nonnull(scenario_kernel_find(&sc, 0, 0, NPU, OP_QKV));
    ck_assert_ptr_null(scenario_kernel_find(&sc, 0, 0, CPU, OP_QKV));
    ck_assert_ptr_nonnull(scenario_kernel_find(&sc, 0, 0, CPU, OP_MHA));
}
END_TEST

/* 300 tokens are two chunks: QKV 0-8, attention 8-18, FFN 18-34, head 34-35. */
START_TEST(the_last_chunk_is_padded)
{
    struct scenario_request q[] = {{RT, 0, 300, 1, 0, 0}};
    run("outlier_frac=0", q, 1);
    scenario_tokens_at(&sc, 0, 1, (double[]){35});
}
END_TEST

/* A quarter of 256 rows is the CPU's: 6.4 ms for QKV and 12.8 for FFN, longer than the NPU's 4 and
 * 8: 6.4 + 10 + 12.8 + 1. */
START_TEST(outliers_run_on_the_cpu_at_the_same_time)
{
    struct scenario_request q[] = {{RT, 0, 256, 1, 0, 0}};
    run("outlier_frac=0.25", q, 1);
    scenario_tokens_at(&sc, 0, 1, (double[]){30.2});
    const struct scenario_kernel *npu = scenario_kernel_find(&sc, 0, 0, NPU, OP_QKV);
    const struct scenario_kernel *cpu = scenario_kernel_find(&sc, 0, 0, CPU, OP_QKV);
    ck_assert(npu != NULL && cpu != NULL && npu->begin_ns == 0 && cpu->begin_ns == 0);
    ck_assert_uint_eq(cpu->rows, 64);
}
END_TEST

/* The second prompt's QKV runs 4-8, while the CPU has the first one's attention, 4-14. Then the
 * first's FFN, 14-22, beside the second's attention, 14-24; the head waits for the CPU, 24-25; the
 * second's FFN 24-32, head 32-33. One after the other: 23 and 46. */
START_TEST(subgraphs_of_two_prompts_run_out_of_order)
{
    struct scenario_request q[] = {{RT, 0, 256, 1, 0, 0}, {RT, 0, 256, 1, 0, 0}};
    run("outlier_frac=0", q, 2);
    scenario_tokens_at(&sc, 0, 1, (double[]){25});
    scenario_tokens_at(&sc, 1, 1, (double[]){33});
    scenario_fini(&sc);
    run("outlier_frac=0,in_progress=1", q, 2);
    scenario_tokens_at(&sc, 0, 1, (double[]){23});
    scenario_tokens_at(&sc, 1, 1, (double[]){46});
}
END_TEST

/* At 22 request 0's head is due on the CPU; 1 (512 tokens: QKV 4-12) and 2 (256: 12-16) wait with
 * their attention from 12 and 16 on. At 14 only 1's is ready: 14-24. At 24 comes 2's attention
 * before 0's head, since the NPU waits for it: 24-34. */
START_TEST(the_cpu_takes_what_makes_work_for_the_npu)
{
    struct scenario_request q[] = {
        {RT, 0, 256, 1, 0, 0}, {RT, 0, 512, 1, 0, 0}, {RT, 0, 256, 1, 0, 0}};
    run("outlier_frac=0,in_progress=3", q, 3);
    const struct scenario_kernel *k = scenario_kernel_find(&sc, 0, 2, CPU, OP_MHA);
    ck_assert(k != NULL && k->begin_ns == MS(24));
    scenario_tokens_at(&sc, 0, 1, (double[]){35});
}
END_TEST

/* 1 (1,024 tokens) has the NPU for its QKV 4-20. Request 0's FFN waits for it since 14, and the QKV
 * of 2, come at 10: attention follows on the CPU, so the QKV goes first, 20-24, and the FFN then.
 */
START_TEST(the_npu_takes_a_qkv_first)
{
    struct scenario_request q[] = {
        {RT, 0, 256, 1, 0, 0}, {RT, 0, 1024, 1, 0, 0}, {RT, 0.01, 256, 1, 0, 0}};
    run("outlier_frac=0,in_progress=3", q, 3);
    const struct scenario_kernel *qkv = scenario_kernel_find(&sc, 0, 2, NPU, OP_QKV);
    const struct scenario_kernel *ffn = scenario_kernel_find(&sc, 0, 0, NPU, OP_FFN);
    ck_assert(qkv != NULL && qkv->begin_ns == MS(20));
    ck_assert(ffn != NULL && ffn->begin_ns == MS(24));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("llm-npu", .timeout_s = 30),
    TEST(a_prompt_alternates_between_npu_and_cpu),
    TEST(the_last_chunk_is_padded),
    TEST(outliers_run_on_the_cpu_at_the_same_time),
    TEST(subgraphs_of_two_prompts_run_out_of_order),
    TEST(the_npu_takes_a_qkv_first),
    TEST(the_cpu_takes_what_makes_work_for_the_npu),
};
SUITE_MAIN("llm_npu", suite)
