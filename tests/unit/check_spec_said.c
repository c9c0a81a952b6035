/* Experiment files: every setting by its name, every refusal word for word and at both sides of its
 * limit. Points are in check_spec_point.c. */
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

/* All errors of a file, the lines joined by newlines; each begins with "s.json: ", left out here.
 */
static void says(const char *text, const char *want)
{
    SCOPED(text_fini) struct text t = {0};
    ck_assert_msg(load(text) == -EINVAL, "%s", text);
    for (size_t i = 0; i < err.n; i++) {
        ck_assert_msg(strncmp(err.lines[i], "s.json: ", 8) == 0, "%s", err.lines[i]);
        text_item(&t, "\n", err.lines[i] + 8);
    }
    ck_assert_str_eq(text_end(&t), want);
    err_fini(&err);
}

/* ---- names of settings ---- */

#define SETTINGS                                                                                   \
    "there are policy, soc, llm, workload, trace, machine, point, rate, seed, ttft_slo_s, "        \
    "tpot_slo_s, params.K, workload.K, soc.X, llm.X, sim.X"

static const char *const texts[] = {"policy", "soc",     "llm",  "workload",
                                    "trace",  "machine", "point"};
static const char *const numbers[] = {"rate", "seed", "ttft_slo_s", "tpot_slo_s"};
static const char *const paths[] = {"params.k", "workload.k", "soc.k", "llm.k", "sim.k"};
#define COUNT_OF(list) (sizeof(list) / sizeof(list)[0])

/* A setting where its place belongs gets one such error, for any setting. */
static void misplaced(const char *key, const char *value)
{
    OWNED char *text = xformat("{\"%s\": %s}", key, value);
    OWNED char *want =
        xformat("%s: a setting belongs in base (one value), axes or zip (lists), or rows", key);
    says(text, want);
}

START_TEST(every_setting_has_its_place)
{
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        misplaced(texts[i], "\"x\"");
    }
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        misplaced(numbers[i], "1");
    }
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        misplaced(paths[i], "1");
        OWNED char *text = xformat("{\"base\": {\"%s\": true}}", paths[i]);
        is_fine(text);
        /* A path that ends with its prefix is none. */
        char bare[16];
        (void)snprintf(bare, sizeof bare, "%.*s", (int)strlen(paths[i]) - 1, paths[i]);
        ck_assert(!spec_is_setting(bare));
    }
}
END_TEST

/* One letter more or less in a name of at least four letters gets an error with that name. */
START_TEST(every_setting_is_near_its_slips)
{
    for (size_t i = 0; i < COUNT_OF(texts) + COUNT_OF(numbers); i++) {
        const char *name = i < COUNT_OF(texts) ? texts[i] : numbers[i - COUNT_OF(texts)];
        OWNED char *text = xformat("{\"base\": {\"%sx\": 1}}", name);
        OWNED char *want = xformat(
            "base.%sx: no setting is called %sx; did you mean %s?; " SETTINGS, name, name, name);
        says(text, want);
    }
    says("{\"base\": {\"something\": 1}}",
         "base.something: no setting is called something; " SETTINGS);
}
END_TEST

/* ---- values ---- */

static void value(const char *key, const char *v, const char *why)
{
    OWNED char *text = xformat("{\"base\": {\"%s\": %s}}", key, v);
    if (why == NULL) {
        is_fine(text);
    } else {
        OWNED char *want = xformat("base.%s: %s", key, why);
        says(text, want);
    }
}

