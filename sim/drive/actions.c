/* The functions that the core calls. The two clocks differ in how a launch runs and stops; all else
 * is equal. */
#include "sim/core/memory.h"
#include "sim/drive/drive_impl.h"
#include "sim/drive/topk.h"

/* For assertions: the launches of a device are its own, in submission order, and only the first may
 * be running. */
static bool device_ok(const struct drive *d, const struct real_device *v)
{
    bool ok = v->n_live <= d->machine->devices[v->index].inflight_depth;
    for (uint32_t i = 0; i < v->n_live && ok; i++) {
        const struct real_launch *r = v->live[i];
        ok = r->l->exec == r && r->l->pub->device == v->index &&
             (i == 0 || (r->l->pub->id > v->live[i - 1]->l->pub->id &&
                         r->l->pub->state == LAUNCH_STATE_QUEUED));
    }
    return ok;
}

/* Reports a device's phase, for the shares of its time. Its power is unknown. */
static void observe_device(struct drive *d, uint8_t device)
{
    const struct real_device *v = &d->devices[device];
    SIM_ASSERT(device_ok(d, v));
    enum power_phase phase = v->n_live == 0 ? POWER_PHASE_IDLE
                             : v->live[0]->l->pub->pass->shape.prefill_rows > 0
                                 ? POWER_PHASE_PREFILL
                                 : POWER_PHASE_DECODE;
    CORE_OBSERVE(&d->core, power, d->now_ns, device, phase, 0.0);
}

static void exec_launch(void *exec, struct full_launch *l)
{
    struct drive *d = exec;
    struct real_device *v = &d->devices[l->pub->device];
    struct real_launch *r = launch_new(d, l);
    r->submit_ns = d->wall ? drive_wall_ns(d) : d->now_ns;
    SIM_ASSERT(v->n_live < d->machine->devices[l->pub->device].inflight_depth);
    SIM_ASSERT(v->n_live == 0 || v->live[v->n_live - 1]->submit_ns <= r->submit_ns);
    v->live[v->n_live++] = r;
    if (d->wall) {
        wallclock_launch(d, v, r);
    } else if (v->n_live == 1) {
        cpuclock_start(d, v);
    }
    r->on_idle = v->n_live == 1;
    SIM_ASSERT(r->on_idle == (l->pub->state == LAUNCH_STATE_RUNNING)); /* the first one starts */
    if (v->n_live == 1) {
        observe_device(d, l->pub->device);
    }
}

static int exec_stop(void *exec, struct full_launch *l, struct preempt_spec how)
{
    struct drive *d = exec;
    struct real_device *v = &d->devices[l->pub->device];
    struct real_launch *r = l->exec;
    SIM_ASSERT(r->l == l && device_ok(d, v));
    SIM_ASSERT(!how.now || how.discard); /* kernels cannot be suspended */
    if (r->over) {
        return 0;
    }
    r->how = how;
    /* The first request of each kind counts. The launch may have ended meanwhile, unnoticed. */
    int64_t *asked_ns = how.now ? &r->asked_now_ns : &r->asked_ns;
    if (*asked_ns == 0) {
        *asked_ns = d->wall ? drive_wall_ns(d) : d->now_ns;
    }
    if (d->wall) {
        wallclock_stop(d, v, r);
    } else {
        cpuclock_stop(d, v, r);
    }
    return 0;
}

void drive_launch_ended(struct drive *d, struct real_launch *r)
{
    struct real_device *v = &d->devices[r->l->pub->device];
    uint32_t i = 0;
    while (v->live[i] != r) {
        i++;
        SIM_ASSERT(i < v->n_live);
    }
    SIM_ASSERT(device_ok(d, v) && (i == 0 || r->over)); /* only a stop ends a waiting launch */
    for (uint32_t k = i; k + 1 < v->n_live; k++) {
        v->live[k] = v->live[k + 1];
    }
    v->n_live--;
    report_launch(d, r);
    struct full_launch *l = r->l;
    SIM_ASSERT(r->op >= l->pub->op_begin && r->op <= l->pub->op_end && l->exec == r);
    uint32_t ops_done = r->op - l->pub->op_begin; /* read before r is freed and reused */
    uint32_t rows_done = r->rows_done;
    d->core.result->kernels += r->n_log;
    uint8_t device = l->pub->device;
    struct full_pass *p = core_pass(l->pub->pass);
    const struct real_pass *real = p->exec;
    SIM_ASSERT(real == r->pass && l->pub->pass->n_launches > 0);
    launch_free(d, r);
    core_launch_ended(&d->core, l, r->outcome, ops_done, rows_done, r->isolated_ns, r->lost_ns);
    SIM_ASSERT(l->pub->state == LAUNCH_STATE_ENDED);
    SIM_ASSERT(p->exec == NULL || launch_rows_ok(real, p->pub));
    if (i == 0 && v->n_live > 0 && v->live[0]->l->pub->state == LAUNCH_STATE_QUEUED &&
        !v->live[0]->over) {
        if (d->wall) {
            core_launch_started(&d->core, v->live[0]->l, 0);
            core_kernel_started(&d->core, v->live[0]->l);
        } else {
            cpuclock_start(d, v);
        }
    }
    observe_device(d, device);
}

