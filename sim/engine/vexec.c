/* The kernels of one launch: what they are, where the launch stands among them, and collapsing what
 * nothing can disturb into one event. A collapsed launch books its kernels when it is expanded, so
 * every statistic is the same as if each had been an event. */
#include "sim/base/rng.h"
#include "sim/engine/engine.h"

/* Noise does not move bytes faster than the DDR can. */
static int64_t noisy_ns(const struct engine *e, int64_t t_ns, double bytes, double factor)
{
    double least = ceil(bytes / e->core.setup->machine->ddr_peak_bytes_per_s * 1e9);
    SIM_ASSERT(factor > 0.0 && isfinite(factor));
    double t = round((double)t_ns * factor);
    return (int64_t)(t > least ? t : least);
}

/* A kernel alone must not draw more than the DDR has, whatever its model says. */
static inline void audit_kernel(struct engine *e, int64_t t_ns, double bytes)
{
    double *over = &e->core.result->audit.ddr_max_over_capacity;
    *over = vexec_over_capacity(*over, vexec_peak_bytes_per_ns(e), t_ns, bytes);
}

static inline void tail_finish(struct engine *e, struct kernel_run *r)
{
    r->tail_ns =
        r->tail_ns < 1 ? 1 : r->tail_ns; /* a kernel of no time would never let time pass */
    audit_kernel(e, r->tail_ns, r->tail_bytes);
    r->tail_demand = r->tail_bytes / units_s_from_ns(r->tail_ns);
    SIM_ASSERT(r->tail_demand >= 0.0);
}

static void run_finish(struct engine *e, struct kernel_run *r, double factor)
{
    if (factor != 1.0) {
        r->t_ns = noisy_ns(e, r->t_ns, r->bytes, factor);
        r->tail_ns = noisy_ns(e, r->tail_ns, r->tail_bytes, factor);
    }
    tail_finish(e, r);
    r->demand = 0.0;
    if (r->n > 1) {
        audit_kernel(e, r->t_ns, r->bytes);
        r->demand = r->t_ns > 0 ? r->bytes / units_s_from_ns(r->t_ns) : 0.0;
    }
    SIM_ASSERT(r->n >= 1 && r->demand >= 0.0);
}

/* What really happens may differ from the model by a factor that belongs to this piece of work, so
 * that every policy that launches it meets the same one. */
static double drawn_factor(const struct engine *e, const struct launch *l)
{
    double sigma = e->core.setup->truth_sigma;
    const struct segment *s = &l->pass->segments[0];
    /* Of the work and the device, and of no launch's number: those differ between policies. */
    uint64_t key =
        rng_key(e->core.setup->seed, RNG_TRUTH, ((uint64_t)s->request->id << 32) | s->first_token,
                ((uint64_t)l->op_begin << 8) | l->device);
    return exp(sigma * rng_normal_of_key(key) - 0.5 * sigma * sigma);
}

static inline double truth_factor(const struct engine *e, const struct launch *l)
{
    return e->core.setup->truth_sigma > 0.0 ? drawn_factor(e, l) : 1.0;
}

static inline bool same_context(const struct work_shape *x, const struct work_shape *y)
{
    return x->attn_pairs == y->attn_pairs && x->kv_read_tokens == y->kv_read_tokens &&
           x->max_context_tokens == y->max_context_tokens;
}

bool vexec_priced_anew(struct engine *e, const struct launch *l, enum op_kind op, uint32_t rows,
                       const struct kernel_run *run)
{
    struct kernel_run now;
    kernel_run_fill(e->core.setup->truth, &l->pass->shape, op, l->device, l->graph, rows,
                    l->chunk_rows, &now);
    run_finish(e, &now, truth_factor(e, l));
    SIM_ASSERT(run->n == now.n && run->outside == now.outside);
    SIM_ASSERT(run->tail_ns == now.tail_ns && run->tail_bytes == now.tail_bytes);
    SIM_ASSERT(run->tail_demand == now.tail_demand);
    SIM_ASSERT(now.n == 1 || (run->t_ns == now.t_ns && run->bytes == now.bytes));
    SIM_ASSERT(now.n == 1 || run->demand == now.demand);
    return true;
}

/* Kernels of one op; p: where their prices are kept. Those of attention hold while the same pass
 * goes on. */
