/* Invariants of agent-xpu-v2 at the begin and end of `schedule`, checked by test builds only
 * (SIM_ASSERT). */
#include "policies/agent_xpu_v2/agent_xpu_v2.h"

static bool is_of(const struct request *r, enum request_class cls, enum request_state state)
{
    return r->cls == cls && r->state == state && r->pass == NULL;
}

/* A waiting proactive request is in `young` until it is promoted. */
static bool age_holds(const struct axpu *a, const struct request *r, uint32_t *promoted)
{
    *promoted += axpu_is_aged(r);
    return order_has(&a->young, r) != axpu_is_aged(r);
}

/* Prompts are in the queue of their class, and those before `uncompiled` have a kernel. The count
 * of the first one's key in `waiting` is right. */
static bool prompts_hold(struct sched *s, const struct axpu *a, const struct axpu_queue *w,
                         enum request_class cls, uint32_t *promoted)
{
    bool compiled = w->uncompiled != w->q.head;
    bool found = w->uncompiled == NULL;
    for (const struct request *r = w->q.head; r != NULL; r = reqq_next(r)) {
        found = found || r == w->uncompiled;
        compiled = compiled && r != w->uncompiled;
        uint32_t k = axpu_kernel_of(r);
        struct resident_key key = {RESIDENT_COMPILED_ATTENTION, k & AXPU_KERNEL_TOKENS, r->model};
        bool proactive = cls == REQUEST_CLASS_PROACTIVE;
        if (!is_of(r, cls, REQUEST_STATE_QUEUED) || order_has(&a->by_age, r) != proactive ||
            (proactive && !age_holds(a, r, promoted)) ||
            (compiled && sched_resident_state(s, key) == RESIDENT_ABSENT) ||
            (axpu_uses_kernel(a, r) && !axpu_waits_for(a, k))) {
            return false;
        }
    }
    return found;
}

/* Sequences are queued by readiness, and proactive ones in the order for their age and last batch.
 */
static bool decodes_hold(const struct sched *s, const struct axpu *a, const struct axpu_decode *w,
                         enum request_class cls, uint32_t *promoted)
{
    uint64_t next = 0;
    uint32_t bucket = (uint32_t)param_int(s, AXPU_LENGTH_BUCKET);
    double sign = a->piggyback == AXPU_PIGGYBACK_SHORT ? 1.0 : -1.0;
    for (const struct request *r = w->q.head; r != NULL; r = reqq_next(r)) {
        const struct axpu_request *x = axpu_request(r);
        bool stayed = x->batch == a->n_batches;
        const struct order *of = x->promoted ? &a->aged_be : stayed ? &a->stayed_be : &a->other_be;
        double key = of == &a->other_be ? sign * (request_length(r) / bucket) : (double)x->ready;
        if (!is_of(r, cls, REQUEST_STATE_DECODE) || x->ready < next ||
            x->by_arrival.of != &w->by_arrival || x->joined > x->batch || x->batch > a->n_batches) {
            return false;
        }
        next = x->ready + 1;
        if (cls == REQUEST_CLASS_PROACTIVE &&
            (x->rank.of != of || x->rank.key != key || !age_holds(a, r, promoted))) {
            return false;
        }
    }
    return next <= a->n_ready && w->by_arrival.n == w->q.n;
}

static bool is_on(const struct launch *l, const struct pass *p, int device)
{
    return l == NULL || (l->pass == p && l->device == device);
}

/* A prefill has its own pass and launches, and a plan for all rows that are left. */
static bool prefill_holds(const struct axpu *a, const struct axpu_prefill *f)
{
    const struct pass *p = f->pass;
    uint32_t n = (f->on_npu != NULL ? 1u : 0u) + (f->on_igpu != NULL ? 1u : 0u);
    if (f->request == NULL) {
        return p == NULL && n == 0 && f->npu_rows + f->igpu_rows == 0;
    }
    bool planned = f->plan == AXPU_PLAN_MADE;
    return p != NULL && p->n_segments == 1 && p->segments[0].request == f->request &&
           reqq_of(f->request) == NULL && p->n_launches == n && is_on(f->on_npu, p, a->npu) &&
           is_on(f->on_igpu, p, a->igpu) &&
           f->npu_rows + f->igpu_rows == (planned ? p->rows_todo : 0) && f->igpu_late_ns >= 0 &&
           (!planned || f->npu_attention || f->igpu_only || f->npu_rows % a->chunk == 0 ||
            f->igpu_rows == 0);
}

static bool prefills_hold(const struct sched *s, const struct axpu *a)
{
    bool fine = prefill_holds(a, &a->current) && prefill_holds(a, &a->aged) &&
                !a->current.igpu_only && a->aged.igpu_only == (a->aged.request != NULL) &&
                !axpu_is_reactive(&a->aged) &&
                a->n_suspended <= (uint32_t)param_int(s, AXPU_SUSPENDED);
    for (uint32_t i = 0; i < a->n_suspended; i++) {
        const struct axpu_prefill *f = &a->suspended[i];
        fine = fine && f->request != NULL && prefill_holds(a, f) && !axpu_is_reactive(f) &&
               !f->igpu_only;
    }
    return fine;
}

