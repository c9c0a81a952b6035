/* A paper's figure as people and programs see it: made-up values on a grid of two panels, two
 * series and two places on x, every cell by hand. And a schedule, whose commands are a function of
 * this test. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/figures/paper.h"
#include "plots/render.h"
#include "sim/base/json.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

static struct paper p;
static struct paper_point points[8];

/* Means are by panel, series and x. The first panel's series cross 15 at 1.5 and at 1.25. */
static const double means[8] = {10, 20, 10, 30, 40, 50, 60, 70};

static void setup(void)
{
    p = (struct paper){.file = "f.json",
                       .paper = "a-paper",
                       .number = "7",
                       .draw = PAPER_LINES,
                       .y_title = "seconds",
                       .points = points,
                       .n_points = 8,
                       .axes = {[PAPER_ROW] = {.title = "", .n = 2},
                                [PAPER_COLUMN] = {.title = "", .n = 1},
                                [PAPER_SERIES] = {.title = "", .n = 2},
                                [PAPER_X] = {.title = "rate", .n = 2}}};
    static const char *const titles[PAPER_AXES][2] = {
        {"R0", "R1"}, {"", ""}, {"s", "t"}, {"one", "two"}};
    for (int k = 0; k < PAPER_AXES; k++) {
        for (int i = 0; i < 2; i++) {
            p.axes[k].v[i] = (struct paper_place){.title = titles[k][i], .number = (double)NAN};
        }
    }
    for (uint32_t i = 0; i < 8; i++) {
        points[i] = (struct paper_point){
            .at = {[PAPER_ROW] = i / 4, [PAPER_SERIES] = i / 2 % 2, [PAPER_X] = i % 2},
            .mean = {.mean = means[i], .low = means[i] - 1, .high = means[i] + 2, .n = 1},
            .x = 1 + i % 2};
    }
    p.n_marks = 3;
    /* The first mark is one value of one place, of a claim and from a drawing. */
    p.marks[0] = (struct paper_mark){.at = {0, 0, 0, 1},
                                     .low = 9,
                                     .high = 9,
                                     .of = -1,
                                     .of_x = -1,
                                     .crossing = (double)NAN,
                                     .read_off = true,
                                     .where = "4.1",
                                     .claim = "C1"};
    /* The second is two to three times the other series, everywhere. */
    p.marks[1] = (struct paper_mark){.at = {-1, -1, 1, -1},
                                     .low = 2,
                                     .high = 3,
                                     .as = "of * value",
                                     .of = 0,
                                     .of_x = -1,
                                     .crossing = (double)NAN,
                                     .where = "5"};
    /* The third is 1.1 times as far right as the other, where 15 is reached. */
    p.marks[2] = (struct paper_mark){.at = {0, 0, 0, -1},
                                     .low = 1.1,
                                     .high = 1.1,
                                     .of = 1,
                                     .of_x = -1,
                                     .crossing = 15,
                                     .where = "6"};
}

static struct document *shown(bool brief)
{
    struct document *d = document_new();
    paper_document(&p, brief, d);
    return d;
}

