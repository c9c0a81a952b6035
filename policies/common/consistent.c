/* Invariants of the shared parts of policies, at the begin and end of `schedule`. Only test builds
 * check them (SIM_ASSERT). */
#include "policies/common/blocks.h"
#include "policies/common/disagg.h"
#include "policies/common/iter.h"
#include "policies/common/priority.h"
#include "policies/common/vllm.h"

static bool is_on(const struct launch *l, const struct pass *p, int device)
{
    return l == NULL || (l->pass == p && l->device == device && l->state != LAUNCH_STATE_ENDED);
}

/* Launches of a prefill are its own, and all rows without a launch are planned. */
static bool hetero_holds(const struct hetero *h, int npu, int igpu)
{
    const struct pass *p = h->pass;
    uint32_t n = (h->on_npu != NULL ? 1u : 0u) + (h->on_igpu != NULL ? 1u : 0u);
    SIM_ASSERT(hetero_ok(h));
    if (p != NULL) {
        SIM_ASSERT(p->n_launches == n);
        SIM_ASSERT(is_on(h->on_npu, p, npu) && is_on(h->on_igpu, p, igpu));
        SIM_ASSERT(h->planned_op <= p->op || h->npu_rows + h->igpu_rows == p->rows_todo);
        /* Else they would never start. */
        SIM_ASSERT(h->planned_op > 0 || h->npu_rows + h->igpu_rows == 0);
    }
    return true;
}

/* The pass, if any, is of r's prompt, and r is in no queue. */
static bool is_prompt_of(const struct pass *p, const struct request *r)
{
    return r == NULL ? p == NULL
                     : p != NULL && p == r->pass && p->n_segments == 1 &&
                           p->segments[0].request == r && p->segments[0].role == SEGMENT_PREFILL;
}

static bool waits(const struct request *r, enum request_state state, const struct pass *pass)
{
    return r->state == state && r->pass == pass;
}

static bool is_live(const struct request *r)
{
    return r->state == REQUEST_STATE_QUEUED || r->state == REQUEST_STATE_DECODE;
}

/* The number of members is right, and links agree. */
static bool queue_holds(const struct reqq *q)
{
    uint32_t n = 0;
    for (const struct request *r = q->head; r != NULL; r = reqq_next(r), n++) {
        SIM_ASSERT(reqq_of(r) == q && is_live(r));
    }
    SIM_ASSERT(n == q->n);
    return true;
}

/* The number of members is right, and the tree is in order. */
static bool order_holds(const struct order *o)
{
    uint32_t n = 0;
    for (const struct request *r = order_first(o); r != NULL; r = order_next(o, r), n++) {
        SIM_ASSERT(order_root_ok(o, r));
    }
    SIM_ASSERT(n == o->n);
    return true;
}

/* ---- priority.h ---- */

static bool group_holds(const struct priority_group *g, bool paused)
{
    const struct pass *p = g->pass;
    for (uint32_t i = 0; p != NULL && i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        double key = r->priority + (r->cls == REQUEST_CLASS_PROACTIVE ? 1e10 : 0.0);
        SIM_ASSERT(key == g->key); /* one priority in a group */
        SIM_ASSERT(p->segments[i].role == SEGMENT_DECODE && order_of(r) == NULL);
    }
    SIM_ASSERT(p != NULL || (!paused && g->key == 0.0));
    SIM_ASSERT(!paused || p->state == PASS_STATE_READY);
    return true;
}

bool priority_is_consistent(const struct priority *h)
{
    SIM_ASSERT(order_holds(&h->waiting) && order_holds(&h->decoding));
    for (const struct request *r = order_first(&h->waiting); r != NULL;
         r = order_next(&h->waiting, r)) {
        const struct pass *p = ((const struct priority_request *)r->own)->suspended;
        SIM_ASSERT(waits(r, REQUEST_STATE_QUEUED, p));
        SIM_ASSERT(p == NULL || (is_prompt_of(p, r) && p->state == PASS_STATE_READY));
    }
    for (const struct request *r = order_first(&h->decoding); r != NULL;
         r = order_next(&h->decoding, r)) {
        SIM_ASSERT(waits(r, REQUEST_STATE_DECODE, NULL));
    }
    for (uint32_t i = 0; i < h->n_paused; i++) {
        (void)group_holds(&h->paused[i], true);
        SIM_ASSERT(i == 0 || h->paused[i].key <= h->paused[i - 1].key);
    }
    SIM_ASSERT(priority_ok(h));
    (void)group_holds(&h->iteration, false);
    SIM_ASSERT(h->current == NULL || order_of(h->current) == NULL);
    SIM_ASSERT(is_prompt_of(h->prefill.pass, h->current));
    SIM_ASSERT(hetero_holds(&h->prefill, h->npu, h->igpu));
    SIM_ASSERT(is_on(h->on_igpu, h->iteration.pass, h->igpu));
    return true;
}

