/* A launch on a real device: the rows that it holds, and its kernels one after another. The core
 * only counts rows; here they have indices. */
#include "sim/base/words.h"
#include "sim/drive/drive_impl.h"

/* ---- rows ---- */

/* Resets the free rows for an op that a launch starts on. Ops are begun in order; a launch of
 * several ops may have run some of them. */
static void pass_begin_op(struct real_pass *p, const struct pass *pub, uint32_t op)
{
    SIM_ASSERT(op == pub->op && op < pub->n_ops && (p->op == UINT32_MAX || p->op <= op));
    if (p->op != op) {
        p->op = op;
        p->n_free = 1;
        p->free[0] = (struct span){0, pass_op_rows(pub, op)};
    }
}

/* Whether the free spans are ascending, separate, and inside the op. */
static bool holes_fit(const struct real_pass *p, const struct pass *pub)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < p->n_free; i++) {
        SIM_ASSERT(p->free[i].n > 0 && (i == 0 || p->free[i].row0 > end));
        end = p->free[i].row0 + p->free[i].n;
    }
    return end <= pass_op_rows(pub, p->op);
}

bool launch_rows_ok(const struct real_pass *p, const struct pass *pub)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < p->n_free; i++) {
        rows += p->free[i].n;
    }
    return p->op != pub->op || (holes_fit(p, pub) && rows == pub->rows_todo);
}

static uint32_t rows_held(const struct real_launch *r)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < r->n_spans; i++) { /* ascending: claim takes the lowest hole first */
        SIM_ASSERT(i == 0 || r->span[i].row0 > r->span[i - 1].row0 + r->span[i - 1].n);
        rows += r->span[i].n;
    }
    return rows;
}

static void claim(struct real_launch *r)
{
    struct real_pass *p = r->pass;
    uint32_t want = r->l->pub->rows;
    pass_begin_op(p, r->l->pub->pass, r->l->pub->op_begin);
    while (want > 0) {
        SIM_REQUIRE(p->n_free > 0, "launch %u: %u rows too many", r->l->pub->id, want);
        struct span *s = &p->free[0];
        uint32_t n = s->n < want ? s->n : want;
        r->span[r->n_spans++] = (struct span){s->row0, n};
        *s = (struct span){s->row0 + n, s->n - n};
        want -= n;
        if (s->n == 0) {
            memmove(p->free, p->free + 1, --p->n_free * sizeof *s);
        }
    }
    SIM_ASSERT(r->n_spans > 0 && r->n_spans <= MAX_SPANS && rows_held(r) == r->l->pub->rows);
    SIM_ASSERT(launch_rows_ok(p, r->l->pub->pass)); /* the core has subtracted them, too */
}

/* Inserts a free span in order, and merges it with its neighbours. */
static void give_back(struct real_pass *p, struct span s)
{
    SIM_ASSERT(s.n > 0);
    uint32_t i = 0;
    while (i < p->n_free && p->free[i].row0 < s.row0) {
        i++;
    }
    if (i > 0 && p->free[i - 1].row0 + p->free[i - 1].n == s.row0) {
        p->free[i - 1].n += s.n;
        s = p->free[--i];
    } else {
        SIM_REQUIRE(p->n_free < MAX_SPANS, "%u holes in one op", p->n_free);
        memmove(p->free + i + 1, p->free + i, (p->n_free - i) * sizeof s);
        p->free[i] = s;
        p->n_free++;
    }
    if (i + 1 < p->n_free && s.row0 + s.n == p->free[i + 1].row0) {
        p->free[i].n += p->free[i + 1].n;
        memmove(p->free + i + 1, p->free + i + 2, (p->n_free - i - 2) * sizeof s);
        p->n_free--;
    }
}

static void give_back_rest(const struct real_launch *r)
{
    struct real_pass *p = r->pass;
    const struct launch *l = r->l->pub;
    SIM_ASSERT(r->op < l->op_end && r->rows_done < (r->op > l->op_begin ? UINT32_MAX : l->rows));
    if (r->op > l->op_begin) { /* only this launch runs later ops, whole, from row 0 */
        SIM_ASSERT(l->pass->n_launches == 1 && r->rows_done < pass_op_rows(l->pass, r->op));
        p->op = r->op;
        p->n_free = 1;
        p->free[0] = (struct span){r->rows_done, pass_op_rows(l->pass, r->op) - r->rows_done};
        return;
    }
    uint32_t done = r->rows_done;
    for (uint32_t i = 0; i < r->n_spans; i++) {
        struct span s = r->span[i];
        uint32_t gone = s.n < done ? s.n : done;
        done -= gone;
        if (s.n > gone) {
            give_back(p, (struct span){s.row0 + gone, s.n - gone});
        }
    }
    SIM_ASSERT(done == 0 && p->n_free > 0 && holes_fit(p, l->pass));
}

