/* Layers of a pass that is launched op by op. A policy says of such a pass that its layers repeat
 * (pass_spec.layers_repeat); then a layer in which nothing happened but its own launches is
 * followed by more like it, as long as nothing else happens. The engine writes down what observers
 * hear of one layer, sees that the machine stands at its end as it stood at its begin, and says it
 * again for those that follow: the same instants, integrals and counts as if each had been launched
 * and run, without events and without asking the policy. */
#include <string.h>

#include "sim/engine/consistent.h"

/* Room for one more, or NULL when this is no layer. */
static struct layers_note *note(struct engine *e, enum layers_what what, int64_t now_ns)
{
    struct layers *y = &e->layers;
    SIM_ASSERT(y->noting && y->pass != NULL && y->n_notes <= LAYERS_MAX_NOTES);
    SIM_ASSERT(y->n_notes == 0 || now_ns >= y->notes[y->n_notes - 1].at_ns);
    if (y->n_notes == LAYERS_MAX_NOTES) {
        layers_forget(e);
        return NULL;
    }
    struct layers_note *n = &y->notes[y->n_notes++];
    n->what = what;
    n->at_ns = now_ns;
    return n;
}

static void note_launch(struct engine *e, enum layers_what what, int64_t now_ns,
                        const struct launch *l, int64_t ns, int64_t lost_ns)
{
    struct layers_note *n = note(e, what, now_ns);
    if (n == NULL) {
        return;
    }
    /* Copies: when they are told again, both stand elsewhere, and observers read both. */
    n->launch = *l;
    n->pass = *l->pass;
    n->ns = ns;
    n->lost_ns = lost_ns;
    if (l->pass != &e->layers.pass->pub) {
        layers_forget(e);
    }
}

static void on_submitted(void *self, int64_t now_ns, const struct launch *l)
{
    note_launch(self, LAYERS_SUBMITTED, now_ns, l, 0, 0);
}

static void on_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns)
{
    note_launch(self, LAYERS_STARTED, now_ns, l, lead_ns, 0);
}

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t solo_ns,
                     int64_t lost_ns)
{
    note_launch(self, LAYERS_ENDED, now_ns, l, solo_ns, lost_ns);
}

static void on_ddr(void *self, int64_t now_ns, uint64_t count, int64_t duration_ns, double demand,
                   double share)
{
    struct layers_note *n = note(self, LAYERS_DDR, now_ns);
    if (n != NULL) {
        n->ns = duration_ns;
        n->count = count;
        n->demand = demand;
        n->share = share;
    }
}

static void on_power(void *self, int64_t now_ns, uint8_t domain, enum power_phase phase,
                     double watts)
{
    struct layers_note *n = note(self, LAYERS_POWER, now_ns);
    if (n != NULL) {
        n->domain = domain;
        n->phase = phase;
        n->watts = watts;
    }
}

void layers_init(struct engine *e)
{
    const struct sim_setup *s = e->core.setup; /* with noise every layer's kernels are new */
    e->layers.allowed = e->may_solo && e->may_corun && s->decision_log == NULL &&
                        s->truth_sigma <= 0.0 && s->n_observers < SIM_MAX_OBSERVERS;
    e->layers.observer = (struct observer){.self = e,
                                           .launch_submitted = on_submitted,
                                           .launch_started = on_started,
                                           .launch_ended = on_ended,
                                           .ddr = on_ddr,
                                           .power = on_power};
    /* Behind the others, and not counted: it hears nothing until it listens. */
    if (e->layers.allowed) {
        e->setup.observers[s->n_observers] = &e->layers.observer;
    }
}

static void listen(struct engine *e, bool on)
{
    e->setup.n_observers += (uint32_t)on - (uint32_t)e->layers.noting;
    e->layers.noting = on;
    SIM_ASSERT(e->setup.n_observers <= SIM_MAX_OBSERVERS);
}

void layers_forget(struct engine *e)
{
    listen(e, false);
    e->layers.pass = NULL;
}

/* The pass whose layer begins now: the launches of its first op are all there is on the machine,
 * and none of them has begun. NULL: there is none. */
