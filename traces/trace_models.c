/* The models named by requests of a trace. */
#include <ctype.h>

#include "traces/traces.h"

bool trace_model_is_name(const char *text)
{
    const char *c = text;
    while (isalnum((unsigned char)*c) || (*c != '\0' && strchr("._-", *c) != NULL)) {
        c++;
    }
    return c > text && *c == '\0';
}

uint32_t trace_builder_model(struct trace_builder *b, const char *name, const char *file,
                             uint64_t line, const char *key)
{
    for (uint32_t i = 0; i < b->n_models; i++) {
        if (strcmp(b->models[i].name, name) == 0) {
            return i + 1;
        }
    }
    if (!trace_model_is_name(name)) {
        return 0;
    }
    b->models = xgrow(b->models, b->n_models, sizeof *b->models);
    b->models[b->n_models] = (struct trace_model){
        .name = xkeep(xstrdup(name)),
        .where = xkeep(line > 0 ? xformat("%s:%" PRIu64 ": column model", file, line)
                                : xformat("%s: %s", file, key))};
    return ++b->n_models;
}

void trace_builder_models_copy(struct trace_builder *b, const struct trace *t)
{
    for (uint32_t i = 0; t->graph != NULL && i < t->graph->n_models; i++) {
        b->models = xgrow(b->models, i, sizeof *b->models);
        b->models[b->n_models++] = t->graph->models[i];
    }
}

void trace_models_build(struct trace_builder *b, struct trace_graph *g)
{
    if (b->n_models == 0) {
        return;
    }
    g->models = b->models;
    g->n_models = b->n_models;
    b->models = NULL;
    b->n_models = 0;
    g->model = xcalloc(b->n + 1, sizeof *g->model);
    for (uint32_t i = 0; i < b->n; i++) {
        g->model[i] = b->v[i].node.model;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t next = b->v[i].row.next;
        if (next != TRACE_NO_ROW && g->model[next] != g->model[i]) {
            trace_row_error(b, next,
                            "request %u: column model: its session began with another model",
                            b->v[next].row.request_id);
            return; /* report one only */
        }
    }
}
