/* Figures over an axis of a sweep: lines with intervals, the Pareto front, the heat map. */
#include "plots/results.h"
#include "plots/series.h"
#include "sim/metrics/metric_table.h"

/* In order of preference. The offered rate is first, because requests per minute are comparable
 * between machines. */
static const char *const rate_axes[] = {"offered_req_per_min", "rate", "load", "rate_scale", NULL};
static const char *const no_axes[] = {NULL};

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

/* Writes a panel per metric, with a block per series: x, mean, low, high. */
static int lines(const struct figure_request *q, const char *const *candidates, const char *what,
                 struct figure_data *d, struct err *e)
{
    const struct results *r = results_load(q, e);
    const char *x = NULL;
    size_t n;
    const char *const *metrics = figure_metrics(q, d, &n);
    if (r != NULL) {
        x = results_pick_axis(r, q->x, candidates, NULL, what, e);
    }
    int rc = x != NULL ? 0 : -EINVAL;
    for (size_t i = 0; x != NULL && i < n; i++) {
        int one = results_require(r, metrics[i], e);
        rc = one != 0 ? one : rc;
    }
    if (rc != 0) {
        return rc;
    }
    const struct series *s = series_of(r, x, NULL);
    size_t overloads = 0;
    for (size_t i = 0; i < n; i++) {
        overloads += series_lines(s, metrics[i], d);
    }
    figure_var(d, "overloads", (double)overloads);
    figure_slots_put((const char *const *)s->names.v, s->names.n, d);
    figure_var(d, "panels", (double)n);
    figure_var(d, "series", (double)s->names.n);
    figure_var_text(d, "xlabel_text", axis_title(x));
    series_titles(metrics, n, d);
    return 0;
}

int figure_lines(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    return lines(q, rate_axes, "no rate or load", d, e);
}

int figure_chunk(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const axes[] = {"chunk_rows", "chunk", "max_num_batched_tokens", NULL};
    return figure_is_study(q) ? figure_study(q, d, e)
                              : lines(q, axes, "no chunk size or other number", d, e);
}

/* ---- Pareto ---- */

struct pair {
    struct results_value a, b; /* throughput, latency */
    unsigned overloaded;       /* overloaded runs */
};

static void put_pair(struct figure_data *d, const struct pair *p)
{
    FIGURE_ROW(d, p->a.mean, p->b.mean, isfinite(p->a.low) ? p->a.low : p->a.mean,
               isfinite(p->a.high) ? p->a.high : p->a.mean,
               isfinite(p->b.low) ? p->b.low : p->b.mean,
               isfinite(p->b.high) ? p->b.high : p->b.mean, p->overloaded);
}

/* Whether more of the metric is better. by_default: for metrics of unknown direction. */
static bool is_gain(const char *metric, bool by_default)
{
    enum metric_better better = metric_better(metric);
    return better == METRIC_BETTER_NEITHER ? by_default : better == METRIC_BETTER_HIGHER;
}

static bool beats(const struct pair *v, const struct pair *other, const bool *gain)
{
    double a = (gain[0] ? 1.0 : -1.0) * (v->a.mean - other->a.mean);
    double b = (gain[1] ? 1.0 : -1.0) * (v->b.mean - other->b.mean);
    return a >= 0.0 && b >= 0.0 && (a > 0.0 || b > 0.0);
}

/* Writes the points that no other point beats in both metrics, in order of the first. Returns their
 * number. Only for points of one load: a front over several loads has no meaning, because the load
 * cannot be chosen. */
static size_t put_front(const struct pair *v, size_t n, const bool *gain, struct figure_data *d)
{
    figure_block(d, "Pareto front of the means");
    double from = -(double)INFINITY;
    for (size_t drawn = 0;; drawn++) {
        const struct pair *next = NULL;
        for (size_t i = 0; i < n; i++) {
            bool beaten = false;
            for (size_t k = 0; k < n && !beaten; k++) {
                beaten = beats(&v[k], &v[i], gain);
            }
            if (!beaten && v[i].a.mean > from && (next == NULL || v[i].a.mean < next->a.mean)) {
                next = &v[i];
            }
        }
        if (next == NULL) {
            return drawn;
        }
        put_pair(d, next);
        from = next->a.mean;
    }
}

/* Writes the position of a series' name: its last drawn point. */
static void put_name(size_t k, const struct pair *p, struct figure_data *d)
{
    figure_var(d, xkeep(xformat("at_x%zu", k + 1)), p->a.mean);
    figure_var(d, xkeep(xformat("at_y%zu", k + 1)), p->b.mean);
}

/* A metric in the unit of its title. False if the point has none. */
static bool value_at(const struct results *r, size_t i, const char *metric,
                     struct results_value *out)
{
    double scale = metric_scale(metric);
    bool has = results_metric(r, i, metric, out);
    *out = (struct results_value){scale * out->mean, scale * out->low, scale * out->high};
    return has;
}

/* Writes the points of each series, and collects all in `all`. Returns their number. */
static size_t put_points(const struct series *s, const char *const *metrics, struct pair *all,
                         struct figure_data *d)
{
    size_t n = 0;
    size_t overloads = 0;
    for (size_t k = 0; k < s->names.n; k++) {
        struct pair last = {.a = {.mean = (double)NAN}, .b = {.mean = (double)NAN}};
        figure_block(d, "%s", s->names.v[k]);
        for (size_t i = 0; i < s->n_points; i++) {
            size_t at = s->order[i];
            struct pair p;
            if (s->of[at] == k && value_at(s->results, at, metrics[0], &p.a) &&
                value_at(s->results, at, metrics[1], &p.b)) {
                p.overloaded = results_overload(s->results, at).overloaded;
                overloads += p.overloaded > 0;
                put_pair(d, &p);
                all[n++] = p;
                last = p;
            }
        }
        put_name(k, &last, d);
    }
    figure_var(d, "overloads", (double)overloads);
    return n;
}

