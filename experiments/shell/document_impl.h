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
    size_t told; /* entries already printed for people */
    bool is_array;
};

/* The first data frame, or NULL. */
const struct frame *document_first_frame(const struct document *d);

/* Formats for people. */
struct view; /* rows of a frame as printed for people (frame_people.c) */
struct people {
    void (*rows)(const struct view *v, uint32_t from, uint32_t to, FILE *out);
    void (*heading)(const char *text, FILE *out);
    void (*note)(const char *text, FILE *out);
};
extern const struct people people_text, people_markdown, people_latex;
void document_put_people(const struct document *d, const struct people *p, FILE *out);
void document_put_csv(const struct document *d, FILE *out);
void document_put_schema(const struct document *d, FILE *out);
void document_put_junit(const struct document *d, FILE *out);
/* Records that the text so far has been printed. */
void document_mark_told(struct document *d);
