/* Passes on devices: the time of their launches, and its causes. */
#include "sim/metrics/explain_impl.h"

/* Passes of one prompt may run at the same time (SEGMENT_AHEAD): they are one work. */
static uint64_t work_id_of(const struct pass *p)
{
    return p->n_segments == 1 ? (uint64_t)p->segments[0].request->id << 32 : p->id;
}

static struct explain_launch *launch_find(struct explain *x, uint32_t id)
{
    for (size_t i = 0; i < x->n_launches; i++) {
        if (x->launches[i].running && x->launches[i].id == id) {
            return &x->launches[i];
        }
    }
    return NULL;
}

static void piece_add(struct explain_launch *g, int64_t end_ns, int64_t slow_ns,
                      enum explain_cause cause, enum explain_cause slow_cause)
{
    if (end_ns <= g->last_ns) {
        return;
    }
    SIM_ASSERT(slow_ns >= 0 && slow_ns <= end_ns - g->last_ns);
    LIST_ADD(g->v, g->n,
             (struct explain_piece){
                 .begin_ns = g->last_ns,
                 .end_ns = end_ns,
                 .slow_ns = slow_ns,
                 .cause = cause,
                 .slow_cause = slow_cause,
             });
    g->last_ns = end_ns;
}

/* Marks the launches that run on a device at the same time. */
static void note_sharing(struct explain *x, uint8_t device)
{
    uint32_t n = 0;
    for (size_t i = 0; i < x->n_launches; i++) {
        n += x->launches[i].running && x->launches[i].device == device;
    }
    for (size_t i = 0; n > 1 && i < x->n_launches; i++) {
        if (x->launches[i].running && x->launches[i].device == device) {
            x->launches[i].shared = true;
        }
    }
}

static bool is_slow(const struct explain *x, uint8_t device)
{
    return x->speed < 1.0 || x->step[device] < 1.0;
}

void explain_launch_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns)
{
    struct explain *x = self;
    const struct pass *p = l->pass;
    explain_advance(x, now_ns);
    x->prompt_devices |= p->shape.prefill_rows > 0 ? 1u << l->device : 0;
    x->last_device = l->device;
    struct explain_launch g = {
        .id = l->id,
        .work_id = work_id_of(p),
        .first_request = p->segments[0].request->id,
        .first_token = p->segments[0].first_token,
        .first_class = p->segments[0].request->cls,
        .device = l->device,
        .graph = l->graph,
        .chunk_rows = l->chunk_rows,
        .running = true,
        .start_ns = now_ns,
        .lead_end_ns = now_ns + lead_ns,
        .last_ns = now_ns,
        .throttled = is_slow(x, l->device),
    };
    for (uint32_t i = 0; i < p->n_segments; i++) {
        g.has_class[p->segments[i].request->cls] = true;
        struct explain_live *v = explain_live_find(x, p->segments[i].request->id);
        if (v != NULL && !v->served) {
            explain_wait_settle(v, l->device);
            v->served = true;
            v->evicted = false;
        }
    }
    LIST_ADD(x->launches, x->n_launches, g);
    note_sharing(x, l->device);
}

void explain_kernel(void *self, const struct kernel_record *k)
{
    struct explain *x = self;
    struct explain_launch *g = launch_find(x, k->launch->id);
    if (g == NULL) {
        return;
    }
    SIM_ASSERT(k->end_ns >= k->begin_ns);
    piece_add(g, k->begin_ns, 0, EXPLAIN_HOST, EXPLAIN_HOST);
    int64_t slow_ns = k->end_ns - k->begin_ns - k->isolated_ns;
    size_t before = g->n;
    piece_add(g, k->end_ns, slow_ns > 0 ? slow_ns : 0, EXPLAIN_COMPUTE,
              g->shared      ? EXPLAIN_DEVICE_SHARING
              : g->throttled ? EXPLAIN_THROTTLING
                             : EXPLAIN_DDR_SLOWDOWN);
    if (g->n > before) { /* a real kernel may end before the host saw it begin */
        g->v[g->n - 1].op = k->op;
    }
    g->shared = false;
    g->throttled = is_slow(x, g->device);
    note_sharing(x, g->device);
}

void explain_speed(void *self, int64_t now_ns UNUSED, double speed)
{
    struct explain *x = self;
    x->speed = speed;
    for (size_t i = 0; speed < 1.0 && i < x->n_launches; i++) {
        x->launches[i].throttled = true;
    }
}

