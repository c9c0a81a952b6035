/* Drafters that draft on the tokens of a request: prompt lookup (Saxena 2023) and a suffix
 * automaton (SAM decoding; sd.npu 4.1). Verification accepts drafted tokens up to the first that
 * the recorded answer does not have. So acceptance is a result here, and not an input. A third one
 * is the automaton calibrated with the model's own expectations (traces/texts.h).
 *
 * The draft is what followed the first occurrence of the text's end; it stops where the text so far
 * stops. The workload may have the user's earlier answers kept (traces/texts.h). Then the draft is
 * from one of those where that has a longer end of the text. A draft depends on the tokens before
 * it alone, so its length shows a policy nothing of the answer to come. */
#pragma once

#include "sim/api/request.h"
#include "sim/api/trace.h"
#include "sim/base/base.h"

struct drafter {
    enum trace_drafter kind;
    uint32_t max_draft_tokens; /* up to TRACE_MOST_RIGHT */
    uint32_t tokens_per_match; /* a match of m tokens drafts 1 + so many * m at most; 0: any many */
    bool proactive;            /* drafts for both classes, or for reactive requests only */
};

/* Tokens drafted before output token `place` of a text, and how many of the first `drafted` the
 * answer has. O(1). */
uint32_t drafter_length(const struct drafter *d, const struct trace_text *t, uint32_t place);
uint32_t drafter_right(const struct drafter *d, const struct trace_text *t, uint32_t place,
                       uint32_t drafted);

/* Sums over the verifications of whole answers, each served alone. */
struct drafter_account {
    uint64_t verifications, drafted, accepted;
    /* Verifications that ended at a wrong token, and why (sd.npu Table 2, by rule). The answer has
     * as many tokens left as the draft. Missing: further on it has the two next drafted tokens.
     * Synonym: not those, and two later ones. The others are redundant. */
    uint64_t rejected, missing, synonym;
};
/* Adds an answer. The prompt's pass gives its first token; each step drafts all that it may, and
 * emits one token more than it accepts. Cost: the answer, and the square of each wrong draft. */
void drafter_count(const struct drafter *d, const struct trace_text *t, struct drafter_account *a);

/* `draft` and `accept` of struct sim_setup, with a struct drafter as params. A request without a
 * text drafts nothing. */
uint32_t drafter_draft(const void *params, uint64_t seed, const struct request *r,
                       const struct trace_text *text, uint64_t step);
uint32_t drafter_accept(const void *params, uint64_t seed, const struct request *r,
                        const struct trace_text *text, uint64_t step, uint32_t drafted);
