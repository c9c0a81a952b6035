/* Iteration-level continuous batching with paged KV and recompute preemption on one device, shared
 * by vLLM V0, vLLM V1, their priority variants and Sarathi-Serve (clauses.md E.1 to E.3). A policy
 * fills in the rules; the queues and the order of decisions are here.
 *
 *   waiting  no KV of their own; arrival order (or key order), preempted requests at the front
 *   running  in progress, in order of admission
 *
 * KV, in blocks: V1 counts request by request, as its source does; a running request that finds no
 * block evicts the victim. The other versions reserve KV for a whole prompt at its admission, and
 * require a free block for each decode, needed or not; if there is none, the victim is evicted and
 * waits again. An iteration may still not fit, because of other programs or models. Then its
 * admissions are undone, last one first: a new prompt never takes KV from a running request.
 *
 * async: the next iteration is composed while one runs, as newer vLLM does by default to hide the
 * scheduler's time (vllm-project/vllm pull request 19970). That does not change work known ahead
 * (decodes, chunks of running prompts), so its only effect here is later admission. A request joins
 * the second iteration that starts after its arrival, in places that were free at its arrival.
 *
 * Deviations from the sources: a prompt that is longer than the token budget and may not be chunked
 * runs by itself (vLLM refuses it). The watermark is waived if nothing runs. Cost of a decision:
 * O(running * (preemptions + undone admissions)), plus log waiting for each admission by priority.
 */
#pragma once

#include "policies/common/iteration.h"
#include "policies/common/order.h"
#include "policies/common/reqq.h"
#include "sim/api/policy.h"

enum vllm_order {
    VLLM_RUNNING_FIRST, /* running in list order, then waiting (V1). The other orders reserve KV for
                           a whole prompt at its admission */
    VLLM_DECODES_FIRST, /* decodes, running prompts, waiting (Sarathi: stall-free) */
    VLLM_PROMPTS_FIRST, /* prompts and admissions, then decodes in what is left of the budget */
    VLLM_PROMPTS_ONLY   /* admissions of whole prompts if there are any, else decodes (V0) */
};

struct vllm_rules {
    enum vllm_order order;
    uint32_t threshold; /* most tokens of one prompt in an iteration, unless it is the only
                           request; 0: no limit */
    bool chunked;       /* prompts may be cut at the budget */
    bool prompt_fits;   /* V1: admission requires free KV for the whole prompt (and what must be
                           recomputed), but reserves nothing */
    bool by_priority;   /* key (class, priority, arrival) instead of arrival */
    bool force_preempt; /* the first waiting request may replace a worse running one */
    bool interrupt;     /* the first waiting request stops an iteration of only worse classes at the
                           next kernel; its work is lost, and the next one has that class alone */
    bool admit_after_preempt; /* ablation: V1 admits nothing after a preemption */
    bool async;               /* compose an iteration when the previous one starts */
    double watermark_frac;    /* share of the KV capacity that admissions leave free */
    uint32_t chunk_high, chunk_low, chunk_stages, chunk_span; /* stages 0: fixed budget */
};

struct vllm {
    struct iteration it;
    struct vllm_rules rules;
    struct reqq waiting, running;
    struct order by_key;     /* replaces `waiting` with by_priority; uses requests' order_node */
    uint64_t planned_blocks; /* blocks for the batch under construction and reservations */
    uint32_t max_seqs, budget;
    uint32_t most;     /* limit of admissions of the batch under construction */
    uint32_t admitted; /* admitted by it: the tail of running */
    uint32_t seats;    /* admissions for the next iteration (async); UINT32_MAX: no limit */
    bool requeue_back;
    bool urgent; /* an iteration was stopped for the first waiting request: the next has its class
                    alone */
    bool preempted;              /* a request was, for the batch under construction */
    bool company, company_ahead; /* more than one request is live: now, and when the next iteration
                                    was composed (async) */
};

/* Waiting requests are in `waiting` or `by_key`, as the rules demand. Admitted ones are the tail of
 * running. */
