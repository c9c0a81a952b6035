/* Tokens and activations of a real run, which the core does not have. */
#include "sim/base/hash.h"
#include "sim/drive/drive_impl.h"

/* ---- requests ---- */

bool state_request_ok(const struct drive *d, const struct real_request *q)
{
    return q->input <= q->n && q->n <= q->room && (q->tokens == NULL) == (q->room == 0) &&
           (q->tokens == NULL || (q->slot < d->kv.n_slots && q->n < d->kv.slot_tokens + 1));
}

/* Prompts are artificial: a hash of request id and position. */
static int32_t prompt_token(const struct drive *d, uint32_t id, uint32_t pos)
{
    uint64_t h = hash_u64(HASH_INIT, ((uint64_t)id << 32) | pos);
    return (int32_t)((h >> 20) % d->llm->vocab);
}

struct real_request *state_request(const struct request *r)
{
    const struct real_request *q = core_request(r)->exec;
    SIM_ASSERT(q->id == r->id && q->tokens != NULL && q->input == r->input_tokens);
    return core_request(r)->exec;
}

/* Creates a request's tokens. By the trace, the prompt begins with the previous turn's tokens. */
static void on_arrived(void *self, int64_t now_ns UNUSED, const struct request *r)
{
    struct drive *d = self;
    struct full_request *f = core_request(r);
    const struct trace_row *t = &d->core.setup->trace->rows[f->row];
    struct real_turn *before = &d->turns[f->row];
    struct real_request *q = &d->requests[f->row];
    uint32_t shared = t->prefix_tokens < before->n ? t->prefix_tokens : before->n;
    SIM_ASSERT(q->tokens == NULL && f->exec == NULL && r->input_tokens == t->input_tokens);
    /* Reused KV is of its own session, because other slots have no KV for it. */
    SIM_ASSERT(r->reused_tokens <= shared && (before->tokens != NULL || shared == 0));
    *q = (struct real_request){.id = r->id,
                               .n = r->input_tokens,
                               .input = r->input_tokens,
                               .room = t->input_tokens + t->output_tokens + 1};
    q->tokens = arena_alloc(&d->core.arena, q->room * sizeof *q->tokens);
    for (uint32_t i = 0; i < q->n; i++) {
        q->tokens[i] = i < shared ? before->tokens[i] : prompt_token(d, r->id, i);
    }
    q->slot = before->tokens != NULL ? before->slot : slot_take(d);
    f->exec = q;
    SIM_ASSERT(state_request_ok(d, q) && d->kv.holders[q->slot] == 1 && q->n < q->room);
    SIM_ASSERT(slot_owners(d, q->slot) == 1 || d->core.result->status != 0);
}

/* Row of the session's next turn if it will arrive, by the core's rule (sim/core/life.c). */
static uint32_t next_turn(const struct drive *d, const struct trace_row *t, int64_t now_ns)
{
    const struct trace *trace = d->core.setup->trace;
    bool by_time = t->next != TRACE_NO_ROW && d->core.joins == NULL && trace->extras != NULL;
    bool late =
        by_time && now_ns + trace->rows[t->next].arrival_ns >= trace->extras[t->next].until_ns;
    return late ? TRACE_NO_ROW : t->next;
}

static void on_left(void *self, int64_t now_ns, const struct request *r)
{
    struct drive *d = self;
    const struct full_request *f = core_request(r);
    const struct trace_row *t = &d->core.setup->trace->rows[f->row];
    const struct real_request *q = f->exec;
    SIM_ASSERT(state_request_ok(d, q) && d->kv.holders[q->slot] == 1 && !f->alive);
    SIM_ASSERT(q->n - q->input == r->generated_tokens); /* as the core counts */
    uint32_t row = next_turn(d, t, now_ns);
    if (row == TRACE_NO_ROW) {
        d->kv.holders[q->slot] = 0;
    } else {
        struct real_turn *next = &d->turns[row];
        SIM_ASSERT(next->tokens == NULL && d->requests[row].tokens == NULL);
        *next = (struct real_turn){.tokens = q->tokens, .n = q->n, .slot = q->slot};
    }
}

