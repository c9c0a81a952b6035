#include "experiments/validation/validate_points.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/shell/cli.h"
#include "experiments/shell/table.h"
#include "experiments/validation/points_score.h"
#include "sim/base/arena.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"

#define PATH_BYTES 4096
#define WORST_ROWS 10

/* A name without a directory and an ending is a shipped table. */
static const char *points_path(const char *name, char *buf, size_t size)
{
    if (strchr(name, '/') != NULL || strchr(name, '.') != NULL) {
        return name;
    }
    char relative[256];
    (void)snprintf(relative, sizeof relative, "hwmodels/points/%s.csv", name);
    return datadir_path(buf, size, relative);
}

/* ---- choosing ---- */

/* --soc as a path takes the file in; as a name it must be shipped. *name: as the rows may call it.
 */
static int take_soc(struct catalog *c, const char *text, const char **name, struct err *e)
{
    char file[PATH_BYTES];
    size_t n = strlen(text);
    if (n > 5 && strcmp(text + n - 5, ".json") == 0) {
        struct soc *soc = xmalloc(sizeof *soc);
        cJSON *root = json_read_file(soc_path(text, file, sizeof file), e);
        int rc = root == NULL ? -EINVAL : soc_parse(root, text, soc, e);
        cJSON_Delete(root);
        if (rc != 0) {
            free(soc);
            return -EINVAL;
        }
        catalog_add_soc(c, soc);
        *name = soc->machine.name;
        return 0;
    }
    const struct soc *soc = catalog_soc(c, text);
    if (soc == NULL) {
        return err_add(e, "--soc %s: no such SoC file is shipped", text);
    }
    *name = soc->machine.name;
    return 0;
}

static void keep_soc(struct points *p, const char *name)
{
    char want[CATALOG_KEY_BYTES];
    char have[CATALOG_KEY_BYTES];
    (void)catalog_key(name, want);
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (strcmp(catalog_key(p->v[i].soc, have), want) == 0) {
            p->v[n++] = p->v[i];
        }
    }
    p->n = n;
}

/* ---- printing ---- */

static void pct(struct table *t, double share)
{
    if (isnan(share)) {
        table_cell(t, "%s", "");
    } else {
        table_cell(t, "%.1f", 100.0 * share);
    }
}

static void print_groups(const struct points_scores *s, FILE *out)
{
    struct table t;
    table_init(&t, "lrrrrrrrrr");
    static const char *const heads[] = {"|error|, %",  "rows",   "predicted", "median",
                                        "P90",         "bias",   "Pearson",   "with the",
                                        "unpredicted", "in 95 %"};
    for (size_t i = 0; i < 10; i++) {
        table_cell(&t, "%s", heads[i]);
    }
    const char *by = "";
    for (size_t i = 0; i < s->n; i++) {
        const struct points_group *g = &s->v[i];
        if (strcmp(by, g->by) != 0 && strcmp(g->by, "all") != 0) {
            table_cell(&t, "by %s", g->by);
            table_end_row(&t);
        }
        by = g->by;
        table_cell(&t, "%s%.40s", strcmp(by, "all") == 0 ? "" : "  ", g->key);
        table_cell(&t, "%zu", g->n);
        table_cell(&t, "%zu", g->predicted);
        pct(&t, g->median);
        pct(&t, g->p90);
        pct(&t, g->bias);
        if (isnan(g->pearson)) {
            table_cell(&t, "%s", "");
        } else {
            table_cell(&t, "%.3f", g->pearson);
        }
        pct(&t, g->median_all);
        pct(&t, g->p90_all);
        pct(&t, g->inside_frac);
    }
    table_print(&t, out, 2);
    table_fini(&t);
}

struct ranked {
    size_t i;
    double error;
};

static int worst_first(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;
    double ex = fabs(x->error);
    double ey = fabs(y->error);
    return ex != ey ? (ex < ey ? 1 : -1) : (x->i > y->i) - (x->i < y->i);
}

static void print_row(struct table *t, const struct point *p, const struct prediction *q)
{
    table_cell(t, "%llu", (unsigned long long)p->line);
    table_cell(t, "%s %s", p->soc, p->device);
    table_cell(t, "%.28s", p->runtime);
    table_cell(t, "%.40s", p->model);
    table_cell(t, "%u", p->weight_bits);
    table_cell(t, "%u", p->input_tokens);
    table_cell(t, "%s", p->metric_name);
    table_cell(t, "%.4g", p->value);
    if (q->reason != NULL) {
        table_cell(t, "%s", "");
        table_cell(t, "%s", "");
        table_cell(t, "%s", q->reason);
    } else {
        table_cell(t, "%.4g", q->value);
        table_cell(t, "%.4g to %.4g", q->low, q->high);
        table_cell(t, "%+.1f %%%s%s", 100.0 * points_error(p, q),
                   q->runtime_default ? ", another runtime's" : "", q->outside ? ", outside" : "");
    }
}

