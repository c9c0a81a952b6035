/* Findings of falsify, in words and as data: made-up results and the texts that follow from them;
 * the replication that explains a loss; and the parameters that a claims fit leaves open. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/claims/fit.h"
#include "experiments/falsify/runs.h"
#include "sim/base/arena.h"
#include "tests/helpers/said.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

static struct config_options options;
static struct config config;
static struct space space;
static struct config_policy policies[2];
static struct err err;
static const struct study_how how = {.parallel = 1, .cpu_limit_s = 60.0};

static void setup(void)
{
    err = (struct err)ERR_INIT;
    options = config_options_default();
    options.workload = "mixed:reactive_per_min=30,proactive_per_min=20,duration_s=10";
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    ck_assert_int_eq(space_init(&space, &options, &config, "workload", &err), 0);
    ck_assert_int_eq(config_policy_parse(&policies[0], "fcfs", &err), 0);
    ck_assert_int_eq(config_policy_parse(&policies[1], "agent-xpu-v2", &err), 0);
}

static void teardown(void)
{
    config_fini(&config);
    err_fini(&err);
}

static struct stats_interval around(double ratio, double factor, uint32_t n)
{
    return (struct stats_interval){
        .mean = log(ratio), .low = log(ratio / factor), .high = log(ratio * factor), .n = n};
}

/* The axes' rows: the worst point moves all axes, the least the second one alone. */
static void put_axes(struct text *text, struct text *json, const struct falsify_result *r)
{
    text_string(text, "\nscenarios\nvaried from to as given worst found needed\n");
    text_string(json, "\"axes\":{");
    for (uint32_t i = 0; i < space.n; i++) {
        const struct space_axis *a = &space.axis[i];
        bool any = !isnan(r->worst_searched);
        double worst = space_value(&space, &r->worst, i);
        double least = space_value(&space, &r->least, i);
        bool needed = r->found && !space_is_nominal(&space, &r->least, i);
        OWNED char *w = any ? xformat("%g", worst) : xstrdup("-");
        OWNED char *l = needed ? xformat(" %g", least) : xstrdup("");
        text_format(text, "%s %g %g %g %s%s %s\n", a->name, a->low, a->high, a->nominal, w, l,
                    a->help);
        text_format(json, "%s\"%s\":{\"low\":%.17g,\"high\":%.17g,\"nominal\":%.17g,",
                    i > 0 ? "," : "", a->name, a->low, a->high, a->nominal);
        text_format(json, any ? "\"worst\":%.17g," : "\"worst\":null,", worst);
        text_format(json, needed ? "\"least\":%.17g}" : "\"least\":null}", least);
    }
    text_string(json, "}");
}

static void same_json(const struct document *d, const char *want)
{
    OWNED char *is = said_json(d);
    const char *p = is;
    const char *q = want;
    while (*p != '\0' && *q != '\0') { /* number by number, and letter by letter between */
        if (strchr("0123456789", *p) != NULL && strchr("0123456789", *q) != NULL) {
            char *end_p;
            char *end_q;
            ck_assert_double_eq_tol(strtod(p, &end_p), strtod(q, &end_q), 1e-6);
            p = end_p;
            q = end_q;
        } else {
            ck_assert_msg(*p == *q, "%s\nnot\n%s", p, q);
            p++;
            q++;
        }
    }
    ck_assert_msg(*p == *q, "%s and %s", p, q);
}

static struct falsify_result result;
static struct falsify_runs runs;
static const struct falsify_options asked = {
    .metric = "all.e2e_s.mean", .budget = 9, .replications = 3, .confirm = 8};

static void make(void)
{
    result = (struct falsify_result){.given = around(1.25, 1.25, 5),
                                     .n_tried = 9,
                                     .n_out = 2,
                                     .worst = space_nominal(&space),
                                     .worst_searched = log(4),
                                     .worst_confirmed = around(3, 1.5, 6),
                                     .least = space_nominal(&space),
                                     .least_confirmed = around(2, 2, 7),
                                     .found = true};
    for (uint32_t i = 0; i < space.n; i++) {
        result.worst.u[i] = result.worst.u[i] > 0.5 ? 0.25 : 0.75;
    }
    result.least.u[1] = result.worst.u[1];
    runs = (struct falsify_runs){.space = &space,
                                 .policy = {&policies[0], &policies[1]},
                                 .metric = "all.e2e_s.mean",
                                 .how = how,
                                 .n_runs = 123,
                                 .n_cut = 6};
}

