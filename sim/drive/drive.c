/* The life of a real run: refuses unsupported setups, starts the devices, and runs the simulator's
 * loop of instants: events in the contract's order, then schedule. */
#include "sim/drive/drive.h"

#include <sched.h>
#include <time.h>

#include "sim/drive/drive_impl.h"
#include "sim/drive/topk.h"

#define HOST_PRIORITY 10 /* SCHED_FIFO; above DEVICE_PRIORITY */
#define DEFAULT_LIMIT_S 600.0
#define DEFAULT_HANG_S 60.0
#define DEFAULT_COMPILE_S 600.0

/* ---- unsupported setups ---- */

static int refuse(struct drive *d, const char *what)
{
    SIM_ASSERT(!d->compiler.started && d->n_engines == 0); /* nothing is open yet */
    return core_fail(&d->core, -EINVAL, "real execution has no %s", what);
}

static int check_setup(struct drive *d)
{
    const struct sim_setup *s = d->core.setup;
    const struct machine *m = d->machine;
    SIM_ASSERT(m->n_devices > 0 && m->n_devices <= MACHINE_MAX_DEVICES && d->now_ns == 0);
    for (uint32_t i = 0; i < m->n_devices; i++) {
        if (m->devices[i].sharing != DEVICE_SERIAL) {
            return core_fail(&d->core, -EINVAL, "device %s is time-shared; a real one is serial",
                             m->devices[i].name);
        }
        if (m->devices[i].can_reset &&
            (d->options->devices[i].engine->has & ENGINE_INTERRUPTS) == 0) {
            return core_fail(&d->core, -EINVAL,
                             "device %s of the file can be reset; engine %s cannot interrupt a "
                             "kernel (can_reset=false)",
                             m->devices[i].name, d->options->devices[i].engine->name);
        }
    }
    bool kernels = false, steps = false;
    for (uint32_t i = 0; i < m->n_devices; i++) {
        kernels = kernels || s->kernels[i].budget_bytes > 0.0;
        steps = steps || s->dvfs[i].n > 0;
    }
    return s->draft != NULL                ? refuse(d, "drafts (sim.speculation)")
           : s->frames.per_s > 0.0         ? refuse(d, "graphics frames of its own (sim.graphics)")
           : s->throttle.limit_watts > 0.0 ? refuse(d, "power limit (sim.power)")
           : kernels                       ? refuse(d, "memory of kernels (kernels of the file)")
           : steps ? refuse(d, "frequency governor of its own (dvfs of the file)")
                   : 0;
}

/* Rows of the largest static kernel of a device or a graph. */
static uint32_t largest_kernel(const struct drive *d)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < d->machine->n_devices; i++) {
        uint32_t chunk = d->machine->devices[i].chunk_rows;
        rows = chunk > rows ? chunk : rows;
    }
    for (uint32_t v = 1; v <= GRAPH_VERSIONS; v++) {
        rows = d->core.graphs[v].rows > rows ? d->core.graphs[v].rows : rows;
    }
    return rows;
}

static int service_start(struct drive *d, struct lane *w, const char *name)
{
    SIM_ASSERT(w == &d->loader || w == &d->compiler);
    int rc = lane_start(w, d, name, -1, false);
    return rc == 0 ? 0 : core_fail(&d->core, rc, "no thread for the %s", name);
}

static int start(struct drive *d)
{
    int rc = check_setup(d);
    d->padding_rows = largest_kernel(d);
    rc = rc != 0 ? rc : state_init(d);
    rc = rc != 0 ? rc : service_start(d, &d->compiler, "compiler");
    for (uint32_t i = 0; rc == 0 && i < d->machine->n_devices; i++) {
        rc = device_start(d, i);
    }
    rc = rc != 0 ? rc : service_start(d, &d->loader, "loader");
    SIM_ASSERT((rc == 0) == (d->core.result->status == 0)); /* core_fail was called on failure */
    SIM_ASSERT(rc != 0 || (d->n_engines > 0 && d->n_engines <= d->machine->n_devices));
    return rc == 0 ? service_graphs(d) : rc;
}

/* ---- the run ---- */

static void push_next_arrival(struct drive *d)
{
    const struct trace *t = d->core.setup->trace;
    if (d->next_first < t->n_first) {
        uint32_t row = (uint32_t)d->next_first++;
        SIM_ASSERT(row == 0 || t->rows[row].arrival_ns >= t->rows[row - 1].arrival_ns);
        d->arrivals_pending++;
        (void)drive_later(d, t->rows[row].arrival_ns, DRIVE_EVENT_ARRIVAL, t->rows[row].request_id,
                          row);
    }
}

static void arrive(struct drive *d, uint32_t row)
{
    struct core *c = &d->core;
    SIM_ASSERT(d->arrivals_pending > 0 && row < c->setup->trace->n);
    d->arrivals_pending--;
    c->last_progress_ns = c->n_live == 0 ? d->now_ns : c->last_progress_ns;
    core_request_arrives(c, row);
}

