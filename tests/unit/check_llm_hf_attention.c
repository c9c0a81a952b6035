/* config.json says of attention whether it needs kernels of its own, and its sliding windows. */
#include "hwmodels/llm_hf.h"

#include "hwmodels/soc.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

/* The LLM file of a configuration that has these keys, too. */
static cJSON *tree_of(uint32_t layers, const char *keys, struct err *e)
{
    OWNED char *config = xformat(
        "{\"hidden_size\":1024,\"num_attention_heads\":16,\"num_hidden_layers\":%u,"
        "\"vocab_size\":1000,%s\"num_key_value_heads\":2,%s}",
        layers, strstr(keys, "\"intermediate_size") == NULL ? "\"intermediate_size\":512," : "",
        keys);
    SCOPED(json_drop) cJSON *root = cJSON_Parse(config);
    ck_assert_msg(root != NULL && llm_hf_is(root), "%s", config);
    return llm_hf_tree(root, "config.json", NULL, 0, e);
}

static struct llm model_of(uint32_t layers, const char *keys)
{
    struct err e = ERR_INIT;
    struct llm m = {0};
    SCOPED(json_drop) cJSON *tree = tree_of(layers, keys, &e);
    ck_assert_msg(tree != NULL && llm_parse(tree, "tree", &m, &e) == 0, "%s",
                  e.n > 0 ? e.lines[0] : "");
    return m;
}

/* Positions and heads as the configurations of these models state them, or their classes.
 */
static const struct {
    const char *what, *config; /* the keys that decide */
    bool special;
} attentions[] = {
    {"Llama 3.2 1B", "\"model_type\":\"llama\",\"head_dim\":64", false},
    {"Mistral 7B v0.1: a window", "\"model_type\":\"mistral\",\"sliding_window\":4096", false},
    {"Phi-3 mini: heads of 96", "\"model_type\":\"phi3\",\"head_dim\":96", true},
    {"Phi-4", "\"model_type\":\"phi3\",\"head_dim\":128", false},
    {"Phi-4 mini", "\"model_type\":\"phi3\",\"partial_rotary_factor\":0.75", true},
    {"GLM-4", "\"model_type\":\"glm\"", true},
    {"rotary positions everywhere", "\"model_type\":\"glm\",\"partial_rotary_factor\":1.0", false},
    {"MiniMax-M2",
     "\"model_type\":\"minimax_m2\",\"num_local_experts\":8,\"num_experts_per_tok\":2,"
     "\"head_dim\":128,\"rotary_dim\":64",
     true},
    {"Pythia", "\"model_type\":\"gpt_neox\",\"rotary_pct\":0.25", true},
    {"a key of newer files",
     "\"model_type\":\"stablelm\",\"rope_parameters\":{\"partial_rotary_factor\":1.0}", false},
    {"newer files may say no share there",
     "\"model_type\":\"phi3\",\"partial_rotary_factor\":0.75,"
     "\"rope_parameters\":{\"rope_theta\":10000}",
     true},
    {"the class's own share, too", "\"model_type\":\"stablelm\",\"rope_parameters\":{}", true},
    {"Gemma 3 4B: pictures", "\"model_type\":\"gemma3\",\"head_dim\":256", true},
    {"Gemma 3 1B: text alone", "\"model_type\":\"gemma3_text\",\"head_dim\":256", false},
    {"gpt-oss: sinks",
     "\"model_type\":\"gpt_oss\",\"num_local_experts\":32,\"num_experts_per_tok\":4", true},
};

START_TEST(attention_is_special_that_is_not_llamas)
{
    ck_assert_msg(model_of(2, attentions[_i].config).special_attention == attentions[_i].special,
                  "%s", attentions[_i].what);
}
END_TEST

/* Windows by the configurations' own words, of models with 26 layers: every second, every sixth
 * (26 - 4) or each one has a window; Qwen's from max_window_layers on, where it uses them. */
