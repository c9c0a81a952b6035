/* Virtual devices: they run the kernels of their launches one after another, stop at yield points,
 * and collapse what nothing can disturb into one event. */
#include <errno.h>

#include "sim/base/rng.h"
#include "sim/engine/engine.h"

/* ---- kernels of a launch ---- */

static const struct kernel_run *run_of(const struct vexec *v, uint32_t op)
{
    return op == v->l->pub.op_begin ? &v->first : &v->run[pass_op_kind(v->l->pub.pass, op)];
}

static void run_scale(struct kernel_run *r, double factor)
{
    if (factor != 1.0) {
        r->t_ns = (int64_t)llround((double)r->t_ns * factor);
        r->tail_ns = (int64_t)llround((double)r->tail_ns * factor);
    }
    r->tail_ns = r->tail_ns < 1 ? 1 : r->tail_ns;
}

/* What really happens may differ from the model by a factor that belongs to this piece of work, so
 * that every policy that launches it meets the same one. */
static double truth_factor(const struct engine *e, const struct launch *l)
{
    double sigma = e->core.setup->truth_sigma;
    if (sigma <= 0.0) {
        return 1.0;
    }
    const struct segment *s = &l->pass->segments[0];
    uint64_t key = rng_key(e->core.setup->seed, RNG_TRUTH,
                           ((uint64_t)s->request->id << 32) | s->first_token,
                           ((uint64_t)l->op_begin << 8) | l->device);
    return exp(sigma * rng_normal_of_key(key) - 0.5 * sigma * sigma);
}

static void runs_fill(struct engine *e, struct vexec *v)
{
    const struct launch *l = &v->l->pub;
    const struct pass *p = l->pass;
    const struct hwmodel *m = e->core.setup->truth;
    v->truth_factor = truth_factor(e, l);
    kernel_run_fill(m, &p->shape, pass_op_kind(p, l->op_begin), l->device, l->graph, l->rows,
                    l->chunk_rows, &v->first);
    run_scale(&v->first, v->truth_factor);
    v->layer_ns = 0;
    if (l->op_end - l->op_begin == 1) {
        return;
    }
    uint32_t per_layer = p->fused_layers ? 1 : 3;
    uint32_t end = l->op_end < l->op_begin + per_layer + 1 ? l->op_end
                                                           : l->op_begin + per_layer + 1;
    for (uint32_t op = l->op_begin + 1; op < end; op++) {
        enum op_kind kind = pass_op_kind(p, op);
        kernel_run_fill(m, &p->shape, kind, l->device, l->graph, pass_op_rows(p, op),
                        l->chunk_rows, &v->run[kind]);
        run_scale(&v->run[kind], v->truth_factor);
        v->layer_ns += kind == OP_HEAD ? 0 : kernel_run_total_ns(&v->run[kind]);
    }
    if (l->op_end == p->n_ops && p->shape.logit_rows > 0) {
        kernel_run_fill(m, &p->shape, OP_HEAD, l->device, l->graph, p->shape.logit_rows,
                        l->chunk_rows, &v->run[OP_HEAD]);
        run_scale(&v->run[OP_HEAD], v->truth_factor);
    }
}

static int64_t kernel_ns(const struct kernel_run *r, uint32_t k)
{
    return k + 1 == r->n ? r->tail_ns : r->t_ns;
}

static double kernel_bytes(const struct kernel_run *r, uint32_t k)
{
    return k + 1 == r->n ? r->tail_bytes : r->bytes;
}

/* Books c kernels like (run, k) as done; they are counted one by one in every statistic. */
static void book(struct engine *e, struct vexec *v, const struct kernel_run *r, uint32_t k,
                 uint64_t c)
{
    struct sim_result *res = e->core.result;
    v->solo_ns += (int64_t)c * kernel_ns(r, k);
    res->kernels += c;
    if (r->outside) {
        res->counters[COUNTER_KERNELS_OUTSIDE_ENVELOPE] += c;
    }
}

