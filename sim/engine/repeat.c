/* Runs of iterations in one step. A policy says of a decode pass that it repeats (pass_spec); while
 * nothing can happen before the next iteration is over, the engine runs iteration after iteration
 * itself: the same instants, integrals and counts as if each had been formed, launched and
 * reported, without events and without asking the policy. The last iteration before something
 * happens is left to the ordinary way; one in which a request ends is the last of its run. Of the
 * kernels only attention differs from one iteration to the next, by its longer sequences. */
#include "sim/engine/engine.h"

/* Two calls of schedule in an iteration: one when its launch ends, which does nothing while the
 * host samples, and one when its tokens are out, which forms and launches the next and rests.
 * Without sampling both are one. */
enum { ROUNDS_IDLE = 1, ROUNDS_ACT = 2, ACTIONS = 2 };

static bool watched_closely(const struct sim_setup *s)
{
    for (uint32_t i = 0; i < s->n_observers; i++) {
        const struct observer *o = s->observers[i];
        bool sees_passes = o->tokens != NULL || o->pass_formed != NULL || o->pass_done != NULL ||
                           o->launch_submitted != NULL || o->launch_started != NULL ||
                           o->launch_ended != NULL || o->ddr != NULL || o->power != NULL;
        if (sees_passes && o->repeated == NULL) {
            return true;
        }
    }
    return s->decision_log != NULL;
}

void repeat_init(struct engine *e)
{
    const struct sim_setup *s = e->core.setup; /* with noise every iteration's kernels are new */
    e->repeat.allowed = e->may_collapse && !watched_closely(s) && s->truth_sigma <= 0.0;
}

static struct full_request *request_of(const struct full_pass *p, uint32_t i)
{
    return core_request(p->segments[i].request);
}

/* Iterations up to one in which a request ends, as far as free blocks reach. */
static uint32_t most_iterations(const struct engine *e, const struct full_pass *p)
{
    const struct core *c = &e->core;
    uint32_t most = REPEAT_MAX;
    for (uint32_t i = 0; i < p->pub.n_segments; i++) {
        const struct full_request *r = request_of(p, i);
        uint32_t left = r->output_tokens - r->pub.generated_tokens;
        if (!r->alive || r->cancel_pending || p->segments[i].role != SEGMENT_DECODE) {
            return 0;
        }
        most = left < most ? left : most;
    }
    for (; most > 0; most /= 2) {
        uint64_t need = 0;
        for (uint32_t i = 0; i < p->pub.n_segments; i++) {
            need += kv_blocks_lacking(c, request_of(p, i), most);
        }
        if (need <= c->kv_blocks_free) {
            break;
        }
    }
    return most;
}

static void grow(struct work_shape *w, uint32_t n)
{
    w->attn_pairs += (uint64_t)n * w->rows;
    w->kv_read_tokens += (uint64_t)n * w->rows;
    w->max_context_tokens += n;
}

/* What attention costs in the next n iterations, of which the pass's shape is the first. */
static void attention_ahead(struct engine *e, const struct launch *l, enum op_kind op, uint32_t n)
{
    const struct hwmodel *m = e->core.setup->truth;
    struct work_shape w = l->pass->shape;
    struct kernel_query q = {.device = l->device,
                             .graph = l->graph,
                             .op = op,
                             .rows = w.rows,
                             .padded_rows = w.rows,
                             .shape = &w};
    if (m->ops->growing != NULL) {
        m->ops->growing(m, &q, n, e->repeat.attention);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        hwmodel_kernel(m, &q, &e->repeat.attention[i]);
        grow(&w, 1);
    }
}

/* The kernels of an op of a whole pass. */
static const struct kernel_run *run_of(const struct vexec *v, enum op_kind op)
{
    return op == v->l->pub.pass->layer.kind[0] ? &v->first : &v->run[op];
}

/* Books the kernels of n iterations but for those with attention. */
static void book_others(struct engine *e, struct vexec *v, enum op_kind attention, uint64_t n)
{
    const struct pass *p = v->l->pub.pass;
    for (uint32_t i = 0; i < p->layer.n; i++) {
        if (p->layer.kind[i] != attention) {
            vexec_report(e, v, run_of(v, p->layer.kind[i]), n * e->core.setup->llm->n_layers);
        }
    }
    vexec_report(e, v, &v->run[OP_HEAD], n);
}