void explain_step(void *self, int64_t now_ns UNUSED, uint8_t device, double speed)
{
    struct explain *x = self;
    x->step[device] = speed;
    for (size_t i = 0; speed < 1.0 && i < x->n_launches; i++) {
        x->launches[i].throttled = x->launches[i].throttled || x->launches[i].device == device;
    }
}

/* Adds the pieces of a launch before a frame, and the time of the frame. */
static void frame_pieces(const struct explain *x, struct explain_launch *g, int64_t now_ns)
{
    int64_t lead_ns = g->lead_end_ns < now_ns ? g->lead_end_ns : now_ns;
    piece_add(g, lead_ns, 0, EXPLAIN_HOST, EXPLAIN_HOST);
    piece_add(g, x->frame_since_ns[g->device], 0, EXPLAIN_HOST, EXPLAIN_HOST);
    piece_add(g, now_ns, 0, EXPLAIN_GRAPHICS, EXPLAIN_GRAPHICS);
}

void explain_frame(void *self, int64_t now_ns, uint8_t device, enum frame_state to,
                   int64_t due_ns UNUSED)
{
    struct explain *x = self;
    if (to == FRAME_MISSED) {
        return;
    }
    explain_advance(x, now_ns);
    if (to == FRAME_STARTED) {
        x->frame_since_ns[device] = now_ns;
        return;
    }
    for (size_t i = 0; i < x->n_launches; i++) {
        if (x->launches[i].running && x->launches[i].device == device) {
            frame_pieces(x, &x->launches[i], now_ns);
        }
    }
    x->frame_since_ns[device] = TIME_NEVER_NS;
}

void explain_preempt_asked(void *self, int64_t now_ns, const struct launch *l)
{
    struct explain *x = self;
    explain_advance(x, now_ns);
    struct explain_launch *g = launch_find(x, l->id);
    if (g != NULL) {
        g->stopping = true;
    }
}

/* ---- a pass leaves its devices ---- */

/* Time of a pass by cause, and its launches in the order of follow_last_finisher. */
struct served {
    int64_t ns[EXPLAIN_CAUSE_COUNT];
    struct explain_work *works; /* owned; compute time */
    size_t n;
};

/* Counts the part of a piece before to_ns. */
static void piece_count(const struct explain_piece *q, int64_t to_ns, int64_t *sum,
                        struct explain_work *work)
{
    int64_t whole_ns = q->end_ns - q->begin_ns;
    int64_t part_ns = to_ns < q->end_ns ? to_ns - q->begin_ns : whole_ns;
    if (part_ns <= 0) {
        return;
    }
    int64_t slow_ns = q->slow_ns;
    if (part_ns < whole_ns) {
        slow_ns = (int64_t)((double)slow_ns * ((double)part_ns / (double)whole_ns));
    }
    SIM_ASSERT(slow_ns >= 0 && slow_ns <= part_ns);
    sum[q->slow_cause] += slow_ns;
    sum[q->cause] += part_ns - slow_ns;
    work->ns[q->op] += q->cause == EXPLAIN_COMPUTE ? part_ns - slow_ns : 0;
}

/* Walks backwards from the end of the time in which launches of the pass ran to its start. */
static void follow_last_finisher(const struct explain *x, uint64_t work_id, int64_t end_ns,
                                 struct served *out)
{
    for (int64_t to_ns = end_ns;;) {
        const struct explain_launch *last = NULL;
        for (size_t i = 0; i < x->n_launches; i++) {
            const struct explain_launch *g = &x->launches[i];
            if (g->work_id == work_id && g->start_ns < to_ns &&
                (last == NULL || g->end_ns > last->end_ns)) {
                last = g;
            }
        }
        if (last == NULL) {
            return;
        }
        struct explain_work work = {.launch = last};
        for (size_t i = 0; i < last->n; i++) {
            piece_count(&last->v[i], to_ns, out->ns, &work);
        }
        LIST_ADD(out->works, out->n, work);
        SIM_ASSERT(last->start_ns < to_ns); /* so the loop ends */
        to_ns = last->start_ns;
    }
}

static void forget_work(struct explain *x, uint64_t work_id)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n_launches; i++) {
        if (x->launches[i].work_id == work_id) {
            free(x->launches[i].v);
        } else {
            x->launches[n++] = x->launches[i];
        }
    }
    x->n_launches = n;
}

