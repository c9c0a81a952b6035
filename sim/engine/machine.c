/* The trace's events of the machine. Each is an event of the queue, so it ends every stretch of
 * kernels or iterations that is advanced over in one step. Everything that it changes has one
 * place: power limits slow devices in throttle.c, frames take the GPU in frames.c, memory belongs
 * to the core (conditions.c), and the battery is here.
 *
 * A battery that feeds the machine loses the energy of the run: the whole package, as it is
 * counted in power.c. Watts are constant between their changes, so the instant at which it is empty
 * is exact. The machine is off then, and the run is over. */
#include <errno.h>

#include "sim/engine/devices.h"
#include "sim/engine/power.h"

static double charge_j(const struct engine *e)
{
    const struct battery *b = &e->battery;
    double left = b->charge_j - (b->feeds ? power_joules(e) - b->since_j : 0.0);
    return left > 0.0 ? left : 0.0;
}

double machine_battery_frac(const void *exec)
{
    const struct engine *e = exec;
    return e->battery.known ? charge_j(e) / e->battery.full_j : 1.0;
}

void battery_follow(struct engine *e)
{
    struct battery *b = &e->battery;
    if (b->event != EVENTQ_NONE) {
        eventq_cancel(&e->queue, b->event);
        b->event = EVENTQ_NONE;
    }
    if (b->feeds && e->power.total_watts > 0.0) {
        int64_t at_ns = engine_after(e, charge_j(e) / e->power.total_watts * 1e9);
        b->event = eventq_push(&e->queue, at_ns, engine_order(e, EVENT_BATTERY, 0), 0);
    }
}

int64_t battery_lasts_until_ns(const struct engine *e, uint8_t device, int64_t before_ns)
{
    const struct power *p = &e->power;
    const struct machine *m = e->core.setup->machine;
    /* The most that it draws at any instant of that: all at once. */
    double watts = p->total_watts - p->watts[device] + m->devices[device].decode_watts +
                   m->devices[device].idle_watts + m->poll_watts + m->compile_watts;
    double left_ns = charge_j(e) / watts * 1e9 * (1.0 - 1e-9);
    return left_ns < (double)(before_ns - e->now_ns) ? e->now_ns + (int64_t)left_ns : before_ns;
}

/* Closes the account of what was drawn so far. */
static void battery_set(struct engine *e, const struct machine_event *event)
{
    struct battery *b = &e->battery;
    power_settle(e);
    double before = charge_j(e);
    b->drawn_j += b->charge_j - before;
    b->charge_j = before;
    b->since_j = power_joules(e);
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
    repeat_follow(e);
}

void machine_battery_empty(struct engine *e)
{
    e->battery.event = EVENTQ_NONE;
    e->battery.empty = true;
}

static void push(struct engine *e, uint32_t number, int64_t at_ns)
{
    (void)eventq_push(&e->queue, at_ns, engine_order(e, EVENT_MACHINE, number), number);
}

void machine_event(struct engine *e, uint32_t number)
{
    const struct machine_event *event = &e->core.setup->trace->machine[number];
    if (event->every_ns > 0 && event->until_ns - event->every_ns >= e->now_ns) {
        push(e, number, e->now_ns + event->every_ns);
    }
    if ((event->sets & MACHINE_SETS_POWER_LIMIT) != 0) {
        throttle_cap(e, event->power_limit_watts);
    }
    if ((event->sets & MACHINE_SETS_FRAMES) != 0) {
        frames_set(e, event->frames_per_s);
    }
    if ((event->sets & (MACHINE_SETS_SOURCE | MACHINE_SETS_BATTERY)) != 0) {
        battery_set(e, event);
    }
    core_machine_event(&e->core, event);
}

static int check(struct engine *e, uint32_t number)
{
    const struct sim_setup *s = e->core.setup;
    const struct machine_event *event = &s->trace->machine[number];
    const struct sim_frames *f = &s->frames;
    if ((event->sets & MACHINE_SETS_FRAMES) == 0 || event->frames_per_s <= 0.0) {
        return 0;
    }
    if (f->device_ns <= 0 || s->machine->devices[f->device].sharing != DEVICE_SERIAL) {
        return core_fail(&e->core, -EINVAL,
                         "machine[%u].frames_per_s: %s has no GPU that frames can take", number,
                         s->machine->name);
    }
    if (f->bytes > units_s_from_ns(f->device_ns) * s->machine->ddr_peak_bytes_per_s) {
        return core_fail(&e->core, -EINVAL,
                         "machine[%u].frames_per_s: a frame has more bytes "
                         "(sim.graphics.frame_bytes) than the DDR moves in its time (frame_s)",
                         number);
    }
    return 0;
}

int machine_init(struct engine *e)
{
    const struct trace *t = e->core.setup->trace;
    for (uint32_t i = 0; i < t->n_machine; i++) {
        int rc = check(e, i);
        if (rc != 0) {
            return rc;
        }
        push(e, i, t->machine[i].at_ns);
    }
    return 0;
}

void machine_finish(struct engine *e)
{
    const struct battery *b = &e->battery;
    e->core.result->battery = (struct sim_battery){
        .known = b->known,
        .empty = b->empty,
        .end_frac = machine_battery_frac(e),
        .drawn_j = b->drawn_j + b->charge_j - charge_j(e),
    };
}