START_TEST(values_have_their_type_and_range)
{
    static const char not_text[] = "must be text, and not empty";
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        value(texts[i], "\"a\"", NULL);
        value(texts[i], "\"\"", not_text);
        value(texts[i], "1", not_text);
        value(texts[i], "null", not_text);
    }
    static const char not_number[] = "must be a number from 1e-06 to 1e+06";
    static const char *const ranged[] = {"rate", "ttft_slo_s", "tpot_slo_s"};
    for (size_t i = 0; i < COUNT_OF(ranged); i++) {
        value(ranged[i], "1e-6", NULL);
        value(ranged[i], "1e6", NULL);
        value(ranged[i], "0.99e-6", not_number);
        value(ranged[i], "1.01e6", not_number);
        value(ranged[i], "\"1\"", not_number);
    }
    static const char not_seed[] = "must be a whole number from 0 to 9007199254740992";
    value("seed", "0", NULL);
    value("seed", "9007199254740992", NULL);
    value("seed", "9007199254740994", not_seed);
    value("seed", "-1", not_seed);
    value("seed", "0.5", not_seed);
    value("seed", "\"1\"", not_seed);
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        value(paths[i], "1.5", NULL);
        value(paths[i], "false", NULL);
        value(paths[i], "\"x\"", NULL);
        value(paths[i], "null", "must be a number, true, false or text");
        value(paths[i], "[1]", "must be a number, true, false or text");
    }
}
END_TEST

/* ---- lists ---- */

START_TEST(ranges_are_lists)
{
    is_fine("{\"axes\": {\"rate\": {\"from\": 3, \"to\": 1, \"step\": -1},"
            " \"seed\": {\"from\": 2, \"to\": 4.5}}}");
    ck_assert_uint_eq(spec.n_dimensions, 2);
    const struct spec_dimension *d = spec.dimensions;
    ck_assert_str_eq(d[0].axes[0].path, "axes.rate");
    ck_assert_str_eq(d[0].axes[0].key, "rate");
    ck_assert_str_eq(d[1].axes[0].path, "axes.seed");
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(d[i].n_axes, 1);
        ck_assert_uint_eq(d[i].n, 3);
        ck_assert_uint_eq(d[i].axes[0].n, 3);
        for (uint32_t k = 0; k < 3; k++) {
            ck_assert_double_eq(d[i].axes[0].values[k]->valuedouble, i == 0 ? 3 - k : 2 + k);
        }
    }
    ck_assert_uint_eq(spec.n_points, 9);
    is_fine("{\"axes\": {\"rate\": {\"from\": 1, \"to\": 1, \"step\": 5}}}");
    ck_assert_uint_eq(spec.n_points, 1);
    says("{\"axes\": {\"rate\": {\"from\": 1, \"to\": 0}}}",
         "axes.rate: from 1 to 0 by 1 is empty: 0 runs; must be 1 to 1000000 values");
    says("{\"zip\": [{\"rate\": {\"from\": 1, \"to\": 2, \"step\": 0}}]}",
         "zip[0].rate: from 1 to 2 by 0 is empty: 0 runs; must be 1 to 1000000 values");
    says("{\"axes\": {\"seed\": {\"from\": 1, \"to\": 1000001}}}",
         "axes.seed: from 1 to 1e+06 by 1 is too long; must be 1 to 1000000 values");
    folder_put("s.json", "{\"axes\": {\"seed\": {\"from\": 1, \"to\": 1000000}}}");
    ck_assert_int_eq(spec_load(&spec, "s.json", true, &err), 0);
    ck_assert_uint_eq(spec.n_points, 1000000);
}
END_TEST

START_TEST(lists_have_their_form)
{
    says("{\"axes\": 1}", "axes: must be an object {...}");
    says("{\"base\": [1]}", "base: must be an object {...}");
    says("{\"axes\": {\"rate\": 1}}",
         "axes.rate: must be a list [...] or {\"from\", \"to\", \"step\"}");
    says("{\"axes\": {\"rate\": []}}", "axes.rate: empty: 0 runs");
    says("{\"axes\": {\"soc\": [\"a\", 1, \"\"]}}",
         "axes.soc[1]: must be text, and not empty\naxes.soc[2]: must be text, and not empty");
    says("{\"axes\": {\"soc\": [1, 2]}}", "axes.soc[0]: must be text, and not empty");
    says("{\"zip\": {}}", "zip: must be a list of objects [{...}]");
    says("{\"zip\": [1, {\"rate\": [1]}, {}]}",
         "zip[0]: must be an object {...}\nzip[2]: empty: 0 runs");
    says("{\"zip\": [{\"rate\": [1, 2], \"seed\": [1, 2, 3], \"soc\": [\"a\"]}]}",
         "zip[0].seed: has 3 values, zip[0].rate has 2; the lists of one zip group must be equally "
         "long\nzip[0].soc: has 1 value, zip[0].rate has 2; the lists of one zip group must be "
         "equally long");
    says("{\"rows\": {}}", "rows: must be a list of objects [{...}]");
    says("{\"rows\": []}", "rows: empty: 0 runs");
    says("{\"rows\": [{\"rate\": 1}, 2, {\"rate\": 0, \"seed\": -1}]}",
         "rows[1]: must be an object {...}\n"
         "rows[2].rate: must be a number from 1e-06 to 1e+06\n"
         "rows[2].seed: must be a whole number from 0 to 9007199254740992");
}
END_TEST

