/* `xpusim view --json`: where two runs part, from their decision logs, and with --recompute
 * everything that the same runs need, tried in a folder that has nothing else. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/diff/diverge.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

#define LOAD "mixed:reactive_per_min=20,proactive_per_min=20,duration_s=20"
#define MOST_LINES 20000

/* ---- where two runs part ---- */

/* These are the lines of a policy's decisions, without the heading. */
struct lines {
    char *text; /* owned */
    char *v[MOST_LINES];
    uint32_t n;
};

static void decisions_of(const char *policy, struct lines *l)
{
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_run, "--policy", policy, "--workload", LOAD, "--seed", "3",
                              "--decisions", "log", "--json");
    ck_assert_msg(s.status == EXIT_OK, "%s", s.err);
    l->n = 0;
    l->text = folder_text("log");
    char *save = NULL;
    for (char *at = strtok_r(l->text, "\n", &save); at != NULL; at = strtok_r(NULL, "\n", &save)) {
        if (l->n > 0 || strncmp(at, "policy ", 7) != 0) {
            ck_assert_uint_lt(l->n, MOST_LINES);
            l->v[l->n++] = at;
        }
    }
}

static void text_is(const cJSON *o, const char *key, const char *want)
{
    const cJSON *c = cJSON_GetObjectItem(o, key);
    ck_assert_msg(cJSON_IsString(c) && strcmp(c->valuestring, want) == 0, "%s: %s, not %s", key,
                  cJSON_GetStringValue(c), want);
}

static void number_is(const cJSON *o, const char *key, double want)
{
    const cJSON *c = cJSON_GetObjectItem(o, key);
    ck_assert_msg(cJSON_IsNumber(c) && c->valuedouble == want, "%s", key);
}

static const char *const policies[] = {"fcfs", "edf", "fcfs:device=igpu"};
static struct lines of[3];

START_TEST(runs_part_at_the_first_decision_that_differs)
{
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_view, "--json", "--workload", LOAD, "--seed", "3", "--policy",
                              policies[0], "--policy", policies[1], "--policy", policies[2]);
    said_is(&s, EXIT_OK, NULL, "");
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(s.out);
    ck_assert_ptr_nonnull(tree);
    const cJSON *runs = cJSON_GetObjectItem(tree, "runs");
    ck_assert_int_eq(cJSON_GetArraySize(runs), 3);
    for (int i = 0; i < 3; i++) {
        text_is(cJSON_GetArrayItem(runs, i), "policy", policies[i]);
        decisions_of(policies[i], &of[i]);
    }
    static const int pairs[3][2] = {{0, 1}, {0, 2}, {1, 2}};
    const cJSON *all = cJSON_GetObjectItem(tree, "differences");
    ck_assert_int_eq(cJSON_GetArraySize(all), 3);
    uint32_t with_context = 0;
    for (int i = 0; i < 3; i++) {
        const cJSON *d = cJSON_GetArrayItem(all, i);
        const struct lines *a = &of[pairs[i][0]];
        const struct lines *b = &of[pairs[i][1]];
        uint32_t at = 0;
        while (at < a->n && at < b->n && strcmp(a->v[at], b->v[at]) == 0) {
            at++;
        }
        bool differs = at < a->n || at < b->n;
        number_is(d, "run_a", pairs[i][0]);
        number_is(d, "run_b", pairs[i][1]);
        ck_assert_int_eq(cJSON_IsTrue(cJSON_GetObjectItem(d, "differs")), differs);
        number_is(d, "decision", differs ? at + 1 : at);
        text_is(d, "a", at < a->n ? a->v[at] : "");
        text_is(d, "b", at < b->n ? b->v[at] : "");
        /* The last decisions before, no more than there are. */
        const cJSON *context = cJSON_GetObjectItem(d, "context");
        int n = cJSON_GetArraySize(context);
        ck_assert_int_eq(n, at < DIVERGE_CONTEXT ? (int)at : DIVERGE_CONTEXT);
        for (int k = 0; k < n; k++) {
            ck_assert_str_eq(cJSON_GetArrayItem(context, k)->valuestring,
                             a->v[at - (uint32_t)(n - k)]);
        }
        with_context += n > 0;
    }
    ck_assert_uint_gt(with_context, 0);
    for (int i = 0; i < 3; i++) {
        free(of[i].text);
    }
}
END_TEST

/* The page has each metric of a run as `run --json` has it, to the last digit. */
START_TEST(metrics_are_those_of_the_run)
{
    SCOPED(said_fini)
    struct said page =
        COMMANDED(cmd_view, "--json", "--workload", LOAD, "--seed", "3", "--policy", policies[0]);
    SCOPED(said_fini)
    struct said run =
        COMMANDED(cmd_run, "--json", "--workload", LOAD, "--seed", "3", "--policy", policies[0]);
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(page.out);
    SCOPED(json_drop) cJSON *own = cJSON_Parse(run.out);
    const cJSON *shown = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "runs"), 0);
    shown = cJSON_GetObjectItem(cJSON_GetObjectItem(shown, "result"), "metrics");
    const cJSON *metrics = cJSON_GetObjectItem(own, "metrics");
    const cJSON *x;
    int n = 0;
    cJSON_ArrayForEach (x, metrics) {
        if (cJSON_IsNumber(x)) {
            number_is(shown, x->string, x->valuedouble);
            n++;
        }
    }
    ck_assert_int_gt(n, 100);
}
END_TEST

/* ---- what a page needs to compute ---- */

