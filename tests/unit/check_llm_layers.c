/* Layers with other attention than the usual: their products, keys and states by hand. */
#include "hwmodels/llm_layers.h"

#include "hwmodels/llm_hf.h"
#include "sim/base/json.h"
#include "tests/helpers/model.h"
#include "tests/helpers/suite.h"

/* Weights of published files, in 1e9, as llama-bench counts them (kyuz0/amd-strix-halo-toolboxes
 * @d1a34bee), or as the model's card states them. Norms, routers, biases and convolutions are not
 * counted here. The file of Qwen3.6 27B has one more layer for predicting tokens: of attention,
 * FFN, and a product 2 x 5120 x 5120 wide. Those of Gemma 3n are Ollama's (ollama/ollama, 11286);
 * Gemma 4's have the products for keys that no kernel reads. */
static const struct {
    const char *name;
    double published, within;
} totals[] = {
    {"deepseek-v2-lite", 15.71, 2e-3},     {"gemma-4-26b-a4b", 25.23, 2e-3},
    {"gemma-3n-e2b", 4.46, 1e-3},          {"gemma-3n-e4b", 6.87, 1e-3},
    {"gemma-4-e2b", 4.65, 1e-3},           {"gemma-4-e4b", 7.52, 1e-3},
    {"gemma-4-31b", 30.70, 1e-3},          {"glm-4.7-flash", 29.94, 1e-3},
    {"gpt-oss-120b", 116.83, 1e-3},        {"granite-4.0-h-tiny", 6.94, 3e-3},
    {"lfm2-1.2b", 1.170340608, 2e-4},      {"minimax-m2.7", 228.69, 1e-3},
    {"qwen3.5-122b-a10b", 122.11, 1e-3},   {"qwen3.6-35b-a3b", 34.66, 1e-3},
    {"qwen3.6-27b", 27.32 - 0.4247, 1e-3},
};

START_TEST(weights_add_up_to_the_published_ones)
{
    struct model b;
    model_init(&b, totals[_i].name, "extended");
    model_near(llm_stored_weights(&b.llm) / 1e9, totals[_i].published, totals[_i].within);
}
END_TEST

/* Bytes of KV that a token adds, with 16 bits. Qwen3.6 35B: 10 layers, 2 x 2 heads of 256. GLM 4.7
 * Flash: 47 layers, 512 + 64. Gemma 4 26B: 25 layers with 2 x 8 heads of 256, and 5 with 2 x 2 of
 * 512. LFM2: 6 layers, 2 x 8 heads of 64. And states of a sequence, 4 bytes an element. Qwen3.6: 30
 * layers with 32 heads of 128 x 128, and a convolution over 4 rows of 2 x 16 + 32 heads. LFM2: 10
 * layers with a convolution over 3 rows. Gemma 4 E2B stores keys in 15 of 35 layers: 12 have 2
 * heads of 256, and 3 of 512. E4B does in 24 of 42: 20 with 2 x 2 heads of 256, and 4 of 512. Gemma
 * 3n does in 20. */
static const struct {
    const char *name;
    double elements, states;
} tokens[] = {
    {"qwen3.6-35b-a3b", 10.0 * 2 * 2 * 256, 30.0 * (32 * 128 * 128 + 3 * 64 * 128)},
    {"glm-4.7-flash", 47.0 * (512 + 64), 0.0},
    {"gemma-4-26b-a4b", 25.0 * 2 * 8 * 256 + 5.0 * 2 * 2 * 512, 0.0},
    {"lfm2-1.2b", 6.0 * 2 * 8 * 64, 10.0 * 2 * 2048},
    {"gemma-4-e2b", 12.0 * 2 * 256 + 3.0 * 2 * 512, 0.0},
    {"gemma-4-e4b", 20.0 * 2 * 2 * 256 + 4.0 * 2 * 2 * 512, 0.0},
    {"gemma-3n-e2b", 20.0 * 2 * 2 * 256, 0.0},
    {"gemma-3n-e4b", 20.0 * 2 * 2 * 256, 0.0},
};