static struct full_pass *at_layer(const struct engine *e, struct layers_stand *stand)
{
    const struct pass *p = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->core.setup->machine->n_devices; i++) {
        const struct vdevice *d = &e->devices[i];
        if (d->n_running + d->n_queued > 1 || d->occupied_until_ns > e->now_ns) {
            return NULL;
        }
        if (d->n_running == 1) {
            struct vexec *v = d->running[0];
            const struct launch *l = &v->l->pub;
            if (v->phase != VEXEC_LEAD || l->submit_ns != e->now_ns || n == LAYERS_MAX_SHARES ||
                (p != NULL && p != l->pass) || l->stop_requested) {
                return NULL;
            }
            p = l->pass;
            stand->exec[n] = v;
            stand->launch[n] = *l;
            stand->lead_ns[n] = v->begin_ns - e->now_ns;
            stand->waits[n++] = v == e->waiting;
        }
    }
    struct full_pass *full = (struct full_pass *)(uintptr_t)p;
    if (p == NULL || !full->layers_repeat || !full->served || p->n_launches != n ||
        p->rows_todo > 0 || p->op % p->layer.n != 0) {
        return NULL;
    }
    /* A kernel that was suspended goes on once: no other layer has one begun. */
    for (uint32_t i = 0; i < MACHINE_MAX_DEVICES; i++) {
        if (full->begun[i].frac > 0.0) {
            return NULL;
        }
    }
    stand->n = n;
    stand->busy_devices = e->power.busy_devices;
    stand->last_op_devices = p->last_op_devices;
    memcpy(stand->watts, e->power.watts, sizeof stand->watts);
    memcpy(stand->phase, e->power.phase, sizeof stand->phase);
    return full;
}

static bool same_stand(const struct layers_stand *a, const struct layers_stand *b, uint32_t ids)
{
    if (a->n != b->n || a->last_op_devices != b->last_op_devices ||
        a->busy_devices != b->busy_devices || memcmp(a->watts, b->watts, sizeof a->watts) != 0 ||
        memcmp(a->phase, b->phase, sizeof a->phase) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < a->n; i++) {
        const struct launch *x = &a->launch[i];
        const struct launch *y = &b->launch[i];
        if (a->lead_ns[i] != b->lead_ns[i] || a->waits[i] != b->waits[i] || x->id + ids != y->id ||
            x->device != y->device || x->graph != y->graph || x->graph_block != y->graph_block ||
            x->yield != y->yield || x->rows != y->rows || x->chunk_rows != y->chunk_rows ||
            x->inflight != y->inflight || x->op_end - x->op_begin != y->op_end - y->op_begin) {
            return false;
        }
    }
    return true;
}

/* Of what was noted: launches of one layer and their ends, and nothing else was asked for or was
 * news. */
static bool only_a_layer(const struct engine *e, const struct full_pass *p,
                         const struct layers_stand *now)
{
    const struct layers *y = &e->layers;
    const struct core *c = &e->core;
    uint32_t launches = c->next_launch_id - y->before.next_launch_id;
    return y->pass == p && p->pub.op == y->op + p->pub.layer.n && launches > 0 &&
           c->asked - y->before.asked == launches && c->news - y->before.news == launches &&
           same_stand(&y->stand, now, launches);
}

/* Layers after the one that begins now. */
static uint32_t layers_left(const struct engine *e, const struct full_pass *p)
{
    return e->core.setup->llm->n_layers - 1 - p->pub.op / p->pub.layer.n;
}

/* Layers that end before anything else happens, the last one left to go the ordinary way. */
static uint32_t most_layers(const struct engine *e, const struct full_pass *p,
                            const struct layers_stand *now, int64_t layer_ns)
{
    uint32_t own[2] = {EVENTQ_NONE, EVENTQ_NONE};
    for (uint32_t i = 0; i < now->n; i++) {
        own[i] = now->exec[i]->job.event;
    }
    int64_t before_ns = eventq_time_but(&e->queue, own[0], own[1], TIME_LAST_NS);
    int64_t horizon_ns = e->core.setup->horizon_ns;
    before_ns = horizon_ns < before_ns ? horizon_ns + 1 : before_ns;
    before_ns = p->repeats_until_ns < before_ns ? p->repeats_until_ns : before_ns;
    uint32_t left = layers_left(e, p);
    SIM_ASSERT(layer_ns > 0);
    if (before_ns <= e->now_ns + layer_ns) {
        return 0;
    }
    int64_t n = (before_ns - 1 - e->now_ns) / layer_ns;
    return n < left ? (uint32_t)n : left;
}

