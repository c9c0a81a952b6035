/* Forming, cancelling and completing passes. */
#include <errno.h>
#include <string.h>

#include "sim/core/core.h"

static struct full_pass *pass_new(struct core *c, uint32_t n_segments)
{
    struct full_pass *p = c->free_passes;
    if (p == NULL) {
        p = arena_alloc(&c->arena, sizeof *p);
    } else {
        c->free_passes = p->next_free;
    }
    if (p->capacity < n_segments) {
        uint32_t cap = p->capacity == 0 ? 8 : p->capacity;
        while (cap < n_segments) {
            cap *= 2;
        }
        p->segments = arena_alloc(&c->arena, cap * sizeof *p->segments);
        p->capacity = cap;
    }
    struct segment *segments = p->segments;
    uint32_t capacity = p->capacity;
    memset(p, 0, sizeof *p);
    p->segments = segments;
    p->capacity = capacity;
    p->pub.segments = segments;
    return p;
}

/* Why a pass cannot have such a segment; NULL: it can. */
static inline const char *segment_fault(const struct segment *s)
{
    const struct full_request *r = core_request(s->request);
    if (s->role == SEGMENT_DECODE && s->n_tokens == 1 && r != NULL && r->alive &&
        r->pub.state == REQUEST_STATE_DECODE && r->pub.pass == NULL && !r->pub.kv_swapped &&
        !r->kv_moving) {
        return NULL; /* the usual one, told by few comparisons */
    }
    if (r == NULL || !r->alive) {
        return "the request has left, or there is none";
    }
    if (r->pub.pass != NULL) {
        return "the request is in a pass already";
    }
    if (r->pub.kv_swapped || r->kv_moving) {
        return "the request's KV is on flash, or on its way";
    }
    if (s->n_tokens == 0) {
        return "a segment without tokens";
    }
    switch (s->role) {
    case SEGMENT_PREFILL:
        return r->pub.state != REQUEST_STATE_QUEUED ? "prefill of a request that decodes already"
               : s->n_tokens > request_prefill_left(&r->pub)
                   ? "more tokens than are left to prefill (request_prefill_left)"
                   : NULL;
    case SEGMENT_DECODE:
    case SEGMENT_VERIFY:
        return r->pub.state != REQUEST_STATE_DECODE ? "decode of a request whose prompt is not done"
               : s->role == SEGMENT_DECODE && s->n_tokens != 1 ? "a decode segment has one token"
                                                               : NULL;
    }
    return "there is no such role";
}

static bool segment_ok(const struct segment *s)
{
    return segment_fault(s) == NULL;
}

/* Adds one segment to the shape of its pass. */
static inline void shape_add(struct work_shape *w, const struct segment *s, bool completes)
{
    uint64_t first = s->first_token;
    uint64_t n = s->n_tokens;
    uint64_t end = first + n;
    w->rows += s->n_tokens;
    w->sequences++;
    w->attn_pairs += n == 1 ? end : n * first + n * (n + 1) / 2;
    w->kv_read_tokens += end;
    if (s->role == SEGMENT_PREFILL) {
        w->prefill_rows += s->n_tokens;
        w->logit_rows += completes ? 1 : 0;
    } else {
        w->logit_rows += s->n_tokens;
    }
    if (end > w->max_context_tokens) {
        w->max_context_tokens = (uint32_t)end;
    }
}

/* Adds n decode segments with so many keys in all, the longest with so many. */
static inline void shape_add_decodes(struct work_shape *w, uint32_t n, uint64_t keys,
                                     uint32_t longest)
{
    w->rows += n;
    w->sequences += n;
    w->logit_rows += n;
    w->attn_pairs += keys;
    w->kv_read_tokens += keys;
    w->max_context_tokens = longest > w->max_context_tokens ? longest : w->max_context_tokens;
}

/* Prefixes of all requests of the pass are in use from here on: making room for one segment must
 * not take what another one counts on. */
static void prefixes_used(struct core *c, const struct pass_spec *spec)
{
    for (uint32_t i = 0; i < spec->n_segments && c->kv_blocks_idle > 0; i++) {
        if (segment_ok(&spec->segments[i])) {
            kv_prefix_used(c, core_request(spec->segments[i].request));
        }
    }
}

