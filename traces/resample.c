/* Draws a trace from a recorded one: whole sessions, and the gaps between their starts. In a
 * request graph, whole groups of jobs, so that dependent jobs stay together. */
#include "sim/api/request.h"
#include "sim/base/rng.h"
#include "traces/traces.h"

struct draw {
    const struct trace *from;
    struct trace_builder out;
    struct rng rng;
    uint32_t n_drawn;
    /* Per row of a request graph: the group's first row, the session's first turn, the next row of
     * the group. All owned; NULL without a graph. */
    uint32_t *group, *head, *next;
    struct trace_node *nodes; /* owned; their parents are rows, not ids */
};

/* Adds a copy of row i, shifted by later_ns. */
static void add_row(struct draw *d, uint32_t i, struct trace_row row, int64_t later_ns)
{
    const struct trace *t = d->from;
    if (t->extras == NULL) {
        trace_builder_add(&d->out, &row, NULL);
        return;
    }
    struct trace_extra extra = t->extras[i];
    extra.until_ns += extra.until_ns != TIME_NEVER_NS ? later_ns : 0; /* an instant */
    bool own = extra.client_id == t->rows[i].session_id; /* the session is the client */
    extra.client_id = own ? row.session_id : extra.client_id;
    trace_builder_add(&d->out, &row, &extra);
}

/* ---- sessions ---- */

/* Adds all turns of a session, which starts at start_ns. */
static void add_session(struct draw *d, uint32_t first, int64_t start_ns)
{
    const struct trace *t = d->from;
    for (uint32_t i = first; i != TRACE_NO_ROW; i = t->rows[i].next) {
        struct trace_row row = t->rows[i];
        row.session_id = d->n_drawn;
        row.arrival_ns = i == first ? start_ns : row.arrival_ns;
        add_row(d, i, row, start_ns - t->rows[first].arrival_ns);
    }
    d->n_drawn++;
}

/* ---- groups of jobs ---- */

static void join(uint32_t *up, uint32_t i, uint32_t k)
{
    if (k != TRACE_NO_ROW) {
        uint32_t a = trace_root_of(up, i);
        uint32_t b = trace_root_of(up, k);
        up[a > b ? a : b] = a > b ? b : a; /* the lower row is the root */
    }
}

/* Joins rows that are linked by dependencies, turns, prefixes or cancellation. */
static void find_groups(struct draw *d)
{
    const struct trace *t = d->from;
    const struct trace_graph *g = t->graph;
    d->group = xmalloc((t->n + 1) * sizeof *d->group);
    d->head = xmalloc((t->n + 1) * sizeof *d->head);
    d->next = xmalloc((t->n + 1) * sizeof *d->next);
    OWNED uint32_t *last = xmalloc((t->n + 1) * sizeof *last);
    for (uint32_t i = 0; i < t->n; i++) {
        d->group[i] = d->head[i] = last[i] = i;
        d->next[i] = TRACE_NO_ROW;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        for (uint32_t k = g->first[i]; k < g->first[i + 1]; k++) {
            join(d->group, i, g->edges[k].row);
        }
        join(d->group, i, g->ends_with[i]);
        if (g->source != NULL && g->source[i] < t->n) {
            join(d->group, i, g->source[i]);
        }
        for (uint32_t k = t->rows[i].turn == 0 ? i : TRACE_NO_ROW; k != TRACE_NO_ROW;
             k = t->rows[k].next) {
            d->head[k] = i;
        }
    }
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t root = d->group[i] = trace_root_of(d->group, i);
        if (i != root) {
            d->next[last[root]] = i;
            last[root] = i;
        }
    }
}