START_TEST(a_grid_is_data)
{
    static const char *const at[8][3] = {{"R0", "s", "one"}, {"R0", "s", "two"}, {"R0", "t", "one"},
                                         {"R0", "t", "two"}, {"R1", "s", "one"}, {"R1", "s", "two"},
                                         {"R1", "t", "one"}, {"R1", "t", "two"}};
    static const struct {
        const char *panel, *series, *x, *where, *claim;
        double low, high, drawn_low, drawn_high, drawn_x;
        bool read_off;
    } published[] = {
        {"R0", "s", "two", "4.1 (read off the drawing)", "C1", 9, 9, 9, 9, 2, true},
        {"R0", "t", "one", "5", "", 2, 3, 20, 30, 1, false},
        {"R0", "t", "two", "5", "", 2, 3, 40, 60, 2, false},
        {"R1", "t", "one", "5", "", 2, 3, 80, 120, 1, false},
        {"R1", "t", "two", "5", "", 2, 3, 100, 150, 2, false},
        {"R0", "s", "x of 15", "6", "", 1.1, 1.1, 15, 15, 1.375, false},
    };
    SCOPED(text_fini) struct text want = {0};
    for (uint32_t i = 0; i < 8; i++) {
        text_format(&want,
                    "%s{\"row\":\"%s\",\"column\":\"\",\"series\":\"%s\",\"at\":\"%s\","
                    "\"x\":%u,\"value\":%g,\"low\":%g,\"high\":%g,\"n\":1}",
                    i == 0 ? "{\"points\":[" : ",", at[i][0], at[i][1], at[i][2], 1 + i % 2,
                    means[i], means[i] - 1, means[i] + 2);
    }
    for (uint32_t i = 0; i < sizeof published / sizeof *published; i++) {
        text_format(&want,
                    "%s{\"panel\":\"%s\",\"series\":\"%s\",\"x\":\"%s\",\"where\":\"%s\","
                    "\"claim\":\"%s\",\"published_low\":%g,\"published_high\":%g,",
                    i == 0 ? "],\"published\":[" : ",", published[i].panel, published[i].series,
                    published[i].x, published[i].where, published[i].claim, published[i].low,
                    published[i].high);
        text_format(&want,
                    "\"drawn_low\":%g,\"drawn_high\":%g,\"drawn_x_low\":%g,\"drawn_x_high\":%g,"
                    "\"read_off\":%s}",
                    published[i].drawn_low, published[i].drawn_high, published[i].drawn_x,
                    published[i].drawn_x, published[i].read_off ? "true" : "false");
    }
    text_format(&want, "]}");
    SCOPED(json_drop) cJSON *tree = document_json(shown(false));
    OWNED char *is = cJSON_PrintUnformatted(tree);
    ck_assert_str_eq(is, text_end(&want));
}
END_TEST

START_TEST(a_grid_is_shown_panel_by_panel)
{
    OWNED char *text = shown_text(shown(false), "text");
    ck_assert_str_eq(text, "\nR0: seconds\n\nrate s t\none 10 10\ntwo 20 (9) 30\n"
                           "\nR1: seconds\n\nrate s t\none 40 60\ntwo 50 70\n\n"
                           "panel series x published simulated where claim\n"
                           "R0 s two 9 20 4.1 (read off the drawing) C1\n"
                           "R0 t one 2 to 3 (drawn at 20 to 30) 10 5\n"
                           "R0 t two 2 to 3 (drawn at 40 to 60) 30 5\n"
                           "R1 t one 2 to 3 (drawn at 80 to 120) 60 5\n"
                           "R1 t two 2 to 3 (drawn at 100 to 150) 70 5\n"
                           "R0 s x of 15 1.1 1.2 6\n");
    /* In short: no panels, and one row for a mark of many points, with the range of our ratios, 1
     * to 1.5. */
    OWNED char *brief = shown_text(shown(true), "text");
    ck_assert_str_eq(brief, "\npanel series x published simulated where claim\n"
                            "R0 s two 9 20 4.1 (read off the drawing) C1\n"
                            "all t over s all 2 to 3 1 to 1.5 5\nR0 s x of 15 1.1 1.2 6\n");
    /* A mark in the paper's own unit. */
    p.marks[1].ours = "100 * (value / of - 1)";
    OWNED char *ours = shown_text(shown(true), "text");
    ck_assert_ptr_nonnull(strstr(ours, "\nall t against s all 2 to 3 0 to 50 5\n"));
    for (int i = 0; i < 8; i++) {
        points[i].mean.mean = (double)NAN;
    }
    OWNED char *none = shown_text(shown(true), "text");
    ck_assert_ptr_nonnull(strstr(none, "\nall t against s all 2 to 3 - 5\n"));
}
END_TEST

/* With intervals (in digits of their half width, 1.5), undefined values, positions, and a curve
 * that does not reach a height. */
