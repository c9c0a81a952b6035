/* Prices of kernels that were asked for before. Ops without attention cost the same in every pass
 * of as many rows, logits and sequences, so most prices of a run are a few hundred; attention of
 * another context is priced anew. */
#include "sim/engine/engine.h"

struct prices *prices_find(struct engine *e, const struct work_shape *w, const struct launch *l,
                           uint32_t rows)
{
    const struct hwmodel *m = e->core.setup->truth;
    if (m->ops->context_limit == NULL || e->core.setup->truth_sigma > 0.0) {
        return NULL;
    }
    bool beyond = w->max_context_tokens > m->ops->context_limit(m, l->device);
    uint64_t a = (uint64_t)rows << 32 | w->rows;
    uint64_t b = (uint64_t)w->prefill_rows << 32 | w->sequences;
    uint64_t c = (uint64_t)l->chunk_rows << 32 | (uint64_t)l->graph << 16 |
                 (uint64_t)l->device << 8 | (l->pass->fused_layers ? 2 : 0) | (beyond ? 1 : 0);
    uint64_t d = w->logit_rows; /* of the head */
    uint64_t h = (a ^ b * 3 ^ c * 5 ^ d * 7) * 0x9e3779b97f4a7c15u;
    struct prices *p = &e->prices[h >> (64 - PRICES_BITS)];
    if (p->key[0] != a || p->key[1] != b || p->key[2] != c || p->key[3] != d) {
        *p = (struct prices){.key = {a, b, c, d}}; /* rows > 0: no key is that of an empty entry */
    }
    return p;
}
