#include "hwmodels/llm_hf_impl.h"
#include "sim/base/words.h"

/* An architecture's config.json may leave these out: class defaults of the transformers library,
 * by `model_type`. head_dim 0: hidden / heads. kv_heads 0: as heads; NONE: must be stated. */
#define NONE (-1)
struct architecture {
    const char *type;
    bool gated, tied;
    int head_dim, kv_heads, heads, vocab; /* heads, vocab 0: must be stated */
    const char *ffn, *experts;            /* keys; experts NULL: dense */
};
#define FFN "intermediate_size"
static const struct architecture architectures[] = {
    {"cohere", true, true, 0, 0, 0, 0, FFN, NULL},
    {"ernie4_5_moe", true, true, 0, 4, 0, 0, "moe_intermediate_size", "moe_num_experts"},
    {"gemma", true, true, 256, NONE, 0, 0, FFN, NULL},
    {"gemma2", true, true, 256, NONE, 0, 0, FFN, NULL},
    {"gemma3", true, true, 256, 4, 8, 262208, FFN, NULL},
    {"gemma3_text", true, true, 256, 4, 8, 262208, FFN, NULL},
    {"glm", true, false, 128, NONE, 0, 0, FFN, NULL},
    {"glm4", true, false, 128, NONE, 0, 0, FFN, NULL},
    {"glm4_moe", true, false, 128, NONE, 0, 0, "moe_intermediate_size", "n_routed_experts"},
    {"gpt_neox", false, false, 0, 0, 0, 0, FFN, NULL},
    {"gpt_oss", true, false, 64, NONE, 0, 0, FFN, "num_local_experts"},
    {"granite", true, false, 0, 0, 0, 0, FFN, NULL},
    {"granitemoe", true, false, 0, 0, 0, 0, FFN, "num_local_experts"},
    {"llama", true, false, 0, 0, 0, 0, FFN, NULL},
    {"mistral", true, false, 0, 8, 0, 0, FFN, NULL},
    {"mixtral", true, false, 0, 8, 0, 0, FFN, "num_local_experts"},
    {"olmo2", true, false, 0, 0, 0, 0, FFN, NULL},
    {"olmoe", true, false, 0, 0, 0, 0, FFN, "num_experts"},
    {"phi", false, false, 0, 0, 0, 0, FFN, NULL},
    {"phi3", true, false, 0, 0, 0, 0, FFN, NULL},
    {"phimoe", true, false, 0, 8, 0, 0, FFN, "num_local_experts"},
    {"qwen2", true, false, 0, NONE, 0, 0, FFN, NULL},
    {"qwen2_5_vl", true, false, 0, NONE, 0, 0, FFN, NULL},
    {"qwen2_5_vl_text", true, false, 0, NONE, 0, 0, FFN, NULL},
    {"qwen2_moe", true, false, 0, NONE, 0, 0, "moe_intermediate_size", "num_experts"},
    {"qwen2_vl", true, false, 0, NONE, 0, 0, FFN, NULL},
    {"qwen2_vl_text", true, false, 0, NONE, 0, 0, FFN, NULL},
    {"qwen3", true, false, 128, NONE, 0, 0, FFN, NULL},
    {"qwen3_moe", true, false, 0, NONE, 0, 0, "moe_intermediate_size", "num_experts"},
    {"qwen3_vl_moe_text", true, false, 0, NONE, 0, 0, "moe_intermediate_size", "num_experts"},
    {"qwen3_vl_text", true, false, 128, NONE, 0, 0, FFN, NULL},
    {"smollm3", true, true, 0, NONE, 0, 0, FFN, NULL},
    {"stablelm", true, false, 0, 0, 0, 0, FFN, NULL},
    {"starcoder2", false, true, 0, NONE, 0, 0, FFN, NULL},
};
#define N_ARCHITECTURES (sizeof architectures / sizeof architectures[0])

/* Keys of what an LLM file cannot say, unless they are absent, null, 0, false or empty. */
static const struct {
    const char *key, *what;
} beyond[] = {
    {"kv_lora_rank", "latent attention"},
    {"mlp_only_layers", "layers without experts between others"},
    {"num_kv_shared_layers", "layers that share their KV"},
    {"linear_num_value_heads", "linear attention"},
    {"is_encoder_decoder", "an encoder"},
};

/* Keys of experts that every token uses, and of layers without experts before the others. An LLM
 * file can say both. Where they are read: */