/* ---- disagg.h ---- */

bool disagg_is_consistent(const struct disagg *d)
{
    SIM_ASSERT(queue_holds(&d->npu_queue));
    SIM_ASSERT(queue_holds(&d->igpu_queue) && queue_holds(&d->decoding));
    for (const struct request *r = d->npu_queue.head; r != NULL; r = reqq_next(r)) {
        SIM_ASSERT(waits(r, REQUEST_STATE_QUEUED, NULL));
    }
    for (const struct request *r = d->igpu_queue.head; r != NULL; r = reqq_next(r)) {
        SIM_ASSERT(r->state == REQUEST_STATE_QUEUED);
        SIM_ASSERT(r->pass == NULL || r->pass == d->iteration);
    }
    for (const struct request *r = d->decoding.head; r != NULL; r = reqq_next(r)) {
        SIM_ASSERT(r->state == REQUEST_STATE_DECODE);
        SIM_ASSERT(r->pass == NULL || r->pass == d->iteration);
    }
    SIM_ASSERT(d->igpu_queue.n == 0 || d->limit_tokens != UINT64_MAX);
    SIM_ASSERT(d->current == NULL || reqq_of(d->current) == NULL);
    SIM_ASSERT(is_prompt_of(d->prefill.pass, d->current));
    SIM_ASSERT(hetero_holds(&d->prefill, d->npu, d->igpu));
    SIM_ASSERT(d->on_igpu == NULL || d->iteration != NULL);
    SIM_ASSERT(is_on(d->on_igpu, d->iteration, d->igpu));
    return true;
}

/* ---- iter.h ---- */

/* Waiting requests are in no pass. All live requests are in `elders`, and those with KV to lose in
 * `holders`. */
bool iter_is_consistent(const struct iter *it)
{
    SIM_ASSERT(iter_ok(it));
    SIM_ASSERT(order_holds(&it->ready) && order_holds(&it->elders) && order_holds(&it->holders));
    for (const struct request *r = order_first(&it->ready); r != NULL;
         r = order_next(&it->ready, r)) {
        const struct iter_request *own = r->own;
        SIM_ASSERT(is_live(r) && r->pass == NULL);
        SIM_ASSERT(order_has(&it->elders, r));
        SIM_ASSERT(own->arrived > 0 && own->arrived <= it->arrivals);
        SIM_ASSERT(own->losses <= ITER_MAX_LOSSES);
        SIM_ASSERT(!order_has(&it->holders, r) || own->holder.key == -own->elder.key);
        /* The others have nothing to lose: no KV, KV on flash, or an unused cached prefix. */
        SIM_ASSERT(order_has(&it->holders, r) || r->kv_swapped || r->kv_tokens == 0 ||
                   blocks_only_cached(r));
        SIM_ASSERT(!r->kv_swapped || !order_has(&it->holders, r));
    }
    for (const struct request *r = order_first(&it->holders); r != NULL;
         r = order_next(&it->holders, r)) {
        SIM_ASSERT(order_has(&it->elders, r));
    }
    return true;
}

/* ---- vllm.h ---- */

/* At most max_seqs run, and every request is in one queue. */
bool vllm_is_consistent(const struct vllm *v)
{
    SIM_ASSERT(vllm_ok(v));
    SIM_ASSERT(queue_holds(&v->running) && queue_holds(&v->waiting));
    for (const struct request *r = v->running.head; r != NULL; r = reqq_next(r)) {
        SIM_ASSERT(r->pass == NULL || r->pass == v->it.running.pass);
        SIM_ASSERT(!v->rules.by_priority || order_of(r) == NULL);
    }
    for (const struct request *r = v->waiting.head; r != NULL; r = reqq_next(r)) {
        SIM_ASSERT(waits(r, REQUEST_STATE_QUEUED, NULL));
    }
    SIM_ASSERT(order_holds(&v->by_key));
    for (const struct request *r = order_first(&v->by_key); r != NULL;
         r = order_next(&v->by_key, r)) {
        SIM_ASSERT(waits(r, REQUEST_STATE_QUEUED, NULL));
    }
    const struct iteration_pass *run = &v->it.running;
    SIM_ASSERT(is_on(run->launch, run->pass, v->it.device));
    return true;
}
