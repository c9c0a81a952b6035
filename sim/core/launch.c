/* Launches ops of a pass, stops launches, and moves the pass's cursor. */
#include "sim/core/ahead.h"
#include "sim/core/consistent.h"
#include "sim/core/memory.h"

static bool has_attention(const struct pass *p, uint32_t end)
{
    SIM_ASSERT(p->op < end && end <= p->n_ops);
    bool has = p->fused_layers;
    /* All layers have the same ops, so checking one layer is enough. */
    for (uint32_t op = p->op; op < end && op < p->op + p->layer.n && !has; op++) {
        has = pass_op_kind(p, op) == OP_MHA;
    }
    return has;
}

/* Checks that the device can run ops [op, end) of the pass. Finds the resident to pin. */
static inline int launch_supported(struct core *c, const struct launch_spec *spec, uint32_t end,
                                   struct resident **pin)
{
    const struct pass *p = spec->pass;
    const struct device *d = &c->setup->machine->devices[spec->device];
    bool whole = p->op == 0 && end == p->n_ops;
    REFUSE_IF(c, !whole && (c->caps & CAP_SPANS) == 0, LAUNCH_UNSUPPORTED, -EPERM,
              "this executor launches whole passes only");
    REFUSE_IF(c, spec->yield == YIELD_KERNEL && (c->caps & CAP_YIELD_KERNEL) == 0,
              LAUNCH_UNSUPPORTED, -EPERM, "this executor does not yield between kernels");
    if (d->static_attention && has_attention(p, end)) {
        /* A static attention kernel is compiled for one prompt length; decode has none. */
        const struct segment *s = &p->segments[0];
        REFUSE_IF(c, p->n_segments != 1 || s->role != SEGMENT_PREFILL, LAUNCH_UNSUPPORTED, -EPERM,
                  "attention of this device is compiled for one prompt: no decode, no batch");
        REFUSE_IF(c, spec->graph > 0, LAUNCH_UNSUPPORTED, -EPERM,
                  "attention of this device is compiled by itself, in no graph");
        struct resident_key key = {RESIDENT_COMPILED_ATTENTION, request_prefill_target(s->request),
                                   p->shape.model};
        *pin = resident_find(c, key);
    } else if (spec->graph > 0) {
        REFUSE_IF(c, p->shape.model != 0, LAUNCH_BAD_SPAN, -EINVAL,
                  "numbered graphs are built for the default model");
        bool said = spec->graph <= GRAPH_VERSIONS && c->graphs[spec->graph].rows > 0;
        REFUSE_IF(c, said && spec->chunk_rows != c->graphs[spec->graph].rows, LAUNCH_BAD_SPAN,
                  -EINVAL, "chunk_rows are not the rows that init said of its graph");
        *pin = resident_find(
            c, (struct resident_key){RESIDENT_GRAPH_BLOCK, spec->graph_block, spec->graph});
    } else {
        return 0;
    }
    /* PENDING is not enough: the launch would block the device while it waits. */
    REFUSE_IF(c, *pin == NULL || (*pin)->state != RESIDENT_READY, LAUNCH_MISSING_RESIDENT, -ENOENT,
              spec->graph > 0 ? "its graph block is not ready"
                              : "no attention was compiled for this prompt's length");
    return 0;
}

static inline bool is_cut_by_columns(const struct full_pass *p)
{
    return p->columns_todo + p->columns_active > 0;
}

