/* DDR as a fluid resource: jobs, their shares, their completion events.
 *
 * Kernel progress = compute share * min(1, bandwidth share / demand). Capacity
 * of several jobs is kappa * peak, but never below what one of them takes alone: kappa is the
 * efficiency of several masters together, so a single one is not slowed by it. What a kernel takes
 * alone is at most the peak (audited when a launch starts: vexec.c). */
#include "sim/engine/engine.h"

/* A collapsed launch is only allowed while it is the only job. */
static void expand_lone(struct engine *e)
{
    if (e->n_jobs == 1 && e->jobs[0]->exec != NULL && e->jobs[0]->exec->collapsed) {
        device_expand(e, e->jobs[0]->exec);
    }
}

void ddr_join(struct engine *e, struct job *j)
{
    SIM_REQUIRE(e->n_jobs < ENGINE_MAX_JOBS, "too many concurrent jobs");
    SIM_REQUIRE(!j->active, "a job joins twice");
    SIM_ASSERT(j->event == EVENTQ_NONE);
    expand_lone(e); /* while it is still alone: its kernels are booked as undisturbed */
    ddr_touch(e);
    j->active = true;
    e->jobs[e->n_jobs++] = j;
}

void ddr_leave(struct engine *e, struct job *j)
{
    if (!j->active) {
        return; /* a launch that was stopped in its lead, or while a frame had the device */
    }
    ddr_touch(e);
    uint32_t i = 0;
    while (i < e->n_jobs && e->jobs[i] != j) {
        i++;
    }
    SIM_REQUIRE(i < e->n_jobs, "a job leaves that never joined");
    /* Others keep their order: sums of their shares are added in it. */
    for (; i + 1 < e->n_jobs; i++) {
        e->jobs[i] = e->jobs[i + 1];
    }
    e->n_jobs--;
    j->active = false;
    if (j->event != EVENTQ_NONE) {
        eventq_cancel(&e->queue, j->event);
        j->event = EVENTQ_NONE;
    }
}

void job_start(struct engine *e, struct job *j, double solo_ns, double bytes)
{
    job_start_at(e, j, solo_ns, solo_ns > 0.0 ? bytes / (solo_ns / 1e9) : 0.0);
}

void job_start_at(struct engine *e, struct job *j, double solo_ns, double demand_bytes_per_s)
{
    j->left_ns = solo_ns;
    j->slowed_ns = 0.0;
    j->updated_ns = e->now_ns;
    j->demand_bytes_per_s = demand_bytes_per_s;
    if (j->event != EVENTQ_NONE) {
        eventq_cancel(&e->queue, j->event);
        j->event = EVENTQ_NONE;
    }
    ddr_touch(e);
}

/* Brings a job to its new rate. An unchanged rate keeps its event, so nothing is rounded twice. */
static inline void job_set_rate(struct engine *e, struct job *j, double rate, double speed)
{
    if (j->event != EVENTQ_NONE && j->rate == rate && j->speed == speed) {
        return;
    }
    job_advance(e, j);
    SIM_REQUIRE(rate > 0.0 && j->left_ns >= 0.0, "a job at rate %g, %g ns left", rate, j->left_ns);
    j->rate = rate;
    j->speed = speed;
    SIM_ASSERT(speed > 0.0 && speed <= 1.0 && rate <= 1.0 && j->active);
    int64_t at = engine_after(e, j->left_ns / rate);
    SIM_ASSERT(at >= e->now_ns);
    if (j->event != EVENTQ_NONE) {
        eventq_reschedule(&e->queue, j->event, at);
        return;
    }
    uint64_t payload = (uint64_t)(uintptr_t)j->exec;
    j->event =
        eventq_push(&e->queue, at, engine_order(e, (enum event_kind)j->kind, j->device), payload);
}

/* Power limits slow what runs on devices, not the loader; frames come first. */
static double job_speed(const struct engine *e, const struct job *j)
{
    return j->exec != NULL ? e->throttle.speed : 1.0;
}

double ddr_share_out(struct engine *e, struct flow *flows)
{
    const struct machine *m = e->core.setup->machine;
    double capacity = m->ddr_peak_bytes_per_s * m->ddr_cap_frac;
    e->ddr_demand = 0.0;
    for (uint32_t i = 0; i < e->n_jobs; i++) {
        const struct job *j = e->jobs[i];
        double demand = j->demand_bytes_per_s * j->share_frac * job_speed(e, j);
        SIM_ASSERT(demand >= 0.0 && isfinite(demand));
        double weight = j->device < m->n_devices ? m->devices[j->device].ddr_weight : 1.0;
        flows[i] = (struct flow){demand, weight, j->device, demand};
        capacity = demand > capacity ? demand : capacity;
        e->ddr_demand += demand;
    }
    if (e->n_jobs > 1) {
        e->core.setup->contention->share(flows, e->n_jobs, capacity,
                                         e->core.setup->contention_params);
    }
    e->ddr_share = 0.0;
    for (uint32_t i = 0; i < e->n_jobs; i++) {
        SIM_ASSERT(flows[i].share_bytes_per_s >= 0.0);
        SIM_ASSERT(flows[i].share_bytes_per_s <= flows[i].demand_bytes_per_s * (1.0 + 1e-12));
        e->ddr_share += flows[i].share_bytes_per_s;
    }
    if (e->ddr_unlimited || (e->n_jobs == 1 && e->jobs[0]->exec != NULL)) {
        return 0.0; /* `none` shares nothing: there is no capacity to exceed */
    }
    return e->ddr_share / (e->n_jobs > 1 ? capacity : m->ddr_peak_bytes_per_s);
}

/* Will the launch have company before its kernel ends? Then it is left as it is. */
static bool soon_disturbed(const struct engine *e, const struct job *j)
{
    int64_t end_ns = engine_after(e, j->left_ns);
    for (uint32_t i = 0; i < e->core.setup->machine->n_devices; i++) {
        const struct vdevice *d = &e->devices[i];
        if (d->n_running > 0 && d->running[0]->phase == VEXEC_LEAD && d->running[0] != e->waiting &&
            d->running[0]->begin_ns < end_ns) {
            return true;
        }
    }
    return false;
}

void ddr_settle(struct engine *e)
{
    e->ddr_dirty = false;
    if (e->n_jobs == 1 && e->may_collapse && e->jobs[0]->exec != NULL &&
        e->devices[e->jobs[0]->device].n_running == 1 && e->frames.phase != FRAMES_WAITING &&
        !soon_disturbed(e, e->jobs[0])) {
        device_collapse(e, e->jobs[0]->exec);
        return;
    }
    /* By the pairs that corun remembers: else a rate of the two ways could differ in its last bit.
     */
    if (e->n_jobs == 2 && e->may_corun) {
        SIM_ASSERT(e->throttle.speed == 1.0); /* with power limits nothing is remembered */
        const struct corun_pair *p = corun_pair(e);
        e->ddr_demand = p->demand;
        e->ddr_share = p->share;
        job_set_rate(e, e->jobs[0], p->rate[0], 1.0);
        job_set_rate(e, e->jobs[1], p->rate[1], 1.0);
        return;
    }
    if (e->n_jobs == 0) {
        e->ddr_demand = 0.0;
        e->ddr_share = 0.0;
        return;
    }
    struct flow flows[ENGINE_MAX_JOBS];
    ddr_audit(e, ddr_share_out(e, flows));
    for (uint32_t i = 0; i < e->n_jobs; i++) {
        struct job *j = e->jobs[i];
        double speed = job_speed(e, j);
        job_set_rate(e, j, j->share_frac * speed * ddr_rate(&flows[i]), speed);
    }
}
