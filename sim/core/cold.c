
#include "sim/core/consistent.h"
#include "sim/core/kv.h"

static struct cold_list *cold_list_of(struct core *c, const struct cold_kv *k)
{
    return k->state == COLD_CACHED ? &c->cold_cached : &c->cold_held;
}

void cold_unlink(struct core *c, uint32_t i)
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

void cold_link(struct core *c, uint32_t i, enum cold_state state)
{
    struct cold_kv *k = &c->cold[i];
    BECOMES(cold, k->state, state); /* first: it says which list it belongs to */
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

void cold_let_go(struct core *c, struct cold_kv *k)
{
    prefix_hold(c, k->prefix, PREFIX_USED, PREFIX_FREE);
    k->prefix = NULL;
}

void cold_drop(struct core *c, uint32_t i)
{
    cold_unlink(c, i);
    cold_let_go(c, &c->cold[i]);
    c->kv_blocks_free += c->cold[i].blocks;
    c->cold[i].blocks = 0;
    c->cold[i].tokens = 0;
    BECOMES(cold, c->cold[i].state, COLD_GONE);
    core_count(c, COUNTER_KV_COLD_DROPS);
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

uint32_t cold_find(const struct core *c, const struct cold_list *l, uint32_t session_id)
{
    uint32_t i = l->newest;
    while (i != KV_NO_COLD && c->cold[i].session_id != session_id) {
        i = c->cold[i].prev;
    }
    return i;
}
