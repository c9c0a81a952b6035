#include "hwmodels/gguf.h"
#include "hwmodels/llm_hf_impl.h"
#include "sim/base/words.h"

/* An architecture's config.json may leave these out: class defaults of the transformers library,
 * by `model_type`. head_dim 0: hidden / heads. kv_heads 0: as heads; NONE: must be stated. */
#define NONE (-1)
#define FFN "intermediate_size"
static const struct architecture architectures[] = {
    {"cohere", true, true, 0, 0, 0, 0, FFN, NULL, USUAL},
    {"deepseek_v2", true, false, 0, 0, 0, 0, "moe_intermediate_size", "n_routed_experts", LATENT},
    {"deepseek_v3", true, false, 0, 0, 0, 0, "moe_intermediate_size", "n_routed_experts", LATENT},
    {"ernie4_5_moe", true, true, 0, 4, 0, 0, "moe_intermediate_size", "moe_num_experts", USUAL},
    {"gemma", true, true, 256, NONE, 0, 0, FFN, NULL, USUAL},
    {"gemma2", true, true, 256, NONE, 0, 0, FFN, NULL, USUAL},
    {"gemma3", true, true, 256, 4, 8, 262208, FFN, NULL, USUAL},
    {"gemma3_text", true, true, 256, 4, 8, 262208, FFN, NULL, USUAL},
    {"gemma3n_text", true, true, 256, 2, 8, 262400, FFN, NULL, USUAL},
    {"gemma4_text", true, true, 256, 4, 8, 262144, FFN, NULL, GLOBAL_HEADS},
    {"glm", true, false, 128, NONE, 0, 0, FFN, NULL, USUAL},
    {"glm4", true, false, 128, NONE, 0, 0, FFN, NULL, USUAL},
    {"glm4_moe", true, false, 128, NONE, 0, 0, "moe_intermediate_size", "n_routed_experts", USUAL},
    {"glm4_moe_lite", true, false, 0, 0, 0, 0, "moe_intermediate_size", "n_routed_experts", LATENT},
    {"gpt_neox", false, false, 0, 0, 0, 0, FFN, NULL, USUAL},
    {"gpt_oss", true, false, 64, NONE, 0, 0, FFN, "num_local_experts", USUAL},
    {"granite", true, false, 0, 0, 0, 0, FFN, NULL, USUAL},
    {"granitemoe", true, false, 0, 0, 0, 0, FFN, "num_local_experts", USUAL},
    {"granitemoehybrid", true, false, 0, 0, 0, 0, FFN, "num_local_experts", MAMBA2},
    {"lfm2", true, true, 0, 8, 0, 65536, FFN, NULL, SHORT_CONVOLUTION},
    {"lfm2_moe", true, true, 0, 8, 0, 65536, "moe_intermediate_size", "num_experts",
     SHORT_CONVOLUTION},
    {"llama", true, false, 0, 0, 0, 0, FFN, NULL, USUAL},
    {"minimax_m2", true, false, 128, 8, 0, 0, FFN, "num_local_experts", USUAL},
    {"mistral", true, false, 0, 8, 0, 0, FFN, NULL, USUAL},
    {"mixtral", true, false, 0, 8, 0, 0, FFN, "num_local_experts", USUAL},
    {"olmo2", true, false, 0, 0, 0, 0, FFN, NULL, USUAL},
    {"olmoe", true, false, 0, 0, 0, 0, FFN, "num_experts", USUAL},
    {"phi", false, false, 0, 0, 0, 0, FFN, NULL, USUAL},
    {"phi3", true, false, 0, 0, 0, 0, FFN, NULL, USUAL},
    {"phimoe", true, false, 0, 8, 0, 0, FFN, "num_local_experts", USUAL},
    {"qwen2", true, false, 0, NONE, 0, 0, FFN, NULL, USUAL},
    {"qwen2_5_vl", true, false, 0, NONE, 0, 0, FFN, NULL, USUAL},
    {"qwen2_5_vl_text", true, false, 0, NONE, 0, 0, FFN, NULL, USUAL},
    {"qwen2_moe", true, false, 0, NONE, 0, 0, "moe_intermediate_size", "num_experts", USUAL},
    {"qwen2_vl", true, false, 0, NONE, 0, 0, FFN, NULL, USUAL},
    {"qwen2_vl_text", true, false, 0, NONE, 0, 0, FFN, NULL, USUAL},
    {"qwen3", true, false, 128, NONE, 0, 0, FFN, NULL, USUAL},
    {"qwen3_5_moe_text", true, false, 256, NONE, 0, 0, "moe_intermediate_size", "num_experts",
     GATED_DELTANET},
    {"qwen3_5_text", true, false, 256, NONE, 0, 0, FFN, NULL, GATED_DELTANET},
    {"qwen3_moe", true, false, 0, NONE, 0, 0, "moe_intermediate_size", "num_experts", USUAL},
    {"qwen3_next", true, false, 256, NONE, 0, 0, "moe_intermediate_size", "num_experts",
     GATED_DELTANET},
    {"qwen3_vl_moe_text", true, false, 0, NONE, 0, 0, "moe_intermediate_size", "num_experts",
     USUAL},
    {"qwen3_vl_text", true, false, 128, NONE, 0, 0, FFN, NULL, USUAL},
    {"smollm3", true, true, 0, NONE, 0, 0, FFN, NULL, USUAL},
    {"stablelm", true, false, 0, 0, 0, 0, FFN, NULL, USUAL},
    {"starcoder2", false, true, 0, NONE, 0, 0, FFN, NULL, USUAL},
};
#define N_ARCHITECTURES (sizeof architectures / sizeof architectures[0])

