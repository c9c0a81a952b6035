/* Figures over an axis of a sweep: lines with intervals, the Pareto front, the heat map. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/results.h"
#include "plots/series.h"
#include "plots/study.h"
#include "sim/base/arena.h"

static const char *const rate_axes[] = {"offered_req_per_min", "rate", "load", "rate_scale", NULL};
static const char *const no_axes[] = {NULL};

/* What an axis is called in print. */
static const char *axis_title(const char *axis)
{
    static const char *const names[][2] = {
        {"offered_req_per_min", "offered rate (requests per minute)"},
        {"load", "load (share of the baseline's capacity)"},
        {"rate", "arrival rate (times the workload's)"},
        {"rate_scale", "arrival rate (times the workload's)"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i][0], axis) == 0) {
            return names[i][1];
        }
    }
    return axis;
}

/* One panel per metric, in it a block per series: x, mean, low, high. */
static int lines(const struct figure_request *q, const char *const *metrics, size_t n,
                 const char *const *candidates, const char *what, struct figure_data *d,
                 struct err *e)
{
    struct results r;
    const char *x = NULL;
    if (results_load(&r, q, e) == 0) {
        x = results_pick_axis(&r, q->x, candidates, NULL, what, e);
    }
    if (q->n_metrics > 0) {
        metrics = q->metrics;
        n = q->n_metrics;
    }
    for (size_t i = 0; x != NULL && i < n; i++) {
        (void)results_require(&r, metrics[i], e);
    }
    if (e->n > 0) {
        results_fini(&r);
        return -EINVAL;
    }
    struct series s;
    series_init(&s, &r, x, NULL);
    for (size_t i = 0; i < n; i++) {
        series_lines(&s, metrics[i], d);
    }
    figure_var(d, "panels", (double)n);
    figure_var(d, "series", (double)s.n);
    figure_var_text(d, "xlabel_text", axis_title(x));
    series_titles(metrics, n, d);
    series_fini(&s);
    results_fini(&r);
    return 0;
}

int figure_latency_rate(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const metrics[] = {"reactive.e2e_s.mean", "reactive.e2e_s.p90",
                                          "proactive.e2e_s.mean", "proactive.e2e_s.p90"};
    return lines(q, metrics, 4, rate_axes, "no rate or load", d, e);
}

int figure_throughput_rate(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const metrics[] = {"all.throughput_req_per_min",
                                          "all.norm_e2e_per_token_s.mean"};
    return lines(q, metrics, 2, rate_axes, "no rate or load", d, e);
}

int figure_chunk(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    if (study_is(q)) {
        return figure_chunk_study(q, d, e);
    }
    static const char *const metrics[] = {"reactive.ttft_s.mean", "all.throughput_req_per_min"};
    static const char *const axes[] = {"chunk_rows", "chunk", "max_num_batched_tokens", NULL};
    return lines(q, metrics, 2, axes, "no chunk size or other number", d, e);
}

/* ---- Pareto ---- */

struct pair {
    struct results_value a, b; /* throughput, latency */
    double x;
};

static void put_pair(struct figure_data *d, const struct pair *p)
{
    figure_cell(d, p->a.mean);
    figure_cell(d, p->b.mean);
    figure_cell(d, isfinite(p->a.low) ? p->a.low : p->a.mean);
    figure_cell(d, isfinite(p->a.high) ? p->a.high : p->a.mean);
    figure_cell(d, isfinite(p->b.low) ? p->b.low : p->b.mean);
    figure_cell(d, isfinite(p->b.high) ? p->b.high : p->b.mean);
    figure_row_end(d);
}

/* By falling throughput; of equal ones the quicker first. */
static int by_throughput(const void *left, const void *right)
{
    const struct pair *p = left;
    const struct pair *q = right;
    if (p->a.mean != q->a.mean) {
        return p->a.mean < q->a.mean ? 1 : -1;
    }
    return (p->b.mean > q->b.mean) - (p->b.mean < q->b.mean);
}

/* The points no other point beats in both: more throughput at less latency. */
static void put_front(struct pair *v, size_t n, struct figure_data *d)
{
    double best = (double)INFINITY;
    qsort(v, n, sizeof *v, by_throughput);
    figure_block(d, "Pareto front of the means");
    for (size_t i = 0; i < n; i++) {
        if (v[i].b.mean < best) {
            best = v[i].b.mean;
            put_pair(d, &v[i]);
        }
    }
}

