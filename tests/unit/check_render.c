/* Input of gnuplot and its pictures: a program of that name keeps its script. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plots/render.h"
#include "plots/svg_compact.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"
#include "tests/helpers/drawn.h"
#include "tests/helpers/suite.h"

static char folder[] = "/tmp/xpusim-check-render-XXXXXX";
static char *path; /* PATH as it was */

/* Removes a folder of files and folders of files. */
static void clean(const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *o; d != NULL && (o = readdir(d)) != NULL;) {
        OWNED char *one = xformat("%s/%s", dir, o->d_name);
        if (strcmp(o->d_name, ".") != 0 && strcmp(o->d_name, "..") != 0 && remove(one) != 0) {
            (void)chmod(one, 0700);
            clean(one);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    (void)rmdir(dir);
}

static char *in_folder(const char *name)
{
    return xformat("%s/%s", folder, name);
}

static void put(const char *name, const char *text, mode_t mode)
{
    OWNED char *file = in_folder(name);
    FILE *f = fopen(file, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(chmod(file, mode), 0);
}

static char *text_of(const char *name)
{
    OWNED char *file = in_folder(name);
    SCOPED(err_fini) struct err ignored = ERR_INIT;
    return input_text(file, 1 << 20, &ignored);
}

/* gnuplot of the test: keeps its script as FORMAT.gp, and runs the command. $1 is -d, $out the
 * picture. */
static void gnuplot(const char *command)
{
    OWNED char *script = xformat("#!/bin/sh\nout=$(sed -n \"s/^out = '\\(.*\\)'$/\\1/p\" \"$2\")\n"
                                 "[ \"$1\" = -d ] && cp \"$2\" '%s'/\"${out##*.}\".gp\n%s\n",
                                 folder, command);
    put("gnuplot", script, 0700);
    OWNED char *with = xformat("%s:%s", folder, path);
    ck_assert_int_eq(setenv("PATH", with, 1), 0);
}

static void setup(void)
{
    drawn_setup();
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    path = xstrdup(getenv("PATH"));
    figure_block(&drawn_data, "one");
    FIGURE_ROW(&drawn_data, 1, 2);
    figure_block(&drawn_data, "two");
    FIGURE_ROW(&drawn_data, 3, 4);
    figure_var(&drawn_data, "a", 1.5);
    figure_var_text(&drawn_data, "b", "it's");
}

static void teardown(void)
{
    (void)setenv("PATH", path, 1);
    free(path);
    clean(folder);
    drawn_teardown();
}

/* Files of a folder by name, those that are hidden too. */
static char *listed(const char *name)
{
    OWNED char *dir = in_folder(name);
    SCOPED(texts_fini) struct texts l = {.n = 0};
    struct text t = {0};
    DIR *d = opendir(dir);
    for (struct dirent *o; d != NULL && (o = readdir(d)) != NULL;) {
        if (strcmp(o->d_name, ".") != 0 && strcmp(o->d_name, "..") != 0) {
            texts_add(&l, o->d_name);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    texts_sort(&l);
    for (size_t i = 0; i < l.n; i++) {
        text_item(&t, " ", l.v[i]);
    }
    (void)text_end(&t);
    return t.p;
}

static int render(const char *name, const char *dir, unsigned formats)
{
    OWNED char *to = in_folder(dir);
    return render_figure_as(figure_find("headline"), name, &drawn_data, to, formats, &drawn_err);
}

static const char *said(void)
{
    static char text[2048];
    const char *all = drawn_errors();
    const char *at = strstr(all, folder);
    (void)snprintf(text, sizeof text, "%.*s%s", at != NULL ? (int)(at - all) : (int)strlen(all),
                   all, at != NULL ? at + strlen(folder) + 1 : "");
    return text;
}

/* Every bit of formats has its file and no other, and the data are there where they are asked for.
 */
START_TEST(each_format_is_a_file)
{
    static const struct {
        unsigned formats;
        const char *files, *drawn;
    } all[] = {{RENDER_SVG, "f.svg", "svg.gp - -"},
               {RENDER_PNG, "f.png", "- png.gp -"},
               {RENDER_PDF | RENDER_TSV, "f.pdf f.tsv", "- - pdf.gp"},
               {RENDER_SVG | RENDER_PNG | RENDER_TSV, "f.png f.svg f.tsv", "svg.gp png.gp -"},
               {RENDER_TSV, "f.tsv", "- - -"}};
    gnuplot("printf '%s' \"<svg>$out</svg>\" >\"$out\"");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        OWNED char *dir = xformat("out%zu", i);
        ck_assert_msg(render("f", dir, all[i].formats) == 0, "%s", drawn_errors());
        OWNED char *files = listed(dir);
        ck_assert_str_eq(files, all[i].files);
        static const char *const kept[] = {"svg.gp", "png.gp", "pdf.gp"};
        SCOPED(text_fini) struct text drawn = {0};
        for (size_t k = 0; k < 3; k++) {
            OWNED char *script = in_folder(kept[k]);
            text_item(&drawn, " ", remove(script) == 0 ? kept[k] : "-");
        }
        ck_assert_str_eq(text_end(&drawn), all[i].drawn);
        if ((all[i].formats & RENDER_TSV) != 0) {
            OWNED char *name = xformat("%s/f.tsv", dir);
            OWNED char *tsv = text_of(name);
            ck_assert_str_eq(tsv, "one\n1\t2\n\n\ntwo\n3\t4\n");
        }
    }
}
END_TEST

/* Paths of what scripts share, data and picture, the format, the number of blocks, the variables,
 * and the figure's own script. */
START_TEST(a_script_has_all_that_gnuplot_needs)
{
    static const char *const shared[][2] = {
        {"functions", "functions"}, {"style", "style"},     {"lines", "lines"},
        {"bars_gp", "bars"},        {"ytics", "ytics"},     {"no_rows", "no_rows"},
        {"axes", "axes"},           {"stacked", "stacked"}, {"distributions", "distributions"},
        {"legend", "legend"}};
    gnuplot("echo >\"$out\"");
    ck_assert_int_eq(render("f", "out", RENDER_PDF), 0);
    SCOPED(text_fini) struct text want = {0};
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        OWNED char *file = xformat("plots/%s.gp", shared[i][1]);
        text_format(&want, "%s = '%s'\n", shared[i][0], datadir_path(file));
    }
    OWNED char *driver = text_of("pdf.gp");
    ck_assert_ptr_nonnull(driver);
    ck_assert_msg(strncmp(driver, text_end(&want), want.n) == 0, "%s", driver);
    OWNED char *own = xformat("%s/out/.f-", folder);
    char *rest = driver + want.n;
    ck_assert_msg(strncmp(rest, "data = '", 8) == 0 && strncmp(rest + 8, own, strlen(own)) == 0,
                  "%s", rest);
    char random[7] = "";
    (void)snprintf(random, sizeof random, "%s", rest + 8 + strlen(own));
    OWNED char *tail =
        xformat("data = '%s%s/f.tsv'\nout = '%s%s/f.pdf'\nformat = 'pdf'\nblocks = 2\n"
                "a = 1.5\nb = 'it''s'\nscript = '%s'\nload functions\nload script\n",
                own, random, own, random, datadir_path("plots/headline.gp"));
    ck_assert_str_eq(rest, tail);
}
END_TEST

/* gnuplot reads its data before the picture is moved. An SVG is made small. */
START_TEST(a_picture_is_made_small)
{
    gnuplot("cp \"${out%.*}.tsv\" \"$out\"");
    ck_assert_int_eq(render("f", "out", RENDER_PNG), 0);
    OWNED char *png = text_of("out/f.png");
    ck_assert_str_eq(png, "one\n1\t2\n\n\ntwo\n3\t4\n");
    static const char svg[] =
        "<?xml version=\"1.0\"?>\n<svg viewBox=\"0 0 9 9\">\n<g id=\"gnuplot_canvas\">\n"
        "<path stroke='red' d='M1.04,2.00 L3.06,4.00'/>\n</g>\n</svg>\n";
    put("big.svg", svg, 0600);
    OWNED char *copy = xformat("cp '%s/big.svg' \"$out\"", folder);
    gnuplot(copy);
    ck_assert_int_eq(render("f", "out", RENDER_SVG), 0);
    OWNED char *is = text_of("out/f.svg");
    OWNED char *want = svg_compact(svg);
    ck_assert_str_eq(is, want);
}
END_TEST

/* gnuplot fails, writes nothing, or writes an empty file: its words are the message, and what was
 * there stays. */
static const struct {
    const char *command, *said;
} failures[] = {
    {"echo drawn >\"$out\"; printf 'line 3:\\n\\tundefined' >&2; exit 1", "line 3:  undefined"},
    {"echo on stdout; exit 0", "on stdout "},
    {": >\"$out\"", ""},
    {"echo drawn >\"$out\"; kill -9 $$", ""},
    {"printf '%1100d' 7; exit 3", NULL}, /* not more than a person reads */
};

START_TEST(a_figure_that_fails_leaves_what_was_there)
{
    gnuplot("echo old >\"$out\"");
    ck_assert_int_eq(render("f", "out", RENDER_PNG), 0);
    gnuplot(failures[_i].command);
    ck_assert_int_eq(render("f", "out", RENDER_PNG | RENDER_TSV), -EINVAL);
    OWNED char *blanks = xformat("%*s", 1023, "");
    OWNED char *want = xformat("figure f: gnuplot failed: %s\n",
                               failures[_i].said != NULL ? failures[_i].said : blanks);
    ck_assert_str_eq(drawn_errors(), want);
    OWNED char *files = listed("out");
    ck_assert_str_eq(files, "f.png");
    OWNED char *png = text_of("out/f.png");
    ck_assert_str_eq(png, "old\n");
}
END_TEST

/* One format of two fails: the other is not moved either. */
START_TEST(pictures_are_moved_together)
{
    gnuplot("case $out in *.pdf) echo no; exit 1 ;; *) echo '<svg></svg>' >\"$out\" ;; esac");
    ck_assert_int_eq(render("f", "out", RENDER_SVG | RENDER_PDF | RENDER_TSV), -EINVAL);
    ck_assert_str_eq(drawn_errors(), "figure f: gnuplot failed: no \n");
    OWNED char *files = listed("out");
    ck_assert_str_eq(files, "");
}
END_TEST

/* A quote in a folder's name is doubled, a dash before a relative one is no option; a line break is
 * refused, and so is a folder that cannot be made. */
START_TEST(a_folder_may_have_any_name_but_a_broken_one)
{
    gnuplot("echo drawn >\"${2%.gp}.png\"");
    ck_assert_msg(render("f", "it's", RENDER_PNG) == 0, "%s", drawn_errors());
    OWNED char *files = listed("it's");
    ck_assert_str_eq(files, "f.png");
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_msg(
        render_figure(figure_find("headline"), &drawn_data, "-d", RENDER_PNG, &drawn_err) == 0,
        "%s", drawn_errors());
    OWNED char *dashed = listed("-d");
    ck_assert_str_eq(dashed, "headline.png");
    OWNED char *driver = text_of("png.gp");
    ck_assert_ptr_nonnull(strstr(driver, "\nout = './-d/.headline-"));
    ck_assert_int_eq(render("f", "a\nb", RENDER_PNG), -EINVAL);
    ck_assert_ptr_nonnull(strstr(
        drawn_errors(), ": a line break or another control character in the name of a file, which "
                        "gnuplot cannot take\n"));
    OWNED char *broken = listed("a\nb");
    ck_assert_str_eq(broken, "");
    err_fini(&drawn_err);
    ck_assert_int_eq(render("f", "no/such", RENDER_PNG), -EINVAL);
    ck_assert_str_eq(said(), "no/such: cannot make the folder: No such file or directory\n");
    err_fini(&drawn_err);
    put("file", "", 0600);
    ck_assert_int_eq(render("f", "file", RENDER_PNG), -EINVAL);
    ck_assert_str_eq(said(), "file: cannot write there: Not a directory\n");
}
END_TEST

/* The program is looked for in each folder of PATH, and must be one that can be run. */
START_TEST(gnuplot_is_looked_for)
{
    static const struct {
        const char *first, *second;
        bool there;
    } paths[] = {{"%s", "/nonesuch", true},
                 {"/nonesuch", "%s", true},
                 {"", "%s", true},
                 {"/nonesuch", "", false},
                 {"/nonesuch", "%s/sub", false}};
    put("gnuplot", "", 0700);
    OWNED char *sub = in_folder("sub");
    ck_assert_int_eq(mkdir(sub, 0700), 0);
    put("sub/gnuplot", "", 0600); /* cannot be run */
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char with[256];
        int n = 0;
        const char *part[] = {paths[i].first, paths[i].second};
        for (int k = 0; k < 2; k++) {
            const char *at = strstr(part[k], "%s");
            n += snprintf(with + n, sizeof with - (size_t)n, "%s%s%s", k > 0 ? ":" : "",
                          at != NULL ? folder : part[k], at != NULL ? at + 2 : "");
        }
        ck_assert_int_eq(setenv("PATH", with, 1), 0);
        ck_assert_msg((render_check_gnuplot(&drawn_err) == 0) == paths[i].there, "%s", with);
    }
    ck_assert_int_eq(setenv("PATH", "", 1), 0);
    ck_assert_int_eq(render_check_gnuplot(&drawn_err), -EINVAL);
    ck_assert_int_eq(unsetenv("PATH"), 0);
    ck_assert_int_eq(render_check_gnuplot(&drawn_err), -EINVAL);
    ck_assert_uint_eq(drawn_err.n, 4);
    ck_assert_str_eq(drawn_err.lines[3], "gnuplot is not installed: it draws the figures (Debian "
                                         "package gnuplot-nox)");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(each_format_is_a_file),
    TEST(a_script_has_all_that_gnuplot_needs),
    TEST(a_picture_is_made_small),
    LOOP(a_figure_that_fails_leaves_what_was_there, sizeof failures / sizeof failures[0]),
    TEST(pictures_are_moved_together),
    TEST(a_folder_may_have_any_name_but_a_broken_one),
    TEST(gnuplot_is_looked_for),
};
SUITE_MAIN("gnuplot", suite)
