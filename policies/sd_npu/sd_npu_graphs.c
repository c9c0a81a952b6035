/* Graph switching of sd-npu. The two graphs of a block cannot share weights, so a switch drops one
 * and loads the other. During the load the block is unusable (D.1). */
#include "policies/sd_npu/sd_npu.h"

static enum sd_strategy strategy(const struct sched *s)
{
    return (enum sd_strategy)param_int(s, SD_STRATEGY);
}

uint32_t sd_graph_rows(const struct sched *s, uint8_t version)
{
    return (uint32_t)param_int(s, version == 1 ? SD_G1 : SD_G2);
}

uint8_t sd_decode_version(const struct sched *s)
{
    return strategy(s) == SD_UNIFIED_G1 ? 1 : 2;
}

static double block_bytes(const struct sched *s, const struct sd *d)
{
    return s->llm->weight_bytes / d->n_blocks;
}

static struct resident_key key_of(uint32_t block, uint8_t version)
{
    return (struct resident_key){RESIDENT_GRAPH_BLOCK, block, version};
}

int sd_graphs_map(struct sched *s, struct sd *d)
{
    int rc = 0;
    for (uint8_t v = 1; rc == 0 && v <= 2; v++) {
        /* One graph for both stages takes half the memory and never waits for the loader. */
        bool used = strategy(s) != (v == 1 ? SD_UNIFIED_G2 : SD_UNIFIED_G1);
        struct graph_shape shape = {sd_graph_rows(s, v), d->n_blocks};
        rc = used ? sched_graph(s, v, shape) : 0;
    }
    for (uint32_t i = 0; rc == 0 && i < d->n_blocks; i++) {
        uint8_t first = strategy(s) == SD_UNIFIED_G2 ? 2 : 1;
        rc = sched_map(s, key_of(i, first), block_bytes(s, d));
        if (rc == 0 && strategy(s) == SD_KEEP_BOTH) {
            rc = sched_map(s, key_of(i, 2), block_bytes(s, d));
        }
        d->block[i].graph = first;
    }
    return rc;
}

/* Whether a block still has two versions, which keep_old allows for one block at a time. */
static bool pair_exists(const struct sd *d)
{
    for (uint32_t i = 0; i < d->n_blocks; i++) {
        if (d->block[i].loading != 0 || d->block[i].old != 0) {
            return true;
        }
    }
    return false;
}

static bool drop(struct sched *s, struct sd *d, uint32_t i)
{
    struct sd_block *b = &d->block[i];
    if (b->graph != 0 && sched_resident_evict(s, key_of(i, b->graph)) != 0) {
        return false;
    }
    b->graph = 0;
    return true;
}

/* Starts to load a version. The old version is dropped before, or with keep_old afterwards. If
 * memory cannot have both, it is dropped before, too, because the request that has the memory waits
 * for this graph. A pending load of the other version, for a request that ended early, is
 * cancelled. */
static void switch_block(struct sched *s, struct sd *d, uint32_t i, uint8_t version)
{
    struct sd_block *b = &d->block[i];
    bool keep = param_bool(s, SD_KEEP_OLD);
    if (b->loading != 0 && b->loading != version &&
        sched_resident_evict(s, key_of(i, b->loading)) == 0) {
        b->loading = 0;
    }
    if (b->loading != 0 || b->graph == version || (keep && pair_exists(d)) ||
        (!keep && !drop(s, d, i))) {
        return;
    }
    int rc = sched_load(s, key_of(i, version), block_bytes(s, d));
    if (rc == -ENOMEM && keep && drop(s, d, i)) {
        rc = sched_load(s, key_of(i, version), block_bytes(s, d));
    }
    b->loading = rc == 0 ? version : 0;
}

void sd_graphs_ready(struct sched *s, struct resident_key key)
{
    struct sd *d = s->state;
    struct sd_block *b = &d->block[key.a];
    if (key.b <= 2 && key.b == b->loading) {
        b->old = b->graph;
        b->graph = b->loading;
        b->loading = 0;
    }
}

void sd_graphs_drop_old(struct sched *s, struct sd *d)
{
    for (uint32_t i = 0; i < d->n_blocks; i++) {
        struct sd_block *b = &d->block[i];
        if (b->old != 0 && sched_resident_evict(s, key_of(i, b->old)) == 0) {
            b->old = 0; /* else a kernel still uses it */
        }
    }
}

static bool switches(const struct sched *s)
{
    bool loads = strategy(s) <= SD_NAIVE_ASYNC || strategy(s) == SD_LATE_START;
    return loads && param_int(s, SD_DECODE) == 0;
}

void sd_graphs_prefill_begin(struct sched *s, struct sd *d)
{
    d->round_left = 0;
    for (uint32_t i = 0; switches(s) && i < d->n_blocks; i++) {
        switch_block(s, d, i, 1);
    }
}

