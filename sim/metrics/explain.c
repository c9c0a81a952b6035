#include "sim/metrics/explain.h"

#include "sim/metrics/explain_impl.h"

const char *const explain_cause_names[EXPLAIN_CAUSE_COUNT] = {
    [EXPLAIN_EVICTION] = "eviction",
    [EXPLAIN_COMPILE] = "compile",
    [EXPLAIN_GRAPH_LOAD] = "graph_load",
    [EXPLAIN_KERNEL_TAIL] = "kernel_tail",
    [EXPLAIN_HELD_BACK] = "held_back",
    [EXPLAIN_BATCHING] = "batching",
    [EXPLAIN_QUEUE_SAME] = "queue_same",
    [EXPLAIN_QUEUE_OTHER] = "queue_other",
    [EXPLAIN_HELD] = "held",
    [EXPLAIN_GRAPHICS] = "graphics",
    [EXPLAIN_HOST] = "host",
    [EXPLAIN_THROTTLING] = "throttling",
    [EXPLAIN_DDR_SLOWDOWN] = "ddr_slowdown",
    [EXPLAIN_DEVICE_SHARING] = "device_sharing",
    [EXPLAIN_KILLED] = "killed",
    [EXPLAIN_SHARED_PASS] = "shared_pass",
    [EXPLAIN_RECOMPUTE] = "recompute",
    [EXPLAIN_COMPUTE] = "compute",
};

const char *const explain_cause_texts[EXPLAIN_CAUSE_COUNT] = {
    [EXPLAIN_EVICTION] = "its KV was evicted",
    [EXPLAIN_COMPILE] = "its attention kernel was compiled",
    [EXPLAIN_GRAPH_LOAD] = "a graph or the weights of a model were loaded",
    [EXPLAIN_KERNEL_TAIL] = "the device finished what it was asked to stop",
    [EXPLAIN_HELD_BACK] = "held back by the policy: not in the batch, or a device was idle",
    [EXPLAIN_BATCHING] = "decoding, but not in the running pass",
    [EXPLAIN_QUEUE_SAME] = "the device ran its own class",
    [EXPLAIN_QUEUE_OTHER] = "the device ran the other class",
    [EXPLAIN_HELD] = "the device was idle, the policy held it",
    [EXPLAIN_GRAPHICS] = "the display's frames had the device",
    [EXPLAIN_HOST] = "host: scheduling, submission, sampling",
    [EXPLAIN_THROTTLING] = "kernels slowed by a power limit or a step of frequency",
    [EXPLAIN_DDR_SLOWDOWN] = "kernels slowed by shared DDR",
    [EXPLAIN_DEVICE_SHARING] = "kernels slowed by sharing the device",
    [EXPLAIN_KILLED] = "a kernel that was stopped inside, and stopping it",
    [EXPLAIN_SHARED_PASS] = "its passes computed for others too",
    [EXPLAIN_RECOMPUTE] = "computing lost KV again",
    [EXPLAIN_COMPUTE] = "kernels for its own tokens",
};

/* ---- life of a request ---- */

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    struct explain *x = self;
    explain_advance(x, now_ns);
    if (x->only == EXPLAIN_ALL || x->only == r->id) {
        struct explain_live *v = map_add(&x->live, r->id);
        v->request = r;
        v->since_ns = now_ns;
        explain_look_at(v);
    }
}

static int longest_first(const void *a, const void *b)
{
    const struct explain_blocker *x = a;
    const struct explain_blocker *y = b;
    int64_t tx = x->tail_ns + x->queue_ns + x->shared_ns;
    int64_t ty = y->tail_ns + y->queue_ns + y->shared_ns;
    int by_id = (x->request_id > y->request_id) - (x->request_id < y->request_id);
    return tx != ty ? (tx < ty ? 1 : -1) : by_id;
}

static void blockers_take(struct explanation *e, const struct explain_live *v)
{
    e->blockers = xcalloc(v->n_in_way + 1, sizeof *e->blockers);
    for (size_t i = 0; i < v->n_in_way; i++) {
        const struct explain_in_way *w = &v->in_way[i];
        if (w->tail_sum_ns + w->queue_sum_ns + w->shared_sum_ns > 0) {
            e->blockers[e->n_blockers++] = (struct explain_blocker){
                w->request_id, w->cls, w->tail_sum_ns, w->queue_sum_ns, w->shared_sum_ns};
        }
    }
    qsort(e->blockers, e->n_blockers, sizeof *e->blockers, longest_first);
}

/* Whether the causes sum to the time since arrival. */
static bool all_is_explained(const struct explain_live *v, int64_t now_ns)
{
    int64_t sum_ns = 0;
    for (int c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
        SIM_ASSERT(v->ns[c] >= 0);
        sum_ns += v->ns[c];
    }
    return sum_ns == now_ns - v->request->arrival_ns;
}

/* Ends the explanation of v. */
static void conclude(struct explain *x, struct explain_live *v, int64_t now_ns, bool finished)
{
    const struct request *r = v->request;
    explain_wait_settle(v, x->last_device); /* no device will serve it */
    SIM_ASSERT(!v->served && v->since_ns == now_ns && all_is_explained(v, now_ns));
    x->done = xgrow(x->done, x->n_done, sizeof *x->done);
    struct explanation *e = &x->done[x->n_done++];
    *e = (struct explanation){
        .request_id = r->id,
        .cls = r->cls,
        .finished = finished,
        .input_tokens = r->input_tokens,
        .output_tokens = r->generated_tokens,
        .arrival_ns = r->arrival_ns,
        .first_service_ns = r->first_service_ns,
        .first_token_ns = r->first_token_ns,
        .end_ns = now_ns,
    };
    memcpy(e->ns, v->ns, sizeof e->ns);
    blockers_take(e, v);
    free(v->in_way);
    map_remove(&x->live, r->id);
}

