/* GGUF files are read as LLM files. */
#include "hwmodels/llm_gguf.h"

#include <math.h>
#include <unistd.h>

#include "hwmodels/gguf.h"
#include "tests/helpers/gguf_file.h"
#include "tests/helpers/suite.h"

/* Two layers of 256 x (256 + 128 + 128 + 256 + 2 x 512) weights with 144 bytes for each 256, and
 * 512 x 256 with 210. The head is the embedding, 34 bytes for each 32. Its positions are learned.
 */
START_TEST(a_dense_model_is_its_tensors)
{
    begin("granite", 4, 2);
    head_of_key("granite.rope.scaling.finetuned", BOOL);
    number(&keys, 0, 1);
    tensor("token_embd.weight", T_Q8_0, 256, 1000, 1);
    tensor("position_embd.weight", T_F32, 256, 4096, 1);
    plain_layer(0, T_Q4_K);
    plain_layer(1, T_Q4_K);
    struct llm m = model();
    ck_assert(m.n_layers == 2 && m.hidden == 256 && m.heads == 4 && m.kv_heads == 2);
    ck_assert(m.head_dim == 64 && m.ffn_hidden == 512 && m.vocab == 1000 && m.gated_ffn);
    ck_assert(m.tied_head && m.weight_bits == 4 && m.max_context == 4096 && m.n_experts == 0);
    ck_assert(m.special_attention && m.sliding_layers == 0);
    double wide = 256.0 * (256 + 128 + 128 + 256 + 1024);
    double bytes = (wide * 144 + 512.0 * 256 * 210) / 256;
    ck_assert_double_eq_tol(m.body_bytes_per_weight, bytes / (wide + 512.0 * 256), 1e-12);
    ck_assert_double_eq_tol(m.weight_bytes, 2 * bytes + 256000.0 * 34 / 32, 1e-6);
    ck_assert_double_eq_tol(m.kv_bytes_per_token, 2 * 2 * 2 * 64 * 2.0, 1e-12);
}
END_TEST

/* Keys of Granite have positions, unless its file denies them. */
START_TEST(granites_keys_have_positions)
{
    bool said = _i < 2;
    begin("granite", 4, 2);
    if (said) {
        head_of_key("granite.rope.scaling.finetuned", BOOL);
        number(&keys, (uint64_t)_i, 1);
    }
    tensor("token_embd.weight", T_Q8_0, 256, 1000, 1);
    plain_layer(0, T_Q4_K);
    plain_layer(1, T_Q4_K);
    ck_assert(model().special_attention == (said && _i == 0));
}
END_TEST

/* Four layers with eight experts 96 wide, of which a token uses two, and a shared one of 160; the
 * last layer attends, with a gate. The others have a state of 8 x 512 elements, and 3 rows of 640
 * that are convolved. A fifth only drafts tokens, and does not count. Experts have 18 bytes for
 * each 32 weights, all else 34. */
