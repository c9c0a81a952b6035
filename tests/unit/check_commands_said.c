/* Whole commands on small inputs: what each prints, to which stream, with which status, and what it
 * writes. Numbers are counted by hand, or taken from the functions that a command is to ask. */
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

static void has_not(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "%s\nin\n%s", part, text);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
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
    has(text, "class requests per min gap CV input mean/p50/p90/p99/max output "
              "mean/p50/p90/p99/max reuse\n");
    has(text, "\nreactive 2 nan nan 45/30/60/60/60 10/5/15/15/15 44.4%\n");
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
            "xpusim: note: trace: 1 requests without output tokens left out\n"
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
    folder_put("in.csv", "arrival_s,input_tokens,output_tokens,class,prefix_tokens,session_id\n"
                         "0,30,5,reactive,0,a\n3,50,5,reactive,20,a\n4,60,7,proactive,40,b\n");
    SCOPED(said_fini) struct said p = COMMANDED(cmd_trace, "import", "in.csv", "-o", "t.csv");
    said_is(&p, EXIT_OK, "",
            "xpusim: note: trace: the source does not say when answers ended; 1 gaps before a next "
            "turn are from arrival to arrival\n"
            "xpusim: warning: trace: the source says that a cache shared by all requests can serve "
            "40 more of 140 prompt tokens; here they are computed, because requests of different "
            "sessions share no KV (prompts with hash_ids do with --share)\n"
            "xpusim: note: trace: read as plain: 3 requests, 2 sessions\n");
    folder_put("in.json", "[{\"conversations\": [{\"from\": \"human\", \"value\": \"12345678\"}, "
                          "{\"from\": \"gpt\", \"value\": \"1234\"}]}]");
    SCOPED(said_fini)
    struct said c = COMMANDED(cmd_trace, "import", "in.json", "--format", "sharegpt",
                              "--rate-per-min", "6", "-o", "t.csv");
    said_is(&c, EXIT_OK, "",
            "xpusim: note: trace: sharegpt holds texts: tokens are characters over "
            "--chars-per-token, arrivals and gaps are --rate-per-min and --think-s\n"
            "xpusim: note: trace: read as sharegpt: 1 requests, 1 sessions\n");
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
    ck_assert_uint_eq(n, 6);
    ck_assert_str_eq(at, "exec:sh ./idle.sh: 0 of 6 checks hold\n");
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
    said_is(&pair, EXIT_CHECK_FAILED, "a run fails\n", NULL);
}
END_TEST

/* ---- measure ---- */

/* Simulated devices: every row has the machine's name, the shape and the source; the summary counts
 * them; and what is fitted is the machine that was simulated. */
START_TEST(simulated_devices_are_measured)
{
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_measure, "--backend", "sim", "--size", "tiny", "--name", "box-1",
                              "--soc", "core-ultra-7-258v", "--alone", "-o", "m.csv", "-q");
    ck_assert_int_eq(s.status, EXIT_OK);
    ck_assert_str_eq(s.err, "");
    OWNED char *rows = folder_text("m.csv");
    uint32_t timed = 0;
    uint32_t n = 0;
    char *save = NULL;
    for (char *line = strtok_r(rows, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (line[0] == '#' || strncmp(line, "soc,", 4) == 0) {
            continue;
        }
        n++;
        ck_assert_msg(strncmp(line, "box-1,", 6) == 0, "%s", line);
        has(line, ",\"xpusim measure " XPUSIM_VERSION ", simulated core-ultra-7-258v\",");
        timed += strstr(line, ",kernel_ms,") != NULL;
        has_not(line, ",co_kernel_ms,");
    }
    ck_assert_uint_gt(timed, 50);
    ck_assert_uint_gt(n, timed);
    OWNED char *want = xformat("m.csv: %u of %u times can be trusted\n", timed, timed);
    ck_assert_str_eq(s.out, want);
    SCOPED(said_fini) struct said f = COMMANDED(cmd_measure, "--fit", "m.csv", "-o", "fit.json");
    ck_assert_msg(f.status == EXIT_OK, "%s", f.err);
    struct err e = ERR_INIT;
    SCOPED(json_drop) cJSON *soc = json_read_file("fit.json", &e);
    ck_assert_str_eq(json_string(soc, "name"), "box-1");
    SCOPED(said_fini)
    struct said peak =
        COMMANDED(cmd_measure, "--fit", "m.csv", "-o", "peak.json", "--ddr-peak", "123");
    ck_assert_int_eq(peak.status, EXIT_OK);
    SCOPED(json_drop) cJSON *with = json_read_file("peak.json", &e);
    const char *bad;
    ck_assert_double_eq(json_number(json_find_path(with, "ddr.peak", &bad), "value"), 123);
}
END_TEST

