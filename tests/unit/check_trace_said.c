/* `trace` and `check-policy` on small inputs: what each prints, to which stream, with
 * which status, and what it writes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/conformance/conformance.h"
#include "experiments/figures/paper.h"
#include "experiments/shell/document.h"
#include "experiments/store/store.h"
#include "plots/figure.h"
#include "policies/registry.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "sim/base/version.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

static void has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no\n%s\nin\n%s", part, text);
}

/* ---- trace ---- */

#define LOAD "mixed:reactive_per_min=20,proactive_per_min=20,duration_s=30"

static char *printed(const struct trace *t)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    trace_print(f, t);
    (void)fclose(f);
    return text;
}

/* The trace of the workload and the seed, to standard output or a file; with what happens to the
 * machine where a file says so. */
START_TEST(a_trace_is_generated)
{
    struct err e = ERR_INIT;
    SCOPED(trace_fini) struct trace t = {0};
    ck_assert_int_eq(trace_generate(LOAD, 5, 1.0, &t, &e), 0);
    OWNED char *want = printed(&t);
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_trace, "gen", "--workload", LOAD, "--seed", "5");
    said_is(&s, EXIT_OK, want, "");
    SCOPED(said_fini)
    struct said o = COMMANDED(cmd_trace, "gen", "--workload", LOAD, "--seed", "5", "-o", "t.csv");
    said_is(&o, EXIT_OK, "", "");
    OWNED char *written = folder_text("t.csv");
    ck_assert_str_eq(written, want);
    SCOPED(said_fini) struct said usual = COMMANDED(cmd_trace, "gen", "--workload", LOAD);
    SCOPED(trace_fini) struct trace one = {0};
    ck_assert_int_eq(trace_generate(LOAD, 1, 1.0, &one, &e), 0);
    OWNED char *first = printed(&one);
    said_is(&usual, EXIT_OK, first, "");
    SCOPED(said_fini)
    struct said none = COMMANDED(cmd_trace, "gen", "--workload", LOAD, "--machine", "no.json");
    ck_assert_int_eq(none.status, EXIT_BAD_INPUT);
    has(none.err, "no.json");
}
END_TEST

/* Four requests in three sessions, one of them of two turns, of which 40 of 90 prompt tokens are
 * reused. First turns of proactive ones arrive 2 s apart: 30 a minute. */
START_TEST(a_trace_is_described)
{
    folder_put("t.csv",
               "# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"
               "output_tokens,prefix_tokens\n0,0,0,proactive,0,,40,10,0\n1,1,0,reactive,1,,30,5,0\n"
               "2,2,0,proactive,2,,20,20,0\n3,1,1,reactive,,1,60,15,40\n");
    SCOPED(said_fini) struct said s = COMMANDED(cmd_trace, "stats", "t.csv");
    OWNED char *text = squeezed(s.out);
    ck_assert_int_eq(s.status, EXIT_OK);
    ck_assert_msg(strncmp(text, "4 requests in 3 sessions, first turns over 2.0 s\n\n", 50) == 0,
                  "%s", text);
    has(text, "class requests first turns/min gap CV input mean/p50/p90/p99/max output "
              "mean/p50/p90/p99/max reuse\n");
    has(text, "\nreactive 2 - - 45/30/60/60/60 10/5/15/15/15 44.4%\n");
    has(text, "\nproactive 2 ");
    has(text, " 30/20/40/40/40 15/10/20/20/20 0.0%\n");
    SCOPED(said_fini) struct said j = COMMANDED(cmd_trace, "stats", "t.csv", "--json");
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(j.out);
    ck_assert_double_eq(json_number(tree, "requests"), 4);
    ck_assert_double_eq(json_number(tree, "sessions"), 3);
    ck_assert_double_eq(json_number(tree, "span_s"), 2);
    static const struct {
        const char *key;
        double reactive, proactive;
    } cells[] = {{"requests", 2, 2},
                 {"input_tokens_mean", 45, 30},
                 {"input_tokens_p50", 30, 20},
                 {"input_tokens_p90", 60, 40},
                 {"input_tokens_p99", 60, 40},
                 {"input_tokens_max", 60, 40},
                 {"output_tokens_mean", 10, 15},
                 {"output_tokens_p50", 5, 10},
                 {"output_tokens_p90", 15, 20},
                 {"output_tokens_p99", 15, 20},
                 {"output_tokens_max", 15, 20},
                 {"prefix_frac", 40.0 / 90.0, 0}};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        ck_assert_double_eq_tol(json_number(cJSON_GetObjectItem(tree, "reactive"), cells[i].key),
                                cells[i].reactive, 1e-12);
        ck_assert_double_eq_tol(json_number(cJSON_GetObjectItem(tree, "proactive"), cells[i].key),
                                cells[i].proactive, 1e-12);
    }
    ck_assert(!cJSON_HasObjectItem(tree, "graph") &&
              !cJSON_HasObjectItem(tree, "shareable_tokens"));
    SCOPED(said_fini) struct said none = COMMANDED(cmd_trace, "stats", "no.csv");
    ck_assert_int_eq(none.status, EXIT_BAD_INPUT);
}
END_TEST

