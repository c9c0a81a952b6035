/* A device keeps its kernels within a budget. When a launch needs a new one, kernels that no launch
 * uses are evicted, in LRU order. A launch is never refused: its own kernels may exceed the budget,
 * and are evicted after it. */
#include "sim/core/memory.h"
#include "sim/engine/engine.h"

void buffers_init(struct engine *e)
{
    for (uint32_t i = 0; i < e->core.setup->machine->n_devices; i++) {
        e->has_buffers = e->has_buffers || e->core.setup->kernels[i].budget_bytes > 0.0;
    }
    if (e->has_buffers) {
        e->buffers = arena_alloc(&e->core.arena, MACHINE_MAX_DEVICES * sizeof *e->buffers);
        e->core.result->kernel_memory.known = true;
    }
}

/* ---- kernels of a device ---- */

static double bytes_of(const struct engine *e, uint8_t device, uint32_t model, uint32_t rows)
{
    const struct sim_kernel_memory *k = &e->core.setup->kernels[device];
    double hidden = e->core.models[model].llm->hidden;
    return k->instructions_bytes + k->buffer_bytes * hidden * (double)rows;
}

/* Whether compiled attention counts in the device's budget. Only policies evict it. */
static bool compiles(const struct engine *e, uint8_t device)
{
    return e->core.setup->machine->devices[device].static_attention &&
           e->core.setup->kernels[device].budget_bytes > 0.0;
}

/* Bytes of kernels, and of compiled attention, which is a resident. */
static double held_bytes(const struct engine *e, uint8_t device)
{
    double bytes = e->buffers[device].bytes;
    uint32_t at = 0;
    for (const struct resident *r;
         compiles(e, device) && (r = resident_next(&e->core, &at)) != NULL;) {
        bool its = r->key.kind == RESIDENT_COMPILED_ATTENTION;
        bytes += its ? bytes_of(e, device, r->key.b, r->key.a) : 0.0;
    }
    return bytes;
}

/* Evicts unused kernels until `more` bytes fit the budget. */
static void collect(struct engine *e, uint8_t device, double more)
{
    struct device_buffers *d = &e->buffers[device];
    double budget = e->core.setup->kernels[device].budget_bytes;
    for (struct ranked *x = d->kernels.first, *after; x != NULL; x = after) {
        struct kernel_buffer *b = (struct kernel_buffer *)x;
        after = x->after;
        if (held_bytes(e, device) + more <= budget) {
            return;
        }
        if (b->uses == 0) {
            ranked_remove(&d->kernels, x);
            /* Exactly 0 at the end, without rounding errors. */
            d->bytes = d->kernels.first != NULL ? d->bytes - b->bytes : 0.0;
            FREE_PUT(e->free_buffers, b);
            e->core.result->kernel_memory.evictions++;
        }
    }
}

static void note_peak(struct engine *e)
{
    double bytes = 0.0;
    for (uint8_t i = 0; i < e->core.setup->machine->n_devices; i++) {
        bytes += held_bytes(e, i);
    }
    double *peak = &e->core.result->kernel_memory.peak_bytes;
    *peak = bytes > *peak ? bytes : *peak;
}

/* ---- kernels of a launch ---- */

/* Static kernels have the chunk's rows. Others are built for the next power of two, as allocators
 * and caches of dynamic shapes do. One row has its own kernel. */
static uint32_t built_rows(const struct launch *l, enum op_kind op, uint32_t rows)
{
    if (rows > 1 && l->chunk_rows > 0 && op != OP_MHA) {
        return l->chunk_rows;
    }
    uint32_t built = 1;
    while (built < rows && built <= UINT32_MAX / 2) {
        built *= 2;
    }
    return built;
}

static struct kernel_buffer *add(struct engine *e, uint8_t device, uint32_t model, enum op_kind op,
                                 uint32_t rows)
{
    double bytes = bytes_of(e, device, model, rows);
    collect(e, device, bytes);
    struct kernel_buffer *b;
    FREE_TAKE(e->free_buffers, &e->core.arena, b);
    *b = (struct kernel_buffer){.model = model, .rows = rows, .op = op, .bytes = bytes};
    e->buffers[device].bytes += bytes;
    note_peak(e);
    return b;
}

