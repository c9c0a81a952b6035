/* Frames and documents: how they are made and read. Their forms: forms.c. */
#include "experiments/shell/frame.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/shell/frame_impl.h"
#include "sim/base/arena.h"
#include "sim/base/err.h"

struct document *document_new(void)
{
    return xcalloc(1, sizeof(struct document));
}

static void frame_free(struct frame *f)
{
    for (size_t i = 0; i < f->n_cells; i++) {
        free(f->cells[i].text);
    }
    free(f->cells);
    free(f->columns);
    free(f->right);
    free(f->hidden);
    for (size_t i = 0; i < f->n_names; i++) {
        free(f->names[i]);
    }
    free(f->names);
    free(f);
}

void document_free(struct document *d)
{
    if (d == NULL) {
        return;
    }
    for (size_t i = 0; i < d->n; i++) {
        struct document_entry *e = &d->v[i];
        free(e->name);
        free(e->text);
        free(e->value.text);
        cJSON_Delete(e->tree);
        if (e->frame != NULL) {
            frame_free(e->frame);
        }
        document_free(e->within);
    }
    for (size_t i = 0; i < d->n_kept; i++) {
        free(d->kept[i]);
    }
    free(d->kept);
    free(d->v);
    free(d);
}

static struct document_entry *add(struct document *d, enum document_kind kind, const char *name)
{
    d->v = xrealloc(d->v, (d->n + 1) * sizeof *d->v);
    struct document_entry *e = &d->v[d->n++];
    *e = (struct document_entry){.kind = kind, .name = name != NULL ? xstrdup(name) : NULL};
    return e;
}

static struct frame_cell cell_of_value(struct frame_value v)
{
    return (struct frame_cell){v.kind, v.text != NULL ? xstrdup(v.text) : NULL, v.number};
}

void document_values(struct document *d, const struct document_value *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        add(d, DOCUMENT_IS_VALUE, v[i].name)->value = cell_of_value(v[i].value);
    }
}

void document_tree(struct document *d, const char *name, const struct cJSON *tree)
{
    add(d, DOCUMENT_IS_TREE, name)->tree = cJSON_Duplicate(tree, true);
}

void document_members(struct document *d, const struct cJSON *object)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach(member, object)
    {
        document_tree(d, member->string, member);
    }
}

/* A text by printf, of any length. */
static char *format_text(const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    SIM_REQUIRE(n >= 0, "a format that prints");
    char *text = xmalloc((size_t)n + 1);
    (void)vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}

void document_note(struct document *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add(d, DOCUMENT_IS_NOTE, NULL)->text = format_text(fmt, args);
    va_end(args);
}

void document_heading(struct document *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add(d, DOCUMENT_IS_HEADING, NULL)->text = format_text(fmt, args);
    va_end(args);
}

const char *document_format(struct document *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    d->kept = xrealloc(d->kept, (d->n_kept + 1) * sizeof *d->kept);
    d->kept[d->n_kept] = format_text(fmt, args);
    va_end(args);
    return d->kept[d->n_kept++];
}

struct document *document_within(struct document *d, const char *name)
{
    struct document *within = document_new();
    add(d, DOCUMENT_IS_DOCUMENT, name)->within = within;
    return within;
}

struct document *document_array(struct document *d, const char *name)
{
    struct document *within = document_within(d, name);
    within->is_array = true;
    return within;
}

/* ---- frames ---- */

struct frame *document_frame(struct document *d, const char *name, uint32_t keys)
{
    struct frame *f = xcalloc(1, sizeof *f);
    f->keys = keys;
    add(d, DOCUMENT_IS_FRAME, name)->frame = f;
    return f;
}

void frame_columns(struct frame *f, const struct frame_column *c, size_t n)
{
    SIM_REQUIRE(f->n_cells == 0, "columns before cells");
    f->columns = xrealloc(f->columns, (f->n_columns + n) * sizeof *f->columns);
    f->right = xrealloc(f->right, (f->n_columns + n) * sizeof *f->right);
    for (size_t i = 0; i < n; i++) {
        f->right[f->n_columns] = c[i].kind == FRAME_NUMBER && !c[i].left;
        f->columns[f->n_columns++] = c[i];
    }
}

