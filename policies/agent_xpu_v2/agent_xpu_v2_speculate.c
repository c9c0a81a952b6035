/* Verified speculation as a decode back end of agent-xpu-v2: beyond both papers (sd.npu verifies on
 * an NPU that does nothing else; Agent.xpu decodes one token per pass on the iGPU).
 *
 * speculate=igpu   every decode batch verifies drafts, where it always ran
 * speculate=npu    while no prompt is processed or waits, the token-level ops of the batch run on
 *                  the NPU in a static graph of verify_rows rows, attention and head on the iGPU:
 *                  the paper's own placement of a prefill (B.3), and less power. A prompt takes the
 *                  NPU back at the next op, and the rest of the pass goes to the iGPU
 *
 * The drafter is sim.speculation's; drafting takes host time before the batch is formed. With
 * drafter=model a model of the run drafts, in passes on the iGPU. A pass has a row of every
 * sequence that lacks drafts, including those that become ready in the meantime. No sequence waits
 * for more passes than the longest draft has tokens. Acceptance is sim.speculation's in both cases.
 * The number of verified tokens follows earlier acceptance (common/speculate.h). The static graph
 * is assumed to be in memory; sim.weight_copies=2 counts it. */
#include "policies/agent_xpu_v2/agent_xpu_v2.h"
#include "policies/common/cost.h"

static enum axpu_speculate how(const struct sched *s)
{
    return (enum axpu_speculate)param_int(s, AXPU_SPECULATE);
}

bool axpu_drafts_by_model(const struct sched *s)
{
    return how(s) != AXPU_SPECULATE_NONE && param_int(s, AXPU_DRAFTER) == AXPU_DRAFTER_MODEL;
}

/* Whether no prompt needs the NPU. */
static bool npu_idle(const struct axpu *a)
{
    return a->current.request == NULL && a->aged.request == NULL && reqq_empty(&a->prefill_rt.q) &&
           reqq_empty(&a->prefill_be.q) && a->n_suspended == 0;
}

/* Tokens that may be drafted for a request now. A verification yields one more than it accepts. */
static uint32_t offered(struct sched *s, const struct request *r)
{
    uint32_t most = r->max_output_tokens - r->generated_tokens - 1;
    uint32_t n = sched_draft_tokens(s, r);
    return n < most ? n : most;
}

struct step {
    struct sched *s;
    const struct axpu *a;
    bool npu;
};

/* Time of a pass in which a model of the run drafts a token for every sequence; 0 without such a
 * model. */
static double draft_pass_ns(const struct step *x)
{
    const struct batch *b = &x->a->batch;
    struct work_shape w = {0};
    if (!axpu_drafts_by_model(x->s)) {
        return 0.0;
    }
    w.model = x->s->draft_model;
    w.logit_rows = b->n;
    for (uint32_t i = 0; i < b->n; i++) {
        work_shape_add(&w, sched_model(x->s, w.model)->sliding_window,
                       b->segments[i].request->kv_tokens, 1);
    }
    uint8_t igpu = (uint8_t)x->a->igpu;
    return speculate_pass_ns(x->s, &w, igpu, igpu, 0); /* its layers are not fused */
}

/* Time of an iteration in which every sequence verifies `drafted` tokens, without drafting. */
static double verify_ns(void *ctx, uint32_t drafted)
{
    const struct step *x = ctx;
    const struct batch *b = &x->a->batch;
    struct work_shape w = {0};
    for (uint32_t i = 0; i < b->n; i++) {
        cost_shape_add(x->s, &w, b->segments[i].request, 1 + drafted);
        w.logit_rows += drafted;
    }
    uint8_t igpu = (uint8_t)x->a->igpu;
    if (!x->npu) {
        double plain = (double)cost_iteration_ns(x->s, &w, igpu);
        return drafted == 0 ? plain : speculate_pass_ns(x->s, &w, igpu, igpu, 0);
    }
    /* Each layer goes to the iGPU for attention and back. */
    double barriers = 2.0 * sched_model(x->s, w.model)->n_layers * (double)x->s->machine->sync_ns;
    return speculate_pass_ns(x->s, &w, (uint8_t)x->a->npu, igpu,
                             (uint32_t)param_int(x->s, AXPU_VERIFY_ROWS)) +
           barriers;
}

/* Adds the time of drafting to verify_ns. Drafts that exist count, too, because the next batch will
 * wait for its own. */
static double iteration_ns(void *ctx, uint32_t drafted)
{
    const struct step *x = ctx;
    double host_ns = axpu_drafts_by_model(x->s) || drafted == 0
                         ? 0.0
                         : (double)units_ns_from_ms(param_number(x->s, AXPU_DRAFT_MS));
    return verify_ns(ctx, drafted) + drafted * draft_pass_ns(ctx) + host_ns;
}

