/* Power domains (power.c), the limits of their power, and the battery that feeds them. */
#pragma once

#include "sim/engine/engine.h"

void power_init(struct engine *e);
void power_device(struct engine *e, uint8_t device);
void power_tail(struct engine *e, int delta);
void power_channels(struct engine *e); /* the item in progress has changed */
void power_finish(struct engine *e);
/* Energy of the run until now. */
static inline double power_joules(const struct engine *e)
{
    const struct power *p = &e->power;
    return p->total_joules + p->total_watts * units_s_from_ns(e->now_ns - p->total_since_ns);
}
/* Adds the energy of the iterations of r (repeat.c), and fills the watts of r. Reports the changes
 * of the first iteration to observers. Time moves to the end of the last one. */
void power_repeat(struct engine *e, struct repeat_record *r);
/* The phase of a device, from the launches that run on it. */
static inline enum power_phase power_phase_of(const struct engine *e, uint8_t device)
{
    const struct vdevice *d = &e->devices[device];
    enum power_phase phase = POWER_PHASE_IDLE;
    for (uint32_t i = 0; i < d->n_running; i++) {
        const struct vexec *v = d->launches[i];
        if (v->phase != VEXEC_RUNNING && !v->breaks_off) {
            continue;
        }
        if (v->l->pub->pass->shape.prefill_rows > 0) {
            phase = POWER_PHASE_PREFILL;
        } else if (phase == POWER_PHASE_IDLE) {
            phase = POWER_PHASE_DECODE;
        }
    }
    if (phase == POWER_PHASE_IDLE && e->now_ns < d->occupied.end_ns) {
        phase = POWER_PHASE_DECODE;
    }
    return phase;
}

/* Call this after every change of power. */
void power_changed_limited(struct engine *e);
static inline void power_changed(struct engine *e)
{
    if (e->throttle.on || e->battery.feeds) {
        power_changed_limited(e);
    }
}

/* Limits the package's power at any instant from now on; 0: no limit. */
void power_cap(struct engine *e, double watts);

/* ---- limits (throttle.c) ---- */

void throttle_init(struct engine *e);
/* The share of its power above idle that a device draws at the present speed. */
double throttle_share(const struct engine *e);
/* Sets the speed, given the watts above idle that devices would draw at full speed. */
void throttle_decide(struct engine *e, double above);
/* Schedules the instant at which the average reaches its limit at the present power. */
void throttle_watch(struct engine *e);

/* ---- the battery (battery.c) ---- */

/* State of charge (executor_ops). */
double battery_frac(const void *exec);
/* Accounts for the energy drawn so far, and applies the event. */
void battery_set(struct engine *e, const struct machine_event *event);
/* Schedules the instant at which the battery is empty at the present power. */
void battery_follow(struct engine *e);
/* A safe lower bound, at most before_ns, of the instant at which it is empty, while only that
 * device decodes and the host works for it. */
int64_t battery_lasts_until_ns(const struct engine *e, uint8_t device, int64_t before_ns);
void battery_finish(struct engine *e);
