/* Requests, counters, and the observer as a whole. */
#include "sim/metrics/timeline.h"

#include "sim/metrics/timeline_impl.h"

static const char *const phase_names[] = {
    [PHASE_QUEUED] = "queued",
    [PHASE_PREFILL] = "prefill",
    [PHASE_DECODE] = "decode",
    [PHASE_RECOMPUTE] = "recompute",
};

/* ---- counters ---- */

static void counter_write(struct timeline *t, struct timeline_counter *c, int64_t at_ns,
                          const double *value)
{
    bool same = c->any && value[0] == c->written[0] && value[1] == c->written[1];
    if (same || c->name == NULL) {
        return;
    }
    c->any = !t->out.muted;
    memcpy(c->written, value, sizeof c->written);
    trace_event_begin(&t->out, 'C', TIMELINE_PID_MACHINE, 0, at_ns, c->name);
    trace_args_begin(&t->out);
    for (int i = 0; i < 2 && c->keys[i] != NULL; i++) {
        trace_decimal(&t->out, c->keys[i], value[i]);
    }
    trace_event_end(&t->out);
}

/* The value is constant up to now_ns: writes the means of complete cells. */
static void counter_fill(struct timeline *t, struct timeline_counter *c, int64_t now_ns)
{
    while (c->at_ns < now_ns) {
        int64_t begin_ns = c->at_ns - c->at_ns % c->cell_ns;
        int64_t to_ns = begin_ns + c->cell_ns < now_ns ? begin_ns + c->cell_ns : now_ns;
        bool all = c->at_ns == begin_ns; /* one value for many cells */
        for (int i = 0; i < 2; i++) {
            c->sum[i] += c->value[i] * (double)(to_ns - c->at_ns);
        }
        c->at_ns = to_ns;
        if (to_ns == begin_ns + c->cell_ns) {
            double mean[2] = {c->sum[0] / (double)c->cell_ns, c->sum[1] / (double)c->cell_ns};
            counter_write(t, c, begin_ns, all ? c->value : mean);
            c->sum[0] = c->sum[1] = 0.0;
            c->at_ns = all ? now_ns - now_ns % c->cell_ns : to_ns;
        }
    }
}

static void counter_set(struct timeline *t, struct timeline_counter *c, int64_t now_ns, double a,
                        double b)
{
    if (c->cell_ns > 0) {
        counter_fill(t, c, now_ns);
    } else if (now_ns > c->at_ns) {
        counter_write(t, c, c->at_ns, c->value);
    }
    c->at_ns = now_ns;
    c->value[0] = a;
    c->value[1] = b;
}

/* Writes the last values at the end of the timeline. */
static void counter_end(struct timeline *t, struct timeline_counter *c, int64_t now_ns)
{
    if (c->cell_ns > 0) {
        counter_fill(t, c, now_ns);
        double part_ns = (double)(now_ns % c->cell_ns); /* of an incomplete cell */
        double mean[2] = {c->sum[0] / part_ns, c->sum[1] / part_ns};
        if (part_ns > 0.0) {
            counter_write(t, c, now_ns - now_ns % c->cell_ns, mean);
        }
        counter_write(t, c, now_ns, c->value);
    } else if (c->at_ns <= now_ns) {
        counter_write(t, c, c->at_ns, c->value);
    }
}

static void count_live(struct timeline *t, int64_t now_ns, enum request_class cls, int delta)
{
    t->n_live[cls] += (uint32_t)delta;
    counter_set(t, &t->live, now_ns, (double)t->n_live[REQUEST_CLASS_REACTIVE],
                (double)t->n_live[REQUEST_CLASS_PROACTIVE]);
}

