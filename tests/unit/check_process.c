/* Processes that answer lines with lines. */

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "policies/external/process.h"
#include "tests/helpers/suite.h"

static void start(struct process *p, const char *script)
{
    char sh[] = "sh";
    char c[] = "-c";
    char text[128];
    char *argv[] = {sh, c, text, NULL};
    (void)snprintf(text, sizeof text, "%s", script);
    ck_assert_int_eq(process_start(p, argv, NULL, 60.0), 0);
}

/* Writes what it is told to and goes, before anybody has spoken to it: what it said is heard, then
 * how it ended. */
START_TEST(who_spoke_and_left_is_heard)
{
    struct process p;
    siginfo_t gone;
    start(&p, "echo a line; exit 7");
    ck_assert_int_eq(waitid(P_PID, (id_t)p.pid, &gone, WEXITED | WNOWAIT), 0);
    ck_assert_int_lt(process_send(&p, "hello\n", 6), 0);
    ck_assert_str_eq(p.failure, "its process ended with status 7");
    ck_assert_str_eq(process_receive(&p), "a line");
    ck_assert_ptr_null(process_receive(&p));
    ck_assert_str_eq(p.failure, "its process ended with status 7");
    process_end(&p);
}
END_TEST

/* The same of one that is spoken to in time. */
START_TEST(an_answer_then_the_end)
{
    struct process p;
    start(&p, "read line; echo \"$line too\"; exit 3");
    ck_assert_int_eq(process_send(&p, "hello\n", 6), 0);
    ck_assert_str_eq(process_receive(&p), "hello too");
    ck_assert_ptr_null(process_receive(&p));
    ck_assert_str_eq(p.failure, "its process ended with status 3");
    process_end(&p);
}
END_TEST

static const struct suite_row rows[] = {
    TEST(who_spoke_and_left_is_heard),
    TEST(an_answer_then_the_end),
};
SUITE_MAIN("processes", rows)
