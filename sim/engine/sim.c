/* The main loop: handle all events of an instant in their fixed order, call the policy, settle the
 * DDR rates, move time (advance.c). */
#include "sim/engine/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/costs.h"
#include "sim/engine/ddr.h"
#include "sim/engine/devices.h"
#include "sim/engine/power.h"

/* With more events at one instant the run is a livelock, such as a policy that launches work of
 * zero length for ever. Real instants have a thousandth of this. */
#define MAX_EVENTS_PER_INSTANT 10000000ULL

/* With fewer launches without progress, a run is no livelock. */
#define MAX_FRUITLESS 1000

void sim_setup_defaults(struct sim_setup *s)
{
    memset(s, 0, sizeof *s);
    s->prefix_reuse = true;
    s->kv_block_tokens = 16; /* as in vLLM */
    s->weight_copies = 1;
    s->weights_at_start = true;
    s->supply = (struct sim_supply){1.0, 0.0};
    s->horizon_ns = TIME_NEVER_NS;
    s->stall_ns = 3600 * NS_PER_S;
    s->collapse = true;
    s->caps = UINT32_MAX;
}

static void push_next_arrival(struct engine *e)
{
    const struct trace *t = e->core.setup->trace;
    /* One at a time, so that the size of the queue does not depend on the trace's length. */
    if (e->next_first < t->n_first) {
        uint32_t row = (uint32_t)e->next_first++;
        e->arrivals_pending++;
        struct trace_row r = trace_row_at(t, row);
        SIM_ASSERT(r.arrival_ns >= e->now_ns); /* first turns are sorted */
        eventq_push(&e->queue, r.arrival_ns, engine_order(e, EVENT_ARRIVAL, r.request_id), row);
    }
}

/* Whether a launch is on a device, or the host samples. */
static bool passes_run(const struct engine *e)
{
    bool run = e->power.tails > 0;
    for (uint32_t i = 0; i < e->core.setup->machine->n_devices; i++) {
        run = run || e->devices[i].n_running > 0;
    }
    return run;
}

/* Whether nothing more can happen to any request. Timers and compilations may remain. */
static bool drained(const struct engine *e)
{
    return e->core.n_live == 0 && e->arrivals_pending == 0 && !passes_run(e);
}

/* Whether a device, the loader or the compiler has work, which will end. */
static bool work_in_progress(const struct engine *e)
{
    return e->loader.items.first != NULL || e->compiler.items.first != NULL || passes_run(e);
}

/* Events do not prove progress: timers may fire for ever, and a policy may launch and stop launches
 * for ever. So the time since the last progress decides. */
static bool stalled(struct engine *e)
{
    struct core *c = &e->core;
    char says[CORE_SAYS_BYTES];
    bool late = c->n_live > 0 && e->now_ns - c->last_progress_ns > c->setup->stall_ns;
    if (late && c->fruitless > MAX_FRUITLESS) {
        core_fail(
            c, -ETIMEDOUT,
            "livelock: %" PRIu64 " request%s live, and for %.0f s of simulated time every one "
            "of %" PRIu64 " launches was stopped before it had done anything%s",
            c->n_live, text_plural(c->n_live), units_s_from_ns(e->now_ns - c->last_progress_ns),
            c->fruitless, core_says(c, says));
        return true;
    }
    if (late && !work_in_progress(e)) {
        core_fail(c, -ETIMEDOUT,
                  "stalled: %" PRIu64 " request%s live, nothing on any device for %.0f s of "
                  "simulated time, only timers%s",
                  c->n_live, text_plural(c->n_live),
                  units_s_from_ns(e->now_ns - c->last_progress_ns), core_says(c, says));
        return true;
    }
    return false;
}

