/* Cancelling and completing passes. */
#include "sim/core/ahead.h"
#include "sim/core/consistent.h"
#include "sim/core/kv.h"

/* Cancels a pass. Its requests stay, except those whose users gave up. */
static void pass_cancel(struct core *c, struct full_pass *p)
{
    struct pass *pub = p->pub;
    SIM_ASSERT(pub->n_launches == 0 && p->after == NULL);
    for (uint32_t i = 0; i < pub->n_segments; i++) {
        struct full_request *r = core_member(&p->segments[i]);
        core_member_back(c, p, r);
        if (r->cancel_pending && r->pub->pass == NULL) {
            core_request_leave(c, r, REQUEST_STATE_SHED);
        }
    }
    BECOMES(pass, pub->state, PASS_STATE_CANCELLED);
    core_count(c, COUNTER_PASS_CANCELLED);
    /* Before the pass is freed, because the executor's part hangs on it. */
    if (c->exec_ops->pass_cancelled != NULL) {
        c->exec_ops->pass_cancelled(c->exec, p);
    }
}

int core_pass_cancel(struct core *c, struct pass *pub)
{
    struct full_pass *p = core_pass(pub);
    REFUSE_IF(c, pub == NULL || pub->state != PASS_STATE_READY || pub->n_launches > 0,
              LAUNCH_BAD_SPAN, -EINVAL, "only a pass that is on no device can be given up");
    REFUSE_IF(c, p->after != NULL, LAUNCH_BAD_SPAN, -EINVAL,
              "passes with the tokens after are given up first");
    pass_cancel(c, p);
    FREE_PUT(c->dead_passes, p);
    return 0;
}

/* Returns the output tokens of a verify segment: one, plus the draft tokens that the run's
 * acceptance model accepts (hidden). Without a model it accepts none. */
static uint32_t verify_accepted(const struct core *c, struct full_request *r, uint32_t drafted)
{
    if (c->setup->accept == NULL || drafted == 0) {
        return 0;
    }
    uint32_t a = c->setup->accept(c->setup->speculation_params, c->setup->seed, r->pub,
                                  trace_text_at(c->setup->trace, r->row), r->draw, drafted);
    return a > drafted ? drafted : a;
}

/* Updates KV and state after a segment. Returns the output tokens. */
static uint32_t rows_complete(struct core *c, struct full_request *r, const struct segment *s)
{
    if (s->role == SEGMENT_DECODE) {
        r->pub->kv_tokens++;
        r->draw++; /* index of the next draft's hidden draw */
        return 1;
    }
    if (s->role == SEGMENT_PREFILL) {
        bool completes = s->n_tokens == request_prefill_left(r->pub);
        r->pub->kv_tokens += s->n_tokens;
        if (completes) {
            BECOMES(request, r->pub->state, REQUEST_STATE_DECODE);
        }
        if (c->prefixes != NULL) {
            prefix_share(c, r);
        }
        return completes ? 1 : 0;
    }
    if (s->role == SEGMENT_DRAFT) {
        r->drafted_tokens = s->first_token + s->n_tokens;
        r->drafted_kv = r->pub->kv_tokens;
        return 0;
    }
    uint32_t emit = 1 + verify_accepted(c, r, s->n_tokens - 1);
    uint32_t left = r->output_tokens - r->pub->generated_tokens;
    SIM_ASSERT(left > 0 && emit <= s->n_tokens);
    r->draw++;
    r->pub->kv_tokens += emit;                              /* KV of rejected tokens is dropped */
    r->pub->kv_tokens -= emit > left ? emit - left - 1 : 0; /* and KV beyond the answer's end */
    kv_shrink(c, r, r->pub->kv_tokens);
    return emit < left ? emit : left;
}

/* Whether a request leaves after its pass: it has all its tokens, or was cancelled and is in no
 * other pass. */
static inline bool leaves(const struct full_request *r)
{
    return r->pub->generated_tokens == r->output_tokens ||
           (r->cancel_pending && r->pub->pass == NULL);
}

/* Credits a segment of a finished pass: KV, tokens, state. `next`: the request's next pass
 * (SEGMENT_AHEAD), or NULL. Returns whether the request leaves. */