/* Writes a file below a folder, whose folders are made. */
static void put_below(const char *folder, const char *name, const char *text)
{
    OWNED char *path = xformat("%s/%s", folder, name);
    for (char *p = strchr(path, '/'); p != NULL; p = strchr(p + 1, '/')) {
        *p = '\0';
        (void)mkdir(path, 0777);
        *p = '/';
    }
    folder_put(path, text);
}

START_TEST(a_page_has_all_that_it_computes_from)
{
    folder_put("m.json", "{\"format\": 1, \"events\": []}");
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_view, "--json", "--recompute", "--workload", LOAD, "--seed",
                              "9007199254740992", "--policy", "fcfs:device=cpu", "--policy", "edf",
                              "--soc", "core-ultra-7-258v", "--llm", "qwen2.5-1.5b", "--set",
                              "sim.horizon_s=30", "--set", "sim.truth_sigma=0.1", "--ttft-slo",
                              "0.1", "--tpot-slo", "0.25", "--qoe", "2,3.5");
    said_is(&s, EXIT_OK, NULL, "");
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(s.out);
    const cJSON *need = cJSON_GetObjectItem(tree, "recompute");
    OWNED char *arguments = cJSON_PrintUnformatted(cJSON_GetObjectItem(need, "arguments"));
    ck_assert_str_eq(
        arguments,
        "[\"--policy\",\"fcfs:device=cpu\",\"--policy\",\"edf\",\"--seed\",\"9007199254740992\","
        "\"--soc\",\"core-ultra-7-258v\",\"--llm\",\"qwen2.5-1.5b\",\"--workload\",\"" LOAD
        "\",\"--ttft-slo\",\"0.1\",\"--tpot-slo\",\"0.25\",\"--qoe\",\"2,3.5\",\"--set\","
        "\"sim.horizon_s=30\",\"--set\",\"sim.truth_sigma=0.1\"]");
    const cJSON *file;
    uint32_t n = 0;
    bool machine = false;
    bool model = false;
    cJSON_ArrayForEach (file, cJSON_GetObjectItem(need, "files")) {
        OWNED char *whole = folder_text(datadir_path(file->string));
        ck_assert_str_eq(file->valuestring, whole);
        machine = machine || strcmp(file->string, "hwmodels/soc/core-ultra-7-258v.json") == 0;
        model = model || strcmp(file->string, "hwmodels/llm/qwen2.5-1.5b.json") == 0;
        put_below("alone", file->string, file->valuestring);
        n++;
    }
    ck_assert(machine && model);
    ck_assert_uint_ge(n, 3);
    /* The command prints equal text from these files alone. */
    static const char *const words[] = {"--workload", LOAD,
                                        "--seed",     "9",
                                        "--policy",   "fcfs:device=cpu",
                                        "--soc",      "core-ultra-7-258v",
                                        "--llm",      "qwen2.5-1.5b",
                                        "--set",      "sim.horizon_s=30",
                                        "--json",     NULL};
    SCOPED(said_fini) struct said with = commanded(&cmd_run, words);
    ck_assert_msg(with.status == EXIT_OK, "%s", with.err);
    OWNED char *alone = xformat("%s/alone", folder_path());
    ck_assert_int_eq(setenv("XPUSIM_DATA_DIR", alone, 1), 0);
    SCOPED(said_fini) struct said only = commanded(&cmd_run, words);
    said_is(&only, EXIT_OK, with.out, with.err);
}
END_TEST

START_TEST(a_page_computes_what_is_generated)
{
    static const char why[] = "--recompute compares two policies or more on a generated workload: "
                              "it does not go with --trace";
    SCOPED(said_fini)
    struct said one = COMMANDED(cmd_view, "--json", "--recompute", "--policy", "fcfs");
    said_refused(&one, why);
    folder_put("t.csv", "");
    SCOPED(said_fini)
    struct said trace = COMMANDED(cmd_view, "--json", "--recompute", "--policy", "fcfs", "--policy",
                                  "edf", "--trace", "t.csv");
    said_refused(&trace, why);
    static const char data[] = "--json goes with --policy alone: it prints the runs as data";
    SCOPED(said_fini) struct said none = COMMANDED(cmd_view, "--json");
    said_refused(&none, data);
    SCOPED(said_fini)
    struct said file = COMMANDED(cmd_view, "--json", "--policy", "fcfs", "r.json");
    said_refused(&file, data);
    SCOPED(said_fini)
    struct said out = COMMANDED(cmd_view, "--json", "--policy", "fcfs", "-o", "a.html");
    said_refused(&out, data);
    static const char needs[] = "view needs --policy or files of results, and -o FILE.html";
    SCOPED(said_fini) struct said nothing = COMMANDED(cmd_view, "-o", "a.html");
    said_refused(&nothing, needs);
    SCOPED(said_fini) struct said nowhere = COMMANDED(cmd_view, "--policy", "fcfs");
    said_refused(&nowhere, needs);
    SCOPED(said_fini)
    struct said window =
        COMMANDED(cmd_view, "--policy", "fcfs", "-o", "a.html", "--from", "2", "--to", "2");
    said_refused(&window, "--to 2: not after --from 2");
    ck_assert_int_ne(access("a.html", F_OK), 0);
}
END_TEST

static const struct suite_row rows[] = {
    CASE("view", .setup = folder_enter, .teardown = folder_leave, .timeout_s = 60),
    TEST(runs_part_at_the_first_decision_that_differs),
    TEST(metrics_are_those_of_the_run),
    TEST(a_page_has_all_that_it_computes_from),
    TEST(a_page_computes_what_is_generated),
};
SUITE_MAIN("view", rows)
