/* Progress of a pass in annotated time, for orders by remaining work or laxity (clauses.md E.6,
 * E.9). Only for passes whose launches run sequentially on one device. */
#pragma once

#include "policies/common/cost.h"

/* Annotated isolated time of the first n_ops ops of a pass. O(1). */
static inline int64_t progress_ops_ns(struct sched *s, const struct pass *p, uint32_t n_ops,
                                      uint8_t device)
{
    uint32_t layers = pass_op_layer(p, n_ops < p->n_ops ? n_ops : p->n_ops - 1);
    uint32_t per_layer = p->layer.n;
    uint32_t more = n_ops - layers * per_layer; /* ops of the last, partial layer, or HEAD */
    SIM_ASSERT(n_ops <= p->n_ops && more <= per_layer);
    struct estimate e;
    int64_t t = 0;
    for (uint32_t i = 0; i < per_layer && layers > 0; i++) {
        if (sched_estimate(s, &p->shape, pass_op_kind(p, i), device, 0, &e) == 0) {
            t += e.t_ns * layers;
        }
    }
    for (uint32_t i = 0; i < more; i++) {
        enum op_kind kind = pass_op_kind(p, layers * per_layer + i);
        t += sched_estimate(s, &p->shape, kind, device, 0, &e) == 0 ? e.t_ns : 0;
    }
    return t;
}

/* The time that a pass has run, within its bounds: ops before the cursor are done, and ops from
 * op_end on have not begun. */
static inline int64_t progress_bounded_ns(struct sched *s, const struct pass *p, uint32_t op_end,
                                          int64_t ran_ns, uint8_t device)
{
    int64_t least = progress_ops_ns(s, p, p->op, device);
    int64_t most = progress_ops_ns(s, p, op_end, device);
    SIM_ASSERT(p->op <= op_end && 0 <= least && least <= most);
    return ran_ns < least ? least : ran_ns > most ? most : ran_ns;
}

/* Isolated time of one member's part of a pass. O(1). */
static inline int64_t progress_segment_ns(struct sched *s, const struct segment *seg,
                                          uint8_t device)
{
    const struct request *r = seg->request;
    struct work_shape w = {0};
    SIM_ASSERT(seg->first_token == r->kv_tokens); /* kv_tokens grows when the pass is done */
    cost_shape_add(s, &w, r, seg->n_tokens);
    return cost_iteration_ns(s, &w, device);
}
