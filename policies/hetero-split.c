/* hetero-split: HeteroLLM's static tensor partition, the second baseline of the public Agent.xpu v2
 * (clauses.md E.11). For every operator a partition is chosen once from annotated times, min over m
 * of max(NPU, iGPU) + barrier. There are no classes and no preemption; requests run in arrival
 * order. Prefill token-level ops are cut by tokens in whole NPU chunks (one may be padded,
 * HeteroLLM's hybrid cut); attention and the head stay on the iGPU.
 *
 * Decode. HeteroLLM cuts the weight matrix, so that both engines read their parts at the same time.
 * `decode=columns` does this, and both parts end together by annotated time. If launches op by op
 * would cost more, the iGPU runs the whole pass. `decode=solver` takes the better of iGPU alone and
 * a cut by rows, each of which reads all weights; `decode=rows` always cuts batches of two and more
 * by bandwidth share, as the specification says. The operators of an FFN share one cut, and
 * barriers between them are not counted. */
#include "policies/common/batch.h"
#include "policies/common/blocks.h"
#include "policies/common/cost.h"
#include "policies/common/hetero.h"
#include "policies/common/place.h"
#include "policies/common/reqq.h"

enum { PARAM_DECODE, PARAM_MAX_BATCH, PARAM_SPLIT };
enum { DECODE_IGPU, DECODE_SOLVER, DECODE_ROWS, DECODE_COLUMNS };

static const char *const decodes[] = {"igpu", "solver", "rows", "columns", NULL};
static const struct policy_param params[] = {
    [PARAM_DECODE] = POLICY_CHOICE("decode", DECODE_SOLVER, decodes,
                                   "partition of decode ops, see the file's head (E.11)"),
    [PARAM_MAX_BATCH] =
        POLICY_INT("max_batch", 16, 1, 1024,
                   "requests in progress; 1: one request at a time as in the paper, more: "
                   "continuous batching of decode (E.11 leaves both)"),
    [PARAM_SPLIT] = POLICY_BOOL(
        "split", true, "cut prefill ops over both engines; false: NPU chunks only (ablation)"),
    {.name = NULL},
};

struct hetero_split {
    struct reqq waiting;
    struct reqq running;              /* admitted requests, in arrival order */
    struct hetero work;               /* the pass in progress, prefill or decode */
    uint32_t npu_rows[OP_KIND_COUNT]; /* rows for the NPU of each op, in every layer */
    struct batch batch;
    uint64_t short_epoch; /* epoch in which KV was last short: nothing is admitted then */
    uint32_t chunk;
    int npu, igpu;
};

static int split_init(struct sched *s)
{
    struct hetero_split *h = s->state;
    h->npu = machine_find(s->machine, DEVICE_KIND_NPU);
    h->igpu = machine_find(s->machine, DEVICE_KIND_IGPU);
    h->chunk = s->machine->devices[h->npu].chunk_rows;
    return place_needs_chunks(s, h->npu);
}

static void split_exit(struct sched *s)
{
    struct hetero_split *h = s->state;
    batch_fini(&h->batch);
}

static void split_request_arrived(struct sched *s, const struct request *r)
{
    struct hetero_split *h = s->state;
    reqq_push(&h->waiting, r);
}

static void split_launch_done(struct sched *s, const struct launch *l)
{
    struct hetero_split *h = s->state;
    (void)hetero_ended(&h->work, l);
}

static void split_pass_done(struct sched *s, const struct pass *p)
{
    struct hetero_split *h = s->state;
    hetero_clear(&h->work);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
            reqq_remove(r);
        }
    }
}

/* ---- the partition ---- */

/* argmin over m of max(T_NPU(m), T_iGPU(rows - m)) + barrier if both work. Ties go to the NPU. */
static uint32_t best_rows(struct sched *s, const struct hetero_split *h, const struct pass *p,
                          enum op_kind op, uint32_t step)
{
    uint32_t rows = p->shape.rows;
    uint32_t best = 0;
    int64_t best_ns = INT64_MAX;
    /* The last candidate is all rows, and the NPU may pad the last chunk. */
    for (uint32_t m = 0;; m = rows - m < step ? rows : m + step) {
        int64_t npu = cost_estimate(s, &p->shape, op, h->npu, m).t_ns;
        int64_t igpu = cost_estimate(s, &p->shape, op, h->igpu, rows - m).t_ns;
        /* No barrier counts if all rows are on the NPU. With attention on the iGPU a layer pays two
         * barriers if QKV, FFN or both are on the NPU, so the second op adds none. */
        int64_t t = (npu > igpu ? npu : igpu) + (m > 0 && m < rows ? s->machine->sync_ns : 0);
        if (t <= best_ns) {
            best_ns = t;
            best = m;
        }
        if (m == rows) {
            return best;
        }
    }
}

