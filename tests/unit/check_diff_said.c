/* `diff` and `bisect`: where two runs part as people see it, with the states before it, and which
 * run failed. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/diff/two_runs.h"
#include "sim/base/json.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

#define HEAD                                                                                       \
    "# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"            \
    "output_tokens,prefix_tokens\n"

static void has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no\n%s\nin\n%s", part, text);
}

/* Serves nobody. */
static const char idle[] =
    "read -r hello\n"
    "echo '{\"protocol\":1,\"name\":\"idle\",\"summary\":\"does nothing\"}'\n"
    "read -r init || exit 0\necho '[\"do\",[]]'\n"
    "while read -r line; do echo '[\"do\",[]]'; done\n";

/* ---- logs ---- */

/* The fifth of six decisions is another one, or there is none. */
START_TEST(logs_part_at_a_decision)
{
    static const char *const fifth[] = {"5 50 e\n6 60 f\n", "5 51 e\n6 60 f\n", ""};
    static const char *const says[] = {"5 50 e", "5 51 e", "(no further decision)"};
    for (int i = 0; i < 9; i++) {
        int a = i / 3;
        int b = i % 3;
        OWNED char *x = xformat("policy a\n1 10 a\n2 20 b\n3 30 c\n4 40 d\n%s", fifth[a]);
        OWNED char *y = xformat("policy b\n1 10 a\n2 20 b\n3 30 c\n4 40 d\n%s", fifth[b]);
        folder_put("a.log", x);
        folder_put("b.log", y);
        SCOPED(said_fini) struct said s = COMMANDED(cmd_diff, "a.log", "b.log");
        OWNED char *is = squeezed(s.out);
        OWNED char *want = a == b ? xformat("no difference in %d decisions\n", a == 2 ? 4 : 6)
                                  : xformat("decision 5 is the first that differs (epoch, instant "
                                            "in ns, action)\n1 10 a\n2 20 b\n3 30 c\n4 40 d\n"
                                            "A %s\nB %s\n",
                                            says[a], says[b]);
        ck_assert_str_eq(is, want);
        ck_assert_str_eq(s.err, "");
        ck_assert_int_eq(s.status, a == b ? EXIT_OK : EXIT_CHECK_FAILED);
    }
    folder_put("b.log", "policies\n");
    SCOPED(said_fini) struct said s = COMMANDED(cmd_diff, "a.log", "b.log");
    said_refused(&s, "b.log: not a decision log (`xpusim run --decisions`)");
    folder_put("b.log", "polic");
    SCOPED(said_fini) struct said cut = COMMANDED(cmd_diff, "a.log", "b.log");
    said_refused(&cut, "b.log: not a decision log (`xpusim run --decisions`)");
}
END_TEST

/* ---- runs ---- */

/* Two runs that differ in the prompt of request 2, which is served behind 0. */
START_TEST(states_are_those_of_both_sides)
{
    folder_put("a.csv", HEAD "0,0,0,proactive,0,,50,2,0\n1,1,0,proactive,0.01,,100,2,0\n"
                             "2,2,0,reactive,0.02,,200,2,0\n");
    folder_put("b.csv", HEAD "0,0,0,proactive,0,,50,2,0\n1,1,0,proactive,0.01,,100,2,0\n"
                             "2,2,0,reactive,0.02,,250,2,0\n");
    SCOPED(said_fini)
    struct said s =
        COMMANDED(cmd_diff, "--policy", "edf", "--trace", "a.csv", "--b-trace", "b.csv");
    ck_assert_int_eq(s.status, EXIT_CHECK_FAILED);
    OWNED char *is = squeezed(s.out);
    const char *states = strstr(is, "\n\nstate just before: in both, only in A, only in B\n");
    ck_assert_ptr_nonnull(states);
    ck_assert_str_eq(
        strstr(states, "request 0"),
        "request 0 (proactive, decode): prompt 50, kv 50, generated 1, preempted 0\n"
        "request 1 (proactive, queued): prompt 100, kv 0, generated 0, preempted 0\n"
        "A request 2 (reactive, queued): prompt 200, kv 0, generated 0, preempted 0\n"
        "B request 2 (reactive, queued): prompt 250, kv 0, generated 0, preempted 0\n");
    SCOPED(said_fini)
    struct said data =
        COMMANDED(cmd_diff, "--policy", "edf", "--trace", "a.csv", "--b-trace", "b.csv", "--json");
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(data.out);
    ck_assert_int_eq(data.status, EXIT_CHECK_FAILED);
    ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(tree, "differs")));
    ck_assert_str_eq(cJSON_GetObjectItem(tree, "message_a")->valuestring, "");
    ck_assert_str_eq(cJSON_GetObjectItem(tree, "message_b")->valuestring, "");
    has(cJSON_GetObjectItem(tree, "state_a")->valuestring, "prompt 200,");
    has(cJSON_GetObjectItem(tree, "state_b")->valuestring, "prompt 250,");
    OWNED char *a = xformat("\nA %s\nB %s\n\n", cJSON_GetObjectItem(tree, "a")->valuestring,
                            cJSON_GetObjectItem(tree, "b")->valuestring);
    has(is, a);
}
END_TEST

