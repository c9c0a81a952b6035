/* Bars, one per policy, with intervals. */
#include "plots/results.h"
#include "plots/series.h"
#include "sim/metrics/metric_table.h"

/* Writes the policies' names and colours, and marks on their means. */
static void put_rows(const struct results *r, struct figure_data *d)
{
    struct texts rows = {.n = 0};
    struct texts marks = {.n = 0};
    bool marked = false;
    for (size_t i = 0; i < results_n(r); i++) {
        const char *mark = results_mark(r, i);
        texts_add(&rows, results_label(r, i, NULL, NULL));
        texts_add(&marks, mark);
        marked = marked || mark[0] != '\0';
    }
    figure_slots_put((const char *const *)rows.v, rows.n, d);
    figure_texts_put(&rows, "rows", d);
    figure_texts_put(&marks, "marks", d);
    figure_var(d, "marked", marked ? 1.0 : 0.0);
}

/* Writes a metric's block: a row per point with name, mean, low, high, end of the axis. */
static void put_panel(const struct results *r, const char *metric, struct figure_data *d)
{
    double scale = metric_scale(metric);
    size_t n = results_n(r);
    OWNED struct results_value *v = xcalloc(n + 1, sizeof *v);
    OWNED double *mean = xcalloc(2 * n + 1, sizeof *mean);
    for (size_t i = 0; i < n; i++) {
        (void)results_metric(r, i, metric, &v[i]);
        mean[i] = scale * v[i].mean;
        mean[n + i] = scale * v[i].high;
    }
    double end = figure_bars_end(mean, mean + n, n);
    figure_block(d, "%s", metric_title(metric));
    for (size_t i = 0; i < n; i++) {
        FIGURE_ROW(d, results_label(r, i, NULL, NULL), mean[i], scale * v[i].low, mean[n + i], end);
    }
}

int figure_bars(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    const struct results *r = results_load(q, e);
    int rc = r != NULL ? 0 : -EINVAL;
    size_t n;
    const char *const *metrics = figure_metrics(q, d, &n);
    const char *shown[FIGURE_MAX_METRICS];
    size_t n_shown = 0;
    for (size_t i = 0; rc == 0 && i < n && n_shown < FIGURE_MAX_METRICS; i++) {
        bool asked = q->n_metrics > 0 || (i + 1 == n && n_shown == 0);
        if (asked) { /* a default metric may be missing in the results */
            rc = results_require(r, metrics[i], e);
        }
        if (rc == 0 && (asked || results_has(r, metrics[i]))) {
            shown[n_shown++] = metrics[i];
        }
    }
    if (rc == 0) {
        for (size_t i = 0; i < n_shown; i++) {
            put_panel(r, shown[i], d);
        }
        figure_var(d, "panels", (double)n_shown);
        put_rows(r, d);
        series_titles(shown, n_shown, d);
    }
    return rc;
}

/* ---- breakdown of latency ---- */

#define N_PARTS 5

/* Boundaries of the parts of a class's latency, from 0 to the whole. NaN: no such request. */
static void edges_of(const struct results *r, size_t i, const char *cls, double *edge,
                     struct results_value *whole)
{
    static const char *const names[] = {"prefill_pending_s", "prefill_suspended_s", "ttft_s",
                                        "decode_pending_s", "e2e_s"};
    struct results_value v[5];
    for (int k = 0; k < 5; k++) {
        OWNED char *name = xformat("%s.%s.mean", cls, names[k]);
        (void)results_metric(r, i, name, &v[k]);
        v[k].mean = isfinite(v[k].mean) ? v[k].mean : 0.0;
    }
    edge[0] = 0.0;
    edge[1] = v[0].mean;                      /* pending before prefill */
    edge[2] = edge[1] + v[1].mean;            /* suspended in prefill */
    edge[3] = fmax(v[2].mean, edge[2]);       /* prefill: the rest to the first token */
    edge[4] = edge[3] + v[3].mean;            /* pending in decode */
    edge[N_PARTS] = fmax(v[4].mean, edge[4]); /* decode: the rest */
    *whole = v[4];
}

/* Writes rows: name, boundaries, low and high of the whole, end of the axis. */
static void put_parts(const struct results *r, const char *cls, struct figure_data *d)
{
    size_t n = results_n(r);
    double(*edge)[N_PARTS + 1] = xcalloc(n + 1, sizeof *edge);
    OWNED struct results_value *whole = xcalloc(n + 1, sizeof *whole);
    OWNED double *length = xcalloc(2 * n + 1, sizeof *length);
    for (size_t i = 0; i < n; i++) {
        edges_of(r, i, cls, edge[i], &whole[i]);
        length[i] = edge[i][N_PARTS];
        length[n + i] = whole[i].high;
    }
    double end = figure_bars_end(length, length + n, n);
    figure_block(d, "%s", cls);
    for (size_t i = 0; i < n; i++) {
        FIGURE_CELLS(d, results_label(r, i, NULL, NULL));
        for (int k = 0; k <= N_PARTS; k++) {
            FIGURE_CELLS(d, edge[i][k]);
        }
        FIGURE_ROW(d, whole[i].low, whole[i].high, end);
    }
    free(edge);
}

int figure_breakdown(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    const struct results *r = results_load(q, e);
    int rc = r != NULL ? 0 : -EINVAL;
    if (rc == 0 && !results_has(r, "proactive.e2e_s.mean")) {
        rc = results_require(r, "reactive.e2e_s.mean", e);
    }
    if (rc == 0) {
        put_parts(r, "reactive", d);
        put_parts(r, "proactive", d);
        put_rows(r, d);
    }
    return rc;
}