/* ---- passes ---- */

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Makes room for a pass. A reused pass never shrinks. */
static void pass_room(struct drive *d, struct real_pass *p, const struct pass *pub, uint32_t room)
{
    struct engine_pass *e = &p->engine;
    struct arena *a = &p->memory;
    SIM_ASSERT(room >= pub->shape.rows && pub->shape.logit_rows <= pub->shape.rows);
    if (p->cap_rows < room || p->cap_segments < pub->n_segments ||
        p->cap_logits < pub->shape.logit_rows) {
        size_t rows = p->cap_rows = larger(p->cap_rows, room);
        size_t logits = p->cap_logits = larger(p->cap_logits, pub->shape.logit_rows);
        size_t q = (size_t)d->llm->heads * d->llm->head_dim;
        p->cap_segments = larger(p->cap_segments, pub->n_segments);
        arena_fini(a);
        for (int i = 0; i < 2; i++) {
            e->x[i] = arena_alloc(a, rows * d->llm->hidden * sizeof(float));
        }
        e->q = arena_alloc(a, rows * q * sizeof(float));
        e->att = arena_alloc(a, rows * q * sizeof(float));
        e->pos = arena_alloc(a, rows * sizeof *e->pos);
        e->cell = arena_alloc(a, rows * sizeof *e->cell);
        p->segments = arena_alloc(a, p->cap_segments * sizeof *p->segments);
        e->logits = arena_alloc(a, logits * d->llm->vocab * sizeof(float));
        p->logit_rows = arena_alloc(a, logits * sizeof *p->logit_rows);
    }
    SIM_ASSERT(p->cap_rows >= room && p->cap_segments >= pub->n_segments &&
               p->cap_logits >= pub->shape.logit_rows);
}

/* Whether a segment yields tokens: the last row of a prefill, or all rows of other segments. */
static bool completes(const struct segment *s)
{
    SIM_ASSERT(s->n_tokens > 0 && s->first_token + s->n_tokens <= request_length(s->request));
    return s->role != SEGMENT_PREFILL ||
           s->first_token + s->n_tokens == request_prefill_target(s->request);
}

static void fill_segment(struct drive *d, struct real_pass *p, const struct segment *s,
                         struct engine_segment *out, uint32_t row, uint32_t *n_logits)
{
    const struct real_request *q = state_request(s->request);
    struct engine_pass *e = &p->engine;
    /* Its cells are in its slot, and only passes of its session write them. */
    SIM_ASSERT(s->first_token + s->n_tokens <= d->kv.slot_tokens && d->kv.holders[q->slot] == 1);
    SIM_ASSERT(row + s->n_tokens <= p->cap_rows && s->request->kv_tokens <= s->first_token);
    *out = (struct engine_segment){.cell0 = (size_t)q->slot * d->kv.slot_tokens,
                                   .first_token = s->first_token,
                                   .row = row,
                                   .n_rows = s->n_tokens};
    for (uint32_t i = 0; i < s->n_tokens; i++) {
        uint32_t pos = s->first_token + i;
        SIM_REQUIRE(pos < q->n, "request %u: position %u of %u tokens", q->id, pos, q->n);
        e->pos[row + i] = (int32_t)pos;
        e->cell[row + i] = (int64_t)(out->cell0 + pos);
        engine_weights(ENGINE_EMBEDDING, 0, (uint32_t)q->tokens[pos], d->llm->hidden,
                       e->x[0] + (size_t)(row + i) * d->llm->hidden);
        if (completes(s) && (s->role != SEGMENT_PREFILL || i + 1 == s->n_tokens)) {
            p->logit_rows[(*n_logits)++] = row + i;
        }
    }
}

/* Arrays have room for the pass, and segments are consecutive in its rows. */
static bool pass_ok(const struct real_pass *p, const struct pass *pub)
{
    const struct engine_pass *e = &p->engine;
    uint32_t row = 0;
    bool ok = e->rows == pub->shape.rows && e->room <= p->cap_rows && e->rows <= e->room &&
              e->n_segments == pub->n_segments && e->segments == p->segments;
    for (uint32_t i = 0; i < e->n_segments && ok; i++) {
        const struct engine_segment *s = &e->segments[i];
        ok = s->row == row && s->n_rows == pub->segments[i].n_tokens;
        for (uint32_t k = 0; k < s->n_rows && ok; k++, row++) { /* consecutive cells */
            ok = e->pos[row] == (int32_t)(s->first_token + k) &&
                 e->cell[row] == (int64_t)(s->cell0 + s->first_token + k);
        }
    }
    for (uint32_t i = 1; i < pub->shape.logit_rows && ok; i++) { /* required by topk_take */
        ok = p->logit_rows[i] > p->logit_rows[i - 1];
    }
    return ok && row == e->rows;
}

