/* Regret: made-up values with their distances by hand; and of a real workload, bounds and
 * references of every replication by the functions that regret is to ask. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/bound.h"
#include "experiments/compare/regret.h"
#include "experiments/run/recordings.h"
#include "experiments/shell/document.h"
#include "sim/base/json.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

enum { M = CLAIRVOYANT_METRICS, P = 3, R = 3, NAMES = M + 2, GAIN = M - 1, NOBODY = 2 };

static struct metric names[NAMES];
static double values[P][NAMES][R], bound[M][R], best[M][R];
static struct config_policy policies[P] = {{.label = "a"}, {.label = "b"}, {.label = "c"}};
static const struct compare_plan plan = {.policies = policies, .n_policies = P, .replications = R};

/* The bound of metric m is 2 + m, the reference twice that, policy a three times and b four times.
 * Throughput is 12 divided by these factors instead. b sheds a request in the second replication,
 * and c leaves one in each. Nobody is proactive (metric 2). */
static void make(void)
{
    for (int m = 0; m < NAMES; m++) {
        (void)snprintf(names[m].name, sizeof names[m].name, "%s",
                       m == M       ? "all.shed"
                       : m == M + 1 ? "all.unfinished"
                                    : clairvoyant_metrics[m]);
        for (int r = 0; r < R; r++) {
            for (int p = 0; p < P; p++) {
                double x = m == GAIN ? 12.0 / (p + 3) : (p + 3) * (2.0 + m);
                values[p][m][r] = m < M ? (m == NOBODY ? (double)NAN : x) : 0.0;
            }
            if (m < M) {
                bound[m][r] = m == NOBODY ? (double)NAN : m == GAIN ? 12.0 : 2.0 + m;
                best[m][r] = m == NOBODY ? (double)NAN : m == GAIN ? 6.0 : 2.0 * (2.0 + m);
            }
        }
    }
    values[1][M][1] = 1.0;
    values[2][M + 1][0] = values[2][M + 1][1] = values[2][M + 1][2] = 2.0;
}

static double number(const cJSON *tree, const char *a, const char *b, const char *c, const char *d)
{
    const char *const path[] = {a, b, c, d};
    for (int i = 0; i < 4 && path[i] != NULL; i++) {
        tree = cJSON_GetObjectItem(tree, path[i]);
        ck_assert_msg(tree != NULL, "%s", path[i]);
    }
    return cJSON_IsNumber(tree) ? tree->valuedouble : (double)NAN;
}

static struct document *shown(const struct regret *g)
{
    const struct compare_result r = {.n_policies = P,
                                     .replications = R,
                                     .n_metrics = NAMES,
                                     .names = names,
                                     .values = &values[0][0][0]};
    struct document *d = document_new();
    regret_document(&plan, &r, g, d);
    return d;
}

static struct regret made(uint32_t exhaustive)
{
    return (struct regret){.replications = R,
                           .bound = &bound[0][0],
                           .best = &best[0][0],
                           .n_exhaustive = exhaustive,
                           .n_schedules = 77};
}

START_TEST(people_see_distances_and_ratios)
{
    make();
    SCOPED(text_fini) struct text want = {0};
    text_format(&want, "\n---- regret: distance [95 %% interval] and ratio, over all requests\n"
                       "oracle-lb: roofline and shared-bandwidth bound; no schedule beats it\n"
                       "clairvoyant: best of 77 list schedules: any order of the requests, any "
                       "pair of a prefill and a decode device, decoding one by one or all in a "
                       "batch\n(exhaustive: every order, in all replications)\n");
    for (int m = 0; m < M; m++) {
        int x = 2 + m;
        if (m == NOBODY) {
            continue;
        }
        text_format(&want, "\n%s\nmean regret vs oracle-lb regret vs clairvoyant\n",
                    clairvoyant_metrics[m]);
        if (m == GAIN) { /* 12, 6, 4 and 3 a minute */
            text_format(&want, "oracle-lb 12\nclairvoyant 6\na 4 8, x0.333 2, x0.667\n"
                               "b 3 9, x0.25 3, x0.5\nc - - -\n");
        } else {
            text_format(&want,
                        "oracle-lb %d\nclairvoyant %d\na %d %d, x3 %d, x1.5\nb %d %d, x4 %d, x2\n"
                        "c - - -\n",
                        x, 2 * x, 3 * x, 2 * x, x, 4 * x, 3 * x, 2 * x);
        }
    }
    const struct regret all = made(3);
    OWNED char *is = shown_text(shown(&all), "text");
    ck_assert_str_eq(is, text_end(&want));
    const struct regret some = made(2);
    OWNED char *heuristic = shown_text(shown(&some), "text");
    ck_assert_ptr_nonnull(strstr(heuristic,
                                 "\n(exhaustive in 2 of 3 replications; elsewhere HEURISTIC: "
                                 "shortest remaining time first, lengths known)\n"));
}
END_TEST

/* A distance of 1, 2 and 3 has Student's interval of three values. Both sides of it are printed,
 * and how many replications count. */
