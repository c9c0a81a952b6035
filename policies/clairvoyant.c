#include "policies/clairvoyant.h"

#include "policies/common/batch.h"
#include "policies/common/blocks.h"
#include "policies/common/hetero.h"
#include "policies/common/iter.h"
#include "policies/common/order.h"

#define OTHER_CLASS 1e15 /* ns, 11 days: added to keys of the second class */

struct clairvoyant {
    struct order queued, decoding; /* requests in no pass */
    struct batch batch;
    struct pass *prefill, *iteration; /* live, or NULL */
    struct hetero hetero;             /* the prefill, if it runs op by op on NPU and iGPU */
    int attention;                    /* device for attention; -1: the prefill is one launch */
};

static bool is_static(const struct machine *m, uint8_t device)
{
    return m->devices[device].static_attention;
}

bool clairvoyant_can_decode(const struct machine *m, uint8_t device)
{
    return device < m->n_devices && !is_static(m, device);
}

bool clairvoyant_can_prefill(const struct machine *m, uint8_t device)
{
    return device < m->n_devices &&
           (!is_static(m, device) || machine_find(m, DEVICE_KIND_IGPU) >= 0);
}

static int init(struct sched *s)
{
    struct clairvoyant *c = s->state;
    const struct clairvoyant_plan *p = s->context;
    if (p == NULL || p->max_batch == 0 || !clairvoyant_can_prefill(s->machine, p->prefill_device) ||
        !clairvoyant_can_decode(s->machine, p->decode_device)) {
        return -EINVAL;
    }
    /* With static attention on the prefill device, attention runs on the iGPU. */
    bool split = is_static(s->machine, p->prefill_device);
    c->attention = split ? machine_find(s->machine, DEVICE_KIND_IGPU) : -1;
    return 0;
}

static void fini(struct sched *s)
{
    struct clairvoyant *c = s->state;
    if (c != NULL) {
        batch_fini(&c->batch);
    }
}

/* ---- the order ---- */

static double key_of(struct sched *s, const struct request *r)
{
    const struct clairvoyant_plan *p = s->context;
    double second = p->reactive_first && r->cls != REQUEST_CLASS_REACTIVE ? OTHER_CLASS : 0.0;
    if (p->order != NULL) {
        uint32_t rank = 0;
        /* Requests that the order lacks have the last rank, and are ordered by arrival. */
        while (rank < p->n_order && p->order[rank] != r->id) {
            rank++;
        }
        return second + rank;
    }
    int64_t left = sched_oracle_output_tokens(s, r) - r->generated_tokens;
    left -= request_prefill_left(r) > 0; /* the prefill yields a token */
    uint8_t d = p->decode_device;
    /* Shortest remaining isolated time minimises the mean on one preemptive machine. Here it is
     * only a good start for the search of plans. */
    return second + (double)(iter_prefill_ns(s, r, d) + iter_decode_ns(s, r, d, (uint64_t)left));
}

static void enqueue(struct sched *s, const struct request *r)
{
    struct clairvoyant *c = s->state;
    bool queued = r->state == REQUEST_STATE_QUEUED;
    ((struct iter_request *)r->own)->found = r->reused_tokens;
    /* The key is computed here, because the remaining work has changed. */
    order_add(queued ? &c->queued : &c->decoding, r, key_of(s, r));
}

static void arrived(struct sched *s, const struct request *r)
{
    enqueue(s, r);
}

/* Updates keys of waiting prompts whose cached prefix has changed, which is not reported. */
static void look_up(struct sched *s, struct clairvoyant *c)
{
    const struct clairvoyant_plan *p = s->context;
    const struct request *next = p->order == NULL ? order_first(&c->queued) : NULL;
    for (const struct request *r = next; r != NULL; r = next) {
        next = order_next(&c->queued, r);
        if (((struct iter_request *)r->own)->found != r->reused_tokens) {
            order_remove(&c->queued, r);
            enqueue(s, r);
        }
    }
}

static void cancelled(struct sched *s UNUSED, const struct request *r)
{
    order_remove(order_of(r), r);
}

static void pass_done(struct sched *s, const struct pass *p)
{
    struct clairvoyant *c = s->state;
    if (p == c->prefill) {
        c->prefill = NULL;
        hetero_clear(&c->hetero);
    } else {
        c->iteration = NULL;
    }
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        if (r->state == REQUEST_STATE_QUEUED || r->state == REQUEST_STATE_DECODE) {
            enqueue(s, r);
        }
    }
}

static void launch_done(struct sched *s, const struct launch *l)
{
    struct clairvoyant *c = s->state;
    (void)hetero_ended(&c->hetero, l);
}

/* ---- passes ---- */

/* Frees KV: evicts the last request of the order that has KV and is in no pass. */
static bool give_way(struct sched *s, struct clairvoyant *c, const struct request *keep)
{
    const struct request *last = NULL;
    const struct order *orders[] = {&c->decoding, &c->queued};
    for (int i = 0; i < 2; i++) {
        const struct request *r = order_last(orders[i]);
        while (r != NULL && (r == keep || blocks_held(s, r) == 0)) {
            r = order_prev(orders[i], r);
        }
        last = last == NULL || (r != NULL && order_less(orders[i], last, r)) ? r : last;
    }
    /* Never a request before `keep`: two could evict each other for ever. */
    if (last == NULL || (keep != NULL && order_less(&c->queued, last, keep))) {
        return false;
    }
    order_remove(order_of(last), last);
    /* Queue it again after the eviction, which changes its state, order and key. */
    int rc = sched_kv_move(s, kv_of(last), KV_NOWHERE);
    enqueue(s, last);
    return rc == 0;
}

