#include "sim/core/memory.h"
#include "sim/engine/engine.h"
#include "sim/engine/power.h"
#include "sim/engine/vexec.h"

/* ---- the queue ---- */

static void check_queue(const struct engine *e)
{
    const struct eventq *q = &e->queue;
    uint64_t of[EVENT_KINDS] = {0};
    SIM_ASSERT(eventq_consistent(q));
    for (uint32_t i = 0; i < q->n; i++) {
        SIM_ASSERT(q->heap[i].time_ns >= e->now_ns && q->heap[i].order >> 60 < EVENT_KINDS);
        of[q->heap[i].order >> 60]++;
    }
    SIM_ASSERT(of[EVENT_ARRIVAL] + of[EVENT_TURN] == e->arrivals_pending);
    SIM_ASSERT(of[EVENT_ARRIVAL] <= 1); /* only the trace's next one */
    SIM_ASSERT(of[EVENT_PASS_TAIL] == e->power.tails);
}

/* ---- jobs and the DDR ---- */

static bool among_jobs(const struct engine *e, const struct job *j)
{
    uint32_t n = 0;
    uint32_t waits = 0;
    for (uint32_t i = 0; i < e->n_timed; i++) {
        n += i < e->n_jobs && e->jobs[i] == j;
        waits += i >= e->n_jobs && e->jobs[i] == j;
    }
    SIM_ASSERT(n == j->active && waits == j->waits && n + waits <= 1);
    return n == 1;
}

static void check_jobs(const struct engine *e)
{
    SIM_ASSERT(e->n_jobs <= ENGINE_MAX_JOBS && e->n_jobs <= e->n_timed);
    SIM_ASSERT(e->ddr_since_ns <= e->now_ns);
    for (uint32_t i = 0; i < e->n_jobs; i++) {
        const struct job *j = e->jobs[i];
        SIM_ASSERT(among_jobs(e, j));
        SIM_ASSERT(j->end_ns >= e->now_ns);
        SIM_ASSERT(j->updated_ns <= e->now_ns);
        SIM_ASSERT(j->left_ns >= 0.0 && j->demand_bytes_per_s >= 0.0);
        SIM_ASSERT(j->rate > 0.0 && j->rate <= 1.0);
        SIM_ASSERT(j->speed > 0.0 && j->speed <= 1.0);
        SIM_ASSERT(j->share_frac > 0.0 && j->share_frac <= 1.0);
    }
    for (uint32_t i = e->n_jobs; i < e->n_timed; i++) {
        SIM_ASSERT(!among_jobs(e, e->jobs[i]) && e->jobs[i]->end_ns >= e->now_ns);
    }
}

/* No job gets more than its demand, and together they get at most the capacity. */
static void check_ddr(const struct engine *e)
{
    const struct machine *m = e->core.setup->machine;
    double most = m->ddr_peak_bytes_per_s;
    double share = 0.0;
    for (uint32_t i = 0; i < e->n_jobs; i++) {
        const struct job *j = e->jobs[i];
        double demand = j->demand_bytes_per_s * j->share_frac * j->speed;
        double has = j->demand_bytes_per_s * j->rate;
        SIM_ASSERT(has <= demand * (1.0 + 1e-9));
        most = demand > most ? demand : most;
        share += has;
    }
    SIM_ASSERT(e->core.setup->contention->unlimited || share <= most * (1.0 + 1e-9));
}

/* ---- devices and launches ---- */

static void check_launch(const struct engine *e, const struct vexec *v, uint32_t device)
{
    const struct launch *l = v->l->pub;
    const struct pass *p = l->pass;
    SIM_ASSERT(core_launch_of(l)->exec == v && v->job.exec == v);
    SIM_ASSERT(l->device == device && v->job.device == device);
    SIM_ASSERT(l->op_begin < l->op_end && l->op_end <= p->n_ops);
    SIM_ASSERT(l->op_begin == p->op && l->rows <= p->rows_active);
    SIM_ASSERT(p->state == PASS_STATE_RUNNING && p->n_launches > 0);
    SIM_ASSERT(l->submit_ns <= e->now_ns);
    SIM_ASSERT(v->op >= l->op_begin && v->op < l->op_end);
    SIM_ASSERT(v->l->pin == NULL || (v->l->pin->state == RESIDENT_READY && v->l->pin->pins > 0));
    SIM_ASSERT(v->job.active == (v->phase == VEXEC_RUNNING) && v->compute_ns >= 0);
    SIM_ASSERT(among_jobs(e, &v->job) == v->job.active);
    SIM_ASSERT(v->job.waits == (v->phase == VEXEC_LEAD || v->phase == VEXEC_ENDING));
    SIM_ASSERT(!v->job.waits || v->job.end_ns >= e->now_ns);
    SIM_ASSERT(v->phase == VEXEC_QUEUED || v->k < v->kernels->n);
    if (v->phase == VEXEC_RUNNING) {
        SIM_ASSERT(v->kernel_begin_ns <= e->now_ns);
        SIM_ASSERT(l->start_ns >= l->submit_ns && l->start_ns <= e->now_ns);
    }
}

static void check_device(const struct engine *e, uint32_t device)
{
    const struct vdevice *d = &e->devices[device];
    bool serial = d->desc->sharing == DEVICE_SERIAL;
    SIM_ASSERT(d->n_running <= (serial ? 1 : d->n_launches) && d->n_launches <= d->most);
    bool occupied = e->now_ns < d->occupied.end_ns;
    SIM_ASSERT(!occupied || d->n_launches == 0);
    SIM_ASSERT(occupied == d->occupied.waits);
    for (uint32_t i = 0; i < d->n_launches; i++) {
        const struct vexec *v = d->launches[i];
        bool runs = i < d->n_running;
        check_launch(e, v, device);
        SIM_ASSERT(v->l->pub->state == (runs ? LAUNCH_STATE_RUNNING : LAUNCH_STATE_QUEUED));
        SIM_ASSERT(runs != (v->phase == VEXEC_QUEUED || v->outcome == LAUNCH_OUTCOME_WITHDRAWN));
        SIM_ASSERT(d->n_running != 1 || !runs || v->job.share_frac == 1.0);
        SIM_ASSERT(d->n_running > 0 || v->phase == VEXEC_ENDING); /* else a launch would start */
    }
}

