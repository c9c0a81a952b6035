/* Which prefills agent-xpu-v1 has in progress (A.3, A.4, A.8):
 *
 * - the reactive one;
 * - the primary: one proactive prefill that owns what the reactive one leaves;
 * - at most one that is promoted for its age;
 * - a pool of preempted and fresh ones, whose kernels fill slack. */
#include "policies/agent_xpu_v1/agent_xpu_v1.h"
#include "policies/common/blocks.h"

/* The shape of the request's pass, or of the pass that it would have. */
static struct work_shape shape_of(const struct sched *s, const struct request *r)
{
    if (v1_context(r)->h.pass != NULL) {
        return v1_context(r)->h.pass->shape;
    }
    uint32_t n = request_prefill_left(r);
    struct work_shape w = {.logit_rows = 1, .prefill_rows = n, .model = r->model};
    work_shape_add(&w, sched_model(s, r->model)->sliding_window, r->kv_tokens, n);
    return w;
}

int64_t v1_etc_ns(struct sched *s, const struct v1 *v, const struct request *r)
{
    struct v1_context *c = v1_context(r);
    const struct llm *llm = sched_model(s, r->model);
    const struct layer_ops *layer = &llm->layer;
    struct work_shape w = shape_of(s, r);
    if (c->etc_rows != w.rows || c->etc_kv_tokens != r->kv_tokens) {
        c->etc_rows = w.rows;
        c->etc_kv_tokens = r->kv_tokens;
        c->etc_ns[OP_HEAD] = cost_estimate(s, &w, OP_HEAD, v->igpu, 1).t_ns;
        for (uint32_t k = 0; k < layer->n; k++) {
            enum op_kind op = layer->kind[k];
            uint32_t npu_rows = op == OP_MHA ? 0 : w.rows / v->chunk * v->chunk;
            c->etc_ns[op] = cost_estimate(s, &w, op, v->npu, npu_rows).t_ns +
                            cost_estimate(s, &w, op, v->igpu, w.rows - npu_rows).t_ns;
        }
    }
    uint32_t cursor = c->h.pass == NULL ? 0 : c->h.pass->op;
    int64_t sum = c->etc_ns[OP_HEAD];
    for (uint32_t k = 0; k < layer->n && cursor < layer->n * llm->n_layers; k++) {
        uint32_t left = llm->n_layers - cursor / layer->n - (cursor % layer->n > k ? 1 : 0);
        sum += c->etc_ns[layer->kind[k]] * left;
    }
    return sum;
}

/* Updates the key of a fresh request. Returns whether it changed. */
static bool moves(struct sched *s, struct v1 *v, const struct request *r)
{
    double key = (double)v1_etc_ns(s, v, r);
    if (order_node(&v->fresh, r)->key == key) {
        return false;
    }
    order_rekey(&v->fresh, r, key);
    return true;
}

/* Updates fresh requests that have found a cached prefix, or lost it, so that they have less or
 * more to compute. */
static void look_up(struct sched *s, struct v1 *v)
{
    if (v->reuse_changes == s->reuse_changes) {
        return;
    }
    v->reuse_changes = s->reuse_changes;
    for (const struct request *r = v->be_queue.q.head; r != NULL; r = reqq_next(r)) {
        if (r->kv_tokens != v1_context(r)->etc_kv_tokens) {
            (void)moves(s, v, r);
        }
    }
}

const struct request *v1_shortest_fresh(struct sched *s, struct v1 *v)
{
    look_up(s, v); /* a pass that was formed since may have taken the memory of cached prefixes */
    /* A request whose KV gap_evict_last dropped has more to compute than its key says. */
    const struct request *r = order_first(&v->fresh);
    while (r != NULL && moves(s, v, r)) {
        r = order_first(&v->fresh);
    }
    return r;
}

void v1_prefill_wait(struct sched *s, struct v1 *v, const struct request *r)
{
    v1_enter(v, v1_reactive(r) ? &v->rt_queue : &v->be_queue, r);
    if (v1_reactive(r)) {
        return;
    }
    order_add(&v->fresh, r, (double)v1_etc_ns(s, v, r));
    order_add(&v->pending, r, (double)v1_context(r)->pending_since_ns);
    if (request_prefill_target(r) >= v->chunk) {
        order_add(&v->whole_chunk, r, 0.0);
    }
}

static bool v1_is_aged(const struct sched *s, const struct request *r)
{
    return param_bool(s, V1_AGEING) &&
           s->now_ns - r->arrival_ns >= units_ns_from_s(param_number(s, V1_T_AGE_S));
}

/* ---- memory (the paper assumes enough, 6.5) ---- */

