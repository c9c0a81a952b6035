/* Iteration-level batching of two classes on one device: online (reactive) work first, then offline
 * (proactive) work as long as the predicted iteration stays within a latency budget. Shared by
 * conserve-like and hygen-like (clauses.md E.12); each fills in the rules.
 *
 * An iteration takes all online decodes, online prompts in progress, and new online prompts in
 * arrival order. Then it takes offline work in the same sequence, each piece as large as the budget
 * in time and tokens allows. With a budget of TIME_NEVER_NS only tokens limit it. Online requests
 * have as many places in an iteration as they need; an offline request without a place waits with
 * its KV.
 *
 * With `safepoint` an online arrival aborts an iteration of only offline work, at the end of the
 * running layer. The work of that iteration is lost; KV of earlier iterations stays.
 *
 * KV: if an iteration does not fit, its offline admissions are undone. Then the offline request
 * admitted last is evicted and recomputed, and so on. Online requests lose KV only if nothing else
 * is left.
 *
 * Cost of a decision: O(running * log token_budget + log waiting). */
#pragma once

#include "policies/common/cost.h"
#include "policies/common/iteration.h"
#include "policies/common/reqq.h"
#include "sim/api/policy.h"

struct coserve;

struct coserve_rules {
    bool safepoint;
    /* Predicted time of an iteration of this shape. */
    int64_t (*predict_ns)(struct sched *s, const struct work_shape *w);
    /* Longest iteration that offline work may join; c->it.batch holds the online members. */
    int64_t (*budget_ns)(struct sched *s, const struct coserve *c);
    /* The next offline request to admit. NULL: the head of the queue. */
    const struct request *(*next_offline)(struct sched *s, struct coserve *c);
};

enum coserve_param {
    COSERVE_DEVICE,
    COSERVE_MAX_SEQS,
    COSERVE_TOKENS,
    COSERVE_OFFLINE,
    COSERVE_PARAM_COUNT
};
enum coserve_offline { COSERVE_OFFLINE_BUDGET, COSERVE_OFFLINE_ALWAYS, COSERVE_OFFLINE_ALONE };

extern const char *const coserve_offline_choices[];

#define COSERVE_PARAMS                                                                             \
    [COSERVE_DEVICE] =                                                                             \
        POLICY_CHOICE("device", 0, place_choices, "device that runs everything; auto: the iGPU"),  \
    [COSERVE_MAX_SEQS] = POLICY_INT("max_num_seqs", 16, 1, 4096,                                   \
                                    "sequences of an iteration, reactive ones first (clauses.md "  \
                                    "E.1: 16 on a SoC)"),                                          \
    [COSERVE_TOKENS] = POLICY_INT("max_num_batched_tokens", 512, 1, 1e6,                           \
                                  "tokens per iteration (E.1: 256 to 512 on a SoC)"),              \
    [COSERVE_OFFLINE] =                                                                            \
        POLICY_CHOICE("offline", COSERVE_OFFLINE_BUDGET, coserve_offline_choices,                  \
                      "offline work joins within the budget (E.12); always, or only without "      \
                      "online work (ablations)")

/* First member of a policy's state. */
struct coserve {
    struct iteration it;
    struct coserve_rules rules;
    struct reqq waiting[REQUEST_CLASS_COUNT], running[REQUEST_CLASS_COUNT];
    struct work_shape shape;            /* of the batch under construction */
    uint32_t most[REQUEST_CLASS_COUNT]; /* limit of admissions of the batch under construction */
    uint32_t admitted[REQUEST_CLASS_COUNT];   /* admitted by that batch: the tails of `running` */
    uint64_t admissions[REQUEST_CLASS_COUNT]; /* total, without undone ones */
    uint32_t max_seqs, tokens;
};

/* The shape is that of the batch, or of the last one. `admitted` is valid only until the pass is
 * formed. */
static inline bool coserve_ok(const struct coserve *c)
{
    const struct reqq *on = &c->running[REQUEST_CLASS_REACTIVE];
    const struct reqq *off = &c->running[REQUEST_CLASS_PROACTIVE];
    return on->n <= c->max_seqs && off->n <= c->max_seqs && c->it.batch.n <= c->max_seqs &&
           c->shape.rows == c->it.batch.tokens && c->it.batch.n <= c->shape.sequences;
}

/* Reads the shared parameters. -ENODEV without the device. */
int coserve_init(struct sched *s, struct coserve_rules rules);
