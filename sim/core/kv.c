/* KV ledger: blocks of tokens, live and cold (finished turns kept for the session's next one).
 * Cold blocks give way to live ones, those of the lowest rank and the oldest of them first
 * (clauses.md B.10: finished-flow KV first). */
#include <errno.h>
#include <math.h>

#include "sim/core/consistent.h"

/* Whole blocks: the last one of a sequence may be part empty, and nobody else may use the rest. */
static uint32_t blocks_for(const struct core *c, uint64_t tokens)
{
    uint32_t b = c->setup->kv_block_tokens;
    return (uint32_t)((tokens + b - 1) / b);
}

static uint64_t divisor(uint64_t a, uint64_t b)
{
    return b == 0 ? a : divisor(b, a % b);
}

/* Bytes of one token's KV of a model, and of that of the model that drafts for it. */
static double token_bytes(const struct core *c, uint32_t model)
{
    uint32_t draft = c->sched->draft_model;
    double own = c->models[model].llm->kv_bytes_per_token;
    return draft > 0 && draft != model ? own + c->models[draft].llm->kv_bytes_per_token : own;
}

void kv_models(struct core *c)
{
    uint64_t unit = 0;
    for (uint32_t i = 0; i < c->n_models; i++) {
        unit = divisor((uint64_t)ceil(token_bytes(c, i)), unit);
    }
    c->kv_unit_bytes = c->n_models == 1 ? c->models[0].llm->kv_bytes_per_token : (double)unit;
    c->kv_units_most = 1;
    for (uint32_t i = 0; i < c->n_models; i++) {
        uint64_t bytes = (uint64_t)ceil(token_bytes(c, i));
        c->models[i].kv_units = c->n_models == 1 ? 1 : (uint32_t)(bytes / unit);
        c->kv_units_most =
            c->models[i].kv_units > c->kv_units_most ? c->models[i].kv_units : c->kv_units_most;
    }
}

void kv_init(struct core *c)
{
    c->kv_blocks_total =
        c->result->kv_capacity_tokens / c->setup->kv_block_tokens * c->kv_units_most;
    c->kv_blocks_free = c->kv_blocks_total;
    c->cold_free = KV_NO_COLD;
    /* Two lists, so that the oldest that may be dropped is found at once: what is pinned, moving or
     * on flash gives no memory. */
    c->cold_cached = (struct cold_list){KV_NO_COLD, KV_NO_COLD};
    c->cold_held = c->cold_cached;
}

/* Of several models: idle weights give way, too. Apart, because the function below is asked often.
 */
__attribute__((noinline)) static uint64_t free_of_several(const struct core *c, uint64_t units)
{
    units += resident_lent_for(c, c->resident_bytes) -
             resident_lent_for(c, c->resident_bytes - weights_idle_bytes(c));
    units -= c->kv_blocks_owed < units ? c->kv_blocks_owed : units;
    return units / c->kv_units_most * c->setup->kv_block_tokens;
}

uint64_t kv_free_tokens(const struct core *c)
{
    uint64_t units = c->kv_blocks_free + c->kv_blocks_cold + c->kv_blocks_idle;
    if (c->n_models > 1) {
        return free_of_several(c, units);
    }
    units -= c->kv_blocks_owed < units ? c->kv_blocks_owed : units;
    return units * c->setup->kv_block_tokens;
}

uint64_t kv_most_tokens(const struct core *c)
{
    uint64_t units = c->kv_blocks_total - c->kv_blocks_mapped;
    return (c->n_models > 1 ? units / c->kv_units_most : units) * c->setup->kv_block_tokens;
}

uint64_t kv_most_tokens_of(const struct core *c, uint32_t model)
{
    if (c->n_models == 1) {
        return kv_most_tokens(c);
    }
    uint64_t units = c->kv_blocks_total - weights_least_lent(c, model);
    return units / c->models[model].kv_units * c->setup->kv_block_tokens;
}

static uint64_t held_units(const struct core *c)
{
    return c->kv_blocks_total - c->kv_blocks_free - c->kv_blocks_lent;
}

