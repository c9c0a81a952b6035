/* Waiting requests of agent-xpu-v2: prompts, sequences between two batches, ageing (B.8), eviction.
 */
#include "policies/agent_xpu_v2/agent_xpu_v2.h"
#include "policies/common/cost.h"

/* ---- prompts ---- */

/* All prompts enter and leave queues here, so that axpu_waits_for is one lookup. A prompt's length
 * does not change while it waits. */
void axpu_wait(struct axpu *a, const struct request *r, bool at_front)
{
    struct axpu_queue *w = r->cls == REQUEST_CLASS_REACTIVE ? &a->prefill_rt : &a->prefill_be;
    reqq_insert_after(&w->q, at_front ? NULL : w->q.tail, r);
    w->uncompiled = at_front || w->uncompiled == NULL ? r : w->uncompiled;
    if (w == &a->prefill_be) {
        order_add(&a->by_age, r, 0.0); /* arrival, then id */
    }
    if (axpu_uses_kernel(a, r)) {
        ++*(size_t *)map_add(&a->waiting, axpu_kernel_of(r));
    }
}

void axpu_leave(struct axpu *a, const struct request *r)
{
    struct axpu_queue *w = r->cls == REQUEST_CLASS_REACTIVE ? &a->prefill_rt : &a->prefill_be;
    if (reqq_of(r) == &w->q) {
        w->uncompiled = w->uncompiled == r ? reqq_next(r) : w->uncompiled;
        order_remove(&a->by_age, r);
        if (axpu_uses_kernel(a, r)) {
            --*(size_t *)map_add(&a->waiting, axpu_kernel_of(r));
        }
    }
    reqq_remove(r);
}

bool axpu_waits_for(const struct axpu *a, uint32_t kernel)
{
    const size_t *n = map_record(&a->waiting, kernel);
    return n != NULL && *n > 0;
}

/* ---- sequences ---- */

/* Adds a waiting proactive sequence to its order. */
static void rank(struct axpu *a, const struct request *r, uint32_t bucket)
{
    struct axpu_request *x = axpu_request(r);
    bool other = !x->promoted && x->batch != a->n_batches;
    order_remove(x->rank.of, r);
    double first = a->piggyback == AXPU_PIGGYBACK_SHORT ? 1.0 : -1.0;
    order_add(x->promoted ? &a->aged_be
              : other     ? &a->other_be
                          : &a->stayed_be,
              r, other ? first * (double)(request_length(r) / bucket) : (double)x->ready);
}

void axpu_decode_wait(struct sched *s, struct axpu *a, const struct request *r)
{
    bool reactive = r->cls == REQUEST_CLASS_REACTIVE;
    struct axpu_decode *w = reactive ? &a->decode_rt : &a->decode_be;
    reqq_push(&w->q, r);
    order_add(&w->by_arrival, r, 0.0);
    axpu_request(r)->ready = a->n_ready++;
    if (!reactive) {
        rank(a, r, (uint32_t)param_int(s, AXPU_LENGTH_BUCKET));
    }
}

void axpu_decode_leave(struct axpu *a, const struct request *r)
{
    struct axpu_request *x = axpu_request(r);
    struct axpu_decode *w = r->cls == REQUEST_CLASS_REACTIVE ? &a->decode_rt : &a->decode_be;
    if (reqq_of(r) == &w->q) {
        reqq_remove(r);
        order_remove(x->by_arrival.of, r);
        order_remove(x->rank.of, r);
    }
}

void axpu_decode_begun(struct sched *s, struct axpu *a)
{
    a->n_batches++;
    while (a->stayed_be.root != NULL) {
        rank(a, a->stayed_be.root, (uint32_t)param_int(s, AXPU_LENGTH_BUCKET));
    }
}

bool axpu_decode_busy(const struct axpu *a)
{
    return a->decode != NULL || !reqq_empty(&a->decode_rt.q) || !reqq_empty(&a->decode_be.q);
}

bool axpu_reactive_decodes(const struct axpu *a)
{
    return !reqq_empty(&a->decode_rt.q) || (a->decode != NULL && a->decode->has_reactive);
}

/* ---- age ---- */

/* B.8: promotes the oldest proactive requests above the age, up to the limit. A timer makes sure
 * that ageing is on time. */
void axpu_promote(struct sched *s, struct axpu *a)
{
    uint32_t most = (uint32_t)param_int(s, AXPU_AGED_MAX);
    while (most == 0 || a->n_promoted < most) {
        const struct request *r = order_first(&a->young);
        if (r == NULL) {
            return;
        }
        int64_t age_ns = a->age_ns;
        if (s->now_ns - r->arrival_ns < age_ns) {
            /* One timer for the next one, set once. */
            if (r->arrival_ns + age_ns != a->age_timer_ns) {
                a->age_timer_ns = r->arrival_ns + age_ns;
                (void)sched_set_timer(s, a->age_timer_ns);
            }
            return;
        }
        order_remove(&a->young, r);
        axpu_request(r)->promoted = true;
        a->n_promoted++;
        if (reqq_of(r) == &a->decode_be.q) {
            rank(a, r, 1); /* by readiness, regardless of length */
        }
    }
}

void axpu_forget(struct axpu *a, const struct request *r)
{
    struct axpu_request *x = axpu_request(r);
    order_remove(&a->young, r);
    a->n_promoted -= x->promoted;
    x->promoted = false;
}

/* ---- memory ---- */

int64_t axpu_context_ns(struct sched *s, uint32_t model, uint32_t tokens)
{
    const struct axpu *a = s->state;
    return cost_context_ns(s, model, tokens, (uint8_t)a->npu, (uint8_t)a->igpu);
}

bool axpu_give_up(struct sched *s, struct axpu *a, const struct request *r)
{
    bool flash = flash_takes(s, &a->flash, r, axpu_context_ns);
    if (!flash && sched_kv_move(s, kv_of(r), KV_NOWHERE) != 0) {
        return false;
    }
    axpu_decode_leave(a, r);
    if (!flash) {
        axpu_wait(a, r, true);
    }
    return true;
}
