/* Decode batches of agent-xpu-v1 (A.5): reactive sequences, and proactive ones as long as one more
 * costs next to nothing. All on the iGPU; formed at iteration boundaries. */
#include "policies/agent_xpu_v1/agent_xpu_v1.h"

/* Annotation of one layer, which is fused with one sequence. */
static void layer_estimate(struct sched *s, const struct v1 *v, const struct work_shape *w,
                           bool fused, struct estimate *out)
{
    if (fused) {
        *out = cost_estimate(s, w, OP_LAYER, v->igpu, w->rows);
        return;
    }
    double bytes = 0.0;
    double flop = 0.0;
    *out = (struct estimate){.memory_bound = true};
    const struct layer_ops *layer = &sched_model(s, w->model)->layer;
    for (uint32_t i = 0; i < layer->n; i++) {
        enum op_kind kind = layer->kind[i];
        struct estimate e = cost_estimate(s, w, kind, v->igpu, w->rows);
        double b = e.bytes_per_s * units_s_from_ns(e.t_ns);
        bytes += b;
        flop += b * e.flop_per_byte;
        out->t_ns += e.t_ns;
        out->watts = e.watts;
        out->memory_bound = out->memory_bound && (kind == OP_MHA || e.memory_bound);
    }
    out->bytes_per_s = out->t_ns > 0 ? bytes / units_s_from_ns(out->t_ns) : 0.0;
    out->flop_per_byte = bytes > 0.0 ? flop / bytes : 0.0;
}

static int64_t iteration_ns(struct sched *s, const struct v1 *v, const struct work_shape *w)
{
    struct estimate layer;
    layer_estimate(s, v, w, w->rows == 1, &layer);
    return layer.t_ns * sched_model(s, w->model)->n_layers +
           cost_estimate(s, w, OP_HEAD, v->igpu, w->rows).t_ns;
}

void v1_decode_estimate(struct sched *s, const struct v1 *v, const struct v1_iteration *it,
                        uint32_t n_ops, struct estimate *out)
{
    layer_estimate(s, v, &it->shape, it->fused, out);
    int64_t head = cost_estimate(s, &it->shape, OP_HEAD, v->igpu, it->shape.logit_rows).t_ns;
    uint32_t left = it->n_ops - it->op;
    uint32_t n = n_ops > left ? left : n_ops;
    bool with_head = n == left;
    out->t_ns = out->t_ns * (n - (with_head ? 1u : 0u)) / it->per_layer + (with_head ? head : 0);
}

/* B_max = max{B : t_iter(B) <= (1 + eps) t_iter(|RT|)}, at most the cap; reactive ones always stay.
 * It bounds the cost of backfill for them (6.3). Without reactive sequences all proactive ones
 * decode together, because throughput is the only objective (8.2). */
static void choose_batch(struct sched *s, struct v1 *v)
{
    struct work_shape w = {0};
    batch_clear(&v->batch);
    for (const struct request *r = v->decode_rt.q.head; r != NULL; r = reqq_next(r)) {
        if (batch_takes(&v->batch, r)) {
            batch_add(&v->batch, r, SEGMENT_DECODE, 1);
            cost_shape_add(s, &w, r, 1);
        }
    }
    if (v->batch.n == 0) {
        uint32_t most = (uint32_t)param_int(s, V1_MAX_BATCH);
        const struct request *r = v->decode_be.q.head;
        for (; r != NULL && v->batch.n < most; r = reqq_next(r)) {
            batch_add(&v->batch, r, SEGMENT_DECODE, 1);
        }
        return;
    }
    if (!param_bool(s, V1_INTRA)) {
        return;
    }
    uint32_t cap = (uint32_t)param_int(s, V1_BATCH_CAP);
    double most_ns = (1.0 + param_number(s, V1_EPSILON)) * (double)iteration_ns(s, v, &w);
    for (const struct request *r = v->decode_be.q.head; r != NULL; r = reqq_next(r)) {
        if (!batch_takes(&v->batch, r)) {
            continue;
        }
        cost_shape_add(s, &w, r, 1);
        /* Proactive sequences join in order of arrival, so the first that does not fit ends the
         * search. */
        if (v->batch.n >= cap || (double)iteration_ns(s, v, &w) > most_ns) {
            return;
        }
        batch_add(&v->batch, r, SEGMENT_DECODE, 1);
    }
}

bool v1_decode_next(struct sched *s, struct v1 *v, struct v1_iteration *it)
{
    const struct pass *p = v->decode;
    if (p != NULL) {
        *it = (struct v1_iteration){p->shape, p->fused_layers, p->layer.n, p->op, p->n_ops};
        return p->state == PASS_STATE_READY && p->op < p->n_ops;
    }
    if (!v->next_known) {
        choose_batch(s, v);
        const struct llm *llm =
            sched_model(s, v->batch.n > 0 ? v->batch.segments[0].request->model : 0);
        uint32_t per_layer = v->batch.n == 1 ? 1 : llm->layer.n; /* batch_form fuses one */
        v->next = (struct v1_iteration){.fused = v->batch.n == 1,
                                        .per_layer = per_layer,
                                        .n_ops = per_layer * llm->n_layers + 1};
        for (uint32_t i = 0; i < v->batch.n; i++) {
            cost_shape_add(s, &v->next.shape, v->batch.segments[i].request, 1);
        }
        v->next_known = true;
    }
    *it = v->next;
    return v->batch.n > 0;
}

bool v1_decode_form(struct sched *s, struct v1 *v)
{
    uint32_t chosen = v->batch.n;
    for (int rc; (rc = batch_form(s, &v->batch, &v->decode)) != 0;) {
        v->decode = NULL;
        if (rc != -ENOMEM || !v1_make_room(s, v, true)) {
            return false;
        }
        choose_batch(s, v); /* a victim may have been in it */
    }
    for (uint32_t i = 0; i < v->batch.n; i++) {
        v1_leave(v, v->batch.segments[i].request);
    }
    return v->batch.n == chosen;
}
