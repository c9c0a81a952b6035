#include "tests/helpers/explain_anew_impl.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { BESIDE = 16, PENDING = 64 };

static const struct scenario *of;
static void (*done)(uint32_t id, const struct explained *is);

/* State of the machine from one event to the next. */
struct held {
    struct {
        uint32_t id, first;
        uint8_t device;
        bool stopping, of[REQUEST_CLASS_COUNT];
    } on[BESIDE]; /* launches, in the order in which they began */
    struct resident_key pending[PENDING];
    uint32_t n_on, n_pending, sampling, prompts_on;
    uint8_t last_on; /* device of the last launch */
    bool frame[MACHINE_MAX_DEVICES];
};

/* And of a request. */
struct stood {
    bool in_pass, decodes, swapped, evicted, left_out;
    uint32_t target;
};

/* A stretch of waiting, of which it is not known yet which device it was for. */
struct stretch {
    size_t held;
    struct stood stood;
    int64_t ns;
};

struct person {
    const struct request *r;
    bool here, served, sampled;
    struct stood stood;
    uint32_t preemptions, lost_below; /* tokens below that place were computed before */
    struct stretch *waits;
    size_t n_waits;
    struct explained is;
};

/* A launch's time on a device, or that of a power limit. */
struct span {
    uint8_t device;
    int64_t begin, end;
};

static struct held now_held, *helds;
static size_t n_helds, n_begun, n_spans, n_slow;
static struct person people[EXPLAIN_ANEW_MOST];
static struct begun *begun;
static struct span *spans, *slow;
static int64_t at_ns, frame_ns[MACHINE_MAX_DEVICES];
static double speed, step[MACHINE_MAX_DEVICES];

/* ---- what holds between two events ---- */

static void look(struct person *v)
{
    const struct request *r = v->r;
    v->stood.in_pass = r->pass != NULL;
    v->stood.decodes = r->state == REQUEST_STATE_DECODE;
    v->stood.left_out = v->stood.left_out && r->pass == NULL;
    v->stood.target = request_prefill_target(r);
    v->stood.swapped = r->pass == NULL && (r->kv_swapped || r->preemptions != v->preemptions);
    v->preemptions = r->pass != NULL ? r->preemptions : v->preemptions;
}

static void event(int64_t now_ns)
{
    if (now_ns > at_ns) {
        helds = xgrow(helds, n_helds, sizeof *helds);
        helds[n_helds++] = now_held;
    }
    for (int i = 0; i < EXPLAIN_ANEW_MOST; i++) {
        struct person *v = &people[i];
        if (!v->here) {
            continue;
        }
        if (now_ns > at_ns && v->sampled && !v->served) {
            v->is.ns[EXPLAIN_HOST] += now_ns - at_ns;
        } else if (now_ns > at_ns && !v->served) {
            v->waits = xgrow(v->waits, v->n_waits, sizeof *v->waits);
            v->waits[v->n_waits++] = (struct stretch){n_helds - 1, v->stood, now_ns - at_ns};
        }
        look(v);
    }
    at_ns = now_ns;
}

/* ---- waiting, once the device is known ---- */

static bool compiles(const struct held *h, const struct stood *s)
{
    bool any = false;
    for (uint32_t i = 0; i < h->n_pending && !s->decodes; i++) {
        any = any ||
              (h->pending[i].kind == RESIDENT_COMPILED_ATTENTION && h->pending[i].a == s->target);
    }
    return any;
}

static bool loads(const struct held *h)
{
    bool any = false;
    for (uint32_t i = 0; i < h->n_pending; i++) {
        any = any || h->pending[i].kind != RESIDENT_COMPILED_ATTENTION;
    }
    return any;
}

/* Another device that takes part in prompts is idle. */
static bool another_is_idle(const struct held *h, uint8_t device)
{
    for (uint8_t d = 0; d < MACHINE_MAX_DEVICES; d++) {
        bool idle = d != device && (h->prompts_on >> d & 1) != 0;
        for (uint32_t i = 0; i < h->n_on; i++) {
            idle = idle && h->on[i].device != d;
        }
        if (idle) {
            return true;
        }
    }
    return false;
}

