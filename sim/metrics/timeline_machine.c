/* The machine's tracks: launches and kernels on devices, the loader, the compiler. */
#include "sim/base/words.h"
#include "sim/metrics/timeline_impl.h"

/* ---- devices ---- */

static uint32_t lane_tid(uint8_t device, uint32_t lane)
{
    return TIMELINE_TID_DEVICE(device) + lane;
}

/* The lane of a running launch, or TIMELINE_LANES. */
static uint32_t lane_of(const struct timeline *t, const struct launch *l)
{
    uint32_t i = 0;
    while (i < TIMELINE_LANES &&
           !(t->lanes[l->device][i].running && t->lanes[l->device][i].launch_id == l->id)) {
        i++;
    }
    return i;
}

static void lane_name(struct timeline *t, uint8_t device, uint32_t i)
{
    char name[48];
    (void)snprintf(name, sizeof name, i == 0 ? "%s" : "%s, beside %u",
                   t->machine->devices[device].name, i);
    trace_track_name(&t->out, TIMELINE_PID_MACHINE, lane_tid(device, i), name, lane_tid(device, i));
}

static uint32_t lane_take(struct timeline *t, uint8_t device)
{
    uint32_t i = 0;
    while (i + 1 < TIMELINE_LANES && t->lanes[device][i].running) {
        i++;
    }
    if (!t->lanes[device][i].used) {
        lane_name(t, device, i);
    }
    return i;
}

static const char *launch_name(const struct launch *l)
{
    if (l->pass->shape.prefill_rows == 0) {
        return "decode";
    }
    return l->pass->shape.prefill_rows == l->pass->shape.rows ? "prefill" : "mixed";
}

static void lane_open(struct timeline *t, uint32_t tid, int64_t now_ns,
                      const struct timeline_lane *lane)
{
    struct trace_events *w = &t->out;
    trace_event_begin(w, 'B', TIMELINE_PID_MACHINE, tid, now_ns, lane->name);
    trace_args_begin(w);
    trace_number(w, "launch", lane->launch_id);
    trace_number(w, "pass", lane->pass_id);
    trace_number(w, "request", lane->request);
    trace_number(w, "sequences", lane->sequences);
    trace_number(w, "rows", lane->rows);
    trace_text(w, "class", lane->reactive ? "reactive" : "proactive");
    trace_decimal(w, "lead_us", (double)lane->lead_ns / 1e3);
    trace_event_end(w);
}

void timeline_machine_show(struct timeline *t, int64_t now_ns)
{
    t->has_frames = false; /* to write its name again */
    t->has_conditions = false;
    for (uint8_t d = 0; d < t->machine->n_devices; d++) {
        t->lanes[d][0].used = true;
        for (uint32_t i = 0; i < TIMELINE_LANES; i++) {
            struct timeline_lane *lane = &t->lanes[d][i];
            if (lane->used) {
                lane_name(t, d, i);
            }
            if (lane->running) {
                lane_open(t, lane_tid(d, i), now_ns, lane);
                lane->last_ns = lane->last_ns > now_ns ? lane->last_ns : now_ns;
                lane->asked_ns = lane->asked_ns > now_ns ? lane->asked_ns : now_ns;
            }
        }
    }
    trace_track_name(&t->out, TIMELINE_PID_MACHINE, TIMELINE_TID_LOADER, "loader",
                     TIMELINE_TID_LOADER);
    trace_track_name(&t->out, TIMELINE_PID_MACHINE, TIMELINE_TID_COMPILER, "compiler",
                     TIMELINE_TID_COMPILER);
}

void timeline_launch_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns)
{
    struct timeline *t = timeline_at(self, now_ns);
    const struct pass *p = l->pass;
    uint32_t i = lane_take(t, l->device);
    bool newcomers = false;
    for (uint32_t s = 0; s < p->n_segments; s++) {
        const struct timeline_request *v = map_record(&t->requests, p->segments[s].request->id);
        newcomers = newcomers || (v != NULL && !v->drawn);
    }
    struct timeline_lane *lane = &t->lanes[l->device][i];
    *lane = (struct timeline_lane){
        .used = true,
        .running = true,
        .launch_id = l->id,
        .pass_id = p->id,
        .request = p->segments[0].request->id,
        .sequences = p->n_segments,
        .rows = l->rows,
        .reactive = p->has_reactive,
        .name = launch_name(l),
        .lead_ns = lead_ns,
        .has_newcomers = newcomers,
        .lead_end_ns = now_ns + lead_ns,
        .last_ns = now_ns,
        .asked_ns = TIME_NEVER_NS,
    };
    lane_open(t, lane_tid(l->device, i), now_ns, lane);
}

