/* Forms passes: checks the spec, reserves KV, sums the shape. */
#include "sim/core/ahead.h"
#include "sim/core/consistent.h"
#include "sim/core/kv.h"

const char core_no_room[] = "not enough free KV";

static struct full_pass *pass_new(struct core *c, uint32_t n_segments)
{
    struct full_pass *p;
    FREE_TAKE(c->free_passes, &c->arena, p);
    struct pass *pub = p->pub != NULL ? p->pub : arena_alloc(&c->shown, sizeof *p->pub);
    if (p->capacity < n_segments) {
        /* The smaller array stays in the arena until the end of the run. */
        p->capacity = n_segments < 8 ? 8 : 2 * n_segments;
        p->segments = arena_alloc(&c->shown, p->capacity * sizeof *p->segments);
    }
    *pub = (struct pass){.segments = p->segments, .core = (uintptr_t)p ^ core_way};
    *p = (struct full_pass){.pub = pub, .segments = p->segments, .capacity = p->capacity};
    return p;
}

/* Returns why a pass cannot have the segment, or NULL. */
static inline const char *segment_fault(const struct segment *s, const struct full_request *r)
{
    const struct request *q = s->request;
    if (r == NULL || !r->alive) {
        return "the request has left, or there is none";
    }
    if (q->pass != NULL && s->role != SEGMENT_AHEAD) {
        return "the request is in a pass already";
    }
    if (q->kv_swapped || r->kv_moving) {
        return "the request's KV is on flash, or on its way";
    }
    if (s->n_tokens == 0 && s->role != SEGMENT_DRAFT) {
        return "a segment without tokens";
    }
    switch (s->role) {
    case SEGMENT_PREFILL:
        return q->state != REQUEST_STATE_QUEUED ? "prefill of a request that decodes already"
               : s->n_tokens > request_prefill_left(q)
                   ? "more tokens than are left to prefill (request_prefill_left)"
                   : NULL;
    case SEGMENT_DECODE:
    case SEGMENT_VERIFY:
        return q->state != REQUEST_STATE_DECODE ? "decode of a request whose prompt is not done"
               : s->role == SEGMENT_DECODE && s->n_tokens != 1 ? "a decode segment has one token"
                                                               : NULL;
    case SEGMENT_DRAFT:
        return q->state != REQUEST_STATE_DECODE ? "a draft for a prompt that is not done" : NULL;
    case SEGMENT_AHEAD:
        return ahead_fault(s);
    }
    return "there is no such role";
}

/* Adds one segment to the shape of its pass. */
static inline void shape_add(struct pass *p, const struct segment *s, uint32_t window)
{
    struct work_shape *w = &p->shape;
    const uint64_t n = s->n_tokens;
    const uint64_t end = s->first_token + n;
    SIM_ASSERT(n > 0 && end <= UINT32_MAX);
    work_shape_add(w, window, s->first_token, n);
    if (s->role == SEGMENT_PREFILL) {
        w->prefill_rows += s->n_tokens;
        w->logit_rows += end == request_prefill_target(s->request);
    } else {
        w->logit_rows += s->role == SEGMENT_DRAFT ? 1 : s->n_tokens;
    }
    p->has_reactive |= s->request->cls == REQUEST_CLASS_REACTIVE;
}

/* Calls `it` for the requests of valid segments. */
static void prefixes_do(struct core *c, const struct pass_spec *spec,
                        void (*it)(struct core *c, struct full_request *r))
{
    for (uint32_t i = 0; i < spec->n_segments; i++) {
        struct full_request *r = core_request(spec->segments[i].request);
        if (segment_fault(&spec->segments[i], r) == NULL) {
            it(c, r);
        }
    }
}

/* Takes a request out of a pass that was cancelled or not formed, and frees its reserved KV. */
void core_member_back(struct core *c, struct full_pass *p, struct full_request *r)
{
    SIM_ASSERT(r->alive && p->after == NULL);
    if (r->pub->pass != p->pub) {
        ahead_give_up(c, p, r);
        return;
    }
    r->pub->pass = NULL;
    kv_shrink(c, r, r->pub->kv_tokens);
    kv_prefix_rest(c, r);
}

/* The model that computes a segment. A draft without a draft model gives 0. */
static inline uint32_t model_of(const struct core *c, const struct segment *s)
{
    return s->role == SEGMENT_DRAFT ? c->sched->draft_model : s->request->model;
}

/* A draft segment processes the tokens that the draft model lacks, or its own last token. If tokens
 * came out since its last draft, what it drafted beyond them does not count. */
static void draft_take(struct full_request *r, struct segment *s)
{
    uint32_t known = r->pub->kv_tokens + 1;
    if (r->drafted_kv != r->pub->kv_tokens && r->drafted_tokens > r->pub->kv_tokens) {
        r->drafted_tokens = r->pub->kv_tokens;
    }
    s->first_token = r->drafted_tokens;
    s->n_tokens = r->drafted_tokens < known ? known - r->drafted_tokens : 1;
}

