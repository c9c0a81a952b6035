#include "policies/common/iter.h"

#include "policies/common/blocks.h"

const char *const iter_class_choices[] = {"rt_first", "blind", "rt_alone", "window", NULL};
const char *const iter_preempt_choices[] = {"iteration", "layer", "kernel", "reset", NULL};
const char *const iter_kv_choices[] = {"checkpoint", "recompute", "swap", NULL};
const char *const iter_level_choices[] = {XSCHED_LEVEL_CHOICES, NULL};

/* ---- forming an iteration ---- */

static bool batch_is_reactive(const struct iter *it)
{
    return it->it.batch.n > 0 && it->it.batch.segments[0].request->cls == REQUEST_CLASS_REACTIVE;
}

/* Proactive requests wait with their KV while no window is open. Reactive requests are in front, so
 * all behind a held request are held, too. */
static bool is_held(struct sched *s, const struct request *r)
{
    return param_int(s, ITER_CLASS) == ITER_WINDOW && r->cls == REQUEST_CLASS_PROACTIVE &&
           !sched_machine_state(s).background_window;
}

/* Moves a waiting request whose key has grown. If a key shrinks, the order must call iter_rekey. */
static bool key_has_grown(struct sched *s, struct iter *it, const struct request *r)
{
    double known_key = order_node(&it->ready, r)->key;
    /* The core may drop a cached prefix without notice, so until first service even a settled key
     * may be out of date. */
    bool asks = !it->order->settled || r->first_service_ns == TIME_NEVER_NS;
    double now_key = asks ? iter_full_key(s, it, r) : known_key;
    SIM_ASSERT(asks || known_key == iter_full_key(s, it, r));
    SIM_ASSERT(now_key >= known_key || r->first_service_ns == TIME_NEVER_NS);
    if (now_key > known_key) {
        order_rekey(&it->ready, r, now_key);
    }
    return now_key > known_key;
}

/* The first waiting request that may run, by present keys, or NULL. */
static const struct request *first_of(struct sched *s)
{
    struct iter *it = s->state;
    const struct request *r = order_first(&it->ready);
    while (r != NULL && key_has_grown(s, it, r)) {
        r = order_first(&it->ready);
    }
    return r == NULL || is_held(s, r) ? NULL : r;
}

/* Takes requests in order until the batch or the budget is full. Swapped requests are read back
 * instead, and are in no order until kv_moved. */
static void fill(struct sched *s, struct iter *it, uint32_t most)
{
    SIM_ASSERT(most > 0 && iter_ok(it));
    uint32_t budget = (uint32_t)param_int(s, ITER_TOKEN_BUDGET);
    batch_clear(&it->it.batch);
    uint64_t committed = 0; /* blocks that members need to finish their prompts */
    const struct request *r;
    while (it->it.batch.n < most && it->it.batch.tokens < budget &&
           (r = batch_first(&it->it.batch, &it->ready)) != NULL) {
        if (key_has_grown(s, it, r)) {
            continue;
        }
        /* With rt_alone, as in XSched and REEF, proactive work may not even use a free place in a
         * reactive batch. */
        if (is_held(s, r) || (r->cls == REQUEST_CLASS_PROACTIVE && batch_is_reactive(it) &&
                              param_int(s, ITER_CLASS) == ITER_RT_ALONE)) {
            return;
        }
        uint32_t stopped = 0;
        if (it->it.batch.n == 0 && it->it.n_paused > 0 && iter_resumes(s, r, &stopped)) {
            return; /* all requests before it wait for a read back */
        }
        uint32_t left = request_prefill_left(r);
        uint64_t needed = r->kv_swapped ? 0 : blocks_needed(s, r, left > 0 ? left : 1);
        bool begins = !r->kv_swapped && (r->kv_tokens == 0 || blocks_only_cached(r));
        if (begins && it->it.batch.n > 0 && committed + needed > blocks_free(s)) {
            return; /* its admission would lead to its eviction */
        }
        committed += needed;
        if (r->kv_swapped && sched_kv_move(s, kv_of(r), KV_MEMORY) != 0) {
            return;
        }
        iter_take(s, it, r); /* only after its KV was reserved */
        if (r->kv_swapped) {
            continue;
        }
        batch_add_next(&it->it.batch, r, budget - it->it.batch.tokens);
        SIM_ASSERT(it->it.batch.n <= most && it->it.batch.tokens <= budget && order_of(r) == NULL);
    }
}

/* Composes a batch of the first request in memory order alone, which fits if no other does. */
static void compose_first(struct sched *s, struct iter *it)
{
    const struct request *first = order_first(&it->elders);
    SIM_ASSERT(it->alone && iter_ok(it));
    while (first != NULL && !order_has(&it->ready, first)) { /* not waiting: its KV moves */
        first = order_next(&it->elders, first);
    }
    batch_clear(&it->it.batch);
    if (first == NULL || is_held(s, first)) {
        it->stuck = false;
        return;
    }
    if (first->kv_swapped) {
        int rc = sched_kv_move(s, kv_of(first), KV_MEMORY);
        while (rc == -ENOMEM && iter_evict_after(s, it, first)) {
            rc = sched_kv_move(s, kv_of(first), KV_MEMORY);
        }
        if (rc == 0) {
            iter_take(s, it, first);
        }
        it->stuck = rc != 0;
        return;
    }
    iter_take(s, it, first);
    batch_add_next(&it->it.batch, first, (uint32_t)param_int(s, ITER_TOKEN_BUDGET));
    SIM_ASSERT(it->it.batch.n == 1 && it->stuck); /* until its pass is formed */
}