/* ---- allocation ---- */

/* Makes room for the log of all kernels of the launch, so that its thread need not allocate. */
static void log_room(struct drive *d, struct real_launch *r)
{
    const struct launch *l = r->l->pub;
    uint32_t chunk = l->chunk_rows > 0 ? l->chunk_rows : UINT32_MAX;
    uint32_t per_op = (l->pass->shape.rows - 1) / chunk + 1;
    uint32_t most = (l->op_end - l->op_begin) * per_op + r->n_spans;
    if (most > r->cap_log) {
        r->cap_log = 2 * most;
        r->log = arena_alloc(&d->core.arena, r->cap_log * sizeof *r->log);
    }
    SIM_ASSERT(r->n_log == 0 && r->cap_log >= r->n_spans + l->op_end - l->op_begin);
}

struct real_launch *launch_new(struct drive *d, struct full_launch *l)
{
    struct real_launch *r = d->free_launches;
    if (r == NULL) {
        r = arena_alloc(&d->core.arena, sizeof *r);
    } else {
        d->free_launches = r->next_free;
        struct drive_kernel *log = r->log;
        uint32_t cap_log = r->cap_log;
        memset(r, 0, sizeof *r);
        r->log = log;
        r->cap_log = cap_log;
    }
    SIM_ASSERT(drive_on_host(d) && l->exec == NULL && l->pub->state == LAUNCH_STATE_QUEUED);
    SIM_ASSERT(r->n_spans == 0 && !r->over && r->stop == 0 && r->kill == 0); /* all is reset */
    r->drive = d;
    r->l = l;
    r->event = EVENTQ_NONE;
    r->op = l->pub->op_begin;
    r->pass = state_pass(d, core_pass(l->pub->pass));
    l->exec = r;
    claim(r);
    log_room(d, r);
    SIM_ASSERT(launch_position_ok(r));
    return r;
}

void launch_free(struct drive *d, struct real_launch *r)
{
    /* No event and no list refers to it. */
    SIM_ASSERT(drive_on_host(d) && r->event == EVENTQ_NONE && r != d->free_launches);
    if (r->op < r->l->pub->op_end) {
        give_back_rest(r);
    }
    FREE_PUT(d->free_launches, r);
}

/* ---- kernels ---- */

static struct span present_span(const struct real_launch *r)
{
    const struct launch *l = r->l->pub;
    SIM_ASSERT(r->op < l->op_end && r->at_span < (r->op == l->op_begin ? r->n_spans : 1));
    return r->op == l->op_begin ? r->span[r->at_span]
                                : (struct span){0, pass_op_rows(l->pass, r->op)};
}

bool launch_position_ok(const struct real_launch *r)
{
    const struct launch *l = r->l->pub;
    uint32_t before = 0; /* rows of the spans before at_span */
    for (uint32_t i = 0; r->op == l->op_begin && i < r->at_span; i++) {
        before += r->span[i].n;
    }
    return r->op >= l->op_begin && r->rows_done == before + r->in_span &&
           (r->op == l->op_end ? r->rows_done == 0 && r->at_span == 0
                               : r->in_span < present_span(r).n);
}

/* The rule of kernel_run_fill. Attention is never cut into chunks, and a single row has its own
 * kernel. A numbered graph has only the chunk that it was built with. */
static uint32_t chunk_of(const struct real_launch *r)
{
    const struct launch *l = r->l->pub;
    uint32_t rows = r->op == l->op_begin ? l->rows : pass_op_rows(l->pass, r->op);
    bool chunked = pass_op_kind(l->pass, r->op) != OP_MHA && (rows > 1 || l->graph > 0);
    SIM_ASSERT(l->graph == 0 || l->chunk_rows > 0); /* graphs have a shape */
    return chunked ? l->chunk_rows : 0;
}

static struct engine_kernel next_kernel(const struct real_launch *r)
{
    const struct launch *l = r->l->pub;
    struct span s = present_span(r);
    uint32_t chunk = chunk_of(r);
    uint32_t left = s.n - r->in_span;
    uint32_t rows = chunk > 0 && left > chunk ? chunk : left;
    enum op_kind op = pass_op_kind(l->pass, r->op);
    bool compiled = op == OP_MHA && r->l->pin != NULL && l->graph == 0;
    SIM_ASSERT(rows > 0 && s.row0 + r->in_span + rows <= pass_op_rows(l->pass, r->op));
    /* A padded kernel writes beyond the pass, but within its room. */
    SIM_ASSERT(s.row0 + r->in_span + (chunk > 0 ? chunk : rows) <= r->pass->engine.room);
    SIM_ASSERT(chunk == 0 || rows <= chunk);
    return (struct engine_kernel){
        .pass = &r->pass->engine,
        .op = op,
        .layer = op == OP_HEAD ? 0 : pass_op_layer(l->pass, r->op),
        .row0 = s.row0 + r->in_span,
        .rows = rows,
        .padded_rows = chunk > 0 ? chunk : rows,
        .graph = l->graph,
        .compiled_tokens = compiled ? r->l->pin->key.a : 0,
        .stop = &r->kill,
    };
}