#define HEAD                                                                                       \
    "all.e2e_s.mean of fcfs against agent-xpu-v2: 9 scenarios x 3 seeds searched (2 out), 123 "    \
    "runs in all\n"
#define CUT "in 6 pairs of runs a battery was empty before all requests were served: no ratio\n"
#define DATA(found)                                                                                \
    "{\"policy\":\"fcfs\",\"baseline\":\"agent-xpu-v2\",\"metric\":\"all.e2e_s.mean\","            \
    "\"worlds\":9,\"worlds_out\":2,\"runs\":123,\"pairs_cut\":6,\"found\":" found ","
#define WELL                                                                                       \
    "\"failures\":{\"fcfs\":{\"n\":0,\"message\":\"\"},\"agent-xpu-v2\":{\"n\":0,\"message\":"     \
    "\"\"}},"
#define GIVEN "\"given\":{\"ratio\":1.25,\"low\":1,\"high\":1.5625,\"n\":5},"

START_TEST(nothing_found_is_said)
{
    make();
    result.found = false;
    for (int searched = 0; searched < 2; searched++) {
        result.worst_searched = searched ? log(4) : (double)NAN;
        struct document *d = document_new();
        falsify_document(&asked, &runs, &result, d);
        SCOPED(text_fini) struct text want = {0};
        SCOPED(text_fini) struct text json = {0};
        text_string(&want, HEAD CUT "as given: 1.25 times [1, 1.56], n=5 the baseline's\n");
        text_string(&json, DATA("false") WELL GIVEN);
        if (searched) {
            text_string(&want, "worst scenario of the search: 4 times the baseline's; on fresh "
                               "seeds 3 times [2, 4.5], n=6\n");
            text_string(&json, "\"worst_searched_ratio\":4,\"worst\":{\"ratio\":3,\"low\":2,"
                               "\"high\":4.5,\"n\":6},");
        }
        text_string(&want, "nothing found: no scenario in which fcfs is shown to lose to "
                           "agent-xpu-v2\n");
        if (searched) {
            text_string(&want, "the worst one does not count: 2 of 8 fresh seeds have no ratio (a "
                               "failed run, or no request of the class)\n");
        }
        put_axes(&want, &json, &result);
        text_string(&json, "}");
        shown_is(d, text_end(&want), NULL);
        same_json(d, text_end(&json));
    }
}
END_TEST

/* A metric that is 0 on one side has no ratio in any replication. */
START_TEST(where_nothing_has_a_ratio_no_number_is_told)
{
    make();
    result.found = false;
    result.worst_searched = (double)NAN;
    result.given =
        (struct stats_interval){.mean = (double)NAN, .low = (double)NAN, .high = (double)NAN};
    struct document *d = document_new();
    falsify_document(&asked, &runs, &result, d);
    OWNED char *text = said_text(d);
    ck_assert_msg(strstr(text, "\nas given: not defined\nnothing found") != NULL, "%s", text);
}
END_TEST

/* A loss of 1.25 in throughput means that the baseline has 1.25 times as much as the policy. */
START_TEST(what_more_is_better_of_is_told_the_other_way_round)
{
    struct falsify_options more = asked;
    more.metric = "all.throughput_req_per_min";
    make();
    struct document *d = document_new();
    falsify_document(&more, &runs, &result, d);
    OWNED char *text = said_text(d);
    static const char *const lines[] = {
        "\nas given: 1.25 times [1, 1.56], n=5, the baseline's over the policy's\n",
        "\nworst scenario of the search: 4 times, the baseline's over the policy's; on fresh seeds "
        "3 "
        "times [2, 4.5], n=6\n",
        "\nthe smallest change that keeps half of it in logarithms: 2 times [1, 4], n=7, the "
        "baseline's over the "
        "policy's\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ck_assert_msg(strstr(text, lines[i]) != NULL, "%s", text);
    }
}
END_TEST

