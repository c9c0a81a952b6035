/* Reads files of results as frames: CSV, and JSON by a path to its rows. */
#include "sim/base/csvfile.h"
#include "sim/base/frame_impl.h"
#include "sim/base/json.h"

/* ---- CSV ---- */

static struct frame_value value_of_text(const char *text)
{
    char *end = NULL;
    double x = strtod(text, &end);
    if (text[0] == '\0') {
        return FRAME_ABSENT;
    }
    return *end == '\0' && isfinite(x) ? frame_shown(x, text) : frame_value_text(text);
}

static int read_rows(struct csvfile *in, struct frame *f, struct err *e)
{
    size_t n = 0;
    int got;
    while ((got = csvfile_next(in, e)) == 1) {
        LIST_ADD(f->lines, n, csvfile_line(in));
        for (int i = 0; i < csvfile_n_columns(in); i++) {
            frame_cell(f, value_of_text(csvfile_text(in, i)));
        }
    }
    return got == 0 && n == 0 ? err_add(e, "%s: no rows", f->path) : got;
}

struct frame *frame_read_csv(const char *path, struct err *e)
{
    SCOPED(csvfile_drop) struct csvfile *in = csvfile_open(path, e);
    if (in == NULL) {
        return NULL;
    }
    struct frame *f = frame_new();
    f->path = xstrdup(path);
    for (int i = 0; i < csvfile_n_columns(in); i++) {
        frame_add_column(f, csvfile_column_name(in, i));
    }
    if (read_rows(in, f, e) != 0) {
        frame_free(f);
        f = NULL;
    }
    return f;
}

/* ---- JSON ---- */

#define MOST_OUTER 256 /* limit on values of the objects that contain a row */

struct reading {
    struct frame *f;
    struct {
        const char *name;
        struct frame_value value;
    } outer[MOST_OUTER];
    size_t n_outer;
};

/* Absent for objects and arrays. */
static struct frame_value value_of_node(const cJSON *o)
{
    if (cJSON_IsNumber(o)) {
        return frame_value_number(o->valuedouble);
    }
    if (cJSON_IsString(o)) {
        return frame_value_text(o->valuestring);
    }
    return cJSON_IsBool(o)   ? frame_value_flag(cJSON_IsTrue(o))
           : cJSON_IsNull(o) ? FRAME_NONE
                             : FRAME_ABSENT;
}

static void set_members(struct frame *f, const cJSON *object, const char *before)
{
    const cJSON *o;
    cJSON_ArrayForEach (o, object) {
        size_t size = strlen(before) + strlen(o->string) + 2;
        OWNED char *name = xmalloc(size);
        (void)snprintf(name, size, "%s%s%s", before, before[0] != '\0' ? "." : "", o->string);
        struct frame_value v = value_of_node(o);
        if (v.kind != FRAME_VALUE_ABSENT) {
            frame_set(f, name, v);
        } else if (cJSON_IsObject(o)) {
            set_members(f, o, name);
        }
    }
}

static void add_row(struct reading *r, const cJSON *node)
{
    frame_begin_row(r->f);
    for (size_t i = 0; i < r->n_outer; i++) {
        frame_set(r->f, r->outer[i].name, r->outer[i].value);
    }
    if (cJSON_IsObject(node)) {
        set_members(r->f, node, "");
    } else {
        frame_set(r->f, "value", value_of_node(node));
    }
}

static void put_outer(struct reading *r, const char *name, struct frame_value v)
{
    if (v.kind != FRAME_VALUE_ABSENT && r->n_outer < MOST_OUTER) {
        r->outer[r->n_outer].name = name;
        r->outer[r->n_outer++].value = v;
    }
}

static void walk(struct reading *r, const cJSON *node, char *const *steps)
{
    const cJSON *o;
    size_t n = r->n_outer;
    if (cJSON_IsArray(node)) {
        cJSON_ArrayForEach (o, node) {
            walk(r, o, steps);
        }
    } else if (node != NULL && *steps == NULL) {
        add_row(r, node);
    } else if (cJSON_IsObject(node) && **steps == '{') {
        cJSON_ArrayForEach (o, node) {
            put_outer(r, *steps + 1, frame_value_text(o->string));
            walk(r, o, steps + 1);
            r->n_outer = n;
        }
    } else if (cJSON_IsObject(node)) {
        cJSON_ArrayForEach (o, node) {
            put_outer(r, o->string, value_of_node(o));
        }
        walk(r, json_member(node, *steps), steps + 1);
    }
    r->n_outer = n;
}

struct frame *frame_of_json(const cJSON *root, const char *at, const char *path)
{
    enum { MOST_STEPS = 8 };
    struct reading r = {.f = frame_new()};
    OWNED char *way = xstrdup(at);
    char *steps[MOST_STEPS + 1] = {NULL};
    size_t n = 0;
    for (char *rest = way; n < MOST_STEPS && (steps[n] = strtok_r(rest, "/", &rest)) != NULL; n++) {
        steps[n][strcspn(steps[n], "}")] = '\0';
    }
    r.f->path = xstrdup(path);
    walk(&r, root, steps);
    return r.f;
}

/* ---- required columns and numbers ---- */

int frame_require(const struct frame *f, const char *columns, struct err *e)
{
    OWNED char *names = xstrdup(columns);
    char *rest = names;
    size_t before = e->n;
    for (const char *one; (one = strtok_r(rest, " ", &rest)) != NULL;) {
        if (frame_find(f, one) < 0) {
            SCOPED(text_fini) struct text have = {0};
            for (size_t c = 0; c < f->n_columns; c++) {
                text_item(&have, ", ", f->columns[c].name);
            }
            (void)err_add(e, "%s: no column %s; there are: %s", f->path, one, text_end(&have));
        }
    }
    return e->n > before ? -EINVAL : 0;
}

double frame_require_number(const struct frame *f, uint32_t row, const char *column, struct err *e)
{
    double x = frame_get(f, row, column);
    if (isnan(x)) {
        (void)err_add(e, "%s:%s%llu: column %s: \"%s\" is not a finite number", f->path,
                      f->lines != NULL ? "" : " row ",
                      (unsigned long long)(f->lines != NULL ? f->lines[row] : row + 1), column,
                      frame_text(f, row, column));
    }
    return x;
}
