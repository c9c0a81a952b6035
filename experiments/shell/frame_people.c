/* Writes a document for people: text, Markdown and LaTeX. */
#include <limits.h>
#include <math.h>

#include "experiments/shell/document_impl.h"
#include "experiments/shell/markup.h"
#include "experiments/shell/term.h"
#include "sim/base/json.h"
#include "sim/metrics/metric_table.h"

#define CELL_BYTES 64
#define WHOLE_MOST 1e9 /* smaller whole numbers are printed with all digits */

/* ---- aligned tables ---- */

#define MIN_CUT 12   /* a last column of this width or less is not cut, but wraps */
#define MIN_LABEL 16 /* smallest width of a first column */
#define COLUMN_GAP 2

#define MAX_COLUMNS 16

/* Cells row by row. A column is as wide as its widest cell. */
struct table {
    size_t columns;
    bool right[MAX_COLUMNS]; /* alignment */
    struct texts cells;
};

static void table_cell(struct table *t, const char *text)
{
    texts_add(&t->cells, text);
    (void)text_visible(t->cells.v[t->cells.n - 1], "");
}

/* Whether different texts of the first column differ in their first `width` bytes. */
static bool tells_apart(const struct table *t, int width)
{
    for (size_t i = 0; i < t->cells.n; i += t->columns) {
        for (size_t k = 0; k < i; k += t->columns) {
            if (strncmp(t->cells.v[i], t->cells.v[k], (size_t)width) == 0 &&
                strcmp(t->cells.v[i], t->cells.v[k]) != 0) {
                return false;
            }
        }
    }
    return true;
}

/* Narrows the first column, which has labels, on a terminal too narrow for the table. */
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

/* Counts the characters of a text in UTF-8, up to `most`, and their bytes. */
static int characters(const char *text, int most, int *bytes)
{
    int n = 0;
    int at = 0;
    for (; text[at] != '\0'; at++) {
        bool begins = ((unsigned char)text[at] & 0xc0) != 0x80;
        if (begins && n == most) {
            break;
        }
        n += begins;
    }
    *bytes = at;
    return n;
}

static void put_cell(const char *text, int room, bool right, bool end, int width, FILE *out)
{
    int bytes;
    int length = characters(text, INT_MAX, &bytes);
    bool cut = length > room && room > MIN_CUT;
    int pad = cut ? 0 : width - length;
    (void)characters(text, cut ? room - 3 : INT_MAX, &bytes);
    (void)fprintf(out, "%*s%.*s%s%*s", right ? pad : 0, "", bytes, text, cut ? "..." : "",
                  end ? 0 : (right ? 0 : pad) + COLUMN_GAP, "");
}

/* indent: spaces before each row. Writes no trailing spaces. On a narrow terminal, text columns are
 * cut with "...": the first one if its rows stay different, then the last one. */
static void table_print(const struct table *t, FILE *out, int indent)
{
    int width[MAX_COLUMNS] = {0};
    int terminal = term_width(out);
    for (size_t i = 0; i < t->cells.n; i++) {
        int bytes;
        int len = characters(t->cells.v[i], INT_MAX, &bytes);
        width[i % t->columns] = len > width[i % t->columns] ? len : width[i % t->columns];
    }
    fit_labels(t, indent, terminal, width);
    for (size_t row = 0; row < t->cells.n; row += t->columns) {
        size_t last = 0; /* number of cells up to the last one with text */
        for (size_t c = 0; c < t->columns && row + c < t->cells.n; c++) {
            last = t->cells.v[row + c][0] != '\0' ? c + 1 : last;
        }
        int used = indent;
        (void)fprintf(out, "%*s", last > 0 ? indent : 0, "");
        for (size_t c = 0; c < last; c++) {
            bool end = c + 1 == last;
            int room = c == 0                                ? width[0]
                       : terminal > 0 && end && !t->right[c] ? terminal - used
                                                             : INT_MAX;
            put_cell(t->cells.v[row + c], room, t->right[c], end, width[c], out);
            used += width[c] + COLUMN_GAP;
        }
        (void)fputc('\n', out);
    }
}

/* ---- frames ---- */

/* Formats a cell for people. Returns buf, or a text of the cell or column. */
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
    const double x = c->scale != 0.0 ? v->number * c->scale : v->number;
    const bool whole = x == floor(x) && fabs(x) < WHOLE_MOST;
    /* A column's format is a literal of the program for one double. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (c->format != NULL || whole) {
        (void)snprintf(buf, CELL_BYTES, c->format != NULL ? c->format : "%.0f", x);
        return buf;
    }
#pragma GCC diagnostic pop
    return text_short(buf, x);
}

static const char *column_title(const struct frame_column *c)
{
    return c->title != NULL ? c->title : c->name;
}

/* The columns of a frame that are printed, and the one printed as a heading. */
struct view {
    const struct frame *frame;
    size_t column[MAX_COLUMNS];
    size_t n;
    bool titled;
    int heading; /* index of the column; -1: none */
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
            SIM_REQUIRE(v.n < MAX_COLUMNS, "a table of %zu columns", f->n_columns);
            v.column[v.n++] = i;
            v.titled = v.titled || column_title(c)[0] != '\0';
        }
    }
    return v;
}

