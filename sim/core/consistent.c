#include "sim/core/consistent.h"
#include "sim/core/kv.h"
#include "sim/core/memory.h"

/* ---- which state may follow which ---- */

#define TO(state) (1u << (state))

const unsigned after_request[] = {
    [REQUEST_STATE_QUEUED] =
        TO(REQUEST_STATE_QUEUED) | TO(REQUEST_STATE_DECODE) | TO(REQUEST_STATE_SHED),
    /* Back to QUEUED if its KV is dropped. */
    [REQUEST_STATE_DECODE] =
        TO(REQUEST_STATE_QUEUED) | TO(REQUEST_STATE_FINISHED) | TO(REQUEST_STATE_SHED),
    [REQUEST_STATE_FINISHED] = 0,
    [REQUEST_STATE_SHED] = 0,
};

const unsigned after_pass[] = {
    [PASS_STATE_READY] = TO(PASS_STATE_RUNNING) | TO(PASS_STATE_CANCELLED),
    [PASS_STATE_RUNNING] = TO(PASS_STATE_RUNNING) | TO(PASS_STATE_READY) | TO(PASS_STATE_DONE),
    [PASS_STATE_DONE] = 0,
    [PASS_STATE_CANCELLED] = 0,
};

const unsigned after_launch[] = {
    [LAUNCH_STATE_QUEUED] =
        TO(LAUNCH_STATE_QUEUED) | TO(LAUNCH_STATE_RUNNING) | TO(LAUNCH_STATE_ENDED),
    /* Back to QUEUED if it is repeated (core_pass_repeated). */
    [LAUNCH_STATE_RUNNING] = TO(LAUNCH_STATE_ENDED) | TO(LAUNCH_STATE_QUEUED),
    [LAUNCH_STATE_ENDED] = 0,
};

const unsigned after_resident[] = {
    [RESIDENT_ABSENT] = TO(RESIDENT_PENDING),
    [RESIDENT_PENDING] = TO(RESIDENT_READY) | TO(RESIDENT_ABSENT),
    [RESIDENT_READY] = TO(RESIDENT_ABSENT),
};

const unsigned after_cold[] = {
    [COLD_CACHED] = TO(COLD_PINNED) | TO(COLD_MOVING),
    [COLD_PINNED] = TO(COLD_CACHED) | TO(COLD_MOVING),
    [COLD_MOVING] = TO(COLD_SWAPPED),
    [COLD_SWAPPED] = 0,
};

/* ---- requests ---- */

static void check_times(const struct core *c, const struct request *r)
{
    SIM_ASSERT(r->arrival_ns <= c->sched->now_ns);
    if (r->first_service_ns == TIME_NEVER_NS) {
        SIM_ASSERT(r->generated_tokens == 0);
    } else {
        SIM_ASSERT(r->arrival_ns <= r->first_service_ns && r->first_service_ns <= c->sched->now_ns);
    }
    SIM_ASSERT((r->generated_tokens == 0) == (r->first_token_ns == TIME_NEVER_NS));
    SIM_ASSERT((r->generated_tokens == 0) == (r->last_token_ns == TIME_NEVER_NS));
    if (r->generated_tokens > 0) {
        SIM_ASSERT(r->first_service_ns <= r->first_token_ns);
        SIM_ASSERT(r->first_token_ns <= r->last_token_ns);
        SIM_ASSERT(r->last_token_ns <= c->sched->now_ns);
    }
}