START_TEST(a_token_stores_what_its_layers_keep)
{
    struct model b;
    model_init(&b, tokens[_i].name, "extended");
    /* Exactly, since blocks are whole: one byte more would be a block more. */
    ck_assert_double_eq(b.llm.kv_bytes_per_token, tokens[_i].elements * b.llm.kv_bytes_per_element);
    ck_assert_double_eq(b.llm.kv_state_bytes, 4.0 * tokens[_i].states);
}
END_TEST

/* A device that computes 1e12 flop/s, and moves bytes at once or computes at once. */
static void plain_device(struct model *b, bool computes)
{
    static struct soc_runtime p;
    p = (struct soc_runtime){.many = {1e12, 1e12, 0.0},
                             .one = {1e12, 1e12, 0.0},
                             .attention_frac = 0.5,
                             .min_rows = 1,
                             .fused_launch_frac = 1.0,
                             .sliding_window = true};
    p.many.bytes_per_s = p.one.bytes_per_s = computes ? 1e18 : 1e12;
    p.many.flop_per_s = p.one.flop_per_s = computes ? 1e12 : 1e18;
    roofline_set_runtime(&b->r, MODEL_IGPU, &p);
}

/* Three of four layers of Qwen3.6 35B have a state: 32 heads of 128 x 128, and three rows of 8192
 * that the convolution keeps. So a layer has on average 3/4 of 548,864 elements. Each decoding
 * sequence reads and writes them, 4 bytes each, and its keys in the fourth layer: 2 x 2 x 256
 * elements each. Queries and outputs are 4096 wide there; 12352 and 4096 are elsewhere. */
START_TEST(a_state_moves_once_for_each_sequence)
{
    static const double state = 0.75 * (32 * 128 * 128 + 3 * 8192);
    static const double io = 2.0 * (0.25 * 2 * 4096 + 0.75 * (12352 + 4096));
    struct model b;
    model_init(&b, "qwen3.6-35b-a3b", "extended");
    plain_device(&b, false);
    double key = 0.25 * 2 * 2 * 256 * b.llm.kv_bytes_per_element;
    for (uint32_t n = 1; n <= 5; n += 2) {
        struct work_shape w = model_decode(n, 1000);
        struct kernel_cost c = model_cost(&b, MODEL_IGPU, OP_MHA, &w, n, n);
        double bytes = n * (2 * 4 * state + 1000 * key + io);
        model_near(c.bytes, bytes, 1e-9);
        model_near((double)c.t_ns, bytes * 1e-3, 1e-4);
        model_near(c.flop, n * (6 * state + 0.25 * 4 * 4096 * 1000), 1e-9);
    }
    /* A prompt of one sequence has its state once, and its rows update it at attention's rate. */
    plain_device(&b, true);
    struct work_shape w = model_prefill(1000);
    struct kernel_cost c = model_cost(&b, MODEL_IGPU, OP_MHA, &w, 1000, 1000);
    double pairs = 1000.0 * 1001 / 2;
    double flop = 1000 * 6 * state + pairs * 0.25 * 4 * 4096;
    model_near(c.flop, flop, 1e-9);
    model_near((double)c.t_ns, flop / 0.5 * 1e-3, 1e-4);
    model_near(c.bytes, 2 * 4 * state + 1000 * key + 1000 * io, 1e-9);
    /* A half of the rows has half of the work, and of all bytes. */
    c = model_cost(&b, MODEL_IGPU, OP_MHA, &w, 500, 500);
    model_near(c.flop, flop / 2, 1e-9);
    model_near(c.bytes, (2 * 4 * state + 1000 * key + 1000 * io) / 2, 1e-9);
}
END_TEST