static const struct {
    const char *what, *config;
    uint32_t window, layers;
} windows[] = {
    {"none", "\"model_type\":\"llama\"", 0, 0},
    {"null", "\"model_type\":\"mistral\",\"sliding_window\":null", 0, 0},
    {"Mistral 7B v0.1: all", "\"model_type\":\"mistral\",\"sliding_window\":4096", 4096, 26},
    {"Phi-3 mini: all", "\"model_type\":\"phi3\",\"sliding_window\":2047", 2047, 26},
    {"Gemma 2", "\"model_type\":\"gemma2\",\"sliding_window\":4096", 4096, 13},
    {"Gemma 3", "\"model_type\":\"gemma3_text\",\"sliding_window\":512", 512, 22},
    {"its pattern is stated",
     "\"model_type\":\"gemma3_text\",\"sliding_window\":512,\"sliding_window_pattern\":3", 512, 18},
    {"the layers are listed",
     "\"model_type\":\"gemma3_text\",\"sliding_window\":512,\"layer_types\":[\"sliding_attention\","
     "\"full_attention\",\"sliding_attention\",\"sliding_attention\"]",
     512, 3},
    {"listed, and all see everything",
     "\"model_type\":\"smollm3\",\"sliding_window\":512,\"layer_types\":[\"full_attention\"]", 0,
     0},
    {"gpt-oss",
     "\"model_type\":\"gpt_oss\",\"num_local_experts\":32,\"num_experts_per_tok\":4,"
     "\"sliding_window\":128",
     128, 13},
    {"Qwen2.5: not used",
     "\"model_type\":\"qwen2\",\"sliding_window\":32768,\"use_sliding_window\":false,"
     "\"max_window_layers\":20",
     0, 0},
    {"Qwen: not said to be used", "\"model_type\":\"qwen3\",\"sliding_window\":4096", 0, 0},
    {"Qwen: used from layer 20 on",
     "\"model_type\":\"qwen2\",\"sliding_window\":4096,\"use_sliding_window\":true,"
     "\"max_window_layers\":20",
     4096, 6},
    {"Qwen: used behind the last layer",
     "\"model_type\":\"qwen2\",\"sliding_window\":4096,\"use_sliding_window\":true,"
     "\"max_window_layers\":28",
     0, 0},
};

START_TEST(windows_are_those_of_the_configuration)
{
    struct llm m = model_of(26, windows[_i].config);
    ck_assert_msg(m.sliding_window == windows[_i].window && m.sliding_layers == windows[_i].layers,
                  "%s: %u tokens in %u layers", windows[_i].what, m.sliding_window,
                  m.sliding_layers);
}
END_TEST

/* Eight layers, 1024 wide, of 16 heads. The products of Qwen give 2 x 4 x 8 keys, 6 x 16 values, a
 * gate of as many, and two numbers for each of 6 heads. Its state has 6 x 16 x 8 elements, and 2
 * rows of 64 + 96 that the convolution keeps. Granite's give 2048 elements, a gate, 2 groups of
 * 2 x 8, and 32 steps. Its state has 2048 x 8 elements, and 3 rows of 2048 + 32. LFM2 has three
 * products, and keeps 2 rows. */
