/* The interference matrix of `explain --interference`, and its causes as bars. */
#include <errno.h>
#include <math.h>

#include "plots/figure.h"
#include "plots/timeline_read.h"
#include "sim/base/json.h"

static const char *const classes[] = {"reactive", "proactive"};

/* All inputs of explain --interference: -EINVAL with errors when one is something else. */
static int read_all(const struct figure_request *q, cJSON **roots, struct err *e)
{
    for (size_t i = 0; i < q->n_inputs; i++) {
        roots[i] = json_read_file(q->inputs[i].path, e);
        if (roots[i] != NULL && !cJSON_HasObjectItem(roots[i], "interference")) {
            (void)err_add(e,
                          "%s: no interference: expected what `xpusim explain --interference "
                          "--json` prints",
                          q->inputs[i].path);
        }
    }
    return e->n > 0 ? -EINVAL : 0;
}

static void free_all(const struct figure_request *q, cJSON **roots)
{
    for (size_t i = 0; i < q->n_inputs; i++) {
        cJSON_Delete(roots[i]);
    }
}

/* Block per input, victims as rows and aggressors as columns: column, row, seconds per victim. */
static void put_matrix(const char *label, const cJSON *rows, struct figure_data *d)
{
    figure_block(d, "%s", label);
    for (int v = 0; v < 2; v++) {
        for (int a = 0; a < 2; a++) {
            const cJSON *row = cJSON_GetObjectItemCaseSensitive(rows, classes[v]);
            const cJSON *by = cJSON_GetObjectItemCaseSensitive(row, "by");
            const cJSON *cell = cJSON_GetObjectItemCaseSensitive(by, classes[a]);
            double requests = timeline_number(row, "requests");
            figure_cell(d, a);
            figure_cell(d, v);
            figure_cell(d, requests > 0.0 ? timeline_number(cell, "wait_s") / requests : 0.0);
            figure_cell_text(d, classes[a]);
            figure_cell_text(d, classes[v]);
            figure_row_end(d);
        }
    }
}

int figure_interference(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    cJSON *roots[FIGURE_MAX_INPUTS] = {NULL};
    struct figure_texts names = {.n = 0};
    if (read_all(q, roots, e) == 0) {
        for (size_t i = 0; i < q->n_inputs; i++) {
            put_matrix(q->inputs[i].label,
                       cJSON_GetObjectItemCaseSensitive(roots[i], "interference"), d);
            figure_text_add(&names, q->inputs[i].label);
        }
        figure_texts_put(&names, "names", d);
    }
    free_all(q, roots);
    return e->n > 0 ? -EINVAL : 0;
}

/* Causes that are drawn as one part, from the bottom of a bar; NULL ends a part. Every cause of
 * sim/metrics/explain.h is in exactly one. */
#define MAX_TOGETHER 4
static const char *const parts[][MAX_TOGETHER + 1] = {
    {"compute", NULL},
    {"host", NULL},
    {"ddr_slowdown", "device_sharing", "throttling", "graphics", NULL},
    {"recompute", "killed", NULL},
    {"compile", "graph_load", NULL},
    {"kernel_tail", NULL},
    {"queue_same", "batching", NULL},
    {"queue_other", NULL},
    {"held", "held_back", "eviction", NULL},
};
#define N_PARTS (sizeof parts / sizeof parts[0])

/* The edges of the parts, from 0 to the whole. */
static void edges_of(const cJSON *row, double *edge)
{
    const cJSON *causes = cJSON_GetObjectItemCaseSensitive(row, "causes_s");
    double requests = timeline_number(row, "requests");
    edge[0] = 0.0;
    for (size_t k = 0; k < N_PARTS; k++) {
        edge[k + 1] = edge[k];
        for (size_t i = 0; parts[k][i] != NULL; i++) {
            edge[k + 1] += requests > 0.0 ? timeline_number(causes, parts[k][i]) / requests : 0.0;
        }
    }
}

/* Of a class, per input: name, edges, no interval, end of the axis. */
static void put_bars(const struct figure_request *q, cJSON *const *roots, const char *cls,
                     struct figure_data *d)
{
    double edge[FIGURE_MAX_INPUTS][N_PARTS + 1];
    double length[FIGURE_MAX_INPUTS];
    for (size_t i = 0; i < q->n_inputs; i++) {
        const cJSON *all = cJSON_GetObjectItemCaseSensitive(roots[i], "interference");
        edges_of(cJSON_GetObjectItemCaseSensitive(all, cls), edge[i]);
        length[i] = edge[i][N_PARTS];
    }
    figure_block(d, "%s", cls);
    for (size_t i = 0; i < q->n_inputs; i++) {
        figure_cell_text(d, q->inputs[i].label);
        for (size_t k = 0; k <= N_PARTS; k++) {
            figure_cell(d, edge[i][k]);
        }
        figure_cell(d, (double)NAN);
        figure_cell(d, (double)NAN);
        figure_cell(d, figure_bars_end(length, length, q->n_inputs));
        figure_row_end(d);
    }
}

int figure_causes(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    cJSON *roots[FIGURE_MAX_INPUTS] = {NULL};
    struct figure_texts rows = {.n = 0};
    if (read_all(q, roots, e) == 0) {
        for (int c = 0; c < 2; c++) {
            put_bars(q, roots, classes[c], d);
        }
        for (size_t i = 0; i < q->n_inputs; i++) {
            figure_text_add(&rows, q->inputs[i].label);
        }
        figure_var(d, "marked", 0.0);
        figure_texts_put(&rows, "rows", d);
    }
    free_all(q, roots);
    return e->n > 0 ? -EINVAL : 0;
}
