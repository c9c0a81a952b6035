/* Request graphs: dependencies between requests. */
#include "traces/traces.h"

void trace_graph_free(struct trace_graph *g)
{
    if (g != NULL) {
        free(g->first);
        free(g->edges);
        free(g->n_parents);
        free(g->job);
        free(g->ends_with);
        free(g->background);
        free(g->starts_job);
        free(g->source);
        free(g->model);
        free(g->models);
        free(g);
    }
}

static uint32_t row_of(const struct map *places, uint32_t id)
{
    size_t row = map_find(places, id);
    return row != MAP_NONE ? (uint32_t)row : TRACE_NO_ROW;
}

/* An edge while the graph is built. */
struct raw_edge {
    uint32_t from, to;
    int64_t gap_ns;
};

SORT_BY(by_parent, struct raw_edge, SORT_UP(from), SORT_UP(to))

/* All edges, sorted by parent; the turn before is a parent without a gap. The caller frees them. */
static struct raw_edge *collect(const struct trace_builder *b, const struct map *places,
                                struct trace_graph *g, size_t *n_edges)
{
    struct raw_edge *v = NULL;
    size_t n = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->v[i].row.next != TRACE_NO_ROW) {
            LIST_ADD(v, n, (struct raw_edge){i, b->v[i].row.next, 0});
        }
        const struct trace_node *node = &b->v[i].node;
        g->background[i] = node->background;
        g->starts_job[i] = node->starts_job;
        g->ends_with[i] = TRACE_NO_ROW;
        if (node->ends_with != UINT32_MAX) {
            g->ends_with[i] = row_of(places, node->ends_with);
            if (g->ends_with[i] == TRACE_NO_ROW || g->ends_with[i] == i) {
                trace_row_error(b, i, "request %u: column ends_with: there is no other request %u",
                                b->v[i].row.request_id, node->ends_with);
            }
        }
        for (uint32_t k = 0; k < node->n_parents && b->err->n < ERR_MAX_LINES; k++) {
            uint32_t from = row_of(places, node->parents[k].request_id);
            if (from == TRACE_NO_ROW) {
                trace_row_error(b, i, "request %u: column parent_ids: there is no request %u",
                                b->v[i].row.request_id, node->parents[k].request_id);
                continue;
            }
            LIST_ADD(v, n, (struct raw_edge){from, i, node->parents[k].gap_ns});
        }
    }
    if (n > 0) {
        qsort(v, n, sizeof *v, by_parent);
    }
    for (size_t i = 1; i < n && b->err->n < ERR_MAX_LINES; i++) {
        if (v[i].from == v[i - 1].from && v[i].to == v[i - 1].to) {
            trace_row_error(b, v[i].to,
                            "request %u: column parent_ids: waits twice (perhaps as the turn "
                            "before) for request %u",
                            b->v[v[i].to].row.request_id, b->v[v[i].from].row.request_id);
        }
    }
    *n_edges = n;
    return v;
}

uint32_t trace_root_of(uint32_t *up, uint32_t i)
{
    while (up[i] != i) {
        up[i] = up[up[i]];
        i = up[i];
    }
    return i;
}

/* Connected rows are a job, but a row that starts a job does not belong to its parents' jobs. Jobs
 * are numbered in order of their first rows. */
static void number_jobs(struct trace_graph *g, uint32_t n)
{
    OWNED uint32_t *up = xmalloc((n + 1) * sizeof *up);
    for (uint32_t i = 0; i < n; i++) {
        up[i] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = g->first[i]; k < g->first[i + 1]; k++) {
            bool other = g->starts_job[g->edges[k].row];
            uint32_t a = trace_root_of(up, i);
            uint32_t b = other ? a : trace_root_of(up, g->edges[k].row);
            up[a > b ? a : b] = a > b ? b : a; /* the lower row is the root */
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t root = trace_root_of(up, i);
        g->job[i] = root == i ? g->n_jobs++ : g->job[root];
    }
}

/* Topological order of rows. Rows in cycles are left out, so *n_placed may be less than n. The
 * caller frees it. */
static uint32_t *order_of(const struct trace_graph *g, uint32_t n, uint32_t *n_placed)
{
    OWNED uint32_t *left = xmalloc((n + 1) * sizeof *left);
    uint32_t *order = xmalloc((n + 1) * sizeof *order);
    uint32_t to = 0;
    for (uint32_t i = 0; i < n; i++) {
        left[i] = g->n_parents[i];
        if (left[i] == 0) {
            order[to++] = i;
        }
    }
    for (uint32_t from = 0; from < to; from++) {
        for (uint32_t k = g->first[order[from]]; k < g->first[order[from] + 1]; k++) {
            if (--left[g->edges[k].row] == 0) {
                order[to++] = g->edges[k].row;
            }
        }
    }
    *n_placed = to;
    return order;
}