static const struct {
    const char *what, *config;
    struct llm_attention wanted;
    uint32_t head_dim, ffn, experts, shared, dense;
} kinds[] = {
    {"Qwen3.5: which layers attend is listed",
     "\"model_type\":\"qwen3_5_text\",\"head_dim\":32,\"linear_num_key_heads\":4,"
     "\"linear_key_head_dim\":8,\"linear_num_value_heads\":6,\"linear_value_head_dim\":16,"
     "\"linear_conv_kernel_dim\":3,\"layer_types\":[\"linear_attention\",\"linear_attention\","
     "\"linear_attention\",\"full_attention\",\"linear_attention\",\"linear_attention\","
     "\"linear_attention\",\"linear_attention\"]",
     {.gated = true,
      .recurrent_layers = 7,
      .recurrent_in = 64 + 96 + 96 + 12,
      .recurrent_out = 96,
      .recurrent_state = 768 + 2 * 160},
     32,
     512,
     0,
     0,
     0},
    {"Qwen3-Next: every fourth layer attends",
     "\"model_type\":\"qwen3_next\",\"linear_num_key_heads\":4,\"linear_key_head_dim\":8,"
     "\"linear_num_value_heads\":6,\"linear_value_head_dim\":16,\"linear_conv_kernel_dim\":3,"
     "\"full_attention_interval\":4,\"num_experts\":8,\"num_experts_per_tok\":2,"
     "\"moe_intermediate_size\":48,\"shared_expert_intermediate_size\":64",
     {.gated = true,
      .recurrent_layers = 6,
      .recurrent_in = 268,
      .recurrent_out = 96,
      .recurrent_state = 1088},
     256,
     48,
     8,
     64,
     0},
    {"Granite 4: a mixture",
     "\"model_type\":\"granitemoehybrid\",\"mamba_n_heads\":32,\"mamba_d_state\":8,"
     "\"mamba_n_groups\":2,\"mamba_d_conv\":4,\"num_local_experts\":8,"
     "\"num_experts_per_tok\":2,\"shared_intermediate_size\":96,\"layer_types\":[\"mamba\","
     "\"attention\",\"mamba\",\"mamba\",\"mamba\",\"mamba\",\"mamba\",\"mamba\"]",
     {.recurrent_layers = 7,
      .recurrent_in = 2 * 2048 + 32 + 32,
      .recurrent_out = 2048,
      .recurrent_state = 2048 * 8 + 3 * (2048 + 32)},
     64,
     512,
     8,
     96,
     0},
    {"Granite 4: no mixture",
     "\"model_type\":\"granitemoehybrid\",\"mamba_n_heads\":32,\"mamba_d_state\":8,"
     "\"mamba_n_groups\":2,\"num_local_experts\":0,\"num_experts_per_tok\":0,"
     "\"shared_intermediate_size\":96,\"layer_types\":[\"mamba\",\"attention\"]",
     {.recurrent_layers = 1, .recurrent_in = 4160, .recurrent_out = 2048, .recurrent_state = 22624},
     64,
     96,
     0,
     0,
     0},
    {"LFM2: a width that is cut to 2/3, and rounded up to 256",
     "\"model_type\":\"lfm2\",\"block_ff_dim\":1500,\"full_attn_idxs\":[2,5],"
     "\"conv_L_cache\":3",
     {.recurrent_layers = 6, .recurrent_in = 3072, .recurrent_out = 1024, .recurrent_state = 2048},
     64,
     1024,
     0,
     0,
     0},
    {"LFM2: a mixture behind two dense layers",
     "\"model_type\":\"lfm2_moe\",\"moe_intermediate_size\":48,\"num_experts\":8,"
     "\"num_experts_per_tok\":2,\"num_dense_layers\":2,\"layer_types\":[\"conv\","
     "\"full_attention\"]",
     {.recurrent_layers = 1, .recurrent_in = 3072, .recurrent_out = 1024, .recurrent_state = 2048},
     64,
     48,
     8,
     0,
     2},
    {"DeepSeek-V2: one product for queries",
     "\"model_type\":\"deepseek_v2\",\"kv_lora_rank\":512,\"q_lora_rank\":null,"
     "\"qk_rope_head_dim\":64,\"qk_nope_head_dim\":128,\"v_head_dim\":96,"
     "\"moe_intermediate_size\":48,\"n_routed_experts\":8,\"num_experts_per_tok\":2,"
     "\"n_shared_experts\":2,\"first_k_dense_replace\":1",
     {.latent_kv = 512, .rotary_dim = 64, .value_dim = 96},
     192,
     48,
     8,
     96,
     1},
    {"GLM 4.7 Flash: dense layers are listed",
     "\"model_type\":\"glm4_moe_lite\",\"kv_lora_rank\":512,\"q_lora_rank\":768,"
     "\"qk_rope_head_dim\":64,\"qk_nope_head_dim\":192,\"v_head_dim\":256,"
     "\"moe_intermediate_size\":48,\"n_routed_experts\":8,\"num_experts_per_tok\":2,"
     "\"n_shared_experts\":1,\"mlp_layer_types\":[\"dense\",\"dense\",\"sparse\"]",
     {.latent_kv = 512, .latent_query = 768, .rotary_dim = 64, .value_dim = 256},
     256,
     48,
     8,
     48,
     2},
    {"ERNIE 4.5: a mixture behind a dense layer, with keys of its own, and four KV heads by "
     "default",
     "\"model_type\":\"ernie4_5_moe\",\"moe_intermediate_size\":48,\"moe_num_experts\":8,"
     "\"moe_k\":2,\"moe_num_shared_experts\":2,\"moe_layer_start_index\":1",
     {.gated = false},
     64,
     48,
     8,
     96,
     1},
    {"Gemma 4: a mixture next to a dense FFN",
     "\"model_type\":\"gemma4_text\",\"head_dim\":32,\"global_head_dim\":128,"
     "\"num_global_key_value_heads\":1,\"attention_k_eq_v\":true,\"sliding_window\":64,"
     "\"enable_moe_block\":true,\"num_experts\":8,\"top_k_experts\":2,"
     "\"moe_intermediate_size\":48",
     {.keys_as_values = true, .global_kv_heads = 1, .global_head_dim = 128},
     32,
     48,
     8,
     512,
     0},
    {"Gemma 4: keys and values of their own, no mixture",
     "\"model_type\":\"gemma4_text\",\"head_dim\":32,\"global_head_dim\":128,"
     "\"num_global_key_value_heads\":1,\"sliding_window\":64,\"num_experts\":null",
     {.global_kv_heads = 2, .global_head_dim = 128},
     32,
     512,
     0,
     0,
     0},
};

