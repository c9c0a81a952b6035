/* Several live passes of one prompt, each with a chunk of it, so that chunks can be launched out of
 * order (llm.npu 3.4). They form a list in token order (full_pass.before, after; request.pass is
 * the first). */
#pragma once

#include "sim/core/core.h"

#define AHEAD_ALONE "tokens ahead are a pass of their own"

/* Returns why SEGMENT_AHEAD is impossible for this segment, or NULL if it is possible. */
const char *ahead_fault(const struct segment *s);
/* Makes s the first segment of p, now the last pass of the list. Returns NULL, or why it cannot. */
const char *ahead_take(struct core *c, struct full_pass *p, struct segment *s);
/* Undoes ahead_take: unlinks the last pass of the list. */
void ahead_give_up(struct core *c, struct full_pass *p, struct full_request *r);
/* Whether ops up to `end` depend on incomplete work of earlier passes: attention on all keys (eq.
 * 2), the head on the whole passes. Other ops depend on nothing (eq. 3). */
bool ahead_is_early(const struct full_pass *p, uint32_t end);
/* Removes the first pass of a list, which is done. Returns the next one if all its ops are
 * complete, so that the caller completes it; else NULL. */
struct full_pass *ahead_goes_first(struct full_pass *done);