/* Checks a launch of columns, or of any part of an op that is split by columns. */
static int columns_check(struct core *c, const struct launch_spec *spec)
{
    const struct full_pass *p = core_pass(spec->pass);
    enum op_kind op = pass_op_kind(p->pub, p->pub->op);
    REFUSE_IF(c, spec->columns > (is_cut_by_columns(p) ? p->columns_todo : LAUNCH_COLUMNS),
              LAUNCH_BAD_SPAN, -EINVAL, "more columns than the op has left");
    REFUSE_IF(c, spec->columns == 0, LAUNCH_BAD_SPAN, -EINVAL,
              "an op that is split by columns is not split by rows");
    REFUSE_IF(c,
              op == OP_MHA || op == OP_LAYER || spec->n_ops > 1 || spec->yield == YIELD_KERNEL ||
                  spec->rows < pass_op_rows(p->pub, p->pub->op),
              LAUNCH_BAD_SPAN, -EINVAL,
              "columns are of one token-level op with all its rows, and stop at its end");
    REFUSE_IF(c, (c->caps & CAP_COLUMN_SPLIT) == 0, LAUNCH_UNSUPPORTED, -EPERM,
              "this executor does not split the weights of an op");
    return 0;
}

/* Checks that ops and rows fit the pass. launch_supported checks the device. */
static inline int span_check(struct core *c, const struct launch_spec *spec)
{
    const struct pass *p = spec->pass;
    REFUSE_IF(c, p == NULL || (p->state != PASS_STATE_READY && p->state != PASS_STATE_RUNNING),
              LAUNCH_BAD_SPAN, -EINVAL, "the pass is over, or there is none");
    REFUSE_IF(c, spec->device >= c->setup->machine->n_devices, LAUNCH_BAD_SPAN, -EINVAL,
              "the machine has no such device");
    REFUSE_IF(c, p->op >= p->n_ops, LAUNCH_BAD_SPAN, -EINVAL,
              "all its ops are done: pass_done comes when the host has sampled");
    REFUSE_IF(c, spec->yield > YIELD_PASS, LAUNCH_BAD_SPAN, -EINVAL,
              "there is no such yield point");
    REFUSE_IF(c, p->rows_todo == 0, LAUNCH_BAD_SPAN, -EBUSY,
              "all rows of the pass's op are on devices already");
    REFUSE_IF(c, spec->rows == 0 || spec->rows > p->rows_todo, LAUNCH_BAD_SPAN, -EINVAL,
              "rows must be from 1 to those the op has left");
    REFUSE_IF(c, spec->n_ops == 0 || spec->n_ops > p->n_ops - p->op, LAUNCH_BAD_SPAN, -EINVAL,
              "n_ops must be from 1 to those the pass has left");
    REFUSE_IF(c, spec->n_ops > 1 && (spec->rows < p->rows_todo || p->rows_active > 0),
              LAUNCH_BAD_SPAN, -EINVAL, "a launch of some rows is of one op only");
    REFUSE_IF(c, spec->inflight == 0, LAUNCH_BAD_SPAN, -EINVAL, "inflight must be at least 1");
    REFUSE_IF(c, core_pass(p)->before != NULL && ahead_is_early(core_pass(p), p->op + spec->n_ops),
              LAUNCH_BAD_SPAN, -EBUSY, "passes with the tokens before have not come so far");
    bool columns = spec->columns > 0 || is_cut_by_columns(core_pass(p));
    return columns ? columns_check(c, spec) : 0;
}

/* Updates rows_todo and rows_active: all rows are to do while any column is. */
static void columns_rows(struct full_pass *p, uint32_t rows)
{
    if (p->columns_todo == LAUNCH_COLUMNS) { /* all launches were stopped: the op is whole again */
        p->columns_todo = 0;
        p->pub->rows_todo = rows;
        p->pub->rows_active = 0;
        return;
    }
    p->pub->rows_todo = p->columns_todo > 0 ? rows : 0;
    p->pub->rows_active = p->columns_active > 0 ? rows : 0;
}

static void columns_take(struct full_pass *p, const struct launch_spec *spec)
{
    p->columns_todo = is_cut_by_columns(p) ? p->columns_todo : LAUNCH_COLUMNS;
    p->columns_todo -= spec->columns;
    p->columns_active += spec->columns;
    columns_rows(p, spec->rows);
}