static inline const struct kernel_run *price(struct engine *e, const struct vexec *v,
                                             enum op_kind op, uint32_t rows, struct prices *p)
{
    const struct launch *l = &v->l->pub;
    const struct work_shape *w = &l->pass->shape;
    bool attention = op == OP_MHA || op == OP_LAYER;
    struct kernel_run *run = &p->run[op];
    if (!p->known[op] || (attention && !same_context(&p->attention, w))) {
        kernel_run_fill(e->core.setup->truth, w, op, l->device, l->graph, rows, l->chunk_rows, run);
        run_finish(e, run, v->truth_factor);
        p->known[op] = true;
        if (attention) {
            p->attention = *w;
        }
    }
    SIM_ASSERT(vexec_priced_anew(e, l, op, rows, run));
    return run;
}

/* One by one, of a model that has no other way. */
__attribute__((noinline)) static void attention_of_each(const struct hwmodel *m,
                                                        const struct kernel_query *first,
                                                        uint32_t n, struct kernel_cost *out)
{
    struct work_shape w = *first->shape;
    struct kernel_query q = *first;
    q.shape = &w;
    for (uint32_t i = 0; i < n; i++) {
        hwmodel_kernel(m, &q, &out[i]);
        w.attn_pairs += w.rows;
        w.kv_read_tokens += w.rows;
        w.max_context_tokens++;
    }
}

static inline void attention_ahead(struct engine *e, const struct launch *l, enum op_kind op,
                                   const struct work_shape *w, struct prices *p, uint32_t n,
                                   struct kernel_cost *out)
{
    const struct hwmodel *m = e->core.setup->truth;
    struct kernel_query q = {.device = l->device,
                             .graph = l->graph,
                             .op = op,
                             .rows = w->rows,
                             .padded_rows = w->rows,
                             .shape = w};
    if (m->ops->growing != NULL) {
        m->ops->growing(m, &q, &p->any_context, n, out);
    } else {
        attention_of_each(m, &q, n, out);
    }
}

void vexec_attention_ahead(struct engine *e, const struct launch *l, const struct work_shape *w,
                           struct prices *p, uint32_t n, struct kernel_cost *out)
{
    attention_ahead(e, l, prices_attention(l->pass), w, p, n, out);
}

const struct kernel_run *vexec_attention(struct engine *e, struct vexec *v, struct prices *p)
{
    const struct pass *pass = v->l->pub.pass;
    enum op_kind op = prices_attention(pass);
    if (!p->known[op] || v->l->pub.graph > 0) { /* a graph's may be padded */
        v->truth_factor = truth_factor(e, &v->l->pub);
        return price(e, v, op, pass->shape.rows, p);
    }
    if (!same_context(&p->attention, &pass->shape)) {
        struct kernel_cost cost;
        attention_ahead(e, &v->l->pub, op, &pass->shape, p, 1, &cost);
        struct kernel_run *run = &p->run[op];
        run->tail_ns = cost.t_ns;
        run->tail_bytes = cost.bytes;
        run->flop = cost.flop;
        run->outside = cost.outside;
        tail_finish(e, run); /* the only one */
        p->attention = pass->shape;
    }
    SIM_ASSERT(vexec_priced_anew(e, &v->l->pub, op, pass->shape.rows, &p->run[op]));
    return &p->run[op];
}

void vexec_fill(struct engine *e, struct vexec *v)
{
    const struct launch *l = &v->l->pub;
    const struct pass *p = l->pass;
    v->truth_factor = truth_factor(e, l);
    v->layer_ns = 0;
    struct prices *known = prices_find(e, &p->shape, l, l->rows);
    v->first = *price(e, v, pass_op_kind(p, l->op_begin), l->rows, known);
    if (l->op_end - l->op_begin == 1) {
        return;
    }
    /* A share of its first op is priced by its rows, what follows by those of the pass. The first
     * place is copied from already: the second may be the same one, emptied. */
    if (l->rows != p->shape.rows) {
        known = prices_find(e, &p->shape, l, p->shape.rows);
    }
    uint32_t per_layer = p->layer.n;
    uint32_t end =
        l->op_end < l->op_begin + per_layer + 1 ? l->op_end : l->op_begin + per_layer + 1;
    for (uint32_t op = l->op_begin + 1; op < end; op++) {
        enum op_kind kind = pass_op_kind(p, op);
        if (kind != OP_HEAD) {
            v->run[kind] = *price(e, v, kind, p->shape.rows, known);
            v->layer_ns += kernel_run_total_ns(&v->run[kind]);
        }
    }
    if (l->op_end == p->n_ops && p->shape.logit_rows > 0) {
        v->run[OP_HEAD] = *price(e, v, OP_HEAD, p->shape.logit_rows, known);
    }
}