/* A source that says no ends of answers, and left a request without one: what is lost is said to
 * people, and the trace is the rest. */
START_TEST(a_trace_is_imported_with_what_is_lost)
{
    folder_put("in.csv", "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                         "1,m,30,5,35,x\n4,m,20,0,20,x\n9.5,m,10,2,12,x\n");
    SCOPED(said_fini) struct said s = COMMANDED(cmd_trace, "import", "in.csv", "-o", "t.csv");
    said_is(&s, EXIT_OK, "",
            "xpusim: note: trace: 1 request without output tokens left out\n"
            "xpusim: note: trace: read as burstgpt: 2 requests, 2 sessions\n");
    struct err e = ERR_INIT;
    SCOPED(trace_fini) struct trace t = {0};
    ck_assert_int_eq(trace_read("t.csv", &t, &e), 0);
    ck_assert_uint_eq(t.n, 2);
    ck_assert_uint_eq(t.rows[1].input_tokens, 10);
    SCOPED(said_fini)
    struct said shown = COMMANDED(cmd_trace, "import", "in.csv", "--format", "burstgpt");
    OWNED char *want = printed(&t);
    said_is(&shown, EXIT_OK, want, s.err);
    folder_put("in.jsonl",
               "{\"object\":\"x\",\"created\":1,\"usage\":{\"prompt_tokens\":3,"
               "\"completion_tokens\":2}}\n{\"object\":\"x\",\"created\":2,\"usage\":null}\n"
               "{\"object\":\"x\",\"created\":3}\n");
    SCOPED(said_fini) struct said u = COMMANDED(cmd_trace, "import", "in.jsonl", "-o", "t.csv");
    said_is(&u, EXIT_OK, "",
            "xpusim: note: trace: 2 requests without numbers of tokens left out, the first in line "
            "2\nxpusim: note: trace: read as openai: 1 request, 1 session\n");
    folder_put("in.csv", "arrival_s,input_tokens,output_tokens,class,prefix_tokens,session_id\n"
                         "0,30,5,reactive,0,a\n3,50,5,reactive,20,a\n4,60,7,proactive,40,b\n");
    SCOPED(said_fini) struct said p = COMMANDED(cmd_trace, "import", "in.csv", "-o", "t.csv");
    said_is(&p, EXIT_OK, "",
            "xpusim: note: trace: the source does not say when answers ended; 1 gap between "
            "turns taken from arrival to arrival\n"
            "xpusim: warning: trace: the source says that a cache shared by all requests can serve "
            "40 more of 140 prompt tokens; here they are computed, because requests of different "
            "sessions share no KV (prompts with hash_ids do with --share)\n"
            "xpusim: note: trace: read as plain: 3 requests, 2 sessions\n");
    /* Notes count the losses of the whole file, of which the session of two turns is left out
     * here. */
    SCOPED(said_fini)
    struct said late = COMMANDED(cmd_trace, "import", "in.csv", "--from", "4", "-o", "t.csv");
    const char *rest = strstr(p.err, "xpusim: note: trace: read as");
    OWNED char *want_late =
        xformat("xpusim: note: trace: taken: 1 of 3 requests; notes count all of the file\n"
                "%.*sxpusim: note: trace: read as plain: 1 request, 1 session\n",
                (int)(rest - p.err), p.err);
    said_is(&late, EXIT_OK, "", want_late);
    folder_put("in.json", "[{\"conversations\": [{\"from\": \"human\", \"value\": \"12345678\"}, "
                          "{\"from\": \"gpt\", \"value\": \"1234\"}]}]");
    SCOPED(said_fini)
    struct said c = COMMANDED(cmd_trace, "import", "in.json", "--format", "sharegpt",
                              "--rate-per-min", "6", "-o", "t.csv");
    said_is(&c, EXIT_OK, "",
            "xpusim: note: trace: sharegpt holds texts: tokens are characters over "
            "--chars-per-token, arrivals and gaps are --rate-per-min and --think-s\n"
            "xpusim: note: trace: read as sharegpt: 1 request, 1 session\n");
    /* A subagent is a session, too, though it begins with another one's answer. */
    folder_put("in.json",
               "{\"hash_id_scope\": \"local\", \"block_size\": 64, \"requests\": ["
               "{\"t\": 0, \"in\": 9, \"out\": 1, \"api_time\": 1}, {\"t\": 2, "
               "\"type\": \"subagent\", \"requests\": [{\"t\": 2, \"in\": 9, \"out\": 1, "
               "\"api_time\": 1}]}, {\"t\": 5, \"in\": 9, \"out\": 1, \"api_time\": 1}]}");
    SCOPED(said_fini) struct said w = COMMANDED(cmd_trace, "import", "in.json", "-o", "t.csv");
    said_is(&w, EXIT_OK, "", "xpusim: note: trace: read as weka: 3 requests, 2 sessions\n");
    SCOPED(said_fini) struct said stats = COMMANDED(cmd_trace, "stats", "t.csv");
    ck_assert_msg(strncmp(stats.out, "3 requests in 2 sessions, ", 26) == 0, "%s", stats.out);
}
END_TEST

/* ---- check-policy ---- */

START_TEST(a_policy_is_checked)
{
    struct conformance c = {
        .ops = policy_find("fcfs"), .label = "fcfs", .params = "", .n_loads = 1};
    SCOPED(text_fini) struct text want = {0};
    uint32_t n = 0;
    for (const struct conformance_check *k = conformance_checks; k->name != NULL; k++) {
        if (conformance_applies(k, &c)) {
            text_format(&want, "ok      %s\n", k->name);
            n++;
        }
    }
    text_format(&want, "fcfs: %u of %u checks hold\n", n, n);
    SCOPED(said_fini) struct said s = COMMANDED(cmd_check_policy, "fcfs", "--loads", "1");
    said_is(&s, EXIT_OK, text_end(&want), "");
}
END_TEST

/* One load is too few to see an oracle look: the check is open, and nothing has failed. */
START_TEST(a_check_that_cannot_decide_says_so)
{
    SCOPED(said_fini) struct said s = COMMANDED(cmd_check_policy, "srpt", "--loads", "1");
    ck_assert_int_eq(s.status, EXIT_OK);
    has(s.out,
        "\nopen    decisions do not depend on what is hidden\n        not decided: srpt: it is "
        "marked as an oracle, and 1 load cannot show that\n");
    has(s.out, "\nsrpt: 7 of 8 checks hold, 1 open (--loads 40)\n");
    SCOPED(said_fini) struct said more = COMMANDED(cmd_check_policy, "srpt");
    ck_assert_int_eq(more.status, EXIT_OK);
    has(more.out, "\nsrpt: 8 of 8 checks hold\n");
}
END_TEST

/* Every parameter of sd-npu within its range, and the longest wait that it has: 10 ms for each
 * token of a prompt. Prompts of load 54 have up to 1490. */
START_TEST(no_parameter_of_a_policy_looks_like_a_stall)
{
    SCOPED(said_fini)
    struct said s =
        COMMANDED(cmd_check_policy, "sd-npu", "--load", "54", "--params", "calibrate_ms=10");
    ck_assert_int_eq(s.status, EXIT_OK);
    SCOPED(said_fini)
    struct said more =
        COMMANDED(cmd_check_policy, "sd-npu", "--load", "54", "--params", "calibrate_ms=11");
    ck_assert_int_eq(more.status, EXIT_BAD_INPUT);
}
END_TEST

/* A load has its requests, or those of a trace, and its decisions are what the run decides. */
START_TEST(a_policy_runs_one_load)
{
    struct conformance c = {.ops = policy_find("fcfs"), .label = "fcfs", .params = ""};
    struct conformance_case how = {.load = 3};
    struct scenario_request q[CONFORMANCE_MAX_REQUESTS];
    OWNED struct scenario *sc = xcalloc(1, sizeof *sc);
    uint32_t n = conformance_prepare(sc, q, &c, &how);
    scenario_fini(sc);
    OWNED char *all = xformat("%u of %u requests finished\n", n, n);
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_check_policy, "fcfs", "--load", "3", "--decisions", "log");
    said_is(&s, EXIT_OK, all, "");
    OWNED char *log = folder_text("log");
    has(log, "policy fcfs");
    static const char *const pairs[] = {"collapsed", "repeated", "hidden"};
    for (int i = 0; i < 3; i++) {
        SCOPED(said_fini)
        struct said p = COMMANDED(cmd_check_policy, "fcfs", "--load", "3", "--pair", pairs[i]);
        said_is(&p, EXIT_OK, "both runs are equal\n", "");
    }
    folder_put(
        "t.csv",
        "# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"
        "output_tokens,prefix_tokens\n0,0,0,proactive,0,,40,10,0\n1,1,0,reactive,1,,30,5,0\n");
    SCOPED(said_fini)
    struct said two = COMMANDED(cmd_check_policy, "fcfs", "--load", "3", "--trace", "t.csv");
    said_is(&two, EXIT_OK, "2 of 2 requests finished\n", "");
    OWNED char *far =
        xformat("# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,"
                "input_tokens,output_tokens,prefix_tokens\n%d,0,0,proactive,0,,40,10,0\n"
                "%d,1,0,reactive,1,,30,5,0\n",
                SCENARIO_MAX_REQUESTS - 1, SCENARIO_MAX_REQUESTS);
    folder_put("t.csv", far);
    SCOPED(said_fini)
    struct said beyond = COMMANDED(cmd_check_policy, "fcfs", "--load", "3", "--trace", "t.csv");
    OWNED char *why = xformat("t.csv: request_id %d: these are from 0 to %d", SCENARIO_MAX_REQUESTS,
                              SCENARIO_MAX_REQUESTS - 1);
    said_refused(&beyond, why);
    SCOPED(said_fini)
    struct said bad = COMMANDED(cmd_check_policy, "fcfs", "--load", "3", "--params", "device=x");
    ck_assert_int_eq(bad.status, EXIT_BAD_INPUT);
    has(bad.err, "device");
}
END_TEST

