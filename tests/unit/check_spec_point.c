/* Points of an experiment file: what each setting of a point becomes, which paths it has, and which
 * values are tried before anything runs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/sweep/spec.h"
#include "experiments/sweep/suite.h"
#include "sim/base/json.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

static struct spec spec;
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

static int load(const char *text)
{
    folder_put("s.json", text);
    return spec_load(&spec, "s.json", false, &err);
}

static void is_fine(const char *text)
{
    ck_assert_msg(load(text) == 0, "%s: %s", text, err.n > 0 ? err.lines[0] : "");
    ck_assert_uint_eq(err.n, 0);
}

#define COUNT_OF(list) (sizeof(list) / sizeof(list)[0])

/* ---- a point ---- */

/* Values of the third policy and of the second row; what is not set has its default. */
START_TEST(a_point_has_all_settings)
{
    is_fine("{\"base\": {\"soc\": \"a\", \"llm\": \"b\", \"workload\": \"mixed:cv=1\","
            " \"machine\": \"/m.json\", \"rate\": 2, \"seed\": 5, \"ttft_slo_s\": 0.5,"
            " \"tpot_slo_s\": 0.25, \"sim.a\": 0.1, \"sim.b\": true, \"llm.c\": \"t\"},"
            " \"axes\": {\"policy\": [\"p\", \"q\", \"r:x=1,y=2\"], \"params.x\": [3, 4]},"
            " \"rows\": [{\"seed\": 6}, {\"llm\": \"k\", \"workload.cv\": 3, \"soc.d\": 1e300}]}");
    struct spec_point p;
    uint64_t at = 2 * 4 + 1 * 2 + 1;
    ck_assert_int_eq(spec_point(&spec, at, &p, &err), 0);
    ck_assert_str_eq(p.policy, "r:y=2,x=4");
    ck_assert_str_eq(p.options.soc, "a");
    ck_assert_str_eq(p.options.llm, "k");
    ck_assert_str_eq(p.options.workload, "mixed:cv=3");
    ck_assert_str_eq(p.options.machine, "/m.json");
    ck_assert_ptr_null(p.options.trace);
    ck_assert(p.arrivals.rate_scale == 2.0);
    ck_assert_uint_eq(p.options.seed, 5);
    ck_assert(p.options.ttft_slo_s == 0.5 && p.options.tpot_slo_s == 0.25);
    static const char *const sets[] = {"sim.a=0.1", "sim.b=true", "llm.c=t",
                                       "soc.d=1.0000000000000001e+300"};
    ck_assert_uint_eq(p.options.n_sets, 4);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_str_eq(p.options.sets[i], sets[i]);
    }
    ck_assert(strtod(p.options.sets[3] + 6, NULL) == 1e300);
    SCOPED(json_drop) cJSON *settings = spec_point_settings(&spec, at);
    OWNED char *text = cJSON_PrintUnformatted(settings);
    ck_assert_str_eq(text, "{\"policy\":\"r:x=1,y=2\",\"params.x\":4,\"llm\":\"k\","
                           "\"workload.cv\":3,\"soc.d\":1e+300}");
    ck_assert_int_eq(spec_point(&spec, 0, &p, &err), 0);
    ck_assert_str_eq(p.policy, "p:x=3");
    ck_assert_uint_eq(p.options.seed, 6);
    ck_assert_str_eq(p.options.llm, "b");
    ck_assert_uint_eq(p.options.n_sets, 3);
}
END_TEST

/* Some of these keys begin another, and they come in every order of three. A value takes the place
 * of its own key and leaves all others. */
START_TEST(a_key_takes_the_place_of_its_own_name_alone)
{
    static const char *const keys[] = {"a", "ab", "abc", "b", "a_b", "bab"};
    for (size_t i = 0; i < COUNT_OF(keys) * COUNT_OF(keys) * COUNT_OF(keys); i++) {
        const char *x = keys[i % 6], *y = keys[i / 6 % 6], *set = keys[i / 36];
        char text[256], want[64];
        if (x == y) {
            continue;
        }
        (void)snprintf(text, sizeof text,
                       "{\"base\": {\"policy\": \"p:%s=1,%s=2\", \"params.%s\": 3,"
                       " \"workload\": \"w:%s=1,%s=2\", \"workload.%s\": 3}}",
                       x, y, set, x, y, set);
        int n = 0;
        if (set != x) {
            n += snprintf(want + n, sizeof want - (size_t)n, "%s=1,", x);
        }
        if (set != y) {
            n += snprintf(want + n, sizeof want - (size_t)n, "%s=2,", y);
        }
        (void)snprintf(want + n, sizeof want - (size_t)n, "%s=3", set);
        is_fine(text);
        struct spec_point p;
        ck_assert_int_eq(spec_point(&spec, 0, &p, &err), 0);
        ck_assert_str_eq(p.policy + 2, want);
        ck_assert_str_eq(p.options.workload + 2, want);
    }
}
END_TEST