/* Credits a launch of columns that has ended. Returns whether the op is complete. */
static bool columns_credit(struct full_pass *p, const struct launch *l, bool done)
{
    SIM_REQUIRE(p->columns_active >= l->columns, "launch %u: columns that pass %u lacks", l->id,
                p->pub->id);
    p->columns_active -= l->columns;
    p->columns_todo += done ? 0 : l->columns;
    if (!is_cut_by_columns(p)) {
        return true;
    }
    columns_rows(p, l->rows);
    return false;
}

int core_launch(struct core *c, const struct launch_spec *spec, const struct launch **out)
{
    struct pass *p = spec->pass;
    int rc = span_check(c, spec);
    if (rc != 0) {
        return rc;
    }
    const uint32_t rows = spec->rows, n_ops = spec->n_ops;
    REFUSE_IF(c, rows < pass_op_rows(p, p->op) && (c->caps & CAP_ROW_SPLIT) == 0,
              LAUNCH_UNSUPPORTED, -EPERM, "this executor does not split the rows of an op");
    if (spec->inflight > 1 && (c->caps & CAP_INFLIGHT) == 0) {
        core_fail(c, -EINVAL,
                  "launches with %u kernels in flight, and devices of this executor take one at a "
                  "time (inflight=1)",
                  spec->inflight);
        return core_refuse(c, COUNTER_LAUNCH_UNSUPPORTED, -EPERM,
                           "devices of this executor take one kernel at a time");
    }
    REFUSE_IF(c, c->exec_ops->free_slots(c->exec, spec->device) == 0, LAUNCH_DEVICE_BUSY, -EBUSY,
              "the device has no free slot");
    struct resident *pin = NULL;
    rc = launch_supported(c, spec, p->op + n_ops, &pin);
    if (rc != 0) {
        return rc;
    }
    /* Nothing fails from here on, so a refused launch has changed nothing. */
    struct full_launch *l;
    FREE_TAKE(c->free_launches, &c->arena, l);
    l->pub = l->pub != NULL ? l->pub : arena_alloc(&c->shown, sizeof *l->pub);
    SIM_ASSERT(l->pub->id == 0 || l->pub->state == LAUNCH_STATE_ENDED);
    if (pin != NULL) {
        pin->pins++;
    }
    l->pin = pin;
    *l->pub = (struct launch){
        .id = ++c->next_launch_id,
        .pass = p,
        .device = spec->device,
        .graph = spec->graph,
        .graph_block = spec->graph_block,
        .inflight = spec->inflight,
        .yield = spec->yield,
        .op_begin = p->op,
        .op_end = p->op + n_ops,
        .rows = rows,
        .chunk_rows = spec->chunk_rows,
        .state = LAUNCH_STATE_QUEUED,
        .submit_ns = c->sched->now_ns,
        .core = (uintptr_t)l ^ core_way,
        .columns = spec->columns,
    };
    l->exec = NULL;
    if (spec->columns > 0) {
        columns_take(core_pass(p), spec);
    } else {
        p->rows_todo -= rows;
        p->rows_active += rows;
    }
    p->n_launches++;
    SIM_ASSERT(spec->columns > 0 || p->rows_todo + p->rows_active <= pass_op_rows(p, p->op));
    BECOMES(pass, p->state, PASS_STATE_RUNNING);
    if (c->expected != NULL && c->expected_as == p && core_launch_is_whole(l->pub) &&
        c->expected->pub->last_op_devices == 1u << spec->device) {
        c->expected = NULL;
    }
    CORE_OBSERVE(c, launch_submitted, c->sched->now_ns, l->pub);
    if (out != NULL) {
        *out = l->pub;
    }
    /* Last, because the executor may start the launch at once, and launch_submitted must come
     * before launch_started. */
    c->exec_ops->launch(c->exec, l);
    return 0;
}

