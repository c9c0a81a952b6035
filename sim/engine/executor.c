/* The simulated machine's functions for the core: work for devices (devices.c), the loader and the
 * compiler (channels.c), and future events. */
#include <errno.h>

#include "sim/engine/ddr.h"
#include "sim/engine/devices.h"
#include "sim/engine/engine.h"
#include "sim/engine/power.h"

static uint32_t exec_free_slots(void *exec, uint8_t device)
{
    const struct engine *e = exec;
    const struct vdevice *d = &e->devices[device];
    if (e->now_ns < d->occupied.end_ns) {
        return 0;
    }
    /* Launches that are ending count, because they have the device until the end. */
    return d->most - d->n_launches;
}

static void exec_timer(void *exec, int64_t at_ns)
{
    struct engine *e = exec;
    SIM_ASSERT(at_ns >= e->now_ns);
    eventq_push(&e->queue, at_ns, engine_order(e, EVENT_TIMER, 0), 0);
}

static int exec_occupy(void *exec, uint8_t device, int64_t until_ns)
{
    struct engine *e = exec;
    struct vdevice *d = &e->devices[device];
    if (d->n_launches > 0 || e->now_ns < d->occupied.end_ns) {
        return -EBUSY;
    }
    d->occupied = job_of(EVENT_TIMER, device, NULL);
    d->occupied.left_ns = (double)(until_ns - e->now_ns);
    d->occupied.updated_ns = e->now_ns;
    d->occupied.end_ns = until_ns;
    job_occupies(e, device); /* first, because the device's power depends on it */
    power_device(e, device);
    return 0;
}

static void exec_pass_tail(void *exec, struct full_pass *p, int64_t duration_ns)
{
    struct engine *e = exec;
    SIM_ASSERT(duration_ns >= 0 && p->pub->op == p->pub->n_ops);
    power_tail(e, 1);
    eventq_push(&e->queue, e->now_ns + duration_ns,
                engine_order(e, EVENT_PASS_TAIL, p->pub->segments[0].request->id),
                (uint64_t)(uintptr_t)p);
}

static void exec_arrive_later(void *exec, int64_t at_ns, uint32_t row)
{
    struct engine *e = exec;
    uint32_t id = trace_row_at(e->core.setup->trace, row).request_id;
    SIM_ASSERT(at_ns >= e->now_ns);
    e->arrivals_pending++;
    eventq_push(&e->queue, at_ns, engine_order(e, EVENT_TURN, id), row);
}

static void exec_cancel_later(void *exec, int64_t at_ns, struct full_request *r)
{
    struct engine *e = exec;
    SIM_ASSERT(at_ns >= e->now_ns);
    /* By id, because the request may have left by then and its object be reused. */
    eventq_push(&e->queue, at_ns, engine_order(e, EVENT_CANCEL, r->pub->id), r->pub->id);
}

const struct executor_ops engine_ops = {
    .caps = CAP_SPANS | CAP_ROW_SPLIT | CAP_YIELD_KERNEL | CAP_COMPILE | CAP_LOAD | CAP_KV_MOVE |
            CAP_VERIFY | CAP_INFLIGHT | CAP_SUSPEND | CAP_COLUMN_SPLIT,
    .launch = device_launch,
    .stop = device_stop,
    .free_slots = exec_free_slots,
    .compile = channel_compile,
    .load = channel_load,
    .resident_dropped = channel_drop,
    .kv_move = channel_kv_move,
    .timer = exec_timer,
    .occupy = exec_occupy,
    .pass_tail = exec_pass_tail,
    .arrive_later = exec_arrive_later,
    .cancel_later = exec_cancel_later,
    .battery_frac = battery_frac,
};
