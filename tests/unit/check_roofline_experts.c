/* Kernel times of mixtures of experts, by hand. */
#include "hwmodels/llm_hf.h"
#include "sim/base/json.h"
#include "sim/core/core.h"
#include "tests/helpers/model.h"
#include "tests/helpers/suite.h"

/* gpt-oss-20b runs without memory time and launches. A row has 222.7 Mflop in the op of the
 * feed-forward network. 2 x 4096 x 2880 of these are the output projection. 4 x 3 x 2 x 2880 x 2880
 * are those of four experts, which are 2880 columns wide. A fill of 1440 columns makes the latter
 * half as long again, and one row, which a kernel of its own computes, no longer. A dense model has
 * none. */
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

/* Without memory time and launches again: Mixtral's layers have experts of 3 x 4096 x 14336
 * weights, and a token chooses 2 of 8. R rows choose 8 (1 - 0.75^R) of them: 3.5 for two rows, and
 * all eight for a thousand. Each costs 50 rows beyond those that chose it. A fill of 100 rows is
 * paid once. With 4096^2 weights of O, two rows of a prompt pay 102 rows of O, and of one expert 2
 * x 102 + 3.5 x 50 rows = 379. A thousand pay 1,100, and 2 x 1,100 + 8 x 50 = 2,600. Two sequences
 * that decode pay half of the fill here, and nothing for experts. */
START_TEST(each_expert_that_is_chosen_costs_rows_of_its_own)
{
    static const double o = 2.0 * 4096 * 4096, expert = 3.0 * 2 * 4096 * 14336;
    struct model b;
    model_init(&b, "mixtral-8x7b", "extended");
    struct soc_runtime *p = &b.soc.devices[MODEL_IGPU].runtimes[0];
    *p = (struct soc_runtime){.many = {1e12, 1e17, 0.0},
                              .one = {1e12, 1e17, 0.0},
                              .attention_frac = 1.0,
                              .fill_rows = 100.0,
                              .batch_fill_frac = 0.5,
                              .expert_rows = 50.0,
                              .min_rows = 1,
                              .fused_launch_frac = 1.0};
    struct work_shape w = model_prefill(2);
    model_near((double)model_cost(&b, MODEL_IGPU, OP_FFN, &w, 2, 2).t_ns,
               1e-3 * (102 * o + 379 * expert), 1e-6);
    w = model_prefill(1000);
    struct kernel_cost c = model_cost(&b, MODEL_IGPU, OP_FFN, &w, 1000, 1000);
    model_near((double)c.t_ns, 1e-3 * (1100 * o + 2600 * expert), 1e-6);
    model_near(c.flop, 1000 * (o + 2 * expert), 1e-12);
    w = model_decode(2, 500);
    model_near((double)model_cost(&b, MODEL_IGPU, OP_FFN, &w, 2, 2).t_ns,
               1e-3 * (52 * o + 2 * 52 * expert), 1e-6);
    w = model_decode(1, 500);
    model_near((double)model_cost(&b, MODEL_IGPU, OP_FFN, &w, 1, 1).t_ns, 1e-3 * (o + 2 * expert),
               1e-6);
    /* Three micro-batches of a prompt choose again, each of them two rows. */
    p->micro_batch = 2;
    w = model_prefill(6);
    model_near((double)model_cost(&b, MODEL_IGPU, OP_FFN, &w, 6, 6).t_ns,
               3e-3 * (102 * o + 379 * expert), 1e-6);
}
END_TEST

/* Mixtral's tokens use 2 of 8 experts. The 8 are as uneven as 5 even ones. Then 1 + (8 - 5) / 5 is
 * 1 + 3 / (both + 1), so a + b is 4, a is 1 and b is 3. None of R rows chooses an expert with the
 * probability (3/4) (4/5) ... ((2+R)/(3+R)) = 3 / (3 + R). So they read R / (3 + R) of all, where
 * even use makes it 1 - (3/4)^R. One row reads as much, two rows 0.4 and 0.4375, and 33 rows 0.92
 * and 1. */
START_TEST(rows_touch_fewer_experts_where_some_are_favoured)
{
    struct model m;
    model_init(&m, "mixtral-8x7b", "extended");
    ck_assert_double_eq(m.llm.effective_experts, 8.0);
    double all = 8.0 * 3.0 * m.llm.hidden * m.llm.ffn_hidden * m.llm.body_bytes_per_weight;
    struct work_shape w = model_prefill(64);
    double even = model_cost(&m, MODEL_IGPU, OP_FFN, &w, 1, 64).bytes;
    m.llm.effective_experts = 5.0;
    double one = model_cost(&m, MODEL_IGPU, OP_FFN, &w, 1, 64).bytes;
    model_near(one, even, 1e-12);
    static const uint32_t rows[] = {2, 3, 33, 64};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double more = model_cost(&m, MODEL_IGPU, OP_FFN, &w, rows[i], 64).bytes - one;
        model_near(more, all * (rows[i] / (3.0 + rows[i]) - 0.25), 1e-9);
    }
}
END_TEST

