/* Whole numbers in rows, kept in a temporary file until the end of a run: a long run costs disk,
 * not memory. They are written column by column, each number as the difference to the one above it,
 * because such text packs well. */
#pragma once

#include "sim/base/base.h"

#define SPOOL_MAX_COLUMNS 48

struct spool {
    const char *columns; /* "device lane start_ns"; borrowed */
    size_t width;
    uint64_t n; /* rows */
    FILE *file; /* owned */
};

/* Out of temporary files ends the process. */
void spool_init(struct spool *s, const char *columns);
/* `width` numbers. O(width). */
void spool_row(struct spool *s, const int64_t *v);
/* Writes "NAME": {"columns": [..], "rows": n, "delta": "0,1,.."}: column after column. A text,
 * because a reader of JSON keeps it as it is, where an array of numbers would take sixty bytes for
 * each. Cost: the file is read once per column. */
void spool_write(struct spool *s, const char *name, FILE *out);
