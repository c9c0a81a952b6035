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

/* One of the two jobs, and where it is: read at the begin, written back at the end. */
struct lane {
    struct job *j;
    uint32_t side;                /* 0 or 1: of a pair */
    const struct kernel_run *run; /* the kernels it is among; NULL: not of a launch */
    uint32_t place;               /* of their op in the layer */
    uint32_t op, op_end, k;
    uint64_t kernels, outside; /* that have ended, and those of them outside the envelope */
    int64_t solo_ns;           /* of them */
    int64_t begin_ns, end_ns;  /* of the present one */
    bool goes_on;              /* its end is only that */
    double demand, rate;
    double left_ns; /* at updated_ns */
    int64_t updated_ns;
};

static inline bool not_the_last(const struct lane *l)
{
    return l->k + 1 < l->run->n || l->op + 1 < l->op_end;
}

static void lane_fill(const struct engine *e, uint32_t side, struct lane *l)
{
    struct job *j = e->jobs[side];
    *l = (struct lane){.j = j,
                       .side = side,
                       .end_ns = eventq_time(&e->queue, j->event),
                       .demand = j->demand_bytes_per_s,
                       .rate = j->rate,
                       .left_ns = j->left_ns,
                       .updated_ns = j->updated_ns};
    const struct vexec *v = j->exec;
    if (v != NULL) {
        l->run = vexec_run(v, v->op);
        l->place = v->op % v->l->pub.pass->layer.n;
        l->op = v->op;
        l->op_end = v->l->pub.op_end;
        l->k = v->k;
        l->begin_ns = v->kernel_begin_ns;
        l->goes_on = v->phase == VEXEC_RUNNING && !v->l->pub.stop_requested && not_the_last(l);
    }
}

static void lane_write_back(struct engine *e, const struct lane *l)
{
    struct job *j = l->j;
    j->demand_bytes_per_s = l->demand;
    j->rate = l->rate;
    j->left_ns = l->left_ns;
    j->updated_ns = l->updated_ns;
    struct vexec *v = j->exec;
    if (v != NULL) {
        struct sim_result *res = e->core.result;
        v->op = l->op;
        v->k = l->k;
        v->kernel_begin_ns = l->begin_ns;
        v->solo_ns += l->solo_ns;
        res->kernels += l->kernels;
        res->events += l->kernels;
        res->counters[COUNTER_KERNELS_OUTSIDE_ENVELOPE] += l->outside;
    }
    eventq_reschedule(&e->queue, j->event, l->end_ns);
}