static void rows_begin(struct table *t)
{
    static const char *const heads[] = {"line",      "engine", "runtime", "model",
                                        "bits",      "tokens", "metric",  "measured",
                                        "predicted", "95 %",   "error"};
    table_init(t, "rlllrrlrrrl");
    for (size_t i = 0; i < 11; i++) {
        table_cell(t, "%s", heads[i]);
    }
}

static void print_worst(const struct points *points, const struct prediction *q, FILE *out)
{
    struct ranked *r = xmalloc((points->n + 1) * sizeof *r);
    size_t n = 0;
    for (size_t i = 0; i < points->n; i++) {
        if (point_is_latency(&points->v[i]) && q[i].reason == NULL) {
            r[n++] = (struct ranked){i, points_error(&points->v[i], &q[i])};
        }
    }
    if (n > 1) {
        qsort(r, n, sizeof *r, worst_first);
    }
    (void)fprintf(out, "\nworst latency rows\n");
    struct table t;
    rows_begin(&t);
    for (size_t i = 0; i < n && i < WORST_ROWS; i++) {
        print_row(&t, &points->v[r[i].i], &q[r[i].i]);
    }
    table_print(&t, out, 2);
    table_fini(&t);
    free(r);
}

static void print_reasons(const struct points *points, const struct prediction *q, FILE *out)
{
    bool head = false;
    for (size_t i = 0; i < points->n; i++) {
        if (q[i].reason == NULL) {
            continue;
        }
        size_t n = 0;
        bool first = true;
        for (size_t j = 0; j < points->n; j++) {
            bool same = q[j].reason != NULL && strcmp(q[j].reason, q[i].reason) == 0;
            first = first && !(same && j < i);
            n += same;
        }
        if (first) {
            (void)fprintf(out, "%s  %4zu  %s\n", head ? "" : "\nrows without a prediction\n", n,
                          q[i].reason);
            head = true;
        }
    }
}

static void print_text(const char *path, const struct validate_points_options *o,
                       const struct points *points, const struct prediction *q,
                       const struct points_scores *s, FILE *out)
{
    (void)fprintf(out, "%s: %zu rows\n\n", path, points->n);
    print_groups(s, out);
    print_worst(points, q, out);
    print_reasons(points, q, out);
    if (o->rows) {
        (void)fputc('\n', out);
        struct table t;
        rows_begin(&t);
        for (size_t i = 0; i < points->n; i++) {
            print_row(&t, &points->v[i], &q[i]);
        }
        table_print(&t, out, 2);
        table_fini(&t);
    }
}

/* ---- JSON ---- */

static void put_share(cJSON *o, const char *key, double v)
{
    if (isnan(v)) {
        cJSON_AddNullToObject(o, key);
    } else {
        cJSON_AddNumberToObject(o, key, v);
    }
}

static cJSON *row_json(const struct point *p, const struct prediction *q)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "line", (double)p->line);
    cJSON_AddStringToObject(o, "soc", p->soc);
    cJSON_AddStringToObject(o, "device", p->device);
    cJSON_AddStringToObject(o, "runtime", p->runtime);
    cJSON_AddStringToObject(o, "model", p->model);
    cJSON_AddNumberToObject(o, "weight_bits", p->weight_bits);
    cJSON_AddNumberToObject(o, "act_bits", p->act_bits);
    cJSON_AddStringToObject(o, "metric", p->metric_name);
    cJSON_AddNumberToObject(o, "input_tokens", p->input_tokens);
    cJSON_AddNumberToObject(o, "batch", p->batch);
    cJSON_AddNumberToObject(o, "measured", p->value);
    if (q->reason != NULL) {
        cJSON_AddStringToObject(o, "reason", q->reason);
        return o;
    }
    cJSON_AddNumberToObject(o, "predicted", q->value);
    put_share(o, "low", q->low);
    put_share(o, "high", q->high);
    cJSON_AddNumberToObject(o, "error_frac", points_error(p, q));
    cJSON_AddBoolToObject(o, "default_runtime", q->runtime_default);
    cJSON_AddBoolToObject(o, "outside_envelope", q->outside);
    return o;
}

