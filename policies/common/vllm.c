#include "policies/common/vllm.h"

#include "policies/common/blocks.h"

const char *const vllm_requeue_choices[] = {"front", "back", NULL};

/* ---- one iteration ---- */

/* The nearest multiple, of two the even one: as numpy rounds, so that chunks are the source's. */
static uint32_t nearest_multiple(uint32_t n, uint32_t of)
{
    uint32_t k = n / of;
    uint32_t twice = 2 * (n % of);
    return (k + (twice > of || (twice == of && k % 2 == 1))) * of;
}

/* Tokens the budget leaves for this prompt's next chunk. With stages the budget falls from
 * chunk_high to chunk_low as more of the prompt is done, to multiples of 32, or of chunk_low where
 * that is less (Sarathi's dynamic chunk). */
static uint32_t room_for(const struct vllm *v, const struct request *r)
{
    uint32_t budget = v->budget;
    uint32_t stages = v->rules.chunk_stages;
    if (stages > 1) {
        uint32_t per_stage = (v->rules.chunk_span + stages - 1) / stages;
        uint32_t stage = r->kv_tokens / per_stage;
        stage = stage < stages ? stage : stages - 1;
        uint32_t low = v->rules.chunk_low;
        uint64_t drop = v->rules.chunk_high - low;
        SIM_ASSERT(stage < stages && low <= v->rules.chunk_high);
        budget = low + (uint32_t)(drop * (stages - 1 - stage) / (stages - 1));
        SIM_ASSERT(low <= budget && budget <= v->rules.chunk_high);
        budget = nearest_multiple(budget, low < 32 ? low : 32);
    }
    return budget > v->it.batch.tokens ? budget - v->it.batch.tokens : 0;
}

/* Rows of a prompt in this iteration; 0: none. */
static uint32_t chunk_of(const struct vllm *v, const struct request *r)
{
    uint32_t left = request_prefill_left(r);
    uint32_t room = room_for(v, r);
    SIM_ASSERT(left > 0); /* asked of prompts: 0 would say that the budget is gone */
    /* vLLM 0.11 held back a prompt that is alone, too; 0.32, which this follows, does not. */
    if (v->rules.threshold > 0 && left > v->rules.threshold && v->company) {
        left = v->rules.threshold;
    }
    if (!v->rules.chunked) { /* the budget cuts nothing, the threshold does */
        bool alone = v->it.batch.n == 0 && left > v->budget;
        return left <= room || alone ? left : 0;
    }
    return left < room ? left : room;
}

void vllm_add_prompts(struct vllm *v)
{
    for (const struct request *r = v->running.head; r != NULL; r = reqq_next(r)) {
        uint32_t n = r->state == REQUEST_STATE_QUEUED ? chunk_of(v, r) : 0;
        if (n > 0) {
            batch_add(&v->it.batch, r, SEGMENT_PREFILL, n);
        }
    }
    SIM_ASSERT(v->it.batch.n <= v->running.n); /* each at most once */
}

/* Not in this iteration: it is for those whom the last one was stopped for. */
static bool stands_back(const struct vllm *v, const struct request *r)
{
    SIM_ASSERT(v->rules.interrupt || !v->urgent);
    return v->urgent && r->cls != REQUEST_CLASS_REACTIVE;
}

/* Running requests in list order. One that finds no KV takes it from the victim, whoever that is;
 * when it is itself the victim, the iteration takes no more of them. */
static void add_in_order(struct sched *s, struct vllm *v)
{
    const bool several = s->n_models > 1;
    SIM_ASSERT(v->it.batch.n == 0 && v->planned_blocks == 0 && v->admitted == 0);
    v->preempted = false;
    for (const struct request *r = v->running.head; r != NULL && v->it.batch.tokens < v->budget;
         r = reqq_next(r)) {
        bool waits = stands_back(v, r) || (several && !batch_takes(&v->it.batch, r));
        uint32_t n = waits ? 0 : r->state == REQUEST_STATE_DECODE ? 1 : chunk_of(v, r);
        /* In blocks, as vLLM counts: a token that fits into a block already held needs nothing. */
        while (n > 0 && blocks_needed(s, r, n) > vllm_free_left(s, v)) {
            const struct request *out = vllm_victim(v);
            v->preempted = true;
            SIM_ASSERT(out != NULL && out->pass == NULL); /* r runs, so there is one */
            if (!vllm_evict(s, v, out) || out == r) {
                return;
            }
        }
        if (n > 0) {
            vllm_plan(s, v, r, n);
        }
    }
}

