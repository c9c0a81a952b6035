/* KV room of a request: how much is free for it, and how its KV grows. With several models, idle
 * weights are evicted for it, too. */
#include "sim/core/kv.h"
#include "sim/core/memory.h"

/* Adds the room of idle weights, with several models. A separate function keeps the hot functions
 * below small. */
__attribute__((noinline)) static uint64_t units_of_several(const struct core *c, uint64_t units)
{
    units += resident_lent_for(c, c->resident_bytes) -
             resident_lent_for(c, c->resident_bytes - weights_idle_bytes(c));
    return units - (c->kv_blocks_owed < units ? c->kv_blocks_owed : units);
}

uint64_t kv_free_tokens(const struct core *c)
{
    uint64_t units = kv_blocks_there(c, NULL);
    if (c->n_models > 1) {
        return units_of_several(c, units) / c->kv_units_most * c->setup->kv_block_tokens;
    }
    units -= c->kv_blocks_owed < units ? c->kv_blocks_owed : units;
    return units * c->setup->kv_block_tokens;
}

uint64_t kv_cached_tokens(const struct core *c, const struct full_request *r)
{
    if (!r->prefix_idle) {
        return 0;
    }
    uint64_t blocks =
        (uint64_t)(r->kv_blocks - kv_blocks_shared(r)) + prefix_idle_blocks(r->prefix);
    uint64_t tokens = blocks * c->setup->kv_block_tokens; /* the last block may be part empty */
    return tokens < r->pub->kv_tokens ? tokens : r->pub->kv_tokens;
}

uint64_t kv_most_tokens(const struct core *c)
{
    uint64_t units = c->kv_blocks_total - c->kv_blocks_mapped;
    return units / c->kv_units_most * c->setup->kv_block_tokens;
}

uint64_t kv_most_tokens_of(const struct core *c, uint32_t model)
{
    if (c->n_models == 1) {
        return kv_most_tokens(c);
    }
    uint64_t units = c->kv_blocks_total - weights_least_lent(c, model);
    return units / c->models[model].kv_units * c->setup->kv_block_tokens;
}

static inline void note_peak(struct core *c)
{
    bool most = kv_blocks_held(c) > c->kv_blocks_most;
    if (most) {
        c->kv_blocks_most = kv_blocks_held(c);
        c->result->kv_peak_tokens = kv_held_tokens(c);
    }
    /* With residents or several models, the memory peak may come with less than the peak of KV. */
    if (most || c->resident_bytes > 0.0 || c->n_models > 1) {
        core_memory_note(c);
    }
}

bool kv_may_go_on(const struct core *c, const struct full_pass *p, uint32_t tokens)
{
    uint64_t units = c->kv_blocks_owed;
    for (uint32_t i = 0; i < p->pub->n_segments; i++) {
        const struct full_request *r = core_member(&p->segments[i]);
        uint32_t need = kv_blocks_for(c, (uint64_t)r->pub->kv_tokens + tokens);
        units += need > r->kv_blocks ? kv_units(c, r, need - r->kv_blocks) : 0;
    }
    return units <= c->kv_blocks_free + c->kv_blocks_cold;
}

int kv_grow(struct core *c, struct full_request *r, uint32_t new_tokens)
{
    uint64_t tokens = (uint64_t)r->pub->kv_tokens + new_tokens;
    uint32_t need = kv_blocks_for(c, tokens);
    need = need > r->kv_blocks ? need : r->kv_blocks;
    uint64_t states = r->pub->kv_state_tokens / c->setup->kv_block_tokens;
    SIM_ASSERT(states > 0 || need > r->kv_blocks);
    uint64_t extra = kv_units(c, r, need - r->kv_blocks + states);
    if (c->kv_blocks_owed > 0) { /* owed units come first */
        kv_collect(c, r);
    }
    while (extra > c->kv_blocks_free && kv_make_free(c, extra, r) != 0) {
        /* If evicting all idle weights is not enough, none is evicted in vain. */
        bool enough = c->n_models > 1 && extra <= units_of_several(c, kv_blocks_there(c, r));
        if (!enough || !weights_give_way(c)) {
            return -ENOMEM;
        }
    }
    c->kv_blocks_free -= extra;
    r->kv_blocks = need;
    r->pub->kv_state_tokens = 0;
    SIM_ASSERT(kv_has_room(c, r, new_tokens));
    kv_check_blocks(c);
    note_peak(c);
    return 0;
}
