/* Kernel boundaries inside two launches that run beside each other, or one beside the loader: most
 * events of a run on two devices, and nothing but rates changes at them. While the next thing to
 * happen is one, the engine goes from boundary to boundary without queue and without asking
 * anybody: the same instants, rates and reports as by events. Whatever ends a launch, stops one or
 * brings news is left to its event.
 */
#include <string.h>

#include "sim/engine/consistent.h"

void corun_init(struct engine *e)
{
    const struct sim_setup *s = e->core.setup;
    bool serial = true;
    for (uint32_t i = 0; i < s->machine->n_devices; i++) {
        serial = serial && s->machine->devices[i].sharing == DEVICE_SERIAL;
    }
    e->may_corun = e->may_collapse && serial && !e->kernels_seen && s->frames.per_s <= 0.0;
}

/* One of the two jobs, and where it is: read at the begin, written back at the end. */
struct lane {
    struct job *j;
    uint32_t side;                /* 0 or 1: of a pair */
    const struct kernel_run *run; /* the kernels it is among; NULL: not of a launch */
    uint32_t place;               /* of their op in the layer */
    uint32_t op, op_end, k;
    uint32_t single_end;       /* later ops of the launch before this one are of one kernel each */
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

/* Is the end of what the job does now only the end of a kernel? */
static inline bool goes_on(const struct job *j)
{
    const struct vexec *v = j->exec;
    return v != NULL && v->phase == VEXEC_RUNNING && !v->l->pub.stop_requested &&
           (v->k + 1 < vexec_run(v, v->op)->n || v->op + 1 < v->l->pub.op_end);
}

/* Where ops of one kernel each end: at the head; 0: others have more, or none follow. */
static inline uint32_t single_end(const struct vexec *v)
{
    const struct launch *l = &v->l->pub;
    const struct pass *p = l->pass;
    bool single = v->op + 1 < l->op_end;
    for (uint32_t i = 0; i < p->layer.n && single; i++) {
        single = v->run[p->layer.kind[i]].n == 1;
    }
    bool head = l->op_end == p->n_ops && p->shape.logit_rows > 0;
    return single ? l->op_end - head : 0;
}

static inline void lane_fill(const struct engine *e, uint32_t side, struct lane *l)
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
        l->goes_on = goes_on(j);
        l->single_end = single_end(v);
    }
}

