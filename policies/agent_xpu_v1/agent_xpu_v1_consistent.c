/* Invariants of agent-xpu-v1 at the begin of `schedule`, checked by test builds only (SIM_ASSERT).
 */
#include "policies/agent_xpu_v1/agent_xpu_v1.h"

/* A queue has requests of its class and state that are in no pass, by arrival. */
static bool queue_holds(const struct v1_queue *w, bool reactive, enum request_state state)
{
    const struct request *before = NULL;
    uint32_t n = 0;
    for (const struct request *r = w->q.head; r != NULL; before = r, r = reqq_next(r), n++) {
        if (v1_reactive(r) != reactive || r->state != state || r->pass != NULL ||
            v1_context(r)->h.pass != NULL || (before != NULL && !request_before(before, r))) {
            return false;
        }
    }
    return n == w->q.n;
}

/* Fresh proactive requests are in `fresh` and `pending`, and the longer ones in `whole_chunk`. */
static bool fresh_hold(const struct v1 *v)
{
    uint32_t whole = 0;
    for (const struct request *r = v->be_queue.q.head; r != NULL; r = reqq_next(r)) {
        if (!order_has(&v->fresh, r) || !order_has(&v->pending, r)) {
            return false;
        }
        whole += request_prefill_target(r) >= v->chunk;
    }
    for (const struct request *r = order_first(&v->whole_chunk); r != NULL && whole > 0;
         r = order_next(&v->whole_chunk, r)) {
        whole--;
    }
    return whole == 0 && v->fresh.n == v->be_queue.q.n && v->pending.n == v->be_queue.q.n;
}

/* Each prefill that has begun has a live pass and is one of the three kinds. */
static bool prefills_hold(const struct v1 *v)
{
    bool primary = v->primary == NULL;
    bool aged = v->aged == NULL;
    for (const struct request *r = v->contexts.head; r != NULL; r = reqq_next(r)) {
        const struct pass *p = v1_context(r)->h.pass;
        primary = primary || v->primary == r;
        aged = aged || v->aged == r;
        if (p == NULL || v1_reactive(r) || p->segments[0].request != r || p->n_segments != 1) {
            return false;
        }
    }
    bool rt = v->rt == NULL || (v1_reactive(v->rt) && v1_context(v->rt)->h.pass != NULL);
    return rt && primary && aged && (v->rt == NULL || v->primary == NULL);
}

/* A device's launch belongs to the prefill or batch that `active` names. */
static bool devices_hold(const struct sched *s, const struct v1 *v)
{
    for (uint32_t d = 0; d < s->machine->n_devices; d++) {
        const struct v1_active *a = &v->active[d];
        if (a->launch == NULL) {
            continue;
        }
        const struct pass *p = a->request == NULL ? v->decode : v1_context(a->request)->h.pass;
        /* An aged request counts as reactive, too. */
        if (a->launch->device != d || a->launch->pass != p || p == NULL ||
            (a->request != NULL && v1_reactive(a->request) && !a->reactive)) {
            return false;
        }
        const struct hetero *h = a->request == NULL ? NULL : &v1_context(a->request)->h;
        if (h != NULL && (d == (uint32_t)v->npu ? h->on_npu : h->on_igpu) != a->launch) {
            return false;
        }
    }
    return v->igpu_busy_frac >= 0.0 && v->igpu_busy_frac <= 1.0;
}

bool v1_is_consistent(const struct sched *s, const struct v1 *v)
{
    return queue_holds(&v->rt_queue, true, REQUEST_STATE_QUEUED) &&
           queue_holds(&v->be_queue, false, REQUEST_STATE_QUEUED) &&
           queue_holds(&v->decode_rt, true, REQUEST_STATE_DECODE) &&
           queue_holds(&v->decode_be, false, REQUEST_STATE_DECODE) && fresh_hold(v) &&
           prefills_hold(v) && devices_hold(s, v);
}
