/* Frequency steps of a device, and the rule that chooses among them (DVFS).
 *
 * At a step of speed s, work on the device takes 1 / s as long, and the device draws the step's
 * share of its watts above idle. Power limits come on top (throttle.c).
 *
 * The rule `utilisation` is that of Linux's schedutil. After every period it measures the share u
 * of the period in which the device was busy, and takes the lowest step of speed >= headroom x u x
 * s. An idle device at its lowest step has no periods.
 *
 * The rule `energy` takes the step at which work costs least energy, for each phase. The cost
 * includes the idle power of platform and device for the duration. */
#include "sim/engine/ddr.h"

#define LEAST_WORK_FRAC 1e-9 /* tolerance of the utilisation's rounding, relative */

static const struct sim_dvfs *dvfs_of(const struct engine *e, uint8_t device)
{
    return &e->core.setup->dvfs[device];
}

/* Work of 1 s at full speed costs (platform + idle + above x power) / speed joules. */
static uint32_t cheapest(const struct engine *e, uint8_t device, bool prefill)
{
    const struct sim_dvfs *d = dvfs_of(e, device);
    const struct machine *m = e->core.setup->machine;
    const struct device *on = &m->devices[device];
    double idle = on->idle_watts, full = prefill ? on->prefill_watts : on->decode_watts;
    uint32_t best = d->n - 1;
    double least = HUGE_VAL;
    for (uint32_t i = d->n; i-- > 0;) {
        double above = (full - idle) * d->steps[i].power;
        double joules = (m->idle_watts + idle + above) / d->steps[i].speed;
        best = joules < least ? i : best;
        least = joules < least ? joules : least;
    }
    return best;
}

void governor_init(struct engine *e)
{
    const struct machine *m = e->core.setup->machine;
    for (uint8_t i = 0; i < MACHINE_MAX_DEVICES; i++) {
        struct governor *g = &e->governors[i];
        *g = (struct governor){
            .speed = 1.0, .power = 1.0, .period = job_of(EVENT_GOVERNOR, i, NULL)};
        if (i < m->n_devices && dvfs_of(e, i)->n > 0) {
            e->governed = true;
            g->speed = dvfs_of(e, i)->steps[0].speed;
            g->power = dvfs_of(e, i)->steps[0].power;
            CORE_OBSERVE(&e->core, step, e->now_ns, i, g->speed);
        }
    }
    e->core.result->dvfs.known = e->governed;
}

static bool is_busy(const struct engine *e, uint8_t device)
{
    return e->power.phase[device] != POWER_PHASE_IDLE;
}

/* Adds the busy time since the last call. */
static void account(struct engine *e, uint8_t device)
{
    struct governor *g = &e->governors[device];
    int64_t ns = is_busy(e, device) ? e->now_ns - g->busy_since_ns : 0;
    SIM_ASSERT(ns >= 0);
    g->busy_ns += ns;
    g->busy_since_ns = e->now_ns;
    e->core.result->dvfs.busy_ns += ns;
    e->core.result->dvfs.speed_ns += (double)ns * g->speed;
}

/* Sets the step. Returns whether it changed. */
static bool take_step(struct engine *e, uint8_t device, uint32_t step)
{
    struct governor *g = &e->governors[device];
    if (step == g->step) {
        return false;
    }
    account(e, device);
    ddr_touch(e);
    g->step = step;
    g->speed = dvfs_of(e, device)->steps[step].speed;
    g->power = dvfs_of(e, device)->steps[step].power;
    job_occupies(e, device);
    e->core.result->dvfs.changes++;
    CORE_OBSERVE(&e->core, step, e->now_ns, device, g->speed);
    return true;
}

static void begin_period(struct engine *e, uint8_t device)
{
    struct governor *g = &e->governors[device];
    g->busy_ns = 0;
    job_wait(e, &g->period, e->now_ns + dvfs_of(e, device)->period_ns);
}

void governor_phase(struct engine *e, uint8_t device, enum power_phase phase)
{
    struct governor *g = &e->governors[device];
    const struct sim_dvfs *d = dvfs_of(e, device);
    if (d->n == 0) {
        return;
    }
    account(e, device); /* power.c sets the phase after this call */
    bool busy = phase != POWER_PHASE_IDLE;
    if (d->rule == SIM_DVFS_ENERGY && busy) {
        (void)take_step(e, device, cheapest(e, device, phase == POWER_PHASE_PREFILL));
    } else if (d->rule == SIM_DVFS_UTILISATION && busy && !g->period.waits) {
        begin_period(e, device);
    }
}

bool governor_event(struct engine *e, uint8_t device)
{
    struct governor *g = &e->governors[device];
    const struct sim_dvfs *d = dvfs_of(e, device);
    account(e, device);
    double used = (double)g->busy_ns / (double)d->period_ns;
    double wanted = d->headroom * used * g->speed * (1.0 - LEAST_WORK_FRAC);
    uint32_t step = 0;
    while (step + 1 < d->n && d->steps[step].speed < wanted) {
        step++;
    }
    if (is_busy(e, device) || step > 0) {
        begin_period(e, device);
    }
    return take_step(e, device, step);
}

void governor_finish(struct engine *e)
{
    for (uint8_t i = 0; i < e->core.setup->machine->n_devices; i++) {
        if (dvfs_of(e, i)->n > 0) {
            account(e, i);
        }
    }
}