static void on_ddr(void *self, int64_t now_ns, uint64_t count, int64_t duration_ns,
                   double demand_bytes_per_s, double share_bytes_per_s)
{
    struct timeline *t = timeline_at(self, now_ns);
    (void)count; /* 1 */
    int64_t begin_ns = now_ns - duration_ns;
    begin_ns = begin_ns > t->ddr.at_ns ? begin_ns : t->ddr.at_ns;
    if (begin_ns > t->ddr_end_ns) {
        counter_set(t, &t->ddr, t->ddr_end_ns, 0.0, 0.0);
    }
    counter_set(t, &t->ddr, begin_ns, demand_bytes_per_s / 1e9, share_bytes_per_s / 1e9);
    t->ddr_end_ns = now_ns;
}

static void on_power(void *self, int64_t now_ns, uint8_t domain, enum power_phase phase UNUSED,
                     double watts)
{
    struct timeline *t = timeline_at(self, now_ns);
    counter_set(t, &t->watts[domain], now_ns, watts, 0.0);
}

static struct timeline_counter *counter_of(struct timeline *t, uint32_t i)
{
    return i == 0 ? &t->ddr : i == 1 ? &t->live : &t->watts[i - 2];
}
enum { N_COUNTERS = 2 + OBSERVER_DOMAINS };

static void counters_begin(struct timeline *t)
{
    int64_t cell_ns = t->o.only_launches ? TIMELINE_CELL_NS : 0;
    t->ddr = (struct timeline_counter){
        .name = "DDR GB/s", .keys = {"demand", "carried"}, .cell_ns = cell_ns};
    t->live = (struct timeline_counter){.name = "live requests", .keys = {"reactive", "proactive"}};
    for (uint32_t d = 0; d < OBSERVER_DOMAINS; d++) {
        bool device = d < t->machine->n_devices;
        const char *name = device                          ? t->machine->devices[d].name
                           : d == OBSERVER_DOMAIN_COMPILER ? "compiler"
                           : d == OBSERVER_DOMAIN_HOST     ? "host"
                                                           : "";
        (void)snprintf(t->watts_names[d], sizeof t->watts_names[d], "watts %s", name);
        t->watts[d] = (struct timeline_counter){.name = name[0] != '\0' ? t->watts_names[d] : NULL,
                                                .keys = {"watts", NULL},
                                                .cell_ns = cell_ns};
        t->watts[d].value[0] = device ? t->machine->devices[d].idle_watts : 0.0;
    }
}

/* Writes all counters at the begin of the window. */
static void counters_show(struct timeline *t, int64_t now_ns)
{
    for (uint32_t i = 0; i < N_COUNTERS; i++) {
        struct timeline_counter *c = counter_of(t, i);
        counter_set(t, c, c->at_ns > now_ns ? c->at_ns : now_ns, c->value[0], c->value[1]);
        c->any = false;
    }
    t->ddr_end_ns = t->ddr_end_ns > now_ns ? t->ddr_end_ns : now_ns;
}

static void counters_end(struct timeline *t, int64_t now_ns)
{
    if (t->ddr_end_ns <= now_ns) {
        counter_set(t, &t->ddr, t->ddr_end_ns, 0.0, 0.0);
    }
    for (uint32_t i = 0; i < N_COUNTERS; i++) {
        if (counter_of(t, i)->name != NULL) {
            counter_end(t, counter_of(t, i), now_ns);
        }
    }
}

/* ---- requests ---- */

static void phase_begin(struct timeline *t, int64_t now_ns, uint32_t id, uint8_t phase)
{
    trace_event_begin(&t->out, 'B', TIMELINE_PID_REQUESTS, id, now_ns, phase_names[phase]);
    trace_event_end(&t->out);
}

static void slice_end(struct timeline *t, int64_t now_ns, uint32_t id)
{
    trace_event_begin(&t->out, 'E', TIMELINE_PID_REQUESTS, id, now_ns, NULL);
    trace_event_end(&t->out);
}

static void phase_change(struct timeline *t, int64_t now_ns, const struct request *r, uint8_t to)
{
    struct timeline_request *v = map_record(&t->requests, r->id);
    if (v != NULL && v->phase != to) {
        slice_end(t, now_ns, r->id);
        phase_begin(t, now_ns, r->id, to);
        v->phase = to;
    }
}

