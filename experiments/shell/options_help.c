/* Prints --help from the tables of a command. */
#include "experiments/shell/options.h"

#define WIDTH 96
#define NAME_COLUMNS 24 /* shorter names have their text on the same line */

/* The column of the text in a list's row ("  label   text"); for other lines their indentation. */
static int row_column(const char *line)
{
    size_t n = strspn(line, " ");
    const char *gap = n > 0 ? strstr(line + n, "  ") : NULL;
    if (gap == NULL || gap > line + strcspn(line, "\n")) {
        return (int)n;
    }
    return (int)(gap - line + (ptrdiff_t)strspn(gap, " "));
}

/* Wraps text at WIDTH, from column `at` on. Further lines are indented, in a list's row to its
 * text. Newlines are kept. */
static void put_wrapped(FILE *out, const char *text, int indent, int at)
{
    int column = indent;
    for (const char *p = text; *p != '\0';) {
        if (*p == '\n') {
            (void)fputc('\n', out);
            at = 0;
            column = indent;
            p++;
            continue;
        }
        if (at == 0 && *p == ' ') {
            column = row_column(p);
            (void)fwrite(p, 1, (size_t)column, out);
            p += column;
            at = column;
        }
        size_t word = strcspn(p, " \n");
        if (at > column && at + 1 + (int)word > WIDTH) {
            (void)fputc('\n', out);
            at = 0;
        }
        if (at < column) {
            (void)fprintf(out, "%*s", column - at, "");
            at = column;
        } else if (at > column) {
            (void)fputc(' ', out);
            at++;
        }
        (void)fwrite(p, 1, word, out);
        at += (int)word;
        p += word;
        p += *p == ' ';
    }
    (void)fputc('\n', out);
}

static void put_row(FILE *out, const char *prefix, const struct option_row *row)
{
    char left[128];
    SCOPED(text_fini) struct text text = {0};
    char letter[8] = "";
    if (row->letter != 0) {
        (void)snprintf(letter, sizeof letter, "-%c, ", row->letter);
    }
    int n = snprintf(left, sizeof left, "  %s--%s%s%s%s", letter, prefix, row->name,
                     row->value != NULL ? " " : "", row->value != NULL ? row->value : "");
    text_string(&text, row->help);
    const char *const *names = row->names != NULL ? row->names() : row->choices;
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        text_string(&text, i > 0 ? ", " : ": ");
        text_string(&text, names[i]);
    }
    if (row->preset != NULL) {
        text_format(&text, " (default %s)", row->preset);
    }
    (void)fputs(left, out);
    if (n >= NAME_COLUMNS) {
        (void)fputc('\n', out);
        n = 0;
    }
    put_wrapped(out, text_end(&text), NAME_COLUMNS, n);
}

static void put_usage(const struct command *c, FILE *out)
{
    const char *lead = "usage:";
    const char *p = c->usage;
    do { /* a command without arguments has a line, too */
        size_t line = strcspn(p, "\n");
        (void)fprintf(out, "%s xpusim %s%s%.*s\n", lead, c->name, line > 0 ? " " : "", (int)line,
                      p);
        p += line + (p[line] == '\n');
        lead = "      ";
    } while (*p != '\0');
}

void options_help(const struct command *c, FILE *out)
{
    put_usage(c, out);
    if (c->about != NULL) {
        (void)fputc('\n', out);
        put_wrapped(out, c->about, 0, 0);
    }
    for (const struct option_child *k = c->children; k != NULL && k->table != NULL; k++) {
        if (k->prefix != NULL) {
            (void)fprintf(
                out,
                "\n  --%sNAME ...: any of these for side B only, after those of both sides:\n   ",
                k->prefix);
            for (size_t i = 0; i < k->table->n; i++) {
                (void)fprintf(out, " --%s%s", k->prefix, k->table->rows[i].name);
            }
            (void)fputc('\n', out);
            continue;
        }
        (void)fprintf(out, "%s%s%s", "\n", k->table->title != NULL ? k->table->title : "",
                      k->table->title != NULL ? ":\n" : "");
        for (size_t i = 0; i < k->table->n; i++) {
            if (!k->table->rows[i].hidden) {
                put_row(out, "", &k->table->rows[i]);
            }
        }
    }
    if (c->subcommands != NULL) {
        (void)fputc('\n', out);
        for (const struct command *const *s = c->subcommands; *s != NULL; s++) {
            (void)fprintf(out, "  %-22s%s\n", (*s)->name, (*s)->summary);
        }
    }
    if (c->notes != NULL) {
        (void)fprintf(out, "\n%s\n", c->notes);
    }
    if (c->print_notes != NULL) {
        (void)fputc('\n', out);
        c->print_notes(out);
    }
}
