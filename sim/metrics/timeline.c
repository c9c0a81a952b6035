/* Requests, counters, and the observer as a whole. */
#include "sim/metrics/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/metrics/timeline_impl.h"

static const char *const phase_names[] = {
    [PHASE_QUEUED] = "queued",
    [PHASE_PREFILL] = "prefill",
    [PHASE_DECODE] = "decode",
    [PHASE_RECOMPUTE] = "recompute",
};

/* ---- pieces ---- */

void timeline_track_name(struct timeline *t, uint32_t pid, uint32_t tid, const char *name,
                         uint32_t order)
{
    struct trace_events *w = &t->out;
    trace_event_begin(w, 'M', pid, tid, 0);
    trace_event_name(w, "thread_name");
    trace_args_begin(w);
    trace_text(w, "name", name);
    trace_event_end(w);
    trace_event_begin(w, 'M', pid, tid, 0);
    trace_event_name(w, "thread_sort_index");
    trace_args_begin(w);
    trace_number(w, "sort_index", order);
    trace_event_end(w);
}

static void process_name(struct timeline *t, uint32_t pid, const char *name)
{
    trace_event_begin(&t->out, 'M', pid, 0, 0);
    trace_event_name(&t->out, "process_name");
    trace_args_begin(&t->out);
    trace_text(&t->out, "name", name);
    trace_event_end(&t->out);
}

void timeline_instant(struct timeline *t, uint32_t pid, uint32_t tid, int64_t now_ns,
                      const char *name)
{
    trace_event_begin(&t->out, 'i', pid, tid, now_ns);
    trace_event_name(&t->out, name);
    trace_text(&t->out, "s", "t");
    trace_event_end(&t->out);
}

/* ---- counters ---- */

static void counter_write(struct timeline *t, struct timeline_counter *c)
{
    bool same = c->any && c->value[0] == c->written[0] && c->value[1] == c->written[1];
    if (!c->pending || same) {
        return;
    }
    c->pending = false;
    c->any = true;
    memcpy(c->written, c->value, sizeof c->written);
    trace_event_begin(&t->out, 'C', TIMELINE_PID_MACHINE, 0, c->at_ns);
    trace_event_name(&t->out, c->name);
    trace_args_begin(&t->out);
    for (int i = 0; i < 2 && c->keys[i] != NULL; i++) {
        trace_decimal(&t->out, c->keys[i], c->value[i]);
    }
    trace_event_end(&t->out);
}

void timeline_counter_set(struct timeline *t, struct timeline_counter *c, int64_t now_ns, double a,
                          double b)
{
    if (now_ns > c->at_ns) {
        counter_write(t, c);
    }
    c->at_ns = now_ns;
    c->value[0] = a;
    c->value[1] = b;
    c->pending = true;
}

static void count_live(struct timeline *t, int64_t now_ns, enum request_class cls, int delta)
{
    t->n_live[cls] += (uint32_t)delta;
    timeline_counter_set(t, &t->live, now_ns, (double)t->n_live[REQUEST_CLASS_REACTIVE],
                         (double)t->n_live[REQUEST_CLASS_PROACTIVE]);
}

static void on_ddr(void *self, int64_t now_ns, uint64_t count, int64_t duration_ns,
                   double demand_bytes_per_s, double share_bytes_per_s)
{
    struct timeline *t = self;
    (void)count; /* 1 */
    int64_t begin_ns = now_ns - duration_ns;
    if (begin_ns > t->ddr_end_ns) {
        timeline_counter_set(t, &t->ddr, t->ddr_end_ns, 0.0, 0.0);
    }
    timeline_counter_set(t, &t->ddr, begin_ns, demand_bytes_per_s / 1e9, share_bytes_per_s / 1e9);
    t->ddr_end_ns = now_ns;
}

