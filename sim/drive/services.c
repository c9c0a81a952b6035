/* Jobs of the loader and the compiler: KV to and from a file, graph blocks, compiled attention.
 * Each of the two runs one at a time, as the contract says. */
#include "sim/core/kv.h"
#include "sim/core/memory.h"
#include "sim/drive/drive_impl.h"

/* For assertions, on the host, which owns a job unless its lane runs it. The compiler handles
 * attention, the loader all else. A pending resident points to its job. */
static bool job_ok(const struct drive *d, const struct service_job *j)
{
    bool compiles = j->work == DRIVE_COMPILE || j->work == DRIVE_EVICT_ATTENTION;
    bool makes = j->work == DRIVE_COMPILE || j->work == DRIVE_LOAD;
    return drive_on_host(d) && j->drive == d && j->work < DRIVE_WORKS &&
           (j->job.lane == NULL || j->job.lane == (compiles ? &d->compiler : &d->loader)) &&
           (j->resident == NULL || (makes && j->resident->exec == j)) &&
           (j->request == NULL || j->work == DRIVE_SWAP_IN || j->work == DRIVE_SWAP_OUT);
}

static struct service_job *job_new(struct drive *d)
{
    struct service_job *j = d->free_jobs;
    if (j == NULL) {
        j = arena_alloc(&d->core.arena, sizeof *j);
    } else {
        d->free_jobs = j->next;
        memset(j, 0, sizeof *j);
    }
    j->job.run = service_run;
    j->drive = d;
    j->event = EVENTQ_NONE;
    SIM_ASSERT(j->resident == NULL && j->request == NULL && j->next == NULL && job_ok(d, j));
    return j;
}

static void job_free(struct drive *d, struct service_job *j)
{
    SIM_ASSERT(drive_on_host(d) && j->event == EVENTQ_NONE && j != d->free_jobs && j != d->makes);
    j->next = d->free_jobs;
    d->free_jobs = j;
}

uint32_t service_device(const struct machine *m)
{
    int npu = machine_find(m, DEVICE_KIND_NPU);
    uint32_t found = npu < 0 ? 0 : (uint32_t)npu;
    for (uint32_t i = m->n_devices; i-- > 0;) {
        found = m->devices[i].static_attention ? i : found;
    }
    SIM_ASSERT(found < m->n_devices);
    return found;
}

static struct real_device *compiled_device(struct drive *d)
{
    struct real_device *v = &d->devices[service_device(d->machine)];
    SIM_ASSERT(v->engine != NULL); /* devices are open */
    return v;
}

/* Returns the graph shape that the policy declared for the block, or NULL. NULL also for a
 * drafter's weights, which use memory of graphs but are no block. */
static const struct graph_shape *graph_of(const struct drive *d, struct resident_key key)
{
    bool graph = key.kind == RESIDENT_GRAPH_BLOCK && key.b <= GRAPH_VERSIONS;
    const struct graph_shape *g = &d->core.graphs[graph ? key.b : 0];
    SIM_ASSERT(d->core.graphs[0].n_blocks == 0 && g->n_blocks <= d->llm->n_layers);
    return key.a < g->n_blocks ? g : NULL;
}

static struct engine_resident engine_resident(const struct drive *d, struct resident_key key)
{
    struct engine_resident r = {.key = key};
    const struct graph_shape *g = graph_of(d, key);
    if (g != NULL) {
        uint64_t layers = d->llm->n_layers;
        uint32_t end = (uint32_t)(layers * (key.a + 1) / g->n_blocks);
        r.layer0 = (uint32_t)(layers * key.a / g->n_blocks);
        r.n_layers = end - r.layer0;
        r.head = end == d->llm->n_layers;
        r.rows = g->rows;
        SIM_ASSERT(r.n_layers > 0 && end <= d->llm->n_layers && r.rows > 0);
        SIM_ASSERT(r.head == (key.a + 1 == g->n_blocks)); /* the last block has the head */
    }
    return r;
}

void service_run(struct job *job)
{
    struct service_job *j = (struct service_job *)job;
    struct drive *d = j->drive;
    SIM_ASSERT(lane_runs(job->lane, job)); /* so this thread owns the job */
    int64_t began = d->host->now_ns();
    if (j->work == DRIVE_SWAP_OUT || j->work == DRIVE_SWAP_IN) {
        job->status = slot_swap(d, j->slot, j->tokens, j->work == DRIVE_SWAP_IN);
        if (job->status != 0) {
            (void)snprintf(job->why, sizeof job->why, "swap file: %s", strerror(-job->status));
        }
    } else {
        struct real_device *v = compiled_device(d);
        struct engine_resident r = engine_resident(d, j->key);
        job->status = v->engine->resident(v->handle, &r, j->step, job->why);
    }
    j->took_ns = d->host->now_ns() - began;
    SIM_ASSERT(j->took_ns >= 0);
}

