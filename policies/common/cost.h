/* Annotated time of an iteration before its pass is formed, for schedulers that fill a batch up to
 * a latency (clauses.md A.5, B.7, E.12). */
#pragma once

#include "sim/api/policy.h"
#include "sim/base/base.h"

/* Every sequence has at least one row, and every row at least one key. */
static inline bool cost_shape_ok(const struct work_shape *w)
{
    return w->sequences <= w->rows && w->prefill_rows <= w->rows && w->logit_rows <= w->rows &&
           (w->sequences == 0) == (w->rows == 0) && w->rows <= w->kv_read_tokens &&
           w->max_context_tokens <= w->kv_read_tokens && w->kv_read_tokens <= w->attn_pairs &&
           w->far_keys <= w->kv_read_tokens && w->far_pairs <= w->attn_pairs;
}

/* Adds the next `tokens` rows of a request: one decode row, or a piece of its prompt. */
static inline void cost_shape_add(const struct sched *s, struct work_shape *w,
                                  const struct request *r, uint32_t tokens)
{
    bool prompt = r->state == REQUEST_STATE_QUEUED;
    SIM_ASSERT(cost_shape_ok(w) && (w->rows == 0 || w->model == r->model));
    work_shape_add(w, sched_model(s, r->model)->sliding_window, r->kv_tokens, tokens);
    w->logit_rows += !prompt || tokens == request_prefill_left(r);
    w->prefill_rows += prompt ? tokens : 0;
    w->model = r->model;
    SIM_ASSERT(cost_shape_ok(w));
}

/* Annotation of an op for `rows` rows; all zero if rows is 0. */
static inline struct estimate cost_estimate(struct sched *s, const struct work_shape *w,
                                            enum op_kind op, int device, uint32_t rows)
{
    struct estimate e = {0};
    if (rows > 0) {
        (void)sched_estimate(s, w, op, (uint8_t)device, rows, &e);
    }
    SIM_ASSERT(e.t_ns >= 0 && e.bytes_per_s >= 0.0); /* also zero if the device cannot run it */
    return e;
}

/* Time to prefill that many tokens without cached KV: whole chunks of token-level ops on one
 * device, the rest on the other, sequentially. */
static inline int64_t cost_context_ns(struct sched *s, uint32_t model, uint32_t tokens, uint8_t npu,
                                      uint8_t igpu)
{
    const struct llm *llm = sched_model(s, model);
    const struct layer_ops *ops = &llm->layer;
    uint32_t chunk = s->machine->devices[npu].chunk_rows;
    uint32_t chunked = chunk > 0 ? tokens / chunk * chunk : tokens;
    struct work_shape w = {.logit_rows = 1, .prefill_rows = tokens, .model = model};
    work_shape_add(&w, llm->sliding_window, 0, tokens);
    SIM_ASSERT(tokens > 0 && cost_shape_ok(&w));
    SIM_ASSERT(chunked <= tokens && tokens - chunked < (chunk > 0 ? chunk : 1));
    struct estimate e;
    int64_t layer = 0;
    for (uint32_t i = 0; i < ops->n; i++) {
        uint32_t on_npu = ops->kind[i] == OP_MHA ? 0 : chunked;
        uint32_t rest = tokens - on_npu;
        bool both = on_npu > 0 && sched_estimate(s, &w, ops->kind[i], npu, on_npu, &e) == 0;
        layer += both ? e.t_ns : 0;
        both = rest > 0 && sched_estimate(s, &w, ops->kind[i], igpu, rest, &e) == 0;
        layer += both ? e.t_ns : 0;
    }
    int64_t head = sched_estimate(s, &w, OP_HEAD, igpu, 1, &e) == 0 ? e.t_ns : 0;
    return layer * llm->n_layers + head;
}

/* Isolated time of all layers and the head; 0 for an empty shape. O(1). */
static inline int64_t cost_iteration_ns(struct sched *s, const struct work_shape *w, uint8_t device)
{
    const struct llm *llm = sched_model(s, w->model);
    const struct layer_ops *ops = &llm->layer;
    struct estimate e;
    int64_t layer = 0;
    SIM_ASSERT(cost_shape_ok(w));
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
    SIM_ASSERT(layer >= 0 && head >= 0);
    return layer * llm->n_layers + head;
}
