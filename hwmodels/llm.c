/* LLM files: public architecture numbers, and the bytes that a runtime stores. */
#include <gsl/gsl_sf_gamma.h>

#include "hwmodels/llm_layers.h"
#include "hwmodels/soc.h"
#include "sim/base/json.h"

/* Weights of the products around attention, of all layers. */
static double attention_weights(const struct llm *m)
{
    struct llm_layer l;
    llm_layer_fill(m, &l);
    return (double)m->n_layers * llm_layer_weights(&l);
}

/* Weights of an FFN for one unit of its inner width. It has three matrices when gated, else two. */
static double ffn_weights(const struct llm *m)
{
    return (m->gated_ffn ? 3.0 : 2.0) * (double)m->hidden;
}

/* Weights of the layers for one token: QKV, O, and the FFN. In a mixture of experts it uses
 * experts_per_token of them, and the shared ones. */
static double body_weights(const struct llm *m)
{
    double used = m->experts_per_token > 0 ? m->experts_per_token : 1.0;
    double mixed = (double)m->n_layers - m->dense_layers;
    double width =
        mixed * (used * m->ffn_hidden + m->shared_ffn) + (double)m->dense_layers * m->dense_ffn;
    return attention_weights(m) + ffn_weights(m) * width;
}

/* If all experts are equally likely, 1 - (1 - k/n)^rows of them are touched. Otherwise the
 * probabilities of a layer's experts are Beta(a, b) with mean k/n, and as uneven as the file
 * states: a + b is ((n-k)/k) / (n/effective - 1) - 1. None of `rows` rows then chooses an expert
 * with the probability b (b+1) ... (b+rows-1) / ((a+b) (a+b+1) ... (a+b+rows-1)). */
double llm_experts_touched(const struct llm *m, double rows)
{
    if (m->n_experts == 0) {
        return 1.0;
    }
    double missed = 1.0 - (double)m->experts_per_token / m->n_experts;
    double uneven = m->n_experts / m->effective_experts - 1.0;
    if (uneven == 0.0) {
        return 1.0 - pow(missed, rows);
    }
    double both = missed / (1.0 - missed) / uneven - 1.0;
    SIM_ASSERT(both > 0.0);
    return 1.0 - exp(gsl_sf_lnpoch(missed * both, rows) - gsl_sf_lnpoch(both, rows));
}

static double stored_body_weights(const struct llm *m)
{
    double idle_experts = m->n_experts > 0 ? (double)m->n_experts - m->experts_per_token : 0.0;
    double mixed = (double)m->n_layers - m->dense_layers;
    struct llm_layer l;
    llm_layer_fill(m, &l);
    return m->body_weights + mixed * idle_experts * ffn_weights(m) * m->ffn_hidden +
           m->n_layers * l.unused_weights;
}

/* Weights of per-layer embeddings. */
static double table_weights(const struct llm *m)
{
    return (double)m->layer_embedding * m->n_layers * m->vocab;
}

double llm_expert_weights(const struct llm *m)
{
    return ((double)m->n_layers - m->dense_layers) * m->n_experts * ffn_weights(m) * m->ffn_hidden;
}

double llm_stored_weights(const struct llm *m)
{
    return stored_body_weights(m) + m->head_weights * (m->tied_head ? 1.0 : 2.0) + table_weights(m);
}

/* Layers count by shares, whose sums are off by rounding errors. Without them a whole number of
 * bytes fills no further block. */
static double without_rounding_error(double bytes)
{
    return round(bytes * 1e6) / 1e6;
}

static void count_bytes(struct llm *m)
{
    double wider = fmax(m->dense_bytes_per_weight - m->body_bytes_per_weight, 0.0);
    /* In memory in addition to the head. No kernel reads all of it, because a lookup reads one row.
     */
    double embedding = (m->tied_head ? 0.0 : m->head_weights * m->head_bytes_per_weight) +
                       table_weights(m) * m->layer_embedding_bytes;
    double outside = attention_weights(m) +
                     ffn_weights(m) * ((double)(m->n_layers - m->dense_layers) * m->shared_ffn +
                                       (double)m->dense_layers * m->dense_ffn);
    m->weight_bytes = stored_body_weights(m) * m->body_bytes_per_weight + outside * wider +
                      m->head_weights * m->head_bytes_per_weight + embedding;
    struct llm_layer l;
    llm_layer_fill(m, &l);
    m->kv_bytes_per_token =
        without_rounding_error(m->n_layers * l.stored_per_key * m->kv_bytes_per_element);
    m->kv_state_bytes = without_rounding_error(LLM_STATE_BYTES * l.state_elements * m->n_layers);
}