static const struct {
    const char *key, *what;
} shares[] = {
    {"shared_expert_intermediate_size", "a shared expert"},
    {"n_shared_experts", "shared experts"},
    {"num_shared_experts", "shared experts"},
    {"moe_num_shared_experts", "shared experts"},
    {"first_k_dense_replace", "dense layers before the experts"},
    {"moe_layer_start_index", "dense layers before the experts"},
};

static bool reads_shares(const char *type)
{
    static const char *const types[] = {"ernie4_5_moe", "glm4_moe", "qwen2_moe", NULL};
    return words_find(types, type) >= 0;
}

/* ---- reading ---- */

/* A whole number from 1 on; `otherwise` when the key is not there (0: then it must be). */
static uint32_t count(const struct reader *r, const char *key, uint32_t otherwise)
{
    const cJSON *c = member(r->model, key);
    if (c == NULL && otherwise > 0) {
        return otherwise;
    }
    double v = cJSON_IsNumber(c) ? c->valuedouble : 0.0;
    if (!(v >= 1.0 && v <= 1e9) || v != floor(v)) {
        (void)err_add(r->e, "%s: %s%s: %s", r->file, r->path, key,
                      c == NULL ? "is missing" : "must be a whole number from 1 on");
        return 1;
    }
    return (uint32_t)v;
}

/* "5, 9": what a key holds, for people; nothing of what counts as absent. */
static bool says_something(const cJSON *c)
{
    return c != NULL && !cJSON_IsFalse(c) && !(cJSON_IsNumber(c) && c->valuedouble == 0.0) &&
           !(cJSON_IsArray(c) && cJSON_GetArraySize(c) == 0);
}

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

static void refuse_what_is_beyond(const struct reader *r, const struct architecture *a)
{
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        if (says_something(member(r->model, beyond[i].key))) {
            (void)err_add(r->e, "%s: %s%s: %s, which an LLM file cannot say", r->file, r->path,
                          beyond[i].key, beyond[i].what);
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
    const cJSON *kind;
    cJSON_ArrayForEach (kind, member(r->model, "layer_types")) {
        const char *s = cJSON_GetStringValue(kind);
        if (s == NULL || strstr(s, "attention") == NULL || strstr(s, "linear") != NULL) {
            (void)err_add(r->e, "%s: %slayer_types: \"%.40s\", which an LLM file cannot say",
                          r->file, r->path, s == NULL ? "" : s);
            break;
        }
    }
}

/* ---- the file ---- */

bool llm_hf_is(const cJSON *root)
{
    return cJSON_IsObject(root) && !cJSON_HasObjectItem(root, "format") &&
           (cJSON_HasObjectItem(root, "model_type") || cJSON_HasObjectItem(root, "architectures") ||
            cJSON_HasObjectItem(root, "hidden_size"));
}

/* "org/Model-3B" or "dir/Model-3B/config.json" as "model-3b". The caller frees it. */
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

/* Part of a head that has rotary positions. */
static double rotary_frac(const struct reader *r)
{
    static const struct {
        const char *type;
        double frac;
    } usual[] = {{"glm", 0.5}, {"glm4", 0.5}, {"gpt_neox", 0.25}, {"phi", 0.5}, {"stablelm", 0.25}};
    double frac = 1.0;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        frac =
            strcmp(json_string(r->model, "model_type"), usual[i].type) == 0 ? usual[i].frac : frac;
    }
    const cJSON *own = member(r->model, "rope_parameters");
    frac = number_of(r->model, "partial_rotary_factor", "rotary_pct", frac);
    return own == NULL ? frac : number_of(own, "partial_rotary_factor", NULL, frac);
}

/* LLM files say what counts as special. gpt-oss has a sink in every head. Gemma 3 with pictures has
 * tokens that attend to later ones. */
static bool is_special(const struct reader *r, const cJSON *root, uint32_t head_dim)
{
    return rotary_frac(r) < 1.0 || (head_dim & (head_dim - 1)) != 0 ||
           strcmp(json_string(r->model, "model_type"), "gpt_oss") == 0 ||
           strcmp(json_string(root, "model_type"), "gemma3") == 0;
}

/* Layers with a sliding window. Older files do not list them: of Gemma 2 and gpt-oss every second
 * layer sees all, of Gemma 3 every sixth, of Qwen those below max_window_layers, of others none. */
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
    bool gemma3 = strncmp(type, "gemma3", 6) == 0;
    bool second = strcmp(type, "gemma2") == 0 || strcmp(type, "gpt_oss") == 0;
    double every = number_of(r->model, "sliding_window_pattern", "_sliding_window_pattern",
                             gemma3   ? 6.0
                             : second ? 2.0
                                      : 0.0);
    return every >= 1.0 ? layers - layers / (uint32_t)every : layers;
}