START_TEST(a_mixture_with_states_is_its_tensors)
{
    begin("qwen35moe", 4, 2);
    key_u32("qwen35moe.attention.key_length", 64);
    key_u32("qwen35moe.rope.dimension_count", 16);
    key_u32("qwen35moe.expert_used_count", 2);
    key_u32("qwen35moe.ssm.inner_size", 512);
    key_u32("qwen35moe.ssm.state_size", 8);
    tensor("token_embd.weight", T_Q4_0, 256, 1000, 1);
    tensor("output.weight", T_F16, 256, 1000, 1);
    for (uint32_t i = 0; i < 5; i++) {
        if (i >= 3) {
            layer(i, "attn_q", T_Q8_0, 256, 512);
            layer(i, "attn_k", T_Q8_0, 256, 128);
            layer(i, "attn_v", T_Q8_0, 256, 128);
            layer(i, "attn_output", T_Q8_0, 256, 256);
        } else {
            layer(i, "attn_qkv", T_Q8_0, 256, 640);
            layer(i, "attn_gate", T_Q8_0, 256, 512);
            layer(i, "ssm_ba", T_Q8_0, 256, 16);
            layer(i, "ssm_conv1d", T_F32, 4, 640);
            layer(i, "ssm_out", T_Q8_0, 512, 256);
        }
        if (i == 4) {
            layer(i, "nextn.eh_proj", T_Q8_0, 512, 256);
        }
        layer(i, "ffn_gate_inp", T_F32, 256, 8);
        experts(i, "ffn_gate_exps", T_Q4_0, 256, 96);
        experts(i, "ffn_up_exps", T_Q4_0, 256, 96);
        experts(i, "ffn_down_exps", T_Q4_0, 96, 256);
        layer(i, "ffn_gate_shexp", T_Q8_0, 256, 160);
        layer(i, "ffn_up_shexp", T_Q8_0, 256, 160);
        layer(i, "ffn_down_shexp", T_Q8_0, 160, 256);
    }
    struct llm m = model();
    const struct llm_attention *a = &m.attention;
    ck_assert(m.n_layers == 4 && m.n_experts == 8 && m.experts_per_token == 2);
    ck_assert(m.ffn_hidden == 96 && m.shared_ffn == 160 && m.dense_layers == 0 && !m.tied_head);
    ck_assert(a->gated && a->recurrent_layers == 3 && a->recurrent_in == 640 + 512 + 16);
    ck_assert(a->recurrent_out == 512 && a->recurrent_state == 8 * 512 + 3 * 640);
    ck_assert(m.special_attention && m.weight_bits == 4);
    ck_assert_double_eq(m.body_bytes_per_weight, 18.0 / 32);
    ck_assert_double_eq(m.dense_bytes_per_weight, 34.0 / 32);
    ck_assert_double_eq(m.head_bytes_per_weight, 2.0);
    double outside =
        256.0 * (512 + 128 + 128 + 256) + 3 * 256.0 * (640 + 512 + 16 + 512) + 4 * 3 * 256.0 * 160;
    ck_assert_double_eq_tol(
        m.weight_bytes, 4 * 8 * 3 * 256.0 * 96 * 18 / 32 + outside * 34 / 32 + 2 * 512000.0, 1e-6);
}
END_TEST

/* One dense layer before one with experts. Four heads with keys of 32, 16 of these with positions,
 * and values of 48, in a latent space of 128; queries by 64. */
START_TEST(latent_attention_is_its_tensors)
{
    begin("deepseek2", 4, 1);
    key_u32("deepseek2.attention.key_length", 144);
    key_u32("deepseek2.attention.value_length", 128);
    key_u32("deepseek2.attention.key_length_mla", 32);
    key_u32("deepseek2.attention.value_length_mla", 48);
    key_u32("deepseek2.attention.kv_lora_rank", 128);
    key_u32("deepseek2.attention.q_lora_rank", 64);
    key_u32("deepseek2.rope.dimension_count", 16);
    key_u32("deepseek2.expert_used_count", 2);
    tensor("token_embd.weight", T_Q8_0, 256, 1000, 1);
    for (uint32_t i = 0; i < 2; i++) {
        layer(i, "attn_q_a", T_Q8_0, 256, 64);
        layer(i, "attn_q_b", T_Q8_0, 64, 128);
        layer(i, "attn_kv_a_mqa", T_Q8_0, 256, 144);
        OWNED char *k = xformat("blk.%u.attn_k_b.weight", i);
        OWNED char *v = xformat("blk.%u.attn_v_b.weight", i);
        tensor(k, T_Q8_0, 16, 128, 4);
        tensor(v, T_Q8_0, 128, 48, 4);
        layer(i, "attn_output", T_Q8_0, 192, 256);
    }
    layer(0, "ffn_gate", T_Q8_0, 256, 320);
    layer(0, "ffn_up", T_Q8_0, 256, 320);
    layer(0, "ffn_down", T_Q8_0, 320, 256);
    experts(1, "ffn_gate_up_exps", T_Q8_0, 256, 192);
    experts(1, "ffn_down_exps", T_Q8_0, 96, 256);
    struct llm m = model();
    const struct llm_attention *a = &m.attention;
    ck_assert(a->latent_kv == 128 && a->latent_query == 64 && a->rotary_dim == 16);
    ck_assert(a->value_dim == 48 && m.head_dim == 32 && m.heads == 4);
    ck_assert(m.dense_layers == 1 && m.dense_ffn == 320 && m.ffn_hidden == 96 && m.gated_ffn);
    ck_assert_double_eq(m.dense_bytes_per_weight, 34.0 / 32); /* as its experts */
    ck_assert_double_eq_tol(m.kv_bytes_per_token, 2 * 144 * 2.0, 1e-12);
}
END_TEST

