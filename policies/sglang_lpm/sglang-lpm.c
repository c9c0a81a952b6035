/* The rules of SGLang:
 *
 *   order     the longest cached prefix first; with more than max_sorted waiting the queue stays as
 *             it is. Of requests that share their first 32 tokens and find no more than 32 cached,
 *             one is admitted; the others go behind all until its prefix is cached
 *   admission KV for the prompt and for all that the request may produce, next to a share of what
 *             the others may still produce (new_token_ratio). The share falls with every step of
 *             decodes, and a retraction sets it by what the answers have come to
 *   full      once a request found no place or no KV, nobody is looked at until one has left. One
 *             that leaves in a step of decodes counts until the next such step is composed
 *   retract   short of KV, who has produced least starts over from the end of the queue; of equals,
 *             who has the longest prompt
 *
 * The output limit is cut to what fits into memory. Deviations: policies/README.md. */
#include "policies/sglang_lpm/sglang_lpm.h"

#include <math.h>

static const char *const orders[] = {"lpm", "fcfs", NULL};
static const struct policy_param params[] = {
    [LPM_DEVICE] =
        POLICY_CHOICE("device", 0, place_choices, "device that runs everything; auto: the iGPU"),
    [LPM_MAX_SEQS] = POLICY_INT("max_num_seqs", 16, 1, 4096,
                                "requests in progress at once (E.1: 128; 16 on a SoC)"),
    [LPM_BUDGET] = POLICY_INT("max_num_batched_tokens", 512, 1, 1e6,
                              "prompt tokens per step (SGLang: 2048 to 16384 by memory)"),
    [LPM_POLICY] = POLICY_CHOICE("schedule_policy", LPM_LONGEST_PREFIX, orders,
                                 "order of admission: longest cached prefix, or arrival"),
    [LPM_MAX_SORTED] = POLICY_INT("max_sorted", 128, 0, LPM_MOST,
                                  "requests that may wait before the order is left as it is"),
    [LPM_IN_BATCH] =
        POLICY_BOOL("in_batch", true, "one of those that share a prefix first, then the others"),
    [LPM_THRESHOLD] =
        POLICY_INT("in_batch_tokens", 32, 1, 1e6,
                   "tokens cached at most, and shared at least, for in_batch (SGLang: 32)"),
    [LPM_MIXED] =
        POLICY_BOOL("mixed_chunk", false, "decodes join the step of prompts (SGLang: off)"),
    [LPM_RATIO] = POLICY_NUMBER("new_token_ratio", 0.7, 0, 1,
                                "share of what running requests may still produce that an "
                                "admission leaves free, at first (SGLang: 0.7)"),
    [LPM_MIN_RATIO] = POLICY_NUMBER("min_new_token_ratio", 0.098, 0, 1,
                                    "the least that it falls to (SGLang: 0.14 * 0.7)"),
    [LPM_DECAY_STEPS] = POLICY_INT("ratio_decay_steps", 600, 1, 1e9,
                                   "steps of decodes in which it falls so far (SGLang: 600)"),
    [LPM_RETRACT_STEPS] =
        POLICY_INT("retract_steps", 20, 0, 1e6,
                   "tokens that each is expected to produce after a retraction (SGLang: 20)"),
    {.name = NULL},
};

static void lpm_joins(struct sched *s, const struct request *r)
{
    struct lpm *v = s->state;
    reqq_push(&v->waiting, r);
}

/* Cancelled requests are treated like finished ones: SGLang lets them run to the end of a step of
 * decodes. */
static void lpm_leaves(struct sched *s, const struct request *r)
{
    struct lpm *v = s->state;
    const struct reqq *from = reqq_of(r);
    if (from == &v->running) {
        v->ended++;
        v->ended_tokens += lpm_may_produce(s, r, r->generated_tokens);
    }
    v->full = v->full &&
              (r->state == REQUEST_STATE_FINISHED || from == &v->running || from == &v->waiting);
    v->cut = v->cut == r ? NULL : v->cut;
    reqq_remove(r);
}

/* Counts the steps of decodes since the last call, which may be several (sched_steady). */
static void lpm_ran(struct sched *s, const struct segment *seg, int64_t elapsed_ns UNUSED)
{
    struct lpm *v = s->state;
    if (seg->request == v->first) {
        double least = param_number(s, LPM_MIN_RATIO);
        double fall =
            fmax(0, param_number(s, LPM_RATIO) - least) / (double)param_int(s, LPM_DECAY_STEPS);
        uint32_t steps = seg->request->generated_tokens - v->first_tokens - v->retracted;
        if (steps > 0) {
            v->ratio = fmax(v->ratio - steps * fall, least);
        }
    }
}

/* ---- order of service ---- */

/* Moves members of the last step with prompts to `running`, except the cut one. */
static void merge(struct lpm *v)
{
    const uint32_t n = v->begun_n;
    const bool first = v->running.n + v->ended == 0;
    uint32_t complete = 0;
    v->begun_n = 0;
    for (const struct request *r; (r = reqq_pop(&v->begun)) != NULL;) {
        if (r->state == REQUEST_STATE_QUEUED) {
            SIM_ASSERT(v->cut == NULL); /* only the last member is cut */
            v->cut = r;
        } else {
            reqq_push(&v->running, r);
            complete++;
        }
    }
    /* In the source this flag belongs to the batch, and an empty batch takes that of the new one.
     */
    v->full = v->full && complete == n && !(first && complete > 0);
}

