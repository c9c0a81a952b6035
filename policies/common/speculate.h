/* Number of drafted tokens to verify (clauses.md D.6, D.8, E.20), for every policy that speculates.
 *
 * The estimate uses what a policy can see: the numbers of tokens that earlier verifications
 * accepted. In the model of D.7 a step hits with probability h, and then each further token is
 * right with probability alpha. Maximum likelihood gives h = hits / steps and alpha = right /
 * tried, over tokens after the first of a hit. A prior worth a few steps lets the first draft be
 * tried. */
#pragma once

#include "sim/api/policy.h"

/* Prior: half of the steps hit, and three of four further tokens are right, with the weight of four
 * steps. */
#define SPECULATE_PRIOR_STEPS 4.0
#define SPECULATE_PRIOR_HIT 0.5
#define SPECULATE_PRIOR_ALPHA 0.75

/* If no draft pays off, one is still tried once in this many steps. Otherwise the estimate could
 * never recover. */
#define SPECULATE_RETRY_STEPS 32

struct speculate {
    double steps, hits;  /* verifications with a draft; those that accepted at least one token */
    double tried, right; /* tokens after the first of a hit: verified, accepted */
    uint32_t idle;       /* times that an offered draft was declined since the last draft */
};

/* Hits are a part of steps, and right of tried. */
static inline bool speculate_ok(const struct speculate *e)
{
    return 0.0 <= e->hits && e->hits <= e->steps && 0.0 <= e->right && e->right <= e->tried;
}

/* Records that a verification of `drafted` tokens emitted `emitted` (accepted + 1). Drafts of 0
 * tokens are ignored. */
void speculate_observe(struct speculate *e, uint32_t drafted, uint32_t emitted);

/* Records the verifications of a finished pass, except those of finished requests, which the end of
 * the answer cut short. */
void speculate_observe_pass(struct speculate *e, const struct pass *p);

/* Expected tokens from a verification of `drafted` tokens, including its own: at least 1. */
double speculate_emitted(const struct speculate *e, uint32_t drafted);

/* Returns the draft length, at most `offered`, with the most expected tokens per time; among equals
 * the shortest. cost(ctx, drafted): time of a step that verifies that many; 0 is a plain decode.
 * Candidates are all lengths; with stride > 1 (rows of a static graph) they are 0, stride * n - 1
 * and `offered`. O(offered / stride) calls of cost. */
uint32_t speculate_length(struct speculate *e, uint32_t offered, uint32_t stride,
                          double (*cost)(void *ctx, uint32_t drafted), void *ctx);

/* Annotated time of a pass of this shape, launched op by op. Token-level ops run on one device in
 * kernels of chunk_rows rows (0: dynamic). Attention and head run on `rest`, which may be the same
 * device. */
double speculate_pass_ns(struct sched *s, const struct work_shape *w, uint8_t token_level,
                         uint8_t rest, uint32_t chunk_rows);
