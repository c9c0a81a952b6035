/* The studies of `characterize` as panels of lines, and its kernel pairs as a matrix. */
#include "plots/figure.h"
#include "sim/metrics/metric_table.h"

#define MAX_PANELS 12
#define MAX_SERIES 8

/* How a study is drawn. */
struct study_form {
    const char *figure, *study;
    /* NULL-terminated: a panel per metric and, unless by_what, subject. */
    const char *const *metrics;
    bool by_what;         /* a line per `what` instead of per device */
    const char *x_metric; /* metric on the x axis; NULL: the column x */
    const char *xlabel;
    bool logx;
};

#define METRICS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct study_form forms[] = {
    {"affinity", "affinity", METRICS("rate", "efficiency"), false, "intensity",
     "intensity (flop per byte of DDR)", true},
    {"batch", "batch", METRICS("time"), false, NULL, "batch (sequences)", true},
    {"chunk", "chunk", METRICS("throughput", "bound_kernel", "bound_layer", "activations"), false,
     NULL, "chunk (rows)", true},
    {"mixed", "mixed", METRICS("time", "decode_slowdown"), false, NULL,
     "prefill in the batch (tokens)", true},
    {"prompt", "prompt", METRICS("time", "throughput"), false, NULL, "prompt (tokens)", true},
    {"schemes", "schemes",
     METRICS("reactive.e2e_s.mean", "proactive.e2e_s.mean", "truncated.all.throughput_req_per_min"),
     true, NULL, "requests per minute", false},
    {"draft", "verify", METRICS("time", "time_per_token"), false, NULL, "draft length (tokens)",
     false},
};

bool figure_is_study(const struct figure_request *q)
{
    SCOPED(err_fini) struct err ignored = ERR_INIT;
    SCOPED(frame_drop)
    struct frame *t = q->n_inputs == 1 ? figure_rows(&q->inputs[0], "", &ignored) : NULL;
    return t != NULL && frame_find(t, "study") >= 0;
}

/* Reads all rows of the file, which may have other studies, too. NULL with errors if it has no row
 * of this study, or an x or a value is not a number. */
static struct frame *read_study(const struct figure_request *q, const char *study, struct err *e)
{
    struct frame *t = figure_rows(&q->inputs[0], "", e);
    bool found = false;
    if (t != NULL) {
        (void)frame_require(t, "study device what x_name x metric value unit", e);
    }
    for (uint32_t row = 0; e->n == 0 && row < frame_rows(t); row++) {
        found = found || frame_is(t, row, "study", study);
        (void)frame_require_number(t, row, "x", e);
        (void)frame_require_number(t, row, "value", e);
    }
    if (e->n == 0 && !found) {
        (void)err_add(e,
                      "%s: no rows of the study %s: expected what `xpusim characterize %s --csv`"
                      " prints",
                      q->inputs[0].path, study, study);
    }
    if (e->n > 0) {
        frame_free(t);
        return NULL;
    }
    return t;
}

/* The value of `metric` in the row with equal study, device, subject and x; NaN without such a
 * row. */
static double beside(const struct frame *t, uint32_t row, const char *metric)
{
    static const char *const same[] = {"study", "device", "what", "x_name", "x"};
    for (uint32_t i = 0; i < frame_rows(t); i++) {
        bool is = frame_is(t, i, "metric", metric);
        for (size_t k = 0; k < 5 && is; k++) {
            is = frame_is(t, i, same[k], frame_text(t, row, same[k]));
        }
        if (is) {
            return frame_get(t, i, "value");
        }
    }
    return (double)NAN;
}

/* ---- panels of lines ---- */

struct panel {
    const char *study, *metric, *what, *unit; /* what NULL: all subjects */
};

static bool in_panel(const struct frame *t, uint32_t row, const struct panel *p)
{
    return frame_is(t, row, "study", p->study) && frame_is(t, row, "metric", p->metric) &&
           (p->what == NULL || frame_is(t, row, "what", p->what));
}

