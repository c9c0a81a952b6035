/* The interference matrix of `explain --interference`. */
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