/* Appends a segment to a pass whose array has room. Returns NULL, or why it cannot. */
static inline const char *segment_take(struct core *c, struct full_pass *p, struct segment s)
{
    struct full_request *r = core_request(s.request);
    struct pass *pub = p->pub;
    const char *fault = segment_fault(&s, r);
    if (fault != NULL) {
        return fault;
    }
    const bool drafts = s.role == SEGMENT_DRAFT;
    if (model_of(c, &s) != pub->shape.model || (drafts && c->sched->draft_model == 0)) {
        return drafts ? "no model of the run drafts, or not for this pass"
                      : "a pass has requests of one model, and this one asks for another";
    }
    s.first_token = r->pub->kv_tokens;
    s.emitted_tokens = 0;
    s.gap_ns = 0;
    if (s.role == SEGMENT_AHEAD) {
        fault = ahead_take(c, p, &s);
        if (fault != NULL) {
            return fault;
        }
    } else if (drafts || kv_reserve(c, r, s.n_tokens) == 0) {
        SIM_ASSERT(!r->prefix_idle);
        r->pub->pass = pub;
    } else {
        return core_no_room;
    }
    if (drafts) {
        draft_take(r, &s);
    }
    SIM_ASSERT(pub->n_segments < p->capacity);
    p->segments[pub->n_segments++] = s;
    shape_add(pub, &s, c->models[pub->shape.model].llm->sliding_window);
    return NULL;
}

static int segments_take(struct core *c, struct full_pass *p, const struct pass_spec *spec)
{
    const struct segment *want = spec->segments;
    const struct segment *end = want + spec->n_segments;
    const struct full_request *first = core_request(want->request);
    if (c->n_models > 1 && first != NULL && first->alive) {
        p->pub->shape.model = model_of(c, want); /* that of the first segment */
    }
    const char *fault = NULL;
    uint32_t decodes = 0;
    for (; want < end && fault == NULL; want++) {
        fault = segment_take(c, p, *want);
        decodes += want->role == SEGMENT_DECODE;
    }
    p->steady = c->steady_until_ns > c->sched->now_ns && decodes == p->pub->n_segments &&
                decodes + c->steady_without == c->n_live;
    bool one_decode = p->pub->n_segments == 1 && decodes == 1;
    if (fault == NULL && p->before != NULL && p->pub->n_segments > 1) {
        fault = AHEAD_ALONE;
    } else if (fault == NULL && spec->fused_layers && !one_decode) {
        fault = "fused layers are for one decode segment alone";
    }
    if (fault != NULL) {
        for (uint32_t i = 0; i < p->pub->n_segments; i++) {
            core_member_back(c, p, core_member(&p->segments[i]));
        }
        BECOMES(pass, p->pub->state, PASS_STATE_CANCELLED); /* for holders of a stale pointer */
        FREE_PUT(c->free_passes, p);
        prefixes_do(c, spec, kv_prefix_rest);
        return fault == core_no_room ? core_refuse(c, COUNTER_PASS_NO_MEMORY, -ENOMEM, fault)
                                     : core_refuse(c, COUNTER_PASS_BAD_SEGMENT, -EINVAL, fault);
    }
    return 0;
}

int core_pass_form(struct core *c, const struct pass_spec *spec, struct pass **out)
{
    REFUSE_IF(c, spec->n_segments == 0 || spec->segments == NULL, PASS_BAD_SEGMENT, -EINVAL,
              "a pass without segments");
    struct full_pass *p = pass_new(c, spec->n_segments);
    /* Mark the prefixes of all segments as used first, so that making room for one segment does not
     * drop the prefix of another one. */
    if (c->kv_blocks_idle > 0 || c->prefixes != NULL) {
        prefixes_do(c, spec, kv_prefix_used);
    }
    int rc = segments_take(c, p, spec);
    if (rc != 0) {
        return rc;
    }
    struct pass *pub = p->pub;
    pub->id = ++c->next_pass_id; /* here, so that refused passes leave no gap */
    pub->state = PASS_STATE_READY;
    pub->fused_layers = spec->fused_layers;
    p->formed_events = c->result->events;
    p->served = pub->shape.prefill_rows == 0; /* requests in decode have been served */
    pub->policy_data = spec->policy_data;
    static const struct layer_ops fused = {1, {OP_LAYER}};
    const struct llm *llm = c->models[pub->shape.model].llm;
    pub->layer = spec->fused_layers ? fused : llm->layer;
    pub->n_ops = llm->n_layers * pub->layer.n + (pub->shape.logit_rows > 0 ? 1 : 0);
    pub->rows_todo = pass_op_rows(pub, 0);
    if (p->steady && c->expected != NULL && pub->fused_layers == c->expected->pub->fused_layers) {
        c->expected_as = pub;
    }
    SIM_ASSERT(pass_shape_adds_up(c, p));
    SIM_ASSERT(pass_consistent(c, p));
    CORE_OBSERVE(c, pass_formed, c->sched->now_ns, pub);
    *out = pub;
    return 0;
}
