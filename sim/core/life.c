/* Arrival and departure of requests. */
#include "sim/core/consistent.h"
#include "sim/core/joins.h"
#include "sim/core/kv.h"
#include "sim/core/memory.h"

/* Updates the integral of requests in the system (Little's law). */
static void area_update(struct core *c)
{
    int64_t dt = c->sched->now_ns - c->area_from_ns;
    SIM_ASSERT(dt >= 0);
    c->area_request_ns += (double)c->n_live * (double)dt;
    c->area_from_ns = c->sched->now_ns;
}

/* Returns a zeroed request, except for its slot and `own`. */
static struct full_request *request_new(struct core *c)
{
    size_t own_bytes = c->setup->policy->request_state_size_bytes;
    struct full_request *r;
    FREE_TAKE(c->free_requests, &c->arena, r);
    SIM_ASSERT(!r->alive && r->kv_blocks == 0);
    struct request *pub = r->pub;
    if (pub == NULL) {
        pub = arena_alloc(&c->shown, sizeof *pub);
        pub->own = own_bytes > 0 ? arena_alloc(&c->policys, own_bytes) : NULL;
        pub->slot = c->next_slot++;
    } else if (own_bytes > 0) {
        memset(pub->own, 0, own_bytes);
    }
    /* An object keeps its slot across reuse, so slots of live requests are unique and small. */
    *pub = (struct request){.slot = pub->slot, .own = pub->own, .core = (uintptr_t)r ^ core_way};
    /* At the head: kv.c drops the idle prefix of the newest request first. */
    *r = (struct full_request){.pub = pub, .alive = true, .next_live = c->live_head};
    *(c->live_head != NULL ? &c->live_head->prev_live : &c->live_tail) = r;
    c->live_head = r;
    return r;
}

static int64_t after(int64_t now_ns, int64_t delay_ns)
{
    return delay_ns >= TIME_NEVER_NS - now_ns ? TIME_NEVER_NS : now_ns + delay_ns;
}

static void request_fill(struct core *c, struct full_request *r, uint32_t row,
                         const struct trace_row *t)
{
    r->row = row;
    r->output_tokens = t->output_tokens;
    r->pub->id = t->request_id;
    r->pub->session_id = t->session_id;
    r->pub->turn = t->turn;
    r->pub->cls = (enum request_class)t->cls;
    r->pub->arrival_ns = c->sched->now_ns;
    r->pub->input_tokens = t->input_tokens;
    r->pub->max_output_tokens = t->max_output_tokens;
    r->pub->ttft_slo_ns = TIME_NEVER_NS;
    r->pub->tbt_slo_ns = TIME_NEVER_NS;
    r->pub->deadline_ns = TIME_NEVER_NS;
    r->pub->client_id = t->session_id;
    r->pub->job_id = t->session_id;
    r->pub->depth = t->turn;
    r->pub->model = trace_graph_model(c->setup->trace->graph, row);
    SIM_ASSERT(r->pub->model < c->n_models);
    r->pub->kv_state_tokens = c->models[r->pub->model].kv_state_tokens;
    r->pub->first_service_ns = TIME_NEVER_NS;
    r->pub->first_token_ns = TIME_NEVER_NS;
    r->pub->last_token_ns = TIME_NEVER_NS;
    if (c->setup->trace->extras != NULL) {
        const struct trace_extra *x = &c->setup->trace->extras[row];
        r->pub->ttft_slo_ns = x->ttft_slo_ns;
        r->pub->tbt_slo_ns = x->tbt_slo_ns;
        r->pub->deadline_ns = after(c->sched->now_ns, x->deadline_ns);
        r->pub->client_id = x->client_id;
        r->pub->priority = x->priority;
        if (x->cancel_ns != TIME_NEVER_NS) {
            c->exec_ops->cancel_later(c->exec, after(c->sched->now_ns, x->cancel_ns), r);
        }
    }
}