START_TEST(a_setting_varies_in_one_place)
{
    says("{\"axes\": {\"rate\": [1]}, \"zip\": [{\"soc\": [\"a\"], \"rate\": [2]}]}",
         "zip[0].rate: also set by axes.rate; a setting varies in one place");
    says("{\"axes\": {\"rate\": [1]}, \"rows\": [{\"seed\": 1}, {\"rate\": 2}]}",
         "axes.rate: also set by rows; a setting varies in one place");
    says("{\"zip\": [{\"rate\": [1], \"seed\": [1]}, {\"soc\": [\"a\"], \"seed\": [2]}]}",
         "zip[1].seed: also set by zip[0].rate; a setting varies in one place");
    says("{\"zip\": [{\"soc\": [\"a\"]}, {\"rate\": [1], \"seed\": [1]}], \"rows\": [{\"seed\": "
         "3}]}",
         "zip[1].seed: also set by rows; a setting varies in one place");
    static const char *const horizons[] = {"\"base\": {\"sim.horizon_s\": 2}",
                                           "\"axes\": {\"sim.horizon_s\": [2]}",
                                           "\"zip\": [{\"seed\": [1], \"sim.horizon_s\": [2]}]",
                                           "\"rows\": [{\"seed\": 1}, {\"sim.horizon_s\": 2}]"};
    for (size_t i = 0; i < sizeof horizons / sizeof horizons[0]; i++) {
        OWNED char *both = xformat("{\"horizon_s\": 0, %s}", horizons[i]);
        says(both, "horizon_s: also set as sim.horizon_s; state one of them");
    }
    is_fine("{\"axes\": {\"rate\": [1]}, \"zip\": [{\"seed\": [1], \"soc\": [\"a\"]}],"
            " \"rows\": [{\"llm\": \"m\"}, {\"llm\": \"n\", \"point\": \"p\"}], \"base\":"
            " {\"rate\": 2, \"seed\": 3, \"llm\": \"k\"}}");
}
END_TEST

/* Dimensions 0 to 31 are fine, and one more is refused in each of the three places. */
START_TEST(dimensions_have_an_end)
{
    SCOPED(text_fini) struct text t = {0};
    text_string(&t, "{\"axes\": {");
    for (int i = 0; i < 32; i++) {
        text_format(&t, "%s\"sim.k%d\": [%d]", i > 0 ? ", " : "", i, i);
    }
    OWNED char *whole = xformat("%s}}", text_end(&t));
    is_fine(whole);
    ck_assert_uint_eq(spec.n_dimensions, 32);
    OWNED char *axis = xformat("%s, \"sim.x\": [1]}}", text_end(&t));
    says(axis, "more than 32 dimensions");
    OWNED char *zip = xformat("%s}, \"zip\": [{\"sim.x\": [1]}]}", text_end(&t));
    says(zip, "more than 32 dimensions");
    OWNED char *rows = xformat("%s}, \"rows\": [{\"sim.x\": 1}]}", text_end(&t));
    says(rows, "more than 32 dimensions");
}
END_TEST

/* ---- the rest ---- */

