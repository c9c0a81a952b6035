#include "policies/common/iter.h"

#include "policies/common/blocks.h"

const char *const iter_class_choices[] = {"rt_first", "blind", "rt_alone", "window", NULL};
const char *const iter_preempt_choices[] = {"iteration", "layer", "kernel", "reset", NULL};
const char *const iter_kv_choices[] = {"checkpoint", "recompute", "swap", NULL};
const char *const iter_level_choices[] = {XSCHED_LEVEL_CHOICES, NULL};

/* Greater keys are one: deadlines in more than 16 years, which a trace or a parameter may state. */
#define KEY_MOST 5e14

static double full_key(struct sched *s, const struct iter *it, const struct request *r)
{
    double own = it->order->key(s, r);
    SIM_ASSERT(!isnan(own));
    double key = fmin(own, KEY_MOST);
    bool behind = param_int(s, ITER_CLASS) != ITER_BLIND && r->cls == REQUEST_CLASS_PROACTIVE;
    key += behind ? ITER_CLASS_STEP : 0.0;
    /* Waiting reactive requests are before proactive ones; sequences that run may be before all
     * (vtc). */
    SIM_ASSERT(behind ? key > KEY_MOST || key < 0.0 : key <= KEY_MOST);
    return key;
}

/* Who keeps memory when it is short: a fixed order (class under rt_first, then as they came),
 * whatever the key. With moving keys as the order two requests could take KV from each other for
 * ever, each more urgent for having lost it. */
static double memory_place(struct sched *s, const struct request *r)
{
    const struct iter_request *own = r->own; /* exact up to 2^50 requests */
    SIM_ASSERT(own->arrived > 0 && own->arrived < UINT64_C(1) << 50);
    bool behind = param_int(s, ITER_CLASS) != ITER_BLIND && r->cls == REQUEST_CLASS_PROACTIVE;
    return (double)own->arrived + (behind ? 0x1p50 : 0.0);
}

/* By the number that orders them: arrival_ns may order requests of two models otherwise. */
static bool keeps_memory_before(struct sched *s, const struct request *x, const struct request *y)
{
    SIM_ASSERT(x == y || memory_place(s, x) != memory_place(s, y)); /* of two, one gives way */
    return memory_place(s, x) < memory_place(s, y);
}

/* It has KV that makes room when it goes: a pass has worked on it, or flash has brought it back. A
 * prefix that it has only found counts as free. */
static void hold(struct sched *s, struct iter *it, const struct request *r)
{
    if (!order_has(&it->holders, r)) {
        order_add(&it->holders, r, -memory_place(s, r));
    }
}

/* Among those who wait. */
static void enqueue(struct sched *s, struct iter *it, const struct request *r)
{
    SIM_ASSERT(r->state == REQUEST_STATE_QUEUED || r->state == REQUEST_STATE_DECODE);
    SIM_ASSERT(r->pass == NULL && order_has(&it->elders, r));
    order_add(&it->ready, r, full_key(s, it, r));
    SIM_ASSERT(iter_ok(it));
}

static void iter_joins(struct sched *s, const struct request *r)
{
    struct iter *it = s->state;
    struct iter_request *own = r->own;
    /* Numbered as they come: a count fits into a double beside the step between the classes,
     * exactly, and ns need not. */
    SIM_ASSERT(own->arrived == 0);
    own->arrived = ++it->arrivals;
    /* Three orders: whose turn it is, who is the first to keep memory, who is the first to lose it.
     * The last two never change while a request lives, so it is in them also when it runs. */
    order_add(&it->elders, r, memory_place(s, r));
    gap_arrived(s, &it->gap, r);
    enqueue(s, it, r);
    own->found = r->reused_tokens;
    uint64_t begins = it->order->found != NULL ? sched_prompt_hash(s, r, s->kv_block_tokens) : 0;
    if (begins != 0 && !it->shares) {
        uint32_t others = it->beginnings.n;
        it->shares = map_number(&it->beginnings, begins) < others;
    }
    it->shares = it->shares || (it->order->found != NULL && own->found > 0);
    /* It has at most what others left in the cache, and no pass has had it. */
    SIM_ASSERT(r->kv_tokens == r->reused_tokens && own->losses == 0);
}

static void iter_returns(struct sched *s, const struct request *r)
{
    SIM_ASSERT(order_of(r) == NULL); /* a pass took it, and it joined nobody since */
    enqueue(s, s->state, r);
    if (r->kv_tokens > 0) {
        hold(s, s->state, r);
    }
}