/* Reduces the batch to the sequences that lack drafts of that length. False: there are none, or
 * there were enough passes. */
static bool draft_pass(struct sched *s, struct axpu *a, uint32_t length)
{
    struct batch *b = &a->batch;
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n && a->draft_passes < length; i++) {
        const struct request *r = b->segments[i].request;
        uint32_t want = offered(s, r) < length ? offered(s, r) : length;
        if (axpu_request(r)->drafted < want) {
            b->segments[n++] = (struct segment){.request = r, .role = SEGMENT_DRAFT};
        }
    }
    b->n = n > 0 ? n : b->n;
    return n > 0;
}

bool axpu_speculate_batch(struct sched *s, struct axpu *a)
{
    struct batch *b = &a->batch;
    a->verify_on_npu = false;
    if (how(s) == AXPU_SPECULATE_NONE || b->n == 0) {
        return false;
    }
    uint32_t most = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t n = offered(s, b->segments[i].request);
        most = n > most ? n : most;
    }
    bool npu = how(s) == AXPU_SPECULATE_NPU && npu_idle(a) && most > 0;
    /* Rows of each sequence in a pass of the static graph. */
    uint32_t rows = (uint32_t)param_int(s, AXPU_VERIFY_ROWS) / b->n;
    struct step x = {s, a, npu};
    uint32_t length =
        speculate_length(&a->estimate, most, npu && rows > 0 ? rows : 1, iteration_ns, &x);
    if (length == 0) {
        return false;
    }
    bool by_model = axpu_drafts_by_model(s);
    if (by_model && draft_pass(s, a, length)) {
        return true;
    }
    a->verify_on_npu = npu;
    for (uint32_t i = 0; i < b->n; i++) {
        struct segment *g = &b->segments[i];
        uint32_t n = offered(s, g->request);
        n = n < length ? n : length;
        n = by_model && axpu_request(g->request)->drafted < n ? axpu_request(g->request)->drafted
                                                              : n;
        g->role = n > 0 ? SEGMENT_VERIFY : SEGMENT_DECODE;
        g->n_tokens = 1 + n;
    }
    return true;
}

/* Whether a waiting sequence has a draft on offer. */
static bool any_offered(struct sched *s, const struct reqq *q)
{
    const struct request *r = q->head;
    while (r != NULL && offered(s, r) == 0) {
        r = reqq_next(r);
    }
    return r != NULL;
}

bool axpu_makes_drafts(struct sched *s, struct axpu *a)
{
    int64_t draft_ns = units_ns_from_ms(param_number(s, AXPU_DRAFT_MS));
    if (draft_ns == 0 || a->has_drafts || axpu_drafts_by_model(s)) {
        return true;
    }
    if (a->draft_ready_ns == 0) {
        a->draft_ready_ns = s->now_ns + draft_ns;
        (void)sched_set_timer(s, a->draft_ready_ns);
        return false;
    }
    a->has_drafts = s->now_ns >= a->draft_ready_ns;
    a->draft_ready_ns = a->has_drafts ? 0 : a->draft_ready_ns;
    return a->has_drafts;
}

bool axpu_drafted(struct sched *s, struct axpu *a)
{
    if (how(s) == AXPU_SPECULATE_NONE || axpu_drafts_by_model(s) ||
        !(any_offered(s, &a->decode_rt.q) || any_offered(s, &a->decode_be.q))) {
        a->draft_ready_ns = 0;
        return true;
    }
    /* The batch is not formed yet, so sequences that become ready during drafting join. If the last
     * batch wanted no drafts, do not draft before the next one wants them. */
    bool wants_none = a->draft_ready_ns == 0 && a->estimate.idle > 0;
    return wants_none || axpu_makes_drafts(s, a);
}

bool axpu_speculate_launch(struct sched *s, struct axpu *a)
{
    struct pass *p = a->decode;
    if (p == NULL || !a->verify_on_npu || p->state != PASS_STATE_READY) {
        return false;
    }
    if (!npu_idle(a)) {
        a->verify_on_npu = false;
        return false;
    }
    if (p->op == p->n_ops) {
        return true; /* the host samples */
    }
    enum op_kind op = pass_op_kind(p, p->op);
    bool token_level = op == OP_QKV || op == OP_FFN;
    struct launch_spec spec =
        sched_launch_rest(s, p, (uint8_t)(token_level ? a->npu : a->igpu), YIELD_KERNEL);
    spec.n_ops = 1;
    if (token_level) {
        spec.chunk_rows = (uint32_t)param_int(s, AXPU_VERIFY_ROWS);
    }
    if (sched_device_free_slots(s, spec.device) > 0) {
        (void)sched_launch(s, &spec, &a->decode_launch);
    }
    return true;
}