/* A kernel that a launch needs. */
struct need {
    enum op_kind op;
    uint32_t rows;           /* that it is built for */
    struct kernel_buffer *b; /* NULL: not loaded */
};

static struct kernel_buffer *find(const struct device_buffers *d, uint32_t model,
                                  const struct need *x)
{
    struct kernel_buffer *b = (struct kernel_buffer *)d->kernels.last;
    while (b != NULL && (b->model != model || b->op != x->op || b->rows != x->rows)) {
        b = (struct kernel_buffer *)b->place.before;
    }
    return b;
}

/* Makes a launch use its kernels. Those that are there are taken first, so that a load evicts none
 * of them. Returns how many had to be loaded. */
static uint32_t hold(struct engine *e, struct vexec *v, struct need *needs, uint32_t n)
{
    const struct launch *l = v->l->pub;
    struct device_buffers *d = &e->buffers[l->device];
    uint32_t model = l->pass->shape.model;
    uint32_t loads = 0;
    for (uint32_t i = 0; i < n; i++) {
        needs[i].b = find(d, model, &needs[i]);
        if (needs[i].b != NULL) {
            needs[i].b->uses++;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        struct kernel_buffer *b = needs[i].b;
        if (b == NULL) {
            b = add(e, l->device, model, needs[i].op, needs[i].rows);
            b->uses = 1;
            loads++;
        } else {
            ranked_remove(&d->kernels, &b->place);
        }
        ranked_add(&d->kernels, &b->place);
        v->buffers[v->n_buffers++] = b;
    }
    return loads;
}

int64_t buffers_take(struct engine *e, struct vexec *v)
{
    const struct launch *l = v->l->pub;
    const struct sim_kernel_memory *k = &e->core.setup->kernels[l->device];
    bool compiled = e->core.setup->machine->devices[l->device].static_attention;
    struct need needs[OP_KIND_COUNT];
    uint32_t n = 0;
    v->n_buffers = 0;
    if (k->budget_bytes <= 0.0 || l->graph > 0) { /* a graph block contains its kernels */
        return 0;
    }
    uint32_t seen = 0;
    for (uint32_t op = l->op_begin; op < l->op_end; op++) { /* all layers have equal ops */
        enum op_kind kind = pass_op_kind(l->pass, op);
        uint32_t rows = op == l->op_begin ? l->rows : pass_op_rows(l->pass, op);
        bool is_resident = kind == OP_MHA && compiled;
        if ((seen & 1u << kind) == 0 && !is_resident) {
            seen |= 1u << kind;
            needs[n++] = (struct need){kind, built_rows(l, kind, rows), NULL};
        }
    }
    uint32_t loads = hold(e, v, needs, n);
    e->core.result->kernel_memory.loads += loads;
    e->core.result->kernel_memory.load_ns += loads * k->load_ns;
    return loads * k->load_ns;
}

void buffers_release(struct engine *e, struct vexec *v)
{
    for (uint32_t i = 0; i < v->n_buffers; i++) {
        SIM_ASSERT(v->buffers[i]->uses > 0);
        v->buffers[i]->uses--;
    }
    v->n_buffers = 0;
    collect(e, v->job.device, 0.0);
}

void buffers_compiled(struct engine *e)
{
    for (uint8_t i = 0; i < e->core.setup->machine->n_devices; i++) {
        if (compiles(e, i)) {
            collect(e, i, 0.0);
            note_peak(e);
        }
    }
}

bool buffers_consistent(const struct engine *e)
{
    for (uint32_t i = 0; e->has_buffers && i < e->core.setup->machine->n_devices; i++) {
        const struct device_buffers *d = &e->buffers[i];
        double bytes = 0.0;
        const struct ranked *before = NULL;
        for (const struct ranked *x = d->kernels.first; x != NULL; before = x, x = x->after) {
            const struct kernel_buffer *b = (const struct kernel_buffer *)x;
            SIM_ASSERT(x->before == before && b->bytes >= 0.0);
            bytes += b->bytes;
        }
        SIM_ASSERT(d->kernels.last == before);
        SIM_ASSERT(fabs(bytes - d->bytes) <= 1e-9 * (1.0 + bytes));
    }
    return true;
}