void core_launch_started(struct core *c, struct full_launch *l, int64_t lead_ns)
{
    SIM_REQUIRE(l->pub->state == LAUNCH_STATE_QUEUED, "launch %u starts twice", l->pub->id);
    SIM_ASSERT(lead_ns >= 0 && l->pub->submit_ns <= c->sched->now_ns);
    SIM_ASSERT(l->pub->pass->state == PASS_STATE_RUNNING && l->pub->pass->n_launches > 0);
    BECOMES(launch, l->pub->state, LAUNCH_STATE_RUNNING);
    l->pub->start_ns = c->sched->now_ns;
    CORE_OBSERVE(c, launch_started, c->sched->now_ns, l->pub, lead_ns);
}

void core_first_kernel_started(struct core *c, const struct full_launch *l)
{
    struct full_pass *p = core_pass(l->pub->pass);
    p->served = true;
    SIM_ASSERT(l->pub->state == LAUNCH_STATE_RUNNING);
    for (uint32_t i = 0; i < p->pub->n_segments; i++) {
        struct full_request *r = core_member(&p->segments[i]);
        SIM_ASSERT(r->alive && (r->pub->pass == p->pub || p->before != NULL));
        if (r->pub->first_service_ns == TIME_NEVER_NS) {
            SIM_ASSERT(r->pub->generated_tokens == 0);
            r->pub->first_service_ns = c->sched->now_ns;
            CORE_OBSERVE(c, request_first_service, c->sched->now_ns, r->pub, l->pub);
        }
    }
}

static inline void pass_credit(struct full_pass *p, const struct launch *l, uint32_t ops_done,
                               uint32_t rows_done)
{
    struct pass *pub = p->pub;
    SIM_REQUIRE(pub->n_launches > 0 && pub->rows_active >= l->rows, "a launch of pass %u it lacks",
                pub->id);
    SIM_REQUIRE(l->op_begin + ops_done <= l->op_end, "launch %u: more ops than it had", l->id);
    SIM_ASSERT(l->op_begin == pub->op); /* every launch begins at the cursor */
    SIM_ASSERT(rows_done < (ops_done == 0 ? l->rows : pub->shape.rows));
    SIM_ASSERT(l->op_begin + ops_done < l->op_end || rows_done == 0);
    pub->n_launches--;
    if (ops_done > 0 || rows_done > 0) {
        p->op_devices |= 1u << l->device; /* a launch that did nothing leaves no data there */
    }
    if (l->columns > 0) {
        if (!columns_credit(p, l, ops_done > 0)) {
            return;
        }
    } else if (ops_done == 0) {
        pub->rows_active -= l->rows;
        pub->rows_todo += l->rows - rows_done;
        return;
    }
    if (l->columns == 0 &&
        l->op_end == l->op_begin + 1) { /* one op, which is complete when all its launches are */
        pub->rows_active -= l->rows;
        if (pub->rows_todo > 0 || pub->rows_active > 0) {
            return;
        }
    }
    SIM_ASSERT(pub->n_launches == 0); /* it was the last or only launch of the op */
    pub->op = l->op_begin + ops_done;
    pub->rows_active = 0;
    pub->last_op_devices = p->op_devices;
    p->op_devices = rows_done > 0 ? 1u << l->device : 0;
    /* Only the first op can have been shared with other devices. */
    if (ops_done > 1) {
        pub->last_op_devices = 1u << l->device;
    }
    pub->rows_todo = pub->op < pub->n_ops ? pass_op_rows(pub, pub->op) - rows_done : 0;
}