/* Handles an event of the queue (job NULL), or the end of a job. waited: the job only waited. */
static inline void handle(struct engine *e, enum event_kind kind, uint64_t payload, struct job *job,
                          bool waited)
{
    struct core *c = &e->core;
    switch (kind) {
    case EVENT_KERNEL:
        (waited ? device_event : device_kernel_ended)(e, job->exec);
        (void)(c->fruitless > MAX_FRUITLESS && stalled(e));
        break;
    case EVENT_LOAD:
    case EVENT_COMPILE:
        channel_event(e, kind == EVENT_LOAD ? &e->loader : &e->compiler);
        break;
    case EVENT_PASS_TAIL:
        power_tail(e, -1);
        core_pass_tail_done(c, (struct full_pass *)(uintptr_t)payload);
        break;
    case EVENT_ARRIVAL:
        push_next_arrival(e);
        /* fall through */
    case EVENT_TURN:
        SIM_ASSERT(e->arrivals_pending > 0);
        e->arrivals_pending--;
        /* The stall watchdog starts with work: a pause of all sessions is no stall. */
        c->last_progress_ns = c->n_live == 0 ? e->now_ns : c->last_progress_ns;
        core_request_arrives(c, (uint32_t)payload);
        break;
    case EVENT_CANCEL:
        core_request_cancel(c, core_request_find(c, (uint32_t)payload));
        break;
    case EVENT_TIMER:
        if (job != NULL) { /* end of sched_occupy */
            power_device(e, job->device);
        }
        if (!stalled(e)) {
            core_timer(c);
        }
        break;
    case EVENT_FRAME:
        if (!stalled(e)) {
            (waited ? frames_due : frames_done)(e);
        }
        break;
    case EVENT_THROTTLE:
        power_changed(e);
        break;
    case EVENT_MACHINE:
        /* A periodic event must not keep a stalled run alive for ever. */
        if (c->setup->trace->machine[payload].every_ns == 0 || !stalled(e)) {
            machine_event(e, (uint32_t)payload);
        }
        break;
    case EVENT_BATTERY: /* if nothing would happen with more charge, either, it is a stall */
        e->battery.empty =
            !eventq_empty(&e->queue) || e->n_timed > e->n_jobs || work_in_progress(e);
        break;
    case EVENT_GOVERNOR:
        if (governor_event(e, job->device)) {
            power_device(e, job->device);
        }
        break;
    case EVENT_KINDS:
        SIM_ASSERT(false);
    }
}

/* The next thing to happen: the end of a job, or an event of the queue (job NULL). */
struct next {
    int64_t at_ns; /* TIME_NEVER_NS: nothing */
    struct job *job;
};

static inline struct next next_of(const struct engine *e)
{
    struct job *j = ddr_first(e, e->n_timed);
    struct next n = {j != NULL ? j->end_ns : TIME_NEVER_NS, j};
    if (!eventq_empty(&e->queue)) {
        const struct eventq_event *event = eventq_peek(&e->queue);
        if (event->time_ns < n.at_ns || j == NULL ||
            (event->time_ns == n.at_ns && event->order < j->order)) {
            n = (struct next){event->time_ns, NULL};
        }
    }
    return n;
}

/* Handles all events of this instant before the policy is called. Returns their number. */
static uint64_t handle_all(struct engine *e, struct next next)
{
    uint64_t n = 0;
    for (; e->core.result->status == 0 && next.at_ns == e->now_ns; next = next_of(e)) {
        n++;
        struct job *job = next.job;
        bool waited = job != NULL && job->waits;
        struct eventq_event event = {.order = 0};
        if (job == NULL) {
            event = eventq_pop(&e->queue);
            SIM_ASSERT(event.time_ns == e->now_ns);
        } else {
            job_wait_over(e, job);
        }
        handle(e, job != NULL ? job->kind : event.order >> 60, event.payload, job, waited);
    }
    return n;
}