/* Books c undisturbed kernels and what they moved. */
static void book_solo(struct engine *e, struct vexec *v, const struct kernel_run *r, uint32_t k,
                      uint64_t c)
{
    int64_t t = kernel_ns(r, k);
    double demand = kernel_bytes(r, k) / units_s_from_ns(t);
    ddr_report(e, c, t, demand, demand);
    book(e, v, r, k, c);
}

static void kernel_begin(struct engine *e, struct vexec *v)
{
    const struct kernel_run *r = run_of(v, v->op);
    v->kernel_begin_ns = e->now_ns;
    job_start(e, &v->job, (double)kernel_ns(r, v->k), kernel_bytes(r, v->k));
}

/* ---- collapsing ---- */

/* Solo time of ops [from, to), from at a kernel-0 position. O(1) in the number of layers. */
static int64_t ops_ns(const struct vexec *v, uint32_t from, uint32_t to)
{
    const struct pass *p = v->l->pub.pass;
    uint32_t per_layer = p->fused_layers ? 1 : 3;
    int64_t t = 0;
    while (from < to) {
        if (from > v->l->pub.op_begin && pass_op_kind(p, from) != OP_HEAD && v->layer_ns > 0) {
            uint32_t stop = pass_op_kind(p, to - 1) == OP_HEAD ? to - 1 : to;
            uint32_t layers = (stop - from) / per_layer; /* any per_layer ops in a row cost a layer */
            if (layers > 0) {
                t += (int64_t)layers * v->layer_ns;
                from += layers * per_layer;
                continue;
            }
        }
        t += kernel_run_total_ns(run_of(v, from));
        from++;
    }
    return t;
}

static int64_t rest_after_kernel_ns(const struct vexec *v)
{
    const struct kernel_run *r = run_of(v, v->op);
    int64_t t = 0;
    if (v->k + 1 < r->n) {
        t = (int64_t)(r->n - v->k - 2) * r->t_ns + r->tail_ns;
    }
    return t + ops_ns(v, v->op + 1, v->l->pub.op_end);
}

void device_collapse(struct engine *e, struct vexec *v)
{
    if (v->collapsed) {
        return;
    }
    struct job *j = &v->job;
    if (v->l->pub.stop_requested && v->l->pub.yield != YIELD_PASS) {
        /* It will stop soon: run kernel by kernel, alone at full rate. */
        v->collapsed = false;
    } else {
        v->collapsed = true;
    }
    if (j->event == EVENTQ_NONE || j->rate != 1.0) {
        double passed = (double)(e->now_ns - j->updated_ns);
        j->left_ns -= passed > 0.0 ? passed * j->rate : 0.0;
        j->left_ns = j->left_ns < 0.0 ? 0.0 : j->left_ns;
        j->updated_ns = e->now_ns;
        j->rate = 1.0;
    }
    v->head_ns = (int64_t)ceil(j->left_ns);
    int64_t at = j->updated_ns + v->head_ns;
    if (v->collapsed) {
        at += rest_after_kernel_ns(v);
        e->ddr_demand = 0.0; /* its kernels are reported when they are booked */
        e->ddr_share = 0.0;
    } else {
        e->ddr_demand = j->demand_bytes_per_s;
        e->ddr_share = j->demand_bytes_per_s;
    }
    if (j->event == EVENTQ_NONE) {
        j->event = eventq_push(&e->queue, at, engine_order(e, EVENT_KERNEL, j->device),
                               (uint64_t)(uintptr_t)v);
    } else {
        eventq_reschedule(&e->queue, j->event, at);
    }
}

/* Moves the position over `left` ns of undisturbed kernels; returns what is left of it inside the
 * kernel reached (0 at a boundary). */
