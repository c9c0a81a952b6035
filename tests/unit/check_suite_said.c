/* Suites: what is read of a file, what is refused word for word, and what its hash is of. */
#include <stdlib.h>
#include <string.h>

#include "experiments/sweep/suite.h"
#include "sim/base/json.h"
#include "sim/base/text.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

#define LOAD "mixed:reactive_per_min=6,proactive_per_min=6,duration_s=10"

static struct err err;
static struct suite *suite;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    folder_enter();
    suite = xcalloc(1, sizeof *suite);
    memset(suite, 0xa5, sizeof *suite); /* nothing of it is read */
}

static void teardown(void)
{
    free(suite);
    err_fini(&err);
    folder_leave();
}

/* A suite of two points by its parts. */
static char *text_of(const char *object, const char *rows, const char *rest)
{
    return xformat("{\"name\": \"n\", \"suite\": {%s}, \"base\": {\"workload\": \"" LOAD
                   "\", \"sim.truth_sigma\": 0.1}, \"rows\": [%s]%s}",
                   object, rows, rest);
}

#define OBJECT "\"about\": \"a\", \"references\": [\"fcfs\", \"edf\"]"
#define ROWS "{\"point\": \"first\"}, {\"point\": \"second\", \"seed\": 8, \"rate\": 2}"
#define REST ", \"replications\": 3, \"metrics\": [\"reactive.ttft_s.mean\", \"energy_j\"]"

static int load(const char *object, const char *rows, const char *rest)
{
    OWNED char *text = text_of(object, rows, rest);
    folder_put("s.json", text);
    return suite_load(suite, "./s.json", &err);
}

static void is_fine(const char *object, const char *rows, const char *rest)
{
    ck_assert_msg(load(object, rows, rest) == 0, "%s", err.n > 0 ? err.lines[0] : "");
}

static void says(const char *object, const char *rows, const char *rest, const char *want)
{
    SCOPED(text_fini) struct text t = {0};
    ck_assert_int_eq(load(object, rows, rest), -EINVAL);
    for (size_t i = 0; i < err.n; i++) {
        text_item(&t, "\n", err.lines[i]);
    }
    ck_assert_str_eq(text_end(&t), want);
    err_fini(&err);
}

START_TEST(a_suite_is_read)
{
    is_fine(OBJECT ", \"unscored\": [\"second\"], \"sealed\": \"f/t.json\", \"hash\": \"x\"", ROWS,
            REST);
    ck_assert_uint_eq(suite->n_points, 2);
    ck_assert_str_eq(suite->points[0].name, "first");
    ck_assert_str_eq(suite->points[1].name, "second");
    ck_assert(suite->points[0].scored && !suite->points[1].scored);
    ck_assert_uint_eq(suite->n_references, 2);
    ck_assert_str_eq(suite->references[0], "fcfs");
    ck_assert_str_eq(suite->references[1], "edf");
    ck_assert_str_eq(suite->sealed, "./f/t.json");
    ck_assert_str_eq(suite->recorded, "x");
    ck_assert(!suite_is_frozen(suite));
    ck_assert_uint_eq(suite->spec.replications, 3);
    ck_assert(suite->points[1].settings.arrivals.rate_scale == 2.0);
    ck_assert(suite->points[1].config.sim.truth_sigma == 0.1);
    ck_assert(suite->points[0].settings.options.several);
    struct config_policy p = {.label = "p"};
    struct study_cell c = suite_cell(suite, 1, &p, 2);
    ck_assert_ptr_eq(c.config, &suite->points[1].config);
    ck_assert_ptr_eq(c.options, &suite->points[1].settings.options);
    ck_assert_ptr_eq(c.policy, &p);
    ck_assert_uint_eq(c.seed, config_seed(8, 2));
    ck_assert(c.arrivals.rate_scale == 2.0);
    /* Its own hash freezes it. */
    OWNED char *frozen = xformat(OBJECT ", \"hash\": \"%s\"", suite->hash);
    is_fine(frozen, ROWS, REST);
    ck_assert(!suite_is_frozen(suite)); /* the hash was of another: a point is scored now */
    OWNED char *again = xformat(OBJECT ", \"hash\": \"%s\"", suite->hash);
    is_fine(again, ROWS, REST);
    ck_assert(suite_is_frozen(suite));
    /* A missing key gives nothing; an absolute path stays. */
    is_fine(OBJECT, ROWS, REST);
    ck_assert_ptr_null(suite->sealed);
    ck_assert_str_eq(suite->recorded, "");
    ck_assert(suite->points[1].scored);
    is_fine(OBJECT ", \"sealed\": \"/t.json\"", ROWS, REST);
    ck_assert_str_eq(suite->sealed, "/t.json");
}
END_TEST

