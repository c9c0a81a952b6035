#include "hwmodels/llm_gguf.h"

#include <math.h>
#include <string.h>

#include "hwmodels/gguf.h"
#include "hwmodels/soc.h"
#include "sim/base/json.h"
#include "sim/base/words.h"

#define MAX_BLOCKS 1000u
#define MAX_BITS 33
#define SAME 0.01 /* norms, routers, biases and convolutions are no products of an LLM file */

/* Tensors of one layer, by their function. Widths are 0 if there is none. */
struct block {
    double q, k, v; /* outputs */
    double in;      /* outputs of all products before attention or a state */
    double out;     /* inputs of attention's last product */
    double state_out,
        conv;    /* inputs of a state's last product; elements that a convolution keeps */
    double gate; /* outputs of attention's gate */
    double ffn, experts_ffn, shared_ffn, n_experts;
    double up; /* outputs of the last product before an activation */
    bool ssm, ffn_gate, sinks, nextn;
};

/* Weights of a class, and their bytes. */
struct weights {
    double n, bytes;
    double of_bits[MAX_BITS];
};

struct reading {
    const char *path, *arch;
    struct gguf g;
    struct block block[MAX_BLOCKS];
    uint32_t n; /* blocks, including those that only draft tokens */
    double hidden, vocab;
    bool head;
    const char *odd; /* first tensor without a role; their number */
    uint32_t n_odd;
    struct weights experts, rest, embedding, last;     /* last: of the head */
    struct weights layers;                             /* embeddings of each layer */
    double layer_embedding, laurel_rank, altup_inputs; /* the first is for all layers */
    double left_out; /* weights that no kernel reads, but other files have */
    struct err *e;
};

/* ---- tensors ---- */

static void count(struct weights *w, const struct gguf_tensor *t)
{
    w->n += t->weights;
    w->bytes += t->bytes;
    w->of_bits[t->bits] += t->weights;
}

enum role {
    IN,
    OUT,
    STATE_OUT,
    CONV,
    FFN_IN,
    FFN_OUT,
    EXPERTS_IN,
    EXPERTS_OUT,
    SHARED_IN,
    SHARED_OUT,
    FURTHER,
    ROUTER
};
static const struct {
    const char *name;
    enum role role;
} roles[] = {
    {"attn_q", IN},
    {"attn_k", IN},
    {"attn_v", IN},
    {"attn_qkv", IN},
    {"attn_gate", IN},
    {"attn_q_a", IN},
    {"attn_q_b", IN},
    {"attn_kv_a_mqa", IN},
    {"attn_kv_b", IN},
    {"attn_k_b", IN},
    {"attn_v_b", IN},
    {"attn_output", OUT},
    {"ssm_in", IN},
    {"ssm_ba", IN},
    {"ssm_alpha", IN},
    {"ssm_beta", IN},
    {"ssm_out", STATE_OUT},
    {"ssm_conv1d", CONV},
    {"shortconv.in_proj", IN},
    {"shortconv.out_proj", STATE_OUT},
    {"shortconv.conv", CONV},
    {"ffn_gate", FFN_IN},
    {"ffn_up", FFN_IN},
    {"ffn_down", FFN_OUT},
    {"ffn_gate_exps", EXPERTS_IN},
    {"ffn_up_exps", EXPERTS_IN},
    {"ffn_gate_up_exps", EXPERTS_IN},
    {"ffn_down_exps", EXPERTS_OUT},
    {"ffn_gate_shexp", SHARED_IN},
    {"ffn_up_shexp", SHARED_IN},
    {"ffn_down_shexp", SHARED_OUT},
    {"ffn_gate_inp", ROUTER},
    {"ffn_gate_inp_shexp", ROUTER},
    {"inp_gate", FURTHER},
    {"proj", FURTHER},
    {"laurel_l", FURTHER},
    {"laurel_r", FURTHER},
    {"altup_correct_coef", ROUTER},
    {"altup_predict_coef", ROUTER},
    {"altup_router", ROUTER},
};

/* In other models, tensors of these names have other functions. */
static bool is_gemma(const struct reading *r)
{
    return strcmp(r->arch, "gemma3n") == 0 || strcmp(r->arch, "gemma4") == 0;
}

