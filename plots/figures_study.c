/* The studies of `characterize` as panels of lines, and its kernel pairs as a matrix. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/grid.h"
#include "plots/study.h"
#include "sim/base/arena.h"
#include "sim/metrics/metric_table.h"

#define MAX_PANELS 12
#define MAX_SERIES 8
#define NAME_BYTES 96

enum column { STUDY, DEVICE, WHAT, X_NAME, X, METRIC, VALUE, UNIT, N_COLUMNS };

static const char *const column_names[N_COLUMNS] = {"study", "device", "what",  "x_name",
                                                    "x",     "metric", "value", "unit"};

/* How a study becomes a figure. */
struct study_form {
    const char *study;
    const char *const *metrics; /* NULL-ended: a panel per metric and (by device) per subject */
    bool by_what;               /* a line per `what`, not per device */
    const char *x_metric;       /* the metric that is x; NULL: the column x */
    const char *xlabel;
    bool logx;
};

struct table {
    struct grid g;
    int at[N_COLUMNS];
    const char *study;
};

static const char *cell(const struct table *t, size_t row, enum column c)
{
    return grid_text(&t->g, row, (size_t)t->at[c]);
}

static bool is(const struct table *t, size_t row, enum column c, const char *text)
{
    return strcmp(cell(t, row, c), text) == 0;
}

bool study_is(const struct figure_request *q)
{
    struct err ignored = ERR_INIT;
    struct grid g;
    bool yes = q->n_inputs == 1 && grid_read(&g, q->inputs[0].path, &ignored) == 0;
    if (yes) {
        yes = grid_column(&g, "study") >= 0;
        grid_fini(&g);
    }
    err_fini(&ignored);
    return yes;
}

static int table_read(struct table *t, const struct figure_request *q, const char *study,
                      struct err *e)
{
    *t = (struct table){.study = study};
    if (q->n_inputs != 1) {
        return err_add(e, "this figure takes one input, not %zu", q->n_inputs);
    }
    if (grid_read(&t->g, q->inputs[0].path, e) != 0) {
        return -EINVAL;
    }
    bool found = false;
    for (int c = 0; c < N_COLUMNS; c++) {
        t->at[c] = grid_require(&t->g, column_names[c], e);
    }
    for (size_t row = 1; row < t->g.n_rows && e->n == 0; row++) {
        double ignored;
        found = found || is(t, row, STUDY, study);
        (void)grid_require_number(&t->g, row, (size_t)t->at[X], &ignored, e);
        (void)grid_require_number(&t->g, row, (size_t)t->at[VALUE], &ignored, e);
    }
    if (e->n == 0 && !found) {
        (void)err_add(e,
                      "%s: no rows of the study %s: expected what `xpusim characterize %s --csv`"
                      " prints",
                      t->g.path, study, study);
    }
    if (e->n > 0) {
        grid_fini(&t->g);
    }
    return e->n > 0 ? -EINVAL : 0;
}

static double number(const struct table *t, size_t row, enum column c)
{
    double v = (double)NAN;
    (void)grid_number(&t->g, row, (size_t)t->at[c], &v);
    return v;
}

/* The value of `metric` beside this row: same device, subject and x. NaN when there is none. */
static double beside(const struct table *t, size_t row, const char *metric)
{
    for (size_t i = 1; i < t->g.n_rows; i++) {
        if (is(t, i, STUDY, t->study) && is(t, i, METRIC, metric) &&
            is(t, i, DEVICE, cell(t, row, DEVICE)) && is(t, i, WHAT, cell(t, row, WHAT)) &&
            is(t, i, X_NAME, cell(t, row, X_NAME)) && is(t, i, X, cell(t, row, X))) {
            return number(t, i, VALUE);
        }
    }
    return (double)NAN;
}

/* ---- panels of lines ---- */

struct panel {
    const char *metric, *what, *unit; /* what: NULL, all subjects */
};

static bool in_panel(const struct table *t, size_t row, const struct panel *p)
{
    return is(t, row, STUDY, t->study) && is(t, row, METRIC, p->metric) &&
           (p->what == NULL || is(t, row, WHAT, p->what));
}

/* A subject at a single x is no line: it stays out. */
static bool has_line(const struct table *t, const struct panel *p)
{
    const char *x = NULL;
    for (size_t row = 1; row < t->g.n_rows; row++) {
        if (in_panel(t, row, p)) {
            if (x != NULL && strcmp(x, cell(t, row, X)) != 0) {
                return true;
            }
            x = cell(t, row, X);
        }
    }
    return false;
}