static void check_request(const struct core *c, const struct full_request *r)
{
    const struct request *pub = r->pub;
    check_times(c, pub);
    SIM_ASSERT(r->alive);
    SIM_ASSERT(pub->state == REQUEST_STATE_QUEUED || pub->state == REQUEST_STATE_DECODE);
    SIM_ASSERT(pub->generated_tokens < r->output_tokens); /* it leaves with its last token */
    SIM_ASSERT(pub->reused_tokens < pub->input_tokens);   /* a prompt's last token is computed */
    if (pub->state == REQUEST_STATE_DECODE) {
        /* The next pass computes the KV of the newest token. */
        SIM_ASSERT(pub->generated_tokens > 0);
        SIM_ASSERT(pub->kv_tokens + 1 == request_length(pub));
    } else {
        SIM_ASSERT(pub->kv_tokens < request_prefill_target(pub));
    }
    /* KV on flash keeps its tokens but no blocks, until the read back begins. */
    SIM_ASSERT(pub->kv_swapped || kv_has_room(c, r, 0));
    SIM_ASSERT(!pub->kv_swapped || r->kv_moving || r->kv_blocks == 0);
    SIM_ASSERT(!pub->kv_swapped || pub->kv_tokens > 0);
    SIM_ASSERT(kv_blocks_shared(r) <= r->kv_blocks);
    SIM_ASSERT(kv_state_blocks(c, r) == 0 || (r->kv_blocks > 0 && !r->prefix_idle));
    SIM_ASSERT(pub->kv_state_tokens == 0 || pub->pass == NULL);
    SIM_ASSERT(kv_blocks_shared(r) * (uint64_t)c->setup->kv_block_tokens <= pub->kv_tokens);
    SIM_ASSERT(pub->pass == NULL || (!r->kv_moving && !pub->kv_swapped && !r->prefix_idle));
    if (r->prefix_idle) {
        SIM_ASSERT(pub->kv_tokens == pub->reused_tokens && pub->kv_tokens > 0);
        SIM_ASSERT(pub->generated_tokens == 0 && !pub->kv_swapped && !r->kv_moving);
    }
    /* A cancelled request stays only while a pass or a move uses its KV. */
    SIM_ASSERT(!r->cancel_pending || pub->pass != NULL || r->kv_moving);
}

/* ---- passes ---- */

bool pass_shape_adds_up(const struct core *c, const struct full_pass *p)
{
    uint32_t window = c->models[p->pub->shape.model].llm->sliding_window;
    struct work_shape w = {0};
    for (uint32_t i = 0; i < p->pub->n_segments; i++) {
        const struct segment *s = &p->segments[i];
        uint32_t end = s->first_token + s->n_tokens;
        bool prefill = s->role == SEGMENT_PREFILL;
        w.rows += s->n_tokens;
        w.sequences++;
        w.prefill_rows += prefill ? s->n_tokens : 0;
        w.logit_rows += s->role == SEGMENT_DRAFT                    ? 1
                        : !prefill                                  ? s->n_tokens
                        : end == request_prefill_target(s->request) ? 1
                                                                    : 0;
        w.kv_read_tokens += end;
        w.far_keys += window > 0 && s->first_token + 1 > window ? s->first_token + 1 - window : 0;
        w.max_context_tokens = end > w.max_context_tokens ? end : w.max_context_tokens;
        for (uint32_t pos = s->first_token; pos < end; pos++) {
            w.attn_pairs += pos + 1;
            w.far_pairs += window > 0 && pos + 1 > window ? pos + 1 - window : 0;
        }
    }
    const struct work_shape *is = &p->pub->shape;
    SIM_ASSERT(is->rows == w.rows);
    SIM_ASSERT(is->sequences == w.sequences);
    SIM_ASSERT(is->prefill_rows == w.prefill_rows);
    SIM_ASSERT(is->logit_rows == w.logit_rows);
    SIM_ASSERT(is->kv_read_tokens == w.kv_read_tokens);
    SIM_ASSERT(is->max_context_tokens == w.max_context_tokens);
    SIM_ASSERT(is->attn_pairs == w.attn_pairs);
    SIM_ASSERT(is->far_keys == w.far_keys && is->far_pairs == w.far_pairs);
    return true;
}