/* A token for each, in list order. The sources that reserve want a free block for every one, needed
 * or not; where there is none the victim gives way, and if it is the request itself the next one is
 * asked. */
void vllm_add_decodes(struct sched *s, struct vllm *v, uint32_t budget)
{
    const struct request *next;
    v->preempted = false;
    for (const struct request *r = v->running.head; r != NULL && v->it.batch.tokens < budget;
         r = next) {
        bool waits = r->state != REQUEST_STATE_DECODE || !batch_takes(&v->it.batch, r);
        bool stays = true;
        while (!waits && stays && vllm_free_left(s, v) == 0) {
            const struct request *out = vllm_victim(v);
            next = reqq_next(r);
            v->preempted = true;
            stays = vllm_evict(s, v, out) && out != r;
        }
        next = stays ? reqq_next(r) : next;
        if (!waits && stays) {
            vllm_plan(s, v, r, 1);
        }
    }
    SIM_ASSERT(v->it.batch.n <= v->running.n); /* prompts that are in it already are others */
}

/* Whether KV is there for a waiting request of which `chunk` rows would run now. */
static bool kv_fits(struct sched *s, const struct vllm *v, const struct request *r, uint32_t chunk)
{
    if (reqq_empty(&v->running)) {
        return true; /* every request fits alone */
    }
    SIM_ASSERT(chunk <= request_prefill_left(r) && reqq_of(r) != &v->running);
    /* In whole blocks, as the sources have it. The watermark keeps the next decodes from taking
     * back at once what an admission took (vLLM V0). */
    uint64_t most = sched_kv_capacity_tokens(s) / s->kv_block_tokens;
    uint64_t spare = (uint64_t)(v->rules.watermark_frac * (double)most);
    bool whole = vllm_reserves(v) || v->rules.prompt_fits;
    return blocks_needed(s, r, whole ? request_prefill_left(r) : chunk) + spare <=
           vllm_free_left(s, v);
}

void vllm_admit(struct sched *s, struct vllm *v, uint32_t most)
{
    v->admitted = 0;
    const struct request *r;
    while ((r = vllm_first_waiting(v)) != NULL && v->admitted < most &&
           v->running.n < v->max_seqs) {
        uint32_t n = chunk_of(v, r);
        if (n == 0 || stands_back(v, r) || !batch_takes(&v->it.batch, r) || !kv_fits(s, v, r, n)) {
            return;
        }
        vllm_wait_no_more(v, r);
        reqq_push(&v->running, r);
        vllm_plan(s, v, r, n);
        v->admitted++;
        SIM_ASSERT(vllm_ok(v) && v->admitted <= v->it.batch.n);
        SIM_ASSERT(v->rules.order != VLLM_RUNNING_FIRST || v->running.n == 1 ||
                   v->planned_blocks <= blocks_free(s));
    }
}

/* Admitted requests go back where they were. */
void vllm_unadmit(struct vllm *v)
{
    SIM_ASSERT(vllm_ok(v));
    for (; v->admitted > 0; v->admitted--) {
        const struct request *r = v->running.tail;
        SIM_ASSERT(r->pass == NULL); /* it has not begun, so nothing is lost */
        reqq_remove(r);
        vllm_wait(v, r, true);
    }
}

static uint32_t present(const struct vllm *v)
{
    return v->running.n + v->waiting.n + v->by_key.n;
}