void core_launch_ended(struct core *c, struct full_launch *l, enum launch_outcome outcome,
                       uint32_t ops_done, uint32_t rows_done, int64_t isolated_ns, int64_t lost_ns)
{
    struct full_pass *p = core_pass(l->pub->pass);
    SIM_REQUIRE(l->pub->state != LAUNCH_STATE_ENDED, "launch %u ends twice", l->pub->id);
    SIM_ASSERT(isolated_ns >= 0 && lost_ns >= 0);
    SIM_ASSERT(outcome != LAUNCH_OUTCOME_DONE || l->pub->op_begin + ops_done == l->pub->op_end);
    SIM_ASSERT(outcome != LAUNCH_OUTCOME_WITHDRAWN || (ops_done == 0 && rows_done == 0));
    SIM_ASSERT(outcome == LAUNCH_OUTCOME_RESET || lost_ns == 0);
    SIM_ASSERT(outcome == LAUNCH_OUTCOME_DONE || l->pub->stop_requested);
    BECOMES(launch, l->pub->state, LAUNCH_STATE_ENDED);
    l->pub->outcome = outcome;
    l->pub->end_ns = c->sched->now_ns;
    if (outcome == LAUNCH_OUTCOME_DONE || ops_done > 0 || rows_done > 0 || isolated_ns > 0) {
        core_progress(c);
    } else {
        c->fruitless++;
    }
    if (l->pin != NULL) {
        SIM_REQUIRE(l->pin->pins > 0, "launch %u holds a resident nobody pinned", l->pub->id);
        l->pin->pins--;
    }
    static const enum counter as[] = {[LAUNCH_OUTCOME_YIELDED] = COUNTER_LAUNCH_YIELDED,
                                      [LAUNCH_OUTCOME_WITHDRAWN] = COUNTER_LAUNCH_WITHDRAWN,
                                      [LAUNCH_OUTCOME_RESET] = COUNTER_LAUNCH_RESET};
    if (outcome != LAUNCH_OUTCOME_DONE) {
        core_count(c, as[outcome]);
    }
    pass_credit(p, l->pub, ops_done, rows_done);
    if (p->pub->n_launches == 0) {
        BECOMES(pass, p->pub->state, PASS_STATE_READY);
    }
    CORE_OBSERVE(c, launch_ended, c->sched->now_ns, l->pub, isolated_ns, lost_ns);
    core_launch_over(c, l);
    /* Here, because launch_done must come before pass_done. */
    if (p->pub->op == p->pub->n_ops && p->pub->n_launches == 0 && p->before == NULL) {
        core_pass_complete(c, p);
    } else {
        core_pass_check_wanted(c, p);
    }
}

int core_preempt(struct core *c, const struct launch *pub, struct preempt_spec how)
{
    struct full_launch *l = core_launch_of(pub);
    bool contradict = how.now ? how.drain : how.discard;
    REFUSE_IF(c, l == NULL || pub->state == LAUNCH_STATE_ENDED || contradict, PREEMPT_REFUSED,
              -EINVAL,
              contradict ? "these facts of a stop do not go together"
                         : "the launch is over, or there is none");
    /* A launch that is to stop at a boundary may still be stopped at once. */
    REFUSE_IF(c, pub->stop_requested && !how.now, PREEMPT_REFUSED, -EALREADY,
              "it was asked to stop already");
    REFUSE_IF(c, how.now && pub->columns > 0, PREEMPT_REFUSED, -EPERM,
              "a launch of some columns stops at its end only");
    const struct device *d = &c->setup->machine->devices[pub->device];
    bool suspends = d->can_suspend && (c->caps & CAP_SUSPEND) != 0;
    REFUSE_IF(c, how.now && (how.discard ? !d->can_reset : !suspends), PREEMPT_REFUSED, -EPERM,
              how.discard ? "the device cannot reset" : "the device cannot suspend");
    REFUSE_IF(c, pub->state == LAUNCH_STATE_QUEUED && (!d->can_withdraw || how.drain),
              PREEMPT_REFUSED, -EPERM,
              "it has not begun, and the device does not take back what it was given");
    /* Set it first, because the executor may end the launch within the call. */
    l->pub->stop_requested = true;
    core_count(c, COUNTER_PREEMPT_ASKED);
    CORE_OBSERVE(c, preempt_asked, c->sched->now_ns, l->pub);
    int rc = c->exec_ops->stop(c->exec, l, how);
    return rc == 0 ? 0 : core_refuse(c, COUNTER_PREEMPT_REFUSED, rc, "the executor cannot stop it");
}
