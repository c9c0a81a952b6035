/* The paper's greedy (sd.npu 3.2, equations 1 and 2) and two heuristics of this project.
 *
 * The paper leaves three cases open, decided here as follows. A block inside its own window cannot
 * be loaded, so the next lower unswitched block whose window does not contain it is taken; if there
 * is none, one block computes without a load. When too few computes are left to hide a load, a
 * block that no longer computes is loaded anyway. The blocks left after the prefill are loaded one
 * after the other. */
#include "hwmodels/graphs_machine.h"

/* Least k with s[block] <= the next k computes with the present graphs, or 0 if these include the
 * block. At the end of the stream the window is the rest (the tail). */
static uint32_t window(const struct graphs_machine *m, uint32_t block)
{
    int64_t hidden = 0;
    uint32_t k = 0;
    while (m->position + k < m->n_positions) {
        if (graphs_machine_block(m, m->position + k) == block) {
            return 0;
        }
        /* With the present graphs: no other block switches within the window, because the loader is
         * busy with this one. */
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
    /* From the last block, as in the paper: at the start of a chunk, a later block's compute is
     * farther away, so more computes can hide its load. */
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

/* Instant of this block's next compute without further loads; INT64_MAX: never. */
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

/* Starts the load with the latest next use, among those that end before it; the highest block among
 * equals. */
static void farthest_load(struct graphs_machine *m)
{
    uint32_t best = GRAPHS_NO_BLOCK;
    int64_t best_use = -1;
    for (uint32_t b = m->g->n_blocks; b-- > 0;) {
        if (!graphs_machine_can_load(m, b)) {
            continue;
        }
        int64_t use = next_use(m, b);
        /* A load that ends after its block's next use would delay the compute; after the prefill it
         * delays none. */
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
        farthest_load(&m); /* loads that fit do not wait for a boundary */
    } while (graphs_machine_step(&m));
    graphs_machine_finish(&m);
    out->start = start;
}

typedef void from_fn(const struct graphs_instance *g, uint32_t start, struct graphs_result *out,
                     bool keep_intervals);

/* Tries every start, and takes the earliest of the best; q = N * C is `sync`. */
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
