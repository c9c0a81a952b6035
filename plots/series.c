#include "plots/series.h"

#include "sim/metrics/metric_table.h"

static double x_of(const struct series *s, size_t i)
{
    double x = 0.0;
    if (s->x != NULL) {
        (void)results_axis_number(s->results, i, s->x, &x);
    }
    return x;
}

/* Stable insertion sort; there are few points. */
static void sort_points(struct series *s)
{
    for (size_t i = 0; i < s->n_points; i++) {
        size_t k = i;
        while (k > 0 && x_of(s, s->order[k - 1]) > x_of(s, i)) {
            s->order[k] = s->order[k - 1];
            k--;
        }
        s->order[k] = i;
    }
}

const struct series *series_of(const struct results *r, const char *x, const char *y)
{
    size_t n = results_n(r);
    struct series *s = xkept(xcalloc(1, sizeof *s));
    *s = (struct series){.results = r,
                         .x = x,
                         .n_points = n,
                         .of = xcalloc(n + 1, sizeof *s->of),
                         .order = xcalloc(n + 1, sizeof *s->order)};
    for (size_t i = 0; i < n; i++) {
        s->of[i] = texts_index(&s->names, results_label(r, i, x, y));
    }
    sort_points(s);
    return s;
}

size_t series_lines(const struct series *s, const char *metric, struct figure_data *d)
{
    double scale = metric_scale(metric);
    size_t overloaded = 0;
    for (size_t k = 0; k < s->names.n; k++) {
        figure_block(d, "%s", s->names.v[k]);
        for (size_t i = 0; i < s->n_points; i++) {
            struct results_value v;
            size_t at = s->order[i];
            if (s->of[at] != k || !results_metric(s->results, at, metric, &v)) {
                continue;
            }
            /* Means of overloaded runs depend on the length of the run. Such points are drawn and
             * marked, because a line that ends there would say less. */
            struct results_load l = results_overload(s->results, at);
            FIGURE_ROW(d, x_of(s, at), scale * v.mean, scale * (isfinite(v.low) ? v.low : v.mean),
                       scale * (isfinite(v.high) ? v.high : v.mean), l.runs, l.overloaded);
            overloaded += l.overloaded > 0;
        }
    }
    return overloaded;
}

/* ---- titles of metrics ---- */

void series_titles(const char *const *metrics, size_t n, struct figure_data *d)
{
    for (size_t i = 0; i < n; i++) {
        figure_var_text(d, xkeep(xformat("title%zu", i + 1)), metric_title(metrics[i]));
    }
}