/* Keys of features that an LLM file cannot state, unless they are absent, null, 0, false or empty.
 * For Gemma 3n and 4 some are supported. */
static const struct {
    const char *key, *what;
    bool gemma;
} beyond[] = {
    {"hidden_size_per_layer_input", "embeddings of each layer", true},
    {"mlp_only_layers", "layers without experts between others", false},
    {"num_kv_shared_layers", "layers that share their KV", true},
    {"is_encoder_decoder", "an encoder", false},
};

static bool has_layer_inputs(const struct architecture *a)
{
    return a != NULL &&
           (strcmp(a->type, "gemma3n_text") == 0 || strcmp(a->type, "gemma4_text") == 0);
}

/* Keys of shared experts, and of leading layers without experts, both supported in LLM files.
 * Architectures that have them: */
static const struct {
    const char *key, *what;
} shares[] = {
    {"shared_expert_intermediate_size", "a shared expert"},
    {"n_shared_experts", "shared experts"},
    {"num_shared_experts", "shared experts"},
    {"moe_num_shared_experts", "shared experts"},
    {"first_k_dense_replace", "dense layers before the experts"},
    {"moe_layer_start_index", "dense layers before the experts"},
    {"num_dense_layers", "dense layers before the experts"},
};

static bool reads_shares(const char *type)
{
    static const char *const types[] = {"deepseek_v2",      "deepseek_v3", "ernie4_5_moe",
                                        "gemma4_text",      "glm4_moe",    "glm4_moe_lite",
                                        "granitemoehybrid", "lfm2_moe",    "qwen2_moe",
                                        "qwen3_5_moe_text", "qwen3_next",  NULL};
    return words_find(types, type) >= 0;
}

/* ---- reading ---- */

static const struct architecture *architecture_of(const struct reader *r)
{
    const char *type = json_string(r->model, "model_type");
    for (size_t i = 0; i < N_ARCHITECTURES; i++) {
        if (strcmp(architectures[i].type, type) == 0) {
            return &architectures[i];
        }
    }
    SCOPED(text_fini) struct text known = {0};
    for (size_t i = 0; i < N_ARCHITECTURES; i++) {
        text_item(&known, ", ", architectures[i].type);
    }
    return err_null(r->e,
                    "%s: %smodel_type: \"%s\" is not known (there are %s); write an LLM file by "
                    "hand: hwmodels/llm has examples",
                    r->file, r->path, type, text_end(&known));
}

/* A key decides whether Gemma 4 and Granite 4 are mixtures. */
static struct architecture variant_of(const struct reader *r, const struct architecture *a)
{
    struct architecture v = *a;
    if (cJSON_IsTrue(member(r->model, "enable_moe_block"))) {
        v.ffn = "moe_intermediate_size";
        v.experts = "num_experts";
    }
    if (a->mixer == MAMBA2 && !says_something(member(r->model, a->experts))) {
        v.ffn = "shared_intermediate_size";
        v.experts = NULL;
    }
    return v;
}

