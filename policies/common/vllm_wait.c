/* Queues, KV of an iteration under construction, and victims. */
#include "policies/common/blocks.h"
#include "policies/common/vllm.h"

/* ---- queues ---- */

/* Class (RT 0, BE 1; E.3), priority, arrival, id. */
bool vllm_before(const struct request *a, const struct request *b)
{
    if (a->cls != b->cls) {
        return a->cls < b->cls;
    }
    return a->priority != b->priority ? a->priority < b->priority : request_before(a, b);
}

/* Class and priority as a number. An order breaks ties by arrival and id. */
static double key_of(const struct request *r)
{
    return 1e10 * (double)r->cls + (double)r->priority; /* a priority has 32 bits */
}

const struct request *vllm_first_waiting(const struct vllm *v)
{
    const struct request *r = v->rules.by_priority ? order_first(&v->by_key) : v->waiting.head;
    SIM_ASSERT(r == NULL || (r->state == REQUEST_STATE_QUEUED && r->pass == NULL));
    return r;
}

void vllm_wait(struct vllm *v, const struct request *r, bool front)
{
    /* It has lost all KV, so it must prefill. */
    SIM_ASSERT(r->state == REQUEST_STATE_QUEUED && r->pass == NULL && reqq_of(r) == NULL);
    if (v->rules.by_priority) {
        order_add(&v->by_key, r, key_of(r));
    } else if (front) {
        reqq_push_front(&v->waiting, r);
    } else {
        reqq_push(&v->waiting, r);
    }
}

void vllm_wait_no_more(struct vllm *v, const struct request *r)
{
    if (v->rules.by_priority) {
        order_remove(&v->by_key, r);
    }
    reqq_remove(r);
    /* Not running. */
    SIM_ASSERT(reqq_of(r) == NULL && (!v->rules.by_priority || order_of(r) == NULL));
}

void vllm_joins(struct sched *s, const struct request *r)
{
    vllm_wait(s->state, r, false);
    SIM_ASSERT(vllm_ok(s->state));
}

void vllm_leaves(struct sched *s, const struct request *r)
{
    struct vllm *v = s->state;
    const struct request *x = v->waiting.head;
    /* If the iteration composed ahead has r, its place stays empty. */
    for (uint32_t i = 0; v->rules.async && x != NULL && i < v->seats; i++) {
        v->seats -= x == r;
        x = reqq_next(x);
    }
    vllm_wait_no_more(v, r);
    SIM_ASSERT(vllm_ok(s->state)); /* never between an admission and its pass */
}

const struct request *vllm_victim(const struct vllm *v)
{
    const struct request *worst = v->running.tail; /* the last admitted */
    for (const struct request *r = v->running.head; v->rules.by_priority && r != NULL;
         r = reqq_next(r)) {
        worst = vllm_before(worst, r) ? r : worst;
        SIM_ASSERT(key_of(r) <= key_of(worst)); /* same order */
    }
    SIM_ASSERT(worst == NULL || reqq_of(worst) == &v->running);
    return worst;
}

/* ---- KV of the iteration under construction ---- */

bool vllm_reserves(const struct vllm *v)
{
    return v->rules.order != VLLM_RUNNING_FIRST;
}

static uint64_t blocks_left(struct sched *s, const struct request *r)
{
    return blocks_needed(s, r, request_prefill_left(r));
}

/* Blocks reserved for the prompts that were admitted and have not run. */
static uint64_t reserved(struct sched *s, const struct vllm *v)
{
    uint64_t blocks = 0;
    for (const struct request *r = v->running.head; vllm_reserves(v) && r != NULL;
         r = reqq_next(r)) {
        blocks += r->state == REQUEST_STATE_QUEUED && r->pass == NULL ? blocks_left(s, r) : 0;
    }
    return blocks;
}

void vllm_begin(struct sched *s, struct vllm *v)
{
    batch_clear(&v->it.batch);
    v->planned_blocks = reserved(s, v);
}

uint64_t vllm_free_left(struct sched *s, const struct vllm *v)
{
    /* Planned blocks are free, but other programs may take reserved ones. */
    SIM_ASSERT(vllm_reserves(v) || v->planned_blocks <= blocks_free(s));
    uint64_t free = blocks_free(s);
    return free > v->planned_blocks ? free - v->planned_blocks : 0;
}

void vllm_plan(struct sched *s, struct vllm *v, const struct request *r, uint32_t n)
{
    bool decode = r->state == REQUEST_STATE_DECODE;
    v->planned_blocks += vllm_reserves(v) && !decode ? blocks_left(s, r) : blocks_needed(s, r, n);
    batch_put(&v->it.batch, r, decode ? SEGMENT_DECODE : SEGMENT_PREFILL, n);
    SIM_ASSERT(reqq_of(r) == &v->running && v->it.batch.n <= v->running.n);
}

/* Planned blocks are the sum of those of the batch and the reserved ones. */
static bool plan_adds_up(struct sched *s, const struct vllm *v)
{
    uint64_t blocks = reserved(s, v);
    for (uint32_t i = 0; i < v->it.batch.n; i++) {
        const struct segment *seg = &v->it.batch.segments[i];
        bool counted = vllm_reserves(v) && seg->role == SEGMENT_PREFILL;
        blocks += counted ? 0 : blocks_needed(s, seg->request, seg->n_tokens);
    }
    return blocks == v->planned_blocks;
}

/* Removes a victim from the batch. */
static void unplan(struct sched *s, struct vllm *v, const struct request *r)
{
    SIM_ASSERT(plan_adds_up(s, v));
    const uint32_t rows = batch_leave(&v->it.batch, r);
    bool prompt = vllm_reserves(v) && r->state == REQUEST_STATE_QUEUED;
    v->planned_blocks -= prompt ? blocks_left(s, r) : rows > 0 ? blocks_needed(s, r, rows) : 0;
}

/* ---- preemption ---- */

bool vllm_evict(struct sched *s, struct vllm *v, const struct request *r)
{
    SIM_ASSERT(r == NULL || r->pass == NULL); /* between iterations, when no KV is in use */
    if (r != NULL) {
        unplan(s, v, r);
    }
    if (r == NULL || (r->kv_tokens > 0 && sched_kv_move(s, kv_of(r), KV_NOWHERE) != 0)) {
        return false;
    }
    SIM_ASSERT(r->kv_tokens == 0 && r->state == REQUEST_STATE_QUEUED);
    reqq_remove(r);
    vllm_wait(v, r, !v->requeue_back);
    return true;
}

bool vllm_preempt(struct sched *s, struct vllm *v)
{
    SIM_ASSERT(v->admitted == 0); /* admissions were undone first */
    return vllm_evict(s, v, vllm_victim(v));
}