/* Products of one layer of Qwen3.6 35B on average. A fourth has queries and their gate, 2 x 4096,
 * and keys and values, 2 x 512; the others 12352 outputs. All have 4096 inputs behind. */
START_TEST(a_layer_has_its_share_of_the_products_of_each_kind)
{
    struct model b;
    model_init(&b, "qwen3.6-35b-a3b", "extended");
    const struct roofline_op *qkv = &b.r.ops[OP_QKV];
    model_near(qkv->flop_per_row, 2.0 * 2048 * (0.25 * (8192 + 1024) + 0.75 * 12352), 1e-12);
    model_near(qkv->prims, 1.0, 1e-12);
    double outputs = b.r.ops[OP_FFN].flop_per_row - 2.0 * 3 * 2048 * 512 * (8 + 1);
    model_near(outputs, 2.0 * 4096 * 2048, 1e-12);
}
END_TEST

/* GLM 4.7 Flash: 20 heads, queries by 768, keys of 192 and 64 with positions, values of 256, in a
 * latent space of 512. Products in front: 2048 x 768, 768 x 20 x 256, 2048 x 576, and 20 of
 * 192 x 512. Behind: 20 of 512 x 256, and 20 x 256 x 2048. A pair is 20 x (576 + 512) products. */
START_TEST(latent_attention_runs_in_its_space)
{
    struct model b;
    model_init(&b, "glm-4.7-flash", "extended");
    plain_device(&b, false);
    double before = 2048.0 * 768 + 768.0 * 20 * 256 + 2048.0 * 576 + 20.0 * 192 * 512;
    double after = 20.0 * 512 * 256 + 20.0 * 256 * 2048;
    double experts = 46.0 / 47 * 3 * 2048 * 1536 * (4 + 1) + 1.0 / 47 * 3 * 2048 * 10240;
    model_near(b.r.ops[OP_QKV].flop_per_row, 2 * before, 1e-12);
    model_near(b.r.ops[OP_FFN].flop_per_row, 2 * (after + experts), 1e-12);
    ck_assert_double_eq(b.r.ops[OP_QKV].prims, 4.0);
    struct work_shape w = model_decode(2, 3000);
    struct kernel_cost c = model_cost(&b, MODEL_IGPU, OP_MHA, &w, 2, 2);
    model_near(c.flop, 2.0 * 3000 * 2 * 20 * (576 + 512), 1e-12);
    model_near(c.bytes, 2.0 * 3000 * 576 * b.llm.kv_bytes_per_element + 2.0 * 2 * 20 * (576 + 512),
               1e-12);
}
END_TEST

/* Gemma 4 26B: 25 of 30 layers have 16 heads of 256 over 8, and see 1024 keys; 5 have 16 of 512
 * over 2, one product for keys and values, and see all. A row with 5024 keys reads 1024 in the
 * former. */
START_TEST(layers_without_a_window_have_heads_of_their_own)
{
    struct model b;
    model_init(&b, "gemma-4-26b-a4b", "extended");
    plain_device(&b, false);
    double near = 25.0 / 30;
    double far = 5.0 / 30;
    model_near(b.r.ops[OP_QKV].flop_per_row,
               2.0 * 2816 * (near * (4096 + 2 * 2048) + far * (8192 + 1024)), 1e-12);
    struct work_shape w = {0};
    work_shape_add(&w, b.llm.sliding_window, 5023, 1);
    w.logit_rows = 1;
    struct kernel_cost c = model_cost(&b, MODEL_IGPU, OP_MHA, &w, 1, 1);
    model_near(c.flop, near * 1024 * 4 * 4096 + far * 5024 * 4 * 8192, 1e-12);
    model_near(c.bytes,
               (near * 1024 * 4096 + far * 5024 * 2048) * b.llm.kv_bytes_per_element +
                   2.0 * 2 * (near * 4096 + far * 8192),
               1e-12);
}
END_TEST

