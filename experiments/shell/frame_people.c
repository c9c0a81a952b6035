/* A document for people: text and Markdown. */
#include "experiments/shell/document_impl.h"
#include "experiments/shell/markup.h"
#include "experiments/shell/table.h"
#include "experiments/shell/term.h"
#include "sim/base/json.h"

#define CELL_BYTES 64

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

/* The columns that people see of a frame, and the one printed above them. */
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
    SCOPED(table_fini) struct table t;
    table_init(&t, align);
    char buf[CELL_BYTES];
    for (size_t i = 0; v->titled && i < v->n; i++) {
        table_cell(&t, column_title(&v->frame->columns[v->column[i]]));
    }
    for (uint32_t r = from; r < to; r++) {
        for (size_t i = 0; i < v->n && !is_hidden(v->frame, r); i++) {
            size_t k = v->column[i];
            table_cell(&t, cell_text(&v->frame->columns[k], frame_cell_at(v->frame, r, k), buf));
        }
    }
    table_print(&t, out, v->frame->indent);
}

static void put_escaped(const char *text, FILE *out)
{
    OWNED char *visible = text_visible(xstrdup(text), "");
    (void)fputs("| ", out);
    for (const char *p = visible; *p != '\0'; p++) {
        (void)fprintf(out, *p == '|' ? "\\%c" : "%c", *p);
    }
    (void)fputs(*text != '\0' ? " " : "", out);
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
            put_escaped(cell_text(&v->frame->columns[k], frame_cell_at(v->frame, r, k), buf), out);
        }
        (void)fputs(is_hidden(v->frame, r) ? "" : "|\n", out);
    }
}

static void put_heading(const char *text, bool markdown, FILE *out)
{
    OWNED char *visible = text_visible(xstrdup(text), "");
    (void)fputc('\n', out);
    if (markdown) {
        (void)fprintf(out, "## %s\n\n", visible);
    } else {
        term_heading(out, visible);
    }
}

/* The end of the rows from `from` on with one heading. */
static uint32_t end_of_rows(const struct view *v, uint32_t from)
{
    uint32_t to = from;
    while (
        to < frame_rows(v->frame) &&
        (v->heading < 0 || strcmp(frame_cell_at(v->frame, to, (size_t)v->heading)->text,
                                  frame_cell_at(v->frame, from, (size_t)v->heading)->text) == 0)) {
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
            put_heading(frame_cell_at(f, row, (size_t)v.heading)->text, markdown, out);
        }
        (markdown ? put_rows_markdown : put_rows_text)(&v, row, to, out);
    }
}

/* From the first entry that was not printed yet. */
void document_put_people(const struct document *d, bool markdown, FILE *out)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct document_entry *e = &d->v[i];
        if (e->kind == DOCUMENT_IS_DOCUMENT) {
            document_put_people(e->within, markdown, out);
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

void document_mark_told(struct document *d)
{
    d->told = d->n;
    for (size_t i = 0; i < d->n; i++) {
        if (d->v[i].within != NULL) {
            document_mark_told(d->v[i].within);
        }
    }
}
