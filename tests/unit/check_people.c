/* Tables as people see them: cells, widths, headings, Markdown, and terminals too narrow, by hand.
 */
#define _GNU_SOURCE /* pseudo-terminals */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "experiments/shell/document.h"
#include "experiments/shell/term.h"
#include "tests/helpers/suite.h"

static struct document *d;

static void setup(void)
{
    d = document_new();
}

static void is(const char *form, const char *want)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    document_put(d, form, f);
    (void)fclose(f);
    ck_assert_str_eq(text, want);
    free(text);
}

/* A column is as wide as its widest cell or title, two blanks apart. Numbers are at the right and
 * texts at the left, and no line ends with blanks. */
START_TEST(columns_are_as_wide_as_their_cells)
{
    static const struct frame_column columns[] = {
        {.name = "policy", .kind = FRAME_TEXT},
        {.name = "share", .title = "of all, %", .scale = 100.0, .format = "%.1f"},
        {.name = "n"},
        {.name = "hidden", .only_data = true},
        {.name = "ok", .title = "", .kind = FRAME_FLAG},
        {.name = "note", .kind = FRAME_TEXT, .missing = "none"},
    };
    struct frame *f = DOCUMENT_FRAME(d, "rows", 0, columns);
    FRAME_ROW(f, "fcfs", 0.5, 7, 9, true, "a|b\x07");
    FRAME_ROW(f, "agent-xpu", 0.12345, 123456, 9, false, FRAME_NONE);
    FRAME_ROW(f, "x", FRAME_NONE, FRAME_ABSENT, 9, FRAME_ABSENT, FRAME_ABSENT);
    is("text", "policy     of all, %       n       note\n"
               "fcfs            50.0       7  yes  a|b?\n"
               "agent-xpu       12.3  123456  no   none\n"
               "x                  -\n");
    is("markdown", "| policy | of all, % | n | | note |\n"
                   "|---|---:|---:|---|---|\n"
                   "| fcfs | 50.0 | 7 | yes | a\\|b? |\n"
                   "| agent-xpu | 12.3 | 123456 | no | none |\n"
                   "| x | - | | | |\n");
}
END_TEST

/* Letters that TeX reads as commands, and hyphens that it would join; a row that begins as an
 * argument of the row before would; lines of notes, and rows without titles. */
START_TEST(latex_says_letters_and_no_commands)
{
    document_note(d, "5 %% of\n\nx_y");
    struct frame *f = document_table(d, 0, "lr", "a_b & c", "%");
    FRAME_ROW(f, "[0, 1] #3", "$5");
    FRAME_ROW(f, "*", "~^\\{}<|>");
    FRAME_ROW(f, "---x -1", "a-b");
    FRAME_ROW(document_table(d, 2, "rl", NULL), 1.5, "[1, 2]");
    is("latex", "% 5 % of\n"
                "\n"
                "% x_y\n"
                "\\begin{tabular}{lr}\n"
                "\\hline\n"
                "a\\_b \\& c & \\% \\\\\n"
                "\\hline\n"
                "{}[0, 1] \\#3 & \\$5 \\\\\n"
                "{}* & \\textasciitilde{}\\textasciicircum{}\\textbackslash{}\\{\\}\\textless{}"
                "\\textbar{}\\textgreater{} \\\\\n"
                "-{}-{}-x -1 & a-b \\\\\n"
                "\\hline\n"
                "\\end{tabular}\n"
                "\\begin{tabular}{rl}\n"
                "\\hline\n"
                "1.5 & {}[1, 2] \\\\\n"
                "\\hline\n"
                "\\end{tabular}\n");
}
END_TEST

/* Counts are whole, below 1e9 (more are no counts); other numbers have four digits. */
START_TEST(counts_are_whole_numbers)
{
    struct frame *f = document_table(d, 0, "r", "n");
    static const double v[] = {19120, 19125.5, -38950, 999999999, 1e9, 0.25};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        FRAME_ROW(f, v[i]);
    }
    is("text", "        n\n"
               "    19120\n"
               "    19130\n"
               "   -38950\n"
               "999999999\n"
               "    1e+09\n"
               "     0.25\n");
}
END_TEST

/* Rows of one heading are a table with its own widths, wherever the heading's column is; rows that
 * are hidden are no rows; a table without a row or a column for people is nothing. */