/* The pass is not to be: those that it has not reached. */
static void prefixes_rest(struct core *c, const struct pass_spec *spec, uint32_t from)
{
    for (uint32_t i = from; i < spec->n_segments; i++) {
        if (segment_ok(&spec->segments[i])) {
            kv_prefix_rest(c, core_request(spec->segments[i].request));
        }
    }
}

/* Gives back what the first n segments took. */
static void pass_undo(struct core *c, struct full_pass *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct full_request *r = core_request(p->segments[i].request);
        r->pub.pass = NULL;
        kv_shrink(c, r, r->pub.kv_tokens);
        kv_prefix_rest(c, r);
    }
    p->pub.state = PASS_STATE_CANCELLED; /* for whoever still holds its last life */
    p->next_free = c->free_passes;
    c->free_passes = p;
}

int core_pass_form(struct core *c, const struct pass_spec *spec, struct pass **out)
{
    bool bad_fuse =
        spec->fused_layers && (spec->n_segments != 1 || spec->segments[0].role != SEGMENT_DECODE);
    if (spec->n_segments == 0 || spec->segments == NULL || bad_fuse) {
        return core_refuse(c, COUNTER_PASS_BAD_SEGMENT, -EINVAL,
                           bad_fuse ? "fused layers are for one decode segment alone"
                                    : "a pass without segments");
    }
    struct full_pass *p = pass_new(c, spec->n_segments);
    prefixes_used(c, spec);
    struct work_shape shape = {0};
    bool reactive = false;
    uint32_t decodes = 0, longest = 0;
    uint64_t keys = 0;
    for (uint32_t i = 0; i < spec->n_segments; i++) {
        const struct segment *want = &spec->segments[i];
        const char *fault = segment_fault(want);
        if (fault != NULL) {
            pass_undo(c, p, i);
            prefixes_rest(c, spec, i + 1);
            return core_refuse(c, COUNTER_PASS_BAD_SEGMENT, -EINVAL, fault);
        }
        struct full_request *r = core_request(want->request);
        if (kv_reserve(c, r, want->n_tokens) != 0) {
            pass_undo(c, p, i);
            prefixes_rest(c, spec, i);
            return core_refuse(c, COUNTER_PASS_NO_MEMORY, -ENOMEM, "not enough free KV");
        }
        struct segment *s = &p->segments[i];
        *s = *want;
        s->first_token = r->pub.kv_tokens;
        s->emitted_tokens = 0;
        r->pub.pass = &p->pub;
        reactive |= r->pub.cls == REQUEST_CLASS_REACTIVE;
        if (s->role == SEGMENT_DECODE) {
            decodes++;
            keys += s->first_token + 1;
            longest = s->first_token + 1 > longest ? s->first_token + 1 : longest;
        } else {
            shape_add(&shape, s, s->n_tokens == request_prefill_left(&r->pub));
        }
    }
    shape_add_decodes(&shape, decodes, keys, longest);
    struct pass *pub = &p->pub;
    pub->shape = shape;
    pub->has_reactive = reactive;
    pub->id = ++c->next_pass_id;
    pub->state = PASS_STATE_READY;
    pub->n_segments = spec->n_segments;
    pub->fused_layers = spec->fused_layers;
    p->repeats = spec->repeats;
    p->repeats_until_ns = spec->repeats_until_ns > 0 ? spec->repeats_until_ns : TIME_NEVER_NS;
    p->formed_ns = c->sched.now_ns;
    p->formed_news = c->news;
    pub->policy_data = spec->policy_data;
    static const struct layer_ops fused = {1, {OP_LAYER}};
    pub->layer = spec->fused_layers ? fused : c->setup->llm->layer;
    pub->n_ops = c->setup->llm->n_layers * pub->layer.n + (pub->shape.logit_rows > 0 ? 1 : 0);
    pub->rows_todo = pass_op_rows(pub, 0);
    CORE_OBSERVE(c, pass_formed, c->sched.now_ns, pub);
    *out = pub;
    return 0;
}

int core_pass_cancel(struct core *c, struct pass *pub)
{
    struct full_pass *p = (struct full_pass *)pub;
    if (pub == NULL || pub->state != PASS_STATE_READY || pub->n_launches > 0) {
        return core_refuse(c, COUNTER_LAUNCH_BAD_SPAN, -EINVAL,
                           "only a pass that is on no device can be given up");
    }
    for (uint32_t i = 0; i < pub->n_segments; i++) {
        struct full_request *r = core_request(p->segments[i].request);
        r->pub.pass = NULL;
        kv_shrink(c, r, r->pub.kv_tokens);
        kv_prefix_rest(c, r);
        if (r->cancel_pending) {
            core_request_leave(c, r, REQUEST_STATE_SHED);
        }
    }
    pub->state = PASS_STATE_CANCELLED;
    core_count(c, COUNTER_PASS_CANCELLED);
    if (c->exec_ops->pass_cancelled != NULL) {
        c->exec_ops->pass_cancelled(c->exec, p);
    }
    p->next_free = c->dead_passes;
    c->dead_passes = p;
    return 0;
}