void core_request_arrives(struct core *c, uint32_t row)
{
    SIM_ASSERT(row < c->setup->trace->n);
    if (c->joins != NULL && !joins_may_arrive(c, row)) {
        return;
    }
    c->result->events++;
    area_update(c); /* before n_live changes */
    struct full_request *r = request_new(c);
    const struct trace_row t = trace_row_at(c->setup->trace, row);
    SIM_ASSERT(t.input_tokens > 0 && t.output_tokens > 0);
    request_fill(c, r, row, &t);
    if (c->joins != NULL) {
        joins_arrived(c, row, r);
    }
    if (cold_of(c, row) != NULL) {
        /* At least one prompt token must be computed, because its logits start the answer. */
        uint32_t want = t.prefix_tokens < t.input_tokens ? t.prefix_tokens : t.input_tokens - 1;
        r->pub->reused_tokens = kv_take_cold(c, r, want);
        r->pub->kv_tokens = r->pub->reused_tokens;
        SIM_ASSERT(r->pub->reused_tokens <= want);
        kv_prefix_rest(c, r);
    }
    if (c->prefixes != NULL) {
        prefix_match(c, r);
    }
    c->n_live++;
    c->result->audit.arrived++;
    uint32_t most = c->models[r->pub->model].llm->max_context;
    if (most > 0 && t.output_tokens > most - (t.input_tokens < most ? t.input_tokens : most)) {
        core_count(c, COUNTER_BEYOND_CONTEXT);
    }
    CORE_OBSERVE(c, request_arrived, c->sched->now_ns, r->pub);
    /* Such a request would wait for ever, and with many policies block all later ones. */
    bool fits = core_request_fits(c, r);
    if (!fits && c->conditions.memory_taken_bytes <= 0.0) {
        core_fail(c, -ENOMEM,
                  "request %u needs %" PRIu64 " KV tokens, the machine holds %" PRIu64
                  "%s (model, memory or kv_capacity_tokens too small for this trace)",
                  r->pub->id, kv_tokens_of_all(c, r), kv_most_tokens_of(c, r->pub->model),
                  c->kv_blocks_mapped > 0 ? " next to the graphs mapped at the start" : "");
    }
    if (c->n_models > 1) {
        r->held = true;
        c->n_held++;
    } else {
        CORE_HOOK(c, request_arrived, c->sched, r->pub);
    }
    if (!fits) {
        core_count(c, COUNTER_MEMORY_SHED);
        core_request_shed(c, r);
    }
}

/* Returns the session's next turn and when it is due, or TRACE_NO_ROW if that is at until_ns or
 * later. */
static uint32_t next_turn(const struct core *c, const struct trace_row *t, int64_t *due_ns)
{
    const struct trace *trace = c->setup->trace;
    if (t->next == TRACE_NO_ROW) {
        return TRACE_NO_ROW;
    }
    if (c->joins != NULL) {
        return t->next; /* joins.c decides when it arrives */
    }
    *due_ns = c->sched->now_ns + trace_row_at(trace, t->next).arrival_ns;
    bool late = trace->extras != NULL && *due_ns >= trace->extras[t->next].until_ns;
    return late ? TRACE_NO_ROW : t->next;
}

void core_request_leave(struct core *c, struct full_request *r, enum request_state state)
{
    c->result->events++;
    area_update(c);
    const struct trace_row t = trace_row_at(c->setup->trace, r->row);
    int64_t now = c->sched->now_ns;
    int64_t due_ns = now;
    uint32_t next = next_turn(c, &t, &due_ns);
    SIM_ASSERT(state == REQUEST_STATE_FINISHED || state == REQUEST_STATE_SHED);
    SIM_ASSERT(state != REQUEST_STATE_FINISHED || r->pub->generated_tokens == r->output_tokens);
    SIM_ASSERT(r->pub->arrival_ns <= now && due_ns >= now);
    BECOMES(request, r->pub->state, state);
    r->pub->calls_tool = state == REQUEST_STATE_FINISHED && next != TRACE_NO_ROW &&
                         trace_row_at(c->setup->trace, next).after_tool;
    /* A pass has pointers to its requests until it ends, so none may leave before. */
    SIM_REQUIRE(r->alive && r->pub->pass == NULL && c->n_live > 0, "request %u leaves from a pass",
                r->pub->id);
    r->alive = false;
    c->n_live--;
    if (r->held) {
        r->held = false;
        c->n_held--;
    } else if (c->n_models > 1) {
        weights_left(c, r->pub->model);
    }
    c->sojourn_ns += (double)(now - r->pub->arrival_ns);
    if (state == REQUEST_STATE_FINISHED) {
        c->result->audit.finished++;
        c->result->audit.tokens_expected += r->output_tokens;
        c->result->audit.tokens_produced += r->pub->generated_tokens;
        CORE_OBSERVE(c, request_finished, now, r->pub);
    } else {
        c->result->audit.shed++;
        CORE_OBSERVE(c, request_shed, now, r->pub);
    }
    /* After a shed turn the session continues with the next one. */
    kv_prefix_used(c, r); /* its blocks become cold or free, and no longer count as idle */
    if (c->prefixes != NULL) {
        prefix_share(c, r);
    }
    if (next != TRACE_NO_ROW && c->setup->prefix_reuse && r->kv_blocks > 0) {
        kv_keep_cold(c, r, next);
    }
    kv_shrink(c, r, 0);
    /* After kv_keep_cold, because the next turn looks for that KV. */
    if (c->joins != NULL) {
        joins_left(c, r->row);
    } else if (next != TRACE_NO_ROW) {
        c->exec_ops->arrive_later(c->exec, due_ns, next);
    }
    *(r->prev_live != NULL ? &r->prev_live->next_live : &c->live_head) = r->next_live;
    *(r->next_live != NULL ? &r->next_live->prev_live : &c->live_tail) = r->prev_live;
    SIM_ASSERT(r->kv_blocks == 0 && !r->prefix_idle);
    FREE_PUT(c->dead_requests, r);
}

void core_request_shed(struct core *c, struct full_request *r)
{
    bool held = r->held;
    core_request_leave(c, r, REQUEST_STATE_SHED);
    if (!held) { /* else the policy was never notified of it */
        CORE_HOOK(c, request_cancelled, c->sched, r->pub);
    }
}
