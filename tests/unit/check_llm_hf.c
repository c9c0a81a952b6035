/* Models from a Hugging Face config.json.
 *
 * Published parameter counts are facts about weights that anyone can add up. Ours leave out norms,
 * biases and routers, so each row says how many those are, by hand. */
#include "hwmodels/llm_hf.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "hwmodels/soc.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

static bool says(const struct err *e, const char *text)
{
    for (size_t i = 0; i < e->n && i < ERR_MAX_LINES; i++) {
        if (strstr(e->lines[i], text) != NULL) {
            return true;
        }
    }
    return false;
}

static struct llm read_of(const char *config, uint32_t bits, struct err *e)
{
    struct llm m = {.n_layers = 0};
    cJSON *root = cJSON_Parse(config);
    ck_assert_msg(root != NULL && llm_hf_is(root), "%s", config);
    cJSON *tree = llm_hf_tree(root, "dir/Some-Model/config.json", NULL, bits, e);
    if (tree != NULL) {
        (void)llm_parse(tree, "tree", &m, e);
    }
    cJSON_Delete(tree);
    cJSON_Delete(root);
    return m;
}

static struct llm model_of(const char *config, uint32_t bits)
{
    struct err e = ERR_INIT;
    struct llm m = read_of(config, bits, &e);
    ck_assert_msg(e.n == 0, "%s", e.n > 0 ? e.lines[0] : "");
    return m;
}

/* ---- parameter counts ---- */