/* Llama 3.2 3B has 28 layers, 24 heads of 128 over 8, and is 3072 wide. Here a gate doubles the
 * queries, 7 layers have no keys of their own, and 12 have 24 heads of 64 over 4, without values.
 * Each goes with each other one. All kinds of layers have as large a share without keys. */
START_TEST(gates_shared_keys_and_other_heads_go_together)
{
    for (int combined = 0; combined < 16; combined++) {
        bool gated = (combined & 1) != 0, shared = (combined & 2) != 0;
        bool global = (combined & 4) != 0, as_values = global && (combined & 8) != 0;
        struct model b;
        model_init(&b, "llama-3.2-3b", "extended");
        struct llm_attention *a = &b.llm.attention;
        a->gated = gated;
        a->shared_kv_layers = shared ? 7 : 0;
        a->global_head_dim = global ? 64 : 0;
        a->global_kv_heads = global ? 4 : 0;
        a->keys_as_values = as_values;
        b.llm.sliding_layers = global ? 16 : 0;
        roofline_init(&b.r, hwmodel_find("extended"), &b.soc, &b.llm);
        double weights = 0.0;
        for (int layer = 0; layer < 28; layer++) {
            bool other = global && layer >= 16;
            double queries = (gated ? 2 : 1) * 24.0 * (other ? 64 : 128);
            double kv = other ? (as_values ? 1 : 2) * 4.0 * 64 : 2 * 8.0 * 128;
            weights += 3072 * (queries + kv * (shared ? 21.0 / 28 : 1.0));
        }
        model_near(b.r.ops[OP_QKV].flop_per_row, 2 * weights / 28, 1e-12);
    }
}
END_TEST

/* Gemma 4 E2B. Four of five layers have 8 heads of 256 over one, and the fifth ones of 512; 20 of
 * 35 have no products for keys and values, and an FFN twice as wide. A layer's embedding of 256 has
 * a product in front and one behind, and all of them together one in front of a pass. A token reads
 * 256 weights of its row. Keys are read in all layers, 512 of them in those with a window. */
START_TEST(a_layer_reads_one_row_of_its_embeddings)
{
    struct model b;
    model_init(&b, "gemma-4-e2b", "extended");
    plain_device(&b, false);
    double q = 0.8 * 2048 + 0.2 * 4096;
    double kv = 15.0 / 35 * (0.8 * 512 + 0.2 * 1024);
    double ffn = 15.0 / 35 * 6144 + 20.0 / 35 * 12288;
    model_near(b.r.ops[OP_QKV].flop_per_row, 2.0 * 1536 * (q + kv + 256), 1e-12);
    model_near(b.r.ops[OP_QKV].prims, 1 + 1.0 / 35, 1e-12);
    model_near(b.r.ops[OP_FFN].flop_per_row, 2.0 * 1536 * (q + 2 * 256 + 3 * ffn), 1e-12);
    ck_assert_double_eq(b.r.ops[OP_FFN].prims, 1 + 2 + 3);
    struct work_shape w = {0};
    work_shape_add(&w, b.llm.sliding_window, 5023, 1);
    w.logit_rows = 1;
    struct kernel_cost c = model_cost(&b, MODEL_IGPU, OP_QKV, &w, 1, 1);
    /* Inputs and outputs, 2 bytes each: queries come from 1536 + 1536/35 inputs on average. */
    double io = 2.0 * (1536 + q + kv + 1536.0 / 35 + 256);
    model_near(c.bytes, 1.01 * 1536 * (q + kv + 256) + io + 1.01 * 256, 1e-12);
    c = model_cost(&b, MODEL_IGPU, OP_MHA, &w, 1, 1);
    double keys = 0.8 * 512 * 2 * 256 + 0.2 * 5024 * 2 * 512;
    model_near(c.bytes, keys * b.llm.kv_bytes_per_element + 2.0 * 2 * q, 1e-12);
    /* In memory are all tables, and products for keys that no kernel reads. */
    double idle = 20.0 * 1536 * (0.8 * 512 + 0.2 * 1024);
    double table = 262144.0 * 256 * 35;
    model_near(b.llm.weight_bytes, 1.01 * (b.llm.body_weights + idle + 262144.0 * 1536 + table),
               1e-12);
}
END_TEST