/* Pairs alone are a table of who slows whom, of the rows as of a measurement. */
START_TEST(pairs_are_measured_alone)
{
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_measure, "--backend", "sim", "--size", "tiny", "--pairs", "-o",
                              "p.csv", "-q");
    ck_assert_int_eq(s.status, EXIT_OK);
    OWNED char *text = squeezed(s.out);
    ck_assert_msg(strncmp(text,
                          "victim next to takes times as long both ask, GB/s both get above "
                          "the cap\n",
                          72) == 0,
                  "%s", text);
    SCOPED(said_fini) struct said again = COMMANDED(cmd_measure, "--fit", "p.csv", "--pairs");
    said_is(&again, EXIT_OK, s.out, "");
    SCOPED(said_fini)
    struct said j = COMMANDED(cmd_measure, "--fit", "p.csv", "--pairs", "--json");
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(j.out);
    ck_assert_ptr_nonnull(tree);
}
END_TEST

/* ---- sweep and merge ---- */

#define SPEC                                                                                       \
    "{\"name\": \"n\", \"base\": {\"workload\": \"mixed:reactive_per_min=%s,"                      \
    "proactive_per_min=0,duration_s=10\"}, \"axes\": {\"policy\": [\"fcfs\", \"edf\"], \"seed\": " \
    "[1, 2]}, \"replications\": 3, \"metrics\": [\"reactive.*.mean\"]}"

static void spec(const char *rate)
{
    OWNED char *text = xformat(SPEC, rate);
    folder_put("s.json", text);
}

/* Four points, three replications each. A second time all are there; the first two replications of
 * three are all that a third of it runs. */
