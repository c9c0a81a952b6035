/* Kernels and devices: the roofline, and what `characterize` measures. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/about.h"
#include "plots/figure.h"
#include "plots/grid.h"
#include "plots/study.h"
#include "sim/base/arena.h"
#include "sim/base/json.h"

#define UNDEFINED ((double)NAN)
#define MAX_NAMES 64
#define ROOF_FROM 0.3 /* flop per byte */
#define ROOF_TO 3000.0

static double field(const cJSON *o, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNumber(v) ? v->valuedouble : UNDEFINED;
}

static const char *text_field(const cJSON *o, const char *name)
{
    const char *v = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
    return v == NULL ? "" : v;
}

/* Different texts, in the order they come; borrowed. */
struct names {
    const char *v[MAX_NAMES];
    size_t n;
};

static size_t name_index(struct names *l, const char *name)
{
    size_t i = 0;
    while (i < l->n && strcmp(l->v[i], name) != 0) {
        i++;
    }
    if (i == l->n && l->n < MAX_NAMES) {
        l->v[l->n++] = name;
    }
    return i;
}

static int one_input(const struct figure_request *q, struct err *e)
{
    return q->n_inputs == 1 ? 0 : err_add(e, "this figure takes one input, not %zu", q->n_inputs);
}

static cJSON *kernels_read(const char *path, cJSON **root, struct err *e)
{
    *root = json_read_file(path, e);
    cJSON *list = cJSON_GetObjectItemCaseSensitive(*root, "kernels");
    if (*root != NULL && cJSON_GetArraySize(list) == 0) {
        (void)err_add(e, "%s: no kernels: expected what `xpusim list kernels --json` prints", path);
    }
    return list;
}

/* Blocks: the roofs (intensity, flop/s) of each device, then the kernels of each. */
int figure_roofline(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    cJSON *root = NULL;
    cJSON *list = one_input(q, e) == 0 ? kernels_read(q->inputs[0].path, &root, e) : NULL;
    cJSON *roofs = cJSON_GetObjectItemCaseSensitive(root, "roofs");
    if (e->n == 0 && cJSON_GetArraySize(roofs) == 0) {
        (void)err_add(e, "%s: no roofs", q->inputs[0].path);
    }
    if (e->n > 0) {
        cJSON_Delete(root);
        return -EINVAL;
    }
    const cJSON *o = NULL;
    cJSON_ArrayForEach(o, roofs)
    {
        double flop = field(o, "flop_per_s");
        double bytes = field(o, "bytes_per_s");
        figure_block(d, "%s", text_field(o, "device"));
        const double at[] = {ROOF_FROM, flop / bytes, ROOF_TO}; /* one corner: the knee */
        for (size_t i = 0; i < 3; i++) {
            figure_cell(d, at[i]);
            figure_cell(d, fmin(flop, bytes * at[i]) / 1e12);
            figure_row_end(d);
        }
    }
    cJSON_ArrayForEach(o, roofs)
    {
        const cJSON *k = NULL;
        figure_block(d, "%s", text_field(o, "device"));
        cJSON_ArrayForEach(k, list)
        {
            if (strcmp(text_field(k, "device"), text_field(o, "device")) == 0) {
                char name[96];
                (void)snprintf(name, sizeof name, "%s %s", text_field(k, "op"),
                               text_field(k, "work"));
                figure_cell(d, field(k, "flop_per_byte"));
                figure_cell(d, field(k, "flop_per_s") / 1e12);
                figure_cell_text(d, name);
                figure_cell(d, strncmp(text_field(k, "work"), "decode", 6) == 0 ? 1.0 : 0.0);
                figure_row_end(d);
            }
        }
    }
    struct names devices = {.n = 0};
    cJSON_ArrayForEach(o, roofs)
    {
        (void)name_index(&devices, text_field(o, "device"));
    }
    figure_slots_put(devices.v, devices.n, d);
    figure_var(d, "devices", (double)devices.n);
    cJSON_Delete(root);
    return 0;
}

/* ---- kernels: operators by device ---- */