static bool is_gate(const char *name)
{
    return strstr(name, "gate") != NULL;
}

static void take_role(struct reading *r, struct block *b, const char *name, enum role role,
                      const struct gguf_tensor *t)
{
    double in = (double)t->dim[0];
    double out = (double)t->dim[1];
    bool expert = role == EXPERTS_IN || role == EXPERTS_OUT;
    switch (role) {
    case IN:
        b->q = strcmp(name, "attn_q") == 0 ? out : b->q;
        b->k = strcmp(name, "attn_k") == 0 ? out : b->k;
        b->v = strcmp(name, "attn_v") == 0 ? out : b->v;
        b->gate = strcmp(name, "attn_gate") == 0 ? out : b->gate;
        b->in += out;
        break;
    case OUT:
        b->out = in;
        break;
    case STATE_OUT:
        b->state_out = in;
        b->ssm = strcmp(name, "ssm_out") == 0;
        break;
    case CONV:
        b->conv = (in - 1.0) * out;
        return;
    case FURTHER:
        r->laurel_rank = strcmp(name, "laurel_l") == 0 ? out : r->laurel_rank;
        break;
    case ROUTER:
        return;
    case FFN_IN:
    case EXPERTS_IN:
    case SHARED_IN:
        b->ffn_gate = b->ffn_gate || is_gate(name);
        b->up = out;
        break;
    case FFN_OUT:
        b->ffn = in;
        break;
    case EXPERTS_OUT:
        b->experts_ffn = in;
        b->n_experts = (double)t->dim[2];
        break;
    case SHARED_OUT:
        b->shared_ffn = in;
        break;
    }
    count(expert ? &r->experts : &r->rest, t);
}

static void refuse_tensor(struct reading *r, const struct gguf_tensor *t)
{
    r->odd = r->n_odd++ == 0 ? t->name : r->odd;
}

/* "attn_q.weight" of "blk.7.attn_q.weight". */
static void take_block_tensor(struct reading *r, struct block *b, const char *part,
                              const struct gguf_tensor *t)
{
    b->sinks = b->sinks || strncmp(part, "attn_sinks", 10) == 0;
    bool product = text_ends(part, ".weight") && t->dim[1] > 1;
    if (b->nextn || !product || strstr(part, "_norm") != NULL) {
        return;
    }
    OWNED char *name = xformat("%.*s", (int)(strlen(part) - strlen(".weight")), part);
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(roles[i].name, name) == 0 && (roles[i].role != FURTHER || is_gemma(r))) {
            take_role(r, b, name, roles[i].role, t);
            return;
        }
    }
    refuse_tensor(r, t);
}

static void take_tensor(struct reading *r, const struct gguf_tensor *t)
{
    static const char *const further[] = {"per_layer_model_proj.weight", "altup_proj.weight",
                                          "altup_unembd_proj.weight", NULL};
    unsigned no;
    int at = 0;
    if (sscanf(t->name, "blk.%4u.%n", &no, &at) == 1 && at > 0 && no < MAX_BLOCKS) {
        r->n = no + 1 > r->n ? no + 1 : r->n;
        take_block_tensor(r, &r->block[no], t->name + at, t);
    } else if (strcmp(t->name, "token_embd.weight") == 0) {
        r->hidden = (double)t->dim[0];
        r->vocab = (double)t->dim[1];
        count(&r->embedding, t);
    } else if (strcmp(t->name, "output.weight") == 0) {
        r->head = true;
        count(&r->last, t);
    } else if (is_gemma(r) && strcmp(t->name, "per_layer_token_embd.weight") == 0) {
        r->layer_embedding = (double)t->dim[0];
        count(&r->layers, t);
    } else if (is_gemma(r) && words_find(further, t->name) >= 0) {
        bool streams = strcmp(t->name, "altup_proj.weight") == 0;
        r->altup_inputs = streams ? (double)t->dim[2] + 1.0 : r->altup_inputs;
        count(&r->rest, t);
    } else if (t->dim[1] > 1 && strncmp(t->name, "rope_factors", 12) != 0 &&
               strcmp(t->name, "position_embd.weight") != 0) { /* GPT-2's; no product */
        refuse_tensor(r, t);
    }
}