START_TEST(rows_stand_under_their_heading)
{
    static const struct frame_column columns[] = {
        {.name = "class", .kind = FRAME_TEXT, .heading = true},
        {.name = "policy", .title = "", .kind = FRAME_TEXT},
        {.name = "mean", .title = ""},
    };
    struct frame *f = DOCUMENT_FRAME(d, "rows", 0, columns);
    frame_indent(f, 3);
    FRAME_ROW(f, "reac\x1btive", "fcfs", 1);
    FRAME_ROW(f, "reac\x1btive", "long-name", 10);
    FRAME_ROW(f, "proactive", "edf", 5);
    FRAME_ROW(f, "proactive", "gone", 6);
    frame_hide_row(f);
    FRAME_ROW(f, "reactive", "z", 2);
    is("text", "\nreac?tive\n   fcfs        1\n   long-name  10\n\nproactive\n   edf  "
               "5\n\nreactive\n   z  2\n");
    is("markdown", "\n## reac?tive\n\n| | |\n|---|---:|\n| fcfs | 1 |\n| long-name | 10 |\n"
                   "\n## proactive\n\n| | |\n|---|---:|\n| edf | 5 |\n"
                   "\n## reactive\n\n| | |\n|---|---:|\n| z | 2 |\n");
}
END_TEST

/* A LaTeX table has its heading in it: a metric's title, unit and direction as metrics.def has
 * them, and where the title would scale bytes, the name. Other headings are as they are. */
START_TEST(latex_has_headings_in_tables)
{
    static const struct frame_column columns[] = {
        {.name = "metric", .kind = FRAME_TEXT, .heading = true},
        {.name = "policy", .title = "", .kind = FRAME_TEXT},
        {.name = "mean", .title = ""},
    };
    struct frame *f = DOCUMENT_FRAME(d, "rows", 0, columns);
    frame_caption(f, "load 0.5 of a_b");
    FRAME_ROW(f, "reactive.e2e_s.mean", "fcfs", 1);
    FRAME_ROW(f, "memory_peak_bytes", "fcfs", 2);
    FRAME_ROW(f, "a_point", "fcfs", 3);
    static const char *const heads[][2] = {
        {"reactive.e2e_s.mean", "mean reactive latency (s), lower is better"},
        {"memory_peak_bytes", "memory\\_peak\\_bytes, lower is better"},
        {"a_point", "a\\_point"}};
    struct text want = {0};
    for (int i = 0; i < 3; i++) {
        text_format(&want,
                    "\n%% %s\n\\begin{tabular}{lr}\n\\hline\n\\multicolumn{2}{l}{load 0.5 of "
                    "a\\_b: %s} \\\\\n\\hline\nfcfs & %d \\\\\n\\hline\n\\end{tabular}\n",
                    heads[i][0], heads[i][1], i + 1);
    }
    OWNED char *all = text_end(&want);
    is("latex", all);
}
END_TEST

START_TEST(a_table_of_nothing_is_nothing)
{
    static const struct frame_column columns[] = {{.name = "a"}, {.name = "b", .only_text = true}};
    static const struct frame_column data[] = {{.name = "a", .only_data = true}};
    (void)DOCUMENT_FRAME(d, "empty", 0, columns);
    struct frame *f = DOCUMENT_FRAME(d, "gone", 0, columns);
    FRAME_ROW(f, 1, 2);
    frame_hide_row(f);
    struct frame *g = DOCUMENT_FRAME(d, "data", 0, data);
    FRAME_ROW(g, 1);
    document_note(d, "%s", "");
    document_heading(d, "A %s", "heading");
    document_note(document_within(d, "inner"), "inside");
    is("text", "\n\nA heading\ninside\n");
    is("markdown", "\n\n## A heading\n\ninside\n");
    is("latex", "\n\n% A heading\n% inside\n");
}
END_TEST

/* ---- terminals ---- */