struct kernels_row {
    const char *device, *op;
    double time_s, low, high, energy_j;
};

static void put_kernels(const struct kernels_row *v, size_t n, struct figure_data *d)
{
    struct names devices = {.n = 0};
    struct names ops = {.n = 0};
    for (size_t i = 0; i < n; i++) {
        (void)name_index(&devices, v[i].device);
        (void)name_index(&ops, v[i].op);
    }
    for (size_t k = 0; k < devices.n; k++) {
        figure_block(d, "%s", devices.v[k]);
        for (size_t i = 0; i < n; i++) {
            if (strcmp(v[i].device, devices.v[k]) == 0) {
                figure_cell_text(d, v[i].op);
                figure_cell(d, (double)name_index(&ops, v[i].op));
                figure_cell(d, v[i].time_s * 1e3);
                figure_cell(d, v[i].low * 1e3);
                figure_cell(d, v[i].high * 1e3);
                figure_cell(d, v[i].energy_j);
                figure_row_end(d);
            }
        }
    }
    struct figure_texts rows = {.n = 0};
    for (size_t i = 0; i < ops.n; i++) {
        figure_text_add(&rows, ops.v[i]);
    }
    figure_texts_put(&rows, "rows", d);
    figure_slots_put(devices.v, devices.n, d);
    figure_var(d, "devices", (double)devices.n);
}

static int kernels_json(const char *path, struct figure_data *d, struct err *e)
{
    cJSON *root = NULL;
    const cJSON *list = kernels_read(path, &root, e);
    if (e->n > 0) {
        cJSON_Delete(root);
        return -EINVAL;
    }
    struct kernels_row *v = xcalloc((size_t)cJSON_GetArraySize(list), sizeof *v);
    char(*names)[96] = xcalloc((size_t)cJSON_GetArraySize(list), sizeof *names);
    size_t n = 0;
    const cJSON *k = NULL;
    cJSON_ArrayForEach(k, list)
    {
        (void)snprintf(names[n], sizeof names[n], "%s, %s", text_field(k, "op"),
                       text_field(k, "work"));
        double time_s = field(k, "time_s");
        v[n] =
            (struct kernels_row){text_field(k, "device"),   names[n], time_s, UNDEFINED, UNDEFINED,
                                 time_s * field(k, "watts")};
        n++;
    }
    put_kernels(v, n, d);
    free(names);
    free(v);
    cJSON_Delete(root);
    return 0;
}

/* ---- CSV files with one number per row ---- */

/* The number of an optional column, or NaN. */
static double optional(const struct grid *g, size_t row, const char *name)
{
    int c = grid_column(g, name);
    double x;
    return c >= 0 && grid_number(g, row, (size_t)c, &x) ? x : UNDEFINED;
}

static int kernels_csv(const char *path, struct figure_data *d, struct err *e)
{
    struct grid g;
    if (grid_read(&g, path, e) != 0) {
        return -EINVAL;
    }
    int device = grid_require(&g, "device", e);
    int op = grid_require(&g, "op", e);
    int time = grid_require(&g, "time_s", e);
    struct kernels_row *v = xcalloc(g.n_rows, sizeof *v);
    for (size_t row = 1; row < g.n_rows && e->n == 0; row++) {
        struct kernels_row *a = &v[row - 1];
        a->device = grid_text(&g, row, (size_t)device);
        a->op = grid_text(&g, row, (size_t)op);
        (void)grid_require_number(&g, row, (size_t)time, &a->time_s, e);
        a->low = optional(&g, row, "low");
        a->high = optional(&g, row, "high");
        a->energy_j = optional(&g, row, "energy_j");
    }
    if (e->n == 0) {
        put_kernels(v, g.n_rows - 1, d);
    }
    free(v);
    grid_fini(&g);
    return e->n > 0 ? -EINVAL : 0;
}

int figure_kernels(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    if (one_input(q, e) != 0) {
        return -EINVAL;
    }
    const char *path = q->inputs[0].path;
    return about_looks_like_json(path) ? kernels_json(path, d, e) : kernels_csv(path, d, e);
}