static int64_t skip_kernels(struct engine *e, struct vexec *v, int64_t left)
{
    const struct pass *p = v->l->pub.pass;
    uint32_t end = v->l->pub.op_end;
    uint32_t per_layer = p->fused_layers ? 1 : 3;
    while (v->op < end) {
        const struct kernel_run *r = run_of(v, v->op);
        uint32_t stop = end == p->n_ops && p->shape.logit_rows > 0 ? end - 1 : end;
        if (v->k == 0 && v->op > v->l->pub.op_begin && v->op + per_layer <= stop &&
            left >= v->layer_ns && v->layer_ns > 0) {
            int64_t layers = left / v->layer_ns;
            int64_t most = (stop - v->op) / per_layer;
            layers = layers < most ? layers : most;
            for (uint32_t i = 0; i < per_layer; i++) {
                const struct kernel_run *q = run_of(v, v->op + i);
                book_solo(e, v, q, 0, (uint64_t)layers * (q->n - 1));
                book_solo(e, v, q, q->n - 1, (uint64_t)layers);
            }
            v->op += (uint32_t)layers * per_layer;
            left -= layers * v->layer_ns;
            continue;
        }
        if (v->k + 1 < r->n && left >= r->t_ns) {
            int64_t c = left / r->t_ns;
            int64_t most = r->n - 1 - v->k;
            c = c < most ? c : most;
            book_solo(e, v, r, 0, (uint64_t)c);
            v->k += (uint32_t)c;
            left -= c * r->t_ns;
            continue;
        }
        if (v->k + 1 == r->n && left >= r->tail_ns) {
            book_solo(e, v, r, v->k, 1);
            left -= r->tail_ns;
            v->op++;
            v->k = 0;
            continue;
        }
        break;
    }
    return left;
}

/* One kernel forward. */
static void position_next(struct vexec *v)
{
    v->k++;
    if (v->k == run_of(v, v->op)->n) {
        v->k = 0;
        v->op++;
    }
}

/* Undoes a collapse at the present instant: books what has run, finds the kernel in progress. */
void device_expand(struct engine *e, struct vexec *v)
{
    struct job *j = &v->job;
    const struct kernel_run *r = run_of(v, v->op);
    double demand = j->demand_bytes_per_s;
    int64_t gone = e->now_ns - j->updated_ns;
    v->collapsed = false;
    if (gone < v->head_ns) {
        ddr_report(e, 1, gone, demand, demand);
        j->left_ns -= (double)gone;
    } else {
        ddr_report(e, 1, v->head_ns, demand, demand);
        book(e, v, r, v->k, 1);
        position_next(v);
        gone = skip_kernels(e, v, gone - v->head_ns);
        if (v->op < v->l->pub.op_end) {
            r = run_of(v, v->op);
            int64_t t = kernel_ns(r, v->k);
            j->demand_bytes_per_s = kernel_bytes(r, v->k) / units_s_from_ns(t);
            j->left_ns = (double)(t - gone);
            v->kernel_begin_ns = e->now_ns - gone;
            ddr_report(e, 1, gone, j->demand_bytes_per_s, j->demand_bytes_per_s);
        }
    }
    j->updated_ns = e->now_ns;
    e->ddr_since_ns = e->now_ns;
    if (j->event != EVENTQ_NONE) {
        eventq_cancel(&e->queue, j->event);
        j->event = EVENTQ_NONE;
    }
    e->ddr_dirty = true;
}

/* ---- starting and ending ---- */

static void vdevice_shares(struct engine *e, struct vdevice *d)
{
    double share = 1.0;
    if (d->n_running > 1) {
        share = d->desc->shared_efficiency_frac / (double)d->n_running;
    }
    for (uint32_t i = 0; i < d->n_running; i++) {
        if (d->running[i]->collapsed) {
            device_expand(e, d->running[i]);
        }
        d->running[i]->job.share_frac = share;
    }
    ddr_touch(e);
}

static void run_begin(struct engine *e, struct vexec *v)
{
    v->phase = VEXEC_RUNNING;
    v->op = v->l->pub.op_begin;
    v->k = 0;
    ddr_join(e, &v->job);
    kernel_begin(e, v);
    power_device(e, v->job.device);
}

