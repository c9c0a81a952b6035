#include "policies/common/disagg.h"

#include "policies/common/place.h"
#include "policies/common/room.h"

const char *const disagg_margin_choices[] = {"npu", "igpu", NULL};
const char *const disagg_yield_choices[] = {"kernel", "iteration", NULL};

int disagg_init(struct sched *s, uint64_t limit_tokens, uint32_t mixed_tokens)
{
    struct disagg *d = s->state;
    *d = (struct disagg){.limit_tokens = limit_tokens,
                         .mixed_tokens = mixed_tokens,
                         .max_batch = (uint32_t)param_int(s, DISAGG_MAX_BATCH),
                         .margin_on_npu = param_int(s, DISAGG_MARGIN) == 0,
                         .yield_iteration = param_int(s, DISAGG_YIELD) == 1,
                         .iteration_ready_ns = TIME_NEVER_NS,
                         .npu = machine_find(s->machine, DEVICE_KIND_NPU),
                         .igpu = machine_find(s->machine, DEVICE_KIND_IGPU)};
    d->chunk = s->machine->devices[d->npu].chunk_rows;
    SIM_ASSERT(d->max_batch > 0 && (limit_tokens == UINT64_MAX || mixed_tokens > 0));
    return place_needs_chunks(s, d->npu);
}

void disagg_exit(struct sched *s)
{
    struct disagg *d = s->state;
    batch_fini(&d->batch);
}

/* Prompt tokens that the NPU must still process. */
static uint64_t npu_pending_tokens(const struct disagg *d)
{
    uint64_t n = d->current == NULL ? 0 : request_prefill_left(d->current);
    SIM_ASSERT((n > 0) == (d->current != NULL)); /* current is unfinished */
    for (const struct request *r = d->npu_queue.head; r != NULL; r = reqq_next(r)) {
        n += request_prefill_left(r);
    }
    return n;
}

void disagg_request_arrived(struct sched *s, const struct request *r)
{
    struct disagg *d = s->state;
    /* As in Splitwise the decision is made at arrival, and not changed later. */
    bool mixed = d->limit_tokens != UINT64_MAX && npu_pending_tokens(d) > d->limit_tokens;
    SIM_ASSERT(!mixed || d->current != NULL || d->npu_queue.n > 0); /* an idle NPU takes it */
    /* Its weights may have been late. */
    reqq_insert_by_arrival(mixed ? &d->igpu_queue : &d->npu_queue, r);
}

void disagg_request_cancelled(struct sched *s, const struct request *r)
{
    const struct disagg *d = s->state;
    SIM_ASSERT(r != d->current && reqq_of(r) != NULL); /* waiting */
    (void)d;
    reqq_remove(r);
}

void disagg_launch_done(struct sched *s, const struct launch *l)
{
    struct disagg *d = s->state;
    if (!hetero_ended(&d->prefill, l)) {
        SIM_ASSERT(d->on_igpu == l && l->pass == d->iteration);
        d->on_igpu = NULL;
        d->iteration_ready_ns = s->now_ns; /* its remaining ops are ready now */
    }
}

void disagg_pass_done(struct sched *s, const struct pass *p)
{
    struct disagg *d = s->state;
    if (p == d->prefill.pass) {
        SIM_ASSERT(p->segments[0].request == d->current && reqq_of(d->current) == NULL);
        hetero_clear(&d->prefill);
        d->current = NULL;
    } else {
        SIM_ASSERT(p == d->iteration && d->on_igpu == NULL);
        d->iteration = NULL;
    }
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        SIM_ASSERT(r->pass == NULL);
        if (r->state == REQUEST_STATE_QUEUED) {
            SIM_ASSERT(reqq_of(r) == &d->igpu_queue);
            continue; /* a chunk on the mixed iGPU: it stays in its queue */
        }
        if (r->state != REQUEST_STATE_DECODE) {
            reqq_remove(r);
        } else if (reqq_of(r) != &d->decoding) {
            reqq_remove(r);
            reqq_push(&d->decoding, r);
        }
    }
}

/* ---- the NPU ---- */

static void start_prefill(struct sched *s, struct disagg *d)
{
    const struct request *r = d->npu_queue.head;
    SIM_ASSERT(r != NULL && d->current == NULL && d->prefill.pass == NULL);
    struct segment seg = {
        .request = r, .role = SEGMENT_PREFILL, .n_tokens = request_prefill_left(r)};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1};
    struct pass *p;
    if (sched_pass_form(s, &spec, &p) == 0) {
        reqq_remove(r);
        d->current = r;
        hetero_begin(&d->prefill, p);
        SIM_ASSERT(p->shape.logit_rows == 1); /* the whole prompt: yields the first token */
    }
}

static void prefill(struct sched *s, struct disagg *d)
{
    if (d->current == NULL && !reqq_empty(&d->npu_queue)) {
        start_prefill(s, d);
    }
    if (hetero_at_boundary(&d->prefill)) {
        hetero_plan(s, &d->prefill, hetero_default_rows(&d->prefill, d->chunk, d->margin_on_npu));
        SIM_ASSERT(hetero_is_token_level(d->prefill.pass) || d->prefill.npu_rows == 0);
    }
    (void)hetero_launch(s, &d->prefill, d->npu, true, UINT32_MAX, YIELD_PASS);
}