uint64_t kv_held_tokens(const struct core *c)
{
    uint64_t units = held_units(c);
    if (c->n_models > 1) {
        units = (units + c->kv_units_most - 1) / c->kv_units_most;
    }
    return units * c->setup->kv_block_tokens;
}

double kv_held_bytes(const struct core *c)
{
    return (double)(held_units(c) * c->setup->kv_block_tokens) * c->kv_unit_bytes;
}

double kv_tokens_bytes(const struct core *c, uint32_t model, uint64_t tokens)
{
    return (double)tokens * token_bytes(c, model);
}

/* Every block is free, lent, cold or some request's: what is counted apart never exceeds them. */
static inline void check_blocks(const struct core *c)
{
    SIM_REQUIRE(c->kv_blocks_free + c->kv_blocks_lent + c->kv_blocks_cold + c->kv_blocks_idle <=
                    c->kv_blocks_total,
                "KV blocks: %llu free, %llu lent, %llu cold, %llu idle of %llu",
                (unsigned long long)c->kv_blocks_free, (unsigned long long)c->kv_blocks_lent,
                (unsigned long long)c->kv_blocks_cold, (unsigned long long)c->kv_blocks_idle,
                (unsigned long long)c->kv_blocks_total);
}

static inline void note_peak(struct core *c)
{
    uint64_t used = kv_held_tokens(c);
    bool most = used > c->result->kv_peak_tokens;
    c->result->kv_peak_tokens = most ? used : c->result->kv_peak_tokens;
    /* Less KV than once may be more memory, beside residents that were not there then; and of
     * several models as many whole blocks. */
    if (most || c->resident_bytes > 0.0 || c->n_models > 1) {
        core_memory_note(c);
    }
}

static struct cold_list *cold_list_of(struct core *c, const struct cold_kv *k)
{
    return k->state == COLD_CACHED ? &c->cold_cached : &c->cold_held;
}

static void cold_unlink(struct core *c, uint32_t i)
{
    struct cold_kv *k = &c->cold[i];
    struct cold_list *l = cold_list_of(c, k);
    SIM_ASSERT(k->state != COLD_GONE);
    SIM_ASSERT(k->prev == KV_NO_COLD ? l->oldest == i : c->cold[k->prev].next == i);
    SIM_ASSERT(k->next == KV_NO_COLD ? l->newest == i : c->cold[k->next].prev == i);
    if (k->prev == KV_NO_COLD) {
        l->oldest = k->next;
    } else {
        c->cold[k->prev].next = k->next;
    }
    if (k->next == KV_NO_COLD) {
        l->newest = k->prev;
    } else {
        c->cold[k->next].prev = k->prev;
    }
    c->kv_blocks_cold -= k->state == COLD_CACHED ? k->blocks : 0;
}

static void cold_link(struct core *c, uint32_t i, enum cold_state state)
{
    struct cold_kv *k = &c->cold[i];
    SIM_ASSERT(cold_may_become(k->state, state));
    k->state = state; /* first: it says which list it belongs to */
    struct cold_list *l = cold_list_of(c, k);
    k->next = KV_NO_COLD;
    k->prev = l->newest;
    while (k->prev != KV_NO_COLD && c->cold[k->prev].rank > k->rank) {
        k->next = k->prev;
        k->prev = c->cold[k->prev].prev;
    }
    *(k->prev == KV_NO_COLD ? &l->oldest : &c->cold[k->prev].next) = i;
    *(k->next == KV_NO_COLD ? &l->newest : &c->cold[k->next].prev) = i;
    c->kv_blocks_cold += state == COLD_CACHED ? k->blocks : 0;
}

/* A session's shared prefix is no longer pinned, or on its way. */
static void cold_let_go(struct core *c, struct cold_kv *k)
{
    prefix_hold(c, k->prefix, PREFIX_USED, PREFIX_FREE);
    k->prefix = NULL;
}

/* Entries stay allocated until their turn arrives, so an executor's event can name one safely. */
static void cold_drop(struct core *c, uint32_t i)
{
    SIM_ASSERT(cold_may_become(c->cold[i].state, COLD_GONE));
    cold_unlink(c, i);
    cold_let_go(c, &c->cold[i]);
    c->kv_blocks_free += c->cold[i].blocks;
    c->cold[i].blocks = 0;
    c->cold[i].tokens = 0;
    c->cold[i].state = COLD_GONE;
    core_count(c, COUNTER_KV_COLD_DROPS);
}

