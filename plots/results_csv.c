/* Rows of a CSV file, replications put together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/grid.h"
#include "plots/results_impl.h"
#include "sim/base/arena.h"
#include "sim/stats/stats.h"

enum column { COLUMN_NOTHING, COLUMN_AXIS, COLUMN_METRIC };

/* Of a sweep export: what is neither an axis nor a metric. */
static const char *const sweep_facts[] = {
    "experiment", "point",       "replication", "status",     "message", "soc",
    "llm",        "workload",    "policy",      "params",     "seed",    "rate_scale",
    "verdict",    "config_hash", "trace_hash",  "fingerprint"};

static bool is_fact(const char *name)
{
    for (size_t i = 0; i < sizeof sweep_facts / sizeof sweep_facts[0]; i++) {
        if (strcmp(name, sweep_facts[i]) == 0) {
            return true;
        }
    }
    return false;
}

static const char *axis_name(const char *column)
{
    return strncmp(column, "set.", 4) == 0 ? column + 4 : column;
}

static bool is_text(const struct grid *g, size_t column)
{
    double x;
    for (size_t row = 1; row < g->n_rows; row++) {
        if (grid_text(g, row, column)[0] != '\0' && !grid_number(g, row, column, &x)) {
            return true;
        }
    }
    return false;
}

static bool named(const char *name, const char *asked)
{
    return asked != NULL && strcmp(name, asked) == 0;
}

/* What each column is. Caller frees. */
static enum column *classify(const struct grid *g, const struct figure_request *q)
{
    enum column *kind = xcalloc(g->n_columns, sizeof *kind);
    bool sweep = grid_column(g, "experiment") >= 0 && grid_column(g, "fingerprint") >= 0;
    for (size_t c = 0; c < g->n_columns; c++) {
        const char *name = grid_text(g, 0, c);
        bool asked = named(axis_name(name), q->x) || named(axis_name(name), q->y);
        if (sweep) {
            bool axis = strncmp(name, "set.", 4) == 0 ||
                        (strcmp(name, "policy") == 0 && grid_column(g, "set.policy") < 0);
            kind[c] = axis || asked ? COLUMN_AXIS : is_fact(name) ? COLUMN_NOTHING : COLUMN_METRIC;
        } else if (strcmp(name, "replication") == 0 || strcmp(name, "seed") == 0) {
            kind[c] = COLUMN_NOTHING;
        } else {
            bool rate = strcmp(name, "load") == 0 || strcmp(name, "rate") == 0 ||
                        strcmp(name, "offered_req_per_min") == 0;
            kind[c] = asked || rate || is_text(g, c) ? COLUMN_AXIS : COLUMN_METRIC;
        }
    }
    return kind;
}

static bool same_axes(const struct grid *g, const enum column *kind, size_t a, size_t b)
{
    for (size_t c = 0; c < g->n_columns; c++) {
        if (kind[c] == COLUMN_AXIS && strcmp(grid_text(g, a, c), grid_text(g, b, c)) != 0) {
            return false;
        }
    }
    return true;
}

static cJSON *value_of(const struct grid *g, size_t column, const size_t *rows, size_t n)
{
    double *x = xcalloc(n, sizeof *x);
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)NAN;
        (void)grid_number(g, rows[i], column, &x[i]);
    }
    struct stats_interval s = stats_mean(x, n, STATS_LEVEL_FRAC);
    free(x);
    char name[256];
    double given;
    (void)snprintf(name, sizeof name, "%s.low", grid_text(g, 0, column));
    int low = grid_column(g, name);
    (void)snprintf(name, sizeof name, "%s.high", grid_text(g, 0, column));
    int high = grid_column(g, name);
    if (n == 1 && low >= 0 && high >= 0) {
        s.low = grid_number(g, rows[0], (size_t)low, &given) ? given : s.low;
        s.high = grid_number(g, rows[0], (size_t)high, &given) ? given : s.high;
    }
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "mean", s.mean); /* NaN is written as null, kept in memory */
    cJSON_AddNumberToObject(o, "low", s.low);
    cJSON_AddNumberToObject(o, "high", s.high);
    cJSON_AddNumberToObject(o, "n", s.n);
    return o;
}

static void add_point(struct results *r, const struct grid *g, const enum column *kind,
                      const size_t *rows, size_t n)
{
    cJSON *point = cJSON_CreateObject();
    cJSON *axes = cJSON_AddObjectToObject(point, "axes");
    cJSON *metrics = cJSON_AddObjectToObject(point, "metrics");
    for (size_t c = 0; c < g->n_columns; c++) {
        const char *name = grid_text(g, 0, c);
        double x;
        if (kind[c] == COLUMN_METRIC) {
            cJSON_AddItemToObject(metrics, name, value_of(g, c, rows, n));
        } else if (kind[c] == COLUMN_AXIS && grid_number(g, rows[0], c, &x)) {
            cJSON_AddNumberToObject(axes, axis_name(name), x);
        } else if (kind[c] == COLUMN_AXIS) {
            cJSON_AddStringToObject(axes, axis_name(name), grid_text(g, rows[0], c));
        }
    }
    int verdict = grid_column(g, "verdict");
    unsigned overloaded = 0;
    for (size_t i = 0; i < n && verdict >= 0; i++) {
        overloaded += strcmp(grid_text(g, rows[i], (size_t)verdict), "OVERLOADED") == 0;
    }
    cJSON_AddNumberToObject(point, "runs", (double)n);
    cJSON_AddNumberToObject(point, "overloaded", overloaded);
    cJSON_AddItemToArray(r->points, point);
}

/* A sweep says of what machine it is in columns: what is the same in every row names the figure. */
static void add_facts(const struct results *r, const struct grid *g)
{
    static const char *const facts[] = {"policy", "soc", "llm", "workload"};
    for (size_t k = 0; k < sizeof facts / sizeof facts[0]; k++) {
        int c = grid_column(g, facts[k]);
        bool same = c >= 0;
        for (size_t row = 2; same && row < g->n_rows; row++) {
            same = strcmp(grid_text(g, row, (size_t)c), grid_text(g, 1, (size_t)c)) == 0;
        }
        for (size_t i = 0; same && i < r->request->n_inputs; i++) {
            const struct figure_input *in = &r->request->inputs[i];
            if (in->path == g->path && in->about != NULL &&
                !cJSON_HasObjectItem(in->about, facts[k])) {
                cJSON_AddStringToObject(in->about, facts[k], grid_text(g, 1, (size_t)c));
            }
        }
    }
}

int results_add_csv(struct results *r, const char *path, struct err *e)
{
    struct grid g;
    if (grid_read(&g, path, e) != 0) {
        return -EINVAL;
    }
    add_facts(r, &g);
    enum column *kind = classify(&g, r->request);
    int status = grid_column(&g, "status");
    bool *taken = xcalloc(g.n_rows, sizeof *taken);
    size_t *rows = xcalloc(g.n_rows, sizeof *rows);
    size_t points = 0;
    for (size_t i = 1; i < g.n_rows; i++) {
        size_t n = 0;
        for (size_t k = i; k < g.n_rows; k++) {
            bool failed = status >= 0 && strcmp(grid_text(&g, k, (size_t)status), "failed") == 0;
            if (!taken[k] && !failed && same_axes(&g, kind, i, k)) {
                taken[k] = true;
                rows[n++] = k;
            }
        }
        if (n > 0) {
            add_point(r, &g, kind, rows, n);
            points++;
        }
    }
    free(rows);
    free(taken);
    free(kind);
    grid_fini(&g);
    return points > 0 ? 0 : err_add(e, "%s: no run of it succeeded", path);
}
