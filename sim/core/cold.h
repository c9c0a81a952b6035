/* KV of finished turns, kept for the session's next one: a table of entries in two lists. Cached
 * entries give way when memory is short. Held ones (pinned, moving, on flash) give no memory. */
#pragma once

#include "sim/core/core.h"

/* Takes an entry from its list, and puts it behind those of its rank in the list of a state. */
void cold_unlink(struct core *c, uint32_t i);
void cold_link(struct core *c, uint32_t i, enum cold_state state);
/* The session's shared prefix is no longer pinned, or on its way. */
void cold_let_go(struct core *c, struct cold_kv *k);
/* Frees the blocks. The entry stays allocated until its turn arrives, so that an executor's event
 * can name it safely. */
void cold_drop(struct core *c, uint32_t i);
/* The session's newest entry of a list, or KV_NO_COLD. O(list). */
uint32_t cold_find(const struct core *c, const struct cold_list *l, uint32_t session_id);