static void fill_once(struct sched *s, struct vllm *v)
{
    vllm_begin(s, v);
    switch (v->rules.order) {
    case VLLM_RUNNING_FIRST:
        add_in_order(s, v);
        /* vLLM V1 admits nobody in a step that preempted: what is free then is the victim's, which
         * would come back at once. */
        if (!v->preempted || v->rules.admit_after_preempt) {
            vllm_admit(s, v, v->most);
        }
        break;
    /* Decodes are never cut by the budget: that is what makes the batching stall-free (Sarathi). At
     * most max_num_seqs of them run. */
    case VLLM_DECODES_FIRST:
        vllm_add_decodes(s, v, UINT32_MAX);
        vllm_add_prompts(v);
        vllm_admit(s, v, v->preempted ? 0 : v->most);
        break;
    case VLLM_PROMPTS_FIRST:
        vllm_add_prompts(v);
        vllm_admit(s, v, v->most);
        vllm_add_decodes(s, v, v->budget);
        break;
    case VLLM_PROMPTS_ONLY:
        vllm_admit(s, v, v->most);
        if (v->it.batch.n == 0) {
            vllm_add_decodes(s, v, UINT32_MAX);
        }
        break;
    }
    SIM_ASSERT(v->it.batch.n <= v->running.n && v->admitted <= v->it.batch.n &&
               v->admitted <= v->most);
}

static void fill(struct sched *s, struct vllm *v)
{
    do { /* an empty iteration takes no time */
        fill_once(s, v);
        v->urgent = v->urgent && v->it.batch.n > 0;
    } while (v->it.batch.n == 0 && v->preempted);
}

/* V0: the worst running request makes place for a better waiting one that cannot be admitted. */
static void force_preempt(struct sched *s, struct vllm *v)
{
    const struct request *head;
    SIM_ASSERT(v->rules.by_priority &&
               v->it.batch.n == 0); /* else nobody is worse than who waits */
    while ((head = vllm_first_waiting(v)) != NULL && !reqq_empty(&v->running)) {
        bool admissible =
            v->running.n < v->max_seqs && kv_fits(s, v, head, request_prefill_left(head));
        if (admissible || !vllm_before(head, vllm_victim(v)) || !vllm_preempt(s, v)) {
            return;
        }
    }
}

/* Asynchronous scheduling: the next iteration takes of the waiting requests those that are there
 * now, into the places that are free now; and it is now that a request is or is not alone. */
static void decide_ahead(struct vllm *v)
{
    if (v->rules.async) {
        SIM_ASSERT(v->running.n <= v->max_seqs);
        uint32_t room = v->max_seqs - v->running.n;
        v->seats = v->waiting.n < room ? v->waiting.n : room;
        v->company_ahead = present(v) > 1;
    }
}

/* Admissions of this iteration. Where nothing runs and none was decided on, none was composed
 * ahead.
 */
static uint32_t take_seats(struct vllm *v)
{
    SIM_ASSERT(vllm_ok(v) && (v->seats == UINT32_MAX || v->seats <= v->max_seqs));
    bool none = v->seats == 0 || v->seats == UINT32_MAX;
    bool idle = reqq_empty(&v->running) && none;
    uint32_t seats = idle ? UINT32_MAX : v->seats;
    v->company = v->rules.async && !idle ? v->company_ahead : present(v) > 1;
    v->seats = v->rules.async ? 0 : UINT32_MAX;
    return seats;
}

static void vllm_compose(struct sched *s)
{
    struct vllm *v = s->state;
    SIM_ASSERT(vllm_is_consistent(v));
    SIM_ASSERT(v->admitted == 0 && v->it.running.pass == NULL); /* every one has run or went back */
    vllm_begin(s, v);
    if (v->rules.force_preempt) {
        force_preempt(s, v);
    }
    const struct request *head = vllm_first_waiting(v);
    v->urgent = v->urgent && head != NULL && head->cls == REQUEST_CLASS_REACTIVE; /* still there */
    if (v->urgent && v->rules.order == VLLM_RUNNING_FIRST) { /* elsewhere admissions come first */
        vllm_wait_no_more(v, head);
        reqq_push_front(&v->running, head);
    }
    v->most = take_seats(v);
    fill(s, v);
    SIM_ASSERT(vllm_ok(v));
}

static void vllm_launch(struct sched *s, struct launch_spec *spec)
{
    const struct vllm *v = s->state;
    spec->yield = v->rules.interrupt ? YIELD_KERNEL : spec->yield;
}

/* Everybody in the running pass is of a worse class than the first waiting, who has a seat and KV:
 * each stop admits somebody, so it happens no more often than requests come. */
