/* Chooses the next prompt of agent-xpu-v2: order, preemption, ageing (B.2, B.4, B.8). */
#include "policies/agent_xpu_v2/agent_xpu_v2.h"

/* Frees memory for a reactive prompt: evicts the last of the proactive sequences that wait to
 * decode, else cancels a suspended prefill. The last in the queue came back from a batch last, so
 * it is not always the newest request (as in free_kv). */
static bool make_room(struct sched *s, struct axpu *a)
{
    const struct request *r = a->decode_be.q.tail;
    if (flash_writes(&a->flash)) {
        return false; /* memory will be free soon */
    }
    if (r != NULL && axpu_give_up(s, a, r)) {
        return true;
    }
    for (uint32_t i = a->n_suspended; i-- > 0;) {
        struct axpu_prefill *f = &a->suspended[i];
        /* A prefill whose kernel still runs can be cancelled after that. */
        if (f->pass->state == PASS_STATE_READY && sched_pass_cancel(s, f->pass) == 0) {
            if (f->request->state == REQUEST_STATE_QUEUED) { /* unless its user gave up */
                axpu_wait(a, f->request, true);
            } else {
                axpu_forget(a, f->request);
            }
            a->suspended[i] = a->suspended[--a->n_suspended];
            return true;
        }
    }
    return false;
}

static bool start(struct sched *s, struct axpu *a, struct axpu_prefill *f, const struct request *r)
{
    struct segment seg = {
        .request = r, .role = SEGMENT_PREFILL, .n_tokens = request_prefill_left(r)};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1};
    struct pass *p;
    int rc = sched_pass_form(s, &spec, &p);
    while (rc == -ENOMEM && r->cls == REQUEST_CLASS_REACTIVE && make_room(s, a)) {
        rc = sched_pass_form(s, &spec, &p);
    }
    if (rc != 0) {
        return false;
    }
    axpu_leave(a, r);
    axpu_prefill_clear(f);
    f->request = r;
    f->pass = p;
    /* Decided once, at the start: a kernel that is compiled later is not used by this pass (B.6).
     */
    f->npu_attention = axpu_warmup_take(s, a, r);
    return true;
}

static void resume(struct sched *s, struct axpu *a, struct axpu_prefill *f, uint32_t i)
{
    *f = a->suspended[i];
    for (; i + 1 < a->n_suspended; i++) {
        a->suspended[i] = a->suspended[i + 1];
    }
    a->n_suspended--;
    f->plan = AXPU_PLAN_NONE;
    /* Use a kernel that was compiled while it waited, or the one it had. */
    f->npu_attention = axpu_warmup_take(s, a, f->request) || f->npu_attention;
}

/* The oldest aged request of the proactive queue, or NULL. */
static const struct request *oldest_aged(const struct axpu *a)
{
    const struct request *r = order_first(&a->by_age);
    return r != NULL && axpu_is_aged(r) ? r : NULL;
}

/* The shortest proactive prompt that may start while reactive requests decode: its attention is
 * compiled, so that it does not use the iGPU, or it has waited long enough. O(n). */
static const struct request *next_warm(const struct sched *s, const struct axpu *a)
{
    const struct request *best[2] = {NULL, NULL}; /* [has a kernel] */
    for (const struct request *r = a->prefill_be.q.head; r != NULL; r = reqq_next(r)) {
        bool warm = axpu_warmup_has(a, r);
        const struct request *b = best[warm];
        bool may = warm || s->now_ns - r->arrival_ns >= a->warm_ns;
        if (may && (b == NULL || request_prefill_left(r) < request_prefill_left(b))) {
            best[warm] = r;
        }
    }
    return best[1] != NULL ? best[1] : best[0];
}

