#include "tests/helpers/kept.h"

#include <check.h>
#include <string.h>

struct kept kept;

/* ---- keeping ---- */

struct changed *kept_add(struct list *l, uint32_t of, int64_t at, double a, double b)
{
    ck_assert(l->n < KEPT_CHANGES);
    struct changed *c = &l->v[l->n++];
    *c = (struct changed){.of = of, .at = at, .a = a, .b = b};
    return c;
}

static void now(int64_t now_ns)
{
    if (kept.n_instants == 0 || kept.instants[kept.n_instants - 1] != now_ns) {
        ck_assert(kept.n_instants < KEPT_CHANGES);
        kept.instants[kept.n_instants++] = now_ns;
    }
}

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    now(now_ns);
    kept.came[r->id] = (struct came){
        true, r->cls, r->session_id, r->turn, r->input_tokens, r->reused_tokens, 0, now_ns, -1, -1,
        -1,   0};
    (void)snprintf(kept_add(&kept.phases, r->id, now_ns, 0, 0)->text, 96, "queued");
    kept.n_live[r->cls]++;
    (void)kept_add(&kept.live, 0, now_ns, kept.n_live[0], kept.n_live[1]);
}

static const char *phase_of(uint32_t id)
{
    const char *name = "";
    for (uint32_t i = 0; i < kept.phases.n; i++) {
        name = kept.phases.v[i].of == id ? kept.phases.v[i].text : name;
    }
    return name;
}

static void becomes(uint32_t id, int64_t now_ns, const char *phase)
{
    if (strcmp(phase_of(id), phase) != 0) {
        (void)snprintf(kept_add(&kept.phases, id, now_ns, 0, 0)->text, 96, "%s", phase);
    }
}

static void on_service(void *self, int64_t now_ns, const struct request *r, const struct launch *l)
{
    (void)self;
    (void)l;
    now(now_ns);
    becomes(r->id, now_ns, "prefill");
}

static void on_tokens(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    now(now_ns);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        if (p->segments[i].emitted_tokens > 0) {
            becomes(p->segments[i].request->id, now_ns, "decode");
        }
    }
}

static void on_left(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    now(now_ns);
    if (r->state == REQUEST_STATE_SHED) {
        (void)snprintf(kept_add(&kept.marks, r->id, now_ns, -1, 0)->text, 96, "shed");
    }
    kept.came[r->id].end = now_ns;
    kept.n_live[r->cls]--;
    (void)kept_add(&kept.live, 0, now_ns, kept.n_live[0], kept.n_live[1]);
}

static void on_lost(void *self, int64_t now_ns, const struct request *r, uint64_t tokens)
{
    (void)self;
    now(now_ns);
    kept.came[r->id].preemptions = r->preemptions;
    (void)snprintf(kept_add(&kept.marks, r->id, now_ns, (double)tokens, 0)->text, 96, "evicted");
    if (strcmp(phase_of(r->id), "decode") == 0) {
        becomes(r->id, now_ns, "recompute");
    }
}

static void on_formed(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    now(now_ns);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        if (r->preemptions != kept.came[r->id].preemptions) {
            (void)snprintf(kept_add(&kept.marks, r->id, now_ns, -1, 0)->text, 96, "swapped");
        }
        kept.came[r->id].preemptions = r->preemptions;
    }
}

static void on_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns)
{
    (void)self;
    now(now_ns);
    const struct pass *p = l->pass;
    uint32_t lane = 0;
    for (bool taken = true; taken; lane += taken) { /* the first that nobody has */
        taken = false;
        for (uint32_t i = 0; i < kept.n_ran; i++) {
            taken = taken || (kept.ran[i].end < 0 && kept.ran[i].device == l->device &&
                              kept.ran[i].lane == lane);
        }
    }
    uint32_t prompts = p->shape.prefill_rows;
    ck_assert(kept.n_ran < KEPT_CHANGES);
    kept.ran[kept.n_ran++] = (struct ran){
        .id = l->id,
        .pass = p->id,
        .request = p->segments[0].request->id,
        .sequences = p->n_segments,
        .rows = l->rows,
        .lane = lane,
        .device = l->device,
        .reactive = p->has_reactive,
        .name = prompts == 0               ? "decode"
                : prompts == p->shape.rows ? "prefill"
                                           : "mixed",
        .begin = now_ns,
        .end = -1,
        .lead = lead_ns,
        .asked = -1,
        .last = -1,
    };
}

