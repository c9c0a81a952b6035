/* Prices of kernels that were asked for before. Ops without attention cost the same in every pass of
 * as many rows and sequences, so most prices of a run are a few hundred; attention is priced anew. */
#include "sim/engine/engine.h"

static bool matches(const struct price *p, const uint64_t key[PRICE_KEYS])
{
    return p->key[0] == key[0] && p->key[1] == key[1] && p->key[2] == key[2];
}

struct price *prices_find(struct engine *e, const struct work_shape *w, const struct launch *l,
                          enum op_kind op, uint32_t rows)
{
    const struct hwmodel *m = e->core.setup->truth;
    bool attention = op == OP_MHA || op == OP_LAYER;
    if (attention || m->ops->context_limit == NULL || e->core.setup->truth_sigma > 0.0) {
        return NULL;
    }
    bool beyond = w->max_context_tokens > m->ops->context_limit(m, l->device);
    uint64_t key[PRICE_KEYS] = {
        (uint64_t)rows << 32 | w->rows,
        (uint64_t)w->prefill_rows << 32 | w->sequences,
        (uint64_t)l->chunk_rows << 32 | (uint64_t)l->graph << 24 | (uint64_t)l->device << 16 |
            (uint64_t)op << 8 | (beyond ? 2 : 0) | 1, /* never that of an empty entry */
    };
    uint64_t h = (key[0] ^ key[1] * 3 ^ key[2] * 5) * 0x9e3779b97f4a7c15u;
    struct price *p = &e->prices[h >> (64 - PRICE_BITS)];
    if (!matches(p, key)) {
        *p = (struct price){.key = {key[0], key[1], key[2]}};
    }
    return p;
}