/* Starts a job. On the cpu clock it runs at once, and takes its real time from when its lane is
 * free. */
static void begin(struct drive *d, struct lane *w, struct service_job *j, int64_t *free_ns)
{
    SIM_ASSERT(job_ok(d, j) && j->event == EVENTQ_NONE);
    SIM_ASSERT(free_ns == (w == &d->compiler ? &d->compiler_free_ns : &d->loader_free_ns));
    if (d->wall) {
        lane_post(w, &j->job);
        return;
    }
    int rc = lane_call(w, &j->job, w == &d->compiler ? d->compile_ns : d->hang_ns);
    if (rc != 0) {
        core_fail(&d->core, rc, "%s: %s", w->name, lane_why(&j->job, rc));
        return;
    }
    int64_t from = *free_ns > d->now_ns ? *free_ns : d->now_ns;
    SIM_ASSERT(job_ok(d, j) && from + j->took_ns >= *free_ns); /* one after another */
    *free_ns = from + j->took_ns;
    enum drive_event kind = w == &d->compiler ? DRIVE_EVENT_COMPILED : DRIVE_EVENT_MOVED;
    j->event = drive_later(d, *free_ns, kind, 0, (uint64_t)(uintptr_t)j);
}

/* Makes the job that creates resident r, and links both. NULL if a cancelled job for this key is in
 * progress: it is used again, as a second one would create the resident twice. */
static struct service_job *make_new(struct drive *d, struct resident *r, enum drive_work work,
                                    double size)
{
    for (struct service_job *j = d->makes; j != NULL; j = j->next) {
        if (j->resident == NULL && memcmp(&j->key, &r->key, sizeof j->key) == 0) {
            j->resident = r;
            r->exec = j;
            SIM_ASSERT(job_ok(d, j) && j->work == work);
            return NULL;
        }
        SIM_ASSERT(job_ok(d, j) && memcmp(&j->key, &r->key, sizeof j->key) != 0);
    }
    struct service_job *j = job_new(d);
    j->work = work;
    j->step = ENGINE_STEP_MAKE;
    j->resident = r;
    j->key = r->key;
    j->size = size;
    r->exec = j;
    j->next = d->makes;
    d->makes = j;
    SIM_ASSERT(job_ok(d, j) && r->state == RESIDENT_PENDING);
    return j;
}

static void make_over(struct drive *d, const struct service_job *j)
{
    struct service_job **at = &d->makes;
    while (*at != j) {
        SIM_ASSERT(*at != NULL); /* it is in the list */
        at = &(*at)->next;
    }
    *at = j->next;
}

void service_compile(struct drive *d, struct resident *r)
{
    SIM_ASSERT(r->key.kind == RESIDENT_COMPILED_ATTENTION);
    struct service_job *j = make_new(d, r, DRIVE_COMPILE, r->key.a);
    if (j == NULL) {
        return;
    }
    if ((compiled_device(d)->engine->has & ENGINE_COMPILES) == 0) { /* nothing to compile */
        j->event = drive_later(d, d->now_ns, DRIVE_EVENT_COMPILED, 0, (uint64_t)(uintptr_t)j);
        return;
    }
    begin(d, &d->compiler, j, &d->compiler_free_ns);
}

void service_load(struct drive *d, struct resident *r, double bytes)
{
    SIM_ASSERT(r->key.kind == RESIDENT_GRAPH_BLOCK && bytes > 0.0 && d->loader.started);
    if (graph_of(d, r->key) == NULL) {
        core_fail(&d->core, -EINVAL,
                  "graph version %u of block %u, %.0f bytes: the policy has not said what it is "
                  "(sched_graph)",
                  r->key.b, r->key.a, bytes);
        return;
    }
    struct service_job *j = make_new(d, r, DRIVE_LOAD, bytes);
    if (j != NULL) {
        begin(d, &d->loader, j, &d->loader_free_ns);
    }
}

/* The compiler drops attention, and the loader graphs, so that a drop follows the creation. */
static void drop(struct drive *d, struct resident_key key)
{
    bool graph = key.kind == RESIDENT_GRAPH_BLOCK;
    const struct graph_shape *g = graph_of(d, key);
    if (graph ? g == NULL : (compiled_device(d)->engine->has & ENGINE_COMPILES) == 0) {
        return;
    }
    SIM_ASSERT(graph || key.kind == RESIDENT_COMPILED_ATTENTION); /* weights stay */
    struct service_job *j = job_new(d);
    j->work = graph ? DRIVE_EVICT : DRIVE_EVICT_ATTENTION;
    j->step = ENGINE_STEP_DROP;
    j->key = key;
    j->size = graph ? d->llm->weight_bytes / g->n_blocks : key.a;
    begin(d, graph ? &d->loader : &d->compiler, j,
          graph ? &d->loader_free_ns : &d->compiler_free_ns);
}