/* The request with the fewest output tokens; among equals the longest prompt, then the last. */
static const struct request *victim(const struct lpm *v)
{
    const struct request *worst = v->running.head;
    for (const struct request *r = worst; r != NULL; r = reqq_next(r)) {
        bool equal = r->generated_tokens == worst->generated_tokens;
        bool worse = equal ? r->input_tokens >= worst->input_tokens
                           : r->generated_tokens < worst->generated_tokens;
        worst = worse ? r : worst;
    }
    return worst;
}

static bool retract(struct sched *s, struct lpm *v, const struct request *r)
{
    if (r == NULL || sched_kv_move(s, kv_of(r), KV_NOWHERE) != 0) {
        return false;
    }
    v->cut = v->cut == r ? NULL : v->cut;
    reqq_remove(r);
    reqq_push(&v->waiting, r);
    return true;
}

static bool decodes_fit(struct sched *s, const struct lpm *v)
{
    uint64_t blocks = 0;
    for (const struct request *r = v->running.head; r != NULL; r = reqq_next(r)) {
        blocks += blocks_needed(s, r, 1);
    }
    return blocks <= blocks_free(s);
}

static void add_decodes(struct sched *s, struct lpm *v)
{
    const uint32_t n = v->running.n + v->ended;
    v->ended = 0;
    v->ended_tokens = 0;
    v->retracted = false;
    while (v->running.n > 1 && !decodes_fit(s, v) && retract(s, v, victim(v))) {
        v->retracted = true;
    }
    uint64_t produced = 0, limits = 1;
    for (const struct request *r = v->running.head; r != NULL; r = reqq_next(r)) {
        batch_add(&v->it.batch, r, SEGMENT_DECODE, 1);
        produced += r->generated_tokens + (uint64_t)param_int(s, LPM_RETRACT_STEPS);
        limits += lpm_limit(s, r);
    }
    if (v->retracted) {
        v->ratio = fmin(1, (double)produced / (double)limits);
    }
    if (v->running.n == 0) { /* idle */
        v->ratio = param_number(s, LPM_RATIO);
    }
    v->full = v->full && v->running.n == n && n > 0;
}

static void lpm_compose(struct sched *s)
{
    struct lpm *v = s->state;
    bool once_more;
    batch_clear(&v->it.batch);
    if (v->begun_n > 0) {
        merge(v);
    }
    do {
        if (!v->decodes && (v->cut != NULL || (!v->full && v->waiting.n > 0))) {
            lpm_add_prompts(s, v);
        }
        /* No request was left to run: an empty step takes no time, and frees places. */
        once_more = v->it.batch.n == 0 && !v->decodes && v->full + v->ended > 0;
        if (v->it.batch.n == 0) {
            add_decodes(s, v);
        }
        once_more = once_more && v->it.batch.n == 0;
    } while (once_more);
    v->decodes = false;
    SIM_ASSERT(lpm_ok(v) && (v->begun_n == 0 || v->begun_n == v->it.batch.n));
}

static void lpm_formed(struct sched *s)
{
    struct lpm *v = s->state;
    v->first = v->begun_n > 0 ? NULL : v->it.batch.segments[0].request;
    v->first_tokens = v->it.batch.segments[0].request->generated_tokens;
    SIM_ASSERT(v->begun_n == v->begun.n && v->begun_n + v->running.n >= v->it.batch.n);
}

/* ---- make room ---- */

static bool is_admission(const struct request *r)
{
    return r->state == REQUEST_STATE_QUEUED && (r->kv_tokens == 0 || blocks_only_cached(r));
}

/* Memory is short in a way that the source does not count (pages of several requests, other models'
 * KV): undoes the last admission, else evicts a victim. */
static bool lpm_make_room(struct sched *s)
{
    struct lpm *v = s->state;
    const struct request *r = v->begun.tail;
    while (r != NULL && !is_admission(r)) {
        r = reqq_prev(r);
    }
    const bool admission = r != NULL;
    if (!admission) {
        bool several = v->running.n + v->begun.n > 1;
        r = v->running.n > 0 && several ? victim(v) : several ? v->begun.tail : v->cut;
    }
    if (r == NULL) {
        return false;
    }
    v->begun_n -= reqq_of(r) == &v->begun;
    batch_leave(&v->it.batch, r);
    v->full = true;
    v->decodes = v->it.batch.n == 0;
    if (!admission) {
        return retract(s, v, r);
    }
    reqq_remove(r);
    reqq_push_front(&v->waiting, r);
    return true;
}

static bool lpm_again(struct sched *s)
{
    const struct lpm *v = s->state;
    return v->decodes;
}

static const struct iteration_rules rules = {.joins = lpm_joins,
                                             .leaves = lpm_leaves,
                                             .ran = lpm_ran,
                                             .compose = lpm_compose,
                                             .formed = lpm_formed,
                                             .make_room = lpm_make_room,
                                             .again = lpm_again};

static int lpm_init(struct sched *s)
{
    struct lpm *v = s->state;
    v->ratio = param_number(s, LPM_RATIO);
    sched_steady(s, TIME_NEVER_NS, 0);
    return iteration_init(s, &rules, param_int(s, LPM_DEVICE));
}

static const char *const ablations[] = {"schedule_policy=fcfs", "in_batch=false",
                                        "new_token_ratio=0", NULL};

const struct policy_ops policy_sglang_lpm_ops = {
    .name = "sglang-lpm",
    .summary = "longest cached prefix first, prompts before decodes (SGLang)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct lpm),
    .request_state_size_bytes = sizeof(struct lpm_request),
    .params = params,
    .ablations = ablations,
    .init = lpm_init,
    .exit = iteration_exit,
    ITERATION_HOOKS,
};
