/* Contents of frames; for the files that read and show them. */
#pragma once

#include "sim/base/frame.h"
#include "sim/base/map.h"

struct frame_cell {
    enum frame_value_kind kind;
    char *text; /* owned; the text, or what people see of a number; or NULL */
    double number;
};

struct frame {
    struct frame_column *columns; /* owned; their texts borrowed, but for those in names */
    bool *right;                  /* owned: aligned to the right in text, per column */
    size_t n_columns;
    struct map by_name;       /* owned: columns, by the hashes of their names */
    struct frame_cell *cells; /* owned, row by row */
    size_t n_cells, cap_cells;
    bool *hidden; /* owned: people do not see it; of the first n_hidden rows */
    uint32_t n_hidden;
    uint32_t keys;
    int indent;
    const char *caption; /* borrowed, or NULL (frame_caption) */
    bool main;           /* frame_main */
    bool aside;          /* frame_aside */
    struct texts names;  /* owned: of columns, which the frame keeps */
    uint32_t n_bare;     /* rows that were begun before the first column */
    size_t near;         /* the column that frame_set expects */
    char *path;          /* owned: the file it was read from, or NULL */
    uint64_t *lines;     /* owned: of each row in it; NULL: its rows have none */
};

struct frame_cell frame_cell_of(struct frame_value v);
/* One of any kind, whose name the frame keeps. */
void frame_add_column(struct frame *f, const char *name);

static inline const struct frame_cell *frame_cell_at(const struct frame *f, uint32_t row,
                                                     size_t column)
{
    return &f->cells[row * f->n_columns + column];
}
