/* One prefill pass placed op by op on an NPU and an iGPU: static chunks of token-level ops on the
 * NPU; attention, the LM head and optionally the prompt's margin on the iGPU. The two shares of an
 * op run concurrently; the next op begins when both are done. The policy decides how many rows each
 * device gets, and when each share may start.
 *
 *   pass formed    -> hetero_begin
 *   schedule       -> while hetero_at_boundary: hetero_plan(rows for the NPU); hetero_launch_*
 *   launch_done    -> hetero_ended
 *   pass_done      -> hetero_clear
 */
#pragma once

#include "sim/api/policy.h"
#include "sim/base/base.h"

struct hetero {
    struct pass *pass;            /* NULL: no prefill */
    uint32_t planned_op;          /* planned op + 1; 0: no plan for the op at the cursor */
    uint32_t npu_rows, igpu_rows; /* planned rows that are not launched yet */
    int64_t ready_ns;             /* when the planned op became ready */
    const struct launch *on_npu, *on_igpu;
    uint32_t inflight; /* launch_spec.inflight; hetero_begin sets 1 */
};

/* Invariants, except between the end of a launch and hetero_ended. Only the op at the cursor has
 * planned rows, at most rows_todo. Planned rows are valid only if planned_op > 0, because
 * agent-xpu-v1 cancels a plan by planned_op = 0. */
static inline bool hetero_ok(const struct hetero *h)
{
    const struct pass *p = h->pass;
    if (p == NULL) {
        return h->planned_op == 0 && h->npu_rows == 0 && h->igpu_rows == 0 && h->on_npu == NULL &&
               h->on_igpu == NULL;
    }
    uint64_t rows = (uint64_t)h->npu_rows + h->igpu_rows;
    return (h->on_npu == NULL || (h->on_npu->pass == p && h->on_npu != h->on_igpu)) &&
           (h->on_igpu == NULL || h->on_igpu->pass == p) && h->planned_op <= p->op + 1 &&
           (h->planned_op == 0 || rows <= (h->planned_op == p->op + 1 ? p->rows_todo : 0));
}

/* Forgets the pass, which has no launch. */
static inline void hetero_clear(struct hetero *h)
{
    SIM_ASSERT(h->on_npu == NULL && h->on_igpu == NULL);
    *h = (struct hetero){0};
}

static inline void hetero_begin(struct hetero *h, struct pass *p)
{
    SIM_ASSERT(p != NULL && p->state == PASS_STATE_READY && p->op < p->n_ops);
    SIM_ASSERT(h->pass == NULL && hetero_ok(h)); /* one at a time */
    *h = (struct hetero){.pass = p, .inflight = 1};
}

/* Whether the op at the cursor has neither a launch nor a plan. */
static inline bool hetero_at_boundary(const struct hetero *h)
{
    const struct pass *p = h->pass;
    SIM_ASSERT(hetero_ok(h));
    return p != NULL && p->op < p->n_ops && p->n_launches == 0 && h->planned_op != p->op + 1;
}

/* QKV and FFN can run in static chunks; attention and the head cannot (agent-xpu-v1 5.2). */
static inline bool hetero_is_token_level(const struct pass *p)
{
    SIM_ASSERT(p->op < p->n_ops); /* there is no kind beyond the last op */
    enum op_kind op = pass_op_kind(p, p->op);
    return op == OP_QKV || op == OP_FFN;
}

/* Rows for the NPU in the eager default mapping: whole chunks, and with margin_on_npu the last,
 * partial chunk (padded). 0 for attention and the head. */
static inline uint32_t hetero_default_rows(const struct hetero *h, uint32_t chunk,
                                           bool margin_on_npu)
{
    const struct pass *p = h->pass;
    if (!hetero_is_token_level(p)) {
        return 0;
    }
    SIM_ASSERT(chunk > 0 && p->shape.prefill_rows == p->shape.rows); /* prefill only */
    return margin_on_npu ? p->rows_todo : p->rows_todo / chunk * chunk;
}

/* Plans the remaining rows of the op at the cursor. Precondition: npu_rows <= rows_todo. */
static inline void hetero_plan(const struct sched *s, struct hetero *h, uint32_t npu_rows)
{
    SIM_ASSERT(npu_rows <= h->pass->rows_todo && hetero_at_boundary(h));
    h->planned_op = h->pass->op + 1;
    h->npu_rows = npu_rows;
    h->igpu_rows = h->pass->rows_todo - npu_rows;
    h->ready_ns = s->now_ns;
    SIM_ASSERT(hetero_ok(h));
}

/* Launches up to `rows` of a planned share on its device; false if there is nothing to launch or
 * the device is busy. */
static inline bool hetero_launch(struct sched *s, struct hetero *h, int device, bool npu,
                                 uint32_t rows, enum yield_point yield)
{
    uint32_t *planned = npu ? &h->npu_rows : &h->igpu_rows;
    const struct launch **on = npu ? &h->on_npu : &h->on_igpu;
    uint32_t n = rows < *planned ? rows : *planned;
    if (n == 0 || *on != NULL || sched_device_free_slots(s, (uint8_t)device) == 0) {
        return false;
    }
    struct launch_spec spec = sched_launch_rest(s, h->pass, (uint8_t)device, yield);
    spec.n_ops = 1;
    spec.rows = n;
    spec.inflight = h->inflight;
    SIM_ASSERT(h->planned_op == h->pass->op + 1 && n <= h->pass->rows_todo);
    if (sched_launch(s, &spec, on) != 0) {
        return false;
    }
    *planned -= n;
    SIM_ASSERT(hetero_ok(h));
    return true;
}

/* Launches both planned shares as a whole. */
static inline void hetero_launch_both(struct sched *s, struct hetero *h, int npu, int igpu)
{
    (void)hetero_launch(s, h, npu, true, UINT32_MAX, YIELD_PASS);
    (void)hetero_launch(s, h, igpu, false, UINT32_MAX, YIELD_PASS);
    /* The op ends after both shares, so rows without a launch must be planned. */
    SIM_ASSERT(h->pass == NULL || h->planned_op != h->pass->op + 1 ||
               h->npu_rows + h->igpu_rows == h->pass->rows_todo);
}

/* Handles the end of a launch. Returns whether it belongs to this prefill. Rows left by a stopped
 * launch are planned again when the op has no launch. */
static inline bool hetero_ended(struct hetero *h, const struct launch *l)
{
    if (h->on_npu == l) {
        h->on_npu = NULL;
    } else if (h->on_igpu == l) {
        h->on_igpu = NULL;
    } else {
        return false;
    }
    if (l->outcome != LAUNCH_OUTCOME_DONE) {
        h->planned_op = 0;
        h->npu_rows = 0;
        h->igpu_rows = 0;
    }
    SIM_ASSERT(l->state == LAUNCH_STATE_ENDED && l->pass == h->pass && hetero_ok(h));
    return true;
}
