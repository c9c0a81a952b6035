/* Reads CSV files through libcsv, row by row, with line numbers and a header.
 *
 * The first non-comment line names the columns. Lines starting with '#' are comments; the first is
 * stored (format version). Every value is checked. A wrong number of fields, an empty required
 * field, text in place of a number, and a non-finite or out-of-range number are errors "FILE:LINE:
 * column NAME: ...". Limits: 4096 columns, 65535 bytes per field. */
#pragma once

#include "sim/base/base.h"

struct csvfile; /* opaque */

/* Opens a file ("-": standard input; gzip is unpacked) and reads the header. Returns NULL with an
 * error if the file is missing, empty or malformed. */
struct csvfile *csvfile_open(const char *path, struct err *e);
/* Reads from an open stream, which csvfile_close closes. Errors name `path`. */
struct csvfile *csvfile_of(FILE *in, const char *path, struct err *e);
void csvfile_close(struct csvfile *f);
/* For SCOPED(csvfile_drop) struct csvfile *; the pointer may be NULL. */
static inline void csvfile_drop(struct csvfile **f)
{
    csvfile_close(*f);
}
const char *csvfile_comment(const struct csvfile *f); /* first comment line, or "" */
int csvfile_n_columns(const struct csvfile *f);
const char *csvfile_column_name(const struct csvfile *f, int i);
int csvfile_column(const struct csvfile *f, const char *name); /* index, or -1 */
/* Index of a required column. If it is missing: -1, with an error that lists the file's columns. */
int csvfile_require(struct csvfile *f, const char *name, struct err *e);

/* Next row: returns 1 on success, 0 at the end, -EINVAL with an error if it is malformed. */
int csvfile_next(struct csvfile *f, struct err *e);
uint64_t csvfile_line(const struct csvfile *f);             /* line of the current row, from 1 */
const char *csvfile_text(const struct csvfile *f, int col); /* "" when col < 0 */
bool csvfile_empty(const struct csvfile *f, int col);       /* also when col < 0 */
/* Checked conversions of the current row. A wrong cell adds one error and returns min. */
double csvfile_number(struct csvfile *f, int col, double min, double max, struct err *e);
uint64_t csvfile_u64(struct csvfile *f, int col, uint64_t min, uint64_t max, struct err *e);
/* Index of the cell's text in `names` (NULL-terminated); 0 with an error if there is none. */
int csvfile_choice(struct csvfile *f, int col, const char *const *names, struct err *e);
/* Adds the error "FILE:LINE: column NAME: ..." for the current row. */
void csvfile_refuse(const struct csvfile *f, int col, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