#define FOUND                                                                                      \
    "as given: 1.25 times [1, 1.56], n=5 the baseline's\n"                                         \
    "worst scenario of the search: 4 times the baseline's; on fresh seeds 3 times [2, 4.5], "      \
    "n=6\nthe smallest change that keeps half of it in logarithms: 2 times [1, 4], n=7 the "       \
    "baseline's\n"

/* With a reason or without one; a side that failed is named. */
START_TEST(a_loss_is_told_with_its_reason)
{
    make();
    OWNED char *at = space_command(&space, &result.least);
    for (int reason = 0; reason < 3; reason++) {
        runs.reason = (struct falsify_reason){.seed = 18446744073709551615u, .found = reason > 0};
        struct explanation *a = &runs.reason.request[0].x;
        struct explanation *b = &runs.reason.request[1].x;
        *a = (struct explanation){.request_id = 41,
                                  .cls = reason == 1 ? REQUEST_CLASS_REACTIVE
                                                     : REQUEST_CLASS_PROACTIVE,
                                  .input_tokens = 300,
                                  .output_tokens = 20,
                                  .arrival_ns = 1000000000,
                                  .end_ns = 5500000000,
                                  .n_blockers = 2};
        *b = *a;
        b->end_ns = 2250000000;
        a->ns[EXPLAIN_EVICTION] = 1500000000;
        a->ns[EXPLAIN_COMPUTE] = 3000000000;
        b->ns[EXPLAIN_COMPUTE] = 1000000000;
        b->ns[EXPLAIN_HELD] = 250000000;
        runs.reason.request[0].first[0] =
            (struct explain_blocker){7, REQUEST_CLASS_REACTIVE, 1000000000, 2000000, 30000000};
        runs.reason.request[0].first[1] =
            (struct explain_blocker){9, REQUEST_CLASS_PROACTIVE, 0, 0, 500000000};
        runs.reason.request[0].job = reason == 2 ? 3 : UINT32_MAX;
        runs.reason.request[1].job = UINT32_MAX;
        runs.n_failed[0] = reason == 2 ? 4 : 0;
        (void)snprintf(runs.message[0], sizeof runs.message[0], "%s",
                       reason == 2 ? "out of luck" : "");
        struct document *d = document_new();
        falsify_document(&asked, &runs, &result, d);
        SCOPED(text_fini) struct text want = {0};
        SCOPED(text_fini) struct text json = {0};
        text_format(&want, HEAD "%s" CUT FOUND,
                    reason == 2 ? "fcfs failed in 4 runs in which the other did not: out of luck\n"
                                : "");
        text_string(&json, DATA("true"));
        text_string(&json, reason == 2
                               ? "\"failures\":{\"fcfs\":{\"n\":4,\"message\":\"out of luck\"},"
                                 "\"agent-xpu-v2\":{\"n\":0,\"message\":\"\"}},"
                               : WELL);
        text_string(&json, GIVEN "\"worst_searched_ratio\":4,\"worst\":{\"ratio\":3,\"low\":2,"
                                 "\"high\":4.5,\"n\":6},\"least\":{\"ratio\":2,\"low\":1,"
                                 "\"high\":4,\"n\":7},");
        put_axes(&want, &json, &result);
        if (reason > 0) {
            text_format(&want,
                        "\nwhy: request 41 of seed 18446744073709551615\n%s, 300 prompt and 20 "
                        "output tokens: 4.500 s under fcfs, 1.250 s under agent-xpu-v2\n"
                        "cause policy s baseline s\n",
                        reason == 1 ? "reactive" : "proactive");
            text_string(&json, ",\"reason\":{\"seed\":18446744073709552000,\"request_id\":41,"
                               "\"input_tokens\":300,\"output_tokens\":20,\"latency_s\":4.5,"
                               "\"baseline_latency_s\":1.25},\"causes\":{");
            static const struct {
                enum explain_cause cause;
                const char *name, *numbers, *data;
            } causes[] = {{EXPLAIN_EVICTION, "eviction", "1.500 0.000", "1.5,\"baseline_s\":0}"},
                          {EXPLAIN_HELD, "held", "0.000 0.250", "0,\"baseline_s\":0.25}"},
                          {EXPLAIN_COMPUTE, "compute", "3.000 1.000", "3,\"baseline_s\":1}"}};
            for (int i = 0; i < 3; i++) {
                text_format(&want, "%s %s %s\n", causes[i].name, causes[i].numbers,
                            explain_cause_texts[causes[i].cause]);
                text_format(&json, "%s\"%s\":{\"policy_s\":%s", i > 0 ? "," : "", causes[i].name,
                            causes[i].data);
            }
            text_string(&want, "in the way: request 7 (reactive), 1.032 s\n"
                               "in the way: request 9 (proactive), 0.500 s\n");
            text_string(&json, "}");
        }
        OWNED char *compare =
            xformat("xpusim compare --policy fcfs --policy agent-xpu-v2 --baseline agent-xpu-v2 "
                    "--metric all.e2e_s.mean --seed 18446744073709551615 %s",
                    at);
        text_format(&want, "\nagain\n%s\n", compare);
        text_format(&json, ",\"compare_command\":\"%s\"}", compare);
        for (int i = 0; i < 2 && reason > 0; i++) {
            const char *label = i == 0 ? "fcfs" : "agent-xpu-v2";
            text_format(&want,
                        "xpusim explain --request 41 --policy %s --seed 18446744073709551615 %s\n",
                        label, at);
            if (i == 0 && reason == 2) {
                text_format(&want,
                            "xpusim explain --job 3 --policy %s --seed 18446744073709551615 %s\n",
                            label, at);
            }
        }
        shown_is(d, text_end(&want), NULL);
        ck_assert_ptr_null(strchr(at, '"'));
        same_json(d, text_end(&json));
    }
}
END_TEST

