/* Waiting requests, by key and in memory order, and eviction in reverse memory order. */
#include "policies/common/blocks.h"
#include "policies/common/iter.h"

/* Greater keys count as equal, such as deadlines in more than 16 years. */
#define KEY_MOST 5e14

double iter_full_key(struct sched *s, const struct iter *it, const struct request *r)
{
    double own = it->order->key(s, r);
    SIM_ASSERT(!isnan(own));
    double key = fmin(own, KEY_MOST);
    bool behind = param_int(s, ITER_CLASS) != ITER_BLIND && r->cls == REQUEST_CLASS_PROACTIVE;
    key += behind ? ITER_CLASS_STEP : 0.0;
    /* Reactive requests are before proactive ones. Negative keys go before all (vtc). */
    SIM_ASSERT(behind ? key > KEY_MOST || key < 0.0 : key <= KEY_MOST);
    return key;
}

/* Memory order decides who is evicted: class (with rt_first), then arrival, regardless of the key.
 * It is fixed, because with changing keys two requests could evict each other for ever. */
static double memory_place(struct sched *s, const struct request *r)
{
    const struct iter_request *own = r->own; /* exact for up to 2^50 requests */
    SIM_ASSERT(own->arrived > 0 && own->arrived < UINT64_C(1) << 50);
    bool behind = param_int(s, ITER_CLASS) != ITER_BLIND && r->cls == REQUEST_CLASS_PROACTIVE;
    return (double)own->arrived + (behind ? 0x1p50 : 0.0);
}

/* By memory_place: arrival_ns may order requests of two models differently. */
static bool keeps_memory_before(struct sched *s, const struct request *x, const struct request *y)
{
    SIM_ASSERT(x == y || memory_place(s, x) != memory_place(s, y)); /* the order is total */
    return memory_place(s, x) < memory_place(s, y);
}

/* Adds a request to `holders` if its eviction would free KV. An unused cached prefix counts as free
 * already. */
static void hold(struct sched *s, struct iter *it, const struct request *r)
{
    if (!order_has(&it->holders, r)) {
        order_add(&it->holders, r, -memory_place(s, r));
    }
}

void iter_wait(struct sched *s, struct iter *it, const struct request *r)
{
    SIM_ASSERT(r->state == REQUEST_STATE_QUEUED || r->state == REQUEST_STATE_DECODE);
    SIM_ASSERT(r->pass == NULL && order_has(&it->elders, r));
    order_add(&it->ready, r, iter_full_key(s, it, r));
    SIM_ASSERT(iter_ok(it));
}

void iter_joins(struct sched *s, const struct request *r)
{
    struct iter *it = s->state;
    struct iter_request *own = r->own;
    /* A count, not ns, is exact in a double together with the step between classes. */
    SIM_ASSERT(own->arrived == 0);
    own->arrived = ++it->arrivals;
    /* `elders` and `holders` do not depend on keys, so a request is in them also while it runs. */
    order_add(&it->elders, r, memory_place(s, r));
    gap_arrived(s, &it->gap, r);
    iter_wait(s, it, r);
    own->found = r->reused_tokens;
    /* At most a cached prefix, and no pass yet. */
    SIM_ASSERT(r->kv_tokens == r->reused_tokens && own->losses == 0);
}

void iter_returns(struct sched *s, const struct request *r)
{
    SIM_ASSERT(order_of(r) == NULL); /* it is in no order */
    iter_wait(s, s->state, r);
    if (r->kv_tokens > 0) {
        hold(s, s->state, r);
    }
}

/* While KV moves a request is not in `ready`, because it can join no pass. */
void iter_kv_moved(struct sched *s, const struct request *r)
{
    struct iter *it = s->state;
    SIM_ASSERT(order_of(r) == NULL && r->kv_tokens > 0); /* the move has ended */
    iter_wait(s, it, r);
    if (!r->kv_swapped) {
        hold(s, it, r);
    }
}

void iter_rekey(struct sched *s, const struct request *r)
{
    struct iter *it = s->state;
    SIM_ASSERT(order_has(&it->elders, r));
    if (order_has(&it->ready, r)) {
        order_rekey(&it->ready, r, iter_full_key(s, it, r));
    }
}

void iter_rekey_all(struct sched *s)
{
    const struct iter *it = s->state;
    for (const struct request *r = order_first(&it->elders); r != NULL;
         r = order_next(&it->elders, r)) {
        iter_rekey(s, r);
    }
}

void iter_take(struct sched *s, struct iter *it, const struct request *r)
{
    SIM_ASSERT(order_has(&it->ready, r) && order_has(&it->elders, r));
    order_remove(&it->ready, r);
    if (it->order->taken != NULL) {
        it->order->taken(s, r);
    }
}

