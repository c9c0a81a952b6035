/* sglang-lpm: the cache-aware scheduler of SGLang (clauses.md E.21 [code]: sgl-project/sglang
 * 0.5.9, its scheduler, schedule_policy and schedule_batch). A step has prompts if any can be
 * admitted, else one token for every running request.
 *
 *   sglang-lpm.c        parameters, hooks, order of service, retraction
 *   sglang_lpm_admit.c  order of the queue, admission
 */
#pragma once

#include "policies/common/blocks.h"
#include "policies/common/iteration.h"
#include "policies/common/reqq.h"

enum lpm_param {
    LPM_DEVICE,
    LPM_MAX_SEQS,
    LPM_BUDGET,
    LPM_POLICY,
    LPM_MAX_SORTED,
    LPM_IN_BATCH,
    LPM_THRESHOLD,
    LPM_MIXED,
    LPM_RATIO,
    LPM_MIN_RATIO,
    LPM_DECAY_STEPS,
    LPM_RETRACT_STEPS
};
enum lpm_order { LPM_LONGEST_PREFIX, LPM_FCFS };

#define LPM_MOST 1024 /* most requests that can be sorted */

struct lpm {
    struct iteration it;
    struct reqq waiting;         /* in the order of the last sort */
    struct reqq running;         /* in decode, in order of admission */
    struct reqq begun;           /* live members of the last step with prompts */
    const struct request *cut;   /* its prompt continues in the next step; it is in no queue */
    uint32_t begun_n;            /* members of that step; 0: they are in `running` now */
    uint32_t ended;              /* requests that left in the last step of decodes, */
    uint64_t ended_tokens;       /* and the tokens that they could still have produced */
    const struct request *first; /* first of a step of decodes; its tokens count steps */
    uint32_t first_tokens;
    double ratio;
    bool full;
    bool retracted; /* a request was retracted in this step */
    bool decodes;   /* compose decodes now, because prompts found no KV */
};

struct lpm_request {
    struct reqq_node node;
    uint64_t begins; /* hash of its first tokens; 0: unknown */
    bool behind;
};

/* Members of a step with prompts are in `begun` until its end, and `cut` is in no queue. */
static inline bool lpm_ok(const struct lpm *v)
{
    return reqq_ok(&v->waiting) && reqq_ok(&v->running) && reqq_ok(&v->begun) &&
           v->begun.n <= v->begun_n && (v->cut == NULL || reqq_of(v->cut) == NULL) &&
           (v->ended > 0 || v->ended_tokens == 0) && v->ratio >= 0 && v->ratio <= 1;
}

/* Output limit of a request: the user's, or what memory allows next to the prompt. */
uint32_t lpm_limit(struct sched *s, const struct request *r);
/* Further tokens after so_far that are reserved for. */
uint32_t lpm_may_produce(struct sched *s, const struct request *r, uint32_t so_far);
/* Fills the batch with prompts, possibly none, and in mixed steps with decodes. */
void lpm_add_prompts(struct sched *s, struct lpm *v);
