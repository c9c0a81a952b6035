/* The prefill loop of agent-xpu-v2: one request at a time, op by op (B.2, B.4, B.5, B.8). */
#include "policies/agent_xpu_v2/agent_xpu_v2.h"
#include "policies/common/cost.h"

/* ---- placement of ops ---- */

/* Whether the NPU may run the rows beyond whole chunks, padded to a chunk (4.2). */
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

/* The objective of a split (B.5): the makespan, or by Algorithm 1 of the public text |m t_N(g) - (M
 * - m) t_G(g) - t_G(rest)|, with a kernel for every chunk. */
static int64_t split_ns(struct sched *s, const struct axpu *a, const struct axpu_prefill *f,
                        enum op_kind op, uint32_t rows, uint32_t m)
{
    if (param_int(s, AXPU_SPLIT) == AXPU_SPLIT_BALANCE && m * a->chunk <= rows) {
        uint32_t left = rows / a->chunk - m;
        /* m = 0: the prompt may lack a whole chunk. */
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

/* The time by which the NPU share is longer than the iGPU's, >= 0. */
static int64_t late_ns(struct sched *s, const struct axpu *a, struct axpu_prefill *f,
                       enum op_kind op)
{
    uint32_t i = op == OP_QKV ? 0 : 1;
    uint32_t rows = f->npu_rows + f->igpu_rows;
    /* Cached, because splits repeat in every layer. */
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
 * accelerator load, and bandwidth pressure". During reactive decodes a proactive margin goes to the
 * NPU. Otherwise it goes to the device with the earlier end of the op, and to the iGPU in a tie. */
static bool margin_leaves_igpu(struct sched *s, const struct axpu *a, const struct axpu_prefill *f,
                               enum op_kind op, uint32_t rows)
{
    uint32_t chunks = rows / a->chunk;
    return takes_margin(s, a, rows) &&
           ((!axpu_is_reactive(f) && axpu_reactive_decodes(a)) ||
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
            /* Rounded up to a chunk, because the iGPU's share is a bound. */
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
        /* The iGPU share must not end before the NPU share. Both wait for the start of the NPU
         * share, because another prompt may still have the NPU. */
        f->igpu_late_ns = late_ns(s, a, f, op);
        f->igpu_not_before_ns = TIME_NEVER_NS;
    }
}

/* B.6: whether this NPU share is memory-bound, so that it must not overlap with iGPU decode of
 * another class. */
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

/* Whether a proactive kernel is "deferred until the higher-priority side completes". That is when
 * no reactive sequence decodes any more, not in the pause between two iterations. An aged prefill
 * is not deferred. */
static bool deferred(struct sched *s, const struct axpu *a, struct axpu_prefill *f, uint32_t rows)
{
    return axpu_reactive_decodes(a) && !axpu_is_reactive(f) && !axpu_is_aged(f->request) &&
           memory_bound(s, a, f, rows);
}

/* Whether a deferred kernel runs on the iGPU instead, alternating with decode: the head, which is
 * faster there and would delay every prompt, or (ours) attention, too. */
static bool goes_to_igpu(struct sched *s, const struct axpu *a, struct axpu_prefill *f,
                         enum op_kind op)
{
    return (op == OP_HEAD || param_int(s, AXPU_MEMORY_RULE) == AXPU_MEMORY_IGPU) &&
           deferred(s, a, f, f->pass->rows_todo);
}

/* Whether the op at the cursor still needs its split. */
static inline bool unplanned(const struct axpu_prefill *f)
{
    const struct pass *p = f->pass;
    return f->plan != AXPU_PLAN_MADE && p->n_launches == 0 && p->op < p->n_ops;
}

static void plan(struct sched *s, struct axpu *a, struct axpu_prefill *f)
{
    const struct pass *p = f->pass;
    enum op_kind op = pass_op_kind(p, p->op);
    /* Once per layer, at its boundary (B.5), so QKV and FFN of a layer use one decision. */
    if (op == OP_QKV || f->plan == AXPU_PLAN_NONE) {
        f->layer_busy = param_int(s, AXPU_ELASTIC) == AXPU_ELASTIC_CLASS ? axpu_reactive_decodes(a)
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

/* With a guard, an iteration with reactive requests ends before a proactive prefill gets the iGPU,
 * even if a reactive prefill has stopped it. */
static bool guarded(const struct sched *s, const struct axpu *a, const struct axpu_prefill *f)
{
    const struct pass *p = a->decode;
    return p != NULL && p->has_reactive && p->op < p->n_ops && !axpu_is_reactive(f) &&
           param_bool(s, AXPU_GUARD);
}

static inline bool wants_igpu(const struct sched *s, const struct axpu *a,
                              const struct axpu_prefill *f)
{
    return f->request != NULL && f->igpu_rows > 0 && f->on_igpu == NULL &&
           s->now_ns >= f->igpu_not_before_ns && !guarded(s, a, f);
}

bool axpu_prefill_wants_igpu(const struct sched *s, const struct axpu *a)
{
    return wants_igpu(s, a, &a->current) || wants_igpu(s, a, &a->aged);
}

/* 4.4: token-level ops are chunked on the iGPU, too, so that a kernel of a whole long prompt does
 * not delay a reactive one. Only an aged prefill has more than a chunk there, because an elastic
 * share is reactive and a margin is less than a chunk. */
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
    /* Before the launch, which reduces npu_rows. */
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
        a->decode_hold = true; /* also for batches formed while the kernel runs */
        if (a->decode != NULL && !a->decode->has_reactive) {
            axpu_stop(s, a->decode_launch);
        }
    }
}

static void launch_igpu(struct sched *s, struct axpu *a, struct axpu_prefill *f)
{
    if (!param_bool(s, AXPU_PREFILL_FIRST) && axpu_decode_busy(a) && !a->decode_short) {
        return;
    }
    if (sched_device_free_slots(s, (uint8_t)a->igpu) > 0) {
        /* Whole chunks first, then the rest: the iGPU pads no kernel. */
        bool chunks = in_chunks(s, a, f);
        uint32_t rows = chunks ? f->igpu_rows / a->chunk * a->chunk : f->igpu_rows;
        uint32_t chunk = chunks ? a->chunk : s->machine->devices[a->igpu].chunk_rows;
        f->on_igpu = launch_share(s, f, a->igpu, rows, chunk);
        f->igpu_rows -= f->on_igpu == NULL ? 0 : rows;
        return;
    }
    /* Decode or an aged prefill has the iGPU, and leaves it at its next kernel boundary (B.4). */
    axpu_stop(s, a->decode_launch);
    if (f == &a->current) {
        axpu_stop(s, a->aged.on_igpu); /* reactive attention first */
    }
}

static void launch(struct sched *s, struct axpu *a, struct axpu_prefill *f)
{
    if (unplanned(f)) {
        plan(s, a, f);
    }
    launch_npu(s, a, f);
    if (wants_igpu(s, a, f)) {
        launch_igpu(s, a, f);
    }
}

void axpu_prefill_schedule(struct sched *s, struct axpu *a)
{
    axpu_prefill_choose(s, a);
    if (a->current.request != NULL) {
        launch(s, a, &a->current);
    }
    if (a->aged.request != NULL) {
        launch(s, a, &a->aged);
    }
}

/* ---- ends of launches ---- */

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
        f->plan = AXPU_PLAN_NONE; /* split the rest of the op again */
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
        axpu_prefill_clear(&a->current);
    } else if (a->aged.request == r) {
        axpu_prefill_clear(&a->aged);
    } else {
        for (uint32_t i = 0; i < a->n_suspended; i++) {
            if (a->suspended[i].request == r) { /* its last kernel ended after the suspension */
                for (; i + 1 < a->n_suspended; i++) {
                    a->suspended[i] = a->suspended[i + 1];
                }
                a->n_suspended--;
                return;
            }
        }
    }
}