/* Rows by share of bandwidth, from the demand of a GEMV on each engine. */
static uint32_t bandwidth_rows(struct sched *s, const struct hetero_split *h, const struct pass *p,
                               enum op_kind op)
{
    struct estimate npu = {0};
    struct estimate igpu = {0};
    (void)sched_estimate(s, &p->shape, op, (uint8_t)h->npu, 1, &npu);
    (void)sched_estimate(s, &p->shape, op, (uint8_t)h->igpu, 1, &igpu);
    double both = npu.bytes_per_s + igpu.bytes_per_s;
    double share = both > 0.0 ? npu.bytes_per_s / both : 0.0;
    return (uint32_t)(share * (double)p->shape.rows);
}

static bool cuts_columns(const struct sched *s, const struct pass *p)
{
    return p->shape.prefill_rows == 0 && param_int(s, PARAM_DECODE) == DECODE_COLUMNS;
}

struct cut {
    uint32_t columns; /* the NPU's part */
    double saved_ns;
};

/* Time is proportional to the part of the weights, so both parts can end together. */
static struct cut best_cut(struct sched *s, const struct hetero_split *h, const struct pass *p,
                           enum op_kind op)
{
    double npu = (double)cost_estimate(s, &p->shape, op, h->npu, p->shape.rows).t_ns;
    double igpu = (double)cost_estimate(s, &p->shape, op, h->igpu, p->shape.rows).t_ns;
    double share = igpu / (npu + igpu);
    double saved_ns = igpu - share * npu - (double)s->machine->sync_ns;
    return saved_ns > 0.0 ? (struct cut){(uint32_t)(share * LAUNCH_COLUMNS + 0.5), saved_ns}
                          : (struct cut){0};
}

/* Whether a cut saves more time than launches op by op cost the host. */
static bool worth_cutting(struct sched *s, const struct hetero_split *h, const struct pass *p)
{
    const struct device *d = &s->machine->devices[h->igpu];
    double launches_ns = (double)p->layer.n * (double)(d->submit_ns + d->completion_ns);
    return best_cut(s, h, p, OP_QKV).saved_ns + best_cut(s, h, p, OP_FFN).saved_ns > launches_ns;
}

/* Rows of a QKV or FFN for the NPU. */
static uint32_t npu_rows(struct sched *s, const struct hetero_split *h, const struct pass *p,
                         enum op_kind op)
{
    if (p->shape.prefill_rows > 0) {
        return param_bool(s, PARAM_SPLIT) ? best_rows(s, h, p, op, h->chunk) : p->shape.rows;
    }
    if (p->shape.rows < 2) {
        return 0;
    }
    switch (param_int(s, PARAM_DECODE)) {
    case DECODE_SOLVER:
        return best_rows(s, h, p, op, 1);
    case DECODE_ROWS:
        return bandwidth_rows(s, h, p, op);
    default:
        return 0;
    }
}

/* ---- one pass at a time over both engines ---- */

/* Leaves a few blocks for the growth of each running request. */
static bool has_room(struct sched *s, const struct hetero_split *h, const struct request *r)
{
    return h->running.n == 0 ||
           blocks_prompt_tokens(s, r) + 64ULL * (h->running.n + 1) <= sched_kv_free_tokens(s);
}

/* The next prompt, else one token of each request (whole prompts first, as in vLLM's first
 * scheduler). One prompt at a time, because has_room must see its KV. */
static void fill(struct sched *s, struct hetero_split *h)
{
    batch_clear(&h->batch);
    /* Do not admit a victim again at once. */
    uint32_t most = h->short_epoch == s->epoch ? 1 : (uint32_t)param_int(s, PARAM_MAX_BATCH);
    bool prompt = h->running.n > 0 && h->running.tail->state == REQUEST_STATE_QUEUED;
    if (!prompt && !reqq_empty(&h->waiting) && h->running.n < most &&
        has_room(s, h, h->waiting.head)) {
        reqq_push(&h->running, reqq_pop(&h->waiting));
        prompt = true;
    }
    if (prompt) {
        batch_add_next(&h->batch, h->running.tail, UINT32_MAX);
        return;
    }
    for (const struct request *r = h->running.head; r != NULL; r = reqq_next(r)) {
        batch_add(&h->batch, r, SEGMENT_DECODE, 1);
    }
}

