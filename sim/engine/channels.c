/* The loader (graph blocks, KV moves: one serial channel that uses DDR) and the compiler (one CPU
 * thread). Both are FIFO; the head item is in progress. */
#include "sim/engine/ddr.h"
#include "sim/engine/power.h"

static struct channel_item *item_new(struct engine *e, struct channel *ch)
{
    struct channel_item *it;
    FREE_TAKE(ch->free_items, &e->core.arena, it);
    *it = (struct channel_item){0};
    return it;
}

/* The head begins. The loader stays among the jobs from item to item: it never stops using the DDR
 * between them. */
static void begin(struct engine *e, struct channel *ch)
{
    const struct channel_item *it = ch->head;
    SIM_ASSERT(it != NULL && !ch->job.waits);
    if (ch == &e->compiler) {
        job_wait(e, &ch->job, engine_after(e, it->isolated_ns));
        power_compiler(e, true);
        return;
    }
    job_start(e, &ch->job, it->isolated_ns, it->bytes);
    power_load(e, it->resident != NULL && it->resident->key.kind == RESIDENT_WEIGHTS);
    if (!ch->job.active) {
        ddr_join(e, &ch->job);
    }
}

static void append(struct engine *e, struct channel *ch, struct channel_item *it)
{
    SIM_ASSERT(it->next == NULL && (ch->head == NULL) == (ch->tail == NULL));
    SIM_ASSERT(it->isolated_ns >= 0.0 && it->bytes >= 0.0);
    bool idle = ch->tail == NULL;
    *(idle ? &ch->head : &ch->tail->next) = it;
    ch->tail = it;
    if (idle) {
        begin(e, ch);
    }
}

static void drop_head(struct channel *ch)
{
    struct channel_item *it = ch->head;
    ch->head = it->next;
    ch->tail = it->next != NULL ? ch->tail : NULL;
    FREE_PUT(ch->free_items, it);
}

/* Who brings it: attention is compiled, and all else is loaded. */
static struct channel *channel_of(struct engine *e, struct resident_key key)
{
    return key.kind == RESIDENT_COMPILED_ATTENTION ? &e->compiler : &e->loader;
}

void channel_load(void *exec, struct resident *r, double bytes)
{
    struct engine *e = exec;
    const struct machine *m = e->core.setup->machine;
    struct channel_item *it = item_new(e, &e->loader);
    it->resident = r;
    it->bytes = bytes;
    if (bytes > 0.0) {
        it->isolated_ns = (double)m->loader_fixed_ns + ceil(bytes / m->loader_bytes_per_s * 1e9);
    }
    append(e, &e->loader, it);
}

void channel_kv_move(void *exec, struct full_request *r, uint32_t row, double bytes, bool in)
{
    struct engine *e = exec;
    const struct machine *m = e->core.setup->machine;
    struct channel_item *it = item_new(e, &e->loader);
    it->request = r;
    it->cold = row;
    it->in = in;
    it->bytes = bytes;
    it->isolated_ns = (double)m->swap_fixed_ns + ceil(bytes / m->swap_bytes_per_s * 1e9);
    append(e, &e->loader, it);
}

void channel_compile(void *exec, struct resident *r, int64_t duration_ns)
{
    struct engine *e = exec;
    buffers_compiled(e, r->key, true);
    struct channel_item *it = item_new(e, &e->compiler);
    it->resident = r;
    it->isolated_ns = (double)duration_ns;
    append(e, &e->compiler, it);
}

void channel_evicted(void *exec, struct resident_key key)
{
    struct engine *e = exec;
    buffers_compiled(e, key, false);
    const struct machine *m = e->core.setup->machine;
    struct channel *ch = channel_of(e, key);
    int64_t ns = ch == &e->loader ? m->loader_evict_ns : m->compile_evict_ns;
    if (ns == 0) {
        return; /* an event more at this instant would be one for nothing */
    }
    struct channel_item *it = item_new(e, ch);
    it->cold = TRACE_NO_ROW;
    it->isolated_ns = (double)ns;
    append(e, ch, it);
}

static void next(struct engine *e, struct channel *ch)
{
    if (ch->head != NULL) {
        begin(e, ch);
    } else if (ch == &e->compiler) {
        power_compiler(e, false);
    } else {
        ddr_leave(e, &ch->job);
        power_load(e, false);
    }
}

void channel_event(struct engine *e, struct channel *ch)
{
    SIM_REQUIRE(ch->head != NULL, "an idle channel ends something");
    SIM_ASSERT(ch->job.active == (ch == &e->loader));
    /* A copy, and the next item begins before the core hears of this one: what the core does now
     * may append, and finds the channel as it is then. */
    struct channel_item it = *ch->head;
    drop_head(ch);
    next(e, ch);
    if (it.resident != NULL) {
        core_resident_done(&e->core, it.resident);
    } else if (it.request != NULL) {
        SIM_ASSERT(it.request->alive); /* who is cancelled stays until its KV has moved */
        core_kv_moved(&e->core, it.request, it.in);
    } else if (it.cold != TRACE_NO_ROW) {
        core_cold_moved(&e->core, it.cold);
    }
}

/* A pending resident leaves its channel. The head was under way: what comes behind it begins now,
 * for all of its time. */
void channel_cancel(void *exec, struct resident *r)
{
    struct engine *e = exec;
    struct channel *ch = channel_of(e, r->key);
    buffers_compiled(e, r->key, false);
    SIM_REQUIRE(ch->head != NULL, "a resident that nobody brings is cancelled");
    if (ch->head->resident == r) {
        job_wait_over(e, &ch->job);
        drop_head(ch);
        next(e, ch);
        return;
    }
    struct channel_item *before = ch->head;
    while (before->next != NULL && before->next->resident != r) {
        before = before->next;
    }
    struct channel_item *it = before->next;
    SIM_REQUIRE(it != NULL, "a resident that nobody brings is cancelled");
    before->next = it->next;
    ch->tail = ch->tail == it ? before : ch->tail;
    FREE_PUT(ch->free_items, it);
}