static inline bool segment_complete(struct core *c, struct segment *s, const struct pass *next,
                                    int64_t now)
{
    struct full_request *r = core_member(s);
    struct request *pub = r->pub;
    SIM_REQUIRE(r->alive && (s->first_token == pub->kv_tokens || s->role == SEGMENT_DRAFT),
                "request %u: rows from %u, KV of %u", pub->id, s->first_token, pub->kv_tokens);
    pub->pass = next;
    uint32_t emit = rows_complete(c, r, s);
    SIM_REQUIRE(kv_has_room(c, r, 0), "request %u: %u KV tokens in %u blocks", pub->id,
                pub->kv_tokens, r->kv_blocks);
    SIM_ASSERT(pub->generated_tokens + emit <= r->output_tokens);
    if (emit > 0) {
        int64_t since = pub->last_token_ns;
        if (since == TIME_NEVER_NS) { /* first token */
            since = pub->arrival_ns;
            pub->first_token_ns = now;
        }
        pub->generated_tokens += emit;
        pub->last_token_ns = now;
        s->emitted_tokens = emit;
        s->gap_ns = now - since;
    }
    return leaves(r);
}

/* Removes requests that have all their tokens, and those that were cancelled in the pass. The
 * caller must have reported all tokens of the pass to the observers before. */
static void leave_with(struct core *c, const struct full_pass *p)
{
    for (uint32_t i = 0; i < p->pub->n_segments; i++) {
        struct full_request *r = core_member(&p->segments[i]);
        if (leaves(r)) {
            bool finished = r->pub->generated_tokens == r->output_tokens;
            core_request_leave(c, r, finished ? REQUEST_STATE_FINISHED : REQUEST_STATE_SHED);
        }
    }
}

/* All ops of this and earlier passes are complete: the host samples, then tokens are out. */
void core_pass_complete(struct core *c, struct full_pass *p)
{
    SIM_ASSERT(p->pub->state == PASS_STATE_READY && p->before == NULL);
    SIM_ASSERT(p->pub->op == p->pub->n_ops && p->pub->rows_todo == 0 && p->pub->rows_active == 0);
    BECOMES(pass, p->pub->state, PASS_STATE_RUNNING); /* so that it cannot be cancelled */
    int64_t tail = c->setup->machine->sample_ns_per_token * (int64_t)p->pub->shape.logit_rows;
    c->exec_ops->pass_tail(c->exec, p, tail);
}

void core_launch_over(struct core *c, struct full_launch *l)
{
    c->result->events++;
    CORE_HOOK(c, launch_done, c->sched, l->pub);
    FREE_PUT(c->dead_launches, l);
}

static void pass_notify(struct core *c, struct full_pass *p)
{
    c->result->events++;
    /* Since it was formed, the only events are the ends of its launch and of the pass. */
    bool alone = c->result->events == p->formed_events + 2;
    bool checked = !c->setup->collapse || c->setup->decision_log != NULL; /* else trusted */
    if (p->steady && alone && c->sched->now_ns < c->steady_until_ns && checked &&
        kv_may_go_on(c, p, 1)) {
        c->expected = p;
        c->expected_as = NULL;
    }
    CORE_HOOK(c, pass_done, c->sched, p->pub);
    FREE_PUT(c->dead_passes, p);
}

void core_pass_check_wanted(struct core *c, struct full_pass *p)
{
    if (core_pass_is_unwanted(p)) {
        pass_cancel(c, p);
        pass_notify(c, p);
    }
}

void core_pass_tail_done(struct core *c, struct full_pass *p)
{
    SIM_REQUIRE(p->pub->op == p->pub->n_ops && p->pub->n_launches == 0, "pass %u is not through",
                p->pub->id);
    BECOMES(pass, p->pub->state, PASS_STATE_DONE);
    core_progress(c);
    const struct pass *next = p->after != NULL ? p->after->pub : NULL;
    const struct segment *end = p->segments + p->pub->n_segments;
    bool some_leave = false;
    for (struct segment *s = p->segments; s < end; s++) {
        some_leave |= segment_complete(c, s, next, c->sched->now_ns);
    }
    CORE_OBSERVE(c, tokens, c->sched->now_ns, p->pub);
    if (some_leave) {
        leave_with(c, p);
    }
    CORE_OBSERVE(c, pass_done, c->sched->now_ns, p->pub);
    pass_notify(c, p);
    if (p->after != NULL) {
        struct full_pass *first = ahead_goes_first(p);
        if (first != NULL) {
            core_pass_complete(c, first);
        }
    }
}

/* ---- repetition ---- */

/* Counts the calls and decisions that repeated iterations would have had. An iteration has two
 * calls of `schedule`. The first is at the end of the launch and does nothing, because the host
 * samples. The second is when the tokens are out, and forms and launches the next pass; sched_again
 * adds another call. Without sampling there is one call. `formed`: passes that the policy would
 * have formed. */
