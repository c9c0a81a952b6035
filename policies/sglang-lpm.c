/* sglang-lpm: the cache-aware scheduler of SGLang (clauses.md E.21 [code]: sgl-project/sglang,
 * managers/schedule_policy.py). Of the requests that wait, the one with the longest cached prefix
 * is admitted first. A step has prompts if there are any, else one token for every running request.
 *
 *   fallback  with more than max_sorted requests waiting the queue stays as it is
 *   in batch  of requests that share their first 32 tokens and find no more than 32 cached, one
 *             is admitted; the others go behind all until its prefix is cached
 *
 * Deviations: SGLang reserves a part of the output that running requests may still produce
 * (new_token_ratio); here admission needs KV for the whole prompt. Short of KV, the latest
 * admission is recomputed; SGLang retracts who has produced least. Else policies/common/vllm.h. */
#include "policies/common/vllm.h"

enum { LPM_POLICY = VLLM_PARAM_COUNT, LPM_MAX_SORTED, LPM_IN_BATCH, LPM_THRESHOLD, LPM_MIXED };
enum { LPM_LONGEST_PREFIX, LPM_FCFS };

#define LPM_MOST 1024 /* that can be sorted */

static const char *const orders[] = {"lpm", "fcfs", NULL};
static const struct policy_param params[] = {
    VLLM_PARAMS(512),
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
    {.name = NULL},
};

struct lpm_request {
    struct reqq_node node;
    uint64_t begins; /* hash of its first tokens; 0: not known */
    bool behind;
};

static struct lpm_request *own(const struct request *r)
{
    return r->own;
}

/* In the order of the queue, as SGLang fills its second radix tree. */
static void mark_in_batch(struct sched *s, const struct request *const *v, uint32_t n)
{
    uint32_t tokens = (uint32_t)param_int(s, LPM_THRESHOLD);
    for (uint32_t i = 0; i < n; i++) {
        struct lpm_request *x = own(v[i]);
        x->behind = false;
        x->begins = x->begins == 0 ? sched_prompt_hash(s, v[i], tokens) : x->begins;
        for (uint32_t j = 0; j < i && v[i]->kv_tokens <= tokens && x->begins != 0; j++) {
            const struct lpm_request *y = own(v[j]);
            x->behind =
                x->behind || (!y->behind && v[j]->kv_tokens <= tokens && y->begins == x->begins);
        }
    }
}

static bool goes_before(const struct request *x, const struct request *y)
{
    bool equal = own(x)->behind == own(y)->behind;
    return equal ? !own(x)->behind && x->kv_tokens > y->kv_tokens : own(y)->behind;
}

/* The order stays, so the next sort finds it nearly done. */
static void lpm_arrange(struct sched *s, struct reqq *waiting)
{
    const struct request *v[LPM_MOST];
    uint32_t n = 0;
    if (waiting->n < 2 || waiting->n > (uint32_t)param_int(s, LPM_MAX_SORTED)) {
        return;
    }
    for (const struct request *r = waiting->head; r != NULL; r = reqq_next(r)) {
        own(r)->behind = false;
        v[n++] = r;
    }
    if (param_bool(s, LPM_IN_BATCH)) {
        mark_in_batch(s, v, n);
    }
    for (uint32_t i = 1; i < n; i++) {
        const struct request *r = v[i];
        uint32_t to = i;
        for (; to > 0 && goes_before(r, v[to - 1]); to--) {
            v[to] = v[to - 1];
        }
        v[to] = r;
    }
    for (uint32_t i = 0; i < n; i++) {
        reqq_remove(v[i]);
        reqq_push(waiting, v[i]);
    }
}

static int lpm_init(struct sched *s)
{
    bool lpm = param_int(s, LPM_POLICY) == LPM_LONGEST_PREFIX;
    return vllm_init(s,
                     (struct vllm_rules){
                         .order = param_bool(s, LPM_MIXED) ? VLLM_PROMPTS_FIRST : VLLM_PROMPTS_ONLY,
                         .chunked = true,
                         .whole_kv = true,
                         .arrange = lpm ? lpm_arrange : NULL,
                     });
}

static const char *const ablations[] = {"schedule_policy=fcfs", "in_batch=false", NULL};

const struct policy_ops policy_sglang_lpm_ops = {
    .name = "sglang-lpm",
    .summary = "longest cached prefix first, prompts before decodes (SGLang)",
    .contract = POLICY_CONTRACT,
    .request_state_size_bytes = sizeof(struct lpm_request),
    .params = params,
    .ablations = ablations,
    .init = lpm_init,
    VLLM_HOOKS,
};