static void iter_compose(struct sched *s)
{
    struct iter *it = s->state;
    SIM_ASSERT(it->it.running.pass == NULL && iter_ok(it));
    it->stuck = true;
    if (it->alone) {
        compose_first(s, it);
    } else {
        fill(s, it, (uint32_t)param_int(s, ITER_MAX_BATCH));
    }
}

static void iter_formed(struct sched *s)
{
    struct iter *it = s->state;
    /* Members were taken in order, so the first has the least key, and the pass is stopped only for
     * requests before all members. */
    SIM_ASSERT(it->it.running.pass != NULL && it->it.batch.n > 0);
    SIM_ASSERT(!it->alone || it->it.batch.n == 1);
    it->it.running.key = iter_full_key(s, it, it->it.batch.segments[0].request);
    it->it.running.finish = it->alone; /* if it lost its work, no request would progress */
    it->alone = false;
}

/* Successive attempts: by the order; the first request in memory order alone; and again after a
 * session's KV was unpinned. */
static bool iter_again(struct sched *s)
{
    struct iter *it = s->state;
    SIM_ASSERT(it->it.running.pass == NULL);
    /* A paused pass holds KV until its end, so it must continue before other requests are evicted.
     */
    if (it->it.n_paused > 0) {
        return false;
    }
    it->alone = !it->alone;
    return it->alone || (it->stuck && gap_yield(s, &it->gap));
}

/* ---- rules ---- */

static void iter_refresh(struct sched *s)
{
    struct iter *it = s->state;
    SIM_ASSERT(iter_is_consistent(it) && gap_ok(&it->gap));
    gap_schedule(s, &it->gap, iter_context_ns);
    iter_look_up(s, it);
    if (it->order->refresh != NULL) {
        it->order->refresh(s);
    }
    SIM_ASSERT(iter_ok(it)); /* refresh changes only keys */
}

static bool outranked(struct sched *s)
{
    bool stops = param_int(s, ITER_PREEMPT) != ITER_PREEMPT_ITERATION; /* else keys are not used */
    return stops && iter_outranked(s, first_of(s));
}

static bool resumes(struct sched *s, uint32_t *which)
{
    return iter_resumes(s, first_of(s), which);
}

static const struct iteration_rules rules = {.joins = iter_joins,
                                             .leaves = iter_leaves,
                                             .ran = iter_ran,
                                             .returns = iter_returns,
                                             .compose = iter_compose,
                                             .formed = iter_formed,
                                             .again = iter_again,
                                             .make_room = iter_make_room,
                                             .refresh = iter_refresh,
                                             .launch = iter_launch,
                                             .outranked = outranked,
                                             .stopped = iter_stopped,
                                             .lost = iter_lost,
                                             .resumes = resumes};

int iter_init(struct sched *s, const struct iter_order *order)
{
    struct iter *it = s->state;
    int rc = iteration_init(s, &rules, param_int(s, ITER_DEVICE));
    if (rc != 0) {
        return rc;
    }
    it->order = order;
    it->elders.at = offsetof(struct iter_request, elder);
    it->holders.at = offsetof(struct iter_request, holder);
    SIM_ASSERT(order->key != NULL && iter_ok(it));
    gap_init(s, &it->gap, ITER_GAP_KV, ITER_GAP_S);
    bool reset = param_int(s, ITER_PREEMPT) == ITER_PREEMPT_RESET;
    it->it.stop = reset ? (struct preempt_spec){.now = true, .discard = true}
                        : xsched_stop(param_int(s, ITER_LEVEL));
    it->it.loses = param_int(s, ITER_KV) != ITER_KV_CHECKPOINT;
    /* Not with rules for tool gaps, which act at times between iterations. Nor if a stop would
     * compare keys that each iteration changes. */
    bool stops = param_int(s, ITER_PREEMPT) != ITER_PREEMPT_ITERATION;
    if (order->steady && it->gap.rule == GAP_CACHE && (!stops || order->constant)) {
        sched_steady(s, TIME_NEVER_NS, 0);
    }
    const struct device *dev = &s->machine->devices[it->it.device];
    /* Refused here, not at the first stop. Otherwise a comparison would run with a mechanism other
     * than the configured one. */
    bool can = (!reset || dev->can_reset) && xsched_can(dev, param_int(s, ITER_LEVEL));
    return can ? 0 : -EPERM;
}

void iter_exit(struct sched *s)
{
    struct iter *it = s->state;
    gap_fini(&it->gap);
    iteration_exit(s);
}
