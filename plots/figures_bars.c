/* Bars: one per policy, with intervals. */
#include <errno.h>
#include <math.h>

#include "plots/results.h"
#include "plots/series.h"
#include "sim/metrics/metric_table.h"

static void put_rows(const struct results *r, struct figure_data *d)
{
    struct figure_rows rows = {.n = 0};
    for (size_t i = 0; i < results_n(r); i++) {
        char label[RESULTS_LABEL_BYTES];
        figure_row_name(&rows, results_label(r, i, NULL, NULL, label, sizeof label));
    }
    figure_var(d, "bars", (double)rows.n);
    figure_rows_put(&rows, d);
}

/* One panel and block per metric: a row per point with name, mean, low, high. */
static void put_panel(const struct results *r, const char *metric, struct figure_data *d)
{
    char title[160];
    double scale = metric_scale(metric);
    figure_block(d, "%s", metric_title(metric, title, sizeof title));
    for (size_t i = 0; i < results_n(r); i++) {
        char label[RESULTS_LABEL_BYTES];
        struct results_value v;
        (void)results_metric(r, i, metric, &v);
        figure_cell_text(d, results_label(r, i, NULL, NULL, label, sizeof label));
        figure_cell(d, scale * v.mean);
        figure_cell(d, scale * v.low);
        figure_cell(d, scale * v.high);
        figure_row_end(d);
    }
}

static int bars(const struct figure_request *q, const char *const *metrics, size_t n,
                struct figure_data *d, struct err *e)
{
    struct results r;
    int rc = results_load(&r, q, e);
    if (q->n_metrics > 0) {
        metrics = q->metrics;
        n = q->n_metrics;
    }
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = results_require(&r, metrics[i], e);
    }
    if (rc == 0) {
        for (size_t i = 0; i < n; i++) {
            put_panel(&r, metrics[i], d);
        }
        figure_var(d, "panels", (double)n);
        put_rows(&r, d);
        series_titles(metrics, n, d);
    }
    results_fini(&r);
    return rc;
}

int figure_headline(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const metrics[] = {"reactive.ttft_s.mean", "reactive.e2e_s.mean",
                                          "proactive.e2e_s.mean"};
    return bars(q, metrics, 3, d, e);
}

int figure_utilisation(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const metrics[] = {"igpu.weighted_util_frac", "energy_j_per_token",
                                          "energy_active_j_per_token"};
    return bars(q, metrics, 3, d, e);
}

int figure_sd(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const metrics[] = {"all.e2e_s.mean", "energy_j_per_token",
                                          "memory_peak_bytes"};
    return bars(q, metrics, 3, d, e);
}

/* Parts of a mean latency that add up to it. */
int figure_breakdown(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const classes[] = {"reactive", "proactive"};
    static const char *const need[] = {"reactive.e2e_s.mean", "reactive.ttft_s.mean",
                                       "reactive.prefill_pending_s.mean"};
    struct results r;
    int rc = results_load(&r, q, e);
    for (size_t i = 0; rc == 0 && i < 3; i++) {
        rc = results_require(&r, need[i], e);
    }
    for (size_t c = 0; rc == 0 && c < 2; c++) {
        figure_block(d, "%s", classes[c]);
        for (size_t i = 0; i < results_n(&r); i++) {
            static const char *const names[] = {"prefill_pending_s", "prefill_suspended_s",
                                                "decode_pending_s", "ttft_s", "e2e_s"};
            struct results_value v[5];
            char name[96];
            char label[RESULTS_LABEL_BYTES];
            for (int k = 0; k < 5; k++) {
                (void)snprintf(name, sizeof name, "%s.%s.mean", classes[c], names[k]);
                (void)results_metric(&r, i, name, &v[k]);
                v[k].mean = isfinite(v[k].mean) ? v[k].mean : 0.0;
            }
            double decode = v[4].mean - v[3].mean - v[2].mean;
            figure_cell_text(d, results_label(&r, i, NULL, NULL, label, sizeof label));
            figure_cell(d, v[0].mean);
            figure_cell(d, v[1].mean);
            figure_cell(d, fmax(v[3].mean - v[0].mean - v[1].mean, 0.0));
            figure_cell(d, v[2].mean);
            figure_cell(d, fmax(decode, 0.0));
            figure_cell(d, v[4].low);
            figure_cell(d, v[4].high);
            figure_row_end(d);
        }
    }
    if (rc == 0) {
        put_rows(&r, d);
    }
    results_fini(&r);
    return rc;
}