static const char idle[] =
    "read -r hello\n"
    "echo '{\"protocol\":1,\"name\":\"idle\",\"summary\":\"does nothing\"}'\n"
    "read -r init || exit 0\necho '[\"do\",[]]'\n"
    "while read -r line; do echo '[\"do\",[]]'; done\n";

/* A program that serves nobody fails every check: why, then what is left of the load, indented. */
START_TEST(a_policy_that_fails_is_told)
{
    folder_put("idle.sh", idle);
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_check_policy, "exec:sh ./idle.sh", "--loads", "1");
    ck_assert_int_eq(s.status, EXIT_CHECK_FAILED);
    uint32_t n = 0;
    const char *at = s.out;
    for (const struct conformance_check *k = conformance_checks; k->name != NULL; k++) {
        OWNED char *head = xformat("FAILED  %s\n        exec:sh ./idle.sh", k->name);
        if (strncmp(at, head, strlen(head)) != 0) {
            continue; /* it does not apply */
        }
        const char *left = strstr(at, "\n        exec:sh ./idle.sh, load ");
        const char *enough = strstr(at, ": enough to show it: 1 of ");
        const char *command =
            strstr(at, "\n          xpusim check-policy 'exec:sh ./idle.sh' --load ");
        ck_assert(left != NULL && enough != NULL && command != NULL && left < enough &&
                  enough < command);
        const char *next = strstr(at + 1, "\nFAILED  ");
        at = next != NULL ? next + 1 : strstr(command + 1, "\n") + 1;
        n++;
    }
    ck_assert_uint_eq(n, 7);
    ck_assert_str_eq(at, "exec:sh ./idle.sh: 0 of 7 checks hold\n");
    SCOPED(said_fini)
    struct said one = COMMANDED(cmd_check_policy, "exec:sh ./idle.sh", "--load", "1");
    ck_assert_int_eq(one.status, EXIT_CHECK_FAILED);
    ck_assert_msg(strncmp(one.out, "0 of 9 requests finished\npolicy idle, seed ", 43) == 0, "%s",
                  one.out);
    has(one.out, "stalled: 7 requests live");
    has(one.out, "\n  requests: 7 live: ");
    SCOPED(said_fini)
    struct said pair =
        COMMANDED(cmd_check_policy, "exec:sh ./idle.sh", "--load", "1", "--pair", "repeated");
    ck_assert_int_eq(pair.status, EXIT_CHECK_FAILED);
    has(pair.out, "a run fails: policy idle, seed ");
    has(pair.out, "stalled: 7 requests live");
}
END_TEST

static const struct suite_row rows[] = {
    CASE("traces and checks", .setup = folder_enter, .teardown = folder_leave, .timeout_s = 60),
    TEST(a_trace_is_generated),
    TEST(a_trace_is_described),
    TEST(a_trace_is_imported_with_what_is_lost),
    TEST(a_policy_is_checked),
    TEST(a_check_that_cannot_decide_says_so),
    TEST(no_parameter_of_a_policy_looks_like_a_stall),
    TEST(a_policy_runs_one_load),
    TEST(a_policy_that_fails_is_told),
};
SUITE_MAIN("traces and checks", rows)