START_TEST(attention_that_is_not_usual_is_that_of_the_configuration)
{
    struct llm m = model_of(8, kinds[_i].config);
    const struct llm_attention *a = &m.attention;
    const struct llm_attention *w = &kinds[_i].wanted;
    ck_assert_msg(a->gated == w->gated && a->keys_as_values == w->keys_as_values &&
                      a->global_kv_heads == w->global_kv_heads &&
                      a->global_head_dim == w->global_head_dim,
                  "%s", kinds[_i].what);
    ck_assert_msg(a->latent_kv == w->latent_kv && a->latent_query == w->latent_query &&
                      a->rotary_dim == w->rotary_dim && a->value_dim == w->value_dim,
                  "%s", kinds[_i].what);
    ck_assert_msg(a->recurrent_layers == w->recurrent_layers &&
                      a->recurrent_in == w->recurrent_in && a->recurrent_out == w->recurrent_out &&
                      a->recurrent_state == w->recurrent_state,
                  "%s: %u layers %u in %u out %u state", kinds[_i].what, a->recurrent_layers,
                  a->recurrent_in, a->recurrent_out, a->recurrent_state);
    ck_assert_msg(m.head_dim == kinds[_i].head_dim && m.ffn_hidden == kinds[_i].ffn &&
                      m.n_experts == kinds[_i].experts && m.shared_ffn == kinds[_i].shared &&
                      m.dense_layers == kinds[_i].dense,
                  "%s: FFN %u, shared %u, dense %u", kinds[_i].what, m.ffn_hidden, m.shared_ffn,
                  m.dense_layers);
}
END_TEST

/* The last two of five layers share their keys. Those of Gemma 4 are twice as wide. Gemma 3n lists
 * its widths, and every fifth of its layers has no window. */
START_TEST(gemmas_layers_have_inputs_of_their_own)
{
    struct llm m = model_of(
        5, "\"model_type\":\"gemma4_text\",\"head_dim\":32,\"global_head_dim\":64,"
           "\"sliding_window\":64,\"sliding_window_pattern\":5,\"use_double_wide_mlp\":true,"
           "\"hidden_size_per_layer_input\":48,\"num_kv_shared_layers\":2");
    ck_assert(m.layer_embedding == 48 && m.attention.shared_kv_layers == 2);
    ck_assert(m.ffn_hidden == 512 && m.dense_layers == 2 && m.dense_ffn == 1024);
    ck_assert(m.laurel_rank == 0 && m.altup_inputs == 0 && m.sliding_layers == 4);
    static const char *const widths[] = {"[96,96,96,96,96]", "[96,128,96,128,128]"};
    for (int i = 0; i < 2; i++) {
        OWNED char *config =
            xformat("\"model_type\":\"gemma3n_text\",\"num_kv_shared_layers\":2,"
                    "\"sliding_window\":64,\"hidden_size_per_layer_input\":48,\"laurel_rank\":8,"
                    "\"altup_num_inputs\":4,\"intermediate_size\":%s",
                    widths[i]);
        m = model_of(5, config);
        ck_assert(m.layer_embedding == 48 && m.attention.shared_kv_layers == 2);
        ck_assert(m.laurel_rank == 8 && m.altup_inputs == 4 && m.sliding_layers == 4);
        ck_assert(m.ffn_hidden == 96 && m.dense_layers == (i == 0 ? 0 : 3));
        ck_assert(m.dense_ffn == (i == 0 ? 0 : 128) && !m.special_attention);
    }
}
END_TEST

