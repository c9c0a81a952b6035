/* What frames and documents hold; for the files of frames alone. */
#pragma once

#include "experiments/shell/frame.h"

struct frame_cell {
    enum frame_value_kind kind;
    char *text; /* owned; the text, or what people see of a number; or NULL */
    double number;
};

struct frame {
    struct frame_column *columns; /* owned; their texts borrowed */
    bool *right;                  /* owned: aligned to the right in text, per column */
    size_t n_columns;
    struct frame_cell *cells; /* owned, row by row */
    size_t n_cells, cap_cells;
    bool *hidden; /* owned: people do not see it; of the first n_hidden rows */
    uint32_t n_hidden;
    uint32_t keys;
    int indent;
    char **names; /* owned: texts of columns that the frame keeps */
    size_t n_names;
};

enum document_kind {
    DOCUMENT_IS_VALUE,
    DOCUMENT_IS_TREE,
    DOCUMENT_IS_NOTE,
    DOCUMENT_IS_HEADING,
    DOCUMENT_IS_FRAME,
    DOCUMENT_IS_DOCUMENT,
};

struct document_entry {
    enum document_kind kind;
    char *name, *text; /* owned, or NULL */
    struct frame_cell value;
    struct cJSON *tree;      /* owned */
    struct frame *frame;     /* owned */
    struct document *within; /* owned */
};

struct document {
    struct document_entry *v; /* owned */
    size_t n;
    size_t told; /* to people, as far as this */
    bool is_array;
    char **kept; /* owned: texts of document_format */
    size_t n_kept;
};

static inline const struct frame_cell *frame_cell_at(const struct frame *f, uint32_t row,
                                                     size_t column)
{
    return &f->cells[row * f->n_columns + column];
}

/* The first one that is data, or NULL. */
const struct frame *document_first_frame(const struct document *d);

void document_put_people(const struct document *d, bool markdown, FILE *out);
void document_put_csv(const struct document *d, FILE *out);
void document_put_schema(const struct document *d, FILE *out);
void document_put_junit(const struct document *d, FILE *out);
/* What people see of it has been shown. */
void document_mark_told(struct document *d);