static void service_event(struct drive *d, struct service_job *j)
{
    /* On the wall clock an event ends a job only if there was nothing to do for it. */
    SIM_ASSERT(j->event != EVENTQ_NONE && (!d->wall || j->job.lane == NULL));
    j->event = EVENTQ_NONE;
    service_done(d, j);
}

/* A lane's job has ended, on the wall clock. */
static void job_ended(struct drive *d, struct job *j)
{
    if (j->status != 0) {
        core_fail(&d->core, -EIO, "%s: %s", j->lane->name, j->why);
    } else if (j->lane == &d->loader || j->lane == &d->compiler) {
        service_done(d, (struct service_job *)j);
    } else {
        struct real_launch *r = (struct real_launch *)j;
        SIM_ASSERT(r->l->exec == r && r->begin_ns <= r->end_ns && r->end_ns <= d->now_ns);
        SIM_ASSERT(r->over || r == d->devices[r->l->pub->device].live[0]); /* in order */
        if (!r->over) {
            drive_times_add(&d->report->completion, drive_wall_ns(d) - r->end_ns);
        }
        drive_launch_ended(d, r);
    }
}

static void handle(struct drive *d, const struct eventq_event *ev)
{
    struct core *c = &d->core;
    void *object = (void *)(uintptr_t)ev->payload;
    SIM_ASSERT(ev->time_ns <= d->now_ns && (d->wall || ev->time_ns == d->now_ns));
    c->result->events++;
    switch ((enum drive_event)(ev->order >> 60)) {
    case DRIVE_EVENT_STEP:
        SIM_ASSERT(!d->wall);
        if (cpuclock_step(d, object)) {
            drive_launch_ended(d, object);
        }
        break;
    case DRIVE_EVENT_MOVED:
    case DRIVE_EVENT_COMPILED:
        service_event(d, object);
        break;
    case DRIVE_EVENT_TAIL:
        SIM_ASSERT(d->tails > 0);
        d->tails--;
        core_pass_tail_done(c, object);
        state_pass_drop(d, object);
        break;
    case DRIVE_EVENT_ARRIVAL:
        push_next_arrival(d);
        arrive(d, (uint32_t)ev->payload);
        break;
    case DRIVE_EVENT_TURN:
        arrive(d, (uint32_t)ev->payload);
        break;
    case DRIVE_EVENT_CANCEL:
        core_request_cancel(c, core_request_find(c, (uint32_t)ev->payload));
        break;
    case DRIVE_EVENT_TIMER:
        core_timer(c);
        break;
    }
}

static bool drained(const struct drive *d)
{
    bool idle = d->core.n_live == 0 && d->arrivals_pending == 0;
    SIM_ASSERT(!idle || d->tails == 0); /* live passes and launches have live requests */
    for (uint32_t i = 0; i < d->machine->n_devices; i++) {
        SIM_ASSERT(!idle || d->devices[i].n_live == 0);
    }
    SIM_ASSERT(!idle || d->next_first == d->core.setup->trace->n_first); /* one is always pending */
    return idle;
}

static bool due(const struct drive *d)
{
    return !eventq_empty(&d->queue) && eventq_peek(&d->queue)->time_ns <= d->now_ns;
}

static void instant(struct drive *d)
{
    struct core *c = &d->core;
    SIM_ASSERT(drive_on_host(d) && c->hook == HOOK_outside);
    core_advance(c, d->now_ns);
    struct job *j;
    while (d->wall && c->result->status == 0 && (j = wallclock_ended(d)) != NULL) {
        job_ended(d, j);
    }
    while (c->result->status == 0 && due(d)) {
        struct eventq_event ev = eventq_pop(&d->queue);
        handle(d, &ev);
    }
    int64_t began = d->host->now_ns();
    if (c->result->status == 0) {
        SIM_ASSERT(!due(d) && c->sched->now_ns == d->now_ns); /* schedule sees the whole instant */
        (void)core_schedule(c);
    }
    if (d->wall) {
        drive_times_add(&d->report->schedule, d->host->now_ns() - began);
    }
}

static void loop(struct drive *d)
{
    struct core *c = &d->core;
    SIM_ASSERT(d->now_ns == 0 && eventq_empty(&d->queue) && c->n_live == 0);
    push_next_arrival(d);
    while (c->result->status == 0 && !drained(d)) {
        bool more = d->wall ? wallclock_wait(d) : cpuclock_wait(d);
        d->report->interrupted = drive_interrupted(d);
        if (!more && !d->report->interrupted) {
            core_fail(c, -ETIMEDOUT,
                      "stalled: %" PRIu64 " request%s live, nothing on any device and no event to "
                      "come",
                      c->n_live, text_plural(c->n_live)); /* only the first failure is kept */
            break;
        }
        if (d->now_ns > c->setup->horizon_ns || d->report->interrupted) {
            d->now_ns = d->report->interrupted ? d->now_ns : c->setup->horizon_ns;
            core_advance(c, d->now_ns);
            break;
        }
        if (d->now_ns - c->last_progress_ns > c->setup->stall_ns && c->n_live > 0) {
            core_fail(c, -ETIMEDOUT, "stalled: no progress for %.0f s",
                      units_s_from_ns(c->setup->stall_ns));
            break;
        }
        instant(d);
    }
    SIM_ASSERT(c->result->status != 0 || !drained(d) || state_all_back(d));
}