/* ---- the iGPU: attention and margins of the NPU's prefill, and iterations, in order of readiness
 * ---- */

static void fill(struct disagg *d)
{
    batch_clear(&d->batch);
    for (const struct request *r = d->decoding.head; r != NULL && d->batch.n < d->max_batch;
         r = reqq_next(r)) {
        batch_add(&d->batch, r, SEGMENT_DECODE, 1);
    }
    /* Decodes first, so that a prompt costs them at most the time of its chunk. */
    uint32_t left = d->mixed_tokens;
    for (const struct request *r = d->igpu_queue.head; r != NULL && left > 0; r = reqq_next(r)) {
        uint32_t before = d->batch.tokens;
        batch_add_next(&d->batch, r, left);
        SIM_ASSERT(d->batch.tokens - before <= left); /* prompts are cut */
        left -= d->batch.tokens - before;
    }
    SIM_ASSERT(d->batch.n <= d->decoding.n + d->igpu_queue.n);
}

/* Frees KV: the youngest decoding request goes back to the NPU's queue; if there is none, a partly
 * done prompt on the iGPU is evicted. The oldest decoding request is never evicted, so it finishes.
 */
static bool give_way(struct sched *s, struct disagg *d)
{
    const struct request *r = room_evict_last(s, &d->decoding, d->decoding.head);
    SIM_ASSERT(r == NULL || (r != d->decoding.head && r->pass == NULL));
    if (r != NULL) {
        reqq_remove(r);
        reqq_insert_by_arrival(&d->npu_queue, r);
        return true;
    }
    return room_evict_last(s, &d->igpu_queue, NULL) != NULL;
}

static void form(struct sched *s, struct disagg *d)
{
    SIM_ASSERT(d->iteration == NULL && d->on_igpu == NULL);
    fill(d);
    while (d->batch.n > 0) {
        int rc = batch_form(s, &d->batch, &d->iteration);
        if (rc == 0) {
            SIM_ASSERT(d->iteration != d->prefill.pass && d->iteration->n_segments == d->batch.n);
            return;
        }
        d->iteration = NULL;
        uint32_t n = d->batch.n;
        /* Requests that can finish have priority, so prompts leave the batch before decodes. They
         * are its last segments. */
        if (d->batch.segments[n - 1].role == SEGMENT_PREFILL && n > 1) {
            d->batch.n--; /* this prompt waits */
            continue;
        }
        if (rc != -ENOMEM || !give_way(s, d)) {
            return;
        }
        fill(d);
    }
}

static bool prefill_waits(const struct disagg *d)
{
    SIM_ASSERT(hetero_ok(&d->prefill));
    return d->prefill.igpu_rows > 0 && d->prefill.on_igpu == NULL;
}

static void iterate(struct sched *s, struct disagg *d)
{
    if (d->on_igpu != NULL || sched_device_free_slots(s, (uint8_t)d->igpu) == 0) {
        return;
    }
    if (d->iteration == NULL) {
        form(s, d);
    }
    if (d->iteration == NULL || d->iteration->state != PASS_STATE_READY) {
        return;
    }
    SIM_ASSERT(d->iteration->n_launches == 0 && d->iteration->op < d->iteration->n_ops);
    bool one_op = !d->yield_iteration && prefill_waits(d); /* then the streams alternate */
    struct launch_spec spec = sched_launch_rest(s, d->iteration, (uint8_t)d->igpu,
                                                d->yield_iteration ? YIELD_PASS : YIELD_KERNEL);
    spec.n_ops = one_op ? 1 : spec.n_ops;
    (void)sched_launch(s, &spec, &d->on_igpu);
}

/* Stops the iteration for a share of the prefill that became ready after it. */
static void let_through(struct sched *s, struct disagg *d)
{
    const struct launch *l = d->on_igpu;
    bool whole = l != NULL && l->op_end - l->op_begin > 1;
    SIM_ASSERT(l == NULL || l->pass == d->iteration);
    if (prefill_waits(d) && !d->yield_iteration && whole && !l->stop_requested) {
        (void)sched_preempt(s, l, (struct preempt_spec){0});
    }
}

void disagg_schedule(struct sched *s)
{
    struct disagg *d = s->state;
    SIM_ASSERT(disagg_is_consistent(d));
    prefill(s, d);
    bool has_work =
        d->iteration != NULL || !reqq_empty(&d->decoding) || !reqq_empty(&d->igpu_queue);
    if (!has_work || d->on_igpu != NULL) {
        d->iteration_ready_ns = TIME_NEVER_NS;
    } else if (d->iteration_ready_ns == TIME_NEVER_NS) {
        d->iteration_ready_ns = s->now_ns;
    }
    /* The stream that became ready first gets the iGPU. A tie goes to the prefill, because the NPU
     * idles until its attention is done. */
    if (d->iteration_ready_ns < d->prefill.ready_ns) {
        iterate(s, d);
    }
    (void)hetero_launch(s, &d->prefill, d->igpu, false, UINT32_MAX, YIELD_PASS);
    iterate(s, d);
    let_through(s, d);
    SIM_ASSERT(disagg_is_consistent(d));
}