/* Three layers, two of them with a window of 512, by a list. These have four heads of 64 over two;
 * the third has four of 128 over one, and no product for values. An FFN of 320 is next to
 * the experts. */
START_TEST(two_kinds_of_heads_are_their_tensors)
{
    static const uint32_t window[] = {1, 1, 0}, kv[] = {2, 2, 1};
    begin("gemma4", 4, 0);
    key_list("gemma4.attention.head_count_kv", kv, 3);
    key_list("gemma4.attention.sliding_window_pattern", window, 3);
    key_u32("gemma4.attention.sliding_window", 512);
    key_u32("gemma4.attention.key_length", 128);
    key_u32("gemma4.attention.key_length_swa", 64);
    key_u32("gemma4.expert_used_count", 2);
    tensor("token_embd.weight", T_Q8_0, 256, 1000, 1);
    for (uint32_t i = 0; i < 3; i++) {
        bool near = i < 2;
        layer(i, "attn_q", T_Q8_0, 256, near ? 256 : 512);
        layer(i, "attn_k", T_Q8_0, 256, 128);
        if (near) {
            layer(i, "attn_v", T_Q8_0, 256, 128);
        }
        layer(i, "attn_output", T_Q8_0, near ? 256 : 512, 256);
        layer(i, "ffn_gate", T_Q8_0, 256, 320);
        layer(i, "ffn_up", T_Q8_0, 256, 320);
        layer(i, "ffn_down", T_Q8_0, 320, 256);
        experts(i, "ffn_gate_up_exps", T_Q4_0, 256, 192);
        experts(i, "ffn_down_exps", T_Q4_0, 96, 256);
    }
    struct llm m = model();
    const struct llm_attention *a = &m.attention;
    ck_assert(m.sliding_window == 512 && m.sliding_layers == 2 && m.head_dim == 64);
    ck_assert(m.kv_heads == 2 && a->global_head_dim == 128 && a->global_kv_heads == 1);
    ck_assert(a->keys_as_values && m.shared_ffn == 320 && m.ffn_hidden == 96 && m.tied_head);
}
END_TEST

/* Phi-3 has queries, keys and values in one product, and gate and values of its FFN in another. A
 * gate of attention is a product of its own next to it. GPT-2 has no gate. */
START_TEST(fused_products_are_taken_apart)
{
    for (int k = 0; k < 3; k++) {
        int i = k % 2;
        begin(i == 0 ? "phi3" : "gpt2", 4, i == 0 ? 2 : 4);
        tensor("token_embd.weight", T_Q8_0, 256, 1000, 1);
        layer(0, "attn_qkv", T_Q8_0, 256, i == 0 ? 512 : 768);
        if (k == 2) {
            layer(0, "attn_gate", T_Q8_0, 256, 256);
        }
        layer(0, "attn_output", T_Q8_0, 256, 256);
        layer(0, "ffn_up", T_Q8_0, 256, i == 0 ? 1024 : 512);
        layer(0, "ffn_down", T_Q8_0, 512, 256);
        struct llm m = model();
        ck_assert(m.gated_ffn == (i == 0) && m.ffn_hidden == 512);
        ck_assert(m.attention.gated == (k == 2));
        ck_assert(m.kv_heads == (i == 0 ? 2 : 4) && !m.special_attention);
        tempfile_remove();
    }
}
END_TEST