static void take_tensors(struct reading *r)
{
    for (size_t i = 0; i < r->g.n; i++) { /* first, finds the layers that draft tokens */
        unsigned no;
        int at = 0;
        if (sscanf(r->g.tensors[i].name, "blk.%4u.nextn.%n", &no, &at) == 1 && at > 0 &&
            no < MAX_BLOCKS) {
            r->block[no].nextn = true;
        }
    }
    for (size_t i = 0; i < r->g.n; i++) {
        take_tensor(r, &r->g.tensors[i]);
    }
    if (r->n_odd > 1) {
        (void)err_add(r->e, "%s: tensor %s and %u more, which an LLM file cannot say", r->path,
                      r->odd, r->n_odd - 1);
    } else if (r->n_odd == 1) {
        (void)err_add(r->e, "%s: tensor %s, which an LLM file cannot say", r->path, r->odd);
    } else if (r->hidden == 0.0) {
        (void)err_add(r->e, "%s: no tensor token_embd.weight", r->path);
    }
}

/* ---- keys ---- */

/* The value of "llama.attention.head_count" for "attention.head_count"; in a list, that of the
 * layer. */
static double key(const struct reading *r, const char *name, uint32_t layer, double otherwise)
{
    OWNED char *full = xformat("%s.%s", r->arch, name);
    const cJSON *c = json_member(r->g.keys, full);
    c = cJSON_IsArray(c) ? cJSON_GetArrayItem(c, (int)layer) : c;
    return cJSON_IsNumber(c) ? c->valuedouble : otherwise;
}

/* Period of layers without a window, for architectures whose files do not state it (from
 * llama.cpp). The layer without is the first of a period, or else the last. */
static const struct {
    const char *arch;
    uint32_t every;
    bool first;
} windows[] = {{"afmoe", 4, false},      {"cohere2", 4, false}, {"gemma2", 2, false},
               {"gemma3", 6, false},     {"gemma3n", 5, false}, {"gpt-oss", 2, false},
               {"smallthinker", 4, true}};

/* Whether the layer has a window. Files list the layers, or state a period. */
static bool slides(const struct reading *r, uint32_t layer)
{
    OWNED char *full = xformat("%s.attention.sliding_window_pattern", r->arch);
    const cJSON *listed = json_member(r->g.keys, full);
    if (cJSON_IsArray(listed)) {
        const cJSON *c = cJSON_GetArrayItem(listed, (int)layer);
        return c != NULL && c->valuedouble != 0.0;
    }
    double every = cJSON_IsNumber(listed) ? listed->valuedouble : 0.0;
    bool first = false;
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        if (strcmp(r->arch, windows[i].arch) == 0) {
            every = every == 0.0 ? windows[i].every : every;
            first = windows[i].first;
        }
    }
    return every >= 1.0 && fmod(layer + (first ? 0.0 : 1.0), every) != 0.0;
}

/* Refuses features that keys state, but no tensor shows. */
static void check_keys(const struct reading *r)
{
    if (r->arch[0] == '\0') {
        (void)err_add(r->e, "%s: no key general.architecture", r->path);
        return;
    }
    OWNED char *pattern = xformat("%s.attention.sliding_window_pattern", r->arch);
    bool known = json_member(r->g.keys, pattern) != NULL;
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        known = known || strcmp(r->arch, windows[i].arch) == 0;
    }
    /* llama.cpp reads Phi-3's window, but ignores it. */
    known = known || strcmp(r->arch, "phi3") == 0;
    bool chunks = strcmp(r->arch, "llama4") == 0;
    if (key(r, "attention.sliding_window", 0, chunks ? 1.0 : 0.0) > 0.0 && !known) {
        (void)err_add(r->e, "%s: %s attends in %s, which an LLM file cannot say", r->path, r->arch,
                      chunks ? "chunks" : "a window, by layers that no key says");
    }
    if (key(r, "attention.causal", 0, 1.0) == 0.0) {
        (void)err_add(r->e, "%s: tokens attend to later ones: no model that decodes", r->path);
    }
}

/* ---- the file ---- */

