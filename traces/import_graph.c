/* Builds a request graph from a source with dependencies. */
#include "sim/base/hash.h"
#include "sim/base/rng.h"
#include "traces/import.h"

#define MAX_TURNS 65535

/* ---- sources of prefixes ---- */

static uint64_t block_key(const struct import *im, size_t row, size_t k)
{
    uint64_t bits = hash_bits(im->blocks[im->rows[row].block + k]);
    return rng_mix64(bits) ^ rng_mix64(im->nodes[row].scope);
}

static size_t shared_blocks(const struct import *im, size_t a, size_t b)
{
    const struct import_row *x = &im->rows[a];
    const struct import_row *y = &im->rows[b];
    size_t n = x->n_blocks < y->n_blocks ? x->n_blocks : y->n_blocks;
    size_t same = 0;
    while (same < n && im->nodes[a].scope == im->nodes[b].scope &&
           im->blocks[x->block + same] == im->blocks[y->block + same]) {
        same++;
    }
    return same;
}

struct start {
    int64_t ns;
    size_t row;
};

SORT_BY(by_start, struct start, SORT_UP(ns), SORT_UP(row))

static void source_set(struct import *im, struct map *seen, size_t row)
{
    struct import_row *r = &im->rows[row];
    struct import_node *node = &im->nodes[row];
    size_t known = 0; /* leading blocks that an earlier prompt has */
    while (known < r->n_blocks && map_find(seen, block_key(im, row, known)) != IMPORT_NONE) {
        known++;
    }
    size_t first = known > 0 ? map_find(seen, block_key(im, row, known - 1)) : IMPORT_NONE;
    size_t shared = first != IMPORT_NONE ? shared_blocks(im, first, row) : 0;
    if (node->before != IMPORT_NONE && shared_blocks(im, node->before, row) >= shared) {
        first = node->before;
        shared = shared_blocks(im, first, row);
    }
    node->source = shared > 0 ? first : IMPORT_NONE;
    if (shared > 0) {
        uint64_t tokens = (uint64_t)shared * im->block_tokens;
        tokens = tokens < r->input ? tokens : r->input;
        r->prefix = tokens < im->rows[first].input ? tokens : im->rows[first].input;
    }
    for (size_t k = known; k < r->n_blocks; k++) {
        map_put(seen, block_key(im, row, k), row);
    }
}

void import_sources(struct import *im, size_t first)
{
    SCOPED(map_fini) struct map seen = {0};
    size_t n = im->n - first;
    OWNED struct start *order = xmalloc((n + 1) * sizeof *order);
    for (size_t i = 0; i < n; i++) {
        order[i] = (struct start){im->rows[first + i].start_ns, first + i};
    }
    qsort(order, n, sizeof *order, by_start);
    for (size_t i = 0; i < n; i++) {
        source_set(im, &seen, order[i].row);
    }
}

/* ---- the graph ---- */

struct job {
    int64_t start_ns;
    size_t first; /* its row + 1; 0: none */
    bool wanted;
};

/* The jobs, with start times and whether they are wanted. The caller frees them. */
static struct job *jobs_of(const struct import *im, int64_t *zero_ns)
{
    uint32_t n_jobs = 0;
    for (size_t i = 0; i < im->n; i++) {
        n_jobs = im->nodes[i].job >= n_jobs ? im->nodes[i].job + 1 : n_jobs;
    }
    struct job *jobs = xcalloc(n_jobs + 1, sizeof *jobs);
    for (size_t i = im->n; i-- > 0;) {
        struct job *j = &jobs[im->nodes[i].job];
        bool earlier = j->first == 0 || im->rows[i].start_ns <= j->start_ns;
        *j = earlier ? (struct job){im->rows[i].start_ns, i + 1, false} : *j;
    }
    *zero_ns = im->rebase ? INT64_MAX : 0;
    for (uint32_t k = 0; k < n_jobs && im->rebase; k++) {
        /* Job numbers are agent numbers, so those of subagents are unused. */
        bool earlier = jobs[k].first != 0 && jobs[k].start_ns < *zero_ns;
        *zero_ns = earlier ? jobs[k].start_ns : *zero_ns;
    }
    for (uint32_t k = 0; k < n_jobs; k++) {
        jobs[k].start_ns -= *zero_ns;
        jobs[k].wanted = import_wanted(im->options, jobs[k].start_ns, jobs[k].first - 1);
    }
    return jobs;
}

