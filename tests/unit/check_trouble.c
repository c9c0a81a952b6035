/* Reproducers of a run that its policy broke: which ends count, the trace that still shows it, the
 * two logs next to it, and the command, word for word. Other tests run another xpusim: its
 * arguments, and the use of its answer. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/diff/shrink_trace.h"
#include "experiments/diff/trouble.h"
#include "experiments/run/other_binary.h"
#include "experiments/run/study.h"
#include "policies/registry.h"
#include "sim/base/json.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

/* Six requests in five sessions; the policies below fall over number 3. */
static const char six[] =
    "# xpusim-trace v1\n"
    "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens\n"
    "0,0,0,proactive,0,,40,4,0\n"
    "1,1,0,reactive,0.5,,40,4,0\n"
    "2,2,0,proactive,1,,40,4,0\n"
    "3,3,0,reactive,1.5,,48,6,0\n"
    "4,4,0,proactive,2,,40,4,0\n"
    "5,1,1,reactive,,1,80,4,44\n";

/* ---- policies that break a run ---- */

static bool crashes;

static void arrived(struct sched *s, const struct request *r)
{
    (void)s;
    if (crashes && r->id == 3) {
        abort();
    }
}

static void idle(struct sched *s)
{
    (void)s;
}

static const struct policy_ops falling = {.name = "falling",
                                          .contract = POLICY_CONTRACT,
                                          .summary = "aborts at request 3, or serves nobody",
                                          .request_arrived = arrived,
                                          .schedule = idle};

static struct err err;
static struct config_options options;
static struct config config;
static struct config_policy policy;
static struct trace whole;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    folder_enter();
    options = config_options_default();
    options.seed = 77;
    options.sets[options.n_sets++] = xstrdup("sim.stall_s=5");
    options.sets[options.n_sets++] = xstrdup("sim.truth_sigma=0");
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    policy = (struct config_policy){.ops = &falling, .params_text = "", .label = "my policy"};
    folder_put("six.csv", six);
    ck_assert_int_eq(trace_read("six.csv", &whole, &err), 0);
}

static void teardown(void)
{
    trace_fini(&whole);
    config_fini(&config);
    err_fini(&err);
    folder_leave();
}

static char *left(const struct trouble_end *end, const char *dir)
{
    struct trouble t = {&config, &policy, &options, &whole, 20.0, 0.1, dir};
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    trouble_leave(&t, end, f);
    (void)fclose(f);
    return text;
}

/* The third of six requests is enough, with as few tokens as there can be. Its process dies, so
 * that there is no timeline; the decisions are what it wrote before. */
START_TEST(a_crash_is_shown_by_one_request)
{
    crashes = true;
    struct trouble_end end = {.exit_status = 128 + SIGABRT};
    OWNED char *said = left(&end, "left");
    ck_assert_str_eq(said,
                     "Enough to show it: 1 of 6 requests, in left/: trace.csv, decisions\n"
                     "  xpusim run --policy 'my policy' --soc core-ultra-5-125h --llm llama-3.2-3b "
                     "--trace left/trace.csv --seed 77 --set sim.stall_s=5 --set "
                     "sim.truth_sigma=0\n");
    SCOPED(trace_fini) struct trace t = {0};
    ck_assert_int_eq(trace_read("left/trace.csv", &t, &err), 0);
    ck_assert_uint_eq(t.n, 1);
    ck_assert_uint_eq(t.rows[0].request_id, 3);
    ck_assert_uint_eq(t.rows[0].input_tokens, 1);
    ck_assert_uint_eq(t.rows[0].output_tokens, 1);
    ck_assert_int_eq(access("left/decisions", F_OK), 0);
    ck_assert_int_ne(access("left/timeline.json", F_OK), 0);
}
END_TEST

/* This one serves all, but falls over request 3 if 1 came before. */
static struct policy_ops served;
static bool one_came;

static void arrived_after(struct sched *s, const struct request *r)
{
    one_came = one_came || r->id == 1;
    if (one_came && r->id == 3) {
        abort();
    }
    policy_find("fcfs")->request_arrived(s, r);
}

/* A run that ends well has the status of one whose process died, and is another end all the same.
 */
START_TEST(a_crash_that_takes_two_requests_is_shown_by_both)
{
    served = *policy_find("fcfs");
    served.request_arrived = arrived_after;
    ck_assert_int_eq(config_policy_parse(&policy, "fcfs", &err), 0);
    policy.ops = &served;
    struct trouble_end end = {.exit_status = 128 + SIGABRT};
    OWNED char *said = left(&end, "left");
    static const char want[] = "Enough to show it: 2 of 6 requests, in left/: ";
    ck_assert_msg(strncmp(said, want, sizeof want - 1) == 0, "%s", said);
    SCOPED(trace_fini) struct trace t = {0};
    ck_assert_int_eq(trace_read("left/trace.csv", &t, &err), 0);
    ck_assert_uint_eq(t.n, 2);
    ck_assert_uint_eq(t.rows[0].request_id, 1);
    ck_assert_uint_eq(t.rows[1].request_id, 3);
}
END_TEST