/* Whether the subject has several x, and so a line. */
static bool has_line(const struct frame *t, const struct panel *p)
{
    const char *x = NULL;
    for (uint32_t row = 0; row < frame_rows(t); row++) {
        if (in_panel(t, row, p)) {
            if (x != NULL && strcmp(x, frame_text(t, row, "x")) != 0) {
                return true;
            }
            x = frame_text(t, row, "x");
        }
    }
    return false;
}

static size_t find_panels(const struct frame *t, const struct study_form *f, struct panel *panels)
{
    size_t n = 0;
    for (const char *const *m = f->metrics; *m != NULL; m++) {
        for (uint32_t row = 0; row < frame_rows(t) && n < MAX_PANELS; row++) {
            struct panel p = {f->study, *m, f->by_what ? NULL : frame_text(t, row, "what"),
                              frame_text(t, row, "unit")};
            bool known = !in_panel(t, row, &p);
            for (size_t i = 0; i < n && !known; i++) {
                known = strcmp(panels[i].metric, p.metric) == 0 &&
                        (p.what == NULL || strcmp(panels[i].what, p.what) == 0);
            }
            if (!known && has_line(t, &p)) {
                panels[n++] = p;
            }
        }
    }
    return n;
}

static size_t find_series(const struct frame *t, const struct study_form *f, const char **series)
{
    size_t n = 0;
    const char *by = f->by_what ? "what" : "device";
    for (uint32_t row = 0; row < frame_rows(t) && n < MAX_SERIES; row++) {
        bool known = !frame_is(t, row, "study", f->study);
        for (size_t i = 0; i < n && !known; i++) {
            known = frame_is(t, row, by, series[i]);
        }
        if (!known) {
            series[n++] = frame_text(t, row, by);
        }
    }
    return n;
}

/* Writes x, mean, low, high. */
static void put_line(const struct frame *t, const struct study_form *f, const struct panel *p,
                     const char *series, struct figure_data *d)
{
    bool any = false;
    OWNED char *half_name = xformat("%s.half_width", p->metric);
    figure_block(d, "%s", series);
    for (uint32_t row = 0; row < frame_rows(t); row++) {
        if (!in_panel(t, row, p) || !frame_is(t, row, f->by_what ? "what" : "device", series)) {
            continue;
        }
        double v = frame_get(t, row, "value");
        double half = beside(t, row, half_name);
        half = isnan(half) ? 0.0 : half;
        any = true;
        FIGURE_ROW(d, f->x_metric != NULL ? beside(t, row, f->x_metric) : frame_get(t, row, "x"), v,
                   v - half, v + half, 0.0, 0.0);
    }
    /* A line without points needs a block, too, because gnuplot finds series by block number. It
     * gets an invisible point. */
    if (!any) {
        const double none = (double)NAN;
        FIGURE_ROW(d, none, none, none, none, none, none);
    }
}

/* "LAYER, decode: time (s)"; metrics of runs have their usual titles. */
static void put_title(const struct study_form *f, const struct panel *p, size_t at,
                      struct figure_data *d)
{
    bool of_runs = metric_describe(p->metric) != NULL;
    const char *unit = of_runs || strcmp(p->unit, "1") == 0 ? "" : p->unit;
    OWNED char *metric = xstrdup(of_runs ? metric_title(p->metric) : p->metric);
    for (char *c = metric; *c != '\0' && !of_runs; c++) {
        *c = *c == '_' ? ' ' : *c;
    }
    OWNED char *name = xformat("title%zu", at + 1);
    OWNED char *title =
        xformat("%.60s%s%s%s%s%s", f->by_what ? "" : p->what, f->by_what ? "" : ": ", metric,
                *unit != '\0' ? " (" : "", unit, *unit != '\0' ? ")" : "");
    figure_var_text(d, name, title);
}