/* Runs one step for one block before the run, and waits for it. */
static int graph_step(struct drive *d, struct resident_key key, enum engine_step step)
{
    struct service_job *j = job_new(d);
    j->work = DRIVE_LOAD;
    j->step = step;
    j->key = key;
    SIM_ASSERT(job_ok(d, j) && d->now_ns == 0 && d->makes == NULL && step != ENGINE_STEP_DROP);
    int64_t limit_ns = step == ENGINE_STEP_PREPARE ? d->compile_ns : d->hang_ns;
    int rc = lane_call(&d->loader, &j->job, limit_ns);
    if (rc != 0) {
        core_fail(&d->core, rc, "graph version %u of block %u: %s", key.b, key.a,
                  lane_why(&j->job, rc));
    } else {
        job_free(d, j);
    }
    return rc;
}

int service_graphs(struct drive *d)
{
    struct core *c = &d->core;
    SIM_ASSERT(d->loader.started && c->n_live == 0);
    int rc = 0;
    struct resident_key each = {RESIDENT_GRAPH_BLOCK, 0, 1};
    for (; each.b <= GRAPH_VERSIONS; each.b++) {
        for (each.a = 0; each.a < c->graphs[each.b].n_blocks && rc == 0; each.a++) {
            rc = graph_step(d, each, ENGINE_STEP_PREPARE);
        }
    }
    uint32_t at = 0;
    for (const struct resident *r; rc == 0 && (r = resident_next(c, &at)) != NULL;) {
        if (graph_of(d, r->key) != NULL) {
            rc = graph_step(d, r->key, ENGINE_STEP_MAKE);
        }
    }
    return rc;
}

void service_cancel(struct resident *r)
{
    struct service_job *j = r->exec;
    SIM_ASSERT(j->resident == r && job_ok(j->drive, j));
    j->resident = NULL; /* service_done drops it */
}

void service_evicted(struct drive *d, struct resident_key key)
{
    drop(d, key);
}

void service_kv(struct drive *d, struct full_request *r, bool in)
{
    struct service_job *j = job_new(d);
    j->work = in ? DRIVE_SWAP_IN : DRIVE_SWAP_OUT;
    j->request = r;
    j->slot = state_request(r->pub)->slot;
    j->tokens = r->pub->kv_tokens;
    SIM_ASSERT(j->tokens > 0 && j->tokens <= state_request(r->pub)->n);
    j->size = (double)j->tokens * 2.0 * d->llm->n_layers * d->kv.view.kv_dim * sizeof(uint16_t);
    begin(d, &d->loader, j, &d->loader_free_ns);
}

void service_cold(struct drive *d, uint32_t row)
{
    const struct cold_kv *k = cold_of(&d->core, row);
    SIM_ASSERT(k->state == COLD_MOVING && d->turns[row].tokens != NULL);
    SIM_ASSERT(k->tokens > 0 && k->tokens <= d->turns[row].n);
    struct service_job *j = job_new(d);
    j->work = DRIVE_SWAP_OUT;
    j->cold = row;
    j->slot = d->turns[row].slot;
    j->tokens = k->tokens;
    j->size = (double)j->tokens * 2.0 * d->llm->n_layers * d->kv.view.kv_dim * sizeof(uint16_t);
    begin(d, &d->loader, j, &d->loader_free_ns);
}

void service_done(struct drive *d, struct service_job *j)
{
    struct core *c = &d->core;
    SIM_ASSERT(job_ok(d, j) && j->job.status == 0 && j->event == EVENTQ_NONE);
    SIM_ASSERT(j->resident == NULL || j->resident->state == RESIDENT_PENDING);
    SIM_ASSERT(j->request == NULL || j->request->kv_moving);
    report_resident(d, j);
    if (j->work == DRIVE_COMPILE || j->work == DRIVE_LOAD) {
        make_over(d, j);
        if (j->resident != NULL) {
            core_resident_done(c, j->resident);
        } else {
            drop(d, j->key);
        }
    } else if (j->request != NULL) {
        if (j->work == DRIVE_SWAP_OUT) {
            slot_release(d, j->slot);
        }
        core_kv_moved(c, j->request, j->work == DRIVE_SWAP_IN);
    } else if (j->work == DRIVE_SWAP_OUT) { /* of a session between turns */
        const struct cold_kv *k = cold_of(c, j->cold);
        if (k != NULL && k->state == COLD_MOVING) {
            slot_release(d, j->slot);
        }
        core_cold_moved(c, j->cold);
    }
    job_free(d, j);
}