/* x, y, low, high in a block per device (one, where there is no such column). */
static int curves(const struct figure_request *q, const char *x_name, const char *y_name,
                  double y_scale, struct figure_data *d, struct err *e)
{
    struct grid g;
    if (one_input(q, e) != 0 || grid_read(&g, q->inputs[0].path, e) != 0) {
        return -EINVAL;
    }
    int x = grid_require(&g, x_name, e);
    int y = grid_require(&g, y_name, e);
    int device = grid_column(&g, "device");
    struct names devices = {.n = 0};
    for (size_t row = 1; row < g.n_rows; row++) {
        (void)name_index(&devices,
                         device < 0 ? q->inputs[0].label : grid_text(&g, row, (size_t)device));
    }
    for (size_t k = 0; k < devices.n && x >= 0 && y >= 0; k++) {
        figure_block(d, "%s", devices.v[k]);
        for (size_t row = 1; row < g.n_rows; row++) {
            double at = 0.0;
            double v = 0.0;
            if (device >= 0 && strcmp(grid_text(&g, row, (size_t)device), devices.v[k]) != 0) {
                continue;
            }
            (void)grid_require_number(&g, row, (size_t)x, &at, e);
            (void)grid_require_number(&g, row, (size_t)y, &v, e);
            double low = optional(&g, row, "low");
            double high = optional(&g, row, "high");
            figure_cell(d, at);
            figure_cell(d, v * y_scale);
            figure_cell(d, (isfinite(low) ? low : v) * y_scale);
            figure_cell(d, (isfinite(high) ? high : v) * y_scale);
            figure_cell(d, 0.0);
            figure_cell(d, 0.0);
            figure_row_end(d);
        }
    }
    figure_slots_put(devices.v, devices.n, d);
    figure_var(d, "series", (double)devices.n);
    figure_var(d, "panels", 1.0);
    grid_fini(&g);
    return e->n > 0 ? -EINVAL : 0;
}

int figure_batch(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    if (study_is(q)) {
        return figure_batch_study(q, d, e);
    }
    figure_var_text(d, "xlabel_text", "batch (sequences)");
    figure_var_text(d, "title1", "latency of a step (ms)");
    return curves(q, "batch", "latency_s", 1e3, d, e);
}

int figure_draft(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    if (study_is(q)) {
        return figure_draft_study(q, d, e);
    }
    figure_var_text(d, "xlabel_text", "draft length (tokens)");
    figure_var_text(d, "title1", "verification time (ms)");
    return curves(q, "draft_tokens", "verify_s", 1e3, d, e);
}

/* Victim by aggressor: rows of column index, row index, slowdown. */
int figure_corun(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    if (study_is(q)) {
        return figure_corun_study(q, d, e);
    }
    struct grid g;
    if (one_input(q, e) != 0 || grid_read(&g, q->inputs[0].path, e) != 0) {
        return -EINVAL;
    }
    int victim = grid_require(&g, "victim", e);
    int aggressor = grid_require(&g, "aggressor", e);
    int slowdown = grid_require(&g, "slowdown", e);
    struct names victims = {.n = 0};
    struct names aggressors = {.n = 0};
    figure_block(d, "slowdown");
    for (size_t row = 1; row < g.n_rows && e->n == 0; row++) {
        double v = 0.0;
        (void)grid_require_number(&g, row, (size_t)slowdown, &v, e);
        const char *a = grid_text(&g, row, (size_t)victim);
        const char *b = grid_text(&g, row, (size_t)aggressor);
        figure_cell(d, (double)name_index(&aggressors, b));
        figure_cell(d, (double)name_index(&victims, a));
        figure_cell(d, v);
        figure_cell(d, optional(&g, row, "low"));
        figure_cell(d, optional(&g, row, "high"));
        figure_cell_text(d, b);
        figure_cell_text(d, a);
        figure_row_end(d);
    }
    figure_var(d, "rows", (double)victims.n);
    figure_var(d, "columns", (double)aggressors.n);
    grid_fini(&g);
    return e->n > 0 ? -EINVAL : 0;
}
