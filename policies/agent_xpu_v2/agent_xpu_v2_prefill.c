/* The prefill loop of agent-xpu-v2: one request at a time, op by op (B.2, B.4, B.5, B.8). */
#include "policies/agent_xpu_v2/agent_xpu_v2.h"
#include "policies/common/cost.h"

/* ---- which request ---- */

static void clear(struct axpu_prefill *f)
{
    *f = (struct axpu_prefill){.best_chunks = {-1, -1}};
}

/* Memory is full and a reactive prompt waits: the last of the proactive sequences that wait to
 * decode loses its KV, else a suspended prefill its progress. The last in the queue is who came
 * back from a batch last, and so not always the newest request (as in free_kv). */
static bool make_room(struct sched *s, struct axpu *a)
{
    const struct request *r = a->decode_be.q.tail;
    if (flash_writes(&a->flash)) {
        return false; /* it will be free soon */
    }
    if (r != NULL && axpu_give_up(s, a, r)) {
        return true;
    }
    for (uint32_t i = a->n_suspended; i-- > 0;) {
        struct axpu_prefill *f = &a->suspended[i];
        if (sched_pass_cancel(s, f->pass) == 0) {
            if (f->request->state == REQUEST_STATE_QUEUED) { /* its user may have given up */
                axpu_wait(a, f->request, true);
            } else {
                axpu_forget(a, f->request);
            }
            a->suspended[i] = a->suspended[--a->n_suspended];
            return true;
        }
    }
    return false;
}

static bool start(struct sched *s, struct axpu *a, struct axpu_prefill *f, const struct request *r)
{
    struct segment seg = {
        .request = r, .role = SEGMENT_PREFILL, .n_tokens = request_prefill_left(r)};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1};
    struct pass *p;
    int rc = sched_pass_form(s, &spec, &p);
    while (rc == -ENOMEM && r->cls == REQUEST_CLASS_REACTIVE && make_room(s, a)) {
        rc = sched_pass_form(s, &spec, &p);
    }
    if (rc != 0) {
        return false;
    }
    axpu_leave(a, r);
    clear(f);
    f->request = r;
    f->pass = p;
    /* Asked once, when it starts: a kernel that comes later is not waited for, nor taken up in the
     * middle of a pass (B.6). */
    f->npu_attention = axpu_warmup_take(s, a, r);
    return true;
}

static void resume(struct sched *s, struct axpu *a, struct axpu_prefill *f, uint32_t i)
{
    *f = a->suspended[i];
    for (; i + 1 < a->n_suspended; i++) {
        a->suspended[i] = a->suspended[i + 1];
    }
    a->n_suspended--;
    f->plan = AXPU_PLAN_NONE;
    /* What it was compiled for while it waited counts from here on; what it had before it keeps. */
    f->npu_attention = axpu_warmup_take(s, a, f->request) || f->npu_attention;
}

/* The oldest aged request of the proactive queue, or NULL. */
static const struct request *oldest_aged(const struct axpu *a)
{
    const struct request *r = heap_top(&a->by_age);
    return r != NULL && axpu_is_aged(r) ? r : NULL;
}

static bool reactive_decodes(const struct axpu *a)
{
    return !reqq_empty(&a->decode_rt.q) || (a->decode != NULL && a->decode->has_reactive);
}

/* The shortest proactive prompt that may start while reactive requests decode: its attention is
 * compiled, and so takes no iGPU from them, or else it has waited long enough. O(n). */
static const struct request *next_warm(const struct sched *s, const struct axpu *a)
{
    const struct request *best[2] = {NULL, NULL}; /* without, with a kernel */
    for (const struct request *r = a->prefill_be.q.head; r != NULL; r = reqq_next(r)) {
        bool warm = axpu_warmup_has(a, r);
        const struct request *b = best[warm];
        bool may = warm || s->now_ns - r->arrival_ns >= a->warm_ns;
        if (may && (b == NULL || request_prefill_left(r) < request_prefill_left(b))) {
            best[warm] = r;
        }
    }
    return best[1] != NULL ? best[1] : best[0];
}

