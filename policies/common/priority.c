#include "policies/common/priority.h"
#include "policies/common/place.h"

static const char *const level_choices[] = {XSCHED_LEVEL_CHOICES, NULL};

const struct policy_param priority_params[] = {
    [PRIORITY_MAX_BATCH] = POLICY_INT(
        "max_batch", 16, 1, 4096, "sequences per decode iteration (clauses.md E.1: 16 on a SoC)"),
    [PRIORITY_INFLIGHT] =
        POLICY_INT("inflight", 2, 1, 64,
                   "kernels handed to a device ahead (XSched: 16, tuned to 2 to 16; E.4)"),
    [PRIORITY_LEVEL] =
        POLICY_CHOICE("level", XSCHED_LEVEL_DEVICE, level_choices, XSCHED_LEVEL_HELP),
    {.name = NULL},
};

/* Larger than any priority of a trace. */
#define CLASS_STEP 1e10
#define NOBODY 1e300 /* key of no request: after all keys */

static double key_of(const struct request *r)
{
    /* The key excludes arrival, because requests of one key are batched. The order breaks ties by
     * arrival. */
    return r->priority + (r->cls == REQUEST_CLASS_PROACTIVE ? CLASS_STEP : 0.0);
}

static bool is_suspended(const struct request *r)
{
    const struct pass *p = ((const struct priority_request *)r->own)->suspended;
    SIM_ASSERT(p == NULL || (p == r->pass && p->n_launches == 0));
    return p != NULL;
}

int priority_init(struct sched *s, bool system_wide)
{
    struct priority *h = s->state;
    const struct machine *m = s->machine;
    *h = (struct priority){.system_wide = system_wide,
                           .decode_ready_ns = TIME_NEVER_NS,
                           .npu = machine_find(m, DEVICE_KIND_NPU),
                           .igpu = machine_find(m, DEVICE_KIND_IGPU)};
    h->chunk = m->devices[h->npu].chunk_rows;
    int64_t level = param_int(s, PRIORITY_LEVEL);
    SIM_ASSERT(h->npu >= 0 && h->igpu >= 0 && h->npu != h->igpu); /* CAP_NPU, CAP_IGPU */
    bool can = xsched_can(&m->devices[h->npu], level) && xsched_can(&m->devices[h->igpu], level);
    return can ? place_needs_chunks(s, h->npu) : -EPERM;
}

void priority_exit(struct sched *s)
{
    struct priority *h = s->state;
    batch_fini(&h->batch);
}

void priority_request_arrived(struct sched *s, const struct request *r)
{
    struct priority *h = s->state;
    SIM_ASSERT(r->state == REQUEST_STATE_QUEUED && !is_suspended(r));
    order_add(&h->waiting, r, key_of(r));
}

void priority_request_cancelled(struct sched *s, const struct request *r)
{
    struct priority *h = s->state;
    /* It is in no live pass, so its prompt is neither current nor suspended. */
    SIM_ASSERT(order_of(r) != NULL && r != h->current && !is_suspended(r));
    order_remove(order_of(r), r);
}

void priority_launch_done(struct sched *s, const struct launch *l)
{
    struct priority *h = s->state;
    h->no_memory = false;
    if (!hetero_ended(&h->prefill, l)) {
        SIM_ASSERT(h->on_igpu == l && l->pass == h->iteration.pass);
        h->on_igpu = NULL;
    }
}

/* Adds unfinished requests of a pass to the orders again. */
static void return_members(struct priority *h, const struct pass *p)
{
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        SIM_ASSERT(r->pass == NULL && order_of(r) == NULL);
        if (r->state == REQUEST_STATE_DECODE) {
            order_add(&h->decoding, r, key_of(r));
        } else if (r->state == REQUEST_STATE_QUEUED) {
            order_add(&h->waiting, r, key_of(r));
        }
    }
}

static void take_paused(struct priority *h, uint32_t i)
{
    SIM_ASSERT(i < h->n_paused);
    for (h->n_paused--; i < h->n_paused; i++) {
        h->paused[i] = h->paused[i + 1];
    }
}

/* Forgets a cancelled pass, of a paused iteration or of a prompt. */
static void forget_stopped(struct priority *h, const struct pass *p)
{
    const struct request *first = p->segments[0].request;
    struct priority_request *own = first->own;
    if (own->suspended == p) {
        own->suspended = NULL;
        order_remove(&h->waiting, first);
        return;
    }
    uint32_t i = 0;
    while (i < h->n_paused && h->paused[i].pass != p) {
        i++;
    }
    take_paused(h, i);
}