/* Books c undisturbed kernels and what they moved. */
static inline void book_solo(struct engine *e, struct vexec *v, const struct kernel_run *r,
                             uint32_t k, uint64_t c)
{
    if (c > 0) {
        int64_t t = vexec_kernel_ns(r, k);
        SIM_ASSERT(k < r->n && t > 0 && e->throttle.speed == 1.0);
        double demand = vexec_kernel_demand(r, k);
        ddr_report(e, c, t, demand, demand);
        vexec_book(e, v, r, k, c);
    }
}

void vexec_kernel_begin(struct engine *e, struct vexec *v)
{
    const struct kernel_run *r = vexec_run(v, v->op);
    SIM_ASSERT(v->op < v->l->pub.op_end && v->k < r->n && v->phase == VEXEC_RUNNING);
    v->kernel_begin_ns = e->now_ns;
    core_kernel_started(&e->core, v->l);
    double solo_ns = (double)vexec_kernel_ns(r, v->k);
    if (v->skip_ns == 0) {
        job_start_at(e, &v->job, solo_ns, vexec_kernel_demand(r, v->k));
        return;
    }
    double left_ns = solo_ns - (double)vexec_skip_ns(v);
    job_start(e, &v->job, left_ns, vexec_kernel_bytes(r, v->k) * (left_ns / solo_ns));
}

/* Rows that the op of the present kernel has still to do in this launch, that kernel included. */
static uint32_t rows_left(const struct vexec *v)
{
    const struct launch *l = &v->l->pub;
    uint32_t rows = v->op == l->op_begin ? l->rows : pass_op_rows(l->pass, v->op);
    SIM_ASSERT(v->k == 0 || rows > v->k * l->chunk_rows);
    return rows - v->k * l->chunk_rows;
}

void vexec_suspend(struct engine *e, struct vexec *v)
{
    struct job *j = &v->job;
    int64_t solo_ns = vexec_kernel_ns(vexec_run(v, v->op), v->k);
    double left = (double)(solo_ns - vexec_skip_ns(v));
    if (v->phase != VEXEC_PAUSED) {
        job_advance(e, j);
        left = j->left_ns;
    }
    SIM_ASSERT(left >= 0.0 && left <= (double)solo_ns);
    double done = 1.0 - left / (double)solo_ns;
    struct begun *b = &((struct full_pass *)v->l->pub.pass)->begun[v->job.device];
    *b = (struct begun){done < 0.0 ? 0.0 : done, v->op, rows_left(v)};
    v->solo_ns += units_round(b->frac * (double)solo_ns); /* the skip was taken off */
    v->slowed_ns += v->job.slowed_ns;
    v->skip_ns = 0;
}

void vexec_continue(struct vexec *v)
{
    struct begun *b = &((struct full_pass *)v->l->pub.pass)->begun[v->job.device];
    bool same = b->op == v->op && b->rows == rows_left(v);
    int64_t solo_ns = vexec_kernel_ns(&v->first, 0);
    v->skip_ns = same ? units_round(b->frac * (double)solo_ns) : 0;
    v->skip_ns = v->skip_ns < solo_ns ? v->skip_ns : solo_ns - 1; /* something is left to do */
    SIM_ASSERT(v->skip_ns >= 0 && b->frac >= 0.0 && b->frac <= 1.0);
    v->solo_ns = -v->skip_ns; /* booked by the launch that did it */
    b->frac = 0.0;            /* gone on with: nobody else may */
}

/* ---- collapsing ---- */