START_TEST(a_suite_that_is_none_is_refused)
{
    folder_put("s.json", "{\"base\": {\"rate\": 1}}");
    ck_assert_int_eq(suite_load(suite, "./s.json", &err), -EINVAL);
    ck_assert_str_eq(err.lines[0], "./s.json: no suite: it has no object \"suite\"");
    err_fini(&err);
    says(OBJECT, "{\"point\": \"a\"}, {\"seed\": 1}", REST,
         "./s.json: rows[1]: a point of a suite needs a name, \"point\"");
    says(OBJECT, "{\"point\": \"a\"}, {\"point\": \"b\"}, {\"point\": \"a\", \"seed\": 2}", REST,
         "./s.json: rows[2].point: a is there already");
    says(OBJECT ", \"unscored\": [\"second\", \"third\"]", ROWS, REST,
         "./s.json: suite.unscored: no point is called third");
    says(OBJECT, ROWS, REST ", \"warmup_s\": 5", "./s.json: warmup_s: not in a suite");
    says(OBJECT, ROWS, REST ", \"until\": {\"energy_j\": {\"half_width\": 1}}",
         "./s.json: until: not in a suite");
    says(OBJECT, ROWS, ", \"replications\": 3", "./s.json: metrics: a suite names 1 to 8 metrics");
    static const char none[] = "metrics no.such: no metric is called so";
    ck_assert_int_eq(load(OBJECT, ROWS, ", \"metrics\": [\"energy_j\", \"no.such\"]"), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    ck_assert_msg(strstr(err.lines[0], "no.such") != NULL, "%s, not %s", err.lines[0], none);
    err_fini(&err);
}
END_TEST

/* 32 points and 8 metrics, and one more of each. */
START_TEST(a_suite_has_an_end)
{
    SCOPED(text_fini) struct text t = {0};
    for (int i = 0; i < 32; i++) {
        text_format(&t, "%s{\"point\": \"p%d\", \"sim.horizon_s\": 1}", i > 0 ? ", " : "", i);
    }
    is_fine(OBJECT, text_end(&t), REST);
    ck_assert_uint_eq(suite->n_points, 32);
    ck_assert_str_eq(suite->points[31].name, "p31");
    OWNED char *more = xformat("%s, {\"point\": \"x\"}", text_end(&t));
    says(OBJECT, more, REST, "./s.json: 33 points; at most 32");
#define EIGHT                                                                                      \
    "\"energy_j\", \"reactive.ttft_s.mean\", \"reactive.ttft_s.p50\", \"reactive.ttft_s.p90\", "   \
    "\"reactive.ttft_s.p99\", \"reactive.e2e_s.mean\", \"reactive.e2e_s.p50\", "                   \
    "\"reactive.e2e_s.p90\""
    is_fine(OBJECT, ROWS, ", \"metrics\": [" EIGHT "]");
    ck_assert_uint_eq(suite->spec.n_patterns, 8);
    says(OBJECT, ROWS, ", \"metrics\": [" EIGHT ", \"all.e2e_s.mean\"]",
         "./s.json: metrics: a suite names 1 to 8 metrics");
}
END_TEST

static void hashed(const char *object, const char *rows, const char *rest, char hash[24])
{
    is_fine(object, rows, rest);
    memcpy(hash, suite->hash, 24);
}

/* Every part of what is run changes the hash; what only describes it does not. */
START_TEST(a_hash_is_of_all_that_is_run)
{
    static const char *const changed[][3] = {
        {OBJECT, "{\"point\": \"other\"}, {\"point\": \"second\", \"seed\": 8, \"rate\": 2}", REST},
        {OBJECT, "{\"point\": \"first\"}, {\"point\": \"other\", \"seed\": 8, \"rate\": 2}", REST},
        {OBJECT, "{\"point\": \"first\"}, {\"point\": \"second\", \"seed\": 9, \"rate\": 2}", REST},
        {OBJECT, "{\"point\": \"first\"}, {\"point\": \"second\", \"seed\": 8, \"rate\": 3}", REST},
        {OBJECT,
         "{\"point\": \"first\", \"sim.stall_s\": 7}, {\"point\": \"second\", \"seed\": 8, "
         "\"rate\": 2}",
         REST},
        {OBJECT ", \"unscored\": [\"first\"]", ROWS, REST},
        {"\"about\": \"a\", \"references\": [\"edf\", \"fcfs\"]", ROWS, REST},
        {OBJECT, ROWS,
         ", \"replications\": 4, \"metrics\": [\"reactive.ttft_s.mean\", \"energy_j\"]"},
        {OBJECT, ROWS,
         ", \"replications\": 3, \"metrics\": [\"energy_j\", \"reactive.ttft_s.mean\"]"}};
    static const char *const same[][3] = {
        {"\"about\": \"b\", \"references\": [\"fcfs\", \"edf\"]", ROWS, REST},
        {"\"about\": \"a\", \"references\": [\"fcfs\"]", ROWS, REST},
        {OBJECT ", \"sealed\": \"t\"", ROWS, REST}};
    enum { N = sizeof changed / sizeof changed[0] };
    char hash[N + 1][24];
    hashed(OBJECT, ROWS, REST, hash[N]);
    ck_assert_uint_eq(strlen(hash[N]), 16);
    for (int i = 0; i < N; i++) {
        hashed(changed[i][0], changed[i][1], changed[i][2], hash[i]);
        for (int k = 0; k < i; k++) {
            ck_assert_msg(strcmp(hash[i], hash[k]) != 0, "%d %d", i, k);
        }
        ck_assert_msg(strcmp(hash[i], hash[N]) != 0, "%d", i);
    }
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        char is[24];
        hashed(same[i][0], same[i][1], same[i][2], is);
        ck_assert_str_eq(is, hash[N]);
    }
}
END_TEST