int64_t v1_context_ns(struct sched *s, uint32_t model, uint32_t tokens)
{
    const struct v1 *v = s->state;
    return cost_context_ns(s, model, tokens, (uint8_t)v->npu, (uint8_t)v->igpu);
}

/* Cancels the pass of a context, unless a kernel of it still runs. Its request is fresh again. */
static bool cancel_context(struct sched *s, struct v1 *v, const struct request *r)
{
    struct pass *p = v1_context(r)->h.pass;
    if (p->state != PASS_STATE_READY || sched_pass_cancel(s, p) != 0) {
        return false;
    }
    v->primary = v->primary == r ? NULL : v->primary;
    v->aged = v->aged == r ? NULL : v->aged;
    v1_leave(v, r);
    /* Its work is lost, but pending_since_ns is kept. */
    *v1_context(r) = (struct v1_context){.pending_since_ns = v1_context(r)->pending_since_ns,
                                         .refused_ns = TIME_NEVER_NS};
    if (r->state != REQUEST_STATE_SHED) {
        if (r->kv_tokens > 0) {
            (void)sched_kv_move(s, kv_of(r), KV_NOWHERE);
        }
        v1_prefill_wait(s, v, r);
    }
    return true;
}

/* Evicts the youngest sequence in decode, which is prefilled again later, or read back from flash.
 */
static bool evict_decoding(struct sched *s, struct v1 *v, const struct v1_queue *w)
{
    const struct request *r = w->q.tail;
    /* The only sequence in decode stays, because its end frees memory for good. */
    if (r == NULL || v->decode_be.q.n + v->decode_rt.q.n < 2) {
        return false;
    }
    if (flash_takes(s, &v->flash, r, v1_context_ns)) {
        v1_leave(v, r);
        return true;
    }
    if (sched_kv_move(s, kv_of(r), KV_NOWHERE) != 0) {
        return false;
    }
    v1_leave(v, r);
    *v1_context(r) =
        (struct v1_context){.pending_since_ns = s->now_ns, .refused_ns = TIME_NEVER_NS};
    v1_prefill_wait(s, v, r);
    return true;
}

bool v1_make_room(struct sched *s, struct v1 *v, bool for_decode)
{
    v->short_epoch = s->epoch;
    if (flash_writes(&v->flash)) {
        return false; /* memory will be free soon */
    }
    /* Prefills first, the last begun first. Sequences in decode would have to recompute the KV of
     * their answers, too. */
    for (const struct request *r = v->contexts.tail; r != NULL; r = reqq_prev(r)) {
        if (cancel_context(s, v, r)) {
            return true;
        }
    }
    return evict_decoding(s, v, &v->decode_be) ||
           (for_decode && evict_decoding(s, v, &v->decode_rt));
}

bool v1_nothing_holds(const struct v1 *v)
{
    return v->rt == NULL && v->decode == NULL && reqq_empty(&v->contexts) &&
           reqq_empty(&v->decode_rt.q) && reqq_empty(&v->decode_be.q);
}

uint64_t v1_growth_tokens(const struct v1 *v)
{
    uint64_t sequences = (v->decode == NULL ? 0 : v->decode->n_segments) + v->decode_rt.q.n +
                         (uint64_t)v->decode_be.q.n;
    return 64 * sequences;
}

/* A proactive prefill begins only after KV on flash was read back. */
static bool may_begin(struct sched *s, const struct v1 *v, const struct request *r)
{
    uint64_t need = blocks_prompt_tokens(s, r) + v1_growth_tokens(v);
    return !flash_waits(&v->flash) &&
           (v1_nothing_holds(v) || (v->short_epoch != s->epoch && need <= sched_kv_free_tokens(s)));
}

bool v1_prefill_start(struct sched *s, struct v1 *v, const struct request *r)
{
    struct segment seg = {
        .request = r, .role = SEGMENT_PREFILL, .n_tokens = request_prefill_left(r)};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1};
    struct pass *p = NULL;
    if (!v1_reactive(r) && !may_begin(s, v, r)) {
        return false;
    }
    /* Only a reactive prefill evicts others; a proactive one waits for memory. */
    int rc = sched_pass_form(s, &spec, &p);
    while (rc == -ENOMEM && v1_reactive(r) && v1_make_room(s, v, false)) {
        rc = sched_pass_form(s, &spec, &p);
    }
    if (rc != 0) {
        return false;
    }
    v1_leave(v, r);
    if (!v1_reactive(r)) {
        reqq_push(&v->contexts, r);
    }
    hetero_begin(&v1_context(r)->h, p);
    memset(v1_context(r)->split, 0, sizeof v1_context(r)->split);
    return true;
}