/* One kernel forward, as device_event does it; it begins when rates are known. */
static inline void next_kernel(struct lane *l)
{
    const struct vexec *v = l->j->exec;
    l->kernels++;
    l->outside += l->run->outside;
    l->solo_ns += vexec_kernel_ns(l->run, l->k);
    if (++l->k == l->run->n) {
        const struct pass *p = v->l->pub.pass;
        l->place = l->place + 1 < p->layer.n ? l->place + 1 : 0;
        bool head = ++l->op + 1 == p->n_ops && p->shape.logit_rows > 0;
        l->run = &v->run[head ? OP_HEAD : p->layer.kind[l->place]];
        l->k = 0;
    }
    l->demand = vexec_kernel_demand(l->run, l->k);
    l->goes_on = not_the_last(l);
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

/* They went on for so long: times that come again are counted and reported when others do. */
static inline void pair_lasted(struct engine *e, struct corun_pair *p, int64_t ns)
{
    if (p->ns != ns) {
        if (p->count > 1) {
            ddr_report(e, 1, ns, p->demand, p->share);
            return;
        }
        report(e, p);
        p->ns = ns;
    }
    p->count++;
}

/* What two jobs of these demands get beside each other from now on; takes the place of another
 * pair. */
static void pair_make(struct engine *e, struct corun_pair *p, double x, double y)
{
    struct flow flows[ENGINE_MAX_JOBS];
    report(e, p);
    e->jobs[0]->demand_bytes_per_s = x;
    e->jobs[1]->demand_bytes_per_s = y;
    ddr_share_out(e, flows);
    *p = (struct corun_pair){.known = true,
                             .device = {e->jobs[0]->device, e->jobs[1]->device},
                             .of = {x, y},
                             .rate = {ddr_rate(&flows[0]), ddr_rate(&flows[1])},
                             .demand = e->ddr_demand,
                             .share = e->ddr_share};
}

static struct corun_pair *pair_of(struct engine *e, double x, double y)
{
    uint64_t bits[2];
    memcpy(&bits[0], &x, sizeof x);
    memcpy(&bits[1], &y, sizeof y);
    uint64_t h = (bits[0] ^ bits[1] * 3) * 0x9e3779b97f4a7c15u;
    struct corun_pair *p = &e->pairs[h >> (64 - CORUN_BITS)];
    if (p->of[0] != x || p->of[1] != y || p->device[0] != e->jobs[0]->device ||
        p->device[1] != e->jobs[1]->device || !p->known) {
        pair_make(e, p, x, y);
    }
    return p;
}

const struct corun_pair *corun_pair(struct engine *e)
{
    return pair_of(e, e->jobs[0]->demand_bytes_per_s, e->jobs[1]->demand_bytes_per_s);
}

/* The next kernel of a lane begins at the rate of the pair. */
static inline void begin(const struct engine *e, struct lane *l, struct corun_pair *p)
{
    int64_t solo_ns = vexec_kernel_ns(l->run, l->k);
    l->begin_ns = e->now_ns;
    l->left_ns = (double)solo_ns;
    l->updated_ns = e->now_ns;
    l->rate = p->rate[l->side];
    if (p->solo_ns[l->side] == solo_ns) {
        l->end_ns = e->now_ns + p->takes_ns[l->side];
        return;
    }
    l->end_ns = engine_after(e, l->left_ns / l->rate);
    if (l->end_ns < TIME_LAST_NS) {
        p->solo_ns[l->side] = solo_ns;
        p->takes_ns[l->side] = l->end_ns - e->now_ns;
    }
}

/* Brings a kernel to its new rate, as job_advance and ddr_settle do it: devices have full speed. */
static inline void go_on_at(const struct engine *e, struct lane *l, double rate)
{
    if (rate != l->rate) {
        double done = (double)(e->now_ns - l->updated_ns) * l->rate;
        l->left_ns -= done < l->left_ns ? done : l->left_ns;
        l->updated_ns = e->now_ns;
        l->rate = rate;
        l->end_ns = engine_after(e, l->left_ns / rate);
    }
}

/* Ops of one kernel each that follow an op of one, before the head. */
static uint32_t single_kernels(const struct lane *l)
{
    const struct vexec *v = l->j->exec;
    const struct pass *p = v->l->pub.pass;
    bool single = l->run->n == 1 && l->op + 1 < l->op_end;
    for (uint32_t i = 0; i < p->layer.n && single; i++) {
        single = v->run[p->layer.kind[i]].n == 1;
    }
    bool head = l->op_end == p->n_ops && p->shape.logit_rows > 0;
    return single ? l->op_end - 1 - l->op - head : 0;
}

/* Ops of one kernel each go by while the other lane is in one: most boundaries are of decode
 * beside a prompt. The same steps as in go_on. Returns the pair then under way. */
static struct corun_pair *ops_go_by(struct engine *e, struct lane *l, struct lane *other,
                                    struct corun_pair *p, int64_t before_ns)
{
    struct corun_pair *with[LAYER_MAX_OPS] = {NULL};
    const struct vexec *v = l->j->exec;
    const struct layer_ops layer = v->l->pub.pass->layer;
    uint32_t side = l->side;
    uint32_t most = single_kernels(l);
    uint32_t n = 0;
    struct lane o = *other;
    int64_t since_ns = e->ddr_since_ns;
    int64_t next_ns = l->end_ns;
    for (; n < most && next_ns < o.end_ns && next_ns < before_ns; n++) {
        e->now_ns = next_ns;
        pair_lasted(e, p, next_ns - since_ns);
        since_ns = next_ns;
        l->solo_ns += l->run->tail_ns;
        l->outside += l->run->outside;
        l->place = l->place + 1 < layer.n ? l->place + 1 : 0;
        l->run = &v->run[layer.kind[l->place]];
        p = with[l->place];
        if (p == NULL || p->of[side] != l->run->tail_demand ||
            p->solo_ns[side] != l->run->tail_ns) { /* another took its place */
            l->demand = l->run->tail_demand;
            p = side == 0 ? pair_of(e, l->demand, o.demand) : pair_of(e, o.demand, l->demand);
            with[l->place] = p;
            begin(e, l, p);
            next_ns = l->end_ns;
        } else {
            next_ns += p->takes_ns[side];
        }
        go_on_at(e, &o, p->rate[1 - side]);
    }
    if (n > 0) {
        l->kernels += n;
        l->op += n;
        l->demand = l->run->tail_demand;
        l->goes_on = not_the_last(l);
        begin(e, l, p);
        *other = o;
        e->ddr_since_ns = since_ns;
    }
    return p;
}

/* From boundary to boundary, as long as they are nothing else and come before that instant. */
static bool go_on(struct engine *e, struct lane *x, struct lane *y, int64_t before_ns)
{
    struct corun_pair *p = NULL; /* the one under way, unknown at first */
    for (;;) {
        bool y_first = y->end_ns < x->end_ns;
        struct lane *first = y_first ? y : x;
        struct lane *other = y_first ? x : y;
        int64_t next_ns = first->end_ns;
        bool both = other->end_ns == next_ns;
        if (next_ns >= before_ns || !first->goes_on || (both && !other->goes_on)) {
            break;
        }
        e->now_ns = next_ns;
        if (p != NULL) {
            pair_lasted(e, p, next_ns - e->ddr_since_ns);
        } else {
            ddr_report(e, 1, next_ns - e->ddr_since_ns, e->ddr_demand, e->ddr_share);
        }
        e->ddr_since_ns = next_ns;
        next_kernel(first);
        if (both) {
            next_kernel(other);
        }
        p = pair_of(e, x->demand, y->demand);
        begin(e, first, p);
        if (both) {
            begin(e, other, p);
        } else {
            go_on_at(e, other, p->rate[other->side]);
            p = ops_go_by(e, first, other, p, before_ns);
        }
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
    uint32_t next = eventq_peek(&e->queue)->slot;
    uint32_t side = next == e->jobs[1]->event;
    if (next != e->jobs[side]->event) {
        return false;
    }
    struct lane lanes[2];
    lane_fill(e, side, &lanes[side]);
    if (!lanes[side].goes_on) {
        return false;
    }
    lane_fill(e, 1 - side, &lanes[1 - side]);
    int64_t horizon_ns = e->core.setup->horizon_ns;
    int64_t before_ns =
        eventq_time_but(&e->queue, e->jobs[0]->event, e->jobs[1]->event, TIME_LAST_NS);
    before_ns = horizon_ns < before_ns ? horizon_ns + 1 : before_ns;
    bool moved = go_on(e, &lanes[0], &lanes[1], before_ns);
    lane_write_back(e, &lanes[0]);
    lane_write_back(e, &lanes[1]);
    core_advance(&e->core, e->now_ns);
    return moved;
}