/* The first attention layer with (or without) a window, or NULL. */
static const struct block *attending(const struct reading *r, bool window, uint32_t *layer)
{
    for (uint32_t i = 0; i < r->n; i++) {
        if (!r->block[i].nextn && r->block[i].out > 0.0 && slides(r, i) == window) {
            *layer = i;
            return &r->block[i];
        }
    }
    return NULL;
}

/* A kind of attention layers. */
struct kind {
    double kv, dim;
};

/* Number of last layers that use the keys of earlier ones: in Gemma 3n those from 20 on
 * (llama.cpp). */
static double shared_kv_layers(const struct reading *r)
{
    bool gemma3n = strcmp(r->arch, "gemma3n") == 0 && r->n > 20;
    return gemma3n ? r->n - 20.0 : key(r, "attention.shared_kv_layers", 0, 0.0);
}

/* Checks that all layers of a kind have the heads that the keys state. Layers with shared keys need
 * no products for these. */
static void check_heads(struct reading *r, double heads, struct kind near, struct kind global)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const struct block *b = &r->block[i];
        struct kind k = slides(r, i) ? near : global;
        double q = heads * k.dim, kv = k.kv * k.dim;
        bool fused = b->q == 0.0;
        bool none = i >= r->n - shared_kv_layers(r) && b->k == 0.0 && b->v == 0.0;
        bool fits = b->out == q && key(r, "attention.head_count", i, heads) == heads &&
                    (fused ? b->in - b->gate == q + 2.0 * kv
                           : (b->q == q || b->q == 2.0 * q) &&
                                 (none || (b->k == kv && (b->v == kv || b->v == 0.0))));
        r->left_out += none ? 2.0 * kv * r->hidden : 0.0;
        if (!b->nextn && b->out > 0.0 && !fits) {
            (void)err_add(r->e,
                          "%s: layer %u has other heads than %g of %g, over %g of keys and "
                          "values",
                          r->path, i, heads, k.dim, k.kv);
            return;
        }
    }
}

static void put_attention(cJSON *to, struct reading *r)
{
    uint32_t at = 0, far = 0;
    const struct block *near = attending(r, true, &at);
    const struct block *all = attending(r, false, &far);
    const struct block *b = near != NULL ? near : all;
    if (b == NULL) {
        (void)err_add(r->e, "%s: no layer attends", r->path);
        return;
    }
    at = near != NULL ? at : far;
    double heads = key(r, "attention.head_count", at, 0.0);
    if (!(heads >= 1.0)) {
        (void)err_add(r->e, "%s: %s.attention.head_count: no number of heads", r->path, r->arch);
        return;
    }
    double kv = key(r, "attention.head_count_kv", at, heads);
    double latent = key(r, "attention.kv_lora_rank", at, 0.0);
    double wide = key(r, "attention.key_length", at, r->hidden / heads);
    double dim = latent > 0.0   ? key(r, "attention.key_length_mla", at, wide)
                 : near != NULL ? key(r, "attention.key_length_swa", at, wide)
                                : wide;
    JSON_MEMBERS(to, "heads", heads, "kv_heads", latent > 0.0 ? heads : kv, "head_dim", dim);
    /* Granite's files have it for keys without positions. */
    bool turns =
        strncmp(r->arch, "granite", 7) != 0 || key(r, "rope.scaling.finetuned", at, 1.0) != 0.0;
    double turned = turns ? key(r, "rope.dimension_count", at, dim) : 0.0;
    bool special = b->sinks || latent > 0.0 || turned < dim || fmod(log2(dim), 1.0) != 0.0;
    if (b->gate > heads || (latent == 0.0 && b->q == 2.0 * heads * dim)) {
        (void)cJSON_AddTrueToObject(to, "gated_attention");
    }
    if (latent > 0.0) {
        if (key(r, "attention.key_length_mla", at, 0.0) == 0.0) {
            (void)err_add(r->e,
                          "%s: latent attention whose keys llama.cpp expands (attn_kv_b), "
                          "which an LLM file cannot say",
                          r->path);
        }
        double value = key(r, "attention.value_length", at, 0.0);
        JSON_MEMBERS(to, "latent_kv", latent, "rotary_dim", turned, "value_dim",
                     key(r, "attention.value_length_mla", at, value), "latent_query",
                     key(r, "attention.q_lora_rank", at, 0.0));
    }
    double global = key(r, "attention.head_count_kv", far, kv);
    if (latent == 0.0) {
        check_heads(r, heads, (struct kind){kv, dim}, (struct kind){global, wide});
    }
    if (near != NULL && all != NULL && (global != kv || wide != dim)) {
        special = true;
        JSON_MEMBERS(to, "global_kv_heads", global, "global_head_dim", wide);
        if (all->v == 0.0 && all->k > 0.0) {
            (void)cJSON_AddTrueToObject(to, "keys_as_values");
        }
    }
    if (special) {
        (void)cJSON_AddTrueToObject(to, "special_attention");
    }
}