static const struct {
    const char *name, *config;
    double published; /* parameters, as model pages and safetensors indices state */
    double left_out;  /* norms, biases, routers: the sum in the comment */
    double used;      /* of the published ones, without left_out: what a token crosses */
} known[] = {
    /* norms (2 32 + 1) 4096 = 266240 */
    {"Llama 3.1 8B",
     "{\"model_type\":\"llama\",\"hidden_size\":4096,\"intermediate_size\":14336,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"num_hidden_layers\":32,"
     "\"vocab_size\":128256,\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\"}",
     8030261248.0, 266240.0, 8030261248.0 - 266240.0 - 128256.0 * 4096.0},
    /* biases of QKV 28 (1536 + 2 256) = 57344, norms 57 1536 = 87552 */
    {"Qwen2.5 1.5B",
     "{\"model_type\":\"qwen2\",\"hidden_size\":1536,\"intermediate_size\":8960,"
     "\"num_attention_heads\":12,\"num_key_value_heads\":2,\"num_hidden_layers\":28,"
     "\"vocab_size\":151936,\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\"}",
     1543714304.0, 57344.0 + 87552.0, 1543714304.0 - 57344.0 - 87552.0},
    /* norms 65 4096; the key of KV heads is there, head_dim is null */
    {"Mistral 7B v0.1",
     "{\"model_type\":\"mistral\",\"hidden_size\":4096,\"intermediate_size\":14336,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"num_hidden_layers\":32,"
     "\"vocab_size\":32000,\"head_dim\":null,\"sliding_window\":4096,\"torch_dtype\":\"bfloat16\"}",
     7241732096.0, 266240.0, 7241732096.0 - 266240.0 - 32000.0 * 4096.0},
    /* norms 37 2048; tied although no key says so, heads of 256 */
    {"Gemma 2B",
     "{\"model_type\":\"gemma\",\"hidden_size\":2048,\"intermediate_size\":16384,"
     "\"num_attention_heads\":8,\"num_key_value_heads\":1,\"head_dim\":256,"
     "\"num_hidden_layers\":18,\"vocab_size\":256000,\"torch_dtype\":\"bfloat16\"}",
     2506172416.0, 75776.0, 2506172416.0 - 75776.0},
    /* norms 65 3072 */
    {"Phi 3 mini",
     "{\"model_type\":\"phi3\",\"hidden_size\":3072,\"intermediate_size\":8192,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":32,\"num_hidden_layers\":32,"
     "\"vocab_size\":32064,\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\"}",
     3821079552.0, 199680.0, 3821079552.0 - 199680.0 - 32064.0 * 3072.0},
    /* not gated: two matrices; biases 32 (3 2560 + 2560 + 10240 + 2560) = 737280, norms with bias
     * 33 5120 = 168960, the head's 51200 */
    {"Phi 2",
     "{\"model_type\":\"phi\",\"hidden_size\":2560,\"intermediate_size\":10240,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":null,\"num_hidden_layers\":32,"
     "\"vocab_size\":51200,\"tie_word_embeddings\":false,\"torch_dtype\":\"float16\"}",
     2779683840.0, 957440.0, 2779683840.0 - 957440.0 - 51200.0 * 2560.0},
    /* 16 heads of 128 at a width of 1024; norms 57 1024, of queries and keys 28 2 128 */
    {"Qwen3 0.6B",
     "{\"model_type\":\"qwen3\",\"hidden_size\":1024,\"intermediate_size\":3072,"
     "\"num_attention_heads\":16,\"num_key_value_heads\":8,\"head_dim\":128,"
     "\"num_hidden_layers\":28,\"vocab_size\":151936,\"tie_word_embeddings\":true,"
     "\"torch_dtype\":\"bfloat16\"}",
     596049920.0, 58368.0 + 7168.0, 596049920.0 - 58368.0 - 7168.0},
    /* 8 experts, 2 of them used; routers 32 4096 8 = 1048576, norms 266240. A token reads neither 6
     * experts of 3 4096 14336 in 32 layers nor the embedding */
    {"Mixtral 8x7B",
     "{\"model_type\":\"mixtral\",\"hidden_size\":4096,\"intermediate_size\":14336,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"num_hidden_layers\":32,"
     "\"vocab_size\":32000,\"num_local_experts\":8,\"num_experts_per_tok\":2,"
     "\"torch_dtype\":\"bfloat16\"}",
     46702792704.0, 1048576.0 + 266240.0,
     46702792704.0 - 1048576.0 - 266240.0 - 32000.0 * 4096.0 - 32.0 * 6.0 * 3.0 * 4096.0 * 14336.0},
    /* 60 experts of 1408, 4 used, and a shared one of 5632; biases 24 3 2048, norms 49 2048,
     * routers 24 60 2048, gates of the shared expert 24 2048 */
    {"Qwen1.5 MoE A2.7B",
     "{\"model_type\":\"qwen2_moe\",\"hidden_size\":2048,\"intermediate_size\":5632,"
     "\"num_attention_heads\":16,\"num_key_value_heads\":16,\"num_hidden_layers\":24,"
     "\"vocab_size\":151936,\"num_experts\":60,\"num_experts_per_tok\":4,"
     "\"moe_intermediate_size\":1408,\"shared_expert_intermediate_size\":5632,"
     "\"decoder_sparse_step\":1,\"torch_dtype\":\"bfloat16\"}",
     14315784192.0, 147456.0 + 100352.0 + 2949120.0 + 49152.0,
     14315784192.0 - 147456.0 - 100352.0 - 2949120.0 - 49152.0 - 151936.0 * 2048.0 -
         24.0 * 56.0 * 3.0 * 2048.0 * 1408.0},
    /* 128 experts of 768, 8 used; routers 48 2048 128 = 12582912, norms 97 2048, 48 2 128 */
    {"Qwen3 30B A3B",
     "{\"model_type\":\"qwen3_moe\",\"hidden_size\":2048,\"intermediate_size\":6144,"
     "\"moe_intermediate_size\":768,\"num_attention_heads\":32,\"num_key_value_heads\":4,"
     "\"head_dim\":128,\"num_hidden_layers\":48,\"vocab_size\":151936,\"num_experts\":128,"
     "\"num_experts_per_tok\":8,\"decoder_sparse_step\":1,\"mlp_only_layers\":[],"
     "\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\"}",
     30532122624.0, 12582912.0 + 198656.0 + 12288.0,
     30532122624.0 - 12582912.0 - 198656.0 - 12288.0 - 151936.0 * 2048.0 -
         48.0 * 120.0 * 3.0 * 2048.0 * 768.0},
};
#define N_KNOWN (sizeof known / sizeof known[0])

START_TEST(a_config_has_the_parameters_its_model_page_states)
{
    struct llm m = model_of(known[_i].config, 0);
    ck_assert_uint_eq(m.weight_bits, 16);
    /* two bytes a weight: all that is stored */
    ck_assert_msg(m.weight_bytes / 2.0 == known[_i].published - known[_i].left_out,
                  "%s: %.0f stored, %.0f published without norms, biases, routers", known[_i].name,
                  m.weight_bytes / 2.0, known[_i].published - known[_i].left_out);
    ck_assert_msg(m.body_weights + m.head_weights == known[_i].used, "%s: %.0f used of %.0f",
                  known[_i].name, m.body_weights + m.head_weights, known[_i].used);
}
END_TEST

