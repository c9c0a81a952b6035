/* A batch under construction: the segments of one iteration. It grows as needed, is part of the
 * policy's state, and is freed by batch_fini in the exit hook. */
#pragma once

#include "policies/common/order.h"
#include "sim/api/policy.h"

struct batch {
    struct segment *segments;
    uint32_t n;
    size_t cap;
    uint32_t tokens; /* rows so far */
};

/* All members have rows and the same model. `tokens` may exceed their sum, because an owner adds
 * other work that the budget pays for, and batch_leave need not correct it. */
static inline bool batch_ok(const struct batch *b)
{
    return b->n <= b->cap && b->n <= b->tokens &&
           (b->n == 0 || b->segments[b->n - 1].request->model == b->segments[0].request->model);
}

/* Whether the segment is a part of its request's next work, and can be in a pass now. */
static inline bool batch_may_run(const struct request *r, enum segment_role role, uint32_t n_tokens)
{
    bool fits = role == SEGMENT_PREFILL
                    ? r->state == REQUEST_STATE_QUEUED && n_tokens <= request_prefill_left(r)
                    : r->state == REQUEST_STATE_DECODE && (role != SEGMENT_DECODE || n_tokens == 1);
    /* The core sets the tokens of a draft. */
    return fits && (n_tokens > 0) == (role != SEGMENT_DRAFT) && r->pass == NULL && !r->kv_swapped;
}

/* Whether a pass can be formed: no request is in it twice, and there are no more rows than
 * `tokens`. A draft that an owner adds to a decode is not counted (agent-xpu-v2). */
static inline bool batch_may_form(const struct batch *b)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        const struct segment *seg = &b->segments[i];
        rows += seg->role == SEGMENT_VERIFY ? 1 : seg->n_tokens;
        for (uint32_t j = 0; j < i; j++) {
            if (b->segments[j].request == seg->request) {
                return false;
            }
        }
        if (!batch_may_run(seg->request, seg->role, seg->n_tokens)) {
            return false;
        }
    }
    return rows <= b->tokens;
}

/* Whether a request may join: it must use the model of the first one. */
static inline bool batch_takes(const struct batch *b, const struct request *r)
{
    SIM_ASSERT(batch_ok(b));
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
    SIM_ASSERT(batch_takes(b, r) && batch_may_run(r, role, n_tokens));
    SIM_ASSERT(b->n == 0 || b->segments[b->n - 1].request != r);
    if (b->n == b->cap) {
        b->segments = xroom(b->segments, b->n + 1, &b->cap, sizeof *b->segments);
    }
    b->segments[b->n++] = (struct segment){.request = r, .role = role, .n_tokens = n_tokens};
    b->tokens += n_tokens;
    SIM_ASSERT(batch_ok(b));
}

/* Does nothing if the batch does not take the request, which then waits for another pass. */
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
    SIM_ASSERT(max_tokens > 0); /* without budget the caller must not ask */
    if (r->state == REQUEST_STATE_DECODE) {
        batch_add(b, r, SEGMENT_DECODE, 1);
        return;
    }
    uint32_t left = request_prefill_left(r);
    batch_add(b, r, SEGMENT_PREFILL, left < max_tokens ? left : max_tokens);
}

/* Removes a request. Returns its rows; 0 if it is not in the batch. */
static inline uint32_t batch_leave(struct batch *b, const struct request *r)
{
    uint32_t i = 0;
    while (i < b->n && b->segments[i].request != r) {
        i++;
    }
    if (i == b->n) {
        return 0;
    }
    uint32_t rows = b->segments[i].n_tokens;
    b->tokens -= rows;
    for (b->n--; i < b->n; i++) {
        b->segments[i] = b->segments[i + 1];
    }
    SIM_ASSERT(batch_ok(b));
    return rows;
}

/* The first request of an order that the batch takes. */
static inline const struct request *batch_first(const struct batch *b, const struct order *o)
{
    const struct request *r = order_first(o);
    while (r != NULL && !batch_takes(b, r)) {
        r = order_next(o, r);
    }
    return r;
}

/* Forms the pass; -EINVAL for an empty batch. A single decode has fused layers if `fused`. */
static inline int batch_form_layers(struct sched *s, const struct batch *b, bool fused,
                                    struct pass **out)
{
    SIM_ASSERT(batch_ok(b) && batch_may_form(b));
    bool alone = b->n == 1 && b->segments[0].role == SEGMENT_DECODE;
    struct pass_spec spec = {
        .segments = b->segments, .n_segments = b->n, .fused_layers = alone && fused};
    int rc = sched_pass_form(s, &spec, out);
    SIM_ASSERT(rc == 0 || rc == -ENOMEM || b->n == 0); /* only memory can be short */
    return rc;
}

static inline int batch_form(struct sched *s, const struct batch *b, struct pass **out)
{
    return batch_form_layers(s, b, true, out);
}
