/* What frames and documents hold; for frame.c and frame_forms.c alone. */
#ifndef EXPERIMENTS_SHELL_FRAME_IMPL_H
#define EXPERIMENTS_SHELL_FRAME_IMPL_H

#include "experiments/shell/frame.h"

struct frame_cell {
    char *text; /* owned; of texts */
    double number;
    bool missing;
};

struct frame {
    struct frame_column *columns; /* owned; their texts borrowed */
    size_t n_columns;
    struct frame_cell *cells; /* owned, row by row */
    size_t n_cells, cap_cells;
    uint32_t keys;
};

enum document_kind {
    DOCUMENT_IS_TEXT,
    DOCUMENT_IS_NUMBER,
    DOCUMENT_IS_FLAG,
    DOCUMENT_IS_NOTE,
    DOCUMENT_IS_HEADING,
    DOCUMENT_IS_FRAME,
    DOCUMENT_IS_DOCUMENT,
};

struct document_entry {
    enum document_kind kind;
    char *name, *label, *text; /* owned, or NULL */
    const char *format;        /* borrowed */
    double number;
    struct frame *frame;     /* owned */
    struct document *within; /* owned */
};

struct document {
    struct document_entry *v; /* owned */
    size_t n;
};

#endif
