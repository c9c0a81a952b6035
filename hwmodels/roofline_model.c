/* Builds the roofline model of a SoC: costs of an LLM's ops, and the runtimes. */
#include "hwmodels/llm_layers.h"
#include "hwmodels/roofline.h"

/* k x D x M matrix product: W = 2 k D M, Q = weights + 2 k (D + M) bytes (Agent.xpu v2 App. B). */
static void add_matrix(struct roofline_op *op, double in, double out, double bytes_per_weight,
                       double copies)
{
    op->flop_per_row += 2.0 * in * out * copies;
    op->weight_bytes += in * out * bytes_per_weight * copies;
    op->io_bytes_per_row += ROOFLINE_ACT_BYTES * (in + out) * copies;
    op->prims += 1.0;
}

static void add_products(struct roofline_op *op, const struct llm_product *p, uint32_t n,
                         double bytes_per_weight)
{
    double prims = op->prims;
    for (uint32_t i = 0; i < n; i++) {
        add_matrix(op, p[i].in, p[i].out, bytes_per_weight, p[i].copies * p[i].layers);
        prims += p[i].layers;
    }
    op->prims = prims;
}

/* Adds the two or three products of an FFN; `copies`: mean number of it in a layer. */
static void add_ffn(struct roofline_op *op, const struct llm *m, double width, double copies,
                    double bytes_per_weight)
{
    for (int i = 0; i < (m->gated_ffn ? 2 : 1); i++) {
        add_matrix(op, m->hidden, width, bytes_per_weight, copies);
    }
    add_matrix(op, width, m->hidden, bytes_per_weight, copies);
}

static void ops_fill(struct roofline *r, const struct llm *m)
{
    struct llm_layer l;
    llm_layer_fill(m, &l);
    double used = m->experts_per_token > 0 ? m->experts_per_token : 1.0;
    double dense = fmax(m->body_bytes_per_weight, m->dense_bytes_per_weight);
    memset(r->ops, 0, sizeof r->ops);
    add_products(&r->ops[OP_QKV], l.before, l.n_before, dense);
    r->ops[OP_QKV].io_bytes_per_row += m->layer_embedding * m->layer_embedding_bytes;
    add_products(&r->ops[OP_FFN], l.after, l.n_after, dense);
    double dense_bytes = r->ops[OP_FFN].weight_bytes;
    double dense_flop = r->ops[OP_FFN].flop_per_row;
    /* All layers of a pass cost the same, so layers without experts are a share of each. */
    double dense_share = (double)m->dense_layers / m->n_layers;
    add_ffn(&r->ops[OP_FFN], m, m->ffn_hidden, used * (1.0 - dense_share),
            m->body_bytes_per_weight);
    if (m->n_experts > 0) { /* the number of experts read depends on the rows */
        double read_bytes = r->ops[OP_FFN].weight_bytes - dense_bytes;
        r->ops[OP_FFN].expert_bytes = read_bytes / used * m->n_experts;
        r->ops[OP_FFN].weight_bytes = dense_bytes;
        r->ops[OP_FFN].expert_flop_per_row = r->ops[OP_FFN].flop_per_row - dense_flop;
    }
    double prims = r->ops[OP_FFN].prims; /* each layer has one of these FFNs */
    add_ffn(&r->ops[OP_FFN], m, m->dense_ffn, dense_share, dense);
    r->ops[OP_FFN].prims = prims;
    if (m->shared_ffn > 0) {
        add_ffn(&r->ops[OP_FFN], m, m->shared_ffn, 1.0 - dense_share, dense);
    }
    add_matrix(&r->ops[OP_HEAD], m->hidden, m->vocab, m->head_bytes_per_weight, 1.0);
    r->ops[OP_MHA].prims = 1.0;
    /* A fused layer has the traffic and work of its ops. Fusion only saves launches, which the
     * runtime states (fused_launches). */
    struct roofline_op *layer = &r->ops[OP_LAYER];
    layer->flop_per_row = r->ops[OP_QKV].flop_per_row + r->ops[OP_FFN].flop_per_row;
    layer->weight_bytes = r->ops[OP_QKV].weight_bytes + r->ops[OP_FFN].weight_bytes;
    layer->expert_bytes = r->ops[OP_FFN].expert_bytes;
    layer->expert_flop_per_row = r->ops[OP_FFN].expert_flop_per_row;
    layer->io_bytes_per_row = r->ops[OP_QKV].io_bytes_per_row + r->ops[OP_FFN].io_bytes_per_row;
    layer->prims = r->ops[OP_QKV].prims + r->ops[OP_FFN].prims + 1.0;
    r->ops[OP_MHA].further = l.recurrences;
    r->ops[OP_FFN].further = m->n_experts > 0 ? 1.0 - dense_share : 0.0;
    layer->further = r->ops[OP_MHA].further + r->ops[OP_FFN].further;
    r->attn_flop_per_pair = l.flop_per_pair;
    r->special_attention = m->special_attention;
    r->kv_bytes_per_key = l.elements_per_key * m->kv_bytes_per_element;
    r->attn_io_bytes_per_row = ROOFLINE_ACT_BYTES * l.io_per_row;
    r->state_flop_per_row = l.state_flop_per_row;
    r->state_bytes = 2.0 * LLM_STATE_BYTES * l.state_elements; /* read, and written */
}

