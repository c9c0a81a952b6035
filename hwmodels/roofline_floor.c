/* Lower bounds of kernel times, as bounds of whole schedules need them (kernel_floor). */
#include "hwmodels/roofline_impl.h"

/* The linear parts of a kernel's terms, without the additions of fill, padding and batches. Experts
 * of a mixture count for one row. */
static void floor_fill(const struct hwmodel *m, uint8_t device, enum op_kind op_kind, bool one_row,
                       bool plain, struct kernel_floor *out)
{
    const struct roofline *r = m->params;
    const struct soc_runtime *p = r->runtime[device];
    const struct soc_curve *c = one_row ? &p->one : &p->many;
    const struct roofline_op *op = &r->ops[op_kind];
    double width = one_row || plain ? 1.0 : 1.0 + p->width_fill / m->llm->hidden;
    /* Kernels of many rows have at least two. */
    double padded = p->min_rows > 2 && !plain ? p->min_rows : 2.0;
    *out = (struct kernel_floor){
        .fixed_s =
            plain ? 0.0 : roofline_launches(r, device, op_kind, one_row) * c->launch_s + op->sync_s,
        .row_s = op->flop_per_row * width / c->flop_per_s,
        .rows_min = one_row ? 1.0 : padded,
        .bytes = op->weight_bytes + op->expert_bytes * llm_experts_touched(m->llm, 1.0),
        .row_bytes = op->io_bytes_per_row,
        .bytes_per_s = c->bytes_per_s,
    };
    if (roofline_has_attention(op_kind)) {
        double fastest = plain ? 1.0 : fmax(p->attention_frac, p->decode_attention_frac);
        /* A pair and a key count at least in layers without a window. States do not count, because
         * a share of the rows moves less of them. */
        double pairs = 1.0 - r->far_pair_frac[device];
        out->pair_s = pairs * r->attn_flop_per_pair / (c->flop_per_s * fastest);
        out->key_bytes = (1.0 - r->far_key_frac[device]) * r->kv_bytes_per_key;
        out->row_bytes += r->attn_io_bytes_per_row;
    }
}

void roofline_floor_extended(const struct hwmodel *m, uint8_t device, enum op_kind op, bool one_row,
                             struct kernel_floor *out)
{
    floor_fill(m, device, op, one_row, false, out);
}

void roofline_floor_roofline(const struct hwmodel *m, uint8_t device, enum op_kind op, bool one_row,
                             struct kernel_floor *out)
{
    floor_fill(m, device, op, one_row, true, out);
}

/* Uses the smallest factor of the table for such rows. */
void roofline_floor_table(const struct hwmodel *m, uint8_t device, enum op_kind op, bool one_row,
                          struct kernel_floor *out)
{
    const struct roofline *r = m->params;
    const struct soc_table *t = &r->runtime[device]->table;
    double factor = soc_table_factor(t, 1.0);
    for (uint32_t i = 0; i < t->n && !one_row; i++) {
        factor = fmin(factor, t->factor[i]);
    }
    floor_fill(m, device, op, one_row, false, out);
    out->fixed_s *= factor;
    out->row_s *= factor;
    out->pair_s *= factor;
    out->bytes_per_s /= factor;
}