static void write_tokens(const struct drive *d)
{
    FILE *out = d->options->tokens;
    const struct trace *t = d->core.setup->trace;
    for (size_t i = 0; out != NULL && i < t->n; i++) {
        const struct real_request *q = &d->requests[i]; /* zero if it has not arrived */
        SIM_ASSERT(state_request_ok(d, q) && (q->tokens == NULL || q->id == t->rows[i].request_id));
        (void)fprintf(out, "%u", t->rows[i].request_id);
        for (uint32_t k = q->input; k < q->n; k++) {
            (void)fprintf(out, " %d", q->tokens[k]);
        }
        (void)fputc('\n', out);
    }
}

/* The host must preempt a device's thread on the same core. */
static void host_priority(struct drive *d, bool on)
{
    struct sched_param p = {.sched_priority = on ? HOST_PRIORITY : 0};
    bool granted = true;
    for (uint32_t i = 0; i < d->machine->n_devices; i++) {
        SIM_ASSERT(d->devices[i].handle != NULL); /* its thread has set lane.granted */
        granted = granted && d->devices[i].lane.granted;
    }
    if (d->wall && d->options->realtime) {
        granted = sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &p) == 0 && granted;
        d->report->realtime = on ? granted : d->report->realtime;
    }
}

static void run(struct drive *d)
{
    SIM_ASSERT(d->core.result->status == 0 && d->compiler.started && d->loader.started);
    host_priority(d, true);
    d->epoch_ns = d->host->now_ns();
    loop(d);
    d->core.result->end_ns = d->now_ns;
    host_priority(d, false);
    if (d->core.result->status != 0) {
        core_dump(&d->core);
    }
    core_audit(&d->core, d->now_ns);
    CORE_OBSERVE(&d->core, run_ended, d->now_ns);
    d->report->token_hash = state_token_hash(d);
    write_tokens(d);
    topk_write(d);
}

static bool loads_graphs(const struct drive_options *o, const struct machine *m)
{
    const struct engine_ops *engine = o->devices[service_device(m)].engine;
    SIM_ASSERT((engine->has & (ENGINE_LOADS | ENGINE_COMPILES)) == 0 || engine->resident != NULL);
    return (engine->has & ENGINE_LOADS) != 0;
}

static struct drive *drive_new(const struct drive_options *o, const struct sim_setup *setup,
                               struct drive_report *report)
{
    struct drive *d = xcalloc(1, sizeof *d);
    d->own.options = *o;
    d->own.machine = *setup->machine;
    d->own.llm = *setup->llm;
    d->options = &d->own.options;
    d->host = o->host != NULL ? o->host : &drive_host_posix;
    d->scratch = o->scratch != NULL ? o->scratch : "/tmp";
    d->main = d->host->thread_self();
    d->report = report;
    d->machine = &d->own.machine;
    d->llm = &d->own.llm;
    d->wall = o->clock == DRIVE_CLOCK_WALL;
    d->hang_ns = units_ns_from_s(o->hang_s > 0.0 ? o->hang_s : DEFAULT_HANG_S);
    d->compile_ns = units_ns_from_s(o->compile_s > 0.0 ? o->compile_s : DEFAULT_COMPILE_S);
    d->limit_ns = units_ns_from_s(o->limit_s > 0.0 ? o->limit_s : DEFAULT_LIMIT_S);
    d->kv.file = -1;
    pthread_mutex_init(&d->mutex, NULL);
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&d->ended, &a);
    pthread_condattr_destroy(&a);
    SIM_ASSERT(d->hang_ns > 0 && d->compile_ns > 0 && d->limit_ns > 0);
    return d;
}

int drive_run(const struct drive_options *o, const struct sim_setup *setup0,
              struct sim_result *result, struct drive_report *report)
{
    memset(report, 0, sizeof *report);
    struct drive *d = drive_new(o, setup0, report);
    struct sim_setup setup = *setup0;
    SIM_REQUIRE(setup.n_observers < SIM_MAX_OBSERVERS, "%u observers", setup.n_observers);
    memmove(setup.observers + 1, setup.observers, setup.n_observers * sizeof *setup.observers);
    setup.observers[0] = &d->observer; /* first, because others may use its request data */
    setup.n_observers++;
    if (!loads_graphs(o, setup.machine)) {
        setup.caps &= ~(uint32_t)CAP_LOAD;
    }
    int rc = core_init(&d->core, &setup, &drive_ops, d, result);
    result->refused = rc != 0 || start(d) != 0;
    if (!result->refused) {
        run(d);
    }
    bool whole = devices_stop(d);
    report->interrupted = report->interrupted || result->status == -EINTR;
    SIM_ASSERT(!report->interrupted || (o->interrupt != NULL && *o->interrupt != 0));
    if (whole) { /* otherwise a hung thread still uses it */
        state_fini(d);
        eventq_fini(&d->queue);
        core_fini(&d->core);
        pthread_cond_destroy(&d->ended);
        pthread_mutex_destroy(&d->mutex);
        free(d);
    }
    return result->status;
}