START_TEST(a_sweep_counts_its_runs)
{
    spec("60");
    SCOPED(said_fini) struct said size = COMMANDED(cmd_sweep, "./s.json", "--dry-run");
    said_is(&size, EXIT_OK, "./s.json: 4 points, 12 runs, 0 of them in the store\n", "");
    SCOPED(said_fini) struct said s = COMMANDED(cmd_sweep, "./s.json", "-o", "s.db", "--jobs", "1");
    said_is(&s, EXIT_OK, "", "xpusim: ./s.json: 12 runs done, 0 were in the store, 0 failed\n");
    SCOPED(said_fini) struct said again = COMMANDED(cmd_sweep, "./s.json", "-o", "s.db");
    said_is(&again, EXIT_OK, "", "xpusim: ./s.json: 0 runs done, 12 were in the store, 0 failed\n");
    SCOPED(said_fini)
    struct said there = COMMANDED(cmd_sweep, "./s.json", "-o", "s.db", "--dry-run");
    said_is(&there, EXIT_OK, "./s.json: 4 points, 12 runs, 12 of them in the store\n", "");
    SCOPED(said_fini)
    struct said csv = COMMANDED(cmd_sweep, "./s.json", "-o", "s.db", "-q", "--export", "csv");
    SCOPED(said_fini) struct said only = COMMANDED(cmd_sweep, "-o", "s.db", "--export", "csv");
    said_is(&only, EXIT_OK, csv.out, "");
    has(csv.out, "experiment,point,replication,status,message,set.policy,set.seed,");
    /* Thirds of the twelve, and all of them together. */
    for (int i = 0; i < 3; i++) {
        OWNED char *shard = xformat("%d/3", i);
        OWNED char *store = xformat("%d.db", i);
        SCOPED(said_fini)
        struct said part = COMMANDED(cmd_sweep, "./s.json", "-o", store, "--shard", shard);
        said_is(&part, EXIT_OK, "",
                "xpusim: ./s.json: 4 runs done, 0 were in the store, 0 failed\n");
    }
    SCOPED(said_fini)
    struct said two = COMMANDED(cmd_merge, "-o", "all.db", "0.db", "1.db", "--complete");
    ck_assert_int_eq(two.status, EXIT_CHECK_FAILED);
    ck_assert_str_eq(two.out, "");
    SCOPED(said_fini)
    struct said all = COMMANDED(cmd_merge, "-o", "all.db", "2.db", "--complete", "--export", "csv");
    said_is(&all, EXIT_OK, csv.out, "xpusim: 1 stores merged into all.db\n");
    SCOPED(said_fini)
    struct said quiet = COMMANDED(cmd_merge, "-o", "a2.db", "0.db", "1.db", "2.db", "-q");
    said_is(&quiet, EXIT_OK, "", "");
    SCOPED(said_fini) struct said none = COMMANDED(cmd_merge, "-o", "a3.db", "0.db", "no.db");
    ck_assert_int_eq(none.status, EXIT_BAD_INPUT);
    ck_assert(!is_there("a3.db"));
}
END_TEST

/* Without requests every run fails: the first is named, and at most one is made with --fail-fast.
 */
START_TEST(a_sweep_tells_its_failures)
{
    spec("0");
    SCOPED(said_fini) struct said s = COMMANDED(cmd_sweep, "./s.json", "-o", "s.db", "--jobs", "1");
    ck_assert_int_eq(s.status, EXIT_BAD_INPUT);
    folder_put("s.json", "{\"base\": {\"policy\": \"fcfs\", \"workload\": "
                         "\"mixed:reactive_per_min=6,proactive_per_min=0,duration_s=10\"}, "
                         "\"axes\": {\"seed\": [1]}, \"replications\": 12}");
    struct err e = ERR_INIT;
    uint32_t empty = 0;
    uint32_t first = 0;
    for (uint32_t i = 12; i-- > 0;) {
        SCOPED(trace_fini) struct trace t = {0};
        bool none = trace_generate("mixed:reactive_per_min=6,proactive_per_min=0,duration_s=10",
                                   config_seed(1, i), 1.0, &t, &e) != 0;
        empty += none;
        first = none ? i : first;
    }
    err_fini(&e);
    ck_assert(empty > 0 && empty < 12 && first > 0);
    SCOPED(said_fini) struct said f = COMMANDED(cmd_sweep, "./s.json", "-o", "f.db", "--jobs", "1");
    OWNED char *want =
        xformat("xpusim: error: %u runs failed, the first at point 0, replication %u: "
                "mixed:reactive_per_min=6,proactive_per_min=0,duration_s=10: no requests\n"
                "xpusim: ./s.json: %u runs done, 0 were in the store, %u failed\n",
                empty, first, 12 - empty, empty);
    said_is(&f, EXIT_CHECK_FAILED, "", want);
    SCOPED(said_fini)
    struct said fast = COMMANDED(cmd_sweep, "./s.json", "-o", "g.db", "--jobs", "1", "--fail-fast");
    OWNED char *stopped = xformat(
        "xpusim: error: 1 runs failed, the first at point 0, replication %u: "
        "mixed:reactive_per_min=6,proactive_per_min=0,duration_s=10: no requests\n"
        "xpusim: ./s.json: %u runs done, 0 were in the store, 1 failed; stopped early: the same "
        "command continues\n",
        first, first);
    said_is(&fast, EXIT_CHECK_FAILED, "", stopped);
}
END_TEST

