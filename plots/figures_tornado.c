/* Tornado of `compare --uncertainty`: the difference of two policies with one number alone at
 * either end of what it may be; and the share of machines on which each policy is best. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plots/figure.h"
#include "plots/series.h"

/* Rows of a metric: place, difference at the file's value, at the low and at the high end. */
static size_t put_factors(const struct frame *f, const char *metric, struct figure_data *d,
                          struct figure_texts *rows)
{
    struct figure_texts policies = {.n = 0};
    for (uint32_t i = 0; i < frame_rows(f); i++) {
        if (frame_is(f, i, "metric", metric)) {
            (void)figure_text_index(&policies, frame_text(f, i, "policy"));
        }
    }
    bool one = policies.n < 2;
    figure_block(d, "factors");
    for (uint32_t i = 0; i < frame_rows(f); i++) {
        char name[160];
        if (!frame_is(f, i, "metric", metric)) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%.60s%s%.40s", frame_text(f, i, "factor"),
                       one ? "" : ", ", one ? "" : frame_text(f, i, "policy"));
        FIGURE_ROW(d, rows->n, frame_get(f, i, "difference_file"),
                   frame_get(f, i, "difference_low"), frame_get(f, i, "difference_high"));
        figure_text_add(rows, name);
    }
    figure_texts_fini(&policies);
    return rows->n;
}

int figure_tornado(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    struct frame *f =
        figure_rows(&q->inputs[0], "uncertainty/factors/{metric}/{policy}/{factor}", e);
    struct frame *best = figure_rows(&q->inputs[0], "uncertainty/best/{metric}/{policy}", e);
    if (e->n == 0) {
        (void)frame_require(f, "machines difference_file difference_low difference_high", e);
        (void)frame_require(best, "best_frac", e);
    }
    if (e->n == 0) {
        struct figure_texts rows = {.n = 0};
        struct figure_texts names = {.n = 0};
        const char *metric = frame_text(f, 0, "metric");
        figure_var(d, "factor_rows", (double)put_factors(f, metric, d, &rows));
        figure_block(d, "best");
        for (uint32_t i = 0; i < frame_rows(best); i++) {
            if (frame_is(best, i, "metric", metric)) {
                const char *policy = frame_text(best, i, "policy");
                FIGURE_ROW(d, names.n, frame_get(best, i, "best_frac"), policy);
                figure_text_add(&names, policy);
            }
        }
        figure_slots_put((const char *const *)names.v, names.n, d);
        figure_var(d, "policies", (double)names.n);
        figure_texts_put(&names, "best_names", d);
        figure_var(d, "machines", frame_get(f, 0, "machines"));
        series_titles(&metric, 1, d);
        figure_texts_put(&rows, "rows", d);
    }
    frame_free(best);
    frame_free(f);
    return e->n > 0 ? -EINVAL : 0;
}
