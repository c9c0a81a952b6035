/* Bytes of weights and KV as config.json states them, or by width. */
#include "hwmodels/llm_hf_impl.h"
#include "hwmodels/soc.h"

#define MLX "mlx"

/* The weights of compressed-tensors' groups, all of one width; NULL when there are none. */
static const cJSON *only_scheme(const struct reader *r, const cJSON *q)
{
    const cJSON *groups = member(q, "config_groups");
    const cJSON *first = groups == NULL ? NULL : groups->child;
    const cJSON *group;
    cJSON_ArrayForEach (group, groups) {
        if (number_of(member(group, "weights"), "num_bits", NULL, 8.0) !=
            number_of(member(first, "weights"), "num_bits", NULL, 8.0)) {
            (void)err_add(r->e,
                          "%s: quantization_config.config_groups.%s: another width than %s; "
                          "`xpusim new-llm --bits` says one for all",
                          r->file, group->string, first->string);
        }
    }
    return first;
}

static bool is_true(const cJSON *o, const char *key)
{
    return cJSON_IsTrue(member(o, key));
}

/* A weight has `bits`, and a group of weights has `group_bytes` for its scales. */
static void grouped(struct storage *s, double bits, double group, double group_bytes)
{
    s->bits = (uint32_t)bits;
    s->body = bits / 8.0 + (group > 0.0 ? group_bytes / group : 0.0);
}

/* Whether it is a part of a layer that every token reads: all of its attention or MLP, or a
 * product. Norms, vision parts and expert routers do not count. */
static bool is_product(const char *name)
{
    bool part =
        strstr(name, "self_attn") != NULL || text_ends(name, ".mlp") || text_ends(name, "_proj");
    return part && strstr(name, "norm") == NULL && strstr(name, "vis") == NULL;
}

/* Whether name is the attention of all layers in a mixture, its only dense weights (gpt-oss). */
static bool is_dense(const struct reader *r, const char *name)
{
    return r->experts && text_ends(name, ".layers.*.self_attn");
}

/* Returns the name of a product that keeps its width, or NULL. Unsloth's dynamic files have a few
 * layers in 16 bit. Dense parts next to experts may keep theirs: s->dense then has it. */
static const char *kept_wide(const struct reader *r, const cJSON *q, struct storage *s,
                             const char **key)
{
    static const char *const keys[] = {"modules_to_not_convert", "ignore", "llm_int8_skip_modules"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const cJSON *c;
        *key = keys[i];
        cJSON_ArrayForEach (c, member(q, keys[i])) {
            const char *name = cJSON_GetStringValue(c);
            if (name != NULL && is_dense(r, name)) {
                s->dense = s->head; /* in the training format */
            } else if (name != NULL && is_product(name)) {
                return name;
            }
        }
    }
    return NULL;
}

static void head_as_body(struct storage *s)
{
    s->head = s->body;
    s->head_low = s->body;
}

/* MLX has a scale and a bias of 16 bit per group, in the embedding and the head, too. A product may
 * have a width of its own. */
static void mlx(const struct reader *r, const cJSON *q, struct storage *s)
{
    const char *mode = json_string(q, "mode");
    if (mode[0] != '\0' && strcmp(mode, "affine") != 0) {
        (void)err_add(r->e, "%s: quantization.mode: \"%.40s\" is not known", r->file, mode);
    }
    grouped(s, number_of(q, "bits", NULL, 4.0), number_of(q, "group_size", NULL, 64.0), 4.0);
    head_as_body(s);
    const cJSON *c;
    cJSON_ArrayForEach (c, q) {
        bool head = text_ends(c->string, "lm_head") || text_ends(c->string, "embed_tokens");
        if ((cJSON_IsObject(c) || cJSON_IsFalse(c)) && (head || is_product(c->string))) {
            (void)err_add(r->e,
                          "%s: quantization: \"%.80s\" has a width of its own; `xpusim new-llm "
                          "--bits` says one for all",
                          r->file, c->string);
        }
    }
}

/* Bytes of quantised weights by tool: a scale of 16 bit (and a zero point as wide as a weight) per
 * group. Bitsandbytes has one of 32 bit per 64 weights, MXFP4 one of 8 bit per 32, and NVFP4 one of
 * 8 bit per 16. */
