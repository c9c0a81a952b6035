/* Drafting from what the model expects after the tokens of a prompt: in-context distribution
 * calibration (sd.npu 3.3).
 *
 * The member `next` of a line of token texts has an entry for each token of context and output but
 * the last. An entry is a list of pairs [token, probability], the likeliest first, or [] where
 * nobody knows (xpusim drive --topk writes it). A prefill has computed the entries of the context.
 * They make a tree: after a token comes what the model expects behind some occurrence of it in the
 * context, then what it expects behind that token, and so on. */
#pragma once

#include "sim/api/trace.h"
#include "sim/base/json.h"

struct calibration;

/* Reads `next`. where: "FILE:LINE". Adds all of it to *hash. NULL with errors. */
struct calibration *calibration_read(const cJSON *next, const uint32_t *tokens, uint32_t n_context,
                                     uint32_t n_output, const char *where, uint64_t *hash,
                                     struct err *e);
void calibration_free(struct calibration *c);
/* Replaces the draft behind `last` by the tree's likeliest path. It does not where two tokens or
 * more of the text match, or where the tree knows nothing: then false. */
bool calibration_drafts(const struct calibration *c, uint32_t last, struct trace_match *m);