static bool decode_holds(const struct sched *s, const struct axpu *a)
{
    const struct launch *l = a->decode_launch;
    if (a->decode == NULL) {
        return l == NULL && !a->verify_on_npu;
    }
    bool npu = param_int(s, AXPU_SPECULATE) == AXPU_SPECULATE_NPU;
    return a->decode->n_launches == (l != NULL) &&
           (is_on(l, a->decode, a->igpu) || (npu && is_on(l, a->decode, a->npu))) &&
           (!a->verify_on_npu || npu);
}

/* decode_hold: a reactive memory-bound kernel runs on the NPU, and a proactive batch leaves the
 * iGPU. */
static bool hold_holds(const struct axpu *a)
{
    const struct launch *l = a->decode_launch;
    return !a->decode_hold ||
           (axpu_is_reactive(&a->current) && a->current.on_npu != NULL &&
            (l == NULL || l->device != a->igpu || a->decode->has_reactive || l->stop_requested));
}

/* Kept kernels are READY, unique, and within the limit. */
static bool kernels_hold(struct sched *s, const struct axpu *a)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < AXPU_MAX_CACHE; i++) {
        uint32_t k = a->cache[i].prompt_tokens;
        for (uint32_t j = 0; j < i && k != 0; j++) {
            if (a->cache[j].prompt_tokens == k) {
                return false;
            }
        }
        struct resident_key key = {RESIDENT_COMPILED_ATTENTION, k & AXPU_KERNEL_TOKENS,
                                   k / (AXPU_KERNEL_TOKENS + 1)};
        if (k != 0 &&
            (sched_resident_state(s, key) != RESIDENT_READY || a->cache[i].used_ns > s->now_ns)) {
            return false;
        }
        n += k != 0;
    }
    return n <= (uint32_t)param_int(s, AXPU_CACHE_ENTRIES);
}

bool axpu_is_consistent(struct sched *s, const struct axpu *a)
{
    uint32_t promoted = 0;
    bool fine = prompts_hold(s, a, &a->prefill_rt, REQUEST_CLASS_REACTIVE, &promoted) &&
                prompts_hold(s, a, &a->prefill_be, REQUEST_CLASS_PROACTIVE, &promoted) &&
                decodes_hold(s, a, &a->decode_rt, REQUEST_CLASS_REACTIVE, &promoted) &&
                decodes_hold(s, a, &a->decode_be, REQUEST_CLASS_PROACTIVE, &promoted) &&
                a->by_age.n == a->prefill_be.q.n &&
                a->aged_be.n + a->stayed_be.n + a->other_be.n == a->decode_be.q.n;
    uint32_t most = (uint32_t)param_int(s, AXPU_AGED_MAX);
    return fine && promoted <= a->n_promoted && (most == 0 || a->n_promoted <= most) &&
           prefills_hold(s, a) && decode_holds(s, a) && hold_holds(a) && kernels_hold(s, a);
}

/* If a prefill still wants the iGPU at the end of a call, the device is busy. Then decode was asked
 * to leave it (B.4), or has not begun on a device that cannot withdraw launches. */
static bool has_asked(struct sched *s, const struct axpu *a, const struct axpu_prefill *f)
{
    const struct launch *l = a->decode_launch;
    bool wants = f->request != NULL && f->igpu_rows > 0 && f->on_igpu == NULL &&
                 f->igpu_not_before_ns <= s->now_ns;
    bool guarded = wants && param_bool(s, AXPU_GUARD) && !axpu_is_reactive(f) &&
                   a->decode != NULL && a->decode->has_reactive && a->decode->op < a->decode->n_ops;
    bool waits = !param_bool(s, AXPU_PREFILL_FIRST) && axpu_decode_busy(a) && !a->decode_short;
    if (!wants || guarded || waits) {
        return true;
    }
    bool behind = l != NULL && l->state == LAUNCH_STATE_QUEUED &&
                  !s->machine->devices[l->device].can_withdraw;
    return sched_device_free_slots(s, (uint8_t)a->igpu) == 0 &&
           (l == NULL || l->device != a->igpu || l->stop_requested || behind);
}

bool axpu_has_decided(struct sched *s, const struct axpu *a)
{
    const struct axpu_prefill *f = &a->current;
    bool waits = !reqq_empty(&a->prefill_rt.q);
    bool first = !waits || axpu_is_reactive(f) || f->request == NULL ||
                 param_int(s, AXPU_PREEMPT) != AXPU_PREEMPT_KERNEL ||
                 a->n_suspended == (uint32_t)param_int(s, AXPU_SUSPENDED) ||
                 f->pass->op == f->pass->n_ops;
    bool next_to = a->aged.request == NULL || axpu_is_reactive(f) || (f->request == NULL && waits);
    bool unplanned = f->request != NULL && f->pass->n_launches == 0 &&
                     f->pass->op < f->pass->n_ops && f->plan != AXPU_PLAN_MADE;
    bool compiles = a->compiling_tokens == 0 ||
                    sched_resident_state(
                        s, (struct resident_key){RESIDENT_COMPILED_ATTENTION,
                                                 a->compiling_tokens & AXPU_KERNEL_TOKENS,
                                                 a->compiling_tokens / (AXPU_KERNEL_TOKENS + 1)}) ==
                        RESIDENT_PENDING;
    return first && next_to && !unplanned && compiles && has_asked(s, a, f) &&
           has_asked(s, a, &a->aged);
}