/* Noise is drawn from each side's seed. Side B has that of both unless it has its own. */
START_TEST(a_side_has_its_own_seed)
{
    folder_put("a.csv", HEAD "0,0,0,proactive,0,,50,8,0\n1,1,0,proactive,0.01,,100,8,0\n");
    static const char *const seeds[][2] = {{"2", "2"}, {"2", "3"}, {"3", "2"}};
    for (int i = 0; i < 3; i++) {
        SCOPED(said_fini)
        struct said s =
            COMMANDED(cmd_diff, "--policy", "edf", "--trace", "a.csv", "--set",
                      "sim.truth_sigma=0.3", "--seed", seeds[i][0], "--b-seed", seeds[i][1]);
        ck_assert_int_eq(s.status, i == 0 ? EXIT_OK : EXIT_CHECK_FAILED);
    }
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_diff, "--policy", "edf", "--trace", "a.csv", "--set",
                              "sim.truth_sigma=0.3", "--seed", "3");
    ck_assert_int_eq(s.status, EXIT_OK);
}
END_TEST

/* Two policies that serve nobody decide equally, and both runs fail. Each failure names its run, so
 * these lines differ. */
START_TEST(notes_of_a_failed_run_are_no_decisions)
{
    folder_put("idle.sh", idle);
    folder_put("idle2.sh", idle);
    folder_put("t.csv", HEAD "0,0,0,proactive,0,,40,10,0\n");
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_diff, "--policy", "exec:sh ./idle.sh", "--b-policy",
                              "exec:sh ./idle2.sh", "--trace", "t.csv");
    ck_assert_int_eq(s.status, EXIT_CHECK_FAILED);
    ck_assert_int_eq(strncmp(s.out, "run A failed: policy idle, seed ", 32), 0);
    has(s.out, "\nrun B failed: policy idle, seed ");
    has(s.out, "\nno difference in 0 decisions\n");
    SCOPED(said_fini)
    struct said b = COMMANDED(cmd_bisect, "--policy", "exec:sh ./idle.sh", "--b-policy",
                              "exec:sh ./idle2.sh", "--trace", "t.csv", "-o", "least.csv", "-q");
    ck_assert_int_eq(b.status, EXIT_CHECK_FAILED);
    has(b.out, "\nno difference on 1 request\n");
}
END_TEST

/* Which of both runs failed. */
START_TEST(a_failed_side_is_named)
{
    static const char *const policies[2] = {"exec:sh ./idle.sh", "fcfs"};
    folder_put("idle.sh", idle);
    folder_put("t.csv",
               "# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"
               "output_tokens,prefix_tokens\n0,0,0,proactive,0,,40,10,0\n");
    for (int bad = 0; bad < 2; bad++) {
        SCOPED(said_fini)
        struct said s =
            COMMANDED(cmd_bisect, "--policy", policies[bad], "--b-policy", policies[1 - bad],
                      "--trace", "t.csv", "--max-tests", "1", "-o", "least.csv", "-q");
        ck_assert_int_eq(s.status, EXIT_OK);
        has(s.out,
            bad == 0 ? "run A failed: policy idle, seed " : "run B failed: policy idle, seed ");
        ck_assert_ptr_null(strstr(s.out, bad == 0 ? "run B failed" : "run A failed"));
        has(s.out, "\nthe difference needs 1 of 1 request (");
    }
}
END_TEST

/* A command that compares many pairs in one process, as the gate does, would run out of files. */
START_TEST(a_log_that_is_done_with_is_closed)
{
    struct two_runs_log l = {.log = tmpfile()};
    int fd = fileno(l.log);
    ck_assert_int_ne(fcntl(fd, F_GETFD), -1);
    two_runs_log_fini(&l);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
    ck_assert_ptr_null(l.log);
}
END_TEST

static const struct suite_row rows[] = {
    CASE("diff", .setup = folder_enter, .teardown = folder_leave, .timeout_s = 60),
    TEST(logs_part_at_a_decision),
    TEST(states_are_those_of_both_sides),
    TEST(a_side_has_its_own_seed),
    TEST(notes_of_a_failed_run_are_no_decisions),
    TEST(a_failed_side_is_named),
    TEST(a_log_that_is_done_with_is_closed),
};
SUITE_MAIN("diff and bisect", rows)