static void print_json(const char *path, const struct points *points, const struct prediction *q,
                       const struct points_scores *s, FILE *out)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "points", path);
    cJSON *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t i = 0; i < points->n; i++) {
        cJSON_AddItemToArray(rows, row_json(&points->v[i], &q[i]));
    }
    cJSON *summary = cJSON_AddArrayToObject(root, "summary");
    for (size_t i = 0; i < s->n; i++) {
        const struct points_group *g = &s->v[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "by", g->by);
        cJSON_AddStringToObject(o, "group", g->key);
        cJSON_AddNumberToObject(o, "n", (double)g->n);
        cJSON_AddNumberToObject(o, "predicted", (double)g->predicted);
        put_share(o, "median", g->median);
        put_share(o, "p90", g->p90);
        put_share(o, "bias", g->bias);
        put_share(o, "pearson", g->pearson);
        put_share(o, "median_with_unpredicted", g->median_all);
        put_share(o, "p90_with_unpredicted", g->p90_all);
        put_share(o, "inside_interval", g->inside_frac);
        cJSON_AddItemToArray(summary, o);
    }
    json_print(root, out);
}

/* ---- the command ---- */

/* False when a limit is exceeded, which is said. */
static bool within(const struct validate_points_options *o, const struct points_scores *s)
{
    const struct points_group *all = s->n > 0 ? &s->v[0] : NULL;
    if (all == NULL || strcmp(all->by, "all") != 0) {
        return true;
    }
    bool ok = true;
    if (100.0 * all->median_all > o->max_median_pct) {
        (void)fprintf(stderr, "median error %.2f %% is above %.4g %%\n", 100.0 * all->median_all,
                      o->max_median_pct);
        ok = false;
    }
    if (100.0 * all->p90_all > o->max_p90_pct) {
        (void)fprintf(stderr, "P90 error %.2f %% is above %.4g %%\n", 100.0 * all->p90_all,
                      o->max_p90_pct);
        ok = false;
    }
    return ok;
}

int validate_points(const struct validate_points_options *o, const char *only_soc, bool json,
                    struct err *e)
{
    char buf[PATH_BYTES];
    const char *path = points_path(o->points, buf, sizeof buf);
    struct points points = {0};
    struct catalog catalog = {0};
    const char *soc = NULL;
    int rc = points_read(path, &points, e);
    rc = rc == 0 ? catalog_open(&catalog, e) : rc;
    rc = rc == 0 && only_soc != NULL ? take_soc(&catalog, only_soc, &soc, e) : rc;
    if (rc == 0 && soc != NULL) {
        keep_soc(&points, soc);
        rc = points.n > 0 ? 0 : err_add(e, "%s: no row is about %s", path, soc);
    }
    int status = EXIT_BAD_INPUT;
    if (rc == 0) {
        struct prediction *q = xmalloc((points.n + 1) * sizeof *q);
        for (size_t i = 0; i < points.n; i++) {
            q[i] = predict_row(&catalog, &points.v[i]);
        }
        struct points_scores scores;
        points_score(&points, q, &scores);
        if (json) {
            print_json(o->points, &points, q, &scores, stdout);
        } else {
            print_text(o->points, o, &points, q, &scores, stdout);
        }
        status = within(o, &scores) ? EXIT_OK : EXIT_CHECK_FAILED;
        points_scores_fini(&scores);
        free(q);
    }
    catalog_fini(&catalog);
    points_fini(&points);
    return status;
}

static void init(void *target)
{
    struct validate_points_options *o = target;
    o->max_median_pct = o->max_p90_pct = (double)INFINITY;
}

#define OPTIONS struct validate_points_options

static const struct option_row option_rows[] = {
    OPTION_TEXT(OPTIONS, points, "points", "FILE.csv", NULL,
                "soc, device, runtime, model, weight_bits, act_bits, input_tokens, batch, metric, "
                "value; or a shipped table (hwmodels/points). With --soc only rows of this SoC; a "
                "path to a .json file is used in place of the shipped file of the same name"),
    OPTION_FLAG(OPTIONS, rows, "rows", "also every row"),
    OPTION_NUMBER(OPTIONS, max_median_pct, "max-median", "PCT", NULL, 0.0, 1e9,
                  "exit 1 when the median |error| of the latency rows is above PCT, rows without a "
                  "prediction counting as 100 %"),
    OPTION_NUMBER(OPTIONS, max_p90_pct, "max-p90", "PCT", NULL, 0.0, 1e9,
                  "the same for the 90th percentile"),
};
const struct option_table validate_points_option_table = {.title = "Published points",
                                                          .rows = option_rows,
                                                          .n = sizeof option_rows /
                                                               sizeof option_rows[0],
                                                          .init = init};
