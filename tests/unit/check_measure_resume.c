/* A measurement was interrupted. These tests check its files byte by byte, the place where it
 * continues, and refusals. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/commands/measure_resume.h"
#include "sim/base/text.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

#define WHAT "2 blas devices=a,b"

static struct err err;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    folder_enter();
}

static void teardown(void)
{
    err_fini(&err);
    folder_leave();
}

static struct measure_resume *opened(const char *path, const char *what)
{
    struct measure_resume *r = measure_resume_open(path, what, &err);
    ck_assert_msg(r != NULL, "%s", err.n > 0 ? err.lines[0] : "no error");
    return r;
}

static void holds(const char *name, const char *want)
{
    OWNED char *text = folder_text(name);
    ck_assert_str_eq(text, want);
}

static bool is_there(const char *name)
{
    return access(name, F_OK) == 0;
}

/* Two steps, then a third that is not complete: its row goes when the next try begins, which says
 * so. The state is a number of ten places, one of twelve, and what it is. */
START_TEST(it_goes_on_behind_the_last_whole_step)
{
    struct measure_resume *r = opened("m.csv", WHAT);
    ck_assert_uint_eq(measure_resume_steps(r), 0);
    FILE *f = measure_resume_stream(r);
    (void)fputs("head\none\n", f);
    measure_resume_step(r, 1);
    ck_assert_uint_eq(measure_resume_steps(r), 1);
    holds("m.csv.partial.state", "         1            9 " WHAT "\n");
    (void)fputs("two\n", f);
    measure_resume_step(r, 2);
    (void)fputs("half of th", f);
    ck_assert_int_eq(measure_resume_close(r, false, &err), 0);
    holds("m.csv.partial", "head\none\ntwo\nhalf of th");
    holds("m.csv.partial.state", "         2           13 " WHAT "\n");
    ck_assert(!is_there("m.csv"));
    struct hearing h;
    hearing_begin(&h);
    r = opened("m.csv", WHAT);
    SCOPED(said_fini) struct said s = hearing_end(&h);
    said_is(&s, 0, "",
            "xpusim: note: going on after 2 steps of an interrupted measurement "
            "(m.csv.partial)\n");
    ck_assert_uint_eq(measure_resume_steps(r), 2);
    (void)fputs("three\n", measure_resume_stream(r));
    measure_resume_step(r, 3);
    holds("m.csv.partial", "head\none\ntwo\nthree\n");
    holds("m.csv.partial.state", "         3           19 " WHAT "\n");
    ck_assert_int_eq(measure_resume_close(r, true, &err), 0);
    holds("m.csv", "head\none\ntwo\nthree\n");
    ck_assert(!is_there("m.csv.partial") && !is_there("m.csv.partial.state"));
    ck_assert_uint_eq(err.n, 0);
}
END_TEST

/* Without a step there is nothing to continue from, and nothing is left. A complete one that has no
 * step is still the file. */
START_TEST(nothing_is_left_of_no_step)
{
    struct measure_resume *r = opened("m.csv", WHAT);
    (void)fputs("head\n", measure_resume_stream(r));
    ck_assert_int_eq(measure_resume_close(r, false, &err), 0);
    ck_assert(!is_there("m.csv") && !is_there("m.csv.partial") && !is_there("m.csv.partial.state"));
    r = opened("m.csv", WHAT);
    (void)fputs("head\n", measure_resume_stream(r));
    ck_assert_int_eq(measure_resume_close(r, true, &err), 0);
    holds("m.csv", "head\n");
    ck_assert(!is_there("m.csv.partial") && !is_there("m.csv.partial.state"));
}
END_TEST

static void begun(void)
{
    struct measure_resume *r = opened("m.csv", WHAT);
    (void)fputs("head\none\n", measure_resume_stream(r));
    measure_resume_step(r, 1);
    ck_assert_int_eq(measure_resume_close(r, false, &err), 0);
}

static void refused(const char *path, const char *what, const char *why)
{
    ck_assert_ptr_null(measure_resume_open(path, what, &err));
    ck_assert_uint_eq(err.n, 1);
    ck_assert_str_eq(err.lines[0], why);
    err_fini(&err);
}

