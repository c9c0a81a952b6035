#include "plots/grid.h"

#include <csv.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/input.h"

#define MAX_COLUMNS 4096
#define MAX_CELLS (64u << 20) /* a limit for broken files, far above any result */

struct reading {
    struct grid *g;
    struct err *err;
    size_t cap, cap_lines, n; /* cells */
    size_t in_row;            /* cells of the current row */
    size_t line;
    bool comment, failed;
};

static void on_field(void *text, size_t len, void *ctx)
{
    struct reading *r = ctx;
    if (r->failed || r->comment) {
        return;
    }
    const char *s = text == NULL ? "" : text;
    if (r->in_row == 0 && len > 0 && s[0] == '#') {
        r->comment = true;
        return;
    }
    if (r->n == MAX_CELLS || r->in_row == MAX_COLUMNS) {
        (void)err_add(r->err, "%s:%zu: more than %d columns, or too large", r->g->path, r->line,
                      MAX_COLUMNS);
        r->failed = true;
        return;
    }
    if (r->n == r->cap) {
        r->cap = r->cap == 0 ? 256 : 2 * r->cap;
        r->g->cells = xrealloc(r->g->cells, r->cap * sizeof *r->g->cells);
    }
    char *copy = xmalloc(len + 1);
    memcpy(copy, s, len);
    copy[len] = '\0';
    r->g->cells[r->n++] = copy;
    r->in_row++;
}

static void on_row(int end, void *ctx)
{
    struct reading *r = ctx;
    struct grid *g = r->g;
    size_t line = r->line++;
    size_t n = r->in_row;
    bool comment = r->comment;
    (void)end;
    r->in_row = 0;
    r->comment = false;
    bool blank = n == 0 || (n == 1 && g->n_columns > 1 && g->cells[r->n - 1][0] == '\0');
    if (r->failed || comment) {
        return;
    }
    if (blank) {
        r->n -= n;
        if (n == 1) {
            free(g->cells[r->n]);
        }
        return;
    }
    if (g->n_columns == 0) {
        g->n_columns = n;
    } else if (n != g->n_columns) {
        (void)err_add(r->err, "%s:%zu: %zu fields, the header has %zu", g->path, line, n,
                      g->n_columns);
        r->failed = true;
        return;
    }
    if (g->n_rows == r->cap_lines) {
        r->cap_lines = r->cap_lines == 0 ? 64 : 2 * r->cap_lines;
        g->lines = xrealloc(g->lines, r->cap_lines * sizeof *g->lines);
    }
    g->lines[g->n_rows++] = line;
}

/* Results that figures are drawn of are held in memory. */
#define MAX_BYTES ((size_t)1 << 30)

static int parse(struct reading *r, FILE *in)
{
    struct csv_parser p;
    if (csv_init(&p, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL | CSV_REPALL_NL) != 0) {
        return err_add(r->err, "%s: out of memory", r->g->path);
    }
    csv_set_realloc_func(&p, xrealloc);
    char buf[1 << 16];
    size_t total = 0;
    for (size_t n; !r->failed && (n = fread(buf, 1, sizeof buf, in)) > 0;) {
        if (csv_parse(&p, buf, n, on_field, on_row, r) != n) {
            (void)err_add(r->err, "%s:%zu: malformed CSV: %s", r->g->path, r->line,
                          csv_strerror(csv_error(&p)));
            r->failed = true;
        }
        total += n;
        if (total > MAX_BYTES && !r->failed) {
            (void)err_add(r->err, "%s: over %zu bytes", r->g->path, MAX_BYTES);
            r->failed = true;
        }
    }
    if (!r->failed && csv_fini(&p, on_field, on_row, r) != 0) {
        (void)err_add(r->err, "%s:%zu: malformed CSV: a quote is not closed", r->g->path, r->line);
        r->failed = true;
    }
    csv_free(&p);
    return r->failed ? -EINVAL : 0;
}

int grid_read(struct grid *g, const char *path, struct err *e)
{
    *g = (struct grid){.path = path};
    FILE *in = input_open_any(path, NULL, e);
    if (in == NULL) {
        return -EINVAL;
    }
    struct reading r = {.g = g, .err = e, .line = 1};
    int rc = parse(&r, in);
    (void)fclose(in);
    if (rc == 0 && g->n_rows < 2) {
        rc = err_add(e, "%s: no rows", path);
    }
    if (rc != 0) {
        for (size_t i = 0; i < r.n; i++) {
            free(g->cells[i]);
        }
        free(g->cells);
        free(g->lines);
        *g = (struct grid){.path = path};
    }
    return rc;
}

void grid_fini(struct grid *g)
{
    for (size_t i = 0; i < g->n_rows * g->n_columns; i++) {
        free(g->cells[i]);
    }
    free(g->cells);
    free(g->lines);
    *g = (struct grid){0};
}

const char *grid_text(const struct grid *g, size_t row, size_t column)
{
    return g->cells[row * g->n_columns + column];
}

int grid_column(const struct grid *g, const char *name)
{
    for (size_t i = 0; i < g->n_columns; i++) {
        if (strcmp(g->cells[i], name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

int grid_require(const struct grid *g, const char *name, struct err *e)
{
    int i = grid_column(g, name);
    if (i < 0) {
        char have[400] = "";
        size_t n = 0;
        for (size_t c = 0; c < g->n_columns && n + 2 < sizeof have; c++) {
            n +=
                (size_t)snprintf(have + n, sizeof have - n, "%s%s", c > 0 ? ", " : "", g->cells[c]);
        }
        (void)err_add(e, "%s: no column %s; there are: %s%s", g->path, name, have,
                      n >= sizeof have ? "..." : "");
    }
    return i;
}

bool grid_number(const struct grid *g, size_t row, size_t column, double *out)
{
    const char *text = grid_text(g, row, column);
    char *end = NULL;
    double x = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(x)) {
        return false;
    }
    *out = x;
    return true;
}

int grid_require_number(const struct grid *g, size_t row, size_t column, double *out, struct err *e)
{
    if (!grid_number(g, row, column, out)) {
        return err_add(e, "%s:%zu: column %s: \"%s\" is not a finite number", g->path,
                       g->lines[row], g->cells[column], grid_text(g, row, column));
    }
    return 0;
}
