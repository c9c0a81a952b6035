#include "policies/common/iter.h"

#include <errno.h>

#include "policies/common/progress.h"
#include "sim/base/units.h"

const char *const iter_class_choices[] = {"rt_first", "blind", "rt_alone", NULL};
const char *const iter_preempt_choices[] = {"iteration", "layer", "kernel", "reset", NULL};
const char *const iter_kv_choices[] = {"checkpoint", "recompute", "swap", NULL};
const char *const iter_level_choices[] = {XSCHED_LEVEL_CHOICES, NULL};
const char *const iter_gap_choices[] = {GAP_KV_CHOICES, NULL};

/* Added to the key of proactive requests under rt_first: larger than any key an order gives. */
#define CLASS_STEP 1e15

static double full_key(struct sched *s, const struct iter *it, const struct request *r)
{
    double key = it->order->key(s, r);
    bool behind = param_int(s, ITER_CLASS) != ITER_BLIND && r->cls == REQUEST_CLASS_PROACTIVE;
    return behind ? key + CLASS_STEP : key;
}

int iter_init(struct sched *s, const struct iter_order *order)
{
    struct iter *it = s->state;
    int d = place_device(s->machine, param_int(s, ITER_DEVICE));
    if (d < 0) {
        return d;
    }
    it->order = order;
    it->elders.at = offsetof(struct iter_request, elder);
    it->holders.at = offsetof(struct iter_request, holder);
    it->device = (uint8_t)d;
    it->gap.rule = (enum gap_kv)param_int(s, ITER_GAP_KV);
    it->gap.expected_ns = units_ns_from_s(param_number(s, ITER_GAP_S));
    const struct device *dev = &s->machine->devices[d];
    bool reset = param_int(s, ITER_PREEMPT) == ITER_PREEMPT_RESET;
    bool can = (!reset || dev->can_reset) && xsched_can(dev, param_int(s, ITER_LEVEL));
    return can ? 0 : -EPERM;
}

void iter_exit(struct sched *s)
{
    struct iter *it = s->state;
    if (it != NULL) {
        heap_fini(&it->ready);
        heap_fini(&it->elders);
        heap_fini(&it->holders);
        batch_fini(&it->batch);
        gap_fini(&it->gap);
    }
}

/* Who keeps memory when it is short: a fixed order (class under rt_first, arrival, id), whatever
 * the key. With moving keys as the order two requests could take KV from each other for ever, each
 * more urgent for having lost it. */
static bool keeps_memory_before(struct sched *s, const struct request *x, const struct request *y)
{
    if (param_int(s, ITER_CLASS) != ITER_BLIND && x->cls != y->cls) {
        return x->cls == REQUEST_CLASS_REACTIVE;
    }
    return request_before(x, y);
}

/* The same as a number, exact up to 2^50 requests. */
static double memory_place(struct sched *s, const struct request *r)
{
    const struct iter_request *own = r->own;
    bool behind = param_int(s, ITER_CLASS) != ITER_BLIND && r->cls == REQUEST_CLASS_PROACTIVE;
    return (double)own->arrived + (behind ? 0x1p50 : 0.0);
}

/* Among those who wait. */
static void enqueue(struct sched *s, struct iter *it, const struct request *r)
{
    heap_push(&it->ready, r, full_key(s, it, r));
    heap_push(&it->elders, r, memory_place(s, r));
    if (r->kv_tokens > 0 && !r->kv_swapped) {
        heap_push(&it->holders, r, -memory_place(s, r));
    }
}

void iter_request_arrived(struct sched *s, const struct request *r)
{
    struct iter *it = s->state;
    struct iter_request *own = r->own;
    own->arrived = ++it->arrivals;
    gap_arrived(s, &it->gap, r);
    enqueue(s, it, r);
}

/* While KV moves a request is in no heap: it could join no pass. */
void iter_kv_moved(struct sched *s, const struct request *r)
{
    struct iter *it = s->state;
    enqueue(s, it, r);
}

void iter_rekey(struct sched *s, const struct request *r)
{
    struct iter *it = s->state;
    if (heap_contains(r)) {
        heap_rekey(&it->ready, r, full_key(s, it, r));
    }
}