static void move_on(struct real_launch *r, uint32_t rows)
{
    const struct launch *l = r->l->pub;
    SIM_ASSERT(rows > 0 && r->op < l->op_end && r->in_span + rows <= present_span(r).n);
    r->in_span += rows;
    r->rows_done += rows;
    if (r->in_span < present_span(r).n) {
        SIM_ASSERT(launch_position_ok(r));
        return;
    }
    r->in_span = 0;
    r->at_span++;
    if (r->op > l->op_begin || r->at_span == r->n_spans) {
        r->op++;
        r->at_span = 0;
        r->rows_done = 0;
    }
    SIM_ASSERT(launch_position_ok(r));
}

static void log_kernel(struct real_launch *r, const struct engine_kernel *k, int64_t begin_ns,
                       int64_t ns, bool stopped)
{
    const struct work_shape *w = &r->l->pub->pass->shape;
    SIM_REQUIRE(r->n_log < r->cap_log, "launch %u: more kernels than %u", r->l->pub->id,
                r->cap_log);
    /* Kernels are in order, and a stopped one is the last. */
    SIM_ASSERT(r->n_log == 0 || begin_ns >= r->log[r->n_log - 1].begin_ns);
    SIM_ASSERT(r->n_log == 0 || !r->log[r->n_log - 1].stopped);
    r->log[r->n_log++] = (struct drive_kernel){.launch = r->l->pub->id,
                                               .row0 = k->row0,
                                               .rows = k->rows,
                                               .padded_rows = k->padded_rows,
                                               .sequences = w->sequences,
                                               .shape_rows = w->rows,
                                               .prefill_rows = w->prefill_rows,
                                               .pairs = w->attn_pairs,
                                               .keys = w->kv_read_tokens,
                                               .begin_ns = begin_ns,
                                               .ns = ns,
                                               .layer = (uint16_t)k->layer,
                                               .device = r->l->pub->device,
                                               .op = (uint8_t)k->op,
                                               .stopped = stopped};
}

/* Returns 0, or -EINVAL for a static kernel larger than the padding of activations: no backend has
 * compiled it. */
static int larger_than_any(struct real_launch *r)
{
    if (chunk_of(r) <= r->drive->padding_rows) {
        return 0;
    }
    (void)snprintf(r->job.why, sizeof r->job.why,
                   "a static kernel of %u rows (chunk_rows); those of this machine and its graphs "
                   "have at most %u",
                   chunk_of(r), r->drive->padding_rows);
    return -EINVAL;
}

int launch_kernel(struct real_launch *r, int64_t now_ns, int64_t *took_ns)
{
    struct drive *d = r->drive;
    const struct real_device *v = &d->devices[r->l->pub->device];
    SIM_ASSERT(lane_runs(&v->lane, &r->job) && launch_position_ok(r));
    if (larger_than_any(r) != 0) {
        return -EINVAL;
    }
    struct engine_kernel k = next_kernel(r);
    int64_t began = drive_meter_ns(d);
    int rc = v->engine->kernel(v->handle, &k, r->job.why);
    *took_ns = drive_meter_ns(d) - began;
    *took_ns = *took_ns < 1 ? 1 : *took_ns;
    SIM_ASSERT(rc <= 0 && (rc != -ECANCELED || r->kill != 0)); /* stopped on request only */
    log_kernel(r, &k, now_ns, *took_ns, rc != 0);
    if (rc == 0) {
        r->kernel_rows = k.rows;
        r->isolated_ns += *took_ns;
        move_on(r, k.rows);
    } else if (rc != -ECANCELED) {
        char why[ENGINE_MESSAGE_BYTES];
        memcpy(why, r->job.why, sizeof why);
        (void)snprintf(r->job.why, sizeof r->job.why, "kernel %s of layer %u, %u rows: %.180s",
                       words_ops[k.op], k.layer, k.rows, why);
    }
    return rc;
}

bool launch_done(const struct real_launch *r)
{
    return r->op == r->l->pub->op_end;
}

bool launch_may_yield(const struct real_launch *r)
{
    bool between_ops = r->at_span == 0 && r->in_span == 0;
    const struct pass *p = r->l->pub->pass;
    SIM_ASSERT(!launch_done(r) && r->n_log > 0 && between_ops == (r->rows_done == 0));
    switch (r->l->pub->yield) {
    case YIELD_KERNEL:
        return true;
    case YIELD_OP:
        return between_ops;
    case YIELD_LAYER:
        return between_ops && r->op % p->layer.n == 0;
    case YIELD_PASS:
        return false;
    }
    return false;
}