/* Solo time of ops [from, to), from at a kernel-0 position. O(1) in the number of layers. */
static int64_t ops_ns(const struct vexec *v, uint32_t from, uint32_t to)
{
    const struct pass *p = v->l->pub.pass;
    uint32_t per_layer = p->layer.n;
    int64_t t = 0;
    while (from < to) {
        if (from > v->l->pub.op_begin && pass_op_kind(p, from) != OP_HEAD && v->layer_ns > 0) {
            uint32_t stop = pass_op_kind(p, to - 1) == OP_HEAD ? to - 1 : to;
            uint32_t layers =
                (stop - from) / per_layer; /* any per_layer ops in a row cost a layer */
            if (layers > 0) {
                t += (int64_t)layers * v->layer_ns;
                from += layers * per_layer;
                continue;
            }
        }
        t += kernel_run_total_ns(vexec_run(v, from));
        from++;
    }
    return t;
}

int64_t vexec_total_ns(const struct vexec *v)
{
    const struct launch *l = &v->l->pub;
    const struct pass *p = l->pass;
    uint32_t after = l->op_end - l->op_begin - 1;
    int64_t t = kernel_run_total_ns(&v->first);
    if (after > 0 && pass_op_kind(p, l->op_end - 1) == OP_HEAD) {
        t += kernel_run_total_ns(&v->run[OP_HEAD]);
        after--;
    }
    for (uint32_t i = 0; i < p->layer.n && i < after; i++) {
        enum op_kind kind = p->layer.kind[(l->op_begin + 1 + i) % p->layer.n];
        t += vexec_count(v, after, i) * kernel_run_total_ns(&v->run[kind]);
    }
    return t;
}

bool vexec_total_adds_up(const struct vexec *v)
{
    const struct launch *l = &v->l->pub;
    int64_t t = 0;
    for (uint32_t op = l->op_begin; op < l->op_end; op++) {
        t += kernel_run_total_ns(vexec_run(v, op));
    }
    SIM_ASSERT(vexec_total_ns(v) == t);
    SIM_ASSERT(ops_ns(v, l->op_begin, l->op_end) == t);
    return true;
}

void vexec_tell(struct engine *e, const struct kernel_run *run, uint64_t n)
{
    if (run->n > 1) {
        ddr_report(e, n * (run->n - 1), run->t_ns, run->demand, run->demand);
    }
    ddr_report(e, n, run->tail_ns, run->tail_demand, run->tail_demand);
}

void vexec_report(struct engine *e, struct vexec *v, const struct kernel_run *run, uint64_t n)
{
    if (run->n > 1) {
        book_solo(e, v, run, 0, n * (run->n - 1));
    }
    book_solo(e, v, run, run->n - 1, n);
}

