/* Contents of documents; only for the files of output formats. */
#pragma once

#include "experiments/shell/document.h"
#include "sim/base/frame_impl.h"

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
};

/* The first one that is data, or NULL. */
const struct frame *document_first_frame(const struct document *d);

void document_put_people(const struct document *d, bool markdown, FILE *out);
void document_put_csv(const struct document *d, FILE *out);
void document_put_schema(const struct document *d, FILE *out);
void document_put_junit(const struct document *d, FILE *out);
/* The text so far has been printed. */
void document_mark_told(struct document *d);
