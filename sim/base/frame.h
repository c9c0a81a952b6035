/* A table as one value: named columns with unit, direction and title, and rows of cells.
 *
 * Commands fill frames and show them in every form (experiments/shell/document.h); a file of
 * results is read back into the same (frame_read.c), and who draws or judges asks for columns by
 * their names.
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

/* Which way a number is better (metric_table.h has the names). */
enum metric_better { METRIC_BETTER_LOWER, METRIC_BETTER_HIGHER, METRIC_BETTER_NEITHER };

/* A row as a test case. FAILED is a flag, MESSAGE a text that is absent where all is well; names
 * of several columns are joined by blanks. */
enum frame_junit {
    FRAME_JUNIT_NONE,
    FRAME_JUNIT_CLASS,
    FRAME_JUNIT_NAME,
    FRAME_JUNIT_FAILED,
    FRAME_JUNIT_MESSAGE
};

struct frame_column {
    /* In JSON and CSV: "ttft_s". "a.b" is b of an object a; "" is the row itself. */
    const char *name;
    const char *title; /* in text and Markdown; NULL: the name */
    const char *unit;  /* "s", "1" of shares; NULL: none */
    enum metric_better better;
    enum frame_kind kind;
    const char
        *format; /* of numbers in text, one double: NULL: "%.4g", or all digits of a whole number */
    double scale; /* of numbers in text: 100 of percent; 0 is 1 */
    /* of a cell that has no value: "-" when NULL. JSON has null, CSV nothing. */
    const char *missing;
    bool only_data;         /* left out of text and Markdown */
    bool only_text;         /* left out of JSON and CSV */
    bool heading;           /* printed above the rows that share it in text and Markdown */
    bool left;              /* numbers that are shown as texts are aligned like texts */
    enum frame_junit junit; /* what it is of a test case; the other forms do not ask */
};

struct frame;

struct frame *frame_new(void);
void frame_free(struct frame *f);
/* SCOPED(frame_drop) struct frame *: one of this scope. */
static inline void frame_drop(struct frame **f)
{
    frame_free(*f);
}

/* ---- filling ---- */

/* The columns are copied, their texts are borrowed. Before the first cell. */
void frame_columns(struct frame *f, const struct frame_column *c, size_t n);
/* More columns, of any kind, for data only. names: "device op time_s". */
void frame_data_columns(struct frame *f, const char *names);

/* FRAME_ROW(f, value, value, ...): a row; columns beyond the last value stay empty. The kinds must
 * be the columns'. */
#define FRAME_ROW(f, ...)                                                                          \
    frame_row((f), (const struct frame_value[]){FRAME_VALUES(__VA_ARGS__)},                        \
              FRAME_COUNT(__VA_ARGS__))
void frame_row(struct frame *f, const struct frame_value *v, size_t n);
/* FRAME_CELLS(f, value, value, ...): the next cells, where one statement does not have all of a
 * row. */
#define FRAME_CELLS(f, ...)                                                                        \
    frame_cells((f), (const struct frame_value[]){FRAME_VALUES(__VA_ARGS__)},                      \
                FRAME_COUNT(__VA_ARGS__))
void frame_cells(struct frame *f, const struct frame_value *v, size_t n);
void frame_cell(struct frame *f, struct frame_value v);
void frame_skip(struct frame *f, uint32_t n); /* n cells that are absent */

/* Where the columns come with the rows: begins a row of absent cells, and sets one of the last
 * row's, of a new column if there is none of the name. Cost: columns, and O(1) where they come in
 * the same order each time. */
void frame_begin_row(struct frame *f);
#define FRAME_SET(f, column, x) frame_set((f), (column), FRAME_VALUE(x))
void frame_set(struct frame *f, const char *column, struct frame_value v);

/* ---- asking ---- */

uint32_t frame_rows(const struct frame *f);
size_t frame_width(const struct frame *f);
const char *frame_name(const struct frame *f, size_t column);
int frame_find(const struct frame *f, const char *column); /* its index, or -1 */
/* The text lives as long as the frame. */
struct frame_value frame_at(const struct frame *f, uint32_t row, size_t column);
/* NaN when it has no value, is no number, or there is no such column. */
double frame_get(const struct frame *f, uint32_t row, const char *column);
/* "" when it has no text, or there is no such column. A number that was read from CSV has one. */
const char *frame_text(const struct frame *f, uint32_t row, const char *column);
bool frame_is(const struct frame *f, uint32_t row, const char *column, const char *text);

/* ---- reading (frame_read.c) ---- */

/* A CSV file of any width: a column per name of its header, numbers where the whole cell is one
 * (their text stays), empty cells absent. NULL with an error that names file and line; a file
 * without rows is one. */
struct frame *frame_read_csv(const char *path, struct err *e);

/* Rows of a JSON tree. `at` is the way to them, steps separated by '/': a member's name, or {key},
 * every member of an object, its name in the column `key`; arrays are gone through by themselves:
 *     "kernels"  "policies/{policy}/{metric}"  "drive/requests"  "strategies/{strategy}/intervals"
 * A row is an object, members of objects within it are columns "a.b"; it has the numbers and texts
 * of the objects it lies in too. Never NULL; without rows where the way leads nowhere. `path` names
 * the file in errors. */
struct frame *frame_of_json(const struct cJSON *root, const char *at, const char *path);

/* 0, or -EINVAL with an error per column of "name name.." that is missing: it names the file and
 * the columns there are. */
int frame_require(const struct frame *f, const char *columns, struct err *e);
/* The number of a cell: NaN with an error that names file, line (or row) and column when it is
 * none. */
double frame_require_number(const struct frame *f, uint32_t row, const char *column, struct err *e);
