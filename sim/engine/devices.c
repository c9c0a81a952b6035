/* Virtual devices: queue launches, run their kernels one after another (vexec.c), and stop them at
 * yield points. */
#include <errno.h>

#include "sim/engine/costs.h"
#include "sim/engine/ddr.h"
#include "sim/engine/devices.h"
#include "sim/engine/power.h"
#include "sim/engine/vexec.h"

/* ---- starting and ending ---- */

static void vdevice_shares(struct engine *e, struct vdevice *d)
{
    double share = 1.0;
    if (d->n_running > 1) {
        share = d->desc->shared_efficiency_frac / (double)d->n_running;
    }
    bool any = false; /* whether one of them uses the DDR; if none does, no DDR interval ends */
    for (uint32_t i = 0; i < d->n_running; i++) {
        SIM_ASSERT(share > 0.0 && share <= 1.0);
        d->launches[i]->job.share_frac = share;
        any = any || d->launches[i]->job.active;
    }
    if (any) {
        ddr_touch(e);
    }
}

static inline void run_begin(struct engine *e, struct vexec *v)
{
    SIM_ASSERT(v->phase == VEXEC_LEAD && e->now_ns >= v->job.end_ns);
    vexec_continue(v);
    /* A frame that was due before this kernel goes first. */
    if (frames_take(e, v->job.device)) {
        BECOMES(vexec, v->phase, VEXEC_PAUSED);
        return;
    }
    BECOMES(vexec, v->phase, VEXEC_RUNNING);
    ddr_join(e, &v->job);
    vexec_kernel_begin(e, v);
    power_device(e, v->job.device);
}

/* Starts a launch's lead now; its first kernel starts at begin_ns. */
static void device_begin(struct engine *e, struct vexec *v, int64_t begin_ns)
{
    v->job.end_ns = begin_ns;
    if (begin_ns <= e->now_ns) {
        run_begin(e, v);
    } else {
        job_wait(e, &v->job, begin_ns);
    }
}

void device_restart(struct engine *e, struct vexec *v, int64_t lead_ns)
{
    SIM_ASSERT(lead_ns >= 0 && !v->job.waits && !v->job.active);
    v->isolated_ns = 0;
    BECOMES(vexec, v->phase, VEXEC_LEAD);
    core_launch_started(&e->core, v->l, lead_ns);
    device_begin(e, v, e->now_ns + lead_ns);
}

/* Starts a queued launch with its lead, of which a part may have overlapped with the previous
 * launch. */
static void vexec_start(struct engine *e, struct vdevice *d, uint32_t i)
{
    struct vexec *v = d->launches[i];
    SIM_ASSERT(d->n_running < (d->desc->sharing == DEVICE_SERIAL ? 1 : d->desc->max_shared));
    for (; i > d->n_running; i--) { /* in front of launches that are being withdrawn */
        d->launches[i] = d->launches[i - 1];
    }
    d->launches[d->n_running++] = v;
    int64_t lead = core_launch_lead_ns(&e->core, v->l->pub) + v->buffers_ns;
    /* The lead begins at the submission, even if the device is busy then. */
    int64_t ready = v->l->pub->submit_ns + lead;
    int64_t begin = ready > e->now_ns ? ready : e->now_ns;
    /* Counted, not prevented, so that the audit detects it. */
    if (d->desc->sharing == DEVICE_SERIAL && d->n_running > 1) {
        e->core.result->audit.double_bookings++;
    }
    core_launch_started(&e->core, v->l, begin - e->now_ns);
    if (d->n_running > 1) {
        vdevice_shares(e, d);
    }
    BECOMES(vexec, v->phase, VEXEC_LEAD);
    costs_fill(e, v);
    device_begin(e, v, begin);
}