void iter_leaves(struct sched *s, const struct request *r)
{
    struct iter *it = s->state;
    SIM_ASSERT(r->state == REQUEST_STATE_SHED || order_of(r) == NULL); /* in a pass until now */
    gap_finished(s, &it->gap, r);
    order_remove(&it->ready, r);
    order_remove(&it->elders, r);
    order_remove(&it->holders, r);
    SIM_ASSERT(iter_ok(it));
    if (it->order->left != NULL) {
        it->order->left(s, r);
    }
}

void iter_ran(struct sched *s, const struct segment *seg, int64_t elapsed_ns)
{
    const struct iter *it = s->state;
    SIM_ASSERT(elapsed_ns >= 0 &&
               order_of(seg->request) == NULL); /* before its new key is computed */
    if (it->order->served != NULL) {
        it->order->served(s, seg->request, seg, elapsed_ns);
    }
}

/* Looks at all requests if one of them has found or lost a cached prefix. */
void iter_look_up(struct sched *s, struct iter *it)
{
    if (it->order->found == NULL || it->reuse_changes == s->reuse_changes) {
        return;
    }
    it->reuse_changes = s->reuse_changes;
    for (const struct request *r = order_first(&it->elders); r != NULL;
         r = order_next(&it->elders, r)) {
        struct iter_request *own = r->own;
        if (own->found != r->reused_tokens) {
            own->found = r->reused_tokens;
            it->order->found(s, r);
        }
    }
}

/* ---- making room ---- */

/* Drops a waiting request's KV, or swaps it to flash. */
static bool evict(struct sched *s, struct iter *it, const struct request *r, bool swap)
{
    SIM_ASSERT(r->kv_tokens > 0 && !r->kv_swapped && r->pass == NULL && order_has(&it->ready, r));
    if (sched_kv_move(s, kv_of(r), swap ? KV_FLASH : KV_NOWHERE) != 0) {
        return false;
    }
    order_remove(&it->holders, r);
    SIM_ASSERT(iter_ok(it)); /* removed from holders */
    if (swap) {
        iter_take(s, it, r);
    } else {
        SIM_ASSERT(r->state == REQUEST_STATE_QUEUED && r->kv_tokens == 0); /* so its key changes */
        (it->order->found != NULL ? it->order->found : iter_rekey)(s, r);
    }
    return true;
}

/* The last waiting request in memory order whose eviction frees KV, or NULL. */
static const struct request *last_holder(struct sched *s, struct iter *it)
{
    const struct request *r = order_first(&it->holders);
    while (r != NULL && (!order_has(&it->ready, r) || blocks_held(s, r) == 0)) {
        const struct request *next = order_next(&it->holders, r);
        if (order_has(&it->ready, r)) { /* its KV is gone, or counts as free */
            order_remove(&it->holders, r);
        }
        r = next;
    }
    return r;
}

bool iter_evict_after(struct sched *s, struct iter *it, const struct request *first)
{
    const struct request *victim = last_holder(s, it);
    if (victim == NULL || !keeps_memory_before(s, first, victim) || !evict(s, it, victim, false)) {
        return false;
    }
    SIM_ASSERT(memory_place(s, victim) > memory_place(s, first)); /* no mutual eviction */
    return true;
}

/* Evicts a request behind the batch's first member in memory order. That member is never a victim,
 * so it finishes, and every request's turn comes. */
static bool evict_last(struct sched *s, struct iter *it)
{
    SIM_ASSERT(it->it.batch.n > 0 && order_of(it->it.batch.segments[0].request) == NULL);
    const struct request *first = it->it.batch.segments[0].request;
    for (uint32_t i = 1; i < it->it.batch.n; i++) {
        const struct request *r = it->it.batch.segments[i].request;
        first = keeps_memory_before(s, r, first) ? r : first;
    }
    return iter_evict_after(s, it, first);
}

/* Evicts requests outside the batch, the last in memory order first. Then the batch shrinks. */
bool iter_make_room(struct sched *s)
{
    struct iter *it = s->state;
    SIM_ASSERT(it->it.batch.n > 0 && it->it.running.pass == NULL);
    const uint32_t members = it->it.batch.n;
    const uint32_t holders = it->holders.n;
    if (!evict_last(s, it)) {
        iter_wait(s, it, it->it.batch.segments[--it->it.batch.n].request);
    }
    SIM_ASSERT(it->it.batch.n < members || it->holders.n < holders); /* terminates */
    return it->it.batch.n > 0;
}

/* A request of a stopped pass loses its KV, or it goes to flash, as the kv axis demands. */
void iter_lost(struct sched *s, const struct request *r)
{
    struct iter *it = s->state;
    struct iter_request *own = r->own;
    SIM_ASSERT(it->it.loses && own->losses < ITER_MAX_LOSSES); /* iter_outranked checked it */
    own->losses++;
    if (r->state != REQUEST_STATE_SHED && r->kv_tokens > 0) {
        (void)evict(s, it, r, param_int(s, ITER_KV) == ITER_KV_SWAP);
    }
}
