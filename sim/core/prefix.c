/* Lookup of cached prefixes for requests, and sharing of computed ones. */
#include "sim/base/hash.h"
#include "sim/core/prefix_impl.h"

void prefix_rank(struct full_request *r)
{
    for (struct prefix_node *n = r->prefix; n != NULL && n->place.rank < r->kv_rank;
         n = n->parent) {
        n->place.rank = r->kv_rank; /* held nodes are in no list, so no order changes */
    }
}

uint64_t prefix_idle_blocks(const struct prefix_node *node)
{
    uint64_t blocks = 0;
    for (const struct prefix_node *n = node; n != NULL; n = n->parent) {
        blocks += prefix_held(n) == PREFIX_IDLE ? n->to - n->from : 0;
    }
    return blocks;
}

uint64_t prefix_hash(const struct core *c, uint32_t row, uint32_t tokens)
{
    const struct trace *t = c->setup->trace;
    uint32_t stream = row;
    while (t->graph != NULL && t->graph->source != NULL && stream < t->n &&
           t->graph->source[stream] != TRACE_NO_ROW && tokens <= t->rows[stream].prefix_tokens) {
        stream = t->graph->source[stream];
    }
    return hash_u64(hash_u64(HASH_INIT, stream), tokens);
}

/* Makes the request hold this node instead of r->prefix. */
static void take(struct core *c, struct full_request *r, struct prefix_node *node)
{
    enum prefix_hold how = r->prefix_idle ? PREFIX_IDLE : PREFIX_USED;
    prefix_hold(c, node, PREFIX_FREE, how); /* first, because the old node may be on its path */
    prefix_hold(c, r->prefix, how, PREFIX_FREE);
    r->prefix = node;
    prefix_rank(r);
}

void prefix_match(struct core *c, struct full_request *r)
{
    uint32_t block_tokens = c->setup->kv_block_tokens;
    SIM_ASSERT(r->pub->kv_tokens == 0 || r->prefix_idle || r->pub->kv_swapped);
    struct prefix_node *node = prefix_find(c, r->row, (r->pub->input_tokens - 1) / block_tokens);
    uint32_t blocks = node != NULL ? node->to : 0;
    uint32_t tokens = blocks * block_tokens;
    /* KV on flash is kept only if it has more tokens than the cached prefix. */
    if (tokens > r->pub->kv_tokens || (r->pub->kv_swapped && tokens == r->pub->kv_tokens)) {
        r->prefix_idle = true;
        take(c, r, node);
        r->kv_blocks = blocks;
        r->pub->kv_tokens = tokens;
        c->sched->reuse_changes += tokens != r->pub->reused_tokens;
        r->pub->reused_tokens = tokens;
        r->pub->kv_swapped = false;
    }
}

void prefix_match_waiting(struct core *c)
{
    struct prefixes *p = c->prefixes;
    if (p->matched == p->changes) {
        return;
    }
    p->matched = p->changes;
    for (struct full_request *r = c->live_head; r != NULL; r = r->next_live) {
        /* It was neither served nor evicted. */
        bool waits = r->pub->first_service_ns == TIME_NEVER_NS && r->pub->pass == NULL &&
                     r->pub->preemptions == 0;
        if (waits && !r->pub->kv_swapped && !r->kv_moving &&
            (r->prefix_idle || r->pub->kv_tokens == 0)) {
            prefix_match(c, r);
        }
    }
}

void prefix_changed(struct core *c)
{
    c->prefixes->changes++;
}

void prefix_share(struct core *c, struct full_request *r)
{
    uint32_t full = r->pub->kv_tokens / c->setup->kv_block_tokens;
    uint32_t shared = kv_blocks_shared(r);
    if (full <= shared || r->pub->kv_swapped || r->kv_moving) {
        return;
    }
    SIM_ASSERT(full <= r->kv_blocks && !r->prefix_idle);
    struct prefix_node *n = r->prefix;
    for (uint32_t k = prefix_way(c, r->row, shared, full); k-- > 0;) {
        const struct step s = c->prefixes->way[k];
        while ((n != NULL ? n->to : 0) < s.end) {
            n = prefix_go_down(c, n, s);
        }
    }
    take(c, r, n);
}

void prefix_keep(struct core *c, struct full_request *r, uint32_t blocks)
{
    struct prefix_node *n = prefix_before(r->prefix, blocks);
    take(c, r, n != NULL && n->to > blocks ? prefix_split(c, n, blocks) : n);
}
