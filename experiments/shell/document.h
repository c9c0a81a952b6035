/* Results as documents: one value, many output formats.
 *
 * A document is an ordered list of a command's results: named values, tables (sim/base/frame.h),
 * nested documents, notes and headings. Text, JSON, CSV, Markdown, LaTeX and JUnit are all made
 * from it.
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
 * without rows is not printed. A document is kept until the process ends; texts are copied. Out of
 * memory ends the process (sim/base/arena.h). */
#pragma once

#include "experiments/shell/options.h"
#include "sim/base/frame.h"

struct cJSON;
struct document;

/* ---- documents ---- */

/* Kept until the process ends. */
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
/* Adds a copy of a tree, such as a configuration. */
void document_tree(struct document *d, const char *name, const struct cJSON *tree);
/* Adds each member of the object. */
void document_members(struct document *d, const struct cJSON *object);
/* Adds lines that only text and Markdown print. */
void document_note(struct document *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds a heading, printed after an empty line. */
void document_heading(struct document *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a nested document: an object. In an array, and for people only, name is NULL. */
struct document *document_within(struct document *d, const char *name);
/* Adds an array, whose entries' names are not used. With name "" the outer document is this array.
 */
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
/* A frame with columns for data only. */
struct frame *document_data(struct document *d, const char *name, uint32_t keys, const char *names);
/* Adds a table for people only: a column per character of align, 'l' or 'r', then as many titles,
 * which are borrowed; or one NULL for no titles. */
struct frame *document_table(struct document *d, int indent, const char *align, ...);
/* Adds an existing frame, which the document then owns. */
void document_take_frame(struct document *d, const char *name, struct frame *f);
/* Sets the spaces before its rows in text; default 0. Returns the frame. */
struct frame *frame_indent(struct frame *f, int spaces);

/* Sets the text before the headings of its rows in LaTeX; the caller keeps it. NULL or "": none. */
void frame_caption(struct frame *f, const char *text);
/* Makes it the table of CSV, instead of the first one. An array has one in each element. */
void frame_main(struct frame *f);
/* Excludes it from CSV, because it only has details of the document's values. */
void frame_aside(struct frame *f);

void frame_hide_row(struct frame *f); /* hides the last row from people */

/* ---- showing ---- */

/* Returns it as a tree, which the caller owns. */
struct cJSON *document_json(const struct document *d);
/* Writes it in a format of forms.c: "text", "json", "csv", "markdown", "latex", "junit". CSV and
 * JUnit have the first frame, CSV with a header line. Without a frame, CSV has name,value of all
 * data; JUnit needs one. If there are main frames, CSV has these. Their rows begin with the first
 * values of their array element, such as the load, except values whose name the frame has, too. */
void document_put(const struct document *d, const char *form, FILE *out);
/* Whether the options request this format. */
bool output_is(const struct option_output *o, const char *form);
/* Writes it in the requested format. */
void document_print(struct document *d, const struct option_output *o, FILE *out);
/* Like document_print, to stdout. */
void document_show(struct document *d, const struct option_output *o);
/* Prints the text so far, during long work; nothing in data formats. It is not printed again. */
void document_print_so_far(struct document *d, const struct option_output *o, FILE *out);
