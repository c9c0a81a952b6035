/* KV of requests, in blocks: the ledger (kv.c), the room that a request sees (kv_room.c), and where
 * KV is (kv_move.c). Public counts are tokens; the ledger counts units (struct core). */
#pragma once

#include "sim/core/core.h"

void kv_models(struct core *c); /* computes the units of all models */
int kv_grow(struct core *c, struct full_request *r, uint32_t new_tokens); /* by kv_reserve */
static inline bool kv_has_room(const struct core *c, const struct full_request *r, uint32_t more)
{
    return (uint64_t)r->pub->kv_tokens + more <= (uint64_t)r->kv_blocks * c->setup->kv_block_tokens;
}

/* Converts blocks of the request's model to ledger units. */
static inline uint64_t kv_units(const struct core *c, const struct full_request *r, uint64_t blocks)
{
    return blocks * c->models[r->pub->model].kv_units;
}

/* Number of its first blocks that other requests may share. */
static inline uint32_t kv_blocks_shared(const struct full_request *r)
{
    return r->prefix != NULL ? r->prefix->to : 0;
}

static inline int kv_reserve(struct core *c, struct full_request *r, uint32_t new_tokens)
{
    bool there = r->pub->kv_state_tokens == 0 && kv_has_room(c, r, new_tokens);
    return there ? 0 : kv_grow(c, r, new_tokens);
}

/* Blocks for that many tokens. The last block may be part empty, but has only one user. */
static inline uint32_t kv_blocks_for(const struct core *c, uint64_t tokens)
{
    uint32_t b = c->setup->kv_block_tokens;
    return (uint32_t)((tokens + b - 1) / b);
}

/* Units that are free or may be dropped, except the prefix of `but` (may be NULL). That request is
 * about to use its prefix, and would have to compute it again. */
static inline uint64_t kv_blocks_there(const struct core *c, const struct full_request *but)
{
    uint64_t own = but != NULL && but->prefix_idle ? kv_units(c, but, but->kv_blocks) : 0;
    return c->kv_blocks_free + c->kv_blocks_cold + c->kv_blocks_idle - own;
}

/* Makes that many units free, or returns -ENOMEM. Drops KV of finished turns first, then unused
 * prefixes of waiting requests, except that of `but` (may be NULL). */
int kv_make_free(struct core *c, uint64_t blocks, const struct full_request *but);
/* The separate counts never exceed the total. */
static inline void kv_check_blocks(const struct core *c)
{
    SIM_REQUIRE(c->kv_blocks_free + c->kv_blocks_lent + c->kv_blocks_cold + c->kv_blocks_idle <=
                    c->kv_blocks_total,
                "KV blocks: %" PRIu64 " free, %" PRIu64 " lent, %" PRIu64 " cold, %" PRIu64
                " idle of %" PRIu64,
                c->kv_blocks_free, c->kv_blocks_lent, c->kv_blocks_cold, c->kv_blocks_idle,
                c->kv_blocks_total);
}

/* Blocks of the states of recurrent layers that a request has: all that its model needs, or 0. It
 * takes them when it reserves KV. It loses them with its last KV, or when only a cached prefix is
 * left. KV of a session between two turns includes them; shared prefixes do not. */
static inline uint64_t kv_state_blocks(const struct core *c, const struct full_request *r)
{
    uint64_t all = c->models[r->pub->model].kv_state_tokens;
    return (all - r->pub->kv_state_tokens) / c->setup->kv_block_tokens;
}

/* Whether there is KV for so many more tokens of each request of a decode pass. */
bool kv_may_go_on(const struct core *c, const struct full_pass *p, uint32_t tokens);
/* Reduces its KV to keep_tokens tokens. Shared blocks beyond these stay cached. */
void kv_shrink(struct core *c, struct full_request *r, uint32_t keep_tokens);
/* Stores a finished request's KV for the turn of that row; gives it at most want_tokens of them. */
void kv_keep_cold(struct core *c, struct full_request *r, uint32_t row);
uint32_t kv_take_cold(struct core *c, struct full_request *r, uint32_t want_tokens);
int core_kv_move(struct core *c, struct kv_part part, enum kv_place to); /* sched_kv_move */
/* In tokens of the model with the largest ones. */
uint64_t kv_free_tokens(const struct core *c);
/* sched_kv_cached_tokens, in tokens of the request's model. */
uint64_t kv_cached_tokens(const struct core *c, const struct full_request *r);
/* The most KV of one request: all that neither init mapped nor other programs hold. */
uint64_t kv_most_tokens(const struct core *c);
uint64_t kv_most_tokens_of(const struct core *c, uint32_t model); /* in tokens of that model */
/* KV of all tokens of a request, hidden ones included, and of its states. */
static inline uint64_t kv_tokens_of_all(const struct core *c, const struct full_request *r)
{
    return (uint64_t)r->pub->input_tokens + r->output_tokens +
           c->models[r->pub->model].kv_state_tokens;
}
/* Whether that fits if no other request has KV. */
static inline bool core_request_fits(const struct core *c, const struct full_request *r)
{
    uint64_t most = kv_most_tokens_of(c, r->pub->model);
    return kv_tokens_of_all(c, r) <= most;
}
/* Units held by requests and finished turns. */
static inline uint64_t kv_blocks_held(const struct core *c)
{
    return c->kv_blocks_total - c->kv_blocks_free - c->kv_blocks_lent;
}

uint64_t kv_held_tokens(const struct core *c);
double kv_held_bytes(const struct core *c);
double kv_tokens_bytes(const struct core *c, uint32_t model, uint64_t tokens);
/* Sets the number of units whose memory is lent to residents. Fewer than before: takes memory back.
 * -ENOMEM if they are neither free nor cached. */
int kv_lend(struct core *c, uint64_t blocks);
/* Like kv_lend, but never fails: missing units are owed, and lent when they become free. */
void kv_owe(struct core *c, uint64_t blocks);
/* Lends owed units from those that are free or may be dropped, except the prefix of `but` (may be
 * NULL). */
void kv_collect(struct core *c, const struct full_request *but);
/* A reused prefix counts as cache until a pass uses it, and again after that pass was cancelled. */
void kv_prefix_used(struct core *c, struct full_request *r);
void kv_prefix_rest(struct core *c, struct full_request *r);

/* Cold KV (cold.c): KV of finished turns, kept for the session's next one. There are two lists;
 * cached entries are dropped when memory is short. */

/* The entry for the turn of that row, or NULL. */
static inline struct cold_kv *cold_of(const struct core *c, uint32_t row)
{
    struct cold_kv **k = map_record(&c->cold, row);
    return k != NULL ? *k : NULL;
}

/* Changes an entry's state, and moves it behind those of its rank in that state's list. */
void cold_becomes(struct core *c, struct cold_kv *k, enum cold_state state);
/* Releases the entry's hold on a shared prefix. */
void cold_let_go(struct core *c, struct cold_kv *k);
/* Removes an entry. The caller takes over its blocks. */
void cold_forget(struct core *c, struct cold_kv *k);
/* Removes an entry and frees its blocks. */
void cold_drop(struct core *c, struct cold_kv *k);
/* The session's newest entry of a list, or NULL. O(list). */
struct cold_kv *cold_find(const struct ranked_list *l, uint32_t session_id);