/* Each option that says what a point says, alone. */
START_TEST(options_of_points_are_refused)
{
    static const char *const words[][2] = {{"--soc", "core-ultra-7-258v"},
                                           {"--soc", CONFIG_DEFAULT_SOC},
                                           {"--llm", "llama-3.2-3b"},
                                           {"--trace", "t.csv"},
                                           {"--workload", LOAD},
                                           {"--machine", "m.json"},
                                           {"--seed", "1"},
                                           {"--ttft-slo", "1"},
                                           {"--tpot-slo", "1"},
                                           {"--set", "sim.stall_s=1"}};
    folder_put("t.csv", "");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        SCOPED(said_fini)
        struct said s = COMMANDED(cmd_compare, "--policy", "fcfs", "--suite", "./none.json",
                                  words[i][0], words[i][1]);
        said_refused(&s, "--suite: its points say machine, model, workload, targets, settings and "
                         "seed; these options do not go with it");
    }
    struct config_options usual = config_options_default();
    ck_assert_int_eq(suite_refuse_options(&usual, &err), 0);
    usual.soc = NULL;
    ck_assert_int_eq(suite_refuse_options(&usual, &err), 0);
}
END_TEST

/* A point has the same requests as a run without a suite, so metrics that options ask for agree. A
 * reader who waits 10,000 s for a first token is never late, so the experience is 1. */
START_TEST(metrics_asked_for_are_those_of_each_point)
{
    folder_put("s.json",
               "{\"name\": \"n\", \"suite\": {\"about\": \"a\", \"references\": [\"fcfs\"]}, "
               "\"base\": {\"workload\": \"w1:n=5\"}, \"rows\": [{\"point\": \"x\"}], "
               "\"metrics\": [\"energy_j\"]}");
    SCOPED(said_fini)
    struct said one = COMMANDED(cmd_compare, "--policy", "fcfs", "--workload", "w1:n=5", "--json",
                                "--replications", "1", "--quantile", "97.5", "--below", "3",
                                "--qoe", "10000,1", "--jobs", "1");
    SCOPED(said_fini)
    struct said suites = COMMANDED(cmd_compare, "--policy", "fcfs", "--suite", "./s.json", "--json",
                                   "--replications", "1", "--quantile", "97.5", "--below", "3",
                                   "--qoe", "10000,1", "--jobs", "1");
    ck_assert_msg(one.status == EXIT_OK && suites.status == EXIT_OK, "%s%s", one.err, suites.err);
    SCOPED(json_drop) cJSON *alone = cJSON_Parse(one.out);
    SCOPED(json_drop) cJSON *all = cJSON_Parse(suites.out);
    const cJSON *at[] = {alone, cJSON_GetArrayItem(cJSON_GetObjectItem(all, "points"), 0)};
    static const char *const names[] = {"reactive.qoe.mean", "reactive.e2e_s.p97.5",
                                        "reactive.e2e_s.below:3"};
    double value[2][3];
    for (int i = 0; i < 6; i++) {
        const cJSON *of = cJSON_GetObjectItem(cJSON_GetObjectItem(at[i / 3], "policies"), "fcfs");
        value[i / 3][i % 3] = json_number(cJSON_GetObjectItem(of, names[i % 3]), "mean");
    }
    ck_assert_double_eq(value[1][0], 1.0);
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq(value[1][i], value[0][i]);
    }
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_search, "--policy", "fcfs", "--suite", "./s.json", "--slo",
                              "reactive.e2e_s.p97.5<=10000", "--replications", "2", "--jobs", "1");
    ck_assert_msg(strstr(s.out, "nothing is missed even at") != NULL, "%s%s", s.out, s.err);
}
END_TEST

static const struct suite_row rows[] = {
    CASE("suites", .setup = setup, .teardown = teardown),
    TEST(a_suite_is_read),
    TEST(a_suite_that_is_none_is_refused),
    TEST(a_suite_has_an_end),
    TEST(a_hash_is_of_all_that_is_run),
    TEST(options_of_points_are_refused),
    TEST(metrics_asked_for_are_those_of_each_point),
};
SUITE_MAIN("suites", rows)
