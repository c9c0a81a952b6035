/* Kernel boundaries inside two launches that run beside each other, or one beside the loader: most
 * events of a run on two devices, and nothing but rates changes at them. While the next thing to
 * happen is one, the engine goes from boundary to boundary without queue and without asking
 * anybody: the same instants, rates and reports as by events. Whatever ends a launch, stops one or
 * brings news is left to its event.
 */
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

/* One of the two jobs, the kernels it is among (NULL: not of a launch), and when the present one
 * ends. */
struct lane {
    struct job *j;
    const struct kernel_run *run;
    uint32_t place; /* of its op in the layer */
    int64_t end_ns;
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
    *l = (struct lane){.j = j, .end_ns = q->heap[q->position[j->event]].time_ns};
    const struct vexec *v = j->exec;
    if (v != NULL) {
        l->run = vexec_run(v, v->op);
        l->place = v->op % v->l->pub.pass->layer.n;
        l->goes_on = v->phase == VEXEC_RUNNING && !v->l->pub.stop_requested && not_the_last(l);
    }
}

/* One kernel forward, as device_event does it. */
static inline void next_kernel(struct engine *e, struct lane *l)
{
    struct job *j = l->j;
    struct vexec *v = j->exec;
    vexec_book(e, v, l->run, v->k, 1);
    if (++v->k == l->run->n) {
        const struct pass *p = v->l->pub.pass;
        l->place = l->place + 1 < p->layer.n ? l->place + 1 : 0;
        bool head = ++v->op + 1 == p->n_ops && p->shape.logit_rows > 0;
        l->run = &v->run[head ? OP_HEAD : p->layer.kind[l->place]];
        v->k = 0;
    }
    v->kernel_begin_ns = e->now_ns;
    j->left_ns = (double)vexec_kernel_ns(l->run, v->k);
    j->updated_ns = e->now_ns;
    j->demand_bytes_per_s = vexec_kernel_demand(l->run, v->k);
    l->end_ns = TIME_NEVER_NS; /* until rates are known */
    l->goes_on = not_the_last(l);
    e->core.result->events++;
}

/* ---- pairs: few kernels beside each other come again and again ---- */

static void report(struct engine *e, struct corun_pair *p)
{
    ddr_report(e, p->count, p->ns, p->demand, p->share);
    p->count = 0;
}

void corun_report(struct engine *e)
{
    for (uint32_t i = 0; i < 1u << CORUN_BITS; i++) {
        report(e, &e->pairs[i]);
    }
}

/* They went on for so long: reported when they next go on for another time. */
static inline void pair_lasted(struct engine *e, struct corun_pair *p, int64_t ns)
{
    if (p->ns != ns) {
        report(e, p);
        p->ns = ns;
    }
    p->count++;
}

static struct corun_pair *pair_of(struct engine *e, const struct job *a, const struct job *b)
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
        report(e, p);
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

/* Brings it to its new rate, as ddr_settle does it. */
static inline void set_rate(struct engine *e, struct lane *l, double rate)
{
    struct job *j = l->j;
    if (l->end_ns == TIME_NEVER_NS || rate != j->rate) {
        job_advance(e, j);
        j->rate = rate;
        l->end_ns = engine_after(e, j->left_ns / rate);
    }
}

/* From boundary to boundary, as long as they are nothing else and come before that instant. */
static bool go_on(struct engine *e, struct lane *x, struct lane *y, int64_t before_ns)
{
    struct corun_pair *p = NULL; /* the one under way, unknown at first */
    for (;;) {
        int64_t next_ns = x->end_ns < y->end_ns ? x->end_ns : y->end_ns;
        bool x_ends = x->end_ns == next_ns;
        bool y_ends = y->end_ns == next_ns;
        if (next_ns >= before_ns || (x_ends && !x->goes_on) || (y_ends && !y->goes_on)) {
            break;
        }
        e->now_ns = next_ns;
        if (p != NULL) {
            pair_lasted(e, p, next_ns - e->ddr_since_ns);
        } else {
            ddr_report(e, 1, next_ns - e->ddr_since_ns, e->ddr_demand, e->ddr_share);
        }
        e->ddr_since_ns = next_ns;
        if (x_ends) {
            next_kernel(e, x);
        }
        if (y_ends) {
            next_kernel(e, y);
        }
        p = pair_of(e, x->j, y->j);
        set_rate(e, x, p->rate[0]);
        set_rate(e, y, p->rate[1]);
    }
    if (p != NULL) {
        e->ddr_demand = p->demand;
        e->ddr_share = p->share;
    }
    return p != NULL;
}

bool corun(struct engine *e)
{
    if (!e->may_corun || e->n_jobs != 2 || e->core.fruitless > 0) {
        return false;
    }
    uint32_t first = eventq_peek(&e->queue)->slot;
    bool y_is = e->jobs[1]->event == first;
    if (!y_is && e->jobs[0]->event != first) {
        return false;
    }
    struct lane x;
    struct lane y;
    lane_fill(e, e->jobs[0], &x);
    lane_fill(e, e->jobs[1], &y);
    if (!(y_is ? y.goes_on : x.goes_on)) {
        return false;
    }
    eventq_cancel(&e->queue, x.j->event);
    eventq_cancel(&e->queue, y.j->event);
    int64_t before_ns = eventq_empty(&e->queue) ? TIME_LAST_NS : eventq_peek(&e->queue)->time_ns;
    int64_t horizon_ns = e->core.setup->horizon_ns;
    before_ns = horizon_ns < before_ns ? horizon_ns + 1 : before_ns;
    bool moved = go_on(e, &x, &y, before_ns);
    const struct lane *lanes[] = {&x, &y};
    for (uint32_t i = 0; i < 2; i++) {
        struct job *j = lanes[i]->j;
        j->event = eventq_push(&e->queue, lanes[i]->end_ns,
                               engine_order(e, (enum event_kind)j->kind, j->device),
                               (uint64_t)(uintptr_t)j->exec);
    }
    core_advance(&e->core, e->now_ns);
    return moved;
}