void priority_pass_done(struct sched *s, const struct pass *p)
{
    struct priority *h = s->state;
    h->no_memory = false;
    if (p == h->prefill.pass) {
        SIM_ASSERT(p->segments[0].request == h->current);
        hetero_clear(&h->prefill);
        h->current = NULL;
    } else if (p == h->iteration.pass) {
        SIM_ASSERT(h->on_igpu == NULL);
        h->iteration = (struct priority_group){0};
    } else { /* cancelled while stopped */
        SIM_ASSERT(p->state == PASS_STATE_CANCELLED);
        forget_stopped(h, p);
    }
    return_members(h, p);
    SIM_ASSERT(priority_ok(h));
}

static void stop(struct sched *s, const struct launch *l)
{
    SIM_ASSERT(l == NULL || l->state != LAUNCH_STATE_ENDED); /* launch_done clears it */
    if (l != NULL && !l->stop_requested) {
        (void)sched_preempt(s, l, xsched_stop(param_int(s, PRIORITY_LEVEL)));
    }
}

/* ---- making room ---- */

/* The last request of an order that is behind `first` and for which `holds` is true. */
static const struct request *last_after(const struct order *in, const struct request *first,
                                        bool (*holds)(const struct request *r))
{
    const struct request *last = order_last(in);
    while (last != NULL && order_less(in, first, last) && !holds(last)) {
        last = order_prev(in, last);
    }
    last = last != NULL && order_less(in, first, last) ? last : NULL;
    SIM_ASSERT(last == NULL || (last != first && last->pass == NULL) || is_suspended(last));
    return last;
}

static bool holds_kv(const struct request *r)
{
    return r->kv_tokens > 0;
}

static bool cancel_group(struct sched *s, struct priority *h, struct priority_group *g)
{
    struct pass *p = g->pass;
    SIM_ASSERT(p->n_launches == 0 && (g != &h->iteration || h->on_igpu == NULL));
    if (sched_pass_cancel(s, p) != 0) {
        return false;
    }
    *g = (struct priority_group){0};
    return_members(h, p);
    return true;
}

/* Cancels a stopped prompt, which frees its KV. */
static bool cancel_prompt(struct sched *s, struct priority *h, const struct request *r)
{
    struct priority_request *own = r->own;
    bool is_current = r == h->current;
    struct pass *p = is_current ? h->prefill.pass : own->suspended;
    SIM_ASSERT(p == r->pass && p->n_segments == 1 && is_current == !is_suspended(r));
    if (p->state != PASS_STATE_READY || sched_pass_cancel(s, p) != 0) {
        return false;
    }
    if (is_current) {
        h->current = NULL;
        hetero_clear(&h->prefill);
    } else {
        own->suspended = NULL;
        order_remove(&h->waiting, r);
    }
    return_members(h, p);
    SIM_ASSERT(r->pass == NULL && !is_suspended(r) && priority_ok(h));
    return true;
}

/* Frees memory behind `first`: cancels paused iterations of lower priority (so that members can be
 * evicted), then prompts, then evicts requests in decode. */
static bool make_room(struct sched *s, struct priority *h, const struct request *first)
{
    double key = key_of(first);
    SIM_ASSERT(priority_ok(h));
    /* The bottom of the stack is least urgent. */
    if (h->n_paused > 0 && h->paused[0].key > key && cancel_group(s, h, &h->paused[0])) {
        take_paused(h, 0);
        SIM_ASSERT(priority_ok(h));
        return true;
    }
    if (h->iteration.pass != NULL && h->iteration.key > key &&
        h->iteration.pass->state == PASS_STATE_READY && cancel_group(s, h, &h->iteration)) {
        return true;
    }
    const struct request *prompt = last_after(&h->waiting, first, is_suspended);
    if (prompt != NULL && cancel_prompt(s, h, prompt)) {
        return true;
    }
    /* Other waiting requests have at most a cached prefix, which counts as free already. */
    const struct request *r = last_after(&h->decoding, first, holds_kv);
    if (r != NULL && sched_kv_move(s, kv_of(r), KV_NOWHERE) == 0) {
        order_remove(&h->decoding, r);
        order_add(&h->waiting, r, key_of(r));
        return true;
    }
    /* The current prompt is the last choice, and only while it has no launch. */
    return h->current != NULL && h->current != first &&
           order_less(&h->waiting, first, h->current) && cancel_prompt(s, h, h->current);
}

/* ---- prompts ---- */