/* Points that are not known well enough after the last of their replications are counted. */
START_TEST(a_sweep_tells_open_points)
{
    folder_put("s.json",
               "{\"base\": {\"workload\": \"mixed:reactive_per_min=60,proactive_per_min=0,"
               "duration_s=10\"}, \"axes\": {\"policy\": [\"fcfs\", \"edf\"]}, \"replications\": "
               "2, \"max_replications\": 5, \"until\": {\"reactive.e2e_s.mean\": {\"half_width\": "
               "0}}}");
    SCOPED(said_fini) struct said size = COMMANDED(cmd_sweep, "./s.json", "--dry-run");
    said_is(&size, EXIT_OK, "./s.json: 2 points, at most 10 runs, 0 of them in the store\n", "");
    SCOPED(said_fini) struct said s = COMMANDED(cmd_sweep, "./s.json", "-o", "s.db", "--jobs", "1");
    said_is(&s, EXIT_OK, "",
            "xpusim: ./s.json: 10 runs done, 0 were in the store, 0 failed\n"
            "xpusim: note: 2 points did not reach their half-widths in 5 replications\n");
    folder_put("s.json",
               "{\"base\": {\"workload\": \"mixed:reactive_per_min=60,proactive_per_min=0,"
               "duration_s=10\"}, \"axes\": {\"policy\": [\"fcfs\", \"edf\"]}, \"replications\": "
               "2, \"max_replications\": 5, \"until\": {\"reactive.e2e_s.mean\": {\"half_width\": "
               "1e9}}}");
    SCOPED(said_fini) struct said n = COMMANDED(cmd_sweep, "./s.json", "-o", "n.db", "--jobs", "1");
    said_is(&n, EXIT_OK, "", "xpusim: ./s.json: 4 runs done, 0 were in the store, 0 failed\n");
}
END_TEST

/* Every option of the sweep goes to its shards, each with its value. */
START_TEST(a_slurm_sweep_passes_on_its_options)
{
    OWNED char *suite = xformat("{\"suite\": {\"about\": \"a\", \"references\": [\"fcfs\"]}, "
                                "\"base\": {\"workload\": \"%s\"}, \"rows\": [{\"point\": \"x\"}], "
                                "\"metrics\": [\"energy_j\"]}",
                                LOAD);
    folder_put("s.json", suite);
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_sweep, "./s.json", "-o", "s.db", "--slurm", "2",
                              "--slurm-scripts", "--policy", "fcfs", "--policy", "edf:class=blind",
                              "--time-limit", "7.5", "--memory-limit", "99", "--fail-fast", "--yes",
                              "--jobs", "3", "--slurm-option=--partition=long");
    ck_assert_msg(s.status == EXIT_OK, "%s", s.err);
    OWNED char *script = folder_text("s.db.slurm/array.sh");
    has(script, " 'sweep' './s.json' '--policy' 'fcfs' '--policy' 'edf:class=blind' '--time-limit' "
                "'7.5' '--memory-limit' '99' '--fail-fast' '--yes' \\\n");
    has(script, " --shard \"$SLURM_ARRAY_TASK_ID\"/2 --jobs 3\n");
    has(script, "#SBATCH --partition=long\n");
    has(script, "#SBATCH --cpus-per-task=3\n");
    OWNED char *merge = folder_text("s.db.slurm/merge.sh");
    has(merge, " merge --complete -o ");
    SCOPED(said_fini)
    struct said plain = COMMANDED(cmd_sweep, "./s.json", "-o", "p.db", "--slurm", "2",
                                  "--slurm-scripts", "--policy", "fcfs");
    ck_assert_int_eq(plain.status, EXIT_OK);
    OWNED char *bare = folder_text("p.db.slurm/array.sh");
    has(bare, " 'sweep' './s.json' '--policy' 'fcfs' '--time-limit' '600' \\\n");
    has(bare, " --jobs 1\n");
    SCOPED(said_fini) struct said nobody = COMMANDED(cmd_sweep, "./s.json", "-o", "n.db");
    said_refused(&nobody, "./s.json: a suite names no policy: --policy is missing");
}
END_TEST

