/* Power limits. A first-order average x of the package's power P, dx/dt = (P - x) / tau, must not
 * pass a limit, and P itself must not pass a burst limit. A package's PL1 with its time constant
 * and its PL2 are such limits. An RC thermal model has the same equation. With a resistance R and a
 * capacity C, temperature - ambient = R x, tau = R C and limit = (T_max - ambient) / R.
 *
 * All devices slow down together: at speed s all work takes 1 / s as long, and a device's power
 * above idle is s^exponent of that at full speed. The exponent is 3 if voltage follows frequency,
 * and 1 if a governor inserts pauses. P is piecewise constant, so x and the instant at which x
 * reaches the limit are exact. From then on P is at the limit until the devices need less. An event
 * of the machine may cap P in addition. */
#include <math.h>

#include "sim/engine/ddr.h"
#include "sim/engine/power.h"

#define REACHED_FRAC 1e-9 /* tolerance of the limit, for the rounding of the crossing time */

static bool averages(const struct engine *e)
{
    return e->core.setup->throttle.limit_watts > 0.0;
}

void throttle_init(struct engine *e)
{
    double watts = e->power.total_watts; /* idle for long */
    e->throttle = (struct throttle){.on = averages(e),
                                    .speed = 1.0,
                                    .average_watts = watts,
                                    .watts = watts,
                                    .reaches = job_of(EVENT_THROTTLE, 0, NULL)};
}

double throttle_share(const struct engine *e)
{
    return pow(e->throttle.speed, e->core.setup->throttle.exponent);
}

static void average(struct engine *e)
{
    struct throttle *t = &e->throttle;
    if (!averages(e)) {
        return;
    }
    double passed_s = (double)(e->now_ns - t->since_ns) / 1e9;
    SIM_ASSERT(passed_s >= 0.0 && t->average_watts >= 0.0);
    double keep = exp(-passed_s / e->core.setup->throttle.tau_s);
    t->average_watts = t->watts + (t->average_watts - t->watts) * keep;
    t->since_ns = e->now_ns;
}

/* Highest speed at which fixed + above * speed^exponent <= allowed. */
static double speed_for(const struct sim_throttle *s, double fixed, double above, double allowed)
{
    if (fixed + above <= allowed || above <= 0.0) {
        return 1.0;
    }
    double left = allowed - fixed;
    SIM_ASSERT(above > 0.0 && s->exponent > 0.0);
    double speed = left > 0.0 ? pow(left / above, 1.0 / s->exponent) : 0.0;
    return speed > s->min_speed ? speed : s->min_speed;
}

void throttle_watch(struct engine *e)
{
    struct throttle *t = &e->throttle;
    const struct sim_throttle *s = &e->core.setup->throttle;
    t->watts = e->power.total_watts;
    /* Computed again whenever the power changes. */
    job_wait_over(e, &t->reaches);
    if (averages(e) && t->watts > s->limit_watts &&
        t->average_watts < s->limit_watts * (1.0 - REACHED_FRAC)) {
        double in_s = s->tau_s * log((t->watts - t->average_watts) / (t->watts - s->limit_watts));
        SIM_ASSERT(in_s > 0.0);
        job_wait(e, &t->reaches, engine_after(e, in_s * 1e9));
    }
}

void throttle_decide(struct engine *e, double above)
{
    struct throttle *t = &e->throttle;
    const struct sim_throttle *s = &e->core.setup->throttle;
    const struct machine *m = e->core.setup->machine;
    average(e); /* with the old power, before it changes */
    double fixed = e->power.total_watts;
    for (uint8_t d = 0; d < m->n_devices; d++) {
        fixed -= e->power.watts[d] - m->devices[d].idle_watts;
    }
    double allowed = s->burst_watts > 0.0 ? s->burst_watts : HUGE_VAL;
    if (t->cap_watts > 0.0 && t->cap_watts < allowed) {
        allowed = t->cap_watts;
    }
    if (averages(e) && t->average_watts >= s->limit_watts * (1.0 - REACHED_FRAC) &&
        s->limit_watts < allowed) {
        allowed = s->limit_watts;
    }
    SIM_ASSERT(fixed > -REACHED_FRAC && isfinite(above)); /* < 0: device idle above the total */
    double speed = speed_for(s, fixed, above, allowed);
    SIM_ASSERT(speed >= s->min_speed && speed <= 1.0);
    if (speed != t->speed) {
        ddr_touch(e);
        t->speed = speed;
        for (uint8_t d = 0; d < m->n_devices; d++) {
            job_occupies(e, d);
        }
        CORE_OBSERVE(&e->core, speed, e->now_ns, speed);
    }
}