/* Draws a request's track, and its slices from now on. */
static void request_show(struct timeline *t, int64_t now_ns, uint32_t id,
                         const struct timeline_request *v)
{
    struct trace_events *w = &t->out;
    const char *cls = v->reactive ? "reactive" : "proactive";
    char name[80];
    (void)snprintf(name, sizeof name, "request %u, %s, %u tokens", id, cls, v->input_tokens);
    trace_track_name(&t->out, TIMELINE_PID_REQUESTS, id, name, id);
    trace_event_begin(w, 'B', TIMELINE_PID_REQUESTS, id, now_ns, cls);
    trace_args_begin(w);
    trace_number(w, "request", id);
    trace_number(w, "session", v->session);
    trace_number(w, "turn", v->turn);
    trace_number(w, "input_tokens", v->input_tokens);
    trace_number(w, "reused_tokens", v->reused_tokens);
    trace_event_end(w);
    phase_begin(t, now_ns, id, v->phase);
}

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    struct timeline *t = timeline_at(self, now_ns);
    struct trace_events *w = &t->out;
    struct timeline_request *v = map_add(&t->requests, r->id);
    v->phase = PHASE_QUEUED;
    v->reactive = r->cls == REQUEST_CLASS_REACTIVE;
    v->session = r->session_id;
    v->turn = r->turn;
    v->input_tokens = r->input_tokens;
    v->reused_tokens = r->reused_tokens;
    request_show(t, now_ns, r->id, v);
    trace_event_begin(w, 's', TIMELINE_PID_REQUESTS, r->id, now_ns, "first kernel");
    trace_text(w, "cat", "request");
    trace_number(w, "id", r->id);
    trace_event_end(w);
    count_live(t, now_ns, r->cls, 1);
}

static void on_first_service(void *self, int64_t now_ns, const struct request *r,
                             const struct launch *l UNUSED)
{
    phase_change(timeline_at(self, now_ns), now_ns, r, PHASE_PREFILL);
}

static void on_tokens(void *self, int64_t now_ns, const struct pass *p)
{
    struct timeline *t = timeline_at(self, now_ns);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        if (p->segments[i].emitted_tokens > 0) {
            phase_change(t, now_ns, p->segments[i].request, PHASE_DECODE);
        }
    }
}

static void on_kv_lost(void *self, int64_t now_ns, const struct request *r, uint64_t tokens)
{
    struct timeline *t = timeline_at(self, now_ns);
    struct timeline_request *v = map_record(&t->requests, r->id);
    if (v == NULL) {
        return;
    }
    v->preemptions = r->preemptions;
    trace_event_begin(&t->out, 'i', TIMELINE_PID_REQUESTS, r->id, now_ns, "evicted");
    trace_text(&t->out, "s", "t");
    trace_args_begin(&t->out);
    trace_number(&t->out, "tokens", (int64_t)tokens);
    trace_event_end(&t->out);
    if (v->phase == PHASE_DECODE) {
        phase_change(t, now_ns, r, PHASE_RECOMPUTE);
    }
}

/* No hook reports a swap. The request's next pass shows it by its number of preemptions. */
static void on_pass_formed(void *self, int64_t now_ns, const struct pass *p)
{
    struct timeline *t = timeline_at(self, now_ns);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        struct timeline_request *v = r->preemptions == 0 ? NULL : map_record(&t->requests, r->id);
        if (v != NULL && v->preemptions != r->preemptions) {
            v->preemptions = r->preemptions;
            trace_instant(&t->out, TIMELINE_PID_REQUESTS, r->id, now_ns, "swapped");
        }
    }
}

static void on_left(void *self, int64_t now_ns, const struct request *r)
{
    struct timeline *t = timeline_at(self, now_ns);
    if (map_record(&t->requests, r->id) == NULL) {
        return;
    }
    if (r->state == REQUEST_STATE_SHED) {
        trace_instant(&t->out, TIMELINE_PID_REQUESTS, r->id, now_ns, "shed");
    }
    slice_end(t, now_ns, r->id); /* of the phase */
    slice_end(t, now_ns, r->id);
    count_live(t, now_ns, r->cls, -1);
    map_remove(&t->requests, r->id);
}

