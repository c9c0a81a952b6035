/* A document as text, Markdown, CSV and JUnit XML; as JSON: frame_json.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/shell/frame_impl.h"
#include "experiments/shell/markup.h"
#include "experiments/shell/table.h"
#include "experiments/shell/term.h"
#include "sim/base/arena.h"
#include "sim/base/err.h"
#include "sim/base/json.h"

#define CELL_BYTES 64

static const struct frame_cell *cell_at(const struct frame *f, uint32_t row, size_t column)
{
    return &f->cells[row * f->n_columns + column];
}

/* ---- text and Markdown ---- */

/* What a cell is for people. Returns buf, or the cell's own text. */
static const char *cell_text(const struct frame_column *c, const struct frame_cell *v, char *buf)
{
    if (v->kind == FRAME_VALUE_ABSENT) {
        return "";
    }
    if (v->text != NULL) {
        return v->text;
    }
    if (v->kind == FRAME_VALUE_NULL) {
        return c->missing != NULL ? c->missing : "-";
    }
    if (v->kind == FRAME_VALUE_FLAG) {
        return v->number != 0.0 ? "yes" : "no";
    }
    /* The format is the column's, a literal of the program with one double. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(buf, CELL_BYTES, c->format != NULL ? c->format : "%.4g",
                   c->scale != 0.0 ? v->number * c->scale : v->number);
#pragma GCC diagnostic pop
    return buf;
}

static const char *column_title(const struct frame_column *c)
{
    return c->title != NULL ? c->title : c->name;
}

/* The columns that people see of a frame, and the one that stands above them. */
struct view {
    const struct frame *frame;
    size_t column[TABLE_MAX_COLUMNS];
    size_t n;
    bool titled;
    int heading; /* or -1 */
};

static bool is_hidden(const struct frame *f, uint32_t row)
{
    return row < f->n_hidden && f->hidden[row];
}

static struct view view_of(const struct frame *f)
{
    struct view v = {.frame = f, .heading = -1};
    for (size_t i = 0; i < f->n_columns; i++) {
        const struct frame_column *c = &f->columns[i];
        if (c->heading) {
            v.heading = (int)i;
        } else if (!c->only_data) {
            SIM_REQUIRE(v.n < TABLE_MAX_COLUMNS, "a table of %zu columns", f->n_columns);
            v.column[v.n++] = i;
            v.titled = v.titled || column_title(c)[0] != '\0';
        }
    }
    return v;
}

/* Rows from..to-1. */
static void put_rows_text(const struct view *v, uint32_t from, uint32_t to, FILE *out)
{
    char align[TABLE_MAX_COLUMNS + 1] = "";
    for (size_t i = 0; i < v->n; i++) {
        align[i] = v->frame->right[v->column[i]] ? 'r' : 'l';
    }
    struct table t;
    table_init(&t, align);
    char buf[CELL_BYTES];
    for (size_t i = 0; v->titled && i < v->n; i++) {
        table_cell(&t, "%s", column_title(&v->frame->columns[v->column[i]]));
    }
    for (uint32_t r = from; r < to; r++) {
        for (size_t i = 0; i < v->n && !is_hidden(v->frame, r); i++) {
            size_t k = v->column[i];
            table_cell(&t, "%s", cell_text(&v->frame->columns[k], cell_at(v->frame, r, k), buf));
        }
    }
    table_print(&t, out, v->frame->indent);
    table_fini(&t);
}

static void put_escaped(const char *text, FILE *out)
{
    const char *start = text;
    (void)fputs("| ", out);
    for (; *text != '\0'; text++) {
        (void)fprintf(out, *text == '|' ? "\\%c" : "%c", *text);
    }
    (void)fputs(*start != '\0' ? " " : "", out);
}

static void put_rows_markdown(const struct view *v, uint32_t from, uint32_t to, FILE *out)
{
    char buf[CELL_BYTES];
    for (size_t i = 0; i < v->n; i++) {
        put_escaped(column_title(&v->frame->columns[v->column[i]]), out);
    }
    (void)fputs("|\n", out);
    for (size_t i = 0; i < v->n; i++) {
        (void)fputs(v->frame->right[v->column[i]] ? "|---:" : "|---", out);
    }
    (void)fputs("|\n", out);
    for (uint32_t r = from; r < to; r++) {
        for (size_t i = 0; i < v->n && !is_hidden(v->frame, r); i++) {
            size_t k = v->column[i];
            put_escaped(cell_text(&v->frame->columns[k], cell_at(v->frame, r, k), buf), out);
        }
        (void)fputs(is_hidden(v->frame, r) ? "" : "|\n", out);
    }
}

static void put_heading(const char *text, bool markdown, FILE *out)
{
    (void)fputc('\n', out);
    if (markdown) {
        (void)fprintf(out, "## %s\n\n", text);
    } else {
        term_heading(out, text);
    }
}

/* The end of the rows from `from` on that stand under one heading. */
static uint32_t end_of_rows(const struct view *v, uint32_t from)
{
    uint32_t to = from;
    while (to < frame_rows(v->frame) &&
           (v->heading < 0 || strcmp(cell_at(v->frame, to, (size_t)v->heading)->text,
                                     cell_at(v->frame, from, (size_t)v->heading)->text) == 0)) {
        to++;
    }
    return to;
}

static void put_frame(const struct frame *f, bool markdown, FILE *out)
{
    struct view v = view_of(f);
    uint32_t n = frame_rows(f);
    uint32_t seen = 0;
    for (uint32_t row = 0; row < n; row++) {
        seen += is_hidden(f, row) ? 0 : 1;
    }
    for (uint32_t row = 0, to; v.n > 0 && seen > 0 && row < n; row = to) {
        to = end_of_rows(&v, row);
        if (v.heading >= 0) {
            put_heading(cell_at(f, row, (size_t)v.heading)->text, markdown, out);
        }
        (markdown ? put_rows_markdown : put_rows_text)(&v, row, to, out);
    }
}

/* From what has not been told yet. */
static void put_people(const struct document *d, bool markdown, FILE *out)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct document_entry *e = &d->v[i];
        if (e->kind == DOCUMENT_IS_DOCUMENT) {
            put_people(e->within, markdown, out);
        }
        if (i < d->told) {
            continue;
        }
        if (e->kind == DOCUMENT_IS_NOTE) {
            (void)fprintf(out, "%s\n", e->text);
        } else if (e->kind == DOCUMENT_IS_HEADING) {
            put_heading(e->text, markdown, out);
        } else if (e->kind == DOCUMENT_IS_FRAME) {
            put_frame(e->frame, markdown, out);
        }
    }
}