/* gpt-oss-20b has 8 bits outside its experts. A layer's QKV are 2880 (4096 + 2 512) weights, O
 * 4096 2880, each expert 3 2880^2. The head has 2880 201088. With MXFP4 experts (0.53125 B) the 24
 * layers and head and embedding take 12.06 GB; the published file of these widths has 11.27 GiB,
 * biases and norms included. */
START_TEST(attention_and_head_may_be_wider_than_the_experts)
{
    static const double qkv = 2880.0 * 5120, o = 2880.0 * 4096, expert = 3.0 * 2880 * 2880;
    static const double head = 2880.0 * 201088;
    static const struct {
        struct soc_format format;
        double dense, head;
    } widths[] = {
        {{0.53125, 0.5, 2.0}, 1.0625, 1.0625},
        {{1.01, 2.0, 2.0}, 1.0625, 2.0},
        {{2.0, 2.0, 2.0}, 2.0, 2.0},
    };
    struct model m;
    model_init(&m, "gpt-oss-20b", "extended");
    ck_assert_double_eq(m.llm.dense_bytes_per_weight, 1.0625);
    struct work_shape w = model_decode(1, 100);
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        double dense = widths[i].dense, body = widths[i].format.body_bytes;
        model_init(&m, "gpt-oss-20b", "extended");
        llm_requantise(&m.llm, i < 2 ? 4u << i : 16u, 16, &widths[i].format);
        roofline_init(&m.r, hwmodel_find("extended"), &m.soc, &m.llm);
        model_near(model_cost(&m, MODEL_IGPU, OP_QKV, &w, 1, 1).bytes,
                   qkv * dense + 2.0 * (2880 + 5120), 1e-12);
        model_near(model_cost(&m, MODEL_IGPU, OP_FFN, &w, 1, 1).bytes,
                   o * dense + 4 * expert * body + 2.0 * (4096 + 2880 + 4 * 3 * 2 * 2880), 1e-12);
        model_near(model_cost(&m, MODEL_IGPU, OP_HEAD, &w, 1, 1).bytes,
                   head * widths[i].head + 2.0 * (2880 + 201088), 1e-12);
        model_near(m.llm.weight_bytes,
                   24 * ((qkv + o) * dense + 32 * expert * body) + 2 * head * widths[i].head,
                   1e-12);
        if (i == 0) {
            model_near(m.llm.weight_bytes, 11.27 * 1073741824, 0.01);
        }
    }
}
END_TEST