static enum explain_cause cause_of(struct person *v, const struct stretch *w, uint8_t device)
{
    const struct held *h = &helds[w->held];
    const struct stood *s = &w->stood;
    int in_way = -1;
    bool stopping = false;
    bool own_class = false;
    for (uint32_t i = 0; i < h->n_on; i++) {
        if (h->on[i].device == device) {
            in_way = in_way < 0 || (h->on[i].stopping && !stopping) ? (int)i : in_way;
            stopping = stopping || h->on[i].stopping;
            own_class = own_class || h->on[i].of[v->r->cls];
        }
    }
    if (s->evicted || s->swapped) {
        return EXPLAIN_EVICTION;
    }
    if (compiles(h, s)) {
        return EXPLAIN_COMPILE;
    }
    if (loads(h) && (s->in_pass || in_way < 0)) {
        return EXPLAIN_GRAPH_LOAD;
    }
    if (in_way < 0) {
        return h->frame[device] ? EXPLAIN_GRAPHICS : h->sampling > 0 ? EXPLAIN_HOST : EXPLAIN_HELD;
    }
    (stopping ? v->is.tail_ns : v->is.queue_ns)[h->on[in_way].first] += w->ns;
    if (stopping) {
        return EXPLAIN_KERNEL_TAIL;
    }
    if (s->decodes ? s->left_out : another_is_idle(h, device)) {
        return EXPLAIN_HELD_BACK;
    }
    if (s->decodes && !s->in_pass) {
        return EXPLAIN_BATCHING;
    }
    return own_class ? EXPLAIN_QUEUE_SAME : EXPLAIN_QUEUE_OTHER;
}

static void waited_for(struct person *v, uint8_t device)
{
    for (size_t i = 0; i < v->n_waits; i++) {
        v->is.ns[cause_of(v, &v->waits[i], device)] += v->waits[i].ns;
    }
    free(v->waits);
    v->waits = NULL;
    v->n_waits = 0;
}

/* ---- served ---- */

static struct begun *begun_of(uint32_t id)
{
    struct begun *found = NULL;
    for (size_t i = 0; i < n_begun; i++) {
        found = begun[i].id == id && begun[i].runs ? &begun[i] : found;
    }
    return found;
}

static void did_op(struct begun *g, int64_t end, int64_t slow_ns, enum explain_cause cause,
                   enum explain_cause slowed, enum op_kind op)
{
    if (end > g->last) {
        g->pieces = xgrow(g->pieces, g->n_pieces, sizeof *g->pieces);
        g->pieces[g->n_pieces++] = (struct piece){g->last, end, slow_ns, cause, slowed, op};
        g->last = end;
    }
}

static void did(struct begun *g, int64_t end, enum explain_cause cause)
{
    did_op(g, end, 0, cause, cause, OP_QKV);
}

/* While it runs no kernel: host work, and a frame that has the device once that is done. */
static void idled(struct begun *g, int64_t now_ns)
{
    int64_t since = frame_ns[g->device];
    if (since >= 0) {
        since = since > g->lead_end ? since : g->lead_end;
        did(g, since < now_ns ? since : now_ns, EXPLAIN_HOST);
        did(g, now_ns, EXPLAIN_GRAPHICS);
    }
}

/* Does something of the list overlap (begin, end), other than the launch itself? */
static bool overlaps(const struct span *v, size_t n, const struct begun *but, uint8_t device,
                     int64_t begin, int64_t end)
{
    uint32_t found = 0;
    for (size_t i = 0; i < n; i++) {
        found += v[i].device == device && v[i].begin < end && v[i].end > begin;
    }
    return found > (but != NULL);
}

static uint64_t work_of(const struct pass *p)
{
    return p->n_segments > 1 ? p->id : (uint64_t)(p->segments[0].request->id + 1) << 32;
}

/* ---- hooks ---- */

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    event(now_ns);
    people[r->id] = (struct person){.r = r, .here = true};
    look(&people[r->id]);
}

static void on_left(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    event(now_ns);
    struct person *v = &people[r->id];
    waited_for(v, now_held.last_on);
    v->here = false;
    done(r->id, &v->is);
}

static void on_formed(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    event(now_ns);
    for (int i = 0; i < EXPLAIN_ANEW_MOST && p->shape.prefill_rows < p->shape.rows; i++) {
        struct stood *s = &people[i].stood;
        s->left_out = s->decodes && !s->in_pass && !s->swapped;
    }
}

static void on_done(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    event(now_ns);
    now_held.sampling -= now_held.sampling > 0 && p->shape.logit_rows > 0;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        people[p->segments[i].request->id].sampled = false;
    }
}

