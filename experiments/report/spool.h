/* Rows of integers, kept in a temporary file until the end of a run, so that a long run costs disk,
 * not memory. They are written by column, each number as the difference to the previous row,
 * because such text compresses well. */
#pragma once

#include "sim/base/base.h"

#define SPOOL_MAX_COLUMNS 48

struct spool {
    const char *columns; /* "device lane start_ns"; borrowed */
    size_t width;
    uint64_t n; /* rows */
    FILE *file; /* owned */
};

/* If no temporary file can be made, the process ends. */
void spool_init(struct spool *s, const char *columns);
/* Adds a row of `width` numbers. O(width). */
void spool_row(struct spool *s, const int64_t *v);
/* Writes "NAME": {"columns": [..], "rows": n, "delta": "0,1,.."}: column after column. It is a
 * string, because JSON parsers store that compactly, while an array takes some sixty bytes per
 * number. Cost: the file is read once per column. */
void spool_write(struct spool *s, const char *name, FILE *out);
