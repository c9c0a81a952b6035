#include "sim/metrics/critical.h"

const char *const critical_gap_names[CRITICAL_GAPS] = {
    [CRITICAL_GAP_TOOL] = "tool", [CRITICAL_GAP_THINK] = "think", [CRITICAL_GAP_START] = "start"};
const char *const critical_gap_texts[CRITICAL_GAPS] = {
    [CRITICAL_GAP_TOOL] = "a tool ran",
    [CRITICAL_GAP_THINK] = "a person thought, or no tool is stated",
    [CRITICAL_GAP_START] = "the job began with another request"};

/* ---- dependencies ---- */

static void add_edge(struct critical_path *p, uint32_t from, uint32_t to_row, int64_t gap_ns)
{
    uint32_t to = 0;
    while (to < p->n && p->v[to].row != to_row) {
        to++;
    }
    if (to < p->n) {
        KEPT_ADD(p->edges, p->n_edges, (struct critical_edge){from, to, gap_ns});
    }
}

/* Parents in another job have no edge. */
static void gather_edges(const struct trace *t, struct critical_path *p)
{
    const struct trace_graph *g = t->graph;
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t row = p->v[i].row;
        uint32_t next = t->rows[row].next;
        if (g == NULL && next != TRACE_NO_ROW) {
            add_edge(p, i, next, t->rows[next].arrival_ns);
        }
        for (uint32_t k = g != NULL ? g->first[row] : 0; g != NULL && k < g->first[row + 1]; k++) {
            const struct trace_edge *e = &g->edges[k];
            add_edge(p, i, e->row, e->gap_ns + t->rows[e->row].arrival_ns);
        }
    }
}

/* Finds the request that a request waited for last, and when it was due if it never arrived.
 * Resolves its parents first; graphs have no cycles. */
static void resolve(const struct trace *t, struct critical_path *p, bool *known, uint32_t at)
{
    struct critical_request *r = &p->v[at];
    int64_t due_ns = t->rows[r->row].arrival_ns;
    if (known[at]) {
        return;
    }
    known[at] = true;
    for (size_t k = 0; k < p->n_edges; k++) {
        const struct critical_edge *e = &p->edges[k];
        if (e->to != at) {
            continue;
        }
        resolve(t, p, known, e->from);
        int64_t ready_ns = p->v[e->from].end_ns + e->gap_ns;
        if (r->after == CRITICAL_NONE || ready_ns > due_ns) {
            due_ns = ready_ns;
            r->after = e->from;
        }
    }
    if (r->why == NULL) {
        r->arrival_ns = r->end_ns = due_ns;
    }
    SIM_ASSERT(r->after == CRITICAL_NONE || r->arrival_ns >= due_ns);
    if (r->arrival_ns > due_ns) {
        /* It waited for one that never arrived, whose parents are in another job: an unknown
         * instant. */
        r->after = CRITICAL_NONE;
    }
}

/* ---- the path ---- */

static bool of_job(const struct trace *t, uint32_t row, uint32_t like)
{
    return t->graph != NULL ? t->graph->job[row] == t->graph->job[like]
                            : t->rows[row].session_id == t->rows[like].session_id;
}

/* Collects the job's requests, its begin and its end. Returns the index of its last foreground
 * request, or CRITICAL_NONE if none has ended. */
static uint32_t gather(const struct trace *t, const struct explain *x, uint32_t like,
                       struct critical_path *p)
{
    uint32_t last = CRITICAL_NONE;
    for (uint32_t row = 0; row < t->n; row++) {
        if (!of_job(t, row, like)) {
            continue;
        }
        p->v = xkept_grow(p->v, p->n, sizeof *p->v);
        struct critical_request *r = &p->v[p->n];
        const struct explanation *why = explain_find(x, t->rows[row].request_id);
        bool background = t->graph != NULL && t->graph->background[row];
        *r = (struct critical_request){
            .row = row, .why = why, .after = CRITICAL_NONE, .background = background};
        p->complete = p->complete && (background || (why != NULL && why->finished));
        if (why != NULL) {
            r->arrival_ns = why->arrival_ns;
            r->end_ns = why->end_ns;
            p->first_ns = r->arrival_ns < p->first_ns ? r->arrival_ns : p->first_ns;
            bool later = last == CRITICAL_NONE || r->end_ns > p->v[last].end_ns;
            last = !background && later ? (uint32_t)p->n : last;
        }
        p->n++;
    }
    return last;
}

int64_t critical_gap_of(const struct critical_path *p, const struct trace *t, size_t step,
                        enum critical_gap *kind)
{
    const struct critical_request *r = &p->v[p->steps[step]];
    if (step == 0) {
        *kind = CRITICAL_GAP_START;
        return r->arrival_ns - p->first_ns;
    }
    *kind = t->rows[r->row].after_tool ? CRITICAL_GAP_TOOL : CRITICAL_GAP_THINK;
    return r->arrival_ns - p->v[p->steps[step - 1]].end_ns;
}

/* The first step must have arrived. Earlier ones that did not took no time, and may have been due
 * before the job began. */
static void take_steps(struct critical_path *p, uint32_t last)
{
    size_t n = 0;
    for (uint32_t i = last; i != CRITICAL_NONE; i = p->v[i].after) {
        n++;
        p->n_steps = p->v[i].why != NULL ? n : p->n_steps;
    }
    p->steps = xkept(xcalloc(p->n_steps, sizeof *p->steps));
    uint32_t i = last;
    for (size_t at = p->n_steps; at-- > 0; i = p->v[i].after) {
        p->steps[at] = i;
        p->v[i].on_path = true;
    }
}

static void add_up(struct critical_path *p, const struct trace *t)
{
    int64_t sum_ns = 0;
    for (size_t i = 0; i < p->n_steps; i++) {
        enum critical_gap kind;
        int64_t gap_ns = critical_gap_of(p, t, i, &kind);
        const struct explanation *why = p->v[p->steps[i]].why;
        SIM_ASSERT(gap_ns >= 0);
        p->gap_ns[kind] += gap_ns;
        sum_ns += gap_ns;
        for (int c = 0; c < EXPLAIN_CAUSE_COUNT && why != NULL; c++) {
            p->ns[c] += why->ns[c];
            sum_ns += why->ns[c];
        }
    }
    SIM_ASSERT(sum_ns == p->end_ns - p->first_ns);
}

int critical_find(const struct trace *t, const struct explain *x, uint32_t request_id,
                  struct critical_path *out)
{
    *out = (struct critical_path){.first_ns = INT64_MAX, .complete = true};
    uint32_t like = 0;
    while (t->rows != NULL && like < t->n && t->rows[like].request_id != request_id) {
        like++;
    }
    uint32_t last = t->rows != NULL && like < t->n ? gather(t, x, like, out) : CRITICAL_NONE;
    if (last == CRITICAL_NONE) {
        return -ENOENT;
    }
    OWNED bool *known = xcalloc(out->n, sizeof *known);
    gather_edges(t, out);
    for (uint32_t i = 0; i < out->n; i++) {
        resolve(t, out, known, i);
    }
    out->end_ns = out->v[last].end_ns;
    take_steps(out, last);
    add_up(out, t);
    return 0;
}
