/* Combines several traces: recordings of users, and the background work of another trace. */
#include "traces/traces.h"

/* The largest id in a trace. */
static uint32_t most_of(const struct trace *t)
{
    uint32_t most = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_extra *x = t->extras != NULL ? &t->extras[i] : NULL;
        const uint32_t numbers[] = {t->rows[i].request_id, t->rows[i].session_id,
                                    x != NULL ? x->client_id : 0, x != NULL ? x->prefix_group : 0};
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
            most = numbers[k] > most ? numbers[k] : most;
        }
    }
    return most;
}

static void add_node(struct trace_builder *b, const struct trace *t, const char *name,
                     struct trace_node node, uint32_t base)
{
    for (uint32_t k = 0; k < node.n_parents; k++) {
        node.parents[k].request_id += base;
    }
    node.ends_with += node.ends_with != UINT32_MAX ? base : 0;
    node.prefix_of += node.prefix_of != UINT32_MAX ? base : 0;
    if (node.model > 0) {
        node.model =
            trace_builder_model(b, t->graph->models[node.model - 1].name, name, 0, "model");
    }
    trace_builder_node(b, &node);
}

/* Adds all rows, with `base` added to every id, so that ids of traces differ. */
static void add_trace(struct trace_builder *b, const struct trace *t, const char *name,
                      uint32_t base)
{
    OWNED struct trace_node *nodes = t->graph != NULL ? trace_graph_nodes(t) : NULL;
    for (size_t i = 0; i < t->n; i++) {
        struct trace_row row = t->rows[i];
        row.request_id += base;
        row.session_id += base;
        struct trace_extra extra = t->extras != NULL ? t->extras[i] : trace_extra_none();
        extra.client_id += base;
        extra.prefix_group += extra.prefix_group > 0 ? base : 0;
        trace_builder_add(b, &row, t->extras != NULL ? &extra : NULL);
        if (nodes != NULL) {
            add_node(b, t, name, nodes[i], base);
        }
    }
}

int trace_mix(const struct trace *v, const char *const *names, uint32_t n, struct trace *out,
              struct err *e)
{
    struct trace_builder b;
    trace_builder_init(&b);
    uint64_t base = 0;
    const struct trace *events = NULL;
    size_t before = e->n;
    for (uint32_t i = 0; i < n && e->n == before; i++) {
        if (v[i].n_machine > 0 && events != NULL) {
            (void)err_add(e, "%s: a trace before it has events of the machine, too", names[i]);
        } else if (base + most_of(&v[i]) >= UINT32_MAX) {
            (void)err_add(e, "%s: its numbers and those before it go beyond %u", names[i],
                          UINT32_MAX - 1);
        } else {
            events = v[i].n_machine > 0 ? &v[i] : events;
            add_trace(&b, &v[i], names[i], (uint32_t)base);
            base += (uint64_t)most_of(&v[i]) + 1;
        }
    }
    int rc = e->n > before ? -EINVAL : trace_build(&b, false, "the mixed trace", out, e);
    if (rc == 0 && events != NULL) {
        trace_copy_machine(out, events);
    }
    trace_builder_fini(&b);
    return rc;
}