static void put_some(cJSON *to, const char *name, double value)
{
    if (value > 0.0) {
        (void)cJSON_AddNumberToObject(to, name, value);
    }
}

static void put_layers(cJSON *to, struct reading *r)
{
    double layers = 0.0, sliding = 0.0, dense = 0.0, states = 0.0, others = 0.0, other = 0.0;
    const struct block *mixed = NULL, *plain = NULL, *state = NULL;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct block *b = &r->block[i];
        if (b->nextn) {
            continue;
        }
        if ((b->out > 0.0) == (b->state_out > 0.0)) {
            (void)err_add(r->e, "%s: layer %u has %s", r->path, i,
                          b->out > 0.0 ? "attention and a state" : "neither attention nor a state");
            return;
        }
        layers += 1.0;
        sliding += b->out > 0.0 && slides(r, i);
        states += b->state_out > 0.0;
        state = b->state_out > 0.0 ? b : state;
        mixed = b->n_experts > 0.0 ? b : mixed;
        plain = b->n_experts == 0.0 && plain == NULL ? b : plain;
        dense += b->n_experts == 0.0;
        if (b->n_experts == 0.0 && b->ffn != plain->ffn) {
            if (others > 0.0 && b->ffn != other) {
                (void)err_add(r->e, "%s: layer %u has an FFN of a width that no other has", r->path,
                              i);
                return;
            }
            others += 1.0;
            other = b->ffn;
        }
    }
    const struct block *f = mixed != NULL ? mixed : plain;
    if (f == NULL) {
        (void)err_add(r->e, "%s: no tensor of a layer (blk.0.)", r->path);
        return;
    }
    double width = mixed != NULL ? f->experts_ffn : f->ffn;
    /* Phi-3 has gate and values in one product. */
    JSON_MEMBERS(to, "layers", layers, "ffn_hidden", width, "gated_ffn",
                 (bool)(f->ffn_gate || f->up == 2.0 * width));
    if (mixed != NULL) {
        double shared = mixed->shared_ffn + mixed->ffn; /* Gemma 4 has an FFN next to its experts */
        JSON_MEMBERS(to, "experts", mixed->n_experts, "experts_per_token",
                     key(r, "expert_used_count", 0, 0.0), "shared_ffn", shared);
        if (plain != NULL) {
            JSON_MEMBERS(to, "dense_layers", dense, "dense_ffn", plain->ffn);
        }
    }
    if (mixed == NULL && others > 0.0) {
        JSON_MEMBERS(to, "dense_layers", others, "dense_ffn", other);
    }
    put_some(to, "shared_kv_layers", shared_kv_layers(r));
    put_some(to, "layer_embedding", r->layer_embedding / layers);
    put_some(to, "laurel_rank", r->laurel_rank);
    put_some(to, "altup_inputs", r->altup_inputs);
    double window = key(r, "attention.sliding_window", 0, 0.0);
    if (sliding > 0.0 && window > 0.0) {
        JSON_MEMBERS(to, "sliding_window", window, "sliding_layers", sliding);
    }
    if (state != NULL) {
        double inner = key(r, "ssm.inner_size", 0, 0.0) * key(r, "ssm.state_size", 0, 0.0);
        if (state->ssm && !(inner > 0.0)) {
            (void)err_add(r->e, "%s: no state by %s.ssm.inner_size and %s.ssm.state_size", r->path,
                          r->arch, r->arch);
        }
        JSON_MEMBERS(to, "recurrent_layers", states, "recurrent_in", state->in, "recurrent_out",
                     state->state_out, "recurrent_state", inner + state->conv);
    }
}