int figure_pareto(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    const char *const *metrics = q->n_metrics == 2 ? q->metrics : d->figure->metrics;
    const struct results *r = results_load(q, e);
    int rc = r != NULL ? 0 : -EINVAL;
    for (int i = 0; i < 2 && rc == 0; i++) {
        rc = results_require(r, metrics[i], e);
    }
    if (rc != 0) {
        return rc;
    }
    SCOPED(err_fini) struct err quiet = ERR_INIT; /* without an axis, each series has one point */
    const char *x = results_pick_axis(r, q->x, rate_axes, NULL, "nothing", &quiet);
    const struct series *s = series_of(r, x, NULL);
    OWNED struct pair *all = xcalloc(results_n(r) + 1, sizeof *all);
    size_t n = put_points(s, metrics, all, d);
    const bool gain[] = {is_gain(metrics[0], true), is_gain(metrics[1], false)};
    size_t front = put_front(all, x == NULL ? n : 0, gain, d);
    figure_var(d, "front", front > 1 ? 1.0 : 0.0); /* a single policy makes no line */
    figure_var(d, "gain", gain[0]);
    struct texts names = {.n = 0};
    for (size_t k = 0; k < s->names.n; k++) {
        texts_add(&names, s->names.v[k]);
    }
    figure_texts_put(&names, "names", d);
    figure_var(d, "series", (double)s->names.n);
    figure_slots_put((const char *const *)s->names.v, s->names.n, d);
    series_titles(metrics, 2, d);
    return 0;
}

/* ---- heat map ---- */

/* The distinct values of an axis as texts: numbers sorted, names in order of occurrence. */
static struct texts values_of(const struct results *r, const char *axis)
{
    struct texts l = {.n = 0};
    for (size_t i = 0; i < results_n(r); i++) {
        const char *text = results_axis(r, i, axis);
        if (text == NULL || texts_find(&l, text) < l.n) {
            continue;
        }
        texts_add(&l, text);
        double x;
        for (size_t k = l.n - 1;
             k > 0 && results_axis_number(r, i, axis, &x) && strtod(l.v[k - 1], NULL) > x;
             k--) { /* insertion sort: few values */
            char *swap = l.v[k];
            l.v[k] = l.v[k - 1];
            l.v[k - 1] = swap;
        }
    }
    return l;
}

static bool is_at(const struct results *r, size_t i, const char *axis, const char *value)
{
    const char *text = results_axis(r, i, axis);
    return text != NULL && strcmp(text, value) == 0;
}

static void put_map(const struct series *s, size_t k, const char *const *axes, const char *metric,
                    const struct texts *v, struct figure_data *d)
{
    figure_block(d, "%s", s->names.v[k]);
    for (size_t iy = 0; iy < v[1].n; iy++) {
        for (size_t ix = 0; ix < v[0].n; ix++) {
            struct results_value m = {(double)NAN, (double)NAN, (double)NAN};
            for (size_t i = 0; i < s->n_points; i++) {
                if (s->of[i] == k && is_at(s->results, i, axes[0], v[0].v[ix]) &&
                    is_at(s->results, i, axes[1], v[1].v[iy])) {
                    (void)results_metric(s->results, i, metric, &m);
                }
            }
            FIGURE_ROW(d, (double)ix, (double)iy, metric_scale(metric) * m.mean);
        }
    }
}

/* The requested axis, which may have names as values, or a numeric one. */
static const char *map_axis(const struct results *r, const char *asked, const char *not_this,
                            const char *what, struct err *e)
{
    if (asked != NULL && results_axis(r, 0, asked) != NULL) {
        return asked;
    }
    return results_pick_axis(r, asked, no_axes, not_this, what, e);
}

int figure_heatmap(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    size_t n;
    const char *metric = figure_metrics(q, d, &n)[0];
    const struct results *r = results_load(q, e);
    const char *axes[2] = {NULL, NULL};
    if (r != NULL) {
        axes[0] = map_axis(r, q->x, q->y, "no number", e);
    }
    if (axes[0] != NULL) {
        axes[1] = map_axis(r, q->y, axes[0], "no second number", e);
    }
    if (axes[1] == NULL || results_require(r, metric, e) != 0) {
        return -EINVAL;
    }
    const struct series *s = series_of(r, axes[0], axes[1]);
    struct texts v[2] = {values_of(r, axes[0]), values_of(r, axes[1])};
    for (size_t k = 0; k < s->names.n; k++) {
        figure_var_text(d, xkeep(xformat("name%zu", k + 1)), s->names.v[k]);
        put_map(s, k, axes, metric, v, d);
    }
    double ignored;
    figure_var(d, "y_is_text", results_axis_number(r, 0, axes[1], &ignored) ? 0.0 : 1.0);
    figure_var(d, "series", (double)s->names.n);
    figure_var_text(d, "xlabel_text", axis_title(axes[0]));
    figure_var_text(d, "ylabel_text", axis_title(axes[1]));
    figure_texts_put(&v[0], "xnames", d);
    figure_texts_put(&v[1], "ynames", d);
    series_titles(&metric, 1, d);
    return 0;
}
