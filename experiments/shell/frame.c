/* Frames and documents: how they are made and read. Their forms are in frame_forms.c. */
#include "experiments/shell/frame.h"

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
        free(e->label);
        free(e->text);
        if (e->frame != NULL) {
            frame_free(e->frame);
        }
        document_free(e->within);
    }
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

static char *copy_or_null(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

void document_text(struct document *d, const char *name, const char *label, const char *value)
{
    struct document_entry *e = add(d, DOCUMENT_IS_TEXT, name);
    e->label = copy_or_null(label);
    e->text = xstrdup(value);
}

void document_number(struct document *d, const char *name, const char *label, const char *format,
                     double value)
{
    struct document_entry *e = add(d, DOCUMENT_IS_NUMBER, name);
    e->label = copy_or_null(label);
    e->format = format;
    e->number = value;
}

void document_flag(struct document *d, const char *name, bool value)
{
    add(d, DOCUMENT_IS_FLAG, name)->number = value ? 1.0 : 0.0;
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

struct document *document_within(struct document *d, const char *name)
{
    struct document *within = document_new();
    add(d, DOCUMENT_IS_DOCUMENT, name)->within = within;
    return within;
}

struct frame *document_frame(struct document *d, const char *name, uint32_t keys)
{
    struct frame *f = xcalloc(1, sizeof *f);
    f->keys = keys;
    add(d, DOCUMENT_IS_FRAME, name)->frame = f;
    return f;
}

/* ---- frames ---- */

void frame_column(struct frame *f, struct frame_column c)
{
    SIM_REQUIRE(f->n_cells == 0, "columns before cells");
    f->columns = xrealloc(f->columns, (f->n_columns + 1) * sizeof *f->columns);
    f->columns[f->n_columns++] = c;
}

static struct frame_cell *next_cell(struct frame *f, enum frame_kind kind, bool any)
{
    SIM_REQUIRE(f->n_columns > 0, "columns before cells");
    const struct frame_column *c = &f->columns[f->n_cells % f->n_columns];
    SIM_REQUIRE(any || c->kind == kind, "a cell of column %s", c->name);
    if (f->n_cells == f->cap_cells) {
        f->cap_cells = f->cap_cells > 0 ? 2 * f->cap_cells : 64;
        f->cells = xrealloc(f->cells, f->cap_cells * sizeof *f->cells);
    }
    struct frame_cell *cell = &f->cells[f->n_cells++];
    *cell = (struct frame_cell){.number = (double)NAN, .missing = true};
    return cell;
}

void frame_text(struct frame *f, const char *value)
{
    struct frame_cell *c = next_cell(f, FRAME_TEXT, false);
    c->text = xstrdup(value);
    c->missing = false;
}

void frame_number(struct frame *f, double value)
{
    struct frame_cell *c = next_cell(f, FRAME_NUMBER, false);
    c->number = value;
    c->missing = !isfinite(value);
}

void frame_flag(struct frame *f, bool value)
{
    struct frame_cell *c = next_cell(f, FRAME_FLAG, false);
    c->number = value ? 1.0 : 0.0;
    c->missing = false;
}

void frame_missing(struct frame *f)
{
    (void)next_cell(f, FRAME_TEXT, true);
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
    return c != NULL && !c->missing ? c->number : (double)NAN;
}

const char *frame_get_text(const struct frame *f, uint32_t row, const char *column)
{
    const struct frame_cell *c = cell_of(f, row, column);
    return c != NULL ? c->text : NULL;
}