/* Labels the axis with the study's x, if they are few. Not if x is a metric. */
static void put_tics(const struct frame *t, const struct study_form *f, struct figure_data *d)
{
    OWNED double *x = xcalloc(frame_rows(t), sizeof *x);
    size_t n = 0;
    for (uint32_t row = 0; row < frame_rows(t) && f->x_metric == NULL; row++) {
        if (frame_is(t, row, "study", f->study)) {
            x[n++] = frame_get(t, row, "x");
        }
    }
    figure_tics_put(x, n, d);
}

int figure_study(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    const struct study_form *f = forms;
    while (strcmp(f->figure, d->figure->name) != 0) {
        f++;
    }
    SCOPED(frame_drop) struct frame *t = read_study(q, f->study, e);
    if (t == NULL) {
        return -EINVAL;
    }
    struct panel panels[MAX_PANELS];
    const char *series[MAX_SERIES];
    size_t n_panels = find_panels(t, f, panels);
    size_t n_series = find_series(t, f, series);
    if (n_panels == 0) {
        (void)err_add(e, "%s: no line to draw: every subject of the study %s has one x only",
                      q->inputs[0].path, f->study);
    }
    for (size_t p = 0; p < n_panels; p++) {
        put_title(f, &panels[p], p, d);
        for (size_t k = 0; k < n_series; k++) {
            put_line(t, f, &panels[p], series[k], d);
        }
    }
    put_tics(t, f, d);
    figure_slots_put(series, n_series, d);
    figure_var(d, "panels", (double)n_panels);
    figure_var(d, "series", (double)n_series);
    figure_var(d, "logx", f->logx ? 1.0 : 0.0);
    figure_var(d, "points", f->x_metric != NULL ? 1.0 : 0.0); /* x may decrease, so draw no lines */
    figure_var_text(d, "xlabel_text", f->xlabel);
    return e->n > 0 ? -EINVAL : 0;
}

/* ---- kernel pairs ---- */

/* The subject of a row is a pair of kernels, such as `GEMM beside GEMV`. The first is the victim on
 * the row's device, and the second the aggressor on the other device. */
int figure_corun_study(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    SCOPED(frame_drop) struct frame *t = read_study(q, "corun", e);
    if (t == NULL) {
        return -EINVAL;
    }
    SCOPED(texts_fini) struct texts engines = {.n = 0};
    SCOPED(texts_fini) struct texts victims = {.n = 0};
    SCOPED(texts_fini) struct texts aggressors = {.n = 0};
    for (uint32_t row = 0; row < frame_rows(t); row++) {
        if (frame_is(t, row, "study", "corun") && frame_is(t, row, "metric", "slowdown")) {
            (void)texts_index(&engines, frame_text(t, row, "device"));
        }
    }
    figure_block(d, "slowdown");
    for (uint32_t row = 0; row < frame_rows(t) && engines.n == 2; row++) {
        const char *what = frame_text(t, row, "what");
        const char *sep = strstr(what, " beside ");
        if (!frame_is(t, row, "study", "corun") || !frame_is(t, row, "metric", "slowdown") ||
            sep == NULL) {
            continue;
        }
        const char *device = frame_text(t, row, "device");
        const char *other = engines.v[strcmp(engines.v[0], device) == 0];
        OWNED char *victim = xformat("%.*s, %.40s", (int)(sep - what), what, device);
        OWNED char *aggressor = xformat("%.40s, %.40s", sep + 8, other);
        FIGURE_ROW(d, texts_index(&aggressors, aggressor), texts_index(&victims, victim),
                   frame_get(t, row, "value"), (double)NAN, (double)NAN, aggressor, victim);
    }
    if (victims.n == 0) {
        (void)err_add(e, "%s: no slowdowns of a pair of engines", q->inputs[0].path);
    }
    figure_var(d, "rows", (double)victims.n);
    figure_var(d, "columns", (double)aggressors.n);
    return e->n > 0 ? -EINVAL : 0;
}