/* The prefix a request found at arrival is still only cache until it is first worked on: the newest
 * such request gives it up when memory is short. Keeps policies without eviction from locking up.
 */
static bool drop_idle_prefix(struct core *c, const struct full_request *but)
{
    for (struct full_request *r = c->live_head; r != NULL; r = r->next_live) {
        if (r->prefix_idle && r != but && r->pub->pass == NULL) {
            SIM_ASSERT(r->kv_blocks > 0 && r->pub->generated_tokens == 0 && !r->pub->kv_swapped);
            kv_prefix_used(c, r);
            kv_release(c, r);
            r->pub->kv_tokens = 0;
            r->drafted_tokens = 0;
            r->pub->reused_tokens = 0;
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
    /* Also when passes of it have run and were cancelled: what they computed is gone. */
    bool untouched = r->pub->kv_tokens > 0 && r->pub->kv_tokens == r->pub->reused_tokens &&
                     r->pub->generated_tokens == 0 && r->pub->pass == NULL;
    if (untouched && !r->prefix_idle && !r->pub->kv_swapped) {
        r->prefix_idle = true;
        c->kv_blocks_idle += kv_units(c, r, r->kv_blocks - kv_blocks_shared(r));
        prefix_hold(c, r->prefix, PREFIX_USED, PREFIX_IDLE);
    }
}

/* Makes that many blocks free: finished turns go first, then prefixes nobody has worked on, but
 * not that of `but`. */
static int make_free(struct core *c, uint64_t blocks, const struct full_request *but)
{
    /* Its own prefix is what it builds on: to give that way would be to compute it again. */
    uint64_t own = but != NULL && but->prefix_idle ? kv_units(c, but, but->kv_blocks) : 0;
    /* Asked first: where it cannot be enough, nothing is dropped in vain. */
    if (blocks > c->kv_blocks_free + c->kv_blocks_cold + c->kv_blocks_idle - own) {
        return -ENOMEM;
    }
    while (blocks > c->kv_blocks_free) {
        if (c->kv_blocks_cold > 0 && c->prefixes != NULL) {
            prefix_evict(c, blocks - c->kv_blocks_free);
        } else if (c->kv_blocks_cold > 0) {
            SIM_ASSERT(c->cold_cached.oldest != KV_NO_COLD);
            cold_drop(c, c->cold_cached.oldest);
        } else if (!drop_idle_prefix(c, but)) {
            return -ENOMEM; /* what is left belongs to this very pass */
        }
    }
    SIM_ASSERT(blocks <= c->kv_blocks_free);
    return 0;
}

int kv_lend(struct core *c, uint64_t blocks)
{
    if (blocks == c->kv_blocks_lent + c->kv_blocks_owed) {
        return 0; /* it was promised already, there or not */
    }
    if (blocks > c->kv_blocks_lent && make_free(c, blocks - c->kv_blocks_lent, NULL) != 0) {
        return -ENOMEM;
    }
    SIM_ASSERT(blocks <= c->kv_blocks_free + c->kv_blocks_lent);
    c->kv_blocks_free += c->kv_blocks_lent;
    c->kv_blocks_free -= blocks;
    c->kv_blocks_lent = blocks;
    c->kv_blocks_owed = 0;
    check_blocks(c);
    return 0;
}

void kv_collect(struct core *c, const struct full_request *but)
{
    uint64_t own = but != NULL && but->prefix_idle ? kv_units(c, but, but->kv_blocks) : 0;
    uint64_t there = c->kv_blocks_free + c->kv_blocks_cold + c->kv_blocks_idle - own;
    uint64_t some = c->kv_blocks_owed < there ? c->kv_blocks_owed : there;
    (void)make_free(c, some, but); /* less where the rest belongs to the pass that is formed */
    some = some < c->kv_blocks_free ? some : c->kv_blocks_free;
    c->kv_blocks_free -= some;
    c->kv_blocks_lent += some;
    c->kv_blocks_owed -= some;
    check_blocks(c);
}

void kv_owe(struct core *c, uint64_t blocks)
{
    SIM_ASSERT(blocks <= c->kv_blocks_total);
    if (blocks <= c->kv_blocks_lent) {
        (void)kv_lend(c, blocks); /* less always fits */
        return;
    }
    c->kv_blocks_owed = blocks - c->kv_blocks_lent;
    kv_collect(c, NULL);
}

uint64_t kv_blocks_lacking(const struct core *c, const struct full_request *r, uint32_t new_tokens)
{
    uint32_t need = blocks_for(c, (uint64_t)r->pub->kv_tokens + new_tokens);
    return need > r->kv_blocks ? need - r->kv_blocks : 0;
}

int kv_grow(struct core *c, struct full_request *r, uint32_t new_tokens)
{
    uint64_t tokens = (uint64_t)r->pub->kv_tokens + new_tokens;
    uint32_t need = r->kv_blocks + 1; /* mostly one more, told without a division */
    if (tokens > (uint64_t)need * c->setup->kv_block_tokens) {
        need = blocks_for(c, tokens);
    }
    SIM_ASSERT(need == blocks_for(c, tokens) && !kv_has_room(c, r, new_tokens));
    uint64_t extra = kv_units(c, r, need - r->kv_blocks);
    if (c->kv_blocks_owed > 0) { /* others were promised them first */
        kv_collect(c, r);
    }
    while (extra > c->kv_blocks_free && make_free(c, extra, r) != 0) {
        if (!weights_give_way(c)) {
            return -ENOMEM;
        }
    }
    c->kv_blocks_free -= extra;
    r->kv_blocks = need;
    SIM_ASSERT(kv_has_room(c, r, new_tokens));
    check_blocks(c);
    note_peak(c);
    return 0;
}

void kv_release(struct core *c, struct full_request *r)
{
    SIM_ASSERT(!r->prefix_idle); /* or they would be counted as idle for ever */
    c->kv_blocks_free += kv_units(c, r, r->kv_blocks - kv_blocks_shared(r));
    prefix_hold(c, r->prefix, PREFIX_USED, PREFIX_FREE);
    r->prefix = NULL;
    r->kv_blocks = 0;
    check_blocks(c);
}

void kv_shrink(struct core *c, struct full_request *r, uint32_t keep_tokens)
{
    uint32_t keep = blocks_for(c, keep_tokens);
    SIM_ASSERT(!r->prefix_idle || keep == r->kv_blocks);
    if (keep < r->kv_blocks) {
        uint32_t shared = kv_blocks_shared(r);
        c->kv_blocks_free += kv_units(c, r, r->kv_blocks - (keep > shared ? keep : shared));
        if (keep < shared) {
            prefix_keep(c, r, keep);
        }
        r->kv_blocks = keep;
    }
}

uint32_t kv_keep_cold(struct core *c, struct full_request *r, uint32_t row)
{
    SIM_ASSERT(r->kv_blocks > 0 && !r->prefix_idle && kv_has_room(c, r, 0));
    uint32_t i = c->cold_free;
    if (i == KV_NO_COLD) {
        uint32_t cap = c->cold_cap == 0 ? 64 : c->cold_cap * 2;
        c->cold = xrealloc(c->cold, cap * sizeof *c->cold);
        /* Backwards, so that entries are used from the first one on. */
        for (uint32_t j = cap; j-- > c->cold_cap;) {
            c->cold[j] = (struct cold_kv){.state = COLD_GONE};
            c->cold[j].next = c->cold_free;
            c->cold_free = j;
        }
        c->cold_cap = cap;
        i = c->cold_free;
    }
    struct cold_kv *k = &c->cold[i];
    SIM_ASSERT(k->state == COLD_GONE);
    c->cold_free = k->next;
    k->row = row;
    k->session_id = r->pub->session_id;
    k->left_by = r->row;
    k->rank = r->kv_rank;
    k->generation++; /* a move that was begun for the entry's last use is not of this one */
    if (c->prefixes == NULL) {
        k->tokens = r->pub->kv_tokens;
        k->blocks = kv_units(c, r, r->kv_blocks);
        r->kv_blocks = 0;
    }
    cold_link(c, i, COLD_CACHED);
    return i;
}

/* Hands at most want_tokens of kept KV to the arriving turn and frees the entry. A move to flash
 * that is not through is given up: the KV is still here. */
uint32_t kv_take_cold(struct core *c, uint32_t cold, struct full_request *r, uint32_t want_tokens)
{
    SIM_REQUIRE(cold < c->cold_cap, "cold KV %u of %u", cold, c->cold_cap);
    struct cold_kv *k = &c->cold[cold];
    SIM_ASSERT(r->kv_blocks == 0 && r->pub->kv_tokens == 0);
    SIM_ASSERT(k->state == COLD_GONE || k->row == r->row); /* it was kept for this very turn */
    uint32_t got = 0;
    if (k->state != COLD_GONE) {
        cold_unlink(c, cold);
        /* What is shared the request finds by itself: only flash is the session's own. */
        bool own = c->prefixes == NULL || k->state == COLD_SWAPPED;
        got = !own ? 0 : k->tokens < want_tokens ? k->tokens : want_tokens;
        cold_let_go(c, k);
        r->kv_blocks = (uint32_t)(k->blocks / kv_units(c, r, 1)); /* of the same session: model */
        r->pub->kv_swapped = k->state == COLD_SWAPPED && got > 0;
        kv_shrink(c, r, got);
    }
    k->state = COLD_GONE;
    k->next = c->cold_free;
    c->cold_free = cold;
    return got;
}

static uint32_t cold_find(const struct core *c, const struct cold_list *l, uint32_t session_id)
{
    uint32_t i = l->newest;
    while (i != KV_NO_COLD && c->cold[i].session_id != session_id) {
        i = c->cold[i].prev;
    }
    return i;
}

/* Moves KV of a request to or from flash; core_kv_moved follows. */
static int request_transfer(struct core *c, struct full_request *r, enum counter which, bool in)
{
    SIM_ASSERT(!r->kv_moving && r->pub->pass == NULL && in == r->pub->kv_swapped);
    r->kv_moving = true;
    core_count(c, which);
    c->exec_ops->kv_move(c->exec, r, kv_tokens_bytes(c, r->pub->model, r->pub->kv_tokens), in);
    return 0;
}

static int refuse(struct core *c, int status, const char *why)
{
    return core_refuse(c, COUNTER_EVICT_REFUSED, status, why);
}

static int request_read_back(struct core *c, struct full_request *r)
{
    if (!r->pub->kv_swapped || r->kv_moving) {
        return refuse(c, -EINVAL, "the request's KV is not on flash, or is on its way");
    }
    /* Its blocks before its bytes: they are taken when the move begins. */
    if (kv_reserve(c, r, 0) != 0) {
        return refuse(c, -ENOMEM, "not enough free KV to read it back");
    }
    return request_transfer(c, r, COUNTER_KV_SWAP_INS, true);
}

/* What a live request loses against its will counts as a preemption of it. */
static int request_evict(struct core *c, struct full_request *r, uint32_t keep, enum kv_place to)
{
    if (r->pub->pass != NULL) {
        return refuse(c, -EINVAL, "the request is in a pass");
    }
    if (r->kv_moving || r->pub->kv_swapped) {
        return refuse(c, -EINVAL, "the request's KV is on flash already, or on its way");
    }
    if (keep >= r->pub->kv_tokens || (to == KV_FLASH && keep > 0)) {
        return refuse(c, -EINVAL,
                      "nothing would be moved, or a part to flash: KV goes there whole");
    }
    kv_prefix_used(c, r); /* or what is to be moved could be dropped while it is on its way */
    r->pub->preemptions++;
    if (to == KV_FLASH) {
        return request_transfer(c, r, COUNTER_KV_SWAP_OUTS, false);
    }
    if (c->prefixes != NULL) {
        /* Whole blocks stay cached, and nobody writes into the middle of one. */
        prefix_share(c, r);
        uint32_t whole = keep - keep % c->setup->kv_block_tokens;
        keep = keep < kv_blocks_shared(r) * c->setup->kv_block_tokens ? whole : keep;
    }
    uint64_t lost = r->pub->kv_tokens - keep;
    r->pub->kv_tokens = keep;
    r->drafted_tokens = r->drafted_tokens < keep ? r->drafted_tokens : keep;
    kv_shrink(c, r, keep);
    SIM_ASSERT(r->pub->state == REQUEST_STATE_QUEUED ||
               request_may_become(r->pub->state, REQUEST_STATE_QUEUED));
    r->pub->state = REQUEST_STATE_QUEUED;
    core_count(c, COUNTER_KV_RECOMPUTE_EVICTIONS);
    CORE_OBSERVE(c, kv_lost, c->sched->now_ns, r->pub, lost);
    return 0;
}

static int session_move(struct core *c, uint32_t session_id, enum kv_place to)
{
    uint32_t i = cold_find(c, &c->cold_cached, session_id);
    i = i != KV_NO_COLD ? i : cold_find(c, &c->cold_held, session_id);
    if (i == KV_NO_COLD) {
        return refuse(c, -ENOENT, "the session has no KV between two turns");
    }
    struct cold_kv *k = &c->cold[i];
    bool same =
        (to == KV_CACHE && k->state == COLD_CACHED) || (to == KV_MEMORY && k->state == COLD_PINNED);
    /* What is on flash stays there until its turn comes and asks for it. */
    if (same || k->state == COLD_MOVING || (k->state == COLD_SWAPPED && to != KV_NOWHERE)) {
        return refuse(c, -EALREADY, "the session's KV is there already, or on its way to flash");
    }
    bool shares = c->prefixes != NULL && k->state != COLD_SWAPPED;
    struct prefix_node *shared = shares ? prefix_find(c, k->left_by, UINT32_MAX) : NULL;
    if (shares && shared == NULL) {
        return refuse(c, -ENOENT, "the session's KV has given way");
    }
    if (to == KV_NOWHERE) {
        cold_drop(c, i);
        if (shared != NULL) {
            prefix_drop(c, shared, session_id);
        }
        return 0;
    }
    static const enum cold_state becomes[] = {
        [KV_MEMORY] = COLD_PINNED, [KV_CACHE] = COLD_CACHED, [KV_FLASH] = COLD_MOVING};
    cold_unlink(c, i); /* out of the list of its old state, behind those of the new one */
    cold_link(c, i, becomes[to]);
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
        c->exec_ops->cold_move(c->exec, i, k->generation, kv_tokens_bytes(c, model, k->tokens));
    }
    return 0;
}

int core_kv_move(struct core *c, struct kv_part part, enum kv_place to)
{
    if ((c->exec_ops->caps & c->setup->caps & CAP_KV_MOVE) == 0) {
        return refuse(c, -EPERM, "this executor does not move KV");
    }
    if (to > KV_NOWHERE) {
        return refuse(c, -EINVAL, "there is no such place");
    }
    if (part.of_session) {
        return session_move(c, part.session_id, to);
    }
    struct full_request *r = core_request(part.request);
    if (r == NULL || !r->alive || to == KV_CACHE) {
        return refuse(c, -EINVAL,
                      to == KV_CACHE ? "cache is for what a session's last turn left"
                                     : "the request has left, or there is none");
    }
    return to == KV_MEMORY ? request_read_back(c, r) : request_evict(c, r, part.from_token, to);
}

void core_cold_moved(struct core *c, uint32_t cold, uint32_t generation)
{
    struct cold_kv *k = &c->cold[cold];
    SIM_ASSERT(cold < c->cold_cap && generation <= k->generation);
    /* Its turn may have come meanwhile, and the entry be another's. */
    if (k->generation == generation && k->state == COLD_MOVING) {
        c->result->events++;
        struct prefix_node *shared = k->prefix;
        c->kv_blocks_free += k->blocks;
        k->blocks = 0;
        cold_let_go(c, k);
        if (shared != NULL) {
            prefix_drop(c, shared, k->session_id);
        }
        SIM_ASSERT(cold_may_become(k->state, COLD_SWAPPED));
        k->state = COLD_SWAPPED; /* in the same list: held */
        check_blocks(c);
    }
}
