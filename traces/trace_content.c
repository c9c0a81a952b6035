/* Sources in a request graph: the text with which a prompt begins. */
#include <gsl/gsl_sort_uint.h>

#include "traces/traces.h"

/* Numbers the prefix groups from 0 in ascending order of their ids. */
static void number_groups(const struct trace_builder *b, struct map *groups)
{
    OWNED uint32_t *v = xmalloc((b->n + 1) * sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++) {
        v[n] = b->v[i].extra.prefix_group;
        n += v[n] > 0;
    }
    gsl_sort_uint(v, 1, n);
    for (size_t i = 0; i < n; i++) {
        (void)map_number(groups, v[i]);
    }
}

/* Checks that the source is at least as long as the prefix. */
static void check_length(const struct trace_builder *b, uint32_t row, uint32_t source)
{
    if (source >= b->n) {
        return; /* a shared text is as long as its longest prefix */
    }
    const struct trace_row *of = &b->v[source].row;
    if (b->v[row].row.prefix_tokens > (uint64_t)of->input_tokens + of->output_tokens) {
        trace_row_error(
            b, row, "request %u: column prefix_tokens: more than prompt and answer of request %u",
            b->v[row].row.request_id, of->request_id);
    }
}

/* Every row has at most one source: a walk from each row ends, or finds a cycle. */
static void check_ends(const struct trace_builder *b, const uint32_t *source)
{
    OWNED uint32_t *walk =
        xcalloc(b->n + 1, sizeof *walk); /* number of the walk that visited a row, from 1 */
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t at = i;
        while (at < b->n && walk[at] == 0) {
            walk[at] = i + 1;
            at = source[at];
        }
        if (at < b->n && walk[at] == i + 1) {
            trace_row_error(
                b, at, "request %u: column prefix_of: begins with itself, by way of request %u",
                b->v[at].row.request_id, b->v[source[at]].row.request_id);
            break; /* report one only */
        }
    }
}

static uint32_t source_of(const struct trace_builder *b, uint32_t row, const struct map *places,
                          const struct map *groups, uint32_t turn_before)
{
    uint32_t of = b->v[row].node.prefix_of;
    uint32_t group = b->v[row].extra.prefix_group;
    if (of == UINT32_MAX) {
        return group > 0 ? (uint32_t)(b->n + map_find(groups, group)) : turn_before;
    }
    if (group > 0) {
        trace_row_error(b, row,
                        "request %u: column prefix_of: begins like request %u, and has a "
                        "prefix_group; a prompt begins with one text",
                        b->v[row].row.request_id, of);
    }
    size_t source = map_find(places, of);
    if (source == MAP_NONE) {
        trace_row_error(b, row, "request %u: column prefix_of: there is no request %u",
                        b->v[row].row.request_id, of);
        return TRACE_NO_ROW;
    }
    return (uint32_t)source;
}

void trace_content_build(const struct trace_builder *b, const struct map *places,
                         struct trace_graph *g)
{
    bool stated = false;
    for (uint32_t i = 0; i < b->n && !stated; i++) {
        stated = b->v[i].node.prefix_of != UINT32_MAX || b->v[i].extra.prefix_group > 0;
    }
    if (!stated) {
        return;
    }
    size_t before = b->err->n;
    OWNED uint32_t *last = xmalloc((b->n + 1) * sizeof *last); /* previous turn */
    for (uint32_t i = 0; i < b->n; i++) {
        last[i] = TRACE_NO_ROW;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->v[i].row.next != TRACE_NO_ROW) {
            last[b->v[i].row.next] = i;
        }
    }
    SCOPED(map_fini) struct map groups = {0};
    number_groups(b, &groups);
    g->n_groups = groups.n;
    g->source = xmalloc((b->n + 1) * sizeof *g->source);
    for (uint32_t i = 0; i < b->n; i++) {
        g->source[i] =
            b->err->n < ERR_MAX_LINES ? source_of(b, i, places, &groups, last[i]) : TRACE_NO_ROW;
        if (g->source[i] != TRACE_NO_ROW) {
            check_length(b, i, g->source[i]);
        }
    }
    if (b->err->n == before) {
        check_ends(b, g->source);
    }
}

/* Whether a is the request that computes the common text: the one with the longer prefix, or of
 * equal ones with the lower id. (Policies decide which is served first.) */
static bool computes(const struct trace_row *a, const struct trace_row *b)
{
    return b == NULL || a->prefix_tokens > b->prefix_tokens ||
           (a->prefix_tokens == b->prefix_tokens && a->request_id < b->request_id);
}

uint64_t trace_shareable_tokens(const struct trace *t, uint64_t by_class[REQUEST_CLASS_COUNT])
{
    const struct trace_graph *g = t->graph;
    uint32_t n_texts = g != NULL && g->source != NULL ? g->n_groups : 0;
    OWNED const struct trace_row **first = xcalloc(n_texts + 1, sizeof *first);
    memset(by_class, 0, REQUEST_CLASS_COUNT * sizeof *by_class);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct trace_row *r = &t->rows[i];
        by_class[r->cls] += r->prefix_tokens;
        if (n_texts > 0 && g->source[i] != TRACE_NO_ROW && g->source[i] >= t->n) {
            const struct trace_row **of = &first[g->source[i] - t->n];
            *of = computes(r, *of) ? r : *of;
        }
    }
    for (uint32_t k = 0; k < n_texts; k++) {
        by_class[first[k]->cls] -= first[k]->prefix_tokens;
    }
    return by_class[REQUEST_CLASS_REACTIVE] + by_class[REQUEST_CLASS_PROACTIVE];
}
