/* Reading CSV through libcsv, row by row, with line numbers, a header and a schema.
 *
 * The first non-comment line names the columns. Lines starting with '#' are comments; the text of
 * the first one is kept (format version). Every value is checked: wrong field count, empty required
 * field, text where a number belongs, non-finite or out-of-range numbers are errors "FILE:LINE:
 * column NAME: ...". At most 4096 columns, and 65535 bytes a field.
 */
#pragma once

#include "sim/base/base.h"

struct csvfile; /* opaque */

/* Opens ("-": standard input; gzip is unpacked) and reads the header. NULL with an error added
 * (missing, empty, malformed). */
struct csvfile *csvfile_open(const char *path, struct err *e);
/* Reads an open stream, which is closed with it. Errors use `path`. */
struct csvfile *csvfile_of(FILE *in, const char *path, struct err *e);
void csvfile_close(struct csvfile *f);
/* SCOPED(csvfile_drop) struct csvfile *: one of this scope, or NULL. */
static inline void csvfile_drop(struct csvfile **f)
{
    csvfile_close(*f);
}
const char *csvfile_comment(const struct csvfile *f); /* first comment line, or "" */
int csvfile_n_columns(const struct csvfile *f);
const char *csvfile_column_name(const struct csvfile *f, int i);
int csvfile_column(const struct csvfile *f, const char *name); /* index, or -1 */
/* Index of a required column; adds an error naming the columns there are, and returns -1. */
int csvfile_require(struct csvfile *f, const char *name, struct err *e);

/* Next row: 1 got one, 0 end, -EINVAL malformed (error added). */
int csvfile_next(struct csvfile *f, struct err *e);
uint64_t csvfile_line(const struct csvfile *f);             /* line of the current row, from 1 */
const char *csvfile_text(const struct csvfile *f, int col); /* "" when col < 0 */
bool csvfile_empty(const struct csvfile *f, int col);       /* also when col < 0 */
/* Checked conversions of the current row: on error one line is added and min is returned. */
double csvfile_number(struct csvfile *f, int col, double min, double max, struct err *e);
uint64_t csvfile_u64(struct csvfile *f, int col, uint64_t min, uint64_t max, struct err *e);
/* Index of the cell's text among the names; NULL ends them. */
int csvfile_choice(struct csvfile *f, int col, const char *const *names, struct err *e);
/* Adds the error "FILE:LINE: column NAME: ..." of the current row. */
void csvfile_refuse(const struct csvfile *f, int col, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
