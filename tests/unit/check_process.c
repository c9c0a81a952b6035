/* Processes answer lines with lines. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policies/external/process.h"
#include "tests/helpers/suite.h"

static void start_limited(struct process *p, const char *script, double limit_s)
{
    char sh[] = "sh";
    char c[] = "-c";
    char text[128];
    char *argv[] = {sh, c, text, NULL};
    (void)snprintf(text, sizeof text, "%s", script);
    ck_assert_int_eq(process_start(p, argv, NULL, limit_s), 0);
}

static void start(struct process *p, const char *script)
{
    start_limited(p, script, 60.0);
}

/* The process writes its line and ends before any message has come. Its line is received first, and
 * then how it ended. */
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

/* Reads its message in time, answers, and ends. */
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

/* With room for less than its two pipes it says why, and leaves no file open. */
START_TEST(a_start_that_fails_says_why)
{
    struct rlimit was;
    char sh[] = "true";
    char *argv[] = {sh, NULL};
    int first = dup(0); /* the least that is free */
    (void)close(first);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
    for (int room = 0; room < 4; room++) {
        struct process p;
        struct rlimit few = {(rlim_t)(first + room), was.rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        ck_assert_int_lt(process_start(&p, argv, NULL, 60.0), 0);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
        ck_assert_msg(strstr(p.failure, strerror(EMFILE)) != NULL, "%d: %s", room, p.failure);
        ck_assert_int_eq(fcntl(first, F_GETFD), -1);
        ck_assert_int_eq(fcntl(first + 1, F_GETFD), -1);
    }
}
END_TEST

/* A process that takes a page of a megabyte each 50 ms, or prints a letter, is never still for half
 * a second: the limit is one of the whole message. Reading it all would take 12 s, and the line
 * never ends. */
START_TEST(a_little_at_a_time_is_late_too)
{
    struct process p;
    static char message[1 << 20];
    memset(message, 'x', sizeof message);
    start_limited(&p, "while sleep 0.05; do dd bs=4096 count=1 status=none >/dev/null; done", 0.5);
    ck_assert_int_lt(process_send(&p, message, sizeof message), 0);
    ck_assert_str_eq(p.failure, "did not read its messages within 0.5 s (limit_s)");
    process_end(&p);
    start_limited(&p, "while sleep 0.05; do printf x; done", 0.5);
    ck_assert_ptr_null(process_receive(&p));
    ck_assert_str_eq(p.failure, "gave no answer within 0.5 s (limit_s)");
    process_end(&p);
}
END_TEST

static const struct suite_row rows[] = {
    TEST(who_spoke_and_left_is_heard),
    TEST(an_answer_then_the_end),
    TEST(a_start_that_fails_says_why),
    TEST(a_little_at_a_time_is_late_too),
};
SUITE_MAIN("processes", rows)