static inline void lane_write_back(struct engine *e, const struct lane *l)
{
    struct job *j = l->j;
    SIM_ASSERT(l->end_ns >= e->now_ns && l->updated_ns <= e->now_ns && l->left_ns >= 0.0);
    SIM_ASSERT(l->rate > 0.0 && l->rate <= 1.0 && l->demand >= 0.0);
    j->demand_bytes_per_s = l->demand;
    j->rate = l->rate;
    j->left_ns = l->left_ns;
    j->updated_ns = l->updated_ns;
    struct vexec *v = j->exec;
    if (v != NULL) {
        struct sim_result *res = e->core.result;
        SIM_ASSERT(l->op < l->op_end && l->run == vexec_run(v, l->op) && l->k < l->run->n);
        SIM_ASSERT(l->place == l->op % v->l->pub.pass->layer.n || l->run == &v->run[OP_HEAD]);
        SIM_ASSERT(l->demand == vexec_kernel_demand(l->run, l->k) || l->kernels == 0);
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
    SIM_ASSERT(l->goes_on && l->k < l->run->n);
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

static inline void report(struct engine *e, struct corun_pair *p)
{
    if (p->count > 0) {
        ddr_report(e, p->count, p->ns, p->demand, p->share);
        p->count = 0;
    }
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

/* Is what is remembered of a pair what its flows get now? */
static bool pair_shared_anew(const struct engine *e, const struct corun_pair *p, double x, double y)
{
    const struct sim_setup *s = e->core.setup;
    const struct machine *m = s->machine;
    double capacity = fmax(m->ddr_peak_bytes_per_s * m->ddr_cap_frac, fmax(x, y));
    double of[2] = {x, y};
    struct flow flows[2];
    for (int i = 0; i < 2; i++) {
        uint8_t d = e->jobs[i]->device;
        SIM_ASSERT(e->jobs[i]->share_frac == 1.0);
        flows[i] =
            (struct flow){of[i], d < m->n_devices ? m->devices[d].ddr_weight : 1.0, d, of[i]};
    }
    s->contention->share(flows, 2, capacity, s->contention_params);
    SIM_ASSERT(p->rate[0] == ddr_rate(&flows[0]) && p->rate[1] == ddr_rate(&flows[1]));
    SIM_ASSERT(p->rate[0] > 0.0 && p->rate[0] <= 1.0 && p->rate[1] > 0.0 && p->rate[1] <= 1.0);
    SIM_ASSERT(p->demand == x + y);
    SIM_ASSERT(p->share == flows[0].share_bytes_per_s + flows[1].share_bytes_per_s);
    return true;
}

/* What two jobs of these demands get beside each other from now on; takes the place of another
 * pair. */
static void pair_make(struct engine *e, struct corun_pair *p, double x, double y)
{
    struct flow flows[ENGINE_MAX_JOBS];
    SIM_ASSERT(e->n_jobs == 2 && e->throttle.speed == 1.0);
    report(e, p); /* of the pair whose place it takes */
    e->jobs[0]->demand_bytes_per_s = x;
    e->jobs[1]->demand_bytes_per_s = y;
    double of_capacity = ddr_share_out(e, flows);
    *p = (struct corun_pair){.known = true,
                             .device = {e->jobs[0]->device, e->jobs[1]->device},
                             .of = {x, y},
                             .rate = {ddr_rate(&flows[0]), ddr_rate(&flows[1])},
                             .demand = e->ddr_demand,
                             .share = e->ddr_share,
                             .of_capacity = of_capacity};
}

static inline struct corun_pair *pair_of(struct engine *e, double x, double y)
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
    SIM_ASSERT(pair_shared_anew(e, p, x, y));
    return p;
}

const struct corun_pair *corun_pair(struct engine *e)
{
    const struct corun_pair *p =
        pair_of(e, e->jobs[0]->demand_bytes_per_s, e->jobs[1]->demand_bytes_per_s);
    ddr_audit(e, p->of_capacity);
    return p;
}

/* When a kernel of one side ends that begins now. */
static inline int64_t pair_end_ns(const struct engine *e, struct corun_pair *p, uint32_t side,
                                  int64_t solo_ns)
{
    SIM_ASSERT(solo_ns > 0);
    if (p->solo_ns[side] == solo_ns) {
        SIM_ASSERT(p->takes_ns[side] >= solo_ns); /* nobody is faster beside another than alone */
        return e->now_ns + p->takes_ns[side];
    }
    int64_t end_ns = engine_after(e, (double)solo_ns / p->rate[side]);
    if (end_ns < TIME_LAST_NS) {
        p->solo_ns[side] = solo_ns;
        p->takes_ns[side] = end_ns - e->now_ns;
    }
    return end_ns;
}

/* The next kernel of a lane begins at the rate of the pair. */
static inline void begin(const struct engine *e, struct lane *l, struct corun_pair *p)
{
    int64_t solo_ns = vexec_kernel_ns(l->run, l->k);
    l->begin_ns = e->now_ns;
    l->left_ns = (double)solo_ns;
    l->updated_ns = e->now_ns;
    l->rate = p->rate[l->side];
    l->end_ns = pair_end_ns(e, p, l->side, solo_ns);
}

/* Brings a kernel to a new rate, as job_advance and ddr_settle do it: devices have full speed. */
static inline void lane_advance(const struct engine *e, struct lane *l, double rate)
{
    double done = (double)(e->now_ns - l->updated_ns) * l->rate;
    l->left_ns -= done < l->left_ns ? done : l->left_ns;
    l->updated_ns = e->now_ns;
    l->rate = rate;
}

/* When a kernel ends that was brought to its rate at updated_ns: as engine_after says it then. */
static inline int64_t lane_end_ns(struct engine *e, const struct lane *l)
{
    int64_t now_ns = e->now_ns;
    e->now_ns = l->updated_ns;
    int64_t end_ns = engine_after(e, l->left_ns / l->rate);
    e->now_ns = now_ns;
    return end_ns;
}

/* Ops of one kernel each that follow the present one, which is of one too, before the head. */
static inline uint32_t single_kernels(const struct lane *l)
{
    return l->run->n == 1 && l->op + 1 < l->single_end ? l->single_end - 1 - l->op : 0;
}

/* What the ops of a layer, of one kernel each, get beside a kernel of the other lane: by place. */
struct cycle {
    struct corun_pair *with[LAYER_MAX_OPS];
    const struct kernel_run *run[LAYER_MAX_OPS];
    int64_t takes_ns[LAYER_MAX_OPS];
    double rate[LAYER_MAX_OPS]; /* of the other kernel */
};

/* Of lane l beside o. False: two of their pairs and the one under way have one place in the table,
 * or one takes for ever. */
static bool cycle_fill(struct engine *e, const struct lane *l, const struct lane *o,
                       struct cycle *c)
{
    const struct vexec *v = l->j->exec;
    const struct layer_ops *layer = &v->l->pub.pass->layer;
    uint32_t side = l->side;
    double demand[2] = {o->demand, o->demand};
    bool fits = true;
    for (uint32_t i = 0; i < layer->n; i++) {
        const struct kernel_run *run = &v->run[layer->kind[i]];
        demand[side] = run->tail_demand;
        struct corun_pair *p = pair_of(e, demand[0], demand[1]);
        int64_t end_ns = pair_end_ns(e, p, side, run->tail_ns);
        c->with[i] = p;
        c->run[i] = run;
        c->takes_ns[i] = end_ns - e->now_ns;
        c->rate[i] = p->rate[1 - side];
        fits = fits && end_ns < TIME_LAST_NS;
    }
    demand[side] = l->demand;
    (void)pair_of(e, demand[0], demand[1]); /* made again where another took its place */
    for (uint32_t i = 0; i < layer->n; i++) {
        fits = fits && c->with[i]->of[side] == c->run[i]->tail_demand;
    }
    return fits;
}

/* Kernels that follow the present one and are like it: the rest of one that was suspended may draw
 * a little more or less than a whole one. */
static uint32_t kernels_alike(const struct lane *l)
{
    const struct kernel_run *r = l->run;
    if (!l->goes_on || l->k + 1 >= r->n || l->demand != r->demand) {
        return 0;
    }
    bool last_too = r->tail_ns == r->t_ns && r->tail_demand == r->demand;
    return r->n - 1 - l->k - !last_too;
}

/* The present kernel has ended, and one like it begins beside the same kernel. */
static inline void again(struct lane *l, int64_t now_ns)
{
    l->kernels++;
    l->outside += l->run->outside;
    l->solo_ns += l->run->t_ns;
    l->k++;
    l->begin_ns = now_ns;
    l->updated_ns = now_ns;
    l->left_ns = (double)l->run->t_ns;
}

/* A ns is told from the next one in kernels that are no longer. */
#define LONGEST_NS 0x1p52

/* Ops of one kernel each go by beside a kernel of the other lane and those like it: most boundaries
 * are of decode beside a prompt. The same steps as in step; when the other kernel ends is looked at
 * where it may have less than a ns left only. l ends first. Returns the pair then under way, NULL:
 * it could not. */
static struct corun_pair *ops_go_by(struct engine *e, struct lane *l, struct lane *o,
                                    struct corun_pair *p, uint32_t most, int64_t before_ns)
{
    struct cycle c;
    SIM_ASSERT(l->end_ns < o->end_ns && l->run->n == 1 && l->end_ns < before_ns);
    if (o->left_ns > LONGEST_NS || !cycle_fill(e, l, o, &c)) {
        return NULL;
    }
    uint32_t layer = l->j->exec->l->pub.pass->layer.n;
    uint32_t alike = kernels_alike(o);
    const struct kernel_run *run = l->run;
    uint32_t place = l->place;
    uint32_t n = 0;
    int64_t solo_ns = 0;
    int64_t since_ns = e->ddr_since_ns;
    int64_t end_ns = l->end_ns;
    bool end_known = true; /* of the other kernel */
    while (end_ns < before_ns) {
        double done_ns = (double)(end_ns - o->updated_ns) * o->rate;
        if (o->left_ns - done_ns < 1.0) {
            o->end_ns = end_known ? o->end_ns : lane_end_ns(e, o);
            end_known = true;
            if (o->end_ns <= end_ns) {
                if (o->end_ns == end_ns || alike == 0) {
                    break;
                }
                pair_lasted(e, p, o->end_ns - since_ns);
                since_ns = o->end_ns;
                again(o, since_ns);
                alike--;
                end_known = false;
                continue;
            }
        }
        if (n == most) {
            break;
        }
        pair_lasted(e, p, end_ns - since_ns);
        since_ns = end_ns;
        solo_ns += run->tail_ns;
        l->outside += run->outside;
        n++;
        place = place + 1 < layer ? place + 1 : 0;
        run = c.run[place];
        p = c.with[place];
        if (c.rate[place] != o->rate) {
            o->left_ns -= done_ns < o->left_ns ? done_ns : o->left_ns;
            o->updated_ns = since_ns;
            o->rate = c.rate[place];
            end_known = false;
        }
        l->begin_ns = since_ns;
        end_ns += c.takes_ns[place];
    }
    for (uint32_t i = 0; i < n && i < layer; i++) { /* of those that began */
        ddr_audit(e, c.with[place >= i ? place - i : place + layer - i]->of_capacity);
    }
    l->kernels += n;
    l->op += n;
    l->solo_ns += solo_ns;
    SIM_ASSERT(n <= most && since_ns >= e->now_ns && end_ns > since_ns);
    l->run = run;
    l->place = place;
    l->end_ns = end_ns;
    l->demand = run->tail_demand;
    l->goes_on = not_the_last(l);
    l->left_ns = (double)run->tail_ns;
    l->updated_ns = l->begin_ns;
    l->rate = p->rate[l->side];
    o->end_ns = end_known ? o->end_ns : lane_end_ns(e, o);
    o->goes_on = o->goes_on && not_the_last(o);
    e->now_ns = since_ns;
    e->ddr_since_ns = since_ns;
    return p;
}

/* One boundary, or two at one instant. Returns the pair that follows. */
static struct corun_pair *step(struct engine *e, struct lane *lanes, struct lane *first,
                               struct lane *other, bool both, struct corun_pair *p)
{
    e->now_ns = first->end_ns;
    pair_lasted(e, p, e->now_ns - e->ddr_since_ns);
    e->ddr_since_ns = e->now_ns;
    next_kernel(first);
    if (both) {
        next_kernel(other);
    }
    if (p->of[0] != lanes[0].demand || p->of[1] != lanes[1].demand) {
        p = pair_of(e, lanes[0].demand, lanes[1].demand);
        ddr_audit(e, p->of_capacity);
    }
    begin(e, first, p);
    if (both) {
        begin(e, other, p);
    } else if (p->rate[other->side] != other->rate) {
        lane_advance(e, other, p->rate[other->side]);
        other->end_ns = lane_end_ns(e, other);
    }
    return p;
}

/* From boundary to boundary, as long as they are nothing else and come before that instant. */
static bool go_on(struct engine *e, struct lane *lanes, int64_t before_ns)
{
    SIM_ASSERT(!e->ddr_dirty && e->n_jobs == 2);
    struct corun_pair *p = pair_of(e, lanes[0].demand, lanes[1].demand);
    bool moved = false;
    for (;; moved = true) {
        bool y_first = lanes[1].end_ns < lanes[0].end_ns;
        struct lane *first = &lanes[y_first];
        struct lane *other = &lanes[!y_first];
        bool both = other->end_ns == first->end_ns;
        if (first->end_ns >= before_ns || !first->goes_on || (both && !other->goes_on)) {
            break;
        }
        uint32_t most = both ? 0 : single_kernels(first);
        struct corun_pair *went = NULL;
        if (most > 0) {
            went = ops_go_by(e, first, other, p, most, before_ns);
        }
        p = went != NULL ? went : step(e, lanes, first, other, both, p);
    }
    e->ddr_demand = p->demand;
    e->ddr_share = p->share;
    return moved;
}

bool corun(struct engine *e)
{
    uint32_t next = eventq_peek(&e->queue)->slot;
    uint32_t side = next == e->jobs[1]->event;
    if (next != e->jobs[side]->event || !goes_on(e->jobs[side])) {
        return false;
    }
    struct lane lanes[2];
    lane_fill(e, side, &lanes[side]);
    lane_fill(e, 1 - side, &lanes[1 - side]);
    int64_t horizon_ns = e->core.setup->horizon_ns;
    int64_t before_ns =
        eventq_time_but(&e->queue, e->jobs[0]->event, e->jobs[1]->event, TIME_LAST_NS);
    before_ns = horizon_ns < before_ns ? horizon_ns + 1 : before_ns;
    bool moved = go_on(e, lanes, before_ns);
    lane_write_back(e, &lanes[0]);
    lane_write_back(e, &lanes[1]);
    core_advance(&e->core, e->now_ns);
    SIM_ASSERT(engine_consistent(e));
    return moved;
}
