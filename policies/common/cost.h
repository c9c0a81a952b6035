/* Annotated time of an iteration before its pass is formed: what schedulers ask that fill a batch
 * up to a latency (clauses.md A.5, B.7, E.12). */
#pragma once

#include "sim/api/policy.h"

/* Adds the next `tokens` rows of a request: one of a decode, or a piece of its prompt. */
static inline void cost_shape_add(struct work_shape *w, const struct request *r, uint32_t tokens)
{
    uint64_t n = tokens;
    uint32_t context = r->kv_tokens + tokens;
    bool prompt = r->state == REQUEST_STATE_QUEUED;
    w->rows += tokens;
    w->logit_rows += !prompt || tokens == request_prefill_left(r);
    w->sequences++;
    w->prefill_rows += prompt ? tokens : 0;
    w->attn_pairs += n * r->kv_tokens + n * (n + 1) / 2;
    w->kv_read_tokens += context;
    w->max_context_tokens = context > w->max_context_tokens ? context : w->max_context_tokens;
}

/* All layers and the head, alone on the machine; 0 for an empty shape. O(1). */
static inline int64_t cost_iteration_ns(struct sched *s, const struct work_shape *w, uint8_t device)
{
    const struct layer_ops *ops = &s->llm->layer;
    struct estimate e;
    int64_t layer = 0;
    if (w->rows == 0) {
        return 0;
    }
    if (w->sequences == 1 && w->prefill_rows == 0) { /* batch_form fuses the layers */
        layer = sched_estimate(s, w, OP_LAYER, device, 0, &e) == 0 ? e.t_ns : 0;
    } else {
        for (uint32_t i = 0; i < ops->n; i++) {
            layer += sched_estimate(s, w, ops->kind[i], device, 0, &e) == 0 ? e.t_ns : 0;
        }
    }
    int64_t head = 0;
    if (w->logit_rows > 0) {
        head = sched_estimate(s, w, OP_HEAD, device, 0, &e) == 0 ? e.t_ns : 0;
    }
    return layer * s->llm->n_layers + head;
}