/* A run that stalls has both, and any request shows it. */
START_TEST(a_stall_is_shown_by_one_request)
{
    crashes = false;
    struct trouble_end end = {.status = -ETIMEDOUT, .events = 9};
    ck_assert_int_eq(mkdir("left", 0777), 0);
    OWNED char *said = left(&end, "left");
    static const char want[] =
        "Enough to show it: 1 of 6 requests, in left/: trace.csv, decisions, timeline.json\n  "
        "xpusim run --policy ";
    ck_assert_msg(strncmp(said, want, sizeof want - 1) == 0, "%s", said);
    SCOPED(trace_fini) struct trace t = {0};
    ck_assert_int_eq(trace_read("left/trace.csv", &t, &err), 0);
    ck_assert_uint_eq(t.n, 1);
    SCOPED(json_drop) cJSON *timeline = json_read_file("left/timeline.json", &err);
    ck_assert_ptr_nonnull(timeline);
    ck_assert_int_eq(access("left/decisions", F_OK), 0);
}
END_TEST

/* A run that ends otherwise the next time: its trace is whole, and it is said. */
START_TEST(what_is_not_shown_again_is_said)
{
    crashes = true;
    struct trouble_end end = {.status = -ELOOP, .events = 9};
    OWNED char *said = left(&end, "left");
    static const char want[] =
        "Not shown again by its trace: 6 of 6 requests, in left/: trace.csv, decisions, "
        "timeline.json\n";
    ck_assert_msg(strncmp(said, want, sizeof want - 1) == 0, "%s", said);
    OWNED char *text = folder_text("left/trace.csv");
    SCOPED(trace_fini) struct trace t = {0};
    ck_assert_int_eq(trace_read("left/trace.csv", &t, &err), 0);
    ck_assert_uint_eq(t.n, 6);
    OWNED char *none = left(&end, "no/such");
    ck_assert_str_eq(none, "xpusim: error: no/such: cannot make this folder for the trace of what "
                           "went wrong: No such file or directory\n");
}
END_TEST

/* Deaths but those by a limit, and four ends of a run that a policy has made. */
START_TEST(ends_that_are_a_policys)
{
    static const int own[] = {-ETIMEDOUT, -ELOOP, -EPROTO, -EIO};
    static const int others[] = {0, -EINVAL, -ENOMEM, -ENOSYS, -ECANCELED};
    static const int limits[] = {SIGXCPU, SIGTERM, SIGKILL};
    static const int deaths[] = {SIGSEGV, SIGABRT, SIGFPE, SIGBUS};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        ck_assert(trouble_is(&(struct trouble_end){.status = own[i]}));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert(!trouble_is(&(struct trouble_end){.status = others[i]}));
    }
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        ck_assert(!trouble_is(&(struct trouble_end){.exit_status = 128 + limits[i]}));
    }
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++) {
        ck_assert(trouble_is(&(struct trouble_end){.exit_status = 128 + deaths[i]}));
    }
    ck_assert(trouble_is(&(struct trouble_end){.exit_status = 1}));
}
END_TEST

/* ---- smaller traces ---- */

struct wanted {
    uint32_t id, input, output; /* this request, with so many tokens at least */
    uint32_t tests;
    bool both_turns;
};

static bool has_it(void *ctx, const struct trace *t)
{
    struct wanted *w = ctx;
    bool found = false;
    bool second = false;
    w->tests++;
    for (size_t i = 0; i < t->n; i++) {
        found = found || (t->rows[i].request_id == w->id && t->rows[i].input_tokens >= w->input &&
                          t->rows[i].output_tokens >= w->output);
        second = second || t->rows[i].request_id == 5;
    }
    return found && (second || !w->both_turns);
}

/* The request that is needed alone, its lengths halved while they are enough: 48 to 6, 6 to 3. */
START_TEST(a_trace_shrinks_to_what_is_needed)
{
    struct wanted w = {.id = 3, .input = 5, .output = 2};
    struct shrink_trace s = {.ctx = &w, .shows = has_it, .max_tests = 300};
    ck_assert_uint_eq(shrink_trace_run(&s, &whole), w.tests);
    ck_assert_uint_eq(whole.n, 1);
    ck_assert_uint_eq(whole.n_first, 1);
    ck_assert_uint_eq(whole.rows[0].request_id, 3);
    ck_assert_uint_eq(whole.rows[0].input_tokens, 6);
    ck_assert_uint_eq(whole.rows[0].output_tokens, 3);
    ck_assert_uint_eq(whole.hash, trace_hash(&whole));
}
END_TEST