START_TEST(other_keys_have_their_values)
{
    is_fine("{}");
    ck_assert_str_eq(spec.name, "");
    ck_assert_str_eq(spec.kept, "*");
    ck_assert_uint_eq(spec.n_points, 1);
    ck_assert_uint_eq(spec.replications, 1);
    ck_assert_uint_eq(spec.max_replications, 1);
    ck_assert(!spec.has_horizon && spec.warmup_s == 0.0 && spec.horizon_s == 0.0);
    is_fine("{\"name\": \"n\", \"replications\": 7, \"warmup_s\": 2.5, \"horizon_s\": 3,"
            " \"metrics\": [\"a.*\", \"b\"],"
            " \"until\": {\"a.x\": {\"half_width\": 0.25}, \"b\": {\"half_width_frac\": 0.5}},"
            " \"rows\": [{\"seed\": 1}, {\"seed\": 2}, {\"seed\": 3}]}");
    ck_assert_str_eq(spec.name, "n");
    ck_assert_str_eq(spec.kept, "a.*,b");
    ck_assert_uint_eq(spec.n_patterns, 2);
    ck_assert_str_eq(spec.patterns[0], "a.*");
    ck_assert_str_eq(spec.patterns[1], "b");
    ck_assert_uint_eq(spec.replications, 7);
    ck_assert_uint_eq(spec.max_replications, 140);
    ck_assert(spec.has_horizon && spec.warmup_s == 2.5 && spec.horizon_s == 3.0);
    ck_assert_uint_eq(spec.n_until, 2);
    ck_assert_str_eq(spec.until[0].metric, "a.x");
    ck_assert(!spec.until[0].relative && spec.until[0].half_width == 0.25);
    ck_assert_str_eq(spec.until[1].metric, "b");
    ck_assert(spec.until[1].relative && spec.until[1].half_width == 0.5);
    ck_assert_uint_eq(spec.n_points, 3);
    ck_assert_uint_eq(spec_runs(&spec, 5), 15);
    /* Metrics that every reader of results needs are kept, too. */
    ck_assert(spec_keeps(&spec, "a.y") && spec_keeps(&spec, "b") && !spec_keeps(&spec, "c"));
    ck_assert(spec_keeps(&spec, "npu.extrapolated_frac") && spec_keeps(&spec, "backlog.verdict"));
    is_fine("{\"replications\": 2, \"max_replications\": 2, \"horizon_s\": 0, \"warmup_s\": 9,"
            " \"until\": {\"b\": {\"half_width\": 0}}}");
    ck_assert_uint_eq(spec.max_replications, 2);
    ck_assert(spec_keeps(&spec, "anything"));
}
END_TEST

START_TEST(other_keys_are_refused_word_for_word)
{
    says("{\"horizon_s\": 3, \"warmup_s\": 3}", "horizon_s: 3 does not lie beyond warmup_s 3");
    says("{\"max_replications\": 5}", "max_replications: means nothing without until");
    says("{\"replications\": 1048576}", "replications: must be a whole number from 1 to 1048575");
    says("{\"until\": {\"b\": {\"half_width\": 1}}}",
         "replications: must be at least 2 with until: one run has no interval");
    says("{\"replications\": 2, \"until\": {}}", "until: names no metric");
    says("{\"replications\": 2, \"metrics\": [\"a\"],"
         " \"until\": {\"b\": {\"half_width\": 1}, \"a\": {\"half_width\": 1}}}",
         "until.b: not among the metrics to keep");
    static const char not_metric[] = "must be the name of a metric, * for any part; at most 64";
    OWNED char *second = xformat("metrics[1]: %s", not_metric);
    says("{\"metrics\": [\"a\", 1]}", second);
    says("{\"metrics\": [\"a\", \"\", 1]}", second);
    says("{\"metrics\": []}", "metrics: must be a list of names with at least one");
    says("{\"replications\": 2000, \"axes\": {\"seed\": [1, 2], \"rate\": {\"from\": 1, \"to\":"
         " 26}}}",
         "104000 runs (axes.seed 2 x axes.rate 26 x replications 2000); more than 100000 need "
         "--yes");
    is_fine("{\"replications\": 2000, \"axes\": {\"seed\": [1, 2], \"rate\": {\"from\": 1, \"to\":"
            " 25}}}");
    says("{\"replications\": 100000, \"axes\": {\"seed\": {\"from\": 1, \"to\": 10001}}}",
         "1000100000 runs (axes.seed 10001 x replications 100000); at most 1000000000");
    folder_put("s.json", "{\"replications\": 100000, \"axes\": {\"seed\": {\"from\": 1, \"to\":"
                         " 10000}}}");
    ck_assert_int_eq(spec_load(&spec, "s.json", true, &err), 0);
    ck_assert_uint_eq(spec_runs(&spec, spec.replications), 1000000000);
    is_fine("{\"replications\": 1000, \"axes\": {\"seed\": {\"from\": 1, \"to\": 100}}}");
}
END_TEST

