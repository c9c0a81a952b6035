/* The scores of attention that no fused kernel has. */
#include "tests/helpers/model.h"
#include "tests/helpers/suite.h"

/* What the scores of special attention add. 32 heads of 2 B, ten times: 640 B a pair, 12.8 ns at 50
 * GB/s. */
START_TEST(scores_of_special_attention_cross_memory_in_prompts)
{
    struct model b;
    struct model plain;
    model_init(&b, "phi-3-mini", "extended");
    model_init(&plain, "llama-2-7b", "extended"); /* as many heads */
    ck_assert(b.llm.special_attention && !plain.llm.special_attention);
    ck_assert_uint_eq(b.llm.heads, 32);
    struct model *const models[] = {&b, &plain};
    for (int i = 0; i < 2; i++) {
        struct soc_runtime *p = &models[i]->soc.devices[MODEL_IGPU].runtimes[0];
        p->many = p->one = (struct soc_curve){1e18, 50e9, 0.0}; /* nothing but bytes takes time */
        p->attention_frac = 1.0;
        p->kv_gather_frac = 0.0;
    }
    struct work_shape prompt = model_prefill(256); /* 32,896 pairs */
    struct work_shape mixed = prompt;              /* and a decode with 256 keys */
    mixed.rows = 257;
    mixed.sequences = 2;
    mixed.attn_pairs += 256;
    mixed.kv_read_tokens += 256;
    struct work_shape decode = model_decode(4, 500);
    double *passes = &b.soc.devices[MODEL_IGPU].runtimes[0].score_passes;
    double *others = &plain.soc.devices[MODEL_IGPU].runtimes[0].score_passes;
    const struct {
        const struct work_shape *w;
        uint32_t rows;
        double pairs;
    } cases[] = {
        {&prompt, 256, 32896}, {&prompt, 128, 16448}, {&mixed, 257, 32896}, {&decode, 4, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct work_shape *w = cases[i].w;
        uint32_t n = cases[i].rows;
        *passes = *others = 10.0;
        double with = (double)model_cost(&b, MODEL_IGPU, OP_MHA, w, n, n).t_ns;
        int64_t same = model_cost(&plain, MODEL_IGPU, OP_MHA, w, n, n).t_ns;
        *passes = *others = 0.0;
        double added = with - (double)model_cost(&b, MODEL_IGPU, OP_MHA, w, n, n).t_ns;
        ck_assert_double_le(fabs(added - cases[i].pairs * 12.8), 1.0); /* both are rounded */
        ck_assert_int_eq(same, model_cost(&plain, MODEL_IGPU, OP_MHA, w, n, n).t_ns);
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(scores_of_special_attention_cross_memory_in_prompts),
};
SUITE_MAIN("scores", suite)