static void push_now(struct engine *e, struct vexec *v, int64_t at_ns)
{
    v->job.event = eventq_push(&e->queue, at_ns, engine_order(e, EVENT_KERNEL, v->job.device),
                               (uint64_t)(uintptr_t)v);
}

/* The device takes the launch: host work first, unless it overlapped with what ran before. */
static void vexec_start(struct engine *e, struct vdevice *d, struct vexec *v)
{
    d->running[d->n_running++] = v;
    int64_t lead = core_launch_lead_ns(&e->core, &v->l->pub);
    int64_t ready = v->l->pub.submit_ns + lead;
    int64_t begin = ready > e->now_ns ? ready : e->now_ns;
    runs_fill(e, v);
    if (d->desc->sharing == DEVICE_SERIAL && d->n_running > 1) {
        e->core.result->audit.double_bookings++;
    }
    v->job.share_frac = 1.0;
    core_launch_started(&e->core, v->l, begin - e->now_ns);
    if (d->n_running > 1) {
        vdevice_shares(e, d);
    }
    if (begin > e->now_ns) {
        v->phase = VEXEC_LEAD;
        push_now(e, v, begin);
    } else {
        run_begin(e, v);
    }
}

static struct vexec *vexec_new(struct engine *e, struct full_launch *l)
{
    struct vexec *v = e->free_execs;
    if (v == NULL) {
        v = arena_alloc(&e->core.arena, sizeof *v);
    } else {
        e->free_execs = v->next_free;
    }
    v->l = l;
    v->phase = VEXEC_QUEUED;
    v->outcome = LAUNCH_OUTCOME_DONE;
    v->op = l->pub.op_begin;
    v->k = 0;
    v->in_flight_left = 0;
    v->solo_ns = 0;
    v->lost_ns = 0;
    v->collapsed = false;
    v->job = (struct job){.event = EVENTQ_NONE, .device = l->pub.device, .rate = 1.0, .exec = v};
    l->pub.exec = v;
    return v;
}

static void exec_launch(void *exec, struct full_launch *l)
{
    struct engine *e = exec;
    struct vdevice *d = &e->devices[l->pub.device];
    struct vexec *v = vexec_new(e, l);
    if (d->desc->sharing == DEVICE_SERIAL && d->n_running > 0) {
        d->queue[d->n_queued++] = v;
    } else {
        vexec_start(e, d, v);
    }
}

static void remove_from(struct vexec **list, uint32_t *n, const struct vexec *v)
{
    uint32_t i = 0;
    while (list[i] != v) {
        i++;
    }
    for (; i + 1 < *n; i++) {
        list[i] = list[i + 1];
    }
    (*n)--;
}

/* The launch leaves the device and the core hears of it; the next one in flight starts at once. */
static void vexec_end(struct engine *e, struct vexec *v)
{
    struct vdevice *d = &e->devices[v->job.device];
    bool was_queued = v->outcome == LAUNCH_OUTCOME_WITHDRAWN;
    ddr_leave(e, &v->job);
    remove_from(was_queued ? d->queue : d->running, was_queued ? &d->n_queued : &d->n_running, v);
    if (!was_queued && d->n_running > 0) {
        vdevice_shares(e, d);
    }
    const struct launch *l = &v->l->pub;
    uint32_t ops_done = v->op - l->op_begin;
    uint32_t rows_done = v->k * l->chunk_rows;
    struct full_launch *fl = v->l;
    v->next_free = e->free_execs;
    e->free_execs = v;
    power_device(e, v->job.device);
    core_launch_ended(&e->core, fl, v->outcome, ops_done, rows_done, v->solo_ns, v->lost_ns);
    for (uint32_t i = 0; d->n_running == 0 && i < d->n_queued; i++) {
        struct vexec *next = d->queue[i];
        if (next->phase == VEXEC_QUEUED) { /* not one being withdrawn at this instant */
            remove_from(d->queue, &d->n_queued, next);
            vexec_start(e, d, next);
        }
    }
}

/* ---- events and stops ---- */