static void count_decisions(struct core *c, const struct repeat_record *r, uint32_t formed)
{
    uint64_t idle = r->sample_ns > 0 ? r->n : 0;
    c->next_pass_id += formed;
    c->next_launch_id += formed;
    c->result->decisions += 2 * (uint64_t)formed;
    c->result->events += 2 * (uint64_t)formed; /* end of the launch, tokens out */
    c->sched->epoch += idle + formed;
    c->result->counters[COUNTER_SCHEDULE_ROUNDS] += idle + (c->again ? 2 : 1) * (uint64_t)formed;
}

/* Credits r->n tokens to the request of a decode segment. */
static inline void credit_many(struct core *c, struct segment *s, const struct repeat_record *r)
{
    struct full_request *q = core_member(s);
    int64_t now = c->sched->now_ns;
    SIM_ASSERT(s->role == SEGMENT_DECODE && q->pub->state == REQUEST_STATE_DECODE &&
               !q->cancel_pending);
    /* Block by block, so that evictions and the peak are those of single passes. */
    while (!kv_has_room(c, q, r->n)) {
        uint64_t room = (uint64_t)q->kv_blocks * c->setup->kv_block_tokens;
        int rc = kv_grow(c, q, (uint32_t)(room - q->pub->kv_tokens) + 1);
        SIM_REQUIRE(rc == 0, "request %u lacks KV to be repeated", q->pub->id);
    }
    s->first_token = q->pub->kv_tokens + r->n - 1;
    s->emitted_tokens = 1;
    s->gap_ns = r->n > 1 ? r->gap_ns[r->n - 1] : now - q->pub->last_token_ns;
    q->pub->kv_tokens += r->n;
    q->draw += r->n;
    q->pub->generated_tokens += r->n;
    q->pub->last_token_ns = now;
    SIM_REQUIRE(q->pub->generated_tokens <= q->output_tokens,
                "request %u is repeated beyond its end", q->pub->id);
}

/* Ends the last iteration: notifies the policy of its launch and then of its pass, as without
 * repetition. */
static void end_repeated(struct core *c, struct full_launch *l, const struct repeat_record *r)
{
    struct full_pass *p = core_pass(l->pub->pass);
    leave_with(c, p);
    count_decisions(c, r, r->n - 1);
    p->pub->id = r->n > 1 ? c->next_pass_id : p->pub->id;
    p->pub->op = p->pub->n_ops;
    p->pub->rows_todo = 0;
    p->pub->rows_active = 0;
    p->pub->n_launches = 0;
    BECOMES(pass, p->pub->state, PASS_STATE_DONE);
    BECOMES(launch, l->pub->state, LAUNCH_STATE_ENDED);
    l->pub->outcome = LAUNCH_OUTCOME_DONE;
    l->pub->end_ns = c->sched->now_ns - r->sample_ns;
    core_launch_over(c, l);
    pass_notify(c, p);
}

/* Puts the pass and its launch in the state of one more submission at this instant. */
static void submit_again(struct core *c, struct full_launch *l, const struct repeat_record *r)
{
    struct full_pass *p = core_pass(l->pub->pass);
    count_decisions(c, r, r->n);
    p->pub->id = c->next_pass_id;
    p->formed_events = c->events_seen = c->result->events;
    l->pub->id = c->next_launch_id;
    l->pub->submit_ns = c->sched->now_ns;
    BECOMES(launch, l->pub->state, LAUNCH_STATE_QUEUED);
    SIM_ASSERT(pass_consistent(c, p) && pass_shape_adds_up(c, p));
    CORE_OBSERVE(c, pass_formed, c->sched->now_ns, p->pub);
    CORE_OBSERVE(c, launch_submitted, c->sched->now_ns, l->pub);
}

void core_pass_repeated(struct core *c, struct full_launch *l, const struct repeat_record *r,
                        bool continues)
{
    struct full_pass *p = core_pass(l->pub->pass);
    SIM_REQUIRE(p->steady && p->pub->n_launches == 1 && p->pub->op == 0 && r->n > 0,
                "pass %u does not repeat", p->pub->id);
    CORE_OBSERVE(c, repeated, c->sched->now_ns, r);
    core_progress(c);
    for (uint32_t i = 0; i < p->pub->n_segments; i++) {
        struct segment *s = &p->segments[i];
        struct full_request *q = core_member(s);
        credit_many(c, s, r);
        if (continues) {
            s->first_token = q->pub->kv_tokens;
            s->emitted_tokens = 0;
            s->gap_ns = 0;
            int rc = kv_reserve(c, q, 1);
            SIM_REQUIRE(rc == 0 && q->pub->generated_tokens < q->output_tokens,
                        "request %u cannot continue", q->pub->id);
        } else {
            q->pub->pass = NULL;
        }
    }
    if (continues) {
        submit_again(c, l, r);
    } else {
        end_repeated(c, l, r);
    }
}