START_TEST(a_point_of_no_settings_has_the_usual_ones)
{
    is_fine("{\"base\": {\"policy\": \"p\"}}");
    struct spec_point p;
    ck_assert_int_eq(spec_point(&spec, 0, &p, &err), 0);
    ck_assert_str_eq(p.options.soc, CONFIG_DEFAULT_SOC);
    ck_assert_str_eq(p.options.llm, CONFIG_DEFAULT_LLM);
    ck_assert_str_eq(p.options.workload, CONFIG_DEFAULT_WORKLOAD);
    ck_assert(p.options.trace == NULL && p.options.machine == NULL);
    ck_assert(p.arrivals.rate_scale == CONFIG_AS_WRITTEN.rate_scale);
    ck_assert_uint_eq(p.options.seed, 1);
    ck_assert_uint_eq(p.options.n_sets, 0);
    is_fine("{\"base\": {\"policy\": \"p\"}, \"horizon_s\": 0}");
    ck_assert_int_eq(spec_point(&spec, 0, &p, &err), 0);
    ck_assert_uint_eq(p.options.n_sets, 1);
    ck_assert_str_eq(p.options.sets[0], "sim.horizon_s=0");
    is_fine("{}");
    ck_assert_int_eq(spec_point(&spec, 0, &p, &err), -EINVAL);
    ck_assert_str_eq(err.lines[0], "policy: missing: neither in base nor varied");
}
END_TEST

/* A trace takes the place of a workload, and a workload that comes later that of the trace. */
START_TEST(a_trace_is_a_workload)
{
    struct spec_point p;
    is_fine("{\"base\": {\"policy\": \"p\", \"workload\": \"w1\"}, \"axes\": {\"trace\": "
            "[\"/t.csv\"]}}");
    ck_assert_int_eq(spec_point(&spec, 0, &p, &err), 0);
    ck_assert_str_eq(p.options.trace, "/t.csv");
    ck_assert_ptr_null(p.options.workload);
    is_fine("{\"base\": {\"policy\": \"p\", \"trace\": \"/t.csv\"}, \"axes\": {\"workload\": "
            "[\"w1\"]}}");
    ck_assert_int_eq(spec_point(&spec, 0, &p, &err), 0);
    ck_assert_ptr_null(p.options.trace);
    ck_assert_str_eq(p.options.workload, "w1");
    is_fine("{\"base\": {\"policy\": \"p\", \"trace\": \"/t.csv\", \"workload.cv\": 1},"
            " \"replications\": 2}");
    ck_assert_int_eq(spec_point(&spec, 0, &p, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 2);
    ck_assert_str_eq(err.lines[0], "workload.cv: the workload is a trace file; it has no keys");
    ck_assert_str_eq(err.lines[1],
                     "trace: a recorded trace is one replication, however often it runs; use "
                     "\"replications\": 1, and several traces as an axis");
}
END_TEST

/* As many paths as there is room for, and one more. */
START_TEST(paths_of_a_point_have_an_end)
{
    for (int more = 0; more < 2; more++) {
        SCOPED(text_fini) struct text t = {0};
        text_string(&t, "{\"base\": {\"policy\": \"p\"");
        for (int i = 0; i < CONFIG_MAX_SETS + more; i++) {
            text_format(&t, ", \"sim.k%d\": %d", i, i);
        }
        text_string(&t, "}}");
        is_fine(text_end(&t));
        struct spec_point p;
        ck_assert_int_eq(spec_point(&spec, 0, &p, &err), more == 0 ? 0 : -EINVAL);
        ck_assert_uint_eq(p.options.n_sets, CONFIG_MAX_SETS);
        OWNED char *last = xformat("sim.k%d=%d", CONFIG_MAX_SETS - 1, CONFIG_MAX_SETS - 1);
        ck_assert_str_eq(p.options.sets[CONFIG_MAX_SETS - 1], last);
    }
    OWNED char *why =
        xformat("sim.k%d: more than %d paths at one point", CONFIG_MAX_SETS, CONFIG_MAX_SETS);
    ck_assert_str_eq(err.lines[0], why);
}
END_TEST

/* Numbers have the fewest digits, from 15 on, that read back the same. */
START_TEST(numbers_of_a_point_read_back_the_same)
{
    static const struct {
        const char *in, *out;
    } all[] = {{"0.1", "0.1"},
               {"1", "1"},
               {"123456789012345", "123456789012345"},
               {"1234567890123456", "1234567890123456"},
               {"0.30000000000000004", "0.30000000000000004"},
               {"9007199254740993e3", "9.007199254740992e+18"},
               {"-2.5e-7", "-2.5e-07"}};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        OWNED char *text = xformat("{\"base\": {\"policy\": \"p\", \"sim.k\": %s}}", all[i].in);
        OWNED char *want = xformat("sim.k=%s", all[i].out);
        is_fine(text);
        struct spec_point p;
        ck_assert_int_eq(spec_point(&spec, 0, &p, &err), 0);
        if (i != 5) { /* of which only the value is by hand */
            ck_assert_str_eq(p.options.sets[0], want);
        }
        ck_assert(strtod(p.options.sets[0] + 6, NULL) == strtod(all[i].in, NULL));
    }
}
END_TEST

