/* Placement of prefill kernels of agent-xpu-v1 (A.1, A.5, A.8): the eager default mapping, the
 * elastic split of reactive prefill, load balancing, and windows that a reactive request leaves
 * open. */
#include "policies/agent_xpu_v1/agent_xpu_v1.h"

int64_t v1_busy_for_ns(const struct sched *s, const struct v1 *v, int device)
{
    const struct v1_active *a = &v->active[device];
    if (a->launch == NULL) {
        return 0;
    }
    bool runs = a->launch->state == LAUNCH_STATE_RUNNING;
    /* A launch that waits for its lead has all of its time left. */
    int64_t end = (runs ? a->launch->start_ns : s->now_ns) + a->t_ns;
    return end > s->now_ns ? end - s->now_ns : 0;
}

/* argmin over m of max(NPU time of m chunks, iGPU time of the rest); ties to more NPU. */
static uint32_t best_split(struct sched *s, const struct v1 *v, struct v1_context *c,
                           enum op_kind op, uint32_t rows)
{
    const struct work_shape *w = &c->h.pass->shape;
    uint32_t best = 0;
    int64_t best_ns = INT64_MAX;
    if (c->split[op].rows == rows) {
        return c->split[op].on_npu;
    }
    for (uint32_t m = 0; m <= rows / v->chunk; m++) {
        int64_t npu = cost_estimate(s, w, op, v->npu, m * v->chunk).t_ns;
        int64_t igpu = cost_estimate(s, w, op, v->igpu, rows - m * v->chunk).t_ns;
        int64_t both = npu > igpu ? npu : igpu;
        if (both <= best_ns) {
            best_ns = both;
            best = m * v->chunk;
        }
    }
    c->split[op] = (struct v1_split){rows, best};
    return best;
}

/* Rows for the NPU, of `rows` of an op. */
static uint32_t npu_rows(struct sched *s, const struct v1 *v, const struct request *r,
                         enum op_kind op, uint32_t rows)
{
    if (op != OP_QKV && op != OP_FFN) {
        return 0;
    }
    if (r == v->aged) {
        return 0; /* an aged prefill has the iGPU */
    }
    if (r == v->rt && v->aged != NULL) {
        return rows; /* so the reactive one has only the NPU: its margin is padded */
    }
    bool elastic = r == v->rt && param_bool(s, V1_ELASTIC) && !v1_reactive_decodes(v);
    return elastic ? best_split(s, v, v1_context(r), op, rows) : rows / v->chunk * v->chunk;
}

void v1_place(struct sched *s, struct v1 *v, const struct request *r)
{
    struct v1_context *c = v1_context(r);
    struct hetero *h = &c->h;
    if (c->elastic_igpu && h->igpu_rows > 0 && h->on_igpu == NULL && v1_is_idle(v, v->npu)) {
        h->planned_op = 0; /* "and back" (A.8): the NPU is free first */
    }
    if (!hetero_at_boundary(h)) {
        return;
    }
    /* A device is avoided for the op that hung there, not for the rest of the prefill. */
    if (c->avoid_op != h->pass->op + 1) {
        c->avoid = 0;
        c->avoid_op = h->pass->op + 1;
    }
    uint32_t rows = h->pass->rows_todo;
    uint32_t npu = npu_rows(s, v, r, pass_op_kind(h->pass, h->pass->op), rows);
    if (hetero_is_token_level(h->pass)) {
        npu = (c->avoid & (1u << v->npu)) != 0 ? 0 : npu;
        npu = (c->avoid & (1u << v->igpu)) != 0 ? rows : npu;
    }
    c->elastic_igpu = false;
    hetero_plan(s, h, npu);
}

/* Time of an op of the reactive prefill on the device other than `device`. *uses: whether it needs
 * `device`, too. */