static size_t find_panels(const struct table *t, const struct study_form *f, struct panel *panels)
{
    size_t n = 0;
    for (const char *const *m = f->metrics; *m != NULL; m++) {
        for (size_t row = 1; row < t->g.n_rows && n < MAX_PANELS; row++) {
            struct panel p = {*m, f->by_what ? NULL : cell(t, row, WHAT), cell(t, row, UNIT)};
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

static size_t find_series(const struct table *t, const struct study_form *f, const char **series)
{
    size_t n = 0;
    enum column by = f->by_what ? WHAT : DEVICE;
    for (size_t row = 1; row < t->g.n_rows && n < MAX_SERIES; row++) {
        bool known = !is(t, row, STUDY, f->study);
        for (size_t i = 0; i < n && !known; i++) {
            known = is(t, row, by, series[i]);
        }
        if (!known) {
            series[n++] = cell(t, row, by);
        }
    }
    return n;
}

/* x, mean, low, high. A line without points gets one that is not drawn. */
static void put_line(const struct table *t, const struct study_form *f, const struct panel *p,
                     const char *series, struct figure_data *d)
{
    bool any = false;
    char half_name[NAME_BYTES];
    (void)snprintf(half_name, sizeof half_name, "%s.half_width", p->metric);
    figure_block(d, "%s", series);
    for (size_t row = 1; row < t->g.n_rows; row++) {
        if (!in_panel(t, row, p) || !is(t, row, f->by_what ? WHAT : DEVICE, series)) {
            continue;
        }
        double v = number(t, row, VALUE);
        double half = beside(t, row, half_name);
        half = isnan(half) ? 0.0 : half;
        any = true;
        figure_cell(d, f->x_metric != NULL ? beside(t, row, f->x_metric) : number(t, row, X));
        figure_cell(d, v);
        figure_cell(d, v - half);
        figure_cell(d, v + half);
        figure_cell(d, 0.0);
        figure_cell(d, 0.0);
        figure_row_end(d);
    }
    for (int i = 0; i < 6 && !any; i++) {
        figure_cell(d, (double)NAN);
    }
    if (!any) {
        figure_row_end(d);
    }
}

/* "LAYER, decode: time (s)"; a metric of runs is called as everywhere else. */
static void put_title(const struct study_form *f, const struct panel *p, size_t at,
                      struct figure_data *d)
{
    char name[32];
    char title[3 * NAME_BYTES]; /* 60 of what, the metric, the unit */
    char metric[160];
    const char *unit = strcmp(p->unit, "1") == 0 ? "" : p->unit;
    (void)snprintf(name, sizeof name, "title%zu", at + 1);
    if (metric_describe(p->metric) != NULL) {
        (void)metric_title(p->metric, metric, sizeof metric);
        unit = "";
    } else {
        (void)snprintf(metric, sizeof metric, "%s", p->metric);
        for (char *c = metric; *c != '\0'; c++) {
            *c = *c == '_' ? ' ' : *c;
        }
    }
    (void)snprintf(title, sizeof title, "%.60s%s%s%s%s%s", f->by_what ? "" : p->what,
                   f->by_what ? "" : ": ", metric, *unit != '\0' ? " (" : "", unit,
                   *unit != '\0' ? ")" : "");
    figure_var_text(d, name, title);
}

/* The x of the study, where they are few enough to stand at an axis. */
static void put_tics(const struct table *t, const struct study_form *f, struct figure_data *d)
{
    double *x = xcalloc(t->g.n_rows, sizeof *x);
    size_t n = 0;
    for (size_t row = 1; row < t->g.n_rows && f->x_metric == NULL; row++) {
        if (is(t, row, STUDY, f->study)) {
            x[n++] = number(t, row, X);
        }
    }
    figure_tics_put(x, n, d);
    free(x);
}

static int study_lines(const struct study_form *f, const struct figure_request *q,
                       struct figure_data *d, struct err *e)
{
    struct table t;
    if (table_read(&t, q, f->study, e) != 0) {
        return -EINVAL;
    }
    struct panel panels[MAX_PANELS];
    const char *series[MAX_SERIES];
    size_t n_panels = find_panels(&t, f, panels);
    size_t n_series = find_series(&t, f, series);
    if (n_panels == 0) {
        (void)err_add(e, "%s: no line to draw: every subject of the study %s has one x only",
                      t.g.path, f->study);
    }
    for (size_t p = 0; p < n_panels; p++) {
        put_title(f, &panels[p], p, d);
        for (size_t k = 0; k < n_series; k++) {
            put_line(&t, f, &panels[p], series[k], d);
        }
    }
    put_tics(&t, f, d);
    figure_slots_put(series, n_series, d);
    figure_var(d, "panels", (double)n_panels);
    figure_var(d, "series", (double)n_series);
    figure_var(d, "logx", f->logx ? 1.0 : 0.0);
    figure_var(d, "points", f->x_metric != NULL ? 1.0 : 0.0); /* x may turn back: no lines */
    figure_var_text(d, "xlabel_text", f->xlabel);
    grid_fini(&t.g);
    return e->n > 0 ? -EINVAL : 0;
}

int figure_affinity(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const metrics[] = {"rate", "efficiency", NULL};
    const struct study_form f = {
        "affinity", metrics, false, "intensity", "intensity (flop per byte of DDR)", true};
    return study_lines(&f, q, d, e);
}

int figure_prompt(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const metrics[] = {"time", "throughput", NULL};
    const struct study_form f = {"prompt", metrics, false, NULL, "prompt (tokens)", true};
    return study_lines(&f, q, d, e);
}

int figure_mixed(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const metrics[] = {"time", "decode_slowdown", NULL};
    const struct study_form f = {"mixed", metrics, false, NULL, "prefill in the batch (tokens)",
                                 true};
    return study_lines(&f, q, d, e);
}

int figure_schemes(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const metrics[] = {"reactive.e2e_s.mean", "proactive.e2e_s.mean",
                                          "truncated.all.throughput_req_per_min", NULL};
    const struct study_form f = {"schemes", metrics, true, NULL, "requests per minute", false};
    return study_lines(&f, q, d, e);
}

int figure_batch_study(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const metrics[] = {"time", NULL};
    const struct study_form f = {"batch", metrics, false, NULL, "batch (sequences)", true};
    return study_lines(&f, q, d, e);
}

int figure_draft_study(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const metrics[] = {"time", "time_per_token", NULL};
    const struct study_form f = {"verify", metrics, false, NULL, "draft length (tokens)", false};
    return study_lines(&f, q, d, e);
}

int figure_chunk_study(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const metrics[] = {"throughput", "bound_kernel", "bound_layer",
                                          "activations", NULL};
    const struct study_form f = {"chunk", metrics, false, NULL, "chunk (rows)", true};
    return study_lines(&f, q, d, e);
}

/* ---- kernel pairs ---- */

static size_t index_of(char names[][NAME_BYTES], size_t *n, const char *name)
{
    size_t i = 0;
    while (i < *n && strcmp(names[i], name) != 0) {
        i++;
    }
    if (i == *n && *n < MAX_SERIES) {
        (void)snprintf(names[(*n)++], NAME_BYTES, "%s", name);
    }
    return i;
}

/* "GEMM beside GEMV" on one of two engines: the aggressor runs on the other. */
int figure_corun_study(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    struct table t;
    if (table_read(&t, q, "corun", e) != 0) {
        return -EINVAL;
    }
    char engines[MAX_SERIES][NAME_BYTES];
    char victims[MAX_SERIES][NAME_BYTES];
    char aggressors[MAX_SERIES][NAME_BYTES];
    size_t n_engines = 0;
    size_t n_victims = 0;
    size_t n_aggressors = 0;
    for (size_t row = 1; row < t.g.n_rows; row++) {
        if (is(&t, row, STUDY, "corun") && is(&t, row, METRIC, "slowdown")) {
            (void)index_of(engines, &n_engines, cell(&t, row, DEVICE));
        }
    }
    figure_block(d, "slowdown");
    for (size_t row = 1; row < t.g.n_rows && n_engines == 2; row++) {
        const char *what = cell(&t, row, WHAT);
        const char *sep = strstr(what, " beside ");
        if (!is(&t, row, STUDY, "corun") || !is(&t, row, METRIC, "slowdown") || sep == NULL) {
            continue;
        }
        const char *device = cell(&t, row, DEVICE);
        const char *other = engines[strcmp(engines[0], device) == 0];
        char victim[NAME_BYTES];
        char aggressor[NAME_BYTES];
        (void)snprintf(victim, sizeof victim, "%.*s, %.40s", (int)(sep - what), what, device);
        (void)snprintf(aggressor, sizeof aggressor, "%.40s, %.40s", sep + 8, other);
        figure_cell(d, (double)index_of(aggressors, &n_aggressors, aggressor));
        figure_cell(d, (double)index_of(victims, &n_victims, victim));
        figure_cell(d, number(&t, row, VALUE));
        figure_cell(d, (double)NAN);
        figure_cell(d, (double)NAN);
        figure_cell_text(d, aggressor);
        figure_cell_text(d, victim);
        figure_row_end(d);
    }
    if (n_victims == 0) {
        (void)err_add(e, "%s: no slowdowns of a pair of engines", t.g.path);
    }
    figure_var(d, "rows", (double)n_victims);
    figure_var(d, "columns", (double)n_aggressors);
    grid_fini(&t.g);
    return e->n > 0 ? -EINVAL : 0;
}
