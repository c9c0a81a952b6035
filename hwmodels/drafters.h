/* Drafters on the tokens of a request: prompt lookup (Saxena 2023) and a suffix automaton (SAM
 * decoding; sd.npu 4.1). Verification accepts drafted tokens up to the first that differs from the
 * recorded answer. So acceptance is a result here, not an input. A third drafter is the automaton
 * calibrated with the model's own expectations (traces/texts.h).
 *
 * The draft is what followed the first occurrence of the text's last tokens, up to the end of the
 * text so far. A longer match in the user's earlier answers is used instead, if the workload keeps
 * these (traces/texts.h). A draft depends only on earlier tokens, so its length reveals nothing of
 * the answer. */
#pragma once

#include "sim/api/request.h"
#include "sim/api/trace.h"
#include "sim/base/base.h"

struct drafter {
    enum trace_drafter kind;
    uint32_t max_draft_tokens; /* <= TRACE_MOST_RIGHT */
    uint32_t tokens_per_match; /* a match of m tokens drafts at most 1 + tokens_per_match * m; 0: no
                                  limit */
    bool proactive;            /* false: drafts for reactive requests only */
};

/* drafter_length: tokens drafted before output token `place`. drafter_right: right ones among the
 * first `drafted`. O(1). */
uint32_t drafter_length(const struct drafter *d, const struct trace_text *t, uint32_t place);
uint32_t drafter_right(const struct drafter *d, const struct trace_text *t, uint32_t place,
                       uint32_t drafted);

/* Sums over the verifications of whole answers, without batching. */
struct drafter_account {
    uint64_t verifications, drafted, accepted;
    /* Verifications that ended at a wrong token, and why (sd.npu Table 2, by rule), if the answer
     * has as many tokens left as the draft. Missing: the next two drafted tokens occur later in the
     * answer. Synonym: not these, but two later drafted tokens do. The others are redundant. */
    uint64_t rejected, missing, synonym;
};
/* Adds an answer. The prompt's pass yields its first token. Each step drafts as much as allowed,
 * and emits one token more than it accepts. Cost: the answer, and the square of each wrong draft.
 */
void drafter_count(const struct drafter *d, const struct trace_text *t, struct drafter_account *a);

/* `draft` and `accept` of struct sim_setup, with a struct drafter as params. A request without a
 * text has no drafts. */
uint32_t drafter_draft(const void *params, uint64_t seed, const struct request *r,
                       const struct trace_text *text, uint64_t step);
uint32_t drafter_accept(const void *params, uint64_t seed, const struct request *r,
                        const struct trace_text *text, uint64_t step, uint32_t drafted);
