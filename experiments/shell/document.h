/* Results as documents: one value, many output formats.
 *
 * A document is an ordered list of a command's results: named values, tables (sim/base/frame.h),
 * documents within it, notes and headings. Text, JSON, CSV, Markdown, LaTeX and JUnit are made of
 * the same document here and nowhere else.
 *
 *     static const struct frame_column columns[] = {
 *         {.name = "device", .kind = FRAME_TEXT}, {.name = "time_s", .unit = "s"}};
 *     struct frame *f = DOCUMENT_FRAME(d, "rows", 0, columns);
 *     FRAME_ROW(f, "npu", 0.25);
 *     DOCUMENT_VALUES(d, "seed", seed, "converged", r->converged);
 *     document_note(d, "%u rows", n);
 *     document_print(d, output, stdout);
 *
 * An entry without a name is only printed for people; a named one is data; tables are both. A table
 * without rows is not printed. A document is kept until the process ends; texts are
 * copied. Out of memory ends the process (sim/base/arena.h). */
#pragma once

#include "experiments/shell/options.h"
#include "sim/base/frame.h"

struct cJSON;
struct document;

/* ---- documents ---- */

/* Kept, as long as the process. */
struct document *document_new(void);

/* DOCUMENT_VALUES(d, "name", value, "name", value, ...): data. Types as in frame_value.h. */
#define DOCUMENT_VALUES(d, ...)                                                                    \
    document_values((d), (const struct document_value[]){FRAME_PAIRS(__VA_ARGS__)},                \
                    FRAME_COUNT(__VA_ARGS__) / 2)
struct document_value {
    const char *name;
    struct frame_value value;
};
void document_values(struct document *d, const struct document_value *v, size_t n);
/* A copy of a tree that exists already, such as a configuration. */
void document_tree(struct document *d, const char *name, const struct cJSON *tree);
/* Its members, each for itself. */
void document_members(struct document *d, const struct cJSON *object);
/* Lines that only text and Markdown have. */
void document_note(struct document *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A printed heading, an empty line before it. */
void document_heading(struct document *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A document within this one: an object. In an array, and for people only, name is NULL. */
struct document *document_within(struct document *d, const char *name);
/* An array: names of its entries are not used. With name "" the outer document is this array. */
struct document *document_array(struct document *d, const char *name);
/* A text by printf, of any length, kept. */
const char *document_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* text_short, kept. */
const char *document_short(double x);

/* ---- frames ---- */

/* A table within the document. The first `keys` columns, which must be text, name objects in JSON.
 * With 2 it is {"KEY1": {"KEY2": {other columns}}}, with 0 an array of objects. With name NULL it
 * is only printed; with "" it is the whole document. The columns are copied, their texts are
 * borrowed. */
struct frame *document_frame(struct document *d, const char *name, uint32_t keys);
#define DOCUMENT_FRAME(d, name, keys, columns)                                                     \
    document_frame_of((d), (name), (keys), (columns), sizeof(columns) / sizeof(columns)[0])
struct frame *document_frame_of(struct document *d, const char *name, uint32_t keys,
                                const struct frame_column *c, size_t n);
/* A frame of nothing else. */
struct frame *document_data(struct document *d, const char *name, uint32_t keys, const char *names);
/* For people only: a column per character of align, 'l' or 'r', and as many titles, which are
 * borrowed; or one NULL for none. */
struct frame *document_table(struct document *d, int indent, const char *align, ...);
/* A frame that was made elsewhere: the document owns it from here on. */
void document_take_frame(struct document *d, const char *name, struct frame *f);
/* Spaces before its rows in text; default 0. Returns the frame. */
struct frame *frame_indent(struct frame *f, int spaces);

/* Text before the headings of its rows in LaTeX; the caller keeps it. NULL or "": nothing. */
void frame_caption(struct frame *f, const char *text);
/* The table of CSV, in the place of the first one. An array has one in each element. */
void frame_main(struct frame *f);
/* No table of CSV: it is a detail of what the values of the document say. */
void frame_aside(struct frame *f);

void frame_hide_row(struct frame *f); /* people do not see the last row */

/* ---- showing ---- */

/* As a tree: the caller owns it. */
struct cJSON *document_json(const struct document *d);
/* In a form of forms.c: "text", "json", "csv", "markdown", "latex", "junit". CSV and JUnit are of
 * the first frame found, CSV with a header line; CSV without one is name,value of all data, JUnit
 * needs one. CSV is of the main frames where there are some. Their rows begin with the values with
 * which the element of an array begins, such as the load; of a name that the frame has, too, with
 * none. */
void document_put(const struct document *d, const char *form, FILE *out);
/* Whether the options ask for this form. */
bool output_is(const struct option_output *o, const char *form);
/* As the options ask. */
void document_print(struct document *d, const struct option_output *o, FILE *out);
/* Like document_print, to stdout. */
void document_show(struct document *d, const struct option_output *o);
/* Prints the text that a long work has so far; nothing where data is asked for. It is not printed
 * again. */
void document_print_so_far(struct document *d, const struct option_output *o, FILE *out);