/* Ministral, Gemma 3 with pictures: the text part is read, and defaults of its class hold. */
START_TEST(the_text_part_of_a_model_with_pictures_is_read)
{
    struct llm m = model_of("{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":"
                            "\"gemma3_text\",\"hidden_size\":2560,\"intermediate_size\":10240,"
                            "\"num_hidden_layers\":34},\"torch_dtype\":\"bfloat16\"}",
                            0);
    /* Gemma 3 4B, text: QKV 2560 (2048 + 2 1024), O 2048 2560, FFN 3 2560 10240: 94371840 a layer;
     * tied embedding of 262208 rows */
    ck_assert_double_eq(m.body_weights, 34.0 * 94371840.0);
    ck_assert_double_eq(m.head_weights, 2560.0 * 262208.0);
    ck_assert(m.tied_head);
    /* Qwen2.5 VL 3B has its text part and `vision_config` in one object, and the text part of
     * Qwen2.5 3B, whose page states 3085938688. Biases of QKV are 36 (2048 + 2 256) = 92160, and
     * norms 73 2048 = 149504. */
    m = model_of("{\"model_type\":\"qwen2_5_vl\",\"hidden_size\":2048,\"intermediate_size\":11008,"
                 "\"num_attention_heads\":16,\"num_key_value_heads\":2,\"num_hidden_layers\":36,"
                 "\"vocab_size\":151936,\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\","
                 "\"vision_config\":{\"depth\":32,\"hidden_size\":1280}}",
                 0);
    ck_assert_double_eq(m.body_weights + m.head_weights, 3085938688.0 - 92160.0 - 149504.0);
}
END_TEST

/* ---- bytes ---- */

#define LLAMA                                                                                      \
    "{\"model_type\":\"llama\",\"hidden_size\":2048,\"intermediate_size\":8192,"                   \
    "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"num_hidden_layers\":16,"               \
    "\"vocab_size\":128256,\"tie_word_embeddings\":true"

static const struct {
    const char *quantization;
    uint32_t bits, act_bits;
    double body, head, kv; /* bytes */
} stored[] = {
    {",\"torch_dtype\":\"float32\"}", 32, 16, 4.0, 4.0, 2.0},
    {",\"dtype\":\"bfloat16\"}", 16, 16, 2.0, 2.0, 2.0},
    /* 4 bit, and per 128 weights a scale of 2 bytes and a zero point of half a byte */
    {",\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":128}}", 4, 16,
     0.5 + 2.5 / 128.0, 2.0, 1.0},
    {",\"quantization_config\":{\"quant_method\":\"awq\",\"w_bit\":4,\"q_group_size\":64}}", 4, 16,
     0.5 + 2.5 / 64.0, 2.0, 1.0},
    /* its head, too */
    {",\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":128,\"lm_"
     "head\":true}}",
     4, 16, 0.5 + 2.5 / 128.0, 0.5 + 2.5 / 128.0, 1.0},
    /* MLX: a scale and a bias of 2 bytes per 64 weights, in all; what chooses experts is no product
     */
    {",\"quantization\":{\"bits\":4,\"group_size\":64,\"model.layers.0.mlp.gate\":{\"bits\":8}}}",
     4, 16, 0.5 + 4.0 / 64.0, 0.5 + 4.0 / 64.0, 1.0},
    {",\"quantization\":{\"bits\":8,\"group_size\":32},\"quantization_config\":{\"bits\":8,"
     "\"group_size\":32}}",
     8, 16, 1.0 + 4.0 / 32.0, 1.0 + 4.0 / 32.0, 1.0},
    /* a scale of 4 bytes per 64 weights; twice quantised one byte, and 4 per 256 of those */
    {",\"quantization_config\":{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true}}", 4, 16,
     0.5 + 4.0 / 64.0, 2.0, 1.0},
    {",\"quantization_config\":{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true,"
     "\"bnb_4bit_use_double_quant\":true}}",
     4, 16, 0.5 + (1.0 + 4.0 / 256.0) / 64.0, 2.0, 1.0},
    {",\"quantization_config\":{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true,"
     "\"llm_int8_skip_modules\":[\"lm_head\",\"visual.0.mlp\",\"multi_modal_projector\"]}}",
     4, 16, 0.5 + 4.0 / 64.0, 2.0, 1.0},
    {",\"quantization_config\":{\"quant_method\":\"fp8\",\"modules_to_not_convert\":["
     "\"lm_head\",\"model.layers.0.input_layernorm\",\"model.layers.0.mlp.gate\"]}}",
     8, 16, 1.0, 2.0, 1.0},
    /* one byte of scale per 32 */
    {",\"quantization_config\":{\"quant_method\":\"mxfp4\"}}", 4, 16, 0.5 + 1.0 / 32.0, 2.0, 1.0},
    {",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"config_groups\":{"
     "\"group_0\":{\"weights\":{\"num_bits\":8},\"input_activations\":{\"num_bits\":8}}}}}",
     8, 8, 1.0, 2.0, 1.0},
    /* not symmetric: a zero point of half a byte next to the scale of 2 */
    {",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_"
     "0\":{"
     "\"weights\":{\"num_bits\":4,\"type\":\"int\",\"group_size\":32,\"symmetric\":false}}}}}",
     4, 16, 0.5 + 2.5 / 32.0, 2.0, 1.0},
    /* NVFP4: one byte of scale per 16; norms and a part for pictures may keep their width */
    {",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"ignore\":[\"lm_head\","
     "\"model.layers.0.self_attn.q_norm\",\"model.visual.blocks.0.self_attn.qkv\"],"
     "\"config_groups\":{\"group_0\":{\"weights\":{\"num_bits\":4,\"type\":\"float\","
     "\"group_size\":16}}}}}",
     4, 16, 0.5 + 1.0 / 16.0, 2.0, 1.0},
};