/* 64 names and 16 ends of a search, and one more of each. */
START_TEST(names_of_metrics_have_an_end)
{
    SCOPED(text_fini) struct text t = {0};
    for (int i = 0; i < 64; i++) {
        text_format(&t, "%s\"m%d\"", i > 0 ? ", " : "", i);
    }
    OWNED char *most = xformat("{\"metrics\": [%s]}", text_end(&t));
    is_fine(most);
    ck_assert_uint_eq(spec.n_patterns, 64);
    ck_assert_uint_eq(strlen(spec.kept), 10 * 2 + 54 * 3 + 63);
    OWNED char *more = xformat("{\"metrics\": [%s, \"m\"]}", text_end(&t));
    says(more, "metrics[64]: must be the name of a metric, * for any part; at most 64");
    SCOPED(text_fini) struct text u = {0};
    for (int i = 0; i < 16; i++) {
        text_format(&u, "%s\"m%d\": {\"half_width\": 1}", i > 0 ? ", " : "", i);
    }
    OWNED char *ends = xformat("{\"replications\": 2, \"until\": {%s}}", text_end(&u));
    is_fine(ends);
    ck_assert_uint_eq(spec.n_until, 16);
    OWNED char *too_many =
        xformat("{\"replications\": 2, \"until\": {%s, \"m\": {\"half_width\": 1}}}", text_end(&u));
    says(too_many, "until: more than 16 metrics");
}
END_TEST

START_TEST(policies_of_a_user_are_an_axis)
{
    static const char *const policies[] = {"edf", "fcfs:x=1"};
    folder_put("s.json", "{\"base\": {\"rate\": 2}, \"axes\": {\"seed\": [1, 2, 3]}}");
    ck_assert_int_eq(spec_load_with(&spec, "s.json", policies, 2, false, &err), 0);
    ck_assert_uint_eq(spec.n_points, 6);
    ck_assert_str_eq(spec.canonical, "{\"base\":{\"rate\":2},\"axes\":{\"seed\":[1,2,3],"
                                     "\"policy\":[\"edf\",\"fcfs:x=1\"]}}");
    folder_put("s.json", "{}");
    ck_assert_int_eq(spec_load_with(&spec, "s.json", policies, 1, false, &err), 0);
    ck_assert_str_eq(spec.canonical, "{\"axes\":{\"policy\":[\"edf\"]}}");
    static const char *const named[] = {"{\"base\": {\"policy\": \"edf\"}}",
                                        "{\"axes\": {\"policy\": [\"edf\"]}}"};
    for (int i = 0; i < 2; i++) {
        folder_put("s.json", named[i]);
        ck_assert_int_eq(spec_load_with(&spec, "s.json", policies, 1, false, &err), -EINVAL);
        ck_assert_str_eq(err.lines[i], "--policy: s.json names its policies");
    }
}
END_TEST

static const struct suite_row rows[] = {
    CASE("files", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(every_setting_has_its_place),
    TEST(every_setting_is_near_its_slips),
    TEST(values_have_their_type_and_range),
    TEST(ranges_are_lists),
    TEST(lists_have_their_form),
    TEST(a_setting_varies_in_one_place),
    TEST(dimensions_have_an_end),
    TEST(other_keys_have_their_values),
    TEST(other_keys_are_refused_word_for_word),
    TEST(names_of_metrics_have_an_end),
    TEST(policies_of_a_user_are_an_axis),
};
SUITE_MAIN("experiment files", rows)
