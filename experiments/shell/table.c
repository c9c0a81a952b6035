#include "experiments/shell/table.h"

#include <limits.h>

#include "experiments/shell/term.h"

#define MIN_CUT 12   /* a last column narrower than this is left to wrap */
#define MIN_LABEL 16 /* as is a first one */
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

void table_cell(struct table *t, const char *text)
{
    t->cells = xgrow(t->cells, t->n, sizeof *t->cells);
    t->cells[t->n++] = text_visible(xstrdup(text), "");
}

/* Whether texts of the first column that are cut to so many characters still differ. */
static bool tells_apart(const struct table *t, int width)
{
    for (size_t i = 0; i < t->n; i += t->columns) {
        for (size_t k = 0; k < i; k += t->columns) {
            if (strncmp(t->cells[i], t->cells[k], (size_t)width) == 0 &&
                strcmp(t->cells[i], t->cells[k]) != 0) {
                return false;
            }
        }
    }
    return true;
}

/* On a terminal too narrow, labels in the first column give way. */
static void fit_labels(const struct table *t, int indent, int terminal, int *width)
{
    int over = indent - terminal - COLUMN_GAP;
    for (size_t c = 0; c < t->columns; c++) {
        over += width[c] + COLUMN_GAP;
    }
    int room = width[0] - over < MIN_LABEL ? MIN_LABEL : width[0] - over;
    if (terminal > 0 && over > 0 && !t->right[0] && room < width[0] && tells_apart(t, room - 3)) {
        width[0] = room;
    }
}

static void put_cell(const char *text, int room, bool right, bool end, int width, FILE *out)
{
    int length = (int)strlen(text);
    bool cut = length > room && room > MIN_CUT;
    int pad = cut ? 0 : width - length;
    (void)fprintf(out, "%*s%.*s%s%*s", right ? pad : 0, "", cut ? room - 3 : INT_MAX, text,
                  cut ? "..." : "", end ? 0 : (right ? 0 : pad) + COLUMN_GAP, "");
}

void table_print(const struct table *t, FILE *out, int indent)
{
    int width[TABLE_MAX_COLUMNS] = {0};
    int terminal = term_width(out);
    for (size_t i = 0; i < t->n; i++) {
        int len = (int)strlen(t->cells[i]);
        width[i % t->columns] = len > width[i % t->columns] ? len : width[i % t->columns];
    }
    fit_labels(t, indent, terminal, width);
    for (size_t row = 0; row < t->n; row += t->columns) {
        size_t last = 0; /* cells up to the last one that holds text */
        for (size_t c = 0; c < t->columns && row + c < t->n; c++) {
            last = t->cells[row + c][0] != '\0' ? c + 1 : last;
        }
        int used = indent;
        (void)fprintf(out, "%*s", last > 0 ? indent : 0, "");
        for (size_t c = 0; c < last; c++) {
            bool end = c + 1 == last;
            int room = c == 0                                ? width[0]
                       : terminal > 0 && end && !t->right[c] ? terminal - used
                                                             : INT_MAX;
            put_cell(t->cells[row + c], room, t->right[c], end, width[c], out);
            used += width[c] + COLUMN_GAP;
        }
        (void)fputc('\n', out);
    }
}