void iter_rekey_all(struct sched *s)
{
    struct iter *it = s->state;
    for (uint32_t i = 0; i < it->ready.n; i++) {
        heap_node(it->ready.a[i])->key = full_key(s, it, it->ready.a[i]);
    }
    for (uint32_t i = it->ready.n / 2; i-- > 0;) {
        heap_down(&it->ready, i);
    }
}

/* Out of those who wait. */
static void dequeue(struct iter *it, const struct request *r)
{
    heap_remove(&it->ready, r);
    heap_remove(&it->elders, r);
    heap_remove(&it->holders, r);
}

static void take(struct sched *s, struct iter *it, const struct request *r)
{
    dequeue(it, r);
    if (it->order->taken != NULL) {
        it->order->taken(s, r);
    }
}

static void leave(struct sched *s, struct iter *it, const struct request *r)
{
    dequeue(it, r);
    if (it->order->left != NULL) {
        it->order->left(s, r);
    }
}

void iter_request_cancelled(struct sched *s, const struct request *r)
{
    leave(s, s->state, r);
}

void iter_pass_done(struct sched *s, const struct pass *p)
{
    struct iter *it = s->state;
    int64_t elapsed = s->now_ns - it->running.began_ns;
    it->running = (struct iter_pass){0};
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        if (it->order->served != NULL) {
            it->order->served(s, r, &p->segments[i], elapsed);
        }
        if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
            gap_finished(s, &it->gap, r);
            leave(s, it, r);
        } else {
            enqueue(s, it, r);
        }
    }
}

void iter_launch_done(struct sched *s, const struct launch *l)
{
    struct iter *it = s->state;
    struct iter_pass *run = &it->running;
    if (run->launch != l) {
        return;
    }
    run->launch = NULL;
    const struct pass *p = run->pass;
    if (it->order->key_per_done_ns != 0.0 && p->op < p->n_ops) {
        bool lost = l->outcome == LAUNCH_OUTCOME_RESET; /* the kernel that ran will be redone */
        run->ran_ns += lost || l->start_ns == TIME_NEVER_NS ? 0 : l->end_ns - l->start_ns;
        run->ran_ns = progress_bounded_ns(s, p, lost ? p->op : p->op + 1, run->ran_ns, it->device);
    }
}

/* ---- making room ---- */

/* Takes a waiting request's KV, to nowhere or to flash. */
static bool evict(struct sched *s, struct iter *it, const struct request *r, bool swap)
{
    if (sched_kv_move(s, kv_of(r), swap ? KV_FLASH : KV_NOWHERE) != 0) {
        return false;
    }
    if (swap) {
        take(s, it, r);
    } else {
        iter_rekey(s, r);
    }
    return true;
}

/* Takes KV from the last one in memory order that waits and comes after `first`; dropped, not
 * swapped, so that the space is free at once. */
static bool evict_after(struct sched *s, struct iter *it, const struct request *first)
{
    const struct request *victim = heap_top(&it->holders);
    while (victim != NULL && victim->kv_tokens == 0) { /* the core has dropped it */
        heap_remove(&it->holders, victim);
        victim = heap_top(&it->holders);
    }
    if (victim == NULL || !keeps_memory_before(s, first, victim) || !evict(s, it, victim, false)) {
        return false;
    }
    heap_remove(&it->holders, victim);
    return true;
}

/* For a batch: after its first member in memory order. That one, served again and again, is never a
 * victim, so everybody's turn comes. */
static bool evict_last(struct sched *s, struct iter *it)
{
    const struct request *first = it->batch.segments[0].request;
    for (uint32_t i = 1; i < it->batch.n; i++) {
        const struct request *r = it->batch.segments[i].request;
        first = keeps_memory_before(s, r, first) ? r : first;
    }
    return evict_after(s, it, first);
}

/* Gives up a paused pass: its requests return, with the KV of earlier iterations. */
static bool cancel_paused(struct sched *s, struct iter *it)
{
    if (it->n_paused == 0) {
        return false;
    }
    struct pass *p = it->paused[it->n_paused - 1].pass;
    if (sched_pass_cancel(s, p) != 0) {
        return false;
    }
    it->n_paused--;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        if (r->state == REQUEST_STATE_SHED) {
            leave(s, it, r);
        } else {
            enqueue(s, it, r);
        }
    }
    return true;
}

/* ---- forming an iteration ---- */