static void on_power(void *self, int64_t now_ns, uint8_t domain, enum power_phase phase,
                     double watts)
{
    struct timeline *t = self;
    (void)phase;
    timeline_counter_set(t, &t->watts[domain], now_ns, watts, 0.0);
}

static void counters_begin(struct timeline *t)
{
    t->ddr = (struct timeline_counter){.name = "DDR GB/s", .keys = {"demand", "carried"}};
    t->live = (struct timeline_counter){.name = "live requests", .keys = {"reactive", "proactive"}};
    timeline_counter_set(t, &t->ddr, 0, 0.0, 0.0);
    timeline_counter_set(t, &t->live, 0, 0.0, 0.0);
    for (uint32_t d = 0; d < OBSERVER_DOMAINS; d++) {
        bool device = d < t->machine->n_devices;
        const char *name = device                          ? t->machine->devices[d].name
                           : d == OBSERVER_DOMAIN_COMPILER ? "compiler"
                           : d == OBSERVER_DOMAIN_HOST     ? "host"
                                                           : "";
        (void)snprintf(t->watts_names[d], sizeof t->watts_names[d], "watts %s", name);
        t->watts[d] = (struct timeline_counter){.name = t->watts_names[d], .keys = {"watts", NULL}};
        if (name[0] != '\0') {
            double idle = device ? t->machine->devices[d].idle_watts : 0.0;
            timeline_counter_set(t, &t->watts[d], 0, idle, 0.0);
        }
    }
}

static void counters_end(struct timeline *t)
{
    timeline_counter_set(t, &t->ddr, t->ddr_end_ns, 0.0, 0.0);
    counter_write(t, &t->ddr);
    counter_write(t, &t->live);
    for (uint32_t d = 0; d < OBSERVER_DOMAINS; d++) {
        counter_write(t, &t->watts[d]);
    }
}

/* ---- requests ---- */

static void phase_begin(struct timeline *t, int64_t now_ns, uint32_t id, uint8_t phase)
{
    trace_event_begin(&t->out, 'B', TIMELINE_PID_REQUESTS, id, now_ns);
    trace_event_name(&t->out, phase_names[phase]);
    trace_event_end(&t->out);
}

static void slice_end(struct timeline *t, int64_t now_ns, uint32_t id)
{
    trace_event_begin(&t->out, 'E', TIMELINE_PID_REQUESTS, id, now_ns);
    trace_event_end(&t->out);
}

static void phase_change(struct timeline *t, int64_t now_ns, const struct request *r, uint8_t to)
{
    struct timeline_request *v = idmap_find(&t->requests, r->id);
    if (v != NULL && v->phase != to) {
        slice_end(t, now_ns, r->id);
        phase_begin(t, now_ns, r->id, to);
        v->phase = to;
    }
}

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    struct timeline *t = self;
    struct trace_events *w = &t->out;
    struct timeline_request *v = idmap_add(&t->requests, r->id);
    v->phase = PHASE_QUEUED;
    v->reactive = r->cls == REQUEST_CLASS_REACTIVE;
    char name[48];
    (void)snprintf(name, sizeof name, "request %u", r->id);
    timeline_track_name(t, TIMELINE_PID_REQUESTS, r->id, name, r->id);
    trace_event_begin(w, 'B', TIMELINE_PID_REQUESTS, r->id, now_ns);
    trace_event_name(w, v->reactive ? "reactive" : "proactive");
    trace_args_begin(w);
    trace_number(w, "session", r->session_id);
    trace_number(w, "turn", r->turn);
    trace_number(w, "input_tokens", r->input_tokens);
    trace_number(w, "reused_tokens", r->reused_tokens);
    trace_event_end(w);
    phase_begin(t, now_ns, r->id, PHASE_QUEUED);
    trace_event_begin(w, 's', TIMELINE_PID_REQUESTS, r->id, now_ns);
    trace_event_name(w, "first kernel");
    trace_text(w, "cat", "request");
    trace_number(w, "id", r->id);
    trace_event_end(w);
    count_live(t, now_ns, r->cls, 1);
}