/* Most weights have 8 bits, but their mean is below: 0.93 bytes are those of 7 bits. Most have 4,
 * and a few 32: 1.28 bytes are over twice as many, so they count as 6 bits. */
START_TEST(a_width_goes_with_the_mean_of_the_bytes)
{
    for (int i = 0; i < 2; i++) {
        begin("llama", 4, 2);
        tensor("token_embd.weight", T_Q8_0, 256, 1000, 1);
        uint32_t many = i == 0 ? T_Q8_0 : T_Q4_0;
        uint32_t few = i == 0 ? T_Q4_0 : T_F32;
        layer(0, "attn_q", few, 256, 256);
        layer(0, "attn_k", few, 256, 128);
        layer(0, "attn_v", many, 256, 128);
        layer(0, "attn_output", many, 256, 256);
        layer(0, "ffn_gate", many, 256, 256);
        layer(0, "ffn_up", many, 256, 256);
        layer(0, "ffn_down", i == 0 ? T_Q8_0 : T_Q4_0, 256, 256);
        struct llm m = model();
        double share = 256.0 * 384 / (256.0 * 1536); /* of the few */
        double mean =
            i == 0 ? (1 - share) * 34 / 32 + share * 18 / 32 : (1 - share) * 18 / 32 + share * 4;
        ck_assert_double_eq_tol(m.body_bytes_per_weight, mean, 1e-12);
        ck_assert_uint_eq(m.weight_bits, i == 0 ? 7 : 6);
        tempfile_remove();
    }
}
END_TEST

/* A layer in each of two files. The second repeats a key, which does not count. */
START_TEST(a_split_model_is_read_whole)
{
    const char *base = tempfile_make("");
    OWNED char *first = xformat("%s-00001-of-00002.gguf", base);
    OWNED char *second = xformat("%s-00002-of-00002.gguf", base);
    begin("llama", 4, 2);
    key_u32("split.count", 2);
    tensor("token_embd.weight", T_Q8_0, 256, 1000, 1);
    plain_layer(0, T_Q4_K);
    finish(3);
    put(first, whole.n);
    key_u32("split.count", 9);
    plain_layer(1, T_Q4_K);
    finish(3);
    put(second, whole.n);
    struct llm m = model_at(first);
    ck_assert_uint_eq(m.n_layers, 2);
    ck_assert_ptr_null(llm_gguf_tree(second, "mine", &err)); /* 9 parts, and not the first */
    (void)unlink(first);
    (void)unlink(second);
}
END_TEST

/* ---- what is refused ---- */

static void refused(const char *why)
{
    const char *path = tempfile_make(".gguf");
    finish(3);
    put(path, whole.n);
    ck_assert_ptr_null(llm_gguf_tree(path, "mine", &err));
    ck_assert_uint_eq(err.n, 1);
    ck_assert_msg(strstr(err.lines[0], why) != NULL && strstr(err.lines[0], path) != NULL, "%s",
                  err.lines[0]);
}

static void begin_plain(void)
{
    begin("llama", 4, 2);
    tensor("token_embd.weight", T_Q8_0, 256, 1000, 1);
    plain_layer(0, T_Q4_K);
}