static void on_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns)
{
    (void)self;
    event(now_ns);
    const struct pass *p = l->pass;
    struct held *h = &now_held;
    ck_assert_uint_lt(h->n_on, BESIDE);
    h->prompts_on |= p->shape.prefill_rows > 0 ? 1u << l->device : 0;
    h->last_on = l->device;
    h->on[h->n_on].id = l->id;
    h->on[h->n_on].first = p->segments[0].request->id;
    h->on[h->n_on].device = l->device;
    h->on[h->n_on].stopping = false;
    memset(h->on[h->n_on].of, 0, sizeof h->on[0].of);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        struct person *v = &people[p->segments[i].request->id];
        h->on[h->n_on].of[p->segments[i].request->cls] = true;
        if (!v->served) {
            waited_for(v, l->device);
            v->served = true;
            v->stood.evicted = false;
        }
    }
    h->n_on++;
    begun = xgrow(begun, n_begun, sizeof *begun);
    begun[n_begun++] = (struct begun){.id = l->id,
                                      .first_token = p->segments[0].first_token,
                                      .chunk_rows = l->chunk_rows,
                                      .graph = l->graph,
                                      .work = work_of(p),
                                      .device = l->device,
                                      .runs = true,
                                      .begin = now_ns,
                                      .lead_end = now_ns + lead_ns,
                                      .last = now_ns};
    spans = xgrow(spans, n_spans, sizeof *spans);
    spans[n_spans++] = (struct span){l->device, now_ns, INT64_MAX};
}

static void on_kernel(void *self, const struct kernel_record *k)
{
    (void)self;
    struct begun *g = begun_of(k->launch->id);
    int64_t since = g->last; /* what held since its last kernel counts for this one */
    did(g, k->begin_ns, EXPLAIN_HOST);
    int64_t more = k->end_ns - k->begin_ns - k->isolated_ns;
    enum explain_cause slowed =
        overlaps(spans, n_spans, g, g->device, since, k->end_ns)    ? EXPLAIN_DEVICE_SHARING
        : overlaps(slow, n_slow, NULL, g->device, since, k->end_ns) ? EXPLAIN_THROTTLING
                                                                    : EXPLAIN_DDR_SLOWDOWN;
    did_op(g, k->end_ns, more > 0 ? more : 0, EXPLAIN_COMPUTE, slowed, k->op);
}

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated,
                     int64_t lost)
{
    (void)self;
    (void)isolated;
    (void)lost;
    event(now_ns);
    struct begun *g = begun_of(l->id);
    if (g == NULL) {
        return; /* it never began */
    }
    did(g, g->lead_end < now_ns ? g->lead_end : now_ns, EXPLAIN_HOST);
    idled(g, now_ns);
    enum explain_cause rest = l->outcome == LAUNCH_OUTCOME_DONE ? EXPLAIN_HOST : EXPLAIN_KILLED;
    did(g, now_ns, rest);
    g->end = now_ns;
    g->runs = false;
    for (size_t i = 0, ended = n_begun; i < n_spans && ended > 0; i++) {
        bool it =
            spans[i].device == l->device && spans[i].end == INT64_MAX && spans[i].begin == g->begin;
        spans[i].end = it ? now_ns : spans[i].end;
        ended = it ? 0 : ended;
    }
    struct held *h = &now_held;
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->n_on; i++) {
        if (h->on[i].id != l->id) {
            h->on[n++] = h->on[i];
        }
    }
    h->n_on = n;
    const struct pass *p = l->pass;
    for (size_t i = 0; i < n_begun; i++) {
        if (begun[i].work == work_of(p) && begun[i].runs) {
            return;
        }
    }
    struct settled x = {.ns = {0}};
    struct served served = {.model = &of->model, .begun = begun, .n = n_begun};
    for (int i = 0; i < EXPLAIN_ANEW_MOST; i++) {
        served.lost_below[i] = people[i].lost_below;
    }
    explain_anew_settle(&served, p, work_of(p), now_ns, &x);
    bool sampled = p->op == p->n_ops && p->n_launches == 0 && p->shape.logit_rows > 0;
    now_held.sampling += sampled;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        struct person *v = &people[p->segments[i].request->id];
        for (int c = 0; c < EXPLAIN_CAUSE_COUNT && v->here; c++) {
            v->is.ns[c] += c == EXPLAIN_COMPUTE ? x.own[i] - x.again[i] : x.ns[c];
        }
        v->is.ns[EXPLAIN_RECOMPUTE] += x.again[i];
        v->is.ns[EXPLAIN_SHARED_PASS] += x.ns[EXPLAIN_COMPUTE] - x.own[i];
        explain_anew_charge(v->is.shared_ns, p, i, &x);
        v->served = false;
        v->sampled = sampled;
    }
    size_t left = 0;
    for (size_t i = 0; i < n_begun; i++) {
        if (begun[i].work == work_of(p)) {
            free(begun[i].pieces);
        } else {
            begun[left++] = begun[i];
        }
    }
    n_begun = left;
}