/* The first of a queue, or its shortest prompt. O(1), or O(n). */
static const struct request *next_of(const struct sched *s, const struct axpu *a,
                                     const struct reqq *q)
{
    if (q == &a->prefill_be.q && a->warm_ns > 0 && reactive_decodes(a)) {
        return next_warm(s, a);
    }
    const struct request *next = q->head;
    int64_t which = param_int(s, AXPU_SHORTEST);
    bool first = which == AXPU_SHORTEST_NONE || next == NULL ||
                 (which == AXPU_SHORTEST_REACTIVE && next->cls != REQUEST_CLASS_REACTIVE);
    for (const struct request *r = next; r != NULL && !first; r = reqq_next(r)) {
        next = request_prefill_left(r) < request_prefill_left(next) ? r : next;
    }
    return next;
}

static void choose_current(struct sched *s, struct axpu *a)
{
    if (!reqq_empty(&a->prefill_rt.q)) {
        /* Also where it finds no memory: no proactive prompt passes a reactive one that waits for
         * KV. */
        (void)start(s, a, &a->current, next_of(s, a, &a->prefill_rt.q));
        return;
    }
    const struct request *aged = oldest_aged(a);
    if (a->n_suspended > 0) {
        bool buffer = a->n_suspended < (uint32_t)param_int(s, AXPU_SUSPENDED);
        if (!(buffer && aged != NULL && request_before(aged, a->suspended[0].request))) {
            if (a->suspended[0].pass->n_launches == 0) {
                resume(s, a, &a->current, 0);
            }
            return;
        }
    }
    const struct request *r = aged != NULL ? aged : next_of(s, a, &a->prefill_be.q);
    if (r != NULL && !flash_waits(&a->flash)) {
        (void)start(s, a, &a->current, r);
    }
}

/* A reactive request waits behind a proactive prefill: stop that one where `preempt` allows. */
static void preempt_current(struct sched *s, struct axpu *a)
{
    struct axpu_prefill *f = &a->current;
    enum axpu_preempt how = (enum axpu_preempt)param_int(s, AXPU_PREEMPT);
    if (reqq_empty(&a->prefill_rt.q) || axpu_is_reactive(f) || how == AXPU_PREEMPT_NONE ||
        a->n_suspended >= (uint32_t)param_int(s, AXPU_SUSPENDED) || f->pass->op == f->pass->n_ops) {
        return;
    }
    if (how == AXPU_PREEMPT_LAYER) {
        bool boundary = f->pass->n_launches == 0 && f->pass->op % f->pass->layer.n == 0 &&
                        f->pass->rows_todo == pass_op_rows(f->pass, f->pass->op);
        if (!boundary) {
            return;
        }
    }
    if (f->on_npu != NULL && !f->on_npu->stop_requested) {
        (void)sched_preempt(s, f->on_npu, (struct preempt_spec){0});
    }
    if (f->on_igpu != NULL && !f->on_igpu->stop_requested) {
        (void)sched_preempt(s, f->on_igpu, (struct preempt_spec){0});
    }
    /* Now, though its kernel still runs: the reactive prompt takes over the other device at once,
     * and this one when the kernel ends. */
    a->suspended[a->n_suspended++] = *f;
    clear(f);
}

/* B.8: beside a reactive prefill, the oldest aged proactive one gets the iGPU. It needs the one
 * proactive activation buffer, so a suspended prefill comes before any other. */
static void choose_aged(struct sched *s, struct axpu *a)
{
    if (a->aged.request != NULL || !axpu_is_reactive(&a->current)) {
        return;
    }
    if (a->n_suspended > 0) {
        if (axpu_is_aged(a->suspended[0].request) && a->suspended[0].pass->n_launches == 0) {
            resume(s, a, &a->aged, 0);
            a->aged.igpu_only = true;
        }
        return;
    }
    const struct request *r = oldest_aged(a);
    if (r != NULL && start(s, a, &a->aged, r)) {
        a->aged.igpu_only = true;
    }
}