static void on_first_service(void *self, int64_t now_ns, const struct request *r,
                             const struct launch *l)
{
    (void)l;
    phase_change(self, now_ns, r, PHASE_PREFILL);
}

static void on_tokens(void *self, int64_t now_ns, const struct request *r, uint32_t n,
                      int64_t gap_ns)
{
    (void)n;
    (void)gap_ns;
    phase_change(self, now_ns, r, PHASE_DECODE);
}

static void on_kv_lost(void *self, int64_t now_ns, const struct request *r, uint64_t tokens)
{
    struct timeline *t = self;
    struct timeline_request *v = idmap_find(&t->requests, r->id);
    if (v == NULL) {
        return;
    }
    v->preemptions = r->preemptions;
    trace_event_begin(&t->out, 'i', TIMELINE_PID_REQUESTS, r->id, now_ns);
    trace_event_name(&t->out, "evicted");
    trace_text(&t->out, "s", "t");
    trace_args_begin(&t->out);
    trace_number(&t->out, "tokens", (int64_t)tokens);
    trace_event_end(&t->out);
    if (v->phase == PHASE_DECODE) {
        phase_change(t, now_ns, r, PHASE_RECOMPUTE);
    }
}

/* No hook tells of a swap when it happens; the count of preemptions does once it is over. */
static void on_pass_formed(void *self, int64_t now_ns, const struct pass *p)
{
    struct timeline *t = self;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        struct timeline_request *v = r->preemptions == 0 ? NULL : idmap_find(&t->requests, r->id);
        if (v != NULL && v->preemptions != r->preemptions) {
            v->preemptions = r->preemptions;
            timeline_instant(t, TIMELINE_PID_REQUESTS, r->id, now_ns, "swapped");
        }
    }
}

static void on_left(void *self, int64_t now_ns, const struct request *r)
{
    struct timeline *t = self;
    if (idmap_find(&t->requests, r->id) == NULL) {
        return;
    }
    if (r->state == REQUEST_STATE_SHED) {
        timeline_instant(t, TIMELINE_PID_REQUESTS, r->id, now_ns, "shed");
    }
    slice_end(t, now_ns, r->id); /* the phase */
    slice_end(t, now_ns, r->id);
    count_live(t, now_ns, r->cls, -1);
    idmap_remove(&t->requests, r->id);
}

static void on_run_ended(void *self, int64_t now_ns)
{
    struct timeline *t = self;
    timeline_machine_end(t, now_ns);
    uint32_t at = 0;
    uint32_t id = 0;
    while (idmap_next(&t->requests, &at, &id) != NULL) {
        slice_end(t, now_ns, id);
        slice_end(t, now_ns, id);
    }
    counters_end(t);
}

/* ---- life ---- */

struct timeline *timeline_open(const char *path, const struct machine *machine, struct err *e)
{
    struct timeline *t = xcalloc(1, sizeof *t);
    t->machine = machine;
    idmap_init(&t->requests, sizeof(struct timeline_request));
    if (trace_events_open(&t->out, path, e) != 0) {
        (void)timeline_close(t, false, e);
        return NULL;
    }
    process_name(t, TIMELINE_PID_MACHINE, "machine");
    process_name(t, TIMELINE_PID_REQUESTS, "requests");
    trace_event_begin(&t->out, 'M', TIMELINE_PID_MACHINE, 0, 0);
    trace_event_name(&t->out, "machine"); /* viewers skip names they do not know */
    trace_args_begin(&t->out);
    trace_decimal(&t->out, "ddr_peak_gb_per_s", machine->ddr_peak_bytes_per_s / 1e9);
    trace_event_end(&t->out);
    timeline_machine_begin(t);
    counters_begin(t);
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
    idmap_fini(&t->requests);
    free(t->loader.v);
    free(t->compiler.v);
    free(t);
    return rc;
}