/* Everything that n iterations leave behind, at their end. */
static void settle(struct engine *e, struct full_pass *p, const struct repeat_record *r,
                   bool samples)
{
    struct core *c = &e->core;
    uint32_t n = r->n;
    core_advance(c, e->now_ns);
    for (uint32_t i = 0; i < p->pub.n_segments; i++) {
        struct full_request *q = request_of(p, i);
        p->segments[i].first_token = q->pub.kv_tokens + n - 1;
        q->pub.kv_tokens += n;
        q->pub.generated_tokens += n;
        q->pub.last_token_ns = e->now_ns;
        (void)kv_reserve(c, q, 0);
    }
    c->next_pass_id += n;
    p->pub.id = c->next_pass_id;
    c->next_launch_id += n;
    c->result->decisions += (uint64_t)n * ACTIONS;
    c->sched.epoch += (uint64_t)n * (samples ? 2 : 1);
    c->result->counters[COUNTER_SCHEDULE_ROUNDS] +=
        (uint64_t)n * (samples ? ROUNDS_IDLE + ROUNDS_ACT : ROUNDS_ACT);
    core_progress(c);
    e->ddr_since_ns = e->now_ns;
    CORE_OBSERVE(c, repeated, e->now_ns, r);
    for (uint32_t i = 0; i < p->pub.n_segments; i++) {
        struct full_request *q = request_of(p, i);
        if (q->pub.generated_tokens == q->output_tokens) {
            core_request_leave(c, q, REQUEST_STATE_FINISHED);
        }
    }
}

static bool can_repeat(const struct engine *e, const struct full_pass *p)
{
    const struct vdevice *d = &e->devices[p->whole.device];
    bool nothing_new = e->core.news == p->formed_news + 1; /* that its launch has ended */
    return e->repeat.allowed && p->ran_whole && nothing_new && e->n_jobs == 0 &&
           d->n_running == 0 && d->n_queued == 0 && e->power.tails == 0 &&
           e->frames.phase == FRAMES_IDLE;
}

/* Instants of the iterations that end before the given one; returns how many. The pass's shape is
 * that of the last one then. */
static uint32_t run_iterations(struct engine *e, struct vexec *v, uint32_t most, int64_t before_ns,
                               int64_t around_ns)
{
    struct repeat *rep = &e->repeat;
    const struct launch *l = &v->l->pub;
    struct work_shape *w = &l->pass->shape;
    enum op_kind attention = l->pass->fused_layers ? OP_LAYER : OP_MHA;
    uint32_t layers = e->core.setup->llm->n_layers;
    int64_t now_ns = e->now_ns;
    grow(w, 1);
    vexec_fill(e, v);
    struct kernel_run run = *run_of(v, attention);
    int64_t others_ns = vexec_total_ns(v) - layers * run.tail_ns;
    uint32_t n = 0;
    for (uint32_t ahead = 2; n < most; ahead = ahead < REPEAT_AHEAD ? 2 * ahead : ahead) {
        uint32_t block = most - n < ahead ? most - n : ahead;
        attention_ahead(e, l, attention, block);
        uint32_t end = n + block;
        for (uint32_t i = 0; n < end; i++, n++) {
            const struct kernel_cost *a = &rep->attention[i];
            int64_t solo_ns = others_ns + layers * a->t_ns;
            int64_t gap_ns = around_ns + solo_ns;
            if (now_ns + gap_ns >= before_ns || a->outside != run.outside) {
                most = end = n; /* the envelope's end makes all kernels new */
                break;
            }
            now_ns += gap_ns;
            rep->solo_ns[n] = solo_ns;
            rep->gap_ns[n] = gap_ns;
            run.tail_ns = a->t_ns;
            run.tail_bytes = a->bytes;
            run.tail_demand = a->bytes / units_s_from_ns(a->t_ns);
            vexec_report(e, v, &run, layers);
            grow(w, 1);
        }
    }
    w->attn_pairs -= w->rows;
    w->kv_read_tokens -= w->rows;
    w->max_context_tokens--;
    book_others(e, v, attention, n);
    e->now_ns = now_ns;
    return n;
}

void repeat_pass(struct engine *e, struct full_pass *p)
{
    if (!can_repeat(e, p)) {
        return;
    }
    struct core *c = &e->core;
    int64_t before_ns = eventq_empty(&e->queue) ? TIME_LAST_NS : eventq_peek(&e->queue)->time_ns;
    int64_t horizon_ns = c->setup->horizon_ns;
    before_ns = horizon_ns < before_ns ? horizon_ns + 1 : before_ns;
    uint32_t most = before_ns > e->now_ns ? most_iterations(e, p) : 0;
    p->pub.last_op_devices = 0; /* as of a pass that is new */
    if (most == 0) {
        return;
    }
    struct full_launch l = {.pub = p->whole};
    struct vexec v = {.l = &l};
    int64_t begin_ns = e->now_ns;
    int64_t lead_ns = core_launch_lead_ns(c, &l.pub);
    int64_t sample_ns = c->setup->machine->sample_ns_per_token * (int64_t)p->pub.shape.logit_rows;
    uint32_t n = run_iterations(e, &v, most, before_ns, lead_ns + sample_ns);
    if (n > 0) {
        struct repeat_record r = {.pass = &p->pub,
                                  .device = p->whole.device,
                                  .n = n,
                                  .lead_ns = lead_ns,
                                  .sample_ns = sample_ns,
                                  .solo_ns = e->repeat.solo_ns,
                                  .gap_ns = e->repeat.gap_ns};
        power_repeat(e, begin_ns, &r);
        settle(e, p, &r, sample_ns > 0);
    }
}
