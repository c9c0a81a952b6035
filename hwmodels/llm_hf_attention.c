/* Attention in config.json: windows, positions, and other kinds. */
#include "hwmodels/llm_hf_impl.h"

/* Words of `layer_types` for layers with a state. */
static const char *recurrent_word(enum mixer m)
{
    return m == GATED_DELTANET      ? "linear_attention"
           : m == MAMBA2            ? "mamba"
           : m == SHORT_CONVOLUTION ? "conv"
                                    : "";
}

static const cJSON *listed_layers(const struct reader *r)
{
    const cJSON *types = member(r->model, "layer_types");
    return types != NULL ? types : member(r->model, "layers_block_type");
}

void llm_hf_refuse_attention(const struct reader *r, const struct architecture *a)
{
    static const struct {
        const char *key, *what;
        enum mixer known;
    } keys[] = {
        {"kv_lora_rank", "latent attention", LATENT},
        {"linear_num_value_heads", "linear attention", GATED_DELTANET},
        {"num_global_key_value_heads", "other heads in some layers", GLOBAL_HEADS},
        {"mamba_n_heads", "Mamba layers", MAMBA2},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (a->mixer != keys[i].known && says_something(member(r->model, keys[i].key))) {
            (void)err_add(r->e,
                          "%s: %s%s: %s, which is not read of a %s; write an LLM file by hand",
                          r->file, r->path, keys[i].key, keys[i].what, a->type);
        }
    }
    const cJSON *kind;
    cJSON_ArrayForEach (kind, listed_layers(r)) {
        const char *s = cJSON_GetStringValue(kind);
        bool attends = s != NULL && strstr(s, "attention") != NULL && strstr(s, "linear") == NULL;
        if (!attends && (s == NULL || strcmp(s, recurrent_word(a->mixer)) != 0)) {
            (void)err_add(r->e,
                          "%s: %slayer_types: \"%.40s\", which is not read of a %s; write an LLM "
                          "file by hand",
                          r->file, r->path, s == NULL ? "" : s, a->type);
            break;
        }
    }
}

/* Share of a head with rotary positions. */
static double rotary_frac(const struct reader *r)
{
    static const struct {
        const char *type;
        double frac;
    } usual[] = {{"glm", 0.5},
                 {"glm4", 0.5},
                 {"gpt_neox", 0.25},
                 {"phi", 0.5},
                 {"qwen3_5_moe_text", 0.25},
                 {"qwen3_5_text", 0.25},
                 {"qwen3_next", 0.25},
                 {"stablelm", 0.25}};
    double frac = 1.0;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        frac =
            strcmp(json_string(r->model, "model_type"), usual[i].type) == 0 ? usual[i].frac : frac;
    }
    const cJSON *own = member(r->model, "rope_parameters");
    frac = number_of(r->model, "partial_rotary_factor", "rotary_pct", frac);
    return own == NULL ? frac : number_of(own, "partial_rotary_factor", NULL, frac);
}

/* Whether attention is special (LLM files). gpt-oss has a sink in every head. Gemma 3 with vision
 * has tokens that attend to later ones. */
static bool is_special(const struct reader *r, const cJSON *root, const struct architecture *a,
                       uint32_t head_dim)
{
    const char *positions = json_string(r->model, "position_embedding_type");
    double rotated = number_of(r->model, "rotary_dim", NULL, head_dim); /* MiniMax-M2 states it */
    return rotated < head_dim || rotary_frac(r) < 1.0 || a->mixer == LATENT ||
           a->mixer == GLOBAL_HEADS || (a->mixer == MAMBA2 && strcmp(positions, "rope") != 0) ||
           (head_dim & (head_dim - 1)) != 0 ||
           strcmp(json_string(r->model, "model_type"), "gpt_oss") == 0 ||
           strcmp(json_string(root, "model_type"), "gemma3") == 0;
}

/* Number of layers with a sliding window. Older files do not list them. Layers without are every
 * second one in Gemma 2 and gpt-oss, every fifth in Gemma 3n, every sixth in 3 and 4, those below
 * max_window_layers in Qwen, and none in others. */
static uint32_t sliding_layers(const struct reader *r, uint32_t layers)
{
    const char *type = json_string(r->model, "model_type");
    const cJSON *listed = member(r->model, "layer_types");
    if (listed != NULL) {
        uint32_t n = 0;
        const cJSON *kind;
        cJSON_ArrayForEach (kind, listed) {
            const char *text = cJSON_GetStringValue(kind);
            n += text != NULL && strcmp(text, "sliding_attention") == 0;
        }
        return n;
    }
    if (strncmp(type, "qwen", 4) == 0) {
        double whole = number_of(r->model, "max_window_layers", NULL, layers);
        return whole < layers ? layers - (uint32_t)whole : 0;
    }
    bool gemma = strncmp(type, "gemma3", 6) == 0 || strncmp(type, "gemma4", 6) == 0;
    bool second = strcmp(type, "gemma2") == 0 || strcmp(type, "gpt_oss") == 0;
    double every = number_of(r->model, "sliding_window_pattern", "_sliding_window_pattern",
                             strcmp(type, "gemma3n_text") == 0 ? 5.0
                             : gemma                           ? 6.0
                             : second                          ? 2.0
                                                               : 0.0);
    return every >= 1.0 ? layers - layers / (uint32_t)every : layers;
}