/* ---- plot and figure ---- */

START_TEST(figures_are_listed)
{
    size_t n;
    const struct figure *v = figure_list(&n);
    SCOPED(said_fini) struct said s = COMMANDED(cmd_plot, "list", "--json");
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(s.out);
    const cJSON *all = cJSON_GetObjectItem(tree, "figures");
    ck_assert_uint_eq((size_t)cJSON_GetArraySize(all), n);
    for (size_t i = 0; i < n; i++) {
        const cJSON *row = cJSON_GetArrayItem(all, (int)i);
        ck_assert_str_eq(json_string(row, "figure"), v[i].name);
        ck_assert_str_eq(json_string(row, "shows"), v[i].title);
        ck_assert_str_eq(json_string(row, "reads"), v[i].reads);
        ck_assert_str_eq(json_string(row, "kinds"), v[i].kinds);
        ck_assert_int_eq(cJSON_IsTrue(cJSON_GetObjectItem(row, "of_one_file")), v[i].alone);
        SCOPED(said_fini) struct said none = COMMANDED(cmd_plot, v[i].name);
        OWNED char *why = xformat("%s: no input; it reads: %s", v[i].name, v[i].reads);
        said_refused(&none, why);
        OWNED char *slip = xformat("%sx", v[i].name);
        SCOPED(said_fini) struct said near = COMMANDED(cmd_plot, slip);
        OWNED char *hint =
            xformat("no figure is called %s (`xpusim plot list` shows them); did you mean %s?",
                    slip, v[i].name);
        said_refused(&near, hint);
    }
    SCOPED(said_fini)
    struct said window = COMMANDED(cmd_plot, "no-such", "--from", "2", "--to", "1.5");
    said_refused(&window, "--to 1.5: not after --from 2");
}
END_TEST

/* gnuplot of the test keeps what it is given. */
static void gnuplot(void)
{
    OWNED char *script = xformat("#!/bin/sh\n[ \"$1\" = -d ] || exit 0\n"
                                 "out=$(sed -n \"s/^out = '\\(.*\\)'$/\\1/p\" \"$2\")\n"
                                 "cat \"$2\" >>'%s/given'\necho \"${out##*.}\" >>'%s/formats'\n"
                                 "echo '<svg></svg>' >\"$out\"\n",
                                 folder_path(), folder_path());
    folder_put("gnuplot", script);
    ck_assert_int_eq(chmod("gnuplot", 0700), 0);
    OWNED char *path = xformat("%s:%s", folder_path(), getenv("PATH"));
    ck_assert_int_eq(setenv("PATH", path, 1), 0);
}

static char *given(const char *const *words)
{
    (void)remove("given");
    (void)remove("formats");
    SCOPED(said_fini) struct said s = commanded(&cmd_plot, words);
    return is_there("given") ? folder_text("given") : xstrdup("");
}

/* The canvas of a column is 3.33 inches of 72 points in letters of 9 points, which the layout has
 * in 13 pixels; of both 7 inches. */