/* ---- the window ---- */

static void window_begin(struct timeline *t)
{
    counters_show(t, t->o.from_ns);
    t->begun = true;
    t->out.muted = false;
    timeline_machine_show(t, t->o.from_ns);
    uint32_t at = 0;
    uint64_t id = 0;
    for (struct timeline_request *v; (v = map_next(&t->requests, &at, &id)) != NULL;) {
        v->drawn = true; /* no arrow from an arrival before the window */
        request_show(t, t->o.from_ns, (uint32_t)id, v);
    }
}

static void window_end(struct timeline *t, int64_t now_ns, const char *name)
{
    timeline_machine_end(t, now_ns, name);
    uint32_t at = 0;
    uint64_t id = 0;
    while (map_next(&t->requests, &at, &id) != NULL) {
        slice_end(t, now_ns, (uint32_t)id);
        slice_end(t, now_ns, (uint32_t)id);
    }
    counters_end(t, now_ns);
    t->ended = true;
    t->out.muted = true;
}

struct timeline *timeline_at(void *self, int64_t now_ns)
{
    struct timeline *t = self;
    if (!t->begun && now_ns >= t->o.from_ns) {
        window_begin(t);
    }
    if (!t->ended && now_ns > t->o.to_ns) {
        window_end(t, t->o.to_ns, "goes on");
    }
    return t;
}

static void on_run_ended(void *self, int64_t now_ns)
{
    struct timeline *t = timeline_at(self, now_ns);
    if (t->begun && !t->ended) {
        window_end(t, now_ns, "unfinished");
    }
}

/* ---- life ---- */

struct timeline *timeline_open(const char *path, const struct machine *machine,
                               const struct timeline_options *o, struct err *e)
{
    struct timeline *t = xcalloc(1, sizeof *t);
    t->machine = machine;
    t->o = *o;
    t->o.to_ns = o->to_ns > 0 ? o->to_ns : TIME_NEVER_NS;
    t->begun = o->from_ns <= 0;
    t->requests.record_bytes = sizeof(struct timeline_request);
    if (trace_events_open(&t->out, path, o->about, e) != 0) {
        (void)timeline_close(t, false, e);
        return NULL;
    }
    trace_process_name(&t->out, TIMELINE_PID_MACHINE, "machine");
    trace_process_name(&t->out, TIMELINE_PID_REQUESTS, "requests");
    /* Viewers ignore unknown names. */
    trace_event_begin(&t->out, 'M', TIMELINE_PID_MACHINE, 0, 0, "machine");
    trace_args_begin(&t->out);
    trace_decimal(&t->out, "ddr_peak_gb_per_s", machine->ddr_peak_bytes_per_s / 1e9);
    trace_event_end(&t->out);
    timeline_machine_show(t, 0);
    counters_begin(t);
    t->out.muted = !t->begun;
    t->observer = (struct observer){
        .self = t,
        .wants_kernels = true,
        .request_arrived = on_arrived,
        .request_first_service = on_first_service,
        .tokens = on_tokens,
        .request_finished = on_left,
        .request_shed = on_left,
        .pass_formed = on_pass_formed,
        .launch_started = timeline_launch_started,
        .launch_ended = timeline_launch_ended,
        .preempt_asked = timeline_preempt_asked,
        .kernel = timeline_kernel,
        .kv_lost = on_kv_lost,
        .resident = timeline_resident,
        .ddr = on_ddr,
        .power = on_power,
        .frame = timeline_frame,
        .conditions = timeline_conditions,
        .run_ended = on_run_ended,
    };
    return t;
}

struct observer *timeline_observer(struct timeline *t)
{
    return &t->observer;
}

int timeline_close(struct timeline *t, bool keep, struct err *e)
{
    if (t == NULL) {
        return 0;
    }
    int rc = trace_events_close(&t->out, keep, e);
    map_fini(&t->requests);
    free(t->loader.v);
    free(t->compiler.v);
    free(t);
    return rc;
}