static void start_prefill(struct sched *s, struct clairvoyant *c)
{
    const struct request *r = order_first(&c->queued);
    struct segment seg = {
        .request = r, .role = SEGMENT_PREFILL, .n_tokens = request_prefill_left(r)};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1};
    int rc;
    do {
        rc = sched_pass_form(s, &spec, &c->prefill);
    } while (rc == -ENOMEM && give_way(s, c, r));
    if (rc != 0) {
        c->prefill = NULL;
        return;
    }
    order_remove(&c->queued, r);
    if (c->attention >= 0) {
        hetero_begin(&c->hetero, c->prefill);
    }
}

static void start_iteration(struct sched *s, struct clairvoyant *c)
{
    const struct clairvoyant_plan *p = s->context;
    batch_clear(&c->batch);
    for (const struct request *r;
         c->batch.n < p->max_batch && (r = batch_first(&c->batch, &c->decoding)) != NULL;) {
        order_remove(&c->decoding, r);
        batch_put(&c->batch, r, SEGMENT_DECODE, 1);
    }
    int rc;
    while ((rc = batch_form(s, &c->batch, &c->iteration)) == -ENOMEM) {
        if (!give_way(s, c, NULL)) {
            /* A single request that does not fit waits for the end of the prefill, which can be
             * evicted then. */
            if (c->batch.n == 1) {
                break;
            }
            const struct request *last = c->batch.segments[c->batch.n - 1].request;
            (void)batch_leave(&c->batch, last);
            enqueue(s, last);
        }
    }
    if (rc != 0) {
        c->iteration = NULL;
        for (uint32_t i = 0; i < c->batch.n; i++) {
            enqueue(s, c->batch.segments[i].request);
        }
    }
}

static void launch_whole(struct sched *s, struct pass *p, uint8_t device)
{
    if (p != NULL && p->state == PASS_STATE_READY && sched_device_free_slots(s, device) > 0) {
        struct launch_spec spec = sched_launch_rest(s, p, device, YIELD_PASS);
        (void)sched_launch(s, &spec, NULL);
    }
}

/* Whether the rest of the prefill goes before the iteration on a device that both use. */
static bool prefill_goes_first(const struct clairvoyant *c)
{
    return c->prefill != NULL && c->iteration != NULL && c->iteration->state == PASS_STATE_READY &&
           order_less(&c->queued, c->prefill->segments[0].request,
                      c->iteration->segments[0].request);
}

static void advance_prefill(struct sched *s, struct clairvoyant *c, uint8_t device)
{
    if (c->attention < 0) {
        launch_whole(s, c->prefill, device);
        return;
    }
    if (hetero_at_boundary(&c->hetero)) {
        uint32_t chunk = s->machine->devices[device].chunk_rows;
        hetero_plan(s, &c->hetero, hetero_default_rows(&c->hetero, chunk, true));
    }
    hetero_launch_both(s, &c->hetero, device, c->attention);
}

static void schedule(struct sched *s)
{
    struct clairvoyant *c = s->state;
    const struct clairvoyant_plan *p = s->context;
    look_up(s, c);
    bool one = p->prefill_device == p->decode_device; /* one instance: one pass at a time */
    bool free_p = c->prefill == NULL && order_first(&c->queued) != NULL;
    bool free_d = c->iteration == NULL && order_first(&c->decoding) != NULL;
    if (one && (c->prefill != NULL || c->iteration != NULL)) {
        /* A list schedule: no request joins a running iteration, and no prompt is interrupted. */
        free_p = free_d = false;
    } else if (one && free_p && free_d) {
        free_p = order_less(&c->queued, order_first(&c->queued), order_first(&c->decoding));
        free_d = !free_p;
    }
    if (free_p) {
        start_prefill(s, c);
    }
    if (free_d || (one && free_p && c->prefill == NULL && order_first(&c->decoding) != NULL)) {
        start_iteration(s, c); /* also if the prompt found no room */
    }
    /* Both may need the iGPU now. The first launch gets it. */
    if (prefill_goes_first(c)) {
        advance_prefill(s, c, p->prefill_device);
        launch_whole(s, c->iteration, p->decode_device);
    } else {
        launch_whole(s, c->iteration, p->decode_device);
        advance_prefill(s, c, p->prefill_device);
    }
}

const struct policy_ops policy_clairvoyant_ops = {
    .name = "clairvoyant",
    .summary = "a list schedule given in advance",
    .contract = POLICY_CONTRACT,
    .flags = POLICY_F_ORACLE,
    .needs = CAP_SPANS | CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct clairvoyant),
    .request_state_size_bytes = sizeof(struct iter_request),
    .init = init,
    .exit = fini,
    .request_arrived = arrived,
    .request_cancelled = cancelled,
    .launch_done = launch_done,
    .pass_done = pass_done,
    .schedule = schedule,
};
