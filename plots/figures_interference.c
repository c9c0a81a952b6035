/* The interference matrix of `explain --interference`, and its causes as bars. */
#include <errno.h>

#include "plots/figure.h"
#include "plots/timeline_read.h"
#include "sim/base/json.h"

int figure_interference(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    if (q->n_inputs != 1) {
        return err_add(e, "interference takes one input, not %zu", q->n_inputs);
    }
    cJSON *root = json_read_file(q->inputs[0].path, e);
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(root, "interference");
    if (root != NULL && cJSON_GetArraySize(rows) == 0) {
        (void)err_add(e,
                      "%s: no interference: expected what `xpusim explain --interference --json` "
                      "prints",
                      q->inputs[0].path);
    }
    if (e->n > 0) {
        cJSON_Delete(root);
        return -EINVAL;
    }
    static const char *const classes[] = {"reactive", "proactive"};
    figure_block(d, "interference");
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
    figure_var(d, "rows", 2.0);
    figure_var(d, "columns", 2.0);
    cJSON_Delete(root);
    return 0;
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

static void put_bar(const char *label, const cJSON *row, struct figure_data *d)
{
    const cJSON *causes = cJSON_GetObjectItemCaseSensitive(row, "causes_s");
    double requests = timeline_number(row, "requests");
    double edge = 0.0;
    figure_cell_text(d, label);
    figure_cell(d, edge);
    for (size_t k = 0; k < N_PARTS; k++) {
        for (size_t i = 0; parts[k][i] != NULL; i++) {
            edge += requests > 0.0 ? timeline_number(causes, parts[k][i]) / requests : 0.0;
        }
        figure_cell(d, edge);
    }
    figure_row_end(d);
}

int figure_causes(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const classes[] = {"reactive", "proactive"};
    cJSON *roots[FIGURE_MAX_INPUTS] = {NULL};
    struct figure_rows rows = {.n = 0};
    for (size_t i = 0; i < q->n_inputs; i++) {
        roots[i] = json_read_file(q->inputs[i].path, e);
        if (roots[i] != NULL && !cJSON_HasObjectItem(roots[i], "interference")) {
            (void)err_add(e,
                          "%s: no interference: expected what `xpusim explain --interference "
                          "--json` prints",
                          q->inputs[i].path);
        }
        figure_row_name(&rows, q->inputs[i].label);
    }
    for (int c = 0; c < 2 && e->n == 0; c++) {
        figure_block(d, "%s", classes[c]);
        for (size_t i = 0; i < q->n_inputs; i++) {
            const cJSON *all = cJSON_GetObjectItemCaseSensitive(roots[i], "interference");
            put_bar(q->inputs[i].label, cJSON_GetObjectItemCaseSensitive(all, classes[c]), d);
        }
    }
    figure_var(d, "bars", (double)rows.n);
    figure_rows_put(&rows, d);
    for (size_t i = 0; i < q->n_inputs; i++) {
        cJSON_Delete(roots[i]);
    }
    return e->n > 0 ? -EINVAL : 0;
}
