/* Several live passes of one prompt: each has a chunk, and they are a list from the first tokens to
 * the last (full_pass.before, after; request.pass is the first). For launches of the chunks out of
 * order, as llm.npu has them (3.4). */
#pragma once

#include "sim/core/core.h"

#define AHEAD_ALONE "tokens ahead are a pass of their own"

/* Why there cannot be such a segment ahead; NULL: there can. */
const char *ahead_fault(const struct segment *s);
/* Makes it the only segment of a pass behind the others. NULL, or why it cannot. */
const char *ahead_take(struct core *c, struct full_pass *p, const struct segment *want);
/* Removes the last pass of the list, which could not be formed. */
void ahead_give_up(struct core *c, struct full_pass *p, struct full_request *r);
/* Whether ops up to `end` need what passes with the tokens before have not done: attention their
 * keys (eq. 2), and the head all of them. Others need nothing of them (eq. 3). */
bool ahead_is_early(const struct full_pass *p, uint32_t end);
/* The first pass of a list is done, and the next one is now the first. Returns it if it has been
 * through all its ops, for the caller to complete; else NULL. */
struct full_pass *ahead_goes_first(struct full_pass *done);