void sd_graphs_prefill_end(struct sched *s, struct sd *d)
{
    bool uses = switches(s) && d->current->model == 0; /* only the default model has graphs */
    for (uint32_t i = d->n_blocks; uses && i-- > 0;) {
        switch_block(s, d, i, 2);
    }
}

void sd_graphs_block_done(struct sched *s, struct sd *d, uint32_t block)
{
    if (strategy(s) == SD_NAIVE_ASYNC && switches(s) && d->chunks_left == 1) {
        switch_block(s, d, block, 2); /* the last chunk has used it */
    }
    if (d->round_left > 0) {
        d->round_left--;
    }
}

uint8_t sd_graphs_version(const struct sched *s, const struct sd *d, uint32_t block, bool prefill)
{
    if (strategy(s) == SD_KEEP_BOTH) {
        return d->block[block].graph == 0 ? 0 : prefill ? 1 : 2;
    }
    /* A block already switched prefills with G2, in several sub-chunks (D.1). */
    uint8_t v = d->block[block].graph;
    bool decode_graph = switches(s) ? v == 2 : v != 0;
    return prefill || decode_graph ? v : 0;
}

/* ---- progressive: the paper's greedy (eq. 1 and 2) ---- */

/* Annotated time of one block of one full chunk under a graph. */
static int64_t block_ns(struct sched *s, const struct sd *d, uint8_t version)
{
    uint32_t rows = sd_graph_rows(s, 1);
    uint32_t kv = d->current->kv_tokens;
    struct work_shape w = {.prefill_rows = rows};
    work_shape_add(&w, s->llm->sliding_window, kv, rows);
    const struct layer_ops *ops = &s->llm->layer;
    int64_t t = 0;
    for (uint32_t i = 0; i < ops->n; i++) {
        struct estimate e;
        if (sched_estimate_graph(s, &w, ops->kind[i], d->npu, rows, sd_graph_rows(s, version),
                                 version, &e) == 0) {
            t += e.t_ns;
        }
    }
    return t * s->llm->n_layers / d->n_blocks;
}

/* Loader time of one switch. */
static int64_t load_ns(const struct sched *s, const struct sd *d)
{
    const struct machine *m = s->machine;
    double load_s = block_bytes(s, d) / m->loader_bytes_per_s;
    return m->loader_evict_ns + m->loader_fixed_ns + units_ns_from_s(load_s);
}

/* Whether `left` blocks of prefill with the prefill graph take longer than the remaining loads.
 * Then a switch now would only slow down the prompt. */
static bool too_early(struct sched *s, const struct sd *d, uint32_t left)
{
    int64_t loads = 0;
    for (uint32_t i = 0; i < d->n_blocks; i++) {
        loads += d->block[i].graph == 1 ? load_ns(s, d) : 0;
    }
    return left * block_ns(s, d, 1) > loads;
}

/* Blocks that hide one load, starting at stream position `at`: k*. */
static uint32_t hiding_blocks(struct sched *s, const struct sd *d, uint32_t at)
{
    int64_t load = load_ns(s, d);
    int64_t time[3] = {0, block_ns(s, d, 1), block_ns(s, d, 2)};
    int64_t sum = 0;
    uint32_t k = 0;
    /* Bounded, for a very slow loader: a window with every block is as good as a larger one. */
    while (sum < load && k < 4 * SD_MAX_BLOCKS) {
        uint8_t v = d->block[(at + k) % d->n_blocks].graph;
        sum += time[v == 2 ? 2 : 1];
        k++;
    }
    return k == 0 ? 1 : k;
}

static bool in_window(const struct sd *d, uint32_t block, uint32_t at, uint32_t k)
{
    return (block + d->n_blocks - at % d->n_blocks) % d->n_blocks < k;
}

void sd_graphs_before_block(struct sched *s, struct sd *d)
{
    bool late = strategy(s) == SD_LATE_START;
    if ((strategy(s) != SD_PROGRESSIVE && !late) || !switches(s) || d->round_left > 0) {
        return;
    }
    for (uint32_t i = 0; i < d->n_blocks; i++) {
        if (d->block[i].loading != 0) {
            d->round_left = 1; /* the loader is busy: no new round */
            return;
        }
    }
    uint32_t at = d->next_block;
    uint32_t left = (d->chunks_left - 1) * d->n_blocks + d->n_blocks - at; /* of the stream */
    if (late && too_early(s, d, left)) {
        return;
    }
    uint32_t k = hiding_blocks(s, d, at);
    for (uint32_t j = d->n_blocks; j-- > 0;) {
        if (d->block[j].graph != 1) {
            continue;
        }
        /* Tail: fewer blocks are left than the window, and only a block that will not compute again
         * can load. */
        uint32_t window = k < left ? k : left;
        if (!in_window(d, j, at, window)) {
            switch_block(s, d, j, 2);
            d->round_left = window;
            return;
        }
    }
    d->round_left = 1; /* all unswitched blocks are in the window: compute one without a load */
}
