/* Token texts of requests: what a drafter drafts from, and what the answer was.
 *
 * A file is JSON Lines, an object a request:
 *   {"context": "Shorten: a cat sat", "output": "a cat"}
 *   {"context": [17, 4, 9], "output": [4, 9]}
 * Both members are texts, or both are lists of token numbers; one file has one of the two forms.
 * With token numbers a third member may say what the model expects after each token
 * (below). Other members are not read. A text becomes words: a run of letters,
 * digits, "_" and bytes from 128 on, with one space before it; a run of white space; any other
 * byte. */
#pragma once

#include "sim/api/trace.h"
#include "sim/base/base.h"
#include "sim/base/json.h"

#define TEXTS_SHIPPED "code_edits" /* of traces/texts */

/* Tokens that prompt lookup matches at most: max_ngram_size of its author's code. */
#define TRACE_LOOKUP_TOKENS 3

/* Reads a shipped name or a path, and finds what every drafter matches before every output token.
 * NULL with errors "FILE:LINE: ...". The caller holds the texts. Cost: linear in the tokens. */
struct trace_texts *texts_read(const char *name, struct err *e);
/* Texts of users that draft from their earlier answers, too. Request i is text number[i] of `base`,
 * by user i % users; all of a user's come one after the other. Text i of the result is that of
 * request i. The caller holds the result, which holds `base`. Cost: linear in the tokens. */
struct trace_texts *texts_after_answers(struct trace_texts *base, const uint32_t *number,
                                        uint32_t n, uint32_t users);
/* Gives one hold back; NULL is fine. */
void texts_release(struct trace_texts *t);

/* Drafting from what the model expects after the tokens of a prompt: in-context distribution
 * calibration (sd.npu 3.3).
 *
 * The member `next` of a line of token texts has an entry for each token of context and output but
 * the last. An entry is a list of pairs [token, probability], the likeliest first, or [] where
 * nobody knows (xpusim drive --topk writes it). A prefill has computed the entries of the context.
 * They make a tree: after a token comes what the model expects behind some occurrence of it in the
 * context, then what it expects behind that token, and so on. */
struct calibration;

/* Reads `next`. where: "FILE:LINE". Adds all of it to *hash. NULL with errors. */
struct calibration *calibration_read(const cJSON *next, const uint32_t *tokens, uint32_t n_context,
                                     uint32_t n_output, const char *where, uint64_t *hash,
                                     struct err *e);
void calibration_free(struct calibration *c);
/* Replaces the draft behind `last` by the tree's likeliest path. It does not where two tokens or
 * more of the text match, or where the tree knows nothing: then false. */
bool calibration_drafts(const struct calibration *c, uint32_t last, struct trace_match *m);
