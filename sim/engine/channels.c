/* The loader (graph blocks, KV moves: one serial channel that uses DDR) and the compiler (one CPU
 * thread). Both are FIFO; the first item is in progress. */
#include "sim/engine/ddr.h"
#include "sim/engine/power.h"

/* Starts the first item. The loader stays active between consecutive items, because it uses the DDR
 * without a pause. */
static void begin(struct engine *e, struct channel *ch)
{
    const struct channel_item *it = (const struct channel_item *)ch->items.first;
    SIM_ASSERT(it != NULL && !ch->job.waits);
    if (ch == &e->compiler) {
        job_wait(e, &ch->job, engine_after(e, it->isolated_ns));
    } else {
        job_start(e, &ch->job, it->isolated_ns, it->bytes);
        if (!ch->job.active) {
            ddr_join(e, &ch->job);
        }
    }
    power_channels(e);
}

static struct channel_item *append(struct engine *e, struct channel *ch, struct channel_item item)
{
    SIM_ASSERT(item.isolated_ns >= 0.0 && item.bytes >= 0.0);
    bool idle = ch->items.first == NULL;
    struct channel_item *it;
    FREE_TAKE(e->free_items, &e->core.arena, it);
    *it = item;
    ranked_add(&ch->items, &it->place);
    if (idle) {
        begin(e, ch);
    }
    return it;
}

static void drop(struct engine *e, struct channel *ch, struct channel_item *it)
{
    ranked_remove(&ch->items, &it->place);
    FREE_PUT(e->free_items, it);
}

void channel_load(void *exec, struct resident *r, double bytes)
{
    struct engine *e = exec;
    const struct machine *m = e->core.setup->machine;
    double ns = (double)m->loader_fixed_ns + ceil(bytes / m->loader_bytes_per_s * 1e9);
    r->exec = append(e, &e->loader,
                     (struct channel_item){
                         .resident = r, .bytes = bytes, .isolated_ns = bytes > 0.0 ? ns : 0.0});
}

void channel_kv_move(void *exec, struct full_request *r, uint32_t row, double bytes, bool in)
{
    struct engine *e = exec;
    const struct machine *m = e->core.setup->machine;
    double ns = (double)m->swap_fixed_ns + ceil(bytes / m->swap_bytes_per_s * 1e9);
    append(e, &e->loader,
           (struct channel_item){
               .request = r, .cold = row, .in = in, .bytes = bytes, .isolated_ns = ns});
}

void channel_compile(void *exec, struct resident *r, int64_t duration_ns)
{
    struct engine *e = exec;
    buffers_compiled(e);
    r->exec = append(e, &e->compiler,
                     (struct channel_item){.resident = r, .isolated_ns = (double)duration_ns});
}

static void next(struct engine *e, struct channel *ch)
{
    if (ch->items.first != NULL) {
        begin(e, ch);
        return;
    }
    ddr_leave(e, &ch->job);
    power_channels(e);
}

void channel_event(struct engine *e, struct channel *ch)
{
    struct channel_item *first = (struct channel_item *)ch->items.first;
    SIM_REQUIRE(first != NULL, "an idle channel ends something");
    SIM_ASSERT(ch->job.active == (ch == &e->loader));
    /* Copy the item, drop it and start the next one before notifying the core, which may append
     * items to the channel. */
    struct channel_item it = *first;
    drop(e, ch, first);
    next(e, ch);
    if (it.resident != NULL) {
        core_resident_done(&e->core, it.resident);
    } else if (it.request != NULL) {
        SIM_ASSERT(it.request->alive); /* a cancelled request stays until its KV has moved */
        core_kv_moved(&e->core, it.request, it.in);
    } else if (it.cold != TRACE_NO_ROW) {
        core_cold_moved(&e->core, it.cold);
    }
}

/* Removes a pending resident from its channel; if it was in progress, the next item starts now. The
 * eviction of a ready one occupies the channel, for a time that the machine states. */
void channel_drop(void *exec, struct resident *r)
{
    struct engine *e = exec;
    const struct machine *m = e->core.setup->machine;
    bool compiled = r->key.kind == RESIDENT_COMPILED_ATTENTION; /* others are loaded */
    struct channel *ch = compiled ? &e->compiler : &e->loader;
    struct channel_item *it = r->exec;
    int64_t ns = compiled ? m->compile_evict_ns : m->loader_evict_ns;
    if (r->state == RESIDENT_READY && ns > 0) { /* no event without a cost */
        append(e, ch, (struct channel_item){.cold = TRACE_NO_ROW, .isolated_ns = (double)ns});
    } else if (r->state == RESIDENT_PENDING) {
        SIM_REQUIRE(it != NULL && it->resident == r, "a resident that nobody brings is dropped");
        bool under_way = ch->items.first == &it->place;
        drop(e, ch, it);
        if (under_way) {
            job_wait_over(e, &ch->job);
            next(e, ch);
        }
    }
}