static void mark_told(struct document *d)
{
    d->told = d->n;
    for (size_t i = 0; i < d->n; i++) {
        if (d->v[i].within != NULL) {
            mark_told(d->v[i].within);
        }
    }
}

/* ---- CSV ---- */

static void put_csv_text(const char *text, FILE *out)
{
    if (strpbrk(text, ",\"\n\r") == NULL) {
        (void)fputs(text, out);
        return;
    }
    (void)fputc('"', out);
    for (; *text != '\0'; text++) {
        (void)fputs(*text == '"' ? "\"\"" : (char[]){*text, '\0'}, out);
    }
    (void)fputc('"', out);
}

/* In as few digits as read back the same, 15 or 17, as in JSON. */
static void put_csv_number(double x, FILE *out)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%.15g", x);
    if (strtod(text, NULL) != x) {
        (void)snprintf(text, sizeof text, "%.17g", x);
    }
    (void)fputs(text, out);
}

static void put_cell_csv(const struct frame_cell *v, FILE *out)
{
    if (v->kind == FRAME_VALUE_TEXT) {
        put_csv_text(v->text, out);
    } else if (v->kind == FRAME_VALUE_FLAG) {
        (void)fputs(v->number != 0.0 ? "true" : "false", out);
    } else if (v->kind == FRAME_VALUE_NUMBER) {
        put_csv_number(v->number, out);
    }
}

static void put_frame_csv(const struct frame *f, FILE *out)
{
    const char *comma = "";
    for (size_t i = 0; i < f->n_columns; i++) {
        if (!f->columns[i].only_text) {
            (void)fputs(comma, out);
            put_csv_text(f->columns[i].name, out);
            comma = ",";
        }
    }
    (void)fputc('\n', out);
    for (uint32_t r = 0; r < frame_rows(f); r++) {
        comma = "";
        for (size_t i = 0; i < f->n_columns; i++) {
            if (!f->columns[i].only_text) {
                (void)fputs(comma, out);
                put_cell_csv(cell_at(f, r, i), out);
                comma = ",";
            }
        }
        (void)fputc('\n', out);
    }
}