START_TEST(data_have_every_metric)
{
    make();
    for (int r = 0; r < R; r++) {
        values[0][0][r] += r - 1; /* 6 - 2 +- 1, and 6 - 4 +- 1 */
    }
    const struct regret g = made(2);
    SCOPED(json_drop) cJSON *tree = document_json(shown(&g));
    ck_assert_double_eq(number(tree, "replications", NULL, NULL, NULL), 3);
    ck_assert_double_eq(number(tree, "exhaustive_replications", NULL, NULL, NULL), 2);
    ck_assert_double_eq(number(tree, "schedules", NULL, NULL, NULL), 77);
    const cJSON *of = cJSON_GetObjectItem(tree, "policies");
    for (int m = 0; m < M; m++) {
        const char *name = clairvoyant_metrics[m];
        double n = m == NOBODY ? 0 : R;
        double lb = m == GAIN ? 12 : 2 + m;
        double cl = m == GAIN ? 6 : 2 * lb;
        static const char *const keys[] = {"mean", "low", "high"};
        for (int k = 0; k < 3 && n > 0; k++) {
            ck_assert_double_eq_tol(number(tree, "oracle_lb", name, keys[k], NULL), lb, 1e-9);
            ck_assert_double_eq_tol(number(tree, "clairvoyant", name, keys[k], NULL), cl, 1e-9);
        }
        ck_assert_double_eq(number(tree, "oracle_lb", name, "n", NULL), n);
        ck_assert_double_eq(number(tree, "clairvoyant", name, "n", NULL), n);
        for (int p = 0; p < P; p++) {
            static const char *const to[] = {"oracle_lb", "clairvoyant"};
            for (int k = 0; k < 2; k++) {
                const char *label = policies[p].label;
                double count = m == NOBODY || p == 2 ? 0 : p == 1 ? 2 : 3;
                ck_assert_double_eq(number(of, label, name, to[k], "n"), count);
                double diff = number(of, label, name, to[k], "diff");
                double low = number(of, label, name, to[k], "diff_low");
                double high = number(of, label, name, to[k], "diff_high");
                double ratio = number(of, label, name, to[k], "ratio");
                if (count == 0) {
                    ck_assert(isnan(diff) && isnan(low) && isnan(high) && isnan(ratio));
                    continue;
                }
                double x = m == GAIN ? 12.0 / (p + 3) : (p + 3) * (2.0 + m);
                double reference = k == 0 ? lb : cl;
                double half = p == 0 && m == 0 ? 4.302652729911275 / sqrt(3.0) : 0.0;
                double want = m == GAIN ? reference - x : x - reference;
                ck_assert_double_eq_tol(diff, want, 1e-9);
                ck_assert_double_eq_tol(low, want - half, 1e-9);
                ck_assert_double_eq_tol(high, want + half, 1e-9);
                ck_assert_double_eq_tol(ratio, x / reference, 1e-9);
            }
        }
    }
}
END_TEST

/* ---- a workload ---- */

