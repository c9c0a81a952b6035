#include "hwmodels/graphs_machine.h"

void graphs_machine_init(struct graphs_machine *m, const struct graphs_instance *g,
                         struct graphs_result *out, bool keep_intervals)
{
    memset(m, 0, sizeof(*m));
    memset(out, 0, sizeof(*out));
    m->g = g;
    m->n_positions = g->n_blocks * g->n_chunks;
    m->loading = GRAPHS_NO_BLOCK;
    m->out = out;
    out->memory_peak_blocks = g->n_blocks;
    /* At most one bar per compute and load, so the array has a fixed size. A search that tries
     * every start only needs totals. */
    if (keep_intervals) {
        m->capacity = (size_t)m->n_positions + g->n_blocks;
        out->intervals = xcalloc(m->capacity, sizeof(*out->intervals));
    }
}

void graphs_result_fini(struct graphs_result *r)
{
    free(r->intervals);
    r->intervals = NULL;
    r->n_intervals = 0;
}

int64_t graphs_machine_compute(const struct graphs_machine *m, uint32_t position)
{
    uint32_t b = graphs_machine_block(m, position);
    return graphs_machine_is_switched(m, b) ? m->g->d[b] : m->g->p[b];
}

static void record(struct graphs_machine *m, int64_t end, uint32_t block, enum graphs_kind kind)
{
    if (m->capacity == 0) {
        return;
    }
    uint32_t last = m->n_positions - 1;
    uint32_t position = m->position < last ? m->position : last;
    SIM_REQUIRE(m->out->n_intervals < m->capacity, "more bars than computes and loads");
    m->out->intervals[m->out->n_intervals++] =
        (struct graphs_interval){m->now, end, position / m->g->n_blocks, block, kind};
}

bool graphs_machine_can_load(const struct graphs_machine *m, uint32_t block)
{
    if (m->loading != GRAPHS_NO_BLOCK || graphs_machine_is_switched(m, block)) {
        return false;
    }
    /* With single residency the old graph is evicted when the load begins, which must not happen
     * during its own compute. */
    return m->g->keep_old || !m->computing || graphs_machine_block(m, m->position) != block;
}

/* Whether the block computes now or later, so that keep_old must keep it. */
static bool needed(const struct graphs_machine *m, uint32_t block)
{
    uint32_t left = m->n_positions - m->position;
    return left >= m->g->n_blocks || block >= m->g->n_blocks - left;
}

void graphs_machine_load(struct graphs_machine *m, uint32_t block)
{
    SIM_REQUIRE(graphs_machine_can_load(m, block), "block %u cannot be loaded now", block);
    m->loading = block;
    m->load_end = m->now + m->g->s[block];
    record(m, m->load_end, block, GRAPHS_LOAD_G2);
    /* At most one more, because there is one loader. */
    if (m->g->keep_old && needed(m, block)) {
        m->out->memory_peak_blocks = m->g->n_blocks + 1;
    }
}

static void load_done(struct graphs_machine *m)
{
    m->switched |= UINT64_C(1) << m->loading;
    m->loading = GRAPHS_NO_BLOCK;
    m->out->switch_end = m->now;
}

static void compute_start(struct graphs_machine *m)
{
    if (m->computing || m->position == m->n_positions) {
        return;
    }
    uint32_t b = graphs_machine_block(m, m->position);
    if (m->loading == b && !m->g->keep_old) {
        return; /* stalled until load_done */
    }
    m->computing = true;
    m->compute_end = m->now + graphs_machine_compute(m, m->position);
    record(m, m->compute_end, b,
           graphs_machine_is_switched(m, b) ? GRAPHS_COMPUTE_G2 : GRAPHS_COMPUTE_G1);
}

bool graphs_machine_step(struct graphs_machine *m)
{
    if (m->loading != GRAPHS_NO_BLOCK && m->load_end == m->now) {
        load_done(m); /* a load of length 0 ends before the next compute chooses its graph */
        return true;
    }
    compute_start(m);
    bool loading = m->loading != GRAPHS_NO_BLOCK;
    if (!m->computing && !loading) {
        return false;
    }
    int64_t next = m->computing ? m->compute_end : m->load_end;
    if (m->computing && loading && m->load_end < next) {
        /* The earlier end. Times are integers, so simultaneous ends are equal and handled together.
         */
        next = m->load_end;
    }
    if (!m->computing && m->position < m->n_positions) {
        /* A stall: the next block is being loaded. */
        m->out->stall += next - m->now;
    }
    m->now = next;
    if (m->computing && m->compute_end == next) {
        m->computing = false;
        m->position++;
        m->out->prefill_end = next;
    }
    if (loading && m->load_end == next) {
        load_done(m);
    }
    return true;
}

void graphs_machine_run_to(struct graphs_machine *m, uint32_t position)
{
    while (m->position < position && graphs_machine_step(m)) {
    }
}

void graphs_machine_finish(struct graphs_machine *m)
{
    while (graphs_machine_step(m)) {
    }
    /* The order no longer affects the total; it is that of the paper's greedy. */
    for (uint32_t b = m->g->n_blocks; b-- > 0;) {
        if (!graphs_machine_is_switched(m, b)) {
            graphs_machine_load(m, b);
            graphs_machine_step(m);
        }
    }
    struct graphs_result *r = m->out;
    r->total = r->prefill_end > r->switch_end ? r->prefill_end : r->switch_end;
    r->lower_bound = r->total;
}