static inline struct vexec *vexec_new(struct engine *e, struct full_launch *l)
{
    struct vexec *v;
    FREE_TAKE(e->free_execs, &e->core.arena, v);
    v->l = l;
    v->phase = VEXEC_QUEUED;
    v->outcome = LAUNCH_OUTCOME_DONE;
    v->breaks_off = false;
    vexec_place(v);
    v->in_flight_left = 0;
    v->isolated_ns = 0;
    v->slowed_ns = 0.0;
    v->lost_ns = 0;
    v->job = job_of(EVENT_KERNEL, l->pub->device, v);
    l->exec = v;
    return v;
}

void device_launch(void *exec, struct full_launch *l)
{
    struct engine *e = exec;
    struct vdevice *d = &e->devices[l->pub->device];
    SIM_ASSERT(e->now_ns >= d->occupied.end_ns && d->n_launches < d->most);
    struct vexec *v = vexec_new(e, l);
    v->buffers_ns = e->has_buffers ? buffers_take(e, v) : 0;
    d->launches[d->n_launches++] = v;
    if (d->desc->sharing == DEVICE_TIME_SHARED || d->n_running == 0) {
        e->fresh = core_pass(l->pub->pass)->steady ? v : NULL;
        vexec_start(e, d, d->n_launches - 1);
    }
}

void device_leave(struct engine *e, struct vexec *v)
{
    struct vdevice *d = &e->devices[v->job.device];
    uint32_t i = 0;
    while (i < d->n_launches && d->launches[i] != v) {
        i++;
    }
    SIM_REQUIRE(i < d->n_launches, "launch %u is not where it should be", v->l->pub->id);
    SIM_ASSERT(!v->job.active && !v->job.waits);
    d->n_running -= i < d->n_running;
    d->n_launches--;
    for (; i < d->n_launches; i++) { /* keep the order */
        d->launches[i] = d->launches[i + 1];
    }
    costs_leave(e, v);
    FREE_PUT(e->free_execs, v);
    if (e->has_buffers) {
        buffers_release(e, v);
    }
}

/* Ends a launch at its present position and notifies the core. Then the next queued launch starts
 * at once. */
static void device_end(struct engine *e, struct vexec *v)
{
    struct vdevice *d = &e->devices[v->job.device];
    bool was_queued = v->outcome == LAUNCH_OUTCOME_WITHDRAWN;
    ddr_leave(e, &v->job);
    device_leave(e, v);
    if (!was_queued && d->n_running > 0) {
        vdevice_shares(e, d);
    }
    const struct launch *l = v->l->pub;
    uint32_t ops_done = v->op - l->op_begin;
    uint32_t rows_done = v->k * l->chunk_rows;
    struct full_launch *fl = v->l;
    SIM_ASSERT(v->outcome != LAUNCH_OUTCOME_DONE || v->op == l->op_end);
    SIM_ASSERT(v->k == 0 || l->chunk_rows > 0); /* a dynamic kernel is the whole op */
    power_device(e, v->job.device);
    /* A waiting frame goes before queued launches. */
    if (d->n_running == 0) {
        (void)frames_take(e, v->job.device);
    }
    core_launch_ended(&e->core, fl, v->outcome, ops_done, rows_done,
                      v->isolated_ns + units_round(v->slowed_ns), v->lost_ns);
    /* Last, because the core must report this end before the start of the next launch. */
    for (uint32_t i = 0; d->n_running == 0 && i < d->n_launches; i++) {
        if (d->launches[i]->phase == VEXEC_QUEUED) { /* not one that is being withdrawn */
            vexec_start(e, d, i);
        }
    }
}

/* ---- events and stops ---- */

static bool at_yield_point(const struct vexec *v)
{
    const struct launch *l = v->l->pub;
    bool op_begins = v->k == 0;
    bool layer_begins = op_begins && v->op % l->pass->layer.n == 0;
    return l->yield == YIELD_KERNEL || (l->yield == YIELD_OP && op_begins) ||
           (l->yield == YIELD_LAYER && layer_begins);
}

