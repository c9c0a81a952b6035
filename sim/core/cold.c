#include "sim/core/consistent.h"
#include "sim/core/kv.h"

static void link_up(struct core *c, struct cold_kv *k)
{
    bool cached = k->state == COLD_CACHED;
    ranked_add(cached ? &c->cold_cached : &c->cold_held, &k->place);
    c->kv_blocks_cold += cached ? k->blocks : 0;
}

static void unlink_it(struct core *c, struct cold_kv *k)
{
    bool cached = k->state == COLD_CACHED;
    ranked_remove(cached ? &c->cold_cached : &c->cold_held, &k->place);
    c->kv_blocks_cold -= cached ? k->blocks : 0;
}

void cold_becomes(struct core *c, struct cold_kv *k, enum cold_state state)
{
    unlink_it(c, k);
    BECOMES(cold, k->state, state);
    link_up(c, k);
}

void cold_let_go(struct core *c, struct cold_kv *k)
{
    prefix_hold(c, k->prefix, PREFIX_USED, PREFIX_FREE);
    k->prefix = NULL;
}

void cold_forget(struct core *c, struct cold_kv *k)
{
    unlink_it(c, k);
    cold_let_go(c, k);
    map_remove(&c->cold, k->row);
    FREE_PUT(c->free_cold, k);
}

void cold_drop(struct core *c, struct cold_kv *k)
{
    cold_forget(c, k);
    c->kv_blocks_free += k->blocks;
    core_count(c, COUNTER_KV_COLD_DROPS);
}

void kv_keep_cold(struct core *c, struct full_request *r, uint32_t row)
{
    SIM_ASSERT(r->kv_blocks > 0 && !r->prefix_idle && kv_has_room(c, r, 0));
    SIM_ASSERT(cold_of(c, row) == NULL);
    struct cold_kv *k;
    FREE_TAKE(c->free_cold, &c->arena, k);
    *(struct cold_kv **)map_add(&c->cold, row) = k;
    *k = (struct cold_kv){.place.rank = r->kv_rank,
                          .row = row,
                          .session_id = r->pub->session_id,
                          .left_by = r->row,
                          .state = COLD_CACHED};
    if (c->prefixes == NULL) {
        k->tokens = r->pub->kv_tokens;
        k->blocks = kv_units(c, r, r->kv_blocks + kv_state_blocks(c, r));
        r->kv_blocks = 0;
        r->pub->kv_state_tokens = c->models[r->pub->model].kv_state_tokens;
    }
    link_up(c, k);
}

struct cold_kv *cold_find(const struct ranked_list *l, uint32_t session_id)
{
    struct cold_kv *k = (struct cold_kv *)l->last;
    while (k != NULL && k->session_id != session_id) {
        k = (struct cold_kv *)k->place.before;
    }
    return k;
}
