/* Figures of the papers: every shipped specification against the claims' files, points and
 * published values by hand, and what is said of a wrong one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/claims/claims.h"
#include "experiments/figures/paper.h"
#include "experiments/run/folder.h"
#include "sim/base/arena.h"
#include "sim/base/datadir.h"
#include "tests/helpers/suite.h"

static char path[64];
static struct err err;
static struct paper paper;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    paper = (struct paper){.n_points = 0};
    (void)snprintf(path, sizeof path, "/tmp/xpusim-paper-%ld.tmp.json", (long)getpid());
}

static void teardown(void)
{
    err_fini(&err);
    (void)remove(path);
}

/* ---- the shipped ones ---- */

static char *shipped[64];
static int n_shipped;

static void keep(void *ctx, const char *file, const char *name, struct err *e)
{
    (void)ctx;
    (void)e;
    if (strstr(file, ".json") != NULL && strcmp(name, "cannot") != 0) {
        shipped[n_shipped++] = xstrdup(file);
    }
}

static int count(void)
{
    if (n_shipped == 0) {
        (void)folder_each(datadir_path(PAPER_FOLDER), keep, NULL, &(struct err)ERR_INIT);
    }
    return n_shipped;
}

static bool has_value(const struct claim *c, double v)
{
    bool has = false;
    for (uint32_t i = 0; i < c->n_checks; i++) {
        has = has || c->checks[i].low == v || c->checks[i].high == v;
    }
    return has;
}

static const struct claim *claim_of(const struct claims *c, const char *id)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (strcmp(c->v[i].id, id) == 0) {
            return &c->v[i];
        }
    }
    return NULL;
}