/* Tells a note once more, one layer later than it was told last. */
static void tell(struct engine *e, struct layers_note *n, int64_t layer_ns, uint32_t launches)
{
    n->at_ns += layer_ns;
    SIM_ASSERT(n->what != LAYERS_DDR && n->at_ns >= e->now_ns);
    e->now_ns = n->at_ns;
    if (n->what == LAYERS_POWER) {
        power_set(e, n->domain, n->phase, n->watts);
        return;
    }
    struct pass *p = &e->layers.pass->pub;
    struct launch *l = &n->launch;
    l->id += launches;
    l->op_begin += p->layer.n;
    l->op_end += p->layer.n;
    l->submit_ns += layer_ns;
    l->start_ns += layer_ns;
    l->end_ns += layer_ns;
    n->pass.op += p->layer.n;
    *p = n->pass;
    if (n->what == LAYERS_SUBMITTED) {
        CORE_OBSERVE(&e->core, launch_submitted, e->now_ns, l);
    } else if (n->what == LAYERS_STARTED) {
        CORE_OBSERVE(&e->core, launch_started, e->now_ns, l, n->ns);
    } else {
        CORE_OBSERVE(&e->core, launch_ended, e->now_ns, l, n->ns, n->lost_ns);
    }
}

/* The layer that was noted goes by n times more. */
static void go_by(struct engine *e, const struct layers_stand *now, uint32_t n)
{
    struct layers *y = &e->layers;
    struct core *c = &e->core;
    struct pass *p = &y->pass->pub;
    int64_t layer_ns = e->now_ns - y->before.now_ns;
    uint32_t launches = c->next_launch_id - y->before.next_launch_id;
    uint32_t n_notes = y->n_notes;
    SIM_ASSERT(n > 0 && launches > 0 && !y->noting && e->n_jobs == 0 && !e->ddr_dirty);
    SIM_ASSERT(e->core.sched.now_ns == e->now_ns);
    /* While observers are told of a layer the pass stands where it stood then. */
    struct pass stands = *p;
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < n_notes; i++) {
            if (y->notes[i].what != LAYERS_DDR) {
                tell(e, &y->notes[i], layer_ns, launches);
            }
        }
    }
    *p = stands;
    p->op += n * p->layer.n;
    core_tally_again(c, &y->before, n);
    e->now_ns = c->sched.now_ns;
    e->ddr_since_ns = e->now_ns;
    SIM_ASSERT(p->op % p->layer.n == 0 && p->op < p->n_ops);
    /* Of all layers together: who asks for the time line makes layers go the ordinary way. */
    for (uint32_t i = 0; i < n_notes; i++) {
        const struct layers_note *d = &y->notes[i];
        if (d->what == LAYERS_DDR) {
            ddr_report(e, n * d->count, d->ns, d->demand, d->share);
        }
    }
    for (uint32_t i = 0; i < now->n; i++) {
        struct vexec *v = now->exec[i];
        struct launch *l = &v->l->pub;
        l->id += n * launches;
        l->submit_ns += n * layer_ns;
        l->start_ns += n * layer_ns;
        l->op_begin += n * p->layer.n;
        l->op_end += n * p->layer.n;
        SIM_ASSERT(v->k == 0 && v->phase == VEXEC_LEAD && l->op_end <= p->n_ops);
        v->op = l->op_begin;
        v->begin_ns += n * layer_ns;
        if (v->job.event != EVENTQ_NONE) {
            eventq_reschedule(&e->queue, v->job.event, v->begin_ns);
        }
    }
}

bool layers_run(struct engine *e)
{
    struct layers *y = &e->layers;
    struct layers_stand now;
    struct full_pass *p = at_layer(e, &now);
    if (p == NULL) {
        return false;
    }
    if (e->ddr_dirty) {
        ddr_settle(e); /* what ended at this instant */
    }
    bool again = only_a_layer(e, p, &now);
    uint32_t n = 0;
    if (again && y->noting) {
        corun_report(e);        /* all that belongs to it, */
        bool whole = y->noting; /* for which there may have been no room */
        listen(e, false);
        n = whole ? most_layers(e, p, &now, e->now_ns - y->before.now_ns) : 0;
        if (n > 0) {
            go_by(e, &now, n);
            (void)at_layer(e, &now); /* its launches have other numbers and instants now */
            SIM_ASSERT(y->pass == p &&
                       same_stand(&y->stand, &now, now.launch[0].id - y->stand.launch[0].id));
        }
    }
    /* To be noted, as others may follow it: the first one, and one after a layer and no more. */
    bool worth = (again || y->last != p) && layers_left(e, p) > 1;
    listen(e, false);
    if (worth) {
        corun_report(e);
        listen(e, true);
    }
    y->n_notes = 0;
    y->pass = p;
    y->last = p;
    y->op = p->pub.op;
    y->stand = now;
    y->before = core_tally(&e->core);
    return n > 0;
}