static struct ran *ran_of(const struct launch *l)
{
    struct ran *found = NULL;
    for (uint32_t i = 0; i < kept.n_ran; i++) {
        found = kept.ran[i].id == l->id ? &kept.ran[i] : found;
    }
    return found;
}

uint32_t kept_track(const struct ran *r)
{
    return 1 + 16u * r->device + r->lane;
}

/* An instant of a launch is drawn when its kernel ends: `to` must not be before. */
static void mark(const struct ran *r, int64_t at, int64_t drawn, const char *text)
{
    struct changed *c = kept_add(&kept.spans, kept_track(r), at, (double)drawn, 0);
    (void)snprintf(c->text, 96, "i%s", text);
}

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated,
                     int64_t lost)
{
    (void)self;
    (void)isolated;
    (void)lost;
    now(now_ns);
    struct ran *r = ran_of(l);
    if (r == NULL) {
        (void)snprintf(kept_add(&kept.marks, l->pass->segments[0].request->id, now_ns, -1, 0)->text,
                       96, "withdrawn");
        return;
    }
    r->end = now_ns;
    r->outcome = l->outcome;
    if (r->asked >= 0) {
        mark(r, r->asked, now_ns, "preempt asked");
    }
    if (l->outcome == LAUNCH_OUTCOME_RESET || l->outcome == LAUNCH_OUTCOME_YIELDED) {
        mark(r, now_ns, now_ns, l->outcome == LAUNCH_OUTCOME_RESET ? "reset" : "yield");
    }
}

static void on_asked(void *self, int64_t now_ns, const struct launch *l)
{
    (void)self;
    now(now_ns);
    struct ran *r = ran_of(l);
    if (r != NULL && r->asked < 0) {
        r->asked = now_ns;
    }
}

static void on_kernel(void *self, const struct kernel_record *k)
{
    (void)self;
    now(k->end_ns);
    struct ran *r = ran_of(k->launch);
    ck_assert(kept.n_computed < KEPT_CHANGES);
    kept.computed[kept.n_computed++] = (struct computed){(uint32_t)(r - kept.ran),
                                                         (int)k->op,
                                                         k->layer,
                                                         k->index,
                                                         k->begin_ns,
                                                         k->end_ns,
                                                         k->isolated_ns};
    r->last = k->end_ns;
    if (r->asked >= 0) {
        mark(r, r->asked, k->end_ns, "preempt asked");
        r->asked = -1;
    }
    const struct pass *p = k->launch->pass;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        struct came *c = &kept.came[p->segments[i].request->id];
        if (c->first < 0) {
            c->first = k->end_ns;
            c->first_begin = k->begin_ns;
            c->first_track = kept_track(r);
        }
    }
}

static void on_resident(void *self, int64_t now_ns, struct resident_key key, enum resident_state is)
{
    (void)self;
    now(now_ns);
    bool compiles = key.kind == RESIDENT_COMPILED_ATTENTION;
    uint32_t *n = &kept.n_waiting[compiles];
    struct loaded *v = kept.waiting[compiles];
    if (is == RESIDENT_PENDING) {
        ck_assert(*n < 64);
        v[(*n)++] = (struct loaded){key, now_ns};
        return;
    }
    uint32_t i = 0;
    while (i < *n && (v[i].key.a != key.a || v[i].key.b != key.b)) {
        i++;
    }
    if (i == *n) {
        return;
    }
    int64_t begin = v[i].asked > kept.free_ns[compiles] ? v[i].asked : kept.free_ns[compiles];
    for (uint32_t k = i; k + 1 < *n; k++) {
        v[k] = v[k + 1];
    }
    (*n)--;
    if (i > 0) {
        return; /* it had not its turn yet */
    }
    kept.free_ns[compiles] = now_ns;
    const char *outcome = is == RESIDENT_READY ? "ready" : "cancelled";
    struct changed *c =
        kept_add(&kept.spans, 1 + 16u * MACHINE_MAX_DEVICES + compiles, begin, 0, 0);
    c->b = (double)now_ns;
    if (compiles) {
        (void)snprintf(c->text, 96, "Xattention length=%u outcome=%s", key.a, outcome);
    } else if (key.kind == RESIDENT_WEIGHTS) {
        (void)snprintf(c->text, 96, "Xweights model=%u outcome=%s", key.a, outcome);
    } else {
        (void)snprintf(c->text, 96, "Xblock block=%u graph=%u outcome=%s", key.a, key.b, outcome);
    }
}

