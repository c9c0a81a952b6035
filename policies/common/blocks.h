/* KV in whole blocks, as paged systems count it. A policy that plans an iteration before it forms
 * the pass adds up blocks_needed and compares with blocks_free; the core then finds the same. */
#pragma once

#include "sim/api/policy.h"
#include "sim/base/base.h"

static inline uint64_t blocks_of(const struct sched *s, uint64_t tokens)
{
    uint64_t n = (tokens + s->kv_block_tokens - 1) / s->kv_block_tokens;
    SIM_ASSERT(n * s->kv_block_tokens - tokens < s->kv_block_tokens); /* no empty block */
    return n;
}

/* Free blocks, including cached prefixes. */
static inline uint64_t blocks_free(struct sched *s)
{
    SIM_ASSERT(sched_kv_free_tokens(s) % s->kv_block_tokens == 0);
    return sched_kv_free_tokens(s) / s->kv_block_tokens;
}

/* Whether all its KV may be a cached prefix that no pass has used yet, which counts as free
 * (sched_kv_cached_tokens). An evicted request may have kept the same number of tokens. */
static inline bool blocks_only_cached(const struct request *r)
{
    SIM_ASSERT(r->pass == NULL && !r->kv_swapped); /* a pass uses its KV */
    return r->generated_tokens == 0 && r->kv_tokens > 0 && r->kv_tokens == r->reused_tokens;
}

/* Tokens of free KV that a prompt will take: for its remaining tokens, for a prefix that still
 * counts as free, and for its recurrent states. */
static inline uint64_t blocks_prompt_tokens(struct sched *s, const struct request *r)
{
    bool cached = r->pass == NULL && !r->kv_swapped && blocks_only_cached(r);
    return request_prefill_left(r) + (cached ? sched_kv_cached_tokens(s, r) : 0) +
           r->kv_state_tokens;
}

/* Blocks of a request that count as free. */
static inline uint64_t blocks_cached(struct sched *s, const struct request *r)
{
    return blocks_only_cached(r) ? blocks_of(s, sched_kv_cached_tokens(s, r)) : 0;
}

/* Blocks that its eviction would free, without those of its states. */
static inline uint64_t blocks_held(struct sched *s, const struct request *r)
{
    return blocks_of(s, r->kv_tokens) - blocks_cached(s, r);
}

/* Free blocks that n more tokens of a request take. */
static inline uint64_t blocks_needed(struct sched *s, const struct request *r, uint64_t n)
{
    uint64_t states = r->kv_state_tokens / s->kv_block_tokens;
    if (blocks_only_cached(r)) { /* other requests may use a part of it */
        return states + blocks_of(s, r->kv_tokens + n) - blocks_held(s, r);
    }
    uint32_t in_last = r->kv_tokens % s->kv_block_tokens;
    uint32_t room = in_last == 0 ? 0 : s->kv_block_tokens - in_last;
    uint64_t needed = n <= room ? 0 : blocks_of(s, n - room);
    SIM_ASSERT(blocks_held(s, r) + needed == blocks_of(s, r->kv_tokens + n));
    return states + needed;
}
