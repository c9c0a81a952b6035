/* The decode loop of agent-xpu-v2: batches at iteration boundaries, all on the iGPU (B.3, B.7). */
#include "policies/agent_xpu_v2/agent_xpu_v2.h"
#include "policies/common/cost.h"

/* The batch since which a candidate has stayed. A request that was not in the last batch counts as
 * a new arrival, even if it was evicted before. */
static uint64_t joined(const struct axpu *a, const struct request *r)
{
    const struct axpu_request *x = axpu_request(r);
    return x->batch == a->n_batches ? x->joined : UINT64_MAX;
}

/* Eviction order of B.7: longer bucket first, then the last to join the batch ("newly arrived
 * tasks, to minimise churn": survivors stay), then the newest request, then the larger id. */
static bool evicted_before(const struct axpu *a, const struct request *x, const struct request *y,
                           uint32_t bucket)
{
    uint32_t bx = request_length(x) / bucket;
    uint32_t by = request_length(y) / bucket;
    if (bx != by) {
        return (bx > by) == (a->piggyback == AXPU_PIGGYBACK_SHORT);
    }
    uint64_t jx = joined(a, x);
    uint64_t jy = joined(a, y);
    return jx != jy ? jx > jy : request_before(y, x);
}

static void remove_at(struct batch *b, uint32_t i)
{
    for (; i + 1 < b->n; i++) {
        b->segments[i] = b->segments[i + 1];
    }
    b->n--;
}

/* Annotated time of an iteration of the batch, or of its reactive members. */
static int64_t iteration_ns(struct sched *s, const struct axpu *a, bool reactive_only)
{
    struct work_shape w = {0};
    for (uint32_t i = 0; i < a->batch.n; i++) {
        const struct request *r = a->batch.segments[i].request;
        if (!reactive_only || r->cls == REQUEST_CLASS_REACTIVE) {
            cost_shape_add(s, &w, r, 1);
        }
    }
    return cost_iteration_ns(s, &w, (uint8_t)a->igpu);
}

/* Longest iteration that a mixed batch may take (cap slo and marginal). */
static double longest_ns(struct sched *s, const struct axpu *a)
{
    if (param_int(s, AXPU_CAP) >= AXPU_CAP_MARGINAL) {
        return (1.0 + param_number(s, AXPU_EPSILON)) * (double)iteration_ns(s, a, true);
    }
    int64_t slo = TIME_NEVER_NS;
    for (uint32_t i = 0; i < a->batch.n; i++) {
        const struct request *r = a->batch.segments[i].request;
        if (r->cls == REQUEST_CLASS_REACTIVE && r->tbt_slo_ns < slo) {
            slo = r->tbt_slo_ns;
        }
    }
    return (double)(slo != TIME_NEVER_NS ? slo
                                         : units_ns_from_ms(param_number(s, AXPU_TBT_SLO_MS)));
}

static bool over_cap(struct sched *s, const struct axpu *a, double longest)
{
    uint32_t b_rf = (uint32_t)param_int(s, AXPU_B_RF);
    if (param_int(s, AXPU_CAP) == AXPU_CAP_FIXED) {
        return b_rf > 0 && a->batch.n > b_rf;
    }
    if (param_int(s, AXPU_CAP) == AXPU_CAP_OPEN && a->batch.n <= b_rf) {
        return false;
    }
    return (double)iteration_ns(s, a, false) > longest;
}

/* Whether a request may not be evicted: reactive, or aged (B.8, second privilege). */
static bool is_exempt(const struct request *r)
{
    return r->cls != REQUEST_CLASS_PROACTIVE || axpu_is_aged(r);
}

/* Evicts proactive sequences until the batch fits, or only exempt ones are left. */
static void evict_proactive(struct sched *s, struct axpu *a)
{
    struct batch *b = &a->batch;
    uint32_t bucket = (uint32_t)param_int(s, AXPU_LENGTH_BUCKET);
    double longest = param_int(s, AXPU_CAP) == AXPU_CAP_FIXED ? 0.0 : longest_ns(s, a);
    while (over_cap(s, a, longest)) {
        uint32_t worst = b->n;
        for (uint32_t i = 0; i < b->n; i++) {
            const struct request *r = b->segments[i].request;
            if (is_exempt(r)) {
                continue;
            }
            if (worst == b->n || evicted_before(a, r, b->segments[worst].request, bucket)) {
                worst = i;
            }
        }
        if (worst == b->n) {
            return;
        }
        /* It stays in its queue with its KV, and is a candidate at the next boundary. */
        remove_at(b, worst);
    }
}