static bool at_yield_point(const struct vexec *v)
{
    const struct pass *p = v->l->pub.pass;
    switch (v->l->pub.yield) {
    case YIELD_KERNEL:
        return true;
    case YIELD_OP:
        return v->k == 0;
    case YIELD_LAYER:
        return v->k == 0 && (p->fused_layers || v->op % 3 == 0);
    case YIELD_PASS:
        return false;
    }
    return false;
}

static void report_kernel(struct engine *e, const struct vexec *v)
{
    const struct kernel_run *r = run_of(v, v->op);
    const struct pass *p = v->l->pub.pass;
    struct kernel_record rec = {
        .launch = &v->l->pub,
        .op = pass_op_kind(p, v->op),
        .layer = pass_op_layer(p, v->op),
        .index = v->k,
        .begin_ns = v->kernel_begin_ns,
        .end_ns = e->now_ns,
        .solo_ns = kernel_ns(r, v->k),
        .bytes = kernel_bytes(r, v->k),
    };
    CORE_OBSERVE(&e->core, kernel, &rec);
}

void device_event(struct engine *e, struct vexec *v)
{
    v->job.event = EVENTQ_NONE;
    if (v->phase == VEXEC_ENDING) {
        vexec_end(e, v);
        return;
    }
    if (v->phase == VEXEC_LEAD) {
        run_begin(e, v);
        return;
    }
    if (v->collapsed) {
        device_expand(e, v);
    } else {
        v->job.left_ns = 0.0;
        book(e, v, run_of(v, v->op), v->k, 1);
        report_kernel(e, v);
        position_next(v);
    }
    if (v->op == v->l->pub.op_end) {
        v->outcome = LAUNCH_OUTCOME_DONE;
        vexec_end(e, v);
    } else if (v->l->pub.stop_requested && v->in_flight_left > 0) {
        v->in_flight_left--;
        kernel_begin(e, v);
    } else if (v->l->pub.stop_requested && at_yield_point(v)) {
        v->outcome = LAUNCH_OUTCOME_YIELDED;
        vexec_end(e, v);
    } else {
        kernel_begin(e, v);
    }
}

/* Ends it by an event of its own, so that launch_done never comes from inside an action. */
static void end_at(struct engine *e, struct vexec *v, enum launch_outcome outcome, int64_t at_ns)
{
    if (v->job.event != EVENTQ_NONE) {
        eventq_cancel(&e->queue, v->job.event);
        v->job.event = EVENTQ_NONE;
    }
    if (v->job.active) {
        ddr_leave(e, &v->job);
    }
    v->phase = VEXEC_ENDING;
    v->outcome = outcome;
    push_now(e, v, at_ns);
}

static int exec_stop(void *exec, struct full_launch *l, enum preempt_mode mode)
{
    struct engine *e = exec;
    struct vexec *v = l->pub.exec;
    if (v->phase == VEXEC_ENDING) {
        return 0;
    }
    if (v->phase == VEXEC_QUEUED) {
        end_at(e, v, LAUNCH_OUTCOME_WITHDRAWN, e->now_ns);
        return 0;
    }
    if (v->phase == VEXEC_LEAD) {
        end_at(e, v, LAUNCH_OUTCOME_YIELDED, e->now_ns);
        return 0;
    }
    if (l->pub.yield == YIELD_PASS && mode == PREEMPT_CHECKPOINT) {
        return 0;
    }
    if (v->collapsed) {
        device_expand(e, v);
        if (v->op == l->pub.op_end) { /* it ends at this very instant */
            end_at(e, v, LAUNCH_OUTCOME_DONE, e->now_ns);
            return 0;
        }
    }
    bool untouched = v->kernel_begin_ns == e->now_ns;
    if (mode == PREEMPT_RESET) {
        v->lost_ns = e->now_ns - v->kernel_begin_ns;
        end_at(e, v, LAUNCH_OUTCOME_RESET, e->now_ns + e->devices[v->job.device].desc->reset_ns);
    } else if (!e->devices[v->job.device].desc->can_withdraw && l->pub.inflight > 1) {
        v->in_flight_left = l->pub.inflight - 1;
    } else if (untouched && at_yield_point(v)) {
        end_at(e, v, LAUNCH_OUTCOME_YIELDED, e->now_ns);
    }
    return 0;
}