/* Output tokens a verify segment yields: all drafts accepted until the hidden draw says stop. The
 * core knows no acceptance model, so it asks the run's; without one nothing is accepted. */
static uint32_t verify_accepted(const struct core *c, struct full_request *r, uint32_t drafted)
{
    if (c->setup->accept == NULL || drafted == 0) {
        return 0;
    }
    uint32_t a =
        c->setup->accept(c->setup->speculation_params, c->setup->seed, &r->pub, r->draw, drafted);
    return a > drafted ? drafted : a;
}

/* Credits one segment of a finished pass: KV, tokens, state. */
static inline void segment_complete(struct core *c, struct segment *s)
{
    struct full_request *r = core_request(s->request);
    SIM_REQUIRE(r->alive && s->first_token == r->pub.kv_tokens,
                "request %u: rows from %u, KV of %u", r->pub.id, s->first_token, r->pub.kv_tokens);
    int64_t now = c->sched.now_ns;
    uint32_t emit = 0;
    r->pub.pass = NULL;
    if (s->role == SEGMENT_PREFILL) {
        bool completes = s->n_tokens == request_prefill_left(&r->pub);
        r->pub.kv_tokens += s->n_tokens;
        if (completes) {
            r->pub.state = REQUEST_STATE_DECODE;
            emit = 1;
        }
    } else if (s->role == SEGMENT_DECODE) {
        r->pub.kv_tokens += 1;
        emit = 1;
    } else {
        emit = 1 + verify_accepted(c, r, s->n_tokens - 1);
        r->draw++;
        r->pub.kv_tokens += emit; /* rejected rows' KV is dropped */
        kv_shrink(c, r, r->pub.kv_tokens);
    }
    uint32_t left = r->output_tokens - r->pub.generated_tokens;
    if (emit > left) {
        emit = left;
    }
    if (emit > 0) {
        int64_t since =
            r->pub.last_token_ns == TIME_NEVER_NS ? r->pub.arrival_ns : r->pub.last_token_ns;
        r->pub.generated_tokens += emit;
        if (r->pub.first_token_ns == TIME_NEVER_NS) {
            r->pub.first_token_ns = now;
        }
        r->pub.last_token_ns = now;
        s->emitted_tokens = emit;
        CORE_OBSERVE(c, tokens, now, &r->pub, emit, now - since);
    }
    /* Its blocks were reserved when the pass was formed. */
    SIM_REQUIRE(kv_has_room(c, r, 0), "request %u: %u KV tokens in %u blocks", r->pub.id,
                r->pub.kv_tokens, r->kv_blocks);
    if (r->pub.generated_tokens == r->output_tokens) {
        core_request_leave(c, r, REQUEST_STATE_FINISHED);
    } else if (r->cancel_pending) {
        core_request_leave(c, r, REQUEST_STATE_SHED);
    }
}

/* All ops are through: the host samples, then the tokens are out. */
void core_pass_complete(struct core *c, struct full_pass *p)
{
    int64_t tail = c->setup->machine->sample_ns_per_token * (int64_t)p->pub.shape.logit_rows;
    c->exec_ops->pass_tail(c->exec, p, tail);
}

static void pass_notify(struct core *c, struct full_pass *p)
{
    c->news++;
    CORE_HOOK(c, HOOK_PASS_DONE, pass_done, &c->sched, &p->pub);
    p->next_free = c->dead_passes;
    c->dead_passes = p;
}

void core_pass_tail_done(struct core *c, struct full_pass *p)
{
    SIM_REQUIRE(p->pub.op == p->pub.n_ops && p->pub.n_launches == 0, "pass %u is not through",
                p->pub.id);
    p->pub.state = PASS_STATE_DONE;
    core_progress(c);
    for (uint32_t i = 0; i < p->pub.n_segments; i++) {
        segment_complete(c, &p->segments[i]);
    }
    CORE_OBSERVE(c, pass_done, c->sched.now_ns, &p->pub);
    pass_notify(c, p);
}

