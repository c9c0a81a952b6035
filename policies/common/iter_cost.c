/* Annotated isolated times of work, for keys that are times and for costs of tool calls. */
#include "policies/common/cost.h"
#include "policies/common/iter.h"

static int64_t pass_ns(struct sched *s, const struct work_shape *w, uint8_t device, bool fused)
{
    const struct llm *llm = sched_model(s, w->model);
    const struct layer_ops *ops = &llm->layer;
    struct estimate e;
    int64_t layer = 0;
    SIM_ASSERT(cost_shape_ok(w) && (!fused || w->prefill_rows == 0));
    if (fused) {
        layer = sched_estimate(s, w, OP_LAYER, device, 0, &e) == 0 ? e.t_ns : 0;
    }
    for (uint32_t i = 0; i < ops->n && !fused; i++) {
        layer += sched_estimate(s, w, ops->kind[i], device, 0, &e) == 0 ? e.t_ns : 0;
    }
    int64_t head = sched_estimate(s, w, OP_HEAD, device, 0, &e) == 0 ? e.t_ns : 0;
    SIM_ASSERT(layer >= 0 && head >= 0);
    return layer * llm->n_layers + head;
}

/* The shape of n prompt rows after `before` tokens of context. */
static struct work_shape chunk_shape(const struct sched *s, uint32_t model, uint32_t before,
                                     uint32_t n, bool last)
{
    SIM_ASSERT(n > 0);
    struct work_shape w = {.logit_rows = last ? 1 : 0, .prefill_rows = n, .model = model};
    work_shape_add(&w, sched_model(s, model)->sliding_window, before, n);
    return w;
}

int64_t iter_prefill_ns(struct sched *s, const struct request *r, uint8_t device)
{
    uint64_t n = request_prefill_left(r);
    if (n == 0) {
        return 0;
    }
    SIM_ASSERT(r->kv_tokens + n == request_prefill_target(r));
    /* As one pass, regardless of the token budget: keys are only compared with each other. */
    struct work_shape w = chunk_shape(s, r->model, r->kv_tokens, (uint32_t)n, true);
    return pass_ns(s, &w, device, false);
}

int64_t iter_decode_ns(struct sched *s, const struct request *r, uint8_t device,
                       uint64_t out_tokens)
{
    uint32_t context = request_length(r) + 1;
    struct work_shape w = {.logit_rows = 1, .model = r->model};
    work_shape_add(&w, sched_model(s, r->model)->sliding_window, context - 1, 1);
    /* The input token has no KV yet, so the context is kv_tokens + 1. */
    SIM_ASSERT(r->kv_tokens < context);
    /* One estimate at the present length for all tokens: a few hundred tokens of context add little
     * to the weights that every decode reads. */
    return (int64_t)out_tokens * pass_ns(s, &w, device, true);
}

int64_t iter_context_ns(struct sched *s, uint32_t model, uint32_t tokens)
{
    const struct iter *it = s->state;
    /* In chunks, unlike a key, because other requests wait for each iteration. */
    uint32_t budget = (uint32_t)param_int(s, ITER_TOKEN_BUDGET);
    int64_t t = 0;
    for (uint32_t done = 0; done < tokens;) {
        uint32_t n = tokens - done < budget ? tokens - done : budget;
        struct work_shape w = chunk_shape(s, model, done, n, done + n == tokens);
        t += pass_ns(s, &w, it->it.device, false);
        done += n;
        SIM_ASSERT(n > 0 && done <= tokens); /* terminates */
    }
    return t;
}
