/* Iteration-level continuous batching with paged KV and recompute preemption on one device, shared
 * by vLLM V0, vLLM V1, their priority variants and Sarathi-Serve (clauses.md E.1 to E.3). A policy
 * fills in the rules; the queues and the order of decisions are here.
 *
 *   waiting  no KV of their own; arrival order (or key order), preempted ones at the front
 *   running  in progress, in order of admission
 *
 * KV, in blocks: V1 counts request by request, as its source does; a running request that finds
 * none takes all of the victim's. The others reserve all of a prompt when they admit it, by count,
 * and a decode wants a free block, whether it needs one or not. Where there is none the victim
 * loses all KV and waits again. An iteration may still
 * not fit, because of other programs or models. Then its admissions are given back, last one first:
 * a new prompt never takes KV from a running request.
 *
 * async: while one iteration runs the next one is already composed, as newer vLLM does by default
 * to hide the scheduler's time (vllm-project/vllm pull request 19970). That does not change work
 * known ahead (decodes, chunks of running prompts). So its one effect here is later admission. A
 * request joins the second iteration to start after it came, and takes places that were free then.
 *
 * Deviations from the sources: a prompt longer than the token budget runs by itself where it may
 * not be chunked (vLLM refuses it). The watermark is waived when nothing runs. Cost of a decision:
 * O(running * (preemptions + admissions given back)), log waiting for each admission by priority.
 */
#pragma once

#include "policies/common/iteration.h"
#include "policies/common/order.h"
#include "policies/common/reqq.h"
#include "sim/api/policy.h"

enum vllm_order {
    VLLM_RUNNING_FIRST, /* running in list order, then waiting (V1). The others reserve KV for a
                           whole prompt when they admit it */
    VLLM_DECODES_FIRST, /* decodes, running prompts, waiting (Sarathi: stall-free) */
    VLLM_PROMPTS_FIRST, /* prompts and admissions, then decodes in what is left of the budget */
    VLLM_PROMPTS_ONLY   /* admissions of whole prompts if there are any, else decodes (V0) */
};

struct vllm_rules {
    enum vllm_order order;
    uint32_t threshold; /* most tokens of one prompt in an iteration, unless it is the only
                           request; 0: no limit */
    bool chunked;       /* prompts may be cut at the budget */
    bool prompt_fits;   /* V1: admission needs KV for the whole prompt (and what it has to compute
                           again) as much as is free now: a gate, nothing is reserved */
    bool by_priority;   /* key (class, priority, arrival) instead of arrival */
    bool force_preempt; /* a waiting head takes the place of a worse running one */
    bool interrupt;     /* a waiting head of a better class stops an iteration that has none
                           of it at the next kernel, the iteration's work is lost, and the
                           next one has that class alone */
    bool admit_after_preempt; /* ablation: V1 admits nothing then */
    bool async;               /* an iteration is composed when the one before it starts */
    double watermark_frac;    /* of the KV capacity, left free by admissions */
    uint32_t chunk_high, chunk_low, chunk_stages, chunk_span; /* stages 0: fixed budget */
};

struct vllm {
    struct iteration it;
    struct vllm_rules rules;
    struct reqq waiting, running;
    struct order by_key;     /* instead of waiting, with by_priority; uses requests' order_node */
    uint64_t planned_blocks; /* KV of the batch under construction, and what is reserved */
    uint32_t max_seqs, budget;
    uint32_t most;     /* admissions of the batch under construction */
    uint32_t admitted; /* by it: the tail of running */
    uint32_t seats;    /* admissions decided for the next iteration (async); UINT32_MAX: any */
    bool requeue_back;
    bool urgent; /* an iteration was stopped for the first waiting: the next has its class alone */
    bool preempted;              /* somebody, for the batch under construction */
    bool company, company_ahead; /* more than one request runs or waits: now, and when the next
                                    iteration was composed (async) */
};

/* Waiting requests are in the one structure that the rules say; the last admitted are the tail of
 * the running ones. */
static inline bool vllm_ok(const struct vllm *v)
{
    return v->running.n <= v->max_seqs && v->admitted <= v->running.n &&
           (v->rules.by_priority ? v->waiting.n == 0 : v->by_key.n == 0) &&
           (v->rules.async || v->seats == UINT32_MAX) && (v->rules.interrupt || !v->urgent);
}

/* The queues, the KV of an iteration under construction, and who gives way (vllm_wait.c). */
/* By the key: class, priority, arrival. */
bool vllm_before(const struct request *a, const struct request *b);
const struct request *vllm_first_waiting(const struct vllm *v);
/* Among the waiting requests; front: before all others, but by priority. */
void vllm_wait(struct vllm *v, const struct request *r, bool front);
/* Out of all queues. */
void vllm_wait_no_more(struct vllm *v, const struct request *r);
void vllm_joins(struct sched *s, const struct request *r);
void vllm_leaves(struct sched *s, const struct request *r);
/* The running request that gives way first; NULL: none runs. */
const struct request *vllm_victim(const struct vllm *v);
/* The others take the KV of a whole prompt when they admit it, V1 what an iteration needs. */
bool vllm_reserves(const struct vllm *v);
/* Blocks that are free and not planned. */
uint64_t vllm_free_left(struct sched *s, const struct vllm *v);
/* So many tokens of a running request into the batch. */
void vllm_plan(struct sched *s, struct vllm *v, const struct request *r, uint32_t n);
/* A running request loses its KV and its place in the batch, and waits again. */
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

/* Reads the shared parameters; call it first in init. -ENODEV without the device. */
int vllm_init(struct sched *s, struct vllm_rules rules);
/* Does all hold that it relies on, where an iteration is composed? (consistent.c) */
bool vllm_is_consistent(const struct vllm *v);
/* Without a device, for policies that place passes themselves. */
void vllm_rule(struct sched *s, struct vllm_rules rules, uint32_t max_seqs, uint32_t budget);
/* For policies that form passes of their own. */
/* An empty batch. */
void vllm_begin(struct sched *s, struct vllm *v);
/* Tokens of running requests into the batch; sets v->preempted where somebody gave way. */
void vllm_add_decodes(struct sched *s, struct vllm *v, uint32_t budget);
/* Takes all KV of the victim and queues it again; false when nothing runs. */
bool vllm_preempt(struct sched *s, struct vllm *v);
/* Admits from waiting into the batch, at most `most` requests; sets v->admitted. */
void vllm_admit(struct sched *s, struct vllm *v, uint32_t most);
void vllm_unadmit(struct vllm *v);
/* Running prompts into the batch, as far as the budget goes. */
void vllm_add_prompts(struct vllm *v);

/* Members of policy_ops that do not depend on the rules. */
#define VLLM_HOOKS                                                                                 \
    .needs = CAP_KV_MOVE, .state_size_bytes = sizeof(struct vllm), .exit = iteration_exit,         \
    ITERATION_HOOKS