/* A file may say the bytes of its tables. Where the model is taken with another width, they follow
 * the head: 2 bytes at 16 bits. */
START_TEST(tables_have_bytes_of_their_own)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct llm m;
    SCOPED(json_drop) cJSON *tree = json_read_file("hwmodels/llm/gemma-4-e2b.json", &e);
    json_put_quantity(tree, "layer_embedding_bytes_per_weight",
                      (struct quantity){0.5, 0.5, 0.5, QUANTITY_ASSUMED, true}, "B", "a test");
    ck_assert_int_eq(llm_parse(tree, "tree", &m, &e), 0);
    double table = 262144.0 * 256 * 35;
    model_near(m.weight_bytes, 1.01 * (llm_stored_weights(&m) - table) + 0.5 * table, 1e-12);
    const struct soc_format wide = {.body_bytes = 2.0, .head_bytes = 2.0, .kv_bytes = 2.0};
    llm_requantise(&m, 16, 16, &wide);
    model_near(m.weight_bytes, 2.0 * llm_stored_weights(&m), 1e-12);
    llm_tree_width(tree, 16);
    ck_assert_int_eq(llm_parse(tree, "tree", &m, &e), 0);
    model_near(m.weight_bytes, 2.0 * llm_stored_weights(&m), 1e-12);
}
END_TEST

/* Weights outside experts keep their bytes in another width, and the head has at least as many. */
START_TEST(a_head_is_no_narrower_than_what_is_outside_the_experts)
{
    static const double dense[] = {2.0, 0.3};
    SCOPED(err_fini) struct err e = ERR_INIT;
    SCOPED(json_drop) cJSON *tree = json_read_file("hwmodels/llm/qwen3-30b-a3b.json", &e);
    for (int i = 0; i < 2; i++) {
        json_put_quantity(tree, "dense_bytes_per_weight",
                          (struct quantity){dense[i], dense[i], dense[i], QUANTITY_ASSUMED, true},
                          "B", "a test");
        llm_tree_width(tree, 4);
        double head = json_number(json_member(tree, "head_bytes_per_weight"), "value");
        ck_assert_double_eq(head, fmax(soc_format_of_width(4).head_bytes, dense[i]));
    }
    ck_assert_double_lt(soc_format_of_width(4).head_bytes, 2.0);
    ck_assert_double_gt(soc_format_of_width(4).head_bytes, 0.3);
}
END_TEST

/* Gemma 3n E2B: 8 heads of 256 over 2; 20 of 30 layers have products for keys and values. A path of
 * rank 64 is around attention. Three more streams have a product in front of a pass and one behind
 * it. Inputs and outputs take 2 bytes each, and the row of a table 1.01 for each of 256. */
START_TEST(streams_have_products_at_both_ends_of_a_pass)
{
    struct model b;
    model_init(&b, "gemma-3n-e2b", "extended");
    double before = 2048 + 20.0 / 30 * 1024 + 256 + 2 * 64 + 3 * 2048.0 / 30;
    double after = 2048 + 2 * 256 + 3 * 2048.0 / 30 + 3 * 8192;
    model_near(b.r.ops[OP_QKV].flop_per_row, 2.0 * 2048 * before, 1e-12);
    model_near(b.r.ops[OP_FFN].flop_per_row, 2.0 * 2048 * after, 1e-12);
    model_near(b.r.ops[OP_QKV].prims, 1 + 2 + 2.0 / 30, 1e-12);
    model_near(b.r.ops[OP_FFN].prims, 1 + 2 + 3 + 1.0 / 30, 1e-12);
    double streams = 3 * (2048.0 + 2048) / 30;
    double first = (2048 + 256.0 * 30) / 30 + 2 * (2048 + 64) + streams;
    model_near(b.r.ops[OP_QKV].io_bytes_per_row,
               2 * (2048 + 2048 + 20.0 / 30 * 1024 + first) + 1.01 * 256, 1e-12);
    model_near(b.r.ops[OP_FFN].io_bytes_per_row,
               2 * (2 * 2048 + 2 * (2048 + 256) + streams + 3 * (2048 + 8192)), 1e-12);
}
END_TEST

