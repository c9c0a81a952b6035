/* Waits of a device for a host that prepares its ops (`enqueue`), by hand. */
#include <math.h>
#include <stdlib.h>

#include "sim/core/core.h"
#include "tests/helpers/model.h"
#include "tests/helpers/suite.h"

/* A layer of Llama 3.2 3B has six ops: QKV, attention, the output projection and the three matrices
 * of its gated FFN. Where preparing one op takes a third of what the layer's products do, preparing
 * all takes twice as long as the products. So the layer waits as long as they take. The wait is
 * shared by ops, at any context. Where it takes a twelfth nothing waits, and the form of Appendix B
 * never does. */
START_TEST(a_device_waits_for_a_host_that_is_slower_than_a_layer)
{
    const char *forms[] = {"extended", "table", "roofline"};
    for (int form = 0; form < 3; form++) {
        struct model plain;
        struct model slow;
        model_init(&plain, "llama-3.2-3b", forms[form]);
        model_init(&slow, "llama-3.2-3b", forms[form]);
        struct soc_device *dev = &slow.soc.devices[MODEL_IGPU];
        struct soc_device *ref = &plain.soc.devices[MODEL_IGPU];
        for (uint32_t i = 0; i < dev->n_runtimes; i++) {
            dev->runtimes[i].many.launch_s = ref->runtimes[i].many.launch_s = 0.0;
            dev->runtimes[i].one = dev->runtimes[i].many;
            ref->runtimes[i].one = ref->runtimes[i].many;
        }
        struct work_shape d = model_decode(1, 512);
        struct work_shape longer = model_decode(1, 8192);
        int64_t qkv = model_cost(&plain, MODEL_IGPU, OP_QKV, &d, 1, 1).t_ns;
        int64_t ffn = model_cost(&plain, MODEL_IGPU, OP_FFN, &d, 1, 1).t_ns;
        int64_t products = qkv + ffn; /* both wait for memory, so a layer takes their sum */
        bool waits = form < 2;
        for (uint32_t i = 0; i < dev->n_runtimes; i++) {
            dev->runtimes[i].enqueue_s = 2e-9 * (double)products / 6.0;
        }
        const struct {
            enum op_kind op;
            int prims;
        } ops[] = {{OP_QKV, 1}, {OP_MHA, 1}, {OP_FFN, 4}, {OP_LAYER, 6}};
        for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
            for (int at = 0; at < 2; at++) {
                const struct work_shape *w = at == 0 ? &d : &longer;
                int64_t a = model_cost(&plain, MODEL_IGPU, ops[k].op, w, 1, 1).t_ns;
                int64_t b = model_cost(&slow, MODEL_IGPU, ops[k].op, w, 1, 1).t_ns;
                double wait = waits ? (double)products * ops[k].prims / 6.0 : 0.0;
                ck_assert_double_le(fabs((double)(b - a) - wait), 4.0);
            }
        }
        /* The head is an op of its own, longer here than one op is prepared. */
        ck_assert_int_eq(model_cost(&plain, MODEL_IGPU, OP_HEAD, &d, 1, 1).t_ns,
                         model_cost(&slow, MODEL_IGPU, OP_HEAD, &d, 1, 1).t_ns);
        for (uint32_t i = 0; i < dev->n_runtimes; i++) {
            dev->runtimes[i].enqueue_s = 0.5e-9 * (double)products / 6.0;
        }
        ck_assert_int_eq(model_cost(&plain, MODEL_IGPU, OP_LAYER, &d, 1, 1).t_ns,
                         model_cost(&slow, MODEL_IGPU, OP_LAYER, &d, 1, 1).t_ns);
    }
}
END_TEST

/* In the p-norm products take longer than the longer side: with exponent 1 the sum of both. Where
 * preparing a layer takes as long as that sum, nothing waits; where twice as long, as long again.
 */
