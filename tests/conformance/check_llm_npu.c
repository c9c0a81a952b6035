/* llm-npu is computed by hand (clauses.md E.18). On the NPU a chunk of 256 rows takes 4 ms for QKV
 * and 8 for FFN. On the CPU attention takes 10, the head 1 and a decode layer 1. A row takes 0.1 ms
 * of QKV and 0.2 of FFN there. */
#include "policies/registry.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

static struct scenario sc;

static uint32_t lost[2];

static void on_lost(void *self UNUSED, int64_t now_ns UNUSED, const struct request *r,
                    uint64_t tokens UNUSED)
{
    lost[r->id]++;
}

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

/* QKV runs 0-4, attention 4-14, FFN 14-22 and the head 22-23. Then a decode is a layer and the
 * head, 2 ms. */
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
    run("outlier_frac=0,order=together", q, 1);
    scenario_tokens_at(&sc, 0, 1, (double[]){35});
}
END_TEST

/* By eq. 5 the QKV of the second chunk is first. Its attention waits for the first one's QKV, so it
 * makes no work for the CPU, and that of the first makes 10 ms. QKV runs 0-4 and 4-8. Attention of
 * the first chunk runs 8-18, and of the second 18-28. FFN runs 18-26 and 28-36, and the head 36-37.
 * Together, attention is one kernel of 10 ms here: 8 + 10 + 16 + 1. */
START_TEST(chunks_of_a_prompt_run_out_of_order)
{
    struct scenario_request q[] = {{RT, 0, 512, 1, 0, 0}};
    run("outlier_frac=0", q, 1);
    scenario_tokens_at(&sc, 0, 1, (double[]){37});
    static const struct {
        uint32_t pass;
        enum op_kind op;
        double begin_ms, end_ms;
    } want[] = {{2, OP_QKV, 0, 4},   {1, OP_QKV, 4, 8},   {1, OP_MHA, 8, 18},  {1, OP_FFN, 18, 26},
                {2, OP_MHA, 18, 28}, {2, OP_FFN, 28, 36}, {2, OP_HEAD, 36, 37}};
    ck_assert_uint_eq(sc.n_kernels, sizeof want / sizeof want[0]);
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        ck_assert_uint_eq(k->pass, want[i].pass);
        ck_assert_int_eq(k->op, want[i].op);
        ck_assert_int_eq(k->begin_ns, MS(want[i].begin_ms));
        ck_assert_int_eq(k->end_ns, MS(want[i].end_ms));
    }
    scenario_fini(&sc);
    run("outlier_frac=0,order=together", q, 1);
    scenario_tokens_at(&sc, 0, 1, (double[]){35});
}
END_TEST

/* The CPU has a quarter of the weights: 6.4 ms for QKV and 12.8 for FFN. That is longer than the
 * NPU's 3 and 6 for the rest: 6.4 + 10 + 12.8 + 1. */
START_TEST(outliers_run_on_the_cpu_at_the_same_time)
{
    struct scenario_request q[] = {{RT, 0, 256, 1, 0, 0}};
    run("outlier_frac=0.25", q, 1);
    scenario_tokens_at(&sc, 0, 1, (double[]){30.2});
    const struct scenario_kernel *npu = scenario_kernel_find(&sc, 0, 0, NPU, OP_QKV);
    const struct scenario_kernel *cpu = scenario_kernel_find(&sc, 0, 0, CPU, OP_QKV);
    ck_assert(npu != NULL && cpu != NULL && npu->begin_ns == 0 && cpu->begin_ns == 0);
    ck_assert_uint_eq(cpu->rows, 256);
    ck_assert_int_eq(npu->end_ns, MS(3));
}
END_TEST

/* The second prompt's QKV runs 4-8, while the CPU has the first one's attention, 4-14. Then the
 * first's FFN runs 14-22, next to the second's attention, 14-24. The head waits for the CPU, 24-25.
 * The second has FFN 24-32 and head 32-33. One after the other they end at 23 and 46. */
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

/* Request 1 has two chunks with QKV 4-8 and 8-12, and 2 has QKV 12-16. From 12 on 1's attention is
 * ready, and has the CPU from 14 on. At 24 request 0's head is ready. It is before 1's second
 * attention and 2's: 24-25. Its FFN had the NPU 16-24. */
START_TEST(the_first_prompt_takes_what_it_can)
{
    struct scenario_request q[] = {
        {RT, 0, 256, 1, 0, 0}, {RT, 0, 512, 1, 0, 0}, {RT, 0, 256, 1, 0, 0}};
    run("outlier_frac=0,in_progress=3", q, 3);
    scenario_tokens_at(&sc, 0, 1, (double[]){25});
    const struct scenario_kernel *qkv = scenario_kernel_find(&sc, 0, 2, NPU, OP_QKV);
    const struct scenario_kernel *ffn = scenario_kernel_find(&sc, 0, 0, NPU, OP_FFN);
    ck_assert(qkv != NULL && qkv->begin_ns == MS(12));
    ck_assert(ffn != NULL && ffn->begin_ns == MS(16));
}
END_TEST

/* 41 blocks of 16 tokens, and QKV of 1 s. Request 0 decodes from 1019 on. Request 1 has 16 blocks
 * and is in its pass from 1020 to 2039. At 1307 request 0 has 25 blocks, and none is free. It keeps
 * them, and waits. Then 1 gives way, so 0 has its other 155 tokens up to 2349. */
START_TEST(the_oldest_keeps_its_memory)
{
    struct scenario_request q[] = {{RT, 0, 256, 300, 0, 0}, {RT, 1.020, 256, 2, 0, 0}};
    scenario_init(&sc);
    sc.setup.kv_capacity_tokens = 656;
    scenario_cost(&sc, NPU, OP_QKV, 1000, 0, 5);
    scenario_cost(&sc, NPU, OP_FFN, 8, 0, 5);
    scenario_cost(&sc, CPU, OP_MHA, 10, 0, 5);
    scenario_cost(&sc, CPU, OP_HEAD, 1, 0, 5);
    scenario_cost(&sc, CPU, OP_LAYER, 1, 0, 5);
    scenario_policy(&sc, policy_find("llm-npu"), "outlier_frac=0");
    sc.observer.kv_lost = on_lost;
    scenario_check(&sc, q, 2);
    ck_assert(lost[0] == 0 && lost[1] == 1);
    ck_assert_int_eq(sc.records[1].first_token_ns, MS(2039));
    ck_assert_int_eq(sc.records[0].finish_ns, MS(2349));
    scenario_fini(&sc);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("llm-npu", .timeout_s = 30),
    TEST(a_prompt_alternates_between_npu_and_cpu),
    TEST(the_last_chunk_is_padded),
    TEST(outliers_run_on_the_cpu_at_the_same_time),
    TEST(subgraphs_of_two_prompts_run_out_of_order),
    TEST(chunks_of_a_prompt_run_out_of_order),
    TEST(the_first_prompt_takes_what_it_can),
    TEST(the_oldest_keeps_its_memory),
};
SUITE_MAIN("llm_npu", suite)
