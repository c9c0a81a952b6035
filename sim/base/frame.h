/* A table: named columns with unit, direction and title, and rows of cells.
 *
 * Commands fill frames and print them in every output format (experiments/shell/document.h). Frames
 * also read files of results (frame_read.c). Plots and analyses find columns by name.
 *
 *     static const struct frame_column columns[] = {
 *         {.name = "device", .kind = FRAME_TEXT}, {.name = "time_s", .unit = "s"}};
 *     struct frame *f = frame_new();
 *     frame_columns(f, columns, 2);
 *     FRAME_ROW(f, "npu", 0.25);
 *
 * Texts of cells are copied. Out of memory ends the process (sim/base/arena.h). */
#pragma once

#include "sim/base/frame_value.h"

struct cJSON;

enum frame_kind { FRAME_NUMBER, FRAME_TEXT, FRAME_FLAG, FRAME_ANY };

/* Which values of a metric are better (metric_table.h has the names). */
enum metric_better { METRIC_BETTER_LOWER, METRIC_BETTER_HIGHER, METRIC_BETTER_NEITHER };

/* A column's role if rows are printed as JUnit test cases. FAILED is a flag. MESSAGE is a text,
 * absent if the case passed. Names of several columns are joined by blanks. */
enum frame_junit {
    FRAME_JUNIT_NONE,
    FRAME_JUNIT_CLASS,
    FRAME_JUNIT_NAME,
    FRAME_JUNIT_FAILED,
    FRAME_JUNIT_MESSAGE
};

struct frame_column {
    /* in JSON and CSV: "ttft_s"; "a.b" is member b of object a; "" is the row itself */
    const char *name;
    const char *title; /* in text and Markdown; NULL: `name` */
    const char *unit;  /* "s", or "1" for shares; NULL: none */
    enum metric_better better;
    enum frame_kind kind;
    const char *format; /* printf format in text, of one double; NULL: "%.4g", or all digits of a
                           whole number */
    double scale;       /* factor of numbers in text, 100 for percent; 0: 1 */
    /* Text of a cell without value; NULL: "-". JSON prints null, CSV an empty cell. */
    const char *missing;
    bool only_data;         /* left out of text and Markdown */
    bool only_text;         /* left out of JSON and CSV */
    bool heading;           /* in text and Markdown, printed above the rows that share it */
    bool left;              /* aligns to the left numbers that are printed as texts */
    enum frame_junit junit; /* JUnit role; unused in other formats */
};

struct frame;

struct frame *frame_new(void);
void frame_free(struct frame *f);
/* For SCOPED(frame_drop) struct frame *. */
static inline void frame_drop(struct frame **f)
{
    frame_free(*f);
}

/* ---- filling ---- */

/* Adds columns before the first cell. The columns are copied, their texts are borrowed. */
void frame_columns(struct frame *f, const struct frame_column *c, size_t n);
/* Adds columns of any kind that text and Markdown leave out. names: "device op time_s". */
void frame_data_columns(struct frame *f, const char *names);

/* FRAME_ROW(f, value, value, ...) adds a row. Columns after the last value are absent. Each value
 * must have its column's kind. */
#define FRAME_ROW(f, ...)                                                                          \
    frame_row((f), (const struct frame_value[]){FRAME_VALUES(__VA_ARGS__)},                        \
              FRAME_COUNT(__VA_ARGS__))
void frame_row(struct frame *f, const struct frame_value *v, size_t n);
/* FRAME_CELLS(f, value, value, ...) adds the next cells, if a row takes several statements. */
#define FRAME_CELLS(f, ...)                                                                        \
    frame_cells((f), (const struct frame_value[]){FRAME_VALUES(__VA_ARGS__)},                      \
                FRAME_COUNT(__VA_ARGS__))
void frame_cells(struct frame *f, const struct frame_value *v, size_t n);
void frame_cell(struct frame *f, struct frame_value v);
void frame_skip(struct frame *f, uint32_t n); /* adds n absent cells */

/* For columns that are not known in advance. frame_begin_row adds a row of absent cells, and
 * FRAME_SET sets a cell of the last row. It adds the column if there is none of that name. Cost:
 * columns; O(1) if they are set in the same order in each row. */
void frame_begin_row(struct frame *f);
#define FRAME_SET(f, column, x) frame_set((f), (column), FRAME_VALUE(x))
void frame_set(struct frame *f, const char *column, struct frame_value v);

/* ---- access ---- */

uint32_t frame_rows(const struct frame *f);
size_t frame_width(const struct frame *f);
const char *frame_name(const struct frame *f, size_t column);
int frame_find(const struct frame *f, const char *column); /* index, or -1 */
/* The text of the value lives as long as the frame. */
struct frame_value frame_at(const struct frame *f, uint32_t row, size_t column);
/* NaN if the cell has no value or is not a number, or there is no such column. */
double frame_get(const struct frame *f, uint32_t row, const char *column);
/* "" if the cell has no text or there is no such column. A number read from CSV has its text. */
const char *frame_text(const struct frame *f, uint32_t row, const char *column);
bool frame_is(const struct frame *f, uint32_t row, const char *column, const char *text);

/* ---- reading (frame_read.c) ---- */

/* Reads a CSV file with any columns. A cell is a number if it is one as a whole (its text is kept,
 * too); empty cells are absent. Returns NULL with an error that names file and line; a file without
 * rows is an error. */
struct frame *frame_read_csv(const char *path, struct err *e);

/* Reads rows from a JSON tree. `at` is the path to them. Its steps are separated by '/': a member's
 * name, or {key} for every member of an object, whose name fills the column `key`. Arrays need no
 * step:
 *     "kernels"  "policies/{policy}/{metric}"  "drive/requests"  "strategies/{strategy}/intervals"
 * A row is an object. Members of nested objects are columns "a.b". A row also has the numbers and
 * texts of the objects that contain it. Never NULL; without rows if the path does not exist. `path`
 * names the file in errors. */
struct frame *frame_of_json(const struct cJSON *root, const char *at, const char *path);

/* Checks that columns "name name.." exist. Returns 0, or -EINVAL with an error per missing column,
 * which names the file and its columns. */
int frame_require(const struct frame *f, const char *columns, struct err *e);
/* The number of a cell. If it is none: NaN, with an error that names file, line (or row) and
 * column. */
double frame_require_number(const struct frame *f, uint32_t row, const char *column, struct err *e);