/* Weights with scales take at least their width, and less than twice that. Otherwise the file was
 * probably changed in only one of the two keys. */
static void check_width(const struct llm *m, const char *file, struct err *e)
{
    double bits = 8.0 * m->body_bytes_per_weight;
    if (bits < m->weight_bits || bits >= 2.0 * m->weight_bits) {
        double usual = soc_format_of_width(m->weight_bits).body_bytes;
        (void)err_add(e,
                      "%s: body_bytes_per_weight: %g bytes do not go with weight_bits %u, which "
                      "takes %g to %g (usually %g)",
                      file, m->body_bytes_per_weight, m->weight_bits, m->weight_bits / 8.0,
                      m->weight_bits / 4.0, usual);
    }
}

/* The default is even use. A token uses distinct experts, so the effective number is at least that
 * of one token. */
static void check_mixture(struct llm *m, const char *file, struct err *e)
{
    double all = m->n_experts;
    m->effective_experts = m->effective_experts > 0.0 ? m->effective_experts : all;
    if (all > 0.0 && m->effective_experts <= m->experts_per_token) {
        (void)err_add(e, "%s: effective_experts: must be above experts_per_token", file);
    }
    if (m->effective_experts > all) {
        (void)err_add(e, "%s: effective_experts: must be at most experts", file);
    }
    if (all == 0.0 && m->dense_bytes_per_weight > 0.0) {
        (void)err_add(e, "%s: dense_bytes_per_weight: is for models with experts", file);
    }
    if (all == 0.0 && m->shared_ffn > 0) {
        (void)err_add(e, "%s: shared_ffn is for models with experts", file);
    }
    if ((m->dense_layers > 0) != (m->dense_ffn > 0) || m->dense_layers >= m->n_layers) {
        (void)err_add(e,
                      "%s: dense_layers and dense_ffn come together, and dense_layers is below "
                      "layers",
                      file);
    }
}

/* Keys of one kind of attention must be given together. */
static void check_attention(const struct llm *m, const char *file, struct err *e)
{
    const struct llm_attention *a = &m->attention;
    bool latent = a->latent_kv > 0 && a->rotary_dim > 0 && a->value_dim > 0;
    bool any_latent =
        a->latent_kv > 0 || a->rotary_dim > 0 || a->value_dim > 0 || a->latent_query > 0;
    bool recurrent = a->recurrent_layers > 0 && a->recurrent_in > 0 && a->recurrent_out > 0 &&
                     a->recurrent_state > 0;
    bool any_recurrent = a->recurrent_layers > 0 || a->recurrent_in > 0 || a->recurrent_out > 0 ||
                         a->recurrent_state > 0;
    bool global = a->global_head_dim > 0 && a->global_kv_heads > 0;
    bool any_global = a->global_head_dim > 0 || a->global_kv_heads > 0 || a->keys_as_values;
    if (latent != any_latent || a->rotary_dim > m->head_dim) {
        (void)err_add(e,
                      "%s: latent_kv, rotary_dim and value_dim come together, latent_query with "
                      "them, and rotary_dim is at most head_dim",
                      file);
    }
    if (recurrent != any_recurrent || a->recurrent_layers >= m->n_layers) {
        (void)err_add(e,
                      "%s: recurrent_layers, recurrent_in, recurrent_out and recurrent_state come "
                      "together, and recurrent_layers is below layers",
                      file);
    }
    if (m->sliding_layers + a->recurrent_layers > m->n_layers) {
        (void)err_add(e, "%s: sliding_layers and recurrent_layers are more than layers", file);
    }
    if (global != any_global || (global && m->sliding_layers == 0) ||
        (global && m->sliding_layers + a->recurrent_layers >= m->n_layers) ||
        (global && m->heads % a->global_kv_heads != 0)) {
        (void)err_add(e,
                      "%s: global_kv_heads and global_head_dim come together, keys_as_values with "
                      "them; some layers must have a window and some not; heads must be a "
                      "multiple of global_kv_heads",
                      file);
    }
    if (any_latent &&
        (any_global || a->gated || m->sliding_layers > 0 || a->shared_kv_layers > 0)) {
        (void)err_add(e,
                      "%s: latent attention goes with no window, gate, heads of other layers or "
                      "layers that share keys",
                      file);
    }
    if (a->shared_kv_layers > 0 && a->shared_kv_layers + a->recurrent_layers >= m->n_layers) {
        (void)err_add(e, "%s: shared_kv_layers: no layer has keys of its own", file);
    }
}