static void choose(struct sched *s, struct axpu *a)
{
    if (a->current.request != NULL) {
        preempt_current(s, a);
    }
    if (a->current.request == NULL && a->aged.request != NULL && reqq_empty(&a->prefill_rt.q)) {
        a->current = a->aged; /* no reactive prefill any more: it is the serial one */
        a->current.igpu_only = false;
        clear(&a->aged);
    }
    if (a->current.request == NULL) {
        choose_current(s, a);
    }
    choose_aged(s, a);
}

/* ---- where its ops run ---- */

/* May the NPU have the rows beyond whole chunks, padded to another? (4.2) */
static bool takes_margin(struct sched *s, const struct axpu *a, uint32_t rows)
{
    return rows % a->chunk > 0 && param_int(s, AXPU_MARGIN) == AXPU_MARGIN_CHOOSE;
}

static uint32_t rows_of_chunks(const struct axpu *a, uint32_t rows, uint32_t m)
{
    return m * a->chunk < rows ? m * a->chunk : rows;
}

/* The later end of a split of m chunks for the NPU: max(m t_N, t_G(T - m g)). */
static int64_t makespan_ns(struct sched *s, const struct axpu *a, const struct axpu_prefill *f,
                           enum op_kind op, uint32_t rows, uint32_t m)
{
    uint32_t npu_rows = rows_of_chunks(a, rows, m);
    int64_t npu = cost_estimate(s, &f->pass->shape, op, a->npu, npu_rows).t_ns;
    int64_t igpu = cost_estimate(s, &f->pass->shape, op, a->igpu, rows - npu_rows).t_ns;
    return npu > igpu ? npu : igpu;
}

/* What a split makes least (B.5): the makespan. Algorithm 1 of the public text: |m t_N(g) - (M - m)
 * t_G(g) - t_G(rest)|, with a kernel for every chunk. */
static int64_t split_ns(struct sched *s, const struct axpu *a, const struct axpu_prefill *f,
                        enum op_kind op, uint32_t rows, uint32_t m)
{
    if (param_int(s, AXPU_SPLIT) == AXPU_SPLIT_BALANCE && m * a->chunk <= rows) {
        uint32_t left = rows / a->chunk - m;
        /* None of a chunk that the prompt has not. */
        int64_t npu = m * cost_estimate(s, &f->pass->shape, op, a->npu, m > 0 ? a->chunk : 0).t_ns;
        int64_t igpu =
            left * cost_estimate(s, &f->pass->shape, op, a->igpu, left > 0 ? a->chunk : 0).t_ns +
            cost_estimate(s, &f->pass->shape, op, a->igpu, rows % a->chunk).t_ns;
        return npu > igpu ? npu - igpu : igpu - npu;
    }
    return makespan_ns(s, a, f, op, rows, m);
}

/* The best number of chunks for the NPU, ties to more. */
static uint32_t best_chunks(struct sched *s, const struct axpu *a, struct axpu_prefill *f,
                            enum op_kind op, uint32_t rows)
{
    int32_t *known = &f->best_chunks[op == OP_QKV ? 0 : 1];
    if (*known < 0) {
        uint32_t most = rows / a->chunk + takes_margin(s, a, rows);
        int64_t best_ns = INT64_MAX;
        for (uint32_t m = 0; m <= most; m++) {
            int64_t ns = split_ns(s, a, f, op, rows, m);
            if (ns <= best_ns) {
                best_ns = ns;
                *known = (int32_t)m;
            }
        }
    }
    return (uint32_t)*known;
}

/* How much longer the NPU share takes than the iGPU's, if it does. */
static int64_t late_ns(struct sched *s, const struct axpu *a, struct axpu_prefill *f,
                       enum op_kind op)
{
    uint32_t i = op == OP_QKV ? 0 : 1;
    uint32_t rows = f->npu_rows + f->igpu_rows;
    /* Splits of a prompt repeat from layer to layer; so does the answer. */
    if (f->late[i].npu_rows != f->npu_rows || f->late[i].rows != rows) {
        int64_t ns = cost_estimate(s, &f->pass->shape, op, a->npu, f->npu_rows).t_ns -
                     cost_estimate(s, &f->pass->shape, op, a->igpu, f->igpu_rows).t_ns;
        f->late[i].npu_rows = f->npu_rows;
        f->late[i].rows = rows;
        f->late[i].ns = ns > 0 ? ns : 0;
    }
    return f->late[i].ns;
}

