/* Moves KV for a policy: evicts that of a request, moves it to flash and back, and pins or drops
 * that of a session. The session's next turn takes it on arrival. */
#include "sim/core/consistent.h"
#include "sim/core/kv.h"

/* A move to flash that has not ended is abandoned, because the KV is still in memory. */
uint32_t kv_take_cold(struct core *c, struct full_request *r, uint32_t want_tokens)
{
    struct cold_kv *k = cold_of(c, r->row);
    SIM_ASSERT(k != NULL && r->kv_blocks == 0 && r->pub->kv_tokens == 0);
    /* prefix_match finds shared KV; then only KV on flash is the session's own. */
    bool own = c->prefixes == NULL || k->state == COLD_SWAPPED;
    uint32_t got = !own ? 0 : k->tokens < want_tokens ? k->tokens : want_tokens;
    cold_forget(c, k);
    r->kv_blocks = (uint32_t)(k->blocks / kv_units(c, r, 1)); /* the same model: one session */
    r->pub->kv_swapped = k->state == COLD_SWAPPED && got > 0;
    kv_shrink(c, r, got);
    return got;
}

/* Moves KV of a request to or from flash; core_kv_moved follows. */
static int request_transfer(struct core *c, struct full_request *r, enum counter which, bool in)
{
    SIM_ASSERT(!r->kv_moving && r->pub->pass == NULL && in == r->pub->kv_swapped);
    r->kv_moving = true;
    core_count(c, which);
    double bytes = kv_tokens_bytes(c, r->pub->model, r->pub->kv_tokens);
    c->exec_ops->kv_move(c->exec, r, r->row, bytes, in);
    return 0;
}

static int request_read_back(struct core *c, struct full_request *r)
{
    REFUSE_IF(c, !r->pub->kv_swapped || r->kv_moving, EVICT_REFUSED, -EINVAL,
              "the request's KV is not on flash, or is on its way");
    /* Blocks are reserved when the move begins. */
    bool there = kv_reserve(c, r, 0) == 0;
    REFUSE_IF(c, !there, EVICT_REFUSED, -ENOMEM, "not enough free KV to read it back");
    return request_transfer(c, r, COUNTER_KV_SWAP_INS, true);
}

/* Evicts KV of a live request, which counts as a preemption. */
static int request_evict(struct core *c, struct full_request *r, uint32_t keep, enum kv_place to)
{
    REFUSE_IF(c, r->pub->pass != NULL, EVICT_REFUSED, -EINVAL, "the request is in a pass");
    REFUSE_IF(c, r->kv_moving || r->pub->kv_swapped, EVICT_REFUSED, -EINVAL,
              "the request's KV is on flash already, or on its way");
    REFUSE_IF(c, keep >= r->pub->kv_tokens || (to == KV_FLASH && keep > 0), EVICT_REFUSED, -EINVAL,
              "nothing would be moved, or a part to flash: KV goes there whole");
    kv_prefix_used(c, r); /* so that it cannot be dropped during the move */
    r->pub->preemptions++;
    if (to == KV_FLASH) {
        return request_transfer(c, r, COUNTER_KV_SWAP_OUTS, false);
    }
    if (c->prefixes != NULL) {
        /* Whole blocks stay cached; nothing is written into a shared block, so keep is whole
         * blocks. */
        prefix_share(c, r);
        uint32_t whole = keep - keep % c->setup->kv_block_tokens;
        keep = keep < kv_blocks_shared(r) * c->setup->kv_block_tokens ? whole : keep;
    }
    uint64_t lost = r->pub->kv_tokens - keep;
    r->pub->kv_tokens = keep;
    r->drafted_tokens = r->drafted_tokens < keep ? r->drafted_tokens : keep;
    kv_shrink(c, r, keep);
    BECOMES(request, r->pub->state, REQUEST_STATE_QUEUED);
    core_count(c, COUNTER_KV_RECOMPUTE_EVICTIONS);
    CORE_OBSERVE(c, kv_lost, c->sched->now_ns, r->pub, lost);
    return 0;
}

static int session_move(struct core *c, uint32_t session_id, enum kv_place to)
{
    struct cold_kv *k = cold_find(&c->cold_cached, session_id);
    k = k != NULL ? k : cold_find(&c->cold_held, session_id);
    REFUSE_IF(c, k == NULL, EVICT_REFUSED, -ENOENT, "the session has no KV between two turns");
    bool same =
        (to == KV_CACHE && k->state == COLD_CACHED) || (to == KV_MEMORY && k->state == COLD_PINNED);
    /* KV on flash stays there until the session's next turn. */
    REFUSE_IF(c, same || k->state == COLD_MOVING || (k->state == COLD_SWAPPED && to != KV_NOWHERE),
              EVICT_REFUSED, -EALREADY,
              "the session's KV is there already, or on its way to flash");
    bool shares = c->prefixes != NULL && k->state != COLD_SWAPPED;
    struct prefix_node *shared = shares ? prefix_find(c, k->left_by, UINT32_MAX) : NULL;
    REFUSE_IF(c, shares && shared == NULL, EVICT_REFUSED, -ENOENT,
              "the session's KV has given way");
    if (to == KV_NOWHERE) {
        cold_drop(c, k);
        if (shared != NULL) {
            prefix_drop(c, shared, session_id);
        }
        return 0;
    }
    static const enum cold_state becomes[] = {
        [KV_MEMORY] = COLD_PINNED, [KV_CACHE] = COLD_CACHED, [KV_FLASH] = COLD_MOVING};
    cold_becomes(c, k, becomes[to]);
    if (shared != NULL) {
        struct prefix_node *held = to == KV_CACHE ? NULL : shared;
        prefix_hold(c, held, PREFIX_FREE, PREFIX_USED);
        cold_let_go(c, k);
        k->prefix = held;
        k->tokens = shared->to * c->setup->kv_block_tokens;
    }
    if (to == KV_FLASH) {
        core_count(c, COUNTER_KV_SWAP_OUTS);
        uint8_t model = trace_graph_model(c->setup->trace->graph, k->left_by);
        c->exec_ops->kv_move(c->exec, NULL, k->row, kv_tokens_bytes(c, model, k->tokens), false);
    }
    return 0;
}

int core_kv_move(struct core *c, struct kv_part part, enum kv_place to)
{
    REFUSE_IF(c, (c->caps & CAP_KV_MOVE) == 0, EVICT_REFUSED, -EPERM,
              "this executor does not move KV");
    REFUSE_IF(c, to > KV_NOWHERE, EVICT_REFUSED, -EINVAL, "there is no such place");
    if (part.of_session) {
        return session_move(c, part.session_id, to);
    }
    struct full_request *r = core_request(part.request);
    REFUSE_IF(c, r == NULL || !r->alive || to == KV_CACHE, EVICT_REFUSED, -EINVAL,
              to == KV_CACHE ? "cache is for what a session's last turn left"
                             : "the request has left, or there is none");
    return to == KV_MEMORY ? request_read_back(c, r) : request_evict(c, r, part.from_token, to);
}