START_TEST(another_measurement_is_refused)
{
    begun();
    refused("m.csv", WHAT " alone",
            "m.csv.partial: is of another measurement (" WHAT "): remove it, or give another -o");
    holds("m.csv.partial", "head\none\n");
    /* Rows that are gone, or a byte fewer than the state says, are not those. */
    static const char why[] =
        "m.csv.partial: does not hold what m.csv.partial.state says: remove both";
    ck_assert_int_eq(truncate("m.csv.partial", 8), 0);
    refused("m.csv", WHAT, why);
    holds("m.csv.partial", "head\none");
    ck_assert_int_eq(remove("m.csv.partial"), 0);
    refused("m.csv", WHAT, why);
}
END_TEST

/* A state that cannot be read is none: it begins again. */
START_TEST(a_state_of_another_form_is_none)
{
    static const char *const bad[] = {"", "x 9 " WHAT "\n", "1\n", "1 x " WHAT "\n"};
    begun();
    folder_put("m.csv.partial.state", bad[_i]);
    struct measure_resume *r = opened("m.csv", WHAT);
    ck_assert_uint_eq(measure_resume_steps(r), 0);
    holds("m.csv.partial", "");
    ck_assert_int_eq(measure_resume_close(r, false, &err), 0);
}
END_TEST

START_TEST(long_words_are_refused)
{
    char path[4097];
    memset(path, 'p', sizeof path);
    path[4096] = '\0';
    refused(path, WHAT, "-o: a path this long is not taken");
    path[4095] = '\0'; /* the longest that is taken: no such file can be */
    ck_assert_ptr_null(measure_resume_open(path, WHAT, &err));
    ck_assert_str_ne(err.lines[0], "-o: a path this long is not taken");
    err_fini(&err);
    char what[465];
    memset(what, 'w', sizeof what);
    what[464] = '\0';
    refused("m.csv", what,
            "--devices and --name: together longer than 336 bytes: two measurements with equal "
            "beginnings would pass for one");
    what[463] = '\0';
    struct measure_resume *r = opened("m.csv", what);
    (void)fputs("a", measure_resume_stream(r));
    measure_resume_step(r, 1);
    ck_assert_int_eq(measure_resume_close(r, false, &err), 0);
    OWNED char *want = xformat("         1            1 %s\n", what);
    holds("m.csv.partial.state", want);
    struct hearing h;
    hearing_begin(&h);
    r = opened("m.csv", what); /* all of it is compared */
    SCOPED(said_fini) struct said s = hearing_end(&h);
    ck_assert_uint_eq(measure_resume_steps(r), 1);
    ck_assert_int_eq(measure_resume_close(r, true, &err), 0);
}
END_TEST

/* A pipe cannot be replaced as a file is: it gets the rows as they come, and no other file is
 * made. */
START_TEST(a_pipe_is_written_through)
{
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    FILE *in = fopen("pipe", "r+");
    ck_assert_ptr_nonnull(in);
    struct measure_resume *r = opened("pipe", WHAT);
    (void)fputs("row\n", measure_resume_stream(r));
    measure_resume_step(r, 1);
    ck_assert_uint_eq(measure_resume_steps(r), 1);
    ck_assert_int_eq(measure_resume_close(r, true, &err), 0);
    char line[8] = "";
    ck_assert_ptr_nonnull(fgets(line, sizeof line, in));
    ck_assert_str_eq(line, "row\n");
    (void)fclose(in);
    ck_assert(!is_there("pipe.partial") && !is_there("pipe.partial.state"));
    refused("no/m.csv", WHAT, "no/m.csv: cannot write: No such file or directory");
}
END_TEST

/* A file that cannot take its place is said, and the rows stay. */
START_TEST(rows_stay_where_they_cannot_be_moved)
{
    struct measure_resume *r = opened("m.csv", WHAT);
    (void)fputs("row\n", measure_resume_stream(r));
    measure_resume_step(r, 1);
    ck_assert_int_eq(mkdir("m.csv", 0777), 0);
    ck_assert_int_eq(measure_resume_close(r, true, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    ck_assert_str_eq(err.lines[0], "m.csv: cannot write: Is a directory");
    holds("m.csv.partial", "row\n");
}
END_TEST

static const struct suite_row rows[] = {
    CASE("files", .setup = setup, .teardown = teardown),
    TEST(it_goes_on_behind_the_last_whole_step),
    TEST(nothing_is_left_of_no_step),
    TEST(another_measurement_is_refused),
    LOOP(a_state_of_another_form_is_none, 4),
    TEST(long_words_are_refused),
    TEST(a_pipe_is_written_through),
    TEST(rows_stay_where_they_cannot_be_moved),
};
SUITE_MAIN("an interrupted measurement", rows)