/* 4.2: the coordinator chooses a device for the dynamic part "depending on request priority,
 * accelerator load, and bandwidth pressure". Next to reactive decodes a proactive margin leaves the
 * iGPU to them; else it goes where the op ends sooner, and to the iGPU where that is equal. */
static bool margin_leaves_igpu(struct sched *s, const struct axpu *a, const struct axpu_prefill *f,
                               enum op_kind op, uint32_t rows)
{
    uint32_t chunks = rows / a->chunk;
    return takes_margin(s, a, rows) &&
           ((!axpu_is_reactive(f) && reactive_decodes(a)) ||
            makespan_ns(s, a, f, op, rows, chunks + 1) < makespan_ns(s, a, f, op, rows, chunks));
}

static void split(struct sched *s, struct axpu *a, struct axpu_prefill *f, enum op_kind op,
                  uint32_t rows)
{
    enum axpu_elastic elastic = (enum axpu_elastic)param_int(s, AXPU_ELASTIC);
    uint32_t chunks = rows / a->chunk;
    uint32_t m = chunks;
    bool defer = false;
    if (axpu_is_reactive(f) && elastic != AXPU_ELASTIC_OFF) {
        m = best_chunks(s, a, f, op, rows);
        if (elastic != AXPU_ELASTIC_STATIC && f->layer_busy) {
            double share = param_number(s, AXPU_BUSY_SHARE);
            /* Up to a whole chunk: the NPU has no kernel of less, and the iGPU's share is a bound.
             */
            uint32_t least = (uint32_t)ceil((1.0 - share) * (double)chunks);
            m = m > least ? m : least;
            defer = true;
        }
    } else {
        m += margin_leaves_igpu(s, a, f, op, rows);
    }
    f->npu_rows = rows_of_chunks(a, rows, m);
    f->igpu_rows = rows - f->npu_rows;
    if (defer && f->npu_rows > 0 && f->igpu_rows > 0) {
        /* The iGPU share ends no earlier than its NPU counterpart, whenever that one starts: the
         * longer share too waits for that, since the NPU may still be another prompt's. */
        f->igpu_late_ns = late_ns(s, a, f, op);
        f->igpu_not_before_ns = TIME_NEVER_NS;
    }
}

/* B.6: is this NPU share one that must not overlap with iGPU decode of another class? */
static bool memory_bound(struct sched *s, const struct axpu *a, struct axpu_prefill *f,
                         uint32_t rows)
{
    enum op_kind op = pass_op_kind(f->pass, f->pass->op);
    if (param_int(s, AXPU_MEMORY_RULE) != AXPU_MEMORY_OFF && f->bound_rows[op] != rows) {
        struct estimate e;
        f->bound[op] = sched_estimate(s, &f->pass->shape, op, (uint8_t)a->npu, rows, &e) == 0 &&
                       e.memory_bound;
        f->bound_rows[op] = rows;
    }
    return f->bound[op];
}

/* Then a proactive one is "deferred until the higher-priority side completes". That is when nothing
 * reactive decodes any more: between two iterations it is not complete, although nothing of it is
 * on the iGPU. Of age, it waits no longer. */
static bool deferred(struct sched *s, const struct axpu *a, struct axpu_prefill *f, uint32_t rows)
{
    return reactive_decodes(a) && !axpu_is_reactive(f) && !axpu_is_aged(f->request) &&
           memory_bound(s, a, f, rows);
}

/* A deferred kernel may run on the iGPU instead, one after the other with decode: the head, which
 * is faster there and would hold up every prompt, or (ours) attention too. */
static bool goes_to_igpu(struct sched *s, const struct axpu *a, struct axpu_prefill *f,
                         enum op_kind op)
{
    return (op == OP_HEAD || param_int(s, AXPU_MEMORY_RULE) == AXPU_MEMORY_IGPU) &&
           deferred(s, a, f, f->pass->rows_todo);
}