static uint32_t exec_free_slots(void *exec, uint8_t device)
{
    const struct drive *d = exec;
    uint32_t depth = d->machine->devices[device].inflight_depth;
    uint32_t live = d->devices[device].n_live;
    SIM_ASSERT(device < d->machine->n_devices && live <= depth);
    return live < depth ? depth - live : 0;
}

/* The duration is measured: duration_ns, from the SoC file, is not used. */
static void exec_compile(void *exec, struct resident *r, int64_t duration_ns UNUSED)
{
    SIM_ASSERT(r->state == RESIDENT_PENDING && r->exec == NULL);
    service_compile(exec, r);
}

static void exec_load(void *exec, struct resident *r, double bytes)
{
    SIM_ASSERT(r->state == RESIDENT_PENDING && r->exec == NULL && r->bytes == bytes);
    service_load(exec, r, bytes);
}

static void exec_resident_dropped(void *exec, struct resident *r)
{
    SIM_ASSERT(r->pins == 0);
    if (r->state == RESIDENT_PENDING) {
        service_cancel(r);
    } else {
        service_evicted(exec, r->key);
    }
}

static void exec_kv_move(void *exec, struct full_request *r, uint32_t row, double bytes UNUSED,
                         bool in)
{
    if (r == NULL) {
        service_cold(exec, row);
        return;
    }
    SIM_ASSERT(r->kv_moving && r->pub->pass == NULL && r->pub->kv_swapped == in);
    service_kv(exec, r, in);
}

static void exec_timer(void *exec, int64_t at_ns)
{
    (void)drive_later(exec, at_ns, DRIVE_EVENT_TIMER, 0, 0);
}

static void exec_pass_tail(void *exec, struct full_pass *p, int64_t duration_ns UNUSED)
{
    struct drive *d = exec;
    SIM_ASSERT(p->pub->op == p->pub->n_ops && p->pub->n_launches == 0 && p->exec != NULL);
    int64_t began = drive_meter_ns(d);
    if (d->options->topk != NULL) {
        topk_take(d, p);
    }
    state_sample(d, p);
    int64_t took = drive_meter_ns(d) - began;
    SIM_ASSERT(took >= 0);
    drive_times_add(&d->report->tail, took);
    d->tails++;
    (void)drive_later(d, d->now_ns + (d->wall ? 0 : took), DRIVE_EVENT_TAIL,
                      p->pub->segments[0].request->id, (uint64_t)(uintptr_t)p);
}

static void exec_arrive_later(void *exec, int64_t at_ns, uint32_t row)
{
    struct drive *d = exec;
    /* The previous turn has left its slot: next_turn in state.c follows the core's rule. */
    SIM_ASSERT(row < d->core.setup->trace->n && d->requests[row].tokens == NULL);
    SIM_ASSERT(d->turns[row].tokens != NULL || d->core.joins != NULL);
    d->arrivals_pending++;
    (void)drive_later(d, at_ns, DRIVE_EVENT_TURN, d->core.setup->trace->rows[row].request_id, row);
}

static void exec_cancel_later(void *exec, int64_t at_ns, struct full_request *r)
{
    SIM_ASSERT(r->alive && r->exec == NULL); /* it is arriving */
    (void)drive_later(exec, at_ns, DRIVE_EVENT_CANCEL, r->pub->id, r->pub->id);
}

static void exec_pass_cancelled(void *exec, struct full_pass *p)
{
    SIM_ASSERT(p->pub->state == PASS_STATE_CANCELLED && p->pub->n_launches == 0);
    state_pass_drop(exec, p);
}

const struct executor_ops drive_ops = {
    .caps = CAP_SPANS | CAP_ROW_SPLIT | CAP_YIELD_KERNEL | CAP_COMPILE | CAP_LOAD | CAP_KV_MOVE |
            CAP_VERIFY,
    .launch = exec_launch,
    .stop = exec_stop,
    .free_slots = exec_free_slots,
    .compile = exec_compile,
    .load = exec_load,
    .resident_dropped = exec_resident_dropped,
    .kv_move = exec_kv_move,
    .timer = exec_timer,
    .pass_tail = exec_pass_tail,
    .arrive_later = exec_arrive_later,
    .cancel_later = exec_cancel_later,
    .pass_cancelled = exec_pass_cancelled,
};