static void begin_prompt(struct sched *s, struct priority *h, const struct request *r)
{
    struct priority_request *own = r->own;
    /* A displaced prompt continues with its pass, which needs no new KV. */
    struct pass *p = own->suspended;
    SIM_ASSERT(h->current == NULL && priority_ok(h) && (p == NULL || p == r->pass));
    struct segment seg = {
        .request = r, .role = SEGMENT_PREFILL, .n_tokens = request_prefill_left(r)};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1};
    while (p == NULL) {
        int rc = sched_pass_form(s, &spec, &p);
        if (rc != 0 && (rc != -ENOMEM || !make_room(s, h, r))) {
            return;
        }
    }
    own->suspended = NULL;
    order_remove(&h->waiting, r);
    h->current = r;
    hetero_begin(&h->prefill, p);
    h->prefill.inflight = (uint32_t)param_int(s, PRIORITY_INFLIGHT);
    SIM_ASSERT(p->segments[0].request == r && order_of(r) == NULL && priority_ok(h));
}

/* Gives the NPU to the most urgent prompt. The displaced one keeps its pass. */
static void choose_prompt(struct sched *s, struct priority *h, double bound)
{
    const struct request *top = order_first(&h->waiting);
    if (top == NULL || key_of(top) > bound) {
        return;
    }
    if (h->current != NULL && key_of(top) < key_of(h->current)) {
        stop(s, h->prefill.on_npu);
        stop(s, h->prefill.on_igpu);
        /* The displaced prompt has the NPU until its kernels reach the boundary that the level
         * demands. */
        if (h->prefill.pass->state != PASS_STATE_READY) {
            return;
        }
        struct priority_request *own = h->current->own;
        SIM_ASSERT(own->suspended == NULL && h->current->pass == h->prefill.pass);
        own->suspended = h->prefill.pass;
        order_add(&h->waiting, h->current, key_of(h->current));
        h->current = NULL;
        hetero_clear(&h->prefill);
    }
    if (h->current == NULL) {
        begin_prompt(s, h, top);
    }
}

/* ---- iterations ---- */

/* Forms an iteration of the most urgent decodes, all of one priority. */
static void form(struct sched *s, struct priority *h)
{
    uint32_t most = (uint32_t)param_int(s, PRIORITY_MAX_BATCH);
    const struct request *top = order_first(&h->decoding);
    double key = top == NULL ? 0.0 : key_of(top);
    SIM_ASSERT(h->iteration.pass == NULL && h->on_igpu == NULL);
    batch_clear(&h->batch);
    /* A batch of two priorities could not be suspended for one of them (E.4). */
    while (top != NULL && key_of(top) == key && h->batch.n < most) {
        order_remove(&h->decoding, top);
        batch_add(&h->batch, top, SEGMENT_DECODE, 1);
        top = batch_first(&h->batch, &h->decoding);
    }
    while (h->batch.n > 0) {
        struct pass *p;
        int rc = batch_form(s, &h->batch, &p);
        if (rc == 0) {
            h->iteration = (struct priority_group){p, key};
            SIM_ASSERT(key_of(h->batch.segments[h->batch.n - 1].request) == key);
            return;
        }
        if (rc != -ENOMEM || !make_room(s, h, h->batch.segments[0].request)) {
            const struct request *r = h->batch.segments[--h->batch.n].request;
            order_add(&h->decoding, r, key_of(r));
        }
    }
    /* Decodes without memory must not stop a prompt, or neither could continue. */
    h->no_memory = true;
}

/* Chooses the running group: the stopped one, a paused one, or a new one. */
static void choose_group(struct sched *s, struct priority *h)
{
    const struct request *top = order_first(&h->decoding);
    double key = top == NULL ? NOBODY : key_of(top);
    struct priority_group *g = &h->iteration;
    if (g->pass != NULL && g->pass->state == PASS_STATE_READY && key < g->key) {
        /* The stack is full: the work of one iteration is lost, nothing else. */
        /* The last stopped group is the most urgent. */
        SIM_ASSERT(h->n_paused == 0 || h->paused[h->n_paused - 1].key >= g->key);
        SIM_ASSERT(g->pass->n_launches == 0 && h->on_igpu == NULL);
        if (h->n_paused < PRIORITY_MAX_PAUSED) {
            h->paused[h->n_paused++] = *g;
            *g = (struct priority_group){0};
        } else {
            (void)cancel_group(s, h, g);
        }
    }
    if (g->pass != NULL) {
        return;
    }
    if (h->n_paused > 0 && h->paused[h->n_paused - 1].key <= key) {
        *g = h->paused[--h->n_paused];
    } else {
        form(s, h);
    }
    SIM_ASSERT(priority_ok(h));
}

/* Least key of sequences that are ready to decode; NOBODY while the host samples. */
static double decode_key(const struct priority *h)
{
    const struct pass *p = h->iteration.pass;
    if (p != NULL && h->on_igpu == NULL && p->state != PASS_STATE_READY) {
        return NOBODY;
    }
    double key = p != NULL ? h->iteration.key : NOBODY;
    if (h->n_paused > 0) {
        key = fmin(key, h->paused[h->n_paused - 1].key);
    }
    const struct request *top = order_first(&h->decoding);
    SIM_ASSERT(top == NULL || (top->state == REQUEST_STATE_DECODE && key_of(top) < NOBODY));
    return top != NULL ? fmin(key, key_of(top)) : key;
}