START_TEST(bytes_are_those_of_the_way_the_weights_are_stored)
{
    char config[1024];
    (void)snprintf(config, sizeof config, LLAMA "%s", stored[_i].quantization);
    struct llm m = model_of(config, 0);
    ck_assert_str_eq(m.name, "some-model");
    ck_assert_uint_eq(m.weight_bits, stored[_i].bits);
    ck_assert_uint_eq(m.act_bits, stored[_i].act_bits);
    ck_assert_double_eq_tol(m.body_bytes_per_weight, stored[_i].body, 1e-12);
    ck_assert_double_eq_tol(m.head_bytes_per_weight, stored[_i].head, 1e-12);
    ck_assert_double_eq_tol(m.kv_bytes_per_element, stored[_i].kv, 1e-12);
    /* --bits overrides all of it with the format of that width. */
    m = model_of(config, 4);
    ck_assert_uint_eq(m.weight_bits, 4);
    ck_assert_double_eq_tol(m.body_bytes_per_weight, 0.56, 1e-12);
}
END_TEST

/* gpt-oss: only its experts have 4 bit. With "mlp.experts" of one layer wide, too, no file can say
 * it. */
START_TEST(attention_beside_experts_may_keep_its_width)
{
#define GPT_OSS                                                                                    \
    "{\"model_type\":\"gpt_oss\",\"hidden_size\":1024,\"num_attention_heads\":16,"                 \
    "\"num_hidden_layers\":2,\"vocab_size\":1000,\"intermediate_size\":512,"                       \
    "\"num_key_value_heads\":2,\"num_local_experts\":32,\"num_experts_per_tok\":4,"                \
    "\"quantization_config\":{\"quant_method\":\"mxfp4\",\"modules_to_not_convert\":["             \
    "\"model.layers.*.self_attn\",\"model.layers.*.mlp.router\",\"model.embed_tokens\","
    struct llm m = model_of(GPT_OSS "\"lm_head\"]}}", 0);
    ck_assert_uint_eq(m.weight_bits, 4);
    ck_assert_double_eq_tol(m.body_bytes_per_weight, 0.5 + 1.0 / 32.0, 1e-12);
    ck_assert_double_eq_tol(m.dense_bytes_per_weight, 2.0, 1e-12);
    ck_assert_double_eq(model_of(GPT_OSS "\"lm_head\"]}}", 4).dense_bytes_per_weight, 0.0);
    struct err e = ERR_INIT;
    (void)read_of(GPT_OSS "\"model.layers.3.mlp\"]}}", 0, &e);
    ck_assert(says(&e, "Some-Model/config.json: quantization_config.modules_to_not_convert: "
                       "\"model.layers.3.mlp\" keeps its width"));
    err_fini(&e);
}
END_TEST

