/* The simple strategies, the table of all strategies, and the check of instances. */
#include "hwmodels/graphs.h"

#include "hwmodels/graphs_machine.h"

/* Runs the prefill on the resident graphs, without loads. */
static void run_without_loads(const struct graphs_instance *g, uint64_t switched, uint32_t memory,
                              struct graphs_result *out)
{
    struct graphs_machine m;
    graphs_machine_init(&m, g, out, true);
    m.switched = switched;
    graphs_machine_run_to(&m, m.n_positions);
    out->total = out->prefill_end;
    out->lower_bound = out->total;
    out->memory_peak_blocks = memory;
}

static void unified_g1_solve(const struct graphs_instance *g, struct graphs_result *out)
{
    run_without_loads(g, 0, g->n_blocks, out);
}

static void unified_g2_solve(const struct graphs_instance *g, struct graphs_result *out)
{
    run_without_loads(g, (UINT64_C(1) << g->n_blocks) - 1, g->n_blocks, out);
}

static void keep_both_solve(const struct graphs_instance *g, struct graphs_result *out)
{
    run_without_loads(g, 0, 2 * g->n_blocks, out);
}

static void sync_solve(const struct graphs_instance *g, struct graphs_result *out)
{
    struct graphs_machine m;
    graphs_machine_init(&m, g, out, true);
    graphs_machine_run_to(&m, m.n_positions);
    graphs_machine_finish(&m);
}

/* Loads blocks in the order of their last compute. */
static void naive_async_solve(const struct graphs_instance *g, struct graphs_result *out)
{
    struct graphs_machine m;
    graphs_machine_init(&m, g, out, true);
    uint32_t last_chunk = m.n_positions - g->n_blocks;
    for (uint32_t b = 0; b < g->n_blocks; b++) {
        /* One load at a time: a block whose last compute has ended waits for the loader. */
        while (m.position <= last_chunk + b || m.loading != GRAPHS_NO_BLOCK) {
            graphs_machine_step(&m);
        }
        graphs_machine_load(&m, b);
    }
    graphs_machine_finish(&m);
}

static const struct graphs_strategy STRATEGIES[] = {
    {"unified-g1", "one graph for both stages, the prefill shape: no load, slow decoding", false,
     unified_g1_solve},
    {"unified-g2", "one graph for both stages, the decode shape: no load, slow prefill", false,
     unified_g2_solve},
    {"keep-both", "both graphs resident from the start: no load, twice the memory", false,
     keep_both_solve},
    {"sync", "prefill on G1, then load every block", true, sync_solve},
    {"naive-async", "load a block when its last compute has ended, in block order", true,
     naive_async_solve},
    {"progressive", "the paper's greedy: each round, the fewest computes that hide one load", true,
     graphs_progressive_solve},
    {"late-start", "progressive, begun at the best stream position", true, graphs_late_start_solve},
    {"farthest-next-use", "load what is needed last, begun at the best stream position", true,
     graphs_farthest_solve},
    {"exact", "least total by best-first search within a node budget", true, graphs_exact_solve},
};

const struct graphs_strategy *graphs_strategies(size_t *n)
{
    *n = sizeof(STRATEGIES) / sizeof(STRATEGIES[0]);
    return STRATEGIES;
}

const struct graphs_strategy *graphs_strategy_find(const char *name)
{
    size_t n;
    const struct graphs_strategy *s = graphs_strategies(&n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(s[i].name, name) == 0) {
            return &s[i];
        }
    }
    return NULL;
}

static void check_block(const struct graphs_instance *g, uint32_t b, const char *where,
                        struct err *e)
{
    const int64_t t[] = {g->p[b], g->d[b], g->s[b]};
    static const char *const names[] = {"p", "d", "s"};
    for (int i = 0; i < 3; i++) {
        if (t[i] < 0 || t[i] > GRAPHS_MAX_TIME) {
            err_add(e, "%s: %s of block %" PRIu32 " is %" PRId64 ", accepted are 0 to %" PRId64,
                    where, names[i], b + 1, t[i], (int64_t)GRAPHS_MAX_TIME);
        }
    }
    if (g->d[b] < g->p[b]) {
        err_add(e,
                "%s: d of block %" PRIu32 " is %" PRId64 ", below its p of %" PRId64
                " (G1 is the graph that suits prefill)",
                where, b + 1, g->d[b], g->p[b]);
    }
}

int graphs_instance_check(const struct graphs_instance *g, const char *where, struct err *e)
{
    size_t before = e->n;
    if (g->n_blocks < 1 || g->n_blocks > GRAPHS_MAX_BLOCKS) {
        return err_add(e, "%s: %" PRIu32 " blocks, accepted are 1 to %d", where, g->n_blocks,
                       GRAPHS_MAX_BLOCKS);
    }
    if (g->n_chunks < 1 || g->n_chunks > GRAPHS_MAX_POSITIONS / g->n_blocks) {
        err_add(e, "%s: %" PRIu32 " chunks, accepted are 1 to %" PRIu32 " with %" PRIu32 " blocks",
                where, g->n_chunks, GRAPHS_MAX_POSITIONS / g->n_blocks, g->n_blocks);
    }
    for (uint32_t b = 0; b < g->n_blocks; b++) {
        check_block(g, b, where, e);
    }
    return e->n == before ? 0 : -EINVAL;
}

const char *graphs_strategy_title(const struct graphs_strategy *st, bool keep_old)
{
    return keep_old && st->solve == graphs_exact_solve ? "left-shifted" : st->name;
}