/* Is the split of the op that the cursor stands on to be made? */
static inline bool unplanned(const struct axpu_prefill *f)
{
    const struct pass *p = f->pass;
    return f->plan != AXPU_PLAN_MADE && p->n_launches == 0 && p->op < p->n_ops;
}

static void plan(struct sched *s, struct axpu *a, struct axpu_prefill *f)
{
    const struct pass *p = f->pass;
    enum op_kind op = pass_op_kind(p, p->op);
    /* Once a layer, at its boundary (B.5): QKV and FFN of one layer are split by the same answer.
     */
    if (op == OP_QKV || f->plan == AXPU_PLAN_NONE) {
        f->layer_busy = param_int(s, AXPU_ELASTIC) == AXPU_ELASTIC_CLASS ? reactive_decodes(a)
                                                                         : axpu_decode_busy(a);
    }
    f->plan = AXPU_PLAN_MADE;
    f->igpu_not_before_ns = s->now_ns;
    f->npu_rows = 0;
    f->igpu_rows = 0;
    bool igpu_taken = f == &a->current && a->aged.request != NULL; /* B.8: margin goes to the NPU */
    if (f->igpu_only) {
        f->igpu_rows = p->rows_todo;
    } else if (f->npu_attention || (igpu_taken && (op == OP_QKV || op == OP_FFN))) {
        bool moved = goes_to_igpu(s, a, f, op);
        f->npu_rows = moved ? 0 : p->rows_todo;
        f->igpu_rows = moved ? p->rows_todo : 0;
    } else if (op == OP_MHA || op == OP_HEAD) {
        f->igpu_rows = p->rows_todo;
    } else {
        split(s, a, f, op, p->rows_todo);
    }
}

static inline bool wants_igpu(const struct sched *s, const struct axpu_prefill *f)
{
    return f->request != NULL && f->igpu_rows > 0 && f->on_igpu == NULL &&
           s->now_ns >= f->igpu_not_before_ns;
}

bool axpu_prefill_wants_igpu(const struct sched *s, const struct axpu *a)
{
    return wants_igpu(s, &a->current) || wants_igpu(s, &a->aged);
}

/* 4.4: token-wise ops are chunked, on the iGPU too, so that a kernel of a whole long prompt does
 * not keep a reactive one waiting. An elastic share is reactive and a margin is less than a chunk,
 * so only an aged prefill has more there. */
static bool in_chunks(const struct sched *s, const struct axpu *a, const struct axpu_prefill *f)
{
    enum op_kind op = pass_op_kind(f->pass, f->pass->op);
    return (op == OP_QKV || op == OP_FFN) && !axpu_is_reactive(f) && f->igpu_rows > a->chunk &&
           param_bool(s, AXPU_AGED_CHUNKS);
}

static inline const struct launch *launch_share(struct sched *s, const struct axpu_prefill *f,
                                                int device, uint32_t rows, uint32_t chunk)
{
    const struct launch *l = NULL;
    struct launch_spec spec = sched_launch_rest(s, f->pass, (uint8_t)device, YIELD_KERNEL);
    spec.n_ops = 1;
    spec.rows = rows;
    spec.chunk_rows = chunk;
    return sched_launch(s, &spec, &l) == 0 ? l : NULL;
}

static void launch_npu(struct sched *s, struct axpu *a, struct axpu_prefill *f)
{
    if (f->npu_rows == 0 || f->on_npu != NULL || sched_device_free_slots(s, (uint8_t)a->npu) == 0) {
        return;
    }
    if (deferred(s, a, f, f->npu_rows)) {
        return;
    }
    /* Asked before the launch, whose rows are then no longer planned. */
    bool apart = axpu_is_reactive(f) && memory_bound(s, a, f, f->npu_rows);
    f->on_npu = launch_share(s, f, a->npu, f->npu_rows, a->chunk);
    if (f->on_npu == NULL) {
        return;
    }
    f->npu_rows = 0;
    if (f->igpu_not_before_ns == TIME_NEVER_NS) {
        f->igpu_not_before_ns = s->now_ns + f->igpu_late_ns;
        if (f->igpu_late_ns > 0) {
            (void)sched_set_timer(s, f->igpu_not_before_ns);
        }
    }
    if (apart) {
        a->decode_hold = true; /* also for a batch that forms while the kernel runs */
        if (a->decode != NULL && !a->decode->has_reactive) {
            axpu_decode_yield(s, a);
        }
    }
}