/* ---- what is refused ---- */

static const struct {
    const char *rest, *says;
} refused[] = {
    {",\"quantization_config\":{\"quant_method\":\"aqlm\"}}",
     "config.json: quantization_config.quant_method: \"aqlm\" is not known"},
    /* what gpt-oss states, of a model without experts */
    {",\"quantization_config\":{\"quant_method\":\"mxfp4\",\"modules_to_not_convert\":["
     "\"model.layers.*.self_attn\",\"model.layers.*.mlp.router\",\"model.embed_tokens\","
     "\"lm_head\"]}}",
     "config.json: quantization_config.modules_to_not_convert: \"model.layers.*.self_attn\""},
    /* Unsloth's dynamic 4 bit: some layers keep 16, here the MLP of one, and a product of another
     */
    {",\"quantization_config\":{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true,"
     "\"llm_int8_skip_modules\":[\"lm_head\",\"model.layers.3.mlp\"]}}",
     "config.json: quantization_config.llm_int8_skip_modules: \"model.layers.3.mlp\""},
    {",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"config_groups\":{"
     "\"group_0\":{\"weights\":{\"num_bits\":4}}},\"ignore\":[\"lm_head\","
     "\"model.layers.1.mlp.down_proj\"]}}",
     "config.json: quantization_config.ignore: \"model.layers.1.mlp.down_proj\""},
    {",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_"
     "0\":{"
     "\"weights\":{\"num_bits\":4}},\"group_1\":{\"weights\":{\"num_bits\":8}}}}}",
     "config.json: quantization_config.config_groups.group_1: another width than group_0"},
    {",\"quantization\":{\"bits\":4,\"model.layers.3.mlp.down_proj\":{\"bits\":6}}}",
     "config.json: quantization: \"model.layers.3.mlp.down_proj\" has a width of its own"},
    {",\"quantization\":{\"bits\":4,\"mode\":\"nvfp4\"}}",
     "quantization.mode: \"nvfp4\" is not known"},
    {",\"num_local_experts\":8}", "config.json: num_local_experts: a llama has no experts here"},
    {",\"kv_lora_rank\":512}", "config.json: kv_lora_rank: latent attention"},
    {",\"layer_types\":[\"full_attention\",\"linear_attention\"]}",
     "config.json: layer_types: \"linear_attention\""},
    {",\"head_dim\":-1}", "config.json: head_dim: must be a whole number from 1 on"},
    {",\"head_dim\":64.5}", "config.json: head_dim: must be a whole number from 1 on"},
};

START_TEST(what_a_file_cannot_say_is_refused_by_key)
{
    struct err e = ERR_INIT;
    char config[1024];
    (void)snprintf(config, sizeof config, LLAMA "%s", refused[_i].rest);
    (void)read_of(config, 0, &e);
    ck_assert_msg(says(&e, refused[_i].says), "%s", e.n > 0 ? e.lines[0] : "accepted");
    err_fini(&e);
}
END_TEST

/* Defaults of the transformers library's classes where a config.json has no value: a line of each
 * documentation page. 16 heads of a width of 1024; head_dim 64 is their quotient. */