/* A file's number must lie between one token's experts and all of a layer's. */
START_TEST(a_file_cannot_be_more_uneven_than_one_token_nor_more_even_than_even)
{
    static const struct {
        double effective;
        const char *says; /* NULL: it loads */
    } files[] = {
        {2.0, "f: effective_experts: must be above experts_per_token"},
        {2.001, NULL},
        {8.0, NULL},
        {8.001, "f: effective_experts: must be at most experts"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct err e = ERR_INIT;
        cJSON *root = json_read_file(llm_path("mixtral-8x7b"), &e);
        struct quantity q = {files[i].effective, 2.0, 9.0, QUANTITY_MEASURED, true};
        json_put_quantity(root, "effective_experts", q, "experts", "counts");
        struct llm m;
        ck_assert_int_eq(llm_parse(root, "f", &m, &e), files[i].says == NULL ? 0 : -EINVAL);
        ck_assert_uint_eq(e.n, files[i].says != NULL);
        if (files[i].says != NULL) {
            ck_assert_str_eq(e.lines[0], files[i].says);
        }
        cJSON_Delete(root);
        err_fini(&e);
    }
}
END_TEST

START_TEST(only_a_mixture_has_weights_outside_of_experts)
{
    struct err e = ERR_INIT;
    cJSON *root = json_read_file(llm_path("llama-3.1-8b"), &e);
    struct quantity q = {1.0625, 1.0, 2.0, QUANTITY_DATASHEET, true};
    json_put_quantity(root, "dense_bytes_per_weight", q, "B", "a checkpoint");
    struct llm m;
    ck_assert_int_eq(llm_parse(root, "f", &m, &e), -EINVAL);
    ck_assert_str_eq(e.lines[0], "f: dense_bytes_per_weight: is for models with experts");
    cJSON_Delete(root);
    err_fini(&e);
}
END_TEST

/* Five layers 64 wide, two with an FFN 320 wide, three with eight experts of 48, of which a token
 * uses two, and three that all share. Weights that a token crosses, by hand: attention 12288 a
 * layer, dense 3 x 64 x 320, mixed 3 x 64 x 48 x (2 + 3). Idle experts are stored, too. */
static const char mixed_layers[] =
    "{\"model_type\":\"glm4_moe\",\"hidden_size\":64,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":16,\"num_hidden_layers\":5,\"vocab_size\":100,"
    "\"intermediate_size\":320,\"moe_intermediate_size\":48,\"n_routed_experts\":8,"
    "\"num_experts_per_tok\":2,\"n_shared_experts\":3,\"first_k_dense_replace\":2,"
    "\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\"}";

START_TEST(shared_experts_and_dense_layers_are_a_share_of_every_layer)
{
    static const double body = 5.0 * 12288 + 2.0 * 3 * 64 * 320 + 3.0 * 3 * 64 * 48 * (2 + 3);
    struct err e = ERR_INIT;
    struct model b;
    model_init(&b, "llama-3.2-1b", "extended");
    struct llm m;
    SCOPED(json_drop) cJSON *root = cJSON_Parse(mixed_layers);
    SCOPED(json_drop) cJSON *tree = llm_hf_tree(root, "config.json", NULL, 0, &e);
    ck_assert_msg(tree != NULL && llm_parse(tree, "tree", &m, &e) == 0, "%s",
                  e.n > 0 ? e.lines[0] : "");
    ck_assert(m.shared_ffn == 144 && m.dense_layers == 2 && m.dense_ffn == 320);
    model_near(m.body_weights, body, 1e-12);
    model_near(m.weight_bytes, 2.0 * (body + 3.0 * 6 * 3 * 64 * 48 + 64 * 100), 1e-12);
    struct roofline r;
    roofline_init(&r, hwmodel_find("extended"), &b.soc, &m);
    const struct roofline_op *qkv = &r.ops[OP_QKV];
    const struct roofline_op *ffn = &r.ops[OP_FFN];
    model_near(5.0 * (qkv->flop_per_row + ffn->flop_per_row), 2.0 * body, 1e-12);
    model_near(5.0 * ffn->expert_flop_per_row, 2.0 * 3 * 3 * 64 * 48 * 2, 1e-12);
    model_near(5.0 * ffn->expert_bytes, 2.0 * 3 * 3 * 64 * 48 * 8, 1e-12);
    model_near(5.0 * (qkv->weight_bytes + ffn->weight_bytes) + 5.0 * ffn->expert_bytes * 2.0 / 8.0,
               2.0 * body, 1e-12);
    /* Output projection, three products of the chosen experts and three of the shared ones. */
    ck_assert_double_eq(ffn->prims, 7.0);
    /* Nonlinear ops apart: two sums of two columns 64 wide into a third, and a norm, are 8 x 64
     * columns a row. A gated activation reads two columns and writes one. It is 2 x 48 + 144 = 240
     * wide in three layers and 320 in two, 272 on average. Chosen and shared experts have one each.
     */
    double io = ffn->io_bytes_per_row;
    roofline_unfuse(&r, 0.0);
    model_near(ffn->io_bytes_per_row - io, 2.0 * (8 * 64 + 3 * 272), 1e-12);
    ck_assert_double_eq(ffn->prims, 12.0);
}
END_TEST

/* Only a mixture has shared experts, and some keys come together. */
static const struct {
    const char *key, *why;
    double a, b;
} alone[] = {
    {"shared_ffn", "shared_ffn is for models with experts", 8, 0},
    {"dense_layers", "dense_layers and dense_ffn come together", 1, 0},
    {"dense_layers", "dense_layers is below layers", 28, 8},
};

START_TEST(keys_of_mixed_layers_go_together)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct llm m;
    SCOPED(json_drop)
    cJSON *tree = json_read_file(
        _i == 0 ? "hwmodels/llm/llama-3.2-3b.json" : "hwmodels/llm/qwen3-30b-a3b.json", &e);
    cJSON_DeleteItemFromObjectCaseSensitive(tree, "layers");
    JSON_MEMBERS(tree, "layers", 28, alone[_i].key, alone[_i].a);
    if (alone[_i].b > 0) {
        JSON_MEMBERS(tree, "dense_ffn", alone[_i].b);
    }
    ck_assert_int_ne(llm_parse(tree, "tree", &m, &e), 0);
    ck_assert_msg(strstr(e.lines[0], alone[_i].why) != NULL, "%s", e.lines[0]);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(shared_experts_and_dense_layers_are_a_share_of_every_layer),
    LOOP(keys_of_mixed_layers_go_together, sizeof alone / sizeof alone[0]),
    TEST(rows_touch_fewer_experts_where_some_are_favoured),
    TEST(attention_and_head_may_be_wider_than_the_experts),
    TEST(only_a_mixture_has_weights_outside_of_experts),
    TEST(a_file_cannot_be_more_uneven_than_one_token_nor_more_even_than_even),
    TEST(products_of_narrow_experts_take_longer),
    TEST(each_expert_that_is_chosen_costs_rows_of_its_own),
};
SUITE_MAIN("experts", suite)