/* Checks that there are no cycles, and that no path of a job takes too long. */
static void check_order(const struct trace_builder *b, const struct trace_graph *g)
{
    uint32_t n = (uint32_t)b->n;
    uint32_t n_placed = 0;
    OWNED uint32_t *order = order_of(g, n, &n_placed);
    OWNED int64_t *at_ns = xcalloc(n + 1, sizeof *at_ns); /* arrival if service took no time */
    OWNED bool *placed = xcalloc(n + 1, sizeof *placed);
    bool told = false;
    for (uint32_t p = 0; p < n_placed; p++) {
        uint32_t i = order[p];
        placed[i] = true;
        at_ns[i] += b->v[i].row.arrival_ns;
        if (at_ns[i] > TRACE_LAST_NS && !told) {
            trace_row_error(b, i, "request %u: arrival and gaps add up to over 31 years at turn %u",
                            b->v[i].row.request_id, b->v[i].row.turn);
            told = true;
        }
        at_ns[i] = at_ns[i] > TRACE_LAST_NS ? TRACE_LAST_NS : at_ns[i]; /* avoids overflow below */
        for (uint32_t k = g->first[i]; k < g->first[i + 1]; k++) {
            int64_t due_ns = at_ns[i] + g->edges[k].gap_ns;
            int64_t *child_ns = &at_ns[g->edges[k].row];
            *child_ns = due_ns > *child_ns ? due_ns : *child_ns;
        }
    }
    for (uint32_t i = 0; i < n && n_placed < n; i++) {
        if (!placed[i]) {
            trace_row_error(
                b, i,
                "request %u: column parent_ids: waits for itself, by way of others: request %u",
                b->v[i].row.request_id, b->v[i].row.request_id);
            n_placed = n; /* report one only */
        }
    }
}

struct trace_graph *trace_graph_build(struct trace_builder *b)
{
    size_t before = b->err->n;
    uint32_t n = (uint32_t)b->n;
    SCOPED(map_fini) struct map places = {0}; /* rows by request_id */
    for (uint32_t i = 0; i < n; i++) {
        map_put(&places, b->v[i].row.request_id, i);
    }
    struct trace_graph *g = xcalloc(1, sizeof *g);
    g->first = xcalloc(n + 1, sizeof *g->first);
    g->n_parents = xcalloc(n + 1, sizeof *g->n_parents);
    g->job = xcalloc(n + 1, sizeof *g->job);
    g->ends_with = xcalloc(n + 1, sizeof *g->ends_with);
    g->background = xcalloc(n + 1, sizeof *g->background);
    g->starts_job = xcalloc(n + 1, sizeof *g->starts_job);
    size_t n_edges = 0;
    OWNED struct raw_edge *v = collect(b, &places, g, &n_edges);
    g->edges = xmalloc((n_edges + 1) * sizeof *g->edges);
    for (size_t i = 0; i < n_edges; i++) {
        g->first[v[i].from + 1]++;
        g->n_parents[v[i].to]++;
        g->edges[i] = (struct trace_edge){v[i].to, v[i].gap_ns};
    }
    for (uint32_t i = 0; i < n; i++) {
        g->first[i + 1] += g->first[i];
    }
    number_jobs(g, n);
    if (b->err->n == before) {
        check_order(b, g);
        trace_content_build(b, &places, g);
        trace_models_build(b, g);
    }
    if (b->err->n > before) {
        trace_graph_free(g);
        g = NULL;
    }
    return g;
}

struct trace_node *trace_graph_nodes(const struct trace *t)
{
    const struct trace_graph *g = t->graph;
    /* one block: the nodes, then their parents */
    struct trace_node *nodes =
        xcalloc(1, t->n * sizeof *nodes + g->first[t->n] * sizeof *nodes->parents);
    struct trace_parent *parents = (struct trace_parent *)(void *)(nodes + t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t with = g->ends_with[i];
        nodes[i] = trace_node_none();
        nodes[i].parents = parents;
        parents += g->n_parents[i];
        nodes[i].ends_with = with == TRACE_NO_ROW ? UINT32_MAX : t->rows[with].request_id;
        nodes[i].background = g->background[i];
        nodes[i].starts_job = g->starts_job[i];
        nodes[i].model = g->model != NULL ? g->model[i] : 0;
        if (g->source != NULL && g->source[i] < t->n) {
            nodes[i].prefix_of = t->rows[g->source[i]].request_id;
        }
    }
    for (uint32_t i = 0; i < t->n; i++) {
        for (uint32_t k = g->first[i]; k < g->first[i + 1]; k++) {
            if (g->edges[k].row != t->rows[i].next) { /* the turn before is implicit */
                struct trace_node *x = &nodes[g->edges[k].row];
                x->parents[x->n_parents++] =
                    (struct trace_parent){t->rows[i].request_id, g->edges[k].gap_ns};
            }
        }
    }
    return nodes;
}