static inline bool vllm_ok(const struct vllm *v)
{
    return v->running.n <= v->max_seqs && v->admitted <= v->running.n &&
           (v->rules.by_priority ? v->waiting.n == 0 : v->by_key.n == 0) &&
           (v->rules.async || v->seats == UINT32_MAX) && (v->rules.interrupt || !v->urgent);
}

/* Queues, KV of an iteration under construction, and victims (vllm_wait.c). */
/* Order of keys: class, priority, arrival. */
bool vllm_before(const struct request *a, const struct request *b);
const struct request *vllm_first_waiting(const struct vllm *v);
/* Adds a request to the waiting ones; front: before all others, unless by_priority. */
void vllm_wait(struct vllm *v, const struct request *r, bool front);
/* Removes a request from its queue. */
void vllm_wait_no_more(struct vllm *v, const struct request *r);
void vllm_joins(struct sched *s, const struct request *r);
void vllm_leaves(struct sched *s, const struct request *r);
/* The running request to evict first, or NULL. */
const struct request *vllm_victim(const struct vllm *v);
/* Whether KV for a whole prompt is reserved at its admission (not in V1). */
bool vllm_reserves(const struct vllm *v);
/* Free blocks without planned ones. */
uint64_t vllm_free_left(struct sched *s, const struct vllm *v);
/* Adds n tokens of a running request to the batch. */
void vllm_plan(struct sched *s, struct vllm *v, const struct request *r, uint32_t n);
/* Evicts a running request: removes it from the batch, and makes it wait again. */
bool vllm_evict(struct sched *s, struct vllm *v, const struct request *r);

enum vllm_param { VLLM_DEVICE, VLLM_MAX_SEQS, VLLM_BUDGET, VLLM_REQUEUE, VLLM_PARAM_COUNT };

extern const char *const vllm_requeue_choices[];

/* The first entries of every table. */
#define VLLM_PARAMS(budget_default)                                                                \
    [VLLM_DEVICE] =                                                                                \
        POLICY_CHOICE("device", 0, place_choices, "device that runs everything; auto: the iGPU"),  \
    [VLLM_MAX_SEQS] = POLICY_INT("max_num_seqs", 16, 1, 4096,                                      \
                                 "requests in progress at once (E.1: 128; 16 on a SoC)"),          \
    [VLLM_BUDGET] = POLICY_INT("max_num_batched_tokens", budget_default, 1, 1e6,                   \
                               "tokens per iteration (E.1: 2048; 256 to 512 on a SoC)"),           \
    [VLLM_REQUEUE] = POLICY_CHOICE(                                                                \
        "requeue", 0, vllm_requeue_choices,                                                        \
        "where a preempted request waits: front (E.1), back (ablation); unused with priorities")

/* Reads the shared parameters; call it first in init. -ENODEV if the device is missing. */
int vllm_init(struct sched *s, struct vllm_rules rules);
/* Checks invariants when an iteration is composed (consistent.c). */
bool vllm_is_consistent(const struct vllm *v);
/* vllm_init without a device, for policies that place passes themselves. */
void vllm_rule(struct sched *s, struct vllm_rules rules, uint32_t max_seqs, uint32_t budget);
/* For policies that form passes themselves. */
/* Starts an empty batch. */
void vllm_begin(struct sched *s, struct vllm *v);
/* Adds decodes of running requests to the batch; sets v->preempted if it evicted one. */
void vllm_add_decodes(struct sched *s, struct vllm *v, uint32_t budget);
/* Evicts the victim and queues it again; false if nothing runs. */
bool vllm_preempt(struct sched *s, struct vllm *v);
/* Admits from waiting into the batch, at most `most` requests; sets v->admitted. */
void vllm_admit(struct sched *s, struct vllm *v, uint32_t most);
void vllm_unadmit(struct vllm *v);
/* Adds running prompts to the batch, within the budget. */
void vllm_add_prompts(struct vllm *v);

/* Members of policy_ops that do not depend on the rules. */
#define VLLM_HOOKS                                                                                 \
    .needs = CAP_KV_MOVE, .state_size_bytes = sizeof(struct vllm), .exit = iteration_exit,         \
    ITERATION_HOOKS
