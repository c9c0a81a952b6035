/* A CSV file of any width as a grid of texts, for figures: sweep exports have hundreds of columns,
 * which sim/base/csvfile.h, made for input formats, does not take.
 *
 * Lines that start with '#' are comments. The first other line names the columns; every further one
 * has as many fields. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/err.h"

struct grid {
    const char *path; /* borrowed */
    char **cells;     /* owned, row by row; the header is row 0 */
    size_t *lines;    /* owned, line of each row in the file */
    size_t n_rows, n_columns;
};

/* Reads all of it. 0, or -EINVAL with an error that names file and line; grid_fini is harmless
 * then. */
int grid_read(struct grid *g, const char *path, struct err *e);
void grid_fini(struct grid *g);

/* Rows from 1 are data. */
const char *grid_text(const struct grid *g, size_t row, size_t column);
/* Index of a column, or -1. */
int grid_column(const struct grid *g, const char *name);
/* The same; a missing one is an error that names those there are. */
int grid_require(const struct grid *g, const char *name, struct err *e);
/* The cell as a finite number: false for an empty cell and for text. */
bool grid_number(const struct grid *g, size_t row, size_t column, double *out);
/* The cell as a finite number, or an error that names file, line and column. */
int grid_require_number(const struct grid *g, size_t row, size_t column, double *out,
                        struct err *e);