START_TEST(a_figure_has_the_look_that_is_asked_for)
{
    gnuplot();
    SCOPED(said_fini) struct said k = COMMANDED(cmd_list, "kernels", "--json");
    folder_put("k.json", k.out);
    static const struct {
        const char *words[8], *lines[3], *formats;
    } looks[] = {
        {{"roofline", "k.json"}, {"font_pt = 9\n", "titles = 1\n"}, "svg\npng\n"},
        {{"roofline", "k.json", "--columns", "1"}, {"canvas = 346.32\n"}, "svg\npng\n"},
        {{"roofline", "k.json", "--columns", "2"}, {"canvas = 728\n"}, "svg\npng\n"},
        {{"roofline", "k.json", "--columns", "2", "--font", "13"},
         {"canvas = 504\n", "font_pt = 13\n"},
         "svg\npng\n"},
        {{"roofline", "k.json", "--no-title"}, {"titles = 0\n"}, "svg\npng\n"},
        {{"roofline", "k.json", "--format", "svg"}, {"titles = 1\n"}, "svg\n"},
        {{"roofline", "k.json", "--format", "png"}, {"titles = 1\n"}, "png\n"},
        {{"roofline", "k.json", "--format", "pdf"}, {"titles = 1\n"}, "pdf\n"},
    };
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        OWNED char *text = given(looks[i].words);
        for (int j = 0; j < 3 && looks[i].lines[j] != NULL; j++) {
            has(text, looks[i].lines[j]);
        }
        if (i == 0) {
            has_not(text, "\ncanvas = ");
        }
        OWNED char *formats = folder_text("formats");
        if (strcmp(looks[i].formats, "svg\npng\n") == 0) {
            has(formats, "svg\n");
            has(formats, "png\n");
            has_not(formats, "pdf\n");
        } else {
            ck_assert_str_eq(formats, looks[i].formats);
        }
    }
}
END_TEST

/* Every shipped specification is a row, and so is every figure that cannot be made. */
START_TEST(figures_of_papers_are_listed)
{
    static const char *const none[] = {"--json", NULL};
    SCOPED(said_fini) struct said s = commanded(&cmd_figure, none);
    said_is(&s, EXIT_OK, NULL, "");
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(s.out);
    const cJSON *row;
    cJSON_ArrayForEach (row, cJSON_GetObjectItem(tree, "figures")) {
        struct err e = ERR_INIT;
        SCOPED(paper_fini) struct paper p;
        OWNED char *path = paper_path(json_string(row, "paper"), json_string(row, "number"));
        ck_assert_int_eq(paper_read(&p, path, NULL, 0, &e), 0);
        ck_assert_str_eq(json_string(row, "shows"), p.says);
        SCOPED(text_fini) struct text claims = {0};
        for (uint32_t i = 0; i < p.n_claims; i++) {
            text_item(&claims, " ", p.claims[i]);
        }
        ck_assert_str_eq(json_string(row, "claims"), text_end(&claims));
    }
    ck_assert_int_gt(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "figures")), 15);
    struct err e = ERR_INIT;
    SCOPED(json_drop)
    cJSON *file = json_read_file(datadir_path(PAPER_FOLDER "/cannot.json"), &e);
    ck_assert(cJSON_Compare(cJSON_GetObjectItem(tree, "cannot"),
                            cJSON_GetObjectItem(file, "figures"), true));
}
END_TEST

static const struct suite_row rows[] = {
    CASE("commands", .setup = folder_enter, .teardown = folder_leave, .timeout_s = 60),
    TEST(a_trace_is_generated),
    TEST(a_trace_is_described),
    TEST(a_trace_is_imported_with_what_is_lost),
    TEST(a_policy_is_checked),
    TEST(a_policy_runs_one_load),
    TEST(a_policy_that_fails_is_told),
    TEST(simulated_devices_are_measured),
    TEST(pairs_are_measured_alone),
    TEST(a_sweep_counts_its_runs),
    TEST(a_sweep_tells_its_failures),
    TEST(a_sweep_tells_open_points),
    TEST(a_slurm_sweep_passes_on_its_options),
    TEST(figures_are_listed),
    TEST(a_figure_has_the_look_that_is_asked_for),
    TEST(figures_of_papers_are_listed),
};
SUITE_MAIN("commands", rows)
