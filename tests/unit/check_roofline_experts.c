/* Kernel times of mixtures of experts, by hand. */
#include "sim/core/core.h"
#include "tests/helpers/model.h"
#include "tests/helpers/suite.h"

/* gpt-oss-20b, without memory time and launches: of a row's 222.7 Mflop in the op of the
 * feed-forward network 2 x 4096 x 2880 are the output projection, 4 x 3 x 2 x 2880 x 2880 those of
 * four experts, which are 2880 columns wide. A fill of 1440 columns makes the latter half as long
 * again, and one row, which a kernel of its own computes, no longer. A dense model has none. */
START_TEST(products_of_narrow_experts_take_longer)
{
    static const double projection = 2.0 * 4096 * 2880;
    static const double experts = 4.0 * 3 * 2 * 2880 * 2880;
    struct model b;
    model_init(&b, "gpt-oss-20b", "extended");
    struct soc_runtime *p = &b.soc.devices[MODEL_IGPU].runtimes[0];
    *p = (struct soc_runtime){.many = {1e12, 1e15, 0.0},
                              .one = {1e12, 1e15, 0.0},
                              .attention_frac = 1.0,
                              .min_rows = 1,
                              .fused_launch_frac = 1.0};
    struct work_shape w = model_prefill(100);
    for (int i = 0; i < 2; i++) {
        p->expert_fill = i * 1440.0;
        struct kernel_cost c = model_cost(&b, MODEL_IGPU, OP_FFN, &w, 100, 100);
        model_near((double)c.t_ns, 0.1 * (projection + (1.0 + 0.5 * i) * experts), 1e-4);
        model_near(c.flop, 100.0 * (projection + experts), 1e-9);
        struct work_shape one = model_decode(1, 500);
        c = model_cost(&b, MODEL_IGPU, OP_FFN, &one, 1, 1);
        model_near((double)c.t_ns, 1e-3 * (projection + experts), 1e-4);
        c = model_cost(&b, MODEL_IGPU, OP_QKV, &w, 100, 100);
        model_near((double)c.t_ns, 0.1 * 2.0 * 2880 * (4096 + 2 * 512), 1e-4);
    }
    model_init(&b, "llama-3.2-3b", "extended");
    b.soc.devices[MODEL_IGPU].runtimes[0].expert_fill = 0.0;
    int64_t without = model_cost(&b, MODEL_IGPU, OP_FFN, &w, 100, 100).t_ns;
    b.soc.devices[MODEL_IGPU].runtimes[0].expert_fill = 1e5;
    ck_assert_int_eq(model_cost(&b, MODEL_IGPU, OP_FFN, &w, 100, 100).t_ns, without);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(products_of_narrow_experts_take_longer),
};
SUITE_MAIN("experts", suite)
