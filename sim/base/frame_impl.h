/* Contents of frames, for the files that read and print them. */
#pragma once

#include "sim/base/frame.h"
#include "sim/base/map.h"

struct frame_cell {
    enum frame_value_kind kind;
    char *text; /* owned; the text, or a number as it is printed; or NULL */
    double number;
};

struct frame {
    struct frame_column *columns; /* owned; their texts are borrowed, except those in `names` */
    bool *right;                  /* owned: per column, aligned to the right in text */
    size_t n_columns;
    struct map by_name;       /* owned: column indices, by hash of the name */
    struct frame_cell *cells; /* owned, row after row */
    size_t n_cells, cap_cells;
    bool *hidden; /* owned: rows that text leaves out; n_hidden elements */
    uint32_t n_hidden;
    uint32_t keys;
    int indent;
    const char *caption; /* borrowed, or NULL */
    bool main;           /* frame_main */
    bool aside;          /* frame_aside */
    struct texts names;  /* owned: names of columns that the caller does not keep */
    uint32_t n_bare;     /* rows that were begun before the first column was added */
    size_t near;         /* the column that frame_set tries first */
    char *path;          /* owned: the file that was read, or NULL */
    uint64_t *lines;     /* owned: each row's line in the file; NULL if it has none */
};

struct frame_cell frame_cell_of(struct frame_value v);
/* Adds a FRAME_ANY column. The name is copied. */
void frame_add_column(struct frame *f, const char *name);

static inline const struct frame_cell *frame_cell_at(const struct frame *f, uint32_t row,
                                                     size_t column)
{
    return &f->cells[row * f->n_columns + column];
}
