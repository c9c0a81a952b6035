/* Tornado of `compare --uncertainty`: the difference of two policies with one number alone at
 * either end of what it may be; and the share of machines on which each policy is best. */
#include <errno.h>
#include <stdio.h>

#include "plots/figure.h"
#include "plots/series.h"
#include "plots/timeline_read.h"
#include "sim/base/json.h"

/* Rows: place, difference at the file's value, at the low and at the high end. */
static size_t put_factors(const cJSON *of_metric, struct figure_data *d, struct figure_texts *rows)
{
    size_t n = 0;
    figure_block(d, "factors");
    const cJSON *policy;
    cJSON_ArrayForEach(policy, of_metric)
    {
        const cJSON *f;
        cJSON_ArrayForEach(f, policy)
        {
            char name[160];
            (void)snprintf(name, sizeof name, "%.60s%s%.40s", f->string,
                           cJSON_GetArraySize(of_metric) > 1 ? ", " : "",
                           cJSON_GetArraySize(of_metric) > 1 ? policy->string : "");
            figure_text_add(rows, name);
            figure_cell(d, (double)n++);
            figure_cell(d, timeline_number(f, "difference_file"));
            figure_cell(d, timeline_number(f, "difference_low"));
            figure_cell(d, timeline_number(f, "difference_high"));
            figure_row_end(d);
        }
    }
    return n;
}

int figure_tornado(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    if (q->n_inputs != 1) {
        return err_add(e, "tornado takes one input, not %zu", q->n_inputs);
    }
    cJSON *root = json_read_file(q->inputs[0].path, e);
    const cJSON *u = cJSON_GetObjectItemCaseSensitive(root, "uncertainty");
    const cJSON *factors = cJSON_GetObjectItemCaseSensitive(u, "factors");
    if (root != NULL && (factors == NULL || factors->child == NULL)) {
        (void)err_add(e,
                      "%s: no uncertainty: expected what `xpusim compare --uncertainty N --json` "
                      "prints",
                      q->inputs[0].path);
    }
    if (e->n > 0) {
        cJSON_Delete(root);
        return -EINVAL;
    }
    struct figure_texts rows = {.n = 0};
    const cJSON *of_metric = factors->child;
    figure_var(d, "factor_rows", (double)put_factors(of_metric, d, &rows));
    const cJSON *best = cJSON_GetObjectItemCaseSensitive(u, "best");
    figure_block(d, "best");
    struct figure_texts best_names = {.n = 0};
    double at = 0.0;
    const cJSON *p;
    cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(best, of_metric->string))
    {
        figure_cell(d, at);
        at += 1.0;
        figure_cell(d, timeline_number(p, "best_frac"));
        figure_cell_text(d, p->string);
        figure_row_end(d);
        figure_text_add(&best_names, p->string);
    }
    figure_slots_put((const char *const *)best_names.v, best_names.n, d);
    figure_texts_put(&best_names, "best_names", d);
    figure_var(d, "policies", at);
    figure_var(d, "machines", timeline_number(u, "machines"));
    series_titles((const char *const[]){of_metric->string}, 1, d);
    figure_texts_put(&rows, "rows", d);
    cJSON_Delete(root);
    return 0;
}
