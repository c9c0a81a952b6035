
#include "sim/api/request.h"
#include "traces/import.h"

/* An agent: a session, a trajectory or a thread. */
struct agent {
    struct import_stream requests;
    struct import_sent origin;     /* request of its parent; row IMPORT_NONE: none */
    size_t parent, child, sibling; /* agents, or IMPORT_NONE: newest child, next older sibling */
    size_t last;                   /* the record that ends last */
    uint32_t job;
    bool begun, waited, background;
};

void import_record_add(struct import_records *d, const struct import_record *x, const char *model)
{
    d->model = d->model == NULL ? xkeep(xstrdup(model)) : d->model;
    d->v = xgrow(d->v, d->n, sizeof *d->v);
    d->v[d->n] = *x;
    d->v[d->n].place = d->n;
    d->v[d->n++].other_model = strcmp(model, d->model) != 0;
}

void import_records_fini(struct import_records *d)
{
    free(d->v);
}

SORT_BY(by_start, struct import_record, SORT_UP(row.start_ns), SORT_UP(place))

/* The agents, in order of their first requests. A request without a trajectory is an agent of its
 * own. `of` gets the agent of every record. The caller frees the result. */
static struct agent *agents_of(const struct import_records *d, size_t *of, size_t *n_agents)
{
    SCOPED(map_fini) struct map places = {0};
    struct agent *agents = xcalloc(d->n + 1, sizeof *agents);
    *n_agents = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct import_record *x = &d->v[i];
        size_t at = x->agent != 0 ? map_find(&places, x->agent) : IMPORT_NONE;
        if (at == IMPORT_NONE) {
            at = (*n_agents)++;
            agents[at] = (struct agent){
                .parent = IMPORT_NONE, .child = IMPORT_NONE, .sibling = IMPORT_NONE, .last = i};
            agents[at].origin.row = IMPORT_NONE;
            agents[at].job = (uint32_t)at;
            if (x->agent != 0) {
                map_put(&places, x->agent, at);
            }
            size_t parent = x->parent != 0 && x->parent != x->agent ? map_find(&places, x->parent)
                                                                    : IMPORT_NONE;
            if (parent != IMPORT_NONE) { /* seen before; otherwise the order is unknown */
                agents[at].parent = parent;
                agents[at].sibling = agents[parent].child;
                agents[parent].child = at;
                agents[at].job = agents[parent].job;
            }
        }
        bool later = x->row.end_ns >= d->v[agents[at].last].row.end_ns;
        agents[at].last = later ? i : agents[at].last;
        of[i] = at;
    }
    return agents;
}

/* The record that ends last of an agent and of its subagents that are not waited for: the answer to
 * its last request may be up to its child. */
static size_t last_of(const struct import_records *d, const struct agent *agents, size_t self)
{
    size_t last = agents[self].last;
    for (size_t at = agents[self].child; at != IMPORT_NONE;) {
        const struct agent *a = &agents[at];
        if (!a->waited) {
            last = d->v[a->last].row.end_ns > d->v[last].row.end_ns ? a->last : last;
        }
        if (!a->waited && a->child != IMPORT_NONE) {
            at = a->child;
            continue;
        }
        while (at != self && agents[at].sibling == IMPORT_NONE) {
            at = agents[at].parent;
        }
        at = at == self ? IMPORT_NONE : agents[at].sibling;
    }
    return last;
}

/* Adds edges from subagents that have ended; those still running are in the background. */
static int64_t wait_for(const struct import_records *d, struct agent *agents, size_t self,
                        const size_t *row_of, struct import_node *node, int64_t start_ns,
                        int64_t end_ns)
{
    for (size_t i = agents[self].child; i != IMPORT_NONE; i = agents[i].sibling) {
        struct agent *a = &agents[i];
        if (!a->begun || a->waited) {
            continue;
        }
        size_t last = last_of(d, agents, i);
        int64_t last_ns = d->v[last].row.end_ns;
        a->waited = true;
        if (last_ns <= start_ns) {
            import_edge_add(node, row_of[last], 0);
            end_ns = last_ns > end_ns ? last_ns : end_ns;
        } else {
            a->background = true;
        }
    }
    return end_ns;
}

/* Marks the agents in the background, with all their descendants. */
static void in_background(struct import *im, struct agent *agents, size_t n_agents)
{
    for (size_t i = 0; i < n_agents; i++) { /* parents are before their children */
        struct agent *a = &agents[i];
        a->background = a->background || (a->parent != IMPORT_NONE && agents[a->parent].background);
        for (size_t k = 0; k < a->requests.n && a->background; k++) {
            im->nodes[a->requests.v[k].row].background = true;
            im->rows[a->requests.v[k].row].cls = REQUEST_CLASS_PROACTIVE;
        }
    }
}

/* Limits the cached prefix to the previous turn's prompt and answer, and to this prompt. The rest
 * was cached by another session. */
static void keep_prefix(struct import *im, struct import_row *r, const struct import_node *node)
{
    const struct import_row *before = node->before != IMPORT_NONE ? &im->rows[node->before] : NULL;
    uint64_t most = before != NULL ? before->input + before->output : 0;
    most = most < r->input ? most : r->input;
    uint64_t served = r->prefix < most ? r->prefix : most;
    im->lost.prefix_tokens += r->prefix - served;
    r->prefix = served;
}

void import_records_build(struct import *im, struct import_records *d)
{
    if (d->n > 0) { /* an empty list is NULL */
        qsort(d->v, d->n, sizeof *d->v, by_start);
    }
    size_t n_agents = 0;
    OWNED size_t *of = xcalloc(d->n + 1, sizeof *of);
    OWNED size_t *row_of = xcalloc(d->n + 1, sizeof *row_of);
    OWNED struct agent *agents = agents_of(d, of, &n_agents);
    for (size_t i = 0; i < d->n; i++) {
        struct import_row r = d->v[i].row;
        struct agent *a = &agents[of[i]];
        if (!a->begun && a->parent != IMPORT_NONE) {
            const struct import_sent *from =
                import_last_before(&agents[a->parent].requests, r.start_ns);
            a->origin = from != NULL ? *from : a->origin;
        }
        a->begun = true;
        struct import_node node = {.before = IMPORT_NONE, .source = IMPORT_NONE, .job = a->job};
        bool has_origin = a->origin.row != IMPORT_NONE;
        int64_t end_ns = import_place(im, &a->requests, &r, has_origin ? &a->origin : NULL, &node);
        end_ns = wait_for(d, agents, of[i], row_of, &node, r.start_ns, end_ns);
        node.gap_ns = r.start_ns - end_ns;
        keep_prefix(im, &r, &node);
        row_of[i] = im->n;
        im->lost.other_model += d->v[i].other_model;
        import_stream_add(im, &a->requests, &r, &node, r.end_ns, true);
    }
    in_background(im, agents, n_agents);
    for (size_t i = 0; i < n_agents; i++) {
        free(agents[i].requests.v);
    }
}