/* ---- statistics ---- */

/* Level of every row: length of the longest path to it within its job. The caller frees them. */
static uint32_t *levels_of(const struct trace *t)
{
    const struct trace_graph *g = t->graph;
    uint32_t n = 0;
    OWNED uint32_t *order = order_of(g, (uint32_t)t->n, &n);
    uint32_t *level = xcalloc(t->n + 1, sizeof *level);
    for (uint32_t p = 0; p < n; p++) {
        uint32_t i = order[p];
        for (uint32_t k = g->first[i]; k < g->first[i + 1]; k++) {
            uint32_t child = g->edges[k].row;
            uint32_t to = g->job[child] == g->job[i] ? level[i] + 1 : 0;
            level[child] = to > level[child] ? to : level[child];
        }
    }
    return level;
}

/* Per job, the time from its first arrival to its last foreground request if all answers took no
 * time: sets the maximum and the mean. */
static void least_times(const struct trace *t, struct trace_graph_stats *out)
{
    const struct trace_graph *g = t->graph;
    uint32_t n = 0;
    OWNED uint32_t *order = order_of(g, (uint32_t)t->n, &n);
    OWNED int64_t *at_ns = xcalloc(t->n + 1, sizeof *at_ns);
    OWNED int64_t *begin_ns = xcalloc(g->n_jobs + 1, sizeof *begin_ns);
    OWNED int64_t *end_ns = xcalloc(g->n_jobs + 1, sizeof *end_ns);
    OWNED bool *seen = xcalloc(g->n_jobs + 1, sizeof *seen);
    for (uint32_t p = 0; p < n; p++) {
        uint32_t i = order[p];
        uint32_t job = g->job[i];
        at_ns[i] += t->rows[i].arrival_ns;
        begin_ns[job] = seen[job] && begin_ns[job] < at_ns[i] ? begin_ns[job] : at_ns[i];
        end_ns[job] = !g->background[i] && at_ns[i] > end_ns[job] ? at_ns[i] : end_ns[job];
        seen[job] = true;
        for (uint32_t k = g->first[i]; k < g->first[i + 1]; k++) {
            int64_t due_ns = at_ns[i] + g->edges[k].gap_ns;
            int64_t *child_ns = &at_ns[g->edges[k].row];
            *child_ns = due_ns > *child_ns ? due_ns : *child_ns;
        }
    }
    for (uint32_t job = 0; job < g->n_jobs; job++) {
        double s = units_s_from_ns(end_ns[job] > begin_ns[job] ? end_ns[job] - begin_ns[job] : 0);
        out->gaps_s_mean += s / g->n_jobs;
        out->gaps_s = s > out->gaps_s ? s : out->gaps_s;
    }
}

struct job_level {
    uint32_t job, level;
};

SORT_BY(by_job, struct job_level, SORT_UP(job), SORT_UP(level))

void trace_graph_stats(const struct trace *t, struct trace_graph_stats *out)
{
    const struct trace_graph *g = t->graph;
    *out = (struct trace_graph_stats){.jobs = g->n_jobs};
    least_times(t, out);
    OWNED uint32_t *level = levels_of(t);
    OWNED struct job_level *v = xmalloc((t->n + 1) * sizeof *v);
    for (uint32_t i = 0; i < t->n; i++) {
        out->joins += g->n_parents[i] > 1;
        out->forks += g->first[i + 1] - g->first[i] > 1;
        out->background += g->background[i];
        v[i] = (struct job_level){g->job[i], level[i]};
    }
    qsort(v, t->n, sizeof *v, by_job);
    double depths = 0.0;
    double widths = 0.0;
    uint32_t run = 0;
    uint32_t widest = 0;
    for (size_t i = 0; i < t->n; i++) {
        bool same = i > 0 && by_job(&v[i], &v[i - 1]) == 0;
        run = same ? run + 1 : 1;
        widest = run > widest ? run : widest;
        if (i + 1 == t->n || v[i + 1].job != v[i].job) {
            depths += v[i].level + 1;
            widths += widest;
            out->depth = v[i].level + 1 > out->depth ? v[i].level + 1 : out->depth;
            out->width = widest > out->width ? widest : out->width;
            widest = 0;
        }
    }
    out->depth_mean = g->n_jobs > 0 ? depths / g->n_jobs : 0.0;
    out->width_mean = g->n_jobs > 0 ? widths / g->n_jobs : 0.0;
}