/* Returns the part of a segment's time that recomputed lost KV. */
static int64_t again_ns(const struct explain_live *v, const struct pass *p, uint32_t i,
                        const struct served *done, int64_t own_ns)
{
    const struct segment *s = &p->segments[i];
    if (s->role == SEGMENT_DRAFT || p->n_segments > 1) {
        return s->role != SEGMENT_DRAFT && s->first_token < v->kv_before_loss ? own_ns : 0;
    }
    int64_t sum = 0;
    for (size_t k = 0; k < done->n; k++) {
        bool again = done->works[k].launch->first_token < v->kv_before_loss;
        for (int op = 0; again && op < OP_KIND_COUNT; op++) {
            sum += done->works[k].ns[op];
        }
    }
    return sum;
}

/* Adds the time of the pass to the request's causes. own_ns of it were for its own tokens. */
static void settle_one(struct explain_live *v, const int64_t *sum, int64_t own_ns, int64_t again)
{
    for (int c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
        v->ns[c] += c == EXPLAIN_COMPUTE ? 0 : sum[c];
    }
    v->ns[EXPLAIN_RECOMPUTE] += again;
    v->ns[EXPLAIN_COMPUTE] += own_ns - again;
    v->ns[EXPLAIN_SHARED_PASS] += sum[EXPLAIN_COMPUTE] - own_ns;
}

static void settle(struct explain *x, const struct pass *p, int64_t now_ns)
{
    struct served done = {.n = 0};
    follow_last_finisher(x, work_id_of(p), now_ns, &done);
    int64_t total_ns = 0;
    for (int c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
        total_ns += done.ns[c];
    }
    OWNED int64_t *own_ns = NULL; /* computed on demand */
    bool sampled = p->op == p->n_ops && p->n_launches == 0 && p->shape.logit_rows > 0;
    x->sampling += sampled;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        struct explain_live *v = explain_live_find(x, p->segments[i].request->id);
        if (v == NULL) {
            continue;
        }
        if (own_ns == NULL) {
            own_ns = xcalloc(p->n_segments, sizeof *own_ns);
            explain_share(x, p, done.works, done.n, own_ns);
        }
        settle_one(v, done.ns, own_ns[i], again_ns(v, p, i, &done, own_ns[i]));
        explain_share_charge(v, p, i, done.ns[EXPLAIN_COMPUTE] - own_ns[i], own_ns);
        SIM_REQUIRE(v->since_ns + total_ns == now_ns, "pass %u explained %lld of %lld ns", p->id,
                    (long long)total_ns, (long long)(now_ns - v->since_ns));
        v->since_ns = now_ns;
        v->served = false;
        v->sampled = sampled;
    }
    free(done.works);
    forget_work(x, work_id_of(p));
}

void explain_launch_ended(void *self, int64_t now_ns, const struct launch *l,
                          int64_t isolated_ns UNUSED, int64_t lost_ns UNUSED)
{
    struct explain *x = self;
    explain_advance(x, now_ns);
    struct explain_launch *g = launch_find(x, l->id);
    if (g == NULL) { /* withdrawn before it started */
        return;
    }
    piece_add(g, g->lead_end_ns < now_ns ? g->lead_end_ns : now_ns, 0, EXPLAIN_HOST, EXPLAIN_HOST);
    if (x->frame_since_ns[l->device] != TIME_NEVER_NS) {
        frame_pieces(x, g, now_ns); /* it was stopped while paused */
    }
    /* A real executor sees the end of a launch a little after that of its last kernel. */
    enum explain_cause rest = l->outcome == LAUNCH_OUTCOME_DONE ? EXPLAIN_HOST : EXPLAIN_KILLED;
    piece_add(g, now_ns, 0, rest, rest);
    g->end_ns = now_ns;
    g->running = false;
    /* A launch that began at this instant was marked as sharing with the one that ends now. Mark it
     * by the remaining launches. */
    for (size_t i = 0; i < x->n_launches; i++) {
        if (x->launches[i].device == l->device && x->launches[i].last_ns == now_ns) {
            x->launches[i].shared = false;
        }
    }
    note_sharing(x, l->device);
    for (size_t i = 0; i < x->n_launches; i++) {
        if (x->launches[i].work_id == work_id_of(l->pass) && x->launches[i].running) {
            return;
        }
    }
    settle(x, l->pass, now_ns);
}
