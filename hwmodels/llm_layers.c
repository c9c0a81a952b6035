#include "hwmodels/llm_layers.h"

#include "sim/base/base.h"

#define STATE_FLOP 6.0 /* decay, outer product with its sum, and output: 1 + 3 + 2 */
/* Layers whose state has at most as many rows of the hidden width are short convolutions. */
#define LONGEST_CONVOLUTION 4.0

static void before(struct llm_layer *l, double in, double out, double copies, double layers)
{
    SIM_ASSERT(l->n_before < LLM_MAX_PRODUCTS);
    l->before[l->n_before++] = (struct llm_product){in, out, copies, layers};
}

static void after(struct llm_layer *l, double in, double out, double copies, double layers)
{
    SIM_ASSERT(l->n_after < LLM_MAX_PRODUCTS);
    l->after[l->n_after++] = (struct llm_product){in, out, copies, layers};
}

/* Adds layers with separate heads; `values`: values have a separate product. */
static void add_heads(struct llm_layer *l, const struct llm *m, double kv_heads, double head_dim,
                      bool values, double layers)
{
    double q = (double)m->heads * head_dim;
    double kv = kv_heads * head_dim;
    double attending = (double)m->n_layers - m->attention.recurrent_layers;
    double own = layers * (1.0 - m->attention.shared_kv_layers / attending);
    double queries = (m->attention.gated ? 2.0 : 1.0) * q;
    double keys = (values ? 2.0 : 1.0) * kv;
    before(l, m->hidden, queries + keys, 1.0, own);
    if (own < layers) {
        before(l, m->hidden, queries, 1.0, layers - own);
        l->unused_weights += m->hidden * keys * (layers - own);
    }
    after(l, q, m->hidden, 1.0, layers);
    l->flop_per_pair += 4.0 * q * layers; /* QK^T and PV, 2 flop each */
    l->elements_per_key += 2.0 * kv * layers;
    l->stored_per_key += 2.0 * kv * own;
    l->rotated_per_row += (q + kv) * own + q * (layers - own);
    l->io_per_row += 2.0 * q * layers;
}

static void add_latent(struct llm_layer *l, const struct llm *m, double layers)
{
    const struct llm_attention *a = &m->attention;
    double heads = m->heads;
    double plain = (double)m->head_dim - a->rotary_dim; /* of a key, without rotary positions */
    double key = (double)a->latent_kv + a->rotary_dim;
    if (a->latent_query > 0) {
        before(l, m->hidden, a->latent_query, 1.0, layers);
    }
    before(l, a->latent_query > 0 ? a->latent_query : m->hidden, heads * m->head_dim, 1.0, layers);
    before(l, m->hidden, key, 1.0, layers);
    before(l, plain, a->latent_kv, heads, layers);
    after(l, a->latent_kv, a->value_dim, heads, layers);
    after(l, heads * a->value_dim, m->hidden, 1.0, layers);
    l->flop_per_pair += 2.0 * heads * (key + a->latent_kv) * layers;
    l->elements_per_key += key * layers;
    l->stored_per_key += key * layers;
    l->rotated_per_row += (heads + 1.0) * a->rotary_dim * layers;
    l->io_per_row += heads * (key + a->latent_kv) * layers;
}

static void add_recurrent(struct llm_layer *l, const struct llm *m, double layers)
{
    const struct llm_attention *a = &m->attention;
    before(l, m->hidden, a->recurrent_in, 1.0, layers);
    after(l, a->recurrent_out, m->hidden, 1.0, layers);
    l->state_elements = a->recurrent_state * layers;
    l->recurrences = a->recurrent_state > LONGEST_CONVOLUTION * m->hidden ? layers : 0.0;
    l->state_flop_per_row = STATE_FLOP * l->state_elements;
    l->io_per_row += ((double)a->recurrent_in + a->recurrent_out) * layers;
}

static void add_further(struct llm_layer *l, const struct llm *m)
{
    double h = m->hidden;
    double once = 1.0 / m->n_layers; /* per pass */
    if (m->layer_embedding > 0) {
        before(l, h, (double)m->layer_embedding * m->n_layers, 1.0, once);
        after(l, h, m->layer_embedding, 1.0, 1.0);
        after(l, m->layer_embedding, h, 1.0, 1.0);
    }
    if (m->laurel_rank > 0) {
        before(l, h, m->laurel_rank, 1.0, 1.0);
        before(l, m->laurel_rank, h, 1.0, 1.0);
    }
    if (m->altup_inputs > 1) {
        before(l, h, h, m->altup_inputs - 1.0, once);
        after(l, h, h, m->altup_inputs - 1.0, once);
    }
}

void llm_layer_fill(const struct llm *m, struct llm_layer *out)
{
    const struct llm_attention *a = &m->attention;
    double layers = m->n_layers;
    double recurrent = a->recurrent_layers / layers;
    double near = m->sliding_layers / layers;
    memset(out, 0, sizeof *out);
    add_further(out, m);
    if (recurrent > 0.0) {
        add_recurrent(out, m, recurrent);
    }
    if (a->latent_kv > 0) {
        add_latent(out, m, 1.0 - recurrent);
        return;
    }
    if (a->global_head_dim == 0) {
        add_heads(out, m, m->kv_heads, m->head_dim, true, 1.0 - recurrent);
        out->far_pair_frac = out->far_key_frac = near / (1.0 - recurrent);
        return;
    }
    add_heads(out, m, m->kv_heads, m->head_dim, true, near);
    double flop = out->flop_per_pair;
    double elements = out->elements_per_key;
    add_heads(out, m, a->global_kv_heads, a->global_head_dim, !a->keys_as_values,
              1.0 - recurrent - near);
    out->far_pair_frac = flop / out->flop_per_pair;
    out->far_key_frac = elements / out->elements_per_key;
}

static double weights(const struct llm_product *p, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        sum += p[i].in * p[i].out * p[i].copies * p[i].layers;
    }
    return sum;
}

double llm_layer_weights(const struct llm_layer *l)
{
    return weights(l->before, l->n_before) + weights(l->after, l->n_after);
}