static int64_t other_ns(struct sched *s, const struct v1 *v, uint32_t op, int device, bool *uses)
{
    const struct pass *p = v1_context(v->rt)->h.pass;
    enum op_kind kind = pass_op_kind(p, op);
    uint32_t rows = pass_op_rows(p, op);
    uint32_t on_npu = npu_rows(s, v, v->rt, kind, rows);
    bool npu = device == v->npu;
    *uses = npu ? on_npu > 0 : on_npu < rows;
    return cost_estimate(s, &p->shape, kind, npu ? v->igpu : v->npu, rows).t_ns;
}

int64_t v1_window_ns(struct sched *s, struct v1 *v, int device)
{
    if (v->rt == NULL) {
        bool taken = device == v->igpu && v1_reactive_decodes(v);
        return taken ? 0 : TIME_NEVER_NS;
    }
    const struct hetero *h = &v1_context(v->rt)->h;
    const struct pass *p = h->pass;
    bool npu = device == v->npu;
    if ((npu ? h->npu_rows : h->igpu_rows) > 0) {
        return 0;
    }
    /* A shortcut for the loop below. */
    if (npu && npu_rows(s, v, v->rt, OP_QKV, p->shape.rows) == 0 &&
        npu_rows(s, v, v->rt, OP_FFN, p->shape.rows) == 0) {
        return TIME_NEVER_NS; /* a prompt below one chunk */
    }
    /* The window lasts for the rest of the present op on the other device, and for ops that do not
     * need this one. */
    int other = npu ? v->igpu : v->npu;
    int64_t t = v1_busy_for_ns(s, v, other);
    uint32_t waiting = npu ? h->igpu_rows : h->npu_rows;
    if (p->op < p->n_ops) {
        t += cost_estimate(s, &p->shape, pass_op_kind(p, p->op), other, waiting).t_ns;
    }
    for (uint32_t op = p->op + 1; op < p->n_ops; op++) {
        bool uses;
        int64_t ns = other_ns(s, v, op, device, &uses);
        if (uses) {
            return t;
        }
        t += ns;
    }
    return npu ? TIME_NEVER_NS : t; /* after the prefill it decodes on the iGPU */
}

void v1_balance(struct sched *s, struct v1 *v, const struct request *r)
{
    struct v1_context *c = v1_context(r);
    struct hetero *h = &c->h;
    /* Decode has no other device than the iGPU (A.1): prefill does not take it from a batch that
     * waits, here least of all, where it is only a gain in time. */
    bool decode_waits =
        v->decode != NULL || !reqq_empty(&v->decode_rt.q) || !reqq_empty(&v->decode_be.q);
    if (!param_bool(s, V1_BALANCE) || h->pass == NULL || h->npu_rows == 0 || h->on_npu != NULL ||
        h->on_igpu != NULL || v1_is_idle(v, v->npu) || !v1_is_idle(v, v->igpu) || decode_waits ||
        v->igpu_busy_frac > param_number(s, V1_IGPU_CAP)) {
        return;
    }
    const struct pass *p = h->pass;
    enum op_kind op = pass_op_kind(p, p->op);
    struct estimate on_npu = cost_estimate(s, &p->shape, op, v->npu, h->npu_rows);
    struct estimate on_igpu = cost_estimate(s, &p->shape, op, v->igpu, h->npu_rows + h->igpu_rows);
    /* slow_x: demand of the pair beyond the peak */
    double over = v1_pressure(s, v) + on_igpu.bytes_per_s / s->machine->ddr_peak_bytes_per_s - 1.0;
    double igpu_ns = (double)on_igpu.t_ns * (1.0 + (over > 0.0 ? over : 0.0));
    double npu_ns = (double)(v1_busy_for_ns(s, v, v->npu) + on_npu.t_ns);
    if (igpu_ns < (1.0 - param_number(s, V1_BALANCE_GAIN)) * npu_ns) {
        h->igpu_rows += h->npu_rows;
        h->npu_rows = 0;
        c->elastic_igpu = true;
    }
}