struct frame *document_frame_of(struct document *d, const char *name, uint32_t keys,
                                const struct frame_column *c, size_t n)
{
    struct frame *f = document_frame(d, name, keys);
    frame_columns(f, c, n);
    return f;
}

void frame_data_columns(struct frame *f, const char *names)
{
    f->names = xrealloc(f->names, (f->n_names + 1) * sizeof *f->names);
    char *rest = f->names[f->n_names++] = xstrdup(names);
    char *one;
    while ((one = strtok_r(rest, " ", &rest)) != NULL) {
        frame_columns(f, &(struct frame_column){.name = one, .kind = FRAME_ANY, .only_data = true},
                      1);
    }
}

struct frame *document_data(struct document *d, const char *name, uint32_t keys, const char *names)
{
    struct frame *f = document_frame(d, name, keys);
    frame_data_columns(f, names);
    return f;
}

struct frame *document_table(struct document *d, int indent, const char *align, ...)
{
    struct frame *f = document_frame(d, NULL, 0);
    va_list titles;
    va_start(titles, align);
    const char *title = va_arg(titles, const char *);
    bool titled = title != NULL;
    for (const char *a = align; *a != '\0'; a++) {
        frame_columns(
            f, &(struct frame_column){.name = "", .title = titled ? title : "", .kind = FRAME_ANY},
            1);
        f->right[f->n_columns - 1] = *a == 'r';
        title = titled && a[1] != '\0' ? va_arg(titles, const char *) : NULL;
    }
    va_end(titles);
    f->indent = indent;
    return f;
}

void frame_indent(struct frame *f, int spaces)
{
    f->indent = spaces;
}

void frame_cell(struct frame *f, struct frame_value v)
{
    static const enum frame_value_kind kinds[] = {
        [FRAME_NUMBER] = FRAME_VALUE_NUMBER,
        [FRAME_TEXT] = FRAME_VALUE_TEXT,
        [FRAME_FLAG] = FRAME_VALUE_FLAG,
    };
    SIM_REQUIRE(f->n_columns > 0, "columns before cells");
    const struct frame_column *c = &f->columns[f->n_cells % f->n_columns];
    if (c->kind == FRAME_FLAG && v.kind == FRAME_VALUE_NUMBER) {
        v = frame_value_flag(v.number != 0.0); /* comparisons are ints in C */
    }
    SIM_REQUIRE(c->kind == FRAME_ANY || v.kind >= FRAME_VALUE_NULL || v.kind == kinds[c->kind],
                "a cell of column %s", c->name);
    if (f->n_cells == f->cap_cells) {
        f->cap_cells = f->cap_cells > 0 ? 2 * f->cap_cells : 64;
        f->cells = xrealloc(f->cells, f->cap_cells * sizeof *f->cells);
    }
    f->cells[f->n_cells++] = cell_of_value(v);
}

void frame_row(struct frame *f, const struct frame_value *v, size_t n)
{
    SIM_REQUIRE(n <= f->n_columns && f->n_cells % f->n_columns == 0, "a row of %zu values", n);
    for (size_t i = 0; i < f->n_columns; i++) {
        frame_cell(f, i < n ? v[i] : FRAME_ABSENT);
    }
}

void frame_skip(struct frame *f, uint32_t n)
{
    while (n-- > 0) {
        frame_cell(f, FRAME_ABSENT);
    }
}

void frame_hide_row(struct frame *f)
{
    uint32_t n = frame_rows(f);
    f->hidden = xrealloc(f->hidden, n * sizeof *f->hidden);
    for (; f->n_hidden < n; f->n_hidden++) {
        f->hidden[f->n_hidden] = f->n_hidden + 1 == n;
    }
}

uint32_t frame_rows(const struct frame *f)
{
    return f->n_columns > 0 ? (uint32_t)(f->n_cells / f->n_columns) : 0;
}

static const struct frame_cell *cell_of(const struct frame *f, uint32_t row, const char *column)
{
    for (size_t i = 0; i < f->n_columns && row < frame_rows(f); i++) {
        if (strcmp(f->columns[i].name, column) == 0) {
            return &f->cells[row * f->n_columns + i];
        }
    }
    return NULL;
}

double frame_get(const struct frame *f, uint32_t row, const char *column)
{
    const struct frame_cell *c = cell_of(f, row, column);
    return c != NULL && c->kind < FRAME_VALUE_NULL ? c->number : (double)NAN;
}
