/* llm-npu: prefill in static chunk graphs on the NPU, everything else on the CPU (clauses.md E.18;
 * llm.npu, arXiv 2407.05858, whose engine is mllm).
 *
 *   chunks      QKV and FFN of a prompt run in the NPU's static chunks, the last one padded
 *   outliers    a share of the rows runs on the CPU at the same time (3.3: shadow outliers)
 *   float ops   attention, the head and all decoding run on the CPU
 *   order       subgraphs of several prompts run out of order: the NPU takes a QKV first, because
 *               attention follows it on the CPU; the CPU takes the attention that makes most work
 *               for the NPU
 *
 * Deviations. The paper runs one prompt and interleaves its chunks: chunk 2's QKV during chunk 1's
 * attention. A pass here has a barrier after each op, so a prompt by itself leaves the NPU idle
 * during attention; what interleaves are prompts (in_progress). A prompt of 2,048 tokens is up to
 * 1.76 times as slow as by the paper's order (policies/README.md). Outliers are channels there and
 * rows here: the CPU's part of an op is what counts. Accuracy is not simulated. */
#include <errno.h>
#include <math.h>

#include "policies/common/batch.h"
#include "policies/common/hetero.h"
#include "policies/common/place.h"
#include "policies/common/reqq.h"

enum { PARAM_IN_PROGRESS, PARAM_OUTLIERS };

static const struct policy_param params[] = {
    [PARAM_IN_PROGRESS] = POLICY_INT("in_progress", 2, 1, 64,
                                     "requests in progress; 1: one after the other (the paper)"),
    [PARAM_OUTLIERS] = POLICY_NUMBER(
        "outlier_frac", 0.01, 0, 0.5,
        "share of a token-level op on the CPU next to the NPU (ours: a few of 100 channels)"),
    {.name = NULL},
};

struct llm_npu_request {
    struct reqq_node node;
    struct hetero work; /* its prompt; "igpu" is the CPU here */
};

struct llm_npu {
    struct reqq waiting, running;
    struct pass *decode; /* on the CPU, or NULL */
    struct batch batch;
    int npu, cpu;
};

static struct hetero *work_of(const struct request *r)
{
    return &((struct llm_npu_request *)r->own)->work;
}

static int llm_npu_init(struct sched *s)
{
    struct llm_npu *n = s->state;
    n->npu = machine_find(s->machine, DEVICE_KIND_NPU);
    n->cpu = machine_find(s->machine, DEVICE_KIND_CPU);
    return s->machine->devices[n->npu].chunk_rows == 0 ? -EINVAL : 0;
}

static void llm_npu_exit(struct sched *s)
{
    struct llm_npu *n = s->state;
    if (n != NULL) {
        batch_fini(&n->batch);
    }
}

static void llm_npu_request_arrived(struct sched *s, const struct request *r)
{
    struct llm_npu *n = s->state;
    reqq_push(&n->waiting, r);
}

static void llm_npu_request_cancelled(struct sched *s, const struct request *r)
{
    (void)s;
    reqq_remove(r);
}

static void llm_npu_launch_done(struct sched *s, const struct launch *l)
{
    struct llm_npu *n = s->state;
    for (const struct request *r = n->running.head; r != NULL; r = reqq_next(r)) {
        (void)hetero_ended(work_of(r), l);
    }
}

static void llm_npu_pass_done(struct sched *s, const struct pass *p)
{
    struct llm_npu *n = s->state;
    n->decode = p == n->decode ? NULL : n->decode;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        hetero_clear(work_of(r));
        if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
            reqq_remove(r);
        }
    }
}

/* In arrival order, while there is memory; who decodes keeps a few blocks to grow. */
static void admit(struct sched *s, struct llm_npu *n)
{
    while (!reqq_empty(&n->waiting) && n->running.n < (uint32_t)param_int(s, PARAM_IN_PROGRESS)) {
        const struct request *r = n->waiting.head;
        uint32_t left = request_prefill_left(r);
        struct segment seg = {.request = r, .role = SEGMENT_PREFILL, .n_tokens = left};
        struct pass_spec spec = {.segments = &seg, .n_segments = 1};
        struct pass *p = NULL;
        bool room =
            n->running.n == 0 || left + 64ULL * (n->running.n + 1) <= sched_kv_free_tokens(s);
        if (!room || sched_pass_form(s, &spec, &p) != 0) {
            return;
        }
        reqq_remove(r);
        reqq_push(&n->running, r);
        hetero_begin(work_of(r), p);
    }
}

/* Rows for the NPU: all but the outliers' of a token-level op. */
static void plan(struct sched *s, struct hetero *h)
{
    uint32_t rows = h->pass->rows_todo;
    uint32_t outliers = (uint32_t)ceil(param_number(s, PARAM_OUTLIERS) * rows);
    hetero_plan(s, h, hetero_is_token_level(h->pass) && outliers < rows ? rows - outliers : 0);
}

