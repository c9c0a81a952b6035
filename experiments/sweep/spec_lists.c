/* Reads the lists of an experiment file as dimensions. */
#include "experiments/sweep/spec.h"
#include "sim/base/json.h"

#define MAX_RANGE 1000000.0 /* most values of a range */

/* Expands {"from": a, "to": b, "step": s} to an array. NULL with errors. */
static cJSON *range_values(const cJSON *range, const char *file, const char *path, struct err *e)
{
    size_t before = e->n;
    struct json_obj o = json_root(range, file, e);
    o.path = path;
    double from = json_get_number(&o, "from", -1e15, 1e15);
    double to = json_get_number(&o, "to", -1e15, 1e15);
    double step = json_number_or(&o, "step", -1e15, 1e15, 1.0);
    json_done(&o);
    if (e->n > before) {
        return NULL;
    }
    /* The 1e-9 keeps the end: 0.3 / 0.1 comes out below 3. */
    double steps = step != 0.0 ? floor((to - from) / step + 1e-9) : -1.0;
    if (!(steps >= 0.0) || steps >= MAX_RANGE) {
        return err_null(e, "%s: %s: from %g to %g by %g is %s; must be 1 to %.0f values", file,
                        path, from, to, step, steps >= MAX_RANGE ? "too long" : "empty: 0 runs",
                        MAX_RANGE);
    }
    cJSON *list = cJSON_CreateArray();
    /* Multiplies, because the rounding errors of a sum grow with each step. */
    for (double i = 0.0; i <= steps; i += 1.0) {
        cJSON_AddItemToArray(list, cJSON_CreateNumber(from + i * step));
    }
    SIM_ASSERT(cJSON_GetArraySize(list) == (int)steps + 1); /* both ends are included */
    return list;
}

/* Replaces range objects among the children of `place` by their lists. */
static void expand_ranges(cJSON *place, const char *file, const char *path, struct err *e)
{
    for (cJSON *c = place != NULL ? place->child : NULL; c != NULL; c = c->next) {
        if (!cJSON_IsObject(c)) {
            continue;
        }
        OWNED char *at = xformat("%s.%s", path, c->string);
        cJSON *list = range_values(c, file, at, e);
        if (list != NULL) { /* the node keeps its position and name */
            cJSON_Delete(c->child);
            c->child = list->child;
            c->type = cJSON_Array;
            list->child = NULL;
            cJSON_Delete(list);
        }
    }
}

static void axis_init(struct spec_axis *a, const char *key, const cJSON *list)
{
    a->key = key;
    a->n = (uint32_t)cJSON_GetArraySize(list);
    a->values = xkept(xcalloc(a->n + 1, sizeof *a->values));
    uint32_t i = 0;
    for (const cJSON *v = list->child; v != NULL; v = v->next) {
        a->values[i++] = v;
    }
    SIM_ASSERT(i == a->n);
}

static struct spec_dimension *add_dimension(struct spec *s, uint32_t n_axes, struct err *e)
{
    if (s->n_dimensions == SPEC_MAX_DIMENSIONS) {
        return err_null(e, "%s: more than %d dimensions", s->file, SPEC_MAX_DIMENSIONS);
    }
    struct spec_dimension *d = &s->dimensions[s->n_dimensions++];
    SIM_ASSERT(d->n_axes == 0 && d->n == 0); /* spec_load_with cleared it */
    d->axes = xkept(xcalloc(n_axes + 1, sizeof *d->axes));
    return d;
}

