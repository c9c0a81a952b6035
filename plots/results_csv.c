/* Rows of a CSV file as points, with replications combined. */
#include "plots/results.h"
#include "sim/base/words.h"
#include "sim/stats/stats_intervals.h"

enum column { COLUMN_NOTHING, COLUMN_AXIS, COLUMN_METRIC };

/* Columns of a sweep export that are neither an axis nor a metric. */
static const char *const sweep_facts[] = {
    "experiment", "point",       "replication", "status",      "message", "soc",
    "llm",        "workload",    "policy",      "params",      "seed",    "rate_scale",
    "verdict",    "config_hash", "trace_hash",  "fingerprint", NULL};

/* Columns of other tables that are neither an axis nor a metric. */
static const char *const table_facts[] = {"replication", "seed", "verdict", NULL};

static const char *axis_name(const char *column)
{
    return strncmp(column, "set.", 4) == 0 ? column + 4 : column;
}

static bool has_text(const struct frame *f, size_t column)
{
    bool text = false;
    for (uint32_t row = 0; row < frame_rows(f) && !text; row++) {
        text = frame_at(f, row, column).kind == FRAME_VALUE_TEXT;
    }
    return text;
}

static bool named(const char *name, const char *asked)
{
    return asked != NULL && strcmp(name, asked) == 0;
}

static enum column kind_of(const struct frame *f, size_t c, const struct figure_request *q)
{
    const char *name = frame_name(f, c);
    bool asked = named(axis_name(name), q->x) || named(axis_name(name), q->y);
    if (frame_find(f, "experiment") >= 0 && frame_find(f, "fingerprint") >= 0) {
        bool axis = strncmp(name, "set.", 4) == 0 ||
                    (strcmp(name, "policy") == 0 && frame_find(f, "set.policy") < 0);
        return axis || asked                        ? COLUMN_AXIS
               : words_find(sweep_facts, name) >= 0 ? COLUMN_NOTHING
                                                    : COLUMN_METRIC;
    }
    if (words_find(table_facts, name) >= 0) {
        return COLUMN_NOTHING;
    }
    bool rate = strcmp(name, "load") == 0 || strcmp(name, "rate") == 0 ||
                strcmp(name, "offered_req_per_min") == 0;
    return asked || rate || has_text(f, c) ? COLUMN_AXIS : COLUMN_METRIC;
}

static bool same_axes(const struct frame *f, const enum column *kind, uint32_t a, uint32_t b)
{
    for (size_t c = 0; c < frame_width(f); c++) {
        const char *x = frame_at(f, a, c).text;
        const char *y = frame_at(f, b, c).text;
        if (kind[c] == COLUMN_AXIS && strcmp(x != NULL ? x : "", y != NULL ? y : "") != 0) {
            return false;
        }
    }
    return true;
}

/* Mean and interval over the rows; for a single row its own interval, if the file has it. */
static void put_metric(struct results *r, const struct frame *f, size_t column,
                       const uint32_t *rows, size_t n)
{
    const char *name[3];
    static const char *const parts[] = {"mean", "low", "high"};
    OWNED double *x = xcalloc(n, sizeof *x);
    for (size_t i = 0; i < n; i++) {
        struct frame_value v = frame_at(f, rows[i], column);
        x[i] = v.kind == FRAME_VALUE_NUMBER ? v.number : (double)NAN;
    }
    struct stats_interval s = stats_reported(x, n, NULL);
    for (int k = 0; k < 3; k++) {
        name[k] = xkeep(xformat("%s.%s", frame_name(f, column), parts[k]));
    }
    double low = frame_get(f, rows[0], name[1]);
    double high = frame_get(f, rows[0], name[2]);
    bool given = n == 1 && frame_find(f, name[1]) >= 0 && frame_find(f, name[2]) >= 0;
    FRAME_SET(r->points, name[0], s.mean);
    FRAME_SET(r->points, name[1], given && isfinite(low) ? low : s.low);
    FRAME_SET(r->points, name[2], given && isfinite(high) ? high : s.high);
}

static void add_rows(struct results *r, const struct figure_input *in, const struct frame *f,
                     const enum column *kind, const uint32_t *rows, uint32_t n)
{
    results_begin_point(r, in);
    struct results_load *load = &r->load[frame_rows(r->points) - 1];
    for (size_t c = 0; c < frame_width(f); c++) {
        if (kind[c] == COLUMN_METRIC) {
            put_metric(r, f, c, rows, n);
        } else if (kind[c] == COLUMN_AXIS) {
            struct frame_value v = frame_at(f, rows[0], c);
            v.text = v.kind == FRAME_VALUE_NUMBER ? NULL : v.text; /* so that 0.50 equals 0.5 */
            results_put_axis(r, axis_name(frame_name(f, c)), v);
        }
    }
    load->runs = n;
    for (uint32_t i = 0; i < n; i++) {
        load->overloaded += frame_is(f, rows[i], "verdict", "OVERLOADED");
    }
}

/* Describes the figure by columns of a sweep that are equal in all rows. */
static void add_facts(const struct figure_input *in, const struct frame *f)
{
    static const char *const facts[] = {"policy", "soc", "llm", "workload"};
    for (size_t k = 0; k < sizeof facts / sizeof facts[0]; k++) {
        const char *first = frame_text(f, 0, facts[k]);
        bool same = first[0] != '\0' && !cJSON_HasObjectItem(in->about, facts[k]);
        for (uint32_t row = 1; row < frame_rows(f) && same; row++) {
            same = frame_is(f, row, facts[k], first);
        }
        if (same) {
            cJSON_AddStringToObject(in->about, facts[k], first);
        }
    }
}

/* Rows of a table without statuses are means of runs. */
static bool has_run(const struct frame *f, uint32_t row)
{
    return !frame_is(f, row, "status", "failed") && !frame_is(f, row, "status", "empty");
}

int results_add_csv(struct results *r, const struct figure_input *in, struct err *e)
{
    SCOPED(frame_drop) struct frame *f = frame_read_csv(in->path, e);
    if (f == NULL) {
        return -EINVAL;
    }
    add_facts(in, f);
    uint32_t n_rows = frame_rows(f);
    enum column *kind = xcalloc(frame_width(f), sizeof *kind);
    for (size_t c = 0; c < frame_width(f); c++) {
        kind[c] = kind_of(f, c, r->request);
    }
    OWNED bool *taken = xcalloc(n_rows, sizeof *taken);
    OWNED uint32_t *rows = xcalloc(n_rows, sizeof *rows);
    uint32_t before = frame_rows(r->points);
    uint32_t failed = 0;
    for (uint32_t i = 0; i < n_rows; i++) {
        uint32_t n = 0;
        failed += frame_is(f, i, "status", "failed");
        for (uint32_t k = i; k < n_rows; k++) {
            /* Rows of a point need not be adjacent: a table may be sorted by replication, or joined
             * from two files. */
            if (!taken[k] && has_run(f, k) && same_axes(f, kind, i, k)) {
                taken[k] = true;
                rows[n++] = k;
            }
        }
        if (n > 0) {
            add_rows(r, in, f, kind, rows, n);
        }
    }
    free(kind);
    results_put_failed(in, failed);
    return frame_rows(r->points) > before ? 0 : err_add(e, "%s: no run of it succeeded", in->path);
}