static void put_bytes(cJSON *to, const char *name, const struct weights *w, double least,
                      const char *source)
{
    double bytes = fmax(w->bytes / w->n, least);
    json_put_quantity(to, name, (struct quantity){bytes, bytes, bytes, QUANTITY_DATASHEET, true},
                      "B", source);
}

/* The width of most weights of a layer, or the nearest one that is consistent with their mean. */
static double width_of(const struct weights *w)
{
    uint32_t most = 1;
    for (uint32_t i = 1; i < MAX_BITS; i++) {
        most = w->of_bits[i] > w->of_bits[most] ? i : most;
    }
    double mean = 8.0 * w->bytes / w->n;
    return fmax(fmin(most, floor(mean)), floor(mean / 2.0) + 1.0);
}

static void put_weights(cJSON *to, const struct reading *r)
{
    const struct weights *body = r->experts.n > 0.0 ? &r->experts : &r->rest;
    const char *source = "types of the file's tensors";
    JSON_MEMBERS(to, "weight_bits", width_of(body), "act_bits", 16);
    put_bytes(to, "body_bytes_per_weight", body, 0.0, source);
    put_bytes(to, "head_bytes_per_weight", r->head ? &r->last : &r->embedding, 0.0, source);
    if (r->layers.n > 0.0) {
        put_bytes(to, "layer_embedding_bytes_per_weight", &r->layers, 0.0, source);
    }
    double least = body->bytes / body->n;
    if (r->experts.n > 0.0 && r->rest.n > 0.0 && r->rest.bytes / r->rest.n >= least) {
        put_bytes(to, "dense_bytes_per_weight", &r->rest, 0.0, source);
    }
    json_put_quantity(to, "kv_bytes_per_element",
                      (struct quantity){2.0, 1.0625, 2.0, QUANTITY_ASSUMED, true}, "B",
                      "llama.cpp keeps F16 unless asked otherwise (-ctk, -ctv)");
}

/* Checks that the LLM file has as many weights as the tensors. */
static void check_weights(const struct reading *r, const cJSON *tree)
{
    struct llm m;
    double all = r->experts.n + r->rest.n + r->embedding.n + r->last.n + r->layers.n + r->left_out;
    if (llm_parse(tree, r->path, &m, r->e) == 0 &&
        fabs(llm_stored_weights(&m) / all - 1.0) > SAME) {
        (void)err_add(r->e,
                      "%s: its tensors have %.4g weights, and an LLM file of its layers %.4g: "
                      "%s has layers that it cannot say",
                      r->path, all, llm_stored_weights(&m), r->arch);
    }
}

cJSON *llm_gguf_tree(const char *path, const char *name, struct err *e)
{
    size_t before = e->n;
    struct reading *r = xcalloc(1, sizeof *r);
    *r = (struct reading){.path = path, .e = e};
    cJSON *to = cJSON_CreateObject();
    if (gguf_read(path, &r->g, e) == 0) {
        r->arch = json_string(r->g.keys, "general.architecture");
        take_tensors(r);
        check_keys(r);
        const char *title = json_string(r->g.keys, "general.name");
        OWNED char *source =
            xformat("GGUF file %s%s%s", text_base(path), title[0] != '\0' ? " of " : "", title);
        JSON_MEMBERS(to, "format", 1, "name", name, "source", (const char *)source, "hidden",
                     r->hidden, "vocab", r->vocab, "tied_head", (bool)!r->head);
        double context = key(r, "context_length", 0, 0.0);
        if (context > 0.0) {
            JSON_MEMBERS(to, "max_context", context);
        }
        if (e->n == before) {
            put_layers(to, r);
        }
        if (e->n == before) {
            put_attention(to, r);
        }
        if (e->n == before) {
            put_weights(to, r);
            check_weights(r, to);
        }
    }
    gguf_fini(&r->g);
    free(r);
    if (e->n > before) {
        cJSON_Delete(to);
        return NULL;
    }
    return to;
}