static void feed_npu(struct sched *s, struct llm_npu *n)
{
    const struct request *best = NULL;
    for (const struct request *r = n->running.head; r != NULL; r = reqq_next(r)) {
        const struct hetero *h = work_of(r);
        bool ready = h->pass != NULL && h->npu_rows > 0 && h->on_npu == NULL;
        bool qkv = ready && pass_op_kind(h->pass, h->pass->op) == OP_QKV;
        if (ready && (best == NULL || (qkv && pass_op_kind(work_of(best)->pass,
                                                           work_of(best)->pass->op) != OP_QKV))) {
            best = r;
        }
    }
    if (best != NULL) {
        (void)hetero_launch(s, work_of(best), n->npu, true, UINT32_MAX, YIELD_PASS);
    }
}

/* How urgent a prompt's share of the CPU is: outliers hold the NPU's op back; then the attention
 * that is followed by most rows; then the head. */
static uint64_t urgency(const struct hetero *h)
{
    if (hetero_is_token_level(h->pass)) {
        return UINT64_MAX;
    }
    return pass_op_kind(h->pass, h->pass->op) == OP_MHA ? 1 + (uint64_t)h->pass->shape.rows : 1;
}

static bool feed_cpu(struct sched *s, struct llm_npu *n)
{
    const struct request *best = NULL;
    for (const struct request *r = n->running.head; r != NULL; r = reqq_next(r)) {
        const struct hetero *h = work_of(r);
        bool ready = h->pass != NULL && h->igpu_rows > 0 && h->on_igpu == NULL;
        best = ready && (best == NULL || urgency(h) > urgency(work_of(best))) ? r : best;
    }
    return best != NULL && hetero_launch(s, work_of(best), n->cpu, false, UINT32_MAX, YIELD_PASS);
}

/* Memory is short for a batch: the last to begin starts over. */
static bool give_way(struct sched *s, struct llm_npu *n)
{
    for (const struct request *r = n->running.tail; r != NULL && r != n->running.head;
         r = reqq_prev(r)) {
        if (r->pass == NULL && sched_kv_move(s, kv_of(r), KV_NOWHERE) == 0) {
            reqq_remove(r);
            reqq_push_front(&n->waiting, r);
            return true;
        }
    }
    return false;
}

/* One token for all that decode, on the CPU. */
static void decode(struct sched *s, struct llm_npu *n)
{
    int rc = -ENOMEM;
    while (n->decode == NULL && rc == -ENOMEM) {
        batch_clear(&n->batch);
        for (const struct request *r = n->running.head; r != NULL; r = reqq_next(r)) {
            if (r->state == REQUEST_STATE_DECODE && r->pass == NULL) {
                batch_add(&n->batch, r, SEGMENT_DECODE, 1);
            }
        }
        rc = n->batch.n > 0 ? batch_form(s, &n->batch, &n->decode) : -EINVAL;
        n->decode = rc == 0 ? n->decode : NULL;
        if (rc == -ENOMEM && !give_way(s, n)) {
            return;
        }
    }
    if (n->decode != NULL && n->decode->state == PASS_STATE_READY) {
        (void)place_whole(s, n->decode, (uint8_t)n->cpu, YIELD_PASS);
    }
}

static void llm_npu_schedule(struct sched *s)
{
    struct llm_npu *n = s->state;
    admit(s, n);
    for (const struct request *r = n->running.head; r != NULL; r = reqq_next(r)) {
        if (hetero_at_boundary(work_of(r))) {
            plan(s, work_of(r));
        }
    }
    if (sched_device_free_slots(s, (uint8_t)n->npu) > 0) {
        feed_npu(s, n);
    }
    if (sched_device_free_slots(s, (uint8_t)n->cpu) > 0 && !feed_cpu(s, n)) {
        decode(s, n);
    }
}

static const char *const ablations[] = {"in_progress=1", "outlier_frac=0", NULL};

const struct policy_ops policy_llm_npu_ops = {
    .name = "llm-npu",
    .summary = "prefill in chunk graphs on the NPU, attention and decoding on the CPU (llm.npu)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_NPU | CAP_DEVICE(DEVICE_KIND_CPU) | CAP_SPANS | CAP_ROW_SPLIT | CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct llm_npu),
    .request_state_size_bytes = sizeof(struct llm_npu_request),
    .params = params,
    .ablations = ablations,
    .init = llm_npu_init,
    .exit = llm_npu_exit,
    .request_arrived = llm_npu_request_arrived,
    .launch_done = llm_npu_launch_done,
    .pass_done = llm_npu_pass_done,
    .request_cancelled = llm_npu_request_cancelled,
    .schedule = llm_npu_schedule,
};