/* Six of LFM2's 16 layers attend, with 2 x 8 heads of 64. Where two of the six share keys, four
 * store them. */
START_TEST(only_layers_that_attend_share_keys)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct llm m;
    SCOPED(json_drop) cJSON *tree = json_read_file("hwmodels/llm/lfm2-1.2b.json", &e);
    (void)cJSON_AddNumberToObject(tree, "shared_kv_layers", 2);
    ck_assert_int_eq(llm_parse(tree, "tree", &m, &e), 0);
    model_near(m.kv_bytes_per_token, 4.0 * 2 * 8 * 64 * m.kv_bytes_per_element, 1e-12);
}
END_TEST

/* Rotary positions and norms read and write, in 16 bits. GLM has the rotary parts of 20 queries and
 * one key, 64 each. Qwen3.6 35B has 16 + 2 heads of 256 in every fourth layer. A norm is as wide as
 * the hidden width. */
START_TEST(only_what_has_positions_is_rotated)
{
    static const struct {
        const char *name;
        double rotated;
    } rows[] = {{"glm-4.7-flash", 21 * 64}, {"qwen3.6-35b-a3b", 0.25 * (16 + 2) * 256}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct model b;
        model_init(&b, rows[i].name, "extended");
        double fused = b.r.ops[OP_QKV].io_bytes_per_row;
        roofline_unfuse(&b.r, 0.0);
        model_near(b.r.ops[OP_QKV].io_bytes_per_row - fused, 2 * 2.0 * (2048 + rows[i].rotated),
                   1e-12);
    }
}
END_TEST

/* A floor counts keys and pairs in the layers without a window, which all rows see. */
START_TEST(a_floor_counts_layers_without_a_window)
{
    struct model b;
    struct kernel_floor f;
    model_init(&b, "gemma-4-26b-a4b", "extended");
    plain_device(&b, false);
    b.r.model.ops->floor(&b.r.model, MODEL_IGPU, OP_MHA, true, &f);
    model_near(f.key_bytes, 5.0 / 30 * 2048 * b.llm.kv_bytes_per_element, 1e-12);
    model_near(f.pair_s, 5.0 / 30 * 4 * 8192 / 1e18 / 0.5, 1e-12);
}
END_TEST

/* No kernel is below its floor: rows few or many, of one sequence or several, and shares of them.
 */
START_TEST(no_kernel_is_below_its_floor)
{
    static const char *const names[] = {"qwen3.6-35b-a3b", "glm-4.7-flash", "gemma-4-26b-a4b",
                                        "lfm2-1.2b",       "gemma-4-e2b",   "gemma-3n-e2b"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct model b;
        model_init(&b, names[i], "extended");
        for (uint32_t rows = 1; rows <= 64; rows *= 2) {
            for (uint32_t part = 1; part <= rows; part *= 2) {
                struct work_shape w = rows <= 8 ? model_decode(rows, 700) : model_prefill(rows);
                struct kernel_floor f;
                b.r.model.ops->floor(&b.r.model, MODEL_IGPU, OP_MHA, part == 1, &f);
                struct kernel_cost c = model_cost(&b, MODEL_IGPU, OP_MHA, &w, part, part);
                double share = (double)part / rows;
                double bytes =
                    f.bytes + f.row_bytes * part + f.key_bytes * share * (double)w.kv_read_tokens;
                double compute =
                    f.row_s * fmax(part, f.rows_min) + f.pair_s * share * (double)w.attn_pairs;
                double least = f.fixed_s + fmax(compute, bytes / f.bytes_per_s);
                ck_assert_msg(bytes <= c.bytes * (1.0 + 1e-12), "%s: %u of %u rows: %g of %g B",
                              names[i], part, rows, c.bytes, bytes);
                ck_assert_msg(least * 1e9 <= (double)c.t_ns + 1.0, "%s: %u of %u rows", names[i],
                              part, rows);
            }
        }
    }
}
END_TEST