/* All FFNs of this one are as wide, and no layer shares its keys. */
START_TEST(what_a_gemma_lacks_is_not_written)
{
    static const char *const some[] = {"dense_layers", "dense_ffn", "shared_kv_layers",
                                       "layer_embedding", "laurel_rank"};
    struct err e = ERR_INIT;
    SCOPED(json_drop)
    cJSON *tree = tree_of(5, "\"model_type\":\"gemma4_text\",\"head_dim\":32", &e);
    ck_assert_ptr_nonnull(tree);
    for (int i = 0; i < 5; i++) {
        ck_assert_ptr_null(json_member(tree, some[i]));
    }
}
END_TEST

/* A model must not have keys of another kind of attention. */
static const struct {
    const char *config, *why;
} foreign[] = {
    {"\"model_type\":\"llama\",\"kv_lora_rank\":512",
     "kv_lora_rank: latent attention, which is not read of a llama"},
    {"\"model_type\":\"llama\",\"mamba_n_heads\":8", "mamba_n_heads: Mamba layers"},
    {"\"model_type\":\"gemma3_text\",\"num_global_key_value_heads\":8",
     "num_global_key_value_heads: other heads in some layers"},
    {"\"model_type\":\"qwen3_5_text\",\"layer_types\":[\"mamba\"]", "layer_types: \"mamba\""},
    {"\"model_type\":\"llama\",\"hidden_size_per_layer_input\":256",
     "hidden_size_per_layer_input: embeddings of each layer, which is read of Gemma 3n and 4 only"},
    {"\"model_type\":\"gemma3_text\",\"num_kv_shared_layers\":2",
     "num_kv_shared_layers: layers that share their KV, which is read of Gemma 3n and 4 only"},
    {"\"model_type\":\"gemma3n_text\",\"intermediate_size\":[8,16,24,8,8,8,8,8]",
     "intermediate_size: must be one or two widths, of all layers"},
    {"\"model_type\":\"gemma3n_text\",\"intermediate_size\":[8,8]",
     "intermediate_size: must be one or two widths, of all layers"},
    {"\"model_type\":\"granitemoehybrid\",\"shared_intermediate_size\":96",
     "layer_types: is missing"},
};

START_TEST(attention_of_another_kind_is_refused)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    SCOPED(json_drop) cJSON *tree = tree_of(8, foreign[_i].config, &e);
    ck_assert_ptr_null(tree);
    bool says = false;
    for (size_t i = 0; i < e.n; i++) {
        says = says || strstr(e.lines[i], foreign[_i].why) != NULL;
    }
    ck_assert_msg(says, "%s", e.lines[0]);
}
END_TEST

/* Widths that 32 bits do not hold: 8192 x (2^20 + 1), and 1024 x (2^22 + 2). */
START_TEST(a_width_beyond_all_models_is_refused)
{
    static const char *const configs[] = {
        "\"model_type\":\"lfm2\",\"block_ff_dim\":12288,\"block_ffn_dim_multiplier\":1048577,"
        "\"full_attn_idxs\":[2,5]",
        "\"model_type\":\"granitemoehybrid\",\"shared_intermediate_size\":96,"
        "\"layer_types\":[\"mamba\",\"attention\"],\"mamba_expand\":4194306",
    };
    static const char *const why[] = {"ffn_hidden", "recurrent_out"};
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct llm m;
    SCOPED(json_drop) cJSON *tree = tree_of(8, configs[_i], &e);
    ck_assert(tree != NULL && llm_parse(tree, "tree", &m, &e) != 0);
    ck_assert_msg(strstr(e.lines[_i], why[_i]) != NULL, "%s", e.lines[0]);
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(a_width_beyond_all_models_is_refused, 2),
    LOOP(attention_that_is_not_usual_is_that_of_the_configuration, sizeof kinds / sizeof kinds[0]),
    TEST(gemmas_layers_have_inputs_of_their_own),
    TEST(what_a_gemma_lacks_is_not_written),
    LOOP(attention_of_another_kind_is_refused, sizeof foreign / sizeof foreign[0]),
    LOOP(attention_is_special_that_is_not_llamas, sizeof attentions / sizeof attentions[0]),
    LOOP(windows_are_those_of_the_configuration, sizeof windows / sizeof windows[0]),
};
SUITE_MAIN("llm_hf_attention", suite)