static void refuse_what_is_beyond(const struct reader *r, const struct architecture *a)
{
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        bool read = beyond[i].gemma && has_layer_inputs(a);
        if (!read && says_something(member(r->model, beyond[i].key))) {
            (void)err_add(
                r->e, "%s: %s%s: %s, which %s", r->file, r->path, beyond[i].key, beyond[i].what,
                beyond[i].gemma ? "is read of Gemma 3n and 4 only" : "an LLM file cannot say");
        }
    }
    for (size_t i = 0; a != NULL && !reads_shares(a->type) && i < sizeof shares / sizeof shares[0];
         i++) {
        if (says_something(member(r->model, shares[i].key))) {
            (void)err_add(r->e,
                          "%s: %s%s: %s, which is not read of a %s; write an LLM file by hand",
                          r->file, r->path, shares[i].key, shares[i].what, a->type);
        }
    }
    const cJSON *step = member(r->model, "decoder_sparse_step");
    if (cJSON_IsNumber(step) && step->valuedouble != 1.0) {
        (void)err_add(r->e,
                      "%s: %sdecoder_sparse_step: layers without experts between others, which an "
                      "LLM file cannot say",
                      r->file, r->path);
    }
    static const char *const experts[] = {"num_local_experts", "num_experts", "n_routed_experts"};
    for (size_t i = 0; a != NULL && a->experts == NULL && i < sizeof experts / sizeof experts[0];
         i++) {
        if (says_something(member(r->model, experts[i]))) {
            (void)err_add(r->e, "%s: %s%s: a %s has no experts here", r->file, r->path, experts[i],
                          a->type);
        }
    }
    if (a != NULL) {
        llm_hf_refuse_attention(r, a);
    }
}

/* ---- the file ---- */

bool llm_hf_is(const cJSON *root)
{
    return cJSON_IsObject(root) && !cJSON_HasObjectItem(root, "format") &&
           (cJSON_HasObjectItem(root, "model_type") || cJSON_HasObjectItem(root, "architectures") ||
            cJSON_HasObjectItem(root, "hidden_size"));
}

/* Returns "model-3b" for "org/Model-3B" or "dir/Model-3B/config.json". The caller frees it. */
static char *name_of(const cJSON *root, const char *file)
{
    const char *from = json_string(root, "_name_or_path");
    OWNED char *text = xstrdup(from[0] != '\0' ? from : file);
    char *base = strrchr(text, '/');
    if (base != NULL && strcmp(base, "/config.json") == 0) {
        *base = '\0';
        base = strrchr(text, '/');
    }
    base = base == NULL ? text : base + 1;
    if (text_ends(base, ".json")) {
        *strrchr(base, '.') = '\0';
    }
    for (char *c = base; *c != '\0'; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
        *c = strchr(" ,:\"\\", *c) != NULL ? '-' : *c;
    }
    return xstrdup(base);
}

static void put_source(cJSON *to, const struct reader *r, const cJSON *root)
{
    SCOPED(text_fini) struct text t = {0};
    const char *from = json_string(root, "_name_or_path");
    text_format(&t, "config.json%s%s (model_type %s)", from[0] != '\0' ? " of " : "", from,
                json_string(r->model, "model_type"));
    bool pictures = r->model != root || json_member(root, "vision_config") != NULL;
    text_string(&t, pictures ? "; the text part alone" : "");
    (void)cJSON_AddStringToObject(to, "source", text_end(&t));
}

/* Sets the context length. Scaled rotary positions extend it, unless the file's number includes
 * that. */
static void put_context(cJSON *to, const struct reader *r)
{
    double positions = number_of(r->model, "max_position_embeddings", "seq_length", 0.0);
    const cJSON *rope = member(r->model, "rope_scaling");
    rope = rope == NULL ? member(r->model, "rope_parameters") : rope;
    const char *type = json_string(rope, "rope_type");
    type = type[0] == '\0' ? json_string(rope, "type") : type;
    bool scaled = strcmp(type, "linear") == 0 || strcmp(type, "dynamic") == 0;
    if (strcmp(type, "yarn") == 0) {
        positions = number_of(rope, "original_max_position_embeddings", NULL, positions);
        scaled = true;
    }
    positions *= scaled ? number_of(rope, "factor", NULL, 1.0) : 1.0;
    if (positions >= 1.0 && positions <= 1e9) {
        (void)cJSON_AddNumberToObject(to, "max_context", floor(positions));
    }
}

/* Shared experts count as one expert of their total width. The first layers may have an FFN instead
 * of experts; ERNIE's last ones may not. */