/* Adds requests of a queue, until the batch has `most`. */
static void collect(struct batch *b, const struct reqq *q, uint32_t most)
{
    for (const struct request *r = q->head; r != NULL && b->n < most; r = reqq_next(r)) {
        batch_add(b, r, SEGMENT_DECODE, 1);
    }
}

static int by_turn(const void *x, const void *y)
{
    uint64_t tx = axpu_request(((const struct segment *)x)->request)->ready;
    uint64_t ty = axpu_request(((const struct segment *)y)->request)->ready;
    return (tx > ty) - (tx < ty);
}

/* Adds proactive candidates after the first n: all aged ones, all of the last batch, and the first
 * `most` of the others. */
static void add_candidates(struct axpu *a, uint32_t n, uint32_t most)
{
    struct batch *b = &a->batch;
    const struct order *const from[] = {&a->aged_be, &a->stayed_be, &a->other_be};
    b->n = n;
    for (int i = 0; i < 3; i++) {
        uint32_t left = i < 2 ? UINT32_MAX : most;
        for (const struct request *r = order_first(from[i]); r != NULL && left > 0;
             r = order_next(from[i], r)) {
            if (batch_takes(b, r)) { /* others wait for their model */
                batch_put(b, r, SEGMENT_DECODE, 1);
                left--;
            }
        }
    }
}

/* Mixes both classes, and evicts proactive sequences to the limit. Sequences that are certain to be
 * evicted are not added. With a limit in time this is certain at twice the limit, because
 * annotations are noisy. */
static void mix(struct sched *s, struct axpu *a)
{
    uint32_t reactive = a->batch.n;
    if (param_int(s, AXPU_CAP) == AXPU_CAP_FIXED) {
        add_candidates(a, reactive, (uint32_t)param_int(s, AXPU_B_RF));
    } else {
        double limit_ns = 2.0 * longest_ns(s, a);
        uint32_t most = 32;
        add_candidates(a, reactive, most);
        while (most < a->other_be.n && !over_cap(s, a, limit_ns)) {
            most *= 2;
            add_candidates(a, reactive, most);
        }
    }
    evict_proactive(s, a);
    struct segment *first = a->batch.segments + reactive;
    qsort(first, a->batch.n - reactive, sizeof *first, by_turn);
}

static void choose_batch(struct sched *s, struct axpu *a)
{
    struct batch *b = &a->batch;
    uint32_t most = (uint32_t)param_int(s, AXPU_MAX_BATCH);
    bool capped = param_int(s, AXPU_CAP) != AXPU_CAP_FIXED || param_int(s, AXPU_B_RF) > 0;
    batch_clear(b);
    /* Reactive requests first, so that a limit on the batch cuts proactive ones. */
    collect(b, &a->decode_rt.q, most);
    /* The cap is for mixed batches only (B.7, B.11). */
    if (b->n > 0 && b->n < most && !reqq_empty(&a->decode_be.q) && capped) {
        mix(s, a);
        b->n = b->n < most ? b->n : most; /* each class by readiness */
    } else {
        collect(b, &a->decode_be.q, most);
    }
}

/* The next iteration is equal if all decodes are in the batch, or if its members are all sequences
 * that cannot be evicted (an evictable member could grow into a longer bucket). Neither holds if
 * requests of another model wait. The promise ends when a compiled kernel expires, which every call
 * checks. */
