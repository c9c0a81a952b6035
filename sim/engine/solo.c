/* A launch that has the machine for itself. One that finds it at rest waits until its policy has
 * come to rest too; if nothing else happens before its end, time goes there at once: the same
 * instants and reports as by events, without queue, shares and rates. Else it begins the ordinary
 * way, at the instant at which it was launched. */
#include "sim/engine/engine.h"

void solo_init(struct engine *e)
{
    const struct sim_setup *s = e->core.setup;
    bool seen = false;
    for (uint32_t i = 0; i < s->n_observers; i++) {
        seen = seen || s->observers[i]->kernel != NULL;
    }
    e->may_solo = e->may_collapse && !seen;
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

void solo_give_up(struct engine *e)
{
    struct vexec *v = e->waiting;
    e->waiting = NULL;
    if (v != NULL) {
        vexec_fill(e, v);
        device_begin(e, v);
    }
}

void solo_book(struct engine *e, struct vexec *v, struct prices *prices)
{
    const struct launch *l = &v->l->pub;
    const struct pass *p = l->pass;
    v->op = l->op_end;
    if (prices != NULL) {
        prices_book(e, v, prices, 1);
        vexec_report(e, v, &v->run[prices_attention(p)], e->core.setup->llm->n_layers);
        return;
    }
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

static void run_alone(struct engine *e, struct vexec *v, struct prices *p, int64_t end_ns)
{
    struct core *c = &e->core;
    const struct launch *l = &v->l->pub;
    e->now_ns = v->begin_ns;
    core_advance(c, e->now_ns);
    v->phase = VEXEC_RUNNING;
    core_kernel_started(c, v->l);
    power_device(e, l->device);
    solo_book(e, v, p);
    e->now_ns = end_ns;
    e->ddr_since_ns = end_ns;
    core_advance(c, end_ns);
    c->result->events++;
    device_end(e, v);
}

bool solo_run(struct engine *e)
{
    struct vexec *v = e->waiting;
    if (v == NULL) {
        return false;
    }
    if (e->ddr_dirty) {
        ddr_settle(e); /* what ended at this instant */
    }
    int64_t before_ns = eventq_empty(&e->queue) ? TIME_LAST_NS : eventq_peek(&e->queue)->time_ns;
    int64_t horizon_ns = e->core.setup->horizon_ns;
    before_ns = horizon_ns < before_ns ? horizon_ns + 1 : before_ns;
    struct prices *p = NULL;
    int64_t end_ns = v->begin_ns;
    if (vexec_whole_pass(v)) {
        p = prices_of_pass(e, v);
        const struct kernel_run *attention = vexec_attention(e, v, p);
        end_ns += p->others_ns + e->core.setup->llm->n_layers * kernel_run_total_ns(attention);
    } else {
        vexec_fill(e, v);
        end_ns += vexec_total_ns(v);
    }
    if (end_ns >= before_ns) {
        solo_give_up(e);
        return false;
    }
    e->waiting = NULL;
    if (p == NULL || !repeat_run(e, v, p, before_ns)) {
        run_alone(e, v, p, end_ns);
    }
    return true;
}
