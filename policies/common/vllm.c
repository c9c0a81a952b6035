#include "policies/common/vllm.h"

#include "policies/common/blocks.h"

const char *const vllm_requeue_choices[] = {"front", "back", NULL};

/* ---- one iteration ---- */

/* The nearest multiple; ties go to the even one, as in numpy, so that chunks equal the source's. */
static uint32_t nearest_multiple(uint32_t n, uint32_t of)
{
    uint32_t k = n / of;
    uint32_t twice = 2 * (n % of);
    return (k + (twice > of || (twice == of && k % 2 == 1))) * of;
}

/* Tokens that the budget leaves for the prompt's next chunk. With stages the budget falls from
 * chunk_high to chunk_low as the prompt progresses. It is rounded to multiples of 32, or of
 * chunk_low if that is less (Sarathi's dynamic chunk). */
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
    SIM_ASSERT(left > 0); /* prompts only: 0 means no budget */
    /* vLLM 0.11 limited a single request, too; 0.32, which this follows, does not. */
    if (v->rules.threshold > 0 && left > v->rules.threshold && v->company) {
        left = v->rules.threshold;
    }
    if (!v->rules.chunked) { /* only the threshold may cut it */
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
    SIM_ASSERT(v->it.batch.n <= v->running.n); /* each request once */
}

/* Whether r must wait, because this iteration is for the class that the last one was stopped for.
 */
static bool stands_back(const struct vllm *v, const struct request *r)
{
    SIM_ASSERT(v->rules.interrupt || !v->urgent);
    return v->urgent && r->cls != REQUEST_CLASS_REACTIVE;
}

/* Adds running requests in list order. A request without KV evicts the victim; if it is the victim
 * itself, no further running requests are added. */
static void add_in_order(struct sched *s, struct vllm *v)
{
    const bool several = s->n_models > 1;
    SIM_ASSERT(v->it.batch.n == 0 && v->planned_blocks == 0 && v->admitted == 0);
    v->preempted = false;
    for (const struct request *r = v->running.head; r != NULL && v->it.batch.tokens < v->budget;
         r = reqq_next(r)) {
        bool waits = stands_back(v, r) || (several && !batch_takes(&v->it.batch, r));
        uint32_t n = waits ? 0 : r->state == REQUEST_STATE_DECODE ? 1 : chunk_of(v, r);
        /* In blocks, as in vLLM: a token that fits an allocated block needs nothing. */
        while (n > 0 && blocks_needed(s, r, n) > vllm_free_left(s, v)) {
            const struct request *out = vllm_victim(v);
            v->preempted = true;
            SIM_ASSERT(out != NULL && out->pass == NULL); /* at least r */
            if (!vllm_evict(s, v, out) || out == r) {
                return;
            }
        }
        if (n > 0) {
            vllm_plan(s, v, r, n);
        }
    }
}

/* Adds one token of each, in list order. Sources that reserve require a free block for each, needed
 * or not. If there is none they evict the victim; if that is the request itself, they go to the
 * next one. */
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
    SIM_ASSERT(v->it.batch.n <= v->running.n); /* each request once */
}

/* Whether there is KV for a waiting request of which `chunk` rows would run now. */
static bool kv_fits(struct sched *s, const struct vllm *v, const struct request *r, uint32_t chunk)
{
    if (reqq_empty(&v->running)) {
        return true; /* a single request fits */
    }
    SIM_ASSERT(chunk <= request_prefill_left(r) && reqq_of(r) != &v->running);
    /* In whole blocks, as in the sources. The watermark prevents that the next decodes evict the
     * admitted request at once (vLLM V0). */
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

/* Moves admitted requests back to where they waited. */
void vllm_unadmit(struct vllm *v)
{
    SIM_ASSERT(vllm_ok(v));
    for (; v->admitted > 0; v->admitted--) {
        const struct request *r = v->running.tail;
        SIM_ASSERT(r->pass == NULL); /* it has not begun */
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
        /* vLLM V1 admits no request in a step with a preemption: the free KV is the victim's, which
         * would return at once. */
        if (!v->preempted || v->rules.admit_after_preempt) {
            vllm_admit(s, v, v->most);
        }
        break;
    /* The budget never limits decodes, which makes the batching stall-free (Sarathi). At most
     * max_num_seqs requests run. */
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

/* V0: evicts the worst running request for a better waiting one that cannot be admitted. */
static void force_preempt(struct sched *s, struct vllm *v)
{
    const struct request *head;
    SIM_ASSERT(v->rules.by_priority && v->it.batch.n == 0); /* else none is worse */
    while ((head = vllm_first_waiting(v)) != NULL && !reqq_empty(&v->running)) {
        bool admissible =
            v->running.n < v->max_seqs && kv_fits(s, v, head, request_prefill_left(head));
        if (admissible || !vllm_before(head, vllm_victim(v)) || !vllm_preempt(s, v)) {
            return;
        }
    }
}

/* Asynchronous scheduling: the next iteration admits at most the requests that wait now, into
 * places that are free now. Whether a request is the only one is decided now, too. */
static void decide_ahead(struct vllm *v)
{
    if (v->rules.async) {
        SIM_ASSERT(v->running.n <= v->max_seqs);
        uint32_t room = v->max_seqs - v->running.n;
        v->seats = v->waiting.n < room ? v->waiting.n : room;
        v->company_ahead = present(v) > 1;
    }
}

/* Returns the limit of admissions. If nothing runs and none was decided, this iteration was not
 * composed ahead, so there is no limit.
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
    SIM_ASSERT(v->admitted == 0 && v->it.running.pass == NULL); /* all have run or were undone */
    vllm_begin(s, v);
    if (v->rules.force_preempt) {
        force_preempt(s, v);
    }
    const struct request *head = vllm_first_waiting(v);
    /* The urgent request may have left. */
    v->urgent = v->urgent && head != NULL && head->cls == REQUEST_CLASS_REACTIVE;
    /* With other orders admissions come first. */
    if (v->urgent && v->rules.order == VLLM_RUNNING_FIRST) {
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

/* Whether all members of the running pass are of a worse class than the first waiting request,
 * which has a place and KV. Each stop admits a request, so there are at most as many stops as
 * arrivals. */
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
    vllm_begin(s, v); /* nothing is planned beyond the running pass */
    v->urgent = kv_fits(s, v, head, chunk_of(v, head));
    return v->urgent;
}

/* If only whole prompts are admitted, a stopped one must be admitted again. */
static void vllm_lost(struct sched *s, const struct request *r)
{
    struct vllm *v = s->state;
    SIM_ASSERT(r->pass == NULL && (reqq_of(r) == &v->running || r->state == REQUEST_STATE_SHED));
    if (v->rules.order == VLLM_PROMPTS_ONLY && r->state == REQUEST_STATE_QUEUED) {
        reqq_remove(r);
        vllm_wait(v, r, true);
    }
}

/* Whether there is a free block for every decode until all have ended. */
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
    /* Policies that reserve may evict for a block that is not needed yet, which the core would not
     * notice. */
    sched_steady(s, !vllm_reserves(v) || never_short(s, v) ? TIME_NEVER_NS : 0, 0);
    SIM_ASSERT(vllm_ok(v) && v->it.running.pass->n_segments <= v->running.n);
    v->admitted = 0;
    v->urgent = false;
    decide_ahead(v);
}

/* Undoes admissions, with one less to come; if there are none, evicts the victim. */
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
    SIM_ASSERT(n == 0 || v->admitted < n); /* one less each time: terminates */
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
    SIM_ASSERT(max_seqs > 0 && budget > 0); /* else no request would run */
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
