/* The process that forks for the runs of a policy (policies/external/zygote.h), with one in its
 * place that writes down what it is asked. Runs start a program each where it fails, so no result
 * shows that. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policies/external/zygote.h"
#include "tests/helpers/suite.h"

/* Answers "look" with 4 and 7, "wait" with 5 and 7, and a request with descriptors by writing it to
 * the second of them. After four requests it ends. */
static const char answers[] =
    "import array, os, socket, sys\n"
    "line = sys.stdin.readline()\n"
    "print('ready' if len(line) > 8 and line.split()[0].isdigit() else 'no filter', flush=True)\n"
    "s = socket.socket(fileno=3)\n"
    "for i in range(4):\n"
    "    text, more, _, _ = s.recvmsg(64, socket.CMSG_SPACE(16))\n"
    "    fds = array.array('i')\n"
    "    for _, _, data in more:\n"
    "        fds.frombytes(data)\n"
    "    if fds:\n"
    "        os.write(fds[1], text + b' %d\\n' % len(fds))\n"
    "        for fd in fds:\n"
    "            os.close(fd)\n"
    "        s.send(b'1000000 0')\n"
    "    else:\n"
    "        s.send(b'%d 7' % (len(text) + (text == b'wait')))\n";

static char python[] = "/usr/bin/python3";
static char option[] = "-c";

static int descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

static bool can_run(void)
{
    const char *why = NULL;
    if (!jail_works(&why) || access(python, X_OK) != 0) {
        printf("skipped: %s\n", why != NULL ? why : "no python3");
        return false;
    }
    return true;
}

static bool start(struct zygote *z, const char *program)
{
    static const char *const reads[] = {"/usr", NULL};
    const struct jail jail = {.reads = reads, .folder = "/"};
    char *argv[] = {python, option, (char *)(uintptr_t)program, NULL};
    return zygote_start(z, argv, &jail, 20.0);
}

START_TEST(it_is_asked_and_answers)
{
    struct zygote z;
    int pipes[2];
    int status = 0;
    if (!can_run()) {
        return;
    }
    int before = descriptors();
    ck_assert(start(&z, answers));
    ck_assert_int_gt(z.pid, 0);
    ck_assert_int_eq(z.owner, getpid());
    ck_assert_int_ge(z.control, 0);
    ck_assert(!z.useless);
    ck_assert_int_eq(fcntl(z.control, F_GETFD), FD_CLOEXEC); /* no child has it */
    ck_assert_int_eq(descriptors(), before + 1);             /* the control socket */
    ck_assert_int_eq(pipe(pipes), 0);
    const int fds[ZYGOTE_FDS] = {pipes[0], pipes[1], pipes[0], pipes[1]};
    for (int n = 2; n <= ZYGOTE_FDS; n += 2) {
        char got[64] = "";
        ck_assert_int_eq(zygote_fork(&z, n == 2 ? "" : "0x2000", fds, n), 1000000);
        ck_assert_int_gt(read(pipes[0], got, sizeof got - 1), 0);
        ck_assert_str_eq(got, n == 2 ? "fork 2\n" : "fork 0x2000 4\n");
    }
    ck_assert_int_eq(zygote_wait(&z, &status, false), 4);
    ck_assert_int_eq(status, 7);
    status = 0;
    ck_assert_int_eq(zygote_wait(&z, &status, true), 5);
    ck_assert_int_eq(status, 7);
    /* It has ended. Each caller is informed of that, and no further request is sent. */
    ck_assert_int_eq(zygote_wait(&z, &status, true), -1);
    ck_assert_int_eq(status, SIGKILL);
    ck_assert(z.useless);
    ck_assert_int_eq(z.control, -1);
    ck_assert_int_eq(descriptors(), before + 2); /* the pipe */
    status = 0;
    ck_assert_int_eq(zygote_wait(&z, &status, false), -1);
    ck_assert_int_eq(status, SIGKILL);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}
END_TEST