static bool batch_is_reactive(const struct iter *it)
{
    return it->batch.n > 0 && it->batch.segments[0].request->cls == REQUEST_CLASS_REACTIVE;
}

/* Takes requests in order until the batch or the budget is full. Swapped ones start coming back
 * instead and wait outside the heap for kv_moved. */
static void fill(struct sched *s, struct iter *it, uint32_t most)
{
    uint32_t budget = (uint32_t)param_int(s, ITER_TOKEN_BUDGET);
    batch_clear(&it->batch);
    uint64_t free_tokens = sched_kv_free_tokens(s);
    uint64_t committed = 0; /* KV the members still need to finish their prompts */
    while (it->batch.n < most && it->batch.tokens < budget && heap_top(&it->ready) != NULL) {
        const struct request *r = heap_top(&it->ready);
        double now_key = full_key(s, it, r);
        if (now_key > heap_node(r)->key) {
            heap_rekey(&it->ready, r, now_key); /* keys may grow while their owner waits */
            continue;
        }
        if (r->cls == REQUEST_CLASS_PROACTIVE && batch_is_reactive(it) &&
            param_int(s, ITER_CLASS) == ITER_RT_ALONE) {
            return;
        }
        uint32_t left = request_prefill_left(r);
        if (left > 0 && r->kv_tokens == 0 && it->batch.n > 0 && committed + left > free_tokens) {
            return; /* admitting it would only make the others evict it again */
        }
        committed += left > 0 ? left : 1;
        take(s, it, r);
        if (r->kv_swapped) {
            if (sched_kv_move(s, kv_of(r), KV_MEMORY) != 0) {
                enqueue(s, it, r);
                return;
            }
            continue;
        }
        batch_add_next(&it->batch, r, budget - it->batch.tokens);
    }
}

/* Returns the last member of the batch to the heap. */
static void drop_last(struct sched *s, struct iter *it)
{
    const struct request *r = it->batch.segments[--it->batch.n].request;
    enqueue(s, it, r);
}

/* Forms the next iteration. When memory is short, those who are not in the batch lose their KV,
 * last in order first; then the batch shrinks. Each step takes something away, so this ends. */
static bool form_filled(struct sched *s, struct iter *it)
{
    while (it->batch.n > 0) {
        double best = heap_node(it->batch.segments[0].request)->key;
        struct pass *p;
        int rc = batch_form(s, &it->batch, &p);
        if (rc == 0) {
            it->running = (struct iter_pass){.pass = p, .best_key = best, .began_ns = s->now_ns};
            return true;
        }
        if (rc != -ENOMEM || !evict_last(s, it)) {
            drop_last(s, it);
        }
    }
    return false;
}

/* Nobody at the front of the order fits: the first in memory order does, alone. False
 * when not even that one does. */
static bool form_first(struct sched *s, struct iter *it)
{
    const struct request *first = heap_top(&it->elders);
    if (first == NULL) {
        return true;
    }
    if (first->kv_swapped) {
        int rc = sched_kv_move(s, kv_of(first), KV_MEMORY);
        while (rc == -ENOMEM && evict_after(s, it, first)) {
            rc = sched_kv_move(s, kv_of(first), KV_MEMORY);
        }
        if (rc == 0) {
            take(s, it, first);
        }
        return rc == 0;
    }
    batch_clear(&it->batch);
    take(s, it, first);
    batch_add_next(&it->batch, first, (uint32_t)param_int(s, ITER_TOKEN_BUDGET));
    bool formed = form_filled(s, it);
    it->running.finish = formed; /* were it stopped and its work lost, nobody would get anywhere */
    return formed;
}

static void form(struct sched *s, struct iter *it)
{
    bool done = false;
    while (!done) {
        fill(s, it, (uint32_t)param_int(s, ITER_MAX_BATCH));
        done =
            form_filled(s, it) || it->n_paused > 0 || form_first(s, it) || !gap_yield(s, &it->gap);
    }
}

/* ---- preemption ---- */

static struct iter_request *own(const struct request *r)
{
    return r->own;
}