static void on_asked(void *self, int64_t now_ns, const struct launch *l)
{
    (void)self;
    event(now_ns);
    for (uint32_t i = 0; i < now_held.n_on; i++) {
        now_held.on[i].stopping = now_held.on[i].stopping || now_held.on[i].id == l->id;
    }
}

static void on_lost(void *self, int64_t now_ns, const struct request *r, uint64_t tokens)
{
    (void)self;
    event(now_ns);
    struct person *v = &people[r->id];
    uint32_t below = r->kv_tokens + (uint32_t)tokens;
    v->lost_below = below > v->lost_below ? below : v->lost_below;
    v->preemptions = r->preemptions;
    v->stood.evicted = true;
    look(v);
}

static void on_resident(void *self, int64_t now_ns, struct resident_key key, enum resident_state to)
{
    (void)self;
    event(now_ns);
    struct held *h = &now_held;
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->n_pending; i++) {
        const struct resident_key *k = &h->pending[i];
        if (k->kind != key.kind || k->a != key.a || k->b != key.b) {
            h->pending[n++] = *k;
        }
    }
    h->n_pending = n;
    if (to == RESIDENT_PENDING) {
        ck_assert_uint_lt(n, PENDING);
        h->pending[h->n_pending++] = key;
    }
}

static void on_frame(void *self, int64_t now_ns, uint8_t device, enum frame_state to, int64_t due)
{
    (void)self;
    (void)due;
    if (to == FRAME_MISSED) {
        return;
    }
    event(now_ns);
    for (size_t i = 0; i < n_begun && to == FRAME_DONE; i++) {
        if (begun[i].runs && begun[i].device == device) {
            idled(&begun[i], now_ns);
        }
    }
    now_held.frame[device] = to == FRAME_STARTED;
    frame_ns[device] = to == FRAME_STARTED ? now_ns : -1;
}

/* Devices are slow from now on, or no longer. */
static void slowness(int64_t now_ns)
{
    for (uint8_t d = 0; d < of->machine.n_devices; d++) {
        struct span *open = NULL;
        for (size_t i = 0; i < n_slow; i++) {
            open = slow[i].device == d && slow[i].end == INT64_MAX ? &slow[i] : open;
        }
        bool is = speed < 1.0 || step[d] < 1.0;
        if (is && open == NULL) {
            slow = xgrow(slow, n_slow, sizeof *slow);
            slow[n_slow++] = (struct span){d, now_ns, INT64_MAX};
        } else if (!is && open != NULL) {
            open->end = now_ns;
        }
    }
}

static void on_speed(void *self, int64_t now_ns, double to)
{
    (void)self;
    speed = to;
    slowness(now_ns);
}

static void on_step(void *self, int64_t now_ns, uint8_t device, double to)
{
    (void)self;
    step[device] = to;
    slowness(now_ns);
}

void explain_anew_forget(void)
{
    for (size_t i = 0; i < n_begun; i++) {
        free(begun[i].pieces);
    }
    free(helds);
    free(begun);
    free(spans);
    free(slow);
    helds = NULL;
    begun = NULL;
    spans = slow = NULL;
    n_helds = n_begun = n_spans = n_slow = 0;
    memset(people, 0, sizeof people);
    now_held = (struct held){.n_on = 0};
    at_ns = 0;
    speed = 1.0;
    for (int d = 0; d < MACHINE_MAX_DEVICES; d++) {
        step[d] = 1.0;
        frame_ns[d] = -1;
    }
}

struct observer *explain_anew_observer(const struct scenario *s,
                                       void (*left)(uint32_t id, const struct explained *is))
{
    static struct observer o = {.wants_kernels = true,
                                .request_arrived = on_arrived,
                                .request_finished = on_left,
                                .request_shed = on_left,
                                .pass_formed = on_formed,
                                .pass_done = on_done,
                                .launch_started = on_started,
                                .launch_ended = on_ended,
                                .preempt_asked = on_asked,
                                .kernel = on_kernel,
                                .kv_lost = on_lost,
                                .resident = on_resident,
                                .frame = on_frame,
                                .speed = on_speed,
                                .step = on_step};
    explain_anew_forget();
    of = s;
    done = left;
    return &o;
}
