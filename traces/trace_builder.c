/* Collects the requests of a trace before it is built. */
#include "traces/traces.h"

void trace_builder_init(struct trace_builder *b)
{
    *b = (struct trace_builder){0};
}

void trace_builder_fini(struct trace_builder *b)
{
    arena_fini(&b->memory);
    free(b->models);
    free(b->v);
    *b = (struct trace_builder){0};
}

struct trace_extra trace_extra_none(void)
{
    return (struct trace_extra){.ttft_slo_ns = TIME_NEVER_NS,
                                .tbt_slo_ns = TIME_NEVER_NS,
                                .deadline_ns = TIME_NEVER_NS,
                                .cancel_ns = TIME_NEVER_NS,
                                .until_ns = TIME_NEVER_NS};
}

struct trace_node trace_node_none(void)
{
    return (struct trace_node){.ends_with = UINT32_MAX, .prefix_of = UINT32_MAX};
}

struct trace_extra trace_extra_usual(const struct trace_row *row)
{
    struct trace_extra x = trace_extra_none();
    x.client_id = row->session_id;
    return x;
}

void trace_builder_add(struct trace_builder *b, const struct trace_row *row,
                       const struct trace_extra *extra)
{
    b->v = xroom(b->v, b->n + 1, &b->cap, sizeof *b->v);
    b->v[b->n] = (struct trace_built){*row, extra != NULL ? *extra : trace_extra_usual(row),
                                      trace_node_none(), (uint32_t)b->line, (uint32_t)b->n};
    b->extras = b->extras || extra != NULL;
    b->n++;
}

void trace_builder_node(struct trace_builder *b, const struct trace_node *node)
{
    struct trace_node *own = &b->v[b->n - 1].node;
    *own = *node;
    if (node->n_parents > 0) {
        size_t bytes = node->n_parents * sizeof *node->parents;
        own->parents = memcpy(arena_alloc(&b->memory, bytes), node->parents, bytes);
    }
    b->graph = true;
}

void trace_row_error(const struct trace_builder *b, size_t row, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    OWNED char *what = xvformat(fmt, ap);
    va_end(ap);
    if (b->v[row].line != 0) {
        err_add(b->err, "%s:%u: %s", b->name, b->v[row].line, what);
    } else {
        err_add(b->err, "%s: %s", b->name, what);
    }
}