/* Not when the urgent one would find no memory; and where stopping destroys work, not for ever. */
static bool worth_stopping(struct sched *s, const struct pass *p, const struct request *top)
{
    uint32_t left = request_prefill_left(top);
    uint32_t budget = (uint32_t)param_int(s, ITER_TOKEN_BUDGET);
    uint64_t need = top->kv_swapped ? top->kv_tokens
                    : left == 0     ? 1
                    : left < budget ? left
                                    : budget;
    bool fits = need <= sched_kv_free_tokens(s);
    for (uint32_t i = 0; i < p->n_segments && param_int(s, ITER_KV) != ITER_KV_CHECKPOINT; i++) {
        fits = fits && own(p->segments[i].request)->losses < ITER_MAX_LOSSES;
    }
    return fits;
}

/* The best key among the members of a pass by now. O(members) where work done changes keys. */
static double pass_key(struct sched *s, const struct iter *it, const struct iter_pass *ip)
{
    const struct pass *p = ip->pass;
    double per_ns = it->order->key_per_done_ns;
    int64_t all_ns = per_ns != 0.0 ? progress_ops_ns(s, p, p->n_ops, it->device) : 0;
    if (all_ns == 0) {
        return ip->best_key;
    }
    int64_t done_ns = ip->ran_ns;
    if (ip->launch != NULL && ip->launch->state == LAUNCH_STATE_RUNNING) {
        done_ns += s->now_ns - ip->launch->start_ns;
        done_ns = progress_bounded_ns(s, p, ip->launch->op_end, done_ns, it->device);
    }
    double best = (double)INFINITY;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct segment *seg = &p->segments[i];
        double own_ns = (double)progress_segment_ns(s, seg, it->device);
        double key =
            heap_node(seg->request)->key + per_ns * own_ns * ((double)done_ns / (double)all_ns);
        best = key < best ? key : best;
    }
    return best;
}

static void maybe_preempt(struct sched *s, struct iter *it)
{
    struct iter_pass *run = &it->running;
    enum iter_preempt how = (enum iter_preempt)param_int(s, ITER_PREEMPT);
    const struct request *top = heap_top(&it->ready);
    if (how == ITER_PREEMPT_ITERATION || top == NULL || run->launch == NULL || run->stopping ||
        run->finish || it->n_paused == ITER_MAX_PAUSED ||
        heap_node(top)->key >= pass_key(s, it, run)) {
        return;
    }
    if (!worth_stopping(s, run->pass, top)) {
        return;
    }
    run->stopping = true;
    (void)sched_preempt(s, run->launch,
                        how == ITER_PREEMPT_RESET
                            ? (struct preempt_spec){.now = true, .discard = true}
                            : xsched_stop(param_int(s, ITER_LEVEL)));
}

/* The running pass has stopped: keep it aside, or let its requests lose what the kv axis says. */
static void put_aside(struct sched *s, struct iter *it)
{
    it->running.stopping = false;
    it->paused[it->n_paused++] = it->running;
    it->running = (struct iter_pass){0};
    if (param_int(s, ITER_KV) == ITER_KV_CHECKPOINT) {
        return;
    }
    struct pass *p = it->paused[it->n_paused - 1].pass;
    if (!cancel_paused(s, it)) {
        return;
    }
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        own(r)->losses++;
        if (r->state != REQUEST_STATE_SHED && r->kv_tokens > 0) {
            (void)evict(s, it, r, param_int(s, ITER_KV) == ITER_KV_SWAP);
        }
    }
}

/* The paused pass with the least key by now; of equal ones the last stopped. n_paused > 0. Where
 * keys fall with work done (srpt) that is the last stopped one; where they grow (llf) one that was
 * stopped earlier may have become more urgent than it. */
static uint32_t most_urgent_paused(struct sched *s, const struct iter *it, double *key)
{
    uint32_t best = it->n_paused - 1;
    *key = pass_key(s, it, &it->paused[best]);
    for (uint32_t i = best; i-- > 0;) {
        double k = pass_key(s, it, &it->paused[i]);
        if (k < *key) {
            best = i;
            *key = k;
        }
    }
    return best;
}

static void resume(struct iter *it, uint32_t i)
{
    it->running = it->paused[i];
    it->n_paused--;
    for (; i < it->n_paused; i++) {
        it->paused[i] = it->paused[i + 1];
    }
}

/* The most urgent of: the paused passes, a new iteration. A running pass is stopped for a request
 * that waits, never for a paused pass: two whose keys grow with their work would take turns at
 * every boundary. */
