#include "sim/base/csvfile.h"

#include <csv.h>

#include "sim/base/input.h"
#include "sim/base/words.h"

/* Limits for broken files, above those of any valid one. */
#define MAX_COLUMNS 4096
#define MAX_FIELD 65536 /* NUL included */

/* A row: its fields one after the other, each with a NUL. */
struct fields {
    struct text text;
    size_t *at; /* owned: offset of each field in text */
    size_t cap_n;
    int n;
};

struct csvfile {
    FILE *in;
    char *path;
    char *comment; /* owned; NULL: none yet */
    struct csv_parser parser;
    struct input_line line;
    uint64_t row_line; /* first line of the current row */
    struct fields names, row;
    bool row_done, too_long, too_many;
    bool unended; /* the last line has no line end */
};

static void on_field(void *text, size_t len, void *data)
{
    struct csvfile *f = data;
    struct fields *r = &f->row;
    if (r->n >= MAX_COLUMNS || len >= MAX_FIELD) {
        f->too_many = f->too_many || r->n >= MAX_COLUMNS;
        f->too_long = f->too_long || len >= MAX_FIELD;
        return;
    }
    r->at = xroom(r->at, (size_t)r->n + 1, &r->cap_n, sizeof *r->at);
    r->at[r->n++] = r->text.n;
    text_add(&r->text, text, len);
    text_char(&r->text, '\0');
}

static const char *field(const struct fields *r, int i)
{
    return r->text.p + r->at[i];
}

static void fields_fini(struct fields *r)
{
    text_fini(&r->text);
    free(r->at);
}

static void on_row(int end UNUSED, void *data)
{
    ((struct csvfile *)data)->row_done = true;
}

static bool too_large(const struct csvfile *f, struct err *e)
{
    if (f->too_many || f->too_long) {
        (void)err_add(e, "%s:%llu: more than %d columns, or a field over %d bytes", f->path,
                      (unsigned long long)f->row_line, MAX_COLUMNS, MAX_FIELD - 1);
    }
    return f->too_many || f->too_long;
}

/* Parses up to the end of a row. Returns 1, 0 at the end of the file, or -EINVAL with an error. */
static int read_row(struct csvfile *f, struct err *e)
{
    f->row.n = 0;
    f->row.text.n = 0;
    f->row_done = false;
    f->too_long = false;
    f->too_many = false;
    bool started = false;
    for (;;) {
        int got = input_next(f->in, f->path, &f->line, e);
        if (got < 0) {
            return got;
        }
        const char *text = f->line.text;
        if (got == 0) {
            f->unended = started;
            if (started && (csv_fini(&f->parser, on_field, on_row, f) != 0 || !f->row_done)) {
                return err_add(e, "%s:%llu: quoted field without an end", f->path,
                               (unsigned long long)f->row_line);
            }
            if (started && too_large(f, e)) {
                return -EINVAL;
            }
            return started ? 1 : 0;
        }
        if (!started && (text[0] == '\n' || text[0] == '\r')) {
            continue;
        }
        if (!started && text[0] == '#') {
            if (f->comment == NULL) {
                f->comment = xformat("%.*s", (int)strcspn(text, "\r\n"), text);
            }
            continue;
        }
        if (!started) {
            started = true;
            f->row_line = f->line.number;
        }
        if (csv_parse(&f->parser, text, f->line.n, on_field, on_row, f) != f->line.n) {
            return err_add(e, "%s:%llu: %s", f->path, (unsigned long long)f->line.number,
                           csv_strerror(csv_error(&f->parser)));
        }
        if (too_large(f, e)) {
            return -EINVAL;
        }
        if (f->row_done) {
            return 1;
        }
    }
}

struct csvfile *csvfile_open(const char *path, struct err *e)
{
    FILE *in = input_open_any(path, NULL, e);
    return in == NULL ? NULL : csvfile_of(in, path, e);
}

struct csvfile *csvfile_of(FILE *in, const char *path, struct err *e)
{
    struct csvfile *f = xcalloc(1, sizeof *f);
    f->in = in;
    f->path = xstrdup(path);
    if (csv_init(&f->parser, CSV_STRICT | CSV_STRICT_FINI) != 0) {
        err_add(e, "%s: cannot start the CSV parser", path);
        csvfile_close(f);
        return NULL;
    }
    csv_set_realloc_func(&f->parser, xrealloc);
    int rc = read_row(f, e);
    if (rc != 1) {
        if (rc == 0) {
            err_add(e, "%s: empty: no header line", path);
        }
        csvfile_close(f);
        return NULL;
    }
    f->names = f->row;
    f->row = (struct fields){0};
    for (int i = 0; i < f->names.n; i++) {
        for (int j = 0; j < i; j++) {
            if (strcmp(field(&f->names, i), field(&f->names, j)) == 0) {
                err_add(e, "%s:%llu: column \"%s\" is given twice", path,
                        (unsigned long long)f->row_line, field(&f->names, i));
                csvfile_close(f);
                return NULL;
            }
        }
    }
    return f;
}

