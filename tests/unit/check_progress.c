/* The line that shows how far a command is. Its clock began when the test says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/shell/progress.h"
#include "sim/base/clock.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

/* Line that is printed for `done` of `total` runs after 5 s. */
static char *line(bool on, uint64_t total, uint64_t done)
{
    struct hearing h;
    struct progress p;
    hearing_begin(&h);
    progress_start(&p, on, total);
    p.start_s -= 5.0;
    progress_show(&p, done);
    SCOPED(said_fini) struct said s = hearing_end(&h);
    ck_assert_str_eq(s.out, "");
    return xstrdup(s.err);
}

/* A line begins so, and its numbers are those of 5 s or somewhat more. */
static void is_line(const char *line, const char *begins, double per_s, double left_s)
{
    double per = 0.0;
    double left = 0.0;
    size_t n = strlen(begins);
    int end = 0;
    ck_assert_msg(strncmp(line, begins, n) == 0, "%s", line);
    ck_assert_int_eq(sscanf(line + n, " runs, %lf per s, %lf s left   %n", &per, &left, &end), 2);
    ck_assert_str_eq(line + n + end, "");
    ck_assert(0.5 * per_s - 0.5 <= per && per <= per_s + 0.5);
    ck_assert(left_s - 0.5 <= left && left <= 2.0 * left_s + 0.5);
}

/* 30 cells, of which those are full that are done whole; as fast as until now. */
START_TEST(the_bar_is_what_is_done)
{
    static const struct {
        uint64_t total, done;
        const char *begins;
        double per_s, left_s;
    } cases[] = {
        {400, 100, "\r[#######.......................] 100 of 400", 20, 15},
        {30, 29, "\r[#############################.] 29 of 30", 6, 0},
        {30, 30, "\r[##############################] 30 of 30", 6, 0},
        {31, 1, "\r[..............................] 1 of 31", 0, 150},
        {9, 0, "\r[..............................] 0 of 9", 0, 0},
        {0, 0, "\r[##############################] 0 of 0", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED char *is = line(true, cases[i].total, cases[i].done);
        is_line(is, cases[i].begins, cases[i].per_s, cases[i].left_s);
        OWNED char *none = line(false, cases[i].total, cases[i].done);
        ck_assert_str_eq(none, "");
    }
}
END_TEST

/* Not again within 0.2 s; what was drawn is cleared, and nothing else. */
START_TEST(it_is_drawn_now_and_then_and_cleared)
{
    struct hearing h;
    struct progress p;
    hearing_begin(&h);
    progress_start(&p, true, 4);
    progress_end(&p);
    progress_show(&p, 1);
    p.shown_s = clock_now_s() + 60.0;
    progress_show(&p, 2);
    p.shown_s = clock_now_s() - 0.25;
    progress_show(&p, 4);
    progress_end(&p);
    SCOPED(said_fini) struct said s = hearing_end(&h);
    static const char *const parts[] = {"\r[#######.......................] 1 of 4 runs, ",
                                        "\r[##############################] 4 of 4 runs, "};
    ck_assert_int_eq(strncmp(s.err, parts[0], strlen(parts[0])), 0);
    const char *second = strchr(s.err + 1, '\r');
    ck_assert_int_eq(strncmp(second, parts[1], strlen(parts[1])), 0);
    OWNED char *cleared = xformat("\r%100s\r", "");
    ck_assert_str_eq(strchr(second + 1, '\r'), cleared);
}
END_TEST

static const struct suite_row rows[] = {
    CASE("progress"),
    TEST(the_bar_is_what_is_done),
    TEST(it_is_drawn_now_and_then_and_cleared),
};
SUITE_MAIN("progress", rows)