struct real_pass *state_pass(struct drive *d, struct full_pass *full)
{
    SIM_ASSERT(drive_on_host(d) && full->pub->n_launches > 0);
    if (full->exec != NULL) {
        SIM_ASSERT(pass_ok(full->exec, full->pub));
        return full->exec;
    }
    const struct pass *pub = full->pub;
    struct real_pass *p = d->free_passes;
    if (p == NULL) {
        p = arena_alloc(&d->core.arena, sizeof *p);
        p->next = d->passes;
        d->passes = p;
    } else {
        d->free_passes = p->next_free;
    }
    uint32_t room = pub->shape.rows + d->padding_rows;
    pass_room(d, p, pub, room);
    p->op = UINT32_MAX;
    p->n_free = 0;
    uint32_t row = 0;
    uint32_t n_logits = 0;
    for (uint32_t i = 0; i < pub->n_segments; i++) {
        fill_segment(d, p, &pub->segments[i], &p->segments[i], row, &n_logits);
        row += pub->segments[i].n_tokens;
    }
    SIM_REQUIRE(n_logits == pub->shape.logit_rows, "%u logit rows of %u", n_logits,
                pub->shape.logit_rows);
    for (uint32_t i = row; i < room; i++) {
        p->engine.pos[i] = 0;
        p->engine.cell[i] = (int64_t)d->kv.view.n_cells - 1;
    }
    p->engine.rows = row;
    p->engine.room = room;
    p->engine.n_segments = pub->n_segments;
    p->engine.segments = p->segments;
    p->engine.logit_rows = p->logit_rows;
    full->exec = p;
    SIM_ASSERT(pass_ok(p, pub));
    return p;
}

void state_pass_drop(struct drive *d, struct full_pass *full)
{
    struct real_pass *p = full->exec;
    SIM_ASSERT(full->pub->n_launches == 0); /* no kernel uses it */
    if (p != NULL) {
        SIM_ASSERT(p != d->free_passes);
        FREE_PUT(d->free_passes, p);
        full->exec = NULL;
    }
}

static int32_t likeliest(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return (int32_t)best;
}

void state_sample(struct drive *d, struct full_pass *full)
{
    const struct real_pass *p = full->exec;
    const float *logits = p->engine.logits;
    SIM_ASSERT(drive_on_host(d) && pass_ok(p, full->pub));
    for (uint32_t i = 0; i < full->pub->n_segments; i++) {
        const struct segment *s = &full->pub->segments[i];
        struct real_request *q = state_request(s->request);
        if (!completes(s)) {
            continue;
        }
        SIM_REQUIRE(s->first_token + s->n_tokens == q->n, "request %u: %u tokens, %u in its pass",
                    q->id, q->n, s->first_token + s->n_tokens);
        SIM_ASSERT(q->n < q->room && q->n - q->input == s->request->generated_tokens);
        q->tokens[q->n++] = likeliest(logits, d->llm->vocab);
        logits += d->llm->vocab;
        SIM_ASSERT(state_request_ok(d, q));
    }
    /* Each row of logits gave one token. */
    SIM_ASSERT(logits == p->engine.logits + (size_t)full->pub->shape.logit_rows * d->llm->vocab);
}

uint64_t state_token_hash(const struct drive *d)
{
    uint64_t h = HASH_INIT;
    for (size_t i = 0; i < d->core.setup->trace->n; i++) {
        const struct real_request *q = &d->requests[i];
        SIM_ASSERT(state_request_ok(d, q));
        for (uint32_t k = q->input; k < q->n; k++) {
            SIM_ASSERT(q->tokens[k] >= 0 && (uint32_t)q->tokens[k] < d->llm->vocab);
            h = hash_u64(h, ((uint64_t)q->id << 32) | (uint32_t)q->tokens[k]);
        }
    }
    return h;
}

/* ---- whole run ---- */

bool state_all_back(const struct drive *d)
{
    uint32_t passes = 0;
    for (const struct real_pass *p = d->passes; p != NULL; p = p->next) {
        passes++;
    }
    for (const struct real_pass *p = d->free_passes; p != NULL; p = p->next_free) {
        passes--;
    }
    for (uint32_t i = 0; i < d->kv.n_slots; i++) {
        /* A request graph may call off a turn (ends_with); the slot left for it stays taken. */
        SIM_ASSERT(d->kv.holders[i] == (d->core.joins != NULL ? slot_owners(d, i) : 0));
    }
    return passes == 0;
}

int state_init(struct drive *d)
{
    size_t n = d->core.setup->trace->n;
    SIM_ASSERT(n > 0 && d->requests == NULL && d->core.n_live == 0);
    d->requests = arena_alloc(&d->core.arena, n * sizeof *d->requests);
    d->turns = arena_alloc(&d->core.arena, n * sizeof *d->turns);
    d->observer = (struct observer){.self = d,
                                    .request_arrived = on_arrived,
                                    .request_finished = on_left,
                                    .request_shed = on_left};
    return slots_open(d);
}

void state_fini(struct drive *d)
{
    SIM_ASSERT(drive_on_host(d) && !d->locked); /* and no thread is left */
    for (struct real_pass *p = d->passes; p != NULL; p = p->next) {
        arena_fini(&p->memory);
    }
    slots_close(d);
}
