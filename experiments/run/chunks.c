#include "experiments/run/chunks.h"

#include "experiments/run/price.h"

struct chunk chunks_price(const struct roofline *r, uint8_t device, uint32_t rows)
{
    const struct llm *l = r->model.llm;
    struct roofline cut;
    roofline_with_chunk(r, device, rows, &cut);
    struct work_shape w = price_prefill_shape(l, CHUNKS_PROMPT, 1);
    struct chunk k = {0};
    for (int op = OP_QKV; op <= OP_FFN; op++) {
        struct price_op cost = price_op(&cut, device, (enum op_kind)op, &w);
        k.layer_s += cost.seconds;
        k.kernel_s = fmax(k.kernel_s, cost.longest_s);
    }
    k.request_s = k.layer_s * l->n_layers + price_op(&cut, device, OP_HEAD, &w).seconds;
    k.tokens_per_s = CHUNKS_PROMPT / k.request_s;
    /* The widest step of a layer: input and hidden activations of the FFN. */
    k.activation_bytes =
        (double)rows * (l->ffn_hidden * (l->gated_ffn ? 2.0 : 1.0) + l->hidden) * l->act_bits / 8.0;
    return k;
}

int chunks_device(const struct roofline *r)
{
    const struct machine *m = r->model.machine;
    for (uint32_t d = 0; d < m->n_devices; d++) {
        if (m->devices[d].chunk_rows > 0) {
            return (int)d;
        }
    }
    return -1;
}

uint32_t chunks_knee(const struct roofline *r)
{
    int d = chunks_device(r);
    double best = 0.0;
    for (uint32_t rows = 32; d >= 0 && rows <= CHUNKS_PROMPT; rows *= 2) {
        best = fmax(best, chunks_price(r, (uint8_t)d, rows).tokens_per_s);
    }
    for (uint32_t rows = 32; d >= 0 && rows <= CHUNKS_PROMPT; rows *= 2) {
        if (chunks_price(r, (uint8_t)d, rows).tokens_per_s >= CHUNKS_KNEE_FRAC * best) {
            return rows;
        }
    }
    return 0;
}