/* A pass counts the launches and rows that are on devices. */
static void check_shares(const struct engine *e, const struct pass *p)
{
    uint32_t n = 0;
    uint64_t rows = 0;
    uint32_t columns = 0;
    for (uint32_t i = 0; i < e->core.setup->machine->n_devices; i++) {
        const struct vdevice *d = &e->devices[i];
        for (uint32_t k = 0; k < d->n_launches; k++) {
            const struct vexec *v = d->launches[k];
            if (v->l->pub->pass == p) {
                n++;
                rows += columns > 0 ? 0 : v->l->pub->rows; /* columns share rows */
                columns += v->l->pub->columns;
            }
        }
    }
    SIM_ASSERT(n == p->n_launches && rows == p->rows_active);
    SIM_ASSERT(columns == core_pass(p)->columns_active);
}

/* A resident's pins are the launches that use it. */
static void check_pins(const struct engine *e)
{
    uint32_t at = 0;
    for (const struct resident *r; (r = resident_next(&e->core, &at)) != NULL;) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < e->core.setup->machine->n_devices; i++) {
            const struct vdevice *d = &e->devices[i];
            for (uint32_t k = 0; k < d->n_launches; k++) {
                n += d->launches[k]->l->pin == r;
            }
        }
        SIM_ASSERT(n == r->pins);
    }
}

/* ---- the rest of the machine ---- */

static void check_channels(const struct engine *e)
{
    const struct channel *const channels[] = {&e->loader, &e->compiler};
    for (int i = 0; i < 2; i++) {
        const struct ranked *last = NULL;
        for (const struct ranked *x = channels[i]->items.first; x != NULL; last = x, x = x->after) {
            const struct channel_item *it = (const struct channel_item *)x;
            SIM_ASSERT(x->before == last);
            SIM_ASSERT(it->isolated_ns >= 0.0 && it->bytes >= 0.0);
            SIM_ASSERT(it->resident == NULL || it->resident->state == RESIDENT_PENDING);
            SIM_ASSERT(it->request == NULL || it->request->kv_moving);
        }
        SIM_ASSERT(channels[i]->items.last == last);
    }
    SIM_ASSERT(among_jobs(e, &e->loader.job) == (e->loader.items.first != NULL));
    SIM_ASSERT(e->compiler.job.waits == (e->compiler.items.first != NULL));
    SIM_ASSERT((e->power.phase[OBSERVER_DOMAIN_COMPILER] == POWER_PHASE_COMPILE) ==
               (e->compiler.items.first != NULL));
}

static void check_frames(const struct engine *e)
{
    const struct frames *f = &e->frames;
    SIM_ASSERT(among_jobs(e, &f->job) == (f->phase == FRAMES_RUNNING));
    SIM_ASSERT(f->phase == FRAMES_IDLE || f->due_ns <= e->now_ns);
    if (f->phase == FRAMES_RUNNING) { /* the frame has the device */
        const struct vdevice *d = &e->devices[f->job.device];
        SIM_ASSERT(d->n_running == 0 || !d->launches[0]->job.active);
    }
}

static void check_power(const struct engine *e)
{
    const struct power *p = &e->power;
    const struct machine *m = e->core.setup->machine;
    double watts = m->idle_watts;
    double joules = m->idle_watts * units_s_from_ns(e->now_ns);
    for (uint32_t i = 0; i < OBSERVER_DOMAINS; i++) {
        SIM_ASSERT(p->watts[i] >= 0.0 && p->joules[i] >= 0.0);
        SIM_ASSERT(p->since_ns[i] <= e->now_ns);
        watts += p->watts[i];
        joules += p->joules[i] + p->watts[i] * units_s_from_ns(e->now_ns - p->since_ns[i]);
    }
    double total =
        p->total_joules + p->total_watts * units_s_from_ns(e->now_ns - p->total_since_ns);
    SIM_ASSERT(p->total_since_ns <= e->now_ns);
    SIM_ASSERT(fabs(p->total_watts - watts) <= 1e-9 * watts);
    SIM_ASSERT(fabs(total - joules) <= 1e-9 * (1.0 + joules));
    SIM_ASSERT(e->throttle.speed > 0.0 && e->throttle.speed <= 1.0);
}

bool engine_consistent(const struct engine *e)
{
    const struct machine *m = e->core.setup->machine;
    SIM_ASSERT(e->now_ns == e->core.sched->now_ns);
    SIM_ASSERT(!e->ddr_dirty);
    check_queue(e);
    check_jobs(e);
    for (uint8_t i = 0; i < m->n_devices; i++) {
        check_device(e, i);
        SIM_ASSERT(e->power.phase[i] == power_phase_of(e, i));
    }
    for (const struct full_request *r = e->core.live_head; r != NULL; r = r->next_live) {
        const struct full_pass *p = core_pass(r->pub->pass);
        for (; p != NULL && p->segments[0].request == r->pub; p = p->after) {
            check_shares(e, p->pub);
        }
    }
    check_pins(e);
    check_channels(e);
    check_frames(e);
    check_power(e);
    check_ddr(e);
    return buffers_consistent(e);
}
