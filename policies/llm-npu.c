/* llm-npu: prefill in static chunk graphs on the NPU, everything else on the CPU (clauses.md E.18;
 * llm.npu, arXiv 2407.05858, whose engine is mllm).
 *
 *   chunks      QKV and FFN of a prompt run in the NPU's static chunks, the last one padded
 *   outliers    a share of the weights runs on the CPU at the same time (3.3: shadow outliers)
 *   float ops   attention, the head and all decoding run on the CPU
 *   order       subgraphs of a prompt's chunks run out of order (3.4): each chunk is a pass, and a
 *               free processor takes the ready subgraph that leaves the NPU idle least (eq. 5)
 *
 * Deviations. If there are several prompts, the first has priority; the paper has one prompt.
 * Outliers are input channels there and output columns here, because only the CPU's part of an op's
 * weights matters. With an executor that does not cut weights they are rows. Accuracy is not
 * simulated. */
#include "policies/common/batch.h"
#include "policies/common/blocks.h"
#include "policies/common/place.h"
#include "policies/common/reqq.h"

enum { PARAM_IN_PROGRESS, PARAM_OUTLIERS, PARAM_ORDER };
enum { ORDER_CHUNKS, ORDER_TOGETHER };
static const char *const orders[] = {"chunks", "together", NULL};

static const struct policy_param params[] = {
    [PARAM_IN_PROGRESS] = POLICY_INT("in_progress", 2, 1, 64,
                                     "requests in progress; 1: one after the other (the paper)"),
    [PARAM_OUTLIERS] = POLICY_NUMBER(
        "outlier_frac", 0.01, 0, 0.5,
        "share of an op's weights on the CPU next to the NPU (ours: a few of 100 channels)"),
    [PARAM_ORDER] = POLICY_CHOICE(
        "order", ORDER_CHUNKS, orders,
        "chunks of a prompt out of order (the paper), or all together, operator by operator"),
    {.name = NULL},
};

/* A chunk of a prompt. */
struct chunk {
    struct pass *pass;         /* NULL: done */
    uint32_t planned;          /* + 1: the operator whose parts follow; 0: none */
    bool todo[2];              /* parts left to launch: the CPU's, the NPU's */
    int64_t ns[OP_KIND_COUNT]; /* annotated times, each on its processor */
};

struct llm_npu_request {
    struct reqq_node node;
    struct chunk *chunks; /* owned; during the prompt */
    uint32_t n;
};

struct llm_npu {
    struct reqq waiting, running;
    struct pass *decode; /* decode pass on the CPU, or NULL */
    struct batch batch;
    int npu, cpu;
    bool by_rows; /* the executor does not cut weights */
};

static struct llm_npu_request *own_of(const struct request *r)
{
    return r->own;
}

static int llm_npu_init(struct sched *s)
{
    struct llm_npu *n = s->state;
    n->npu = machine_find(s->machine, DEVICE_KIND_NPU);
    n->cpu = machine_find(s->machine, DEVICE_KIND_CPU);
    return place_needs_chunks(s, n->npu);
}

static void forget_chunks(const struct request *r)
{
    free(own_of(r)->chunks);
    own_of(r)->chunks = NULL;
    own_of(r)->n = 0;
}

static void llm_npu_exit(struct sched *s)
{
    struct llm_npu *n = s->state;
    for (const struct request *r = n->running.head; r != NULL; r = reqq_next(r)) {
        forget_chunks(r);
    }
    batch_fini(&n->batch);
}

static void llm_npu_request_arrived(struct sched *s, const struct request *r)
{
    struct llm_npu *n = s->state;
    reqq_push(&n->waiting, r);
}

static void llm_npu_pass_done(struct sched *s, const struct pass *p)
{
    struct llm_npu *n = s->state;
    n->decode = p == n->decode ? NULL : n->decode;
    if (p->policy_data != NULL) {
        ((struct chunk *)p->policy_data)->pass = NULL;
    }
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        if (r->pass == NULL) { /* after its last chunk, or a token */
            forget_chunks(r);
        }
        if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
            reqq_remove(r);
        }
    }
}

/* ---- chunks ---- */