START_TEST(a_fork_that_nobody_makes_is_none)
{
    static const char ends[] = "import sys\nsys.stdin.readline()\nprint('ready', flush=True)\n";
    struct zygote z;
    if (!can_run()) {
        return;
    }
    int before = descriptors();
    ck_assert(start(&z, ends));
    const int fds[2] = {0, 1};
    ck_assert_int_eq(zygote_fork(&z, "", fds, 2), -1);
    ck_assert(z.useless);
    ck_assert_int_eq(z.control, -1);
    ck_assert_int_eq(descriptors(), before);
}
END_TEST

/* A program that ends early, or prints anything but that it is ready, is useless, and leaves
 * nothing open. */
START_TEST(what_does_not_start_is_useless)
{
    static const char *const programs[] = {
        "raise SystemExit(3)", "import sys\nsys.stdin.readline()\nprint('Ready', flush=True)",
        "print('', flush=True)"};
    struct zygote z;
    if (!can_run()) {
        return;
    }
    int before = descriptors();
    ck_assert(!start(&z, programs[_i]));
    ck_assert(z.useless);
    ck_assert_int_eq(z.control, -1);
    ck_assert_int_eq(z.owner, getpid()); /* it is not tried again */
    ck_assert_int_eq(descriptors(), before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* nor a process left */
}
END_TEST

/* ---- processes that are late ---- */

static void run(struct process *p, const char *script, double limit_s)
{
    char sh[] = "sh";
    char c[] = "-c";
    char *argv[] = {sh, c, (char *)(uintptr_t)script, NULL};
    ck_assert_int_eq(process_start(p, argv, NULL, limit_s), 0);
}

START_TEST(limits_and_ends_are_named)
{
    static const struct {
        const char *script, *failure;
        double limit_s;
    } cases[] = {
        {"sleep 60", "gave no answer within 0.05 s (limit_s)", 0.05},
        {"exit 125", "its process could not be confined", 20.0},
        {"exit 127", "there is no such program", 20.0},
        {"kill -9 $$", "its process was killed by signal 9 (Killed)", 20.0},
        {"exit 0", "its process ended with status 0", 20.0},
    };
    struct process p;
    int before = descriptors();
    run(&p, cases[_i].script, cases[_i].limit_s);
    ck_assert_ptr_null(process_receive(&p));
    ck_assert_str_eq(p.failure, cases[_i].failure);
    process_end(&p);
    ck_assert_int_eq(p.pid, 0);
    ck_assert_int_eq(descriptors(), before);
    process_end(&p); /* any number of times */
}
END_TEST

/* Two lines in one go: the second is unasked, and handed out next; a line of more than one read is
 * whole. */
START_TEST(lines_come_one_by_one)
{
    struct process p;
    run(&p,
        "printf 'one\\ntwo'; sleep 0.05; printf 'more\\n'; head -c 200000 /dev/zero | tr '\\0' x; "
        "echo; "
        "read a; echo \"$a\"",
        20.0);
    ck_assert_str_eq(process_receive(&p), "one");
    ck_assert_str_eq(process_receive(&p), "twomore");
    const char *wide = process_receive(&p);
    ck_assert_uint_eq(strlen(wide), 200000);
    ck_assert_uint_eq(strspn(wide, "x"), 200000);
    ck_assert_uint_eq(process_unasked(&p), 0);
    ck_assert_int_eq(process_send(&p, "back\n", 5), 0);
    ck_assert_str_eq(process_receive(&p), "back");
    process_end(&p);
}
END_TEST

START_TEST(what_was_not_asked_for_is_counted)
{
    struct process p;
    run(&p, "printf 'one\\ntwo\\n'", 20.0);
    ck_assert_str_eq(process_receive(&p), "one");
    ck_assert_uint_eq(process_unasked(&p), 4);
    ck_assert_str_eq(process_receive(&p), "two");
    ck_assert_uint_eq(process_unasked(&p), 0);
    ck_assert_ptr_null(process_receive(&p));
    process_end(&p);
}
END_TEST

static const struct suite_row rows[] = {
    CASE("zygote", .timeout_s = 60),         TEST(it_is_asked_and_answers),
    TEST(a_fork_that_nobody_makes_is_none),  LOOP(what_does_not_start_is_useless, 3),
    LOOP(limits_and_ends_are_named, 5),      TEST(lines_come_one_by_one),
    TEST(what_was_not_asked_for_is_counted),
};
SUITE_MAIN("zygote", rows)