static bool quantised(const struct reader *r, const cJSON *q, const char *method, struct storage *s)
{
    size_t before = r->e->n;
    if (strcmp(method, MLX) == 0) {
        mlx(r, q, s);
    } else if (strcmp(method, "gptq") == 0 || strcmp(method, "awq") == 0) {
        double bits = number_of(q, "bits", "w_bit", 4.0);
        grouped(s, bits, number_of(q, "group_size", "q_group_size", 128.0), 2.0 + bits / 8.0);
        if (is_true(q, "lm_head")) {
            head_as_body(s);
        }
    } else if (strcmp(method, "bitsandbytes") == 0 && is_true(q, "load_in_8bit")) {
        grouped(s, 8.0, 0.0, 0.0);
    } else if (strcmp(method, "bitsandbytes") == 0 && is_true(q, "load_in_4bit")) {
        bool twice = is_true(q, "bnb_4bit_use_double_quant");
        grouped(s, 4.0, 64.0, twice ? 1.0 + 4.0 / 256.0 : 4.0);
    } else if (strcmp(method, "compressed-tensors") == 0 && member(q, "config_groups") != NULL) {
        const cJSON *scheme = only_scheme(r, q);
        const cJSON *w = member(scheme, "weights");
        const cJSON *x = member(scheme, "input_activations");
        double bits = number_of(w, "num_bits", NULL, 8.0);
        double zero = cJSON_IsFalse(member(w, "symmetric")) ? bits / 8.0 : 0.0;
        double scale_bytes = strcmp(json_string(w, "type"), "float") == 0 ? 1.0 : 2.0;
        grouped(s, bits, number_of(w, "group_size", NULL, 0.0), scale_bytes + zero);
        s->act_bits = x == NULL ? 16 : (uint32_t)number_of(x, "num_bits", NULL, 16.0);
    } else if (strcmp(method, "fp8") == 0 || strcmp(method, "fbgemm_fp8") == 0) {
        grouped(s, 8.0, 0.0, 0.0);
    } else if (strcmp(method, "mxfp4") == 0) {
        grouped(s, 4.0, 32.0, 1.0);
    } else {
        (void)err_add(
            r->e,
            "%s: quantization_config.quant_method: \"%.40s\" is not known (there are "
            "gptq, awq, bitsandbytes, compressed-tensors, fp8, mxfp4, mlx); `xpusim new-llm "
            "--bits` says the width instead",
            r->file, method);
        return false;
    }
    if (s->bits < 1 || s->bits > 16) {
        (void)err_add(r->e, "%s: quantization_config: %u bits", r->file, s->bits);
        return false;
    }
    const char *key;
    const char *wide = kept_wide(r, q, s, &key);
    if (wide != NULL) {
        (void)err_add(r->e,
                      "%s: quantization_config.%s: \"%.40s\" keeps its width; `xpusim new-llm "
                      "--bits` says one for all, and dense_bytes_per_weight that outside experts",
                      r->file, key, wide);
        return false;
    }
    s->kv = soc_format_of_width(s->bits).kv_bytes;
    (void)snprintf(s->source, sizeof s->source, "quantization_config: %.40s, %u bits", method,
                   s->bits);
    return r->e->n == before;
}

bool llm_hf_stored(const struct reader *r, const cJSON *root, struct storage *s)
{
    const cJSON *q = member(root, "quantization_config");
    q = q == NULL ? member(r->model, "quantization_config") : q;
    const char *method = json_string(q, "quant_method");
    const cJSON *other = member(root, "quantization"); /* MLX, in both keys since 2025 */
    if (other != NULL && method[0] == '\0') {
        q = other;
        method = MLX;
    }
    const char *type = json_string(r->model, "dtype");
    type = type[0] == '\0' ? json_string(r->model, "torch_dtype") : type;
    type = type[0] == '\0' ? json_string(root, "dtype") : type;
    type = type[0] == '\0' ? json_string(root, "torch_dtype") : type;
    bool wide = strcmp(type, "float32") == 0;
    double plain = wide ? 4.0 : 2.0;
    *s = (struct storage){.bits = wide ? 32 : 16,
                          .act_bits = 16,
                          .body = plain,
                          .head = plain,
                          .head_low = plain,
                          .kv = 2.0};
    if (q != NULL) {
        s->head_low = 1.0;
        return quantised(r, q, method, s);
    }
    (void)snprintf(s->source, sizeof s->source, "dtype: %.40s",
                   type[0] == '\0' ? "not stated, 16 bit" : type);
    return true;
}

static void bytes(cJSON *to, const char *key, double value, double low, double high,
                  const char *source)
{
    json_put_quantity(to, key, (struct quantity){value, low, high, QUANTITY_ASSUMED, true}, "B",
                      source);
}

static void put_number(cJSON *to, const char *key, double value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(to, key);
    (void)cJSON_AddNumberToObject(to, key, value);
}

void llm_hf_put_storage(cJSON *to, const struct storage *s)
{
    put_number(to, "weight_bits", s->bits);
    put_number(to, "act_bits", s->act_bits);
    bytes(to, "body_bytes_per_weight", s->body, s->body, s->body * (s->bits < 16 ? 1.05 : 1.0),
          s->source);
    bytes(to, "head_bytes_per_weight", s->head, s->head_low, s->head,
          s->head_low < s->head ? "the head stays as it was trained" : s->source);
    if (s->dense > 0.0) {
        bytes(to, "dense_bytes_per_weight", s->dense, s->body, s->dense,
              "attention stays as it was trained; other files of the model may have it narrower");
    }
    bytes(to, "kv_bytes_per_element", s->kv, 1.0, 2.0,
          s->kv < 2.0 ? "8-bit KV cache, as OpenVINO 2025 keeps it for quantised models"
                      : "16-bit KV cache with 16-bit weights");
}

void llm_tree_width(cJSON *to, uint32_t bits)
{
    struct soc_format f = soc_format_of_width(bits);
    const cJSON *dense = json_member(json_member(to, "dense_bytes_per_weight"), "value");
    if (dense != NULL) { /* other weights keep their width, the head's among them */
        f.head_bytes = fmax(f.head_bytes, dense->valuedouble);
    }
    struct storage s = {.bits = bits,
                        .act_bits = 16,
                        .body = f.body_bytes,
                        .head = f.head_bytes,
                        .head_low = f.head_bytes,
                        .kv = f.kv_bytes};
    (void)snprintf(s.source, sizeof s.source,
                   "%u-bit weights with their scales (the width asked for)", bits);
    llm_hf_put_storage(to, &s);
    cJSON_DeleteItemFromObjectCaseSensitive(to,
                                            "layer_embedding_bytes_per_weight"); /* like the head */
}