/* The node of a copy of row i. `ids` is added to row numbers. */
static struct trace_node node_of(const struct draw *d, uint32_t i, uint32_t ids)
{
    const struct trace_graph *g = d->from->graph;
    const struct trace_node *is = &d->nodes[i];
    struct trace_node node = *is;
    node.ends_with = g->ends_with[i] == TRACE_NO_ROW ? UINT32_MAX : ids + g->ends_with[i];
    node.prefix_of = is->prefix_of == UINT32_MAX ? UINT32_MAX : ids + g->source[i];
    node.parents = xcalloc(node.n_parents, sizeof *node.parents);
    for (uint32_t k = 0; k < node.n_parents; k++) {
        node.parents[k] =
            (struct trace_parent){ids + is->parents[k].request_id, is->parents[k].gap_ns};
    }
    return node;
}

/* Adds all rows of a group, which starts at start_ns. Each copy has its own range of ids and
 * sessions. */
static void add_group(struct draw *d, uint32_t first, int64_t start_ns)
{
    const struct trace *t = d->from;
    const int64_t later_ns = start_ns - t->rows[first].arrival_ns;
    const uint32_t ids = d->n_drawn * (uint32_t)t->n;
    for (uint32_t i = first; i != TRACE_NO_ROW; i = d->next[i]) {
        struct trace_row row = t->rows[i];
        row.request_id = ids + i;
        row.session_id = ids + d->head[i];
        row.arrival_ns += t->graph->n_parents[i] == 0 ? later_ns : 0; /* otherwise it is a gap */
        add_row(d, i, row, later_ns);
        struct trace_node node = node_of(d, i, ids);
        trace_builder_node(&d->out, &node);
        free(node.parents);
    }
    d->n_drawn++;
}

/* Makes nodes with rows as ids, so that a copy's ids are sums. */
static void number_nodes(struct draw *d)
{
    const struct trace *t = d->from;
    struct trace numbered = *t;
    numbered.rows = xmalloc((t->n + 1) * sizeof *numbered.rows);
    for (uint32_t i = 0; i < t->n; i++) {
        numbered.rows[i] = t->rows[i];
        numbered.rows[i].request_id = i;
    }
    d->nodes = trace_graph_nodes(&numbered);
    free(numbered.rows);
}

/* ---- sessions and groups ---- */

static void add(struct draw *d, uint32_t first, int64_t start_ns)
{
    (d->group != NULL ? add_group : add_session)(d, first, start_ns);
}

/* Whether the session or group is of a closed-loop client: it has a last instant. */
static bool is_closed(const struct draw *d, uint32_t first)
{
    const struct trace *t = d->from;
    bool closed = false;
    for (uint32_t i = first; t->extras != NULL && i != TRACE_NO_ROW && !closed;
         i = d->group != NULL ? d->next[i] : t->rows[i].next) {
        closed = t->extras[i].until_ns != TIME_NEVER_NS;
    }
    return closed;
}

/* First rows of a class, in order of their starts. The caller frees them. */
static uint32_t *firsts_of(const struct draw *d, int cls, bool closed, uint32_t *n)
{
    const struct trace *t = d->from;
    uint32_t *first = xmalloc((t->n_first + 1) * sizeof *first);
    *n = 0;
    for (uint32_t i = 0; i < t->n_first; i++) {
        bool begins = t->rows[i].cls == cls && (d->group == NULL || d->group[i] == i);
        if (begins && is_closed(d, i) == closed) {
            first[(*n)++] = i;
        }
    }
    return first;
}

/* Clients of closed loops last for the whole recording: draws as many, with the recorded starts. */
static void draw_closed(struct draw *d, int cls)
{
    uint32_t n;
    OWNED uint32_t *first = firsts_of(d, cls, true, &n);
    for (uint32_t k = 0; k < n; k++) {
        add(d, first[rng_below(&d->rng, n)], d->from->rows[first[k]].arrival_ns);
    }
}

/* Draws other sessions with the gaps of the recording, taken as cyclic: the time after the last
 * start and before the first is one gap. Starts at a random instant of it, so that the mean number
 * is the recorded one. */