/* The second and third of three recordings of two short requests. */
START_TEST(every_replication_has_its_own_references)
{
    struct config_options o = config_options_default();
    o.seed = 5;
    o.several = true;
    static const char *const files[] = {"a.csv", "b.csv", "c.csv"};
    for (int i = 0; i < 3; i++) {
        OWNED char *text =
            xformat("# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,"
                    "input_tokens,output_tokens,prefix_tokens\n0,0,0,reactive,0,,%d,2,0\n"
                    "1,1,0,proactive,0.01,,30,3,0\n",
                    20 * (i + 1));
        SCOPED(err_fini) struct err none = ERR_INIT;
        folder_put(files[i], text);
        ck_assert_int_eq(recordings_add(&o, files[i], &none), 0);
    }
    OWNED struct config *c = xcalloc(1, sizeof *c);
    SCOPED(err_fini) struct err e = ERR_INIT;
    ck_assert_msg(config_load(c, &o, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    struct config_policy two[2];
    ck_assert_int_eq(config_policy_parse(&two[0], "fcfs", &e), 0);
    ck_assert_int_eq(config_policy_parse(&two[1], "edf", &e), 0);
    const struct compare_plan own = {.config = c,
                                     .options = &o,
                                     .policies = two,
                                     .n_policies = 2,
                                     .first = 1,
                                     .replications = 2,
                                     .how.parallel = 1,
                                     .how.cpu_limit_s = 60.0,
                                     .arrivals = CONFIG_AS_WRITTEN};
    struct regret g;
    regret_run(&g, &own);
    struct clairvoyant_best want[2];
    clairvoyant_run(&own, want);
    ck_assert_uint_eq(g.replications, 2);
    ck_assert_uint_eq(g.n_schedules, want[0].schedules + want[1].schedules);
    ck_assert_uint_eq(g.n_exhaustive, want[0].exhaustive + want[1].exhaustive);
    struct bound b;
    ck_assert_int_eq(bound_of_config(&b, c, &two[0]), 0);
    uint32_t differ = 0;
    for (uint32_t r = 0; r < 2; r++) {
        SCOPED(trace_fini) struct trace t = {0};
        struct bound_workload w;
        ck_assert_int_eq(config_trace(&o, config_seed(5, 1 + r), CONFIG_AS_WRITTEN, &t, &e), 0);
        ck_assert_uint_gt(t.n, 0);
        bound_trace(&b, &t, &w);
        for (uint32_t m = 0; m < M; m++) {
            double lb = bound_metric(&w, clairvoyant_metrics[m]);
            ck_assert(isnan(lb) ? isnan(g.bound[m * 2 + r]) : g.bound[m * 2 + r] == lb);
            double x = want[r].value[m];
            ck_assert(isnan(x) ? isnan(g.best[m * 2 + r]) : g.best[m * 2 + r] == x);
            differ += r == 1 && !isnan(lb) && g.bound[m * 2] != g.bound[m * 2 + 1];
        }
    }
    ck_assert_uint_gt(differ, 0);
    config_fini(c);
}
END_TEST

/* No policy may beat the bound. Policies whose drafts are of other lengths have other bounds, and
 * the bound of all is the best of these, in any order of the policies. */
START_TEST(the_bound_of_all_is_the_best_of_each)
{
    static const char *const specs[] = {"fcfs", "sd-npu:drafter=pld", "sd-npu:drafter=sam"};
    struct config_options o = config_options_default();
    SCOPED(err_fini) struct err e = ERR_INIT;
    folder_put("a.csv", "# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,"
                        "input_tokens,output_tokens,prefix_tokens\n0,0,0,reactive,0,,60,40,0\n");
    ck_assert_int_eq(recordings_add(&o, "a.csv", &e), 0);
    OWNED struct config *c = xcalloc(1, sizeof *c);
    ck_assert_int_eq(config_load(c, &o, &e), 0);
    SCOPED(trace_fini) struct trace t = {0};
    ck_assert_int_eq(config_trace(&o, o.seed, CONFIG_AS_WRITTEN, &t, &e), 0);
    double want[M];
    uint32_t tokens[P];
    for (int i = 0; i < P; i++) {
        struct config_policy p;
        struct bound b;
        struct bound_workload w;
        ck_assert_int_eq(config_policy_parse(&p, specs[i], &e), 0);
        ck_assert_int_eq(bound_of_config(&b, c, &p), 0);
        bound_trace(&b, &t, &w);
        tokens[i] = b.tokens_per_pass;
        for (int m = 0; m < M; m++) {
            double x = bound_metric(&w, clairvoyant_metrics[m]);
            bool better = i == 0 || (m == GAIN ? x > want[m] : x < want[m]);
            want[m] = better ? x : want[m];
        }
    }
    ck_assert(tokens[0] == 1 && tokens[1] > 1 && tokens[2] > 1 && tokens[1] != tokens[2]);
    for (int first = 0; first < P; first++) {
        struct config_policy all[P];
        for (int i = 0; i < P; i++) {
            ck_assert_int_eq(config_policy_parse(&all[i], specs[(first + i) % P], &e), 0);
        }
        struct compare_plan of = {.config = c,
                                  .options = &o,
                                  .policies = all,
                                  .n_policies = P,
                                  .replications = 1,
                                  .how.parallel = 1,
                                  .how.cpu_limit_s = 60.0,
                                  .arrivals = CONFIG_AS_WRITTEN};
        struct regret g;
        regret_run(&g, &of);
        for (int m = 0; m < M; m++) {
            is_near(g.bound[m], want[m]);
        }
    }
    config_fini(c);
}
END_TEST

/* The battery of 500 J is empty after 100 s at 5 W, when the first request has its answer and the
 * long one, at 300 s, has not come. The bound is of both. A mean of the first alone would be below
 * it. */
START_TEST(a_battery_that_gave_out_has_no_regret)
{
    folder_put("t.csv", "# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,"
                        "input_tokens,output_tokens,prefix_tokens\n0,0,0,reactive,0,,200,5,0\n"
                        "1,1,0,reactive,300,,8000,400,0\n");
    folder_put("b.json",
               "{\"machine\": [{\"at_s\": 0, \"battery_j\": 500, \"battery_full_j\": 500, "
               "\"source\": \"battery\"}]}");
    for (int with = 0; with < 2; with++) {
        SCOPED(said_fini)
        struct said s = COMMANDED(cmd_compare, "--policy", "fcfs", "--policy", "edf", "--trace",
                                  "t.csv", "--regret", "--soc", "core-ultra-7-258v", "-q",
                                  with == 1 ? "--machine" : "--seed", with == 1 ? "b.json" : "1");
        ck_assert_int_eq(s.status, EXIT_OK);
        ck_assert_msg((strstr(s.out, ", x") == NULL) == (with == 1), "%s", s.out);
    }
}
END_TEST

static const struct suite_row rows[] = {
    CASE("regret", .setup = folder_enter, .teardown = folder_leave, .timeout_s = 60),
    TEST(people_see_distances_and_ratios),
    TEST(data_have_every_metric),
    TEST(every_replication_has_its_own_references),
    TEST(the_bound_of_all_is_the_best_of_each),
    TEST(a_battery_that_gave_out_has_no_regret),
};
SUITE_MAIN("regret", rows)