/* A later turn goes where it is not needed, and stays, behind its first one, where it is. */
START_TEST(turns_go_from_the_last)
{
    struct wanted w = {.id = 1, .input = 30, .output = 3};
    struct shrink_trace s = {.ctx = &w, .shows = has_it, .max_tests = 300};
    (void)shrink_trace_run(&s, &whole);
    ck_assert_uint_eq(whole.n, 1);
    ck_assert_uint_eq(whole.rows[0].input_tokens, 40);
    ck_assert_uint_eq(whole.rows[0].output_tokens, 4);
    trace_fini(&whole);
    ck_assert_int_eq(trace_read("six.csv", &whole, &err), 0);
    w = (struct wanted){.id = 1, .input = 30, .output = 3, .both_turns = true};
    (void)shrink_trace_run(&s, &whole);
    ck_assert_uint_eq(whole.n, 2);
    ck_assert_uint_eq(whole.n_first, 1);
    ck_assert_uint_eq(whole.rows[1].request_id, 5);
    ck_assert_uint_eq(whole.rows[1].input_tokens, 1); /* its prefix is no longer than it */
    ck_assert_uint_eq(whole.rows[1].prefix_tokens, 1);
}
END_TEST

/* No more tests than are allowed, and what is left still shows it. */
START_TEST(a_search_has_an_end)
{
    for (uint32_t most = 1; most < 12; most++) {
        struct wanted w = {.id = 3, .input = 1, .output = 1};
        struct shrink_trace s = {.ctx = &w, .shows = has_it, .max_tests = most};
        uint32_t n = shrink_trace_run(&s, &whole);
        ck_assert_uint_eq(n, w.tests);
        ck_assert_uint_le(n, most);
        w.tests = 0;
        ck_assert(has_it(&w, &whole));
        trace_fini(&whole);
        ck_assert_int_eq(trace_read("six.csv", &whole, &err), 0);
    }
}
END_TEST

/* ---- another xpusim ---- */

static void binary(const char *text)
{
    OWNED char *script = xformat("#!/bin/sh\n%s\n", text);
    folder_put("other", script);
    ck_assert_int_eq(chmod("other", 0700), 0);
}

static cJSON *asked(const char *decisions, char message[256])
{
    OWNED char *path = xformat("%s/other", folder_path());
    return other_binary_run(path, &options, "p:a=1", 18446744073709551615u, decisions, message,
                            256);
}

START_TEST(another_binary_is_given_all)
{
    char message[256];
    binary("for w; do printf '\"%s\",' \"$w\"; done >words; echo '{\"a\": 1}'; echo why >&2");
    options.workload = "w1";
    SCOPED(json_drop) cJSON *tree = asked(NULL, message);
    ck_assert_ptr_nonnull(tree);
    ck_assert_double_eq(json_number(tree, "a"), 1);
    ck_assert_str_eq(message, "");
#define WORDS                                                                                      \
    "\"run\",\"--json\",\"--quiet\",\"--soc\",\"core-ultra-5-125h\",\"--llm\",\"llama-3.2-3b\","   \
    "\"--policy\",\"p:a=1\",\"--seed\",\"18446744073709551615\","
    OWNED char *words = folder_text("words");
    ck_assert_str_eq(words, WORDS "\"--workload\",\"w1\",\"--set\",\"sim.stall_s=5\",\"--set\","
                                  "\"sim.truth_sigma=0\",");
    options.trace = "t.csv";
    options.machine = "m.json";
    SCOPED(json_drop) cJSON *again = asked("log", message);
    OWNED char *more = folder_text("words");
    ck_assert_str_eq(more, WORDS "\"--trace\",\"t.csv\",\"--set\",\"sim.stall_s=5\",\"--set\","
                                 "\"sim.truth_sigma=0\",\"--machine\",\"m.json\",\"--decisions\","
                                 "\"log\",");
}
END_TEST

/* Its first complaint is the message, without the program's name; else how it ended. */
START_TEST(another_binary_may_fail)
{
    static const struct {
        const char *text, *message;
    } ends[] = {{"echo 'xpusim: error: first' >&2; echo second >&2; exit 2", "first"},
                {"echo 'it broke' >&2; exit 1", "it broke"},
                {"echo '{\"a\": '; echo why >&2", "its result is not JSON"},
                {"echo '{}'; exit 4", NULL},
                {":", NULL}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char message[256];
        binary(ends[i].text);
        ck_assert_ptr_null(asked(NULL, message));
        if (ends[i].message != NULL) {
            ck_assert_str_eq(message, ends[i].message);
        }
    }
    char message[256];
    folder_put("other", "");
    ck_assert_int_eq(chmod("other", 0600), 0);
    ck_assert_ptr_null(asked(NULL, message));
    ck_assert_str_eq(message, "cannot be started");
}
END_TEST

