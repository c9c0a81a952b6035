/* A battery that feeds the machine loses the energy of the whole package (power.c) plus the losses
 * of the supply. Power is piecewise constant, so the instant at which the battery is empty is
 * exact. That ends the run. */
#include "sim/engine/ddr.h"
#include "sim/engine/power.h"

static double at_battery_watts(const struct engine *e, double watts)
{
    const struct sim_supply *s = &e->core.setup->supply;
    return watts / s->efficiency_frac + s->rest_watts;
}

/* Energy of the run until now, if all of it had come from the battery. */
static double at_battery_j(const struct engine *e)
{
    const struct sim_supply *s = &e->core.setup->supply;
    return power_joules(e) / s->efficiency_frac + s->rest_watts * units_s_from_ns(e->now_ns);
}

static double battery_charge_j(const struct engine *e)
{
    const struct battery *b = &e->battery;
    double left = b->charge_j - (b->feeds ? at_battery_j(e) - b->since_j : 0.0);
    return left > 0.0 ? left : 0.0;
}

double battery_frac(const void *exec)
{
    const struct engine *e = exec;
    return e->battery.known ? battery_charge_j(e) / e->battery.full_j : 1.0;
}

void battery_follow(struct engine *e)
{
    struct battery *b = &e->battery;
    job_wait_over(e, &b->lasts);
    double watts = at_battery_watts(e, e->power.total_watts);
    if (b->feeds && watts > 0.0) {
        job_wait(e, &b->lasts, engine_after(e, battery_charge_j(e) / watts * 1e9));
    }
}

int64_t battery_lasts_until_ns(const struct engine *e, uint8_t device, int64_t before_ns)
{
    const struct power *p = &e->power;
    const struct machine *m = e->core.setup->machine;
    /* An upper bound of the power: everything draws at once. */
    double watts = p->total_watts - p->watts[device] + m->devices[device].decode_watts +
                   m->devices[device].idle_watts + m->poll_watts + m->compile_watts;
    double left_ns = battery_charge_j(e) / at_battery_watts(e, watts) * 1e9 * (1.0 - 1e-9);
    return left_ns < (double)(before_ns - e->now_ns) ? e->now_ns + (int64_t)left_ns : before_ns;
}

void battery_set(struct engine *e, const struct machine_event *event)
{
    struct battery *b = &e->battery;
    double before = battery_charge_j(e);
    b->drawn_j += b->charge_j - before;
    b->charge_j = before;
    b->since_j = at_battery_j(e);
    if ((event->sets & MACHINE_SETS_BATTERY) != 0) {
        b->known = true;
        b->charge_j = event->battery_j;
        b->full_j = event->battery_full_j;
    }
    if ((event->sets & MACHINE_SETS_SOURCE) != 0) {
        b->feeds = event->on_battery;
    }
    SIM_REQUIRE(!b->feeds || (b->known && b->full_j > 0.0), "a battery of unknown charge");
    battery_follow(e);
}

void battery_finish(struct engine *e)
{
    const struct battery *b = &e->battery;
    e->core.result->battery = (struct sim_battery){
        .known = b->known,
        .empty = b->empty,
        .end_frac = battery_frac(e),
        .drawn_j = b->drawn_j + b->charge_j - battery_charge_j(e),
    };
}