void v1_prefill_done(struct v1 *v, const struct request *r)
{
    v1_leave(v, r);
    v->rt = v->rt == r ? NULL : v->rt;
    v->primary = v->primary == r ? NULL : v->primary;
    v->aged = v->aged == r ? NULL : v->aged;
    hetero_clear(&v1_context(r)->h);
}

/* ---- choosing ---- */

/* A.4: requests pending longer than T_starve first, the longest of them first; then the smallest
 * estimated time to completion. Preempted and fresh requests compete in one list [S]. */
static bool resumes_before(struct sched *s, const struct v1 *v, const struct request *x,
                           const struct request *y)
{
    if (param_int(s, V1_RESUME) == V1_RESUME_FIFO) {
        return request_before(x, y);
    }
    int64_t limit = v1_starve_ns(s);
    int64_t px = v1_context(x)->pending_since_ns;
    int64_t py = v1_context(y)->pending_since_ns;
    bool sx = s->now_ns - px > limit;
    bool sy = s->now_ns - py > limit;
    /* Starved prefills go in the order in which they became pending, not by size: "will be resumed
     * first" (6.2) must hold for the large ones too. */
    if (sx || sy) {
        return sx != sy ? sx : px != py ? px < py : request_before(x, y);
    }
    int64_t ex = v1_etc_ns(s, v, x);
    int64_t ey = v1_etc_ns(s, v, y);
    return ex != ey ? ex < ey : request_before(x, y);
}

static const struct request *next_primary(struct sched *s, struct v1 *v, bool with_fresh)
{
    const struct request *best = NULL;
    for (const struct request *r = v->contexts.head; r != NULL; r = reqq_next(r)) {
        if (r != v->aged && (best == NULL || resumes_before(s, v, r, best))) {
            best = r;
        }
    }
    if (!with_fresh || v->contexts.n >= (uint32_t)param_int(s, V1_CONTEXTS)) {
        return best;
    }
    /* Three fresh requests are enough candidates: the first to arrive, the longest pending one, and
     * the one with the smallest ETC. The first two may differ: an evicted sequence is pending only
     * since its eviction.
     */
    const struct request *fresh[] = {v->be_queue.q.head, order_first(&v->pending),
                                     v1_shortest_fresh(s, v)};
    for (int i = 0; i < 3; i++) {
        if (fresh[i] != NULL && (best == NULL || resumes_before(s, v, fresh[i], best))) {
            best = fresh[i];
        }
    }
    return best;
}

/* The oldest aged proactive prefill. */
static const struct request *oldest_aged(const struct sched *s, const struct v1 *v)
{
    const struct request *best = NULL;
    for (const struct request *r = v->contexts.head; r != NULL; r = reqq_next(r)) {
        if (v1_is_aged(s, r) && (best == NULL || request_before(r, best))) {
            best = r;
        }
    }
    const struct request *r = v->be_queue.q.head;
    bool room = v->contexts.n < (uint32_t)param_int(s, V1_CONTEXTS);
    if (room && r != NULL && v1_is_aged(s, r) && (best == NULL || request_before(r, best))) {
        best = r;
    }
    return best;
}

static void choose_reactive(struct sched *s, struct v1 *v)
{
    /* Without preemption (ablation) a proactive prefill that has begun runs to its end first. */
    bool blocked = !param_bool(s, V1_PREEMPT) && v->primary != NULL;
    if (v->rt != NULL || reqq_empty(&v->rt_queue.q) || blocked) {
        return;
    }
    const struct request *r = v->rt_queue.q.head;
    if (!v1_prefill_start(s, v, r)) {
        return;
    }
    v->rt = r;
    if (v->primary != NULL) {
        v1_context(v->primary)->pending_since_ns = s->now_ns; /* preempted now */
        v->primary = NULL;
    }
}

void v1_prefill_choose(struct sched *s, struct v1 *v)
{
    choose_reactive(s, v);
    if (v->rt != NULL) {
        const struct request *r = v->aged == NULL ? oldest_aged(s, v) : NULL;
        if (r != NULL && (v1_context(r)->h.pass != NULL || v1_prefill_start(s, v, r))) {
            v->aged = r;
        }
        return;
    }
    /* The promoted prefill continues as the primary. If ETC chose again, it could lose the iGPU at
     * the moment at which the reactive prefill ends. */
    if (v->primary == NULL && v->aged != NULL) {
        v->primary = v->aged;
    }
    v->aged = NULL;
    if (v->primary == NULL) {
        const struct request *r = next_primary(s, v, true);
        if (r != NULL && v1_context(r)->h.pass == NULL && !v1_prefill_start(s, v, r)) {
            r = next_primary(s, v, false); /* no memory for a fresh one */
        }
        v->primary = r;
    }
}
