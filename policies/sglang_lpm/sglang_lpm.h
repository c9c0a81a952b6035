/* sglang-lpm: the cache-aware scheduler of SGLang (clauses.md E.21 [code]: sgl-project/sglang
 * 0.5.9, its scheduler, schedule_policy and schedule_batch). A step has prompts if any can be
 * admitted, else one token for every running request.
 *
 *   sglang-lpm.c        parameters, hooks, whose turn it is, retraction
 *   sglang_lpm_admit.c  the order of the queue, and who is admitted
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

#define LPM_MOST 1024 /* that can be sorted */

struct lpm {
    struct iteration it;
    struct reqq waiting;         /* as it was last sorted */
    struct reqq running;         /* between prompts and their end, in order of admission */
    struct reqq begun;           /* members of the last step with prompts that have not left */
    const struct request *cut;   /* its prompt continues in the next step; in no queue */
    uint32_t begun_n;            /* members of that step; 0: it is among the running ones now */
    uint32_t ended;              /* requests that left in the last step of decodes ... */
    uint64_t ended_tokens;       /* ... and what they might have produced */
    const struct request *first; /* of a step of decodes, whose tokens count the steps */
    uint32_t first_tokens;
    double ratio;
    bool full;
    bool retracted; /* in this step */
    bool decodes;   /* this time: the prompts found no KV after all */
};

struct lpm_request {
    struct reqq_node node;
    uint64_t begins; /* hash of its first tokens; 0: not known */
    bool behind;
};

/* Members of a step with prompts are aside until it is over, and the one that is cut is in no
 * queue.
 */
static inline bool lpm_ok(const struct lpm *v)
{
    return reqq_ok(&v->waiting) && reqq_ok(&v->running) && reqq_ok(&v->begun) &&
           v->begun.n <= v->begun_n && (v->cut == NULL || reqq_of(v->cut) == NULL) &&
           (v->ended > 0 || v->ended_tokens == 0) && v->ratio >= 0 && v->ratio <= 1;
}

/* Its limit: the user's, or what memory leaves next to the prompt. */
uint32_t lpm_limit(struct sched *s, const struct request *r);
/* Tokens that it may produce after so many, as far as they are reserved for. */
uint32_t lpm_may_produce(struct sched *s, const struct request *r, uint32_t so_far);
/* Fills the batch with prompts, and where steps are mixed with decodes: none may be admitted. */
void lpm_add_prompts(struct sched *s, struct lpm *v);