static const struct {
    const char *type;
    bool not_gated, tied;
    uint32_t head_dim, kv_heads; /* 0: they must be stated */
    const char *experts;         /* the key of their number; NULL: none */
} defaults[] = {
    {"cohere", .tied = true, .head_dim = 64, .kv_heads = 16},
    {"gemma", .tied = true, .head_dim = 256},
    {"gemma2", .tied = true, .head_dim = 256},
    {"gemma3", .tied = true, .head_dim = 256, .kv_heads = 4},
    {"gemma3_text", .tied = true, .head_dim = 256, .kv_heads = 4},
    {"glm", .head_dim = 128},
    {"glm4", .head_dim = 128},
    {"gpt_neox", .not_gated = true, .head_dim = 64, .kv_heads = 16},
    {"gpt_oss", .head_dim = 64, .experts = "num_local_experts"},
    {"granite", .head_dim = 64, .kv_heads = 16},
    {"granitemoe", .head_dim = 64, .kv_heads = 16, .experts = "num_local_experts"},
    {"llama", .head_dim = 64, .kv_heads = 16},
    {"mistral", .head_dim = 64, .kv_heads = 8},
    {"mixtral", .head_dim = 64, .kv_heads = 8, .experts = "num_local_experts"},
    {"olmo2", .head_dim = 64, .kv_heads = 16},
    {"olmoe", .head_dim = 64, .kv_heads = 16, .experts = "num_experts"},
    {"phi", .not_gated = true, .head_dim = 64, .kv_heads = 16},
    {"phi3", .head_dim = 64, .kv_heads = 16},
    {"phimoe", .head_dim = 64, .kv_heads = 8, .experts = "num_local_experts"},
    {"qwen2", .head_dim = 64},
    {"qwen2_5_vl", .head_dim = 64},
    {"qwen2_5_vl_text", .head_dim = 64},
    {"qwen2_vl", .head_dim = 64},
    {"qwen2_vl_text", .head_dim = 64},
    {"qwen3", .head_dim = 128},
    {"qwen3_moe", .head_dim = 64, .experts = "num_experts"},
    {"qwen3_vl_moe_text", .head_dim = 64, .experts = "num_experts"},
    {"qwen3_vl_text", .head_dim = 128},
    {"smollm3", .tied = true, .head_dim = 64},
    {"stablelm", .head_dim = 64, .kv_heads = 16},
    {"starcoder2", .not_gated = true, .tied = true, .head_dim = 64},
};
#define N_DEFAULTS (sizeof defaults / sizeof defaults[0])

START_TEST(what_a_config_leaves_out_is_its_class_default)
{
    struct err e = ERR_INIT;
    char config[1024];
    char experts[64] = "";
    const char *key = defaults[_i].experts;
    bool own_width = key != NULL && strncmp(defaults[_i].type, "qwen3", 5) == 0;
    if (key != NULL) {
        (void)snprintf(experts, sizeof experts, ",\"%s\":8,\"num_experts_per_tok\":2", key);
    }
    const char *form =
        "{\"model_type\":\"%s\",\"hidden_size\":1024,\"num_attention_heads\":16,"
        "\"num_hidden_layers\":2,\"vocab_size\":1000,\"intermediate_size\":512%s%s%s}";
    (void)snprintf(config, sizeof config, form, defaults[_i].type, experts,
                   own_width ? ",\"moe_intermediate_size\":96" : "",
                   defaults[_i].kv_heads == 0 ? ",\"num_key_value_heads\":2" : "");
    struct llm m = model_of(config, 0);
    ck_assert_uint_eq(m.heads, 16);
    ck_assert_uint_eq(m.head_dim, defaults[_i].head_dim);
    ck_assert_uint_eq(m.kv_heads, defaults[_i].kv_heads == 0 ? 2 : defaults[_i].kv_heads);
    ck_assert_uint_eq(m.ffn_hidden, own_width ? 96 : 512);
    ck_assert_int_eq(m.gated_ffn, !defaults[_i].not_gated);
    ck_assert_int_eq(m.tied_head, defaults[_i].tied);
    ck_assert_uint_eq(m.n_experts, key != NULL ? 8 : 0);
    ck_assert_uint_eq(m.experts_per_token, key != NULL ? 2 : 0);
    if (defaults[_i].kv_heads == 0) {
        (void)snprintf(config, sizeof config, form, defaults[_i].type, experts,
                       own_width ? ",\"moe_intermediate_size\":96" : "", "");
        (void)read_of(config, 0, &e);
        ck_assert(says(&e, "num_key_value_heads: is missing"));
        err_fini(&e);
    }
}
END_TEST