START_TEST(what_products_take_is_what_the_form_says)
{
    struct model plain;
    struct model slow;
    model_init(&plain, "llama-3.2-3b", "p-norm");
    model_init(&slow, "llama-3.2-3b", "p-norm");
    struct soc_device *dev = &slow.soc.devices[MODEL_IGPU];
    struct soc_device *ref = &plain.soc.devices[MODEL_IGPU];
    for (uint32_t i = 0; i < dev->n_runtimes; i++) {
        dev->runtimes[i].many.launch_s = ref->runtimes[i].many.launch_s = 0.0;
        dev->runtimes[i].knee = ref->runtimes[i].knee = 1.0;
    }
    struct work_shape w = model_prefill(64);
    int64_t qkv = model_cost(&plain, MODEL_IGPU, OP_QKV, &w, 64, 64).t_ns;
    int64_t products = qkv + model_cost(&plain, MODEL_IGPU, OP_FFN, &w, 64, 64).t_ns;
    for (int times = 1; times <= 2; times++) {
        for (uint32_t i = 0; i < dev->n_runtimes; i++) {
            dev->runtimes[i].enqueue_s = times * 1e-9 * (double)products / 6.0;
        }
        int64_t more = model_cost(&slow, MODEL_IGPU, OP_LAYER, &w, 64, 64).t_ns -
                       model_cost(&plain, MODEL_IGPU, OP_LAYER, &w, 64, 64).t_ns;
        ck_assert_int_le(llabs(more - (times - 1) * products), 6);
    }
}
END_TEST

/* A device with half of the columns of a layer's products is done in half the time, and its host
 * prepares as many ops. */
START_TEST(half_of_the_columns_hides_half_of_the_preparation)
{
    struct model m;
    model_init(&m, "llama-3.2-3b", "extended");
    struct soc_device *dev = &m.soc.devices[MODEL_IGPU];
    for (uint32_t i = 0; i < dev->n_runtimes; i++) {
        dev->runtimes[i].many.launch_s = 0.0;
    }
    struct work_shape w = model_prefill(512); /* long: bytes of inputs do not count */
    struct kernel_query q = {.device = MODEL_IGPU,
                             .op = OP_QKV,
                             .rows = 512,
                             .padded_rows = 512,
                             .shape = &w,
                             .columns = LAUNCH_COLUMNS / 2};
    int64_t whole = model_cost(&m, MODEL_IGPU, OP_QKV, &w, 512, 512).t_ns +
                    model_cost(&m, MODEL_IGPU, OP_FFN, &w, 512, 512).t_ns;
    struct kernel_cost before;
    hwmodel_kernel(&m.r.model, &q, &before);
    for (uint32_t i = 0; i < dev->n_runtimes; i++) {
        dev->runtimes[i].enqueue_s = 1e-9 * (double)whole / 6.0; /* as long as the whole layer */
    }
    struct kernel_cost after;
    hwmodel_kernel(&m.r.model, &q, &after);
    ck_assert_int_le(llabs(after.t_ns - before.t_ns - whole / 2 / 6), 2);
}
END_TEST

/* On a static device products have the rows of the chunk, and attention has its own. Both share the
 * layer's wait all the same: attention is one op of six, as QKV is. */