/* The loss of the least scenario is explained on the seed that lost most. */
START_TEST(the_worst_replication_explains)
{
    static struct falsify_result r;
    struct falsify_runs of = {.space = &space,
                              .policy = {&policies[0], &policies[1]},
                              .metric = "reactive.e2e_s.mean",
                              .how = how};
    struct falsify_options o = {.metric = "reactive.e2e_s.mean",
                                .budget = 3,
                                .replications = 2,
                                .confirm = 5,
                                .relevance_frac = 0.01,
                                .seed = 1};
    config_fini(&config);
    options.workload = "mixed:reactive_per_min=40,proactive_per_min=60,duration_s=20";
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    ck_assert_int_eq(space_init(&space, &options, &config, "workload", &err), 0);
    falsify_run(&of, &o, &r);
    ck_assert_msg(r.found && of.reason.found, "%d %g [%g, %g]", r.found, r.worst_searched,
                  r.worst_confirmed.low, r.worst_confirmed.high);
    uint32_t worst = 0;
    for (uint32_t i = 0; i < 5; i++) {
        for (uint32_t k = 0; k < 5; k++) {
            worst = r.least_loss[k] > r.least_loss[worst] ? k : worst;
        }
    }
    ck_assert(of.reason.seed == config_seed(options.seed, r.least_first + worst));
    ck_assert_int_eq(of.reason.request[0].x.cls, REQUEST_CLASS_REACTIVE);
}
END_TEST

/* ---- what a fit of claims leaves open ---- */

static const char open_file[] =
    "{\"about\": \"x\", \"parameters\": {"
    "\"a\": {\"unit\": \"s\", \"what\": \"A\", \"measure\": \"MA\", \"low\": 2, \"high\": 10,"
    " \"set\": [\"sim.x={x}\", \"plain=1\"]},"
    "\"b\": {\"unit\": \"1\", \"what\": \"B\", \"measure\": \"MB\", \"low\": 1, \"high\": 100,"
    " \"scale\": \"log\", \"policy\": [\"p:k={x}s\"]},"
    "\"c\": {\"unit\": \"\", \"what\": \"C\", \"measure\": \"MC\", \"levels\": [\"u\", \"v\", "
    "\"w\"],"
    " \"workload\": [\"q:z={x}\"]},"
    "\"d\": {\"unit\": \"m\", \"what\": \"D\", \"measure\": \"MD\", \"low\": 5, \"high\": 5,"
    " \"scale\": \"linear\", \"set\": [\"sim.y={x}\"]}}}";

