/* Checks the tree of prefixes, under SIM_ASSERT only. */
#include "sim/core/prefix_impl.h"

/* Counts the holders of every node: requests, pinned sessions and children. Caller frees. */
static uint32_t *holders_of(const struct core *c)
{
    const struct prefixes *p = c->prefixes;
    uint32_t *n = xcalloc(3 * (size_t)p->n_nodes + 3, sizeof *n);
    for (const struct full_request *r = c->live_head; r != NULL; r = r->next_live) {
        if (r->prefix != NULL) {
            n[3 * r->prefix->number + (r->prefix_idle ? PREFIX_IDLE : PREFIX_USED)]++;
        }
    }
    for (const struct ranked *x = c->cold_held.first; x != NULL; x = x->after) {
        const struct cold_kv *k = (const struct cold_kv *)x;
        if (k->prefix != NULL) {
            n[3 * k->prefix->number + PREFIX_USED]++;
        }
    }
    for (uint32_t s = 0; s < p->n_streams; s++) {
        for (const struct prefix_node *x = p->last[s]; x != NULL && x->stream == s; x = x->parent) {
            if (x->parent != NULL) {
                n[3 * x->parent->number + prefix_held(x)]++;
            }
        }
    }
    return n;
}

bool prefixes_consistent(const struct core *c, uint64_t of[PREFIX_USED + 1])
{
    const struct prefixes *p = c->prefixes;
    memset(of, 0, (PREFIX_USED + 1) * sizeof *of);
    if (p == NULL) {
        return true;
    }
    OWNED uint32_t *n = holders_of(c);
    uint64_t free_nodes = 0;
    for (uint32_t s = 0; s < p->n_streams; s++) {
        for (const struct prefix_node *x = p->last[s]; x != NULL && x->stream == s; x = x->parent) {
            const uint32_t *by = &n[(size_t)3 * x->number];
            SIM_ASSERT(x->from < x->to && x->to > prefix_own_from(c, s));
            SIM_ASSERT(x->parent != NULL ? x->parent->to == x->from : x->from == 0);
            SIM_ASSERT(x->parent == NULL || x->parent->place.rank >= x->place.rank);
            SIM_ASSERT(x->holders[PREFIX_IDLE] == by[PREFIX_IDLE]);
            SIM_ASSERT(x->holders[PREFIX_USED] == by[PREFIX_USED]);
            SIM_ASSERT(prefix_held(x) != PREFIX_FREE || x->children == by[PREFIX_FREE]);
            of[prefix_held(x)] += (uint64_t)(x->to - x->from) * x->units;
            free_nodes += prefix_held(x) == PREFIX_FREE;
        }
    }
    memset(n, 0, ((size_t)3 * p->n_nodes + 3) * sizeof *n); /* now: free children seen */
    const struct ranked *before = NULL;
    for (const struct ranked *x = p->free.first; x != NULL; before = x, x = x->after) {
        const struct prefix_node *node = (const struct prefix_node *)x;
        SIM_ASSERT(x->before == before && prefix_held(node) == PREFIX_FREE && free_nodes > 0);
        SIM_ASSERT((before == NULL || before->rank <= x->rank) &&
                   n[node->number] == node->children);
        n[node->parent != NULL ? node->parent->number : 0]++;
        free_nodes--;
    }
    SIM_ASSERT(p->free.last == before && free_nodes == 0);
    return true;
}