START_TEST(values_are_shown_with_what_is_known)
{
    p.n_marks = 0;
    points[0].mean.n = 5;
    points[1].mean.mean = (double)NAN;
    points[2].position = "v";
    points[2].x = 1.25;
    points[3].mean = (struct stats_interval){.mean = 30, .low = 30, .high = 30, .n = 9};
    OWNED char *text = shown_text(shown(false), "text");
    ck_assert_str_eq(text, "\nR0: seconds\n\nrate s t\none 10.0 [9.0, 12.0] 10 at 1.25\ntwo - 30\n"
                           "\nR1: seconds\n\nrate s t\none 40 60\ntwo 50 70\n\n"
                           "The text states no value of this figure.\n");
    p.n_marks = 1;
    p.marks[0] = p.marks[2];
    p.marks[0].crossing = 31;
    OWNED char *never = shown_text(shown(false), "text");
    ck_assert_ptr_nonnull(strstr(never, "\nR0 s x of 31 1.1 not within the axis 6\n"));
    /* A table has published values in parentheses, and no further rows of them. */
    setup();
    p.draw = PAPER_TABLE;
    OWNED char *table = shown_text(shown(true), "text");
    ck_assert_ptr_nonnull(strstr(table, "\ntwo 20 (9) 30\n"));
    ck_assert_ptr_null(strstr(table, "read off"));
    /* Panels of both axes, of one, and of a series without a name. */
    p.axes[PAPER_COLUMN].v[0].title = "C";
    p.axes[PAPER_SERIES].v[0].title = "";
    p.axes[PAPER_X].title = "";
    OWNED char *named = shown_text(shown(false), "text");
    ck_assert_ptr_nonnull(strstr(named, "\nR0, C: seconds\n\n- value t\n"));
    p.axes[PAPER_ROW].v[0].title = "";
    OWNED char *column = shown_text(shown(false), "text");
    ck_assert_ptr_nonnull(strstr(column, "\nC: seconds\n"));
}
END_TEST

/* ---- a schedule ---- */

static struct err err;

static void enter(void)
{
    err = (struct err)ERR_INIT;
    folder_enter();
    folder_put("gnuplot", "#!/bin/sh\n[ \"$1\" = --version ] && echo 'gnuplot 6.0 patchlevel 0'\n"
                          "exit 0\n");
    ck_assert_int_eq(chmod("gnuplot", 0700), 0);
    OWNED char *path = xformat("%s:%s", folder_path(), getenv("PATH"));
    ck_assert_int_eq(setenv("PATH", path, 1), 0);
    ck_assert_int_eq(setenv("TMPDIR", folder_path(), 1), 0);
}

static void leave(void)
{
    err_fini(&err);
    folder_leave();
}

/* Says its words, and ends with the number that the last one is, or by a signal. */
static int say(int argc, char **argv)
{
    FILE *f = fopen("said", "a");
    for (int i = 0; i < argc; i++) {
        (void)fprintf(f, "%s%s", i > 0 ? " " : "", argv[i]);
        (void)printf("%s;", argv[i]);
    }
    (void)fprintf(f, "\n");
    (void)fclose(f);
    if (strcmp(argv[argc - 1], "killed") == 0) {
        (void)raise(SIGKILL);
    }
    return atoi(argv[argc - 1]);
}

static int scheduled(const char *commands, const char *plot)
{
    OWNED char *text = xformat("{\"paper\": \"a\", \"number\": \"1\", \"title\": \"t\", \"says\": "
                               "\"s\", \"claims\": [], \"put\": {\"seed\": 5, \"load\": \"w:{seed}"
                               "\"}, \"commands\": [%s], \"plot\": \"%s\"}",
                               commands, plot);
    folder_put("f.json", text);
    suite_keep(&p, sizeof p);
    ck_assert_msg(paper_read(&p, "f.json", NULL, 0, &err) == 0, "%s",
                  err.n > 0 ? err.lines[0] : "");
    struct frame *values = NULL;
    int rc = paper_schedule(&p, say, "out", RENDER_SVG, &values, &err);
    ck_assert_ptr_null(values); /* of none that is drawn */
    return rc;
}

static bool is_empty_but(const char *const *names)
{
    OWNED char *line = xstrdup("ls -A");
    FILE *f = popen(line, "r");
    char name[256];
    bool fine = true;
    while (fgets(name, sizeof name, f) != NULL) {
        name[strcspn(name, "\n")] = '\0';
        bool known = false;
        for (const char *const *n = names; *n != NULL; n++) {
            known = known || strcmp(*n, name) == 0;
        }
        fine = fine && known;
    }
    (void)pclose(f);
    return fine;
}

/* Commands run in their order, with all that is put, and each one's output goes to its place. The
 * folder of results is removed in any case. */