/* While KV moves a request is in no order: it could join no pass. */
void iter_kv_moved(struct sched *s, const struct request *r)
{
    struct iter *it = s->state;
    SIM_ASSERT(order_of(r) == NULL &&
               r->kv_tokens > 0); /* on flash or in memory, it has it again */
    enqueue(s, it, r);
    if (!r->kv_swapped) {
        hold(s, it, r);
    }
}

void iter_rekey(struct sched *s, const struct request *r)
{
    struct iter *it = s->state;
    SIM_ASSERT(order_has(&it->elders, r));
    if (order_has(&it->ready, r)) {
        order_rekey(&it->ready, r, full_key(s, it, r));
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

/* Out of those who wait. */
static void take(struct sched *s, struct iter *it, const struct request *r)
{
    SIM_ASSERT(order_has(&it->ready, r) && order_has(&it->elders, r));
    order_remove(&it->ready, r);
    if (it->order->taken != NULL) {
        it->order->taken(s, r);
    }
}

static void iter_leaves(struct sched *s, const struct request *r)
{
    struct iter *it = s->state;
    SIM_ASSERT(r->state == REQUEST_STATE_SHED || order_of(r) == NULL); /* in its pass to the end */
    gap_finished(s, &it->gap, r);
    order_remove(&it->ready, r);
    order_remove(&it->elders, r);
    order_remove(&it->holders, r);
    SIM_ASSERT(iter_ok(it));
    if (it->order->left != NULL) {
        it->order->left(s, r);
    }
}

static void iter_ran(struct sched *s, const struct segment *seg, int64_t elapsed_ns)
{
    const struct iter *it = s->state;
    SIM_ASSERT(elapsed_ns >= 0 &&
               order_of(seg->request) == NULL); /* its new key is asked after this */
    if (it->order->served != NULL) {
        it->order->served(s, seg->request, seg, elapsed_ns);
    }
}

/* ---- making room ---- */

/* Takes a waiting request's KV, to nowhere or to flash. */
static bool evict(struct sched *s, struct iter *it, const struct request *r, bool swap)
{
    SIM_ASSERT(r->kv_tokens > 0 && !r->kv_swapped && r->pass == NULL && order_has(&it->ready, r));
    if (sched_kv_move(s, kv_of(r), swap ? KV_FLASH : KV_NOWHERE) != 0) {
        return false;
    }
    order_remove(&it->holders, r);
    SIM_ASSERT(iter_ok(it)); /* it has nothing more to lose */
    if (swap) {
        take(s, it, r);
    } else {
        SIM_ASSERT(r->state == REQUEST_STATE_QUEUED && r->kv_tokens == 0); /* hence another key */
        (it->order->found != NULL ? it->order->found : iter_rekey)(s, r);
    }
    return true;
}

/* The last one in memory order that waits and has KV, or NULL. */
static const struct request *last_holder(struct iter *it)
{
    const struct request *r = order_first(&it->holders);
    while (r != NULL && (r->kv_tokens == 0 || !order_has(&it->ready, r))) {
        const struct request *next = order_next(&it->holders, r);
        if (r->kv_tokens == 0) { /* the core has dropped it */
            order_remove(&it->holders, r);
        }
        r = next;
    }
    return r;
}

/* Takes KV from the last one in memory order that waits and comes after `first`; dropped, not
 * swapped, so that the space is free at once. */
static bool evict_after(struct sched *s, struct iter *it, const struct request *first)
{
    const struct request *victim = last_holder(it);
    if (victim == NULL || !keeps_memory_before(s, first, victim) || !evict(s, it, victim, false)) {
        return false;
    }
    SIM_ASSERT(memory_place(s, victim) > memory_place(s, first)); /* so two never take turns */
    return true;
}

/* For a batch: after its first member in memory order. That one, served again and again, is never a
 * victim, so everybody's turn comes. */
static bool evict_last(struct sched *s, struct iter *it)
{
    SIM_ASSERT(it->it.batch.n > 0 && order_of(it->it.batch.segments[0].request) == NULL);
    const struct request *first = it->it.batch.segments[0].request;
    for (uint32_t i = 1; i < it->it.batch.n; i++) {
        const struct request *r = it->it.batch.segments[i].request;
        first = keeps_memory_before(s, r, first) ? r : first;
    }
    return evict_after(s, it, first);
}

/* Those who are not in the batch lose their KV, last in order first; then the batch shrinks. */
static bool iter_make_room(struct sched *s)
{
    struct iter *it = s->state;
    SIM_ASSERT(it->it.batch.n > 0 && it->it.running.pass == NULL);
    const uint32_t members = it->it.batch.n;
    const uint32_t holders = it->holders.n;
    if (!evict_last(s, it)) {
        enqueue(s, it, it->it.batch.segments[--it->it.batch.n].request);
    }
    SIM_ASSERT(it->it.batch.n < members || it->holders.n < holders); /* so it ends */
    return it->it.batch.n > 0;
}

/* Of a stopped pass: what the kv axis says. */
static void iter_lost(struct sched *s, const struct request *r)
{
    struct iter *it = s->state;
    struct iter_request *own = r->own;
    SIM_ASSERT(it->it.loses && own->losses < ITER_MAX_LOSSES); /* iter_outranked asked */
    own->losses++;
    if (r->state != REQUEST_STATE_SHED && r->kv_tokens > 0) {
        (void)evict(s, it, r, param_int(s, ITER_KV) == ITER_KV_SWAP);
    }
}

/* ---- forming an iteration ---- */

static bool batch_is_reactive(const struct iter *it)
{
    return it->it.batch.n > 0 && it->it.batch.segments[0].request->cls == REQUEST_CLASS_REACTIVE;
}

/* Proactive work waits while no window is open, with the KV that it has. Reactive requests go
 * first, so all behind it wait too. */
static bool is_held(struct sched *s, const struct request *r)
{
    return param_int(s, ITER_CLASS) == ITER_WINDOW && r->cls == REQUEST_CLASS_PROACTIVE &&
           !sched_machine_state(s).background_window;
}

/* A key may grow while its owner waits: then it goes where it belongs now. One that shrank would
 * hold its owner back, so whoever changed it has moved it (iter_rekey). */
static bool key_has_grown(struct sched *s, struct iter *it, const struct request *r)
{
    double known_key = order_node(&it->ready, r)->key;
    /* Nobody is notified where the core drops a prefix that a prompt has not used yet, so a key by
     * remaining work may then be an old one until its turn comes. */
    bool asks = !it->order->settled || r->first_service_ns == TIME_NEVER_NS;
    double now_key = asks ? full_key(s, it, r) : known_key;
    SIM_ASSERT(asks || known_key == full_key(s, it, r));
    SIM_ASSERT(now_key >= known_key || r->first_service_ns == TIME_NEVER_NS);
    if (now_key > known_key) {
        order_rekey(&it->ready, r, now_key);
    }
    return now_key > known_key;
}

/* The first request that waits and may run, by keys of now; NULL: none. */
static const struct request *first_of(struct sched *s)
{
    struct iter *it = s->state;
    const struct request *r = order_first(&it->ready);
    while (r != NULL && key_has_grown(s, it, r)) {
        r = order_first(&it->ready);
    }
    return r == NULL || is_held(s, r) ? NULL : r;
}

/* Takes requests in order until the batch or the budget is full. Swapped ones start coming back
 * instead and wait outside the orders for kv_moved. */
static void fill(struct sched *s, struct iter *it, uint32_t most)
{
    SIM_ASSERT(most > 0 && iter_ok(it));
    uint32_t budget = (uint32_t)param_int(s, ITER_TOKEN_BUDGET);
    batch_clear(&it->it.batch);
    uint64_t committed = 0; /* blocks that the members still need to finish their prompts */
    const struct request *r;
    while (it->it.batch.n < most && it->it.batch.tokens < budget &&
           (r = batch_first(&it->it.batch, &it->ready)) != NULL) {
        if (key_has_grown(s, it, r)) {
            continue;
        }
        /* XSched and REEF suspend what is not reactive: not even a free place in a reactive batch
         * is proactive work's. */
        if (is_held(s, r) || (r->cls == REQUEST_CLASS_PROACTIVE && batch_is_reactive(it) &&
                              param_int(s, ITER_CLASS) == ITER_RT_ALONE)) {
            return;
        }
        uint32_t stopped = 0;
        if (it->it.batch.n == 0 && it->it.n_paused > 0 && iter_resumes(s, r, &stopped)) {
            return; /* all who go before it wait for their KV to come back */
        }
        uint32_t left = request_prefill_left(r);
        uint64_t needed = r->kv_swapped ? 0 : blocks_needed(s, r, left > 0 ? left : 1);
        bool begins = !r->kv_swapped && (r->kv_tokens == 0 || blocks_only_cached(r));
        if (begins && it->it.batch.n > 0 && committed + needed > blocks_free(s)) {
            return; /* admitting it would only make the others evict it again */
        }
        committed += needed;
        take(s, it, r);
        if (r->kv_swapped) {
            if (sched_kv_move(s, kv_of(r), KV_MEMORY) != 0) {
                enqueue(s, it, r);
                return;
            }
            continue;
        }
        batch_add_next(&it->it.batch, r, budget - it->it.batch.tokens);
        SIM_ASSERT(it->it.batch.n <= most && it->it.batch.tokens <= budget && order_of(r) == NULL);
    }
}

/* The first in memory order, alone, which fits when nobody at the front of the order does. */
static void compose_first(struct sched *s, struct iter *it)
{
    const struct request *first = order_first(&it->elders);
    SIM_ASSERT(it->alone && iter_ok(it));
    while (first != NULL && !order_has(&it->ready, first)) { /* its KV moves */
        first = order_next(&it->elders, first);
    }
    batch_clear(&it->it.batch);
    if (first == NULL || is_held(s, first)) {
        it->stuck = false;
        return;
    }
    if (first->kv_swapped) {
        int rc = sched_kv_move(s, kv_of(first), KV_MEMORY);
        while (rc == -ENOMEM && evict_after(s, it, first)) {
            rc = sched_kv_move(s, kv_of(first), KV_MEMORY);
        }
        if (rc == 0) {
            take(s, it, first);
        }
        it->stuck = rc != 0;
        return;
    }
    take(s, it, first);
    batch_add_next(&it->it.batch, first, (uint32_t)param_int(s, ITER_TOKEN_BUDGET));
    SIM_ASSERT(it->it.batch.n == 1 && it->stuck); /* until its pass is formed nobody got on */
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
    /* Members were taken in order, so the first has the best key; the pass is stopped only for
     * somebody who goes before all of them. */
    SIM_ASSERT(it->it.running.pass != NULL && it->it.batch.n > 0);
    SIM_ASSERT(!it->alone || it->it.batch.n == 1);
    it->it.running.key = full_key(s, it, it->it.batch.segments[0].request);
    it->it.running.finish = it->alone; /* were it stopped and its work lost, nobody would get on */
    it->alone = false;
}

/* In turn: by the order, the first in memory order alone, and again with KV that a session gave up
 * between two turns. */
static bool iter_again(struct sched *s)
{
    struct iter *it = s->state;
    SIM_ASSERT(it->it.running.pass == NULL);
    /* A stopped pass holds KV, and its end gives that back: it goes on before anybody else's is
     * taken. */
    if (it->it.n_paused > 0) {
        return false;
    }
    it->alone = !it->alone;
    return it->alone || (it->stuck && gap_yield(s, &it->gap));
}

/* ---- rules ---- */

/* Nobody is notified where a prefix comes into the cache or goes, so all who wait are asked. */
static void look_up(struct sched *s, const struct iter *it)
{
    for (const struct request *r = order_first(&it->elders); r != NULL;
         r = order_next(&it->elders, r)) {
        struct iter_request *own = r->own;
        if (own->found != r->reused_tokens) {
            own->found = r->reused_tokens;
            it->order->found(s, r);
        }
    }
}

static void iter_refresh(struct sched *s)
{
    struct iter *it = s->state;
    SIM_ASSERT(iter_is_consistent(it) && gap_ok(&it->gap));
    gap_schedule(s, &it->gap, iter_context_ns);
    if (it->gap.rule != GAP_CACHE) {
        sched_again(s); /* KV that a gap held may be what somebody waits for */
    }
    if (it->shares) {
        look_up(s, it);
    }
    if (it->order->refresh != NULL) {
        it->order->refresh(s);
    }
    SIM_ASSERT(iter_ok(it)); /* orders change keys, and nobody's membership */
}

static bool outranked(struct sched *s)
{
    bool stops = param_int(s, ITER_PREEMPT) != ITER_PREEMPT_ITERATION; /* else no key is asked */
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
    /* Not with rules for tool gaps: what they do depends on times between iterations. Nor where a
     * stop compares keys that an iteration in between would have changed. */
    bool stops = param_int(s, ITER_PREEMPT) != ITER_PREEMPT_ITERATION;
    if (order->steady && it->gap.rule == GAP_CACHE && (!stops || order->constant)) {
        sched_steady(s, TIME_NEVER_NS, 0);
    }
    const struct device *dev = &s->machine->devices[it->it.device];
    /* Refused here and not at the first stop: a comparison would else run to its end with another
     * mechanism than it names. */
    bool can = (!reset || dev->can_reset) && xsched_can(dev, param_int(s, ITER_LEVEL));
    return can ? 0 : -EPERM;
}

void iter_exit(struct sched *s)
{
    struct iter *it = s->state;
    gap_fini(&it->gap);
    map_fini(&it->beginnings);
    iteration_exit(s);
}