/* The first prompt of a queue, O(1), or the shortest, O(n). */
static const struct request *next_of(const struct sched *s, const struct axpu *a,
                                     const struct reqq *q)
{
    if (q == &a->prefill_be.q && a->warm_ns > 0 && axpu_reactive_decodes(a)) {
        return next_warm(s, a);
    }
    const struct request *next = q->head;
    int64_t which = param_int(s, AXPU_SHORTEST);
    bool first = which == AXPU_SHORTEST_NONE || next == NULL ||
                 (which == AXPU_SHORTEST_REACTIVE && next->cls != REQUEST_CLASS_REACTIVE);
    for (const struct request *r = next; r != NULL && !first; r = reqq_next(r)) {
        next = request_prefill_left(r) < request_prefill_left(next) ? r : next;
    }
    return next;
}

static void choose_current(struct sched *s, struct axpu *a)
{
    if (!reqq_empty(&a->prefill_rt.q)) {
        /* Even without memory: no proactive prompt may overtake a reactive one that waits for KV.
         */
        (void)start(s, a, &a->current, next_of(s, a, &a->prefill_rt.q));
        return;
    }
    const struct request *aged = oldest_aged(a);
    if (a->n_suspended > 0) {
        bool buffer = a->n_suspended < (uint32_t)param_int(s, AXPU_SUSPENDED);
        if (!(buffer && aged != NULL && request_before(aged, a->suspended[0].request))) {
            if (a->suspended[0].pass->n_launches == 0) {
                resume(s, a, &a->current, 0);
            }
            return;
        }
    }
    const struct request *r = aged != NULL ? aged : next_of(s, a, &a->prefill_be.q);
    if (r != NULL && !flash_waits(&a->flash)) {
        (void)start(s, a, &a->current, r);
    }
}

/* Stops a proactive prefill for a waiting reactive request, as `preempt` allows. */
static void preempt_current(struct sched *s, struct axpu *a)
{
    struct axpu_prefill *f = &a->current;
    enum axpu_preempt how = (enum axpu_preempt)param_int(s, AXPU_PREEMPT);
    if (reqq_empty(&a->prefill_rt.q) || axpu_is_reactive(f) || how == AXPU_PREEMPT_NONE ||
        a->n_suspended >= (uint32_t)param_int(s, AXPU_SUSPENDED) || f->pass->op == f->pass->n_ops) {
        return;
    }
    if (how == AXPU_PREEMPT_LAYER) {
        bool boundary = f->pass->n_launches == 0 && f->pass->op % f->pass->layer.n == 0 &&
                        f->pass->rows_todo == pass_op_rows(f->pass, f->pass->op);
        if (!boundary) {
            return;
        }
    }
    axpu_stop(s, f->on_npu);
    axpu_stop(s, f->on_igpu);
    /* Suspend it now, although its kernel still runs: the reactive prompt gets the other device at
     * once, and this one when the kernel ends. */
    a->suspended[a->n_suspended++] = *f;
    axpu_prefill_clear(f);
}

/* B.8: during a reactive prefill, the oldest aged proactive prompt gets the iGPU. It needs the only
 * proactive activation buffer, so a suspended prefill goes first. */
static void choose_aged(struct sched *s, struct axpu *a)
{
    if (a->aged.request != NULL || !axpu_is_reactive(&a->current)) {
        return;
    }
    if (a->n_suspended > 0) {
        if (axpu_is_aged(a->suspended[0].request) && a->suspended[0].pass->n_launches == 0) {
            resume(s, a, &a->aged, 0);
            a->aged.igpu_only = true;
        }
        return;
    }
    const struct request *r = oldest_aged(a);
    if (r != NULL && start(s, a, &a->aged, r)) {
        a->aged.igpu_only = true;
    }
}

void axpu_prefill_choose(struct sched *s, struct axpu *a)
{
    if (a->current.request != NULL) {
        preempt_current(s, a);
    }
    if (a->current.request == NULL && a->aged.request != NULL && reqq_empty(&a->prefill_rt.q)) {
        a->current = a->aged; /* without a reactive prefill it is the serial one */
        a->current.igpu_only = false;
        axpu_prefill_clear(&a->aged);
    }
    if (a->current.request == NULL) {
        choose_current(s, a);
    }
    choose_aged(s, a);
}