void csvfile_close(struct csvfile *f)
{
    if (f == NULL) {
        return;
    }
    csv_free(&f->parser);
    fclose(f->in);
    fields_fini(&f->names);
    fields_fini(&f->row);
    free(f->line.text);
    free(f->comment);
    free(f->path);
    free(f);
}

const char *csvfile_comment(const struct csvfile *f)
{
    return f->comment != NULL ? f->comment : "";
}

int csvfile_n_columns(const struct csvfile *f)
{
    return f->names.n;
}

const char *csvfile_column_name(const struct csvfile *f, int i)
{
    return field(&f->names, i);
}

int csvfile_column(const struct csvfile *f, const char *name)
{
    for (int i = 0; i < f->names.n; i++) {
        if (strcmp(field(&f->names, i), name) == 0) {
            return i;
        }
    }
    return -1;
}

int csvfile_require(struct csvfile *f, const char *name, struct err *e)
{
    int col = csvfile_column(f, name);
    if (col < 0) {
        SCOPED(text_fini) struct text have = {0};
        for (int i = 0; i < f->names.n; i++) {
            text_item(&have, ",", field(&f->names, i));
        }
        err_add(e, "%s: no column \"%s\" (there are: %s)", f->path, name, text_end(&have));
    }
    return col;
}

int csvfile_next(struct csvfile *f, struct err *e)
{
    int rc = read_row(f, e);
    if (rc == 1 && f->row.n != f->names.n) {
        bool cut = f->unended && f->row.n < f->names.n;
        return err_add(e, "%s:%llu: %d field%s, the header has %d%s", f->path,
                       (unsigned long long)f->row_line, f->row.n, text_plural((uint64_t)f->row.n),
                       f->names.n, cut ? "; it ends too soon" : "");
    }
    return rc;
}

uint64_t csvfile_line(const struct csvfile *f)
{
    return f->row_line;
}

const char *csvfile_text(const struct csvfile *f, int col)
{
    return col < 0 ? "" : field(&f->row, col);
}

bool csvfile_empty(const struct csvfile *f, int col)
{
    return csvfile_text(f, col)[0] == '\0';
}

void csvfile_refuse(const struct csvfile *f, int col, struct err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    OWNED char *what = xvformat(fmt, ap);
    va_end(ap);
    (void)err_add(e, "%s:%llu: column %s: %s", f->path, (unsigned long long)f->row_line,
                  col < 0 ? "?" : field(&f->names, col), what);
}

double csvfile_number(struct csvfile *f, int col, double min, double max, struct err *e)
{
    const char *text = csvfile_text(f, col);
    char *end = NULL;
    double v = strtod(text, &end);
    bool decimal = text[strspn(text, "+-.0123456789eE")] == '\0'; /* excludes hex, inf and nan */
    if (col < 0 || end == text || *end != '\0' || !decimal || !isfinite(v) || v < min || v > max) {
        csvfile_refuse(f, col, e, "\"%s\" must be a number from %g to %g", text, min, max);
        return min;
    }
    return v;
}

uint64_t csvfile_u64(struct csvfile *f, int col, uint64_t min, uint64_t max, struct err *e)
{
    const char *text = csvfile_text(f, col);
    char *end = NULL;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (*end == '.' && end != text) { /* "100.0", as spreadsheets and data frames write 100 */
        end += 1 + strspn(end + 1, "0");
    }
    if (col < 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v < min ||
        v > max) {
        csvfile_refuse(f, col, e, "\"%s\" must be a whole number from %llu to %llu", text,
                       (unsigned long long)min, (unsigned long long)max);
        return min;
    }
    return v;
}

int csvfile_choice(struct csvfile *f, int col, const char *const *names, struct err *e)
{
    int i = words_find(names, csvfile_text(f, col));
    if (i < 0) {
        OWNED char *known = words_list(names, " or ");
        csvfile_refuse(f, col, e, "\"%s\" must be %s", csvfile_text(f, col), known);
    }
    return i < 0 ? 0 : i;
}
