/* What the shared parts of policies rely on where their schedule begins and ends. Only test builds
 * ask (SIM_ASSERT). */
#include "policies/common/disagg.h"
#include "policies/common/iter.h"
#include "policies/common/priority.h"
#include "policies/common/vllm.h"

static bool is_on(const struct launch *l, const struct pass *p, int device)
{
    return l == NULL || (l->pass == p && l->device == device);
}

/* A prefill has the launches that it says, and a plan for all rows that are left of its op. */
static bool hetero_holds(const struct hetero *h, int npu, int igpu)
{
    const struct pass *p = h->pass;
    uint32_t n = (h->on_npu != NULL ? 1u : 0u) + (h->on_igpu != NULL ? 1u : 0u);
    if (p == NULL) {
        return n == 0 && h->planned_op == 0 && h->npu_rows + h->igpu_rows == 0;
    }
    return p->n_launches == n && is_on(h->on_npu, p, npu) && is_on(h->on_igpu, p, igpu) &&
           h->planned_op <= p->op + 1 &&
           (h->planned_op <= p->op || h->npu_rows + h->igpu_rows == p->rows_todo);
}

/* A prompt's pass, or none; and nobody who waits. */
static bool is_prompt_of(const struct pass *p, const struct request *r)
{
    return r == NULL ? p == NULL
                     : p != NULL && p->n_segments == 1 && p->segments[0].request == r &&
                           p->segments[0].role == SEGMENT_PREFILL;
}

static bool waits(const struct request *r, enum request_state state, const struct pass *pass)
{
    return r->state == state && r->pass == pass;
}

/* ---- priority.h ---- */

/* A member of a heap is at its place, and not before the one above it. */
static bool is_placed(const struct heap *h, uint32_t i)
{
    const struct request *r = h->a[i];
    return heap_node_in(h, r)->index == i + 1 && (i == 0 || !heap_before(h, r, h->a[(i - 1) / 2]));
}

static bool group_holds(const struct priority_group *g, bool paused)
{
    const struct pass *p = g->pass;
    for (uint32_t i = 0; p != NULL && i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        double key = r->priority + (r->cls == REQUEST_CLASS_PROACTIVE ? 1e10 : 0.0);
        if (key != g->key || p->segments[i].role != SEGMENT_DECODE) {
            return false;
        }
    }
    return paused ? p != NULL && p->state == PASS_STATE_READY : p != NULL || g->key == 0.0;
}

bool priority_is_consistent(const struct priority *h)
{
    for (uint32_t i = 0; i < h->waiting.n; i++) {
        const struct request *r = h->waiting.a[i];
        const struct pass *p = ((const struct priority_request *)r->own)->suspended;
        if (!is_placed(&h->waiting, i) || !waits(r, REQUEST_STATE_QUEUED, p) ||
            (p != NULL && (!is_prompt_of(p, r) || p->state != PASS_STATE_READY))) {
            return false;
        }
    }
    for (uint32_t i = 0; i < h->decoding.n; i++) {
        if (!is_placed(&h->decoding, i) || !waits(h->decoding.a[i], REQUEST_STATE_DECODE, NULL)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < h->n_paused; i++) {
        if (!group_holds(&h->paused[i], true) ||
            (i > 0 && h->paused[i].key > h->paused[i - 1].key)) {
            return false;
        }
    }
    return h->n_paused <= PRIORITY_MAX_PAUSED && group_holds(&h->iteration, false) &&
           (h->current == NULL || heap_node(h->current)->index == 0) &&
           is_prompt_of(h->prefill.pass, h->current) &&
           hetero_holds(&h->prefill, h->npu, h->igpu) &&
           (h->on_igpu == NULL || is_on(h->on_igpu, h->iteration.pass, h->igpu));
}

/* ---- disagg.h ---- */

bool disagg_is_consistent(const struct disagg *d)
{
    uint32_t n = 0;
    for (const struct request *r = d->npu_queue.head; r != NULL; r = reqq_next(r), n++) {
        if (!waits(r, REQUEST_STATE_QUEUED, NULL)) {
            return false;
        }
    }
    for (const struct request *r = d->igpu_queue.head; r != NULL; r = reqq_next(r), n++) {
        if (r->state != REQUEST_STATE_QUEUED || (r->pass != NULL && r->pass != d->iteration)) {
            return false;
        }
    }
    for (const struct request *r = d->decoding.head; r != NULL; r = reqq_next(r), n++) {
        if (r->state != REQUEST_STATE_DECODE || (r->pass != NULL && r->pass != d->iteration)) {
            return false;
        }
    }
    return n == d->npu_queue.n + d->igpu_queue.n + d->decoding.n &&
           (d->current == NULL || reqq_of(d->current) == NULL) &&
           is_prompt_of(d->prefill.pass, d->current) &&
           hetero_holds(&d->prefill, d->npu, d->igpu) &&
           (d->on_igpu == NULL ||
            (d->iteration != NULL && is_on(d->on_igpu, d->iteration, d->igpu)));
}

/* ---- iter.h ---- */

/* Who waits is in no pass; by key, by the place in memory order, and if it holds KV by its reverse.
 */
bool iter_is_consistent(const struct iter *it)
{
    for (uint32_t i = 0; i < it->ready.n; i++) {
        const struct request *r = it->ready.a[i];
        const struct iter_request *own = r->own;
        bool live = r->state == REQUEST_STATE_QUEUED || r->state == REQUEST_STATE_DECODE;
        if (!is_placed(&it->ready, i) || !live || r->pass != NULL || !heap_has(&it->elders, r) ||
            own->arrived == 0 || own->arrived > it->arrivals ||
            (heap_has(&it->holders, r) && own->holder.key != -own->elder.key)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < it->elders.n; i++) {
        if (!is_placed(&it->elders, i)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < it->holders.n; i++) {
        if (!is_placed(&it->holders, i)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < it->it.n_paused; i++) {
        const struct iteration_pass *p = &it->it.paused[i];
        if (p->pass == NULL || p->launch != NULL || p->pass->state != PASS_STATE_READY) {
            return false;
        }
    }
    const struct iteration_pass *run = &it->it.running;
    return it->elders.n == it->ready.n && it->holders.n <= it->ready.n &&
           is_on(run->launch, run->pass, it->it.device) && it->it.n_paused <= ITERATION_MAX_PAUSED;
}

/* ---- vllm.h ---- */

/* No more run than may, and all are live and in one queue. */
bool vllm_is_consistent(const struct vllm *v)
{
    uint32_t n = 0;
    for (const struct request *r = v->running.head; r != NULL; r = reqq_next(r), n++) {
        bool live = r->state == REQUEST_STATE_QUEUED || r->state == REQUEST_STATE_DECODE;
        if (!live || (r->pass != NULL && r->pass != v->it.running.pass) ||
            (v->rules.by_priority && heap_node(r)->index != 0)) {
            return false;
        }
    }
    for (const struct request *r = v->waiting.head; r != NULL; r = reqq_next(r), n++) {
        if (!waits(r, REQUEST_STATE_QUEUED, NULL) && r->state != REQUEST_STATE_DECODE) {
            return false;
        }
    }
    for (uint32_t i = 0; i < v->by_key.n; i++) {
        if (!is_placed(&v->by_key, i) || v->by_key.a[i]->pass != NULL) {
            return false;
        }
    }
    const struct iteration_pass *run = &v->it.running;
    return n == v->running.n + v->waiting.n && v->running.n <= v->max_seqs &&
           (v->rules.by_priority ? v->waiting.n == 0 : v->by_key.n == 0) &&
           is_on(run->launch, run->pass, v->it.device);
}