static void declare_steady(struct sched *s, const struct axpu *a)
{
    const struct batch *b = &a->batch;
    uint64_t all = (uint64_t)a->decode_rt.q.n + a->decode_be.q.n;
    bool mixed = !reqq_empty(&a->decode_rt.q) && !reqq_empty(&a->decode_be.q);
    bool kept = mixed && b->n == (uint64_t)a->decode_rt.q.n + a->aged_be.n;
    for (uint32_t i = 0; i < b->n && kept; i++) {
        kept = is_exempt(b->segments[i].request);
    }
    kept = kept || b->n == all;
    bool steady = param_int(s, AXPU_SPECULATE) == AXPU_SPECULATE_NONE && kept &&
                  a->gap.rule == GAP_CACHE && a->flash.rule == FLASH_OFF &&
                  (!mixed || param_int(s, AXPU_CAP) == AXPU_CAP_FIXED);
    sched_steady(s, steady ? axpu_warmup_until_ns(s, a) : 0, all - b->n);
}

/* Frees KV: evicts the newest proactive sequence that is in no pass. If only reactive ones have KV,
 * evicts the newest of these, or none could ever continue. */
static bool free_kv(struct sched *s, struct axpu *a)
{
    const struct request *victim = order_last(
        reqq_empty(&a->decode_be.q) ? &a->decode_rt.by_arrival : &a->decode_be.by_arrival);
    return victim != NULL && a->decode_be.q.n + a->decode_rt.q.n >= 2 && !flash_writes(&a->flash) &&
           axpu_give_up(s, a, victim);
}

static void form(struct sched *s, struct axpu *a)
{
    while (a->decode == NULL) {
        choose_batch(s, a);
        if (a->batch.n == 0) {
            return;
        }
        struct speculate before = a->estimate;
        bool drafts = axpu_speculate_batch(s, a);
        if (drafts && !axpu_makes_drafts(s, a)) {
            a->estimate = before; /* the length is chosen again when drafts are ready */
            a->verify_on_npu = false;
            return;
        }
        declare_steady(s, a);
        int rc = batch_form(s, &a->batch, &a->decode);
        if (rc == -ENOMEM && drafts) { /* there may be KV for one token each */
            a->verify_on_npu = false;
            choose_batch(s, a);
            rc = batch_form(s, &a->batch, &a->decode);
        }
        if (rc != 0) {
            a->decode = NULL;
            if (rc != -ENOMEM || !free_kv(s, a)) {
                a->decode_short = rc == -ENOMEM && !param_bool(s, AXPU_PREFILL_FIRST);
                return;
            }
        }
    }
    /* A drafting pass belongs to the next batch, so sequences that have their drafts stay in that
     * batch. */
    bool begins = a->batch.segments[0].role != SEGMENT_DRAFT;
    for (uint32_t i = 0; i < a->batch.n; i++) {
        const struct request *r = a->batch.segments[i].request;
        struct axpu_request *x = axpu_request(r);
        if (begins) {
            x->joined = x->batch == a->n_batches ? x->joined : a->n_batches + 1;
            /* A sequence of the last batch keeps `joined`, because evictions spare the sequences
             * that have stayed longest. */
            x->batch = a->n_batches + 1;
        }
        axpu_decode_leave(a, r);
    }
    a->has_drafts = false;
    if (begins) {
        axpu_decode_begun(s, a);
    }
}

/* The batch is formed when it can start, so that it has every sequence that is ready by then. */
void axpu_decode_schedule(struct sched *s, struct axpu *a)
{
    bool first = param_bool(s, AXPU_PREFILL_FIRST);
    if (axpu_speculate_launch(s, a)) {
        return;
    }
    if (sched_device_free_slots(s, (uint8_t)a->igpu) == 0 ||
        (first && axpu_prefill_wants_igpu(s, a))) {
        return;
    }
    if (a->decode == NULL && !(a->decode_hold && reqq_empty(&a->decode_rt.q)) &&
        axpu_drafted(s, a)) {
        form(s, a);
        if (axpu_speculate_launch(s, a)) {
            return;
        }
    }
    if (a->decode == NULL || a->decode->state != PASS_STATE_READY ||
        (a->decode_hold && !a->decode->has_reactive)) {
        return;
    }
    enum yield_point yield = param_int(s, AXPU_YIELD) == 0 && first ? YIELD_KERNEL : YIELD_PASS;
    struct launch_spec spec = sched_launch_rest(s, a->decode, (uint8_t)a->igpu, yield);
    (void)sched_launch(s, &spec, &a->decode_launch);
}