/* Returns the document's text on a terminal of so many columns. */
static char *on_terminal(unsigned short columns)
{
    struct termios raw;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert_int_ge(master, 0);
    ck_assert_int_eq(grantpt(master), 0);
    ck_assert_int_eq(unlockpt(master), 0);
    FILE *f = fopen(ptsname(master), "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(tcgetattr(fileno(f), &raw), 0);
    raw.c_oflag &= ~(tcflag_t)OPOST;
    ck_assert_int_eq(tcsetattr(fileno(f), TCSANOW, &raw), 0);
    struct winsize w = {.ws_col = columns, .ws_row = 24};
    ck_assert_int_eq(ioctl(master, TIOCSWINSZ, &w), 0);
    ck_assert_int_eq(term_width(f), columns);
    document_put(d, "text", f);
    (void)fclose(f);
    static char text[4096];
    size_t all = 0;
    for (ssize_t n; (n = read(master, text + all, sizeof text - 1 - all)) > 0;) {
        all +=
            (size_t)n; /* it comes in pieces, and ends with an error of a terminal that is gone */
    }
    text[all] = '\0';
    (void)close(master);
    return text;
}

/* The table is 24 + 2 + 4 + 2 + 20 = 52 wide. On 52 it is whole. On 44 the first column gives 8 and
 * ends with three dots. On 34 it gives no more than to 16, and the last one, which has 34 - 24 =
 * 10, is left to wrap. */
START_TEST(a_terminal_too_narrow_cuts_texts)
{
    struct frame *f = document_table(d, 0, "lrl", "label", "n", "what");
    FRAME_ROW(f, "abcdefghijklmnopqrstuvwx", 1234, "12345678901234567890");
    FRAME_ROW(f, "short", 5, "x");
    ck_assert_str_eq(on_terminal(52), "label                        n  what\n"
                                      "abcdefghijklmnopqrstuvwx  1234  12345678901234567890\n"
                                      "short                        5  x\n");
    ck_assert_str_eq(on_terminal(44), "label                n  what\n"
                                      "abcdefghijklm...  1234  12345678901234567890\n"
                                      "short                5  x\n");
    ck_assert_str_eq(on_terminal(40), "label                n  what\n"
                                      "abcdefghijklm...  1234  1234567890123...\n"
                                      "short                5  x\n");
    ck_assert_str_eq(on_terminal(34), "label                n  what\n"
                                      "abcdefghijklm...  1234  12345678901234567890\n"
                                      "short                5  x\n");
}
END_TEST

/* Labels that would become equal are not cut, and numbers never are. */
START_TEST(labels_stay_different)
{
    struct frame *f = document_table(d, 2, "lr", "", "number");
    FRAME_ROW(f, "abcdefghijklmnopqrstuvwx-1", 0.25);
    FRAME_ROW(f, "abcdefghijklmnopqrstuvwx-2", 0.5);
    ck_assert_str_eq(on_terminal(20), "                              number\n"
                                      "  abcdefghijklmnopqrstuvwx-1    0.25\n"
                                      "  abcdefghijklmnopqrstuvwx-2     0.5\n");
}
END_TEST

/* Four significant digits. From ten millions on, and below 1e-4, an exponent is shorter. */
START_TEST(a_number_has_no_exponent_where_people_read_none)
{
    static const struct {
        double x;
        const char *text;
    } cases[] = {{0.0, "0"},
                 {-0.5, "-0.5"},
                 {1234.56, "1235"},
                 {9999.4, "9999"},
                 {9999.96, "10000"},
                 {12467.3, "12470"},
                 {-12465.1, "-12470"},
                 {99994.0, "99990"},
                 {99996.0, "100000"},
                 {123449.0, "123400"},
                 {1234567.0, "1235000"},
                 {9999400.0, "9999000"},
                 {1e7, "1e+07"},
                 {12345678.0, "1.235e+07"},
                 {0.00012345, "0.0001234"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_str_eq(document_short(cases[i].x), cases[i].text);
    }
    static const struct frame_column columns[] = {{.name = "x"}, {.name = "of", .format = "%.3g"}};
    struct frame *f = DOCUMENT_FRAME(d, "rows", 0, columns);
    FRAME_ROW(f, 43210.98, 43210.98);
    is("text", "    x        of\n"
               "43210  4.32e+04\n");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("for people", .setup = setup),
    TEST(columns_are_as_wide_as_their_cells),
    TEST(latex_says_letters_and_no_commands),
    TEST(counts_are_whole_numbers),
    TEST(rows_stand_under_their_heading),
    TEST(latex_has_headings_in_tables),
    TEST(a_table_of_nothing_is_nothing),
    TEST(a_terminal_too_narrow_cuts_texts),
    TEST(labels_stay_different),
    TEST(a_number_has_no_exponent_where_people_read_none),
};
SUITE_MAIN("tables for people", suite)
