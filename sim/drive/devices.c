/* Opens engines and devices before the run, and closes them after it. The compiler's thread opens
 * engines; each device is opened and closed by the thread that runs its kernels. */
#include "sim/drive/drive_impl.h"

static void open_engine(struct job *j)
{
    struct opened *e = (struct opened *)j;
    const struct drive *d = j->lane->drive;
    SIM_ASSERT(lane_runs(&d->compiler, j) && e->handle == NULL);
    const struct engine_options o = {
        .llm = d->llm, .kv = &d->kv.view, .scratch = d->scratch, .cache = d->options->cache};
    j->status = e->ops->open(&o, &e->handle, j->why);
    SIM_ASSERT(j->status <= 0 && (j->status != 0 || e->handle != NULL));
}

static const char *why_not_open(const struct job *j, int rc)
{
    return rc == -ETIMEDOUT ? "opening it does not come back" : lane_why(j, rc);
}

/* Opens engines on the compiler's thread, so that the host can detect a hang. */
static int engine_handle(struct drive *d, const struct engine_ops *ops, void **handle)
{
    for (uint32_t i = 0; i < d->n_engines; i++) {
        if (d->engines[i].ops == ops) {
            *handle = d->engines[i].handle;
            return 0;
        }
    }
    /* Each device has one engine, so there are at most as many engines as devices. */
    SIM_ASSERT(d->n_engines < d->machine->n_devices && d->compiler.started);
    struct opened *e = &d->engines[d->n_engines];
    *e = (struct opened){.job.run = open_engine, .ops = ops};
    int rc = lane_call(&d->compiler, &e->job, d->compile_ns);
    if (rc != 0) {
        return core_fail(&d->core, rc, "engine %s: %s", ops->name, why_not_open(&e->job, rc));
    }
    *handle = e->handle;
    d->n_engines++;
    return 0;
}

/* Called on the opening thread. Each compiled kernel shows that it does not hang. */
static void kernel_compiled(void *self, uint32_t done, uint32_t n)
{
    struct lane *w = self;
    struct drive *d = w->drive;
    SIM_ASSERT(lane_runs(w, w->running) && done <= n);
    w->began_ns = d->host->now_ns();
    if (d->options->compiled != NULL) {
        d->options->compiled(w->name, done, n);
    }
}

static void open_device(struct job *j)
{
    struct real_device *v = (struct real_device *)((char *)j - offsetof(struct real_device, job));
    const struct device *desc = &j->lane->drive->machine->devices[v->index];
    SIM_ASSERT(lane_runs(&v->lane, j) && v->handle == NULL); /* the thread of its kernels, too */
    const struct engine_device_options o = {.name = v->options->name,
                                            .index = v->index,
                                            .static_rows = desc->chunk_rows,
                                            .static_attention = desc->static_attention,
                                            .compiled = kernel_compiled,
                                            .self = j->lane};
    j->status = v->engine->device_open(v->engine_handle, &o, &v->handle, j->why);
    SIM_ASSERT(j->status <= 0 && (j->status != 0 || v->handle != NULL)); /* needed to close it */
}

static void close_device(struct job *j)
{
    struct real_device *v = (struct real_device *)((char *)j - offsetof(struct real_device, job));
    SIM_ASSERT(lane_runs(&v->lane, j));
    v->engine->device_close(v->handle);
}

int device_start(struct drive *d, uint32_t i)
{
    struct real_device *v = &d->devices[i];
    const struct drive_device *o = &d->options->devices[i];
    SIM_ASSERT(drive_on_host(d) && i < d->machine->n_devices && v->live == NULL);
    v->options = o;
    v->engine = o->engine;
    v->index = i;
    v->live = arena_alloc(&d->core.arena,
                          d->machine->devices[i].inflight_depth * sizeof(struct real_launch *));
    int rc = engine_handle(d, o->engine, &v->engine_handle);
    if (rc != 0) {
        return rc;
    }
    bool realtime = d->wall && d->options->realtime;
    rc = lane_start(&v->lane, d, d->machine->devices[i].name, o->core, realtime);
    if (rc != 0) {
        return core_fail(&d->core, rc, "no thread for device %s", d->machine->devices[i].name);
    }
    v->job.run = open_device;
    SIM_ASSERT(v->n_live == 0 && d->n_engines > 0 && d->n_engines <= i + 1);
    /* compile_ns, because opening compiles kernels, which may take minutes. */
    rc = lane_call(&v->lane, &v->job, d->compile_ns);
    return rc == 0 ? 0
                   : core_fail(&d->core, rc, "device %s (%s on engine %s): %s",
                               d->machine->devices[i].name, o->name, o->engine->name,
                               why_not_open(&v->job, rc));
}

bool devices_stop(struct drive *d)
{
    drive_kill(d);
    lane_stop(&d->loader); /* first, because they use the devices */
    lane_stop(&d->compiler);
    bool whole = !d->loader.hung && !d->compiler.hung;
    for (uint32_t i = 0; i < d->machine->n_devices; i++) {
        struct real_device *v = &d->devices[i];
        if (whole && v->lane.started && !v->lane.hung && v->handle != NULL) {
            v->job.run = close_device;
            (void)lane_call(&v->lane, &v->job, d->hang_ns);
        }
        lane_stop(&v->lane);
        whole = whole && !v->lane.hung;
        SIM_ASSERT(!whole || v->lane.running == NULL);
    }
    SIM_ASSERT(!whole || (d->loader.running == NULL && d->compiler.running == NULL && !d->locked));
    for (uint32_t i = 0; whole && i < d->n_engines; i++) {
        d->engines[i].ops->close(d->engines[i].handle);
    }
    return whole;
}