/* A result of more than a block is whole. */
START_TEST(another_binary_may_say_much)
{
    char message[256];
    binary("printf '{\"a\": ['; i=0; while [ $i -lt 3000 ]; do "
           "printf '\"0123456789012345678901234567890123456789\",'; i=$((i + 1)); done; "
           "echo '1]}'");
    SCOPED(json_drop) cJSON *tree = asked(NULL, message);
    ck_assert_msg(tree != NULL, "%s", message);
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "a")), 3001);
}
END_TEST

static struct study_outcomes studied(void)
{
    OWNED char *path = xformat("%s/other", folder_path());
    struct study_cell c = {
        .config = &config, .options = &options, .policy = &policy, .seed = 5, .binary = path};
    struct study_how how = {.parallel = 1};
    return study_run(&c, 1, &how);
}

static double value_of(const struct study_outcome *o, const char *name)
{
    for (size_t i = 0; o->names != NULL && i < o->names->n; i++) {
        if (strcmp(o->names->v[i], name) == 0) {
            return o->values[i];
        }
    }
    ck_abort_msg("no %s", name);
}

/* The metrics of its result, nothing for what is no number; the verdict by its name, where it has
 * no number of its own. */
START_TEST(another_binary_has_metrics)
{
    static const char *const verdicts[] = {"STABLE", "UNDECIDED", "OVERLOADED", "BATTERY_EMPTY"};
    options.trace = "six.csv";
    for (int i = 0; i < 4; i++) {
        OWNED char *text = xformat(
            "echo '{\"verdict\": \"%s\", \"metrics\": {\"a.s\": 1.5, \"b\": null, \"c\": -2}}'",
            verdicts[i]);
        binary(text);
        SCOPED(study_outcomes_fini) struct study_outcomes o = studied();
        ck_assert_msg(o.v[0].status == 0, "%s", o.v[0].message);
        ck_assert_uint_eq(o.v[0].names->n, 4);
        ck_assert_double_eq(value_of(&o.v[0], "a.s"), 1.5);
        ck_assert_double_nan(value_of(&o.v[0], "b"));
        ck_assert_double_eq(value_of(&o.v[0], "c"), -2);
        ck_assert_double_eq(value_of(&o.v[0], "backlog.verdict"), i);
    }
    binary("echo '{\"verdict\": \"NEW\", \"metrics\": {\"backlog.verdict\": 7}}'");
    SCOPED(study_outcomes_fini) struct study_outcomes numbered = studied();
    ck_assert_uint_eq(numbered.v[0].names->n, 1);
    ck_assert_double_eq(value_of(&numbered.v[0], "backlog.verdict"), 7);
    static const char *const bad[] = {"{\"verdict\": \"NEW\", \"metrics\": {\"a\": 1}}",
                                      "{\"verdict\": \"STABLE\"}",
                                      "{\"verdict\": \"STABLE\", \"metrics\": 1}",
                                      "{\"metrics\": {\"backlog.verdict\": 0}}", "{}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        OWNED char *text = xformat("echo '%s'", bad[i]);
        binary(text);
        SCOPED(study_outcomes_fini) struct study_outcomes o = studied();
        ck_assert_int_ne(o.v[0].status, 0);
        ck_assert_str_eq(o.v[0].message, "its result holds no metrics or no verdict");
    }
    binary("echo 'xpusim: error: why' >&2; exit 2");
    SCOPED(study_outcomes_fini) struct study_outcomes failed = studied();
    ck_assert_str_eq(failed.v[0].message, "why");
}
END_TEST

static const struct suite_row rows[] = {
    CASE("what is left", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(a_crash_is_shown_by_one_request),
    TEST(a_crash_that_takes_two_requests_is_shown_by_both),
    TEST(a_stall_is_shown_by_one_request),
    TEST(what_is_not_shown_again_is_said),
    TEST(ends_that_are_a_policys),
    TEST(a_trace_shrinks_to_what_is_needed),
    TEST(turns_go_from_the_last),
    TEST(a_search_has_an_end),
    TEST(another_binary_is_given_all),
    TEST(another_binary_may_fail),
    TEST(another_binary_may_say_much),
    TEST(another_binary_has_metrics),
};
SUITE_MAIN("trouble", rows)