static int chunk_form(struct sched *s, const struct llm_npu *n, struct chunk *k, struct segment seg)
{
    struct pass_spec spec = {.segments = &seg, .n_segments = 1, .policy_data = k};
    struct pass *p = NULL;
    int rc = sched_pass_form(s, &spec, &p);
    if (rc != 0) {
        return rc;
    }
    k->pass = p;
    for (uint32_t i = 0; i < p->layer.n; i++) {
        enum op_kind op = p->layer.kind[i];
        struct estimate e = {0};
        (void)sched_estimate(s, &p->shape, op, (uint8_t)(op == OP_MHA ? n->cpu : n->npu), 0, &e);
        k->ns[op] = e.t_ns;
    }
    return 0;
}

/* Forms a pass for each chunk of a prompt; none if memory is short. */
static bool begin(struct sched *s, const struct llm_npu *n, const struct request *r)
{
    struct llm_npu_request *own = own_of(r);
    uint32_t left = request_prefill_left(r);
    bool together = param_int(s, PARAM_ORDER) == ORDER_TOGETHER;
    uint32_t rows = together ? left : s->machine->devices[n->npu].chunk_rows;
    uint32_t chunks = (left + rows - 1) / rows;
    own->chunks = xcalloc(chunks, sizeof *own->chunks);
    int rc = 0;
    for (own->n = 0; own->n < chunks && rc == 0;) {
        uint32_t tokens = left < rows ? left : rows;
        rc = chunk_form(s, n, &own->chunks[own->n],
                        (struct segment){.request = r,
                                         .role = own->n > 0 ? SEGMENT_AHEAD : SEGMENT_PREFILL,
                                         .n_tokens = tokens});
        own->n += rc == 0;
        left -= tokens;
    }
    while (rc != 0 && own->n > 0) {
        (void)sched_pass_cancel(s, own->chunks[--own->n].pass);
    }
    if (rc != 0) {
        forget_chunks(r);
    }
    return rc == 0;
}

/* Admits prompts in arrival order while there is memory, and leaves a few blocks for the growth of
 * each request in decode. */
static void admit(struct sched *s, struct llm_npu *n)
{
    while (!reqq_empty(&n->waiting) && n->running.n < (uint32_t)param_int(s, PARAM_IN_PROGRESS)) {
        const struct request *r = n->waiting.head;
        uint64_t need = blocks_prompt_tokens(s, r) + 64ULL * (n->running.n + 1);
        bool room = n->running.n == 0 || need <= sched_kv_free_tokens(s);
        if (!room || !begin(s, n, r)) {
            return;
        }
        reqq_remove(r);
        reqq_push(&n->running, r);
    }
}

/* ---- parts of an operator ---- */

static enum op_kind op_of(const struct chunk *k)
{
    return pass_op_kind(k->pass, k->pass->op);
}

/* QKV and FFN run on the NPU, except for outliers; attention and the head on the CPU. */
static bool is_for_npu(const struct chunk *k)
{
    return op_of(k) == OP_QKV || op_of(k) == OP_FFN;
}

/* Number of outliers among `whole` columns or rows; 0 if they would be all. */
static uint32_t outliers_of(const struct sched *s, uint32_t whole)
{
    uint32_t some = (uint32_t)ceil(param_number(s, PARAM_OUTLIERS) * whole);
    return some < whole ? some : 0;
}

/* Plans an operator that has no launch yet. */
static void plan(const struct sched *s, const struct llm_npu *n, struct chunk *k)
{
    const struct pass *p = k->pass;
    if (p == NULL || p->op == p->n_ops || p->n_launches > 0 || k->planned == p->op + 1) {
        return;
    }
    uint32_t outliers = outliers_of(s, n->by_rows ? p->rows_todo : LAUNCH_COLUMNS);
    k->planned = p->op + 1;
    k->todo[true] = is_for_npu(k);
    k->todo[false] = !is_for_npu(k) || outliers > 0;
}

/* Launches the part of a processor. */
static bool launch(struct sched *s, struct llm_npu *n, struct chunk *k, bool npu)
{
    struct launch_spec l =
        sched_launch_rest(s, k->pass, (uint8_t)(npu ? n->npu : n->cpu), YIELD_PASS);
    uint32_t rows = pass_op_rows(k->pass, k->pass->op);
    uint32_t outliers = outliers_of(s, n->by_rows ? rows : LAUNCH_COLUMNS);
    l.n_ops = 1;
    if (is_for_npu(k) && outliers > 0 && n->by_rows) {
        l.rows = npu ? rows - outliers : outliers;
    } else if (is_for_npu(k) && outliers > 0) {
        l.columns = npu ? LAUNCH_COLUMNS - outliers : outliers;
    }
    int rc = sched_launch(s, &l, NULL);
    if (rc == -EPERM && l.columns > 0) { /* no column split: fall back to rows */
        n->by_rows = true;
        return launch(s, n, k, npu);
    }
    k->todo[npu] = rc != 0;
    return rc == 0;
}

