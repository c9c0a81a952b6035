/* Speculative decoding as a stochastic process: lengths of drafts, and accepted tokens. Paper:
 * sd.npu (CoordGen), sections 2.2, 3.3, 3.4, 4.5.
 *
 * One verification step: with probability h the draft starts right (a hit), and then the run of
 * right tokens is geometric, P(run >= k) = alpha^(k-1) for k >= 1; otherwise the run is 0. Accepted
 * = min(run, drafted tokens); emitted = accepted + 1 (the target's own token). So
 *   E[accepted | l drafted] = h (1 - alpha^l) / (1 - alpha).
 * Table 4 of the paper gives the mean for drafts of 10 (PLD) and of 40 tokens (SAM): two equations
 * for (alpha, h), solved in speculation_data.h.
 *
 * Everything here is a pure function of (model, request key, step number): there is no state, so
 * two policies that verify the same request get the same drafts and results. If a policy verifies
 * less than the draft, the draft is cut, and so is the number of accepted tokens.
 *
 * Two extensions, both off by default:
 *  - draft reuse (3.4): after a hit that ended in a rejection the next step hits with probability
 *    r + (1 - r) h. Stationary hit rate h / (1 - f r (1 - h)), f = P(hit ends in a rejection). The
 *    "+Ours" rows of Table 4 contain reuse already: use it with base rows only.
 *  - history: from a cold start h grows with the number n of earlier requests of the same task,
 *    h (c + (1 - c) n / (n + n_half)). The shape and n_half are this project's; Table 4 is n ->
 * inf.
 */
#pragma once

#include <stdint.h>

#include "sim/api/request.h"
#include "sim/api/trace.h"

#define SPECULATION_MAX_DRAFT 255 /* tokens */

/* The distribution of draft lengths, which is independent of acceptance. */
enum speculation_length {
    SPECULATION_FIXED,     /* always max_draft_tokens (SAM pads its drafts) */
    SPECULATION_PROP,      /* min(max, 1 + tokens_per_match * m), m >= 0 geometric */
    SPECULATION_EMPIRICAL, /* uniform within three ranges: short, up to friendly, up to max */
};

struct speculation_model {
    double alpha;        /* 0 <= alpha < 1 */
    double hit_frac;     /* h, 0 to 1 */
    double fixed_accept; /* > 0: this mean at every step, alpha and h unused (EAGLE's simulation) */
    double reuse_frac;   /* r, below 1; 0: no reuse */
    double history_cold_frac;     /* c; 1: history does not matter */
    double history_half_requests; /* n_half > 0 */
    enum speculation_length length;
    uint32_t max_draft_tokens; /* 0 to SPECULATION_MAX_DRAFT */
    uint32_t tokens_per_match; /* PROP */
    double match_frac;         /* PROP: P(m >= k + 1 | m >= k) */
    uint32_t short_tokens;     /* EMPIRICAL: P(length < short_tokens) = short_frac ... */
    uint32_t friendly_tokens;  /* ... and P(length < friendly_tokens) = unfriendly_frac; where */
    double short_frac,
        unfriendly_frac; /* max_draft_tokens is below a range, lengths are cut to it */
};

/* Hit probability after `history` earlier requests of the task, without reuse. */
double speculation_hit_frac(const struct speculation_model *m, double history);

/* The key of a request's stream: depends on seed and request only. */
uint64_t speculation_key(uint64_t seed, uint32_t request_id);

/* Tokens drafted at step number `step` (0, 1, ...) of a request. O(max_draft_tokens). */
uint32_t speculation_draft(const struct speculation_model *m, uint64_t key, uint64_t step);

/* Number of the first `draft_tokens` drafted tokens that the target accepts at that step; at most
 * speculation_draft. With reuse the walk back over earlier steps has expected length below 1 / (1 -
 * r). */
uint32_t speculation_accept(const struct speculation_model *m, uint64_t key, uint64_t step,
                            double history, uint32_t draft_tokens);

/* Inputs of a simulation: `draft` and `accept` of struct sim_setup (sim/core/run.h) are these two
 * functions, with a struct speculation_run as params. A class without a model has no drafts. */
enum speculation_history {
    SPECULATION_HISTORY_FULL,  /* long-running: Table 4's level from the first request */
    SPECULATION_HISTORY_TURN,  /* earlier turns of the same session */
    SPECULATION_HISTORY_TRACE, /* earlier requests of the trace, all of one task */
};

struct speculation_run {
    const struct speculation_model *by_class[REQUEST_CLASS_COUNT]; /* borrowed; NULL: no drafts */
    enum speculation_history history;
};

uint32_t speculation_run_draft(const void *params, uint64_t seed, const struct request *r,
                               const struct trace_text *text, uint64_t step);
uint32_t speculation_run_accept(const void *params, uint64_t seed, const struct request *r,
                                const struct trace_text *text, uint64_t step, uint32_t drafted);
