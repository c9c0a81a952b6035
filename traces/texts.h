/* Token texts of requests, for drafters: prompts and answers.
 *
 * A file is JSON Lines, an object a request:
 *   {"context": "Shorten: a cat sat", "output": "a cat"}
 *   {"context": [17, 4, 9], "output": [4, 9]}
 * Both members are texts, or both are lists of token numbers, in the same way for all of a file.
 * With token numbers a third member may state what the model expects after each token (below).
 * Other members are ignored. A text becomes words: a run of letters, digits, "_" and bytes from 128
 * on, with one space before it; a run of white space; any other byte. */
#pragma once

#include "sim/api/trace.h"
#include "sim/base/base.h"
#include "sim/base/json.h"

#define TEXTS_SHIPPED "code_edits" /* of traces/texts */

/* Most tokens that prompt lookup matches: max_ngram_size of its author's code. */
#define TRACE_LOOKUP_TOKENS 3

/* Reads a shipped name or a path, and finds every drafter's match before every output token. NULL
 * with errors "FILE:LINE: ...". The caller gets a reference. Cost: linear in the tokens. */
struct trace_texts *texts_read(const char *name, struct err *e);
/* Texts with matches in the user's earlier answers, too. Request i is text number[i] of `base`, by
 * user i % users; a user's requests are sequential. Text i of the result is that of request i. The
 * caller gets a reference; the result has one on `base`. Cost: linear in the tokens. */
struct trace_texts *texts_after_answers(struct trace_texts *base, const uint32_t *number,
                                        uint32_t n, uint32_t users);
/* Drops a reference; t may be NULL. */
void texts_release(struct trace_texts *t);

/* Drafting from what the model expects after the tokens of a prompt: in-context distribution
 * calibration (sd.npu 3.3).
 *
 * The member `next` of a line of token texts has an entry for each token of context and output but
 * the last. An entry is a list of pairs [token, probability], the likeliest first, or [] if unknown
 * (xpusim drive --topk writes it). The prefill computes the entries of the context, which make a
 * tree: a token's children are what the model expects after any occurrence of it in the context,
 * and so on. */
struct calibration;

/* Reads `next`, and adds it to *hash. where: "FILE:LINE". NULL with errors. */
struct calibration *calibration_read(const cJSON *next, const uint32_t *tokens, uint32_t n_context,
                                     uint32_t n_output, const char *where, uint64_t *hash,
                                     struct err *e);
void calibration_free(struct calibration *c);
/* Replaces the draft after `last` by the tree's likeliest path. Returns false, without change, if m
 * matches two or more tokens, or the tree has no path. */
bool calibration_drafts(const struct calibration *c, uint32_t last, struct trace_match *m);
