/* The paper's greedy (sd.npu 3.2, equations 1 and 2) and two heuristics of this project.
 *
 * The paper leaves three cases open; they are settled here as follows. A block inside its own
 * window cannot be loaded, so the next lower unswitched block whose window does not contain it is
 * taken; if there is none, one block computes without a load. When too few computes are left to
 * hide a load, a block that no longer computes is loaded anyway. The blocks left after the prefill
 * are loaded one after the other. */
#include "hwmodels/graphs_machine.h"

/* Least k with s[block] <= the k next computes under the graphs of now, or 0 when the window holds
 * the block. Past the end of the stream the window is what is left (the tail). */
static uint32_t window(const struct graphs_machine *m, uint32_t block)
{
    int64_t hidden = 0;
    uint32_t k = 0;
    while (m->position + k < m->n_positions) {
        if (graphs_machine_block(m, m->position + k) == block) {
            return 0;
        }
        /* Under the graphs of now: nothing else switches within the window, since the loader is
         * busy with this block. */
        hidden += graphs_machine_compute(m, m->position + k);
        k++;
        if (hidden >= m->g->s[block]) {
            break;
        }
    }
    return k;
}

/* One round at a compute boundary with the loader idle: load and its k* computes. */
static void progressive_round(struct graphs_machine *m)
{
    /* From the last block, which is the paper's order: a later block's compute is farther away at
     * the start of a chunk, so that more computes are there to hide its load. */
    for (uint32_t b = m->g->n_blocks; b-- > 0;) {
        uint32_t k = graphs_machine_is_switched(m, b) ? 0 : window(m, b);
        if (k > 0) {
            graphs_machine_load(m, b);
            graphs_machine_run_to(m, m->position + k);
            return;
        }
    }
    graphs_machine_run_to(m, m->position + 1);
}

static void progressive_from(const struct graphs_instance *g, uint32_t start,
                             struct graphs_result *out, bool keep_intervals)
{
    struct graphs_machine m;
    graphs_machine_init(&m, g, out, keep_intervals);
    graphs_machine_run_to(&m, start);
    while (m.position < m.n_positions) {
        progressive_round(&m);
    }
    graphs_machine_finish(&m);
    out->start = start;
}

/* When this block's compute comes next, with no further load; INT64_MAX for never. */
static int64_t next_use(const struct graphs_machine *m, uint32_t block)
{
    int64_t t = m->computing ? m->compute_end : m->now;
    for (uint32_t q = m->position + (m->computing ? 1 : 0); q < m->n_positions; q++) {
        if (graphs_machine_block(m, q) == block) {
            return t;
        }
        t += graphs_machine_compute(m, q);
    }
    return INT64_MAX;
}

/* Starts the load whose block is used last, among those that end before their block's next use;
 * the highest block among equals. */
static void farthest_load(struct graphs_machine *m)
{
    uint32_t best = GRAPHS_NO_BLOCK;
    int64_t best_use = -1;
    for (uint32_t b = m->g->n_blocks; b-- > 0;) {
        if (!graphs_machine_can_load(m, b)) {
            continue;
        }
        int64_t use = next_use(m, b);
        /* A load that ends after its block's next use would make the compute wait; after the
         * prefill it makes nothing wait. */
        if (use > best_use && m->now + m->g->s[b] <= use) {
            best = b;
            best_use = use;
        }
    }
    if (best != GRAPHS_NO_BLOCK) {
        graphs_machine_load(m, best);
    }
}

static void farthest_from(const struct graphs_instance *g, uint32_t start,
                          struct graphs_result *out, bool keep_intervals)
{
    struct graphs_machine m;
    graphs_machine_init(&m, g, out, keep_intervals);
    graphs_machine_run_to(&m, start);
    do {
        farthest_load(&m); /* the loader never waits for a boundary when a load fits */
    } while (graphs_machine_step(&m));
    graphs_machine_finish(&m);
    out->start = start;
}

typedef void from_fn(const struct graphs_instance *g, uint32_t start, struct graphs_result *out,
                     bool keep_intervals);

/* Tries every start, the earliest among equals; q = N * C is `sync`. */
static void sweep(const struct graphs_instance *g, from_fn *from, struct graphs_result *out)
{
    uint32_t best_start = 0;
    int64_t best = INT64_MAX;
    for (uint32_t q = 0; q <= g->n_blocks * g->n_chunks; q++) {
        struct graphs_result r;
        from(g, q, &r, false);
        if (r.total < best) {
            best = r.total;
            best_start = q;
        }
    }
    from(g, best_start, out, true);
}

void graphs_progressive_solve(const struct graphs_instance *g, struct graphs_result *out)
{
    progressive_from(g, 0, out, true);
}

void graphs_late_start_solve(const struct graphs_instance *g, struct graphs_result *out)
{
    sweep(g, progressive_from, out);
}

void graphs_farthest_solve(const struct graphs_instance *g, struct graphs_result *out)
{
    sweep(g, farthest_from, out);
}
