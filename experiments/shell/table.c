#include "experiments/shell/table.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/shell/term.h"
#include "sim/base/arena.h"
#include "sim/base/err.h"

#define MIN_CUT 12 /* a last column narrower than this is left to wrap */
#define COLUMN_GAP 2

void table_init(struct table *t, const char *align)
{
    memset(t, 0, sizeof *t);
    t->columns = strlen(align);
    SIM_REQUIRE(t->columns > 0 && t->columns <= TABLE_MAX_COLUMNS, "%zu columns", t->columns);
    for (size_t i = 0; i < t->columns; i++) {
        t->right[i] = align[i] == 'r';
    }
}

void table_fini(struct table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->cells[i]);
    }
    free(t->cells);
    memset(t, 0, sizeof *t);
}

void table_cell(struct table *t, const char *fmt, ...)
{
    va_list ap;
    va_list again;
    va_start(ap, fmt);
    va_copy(again, ap);
    size_t bytes = (size_t)vsnprintf(NULL, 0, fmt, ap) + 1;
    char *text = xmalloc(bytes);
    (void)vsnprintf(text, bytes, fmt, again);
    va_end(again);
    va_end(ap);
    if (t->n == t->cap) {
        t->cap = t->cap == 0 ? 64 : 2 * t->cap;
        t->cells = xrealloc(t->cells, t->cap * sizeof *t->cells);
    }
    t->cells[t->n++] = text;
}

void table_end_row(struct table *t)
{
    while (t->n % t->columns != 0) {
        table_cell(t, "%s", "");
    }
}

void table_print(const struct table *t, FILE *out, int indent)
{
    int width[TABLE_MAX_COLUMNS] = {0};
    int terminal = term_width(out);
    for (size_t i = 0; i < t->n; i++) {
        int len = (int)strlen(t->cells[i]);
        width[i % t->columns] = len > width[i % t->columns] ? len : width[i % t->columns];
    }
    for (size_t row = 0; row < t->n; row += t->columns) {
        size_t last = 0; /* cells up to the last one that holds text */
        for (size_t c = 0; c < t->columns && row + c < t->n; c++) {
            last = t->cells[row + c][0] != '\0' ? c + 1 : last;
        }
        int used = indent;
        (void)fprintf(out, "%*s", last > 0 ? indent : 0, "");
        for (size_t c = 0; c < last; c++) {
            const char *text = t->cells[row + c];
            int pad = width[c] - (int)strlen(text);
            bool end = c + 1 == last;
            int room = terminal > 0 && end && !t->right[c] ? terminal - used : INT_MAX;
            bool cut = room < (int)strlen(text) && room > MIN_CUT;
            (void)fprintf(out, "%*s%.*s%s%*s", t->right[c] ? pad : 0, "", cut ? room - 3 : INT_MAX,
                          text, cut ? "..." : "", end ? 0 : (t->right[c] ? 0 : pad) + COLUMN_GAP,
                          "");
            used += width[c] + COLUMN_GAP;
        }
        (void)fputc('\n', out);
    }
}