/* Prints rows `from` to `to` - 1. */
static void put_rows_text(const struct view *v, uint32_t from, uint32_t to, FILE *out)
{
    struct table t = {.columns = v->n};
    for (size_t i = 0; i < v->n; i++) {
        t.right[i] = v->frame->right[v->column[i]];
    }
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
    texts_fini(&t.cells);
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

static void put_latex(const char *text, FILE *out)
{
    static const char *const escapes[UCHAR_MAX + 1] = {
        ['&'] = "\\&",
        ['%'] = "\\%",
        ['$'] = "\\$",
        ['#'] = "\\#",
        ['_'] = "\\_",
        ['{'] = "\\{",
        ['}'] = "\\}",
        ['~'] = "\\textasciitilde{}",
        ['^'] = "\\textasciicircum{}",
        ['\\'] = "\\textbackslash{}",
        ['<'] = "\\textless{}",
        ['>'] = "\\textgreater{}",
        ['|'] = "\\textbar{}",
    };
    OWNED char *visible = text_visible(xstrdup(text), "");
    /* At the start of a row, LaTeX would read these as arguments of the row before. */
    (void)fputs(visible[0] == '[' || visible[0] == '*' ? "{}" : "", out);
    for (const char *p = visible; *p != '\0'; p++) {
        const char *escape = escapes[(unsigned char)*p];
        (void)fprintf(out, escape != NULL ? "%s" : "%.1s", escape != NULL ? escape : p);
        /* Two hyphens would become a dash. */
        (void)fputs(p[0] == '-' && p[1] == '-' ? "{}" : "", out);
    }
}

/* Puts the heading in the first row, because a comment above a copied table is lost. A metric has
 * its title, unit and direction; its name instead if the title has another unit than the cells. */
static void put_head_latex(const struct view *v, uint32_t row, FILE *out)
{
    const char *name = frame_cell_at(v->frame, row, (size_t)v->heading)->text;
    const char *of = v->frame->caption != NULL ? v->frame->caption : "";
    enum metric_better better = metric_better(name);
    bool directed = better != METRIC_BETTER_NEITHER;
    OWNED char *head =
        xformat("%s%s%s%s%s%s", of, of[0] != '\0' ? ": " : "",
                metric_scale(name) == 1.0 ? metric_title(name) : name, directed ? ", " : "",
                directed ? metric_better_names[better] : "", directed ? " is better" : "");
    (void)fprintf(out, "\\multicolumn{%zu}{l}{", v->n);
    put_latex(head, out);
    (void)fputs("} \\\\\n\\hline\n", out);
}

static void put_rows_latex(const struct view *v, uint32_t from, uint32_t to, FILE *out)
{
    char buf[CELL_BYTES];
    (void)fputs("\\begin{tabular}{", out);
    for (size_t i = 0; i < v->n; i++) {
        (void)fputc(v->frame->right[v->column[i]] ? 'r' : 'l', out);
    }
    (void)fputs("}\n\\hline\n", out);
    if (v->heading >= 0) {
        put_head_latex(v, from, out);
    }
    for (size_t i = 0; i < v->n && v->titled; i++) {
        put_latex(column_title(&v->frame->columns[v->column[i]]), out);
        (void)fputs(i + 1 < v->n ? " & " : " \\\\\n\\hline\n", out);
    }
    for (uint32_t r = from; r < to; r++) {
        for (size_t i = 0; i < v->n && !is_hidden(v->frame, r); i++) {
            size_t k = v->column[i];
            put_latex(cell_text(&v->frame->columns[k], frame_cell_at(v->frame, r, k), buf), out);
            (void)fputs(i + 1 < v->n ? " & " : " \\\\\n", out);
        }
    }
    (void)fputs("\\hline\n\\end{tabular}\n", out);
}

static void put_heading_text(const char *visible, FILE *out)
{
    (void)fputc('\n', out);
    term_heading(out, visible);
}

static void put_heading_markdown(const char *visible, FILE *out)
{
    (void)fprintf(out, "\n## %s\n\n", visible);
}

static void put_heading_latex(const char *visible, FILE *out)
{
    (void)fprintf(out, "\n%% %s\n", visible);
}

static void put_note_plain(const char *text, FILE *out)
{
    (void)fprintf(out, "%s\n", text);
}

/* Puts a note as LaTeX comments. */
static void put_note_latex(const char *text, FILE *out)
{
    do {
        int n = (int)strcspn(text, "\n");
        (void)fprintf(out, n > 0 ? "%% %.*s\n" : "\n", n, text);
        text += n + (text[n] == '\n');
    } while (*text != '\0');
}

const struct people people_text = {put_rows_text, put_heading_text, put_note_plain};
const struct people people_markdown = {put_rows_markdown, put_heading_markdown, put_note_plain};
const struct people people_latex = {put_rows_latex, put_heading_latex, put_note_latex};

static void put_heading(const char *text, const struct people *p, FILE *out)
{
    OWNED char *visible = text_visible(xstrdup(text), "");
    p->heading(visible, out);
}

/* The end of the rows that share the heading of row `from`. */
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

static void put_frame(const struct frame *f, const struct people *p, FILE *out)
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
            put_heading(frame_cell_at(f, row, (size_t)v.heading)->text, p, out);
        }
        p->rows(&v, row, to, out);
    }
}

/* Prints the entries that were not printed yet. */
void document_put_people(const struct document *d, const struct people *p, FILE *out)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct document_entry *e = &d->v[i];
        if (e->kind == DOCUMENT_IS_DOCUMENT) {
            document_put_people(e->within, p, out);
        }
        if (i < d->told) {
            continue;
        }
        if (e->kind == DOCUMENT_IS_NOTE) {
            p->note(e->text, out);
        } else if (e->kind == DOCUMENT_IS_HEADING) {
            put_heading(e->text, p, out);
        } else if (e->kind == DOCUMENT_IS_FRAME) {
            put_frame(e->frame, p, out);
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
