/* The KV ledger. Every block is free, lent to residents, cached, or held by a request. Cached
 * blocks are dropped for live requests, by rank, then LRU (clauses.md B.10: finished-flow KV
 * first). */
#include "sim/core/kv.h"

static uint64_t divisor(uint64_t a, uint64_t b)
{
    return b == 0 ? a : divisor(b, a % b);
}

void kv_models(struct core *c)
{
    uint64_t unit = 0;
    for (uint32_t i = 0; i < c->n_models; i++) {
        unit = divisor((uint64_t)ceil(sched_kv_token_bytes(c->sched, i)), unit);
    }
    c->kv_unit_bytes = c->n_models == 1 ? c->models[0].llm->kv_bytes_per_token : (double)unit;
    c->kv_units_most = 1;
    for (uint32_t i = 0; i < c->n_models; i++) {
        c->models[i].kv_state_tokens = sched_kv_state_tokens(c->sched, i);
        uint64_t bytes = (uint64_t)ceil(sched_kv_token_bytes(c->sched, i));
        c->models[i].kv_units = c->n_models == 1 ? 1 : (uint32_t)(bytes / unit);
        c->kv_units_most =
            c->models[i].kv_units > c->kv_units_most ? c->models[i].kv_units : c->kv_units_most;
    }
}

uint64_t kv_held_tokens(const struct core *c)
{
    uint64_t most = c->kv_units_most;
    return (kv_blocks_held(c) + most - 1) / most * c->setup->kv_block_tokens;
}

double kv_held_bytes(const struct core *c)
{
    return (double)(kv_blocks_held(c) * c->setup->kv_block_tokens) * c->kv_unit_bytes;
}

double kv_tokens_bytes(const struct core *c, uint32_t model, uint64_t tokens)
{
    return (double)tokens * sched_kv_token_bytes(c->sched, model) +
           sched_kv_state_bytes(c->sched, model);
}

static void states_give_way(struct core *c, struct full_request *r)
{
    c->kv_blocks_free += kv_units(c, r, kv_state_blocks(c, r));
    r->pub->kv_state_tokens = c->models[r->pub->model].kv_state_tokens;
}

/* Drops the cached prefix of the newest request that has not started. Otherwise waiting requests
 * could hold all KV, and policies without eviction would lock up.
 */
static bool drop_idle_prefix(struct core *c, const struct full_request *but)
{
    for (struct full_request *r = c->live_head; r != NULL; r = r->next_live) {
        if (r->prefix_idle && r != but && r->pub->pass == NULL) {
            SIM_ASSERT(r->kv_blocks > 0 && r->pub->generated_tokens == 0 && !r->pub->kv_swapped);
            kv_prefix_used(c, r);
            kv_shrink(c, r, 0);
            r->pub->kv_tokens = 0;
            r->drafted_tokens = 0;
            r->pub->reused_tokens = 0;
            c->sched->reuse_changes++;
            core_count(c, COUNTER_KV_COLD_DROPS);
            if (c->prefixes != NULL) {
                prefix_changed(c);
            }
            return true;
        }
    }
    return false;
}

void kv_prefix_used(struct core *c, struct full_request *r)
{
    if (r->prefix_idle) {
        uint64_t own = kv_units(c, r, r->kv_blocks - kv_blocks_shared(r));
        SIM_ASSERT(own <= c->kv_blocks_idle);
        r->prefix_idle = false;
        c->kv_blocks_idle -= own;
        prefix_hold(c, r->prefix, PREFIX_IDLE, PREFIX_USED);
    }
}

void kv_prefix_rest(struct core *c, struct full_request *r)
{
    /* True also after passes of it were cancelled, because their results are gone. */
    bool untouched = r->pub->kv_tokens > 0 && r->pub->kv_tokens == r->pub->reused_tokens &&
                     r->pub->generated_tokens == 0 && r->pub->pass == NULL;
    if (untouched && !r->prefix_idle && !r->pub->kv_swapped) {
        states_give_way(c, r);
        r->prefix_idle = true;
        c->kv_blocks_idle += kv_units(c, r, r->kv_blocks - kv_blocks_shared(r));
        prefix_hold(c, r->prefix, PREFIX_USED, PREFIX_IDLE);
    }
}

int kv_make_free(struct core *c, uint64_t blocks, const struct full_request *but)
{
    /* Check first, so that nothing is dropped in vain. */
    if (blocks > kv_blocks_there(c, but)) {
        return -ENOMEM;
    }
    while (blocks > c->kv_blocks_free) {
        if (c->kv_blocks_cold > 0 && c->prefixes != NULL) {
            prefix_evict(c, blocks - c->kv_blocks_free);
        } else if (c->kv_blocks_cold > 0) {
            SIM_ASSERT(c->cold_cached.first != NULL);
            cold_drop(c, (struct cold_kv *)c->cold_cached.first);
        } else if (!drop_idle_prefix(c, but)) {
            return -ENOMEM; /* the rest belongs to the pass being formed */
        }
    }
    SIM_ASSERT(blocks <= c->kv_blocks_free);
    return 0;
}

int kv_lend(struct core *c, uint64_t blocks)
{
    if (blocks == c->kv_blocks_lent + c->kv_blocks_owed) {
        return 0; /* it is lent or owed already */
    }
    if (blocks > c->kv_blocks_lent && kv_make_free(c, blocks - c->kv_blocks_lent, NULL) != 0) {
        return -ENOMEM;
    }
    kv_owe(c, blocks); /* all of them are free, so none is owed */
    return 0;
}

void kv_collect(struct core *c, const struct full_request *but)
{
    uint64_t there = kv_blocks_there(c, but);
    uint64_t some = c->kv_blocks_owed < there ? c->kv_blocks_owed : there;
    (void)kv_make_free(c, some, but); /* less, if the rest belongs to the pass being formed */
    some = some < c->kv_blocks_free ? some : c->kv_blocks_free;
    c->kv_blocks_free -= some;
    c->kv_blocks_lent += some;
    c->kv_blocks_owed -= some;
    kv_check_blocks(c);
}

void kv_owe(struct core *c, uint64_t blocks)
{
    SIM_ASSERT(blocks <= c->kv_blocks_total);
    uint64_t back = blocks < c->kv_blocks_lent ? c->kv_blocks_lent - blocks : 0;
    c->kv_blocks_free += back;
    c->kv_blocks_lent -= back;
    c->kv_blocks_owed = blocks - c->kv_blocks_lent;
    kv_collect(c, NULL);
}

void kv_shrink(struct core *c, struct full_request *r, uint32_t keep_tokens)
{
    uint32_t keep = kv_blocks_for(c, keep_tokens);
    /* Else its blocks would count as idle for ever. */
    SIM_ASSERT(!r->prefix_idle || keep == r->kv_blocks);
    if (keep < r->kv_blocks) {
        uint32_t shared = kv_blocks_shared(r);
        c->kv_blocks_free += kv_units(c, r, r->kv_blocks - (keep > shared ? keep : shared));
        if (keep < shared) {
            prefix_keep(c, r, keep);
        }
        r->kv_blocks = keep;
        if (keep == 0) {
            states_give_way(c, r);
        }
        kv_check_blocks(c);
    }
}
