/* LLM files: public architecture numbers, and the bytes a runtime makes of them. */
#include <errno.h>
#include <string.h>

#include "hwmodels/soc.h"
#include "sim/base/json.h"

/* Weights of the layers one token crosses. QKV, O, and the FFN (three matrices when gated, two when
 * not); a mixture of experts crosses experts_per_token of them. */
static double body_weights(const struct llm *m)
{
    double h = m->hidden;
    double q = (double)m->heads * m->head_dim;
    double kv = (double)m->kv_heads * m->head_dim;
    double attention = h * (q + 2.0 * kv) + q * h;
    double ffn = (m->gated_ffn ? 3.0 : 2.0) * h * m->ffn_hidden;
    double used = m->experts_per_token > 0 ? m->experts_per_token : 1.0;
    return m->n_layers * (attention + used * ffn);
}

static double stored_body_weights(const struct llm *m)
{
    double ffn = (m->gated_ffn ? 3.0 : 2.0) * (double)m->hidden * m->ffn_hidden;
    double idle_experts = m->n_experts > 0 ? (double)m->n_experts - m->experts_per_token : 0.0;
    return m->body_weights + (double)m->n_layers * idle_experts * ffn;
}

static void count_bytes(struct llm *m)
{
    /* In memory beside the head, but never read by a kernel: a lookup takes one row of it. */
    double embedding = m->tied_head ? 0.0 : m->head_weights * m->head_bytes_per_weight;
    m->weight_bytes = stored_body_weights(m) * m->body_bytes_per_weight +
                      m->head_weights * m->head_bytes_per_weight + embedding;
    m->kv_bytes_per_token = 2.0 * m->n_layers * m->kv_heads * m->head_dim * m->kv_bytes_per_element;
}

/* Weights with their scales take at least their width, and less than twice of it: what does not is
 * a file in which one of the two was changed and the other forgotten. */
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

int llm_parse(const cJSON *root, const char *file, struct llm *out, struct err *e)
{
    memset(out, 0, sizeof *out);
    size_t before = e->n;
    struct json_obj o = json_root(root, file, e);
    (void)json_get_u32(&o, "format", 1, 1);
    const char *name = json_get_string(&o, "name");
    if (strlen(name) >= sizeof out->name) {
        err_add(e, "%s: name: longer than %zu bytes", file, sizeof out->name - 1);
    } else {
        memcpy(out->name, name, strlen(name) + 1);
    }
    if (json_get_string(&o, "source")[0] == '\0' && e->n == before) {
        err_add(e, "%s: source: must say where the numbers come from", file);
    }
    if (json_has(&o, "aliases")) {
        (void)json_get_string(&o, "aliases"); /* for whoever looks a model up by name */
    }
    out->n_layers = json_get_u32(&o, "layers", 1, 1000);
    out->layer = (struct layer_ops)LAYER_OPS_DECODER;
    out->hidden = json_get_u32(&o, "hidden", 1, 1u << 20);
    out->heads = json_get_u32(&o, "heads", 1, 1u << 16);
    out->kv_heads = json_get_u32(&o, "kv_heads", 1, 1u << 16);
    out->head_dim = json_get_u32(&o, "head_dim", 1, 1u << 16);
    out->ffn_hidden = json_get_u32(&o, "ffn_hidden", 1, 1u << 22);
    out->vocab = json_get_u32(&o, "vocab", 1, 1u << 24);
    out->gated_ffn = json_get_bool(&o, "gated_ffn");
    out->tied_head = json_get_bool(&o, "tied_head");
    if (json_has(&o, "experts")) {
        out->n_experts = json_get_u32(&o, "experts", 1, 4096);
        out->experts_per_token = json_get_u32(&o, "experts_per_token", 1, 4096);
    }
    out->weight_bits = json_get_u32(&o, "weight_bits", 1, 32);
    out->act_bits = json_get_u32(&o, "act_bits", 1, 32);
    out->body_bytes_per_weight =
        json_get_quantity(&o, "body_bytes_per_weight", "B", 0.05, 8.0).value;
    out->head_bytes_per_weight =
        json_get_quantity(&o, "head_bytes_per_weight", "B", 0.05, 8.0).value;
    out->kv_bytes_per_element = json_get_quantity(&o, "kv_bytes_per_element", "B", 0.05, 8.0).value;
    json_done(&o);
    if (e->n != before) {
        return -EINVAL;
    }
    /* After all keys have been read, so that a file is told all that is missing before what does
     * not fit. */
    if (out->heads % out->kv_heads != 0 || out->experts_per_token > out->n_experts) {
        return err_add(e,
                       "%s: heads must be a multiple of kv_heads, experts_per_token at most "
                       "experts",
                       file);
    }
    check_width(out, file, e);
    if (e->n != before) {
        return -EINVAL;
    }
    out->body_weights = body_weights(out);
    out->head_weights = (double)out->hidden * out->vocab;
    count_bytes(out);
    return 0;
}

void llm_requantise(struct llm *m, uint32_t weight_bits, uint32_t act_bits,
                    const struct soc_format *format)
{
    m->weight_bits = weight_bits;
    m->act_bits = act_bits;
    m->body_bytes_per_weight = format->body_bytes;
    m->head_bytes_per_weight = format->head_bytes;
    m->kv_bytes_per_element = format->kv_bytes;
    count_bytes(m);
}