#define L struct llm
static const struct json_field llm_rows[] = {
    {JSON_ROW_("format", "Version of this format.", COUNT), JSON_RANGE_(1, 1, 1)},
    {JSON_TEXT(L, name, "name", "Name of the model.")},
    {JSON_ROW_("source", "Where the numbers come from.", TEXT)},
    {JSON_ROW_("aliases", "Other names, for people.", TEXT), JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, n_layers, "layers", 1, 1000, "Layers.")},
    {JSON_COUNT(L, hidden, "hidden", 1, 1u << 20, "Width.")},
    {JSON_COUNT(L, heads, "heads", 1, 1u << 16, "Attention heads.")},
    {JSON_COUNT(L, kv_heads, "kv_heads", 1, 1u << 16, "Heads with keys and values of their own.")},
    {JSON_COUNT(L, head_dim, "head_dim", 1, 1u << 16, "Width of a head.")},
    {JSON_COUNT(L, ffn_hidden, "ffn_hidden", 1, 1u << 22, "Inner width of the FFN.")},
    {JSON_COUNT(L, vocab, "vocab", 1, 1u << 24, "Tokens of the vocabulary.")},
    {JSON_BOOL(L, gated_ffn, "gated_ffn", "The FFN has three matrices.")},
    {JSON_BOOL(L, tied_head, "tied_head", "Embedding and LM head share their weights.")},
    {JSON_BOOL(L, special_attention, "special_attention",
               "Rotary positions over a part of each head or none, heads of no power of two, "
               "sinks, or tokens of pictures that attend to later ones."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(
         L, sliding_window, "sliding_window", 0, 1u << 24,
         "Tokens up to its own that a row sees in a layer with a window; 0: no layer has one."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, sliding_layers, "sliding_layers", 0, 1000, "Layers with a window."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, max_context, "max_context", 0, 1u << 30,
                "Tokens of a prompt and its answer that the model was made for; 0: not stated."),
     JSON_DEFAULT(0.0)},
    {JSON_BOOL(L, attention.gated, "gated_attention",
               "Attention has an output gate, as wide as the queries."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, attention.global_kv_heads, "global_kv_heads", 0, 1u << 16,
                "Heads with keys and values of the layers without a window, where they differ."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, attention.global_head_dim, "global_head_dim", 0, 1u << 16,
                "Width of a head of those layers."),
     JSON_DEFAULT(0.0)},
    {JSON_BOOL(L, attention.keys_as_values, "keys_as_values",
               "Those layers have one product for keys and values."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, attention.latent_kv, "latent_kv", 0, 1u << 16,
                "Latent attention: elements that a token stores instead of keys and values, "
                "without the rotary part; 0: it stores those."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, attention.latent_query, "latent_query", 0, 1u << 16,
                "Latent attention: width between two products of the queries; 0: there is one."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, attention.rotary_dim, "rotary_dim", 0, 1u << 16,
                "Latent attention: rotary part of head_dim, stored once for all heads."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, attention.value_dim, "value_dim", 0, 1u << 16,
                "Latent attention: width of a head of values."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, attention.recurrent_layers, "recurrent_layers", 0, 1000,
                "Layers with a state of fixed size instead of keys and values: linear attention, "
                "Mamba, short convolutions."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, attention.recurrent_in, "recurrent_in", 0, 1u << 22,
                "Outputs of the first products of such a layer."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, attention.recurrent_out, "recurrent_out", 0, 1u << 22,
                "Inputs of its last product."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, attention.recurrent_state, "recurrent_state", 0, 1u << 30,
                "Elements of its state, of 32 bit, for each sequence."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, attention.shared_kv_layers, "shared_kv_layers", 0, 1000,
                "Layers that attend to the keys and values of an earlier one, and store none."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, layer_embedding, "layer_embedding", 0, 1u << 16,
                "Width of the embedding that a token has in each layer; 0: it has none."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(L, layer_embedding_bytes, "layer_embedding_bytes_per_weight", "B", 0.05, 8.0,
                   1.0, "Bytes per weight of those embeddings. Default: as the LM head."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, laurel_rank, "laurel_rank", 0, 1u << 16,
                "Rank of a path around attention (LAuReL); 0: there is none."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, altup_inputs, "altup_inputs", 0, 64,
                "Streams of the hidden state (AltUp), the first one included; 0: one."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, n_experts, "experts", 1, 4096, "Experts of a layer."), JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, experts_per_token, "experts_per_token", 1, 4096, "Experts that a token uses."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, shared_ffn, "shared_ffn", 0, 1u << 22,
                "Inner width of the experts that every token uses, next to those it chooses."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, dense_layers, "dense_layers", 0, 1000,
                "Layers with one FFN instead of experts, or with one of another width."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, dense_ffn, "dense_ffn", 0, 1u << 22, "Inner width of the FFN of those layers."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(L, effective_experts, "effective_experts", "experts", 1.0, 4096.0, 1.0,
                   "How many experts, used evenly, are as uneven as those of a layer: 1 over the "
                   "sum of their squared shares of what tokens choose. Default: all of them."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(L, dense_bytes_per_weight, "dense_bytes_per_weight", "B", 0.05, 8.0, 1.0,
                   "Bytes per weight outside the experts, at least. Default: as theirs."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(L, weight_bits, "weight_bits", 1, 32, "Width of the weights.")},
    {JSON_COUNT(L, act_bits, "act_bits", 1, 32, "Width of the activations.")},
    {JSON_QUANTITY(L, body_bytes_per_weight, "body_bytes_per_weight", "B", 0.05, 8.0, 1.0,
                   "Bytes per weight of a layer, scales included.")},
    {JSON_QUANTITY(L, head_bytes_per_weight, "head_bytes_per_weight", "B", 0.05, 8.0, 1.0,
                   "Bytes per weight of the LM head.")},
    {JSON_QUANTITY(L, kv_bytes_per_element, "kv_bytes_per_element", "B", 0.05, 8.0, 1.0,
                   "Bytes per element of the KV cache.")},
};
const struct json_fields llm_fields = JSON_FIELDS(llm_rows, NULL);
#undef L

int llm_parse(const cJSON *root, const char *file, struct llm *out, struct err *e)
{
    memset(out, 0, sizeof *out);
    size_t before = e->n;
    struct json_obj o = json_root(root, file, e);
    json_fields_read(&o, &llm_fields, out, NULL);
    out->layer = LAYER_OPS_DECODER;
    if (e->n == before && json_string(root, "source")[0] == '\0') {
        err_add(e, "%s: source: must say where the numbers come from", file);
    }
    if ((out->n_experts > 0) != (out->experts_per_token > 0)) {
        err_add(e, "%s: experts and experts_per_token come together", file);
    }
    json_done(&o);
    if (e->n != before) {
        return -EINVAL;
    }
    /* These checks compare keys, so they come after the messages about missing ones. */
    if (out->heads % out->kv_heads != 0 || out->experts_per_token > out->n_experts) {
        return err_add(e,
                       "%s: heads must be a multiple of kv_heads, experts_per_token at most "
                       "experts",
                       file);
    }
    if ((out->sliding_window > 0) != (out->sliding_layers > 0) ||
        out->sliding_layers > out->n_layers) {
        (void)err_add(e,
                      "%s: sliding_window and sliding_layers come together, and sliding_layers is "
                      "at most layers",
                      file);
    }
    check_width(out, file, e);
    check_mixture(out, file, e);
    check_attention(out, file, e);
    if (e->n != before) {
        return -EINVAL;
    }
    out->body_weights = body_weights(out);
    out->head_weights = (double)out->hidden * out->vocab;
    if (out->layer_embedding_bytes == 0.0) {
        out->layer_embedding_bytes = out->head_bytes_per_weight;
    }
    count_bytes(out);
    return 0;
}

bool llm_knows(const cJSON *root, const char *key)
{
    const char *kind = json_string(json_member(root, key), "kind");
    return strcmp(kind, "measured") == 0 || strcmp(kind, "datasheet") == 0;
}

void llm_requantise(struct llm *m, uint32_t weight_bits, uint32_t act_bits,
                    const struct soc_format *format)
{
    m->weight_bits = weight_bits;
    m->act_bits = act_bits;
    if (format->body_bytes > 0.0) {
        m->body_bytes_per_weight = format->body_bytes;
    }
    if (format->head_bytes > 0.0) {
        m->head_bytes_per_weight = fmax(format->head_bytes, m->dense_bytes_per_weight);
        m->layer_embedding_bytes = m->head_bytes_per_weight;
    }
    m->kv_bytes_per_element = format->kv_bytes;
    count_bytes(m);
}
