/* What frames and documents hold; for frame.c and frame_forms.c alone. */
#ifndef EXPERIMENTS_SHELL_FRAME_IMPL_H
#define EXPERIMENTS_SHELL_FRAME_IMPL_H

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

#endif