static void put_window(cJSON *to, const struct reader *r, uint32_t all_layers)
{
    const cJSON *use = member(r->model, "use_sliding_window");
    bool qwen = strncmp(json_string(r->model, "model_type"), "qwen", 4) == 0;
    bool used = use != NULL ? cJSON_IsTrue(use) : !qwen; /* Qwen's default */
    if (used && says_something(member(r->model, "sliding_window"))) {
        uint32_t layers = sliding_layers(r, all_layers);
        uint32_t window = count(r, "sliding_window", 0);
        if (layers > 0) {
            JSON_MEMBERS(to, "sliding_window", window, "sliding_layers", layers);
        }
    }
}

/* Number of layers with a state. Older files do not list them: Qwen's state the period of attention
 * layers, LFM2's their indices. */
static uint32_t recurrent_layers(const struct reader *r, const struct architecture *a,
                                 uint32_t layers)
{
    const cJSON *kind;
    uint32_t n = 0;
    if (listed_layers(r) != NULL) {
        cJSON_ArrayForEach (kind, listed_layers(r)) {
            const char *s = cJSON_GetStringValue(kind);
            n += s != NULL && strcmp(s, recurrent_word(a->mixer)) == 0;
        }
        return n;
    }
    if (a->mixer == GATED_DELTANET) {
        return layers - layers / count(r, "full_attention_interval", 4);
    }
    const cJSON *attend = member(r->model, "full_attn_idxs");
    if (!cJSON_IsArray(attend)) {
        (void)err_add(r->e, "%s: %slayer_types: is missing", r->file, r->path);
    }
    return layers - (uint32_t)cJSON_GetArraySize(attend);
}

static void put_state(cJSON *to, uint32_t layers, double in, double out, double state)
{
    if (layers > 0) {
        JSON_MEMBERS(to, "recurrent_layers", layers, "recurrent_in", in, "recurrent_out", out,
                     "recurrent_state", state);
    }
}

/* Products give queries, keys, values, a gate as wide as the values, and two numbers per head of
 * values. The state of a head is keys x values; that of the convolution its last rows. */
static void put_deltanet(cJSON *to, const struct reader *r, uint32_t layers)
{
    double key_dim = count(r, "linear_key_head_dim", 128);
    double value_dim = count(r, "linear_value_head_dim", 128);
    double value_heads = count(r, "linear_num_value_heads", 32);
    double keys = count(r, "linear_num_key_heads", 16) * key_dim;
    double values = value_heads * value_dim;
    double rows = count(r, "linear_conv_kernel_dim", 4) - 1.0;
    put_state(to, layers, 2 * keys + 2 * values + 2 * value_heads, values,
              values * key_dim + rows * (2 * keys + values));
    (void)cJSON_AddTrueToObject(to, "gated_attention");
}

/* Products give a gate and values, both of the inner width, the state's input and output matrices
 * for each group, and a step for each head. */
static void put_mamba(cJSON *to, const struct reader *r, uint32_t layers)
{
    double inner = (double)count(r, "mamba_expand", 2) * count(r, "hidden_size", 0);
    double width = count(r, "mamba_d_state", 256);
    double in_out = 2.0 * count(r, "mamba_n_groups", 1) * width;
    double rows = count(r, "mamba_d_conv", 4) - 1.0;
    put_state(to, layers, 2 * inner + in_out + count(r, "mamba_n_heads", 128), inner,
              inner * width + rows * (inner + in_out));
}

/* Products give the input of the convolution and two gates. */
static void put_convolution(cJSON *to, const struct reader *r, uint32_t layers)
{
    double hidden = count(r, "hidden_size", 0);
    put_state(to, layers, 3 * hidden, hidden, (count(r, "conv_L_cache", 3) - 1) * hidden);
}

static void put_latent(cJSON *to, const struct reader *r)
{
    double query = number_of(r->model, "q_lora_rank", NULL, 0.0);
    JSON_MEMBERS(to, "latent_kv", count(r, "kv_lora_rank", 512), "rotary_dim",
                 count(r, "qk_rope_head_dim", 64), "value_dim", count(r, "v_head_dim", 128));
    if (query > 0.0) {
        (void)cJSON_AddNumberToObject(to, "latent_query", query);
    }
}

static void put_global(cJSON *to, const struct reader *r)
{
    bool one = cJSON_IsTrue(member(r->model, "attention_k_eq_v"));
    uint32_t usual = count(r, "num_key_value_heads", 4);
    JSON_MEMBERS(to, "global_head_dim", count(r, "global_head_dim", 512), "global_kv_heads",
                 one ? count(r, "num_global_key_value_heads", usual) : usual);
    if (one) {
        (void)cJSON_AddTrueToObject(to, "keys_as_values");
    }
}

void llm_hf_put_attention(cJSON *to, const struct reader *r, const cJSON *root,
                          const struct architecture *a, uint32_t layers, uint32_t head_dim)
{
    bool recurrent = recurrent_word(a->mixer)[0] != '\0';
    uint32_t with_state = recurrent ? recurrent_layers(r, a, layers) : 0;
    if (is_special(r, root, a, head_dim)) {
        (void)cJSON_AddTrueToObject(to, "special_attention");
    }
    put_window(to, r, layers);
    switch (a->mixer) {
    case GATED_DELTANET:
        put_deltanet(to, r, with_state);
        break;
    case MAMBA2:
        put_mamba(to, r, with_state);
        break;
    case SHORT_CONVOLUTION:
        put_convolution(to, r, with_state);
        break;
    case LATENT:
        put_latent(to, r);
        break;
    case GLOBAL_HEADS:
        put_global(to, r);
        break;
    case USUAL:
        break;
    }
}