static void draw_span(struct timeline *t, uint32_t tid, int64_t begin_ns, int64_t end_ns,
                      const char *name)
{
    begin_ns = begin_ns > t->o.from_ns ? begin_ns : t->o.from_ns;
    if (end_ns > begin_ns) {
        trace_event_span(&t->out, TIMELINE_PID_MACHINE, tid, begin_ns, end_ns, name);
        trace_event_end(&t->out);
    }
}

static void draw_lead(struct timeline *t, struct timeline_lane *lane, uint32_t tid, int64_t end_ns)
{
    if (lane->lead_end_ns != TIME_NEVER_NS) {
        int64_t to = lane->lead_end_ns < end_ns ? lane->lead_end_ns : end_ns;
        if (!t->o.only_launches) {
            draw_span(t, tid, lane->last_ns, to, "lead");
        }
        lane->lead_end_ns = TIME_NEVER_NS;
        lane->last_ns = to;
    }
}

static void draw_asked(struct timeline *t, struct timeline_lane *lane, uint32_t tid)
{
    if (lane->asked_ns != TIME_NEVER_NS) {
        trace_instant(&t->out, TIMELINE_PID_MACHINE, tid, lane->asked_ns, "preempt asked");
        lane->asked_ns = TIME_NEVER_NS;
    }
}

/* Draws arrows from arrivals of requests whose first kernel this is. */
static void draw_arrows(struct timeline *t, const struct kernel_record *k, uint32_t tid)
{
    const struct pass *p = k->launch->pass;
    for (uint32_t s = 0; s < p->n_segments; s++) {
        uint32_t id = p->segments[s].request->id;
        struct timeline_request *v = map_record(&t->requests, id);
        if (v == NULL || v->drawn) {
            continue;
        }
        v->drawn = true;
        trace_event_begin(&t->out, 'f', TIMELINE_PID_MACHINE, tid, k->begin_ns, "first kernel");
        trace_text(&t->out, "cat", "request");
        trace_number(&t->out, "id", id);
        trace_text(&t->out, "bp", "e");
        trace_event_end(&t->out);
    }
}

static void draw_kernel(struct timeline *t, const struct kernel_record *k, uint32_t tid)
{
    int64_t begin_ns = k->begin_ns > t->o.from_ns ? k->begin_ns : t->o.from_ns;
    struct trace_events *w = &t->out;
    trace_event_span(w, TIMELINE_PID_MACHINE, tid, begin_ns, k->end_ns, words_ops[k->op]);
    trace_text(w, "cat", "kernel");
    trace_args_begin(w);
    trace_number(w, "layer", k->layer);
    if (k->index > 0) {
        trace_number(w, "index", k->index);
    }
    if (k->isolated_ns != k->end_ns - k->begin_ns) {
        trace_decimal(w, "isolated_us", (double)k->isolated_ns / 1e3);
    }
    trace_event_end(w);
}

void timeline_kernel(void *self, const struct kernel_record *k)
{
    struct timeline *t = timeline_at(self, k->end_ns);
    const struct launch *l = k->launch;
    uint32_t i = lane_of(t, l);
    if (i == TIMELINE_LANES) {
        return;
    }
    struct timeline_lane *lane = &t->lanes[l->device][i];
    uint32_t tid = lane_tid(l->device, i);
    draw_lead(t, lane, tid, k->begin_ns);
    if (!t->o.only_launches) {
        draw_kernel(t, k, tid);
    }
    lane->last_ns = k->end_ns;
    if (lane->has_newcomers) {
        draw_arrows(t, k, tid);
        lane->has_newcomers = false;
    }
    draw_asked(t, lane, tid);
}

/* Frames of the screen, on their own track, drawn when they end. */
void timeline_frame(void *self, int64_t now_ns, uint8_t device, enum frame_state to, int64_t due_ns)
{
    struct timeline *t = timeline_at(self, now_ns);
    if (!t->has_frames) {
        char name[48];
        (void)snprintf(name, sizeof name, "frames on %s", t->machine->devices[device].name);
        trace_track_name(&t->out, TIMELINE_PID_MACHINE, TIMELINE_TID_FRAMES, name,
                         TIMELINE_TID_FRAMES);
        t->has_frames = true;
    }
    switch (to) {
    case FRAME_MISSED:
        trace_instant(&t->out, TIMELINE_PID_MACHINE, TIMELINE_TID_FRAMES, now_ns, "missed frame");
        break;
    case FRAME_STARTED:
        draw_span(t, TIMELINE_TID_FRAMES, due_ns, now_ns, "waits for a kernel");
        t->frame_begin_ns = now_ns;
        break;
    case FRAME_DONE:
        draw_span(t, TIMELINE_TID_FRAMES, t->frame_begin_ns, now_ns, "frame");
        break;
    }
}