static void unfuse_op(struct roofline_op *op, double prims, double bytes, double sync_s)
{
    op->prims += prims;
    op->io_bytes_per_row += bytes;
    op->sync_s += sync_s;
}

void roofline_unfuse(struct roofline *r, double sync_s)
{
    const struct llm *m = r->model.llm;
    struct llm_layer l;
    llm_layer_fill(m, &l);
    double h = ROOFLINE_ACT_BYTES * m->hidden;
    double used = m->experts_per_token > 0 ? m->experts_per_token : 1.0;
    double dense = (double)m->dense_layers / m->n_layers;
    double width = (used * m->ffn_hidden + m->shared_ffn) * (1.0 - dense) + dense * m->dense_ffn;
    double f = ROOFLINE_ACT_BYTES * width;
    double rotated = ROOFLINE_ACT_BYTES * l.rotated_per_row;
    /* norm: read, write; rotary embedding: read, write */
    double qkv = 2.0 * h + 2.0 * rotated;
    /* two residual sums of two operands, norm, activation (of two operands where gated) */
    double ffn = 2.0 * 3.0 * h + 2.0 * h + (m->gated_ffn ? 3.0 : 2.0) * f;
    double launches = m->shared_ffn > 0 ? 5.0 : 4.0; /* shared experts have an activation, too */
    unfuse_op(&r->ops[OP_QKV], 2.0, qkv, 2.0 * sync_s);
    unfuse_op(&r->ops[OP_FFN], launches, ffn, launches * sync_s);
    unfuse_op(&r->ops[OP_LAYER], 2.0 + launches, qkv + ffn, (2.0 + launches) * sync_s);
}

/* Elements of a token's K and V that columns without a head could read meanwhile, in a layer. */
static double lacking_elements(uint32_t columns, double kv_heads, double head_dim)
{
    return columns > 0 ? 2.0 * (ceil(kv_heads / columns) * columns - kv_heads) * head_dim : 0.0;
}

/* Fills the time of columns without a head. Latent attention has one head for all. */
static void lacking_fill(struct roofline *r, uint8_t device, bool skips)
{
    const struct llm *m = r->model.llm;
    const struct llm_attention *a = &m->attention;
    uint32_t columns = a->latent_kv > 0 ? 0 : r->runtime[device]->kv_columns;
    double far_frac = (double)m->sliding_layers / m->n_layers;
    double near_frac = 1.0 - far_frac - (double)a->recurrent_layers / m->n_layers;
    double far = far_frac * lacking_elements(columns, m->kv_heads, m->head_dim);
    double near =
        near_frac * (a->global_head_dim > 0
                         ? lacking_elements(columns, a->global_kv_heads, a->global_head_dim)
                         : lacking_elements(columns, m->kv_heads, m->head_dim));
    r->lacking_key_bytes[device] = (far + near) * m->kv_bytes_per_element;
    r->far_lacking_frac[device] = skips && far > 0.0 ? far / (far + near) : 0.0;
}

void roofline_set_runtime(struct roofline *r, uint8_t device, const struct soc_runtime *runtime)
{
    struct llm_layer l;
    llm_layer_fill(r->model.llm, &l);
    r->runtime[device] = runtime;
    bool skips = runtime->sliding_window || runtime->decode_window;
    r->far_pair_frac[device] = skips ? l.far_pair_frac : 0.0;
    r->far_key_frac[device] = skips ? l.far_key_frac : 0.0;
    lacking_fill(r, device, skips);
    /* Changes the roofline's copy of the machine, which runs, policies and estimates use, too, so
     * that a kernel has the same cost everywhere. */
    r->machine.devices[device].chunk_rows =
        runtime->chunk_rows_own ? runtime->chunk_rows : r->chunk_rows[device];
}

void roofline_with_chunk(const struct roofline *r, uint8_t device, uint32_t rows,
                         struct roofline *out)
{
    *out = *r;
    out->machine.devices[device].chunk_rows = rows;
    out->model.machine = &out->machine;
    out->model.params = out;
}

void roofline_init(struct roofline *r, const struct hwmodel_ops *form, const struct soc *soc,
                   const struct llm *llm)
{
    memset(r, 0, sizeof *r);
    ops_fill(r, llm);
    r->machine = soc->machine;
    r->model = (struct hwmodel){form, &r->machine, llm, r};
    for (uint32_t i = 0; i < soc->machine.n_devices; i++) {
        enum soc_match match;
        uint32_t k = soc_runtime_find(&soc->devices[i], NULL, llm->weight_bits, &match);
        r->chunk_rows[i] = soc->machine.devices[i].chunk_rows;
        roofline_set_runtime(r, (uint8_t)i, &soc->devices[i].runtimes[k]);
        r->exchange[i] = soc->devices[i].exchange;
        r->compute_only_frac[i] = soc->devices[i].compute_only_frac;
        r->fallback[i] = match != SOC_MATCH_EXACT;
    }
}