/* Every path of a point is relative to the file; absolute ones, names, and the system's programs
 * stay. */
START_TEST(paths_are_relative_to_the_file)
{
    static const struct {
        const char *policy, *want;
    } policies[] = {{"edf:a=1", "edf:a=1"},
                    {"./p.so:a=1", "f/g/./p.so:a=1"},
                    {"/p.so", "/p.so"},
                    {"python:p.py:C", "python:f/g/p.py:C"},
                    {"exec:./prog x", "exec:f/g/./prog x"},
                    {"exec:prog ./x", "exec:prog ./x"}};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct spec_point p = {.policy = xkeep(xstrdup(policies[i].policy)),
                               .soc = xkeep(xstrdup("s.json")),
                               .llm = xkeep(xstrdup("llama-3.2-3b")),
                               .workload =
                                   xkeep(xstrdup("mixed:reactive=a.csv,proactive=name,x=b.csv,"
                                                 "reactive=d/e,proactive=/c.csv")),
                               .trace = xkeep(xstrdup("t.csv")),
                               .machine = xkeep(xstrdup("m.json"))};
        spec_paths("f/g/s.json", &p);
        ck_assert_str_eq(p.policy, policies[i].want);
        ck_assert_str_eq(p.soc, "f/g/s.json");
        ck_assert_str_eq(p.llm, "llama-3.2-3b");
        ck_assert_str_eq(p.workload, "mixed:reactive=f/g/a.csv,proactive=name,x=b.csv,"
                                     "reactive=f/g/d/e,proactive=/c.csv");
        ck_assert_str_eq(p.trace, "f/g/t.csv");
        ck_assert_str_eq(p.machine, "f/g/m.json");
    }
    static const struct {
        const char *workload, *llm, *want, *want_llm;
    } files[] = {{"w.json", "a=m.json:bits=4,b=qwen3-0.6b,n/o.json", "f/w.json",
                  "a=f/m.json:bits=4,b=qwen3-0.6b,f/n/o.json"},
                 {"in/w.json:rate=2", "m.json:bits=4", "f/in/w.json:rate=2", "f/m.json:bits=4"},
                 {"/w.json", "/m.json", "/w.json", "/m.json"},
                 {"coding-agent:rate=2", "a=llama-3.2-3b:bits=4", "coding-agent:rate=2",
                  "a=llama-3.2-3b:bits=4"},
                 {"mixed:arrival=replay,events=e.csv", "llama-3.2-3b",
                  "mixed:arrival=replay,events=f/e.csv", "llama-3.2-3b"},
                 {"texts:n=2,file=t.jsonl", "m.json", "texts:n=2,file=f/t.jsonl", "f/m.json"}};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct spec_point p = {.policy = "edf",
                               .soc = "rtx-4090",
                               .llm = files[i].llm,
                               .workload = files[i].workload,
                               .trace = "",
                               .machine = ""};
        spec_paths("f/s.json", &p);
        ck_assert_str_eq(p.workload, files[i].want);
        ck_assert_str_eq(p.llm, files[i].want_llm);
    }
    struct spec_point here = {.policy = xkeep(xstrdup("p.so")),
                              .soc = xkeep(xstrdup("core-ultra-5-125h")),
                              .llm = xkeep(xstrdup("m.json")),
                              .workload = xkeep(xstrdup("xreactive=a.csv")),
                              .trace = xkeep(xstrdup("")),
                              .machine = xkeep(xstrdup(""))};
    spec_paths("f/s.json", &here);
    ck_assert_str_eq(here.soc, "core-ultra-5-125h");
    ck_assert_str_eq(here.llm, "f/m.json");
    ck_assert_str_eq(here.workload, "xreactive=a.csv");
    ck_assert(here.trace[0] == '\0' && here.machine[0] == '\0');
}
END_TEST

/* ---- trying values ---- */

/* Each value of every dimension is tried once, with the first of the others. Each error has its
 * place, and comes once. Between the 200th of a long list and its last nothing is tried. */