static void choose(struct sched *s, struct iter *it)
{
    const struct request *top = heap_top(&it->ready);
    double key = 0.0;
    uint32_t paused = it->n_paused > 0 ? most_urgent_paused(s, it, &key) : 0;
    if (it->n_paused > 0 && (top == NULL || heap_node(top)->key >= key)) {
        resume(it, paused);
        return;
    }
    form(s, it);
    if (it->running.pass == NULL && it->n_paused > 0) {
        resume(it, paused); /* no memory for new work: finish the old */
        it->running.finish = true;
    }
}

/* ---- estimates ---- */

static int64_t pass_ns(struct sched *s, const struct work_shape *w, uint8_t device, bool fused)
{
    const struct layer_ops *ops = &s->llm->layer;
    struct estimate e;
    int64_t layer = 0;
    if (fused) {
        layer = sched_estimate(s, w, OP_LAYER, device, 0, &e) == 0 ? e.t_ns : 0;
    }
    for (uint32_t i = 0; i < ops->n && !fused; i++) {
        layer += sched_estimate(s, w, ops->kind[i], device, 0, &e) == 0 ? e.t_ns : 0;
    }
    int64_t head = sched_estimate(s, w, OP_HEAD, device, 0, &e) == 0 ? e.t_ns : 0;
    return layer * s->llm->n_layers + head;
}

/* n rows of a prompt after `before` tokens of context. */
static struct work_shape chunk_shape(uint32_t before, uint32_t n, bool last)
{
    return (struct work_shape){.rows = n,
                               .logit_rows = last ? 1 : 0,
                               .sequences = 1,
                               .prefill_rows = n,
                               .attn_pairs = (uint64_t)n * before + (uint64_t)n * (n + 1) / 2,
                               .kv_read_tokens = (uint64_t)before + n,
                               .max_context_tokens = before + n};
}

int64_t iter_prefill_ns(struct sched *s, const struct request *r, uint8_t device)
{
    uint64_t n = request_prefill_left(r);
    if (n == 0) {
        return 0;
    }
    struct work_shape w = chunk_shape(r->kv_tokens, (uint32_t)n, true);
    return pass_ns(s, &w, device, false);
}

int64_t iter_decode_ns(struct sched *s, const struct request *r, uint8_t device,
                       uint64_t out_tokens)
{
    uint32_t context = request_length(r) + 1;
    struct work_shape w = {.rows = 1,
                           .logit_rows = 1,
                           .sequences = 1,
                           .attn_pairs = context,
                           .kv_read_tokens = context,
                           .max_context_tokens = context};
    return (int64_t)out_tokens * pass_ns(s, &w, device, true);
}

/* To prefill that many tokens from nothing, a budget at a time. */
static int64_t context_ns(struct sched *s, uint32_t tokens)
{
    const struct iter *it = s->state;
    uint32_t budget = (uint32_t)param_int(s, ITER_TOKEN_BUDGET);
    int64_t t = 0;
    for (uint32_t done = 0; done < tokens;) {
        uint32_t n = tokens - done < budget ? tokens - done : budget;
        struct work_shape w = chunk_shape(done, n, done + n == tokens);
        t += pass_ns(s, &w, it->device, false);
        done += n;
    }
    return t;
}

void iter_schedule(struct sched *s)
{
    struct iter *it = s->state;
    gap_schedule(s, &it->gap, context_ns);
    if (it->order->refresh != NULL) {
        it->order->refresh(s);
    }
    if (it->running.pass != NULL && it->running.launch != NULL) {
        maybe_preempt(s, it);
        return;
    }
    if (it->running.pass != NULL && it->running.stopping &&
        it->running.pass->state == PASS_STATE_READY) {
        put_aside(s, it);
    }
    if (it->running.pass == NULL) {
        choose(s, it);
    }
    if (it->running.pass == NULL || it->running.pass->state != PASS_STATE_READY) {
        return;
    }
    static const enum yield_point yields[] = {YIELD_PASS, YIELD_LAYER, YIELD_KERNEL, YIELD_KERNEL};
    struct launch_spec spec =
        sched_launch_rest(s, it->running.pass, it->device, yields[param_int(s, ITER_PREEMPT)]);
    spec.inflight = (uint32_t)param_int(s, ITER_INFLIGHT);
    (void)sched_launch(s, &spec, &it->running.launch);
}