static void put_shared(cJSON *to, const struct reader *r, double expert_ffn)
{
    double n = number_of(r->model, "n_shared_experts", "moe_num_shared_experts", 0.0);
    double width = number_of(r->model, "shared_expert_intermediate_size",
                             "shared_intermediate_size", n * expert_ffn);
    width = cJSON_IsTrue(member(r->model, "enable_moe_block")) ? count(r, FFN, 0) : width;
    double dense = number_of(r->model, "first_k_dense_replace", "moe_layer_start_index",
                             number_of(r->model, "num_dense_layers", NULL, 0.0));
    const cJSON *kind;
    cJSON_ArrayForEach (kind, member(r->model, "mlp_layer_types")) {
        const char *word = cJSON_GetStringValue(kind);
        dense += word != NULL && strcmp(word, "dense") == 0 &&
                 member(r->model, "first_k_dense_replace") == NULL;
    }
    double layers = number_of(r->model, "num_hidden_layers", NULL, 0.0);
    double end = number_of(r->model, "moe_layer_end_index", NULL, -1.0);
    if (number_of(r->model, "moe_layer_interval", "moe_layer_freq", 1.0) != 1.0 ||
        (end != -1.0 && end != layers - 1.0)) {
        (void)err_add(
            r->e,
            "%s: %smoe_layer_interval, moe_layer_freq, moe_layer_end_index: layers without experts "
            "between others, which an LLM file cannot say",
            r->file, r->path);
    }
    if (width > 0.0) {
        (void)cJSON_AddNumberToObject(to, "shared_ffn", width);
    }
    if (dense > 0.0) {
        JSON_MEMBERS(to, "dense_layers", dense, "dense_ffn", count(r, FFN, 0));
    }
}

/* Gemma 3n lists the widths of its FFNs, and Gemma 4's layers with shared KV may be twice as wide.
 * An LLM file has at most two widths. */
static void put_other_ffn(cJSON *to, const struct reader *r, double layers, double ffn)
{
    const cJSON *one, *listed = member(r->model, FFN);
    double n = 0.0, width = 0.0;
    bool two = !cJSON_IsArray(listed) || cJSON_GetArraySize(listed) == (int)layers;
    cJSON_ArrayForEach (one, listed) {
        double w = cJSON_IsNumber(one) ? one->valuedouble : 0.0;
        two = two && w >= 1.0 && (w == ffn || n == 0.0 || w == width);
        n += w != ffn;
        width = w != ffn ? w : width;
    }
    if (!two) {
        (void)err_add(r->e, "%s: %s" FFN ": must be one or two widths, of all layers", r->file,
                      r->path);
    }
    if (cJSON_IsTrue(member(r->model, "use_double_wide_mlp"))) {
        n = number_of(r->model, "num_kv_shared_layers", NULL, 0.0);
        width = 2.0 * ffn;
    }
    if (n > 0.0) {
        JSON_MEMBERS(to, "dense_layers", n, "dense_ffn", width);
    }
}

/* Gemma 3n and 4 have layer inputs besides attention and FFN. */
static void put_layer_inputs(cJSON *to, const struct reader *r)
{
    static const struct {
        const char *key, *to;
    } keys[] = {{"hidden_size_per_layer_input", "layer_embedding"},
                {"num_kv_shared_layers", "shared_kv_layers"},
                {"laurel_rank", "laurel_rank"},
                {"altup_num_inputs", "altup_inputs"}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        double v = number_of(r->model, keys[i].key, NULL, 0.0);
        if (v > 0.0) {
            (void)cJSON_AddNumberToObject(to, keys[i].to, v);
        }
    }
}

/* LFM2 states a width that its class reduces to two thirds, rounded up. */
static double ffn_width(const struct reader *r, const struct architecture *a)
{
    const cJSON *listed = member(r->model, a->ffn);
    if (has_layer_inputs(a) && cJSON_IsArray(listed)) {
        const cJSON *first = cJSON_GetArrayItem(listed, 0);
        return cJSON_IsNumber(first) ? first->valuedouble : 0.0;
    }
    const cJSON *adjust = member(r->model, "block_auto_adjust_ff_dim");
    if (strcmp(a->type, "lfm2") != 0 || cJSON_IsFalse(adjust)) {
        return count(r, a->ffn, 0);
    }
    const char *key = member(r->model, "block_ff_dim") != NULL ? "block_ff_dim" : a->ffn;
    double part = floor(2.0 * count(r, key, 0) / 3.0);
    double width = floor(part * number_of(r->model, "block_ffn_dim_multiplier", NULL, 1.0));
    double step = count(r, "block_multiple_of", 256);
    return ceil(width / step) * step;
}