static void put_window(cJSON *to, const struct reader *r)
{
    const cJSON *use = member(r->model, "use_sliding_window");
    bool qwen = strncmp(json_string(r->model, "model_type"), "qwen", 4) == 0;
    bool used = use != NULL ? cJSON_IsTrue(use) : !qwen; /* Qwen's default */
    if (used && says_something(member(r->model, "sliding_window"))) {
        uint32_t layers = sliding_layers(r, count(r, "num_hidden_layers", 0));
        uint32_t window = count(r, "sliding_window", 0);
        if (layers > 0) {
            JSON_MEMBERS(to, "sliding_window", window, "sliding_layers", layers);
        }
    }
}

/* Positions of the configuration. Scaled rotary positions reach further, unless the file's number
 * has that already. */
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

/* Experts that every token uses are as one of their widths together. The first layers may have an
 * FFN instead of experts, and of ERNIE's the last ones must not. */
static void put_shared(cJSON *to, const struct reader *r, double expert_ffn)
{
    double n = number_of(r->model, "n_shared_experts", "moe_num_shared_experts", 0.0);
    double width = number_of(r->model, "shared_expert_intermediate_size", NULL, n * expert_ffn);
    double dense = number_of(r->model, "first_k_dense_replace", "moe_layer_start_index", 0.0);
    double layers = number_of(r->model, "num_hidden_layers", NULL, 0.0);
    double end = number_of(r->model, "moe_layer_end_index", NULL, -1.0);
    if (number_of(r->model, "moe_layer_interval", NULL, 1.0) != 1.0 ||
        (end != -1.0 && end != layers - 1.0)) {
        (void)err_add(r->e,
                      "%s: %smoe_layer_interval, moe_layer_end_index: layers without experts "
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

static void put_shape(cJSON *to, const struct reader *r, const cJSON *root,
                      const struct architecture *a)
{
    uint32_t hidden = count(r, "hidden_size", 0);
    uint32_t heads = count(r, "num_attention_heads", (uint32_t)a->heads);
    uint32_t kv = count(r, "num_key_value_heads",
                        a->kv_heads == NONE ? 0
                        : a->kv_heads > 0   ? (uint32_t)a->kv_heads
                                            : heads);
    if (hidden % heads != 0 && a->head_dim == 0 && member(r->model, "head_dim") == NULL) {
        (void)err_add(r->e,
                      "%s: %shead_dim: is missing, and hidden_size is no multiple of "
                      "num_attention_heads",
                      r->file, r->path);
    }
    uint32_t usual = a->head_dim > 0 ? (uint32_t)a->head_dim : hidden / heads;
    /* A model with pictures keeps it outside of its text part. */
    const cJSON *tied = member(r->model, "tie_word_embeddings");
    tied = tied == NULL ? member(root, "tie_word_embeddings") : tied;
    uint32_t head_dim = count(r, "head_dim", usual > 0 ? usual : 1);
    JSON_MEMBERS(to, "layers", count(r, "num_hidden_layers", 0), "hidden", hidden, "heads", heads,
                 "kv_heads", kv, "head_dim", head_dim, "ffn_hidden", count(r, a->ffn, 0), "vocab",
                 count(r, "vocab_size", (uint32_t)a->vocab), "gated_ffn", (bool)a->gated,
                 "tied_head", (bool)(tied == NULL ? a->tied : cJSON_IsTrue(tied)));
    if (is_special(r, root, head_dim)) {
        (void)cJSON_AddTrueToObject(to, "special_attention");
    }
    put_window(to, r);
    put_context(to, r);
    if (a->experts != NULL) {
        bool ernie = member(r->model, "moe_k") != NULL;
        JSON_MEMBERS(to, "experts", count(r, a->experts, 0), "experts_per_token",
                     count(r, ernie ? "moe_k" : "num_experts_per_tok", 0));
    }
    if (reads_shares(a->type)) {
        put_shared(to, r, count(r, a->ffn, 0));
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
    refuse_what_is_beyond(&r, a); /* also of an unknown type: a file by hand cannot say it either */
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
    cJSON *root = json_read_file(path, e);
    if (!llm_hf_is(root)) {
        return root;
    }
    cJSON *tree = llm_hf_tree(root, path, NULL, 0, e);
    cJSON_Delete(root);
    return tree;
}
