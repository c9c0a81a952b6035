/* Aligned text tables: cells are collected, then printed with every column as wide as its widest
 * cell. The first column is left-aligned, the others as asked. */
#pragma once

#include "sim/base/base.h"

#define TABLE_MAX_COLUMNS 16

struct table {
    size_t columns;
    bool right[TABLE_MAX_COLUMNS]; /* alignment */
    char **cells;                  /* owned, row by row */
    size_t n;
};

/* align: one character per column, 'l' or 'r'. */
void table_init(struct table *t, const char *align);
void table_fini(struct table *t);
void table_cell(struct table *t, const char *text);
/* indent: spaces before each row. Trailing spaces are not written. On a terminal too narrow for it,
 * text columns are cut with "...": the first, where its rows stay different, and then the last. */
void table_print(const struct table *t, FILE *out, int indent);