/* ---- the order of subgraphs (3.4) ---- */

/* Whether a chunk has done all operators before `op`. */
static bool has_come_to(const struct chunk *k, uint32_t op)
{
    return k->pass == NULL || k->pass->op >= op;
}

/* Whether a chunk's part for a processor is left to launch and its dependencies are done. Attention
 * depends on the keys of earlier chunks (eq. 2), the head on all of them, other operators on none
 * (eq. 3). */
static bool is_ready(const struct llm_npu_request *own, uint32_t i, bool npu)
{
    const struct pass *p = own->chunks[i].pass;
    if (p == NULL || !own->chunks[i].todo[npu]) {
        return false;
    }
    enum op_kind op = op_of(&own->chunks[i]);
    uint32_t to = op == OP_MHA ? p->op : op == OP_HEAD ? UINT32_MAX : 0;
    uint32_t k = 0;
    while (k < i && has_come_to(&own->chunks[k], to)) {
        k++;
    }
    return k == i;
}

/* Eq. 5: the time of work that the subgraph enables on the other processor; negative for a subgraph
 * on the NPU. An FFN enables none. */
static int64_t contribution(const struct llm_npu_request *own, uint32_t i)
{
    const struct chunk *of = &own->chunks[i];
    if (op_of(of) != OP_QKV) {
        return op_of(of) == OP_MHA ? of->ns[OP_FFN] : 0;
    }
    int64_t ns = 0;
    uint32_t mha = of->pass->op + 1;
    for (uint32_t k = 0; k < own->n; k++) {
        const struct chunk *c = &own->chunks[k];
        bool waits = k > i && c->pass != NULL && c->pass->op == mha && c->todo[false];
        ns += k == i || waits ? c->ns[OP_MHA] : 0;
        if (k != i && !has_come_to(c, mha)) {
            break; /* later chunks wait for this one, too */
        }
    }
    return -ns;
}

/* The ready subgraph with the largest contribution, or NULL. Ties go to the first chunk. Outliers
 * go before all others, because an operator of the NPU waits for them. */
static struct chunk *choose(const struct llm_npu_request *own, bool npu)
{
    struct chunk *best = NULL;
    int64_t most = 0;
    for (uint32_t i = 0; i < own->n; i++) {
        if (is_ready(own, i, npu)) {
            bool outliers = !npu && is_for_npu(&own->chunks[i]);
            int64_t c = outliers ? INT64_MAX : contribution(own, i);
            best = best == NULL || c > most ? &own->chunks[i] : best;
            most = best == &own->chunks[i] ? c : most;
        }
    }
    return best;
}

/* Launches a subgraph on a processor. False: no prompt has one. */
static bool feed(struct sched *s, struct llm_npu *n, bool npu)
{
    struct chunk *k = NULL;
    for (const struct request *r = n->running.head; r != NULL && k == NULL; r = reqq_next(r)) {
        k = choose(own_of(r), npu);
    }
    return k != NULL && launch(s, n, k, npu);
}

/* ---- decoding ---- */

/* Frees KV for a batch: evicts the request that began last. */
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

/* One token of each request in decode, on the CPU. */
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
        for (uint32_t i = 0; i < own_of(r)->n; i++) {
            plan(s, n, &own_of(r)->chunks[i]);
        }
    }
    if (sched_device_free_slots(s, (uint8_t)n->npu) > 0) {
        (void)feed(s, n, true);
    }
    if (sched_device_free_slots(s, (uint8_t)n->cpu) > 0 && !feed(s, n, false)) {
        decode(s, n);
    }
}

static const char *const ablations[] = {"in_progress=1", "outlier_frac=0", "order=together", NULL};

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
    .pass_done = llm_npu_pass_done,
    .request_cancelled = reqq_leave,
    .schedule = llm_npu_schedule,
};
