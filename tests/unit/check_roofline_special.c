/* Prompts of attention that matrix units do not compute, and states. */
#include "tests/helpers/model.h"
#include "tests/helpers/suite.h"

/* Nothing but attention takes time: 1 TFLOP/s, and attention at a half of it. Special attention
 * runs at a twentieth: 4 x 32 heads x 96 = 12,288 flop a pair take 245.76 ns instead of 24.576. A
 * pair of a decode stays at the half. */
START_TEST(special_attention_has_a_rate_of_its_own_in_prompts)
{
    struct model b;
    struct model plain;
    model_init(&b, "phi-3-mini", "extended");
    model_init(&plain, "llama-2-7b", "extended");
    ck_assert(b.llm.special_attention && !plain.llm.special_attention);
    ck_assert_uint_eq(b.llm.heads * b.llm.head_dim, 3072);
    struct model *const models[] = {&b, &plain};
    for (int i = 0; i < 2; i++) {
        struct soc_runtime *p = &models[i]->soc.devices[MODEL_IGPU].runtimes[0];
        p->many = p->one = (struct soc_curve){1e12, 1e18, 0.0};
        p->attention_frac = 0.5;
        p->decode_attention_frac = 0.0;
        p->kv_gather_frac = 0.0;
    }
    struct work_shape prompt = model_prefill(256); /* 32,896 pairs */
    struct work_shape mixed = prompt;              /* and a decode with 300 keys */
    mixed.rows = 257;
    mixed.sequences = 2;
    mixed.attn_pairs += 300;
    mixed.kv_read_tokens += 300;
    mixed.max_context_tokens = 300;
    struct work_shape decode = model_decode(4, 500); /* 2,000 pairs */
    double *own = &b.soc.devices[MODEL_IGPU].runtimes[0].special_attention_frac;
    double *others = &plain.soc.devices[MODEL_IGPU].runtimes[0].special_attention_frac;
    const struct {
        const struct work_shape *w;
        uint32_t rows;
        double of_prompts, of_decodes; /* pairs */
    } cases[] = {{&prompt, 256, 32896, 0},
                 {&prompt, 128, 16448, 0},
                 {&mixed, 257, 32896, 300},
                 {&decode, 4, 0, 2000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct work_shape *w = cases[i].w;
        uint32_t n = cases[i].rows;
        *own = *others = 0.05;
        int64_t special = model_cost(&b, MODEL_IGPU, OP_MHA, w, n, n).t_ns;
        int64_t same = model_cost(&plain, MODEL_IGPU, OP_MHA, w, n, n).t_ns;
        double expected = cases[i].of_prompts * 245.76 + cases[i].of_decodes * 24.576;
        ck_assert_double_le(fabs((double)special - expected), 1.0);
        *own = *others = 0.0;
        expected = (cases[i].of_prompts + cases[i].of_decodes) * 24.576;
        int64_t without = model_cost(&b, MODEL_IGPU, OP_MHA, w, n, n).t_ns;
        ck_assert_double_le(fabs((double)without - expected), 1.0);
        ck_assert_int_eq(same, model_cost(&plain, MODEL_IGPU, OP_MHA, w, n, n).t_ns);
    }
}
END_TEST

/* Rows that verify a draft are no prompt. */
START_TEST(a_verification_runs_as_before)
{
    struct model b;
    model_init(&b, "phi-3-mini", "extended");
    struct work_shape w = model_decode(1, 500);
    w.rows = 4; /* 500, 501, 502 and 503 keys */
    w.attn_pairs = 2006;
    w.kv_read_tokens = 503;
    w.max_context_tokens = 503;
    double *own = &b.soc.devices[MODEL_IGPU].runtimes[0].special_attention_frac;
    *own = 0.0;
    int64_t without = model_cost(&b, MODEL_IGPU, OP_MHA, &w, 4, 4).t_ns;
    *own = 1e-6;
    ck_assert_int_eq(model_cost(&b, MODEL_IGPU, OP_MHA, &w, 4, 4).t_ns, without);
}
END_TEST

/* Nothing but attention takes time: 1 TFLOP/s, and attention at a half of it. Qwen3.5 4B has 32
 * layers, of which 24 have a state of 548,864 elements. So a layer's row takes 6 x 411,648 flop,
 * which are 4.939776 us at a half and 246.9888 us at a hundredth. A pair takes 4 x 16 heads x 256
 * flop in the other 8 layers: 8.192 ns. */
START_TEST(recurrences_have_a_rate_of_their_own)
{
    struct model b;
    struct model plain;
    model_init(&b, "qwen3.5-4b", "extended");
    model_init(&plain, "qwen3.5-4b", "roofline");
    struct model *const models[] = {&b, &plain};
    for (int i = 0; i < 2; i++) {
        struct soc_runtime *p = &models[i]->soc.devices[MODEL_IGPU].runtimes[0];
        p->many = p->one = (struct soc_curve){1e12, 1e18, 0.0};
        p->attention_frac = 0.5;
        p->decode_attention_frac = p->special_attention_frac = p->kv_gather_frac = 0.0;
    }
    const struct work_shape shapes[] = {model_prefill(256), model_decode(4, 500)};
    static const double pairs[] = {32896, 2000};
    for (int i = 0; i < 2; i++) {
        const struct work_shape *w = &shapes[i];
        for (int own = 0; own < 2; own++) {
            double each = own ? 246988.8 : 4939.776;
            double expected = w->rows * each + pairs[i] * 8.192;
            b.soc.devices[MODEL_IGPU].runtimes[0].recurrence_frac = own ? 0.01 : 0.0;
            int64_t is = model_cost(&b, MODEL_IGPU, OP_MHA, w, w->rows, w->rows).t_ns;
            ck_assert_double_le(fabs((double)is - expected), 1.0);
            /* Appendix B has one rate. */
            plain.soc.devices[MODEL_IGPU].runtimes[0].recurrence_frac = own ? 0.01 : 0.0;
            is = model_cost(&plain, MODEL_IGPU, OP_MHA, w, w->rows, w->rows).t_ns;
            expected = w->rows * 2469.888 + pairs[i] * 4.096;
            ck_assert_double_le(fabs((double)is - expected), 1.0);
        }
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(special_attention_has_a_rate_of_its_own_in_prompts),
    TEST(a_verification_runs_as_before),
    TEST(recurrences_have_a_rate_of_their_own),
};
SUITE_MAIN("special", suite)
