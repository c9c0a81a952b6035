/* A launch that has the machine for itself. One that finds it at rest waits until its policy has
 * come to rest too; if nothing happens before its end that could touch it, time goes there at once:
 * the same instants and reports as by events, without queue, shares and rates. Arrivals, turns,
 * cancellations and timers inside it only bring news: it waits on while the policy does not act.
 * Else it takes part the ordinary way, since the instant at which it began. */
#include "sim/engine/consistent.h"

void solo_init(struct engine *e)
{
    e->may_solo = e->may_collapse && !e->kernels_seen;
}

bool solo_waits(struct engine *e, struct vexec *v)
{
    const struct full_pass *p = (const struct full_pass *)v->l->pub.pass;
    uint8_t device = v->job.device;
    bool at_rest = e->n_jobs == 0 && e->devices[device].n_running == 1 && e->waiting == NULL &&
                   e->frames.phase == FRAMES_IDLE;
    if (!e->may_solo || !at_rest || p->begun[device].frac > 0.0) {
        return false;
    }
    e->waiting = v;
    return true;
}

/* What it would be if it had begun the ordinary way: collapsed since its first kernel began. */
static void take_part(struct engine *e, struct vexec *v)
{
    int64_t now_ns = e->now_ns;
    SIM_ASSERT(v->begin_ns <= now_ns && now_ns <= v->end_ns && e->n_jobs == 0);
    bool stops = v->l->pub.stop_requested; /* now, not then */
    v->l->pub.stop_requested = false;
    /* Back to when it began: what is derived from the instant (its collapse, its event, the
     * interval of the DDR) has to be what it would be if nobody had waited. */
    e->now_ns = v->begin_ns;
    ddr_join(e, &v->job);
    vexec_kernel_begin(e, v);
    ddr_settle(e);
    e->now_ns = now_ns;
    SIM_ASSERT(v->job.active && v->job.event != EVENTQ_NONE);
    v->l->pub.stop_requested = stops;
}

void solo_begins(struct engine *e)
{
    struct vexec *v = e->waiting;
    e->waiting = NULL;
    if (!v->filled) {
        vexec_fill(e, v);
    }
    if (v->phase == VEXEC_RUNNING) {
        take_part(e, v);
    } else {
        device_begin(e, v);
    }
}

void solo_stop(struct engine *e)
{
    if (e->waiting != NULL && e->waiting->phase == VEXEC_RUNNING) {
        solo_give_up(e);
    }
}

void solo_book(struct engine *e, struct vexec *v)
{
    const struct launch *l = &v->l->pub;
    const struct pass *p = l->pass;
    SIM_ASSERT(v->k == 0 && v->skip_ns == 0);
    SIM_ASSERT(vexec_total_adds_up(v));
    v->op = l->op_end;
    uint32_t n = l->op_end - l->op_begin - 1; /* ops after the first */
    vexec_report(e, v, &v->first, 1);
    if (n > 0 && pass_op_kind(p, l->op_end - 1) == OP_HEAD) {
        vexec_report(e, v, &v->run[OP_HEAD], 1);
        n--;
    }
    for (uint32_t i = 0; i < p->layer.n && i < n; i++) {
        enum op_kind kind = pass_op_kind(p, l->op_begin + 1 + i);
        vexec_report(e, v, &v->run[kind], vexec_count(v, n, i));
    }
}

/* Its first kernel begins. */
static void begin(struct engine *e, struct vexec *v)
{
    SIM_ASSERT(vexec_may_become(v->phase, VEXEC_RUNNING) && v->begin_ns >= e->now_ns);
    e->now_ns = v->begin_ns;
    core_advance(&e->core, e->now_ns);
    v->phase = VEXEC_RUNNING;
    core_kernel_started(&e->core, v->l);
    power_device(e, v->job.device);
}

static void run_alone(struct engine *e, struct vexec *v)
{
    struct core *c = &e->core;
    if (v->phase != VEXEC_RUNNING) {
        begin(e, v);
    }
    if (v->prices != NULL) {
        prices_book(e, v, v->prices, 1);
        vexec_report(e, v, &v->prices->run[prices_attention(v->l->pub.pass)],
                     e->core.setup->llm->n_layers);
        v->op = v->l->pub.op_end;
    } else {
        solo_book(e, v);
    }
    SIM_ASSERT(v->solo_ns == v->end_ns - v->begin_ns); /* what it took is what its kernels take */
    e->now_ns = v->end_ns;
    e->ddr_since_ns = v->end_ns; /* what it moved is told already */
    core_advance(c, v->end_ns);
    c->result->events++;
    device_end(e, v);
}

/* Prices it and finds its end. */
static void look_ahead(struct engine *e, struct vexec *v)
{
    if (vexec_whole_pass(v)) {
        v->prices = prices_of_pass(e, v);
        const struct kernel_run *attention = vexec_attention(e, v, v->prices);
        v->end_ns = v->begin_ns + v->prices->others_ns +
                    e->core.setup->llm->n_layers * kernel_run_total_ns(attention);
    } else {
        v->prices = NULL;
        vexec_fill(e, v);
        v->filled = true;
        v->end_ns = v->begin_ns + vexec_total_ns(v);
    }
    SIM_ASSERT(v->end_ns > v->begin_ns && v->begin_ns >= e->now_ns);
}

/* Does the next event, inside the launch, only bring news to the policy? Then the launch goes on as
 * it is, unless the policy acts. */
static bool only_news(const struct engine *e, const struct vexec *v)
{
    const struct eventq_node *next = eventq_peek(&e->queue);
    uint64_t kind = next->order >> 60;
    return kind >= EVENT_TURN && kind <= EVENT_TIMER && next->time_ns > v->begin_ns &&
           next->time_ns < v->end_ns && e->core.setup->frames.per_s <= 0.0;
}

bool solo_run(struct engine *e)
{
    struct vexec *v = e->waiting;
    if (e->ddr_dirty) {
        ddr_settle(e); /* what ended at this instant */
    }
    const struct full_pass *p = (const struct full_pass *)v->l->pub.pass;
    bool leads = v->phase != VEXEC_RUNNING;
    if (leads) {
        look_ahead(e, v);
    }
    int64_t next_ns = eventq_empty(&e->queue) ? TIME_LAST_NS : eventq_peek(&e->queue)->time_ns;
    int64_t horizon_ns = e->core.setup->horizon_ns;
    /* What ends at the horizon has ended; what ends as an event comes has its place in the order of
     * that instant, which only the queue knows. */
    int64_t before_ns = horizon_ns < next_ns ? horizon_ns + 1 : next_ns;
    if (v->end_ns >= before_ns) {
        if (before_ns != next_ns || !only_news(e, v)) {
            solo_give_up(e);
        } else if (leads) {
            e->core.result->events += v->begin_ns > e->now_ns;
            begin(e, v);
        }
        return false;
    }
    SIM_ASSERT(e->n_jobs == 0 && !e->ddr_dirty);
    e->waiting = NULL;
    bool repeats = leads && v->prices != NULL && p->steady;
    if (!repeats || !repeat_run(e, v, before_ns)) {
        run_alone(e, v);
    }
    return true;
}