static void launch_igpu(struct sched *s, struct axpu *a, struct axpu_prefill *f)
{
    if (!param_bool(s, AXPU_PREFILL_FIRST) && axpu_decode_busy(a)) {
        return;
    }
    if (sched_device_free_slots(s, (uint8_t)a->igpu) > 0) {
        /* Whole chunks, then what is left of them: the iGPU pads no kernel. */
        bool chunks = in_chunks(s, a, f);
        uint32_t rows = chunks ? f->igpu_rows / a->chunk * a->chunk : f->igpu_rows;
        uint32_t chunk = chunks ? a->chunk : s->machine->devices[a->igpu].chunk_rows;
        f->on_igpu = launch_share(s, f, a->igpu, rows, chunk);
        f->igpu_rows -= f->on_igpu == NULL ? 0 : rows;
        return;
    }
    /* The iGPU is busy with decode or with an aged prefill; either makes room at its next kernel
     * boundary (B.4). With a guard, a batch of reactive decodes ends its iteration first. */
    bool guarded = !axpu_is_reactive(f) && a->decode != NULL && a->decode->has_reactive &&
                   param_bool(s, AXPU_GUARD);
    if (!guarded) {
        axpu_decode_yield(s, a);
    }
    if (f == &a->current && a->aged.on_igpu != NULL && !a->aged.on_igpu->stop_requested) {
        (void)sched_preempt(s, a->aged.on_igpu,
                            (struct preempt_spec){0}); /* reactive attention first */
    }
}

static void launch(struct sched *s, struct axpu *a, struct axpu_prefill *f)
{
    if (unplanned(f)) {
        plan(s, a, f);
    }
    launch_npu(s, a, f);
    if (wants_igpu(s, f)) {
        launch_igpu(s, a, f);
    }
}

void axpu_prefill_schedule(struct sched *s, struct axpu *a)
{
    choose(s, a);
    if (a->current.request != NULL) {
        launch(s, a, &a->current);
    }
    if (a->aged.request != NULL) {
        launch(s, a, &a->aged);
    }
}

/* ---- what happened ---- */

static bool ended(struct axpu *a, struct axpu_prefill *f, const struct launch *l)
{
    if (f->on_npu == l) {
        f->on_npu = NULL;
        a->decode_hold = false;
    } else if (f->on_igpu == l) {
        f->on_igpu = NULL;
    } else {
        return false;
    }
    if (l->outcome != LAUNCH_OUTCOME_DONE) {
        f->plan = AXPU_PLAN_NONE; /* what is left is split anew */
        f->npu_rows = 0;
        f->igpu_rows = 0;
    } else if (f->pass->op > l->op_begin) {
        f->plan = AXPU_PLAN_BEFORE;
    }
    return true;
}

void axpu_prefill_launch_done(struct axpu *a, const struct launch *l)
{
    if (ended(a, &a->current, l) || ended(a, &a->aged, l)) {
        return;
    }
    for (uint32_t i = 0; i < a->n_suspended; i++) {
        if (ended(a, &a->suspended[i], l)) {
            return;
        }
    }
}

void axpu_prefill_pass_done(struct axpu *a, const struct request *r)
{
    if (a->current.request == r) {
        clear(&a->current);
    } else if (a->aged.request == r) {
        clear(&a->aged);
    } else {
        for (uint32_t i = 0; i < a->n_suspended; i++) {
            if (a->suspended[i].request == r) { /* its last kernel ended as it was suspended */
                for (; i + 1 < a->n_suspended; i++) {
                    a->suspended[i] = a->suspended[i + 1];
                }
                a->n_suspended--;
                return;
            }
        }
    }
}