static void on_ddr(void *self, int64_t now_ns, uint64_t n, int64_t t_ns, double demand,
                   double share)
{
    (void)self;
    ck_assert(n == 1);
    now(now_ns);
    (void)kept_add(&kept.ddr, (uint32_t)t_ns, now_ns, demand / 1e9, share / 1e9);
}

static void on_power(void *self, int64_t now_ns, uint8_t d, enum power_phase phase, double watts)
{
    (void)self;
    (void)phase;
    now(now_ns);
    (void)kept_add(&kept.powers, d, now_ns, watts, 0);
}

static void on_frame(void *self, int64_t now_ns, uint8_t device, enum frame_state is, int64_t due)
{
    (void)self;
    (void)device;
    now(now_ns);
    uint32_t tid = 1 + 16u * MACHINE_MAX_DEVICES + 2;
    if (is == FRAME_MISSED) {
        (void)snprintf(kept_add(&kept.spans, tid, now_ns, (double)now_ns, 0)->text, 96,
                       "imissed frame");
    } else {
        bool done = is == FRAME_DONE;
        struct changed *c =
            kept_add(&kept.spans, tid, done ? kept.frame_begin : due, 0, (double)now_ns);
        (void)snprintf(c->text, 96, done ? "Xframe" : "Xwaits for a kernel");
        kept.frame_begin = now_ns;
    }
}

static void on_conditions(void *self, int64_t now_ns, const struct machine_state *m)
{
    (void)self;
    now(now_ns);
    char text[96];
    int n = m->on_battery ? snprintf(text, 96, "battery %.0f %% at %.4g s", m->battery_frac * 100,
                                     (double)now_ns / 1e9)
            : m->battery_frac < 1.0
                ? snprintf(text, 96, "mains, battery %.0f %%", m->battery_frac * 100)
                : snprintf(text, 96, "mains");
    if (m->power_limit_watts > 0) {
        n += snprintf(text + n, 96 - (size_t)n, ", %.3g W", m->power_limit_watts);
    }
    if (m->memory_taken_bytes > 0) {
        n += snprintf(text + n, 96 - (size_t)n, ", %.3g GB taken", m->memory_taken_bytes / 1e9);
    }
    (void)snprintf(text + n, 96 - (size_t)n, "%s", m->background_window ? "" : ", window closed");
    if (kept.conditions.n == 0 ||
        strcmp(kept.conditions.v[kept.conditions.n - 1].text, text) != 0) {
        (void)snprintf(kept_add(&kept.conditions, 0, now_ns, 0, 0)->text, 96, "%s", text);
    }
}

static void on_end(void *self, int64_t now_ns)
{
    (void)self;
    kept.run_end = now_ns;
}

void kept_forget(const struct machine *m)
{
    struct ran *ran = kept.ran != NULL ? kept.ran : xcalloc(KEPT_CHANGES, sizeof *ran);
    struct computed *computed =
        kept.computed != NULL ? kept.computed : xcalloc(KEPT_CHANGES, sizeof *computed);
    struct list *const lists[] = {&kept.phases, &kept.marks,      &kept.ddr,  &kept.live,
                                  &kept.powers, &kept.conditions, &kept.spans};
    struct changed *of[7];
    for (int i = 0; i < 7; i++) {
        of[i] = lists[i]->v != NULL ? lists[i]->v : xcalloc(KEPT_CHANGES, sizeof *of[i]);
    }
    memset(&kept, 0, sizeof kept);
    kept.ran = ran;
    kept.computed = computed;
    for (int i = 0; i < 7; i++) {
        lists[i]->v = of[i];
    }
    (void)kept_add(&kept.live, 0, 0, 0, 0);
    for (uint32_t d = 0; d < OBSERVER_DOMAINS; d++) {
        double watts = d < m->n_devices ? m->devices[d].idle_watts : 0.0;
        (void)kept_add(&kept.powers, d, 0, watts, 0);
    }
}

struct observer *kept_observer(void)
{
    static struct observer o = {.wants_kernels = true,
                                .request_arrived = on_arrived,
                                .request_first_service = on_service,
                                .tokens = on_tokens,
                                .request_finished = on_left,
                                .request_shed = on_left,
                                .pass_formed = on_formed,
                                .launch_started = on_started,
                                .launch_ended = on_ended,
                                .preempt_asked = on_asked,
                                .kernel = on_kernel,
                                .kv_lost = on_lost,
                                .resident = on_resident,
                                .ddr = on_ddr,
                                .frame = on_frame,
                                .power = on_power,
                                .conditions = on_conditions,
                                .run_ended = on_end};
    return &o;
}
