/* Kernel times of runtimes that take a prompt through the model in micro-batches, and launches that
 * only some layers have, by hand. */
#include "tests/helpers/model.h"
#include "tests/helpers/suite.h"

/* An FFN kernel of llama-3.2-3b or mixtral-8x7b on an engine of 1 Tflop/s, with launches of 1 us
 * and 100 rows to fill. */
static struct kernel_cost ffn(struct model *m, double bytes_per_s, uint32_t micro_batch,
                              const struct work_shape *w)
{
    m->soc.devices[MODEL_IGPU].runtimes[0] = (struct soc_runtime){.many = {1e12, bytes_per_s, 1e-6},
                                                                  .one = {1e12, bytes_per_s, 1e-6},
                                                                  .attention_frac = 1.0,
                                                                  .fill_rows = 100.0,
                                                                  .min_rows = 1,
                                                                  .micro_batch = micro_batch,
                                                                  .fused_launch_frac = 1.0};
    return model_cost(m, MODEL_IGPU, OP_FFN, w, w->rows, w->rows);
}

/* Output projection 3072^2 and three matrices of 3072 x 8192: W flop a row, four launches. Where
 * memory is free, 1024 rows are two times 512, each with 100 rows to fill, and 1025 are three
 * times. Up to 512 rows, and in decode batches, a micro-batch of 512 changes nothing. */
START_TEST(each_micro_batch_fills_the_engine_and_launches_again)
{
    static const double flop = 2.0 * (3072.0 * 3072 + 3.0 * 3072 * 8192);
    struct model m;
    model_init(&m, "llama-3.2-3b", "extended");
    static const struct {
        uint32_t rows, micro_batch, passes;
    } cases[] = {{512, 512, 1}, {513, 512, 2}, {1024, 512, 2}, {1025, 512, 3}, {1024, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct work_shape w = model_prefill(cases[i].rows);
        struct kernel_cost c = ffn(&m, 1e18, cases[i].micro_batch, &w);
        double passes = cases[i].passes;
        model_near((double)c.t_ns, passes * 4e3 + 1e-3 * flop * (cases[i].rows + passes * 100.0),
                   1e-6);
        model_near(c.flop, flop * cases[i].rows, 1e-12); /* filling is no work */
    }
    struct work_shape batch = model_decode(8, 100);
    ck_assert_int_eq(ffn(&m, 1e18, 512, &batch).t_ns, ffn(&m, 1e18, 0, &batch).t_ns);
}
END_TEST

/* An FFN has four nonlinear ops. Each of two micro-batches launches them, too, and waits for the
 * barriers of another engine. */
START_TEST(each_micro_batch_offloads_its_nonlinear_ops)
{
    struct model m;
    struct model away;
    model_init(&m, "llama-3.2-3b", "extended");
    model_init(&away, "llama-3.2-3b", "extended");
    roofline_unfuse(&away.r, 50e-6);
    struct work_shape w = model_prefill(1024);
    double more_ns =
        (double)(ffn(&away, 1e18, 512, &w).t_ns - ffn(&m, 1e18, 512, &w).t_ns); /* memory is free */
    ck_assert_double_eq_tol(more_ns, 2.0 * 4.0 * (1e3 + 50e3), 2.0);
}
END_TEST

/* Each micro-batch reads the weights, and the experts that its own rows touch: of Mixtral's eight,
 * 2 rows read 1 - (3/4)^2 = 7/16. Inputs and outputs are read once. */
START_TEST(each_micro_batch_reads_its_weights_and_experts)
{
    struct model m;
    model_init(&m, "mixtral-8x7b", "extended");
    double bytes = m.llm.body_bytes_per_weight;
    double projection = (double)m.llm.hidden * m.llm.hidden * bytes;
    double experts = 8.0 * 3.0 * m.llm.hidden * m.llm.ffn_hidden * bytes;
    struct work_shape w = model_prefill(6);
    double whole = ffn(&m, 1e9, 0, &w).bytes;
    double pieces = ffn(&m, 1e9, 2, &w).bytes;
    model_near(pieces - whole,
               2.0 * projection + experts * (3.0 * 7.0 / 16.0 - (1.0 - pow(0.75, 6))), 1e-9);
}
END_TEST

/* Qwen3.6 35B has a recurrence in 30 of 40 layers, and all choose experts. So a layer of a decode
 * has 0.75 and 1 times eight launches more. LFM2's layers with a state are short convolutions, and
 * have none. DeepSeek-V2-Lite's first layer of 27 has no experts. */
static const struct {
    const char *model;
    double attention, ffn;
} with_further[] = {{"qwen3.6-35b-a3b", 0.75, 1.0},
                    {"lfm2-1.2b", 0.0, 0.0},
                    {"llama-3.2-3b", 0.0, 0.0},
                    {"deepseek-v2-lite", 0.0, 26.0 / 27.0}};

START_TEST(recurrences_and_choices_of_experts_have_further_launches)
{
    struct model b;
    model_init(&b, with_further[_i].model, "extended");
    struct soc_runtime own = *b.r.runtime[MODEL_IGPU];
    own.many.launch_s = own.one.launch_s = 100e-6;
    own.enqueue_s = own.prompt_enqueue_s = 0.0;
    struct work_shape decode = model_decode(1, 500);
    struct work_shape prompt = model_prefill(500);
    static const enum op_kind ops[] = {OP_QKV, OP_MHA, OP_FFN, OP_LAYER, OP_HEAD};
    double frac = own.fused_launch_frac;
    double attention = with_further[_i].attention;
    double ffn = with_further[_i].ffn;
    double more[] = {0.0, attention, ffn, frac * (attention + ffn), 0.0};
    for (int k = 0; k < 5; k++) {
        int64_t ns[2][2];
        for (int further = 0; further < 2; further++) {
            own.further_launches = 8.0 * further;
            roofline_set_runtime(&b.r, MODEL_IGPU, &own);
            ns[0][further] = model_cost(&b, MODEL_IGPU, ops[k], &decode, 1, 1).t_ns;
            ns[1][further] = model_cost(&b, MODEL_IGPU, ops[k], &prompt, 500, 500).t_ns;
        }
        model_near((double)(ns[0][1] - ns[0][0]), 8.0 * 100000.0 * more[k], 1e-6);
        ck_assert_int_eq(ns[1][1], ns[1][0]); /* a prompt takes as long */
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(each_micro_batch_fills_the_engine_and_launches_again),
    TEST(each_micro_batch_offloads_its_nonlinear_ops),
    TEST(each_micro_batch_reads_its_weights_and_experts),
    LOOP(recurrences_and_choices_of_experts_have_further_launches,
         sizeof with_further / sizeof with_further[0]),
};
SUITE_MAIN("micro-batches", suite)