/* ---- JUnit ---- */

/* A text of a row by its part in a test case; NULL where it has none. */
static const struct frame_cell *junit_cell(const struct frame *f, uint32_t row,
                                           enum frame_junit part)
{
    for (size_t i = 0; i < f->n_columns; i++) {
        if (f->columns[i].junit == part && cell_at(f, row, i)->kind < FRAME_VALUE_NULL) {
            return cell_at(f, row, i);
        }
    }
    return NULL;
}

static bool has_failed(const struct frame *f, uint32_t row)
{
    const struct frame_cell *v = junit_cell(f, row, FRAME_JUNIT_FAILED);
    return v != NULL && v->number != 0.0;
}

static void put_case(const struct frame *f, uint32_t row, FILE *out)
{
    const struct frame_cell *class = junit_cell(f, row, FRAME_JUNIT_CLASS);
    const struct frame_cell *message = junit_cell(f, row, FRAME_JUNIT_MESSAGE);
    (void)fputs("    <testcase classname=\"", out);
    markup_put(out, class != NULL ? class->text : "");
    (void)fputs("\" name=\"", out);
    const char *between = "";
    for (size_t i = 0; i < f->n_columns; i++) {
        if (f->columns[i].junit == FRAME_JUNIT_NAME) {
            (void)fputs(between, out);
            markup_put(out, cell_at(f, row, i)->text);
            between = " ";
        }
    }
    if (message == NULL) {
        (void)fputs("\"/>\n", out);
        return;
    }
    bool failed = has_failed(f, row);
    (void)fputs(failed ? "\">\n      <failure message=\"" : "\">\n      <system-out>", out);
    markup_put(out, message->text);
    (void)fputs(failed ? "\"/>\n    </testcase>\n" : "</system-out>\n    </testcase>\n", out);
}

static void put_junit(const struct frame *f, FILE *out)
{
    uint32_t failures = 0;
    for (uint32_t r = 0; r < frame_rows(f); r++) {
        failures += has_failed(f, r) ? 1 : 0;
    }
    (void)fprintf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite "
                  "name=\"xpusim\" tests=\"%u\" failures=\"%u\">\n",
                  frame_rows(f), failures);
    for (uint32_t r = 0; r < frame_rows(f); r++) {
        put_case(f, r, out);
    }
    (void)fputs("  </testsuite>\n</testsuites>\n", out);
}

/* The first one that is data. */
static const struct frame *first_frame(const struct document *d)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct frame *f = d->v[i].name != NULL ? d->v[i].frame : NULL;
        f = f == NULL && d->v[i].within != NULL ? first_frame(d->v[i].within) : f;
        if (f != NULL) {
            return f;
        }
    }
    return NULL;
}

/* ---- all ---- */

void document_put(const struct document *d, enum document_form form, FILE *out)
{
    const struct frame *f;
    switch (form) {
    case DOCUMENT_TEXT:
    case DOCUMENT_MARKDOWN:
        put_people(d, form == DOCUMENT_MARKDOWN, out);
        return;
    case DOCUMENT_CSV:
    case DOCUMENT_JUNIT:
        f = first_frame(d);
        SIM_REQUIRE(f != NULL, "a document with a frame");
        (form == DOCUMENT_CSV ? put_frame_csv : put_junit)(f, out);
        return;
    case DOCUMENT_JSON:
        json_print(document_json(d), out);
        return;
    }
}

static enum document_form form_of(const struct option_output *o)
{
    return o->json       ? DOCUMENT_JSON
           : o->csv      ? DOCUMENT_CSV
           : o->markdown ? DOCUMENT_MARKDOWN
                         : DOCUMENT_TEXT;
}

void document_print_so_far(struct document *d, const struct option_output *o, FILE *out)
{
    if (form_of(o) == DOCUMENT_TEXT || form_of(o) == DOCUMENT_MARKDOWN) {
        document_put(d, form_of(o), out);
        mark_told(d);
        (void)fflush(out);
    }
}

void document_print(struct document *d, const struct option_output *o, FILE *out)
{
    document_put(d, form_of(o), out);
    mark_told(d);
}