/* Keys of one kind of attention come together, and exclude those of others. */
static const struct {
    const char *file, *key, *why;
    double value;
} refused[] = {
    {"qwen3.6-27b", "recurrent_in", "come together, and recurrent_layers is below layers", 0},
    {"qwen3.6-27b", "recurrent_layers", "recurrent_layers is below layers", 64},
    {"qwen3.6-27b", "latent_kv", "latent_kv, rotary_dim and value_dim come together", 512},
    {"glm-4.7-flash", "value_dim", "latent_kv, rotary_dim and value_dim come together", 0},
    {"glm-4.7-flash", "rotary_dim", "rotary_dim is at most head_dim", 300},
    {"gemma-4-31b", "global_head_dim", "global_kv_heads and global_head_dim come together", 0},
    {"gemma-4-31b", "global_kv_heads", "heads must be a multiple of global_kv_heads", 5},
    {"gemma-4-31b", "sliding_layers", "some layers must have a window and some not", 60},
    {"gemma-4-31b", "recurrent_layers", "are more than layers", 11},
    {"gemma-4-e2b", "shared_kv_layers", "no layer has keys of its own", 35},
    {"glm-4.7-flash", "shared_kv_layers", "layers that share keys", 5},
    {"gemma-4-e2b", "shared_ffn", "shared_ffn is for models with experts", 5},
};

START_TEST(keys_of_a_kind_of_attention_go_together)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct llm m;
    OWNED char *path = xformat("hwmodels/llm/%s.json", refused[_i].file);
    SCOPED(json_drop) cJSON *tree = json_read_file(path, &e);
    ck_assert_int_eq(llm_parse(tree, "tree", &m, &e), 0);
    cJSON_DeleteItemFromObjectCaseSensitive(tree, refused[_i].key);
    JSON_MEMBERS(tree, refused[_i].key, refused[_i].value);
    ck_assert_int_ne(llm_parse(tree, "tree", &m, &e), 0);
    bool says = false;
    for (size_t i = 0; i < e.n; i++) {
        says = says || strstr(e.lines[i], refused[_i].why) != NULL;
    }
    ck_assert_msg(says, "%s", e.lines[0]);
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(weights_add_up_to_the_published_ones, sizeof totals / sizeof totals[0]),
    LOOP(a_token_stores_what_its_layers_keep, sizeof tokens / sizeof tokens[0]),
    TEST(a_state_moves_once_for_each_sequence),
    TEST(a_layer_has_its_share_of_the_products_of_each_kind),
    TEST(latent_attention_runs_in_its_space),
    TEST(layers_without_a_window_have_heads_of_their_own),
    TEST(gates_shared_keys_and_other_heads_go_together),
    TEST(a_layer_reads_one_row_of_its_embeddings),
    TEST(tables_have_bytes_of_their_own),
    TEST(a_head_is_no_narrower_than_what_is_outside_the_experts),
    TEST(streams_have_products_at_both_ends_of_a_pass),
    TEST(only_layers_that_attend_share_keys),
    TEST(only_what_has_positions_is_rotated),
    TEST(a_floor_counts_layers_without_a_window),
    TEST(no_kernel_is_below_its_floor),
    LOOP(keys_of_a_kind_of_attention_go_together, sizeof refused / sizeof refused[0]),
};
SUITE_MAIN("llm_layers", suite)