static void check_segments(const struct core *c, const struct full_pass *p)
{
    uint32_t decodes = 0;
    bool reactive = false;
    for (uint32_t i = 0; i < p->pub->n_segments; i++) {
        const struct segment *s = &p->segments[i];
        const struct full_request *r = core_member(s);
        SIM_ASSERT(r->alive && (r->pub->pass == p->pub || p->before != NULL));
        bool drafts = s->role == SEGMENT_DRAFT;
        SIM_ASSERT(p->pub->shape.model == (drafts ? c->sched->draft_model : r->pub->model));
        SIM_ASSERT(s->n_tokens > 0);
        uint32_t end = s->first_token + s->n_tokens;
        SIM_ASSERT(p->before != NULL ||
                   s->first_token == (drafts ? r->drafted_tokens : r->pub->kv_tokens));
        /* A pass keeps its reserved KV. A draft reserves none. */
        SIM_ASSERT(drafts || kv_has_room(c, r, end - r->pub->kv_tokens));
        SIM_ASSERT(s->emitted_tokens == 0 && s->gap_ns == 0);
        bool prefill = s->role == SEGMENT_PREFILL;
        SIM_ASSERT(prefill == (r->pub->state == REQUEST_STATE_QUEUED));
        SIM_ASSERT(!prefill || end <= request_prefill_target(r->pub));
        if (s->role == SEGMENT_DECODE) {
            SIM_ASSERT(s->n_tokens == 1);
            decodes++;
        }
        reactive |= r->pub->cls == REQUEST_CLASS_REACTIVE;
    }
    SIM_ASSERT(p->pub->has_reactive == reactive);
    SIM_ASSERT(!p->steady || decodes == p->pub->n_segments);
    SIM_ASSERT(!p->pub->fused_layers || (decodes == 1 && p->pub->n_segments == 1));
}

static void check_cursor(const struct full_pass *p)
{
    const struct pass *pub = p->pub;
    bool through = pub->op == pub->n_ops;
    SIM_ASSERT(pub->op <= pub->n_ops);
    SIM_ASSERT(pub->state == PASS_STATE_READY || pub->state == PASS_STATE_RUNNING);
    /* A pass is RUNNING while the host samples, so that it cannot be cancelled. */
    SIM_ASSERT((pub->state == PASS_STATE_RUNNING) ==
               (pub->n_launches > 0 || (through && p->before == NULL)));
    SIM_ASSERT(pub->n_launches > 0 || pub->rows_active == 0);
    SIM_ASSERT(pub->n_launches == 0 || pub->rows_active > 0);
    if (through) {
        SIM_ASSERT(pub->rows_todo == 0 && pub->n_launches == 0);
    } else {
        SIM_ASSERT(pub->rows_todo + pub->rows_active > 0); /* else the cursor would have moved on */
        SIM_ASSERT(p->columns_todo + p->columns_active > 0 ||
                   pub->rows_todo + pub->rows_active <= pass_op_rows(pub, pub->op));
    }
    SIM_ASSERT(p->columns_todo < LAUNCH_COLUMNS &&
               p->columns_todo + p->columns_active <= LAUNCH_COLUMNS);
    SIM_ASSERT(p->columns_active == 0 || pub->rows_active == pass_op_rows(pub, pub->op));
}

/* Chunks of one prompt are consecutive, and attention of a chunk has run or runs only after the
 * keys of all earlier chunks are computed. */