static int64_t rest_after_kernel_ns(const struct vexec *v)
{
    const struct kernel_run *r = vexec_run(v, v->op);
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
    SIM_ASSERT(e->n_jobs == 1 && e->jobs[0] == j && v->phase == VEXEC_RUNNING);
    SIM_ASSERT(e->may_collapse && e->throttle.speed == 1.0 && j->share_frac == 1.0);
    if (v->l->pub.stop_requested && v->l->pub.yield != YIELD_PASS) {
        /* It will stop soon: run kernel by kernel, alone at full rate. */
        v->collapsed = false;
    } else {
        v->collapsed = true;
    }
    /* A job at rate 1 keeps its instants: brought up to now, what is left would be rounded again.
     */
    if (j->event == EVENTQ_NONE || j->rate != 1.0) {
        job_advance(e, j);
        j->rate = 1.0;
    }
    v->head_ns = units_ceil(j->left_ns);
    v->collapsed_ns = e->now_ns;
    int64_t at = j->updated_ns + v->head_ns;
    SIM_ASSERT(at >= e->now_ns);
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

static bool at_last_kernel(const struct vexec *v)
{
    return v->op + 1 == v->l->pub.op_end && v->k + 1 == vexec_run(v, v->op)->n;
}

/* The same from the second kernel of a whole pass to its last one, op by op. */
static void skip_whole_pass(struct engine *e, struct vexec *v)
{
    const struct pass *p = v->l->pub.pass;
    uint32_t layers = e->core.setup->llm->n_layers;
    for (uint32_t i = 0; i < p->layer.n; i++) {
        enum op_kind kind = p->layer.kind[i];
        bool first = i == 0; /* of all: booked, and like the others */
        const struct kernel_run *r = first ? &v->first : &v->run[kind];
        book_solo(e, v, r, 0, (uint64_t)layers * (r->n - 1) - (first && r->n > 1 ? 1 : 0));
        book_solo(e, v, r, r->n - 1, layers - (first && r->n == 1 ? 1 : 0));
    }
    const struct kernel_run *head = &v->run[OP_HEAD];
    SIM_ASSERT(pass_op_kind(p, v->l->pub.op_end - 1) == OP_HEAD);
    book_solo(e, v, head, 0, head->n - 1);
    v->op =
        v->l->pub.op_end - 1; /* in the head's last kernel, whose end is an event of this instant */
    v->k = head->n - 1;
}

/* Moves the position over `left` ns of undisturbed kernels, at most to the last one; returns what
 * is left of it inside the kernel reached (0 at a boundary). */
static int64_t skip_kernels(struct engine *e, struct vexec *v, int64_t left)
{
    const struct pass *p = v->l->pub.pass;
    uint32_t end = v->l->pub.op_end;
    uint32_t per_layer = p->layer.n;
    SIM_ASSERT(left >= 0);
    while (v->op < end) {
        const struct kernel_run *r = vexec_run(v, v->op);
        SIM_ASSERT(v->k < r->n && left >= 0);
        uint32_t stop = end == p->n_ops && p->shape.logit_rows > 0 ? end - 1 : end;
        uint32_t whole = stop == end ? stop - 1 : stop; /* the last op is not skipped whole */
        if (v->k == 0 && v->op > v->l->pub.op_begin && v->op + per_layer <= whole &&
            left >= v->layer_ns && v->layer_ns > 0) {
            /* By division, not layer by layer: expanding costs the same however long it was. */
            int64_t layers = left / v->layer_ns;
            int64_t most = (whole - v->op) / per_layer;
            layers = layers < most ? layers : most;
            for (uint32_t i = 0; i < per_layer; i++) {
                const struct kernel_run *q = vexec_run(v, v->op + i);
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
        if (v->k + 1 == r->n && left >= r->tail_ns && !at_last_kernel(v)) {
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

/* Undoes a collapse at the present instant: books what has run, finds the kernel in progress. One
 * that has just run its whole time is left to its event, as if it had never been collapsed: of
 * other kernels whatever reads the position comes after their events of this instant, but the last
 * one's end is an event that others wait for. */
void device_expand(struct engine *e, struct vexec *v)
{
    struct job *j = &v->job;
    double demand = j->demand_bytes_per_s;
    int64_t gone = e->now_ns - j->updated_ns;
    SIM_REQUIRE(v->collapsed && gone >= 0, "launch %u is expanded at %lld ns", v->l->pub.id,
                (long long)gone);
    v->collapsed = false;
    int64_t since = v->collapsed_ns - j->updated_ns; /* what came before was reported then */
    if (gone < v->head_ns || at_last_kernel(v)) {
        ddr_report(e, 1, gone - since, demand, demand);
        j->left_ns -= (double)gone;
    } else {
        ddr_report(e, 1, v->head_ns - since, demand, demand);
        vexec_book(e, v, vexec_run(v, v->op), v->k, 1);
        if (v->op == 0 && v->k == 0 && vexec_whole_pass(v) &&
            gone - v->head_ns == rest_after_kernel_ns(v)) {
            skip_whole_pass(e, v);
            gone = vexec_kernel_ns(&v->run[OP_HEAD], v->k);
        } else {
            vexec_next(v);
            gone = skip_kernels(e, v, gone - v->head_ns);
        }
        const struct kernel_run *r = vexec_run(v, v->op);
        int64_t t = vexec_kernel_ns(r, v->k);
        SIM_REQUIRE(gone >= 0 && gone <= t, "launch %u: %lld ns into a kernel of %lld",
                    v->l->pub.id, (long long)gone, (long long)t);
        j->demand_bytes_per_s = vexec_kernel_demand(r, v->k);
        j->left_ns = (double)(t - gone);
        v->kernel_begin_ns = e->now_ns - gone;
        ddr_report(e, 1, gone, j->demand_bytes_per_s, j->demand_bytes_per_s);
    }
    j->updated_ns = e->now_ns;
    e->ddr_since_ns = e->now_ns;
    if (j->event != EVENTQ_NONE && j->left_ns > 0.0) {
        eventq_cancel(&e->queue, j->event);
        j->event = EVENTQ_NONE;
    }
    e->ddr_dirty = true;
}