/* Arrival of a request without parents: its offset in its job, after the job's scaled start. */
static int64_t arrival_ns(const struct import *im, const struct job *j, int64_t zero_ns, size_t i)
{
    const struct trace_import_options *o = im->options;
    double start_s = (units_s_from_ns(j->start_ns) - fmax(0.0, o->from_s)) / o->rate_scale;
    int64_t offset_ns = im->rows[i].start_ns - zero_ns - j->start_ns;
    bool moved = o->rate_scale != 1.0 || o->from_s > 0.0;
    return (moved ? units_ns_from_s(start_s) : j->start_ns) + offset_ns;
}

static struct trace_node node_of(struct import *im, const struct job *jobs, size_t i)
{
    const struct import_node *from = &im->nodes[i];
    struct trace_node node = trace_node_none();
    node.background = from->background;
    node.parents = from->parents;
    node.n_parents = from->n_parents;
    if (from->source != IMPORT_NONE && jobs[im->nodes[from->source].job].wanted) {
        node.prefix_of = (uint32_t)from->source;
    }
    return node;
}

int import_graph(struct import *im, const char *path, struct trace *out, struct err *e)
{
    SCOPED(trace_builder_fini) struct trace_builder b;
    int64_t zero_ns = 0;
    OWNED struct job *jobs = jobs_of(im, &zero_ns);
    OWNED uint32_t *turn = xcalloc(im->n + 1, sizeof *turn);
    OWNED size_t *session = xcalloc(im->n + 1, sizeof *session);
    size_t before = e->n;
    trace_builder_init(&b);
    /* A row is after its previous turn, so one pass finds turns and sessions. */
    for (size_t i = 0; i < im->n && e->n == before; i++) {
        const struct import_row *r = &im->rows[i];
        const struct import_node *from = &im->nodes[i];
        turn[i] = from->before != IMPORT_NONE ? turn[from->before] + 1 : 0;
        session[i] = from->before != IMPORT_NONE ? session[from->before] : i;
        im->lost.turns += turn[i] > 0;
        if (turn[i] > MAX_TURNS) {
            (void)err_add(e, "%s:%u: turn %u of a session; at most %d are taken", path, r->line,
                          turn[i], MAX_TURNS);
        }
        if (!jobs[from->job].wanted) {
            continue;
        }
        struct trace_node node = node_of(im, jobs, i);
        bool waits = turn[i] > 0 || node.n_parents > 0;
        bool begins = turn[i] > 0 || node.prefix_of != UINT32_MAX;
        struct trace_extra extra = trace_extra_none();
        extra.client_id = from->job;
        extra.priority = from->priority;
        struct trace_row row = {.next = TRACE_NO_ROW,
                                .request_id = (uint32_t)i,
                                .session_id = (uint32_t)session[i],
                                .turn = (uint16_t)turn[i],
                                .cls = r->cls,
                                .after_tool = r->after_tool,
                                .input_tokens = (uint32_t)r->input,
                                .output_tokens = (uint32_t)r->output,
                                .prefix_tokens = begins ? (uint32_t)r->prefix : 0};
        row.arrival_ns = waits ? from->gap_ns : arrival_ns(im, &jobs[from->job], zero_ns, i);
        row.max_output_tokens = trace_default_limit(row.output_tokens);
        if (im->options->cls != NULL) {
            row.cls = strcmp(im->options->cls, "proactive") == 0 ? REQUEST_CLASS_PROACTIVE
                                                                 : REQUEST_CLASS_REACTIVE;
        }
        b.line = r->line;
        trace_builder_add(&b, &row, &extra);
        trace_builder_node(&b, &node);
    }
    if (b.n == 0 && e->n == before) {
        (void)err_add(e, "%s: none of its jobs is in the window of time, or drawn by --sample",
                      path);
    }
    return e->n == before && trace_build(&b, false, path, out, e) == 0 ? 0 : -EINVAL;
}
