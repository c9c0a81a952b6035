/* A batch under construction: the segments of one iteration. Grows as needed; lives in the policy's
 * state and is freed by batch_fini in its exit hook. */
#pragma once

#include "policies/common/heap.h"
#include "sim/api/policy.h"

struct batch {
    struct segment *segments;
    uint32_t n;
    size_t cap;
    uint32_t tokens; /* rows so far */
};

/* Whether a request may join: a pass has requests of one model, and the first decides which. */
static inline bool batch_takes(const struct batch *b, const struct request *r)
{
    return b->n == 0 || r->model == b->segments[0].request->model;
}

static inline void batch_clear(struct batch *b)
{
    b->n = 0;
    b->tokens = 0;
}

static inline void batch_fini(struct batch *b)
{
    free(b->segments);
    *b = (struct batch){0};
}

/* Adds a request that the batch takes. */
static inline void batch_put(struct batch *b, const struct request *r, enum segment_role role,
                             uint32_t n_tokens)
{
    SIM_ASSERT(batch_takes(b, r) && n_tokens > 0);
    if (b->n == b->cap) {
        b->segments = xroom(b->segments, b->n + 1, &b->cap, sizeof *b->segments);
    }
    b->segments[b->n++] = (struct segment){.request = r, .role = role, .n_tokens = n_tokens};
    b->tokens += n_tokens;
}

/* Nothing where the batch does not take it: the request waits for another pass. */
static inline void batch_add(struct batch *b, const struct request *r, enum segment_role role,
                             uint32_t n_tokens)
{
    if (batch_takes(b, r)) {
        batch_put(b, r, role, n_tokens);
    }
}

/* Adds the next piece of work of a request: one decode token, or up to max_tokens of its prompt. */
static inline void batch_add_next(struct batch *b, const struct request *r, uint32_t max_tokens)
{
    if (r->state == REQUEST_STATE_DECODE) {
        batch_add(b, r, SEGMENT_DECODE, 1);
        return;
    }
    uint32_t left = request_prefill_left(r);
    batch_add(b, r, SEGMENT_PREFILL, left < max_tokens ? left : max_tokens);
}

/* The first of a heap that the batch takes. O(1); O(n) with several models. */
static inline const struct request *batch_first(const struct batch *b, const struct heap *h)
{
    const struct request *first = heap_top(h);
    if (first == NULL || batch_takes(b, first)) {
        return first;
    }
    first = NULL;
    for (uint32_t i = 0; i < h->n; i++) {
        const struct request *r = h->a[i];
        first = batch_takes(b, r) && (first == NULL || heap_before(h, r, first)) ? r : first;
    }
    return first;
}

/* Forms the pass; -EINVAL for an empty batch. A decode by itself has fused layers if `fused`. */
static inline int batch_form_layers(struct sched *s, const struct batch *b, bool fused,
                                    struct pass **out)
{
    bool alone = b->n == 1 && b->segments[0].role == SEGMENT_DECODE;
    struct pass_spec spec = {
        .segments = b->segments, .n_segments = b->n, .fused_layers = alone && fused};
    return sched_pass_form(s, &spec, out);
}

static inline int batch_form(struct sched *s, const struct batch *b, struct pass **out)
{
    return batch_form_layers(s, b, true, out);
}