static uint32_t head_width(const struct reader *r, const struct architecture *a, uint32_t hidden,
                           uint32_t heads)
{
    if (a->mixer == LATENT) {
        return count(r, "qk_nope_head_dim", 128) + count(r, "qk_rope_head_dim", 64);
    }
    if (hidden % heads != 0 && a->head_dim == 0 && member(r->model, "head_dim") == NULL) {
        (void)err_add(r->e,
                      "%s: %shead_dim: is missing, and hidden_size is no multiple of "
                      "num_attention_heads",
                      r->file, r->path);
    }
    uint32_t usual = a->head_dim > 0 ? (uint32_t)a->head_dim : hidden / heads;
    return count(r, "head_dim", usual > 0 ? usual : 1);
}

static void put_shape(cJSON *to, const struct reader *r, const cJSON *root,
                      const struct architecture *a)
{
    uint32_t hidden = count(r, "hidden_size", 0);
    uint32_t heads = count(r, "num_attention_heads", (uint32_t)a->heads);
    uint32_t kv = count(r, "num_key_value_heads",
                        a->kv_heads == NONE ? 0
                        : a->kv_heads > 0   ? (uint32_t)a->kv_heads
                                            : heads);
    /* A vision model has it outside its text part. */
    const cJSON *tied = member(r->model, "tie_word_embeddings");
    tied = tied == NULL ? member(root, "tie_word_embeddings") : tied;
    uint32_t head_dim = head_width(r, a, hidden, heads);
    uint32_t layers = count(r, "num_hidden_layers", 0);
    double ffn = ffn_width(r, a);
    JSON_MEMBERS(to, "layers", layers, "hidden", hidden, "heads", heads, "kv_heads", kv, "head_dim",
                 head_dim, "ffn_hidden", ffn, "vocab", count(r, "vocab_size", (uint32_t)a->vocab),
                 "gated_ffn", (bool)a->gated, "tied_head",
                 (bool)(tied == NULL ? a->tied : cJSON_IsTrue(tied)));
    llm_hf_put_attention(to, r, root, a, layers, head_dim);
    put_context(to, r);
    if (has_layer_inputs(a)) {
        put_layer_inputs(to, r);
    }
    if (has_layer_inputs(a) && a->experts == NULL) {
        put_other_ffn(to, r, layers, ffn);
    }
    if (a->experts != NULL) {
        const char *used = member(r->model, "moe_k") != NULL           ? "moe_k"
                           : member(r->model, "top_k_experts") != NULL ? "top_k_experts"
                                                                       : "num_experts_per_tok";
        JSON_MEMBERS(to, "experts", count(r, a->experts, 0), "experts_per_token",
                     count(r, used, 0));
    }
    if (a->experts != NULL && reads_shares(a->type)) {
        put_shared(to, r, ffn);
    }
}

cJSON *llm_hf_tree(const cJSON *root, const char *file, const char *name, uint32_t weight_bits,
                   struct err *e)
{
    size_t before = e->n;
    const cJSON *text = member(root, "text_config");
    struct reader r = {.model = cJSON_IsObject(text) ? text : root,
                       .file = file,
                       .path = cJSON_IsObject(text) ? "text_config." : "",
                       .e = e};
    const struct architecture *a = architecture_of(&r);
    struct architecture own_kind;
    if (a != NULL) {
        own_kind = variant_of(&r, a);
        a = &own_kind;
    }
    refuse_what_is_beyond(&r, a); /* also for unknown types, because no LLM file can state these */
    if (a == NULL) {
        return NULL;
    }
    r.experts = a->experts != NULL;
    OWNED char *own = name_of(root, file);
    cJSON *to = cJSON_CreateObject();
    JSON_MEMBERS(to, "format", 1, "name", name != NULL ? name : own);
    put_source(to, &r, root);
    put_shape(to, &r, root, a);
    struct storage s;
    if (weight_bits > 0) {
        llm_tree_width(to, weight_bits);
    } else if (llm_hf_stored(&r, root, &s)) {
        llm_hf_put_storage(to, &s);
    }
    if (e->n > before) {
        cJSON_Delete(to);
        return NULL;
    }
    return to;
}

cJSON *llm_read_file(const char *path, struct err *e)
{
    if (gguf_is(path)) {
        return err_null(e, "%s: is a GGUF file: xpusim new-llm NAME --gguf %s", path, path);
    }
    cJSON *root = json_read_file(path, e);
    if (!llm_hf_is(root)) {
        return root;
    }
    cJSON *tree = llm_hf_tree(root, path, NULL, 0, e);
    cJSON_Delete(root);
    return tree;
}