START_TEST(what_a_file_cannot_say_is_refused_by_tensor)
{
    switch (_i) {
    case 0:
        begin_plain();
        layer(0, "indexer.proj", T_Q8_0, 256, 64);
        refused("tensor blk.0.indexer.proj.weight, which an LLM file cannot say");
        break;
    case 1:
        begin_plain();
        tensor("per_layer_token_embd.weight", T_Q8_0, 256, 1000, 1);
        refused("tensor per_layer_token_embd.weight, which an LLM file cannot say");
        break;
    case 7:
        begin_plain();
        layer(0, "laurel_r", T_Q8_0, 64, 256);
        refused("tensor blk.0.laurel_r.weight, which an LLM file cannot say");
        break;
    case 2:
        begin_plain();
        layer(0, "ssm_out", T_Q8_0, 256, 256);
        refused("layer 0 has attention and a state");
        break;
    case 3:
        begin_plain();
        layer(1, "ffn_up", T_Q8_0, 256, 256);
        refused("layer 1 has neither attention nor a state");
        break;
    case 4: /* three widths of FFNs */
        begin_plain();
        layer_of(1, T_Q8_0, 128, 1024);
        layer_of(2, T_Q8_0, 128, 768);
        refused("layer 2 has an FFN of a width that no other has");
        break;
    case 5:
        begin_plain();
        tensor("output.weight", 38, 256, 1000, 1);
        refused("tensor output.weight: type 38 of weights is not known");
        break;
    case 8: /* beyond all layers */
        begin_plain();
        layer(1000, "attn_q", T_Q8_0, 256, 256);
        layer(1000, "nextn.eh_proj", T_Q8_0, 256, 256);
        refused("tensor blk.1000.attn_q.weight and 1 more, which an LLM file cannot say");
        break;
    case 9:
        begin_plain();
        tensor("blk.0.attn_k.weight", T_Q4_K, 256, 2, 1);
        refused("has two tensors blk.0.attn_k.weight");
        break;
    case 6:
        begin("llama", 4, 2);
        tensor("token_embd.weight", T_Q8_0, 256, 1000, 1);
        refused("no tensor of a layer");
        break;
    default:
        begin_plain();
        head_of_key("x", 99);
        refused("has a value of a kind that no GGUF file has");
        break;
    }
}
END_TEST

static void key_f32(const char *name, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    head_of_key(name, F32);
    number(&keys, bits, 4);
}

START_TEST(what_a_file_cannot_say_is_refused_by_key)
{
    static const uint32_t heads[] = {4, 8};
    static const char *const why[] = {
        "tokens attend to later ones",
        "llama attends in a window, by layers that no key says",
        "llama4 attends in chunks, which an LLM file cannot say",
        "layer 1 has other heads than 4 of 64, over 2",
        "layer 1 has other heads than 4 of 64, over 2",
        "whose keys llama.cpp expands (attn_kv_b)",
        "no state by llama.ssm.inner_size and llama.ssm.state_size",
        "llama.attention.head_count: no number of heads",
        "no key general.architecture",
        "no tensor token_embd.weight",
    };
    if (_i == 3) {
        key_list("llama.attention.head_count", heads, 2);
    }
    if (_i != 8) {
        begin(_i == 2 ? "llama4" : "llama", _i == 7 ? 0 : 4, 2);
    }
    if (_i == 0) {
        head_of_key("llama.attention.causal", BOOL);
        number(&keys, 0, 1);
    } else if (_i == 1) {
        key_u32("llama.attention.sliding_window", 512);
    } else if (_i == 5) {
        key_u32("llama.attention.kv_lora_rank", 128);
    }
    if (_i != 9) {
        tensor("token_embd.weight", T_Q8_0, 256, 1000, 1);
    }
    plain_layer(0, T_Q4_K);
    layer_of(1, T_Q4_K, _i == 4 ? 64 : 128, 512);
    if (_i == 6) {
        layer(2, "ssm_in", T_Q4_K, 256, 512);
        layer(2, "ssm_out", T_Q4_K, 512, 256);
    }
    refused(why[_i]);
}
END_TEST

/* Seven layers and a window of 512. Command R7B's fourth layer has none, SmallThinker's first and
 * fifth. An
 * own key wins: every second has none; and where that key is infinite, all have one. */