static double prompt_key(const struct priority *h)
{
    double key = h->current != NULL ? key_of(h->current) : NOBODY;
    const struct request *top = order_first(&h->waiting);
    SIM_ASSERT(top == NULL || (top->state == REQUEST_STATE_QUEUED && key_of(top) < NOBODY));
    return top != NULL ? fmin(key, key_of(top)) : key;
}

static bool iterate(struct sched *s, struct priority *h, bool one_op)
{
    if (sched_device_free_slots(s, (uint8_t)h->igpu) == 0) {
        return false;
    }
    choose_group(s, h);
    if (h->iteration.pass == NULL || h->iteration.pass->state != PASS_STATE_READY) {
        return false;
    }
    SIM_ASSERT(h->on_igpu == NULL && h->iteration.pass->op < h->iteration.pass->n_ops);
    struct launch_spec spec =
        sched_launch_rest(s, h->iteration.pass, (uint8_t)h->igpu, YIELD_KERNEL);
    spec.n_ops = one_op ? 1 : spec.n_ops;
    spec.inflight = (uint32_t)param_int(s, PRIORITY_INFLIGHT);
    return sched_launch(s, &spec, &h->on_igpu) == 0;
}

/* ---- devices ---- */

/* The iGPU: attention and margins of the prompt compete with iterations. The more urgent one goes
 * first and stops the other. With equal keys, kernels run in the order in which they become ready.
 */
static void igpu(struct sched *s, struct priority *h, double bound)
{
    bool waits = h->prefill.igpu_rows > 0 && h->prefill.on_igpu == NULL;
    SIM_ASSERT(priority_ok(h));
    double prompt = waits ? key_of(h->current) : NOBODY;
    double decode = decode_key(h);
    if (h->on_igpu != NULL) {
        const struct launch *l = h->on_igpu;
        /* With equal keys only an iteration launched whole is stopped; one launched op by op
         * alternates already. */
        bool whole = l->op_end - l->op_begin > 1;
        if (decode < h->iteration.key || prompt < h->iteration.key || bound < h->iteration.key ||
            (prompt == h->iteration.key && whole)) {
            stop(s, l);
        }
        return;
    }
    if (h->prefill.on_igpu != NULL) {
        double running = key_of(h->current);
        if ((decode < running && !h->no_memory) || bound < running) {
            stop(s, h->prefill.on_igpu);
        }
        return;
    }
    bool prompt_first =
        prompt < decode || (prompt == decode && h->prefill.ready_ns <= h->decode_ready_ns);
    if (!prompt_first && decode <= bound && iterate(s, h, prompt == decode)) {
        return;
    }
    if (h->current != NULL && key_of(h->current) <= bound) {
        (void)hetero_launch(s, &h->prefill, h->igpu, false, UINT32_MAX, YIELD_KERNEL);
    }
}

static void npu(struct sched *s, struct priority *h, double bound)
{
    if (h->current == NULL) {
        return;
    }
    if (hetero_at_boundary(&h->prefill)) {
        hetero_plan(s, &h->prefill, hetero_default_rows(&h->prefill, h->chunk, false));
        SIM_ASSERT(h->prefill.npu_rows % h->chunk == 0); /* whole chunks: no padding */
    }
    if (key_of(h->current) > bound) {
        stop(s, h->prefill.on_npu);
        return;
    }
    (void)hetero_launch(s, &h->prefill, h->npu, true, UINT32_MAX, YIELD_KERNEL);
}

void priority_schedule(struct sched *s)
{
    struct priority *h = s->state;
    SIM_ASSERT(priority_is_consistent(h));
    sched_again(s); /* a new launch may have to be stopped for another one */
    /* HHPF: no device works for requests behind the most urgent one that is ready on any device. */
    double bound = h->system_wide ? fmin(prompt_key(h), decode_key(h)) : NOBODY;
    /* The NPU first, because the plan of a new prompt may have a share for the iGPU. */
    choose_prompt(s, h, bound);
    npu(s, h, bound);
    if (decode_key(h) == NOBODY || h->on_igpu != NULL) {
        h->decode_ready_ns = TIME_NEVER_NS;
    } else if (h->decode_ready_ns == TIME_NEVER_NS) {
        h->decode_ready_ns = s->now_ns;
    }
    igpu(s, h, bound);
    SIM_ASSERT(priority_is_consistent(h));
}
