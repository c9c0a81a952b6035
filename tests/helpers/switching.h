/* Instances of the graph switch problem, for the tests. */
#pragma once

#include "hwmodels/graphs.h"
#include "sim/base/rng.h"

struct switch_instance {
    int64_t p[GRAPHS_MAX_BLOCKS], d[GRAPHS_MAX_BLOCKS], s[GRAPHS_MAX_BLOCKS];
    struct graphs_instance g;
};

static inline void switch_uniform(struct switch_instance *x, uint32_t n, uint32_t c, int64_t p,
                                  int64_t d, int64_t s)
{
    for (uint32_t b = 0; b < n; b++) {
        x->p[b] = p;
        x->d[b] = d;
        x->s[b] = s;
    }
    x->g = (struct graphs_instance){.n_blocks = n, .n_chunks = c, .p = x->p, .d = x->d, .s = x->s};
}

static inline void switch_random(struct switch_instance *x, uint64_t i, uint32_t max_blocks,
                                 uint32_t max_chunks, uint32_t max_time)
{
    struct rng r;
    rng_init(&r, rng_key(7, RNG_TEST, i, max_time));
    uint32_t n = 1 + rng_below(&r, max_blocks);
    switch_uniform(x, n, 1 + rng_below(&r, max_chunks), 0, 0, 0);
    for (uint32_t b = 0; b < n; b++) {
        x->p[b] = 1 + rng_below(&r, max_time);
        x->d[b] = x->p[b] + rng_below(&r, 3);
        x->s[b] = 1 + rng_below(&r, 2 * max_time);
    }
}

static inline int64_t switch_total(const char *strategy, const struct graphs_instance *g)
{
    struct graphs_result r;
    graphs_strategy_find(strategy)->solve(g, &r);
    int64_t total = r.total;
    graphs_result_fini(&r);
    return total;
}