/* Runs the next instant, and iterations of a steady pass that follow it. */
static void run_instant(struct engine *e, struct next next)
{
    struct core *c = &e->core;
    uint64_t handled = 0;
    SIM_ASSERT(next.at_ns >= e->now_ns);
    e->now_ns = next.at_ns;
    core_advance(c, e->now_ns);
    bool moved;
    do {
        handled += handle_all(e, next);
        SIM_ASSERT(e->fresh == NULL); /* hooks launch nothing */
        if (c->result->status == 0 && !e->battery.empty) {
            (void)core_schedule(c);
        }
        moved = c->result->status == 0 && e->fresh != NULL && repeat_run(e);
        e->fresh = NULL;
        if (e->ddr_dirty) {
            ddr_settle(e);
        }
        handled = moved ? 0 : handled;
        if (handled > MAX_EVENTS_PER_INSTANT) {
            core_fail(c, -ELOOP, "%llu events at one instant", MAX_EVENTS_PER_INSTANT);
        }
        next = next_of(e);
    } while (c->result->status == 0 && (moved || next.at_ns == e->now_ns));
    SIM_ASSERT(c->result->status != 0 || engine_consistent(e));
}

static void engine_init(struct engine *e, const struct sim_setup *setup)
{
    const struct machine *m = setup->machine;
    for (uint32_t i = 0; i < m->n_devices; i++) {
        struct vdevice *d = &e->devices[i];
        d->launches = arena_alloc(&e->core.arena, d->most * sizeof(struct vexec *));
    }
    e->loader.job = job_of(EVENT_LOAD, ENGINE_LOADER_FLOW, NULL);
    e->compiler.job = job_of(EVENT_COMPILE, 0, NULL);
    e->battery.lasts = job_of(EVENT_BATTERY, 0, NULL);
    corun_init(e);
    power_init(e);
    throttle_init(e);
    governor_init(e);
    frames_init(e);
    costs_init(e);
    buffers_init(e);
    repeat_init(e);
}

static void run_loop(struct engine *e)
{
    struct core *c = &e->core;
    push_next_arrival(e);
    bool over = false;
    while (!over && !drained(e)) {
        if (e->n_jobs > 0) {
            advance(e, engine_free_until_ns(e));
        }
        struct next next = next_of(e);
        if (next.at_ns == TIME_NEVER_NS && eventq_empty(&e->queue) && e->n_timed == 0) {
            break;
        }
        over = next.at_ns > c->setup->horizon_ns;
        if (over) {
            SIM_ASSERT(c->setup->horizon_ns >= e->now_ns);
            e->now_ns = c->setup->horizon_ns;
            core_advance(c, e->now_ns);
        } else if (next.at_ns > TIME_LAST_NS) {
            core_fail(c, -ERANGE, "the next event comes after 146 years of simulated time");
        } else {
            run_instant(e, next);
        }
        over = over || c->result->status != 0 || e->battery.empty;
    }
    ddr_touch(e); /* report the last DDR interval */
    if (c->result->status != 0) {
        core_dump(c);
    } else if (!over && c->n_live > 0) {
        core_stall(c);
    }
}

int sim_run(const struct sim_setup *setup, struct sim_result *result)
{
    struct engine *e = xlines(sizeof *e);
    for (uint32_t i = 0; i < setup->machine->n_devices; i++) {
        struct vdevice *d = &e->devices[i]; /* before the policy's init, which may use it */
        d->desc = &setup->machine->devices[i];
        bool serial = d->desc->sharing == DEVICE_SERIAL;
        d->most = serial ? d->desc->inflight_depth : d->desc->max_shared;
    }
    int rc = core_init(&e->core, setup, &engine_ops, e, result);
    if (rc == 0) {
        engine_init(e, setup);
        rc = machine_init(e);
    }
    if (rc == 0) {
        run_loop(e);
        result->end_ns = e->now_ns;
        battery_finish(e);
        costs_finish(e);
        corun_report(e);
        power_finish(e); /* before the audit, which compares its sums */
        core_audit(&e->core, e->now_ns);
        CORE_OBSERVE(&e->core, run_ended, e->now_ns);
    }
    eventq_fini(&e->queue);
    result->refused = rc != 0;
    core_fini(&e->core);
    free(e);
    return result->status;
}
