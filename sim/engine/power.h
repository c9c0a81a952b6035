/* Power domains (power.c), the limits of their power, and the battery that feeds them. */
#pragma once

#include "sim/engine/engine.h"

void power_init(struct engine *e);
void power_device(struct engine *e, uint8_t device);
void power_tail(struct engine *e, int delta);
void power_channels(struct engine *e); /* another item is in progress, or none */
void power_finish(struct engine *e);
/* The energy of the run until now. */
static inline double power_joules(const struct engine *e)
{
    const struct power *p = &e->power;
    return p->total_joules + p->total_watts * units_s_from_ns(e->now_ns - p->total_since_ns);
}
/* Adds the energy of the iterations of r (repeat.c), and fills the watts of r. Observers see every
 * change of the first iteration. Time moves to the end of the last one. */
void power_repeat(struct engine *e, struct repeat_record *r);
/* The phase of a device by what runs on it. */
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

/* To be called after every change of power. */
void power_changed_limited(struct engine *e);
static inline void power_changed(struct engine *e)
{
    if (e->throttle.on || e->battery.feeds) {
        power_changed_limited(e);
    }
}

/* A limit of the package's watts at any instant, from now on; 0: none. */
void power_cap(struct engine *e, double watts);

/* ---- limits (throttle.c) ---- */

void throttle_init(struct engine *e);
/* The share of its power above idle that a device draws at the present speed. */
double throttle_share(const struct engine *e);
/* Sets the speed, where devices at full speed draw that many watts above idle. */
void throttle_decide(struct engine *e, double above);
/* Finds out when the average meets its limit, if the watts stay. */
void throttle_watch(struct engine *e);
void throttle_set_cap(struct engine *e, double watts);

/* ---- the battery (battery.c) ---- */

double battery_charge_j(const struct engine *e);
/* Its state of charge, as the core asks for it. */
double battery_frac(const void *exec);
/* Closes the account of what was drawn so far, and takes what the event sets. */
void battery_set(struct engine *e, const struct machine_event *event);
/* Finds out when the battery is empty, if the watts stay. */
void battery_follow(struct engine *e);
/* An instant, at most before_ns, until which it lasts for sure while only that device decodes and
 * the host works for it. */
int64_t battery_lasts_until_ns(const struct engine *e, uint8_t device, int64_t before_ns);
void battery_finish(struct engine *e);
