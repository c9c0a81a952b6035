/* Runs of iterations in one step. A policy says of a decode pass that it repeats (pass_spec); while
 * nothing can happen before the next iteration is over, the engine runs iteration after iteration
 * itself: the same instants, integrals and counts as if each had been formed, launched and
 * reported, without events and without asking the policy. The last iteration before something
 * happens is left to the ordinary way, and so is the one in which a request ends. */
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
    e->repeat.allowed = e->may_collapse && !watched_closely(e->core.setup);
}

static struct full_request *request_of(const struct full_pass *p, uint32_t i)
{
    return core_request(p->segments[i].request);
}

/* Iterations until one in which a request ends, as far as free blocks reach. */
static uint32_t most_iterations(const struct engine *e, const struct full_pass *p)
{
    const struct core *c = &e->core;
    uint32_t most = REPEAT_MAX;
    for (uint32_t i = 0; i < p->pub.n_segments; i++) {
        const struct full_request *r = request_of(p, i);
        uint32_t left = r->output_tokens - r->pub.generated_tokens;
        if (!r->alive || r->cancel_pending || p->segments[i].role != SEGMENT_DECODE || left < 2) {
            return 0;
        }
        most = left - 1 < most ? left - 1 : most;
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

/* The kernels of the next iteration. Only attention depends on how long the sequences are, so the
 * others stay, unless noise or the model's envelope makes them new. */
static void fill_next(struct engine *e, struct vexec *v, bool first)
{
    struct pass *p = v->l->pub.pass;
    enum op_kind attention = p->fused_layers ? OP_LAYER : OP_MHA;
    if (first || e->core.setup->truth_sigma > 0.0) {
        vexec_fill(e, v);
        return;
    }
    bool outside = v->run[attention].outside;
    vexec_refill(e, v, attention);
    if (v->run[attention].outside != outside) {
        vexec_fill(e, v);
    }
}

struct count {
    struct kernel_run run;
    uint64_t n; /* ops like it, not yet reported */
};

static void report(struct engine *e, struct vexec *v, struct count *c)
{
    if (c->n > 0) {
        vexec_report(e, v, &c->run, c->n);
        c->n = 0;
    }
}

/* n more ops like run; what differs from those before is reported apart. */
static void add_ops(struct engine *e, struct vexec *v, struct count *c,
                    const struct kernel_run *run, uint64_t n)
{
    const struct kernel_run *r = &c->run;
    bool same = r->n == run->n && r->t_ns == run->t_ns && r->tail_ns == run->tail_ns &&
                r->bytes == run->bytes && r->tail_bytes == run->tail_bytes &&
                r->outside == run->outside;
    if (!same) {
        report(e, v, c);
        c->run = *run;
    }
    c->n += n;
}

static void add_iteration(struct engine *e, struct vexec *v, struct count counts[OP_KIND_COUNT + 1])
{
    const struct pass *p = v->l->pub.pass;
    uint32_t layers = e->core.setup->llm->n_layers;
    add_ops(e, v, &counts[OP_KIND_COUNT], &v->first, 1);
    for (int kind = 0; kind < OP_KIND_COUNT; kind++) {
        bool there = p->fused_layers ? kind == OP_LAYER : kind < OP_HEAD;
        uint32_t n = kind == OP_HEAD ? 1 : there ? layers : 0;
        n -= kind == (p->fused_layers ? OP_LAYER : OP_QKV) ? 1 : 0; /* the first op of all */
        if (n > 0) {
            add_ops(e, v, &counts[kind], &v->run[kind], n);
        }
    }
}

/* What the device and the host draw, from the iteration's first kernel to its last token. */
static void draw_power(struct engine *e, uint8_t device, int64_t begin_ns, int64_t end_ns,
                       int64_t out_ns)
{
    e->now_ns = begin_ns;
    power_device_phase(e, device, POWER_PHASE_DECODE);
    e->now_ns = end_ns;
    power_device_phase(e, device, POWER_PHASE_IDLE);
    power_tail(e, 1);
    e->now_ns = out_ns;
    power_tail(e, -1);
}

/* Everything that n iterations leave behind, at their end. */
static void settle(struct engine *e, struct full_pass *p, uint32_t n, int64_t lead_ns, bool samples)
{
    struct core *c = &e->core;
    core_advance(c, e->now_ns);
    for (uint32_t i = 0; i < p->pub.n_segments; i++) {
        struct full_request *r = request_of(p, i);
        p->segments[i].first_token = r->pub.kv_tokens + n - 1;
        r->pub.kv_tokens += n;
        r->pub.generated_tokens += n;
        r->pub.last_token_ns = e->now_ns;
        (void)kv_reserve(c, r, 0);
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
    struct repeat_record rec = {&p->pub, p->whole.device,   n,
                                lead_ns, e->repeat.solo_ns, e->repeat.gap_ns};
    CORE_OBSERVE(c, repeated, e->now_ns, &rec);
}

static bool can_repeat(const struct engine *e, const struct full_pass *p)
{
    const struct vdevice *d = &e->devices[p->whole.device];
    bool nothing_new = e->core.news == p->formed_news + 1; /* that its launch has ended */
    return e->repeat.allowed && p->ran_whole && nothing_new && e->n_jobs == 0 &&
           d->n_running == 0 && d->n_queued == 0 && e->power.tails == 0 &&
           e->frames.phase == FRAMES_IDLE;
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
    struct full_launch l = {.pub = p->whole};
    struct vexec v = {.l = &l};
    struct count counts[OP_KIND_COUNT + 1] = {0};
    p->pub.last_op_devices = 0; /* as of a pass that is new */
    int64_t lead_ns = core_launch_lead_ns(c, &l.pub);
    int64_t sample_ns = c->setup->machine->sample_ns_per_token * (int64_t)p->pub.shape.logit_rows;
    uint32_t n = 0;
    struct work_shape *w = &p->pub.shape;
    uint32_t first_token = p->segments[0].first_token;
    for (; n < most; n++) {
        p->segments[0].first_token++;
        w->attn_pairs += w->rows;
        w->kv_read_tokens += w->rows;
        w->max_context_tokens++;
        fill_next(e, &v, n == 0);
        int64_t solo_ns = vexec_total_ns(&v);
        int64_t begin_ns = e->now_ns + lead_ns;
        int64_t out_ns = begin_ns + solo_ns + sample_ns;
        if (out_ns >= before_ns) {
            w->attn_pairs -= w->rows;
            w->kv_read_tokens -= w->rows;
            w->max_context_tokens--;
            break;
        }
        e->repeat.solo_ns[n] = solo_ns;
        e->repeat.gap_ns[n] = out_ns - e->now_ns;
        add_iteration(e, &v, counts);
        draw_power(e, p->whole.device, begin_ns, begin_ns + solo_ns, out_ns);
    }
    p->segments[0].first_token = first_token;
    for (uint32_t i = 0; i <= OP_KIND_COUNT; i++) {
        report(e, &v, &counts[i]);
    }
    if (n > 0) {
        settle(e, p, n, lead_ns, sample_ns > 0);
    }
}
