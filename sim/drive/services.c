/* Work beside the devices: KV to and from a file, and compiled attention. The loader and the
 * compiler each do one thing after another, as the contract says. */
#include <string.h>

#include "sim/drive/drive_impl.h"

static struct service_job *job_new(struct drive *d)
{
    struct service_job *j = d->free_jobs;
    if (j == NULL) {
        j = arena_alloc(&d->core.arena, sizeof *j);
    } else {
        d->free_jobs = j->next_free;
        memset(j, 0, sizeof *j);
    }
    j->job.run = service_run;
    j->drive = d;
    j->event = EVENTQ_NONE;
    return j;
}

static void job_free(struct drive *d, struct service_job *j)
{
    j->next_free = d->free_jobs;
    d->free_jobs = j;
}

/* The device that compiled attention is for: the one that needs it, else the NPU, else the first.
 */
static struct real_device *compiled_device(struct drive *d)
{
    int npu = machine_find(d->machine, DEVICE_KIND_NPU);
    uint32_t found = npu < 0 ? 0 : (uint32_t)npu;
    for (uint32_t i = d->machine->n_devices; i-- > 0;) {
        found = d->machine->devices[i].static_attention ? i : found;
    }
    return &d->devices[found];
}

void service_run(struct job *job)
{
    struct service_job *j = (struct service_job *)job;
    struct drive *d = j->drive;
    int64_t began = drive_real_ns();
    if (j->work == DRIVE_COMPILE) {
        struct real_device *v = compiled_device(d);
        double bytes = 0.0;
        job->status = v->engine->resident(v->handle, j->key, j->step, &bytes, job->why);
    } else {
        job->status = state_swap(d, j->slot, j->tokens, j->work == DRIVE_SWAP_IN);
        if (job->status != 0) {
            (void)snprintf(job->why, sizeof job->why, "swap file: %s", strerror(-job->status));
        }
    }
    j->took_ns = drive_real_ns() - began;
}

/* On the cpu clock the work is done at once, and has taken its real time when the channel was free.
 */
static void begin(struct drive *d, struct lane *w, struct service_job *j, int64_t *free_ns)
{
    if (d->wall) {
        lane_post(w, &j->job);
        return;
    }
    int rc = lane_call(w, &j->job);
    if (rc != 0) {
        core_fail(&d->core, rc, "%s: %s", w->name,
                  w->hung ? "its work does not come back" : j->job.why);
        return;
    }
    int64_t from = *free_ns > d->now_ns ? *free_ns : d->now_ns;
    *free_ns = from + j->took_ns;
    enum drive_event kind = j->work == DRIVE_COMPILE ? DRIVE_EVENT_COMPILED : DRIVE_EVENT_MOVED;
    j->event = drive_later(d, *free_ns, kind, 0, (uint64_t)(uintptr_t)j);
}

void service_compile(struct drive *d, struct resident *r)
{
    struct service_job *j = job_new(d);
    j->work = DRIVE_COMPILE;
    j->step = ENGINE_STEP_MAKE;
    j->resident = r;
    j->key = r->key;
    j->size = r->key.a;
    r->exec = j;
    if ((compiled_device(d)->engine->has & ENGINE_COMPILES) == 0) { /* nothing to compile */
        j->event = drive_later(d, d->now_ns, DRIVE_EVENT_COMPILED, 0, (uint64_t)(uintptr_t)j);
        return;
    }
    begin(d, &d->compiler, j, &d->compiler_free_ns);
}

static void drop(struct drive *d, struct resident_key key)
{
    if ((compiled_device(d)->engine->has & ENGINE_COMPILES) == 0) {
        return;
    }
    struct service_job *j = job_new(d);
    j->work = DRIVE_COMPILE;
    j->step = ENGINE_STEP_DROP;
    j->key = key;
    begin(d, &d->compiler, j, &d->compiler_free_ns);
}

void service_cancel(struct resident *r)
{
    struct service_job *j = r->exec;
    j->resident = NULL; /* when it comes, it goes */
}

void service_evicted(struct drive *d, struct resident_key key)
{
    if (key.kind == RESIDENT_COMPILED_ATTENTION) {
        drop(d, key);
    }
}

void service_kv(struct drive *d, struct full_request *r, bool in)
{
    struct service_job *j = job_new(d);
    j->work = in ? DRIVE_SWAP_IN : DRIVE_SWAP_OUT;
    j->request = r;
    j->slot = state_request(&r->pub)->slot;
    j->tokens = r->pub.kv_tokens;
    j->size = (double)j->tokens * 2.0 * d->llm->n_layers * d->kv.view.kv_dim * sizeof(uint16_t);
    begin(d, &d->loader, j, &d->loader_free_ns);
}

void service_cold(struct drive *d, uint32_t cold, uint32_t generation)
{
    const struct cold_kv *k = &d->core.cold[cold];
    struct service_job *j = job_new(d);
    j->work = DRIVE_SWAP_OUT;
    j->cold = cold;
    j->generation = generation;
    j->slot = d->turns[k->row].slot;
    j->tokens = k->tokens;
    j->size = (double)j->tokens * 2.0 * d->llm->n_layers * d->kv.view.kv_dim * sizeof(uint16_t);
    begin(d, &d->loader, j, &d->loader_free_ns);
}

void service_done(struct drive *d, struct service_job *j)
{
    struct core *c = &d->core;
    if (j->work == DRIVE_COMPILE) {
        if (j->step == ENGINE_STEP_MAKE) {
            report_resident(d, j);
            if (j->resident != NULL) {
                core_resident_done(c, j->resident);
            } else {
                drop(d, j->key);
            }
        }
    } else {
        report_resident(d, j);
        if (j->request != NULL) {
            if (j->work == DRIVE_SWAP_OUT) {
                state_release(d, j->slot);
            }
            core_kv_moved(c, j->request, j->work == DRIVE_SWAP_IN);
        } else {
            const struct cold_kv *k = &c->cold[j->cold];
            if (k->generation == j->generation && k->state == COLD_MOVING) {
                state_release(d, j->slot);
            }
            core_cold_moved(c, j->cold, j->generation);
        }
    }
    job_free(d, j);
}
