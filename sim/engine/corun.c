/* Kernel boundaries inside launches that run beside each other: most events of a run on two
 * devices, and nothing but rates changes at them. While the next thing to happen is one, the engine
 * goes from boundary to boundary without queue and without asking anybody: the same instants, rates
 * and reports as by events. Whatever ends a launch, stops one or brings news is left to its event.
 */
#include <math.h>
#include <string.h>

#include "sim/engine/engine.h"

void corun_init(struct engine *e)
{
    const struct sim_setup *s = e->core.setup;
    bool seen = false;
    for (uint32_t i = 0; i < s->n_observers; i++) {
        seen = seen || s->observers[i]->kernel != NULL;
    }
    bool serial = true;
    for (uint32_t i = 0; i < s->machine->n_devices; i++) {
        serial = serial && s->machine->devices[i].sharing == DEVICE_SERIAL;
    }
    e->may_corun = e->may_collapse && serial && !seen && s->frames.per_s <= 0.0;
}

/* A job, the kernels it is among (NULL: not of a launch), and when the present one ends. */
struct lane {
    struct job *j;
    const struct kernel_run *run;
    int64_t end_ns;
    bool runs;    /* a launch that nobody asked to stop */
    bool goes_on; /* the end of its present kernel is only that */
};

static bool not_the_last(const struct lane *l)
{
    const struct vexec *v = l->j->exec;
    return v->k + 1 < l->run->n || v->op + 1 < v->l->pub.op_end;
}

static void lane_fill(const struct engine *e, struct job *j, struct lane *l)
{
    const struct eventq *q = &e->queue;
    l->j = j;
    const struct vexec *v = j->exec;
    l->run = v != NULL ? vexec_run(v, v->op) : NULL;
    l->runs = v != NULL && v->phase == VEXEC_RUNNING && !v->l->pub.stop_requested;
    l->goes_on = l->runs && not_the_last(l);
    l->end_ns = q->heap[q->position[j->event]].time_ns;
}

/* One kernel forward, as device_event does it. */
static void next_kernel(struct engine *e, struct lane *l)
{
    struct job *j = l->j;
    struct vexec *v = j->exec;
    vexec_book(e, v, l->run, v->k, 1);
    vexec_next(v);
    if (v->k == 0) {
        l->run = vexec_run(v, v->op);
    }
    v->kernel_begin_ns = e->now_ns;
    int64_t solo_ns = vexec_kernel_ns(l->run, v->k);
    j->left_ns = (double)solo_ns;
    j->updated_ns = e->now_ns;
    j->demand_bytes_per_s = vexec_kernel_demand(l->run, v->k);
    l->end_ns = TIME_NEVER_NS; /* until rates are known */
    l->goes_on = not_the_last(l);
    e->core.result->events++;
}

/* What two flows get: few pairs of kernels come again and again. */
static const struct corun_pair *pair_of(struct engine *e, const struct job *a, const struct job *b)
{
    uint64_t x;
    uint64_t y;
    memcpy(&x, &a->demand_bytes_per_s, sizeof x);
    memcpy(&y, &b->demand_bytes_per_s, sizeof y);
    uint64_t h = (x ^ y * 3) * 0x9e3779b97f4a7c15u;
    struct corun_pair *p = &e->pairs[h >> (64 - CORUN_BITS)];
    if (!p->known || p->bits[0] != x || p->bits[1] != y || p->device[0] != a->device ||
        p->device[1] != b->device) {
        struct flow flows[ENGINE_MAX_JOBS];
        ddr_share_out(e, flows);
        *p = (struct corun_pair){.known = true,
                                 .device = {a->device, b->device},
                                 .bits = {x, y},
                                 .rate = {ddr_rate(&flows[0]), ddr_rate(&flows[1])},
                                 .demand = e->ddr_demand,
                                 .share = e->ddr_share};
    }
    return p;
}

/* Brings all to their new rates, as ddr_settle does it. */
static void settle(struct engine *e, struct lane *lanes, uint32_t n)
{
    double rates[ENGINE_MAX_JOBS];
    if (n == 2) {
        const struct corun_pair *p = pair_of(e, lanes[0].j, lanes[1].j);
        rates[0] = p->rate[0];
        rates[1] = p->rate[1];
        e->ddr_demand = p->demand;
        e->ddr_share = p->share;
    } else {
        struct flow flows[ENGINE_MAX_JOBS];
        ddr_share_out(e, flows);
        for (uint32_t i = 0; i < n; i++) {
            rates[i] = ddr_rate(&flows[i]);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        struct lane *l = &lanes[i];
        struct job *j = l->j;
        double rate = rates[i];
        if (l->end_ns == TIME_NEVER_NS || rate != j->rate) {
            if (j->updated_ns != e->now_ns) {
                job_advance(e, j);
            }
            j->rate = rate;
            l->end_ns = engine_after(e, j->left_ns / rate);
        }
    }
}

bool corun(struct engine *e)
{
    if (!e->may_corun || e->n_jobs < 2 || e->core.fruitless > 0) {
        return false;
    }
    struct lane lanes[ENGINE_MAX_JOBS];
    uint32_t n = e->n_jobs;
    int64_t next_ns = TIME_NEVER_NS;
    uint32_t next = 0;
    for (uint32_t i = 0; i < n; i++) {
        lane_fill(e, e->jobs[i], &lanes[i]);
        if (lanes[i].end_ns < next_ns) {
            next_ns = lanes[i].end_ns;
            next = i;
        }
    }
    if (eventq_peek(&e->queue)->time_ns != next_ns || !lanes[next].goes_on) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        eventq_cancel(&e->queue, lanes[i].j->event);
    }
    int64_t before_ns = eventq_empty(&e->queue) ? TIME_LAST_NS : eventq_peek(&e->queue)->time_ns;
    int64_t horizon_ns = e->core.setup->horizon_ns;
    before_ns = horizon_ns < before_ns ? horizon_ns + 1 : before_ns;
    bool moved = false;
    for (;;) {
        bool all = true;
        next_ns = TIME_NEVER_NS;
        for (uint32_t i = 0; i < n; i++) {
            if (lanes[i].end_ns < next_ns) {
                next_ns = lanes[i].end_ns;
                all = lanes[i].goes_on;
            } else if (lanes[i].end_ns == next_ns) {
                all = all && lanes[i].goes_on;
            }
        }
        if (next_ns >= before_ns || !all) {
            break;
        }
        moved = true;
        e->now_ns = next_ns;
        ddr_report(e, 1, next_ns - e->ddr_since_ns, e->ddr_demand, e->ddr_share);
        e->ddr_since_ns = next_ns;
        for (uint32_t i = 0; i < n; i++) {
            if (lanes[i].end_ns == next_ns) {
                next_kernel(e, &lanes[i]);
            }
        }
        settle(e, lanes, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct job *j = lanes[i].j;
        j->event = eventq_push(&e->queue, lanes[i].end_ns,
                               engine_order(e, (enum event_kind)j->kind, j->device),
                               (uint64_t)(uintptr_t)j->exec);
    }
    core_advance(&e->core, e->now_ns);
    return moved;
}