/* Frees KV: evicts the youngest, which starts over at another instant. */
static bool give_way(struct sched *s, struct hetero_split *h)
{
    const struct request *r = h->running.tail;
    if (h->running.n < 2) {
        return false;
    }
    h->short_epoch = s->epoch;
    if (r->kv_tokens > 0) {
        (void)sched_kv_move(s, kv_of(r), KV_NOWHERE);
    }
    reqq_remove(r);
    reqq_push_front(&h->waiting, r);
    return true;
}

static void form(struct sched *s, struct hetero_split *h)
{
    for (;;) {
        struct pass *p = NULL;
        fill(s, h);
        if (h->batch.n == 0) {
            return;
        }
        /* Fused layers cannot be cut. */
        bool whole = param_int(s, PARAM_DECODE) != DECODE_COLUMNS;
        if (batch_form_layers(s, &h->batch, whole, &p) == 0) {
            hetero_begin(&h->work, p);
            return;
        }
        if (!give_way(s, h)) {
            return;
        }
    }
}

/* Launches columns of the op at the cursor on one engine, unless columns is 0. */
static void launch_columns(struct sched *s, struct hetero_split *h, int device, uint32_t columns,
                           const struct launch **on)
{
    struct launch_spec spec = sched_launch_rest(s, h->work.pass, (uint8_t)device, YIELD_PASS);
    spec.n_ops = 1;
    spec.columns = columns < LAUNCH_COLUMNS ? columns : 0;
    if (columns > 0) {
        (void)sched_launch(s, &spec, on);
    }
}

/* Launches the op at the cursor with cut weights, or the whole pass if weights are not cut. */
static void place_columns(struct sched *s, struct hetero_split *h)
{
    struct pass *p = h->work.pass;
    if (p->op == 0 && !worth_cutting(s, h, p)) {
        (void)place_whole(s, p, (uint8_t)h->igpu, YIELD_PASS);
        return;
    }
    uint32_t npu = hetero_is_token_level(p) ? best_cut(s, h, p, pass_op_kind(p, p->op)).columns : 0;
    hetero_plan(s, &h->work, 0);
    h->work.igpu_rows = 0; /* all columns are launched here */
    launch_columns(s, h, h->npu, npu, &h->work.on_npu);
    launch_columns(s, h, h->igpu, LAUNCH_COLUMNS - npu, &h->work.on_igpu);
}

/* Launches the op at the cursor on both engines, or the whole pass if no op needs the NPU. */
static void place(struct sched *s, struct hetero_split *h)
{
    struct pass *p = h->work.pass;
    /* Such a pass would gain nothing from launches op by op. */
    if (p->op == 0) {
        h->npu_rows[OP_QKV] = npu_rows(s, h, p, OP_QKV);
        h->npu_rows[OP_FFN] = npu_rows(s, h, p, OP_FFN);
    }
    if (p->op == 0 && h->npu_rows[OP_QKV] == 0 && h->npu_rows[OP_FFN] == 0) {
        (void)place_whole(s, p, (uint8_t)h->igpu, YIELD_PASS);
        return;
    }
    hetero_plan(s, &h->work, h->npu_rows[pass_op_kind(p, p->op)]); /* the rest on the iGPU */
    hetero_launch_both(s, &h->work, h->npu, h->igpu);
}

static void split_schedule(struct sched *s)
{
    struct hetero_split *h = s->state;
    if (h->work.pass == NULL) {
        form(s, h);
    }
    if (hetero_at_boundary(&h->work) && cuts_columns(s, h->work.pass)) {
        place_columns(s, h);
    } else if (hetero_at_boundary(&h->work)) {
        place(s, h);
    }
}

static const char *const ablations[] = {"split=false", NULL};

const struct policy_ops policy_hetero_split_ops = {
    .name = "hetero-split",
    .summary = "static optimal tensor partition over NPU and iGPU, arrival order (HeteroLLM)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_NPU | CAP_IGPU | CAP_SPANS | CAP_ROW_SPLIT | CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct hetero_split),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .ablations = ablations,
    .init = split_init,
    .exit = split_exit,
    .request_arrived = split_request_arrived,
    .request_cancelled = reqq_leave,
    .launch_done = split_launch_done,
    .pass_done = split_pass_done,
    .schedule = split_schedule,
};
