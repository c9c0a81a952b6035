#include "experiments/run/price.h"

#include "hwmodels/llm_layers.h"
#include "sim/core/kernels.h"

/* The shape of `batch` segments of n rows each, behind `context` tokens. */
static struct work_shape shape_of(const struct llm *m, uint64_t context, uint64_t n, uint32_t batch)
{
    struct work_shape w = {0};
    for (uint32_t i = 0; i < batch; i++) {
        work_shape_add(&w, m->sliding_window, context, n);
    }
    return w;
}

struct work_shape price_prefill_shape(const struct llm *m, uint32_t tokens, uint32_t batch)
{
    struct work_shape w = shape_of(m, 0, tokens, batch);
    w.logit_rows = batch;
    w.prefill_rows = w.rows;
    return w;
}

struct work_shape price_verify_shape(const struct llm *m, uint32_t context, uint32_t tokens)
{
    struct work_shape w = shape_of(m, context, tokens, 1);
    w.logit_rows = tokens;
    return w;
}

struct work_shape price_decode_shape(const struct llm *m, uint32_t context, uint32_t batch)
{
    struct work_shape w = shape_of(m, context, 1, batch);
    w.logit_rows = batch;
    return w;
}

/* The flop that the result needs. */
static double useful_flop(const struct roofline *r, enum op_kind op, uint32_t rows,
                          const struct work_shape *w)
{
    bool attends = op == OP_MHA || op == OP_LAYER;
    struct llm_layer l;
    llm_layer_fill(r->model.llm, &l);
    double far = (double)w->far_pairs * l.far_pair_frac; /* whether computed or not */
    return r->ops[op].flop_per_row * rows +
           (attends ? r->attn_flop_per_pair * ((double)w->attn_pairs - far) +
                          r->state_flop_per_row * rows
                    : 0.0);
}

struct price_op price_op(const struct roofline *r, uint8_t device, enum op_kind op,
                         const struct work_shape *w)
{
    struct kernel_run k;
    uint32_t rows = op == OP_HEAD ? w->logit_rows : w->rows;
    uint32_t chunk = r->machine.devices[device].chunk_rows;
    kernel_run_fill(&r->model, w, op, device, 0, rows, chunk, 0, &k);
    int64_t longest = k.full.t_ns > k.last.t_ns ? k.full.t_ns : k.last.t_ns;
    double flop = useful_flop(r, op, rows, w);
    double paid_flop = kernel_run_total_flop(&k);
    return (struct price_op){.seconds = units_s_from_ns(kernel_run_total_ns(&k)),
                             .flop = flop,
                             .padding_flop = paid_flop > flop ? paid_flop - flop : 0.0,
                             .bytes = kernel_run_total_bytes(&k),
                             .longest_s = units_s_from_ns(longest),
                             .kernels = k.n,
                             .outside = k.outside};
}

struct price price_pass(const struct roofline *r, uint8_t device, const struct work_shape *w)
{
    struct price p = {0};
    const struct device *d = &r->model.machine->devices[device];
    for (int op = OP_QKV; op <= OP_HEAD; op++) {
        uint32_t times = op == OP_HEAD ? 1 : r->model.llm->n_layers;
        struct price_op k = price_op(r, device, (enum op_kind)op, w);
        p.op_s[op] = times * k.seconds;
        p.bytes += times * k.bytes;
        p.seconds += p.op_s[op];
        p.outside = p.outside || k.outside;
    }
    /* An isolated pass overlaps with no host work, so all of it counts. */
    int64_t host_ns = r->model.machine->schedule_ns + d->submit_ns + d->completion_ns;
    host_ns += r->model.machine->sample_ns_per_token * w->logit_rows;
    p.seconds += units_s_from_ns(host_ns);
    return p;
}