/* Adds one list of values to a dimension. */
static void add_axis(const struct spec *s, struct spec_dimension *d, const char *path,
                     const cJSON *list, struct err *e)
{
    struct spec_axis *a = &d->axes[d->n_axes];
    SIM_ASSERT(a->values == NULL && list->string != NULL); /* lists are members of an object */
    a->path = xkeep(xformat("%s.%s", path, list->string));
    if (!cJSON_IsArray(list)) {
        if (!cJSON_IsObject(list)) { /* range_values has reported a bad range */
            (void)err_add(e, "%s: %s: must be a list [...] or {\"from\", \"to\", \"step\"}",
                          s->file, a->path);
        }
        return;
    }
    axis_init(a, list->string, list);
    d->n_axes++;
    if (a->n == 0) {
        (void)err_add(e, "%s: %s: empty: 0 runs", s->file, a->path);
    }
    for (uint32_t i = 0; i < a->n; i++) {
        OWNED char *at = xformat("%s[%" PRIu32 "]", a->path, i);
        int rc = spec_setting_check(a->key, a->values[i], s->file, at, e);
        if (rc != 0 && i == 0) {
            break; /* reports an unknown name once, not for each value */
        }
    }
    if (d->n_axes == 1) {
        d->n = a->n;
    } else if (a->n != d->n) {
        (void)err_add(e,
                      "%s: %s: has %" PRIu32 " value%s, %s has %" PRIu32
                      "; the lists of one zip group must be equally long",
                      s->file, a->path, a->n, text_plural(a->n), d->axes[0].path, d->n);
    }
}

static bool is_object(const struct spec *s, const cJSON *node, const char *path, struct err *e)
{
    if (!cJSON_IsObject(node)) {
        (void)err_add(e, "%s: %s: must be an object {...}", s->file, path);
        return false;
    }
    return true;
}

static void read_axes(struct spec *s, cJSON *axes, struct err *e)
{
    if (axes == NULL || !is_object(s, axes, "axes", e)) {
        return;
    }
    expand_ranges(axes, s->file, "axes", e);
    for (const cJSON *c = axes->child; c != NULL; c = c->next) {
        struct spec_dimension *d = add_dimension(s, 1, e);
        if (d == NULL) {
            return;
        }
        add_axis(s, d, "axes", c, e);
    }
}

static void read_zip(struct spec *s, cJSON *zip, struct err *e)
{
    if (zip == NULL) {
        return;
    }
    if (!cJSON_IsArray(zip)) {
        (void)err_add(e, "%s: zip: must be a list of objects [{...}]", s->file);
        return;
    }
    int i = 0;
    for (cJSON *group = zip->child; group != NULL; group = group->next, i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "zip[%d]", i);
        if (!is_object(s, group, path, e)) {
            continue;
        }
        expand_ranges(group, s->file, path, e);
        struct spec_dimension *d = add_dimension(s, (uint32_t)cJSON_GetArraySize(group), e);
        for (const cJSON *c = group->child; d != NULL && c != NULL; c = c->next) {
            add_axis(s, d, path, c, e);
        }
        if (d != NULL && group->child == NULL) {
            (void)err_add(e, "%s: %s: empty: 0 runs", s->file, path);
        }
        /* Within its array. */
        SIM_ASSERT(d == NULL || d->n_axes <= (uint32_t)cJSON_GetArraySize(group));
    }
}

static void check_settings(const struct spec *s, const cJSON *o, const char *path, struct err *e)
{
    if (!is_object(s, o, path, e)) {
        return;
    }
    for (const cJSON *c = o->child; c != NULL; c = c->next) {
        OWNED char *at = xformat("%s.%s", path, c->string);
        (void)spec_setting_check(c->string, c, s->file, at, e);
    }
}

static void read_rows(struct spec *s, const cJSON *rows, struct err *e)
{
    if (rows == NULL) {
        return;
    }
    if (!cJSON_IsArray(rows) || rows->child == NULL) {
        (void)err_add(e, "%s: rows: %s", s->file,
                      cJSON_IsArray(rows) ? "empty: 0 runs" : "must be a list of objects [{...}]");
        return;
    }
    struct spec_dimension *d = add_dimension(s, 1, e);
    if (d == NULL) {
        return;
    }
    axis_init(&d->axes[0], NULL, rows);
    d->axes[0].path = "rows";
    d->n_axes = 1;
    d->n = d->axes[0].n;
    for (uint32_t i = 0; i < d->n; i++) {
        char at[32];
        (void)snprintf(at, sizeof at, "rows[%" PRIu32 "]", i);
        check_settings(s, d->axes[0].values[i], at, e);
    }
}

void spec_read_lists(struct spec *s, cJSON *axes, cJSON *zip, const cJSON *rows, struct err *e)
{
    if (s->base != NULL) {
        check_settings(s, s->base, "base", e);
    }
    read_axes(s, axes, e);
    read_zip(s, zip, e);
    read_rows(s, rows, e);
}
