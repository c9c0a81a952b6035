/* The trace's events of the machine. They are in the queue, so no step over kernels or iterations
 * passes one. Their effects are in other files: power limits in throttle.c, frames in frames.c,
 * memory in the core's conditions.c, the battery's charge in battery.c. */
#include <errno.h>

#include "sim/engine/devices.h"
#include "sim/engine/power.h"

static void push(struct engine *e, uint32_t number, int64_t at_ns)
{
    eventq_push(&e->queue, at_ns, engine_order(e, EVENT_MACHINE, number), number);
}

void machine_event(struct engine *e, uint32_t number)
{
    const struct machine_event *event = &e->core.setup->trace->machine[number];
    if (event->every_ns > 0 && event->until_ns - event->every_ns >= e->now_ns) {
        push(e, number, e->now_ns + event->every_ns);
    }
    if ((event->sets & MACHINE_SETS_POWER_LIMIT) != 0) {
        power_cap(e, event->power_limit_watts);
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
    FAIL_IF(&e->core, f->device_ns <= 0 || s->machine->devices[f->device].sharing != DEVICE_SERIAL,
            -EINVAL, "machine[%u].frames_per_s: %s has no GPU that frames can take", number,
            s->machine->name);
    FAIL_IF(&e->core, f->bytes > units_s_from_ns(f->device_ns) * s->machine->ddr_peak_bytes_per_s,
            -EINVAL,
            "machine[%u].frames_per_s: a frame has more bytes (sim.graphics.frame_bytes) than the "
            "DDR moves in its time (frame_s)",
            number);
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