START_TEST(commands_of_a_schedule_run_in_turn)
{
    static const char *const left[] = {"gnuplot", "f.json", "said", "copy", NULL};
    ck_assert_int_eq(scheduled("{\"run\": \"run --workload {load} --seed {seed} 0\", \"to\": "
                               "\"copy\"}, {\"run\": \"two {data} 0\"}, {\"run\": \"three 3\"}, "
                               "{\"run\": \"four 0\"}",
                               "gantt copy"),
                     -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    ck_assert_str_eq(err.lines[0], "f.json: commands[2].run: \"three 3\" ended with status 3");
    OWNED char *said = folder_text("said");
    OWNED char *want = xformat("xpusim run --workload w:5 --seed 5 0\nxpusim two %s 0\n"
                               "xpusim three 3\n",
                               cJSON_GetObjectItem(p.put, "data")->valuestring);
    ck_assert_str_eq(said, want);
    OWNED char *copy = folder_text("copy");
    ck_assert_str_eq(copy, "xpusim;run;--workload;w:5;--seed;5;0;");
    ck_assert(is_empty_but(left));
    err_fini(&err);
    ck_assert_int_eq(scheduled("{\"run\": \"five killed\"}", "gantt x"), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    ck_assert_str_eq(err.lines[0],
                     "f.json: commands[0].run: \"five killed\" ended without a status");
}
END_TEST

START_TEST(a_schedule_names_a_figure_there_is)
{
    ck_assert_int_eq(scheduled("{\"run\": \"one 0\", \"to\": \"{dir}/x\"}", "no-such {dir}/x"),
                     -EINVAL);
    ck_assert_str_eq(err.lines[0], "f.json: plot: no figure is called no-such");
    ck_assert_ptr_nonnull(
        strstr(cJSON_GetObjectItem(p.put, "dir")->valuestring, "/xpusim-figure-"));
    ck_assert_int_ne(access(cJSON_GetObjectItem(p.put, "dir")->valuestring, F_OK), 0);
    err_fini(&err);
    ck_assert_int_eq(scheduled("{\"run\": \"one 0\"}", ""), -EINVAL);
    ck_assert_str_eq(err.lines[0], "f.json: plot: no figure is called \"\"");
    err_fini(&err);
    ck_assert_int_eq(scheduled("{\"run\": \"one {nothing}\"}", "gantt x"), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "nothing puts {nothing}"));
}
END_TEST

/* "KEY=VALUE": a number where it is one, and only a key that there is, with its case, once. */
START_TEST(puts_replace_what_is_put)
{
    static const char *const puts[] = {"seed=7", "load=", "none=1", "seed", "Load=x", "load=x"};
    folder_put("f.json",
               "{\"paper\": \"a\", \"number\": \"1\", \"title\": \"t\", \"says\": \"s\", "
               "\"claims\": [], \"put\": {\"seed\": 5, \"load\": \"w\"}, \"commands\": [{\"run\": "
               "\"x\"}], \"plot\": \"p\"}");
    ck_assert_int_eq(paper_read(&p, "f.json", puts, 6, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 4);
    for (int i = 0; i < 3; i++) {
        OWNED char *want = xformat("--put %s: must be KEY=VALUE with a key of f.json: put, which "
                                   "is {\"seed\":7,\"load\":\"\"}",
                                   puts[2 + i]);
        ck_assert_str_eq(err.lines[i], want);
    }
    ck_assert_str_eq(err.lines[3], "--put load=x: the key has a value already");
    ck_assert_double_eq(json_number(p.put, "seed"), 7);
    ck_assert(cJSON_IsString(cJSON_GetObjectItem(p.put, "load")));
}
END_TEST

static const struct suite_row rows[] = {
    CASE("a grid", .setup = setup),
    TEST(a_grid_is_data),
    TEST(a_grid_is_shown_panel_by_panel),
    TEST(values_are_shown_with_what_is_known),
    CASE("a schedule", .setup = enter, .teardown = leave),
    TEST(commands_of_a_schedule_run_in_turn),
    TEST(a_schedule_names_a_figure_there_is),
    TEST(puts_replace_what_is_put),
};
SUITE_MAIN("a paper's figure as it is printed", rows)
