/* KV of requests, in blocks: the ledger (kv.c), the room that a request sees (kv_room.c), and where
 * KV is (kv_move.c). Public counts are tokens; the ledger counts units (struct core). */
#pragma once

#include "sim/core/core.h"

void kv_models(struct core *c); /* the units of all models */
void kv_init(struct core *c);
int kv_grow(struct core *c, struct full_request *r, uint32_t new_tokens); /* by kv_reserve */
static inline bool kv_has_room(const struct core *c, const struct full_request *r, uint32_t more)
{
    return (uint64_t)r->pub->kv_tokens + more <= (uint64_t)r->kv_blocks * c->setup->kv_block_tokens;
}

/* Units of the ledger that so many of its blocks are. */
static inline uint64_t kv_units(const struct core *c, const struct full_request *r, uint64_t blocks)
{
    return blocks * c->models[r->pub->model].kv_units;
}

/* The first of its blocks, which others may have, too. */
static inline uint32_t kv_blocks_shared(const struct full_request *r)
{
    return r->prefix != NULL ? r->prefix->to : 0;
}

static inline int kv_reserve(struct core *c, struct full_request *r, uint32_t new_tokens)
{
    bool there = r->pub->kv_state_tokens == 0 && kv_has_room(c, r, new_tokens);
    return there ? 0 : kv_grow(c, r, new_tokens);
}

/* Blocks that decoding requests can have: free ones, and what finished turns left. */
static inline uint64_t kv_blocks_spare(const struct core *c)
{
    uint64_t blocks = c->kv_blocks_free + c->kv_blocks_cold;
    return blocks > c->kv_blocks_owed ? blocks - c->kv_blocks_owed : 0;
}

/* Blocks that hold so many tokens: the last one may be part empty, and nobody else may use the
 * rest. */
static inline uint32_t kv_blocks_for(const struct core *c, uint64_t tokens)
{
    uint32_t b = c->setup->kv_block_tokens;
    return (uint32_t)((tokens + b - 1) / b);
}

/* Blocks that are free or may give way, but not the prefix of `but` (may be NULL), who builds on
 * it: to give it way would be to compute it again. */
static inline uint64_t kv_blocks_there(const struct core *c, const struct full_request *but)
{
    uint64_t own = but != NULL && but->prefix_idle ? kv_units(c, but, but->kv_blocks) : 0;
    return c->kv_blocks_free + c->kv_blocks_cold + c->kv_blocks_idle - own;
}

/* Makes that many blocks free. Finished turns go first, then prefixes nobody has worked on, but not
 * that of `but` (may be NULL). -ENOMEM. */
int kv_make_free(struct core *c, uint64_t blocks, const struct full_request *but);
/* Blocks that are counted apart never exceed all blocks. */
static inline void kv_check_blocks(const struct core *c)
{
    SIM_REQUIRE(c->kv_blocks_free + c->kv_blocks_lent + c->kv_blocks_cold + c->kv_blocks_idle <=
                    c->kv_blocks_total,
                "KV blocks: %" PRIu64 " free, %" PRIu64 " lent, %" PRIu64 " cold, %" PRIu64
                " idle of %" PRIu64,
                c->kv_blocks_free, c->kv_blocks_lent, c->kv_blocks_cold, c->kv_blocks_idle,
                c->kv_blocks_total);
}

/* The blocks of its states (recurrent layers): all that its model's take, or 0. It takes them when
 * it next reserves KV. It has them until it has no KV any more, or only what it found in the cache.
 * KV that a session keeps for its next turn has them too, and shared prefixes do not. */
static inline uint64_t kv_state_blocks(const struct core *c, const struct full_request *r)
{
    uint64_t all = c->models[r->pub->model].kv_state_tokens;
    return (all - r->pub->kv_state_tokens) / c->setup->kv_block_tokens;
}

/* Blocks it lacks for so many more tokens. */
uint64_t kv_blocks_lacking(const struct core *c, const struct full_request *r, uint32_t new_tokens);
/* Keeps blocks for so many tokens: shared ones of the others stay cached. */
void kv_shrink(struct core *c, struct full_request *r, uint32_t keep_tokens);
/* Keeps it for the turn of that row; and gives at most so many tokens to the turn that has come. */
void kv_keep_cold(struct core *c, struct full_request *r, uint32_t row);
uint32_t kv_take_cold(struct core *c, struct full_request *r, uint32_t want_tokens);
int core_kv_move(struct core *c, struct kv_part part, enum kv_place to); /* the action */
/* In tokens of the model that needs most KV. */
uint64_t kv_free_tokens(const struct core *c);
/* Tokens of its own model that a request holds and that count as free. */
uint64_t kv_cached_tokens(const struct core *c, const struct full_request *r);
/* One request could have so much: all but what init declared. */
uint64_t kv_most_tokens(const struct core *c);
uint64_t kv_most_tokens_of(const struct core *c, uint32_t model); /* in tokens of that one */
/* KV of all its tokens and its states. */
static inline uint64_t kv_tokens_of_all(const struct core *c, const struct full_request *r)
{
    return (uint64_t)r->pub->input_tokens + r->output_tokens +
           c->models[r->pub->model].kv_state_tokens;
}
/* Has one request by itself room for that? */
static inline bool core_request_fits(const struct core *c, const struct full_request *r)
{
    uint64_t most = kv_most_tokens_of(c, r->pub->model);
    return kv_tokens_of_all(c, r) <= most;
}
/* Held by requests and finished turns. */
static inline uint64_t kv_blocks_held(const struct core *c)
{
    return c->kv_blocks_total - c->kv_blocks_free - c->kv_blocks_lent;
}

uint64_t kv_held_tokens(const struct core *c);
double kv_held_bytes(const struct core *c);
double kv_tokens_bytes(const struct core *c, uint32_t model, uint64_t tokens);
/* Gives the memory of so many blocks to residents instead; fewer than before: takes it back.
 * -ENOMEM when they are not free and no cold KV gives way. */
int kv_lend(struct core *c, uint64_t blocks);
/* Lends too, but is never refused: what is not there now is owed, and taken when it becomes free.
 */
void kv_owe(struct core *c, uint64_t blocks);
/* Takes what is owed of what is free or may give way, but not the prefix of `but` (may be NULL). */
void kv_collect(struct core *c, const struct full_request *but);
/* A reused prefix is cache until a pass holds it, and again when that pass came to nothing. */
void kv_prefix_used(struct core *c, struct full_request *r);
void kv_prefix_rest(struct core *c, struct full_request *r);

/* KV of finished turns (cold.c), kept for the session's next one, in two lists. Cached entries give
 * way when memory is short. */

/* The entry that is kept for the turn of that row, or NULL. */
static inline struct cold_kv *cold_of(const struct core *c, uint32_t row)
{
    struct cold_kv **k = map_record(&c->cold, row);
    return k != NULL ? *k : NULL;
}

/* Puts an entry behind those of its rank in the list of another state. */
void cold_becomes(struct core *c, struct cold_kv *k, enum cold_state state);
/* The session's shared prefix is no longer pinned, or on its way. */
void cold_let_go(struct core *c, struct cold_kv *k);
/* There is no such entry any more; its blocks are the caller's. */
void cold_forget(struct core *c, struct cold_kv *k);
/* Frees the blocks, too. */
void cold_drop(struct core *c, struct cold_kv *k);
/* The session's newest entry of a list, or NULL. O(list). */
struct cold_kv *cold_find(const struct ranked_list *l, uint32_t session_id);