START_TEST(values_are_tried_where_they_stand)
{
    static const char nobody[] = "no policy is called";
    is_fine("{\"base\": {\"sim.horizon_s\": 1}, \"axes\": {\"policy\": [\"fcfs\", \"x1\", \"edf\", "
            "\"x2\"], \"soc\": [\"core-ultra-5-125h\", \"no-such\"]}}");
    ck_assert_int_eq(spec_check(&spec, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 3);
    static const char *const where[] = {
        "s.json: axes.policy[1]: ", "s.json: axes.policy[3]: ", "s.json: axes.soc[1]: "};
    for (int i = 0; i < 3; i++) {
        ck_assert_msg(strncmp(err.lines[i], where[i], strlen(where[i])) == 0, "%s", err.lines[i]);
        ck_assert_int_eq(strstr(err.lines[i], nobody) != NULL, i < 2);
    }
    err_fini(&err);
    is_fine("{\"base\": {\"policy\": \"nobody\"}}");
    ck_assert_int_eq(spec_check(&spec, &err), -EINVAL);
    ck_assert_msg(strncmp(err.lines[0], "s.json: base: ", 14) == 0, "%s", err.lines[0]);
    err_fini(&err);
    is_fine("{\"axes\": {\"policy\": [\"nobody\"], \"sim.horizon_s\": [1]}}");
    ck_assert_int_eq(spec_check(&spec, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    ck_assert_msg(strncmp(err.lines[0], "s.json: axes.policy[0], axes.sim.horizon_s[0]: ", 47) == 0,
                  "%s", err.lines[0]);
}
END_TEST

/* 204 values, of which 199, 200, 202 and 203 cannot be: the 200th (199) and the last are tried. */
START_TEST(long_lists_are_tried_at_their_ends)
{
    SCOPED(text_fini) struct text t = {0};
    text_string(&t, "{\"axes\": {\"policy\": [");
    for (int i = 0; i < 204; i++) {
        bool wrong = i == 199 || i == 200 || i >= 202;
        text_string(&t, i > 0 ? ", " : "");
        text_format(&t, wrong ? "\"nobody-%d\"" : "\"fcfs\"", i);
    }
    text_string(&t, "]}}");
    is_fine(text_end(&t));
    ck_assert_int_eq(spec_check(&spec, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 2);
    ck_assert_msg(strncmp(err.lines[0], "s.json: axes.policy[199]: ", 26) == 0, "%s", err.lines[0]);
    ck_assert_msg(strncmp(err.lines[1], "s.json: axes.policy[203]: ", 26) == 0, "%s", err.lines[1]);
}
END_TEST

START_TEST(metrics_are_those_of_some_point)
{
    is_fine("{\"base\": {\"policy\": \"fcfs\"}, \"replications\": 2,"
            " \"metrics\": [\"reactive.e2e_s.*\", \"no.*\", \"energy_j\", \"nothing\", "
            "\"reactive.below\", \"z*\"],"
            " \"until\": {\"reactive.e2e_s.mean\": {\"half_width\": 1},"
            " \"no.such\": {\"half_width\": 1}, \"zero\": {\"half_width\": 1}}}");
    ck_assert_int_eq(spec_check(&spec, &err), -EINVAL);
    static const char *const want[] = {"s.json: metrics[1]: no metric is called no.*",
                                       "s.json: metrics[3]: no metric is called nothing",
                                       "s.json: metrics[4]: no metric is called reactive.below",
                                       "s.json: metrics[5]: no metric is called z*",
                                       "s.json: until.no.such: no metric is called so",
                                       "s.json: until.zero: no metric is called so"};
    ck_assert_uint_eq(err.n, COUNT_OF(want));
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        ck_assert_str_eq(err.lines[i], want[i]);
    }
    err_fini(&err);
    is_fine("{\"base\": {\"policy\": \"fcfs\"}, \"replications\": 2,"
            " \"until\": {\"energy_j\": {\"half_width\": 1}, \"no.such\": {\"half_width\": 1}}}");
    ck_assert_int_eq(spec_check(&spec, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    ck_assert_str_eq(err.lines[0], "s.json: until.no.such: no metric is called so");
}
END_TEST

static const struct suite_row rows[] = {
    CASE("files", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(a_point_has_all_settings),
    TEST(a_key_takes_the_place_of_its_own_name_alone),
    TEST(a_point_of_no_settings_has_the_usual_ones),
    TEST(a_trace_is_a_workload),
    TEST(paths_of_a_point_have_an_end),
    TEST(numbers_of_a_point_read_back_the_same),
    TEST(paths_are_relative_to_the_file),
    TEST(values_are_tried_where_they_stand),
    TEST(long_lists_are_tried_at_their_ends),
    TEST(metrics_are_those_of_some_point),
};
SUITE_MAIN("points of experiment files", rows)