static void check_before(const struct full_pass *p)
{
    uint32_t attended = 0; /* one past the last attention op that is done or in a launch */
    for (uint32_t op = 0; op < p->pub->op + (p->pub->rows_active > 0); op++) {
        attended = pass_op_kind(p->pub, op) == OP_MHA ? op + 1 : attended;
    }
    for (const struct full_pass *b = p->before; b != NULL; b = b->before) {
        SIM_ASSERT(b->pub->n_segments == 1 && b->segments[0].role == SEGMENT_PREFILL);
        SIM_ASSERT(b->segments[0].request == p->segments[0].request);
        SIM_ASSERT(b->pub->op + 1 >= attended);
    }
    if (p->before != NULL) {
        const struct segment *s = &p->before->segments[0];
        SIM_ASSERT(p->pub->n_segments == 1 && p->segments[0].role == SEGMENT_PREFILL);
        SIM_ASSERT(p->segments[0].first_token == s->first_token + s->n_tokens);
        SIM_ASSERT(p->before->after == p && p->pub->shape.logit_rows <= 1);
        /* The head of a pass waits for earlier passes. */
        SIM_ASSERT(p->pub->shape.logit_rows == 0 ||
                   p->pub->op + (p->pub->rows_active > 0) < p->pub->n_ops);
    }
}

bool pass_consistent(const struct core *c, const struct full_pass *p)
{
    SIM_ASSERT(p->pub->id > 0 && p->pub->id <= c->next_pass_id);
    SIM_ASSERT(p->pub->segments == p->segments);
    SIM_ASSERT(p->pub->n_segments > 0 && p->pub->n_segments <= p->capacity);
    SIM_ASSERT(p->pub->layer.n > 0 && p->pub->layer.n <= LAYER_MAX_OPS);
    SIM_ASSERT(!core_pass_is_unwanted(p)); /* else it would have been cancelled */
    check_segments(c, p);
    check_cursor(p);
    check_before(p);
    return true;
}

/* ---- counts of objects ---- */

/* Every request object is live, dead or free, and has its own slot. */
static void check_slots(const struct core *c)
{
    const struct full_request *const heads[] = {c->dead_requests, c->free_requests};
    bool *taken = calloc(c->next_slot + 1, sizeof *taken);
    uint32_t n = 0;
    for (const struct full_request *r = c->live_head; r != NULL; r = r->next_live) {
        SIM_ASSERT(r->pub->slot < c->next_slot && !taken[r->pub->slot]);
        taken[r->pub->slot] = true;
        n++;
    }
    SIM_ASSERT(n == c->n_live);
    for (int i = 0; i < 2; i++) {
        for (const struct full_request *r = heads[i]; r != NULL; r = r->next_free) {
            SIM_ASSERT(!r->alive && r->kv_blocks == 0);
            SIM_ASSERT(r->pub->slot < c->next_slot && !taken[r->pub->slot]);
            taken[r->pub->slot] = true;
            n++;
        }
    }
    SIM_ASSERT(n == c->next_slot);
    free(taken);
}

/* Checks each pass once, at the request of its first segment. */
static void check_requests(const struct core *c)
{
    uint64_t in_passes = 0;
    uint64_t in_segments = 0;
    const struct full_request *before = NULL;
    for (const struct full_request *r = c->live_head; r != NULL; r = r->next_live) {
        SIM_ASSERT(r->prev_live == before);
        before = r;
        check_request(c, r);
        if (r->pub->pass != NULL) {
            const struct full_pass *p = core_pass(r->pub->pass);
            in_passes++;
            SIM_ASSERT(p->before == NULL);
            in_segments += p->segments[0].request == r->pub ? p->pub->n_segments : 0;
            for (; p != NULL && p->segments[0].request == r->pub; p = p->after) {
                (void)pass_consistent(c, p);
            }
        }
    }
    SIM_ASSERT(c->live_tail == before);
    SIM_ASSERT(in_passes == in_segments); /* a request has one segment, unless SEGMENT_AHEAD */
}

/* ---- memory ---- */