START_TEST(open_parameters_are_read_whole)
{
    const char *path = tempfile_make(".json");
    tempfile_put(open_file);
    static const char *const over[] = {"d", "b"};
    for (int some = 0; some < 2; some++) {
        struct fit_parameters p;
        ck_assert_msg(fit_parameters_read(&p, path, some ? over : NULL, some ? 2 : 0, &err) == 0,
                      "%s", err.n > 0 ? err.lines[0] : "");
        ck_assert_uint_eq(p.n, some ? 2 : 4);
        static const struct {
            const char *name, *unit, *what, *measure;
            double low, high;
            bool log_scale;
            uint32_t levels;
            const char *at[5]; /* its text at 0, 0.25, 0.5, 0.99, 1 */
        } want[] = {
            {"a", "s", "A", "MA", 2, 10, false, 0, {"2", "4", "6", "9.92", "10"}},
            {"b", "1", "B", "MB", 1, 100, true, 0, {"1", "3.162", "10", "95.5", "100"}},
            {"c", "", "C", "MC", 0, 1, false, 3, {"u", "u", "v", "w", "w"}},
            {"d", "m", "D", "MD", 5, 5, false, 0, {"5", "5", "5", "5", "5"}},
        };
        for (uint32_t i = 0; i < p.n; i++) {
            int k = some ? 1 + 2 * (int)i : (int)i;
            const struct fit_parameter *x = &p.v[i];
            ck_assert_str_eq(x->name, want[k].name);
            ck_assert_str_eq(x->unit, want[k].unit);
            ck_assert_str_eq(x->what, want[k].what);
            ck_assert_str_eq(x->measure, want[k].measure);
            ck_assert(x->low == want[k].low && x->high == want[k].high &&
                      x->log_scale == want[k].log_scale && x->n_levels == want[k].levels);
            for (uint32_t l = 0; l < x->n_levels; l++) {
                static const char *const levels[] = {"u", "v", "w"};
                ck_assert_str_eq(x->levels[l], levels[l]);
            }
            static const double at[] = {0, 0.25, 0.5, 0.99, 1};
            for (int u = 0; u < 5; u++) {
                char buf[64];
                ck_assert_str_eq(fit_parameter_value(x, at[u], buf), want[k].at[u]);
            }
        }
        if (!some) {
            const double u[] = {0.5, 0.5, 0.9, 0.1};
            struct setup s;
            fit_setup(&p, u, &s);
            ck_assert(s.set.n == 3 && s.policy.n == 1 && s.workload.n == 1);
            ck_assert_str_eq(s.set.v[0], "sim.x=6");
            ck_assert_str_eq(s.set.v[1], "plain=1");
            ck_assert_str_eq(s.set.v[2], "sim.y=5");
            ck_assert_str_eq(s.policy.v[0], "p:k=10s");
            ck_assert_str_eq(s.workload.v[0], "q:z=w");
        }
    }
    static const char *const none[] = {"b", "x", "y"};
    struct fit_parameters p;
    ck_assert_int_eq(fit_parameters_read(&p, path, none, 3, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 2);
    OWNED char *first = xformat("--over x: %s has no such parameter", path);
    OWNED char *second = xformat("--over y: %s has no such parameter", path);
    ck_assert_str_eq(err.lines[0], first);
    ck_assert_str_eq(err.lines[1], second);
    tempfile_remove();
}
END_TEST

static const struct suite_row suite[] = {
    CASE("falsify told", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(nothing_found_is_said),
    TEST(where_nothing_has_a_ratio_no_number_is_told),
    TEST(what_more_is_better_of_is_told_the_other_way_round),
    TEST(a_loss_is_told_with_its_reason),
    TEST(the_worst_replication_explains),
    TEST(open_parameters_are_read_whole),
};
SUITE_MAIN("falsify told", suite)