/* ---- repetition ---- */

/* Decisions that were not asked for: two calls of schedule in an iteration, one when its launch
 * ends, which does nothing while the host samples, and one when its tokens are out, which forms and
 * launches the next and rests. Without sampling both are one. `formed`: the passes that were. */
static void count_decisions(struct core *c, const struct repeat_record *r, uint32_t formed)
{
    uint64_t idle = r->sample_ns > 0 ? r->n : 0;
    c->next_pass_id += formed;
    c->next_launch_id += formed;
    c->result->decisions += 2 * (uint64_t)formed;
    c->sched.epoch += idle + formed;
    c->result->counters[COUNTER_SCHEDULE_ROUNDS] += idle + 2 * (uint64_t)formed;
}

/* n tokens of everybody are out. */
static void credit_many(struct core *c, struct full_pass *p, uint32_t n)
{
    for (uint32_t i = 0; i < p->pub.n_segments; i++) {
        struct segment *s = &p->segments[i];
        struct full_request *q = core_request(s->request);
        s->first_token = q->pub.kv_tokens + n - 1;
        s->emitted_tokens = 1;
        q->pub.kv_tokens += n;
        q->pub.generated_tokens += n;
        q->pub.last_token_ns = c->sched.now_ns;
        (void)kv_reserve(c, q, 0);
        SIM_REQUIRE(kv_has_room(c, q, 0) && q->pub.generated_tokens <= q->output_tokens,
                    "request %u is repeated beyond its end", q->pub.id);
    }
    core_progress(c);
}

void core_pass_repeated(struct core *c, struct full_launch *l, const struct repeat_record *r)
{
    struct full_pass *p = (struct full_pass *)l->pub.pass;
    SIM_REQUIRE(p->repeats && p->pub.n_launches == 1 && r->n > 0, "pass %u does not repeat",
                p->pub.id);
    CORE_OBSERVE(c, repeated, c->sched.now_ns, r);
    credit_many(c, p, r->n);
    for (uint32_t i = 0; i < p->pub.n_segments; i++) {
        struct full_request *q = core_request(p->segments[i].request);
        q->pub.pass = NULL;
        if (q->pub.generated_tokens == q->output_tokens) {
            core_request_leave(c, q, REQUEST_STATE_FINISHED);
        }
    }
    count_decisions(c, r, r->n - 1);
    p->pub.id = r->n > 1 ? c->next_pass_id : p->pub.id;
    p->pub.op = p->pub.n_ops;
    p->pub.rows_todo = 0;
    p->pub.rows_active = 0;
    p->pub.n_launches = 0;
    p->pub.state = PASS_STATE_DONE;
    l->pub.state = LAUNCH_STATE_ENDED;
    l->pub.outcome = LAUNCH_OUTCOME_DONE;
    l->pub.end_ns = c->sched.now_ns - r->sample_ns;
    core_launch_over(c, l);
    pass_notify(c, p);
}

void core_pass_goes_on(struct core *c, struct full_launch *l, const struct repeat_record *r)
{
    struct full_pass *p = (struct full_pass *)l->pub.pass;
    SIM_REQUIRE(p->repeats && p->pub.n_launches == 1 && p->pub.op == 0 && r->n > 0,
                "pass %u does not go on", p->pub.id);
    CORE_OBSERVE(c, repeated, c->sched.now_ns, r);
    credit_many(c, p, r->n);
    for (uint32_t i = 0; i < p->pub.n_segments; i++) {
        struct full_request *q = core_request(p->segments[i].request);
        p->segments[i].first_token = q->pub.kv_tokens;
        p->segments[i].emitted_tokens = 0;
        int rc = kv_reserve(c, q, 1);
        SIM_REQUIRE(rc == 0 && q->pub.generated_tokens < q->output_tokens,
                    "request %u cannot go on", q->pub.id);
    }
    count_decisions(c, r, r->n);
    p->pub.id = c->next_pass_id;
    p->formed_ns = c->sched.now_ns;
    l->pub.id = c->next_launch_id;
    l->pub.submit_ns = c->sched.now_ns;
    l->pub.state = LAUNCH_STATE_QUEUED;
    CORE_OBSERVE(c, pass_formed, c->sched.now_ns, &p->pub);
    CORE_OBSERVE(c, launch_submitted, c->sched.now_ns, &l->pub);
}