START_TEST(attention_of_a_static_device_waits_as_its_products_do)
{
    struct model plain;
    struct model slow;
    model_init(&plain, "llama-3.2-3b", "extended");
    model_init(&slow, "llama-3.2-3b", "extended");
    uint32_t chunk = plain.soc.machine.devices[MODEL_NPU].chunk_rows;
    ck_assert_uint_gt(chunk, 8);
    struct soc_device *dev = &slow.soc.devices[MODEL_NPU];
    for (uint32_t i = 0; i < dev->n_runtimes; i++) {
        dev->runtimes[i].enqueue_s = 1.0; /* far more than a layer of one chunk takes */
    }
    struct work_shape batch = model_decode(8, 512);
    struct work_shape prompt = model_prefill(2 * chunk);
    for (int k = 0; k < 2; k++) {
        const struct work_shape *w = k == 0 ? &batch : &prompt;
        uint32_t rows = k == 0 ? 8 : chunk; /* of a kernel of products */
        int64_t qkv = model_cost(&slow, MODEL_NPU, OP_QKV, w, rows, chunk).t_ns -
                      model_cost(&plain, MODEL_NPU, OP_QKV, w, rows, chunk).t_ns;
        int64_t mha = model_cost(&slow, MODEL_NPU, OP_MHA, w, w->rows, w->rows).t_ns -
                      model_cost(&plain, MODEL_NPU, OP_MHA, w, w->rows, w->rows).t_ns;
        ck_assert_int_gt(qkv, NS_PER_S / 2);
        ck_assert_int_le(llabs(mha - qkv), 2);
    }
}
END_TEST

/* Where preparing one op of a prompt takes a third of what a layer's products do, the layer waits
 * as long as they take. A decode has the other number, and so has a prompt without one. */
START_TEST(a_prompt_has_a_number_of_its_own)
{
    struct model plain;
    struct model slow;
    model_init(&plain, "llama-3.2-3b", "extended");
    model_init(&slow, "llama-3.2-3b", "extended");
    struct soc_device *dev = &slow.soc.devices[MODEL_IGPU];
    struct soc_device *ref = &plain.soc.devices[MODEL_IGPU];
    for (uint32_t i = 0; i < dev->n_runtimes; i++) {
        dev->runtimes[i].many.launch_s = ref->runtimes[i].many.launch_s = 0.0;
        dev->runtimes[i].one = ref->runtimes[i].one = ref->runtimes[i].many;
        dev->runtimes[i].enqueue_s = dev->runtimes[i].prompt_enqueue_s = 0.0;
        ref->runtimes[i].enqueue_s = ref->runtimes[i].prompt_enqueue_s = 0.0;
    }
    struct work_shape p = model_prefill(32);
    struct work_shape d = model_decode(1, 512);
    int64_t products = model_cost(&plain, MODEL_IGPU, OP_QKV, &p, 32, 32).t_ns +
                       model_cost(&plain, MODEL_IGPU, OP_FFN, &p, 32, 32).t_ns;
    int64_t prompt = model_cost(&plain, MODEL_IGPU, OP_LAYER, &p, 32, 32).t_ns;
    int64_t decode = model_cost(&plain, MODEL_IGPU, OP_LAYER, &d, 1, 1).t_ns;
    double third = 2e-9 * (double)products / 6.0;
    const struct {
        double of_all, of_prompts;
        bool prompt_waits, decode_waits;
    } cases[] = {
        {0, third, true, false}, {third, 0, true, true}, {third, 0.25 * third, false, true}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        for (uint32_t i = 0; i < dev->n_runtimes; i++) {
            dev->runtimes[i].enqueue_s = cases[k].of_all;
            dev->runtimes[i].prompt_enqueue_s = cases[k].of_prompts;
        }
        int64_t a = model_cost(&slow, MODEL_IGPU, OP_LAYER, &p, 32, 32).t_ns - prompt;
        int64_t b = model_cost(&slow, MODEL_IGPU, OP_LAYER, &d, 1, 1).t_ns - decode;
        ck_assert_double_le(fabs((double)a - (cases[k].prompt_waits ? (double)products : 0.0)), 8);
        ck_assert_int_eq(b > 0, cases[k].decode_waits);
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_device_waits_for_a_host_that_is_slower_than_a_layer),
    TEST(what_products_take_is_what_the_form_says),
    TEST(half_of_the_columns_hides_half_of_the_preparation),
    TEST(attention_of_a_static_device_waits_as_its_products_do),
    TEST(a_prompt_has_a_number_of_its_own),
};
SUITE_MAIN("enqueue", suite)