START_TEST(every_shipped_figure_is_sound_and_quotes_as_its_claims_do)
{
    ck_assert_int_lt(_i, count());
    struct claims claims = {.n = 0};
    ck_assert_msg(paper_read(&paper, shipped[_i], NULL, 0, &err) == 0, "%s",
                  err.n > 0 ? err.lines[0] : "");
    char *own = paper_path(paper.paper, paper.number);
    ck_assert_str_eq(own, shipped[_i]); /* the file is found by its numbers */
    free(own);
    char *file = xformat("experiments/claims/%s.json", paper.paper);
    ck_assert_int_eq(claims_read(&claims, datadir_path(file), &err), 0);
    free(file);
    for (uint32_t i = 0; i < paper.n_claims; i++) {
        ck_assert_msg(claim_of(&claims, paper.claims[i]) != NULL, "%s: %s", paper.file,
                      paper.claims[i]);
    }
    for (uint32_t i = 0; i < paper.n_marks; i++) {
        const struct paper_mark *m = &paper.marks[i];
        const struct claim *c = m->claim != NULL ? claim_of(&claims, m->claim) : NULL;
        ck_assert_msg(
            m->claim == NULL || (c != NULL && has_value(c, m->low) && has_value(c, m->high)),
            "%s: published[%u]: %s has no %g to %g", paper.file, i, m->claim, m->low, m->high);
    }
    if (paper.n_commands == 0) {
        ck_assert_msg(paper_expand(&paper, 1, &err) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    }
    claims_fini(&claims);
}
END_TEST

/* ---- by hand ---- */

static void write_spec(const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

#define HEAD "\"paper\":\"p\",\"number\":\"1\",\"title\":\"t\",\"says\":\"s.\",\"claims\":[],"
/* The line through (1, 51.1) and (32, 5.7) in time per pass: 51.1 and 182.4 ms, so 131.3/31 ms a
 * token. With 8 tokens one takes (51.1 + 7 x 131.3/31) / 8 = 10.0935. */
#define QUANTITIES "\"quantities\":{\"v\":{\"verification\":{\"drafted_tokens\":\"{n}\"}}}"
#define GRID                                                                                       \
    "{" HEAD "\"put\":{\"scale\":2},\"draw\":\"lines\",\"value\":\"{scale} * {factor} * v\","      \
    "\"series\":{\"values\":[{\"title\":\"one\",\"put\":{\"factor\":\"1\"}},"                      \
    "{\"title\":\"half\",\"put\":{\"factor\":\"0.5\"}}]},"                                         \
    "\"x\":{\"key\":\"n\",\"values\":[1,8,32]}," QUANTITIES

static void run_spec(const char *const *puts, uint32_t n)
{
    struct quantities_options o = {.replications = 1, .seed = 1, .how.parallel = 1};
    ck_assert_msg(paper_read(&paper, path, puts, n, &err) == 0 &&
                      paper_expand(&paper, 1, &err) == 0 && paper_run(&paper, &o, &err) == 0,
                  "%s", err.n > 0 ? err.lines[0] : "");
}

static double at(uint32_t series, uint32_t x)
{
    return paper_at(&paper, (const uint32_t[PAPER_AXES]){0, 0, series, x})->mean.mean;
}

START_TEST(points_are_expressions_over_what_their_places_put)
{
    write_spec(GRID "}");
    run_spec(NULL, 0);
    double eight = (51.1 + 7.0 * (32 * 5.7 - 51.1) / 31.0) / 8.0;
    ck_assert_double_eq_tol(at(0, 0), 2 * 51.1, 1e-9);
    ck_assert_double_eq_tol(at(0, 1), 2 * eight, 1e-9);
    ck_assert_double_eq_tol(at(0, 2), 2 * 5.7, 1e-9);
    ck_assert_double_eq_tol(at(1, 1), eight, 1e-9);
    ck_assert_double_eq(paper.points[1].x, 8);
    ck_assert_uint_eq(paper.book.n, 3); /* both series share a quantity */
}
END_TEST

START_TEST(the_command_line_replaces_what_the_figure_puts)
{
    const char *const puts[] = {"scale=10"};
    write_spec(GRID "}");
    run_spec(puts, 1);
    ck_assert_double_eq_tol(at(0, 2), 57, 1e-9);
}
END_TEST

/* Our one is 102.2, 20.187, 11.4 at 1, 8, 32, and half of it is the other series. */
START_TEST(published_values_come_in_our_units)
{
    write_spec(GRID ",\"published\":["
                    "{\"series\":\"one\",\"x\":32,\"value\":9,\"from\":\"text\",\"where\":\"1\"},"
                    "{\"series\":\"half\",\"x\":32,\"low\":50,\"high\":75,\"of\":\"one\","
                    "\"as\":\"of * (1 - value / 100)\",\"from\":\"drawing\",\"where\":\"1\"},"
                    "{\"series\":\"one\",\"low\":2,\"high\":3,\"of\":\"half\",\"crossing\":10,"
                    "\"from\":\"text\",\"where\":\"1\"}]}");
    run_spec(NULL, 0);
    const struct paper_point *last = &paper.points[2];
    struct paper_published v;
    ck_assert(paper_mark_is_of(&paper.marks[0], last));
    ck_assert(!paper_mark_is_of(&paper.marks[0], &paper.points[1]));
    ck_assert(paper_published(&paper, &paper.marks[0], last, &v));
    ck_assert(v.low == 9 && v.high == 9 && v.x_low == 32 && v.x_high == 32);
    /* 75 % less than 11.4 is 2.85, 50 % less is 5.7. */
    ck_assert(paper.marks[1].read_off && !paper.marks[0].read_off);
    ck_assert(paper_published(&paper, &paper.marks[1], &paper.points[5], &v));
    ck_assert_double_eq_tol(v.low, 2.85, 1e-9);
    ck_assert_double_eq_tol(v.high, 5.7, 1e-9);
    /* A falling curve never reaches 10 from below: no mark. */
    ck_assert(!paper_published(&paper, &paper.marks[2], last, &v));
}
END_TEST

/* Lengths of drafts as shares of all make a curve that rises. It has 5.7, 10.09, 51.1 at x of 32,
 * 8, 1, drawn over 33 - x: 1, 25, 32. It crosses 30.6 half way between (25, 10.09) and (32, 51.1):
 * at 28.5. */
START_TEST(a_crossing_scales_x)
{
    write_spec("{" HEAD "\"draw\":\"lines\",\"value\":\"v\",\"series\":{\"values\":[\"a\",\"b\"]},"
               "\"x\":{\"key\":\"n\",\"values\":[32,8,1],\"value\":\"33 - {n}\"}," QUANTITIES
               ",\"published\":[{\"series\":\"a\",\"value\":20,\"as\":\"1 + value / 100\","
               "\"of\":\"b\",\"crossing\":30.596774193548387,\"from\":\"text\",\"where\":\"1\"}]}");
    run_spec(NULL, 0);
    struct paper_published v;
    ck_assert(paper_published(&paper, &paper.marks[0], &paper.points[0], &v));
    ck_assert_double_eq_tol(v.x_low, 1.2 * 28.5, 1e-6);
    ck_assert_double_eq_tol(v.low, 30.596774193548387, 1e-12);
}
END_TEST

/* The line gives one 102.2 at x of 1, and half 5.7 at 32. A growth of 50 % from 1 to 32 is drawn at
 * 153.3, where ours is 11.4 / 102.2. Half is a fifth as much as one, so one is five times half: one
 * is drawn at 28.5, and ours is 11.4 / 5.7 = 2, or 100 % more. */
START_TEST(a_value_may_be_scaled_from_another_place_and_come_in_the_papers_unit)
{
    write_spec(GRID ",\"published\":["
                    "{\"series\":\"one\",\"x\":32,\"value\":50,\"of\":\"one\",\"of_x\":1,"
                    "\"as\":\"of * (1 + value / 100)\",\"from\":\"text\",\"where\":\"1\"},"
                    "{\"series\":\"one\",\"x\":32,\"value\":0.2,\"of\":\"half\","
                    "\"as\":\"of / value\",\"ours\":\"100 * (value / of - 1)\","
                    "\"from\":\"text\",\"where\":\"1\"}]}");
    run_spec(NULL, 0);
    const struct paper_point *last = &paper.points[2];
    struct paper_published v;
    ck_assert(paper_published(&paper, &paper.marks[0], last, &v));
    ck_assert_double_eq_tol(v.low, 153.3, 1e-9);
    ck_assert_double_eq_tol(paper_ours(&paper, &paper.marks[0], last), 11.4 / 102.2, 1e-9);
    ck_assert(paper_published(&paper, &paper.marks[1], last, &v));
    ck_assert_double_eq_tol(v.low, 28.5, 1e-9);
    ck_assert_double_eq_tol(paper_ours(&paper, &paper.marks[1], last), 100, 1e-9);
}
END_TEST

/* ---- wrong ones ---- */

static const struct {
    const char *text, *says;
} wrong[] = {
    {"{" HEAD "\"draw\":\"pie\",\"value\":\"v\"," QUANTITIES "}", "draw"},
    {"{" HEAD "\"draw\":\"bars\",\"value\":\"v\",\"colour\":1,"
     "\"put\":{\"n\":1}," QUANTITIES "}",
     "colour: unknown key"},
    {"{" HEAD "\"draw\":\"bars\",\"value\":\"w\",\"put\":{\"n\":1}," QUANTITIES "}",
     "no quantity is called w"},
    {"{" HEAD "\"draw\":\"bars\",\"value\":\"v\"," QUANTITIES "}", "nothing puts {n}"},
    {"{" HEAD "\"draw\":\"bars\",\"value\":\"v\",\"put\":{\"n\":0}," QUANTITIES "}",
     "quantities.q0.verification.drafted_tokens"},
    /* "10" is a text, as only a whole text may become a number. */
    {"{" HEAD "\"draw\":\"bars\",\"value\":\"v\",\"put\":{\"n\":1},"
     "\"quantities\":{\"v\":{\"verification\":{\"drafted_tokens\":\"{n}0\"}}}}",
     "quantities.q0.verification.drafted_tokens"},
    {"{" HEAD "\"draw\":\"bars\",\"value\":\"v\",\"put\":{\"n\":1}," QUANTITIES
     ",\"published\":[{\"series\":\"ours\",\"value\":1,\"from\":\"text\",\"where\":\"1\"}]}",
     "published[0].series: no place of series is called \"ours\""},
    {"{" HEAD "\"draw\":\"bars\",\"value\":\"v\",\"put\":{\"n\":1}," QUANTITIES
     ",\"published\":[{\"value\":1,\"as\":\"2 * of\",\"from\":\"text\",\"where\":\"1\"}]}",
     "published[0].of"},
    {"{" HEAD "\"draw\":\"bars\",\"value\":\"v\",\"put\":{\"n\":1}," QUANTITIES
     ",\"published\":[{\"value\":1,\"ours\":\"value / of\",\"from\":\"text\",\"where\":\"1\"}]}",
     "published[0].ours: goes with `of`"},
    {"{" HEAD "\"draw\":\"bars\",\"value\":\"v\",\"put\":{\"n\":1}," QUANTITIES
     ",\"published\":[{\"value\":1,\"from\":\"memory\",\"where\":\"1\"}]}",
     "published[0].from"},
    {"{" HEAD "\"draw\":\"bars\",\"value\":\"v\",\"quantities\":{}}", "quantities"},
};

START_TEST(a_wrong_specification_names_file_and_key)
{
    write_spec(wrong[_i].text);
    int rc = paper_read(&paper, path, NULL, 0, &err);
    rc = rc == 0 ? paper_expand(&paper, 1, &err) : rc;
    ck_assert_int_ne(rc, 0);
    ck_assert_uint_gt(err.n, 0);
    ck_assert_msg(strstr(err.lines[0], path) != NULL, "%s", err.lines[0]);
    ck_assert_msg(strstr(err.lines[0], wrong[_i].says) != NULL, "%s", err.lines[0]);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("shipped", .setup = setup, .teardown = teardown, .timeout_s = 120),
    LOOP_OVER(every_shipped_figure_is_sound_and_quotes_as_its_claims_do, count),
    CASE("by hand", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(points_are_expressions_over_what_their_places_put),
    TEST(the_command_line_replaces_what_the_figure_puts),
    TEST(published_values_come_in_our_units),
    TEST(a_crossing_scales_x),
    TEST(a_value_may_be_scaled_from_another_place_and_come_in_the_papers_unit),
    LOOP(a_wrong_specification_names_file_and_key, sizeof wrong / sizeof wrong[0]),
};
SUITE_MAIN("paper", suite)