void device_event(struct engine *e, struct vexec *v)
{
    SIM_ASSERT(v->phase == VEXEC_ENDING || v->phase == VEXEC_LEAD);
    if (v->phase == VEXEC_ENDING) {
        device_end(e, v);
    } else {
        run_begin(e, v);
    }
}

void device_kernel_ended(struct engine *e, struct vexec *v)
{
    SIM_ASSERT(v->phase == VEXEC_RUNNING);
    if (!vexec_kernel_ends(e, v)) {
        return;
    }
    bool done = v->op == v->l->pub->op_end;
    bool yields = v->l->pub->stop_requested && v->in_flight_left == 0 && at_yield_point(v);
    if (done || yields) {
        v->outcome = done ? LAUNCH_OUTCOME_DONE : LAUNCH_OUTCOME_YIELDED;
        device_end(e, v);
        return;
    }
    v->in_flight_left -= v->in_flight_left > 0; /* none without a stop */
    if (!frames_pause(e, v)) {
        vexec_kernel_begin(e, v);
    }
}

/* Schedules the end of a launch, so that launch_done never comes from inside an action. */
static void end_at(struct engine *e, struct vexec *v, enum launch_outcome outcome, int64_t at_ns)
{
    job_wait_over(e, &v->job); /* cancel the end of its lead */
    if (v->job.active) {       /* no DDR traffic during a reset */
        ddr_leave(e, &v->job);
    }
    SIM_ASSERT(at_ns >= e->now_ns && outcome != LAUNCH_OUTCOME_DONE);
    SIM_ASSERT((outcome == LAUNCH_OUTCOME_WITHDRAWN) == (v->phase == VEXEC_QUEUED));
    v->breaks_off = v->phase == VEXEC_RUNNING;
    BECOMES(vexec, v->phase, VEXEC_ENDING);
    v->outcome = outcome;
    job_wait(e, &v->job, at_ns);
}

int device_stop(void *exec, struct full_launch *l, struct preempt_spec how)
{
    struct engine *e = exec;
    struct vexec *v = l->exec;
    SIM_ASSERT(v->l == l && l->pub->stop_requested);
    if (v->phase == VEXEC_ENDING) {
        return 0; /* it is ending already */
    }
    if (v->phase == VEXEC_QUEUED || v->phase == VEXEC_LEAD) {
        bool queued = v->phase == VEXEC_QUEUED;
        end_at(e, v, queued ? LAUNCH_OUTCOME_WITHDRAWN : LAUNCH_OUTCOME_YIELDED, e->now_ns);
        return 0;
    }
    if (l->pub->yield == YIELD_PASS && !how.now) {
        return 0; /* its only yield point is its end */
    }
    ddr_touch(e); /* a stop starts a new interval, for which bytes are rounded */
    bool paused = v->phase == VEXEC_PAUSED;
    bool untouched = paused || v->kernel_begin_ns == e->now_ns;
    const struct device *desc = e->devices[v->job.device].desc;
    if (how.now && how.discard) {
        v->lost_ns = paused ? 0 : e->now_ns - v->kernel_begin_ns;
        v->isolated_ns +=
            vexec_skip_ns(v); /* work of an earlier launch on this kernel is lost, too */
        end_at(e, v, LAUNCH_OUTCOME_RESET, e->now_ns + desc->reset_ns);
    } else if (how.now) {
        vexec_suspend(e, v);
        end_at(e, v, LAUNCH_OUTCOME_YIELDED, e->now_ns + (untouched ? 0 : desc->reset_ns));
    } else if ((how.drain || !desc->can_withdraw) && l->pub->inflight > 1) {
        v->in_flight_left = l->pub->inflight - 1;
    } else if (untouched && at_yield_point(v)) {
        vexec_suspend(e, v); /* with the work of earlier launches on this kernel */
        end_at(e, v, LAUNCH_OUTCOME_YIELDED, e->now_ns);
    }
    return 0;
}