static void on_left(void *self, int64_t now_ns, const struct request *r)
{
    struct explain *x = self;
    explain_advance(x, now_ns);
    struct explain_live *v = explain_live_find(x, r->id);
    if (v != NULL) {
        conclude(x, v, now_ns, r->state == REQUEST_STATE_FINISHED);
    }
}

static void on_tokens(void *self, int64_t now_ns, const struct pass *p)
{
    struct explain *x = self;
    if (!x->until_first_token) {
        return;
    }
    explain_advance(x, now_ns);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        struct explain_live *v = explain_live_find(x, r->id);
        if (v != NULL && r->first_token_ns == now_ns) {
            conclude(x, v, now_ns, true);
        }
    }
}

static void on_kv_lost(void *self, int64_t now_ns, const struct request *r, uint64_t tokens)
{
    struct explain *x = self;
    explain_advance(x, now_ns);
    struct explain_live *v = explain_live_find(x, r->id);
    if (v != NULL) {
        uint32_t before = r->kv_tokens + (uint32_t)tokens;
        v->kv_before_loss = before > v->kv_before_loss ? before : v->kv_before_loss;
        v->preemptions = r->preemptions;
        v->evicted = true;
        explain_look_at(v);
    }
}

/* ---- passes and residents ---- */

static void on_pass_formed(void *self, int64_t now_ns, const struct pass *p)
{
    struct explain *x = self;
    explain_advance(x, now_ns);
    if (p->shape.prefill_rows == p->shape.rows) {
        return; /* no batch of decodes */
    }
    uint32_t at = 0;
    uint64_t id = 0;
    for (struct explain_live *v; (v = map_next(&x->live, &at, &id)) != NULL;) {
        v->left_out = v->decodes && !v->in_pass && !v->swapped;
    }
}

static void on_pass_done(void *self, int64_t now_ns, const struct pass *p)
{
    struct explain *x = self;
    explain_advance(x, now_ns);
    x->sampling -= x->sampling > 0 && p->shape.logit_rows > 0;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        struct explain_live *v = explain_live_find(x, p->segments[i].request->id);
        if (v != NULL) {
            v->sampled = false;
        }
    }
}

static void on_resident(void *self, int64_t now_ns, struct resident_key key, enum resident_state to)
{
    struct explain *x = self;
    explain_advance(x, now_ns);
    size_t i = 0;
    while (i < x->n_pending && !(x->pending[i].kind == key.kind && x->pending[i].a == key.a &&
                                 x->pending[i].b == key.b)) {
        i++;
    }
    SIM_ASSERT(to != RESIDENT_PENDING || i == x->n_pending);
    if (to == RESIDENT_PENDING) {
        x->pending = xroom(x->pending, x->n_pending + 1, &x->cap_pending, sizeof *x->pending);
        x->pending[x->n_pending++] = key;
        x->loading += key.kind != RESIDENT_COMPILED_ATTENTION;
    } else if (i < x->n_pending) { /* else a ready resident was dropped */
        x->pending[i] = x->pending[--x->n_pending];
        x->loading -= key.kind != RESIDENT_COMPILED_ATTENTION;
    }
}

/* ---- life ---- */

struct explain *explain_new(const struct machine *machine, uint32_t request_id)
{
    struct explain *x = xcalloc(1, sizeof *x);
    x->machine = machine;
    x->only = request_id;
    x->speed = 1.0;
    for (int d = 0; d < MACHINE_MAX_DEVICES; d++) {
        x->frame_since_ns[d] = TIME_NEVER_NS;
        x->step[d] = 1.0;
    }
    x->live.record_bytes = sizeof(struct explain_live);
    x->observer = (struct observer){
        .self = x,
        .wants_kernels = true,
        .request_arrived = on_arrived,
        .request_finished = on_left,
        .request_shed = on_left,
        .tokens = on_tokens,
        .pass_formed = on_pass_formed,
        .pass_done = on_pass_done,
        .launch_started = explain_launch_started,
        .launch_ended = explain_launch_ended,
        .preempt_asked = explain_preempt_asked,
        .frame = explain_frame,
        .speed = explain_speed,
        .step = explain_step,
        .kernel = explain_kernel,
        .kv_lost = on_kv_lost,
        .resident = on_resident,
    };
    return x;
}

void explain_price(struct explain *x, const struct hwmodel *model)
{
    LIST_ADD(x->models, x->n_models, model);
}

void explain_until_first_token(struct explain *x)
{
    x->until_first_token = true;
}

void explain_free(struct explain *x)
{
    if (x == NULL) {
        return;
    }
    uint32_t at = 0;
    uint64_t id = 0;
    for (struct explain_live *v; (v = map_next(&x->live, &at, &id)) != NULL;) {
        free(v->in_way);
    }
    for (size_t i = 0; i < x->n_launches; i++) {
        free(x->launches[i].v);
    }
    for (size_t i = 0; i < x->n_done; i++) {
        free(x->done[i].blockers);
    }
    map_fini(&x->live);
    free(x->launches);
    free(x->pending);
    free(x->done);
    free(x->models);
    free(x);
}

struct observer *explain_observer(struct explain *x)
{
    return &x->observer;
}

const struct explanation *explain_find(const struct explain *x, uint32_t request_id)
{
    for (size_t i = 0; i < x->n_done; i++) {
        if (x->done[i].request_id == request_id) {
            return &x->done[i];
        }
    }
    return NULL;
}