static void draw_open(struct draw *d, int cls, int64_t window_ns)
{
    const struct trace *t = d->from;
    const uint64_t most = d->group != NULL ? UINT32_MAX / (t->n + 1) : t->n * 4;
    uint32_t n;
    OWNED uint32_t *first = firsts_of(d, cls, false, &n);
    const int64_t from_ns = (int64_t)(rng_uniform(&d->rng) * (double)window_ns);
    uint32_t next = 0;
    while (next < n && t->rows[first[next]].arrival_ns < from_ns) {
        next++;
    }
    const int64_t turned_ns = next == n ? window_ns - from_ns : -from_ns;
    int64_t now_ns = n > 0 ? t->rows[first[next % n]].arrival_ns + turned_ns : window_ns;
    /* n_drawn is limited because gaps of 0 never reach the end */
    while (now_ns < window_ns && d->n_drawn <= t->n * 4 && d->n_drawn < most) {
        add(d, first[rng_below(&d->rng, n)], now_ns);
        const uint32_t gap = rng_below(&d->rng, n);
        const int64_t before_ns = gap > 0 ? t->rows[first[gap - 1]].arrival_ns
                                          : t->rows[first[n - 1]].arrival_ns - window_ns;
        now_ns += t->rows[first[gap]].arrival_ns - before_ns;
    }
}

size_t trace_resample_fixed(const struct trace *t)
{
    struct draw d = {.from = t};
    if (t->graph != NULL) {
        find_groups(&d);
    }
    size_t fixed = 0;
    for (int cls = REQUEST_CLASS_REACTIVE; cls <= REQUEST_CLASS_PROACTIVE; cls++) {
        uint32_t n;
        OWNED uint32_t *first = firsts_of(&d, cls, true, &n);
        for (uint32_t i = n == 1 ? first[0] : TRACE_NO_ROW; i != TRACE_NO_ROW;
             i = d.group != NULL ? d.next[i] : t->rows[i].next) {
            fixed++;
        }
    }
    free(d.group);
    free(d.head);
    free(d.next);
    return fixed;
}

int trace_resample(const struct trace *t, bool jobs, uint64_t seed, struct trace *out,
                   struct err *e)
{
    if (t->graph != NULL && !jobs) {
        return err_add(e,
                       "sessions of request graphs belong to jobs: --resample jobs redraws these");
    }
    struct draw d = {.from = t};
    trace_builder_init(&d.out);
    rng_init(&d.rng, rng_key(seed, RNG_RESAMPLE, 0, 0));
    int64_t window_ns = t->n_first > 0 ? t->rows[t->n_first - 1].arrival_ns : 0;
    uint32_t n_groups = 0;
    if (t->graph != NULL) {
        find_groups(&d);
        number_nodes(&d);
        trace_builder_models_copy(&d.out, t);
        for (uint32_t i = 0; i < t->n; i++) {
            n_groups += d.group[i] == i;
            window_ns = d.group[i] == i ? t->rows[i].arrival_ns : window_ns;
        }
    }
    window_ns = window_ns > 0 ? window_ns : 1; /* all start at once: draw as many at once */
    int rc = 0;
    if (n_groups == 1) {
        rc = err_add(
            e, "the recording hangs together, and nothing of it can be redrawn alone (%u job%s)",
            t->graph->n_jobs, text_plural(t->graph->n_jobs));
    }
    for (int cls = REQUEST_CLASS_REACTIVE; cls <= REQUEST_CLASS_PROACTIVE && rc == 0; cls++) {
        draw_closed(&d, cls);
        draw_open(&d, cls, window_ns);
    }
    if (d.n_drawn == 0 && t->n_first > 0 && rc == 0) {
        add(&d, 0, t->rows[0].arrival_ns);
    }
    rc = rc == 0 ? trace_build(&d.out, t->graph == NULL, jobs ? "redrawn jobs" : "redrawn sessions",
                               out, e)
                 : rc;
    if (rc == 0) {
        trace_copy_machine(out, t);
        trace_set_texts(out, t->texts);
    }
    trace_builder_fini(&d.out);
    free(d.nodes);
    free(d.group);
    free(d.head);
    free(d.next);
    return rc;
}
