/* Number of drafted tokens to verify (clauses.md D.6, D.8, E.20), for every policy that speculates.
 *
 * The estimate uses what a policy can see: how many tokens earlier verifications accepted. In the
 * model of D.7 a step hits with probability h, then each further token is right with probability
 * alpha. The observed counts give both by maximum likelihood: h = hits / steps, alpha = right
 * tokens after the first of a hit / tokens tried there. Both start from a prior worth a few steps,
 * so that the first draft is tried. */
#pragma once

#include "sim/api/policy.h"

/* Prior: half of the steps hit, and three of four further tokens are right; four steps' weight. */
#define SPECULATE_PRIOR_STEPS 4.0
#define SPECULATE_PRIOR_HIT 0.5
#define SPECULATE_PRIOR_ALPHA 0.75

/* Where verifying nothing is best, a draft is tried all the same once in so many steps: otherwise
 * the estimate could never recover. */
#define SPECULATE_RETRY_STEPS 32

struct speculate {
    double steps, hits;  /* verifications with a draft; those that accepted at least one token */
    double tried, right; /* tokens after the first of a hit: looked at, accepted */
    uint32_t idle;       /* choices of no draft where one was offered, since the last draft */
};

/* The fractions are those of some among all. */
static inline bool speculate_ok(const struct speculate *e)
{
    return 0.0 <= e->hits && e->hits <= e->steps && 0.0 <= e->right && e->right <= e->tried;
}

/* A verification of `drafted` tokens emitted `emitted` (accepted + 1). Drafts of no token say
 * nothing. */
void speculate_observe(struct speculate *e, uint32_t drafted, uint32_t emitted);

/* Observes every verification of a finished pass whose request continues: the last one of a request
 * is cut by its end, not by the draft. */
void speculate_observe_pass(struct speculate *e, const struct pass *p);

/* Expected tokens that a verification of `drafted` tokens emits, its own included: at least 1. */
double speculate_emitted(const struct speculate *e, uint32_t drafted);

/* cost(ctx, drafted): time of a step that verifies so many tokens; 0 is a plain decode. The length
 * of at most `offered` tokens with the most expected emitted tokens per time. With stride > 1 (rows
 * of a static graph) 0 is looked at, whole passes, stride * n - 1, and what is offered; stride 1:
 * every length. The shortest among equals. O(offered / stride) costs. */
uint32_t speculate_length(struct speculate *e, uint32_t offered, uint32_t stride,
                          double (*cost)(void *ctx, uint32_t drafted), void *ctx);

/* Annotated time of a pass of this shape that is launched op by op. The token-level ops run on one
 * device in kernels of chunk_rows rows (0: its own). Attention and head run on another, or on the
 * same. */
double speculate_pass_ns(struct sched *s, const struct work_shape *w, uint8_t token_level,
                         uint8_t rest, uint32_t chunk_rows);