/* Returns the blocks of a list of cold KV, after a check of its links and states. */
static uint64_t cold_blocks(const struct core *c, const struct ranked_list *l, bool cached)
{
    uint64_t blocks = 0;
    const struct ranked *before = NULL;
    for (const struct ranked *x = l->first; x != NULL; before = x, x = x->after) {
        const struct cold_kv *k = (const struct cold_kv *)x;
        SIM_ASSERT(x->before == before && cold_of(c, k->row) == k);
        SIM_ASSERT((k->state == COLD_CACHED) == cached);
        SIM_ASSERT(k->state != COLD_SWAPPED || k->blocks == 0);
        SIM_ASSERT(k->state == COLD_SWAPPED || c->prefixes != NULL ||
                   k->tokens <= k->blocks * c->setup->kv_block_tokens);
        blocks += k->blocks;
    }
    SIM_ASSERT(l->last == before);
    return blocks;
}

/* Every block has one owner: it is free, lent, or held by a request or a finished turn. */
static void check_kv(const struct core *c)
{
    uint64_t of_requests = 0;
    uint64_t idle = 0;
    for (const struct full_request *r = c->live_head; r != NULL; r = r->next_live) {
        uint64_t own = kv_units(c, r, r->kv_blocks - kv_blocks_shared(r));
        of_requests += own + kv_units(c, r, kv_state_blocks(c, r));
        idle += r->prefix_idle ? own : 0;
    }
    uint64_t shared[PREFIX_USED + 1];
    (void)prefixes_consistent(c, shared);
    uint64_t cached = cold_blocks(c, &c->cold_cached, true);
    uint64_t held = cold_blocks(c, &c->cold_held, false);
    SIM_ASSERT(c->kv_blocks_free + c->kv_blocks_lent + of_requests + cached + held +
                   shared[PREFIX_FREE] + shared[PREFIX_IDLE] + shared[PREFIX_USED] ==
               c->kv_blocks_total);
    SIM_ASSERT(c->kv_blocks_cold == cached + shared[PREFIX_FREE]);
    SIM_ASSERT(c->kv_blocks_idle == idle + shared[PREFIX_IDLE]);
    /* A policy may have evicted what init declared: another version takes its place. */
    SIM_ASSERT(c->kv_blocks_mapped <= c->kv_blocks_lent + c->kv_blocks_owed ||
               c->hook == HOOK_init || c->resident_bytes < c->mapped_bytes);
    SIM_ASSERT(kv_held_tokens(c) <= c->result->kv_peak_tokens);
}

static void check_residents(const struct core *c)
{
    uint32_t n = 0;
    double bytes = 0.0;
    uint32_t at = 0;
    for (const struct resident *r; (r = resident_next(c, &at)) != NULL;) {
        SIM_ASSERT(r->state == RESIDENT_PENDING || r->state == RESIDENT_READY);
        SIM_ASSERT(r->pins == 0 || r->state == RESIDENT_READY);
        SIM_ASSERT(r->bytes >= 0.0);
        bytes += r->bytes;
        n++;
    }
    SIM_ASSERT(n == c->residents.n);
    /* Sums in another order differ by rounding only, which is less than a byte. */
    SIM_ASSERT(fabs(bytes - c->resident_bytes) < 1.0);
    for (const struct resident *r = c->free_residents; r != NULL; r = r->next_free) {
        SIM_ASSERT(r->state == RESIDENT_ABSENT && r->pins == 0);
    }
}

bool core_consistent(const struct core *c)
{
    check_slots(c);
    check_requests(c);
    check_kv(c);
    check_residents(c);
    SIM_ASSERT(core_memory_bytes(c) <= c->result->memory_peak_bytes);
    SIM_ASSERT(c->last_progress_ns <= c->sched->now_ns);
    SIM_ASSERT(c->area_from_ns <= c->sched->now_ns);
    SIM_ASSERT(c->area_request_ns >= 0.0 && c->sojourn_ns >= 0.0);
    SIM_ASSERT(c->events_seen <= c->result->events);
    const struct sim_audit *a = &c->result->audit;
    SIM_ASSERT(a->arrived == a->finished + a->shed + c->n_live);
    SIM_ASSERT(a->tokens_produced == a->tokens_expected);
    return true;
}
