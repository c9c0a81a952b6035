/* Results as named columns: one value, many forms.
 *
 * A frame is a table whose columns have a name, a unit, a direction and a title. A document is an
 * ordered list of named values, frames and documents within it: what a command has to say. Text,
 * JSON, CSV and Markdown are made of the same document here and nowhere else.
 *
 *     struct frame *f = document_frame(d, "rows", 0);
 *     frame_column(f, (struct frame_column){.name = "device", .kind = FRAME_TEXT});
 *     frame_column(f, (struct frame_column){.name = "time_s", .unit = "s", .format = "%.4g"});
 *     frame_text(f, "npu");
 *     frame_number(f, 0.25);
 *     document_print(d, output, stdout);
 *
 * Everything is owned by the outermost document and freed with it; texts are copied. Out of memory
 * ends the process (sim/base/arena.h).
 */
#ifndef EXPERIMENTS_SHELL_FRAME_H
#define EXPERIMENTS_SHELL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "experiments/shell/options.h"
#include "sim/metrics/metric_table.h"

enum frame_kind { FRAME_NUMBER, FRAME_TEXT, FRAME_FLAG };

struct frame_column {
    const char *name;  /* in JSON and CSV: "ttft_s" */
    const char *title; /* in text and Markdown; NULL: the name */
    const char *unit;  /* "s", "1" of shares; NULL: none */
    enum metric_better better;
    enum frame_kind kind;
    const char *format; /* of numbers in text, one double: "%.4g" when NULL */
    /* of a cell that has no value: "-" when NULL. JSON has null, CSV nothing. */
    const char *missing;
    bool only_data; /* left out of text and Markdown */
};

struct frame;
struct document;

/* ---- making ---- */

struct document *document_new(void);
void document_free(struct document *d);

/* What a value is in JSON; `label` and `format` in text: "LABEL: VALUE" on a line of its own. A
 * label of NULL leaves it out of text. A number that is not finite is null. */
void document_text(struct document *d, const char *name, const char *label, const char *value);
void document_number(struct document *d, const char *name, const char *label, const char *format,
                     double value);
void document_flag(struct document *d, const char *name, bool value);
/* A line that only text and Markdown have; an empty one separates. */
void document_note(struct document *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A heading, likewise. */
void document_heading(struct document *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A document within this one. */
struct document *document_within(struct document *d, const char *name);

/* A frame within the document. The first `keys` columns, which must be text, name objects in JSON:
 * with 2 it is {"KEY1": {"KEY2": {other columns}}}, with 0 an array of objects. Rows of equal keys
 * must follow each other. */
struct frame *document_frame(struct document *d, const char *name, uint32_t keys);
/* name NULL: the document is this frame alone, its JSON an array or object without a name. */

/* Columns come before cells. Texts of the column are borrowed. */
void frame_column(struct frame *f, struct frame_column c);
/* The next cell, row by row. Its kind must be the column's. */
void frame_text(struct frame *f, const char *value);
void frame_number(struct frame *f, double value); /* not finite: no value */
void frame_flag(struct frame *f, bool value);
void frame_missing(struct frame *f);

/* ---- reading ---- */

uint32_t frame_rows(const struct frame *f);
/* NaN when it has no value, is no number, or there is no such column. */
double frame_get(const struct frame *f, uint32_t row, const char *column);
const char *frame_get_text(const struct frame *f, uint32_t row, const char *column);

/* ---- showing ---- */

enum document_form { DOCUMENT_TEXT, DOCUMENT_JSON, DOCUMENT_CSV, DOCUMENT_MARKDOWN };

/* CSV is of the first frame found, a header line first. */
void document_put(const struct document *d, enum document_form form, FILE *out);
/* As the options ask. */
void document_print(const struct document *d, const struct option_output *o, FILE *out);

#endif