int figure_pareto(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    const char *metrics[2] = {"proactive.throughput_req_per_min", "reactive.e2e_s.mean"};
    for (size_t i = 0; i < 2 && q->n_metrics == 2; i++) {
        metrics[i] = q->metrics[i];
    }
    struct results r;
    if (results_load(&r, q, e) != 0 || results_require(&r, metrics[0], e) != 0 ||
        results_require(&r, metrics[1], e) != 0) {
        results_fini(&r);
        return -EINVAL;
    }
    struct err quiet = ERR_INIT; /* without an axis every series is one point */
    const char *x = results_pick_axis(&r, q->x, rate_axes, NULL, "nothing", &quiet);
    err_fini(&quiet);
    struct series s;
    series_init(&s, &r, x, NULL);
    struct pair *all = xcalloc(results_n(&r) + 1, sizeof *all);
    size_t n_all = 0;
    for (size_t k = 0; k < s.n; k++) {
        figure_block(d, "%s", s.names[k]);
        for (size_t i = 0; i < s.n_points; i++) {
            struct pair p;
            if (s.of[s.order[i]] == k && results_metric(&r, s.order[i], metrics[0], &p.a) &&
                results_metric(&r, s.order[i], metrics[1], &p.b)) {
                put_pair(d, &p);
                all[n_all++] = p;
            }
        }
    }
    put_front(all, n_all, d);
    figure_var(d, "series", (double)s.n);
    series_titles(metrics, 2, d);
    free(all);
    series_fini(&s);
    results_fini(&r);
    return 0;
}

/* ---- heat map ---- */

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorted different values of an axis. Caller frees. */
static double *values_of(const struct results *r, const char *axis, size_t *n)
{
    double *v = xcalloc(results_n(r) + 1, sizeof *v);
    size_t m = 0;
    for (size_t i = 0; i < results_n(r); i++) {
        m += results_axis_number(r, i, axis, &v[m]) ? 1 : 0;
    }
    qsort(v, m, sizeof *v, by_number);
    *n = 0;
    for (size_t i = 0; i < m; i++) {
        if (*n == 0 || v[i] != v[*n - 1]) {
            v[(*n)++] = v[i];
        }
    }
    return v;
}

static void put_tics(const double *v, size_t n, const char *name, struct figure_data *d)
{
    char text[2048] = "";
    size_t at = 0;
    for (size_t i = 0; i < n && at + 32 < sizeof text; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%g", i > 0 ? " " : "", v[i]);
    }
    figure_var_text(d, name, text);
}

static void put_map(const struct series *s, size_t k, const char *const *axes, const char *metric,
                    double *const *v, const size_t *n, struct figure_data *d)
{
    figure_block(d, "%s", s->names[k]);
    for (size_t iy = 0; iy < n[1]; iy++) {
        for (size_t ix = 0; ix < n[0]; ix++) {
            struct results_value m = {(double)NAN, (double)NAN, (double)NAN};
            for (size_t i = 0; i < s->n_points; i++) {
                double x;
                double y;
                if (s->of[i] == k && results_axis_number(s->results, i, axes[0], &x) &&
                    results_axis_number(s->results, i, axes[1], &y) && x == v[0][ix] &&
                    y == v[1][iy]) {
                    (void)results_metric(s->results, i, metric, &m);
                }
            }
            figure_cell(d, (double)ix);
            figure_cell(d, (double)iy);
            figure_cell(d, m.mean);
            figure_row_end(d);
        }
    }
}

int figure_heatmap(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    const char *metric = q->n_metrics > 0 ? q->metrics[0] : "reactive.e2e_s.mean";
    struct results r;
    const char *axes[2] = {NULL, NULL};
    if (results_load(&r, q, e) == 0) {
        axes[0] = results_pick_axis(&r, q->x, no_axes, q->y, "no number", e);
    }
    if (axes[0] != NULL) {
        axes[1] = results_pick_axis(&r, q->y, no_axes, axes[0], "no second number", e);
    }
    if (axes[1] == NULL || results_require(&r, metric, e) != 0) {
        results_fini(&r);
        return -EINVAL;
    }
    struct series s;
    series_init(&s, &r, axes[0], axes[1]);
    size_t n[2];
    double *v[2] = {values_of(&r, axes[0], &n[0]), values_of(&r, axes[1], &n[1])};
    for (size_t k = 0; k < s.n; k++) {
        char name[32];
        (void)snprintf(name, sizeof name, "name%zu", k + 1);
        figure_var_text(d, name, s.names[k]);
        put_map(&s, k, axes, metric, v, n, d);
    }
    figure_var(d, "series", (double)s.n);
    figure_var_text(d, "xlabel_text", axis_title(axes[0]));
    figure_var_text(d, "ylabel_text", axis_title(axes[1]));
    put_tics(v[0], n[0], "xvalues", d);
    put_tics(v[1], n[1], "yvalues", d);
    series_titles(&metric, 1, d);
    free(v[0]);
    free(v[1]);
    series_fini(&s);
    results_fini(&r);
    return 0;
}