static bool vllm_outranked(struct sched *s)
{
    struct vllm *v = s->state;
    const struct request *head = vllm_first_waiting(v);
    if (!v->rules.interrupt || head == NULL || v->running.n >= v->max_seqs) {
        return false;
    }
    const struct pass *p = v->it.running.pass;
    SIM_ASSERT(p->n_launches == 1 && v->admitted == 0 && reqq_of(head) != &v->running);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        if (p->segments[i].request->cls <= head->cls) {
            return false;
        }
    }
    vllm_begin(s, v); /* it is on the device; nothing is planned beyond */
    v->urgent = kv_fits(s, v, head, chunk_of(v, head));
    return v->urgent;
}

/* Where whole prompts are admissions, one that was stopped is none any more. */
static void vllm_lost(struct sched *s, const struct request *r)
{
    struct vllm *v = s->state;
    SIM_ASSERT(r->pass == NULL && (reqq_of(r) == &v->running || r->state == REQUEST_STATE_SHED));
    if (v->rules.order == VLLM_PROMPTS_ONLY && r->state == REQUEST_STATE_QUEUED) {
        reqq_remove(r);
        vllm_wait(v, r, true);
    }
}

/* There is a free block for every decode until all have ended. */
static bool never_short(struct sched *s, const struct vllm *v)
{
    uint64_t blocks = 1;
    for (const struct request *r = v->running.head; r != NULL; r = reqq_next(r)) {
        blocks += blocks_of(s, r->max_output_tokens - r->generated_tokens) + 1;
    }
    return blocks <= blocks_free(s);
}

static void vllm_formed(struct sched *s)
{
    struct vllm *v = s->state;
    /* A sequence may give way for a block that nobody needs yet: the core would not ask. */
    sched_steady(s, !vllm_reserves(v) || never_short(s, v) ? TIME_NEVER_NS : 0, 0);
    SIM_ASSERT(vllm_ok(v) && v->it.running.pass->n_segments <= v->running.n);
    v->admitted = 0;
    v->urgent = false;
    decide_ahead(v);
}

/* First the admissions go back, the last one for good; then the victim loses its KV. */
static bool vllm_make_room(struct sched *s)
{
    struct vllm *v = s->state;
    SIM_ASSERT(v->it.batch.n > 0 && vllm_ok(v));
    const uint32_t n = v->admitted;
    /* A new prompt never takes KV from a running request. */
    if (v->admitted > 0) {
        v->most = v->admitted - 1;
        vllm_unadmit(v);
    } else if (vllm_preempt(s, v)) {
        v->most = v->rules.admit_after_preempt ? UINT32_MAX : 0;
    } else {
        return false;
    }
    fill(s, v);
    SIM_ASSERT(n == 0 || v->admitted < n); /* one fewer each time, so it ends */
    return true;
}

static const struct iteration_rules iteration = {.joins = vllm_joins,
                                                 .leaves = vllm_leaves,
                                                 .compose = vllm_compose,
                                                 .formed = vllm_formed,
                                                 .make_room = vllm_make_room,
                                                 .launch = vllm_launch,
                                                 .outranked = vllm_outranked,
                                                 .lost = vllm_lost};

void vllm_rule(struct sched *s, struct vllm_rules rules, uint32_t max_seqs, uint32_t budget)
{
    struct vllm *v = s->state;
    v->it.rules = &iteration;
    v->it.loses = true;
    v->rules = rules;
    v->max_seqs = max_seqs;
    v->budget = budget;
    v->seats = UINT32_MAX;
    SIM_ASSERT(max_seqs > 0 && budget > 0); /* or nobody would ever run */
    SIM_ASSERT(!rules.force_preempt || rules.by_priority);
    SIM_ASSERT(vllm_ok(v));
}

int vllm_init(struct sched *s, struct vllm_rules rules)
{
    struct vllm *v = s->state;
    vllm_rule(s, rules, (uint32_t)param_int(s, VLLM_MAX_SEQS), (uint32_t)param_int(s, VLLM_BUDGET));
    v->requeue_back = param_int(s, VLLM_REQUEUE) == 1;
    return iteration_init(s, &iteration, param_int(s, VLLM_DEVICE));
}