START_TEST(windows_that_only_the_architecture_says)
{
    static const struct {
        const char *arch;
        float key;
        uint32_t layers;
    } cases[] = {
        {"cohere2", 0, 6}, {"smallthinker", 0, 5}, {"afmoe", 2, 4}, {"llama", INFINITY, 7}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(cases[i].arch, 4, 2);
        OWNED char *window = xformat("%s.attention.sliding_window", cases[i].arch);
        OWNED char *pattern = xformat("%s.attention.sliding_window_pattern", cases[i].arch);
        key_u32(window, 512);
        if (cases[i].key > 0) {
            key_f32(pattern, cases[i].key);
        }
        tensor("token_embd.weight", T_Q8_0, 256, 1000, 1);
        for (uint32_t k = 0; k < 7; k++) {
            plain_layer(k, T_Q4_K);
        }
        ck_assert_uint_eq(model().sliding_layers, cases[i].layers);
        tempfile_remove();
    }
}
END_TEST

/* Only some models have these. */
START_TEST(what_a_model_lacks_is_not_written)
{
    static const char *const some[] = {"shared_kv_layers", "layer_embedding", "laurel_rank",
                                       "altup_inputs"};
    const char *path = tempfile_make(".gguf");
    begin_plain();
    finish(3);
    put(path, whole.n);
    SCOPED(json_drop) cJSON *tree = llm_gguf_tree(path, "mine", &err);
    ck_assert_ptr_nonnull(tree);
    for (int i = 0; i < 4; i++) {
        ck_assert_ptr_null(json_member(tree, some[i]));
    }
}
END_TEST

/* Every beginning of a file is refused, and so are other magics and versions. */
START_TEST(a_damaged_file_is_refused)
{
    const char *path = tempfile_make(".gguf");
    static const uint32_t list[] = {1, 2};
    begin_plain();
    key_list("tokenizer.list", list, 2);
    finish(2);
    for (size_t n = 0; n < whole.n; n++) {
        put(path, n);
        ck_assert_msg(llm_gguf_tree(path, "mine", &err) == NULL, "%zu bytes", n);
        ck_assert_uint_ge(err.n, 1);
        ck_assert_int_eq(gguf_is(path), n >= 4);
        err_fini(&err);
        err = (struct err)ERR_INIT;
    }
    put(path, whole.n);
    SCOPED(json_drop) cJSON *tree = llm_gguf_tree(path, "mine", &err);
    ck_assert_ptr_nonnull(tree);
    whole.p[4] = 1;
    put(path, whole.n);
    ck_assert_ptr_null(llm_gguf_tree(path, "mine", &err));
    ck_assert(strstr(err.lines[0], "another version than 2 or 3") != NULL);
    whole.p[0] = 'g';
    put(path, whole.n);
    ck_assert(!gguf_is(path) && llm_gguf_tree(path, "mine", &err) == NULL);
    ck_assert(strstr(err.lines[1], "is no GGUF file") != NULL);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("llm_gguf", .setup = once, .teardown = undo),
    TEST(a_dense_model_is_its_tensors),
    LOOP(granites_keys_have_positions, 3),
    TEST(a_mixture_with_states_is_its_tensors),
    TEST(latent_attention_is_its_tensors),
    TEST(two_kinds_of_heads_are_their_tensors),
    TEST(fused_products_are_taken_apart),
    TEST(a_width_goes_with_the_mean_of_the_bytes),
    TEST(a_split_model_is_read_whole),
    LOOP(what_a_file_cannot_say_is_refused_by_tensor, 11),
    LOOP(what_a_file_cannot_say_is_refused_by_key, 10),

    TEST(windows_that_only_the_architecture_says),
    TEST(what_a_model_lacks_is_not_written),
    TEST(a_damaged_file_is_refused),
};
SUITE_MAIN("llm_gguf", suite)