/* Drawn after the kernel in progress, whose slice comes first. */
void timeline_preempt_asked(void *self, int64_t now_ns, const struct launch *l)
{
    struct timeline *t = timeline_at(self, now_ns);
    uint32_t i = lane_of(t, l);
    if (i < TIMELINE_LANES && t->lanes[l->device][i].asked_ns == TIME_NEVER_NS) {
        t->lanes[l->device][i].asked_ns = now_ns;
    }
}

static void lane_close(struct timeline *t, uint8_t device, uint32_t i, int64_t now_ns)
{
    t->lanes[device][i].running = false;
    trace_event_begin(&t->out, 'E', TIMELINE_PID_MACHINE, lane_tid(device, i), now_ns, NULL);
    trace_event_end(&t->out);
}

void timeline_launch_ended(void *self, int64_t now_ns, const struct launch *l,
                           int64_t isolated_ns UNUSED, int64_t lost_ns UNUSED)
{
    struct timeline *t = timeline_at(self, now_ns);
    uint32_t i = lane_of(t, l);
    if (i == TIMELINE_LANES) { /* withdrawn: no slice */
        trace_instant(&t->out, TIMELINE_PID_REQUESTS, l->pass->segments[0].request->id, now_ns,
                      "withdrawn");
        return;
    }
    struct timeline_lane *lane = &t->lanes[l->device][i];
    uint32_t tid = lane_tid(l->device, i);
    draw_lead(t, lane, tid, now_ns);
    if (l->outcome == LAUNCH_OUTCOME_RESET) {
        draw_span(t, tid, lane->last_ns, now_ns, "killed");
    }
    draw_asked(t, lane, tid);
    if (l->outcome == LAUNCH_OUTCOME_RESET) {
        trace_instant(&t->out, TIMELINE_PID_MACHINE, tid, now_ns, "reset");
    } else if (l->outcome == LAUNCH_OUTCOME_YIELDED) {
        trace_instant(&t->out, TIMELINE_PID_MACHINE, tid, now_ns, "yield");
    }
    lane_close(t, l->device, i, now_ns);
}

/* ---- loader and compiler ---- */

void timeline_resident(void *self, int64_t now_ns, struct resident_key key, enum resident_state to)
{
    struct timeline *t = timeline_at(self, now_ns);
    bool compiles = key.kind == RESIDENT_COMPILED_ATTENTION;
    struct timeline_channel *c = compiles ? &t->compiler : &t->loader;
    if (to == RESIDENT_PENDING) {
        LIST_ADD(c->v, c->n, (struct timeline_item){key, now_ns});
        return;
    }
    size_t i = 0;
    while (i < c->n && !(c->v[i].key.a == key.a && c->v[i].key.b == key.b)) {
        i++;
    }
    if (i == c->n) { /* a ready resident was dropped */
        return;
    }
    int64_t begin_ns = c->v[i].since_ns > c->free_ns ? c->v[i].since_ns : c->free_ns;
    memmove(&c->v[i], &c->v[i + 1], (c->n - i - 1) * sizeof *c->v);
    c->n--;
    if (i > 0) { /* cancelled before its turn */
        return;
    }
    c->free_ns = now_ns;
    begin_ns = begin_ns > t->o.from_ns ? begin_ns : t->o.from_ns;
    struct trace_events *w = &t->out;
    bool weights = key.kind == RESIDENT_WEIGHTS;
    uint32_t tid = compiles ? TIMELINE_TID_COMPILER : TIMELINE_TID_LOADER;
    const char *name = compiles ? "attention" : weights ? "weights" : "block";
    trace_event_span(w, TIMELINE_PID_MACHINE, tid, begin_ns, now_ns, name);
    trace_args_begin(w);
    trace_number(w, compiles ? "length" : weights ? "model" : "block", key.a);
    if (!compiles && !weights) {
        trace_number(w, "graph", key.b);
    }
    trace_text(w, "outcome", to == RESIDENT_READY ? "ready" : "cancelled");
    trace_event_end(w);
}

void timeline_machine_end(struct timeline *t, int64_t now_ns, const char *name)
{
    timeline_conditions_end(t, now_ns);
    for (uint8_t d = 0; d < MACHINE_MAX_DEVICES; d++) {
        for (uint32_t i = 0; i < TIMELINE_LANES; i++) {
            struct timeline_lane *lane = &t->lanes[d][i];
            if (lane->running) {
                draw_lead(t, lane, lane_tid(d, i), now_ns);
                if (!t->o.only_launches) {
                    draw_span(t, lane_tid(d, i), lane->last_ns, now_ns, name);
                }
                draw_asked(t, lane, lane_tid(d, i));
                lane_close(t, d, i, now_ns);
            }
        }
    }
}
