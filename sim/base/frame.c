#include "sim/base/frame.h"

#include "sim/base/frame_impl.h"
#include "sim/base/hash.h"

struct frame *frame_new(void)
{
    return xcalloc(1, sizeof(struct frame));
}

void frame_free(struct frame *f)
{
    if (f == NULL) {
        return;
    }
    for (size_t i = 0; i < f->n_cells; i++) {
        free(f->cells[i].text);
    }
    free(f->cells);
    free(f->columns);
    free(f->right);
    map_fini(&f->by_name);
    free(f->hidden);
    texts_fini(&f->names);
    free(f->path);
    free(f->lines);
    free(f);
}

struct frame_cell frame_cell_of(struct frame_value v)
{
    return (struct frame_cell){v.kind, v.text != NULL ? xstrdup(v.text) : NULL, v.number};
}

/* ---- names ---- */

int frame_find(const struct frame *f, const char *column)
{
    size_t at = map_find(&f->by_name, hash_string(HASH_INIT, column));
    return at != MAP_NONE && strcmp(f->columns[at].name, column) == 0 ? (int)at : -1;
}

/* ---- filling ---- */

void frame_columns(struct frame *f, const struct frame_column *c, size_t n)
{
    SIM_REQUIRE(f->n_cells == 0, "columns before cells");
    for (size_t i = 0; i < n; i++) {
        f->columns = xgrow(f->columns, f->n_columns, sizeof *f->columns);
        f->right = xgrow(f->right, f->n_columns, sizeof *f->right);
        f->right[f->n_columns] = c[i].kind == FRAME_NUMBER && !c[i].left;
        f->columns[f->n_columns] = c[i];
        /* Only text prints a column without a name. The first column of a name is the one found. */
        if (c[i].name != NULL && frame_find(f, c[i].name) < 0) {
            map_put(&f->by_name, hash_string(HASH_INIT, c[i].name), f->n_columns);
        }
        f->n_columns++;
    }
}

static char *keep(struct frame *f, const char *text)
{
    texts_add(&f->names, text);
    return f->names.v[f->names.n - 1];
}

void frame_add_column(struct frame *f, const char *name)
{
    frame_columns(f, &(struct frame_column){.name = keep(f, name), .kind = FRAME_ANY}, 1);
}

void frame_data_columns(struct frame *f, const char *names)
{
    char *rest = keep(f, names);
    char *one;
    while ((one = strtok_r(rest, " ", &rest)) != NULL) {
        frame_columns(f, &(struct frame_column){.name = one, .kind = FRAME_ANY, .only_data = true},
                      1);
    }
}

static void reserve(struct frame *f, size_t more)
{
    f->cells = xroom(f->cells, f->n_cells + more, &f->cap_cells, sizeof *f->cells);
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
        v = frame_value_flag(v.number != 0.0); /* comparisons have type int in C */
    }
    SIM_REQUIRE(c->kind == FRAME_ANY || v.kind >= FRAME_VALUE_NULL || v.kind == kinds[c->kind],
                "a cell of column %s", c->name);
    reserve(f, 1);
    f->cells[f->n_cells++] = frame_cell_of(v);
}

void frame_row(struct frame *f, const struct frame_value *v, size_t n)
{
    SIM_REQUIRE(n <= f->n_columns && f->n_cells % f->n_columns == 0, "a row of %zu values", n);
    frame_cells(f, v, n);
    frame_skip(f, (uint32_t)(f->n_columns - n));
}

void frame_cells(struct frame *f, const struct frame_value *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        frame_cell(f, v[i]);
    }
}

void frame_skip(struct frame *f, uint32_t n)
{
    while (n-- > 0) {
        frame_cell(f, FRAME_ABSENT);
    }
}

void frame_begin_row(struct frame *f)
{
    SIM_REQUIRE(f->n_columns == 0 || f->n_cells % f->n_columns == 0, "whole rows");
    frame_skip(f, (uint32_t)f->n_columns);
    f->n_bare += f->n_columns == 0 ? 1 : 0;
    f->near = 0;
}

/* Appends a column; existing rows have absent cells in it. */
static void widen(struct frame *f, const char *name)
{
    size_t n = f->n_columns;
    size_t rows = frame_rows(f);
    reserve(f, rows);
    for (size_t row = rows; row-- > 0;) {
        memmove(&f->cells[row * (n + 1)], &f->cells[row * n], n * sizeof *f->cells);
        f->cells[row * (n + 1) + n] = frame_cell_of(FRAME_ABSENT);
    }
    size_t n_cells = f->n_cells + rows;
    f->n_cells = 0; /* frame_columns requires that there are no cells */
    frame_add_column(f, name);
    f->n_cells = n_cells;
}

void frame_set(struct frame *f, const char *column, struct frame_value v)
{
    size_t at = f->near;
    if (at >= f->n_columns || strcmp(f->columns[at].name, column) != 0) {
        int found = frame_find(f, column);
        at = found >= 0 ? (size_t)found : f->n_columns;
    }
    if (at == f->n_columns) {
        widen(f, column);
    }
    f->near = at + 1;
    struct frame_cell *c = &f->cells[f->n_cells - f->n_columns + at];
    free(c->text);
    *c = frame_cell_of(v);
}

/* ---- access ---- */

uint32_t frame_rows(const struct frame *f)
{
    return f->n_columns > 0 ? (uint32_t)(f->n_cells / f->n_columns) : f->n_bare;
}

size_t frame_width(const struct frame *f)
{
    return f->n_columns;
}

const char *frame_name(const struct frame *f, size_t column)
{
    return f->columns[column].name;
}

struct frame_value frame_at(const struct frame *f, uint32_t row, size_t column)
{
    const struct frame_cell *c = frame_cell_at(f, row, column);
    return (struct frame_value){c->kind, c->number, c->text};
}

static struct frame_value value_of(const struct frame *f, uint32_t row, const char *column)
{
    int i = frame_find(f, column);
    return i >= 0 && row < frame_rows(f) ? frame_at(f, row, (size_t)i) : FRAME_ABSENT;
}

double frame_get(const struct frame *f, uint32_t row, const char *column)
{
    struct frame_value v = value_of(f, row, column);
    return v.kind < FRAME_VALUE_NULL ? v.number : (double)NAN;
}

const char *frame_text(const struct frame *f, uint32_t row, const char *column)
{
    const char *text = value_of(f, row, column).text;
    return text != NULL ? text : "";
}

bool frame_is(const struct frame *f, uint32_t row, const char *column, const char *text)
{
    return strcmp(frame_text(f, row, column), text) == 0;
}