START_TEST(an_unknown_architecture_and_missing_keys_are_refused_by_name)
{
    struct err e = ERR_INIT;
    (void)read_of("{\"model_type\":\"mamba\",\"hidden_size\":64}", 0, &e);
    ck_assert(says(&e, "Some-Model/config.json: model_type: \"mamba\" is not known (there are "));
    err_fini(&e);
    /* "write an LLM file by hand" would be of no use */
    (void)read_of("{\"model_type\":\"t5\",\"hidden_size\":64,\"is_encoder_decoder\":true}", 0, &e);
    ck_assert(says(&e, "model_type: \"t5\" is not known"));
    ck_assert(says(&e, "is_encoder_decoder: an encoder, which an LLM file cannot say"));
    err_fini(&e);
    (void)read_of("{\"model_type\":\"qwen2\",\"hidden_size\":64}", 0, &e);
    ck_assert(says(&e, "config.json: num_attention_heads: is missing"));
    ck_assert(says(&e, "config.json: num_key_value_heads: is missing"));
    ck_assert(says(&e, "config.json: vocab_size: is missing"));
    /* Each is said once, however often it is asked for. */
    err_fini(&e);
    e = (struct err)ERR_INIT;
    (void)read_of("{\"model_type\":\"deepseek_v2\",\"hidden_size\":64,\"sliding_window\":8}", 0,
                  &e);
    for (size_t i = 0; i < e.n; i++) {
        for (size_t k = 0; k < i; k++) {
            ck_assert_str_ne(e.lines[i], e.lines[k]);
        }
    }
    ck_assert_uint_eq(e.n, 6);
    err_fini(&e);
    (void)read_of("{\"model_type\":\"qwen3_moe\",\"decoder_sparse_step\":2,\"mlp_only_layers\":[0]"
                  ",\"hidden_size\":64}",
                  0, &e);
    ck_assert(says(&e, "config.json: decoder_sparse_step: layers without experts"));
    ck_assert(says(&e, "config.json: mlp_only_layers: layers without experts"));
    err_fini(&e);
}
END_TEST

/* 4 bits in 1.01 bytes: one was changed, the other forgotten. 0.5 is the least, 1 is the next. */
START_TEST(a_width_and_its_bytes_go_together)
{
    static const struct {
        const char *bytes;
        bool good;
    } four[] = {{"0.499", false}, {"0.5", true}, {"0.56", true}, {"0.99", true}, {"1.01", false}};
    for (size_t i = 0; i < sizeof four / sizeof four[0]; i++) {
        struct err e = ERR_INIT;
        struct llm m;
        cJSON *root = json_read_file(llm_path("llama-3.2-3b"), &e);
        ck_assert_int_eq(json_set_path(root, "weight_bits", "4", &e), 0);
        ck_assert_int_eq(json_set_path(root, "body_bytes_per_weight", four[i].bytes, &e), 0);
        ck_assert_int_eq(llm_parse(root, "f", &m, &e), four[i].good ? 0 : -EINVAL);
        ck_assert_int_eq(says(&e, "f: body_bytes_per_weight: "), !four[i].good);
        err_fini(&e);
        cJSON_Delete(root);
    }
}
END_TEST

/* The name is that of the folder a file lies in, under however long a path. A character that would
 * end a name in a list of names becomes a dash. */
START_TEST(a_model_is_called_by_the_end_of_a_long_path)
{
    char file[400];
    struct err e = ERR_INIT;
    cJSON *root = cJSON_Parse(known[0].config);
    (void)snprintf(file, sizeof file, "/%0300d/Some-Model, v1:2/config.json", 0);
    cJSON *tree = llm_hf_tree(root, file, NULL, 0, &e);
    ck_assert_str_eq(json_string(tree, "name"), "some-model--v1-2");
    cJSON_Delete(tree);
    cJSON_Delete(root);
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(a_config_has_the_parameters_its_model_page_states, N_KNOWN),
    TEST(the_text_part_of_a_model_with_pictures_is_read),
    LOOP(bytes_are_those_of_the_way_the_weights_are_stored, sizeof stored / sizeof stored[0]),
    TEST(attention_beside_experts_may_keep_its_width),
    LOOP(what_a_file_cannot_say_is_refused_by_key, sizeof refused / sizeof refused[0]),
    LOOP(what_a_config_leaves_out_is_its_class_default, N_DEFAULTS),
    TEST(an_unknown_architecture_and_missing_keys_are_refused_by_name),
    TEST(a_width_and_its_bytes_go_together),
    TEST(a_model_is_called_by_the_end_of_a_long_path),
};
SUITE_MAIN("llm_hf", suite)