static uint32_t exec_free_slots(void *exec, uint8_t device)
{
    const struct engine *e = exec;
    const struct vdevice *d = &e->devices[device];
    uint32_t live = d->n_running + d->n_queued;
    uint32_t most =
        d->desc->sharing == DEVICE_SERIAL ? d->desc->inflight_depth : d->desc->max_shared;
    return live < most ? most - live : 0;
}

static uint32_t exec_launches(void *exec, uint8_t device, const struct launch **out, uint32_t max)
{
    const struct engine *e = exec;
    const struct vdevice *d = &e->devices[device];
    for (uint32_t i = 0; i < d->n_running + d->n_queued && i < max; i++) {
        out[i] = i < d->n_running ? &d->running[i]->l->pub : &d->queue[i - d->n_running]->l->pub;
    }
    return d->n_running + d->n_queued;
}

static void exec_compile(void *exec, struct resident *r, int64_t duration_ns)
{
    channel_compile(exec, r, duration_ns);
}

static void exec_load(void *exec, struct resident *r, double bytes)
{
    channel_load(exec, r, bytes);
}

static void exec_resident_cancel(void *exec, struct resident *r)
{
    channel_cancel(exec, r);
}

static void exec_kv_move(void *exec, struct full_request *r, double bytes, bool in)
{
    channel_kv_move(exec, r, bytes, in);
}

static void exec_timer(void *exec, int64_t at_ns, uint64_t cookie)
{
    struct engine *e = exec;
    (void)eventq_push(&e->queue, at_ns, engine_order(e, EVENT_TIMER, 0), cookie);
}

static void exec_pass_tail(void *exec, struct full_pass *p, int64_t duration_ns)
{
    struct engine *e = exec;
    power_tail(e, 1);
    (void)eventq_push(&e->queue, e->now_ns + duration_ns,
                      engine_order(e, EVENT_PASS_TAIL, p->pub.segments[0].request->id),
                      (uint64_t)(uintptr_t)p);
}

static void exec_arrive_later(void *exec, int64_t at_ns, uint32_t row, uint32_t cold)
{
    struct engine *e = exec;
    uint32_t id = e->core.setup->trace->rows[row].request_id;
    e->arrivals_pending++;
    (void)eventq_push(&e->queue, at_ns, engine_order(e, EVENT_TURN, id),
                      ((uint64_t)cold << 32) | row);
}

static void exec_cancel_later(void *exec, int64_t at_ns, struct full_request *r)
{
    struct engine *e = exec;
    (void)eventq_push(&e->queue, at_ns, engine_order(e, EVENT_CANCEL, r->pub.id),
                      r->pub.id);
}

static void exec_bandwidth_weight(void *exec, uint8_t device, double weight)
{
    struct engine *e = exec;
    if (e->devices[device].weight != weight) {
        e->devices[device].weight = weight;
        ddr_touch(e);
    }
}

const struct executor_ops engine_ops = {
    .caps = CAP_SPANS | CAP_ROW_SPLIT | CAP_YIELD_KERNEL | CAP_COMPILE | CAP_LOAD | CAP_KV_EVICT |
            CAP_VERIFY,
    .launch = exec_launch,
    .stop = exec_stop,
    .free_slots = exec_free_slots,
    .launches = exec_launches,
    .compile = exec_compile,
    .load = exec_load,
    .resident_cancel = exec_resident_cancel,
    .kv_move = exec_kv_move,
    .timer = exec_timer,
    .pass_tail = exec_pass_tail,
    .arrive_later = exec_arrive_later,
    .cancel_later = exec_cancel_later,
    .bandwidth_weight = exec_bandwidth_weight,
};
