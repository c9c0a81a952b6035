/* The loader (graph blocks, KV moves: one serial channel that uses DDR) and the compiler (one CPU
 * thread). Both are FIFO; the head item is in progress. */
#include "sim/engine/advance.h"
#include "sim/engine/power.h"

static struct channel_item *item_new(struct engine *e, struct channel *ch)
{
    struct channel_item *it = ch->free_items;
    if (it == NULL) {
        it = arena_alloc(&e->core.arena, sizeof *it);
    } else {
        ch->free_items = it->next;
        *it = (struct channel_item){0};
    }
    return it;
}

static void loader_begin(struct engine *e)
{
    struct channel *ch = &e->loader;
    SIM_ASSERT(ch->head != NULL);
    const struct resident *r = ch->head->resident;
    advance_notice(e);
    job_start(e, &ch->job, ch->head->solo_ns, ch->head->bytes);
    power_load(e, r != NULL && r->key.kind == RESIDENT_WEIGHTS);
    /* From item to item it stays among the jobs: it never stops using the DDR between them. */
    if (!ch->job.active) {
        ddr_join(e, &ch->job);
    }
}

static void compiler_begin(struct engine *e)
{
    struct channel *ch = &e->compiler;
    SIM_ASSERT(ch->head != NULL && ch->event == EVENTQ_NONE);
    ch->event = eventq_push(&e->queue, engine_after(e, ch->head->solo_ns),
                            engine_order(e, EVENT_COMPILE, 0), 0);
}

static void append(struct channel *ch, struct channel_item *it)
{
    SIM_ASSERT(it->next == NULL && (ch->head == NULL) == (ch->tail == NULL));
    SIM_ASSERT(it->solo_ns >= 0.0 && it->bytes >= 0.0);
    if (ch->tail == NULL) {
        ch->head = it;
    } else {
        ch->tail->next = it;
    }
    ch->tail = it;
}

static struct channel_item *take_head(struct channel *ch)
{
    struct channel_item *it = ch->head;
    SIM_REQUIRE(it != NULL, "an idle channel ends something");
    ch->head = it->next;
    if (ch->head == NULL) {
        ch->tail = NULL;
    }
    return it;
}

static void loader_append(struct engine *e, struct channel_item *it)
{
    bool idle = e->loader.head == NULL;
    append(&e->loader, it);
    if (idle) {
        loader_begin(e);
    }
}

static void compiler_append(struct engine *e, struct channel_item *it)
{
    bool idle = e->compiler.head == NULL;
    append(&e->compiler, it);
    if (idle) {
        compiler_begin(e);
        power_compiler(e, true);
    }
}

void channel_load(struct engine *e, struct resident *r, double bytes)
{
    const struct machine *m = e->core.setup->machine;
    struct channel_item *it = item_new(e, &e->loader);
    it->resident = r;
    it->bytes = bytes;
    if (bytes > 0.0) {
        it->solo_ns = (double)m->loader_fixed_ns + ceil(bytes / m->loader_bytes_per_s * 1e9);
    }
    loader_append(e, it);
}

static void move_kv(struct engine *e, struct channel_item what, double bytes)
{
    struct channel_item *it = item_new(e, &e->loader);
    what.bytes = bytes;
    const struct machine *m = e->core.setup->machine;
    what.solo_ns = (double)m->swap_fixed_ns + ceil(bytes / m->swap_bytes_per_s * 1e9);
    *it = what;
    loader_append(e, it);
}

void channel_kv_move(struct engine *e, struct full_request *r, double bytes, bool in)
{
    move_kv(e, (struct channel_item){.request = r, .in = in}, bytes);
}

void channel_cold_move(struct engine *e, uint32_t cold, uint32_t generation, double bytes)
{
    move_kv(e, (struct channel_item){.cold = cold, .generation = generation}, bytes);
}

void channel_compile(struct engine *e, struct resident *r, int64_t duration_ns)
{
    struct channel_item *it = item_new(e, &e->compiler);
    it->resident = r;
    it->solo_ns = (double)duration_ns;
    compiler_append(e, it);
}

void channel_evicted(struct engine *e, struct resident_key key)
{
    const struct machine *m = e->core.setup->machine;
    bool graph = key.kind == RESIDENT_GRAPH_BLOCK;
    int64_t ns = graph ? m->loader_evict_ns : m->compile_evict_ns;
    if (ns == 0) {
        return; /* an event more at this instant would be one for nothing */
    }
    struct channel_item *it = item_new(e, graph ? &e->loader : &e->compiler);
    it->cold = KV_NO_COLD;
    it->solo_ns = (double)ns;
    if (graph) {
        loader_append(e, it);
    } else {
        compiler_append(e, it);
    }
}

static void recycle(struct channel *ch, struct channel_item *it)
{
    it->next = ch->free_items;
    ch->free_items = it;
}

static void loader_next(struct engine *e)
{
    if (e->loader.head != NULL) {
        loader_begin(e);
    } else {
        ddr_leave(e, &e->loader.job);
        power_load(e, false);
    }
}

static void compiler_next(struct engine *e)
{
    if (e->compiler.head != NULL) {
        compiler_begin(e);
    } else {
        power_compiler(e, false);
    }
}

void channel_loader_event(struct engine *e)
{
    SIM_ASSERT(e->loader.head != NULL && e->loader.job.active);
    /* A copy, and the next item begins before the core hears of this one: what the core does now
     * may append, and finds the channel as it is then. */
    struct channel_item it = *e->loader.head;
    recycle(&e->loader, take_head(&e->loader));
    loader_next(e);
    if (it.resident != NULL) {
        core_resident_done(&e->core, it.resident);
    } else if (it.request != NULL) {
        SIM_ASSERT(it.request->alive); /* who is cancelled stays until its KV has moved */
        core_kv_moved(&e->core, it.request, it.in);
    } else if (it.cold != KV_NO_COLD) {
        core_cold_moved(&e->core, it.cold, it.generation);
    }
}

void channel_compiler_event(struct engine *e)
{
    e->compiler.event = EVENTQ_NONE;
    SIM_ASSERT(e->compiler.head != NULL);
    struct resident *r = e->compiler.head->resident;
    recycle(&e->compiler, take_head(&e->compiler));
    compiler_next(e);
    if (r != NULL) {
        core_resident_done(&e->core, r);
    }
}

/* Takes a pending resident out of its channel; returns whether it was there. */
static bool cancel_in(struct engine *e, struct channel *ch, const struct resident *r)
{
    struct channel_item *prev = NULL;
    for (struct channel_item *it = ch->head; it != NULL; prev = it, it = it->next) {
        if (it->resident != r) {
            continue;
        }
        if (prev == NULL) {
            (void)take_head(ch);
            if (ch->event != EVENTQ_NONE) {
                eventq_cancel(&e->queue, ch->event);
                ch->event = EVENTQ_NONE;
            }
        } else {
            prev->next = it->next;
            if (ch->tail == it) {
                ch->tail = prev;
            }
        }
        recycle(ch, it);
        /* The head was under way: what comes behind it begins now, for all of its time. */
        if (prev == NULL && ch == &e->loader) {
            loader_next(e);
        } else if (prev == NULL) {
            compiler_next(e);
        }
        return true;
    }
    return false;
}

void channel_cancel(struct engine *e, struct resident *r)
{
    /* The core does not know who makes it: a graph block the loader, attention the compiler. */
    if (!cancel_in(e, &e->loader, r)) {
        bool found = cancel_in(e, &e->compiler, r);
        SIM_REQUIRE(found, "a resident that nobody brings is cancelled");
    }
}
