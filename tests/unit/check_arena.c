/* The arena on made-up runs: judgements, certificates and what they print, each number worked out
 * again; and words on two small runs. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/arena/judge.h"
#include "experiments/compare/regret.h"
#include "experiments/diff/two_runs.h"
#include "experiments/falsify/runs.h"
#include "experiments/run/config.h"
#include "sim/base/units.h"
#include "sim/core/counters.h"
#include "tests/helpers/said.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

enum { POINTS = 3, METRICS = 2, RUNS = 4, PAIRS = POINTS * METRICS, NAMES = 4 };
#define E2E "reactive.e2e_s.mean"
#define RATE "all.throughput_req_per_min"

static struct suite_point points[POINTS] = {
    {.name = "a", .scored = true}, {.name = "b"}, {.name = "c", .scored = true}};
static struct suite suite;
static const char *texts[NAMES] = {E2E, RATE, "all.shed", "all.unfinished"};
static struct study_names names = {.n = NAMES, .v = texts};
static struct judge_runs policy, reference;

/* Less time and more requests are better: a gain of g there is exp(-g) of the one, exp(g) of the
 * other. Point b is worst, though no score counts it. */
static double gain(uint32_t point, uint32_t run, uint32_t metric)
{
    static const double of[POINTS][METRICS] = {{0.3, 0.9}, {-0.6, -0.5}, {0.05, -0.02}};
    static const double step[RUNS] = {0.0, 0.02, -0.05, 0.01};
    return of[point][metric] + step[run] * (metric + 1);
}

static void make(struct judge_runs *r, bool of_policy)
{
    *r = (struct judge_runs){.replications = RUNS, .outcomes = {.n = POINTS * RUNS}};
    r->outcomes.v = xcalloc(POINTS * RUNS, sizeof *r->outcomes.v);
    for (uint32_t i = 0; i < POINTS * RUNS; i++) {
        uint32_t point = i / RUNS;
        uint32_t run = i % RUNS;
        struct study_outcome *o = &r->outcomes.v[i];
        o->names = &names;
        o->values = xcalloc(NAMES, sizeof *o->values);
        double far = of_policy ? 1.0 : 0.0;
        o->values[0] = (2.0 + point + 0.25 * run) * exp(-far * gain(point, run, 0));
        o->values[1] = (30.0 + 5.0 * point + run) * exp(far * gain(point, run, 1));
        o->values[2] = 1.0;
        o->values[3] = 2.0;
    }
}

static void setup(void)
{
    suite = (struct suite){.points = points,
                           .n_points = POINTS,
                           .references = {"edf", "fcfs"},
                           .n_references = 2,
                           .recorded = "00ff"};
    suite.spec.name = "made up";
    suite.spec.n_patterns = METRICS;
    suite.spec.patterns[0] = E2E;
    suite.spec.patterns[1] = RATE;
    (void)snprintf(suite.hash, sizeof suite.hash, "00ff");
    make(&policy, true);
    make(&reference, false);
}

static void fini(struct judge_runs *r)
{
    for (uint32_t i = 0; i < r->outcomes.n; i++) {
        free(r->outcomes.v[i].values);
    }
    free(r->outcomes.v);
}

static void teardown(void)
{
    fini(&policy);
    fini(&reference);
}

static struct study_outcome *at(struct judge_runs *r, uint32_t point, uint32_t run)
{
    return &r->outcomes.v[point * RUNS + run];
}

/* Of the second point the policy failed in the last run, and in the second it shed what the
 * reference served; in the first it left less, and one unfinished for one shed is as many. */
static void fails(struct study_outcome *o, const char *why)
{
    o->status = -1;
    free(o->values);
    o->values = NULL;
    (void)snprintf(o->message, sizeof o->message, "%s", why);
}

static void lose(void)
{
    fails(at(&policy, 1, 3), "out of luck");
    fails(at(&policy, 2, 0), "later");
    at(&policy, 1, 1)->values[2] = 2.0;
    at(&policy, 1, 0)->values[3] = 1.0;
    at(&policy, 0, 2)->values[2] = 2.0;
    at(&policy, 0, 2)->values[3] = 1.0;
}

static bool is_lost(uint32_t point, uint32_t run)
{
    return (point == 1 && (run == 3 || run == 1)) || (point == 2 && run == 0);
}

/* ---- the second computation ---- */

struct sum {
    double n, mean, sd, half;
};

static struct sum sum_of(const double *x, int n)
{
    struct sum s = {0};
    for (int i = 0; i < n; i++) {
        s.n += !isnan(x[i]);
        s.mean += isnan(x[i]) ? 0.0 : x[i];
    }
    s.mean /= s.n;
    for (int i = 0; i < n; i++) {
        s.sd += isnan(x[i]) ? 0.0 : (x[i] - s.mean) * (x[i] - s.mean);
    }
    s.sd = sqrt(s.sd / (s.n - 1));
    s.half = gsl_cdf_tdist_Pinv(0.975, s.n - 1) * s.sd / sqrt(s.n);
    return s;
}

static double near(double is, double want)
{
    ck_assert_double_eq_tol(is, want, 1e-9 * (1.0 + fabs(want)));
    return want;
}

struct again {
    struct sum gain[PAIRS];
    double p[PAIRS], holm[PAIRS], policy[PAIRS], reference[PAIRS], lost[PAIRS];
    struct sum score;
    double clipped[RUNS];
};

static struct again work_out(bool with_losses)
{
    struct again a = {0};
    for (uint32_t i = 0; i < PAIRS; i++) {
        double g[RUNS];
        double x[RUNS];
        double y[RUNS];
        for (uint32_t k = 0; k < RUNS; k++) {
            bool lost = with_losses && is_lost(i / METRICS, k);
            bool failed = lost && !(i / METRICS == 1 && k == 1);
            g[k] = lost ? (double)NAN : gain(i / METRICS, k, i % METRICS);
            x[k] = failed ? (double)NAN : at(&policy, i / METRICS, k)->values[i % METRICS];
            y[k] = at(&reference, i / METRICS, k)->values[i % METRICS];
            a.lost[i] += lost;
            if (i / METRICS != 1) { /* what is scored */
                double clip = lost ? -log(2.0) : fmax(-log(2.0), fmin(log(2.0), g[k]));
                a.clipped[k] += clip / 4.0; /* two points of two metrics */
            }
        }
        a.gain[i] = sum_of(g, RUNS);
        a.policy[i] = sum_of(x, RUNS).mean;
        a.reference[i] = sum_of(y, RUNS).mean;
        double t = (-log(1.01) - a.gain[i].mean) / (a.gain[i].sd / sqrt(a.gain[i].n));
        a.p[i] = a.lost[i] > 0.0 ? 0.0 : gsl_cdf_tdist_Q(t, a.gain[i].n - 1);
    }
    for (uint32_t i = 0; i < PAIRS; i++) { /* Holm: the largest of what came before it */
        for (uint32_t j = 0; j < PAIRS; j++) {
            if (a.p[j] <= a.p[i]) {
                int above = 0;
                for (uint32_t k = 0; k < PAIRS; k++) {
                    above += a.p[k] > a.p[j] || (a.p[k] == a.p[j] && k >= j);
                }
                a.holm[i] = fmax(a.holm[i], fmin(1.0, above * a.p[j]));
            }
        }
    }
    a.score = sum_of(a.clipped, RUNS);
    return a;
}

static void is_judged(const struct judge_result *r, const struct again *a)
{
    for (uint32_t i = 0; i < PAIRS; i++) {
        near(r->cells[i].gain.mean, a->gain[i].mean);
        near(r->cells[i].gain.low, a->gain[i].mean - a->gain[i].half);
        near(r->cells[i].gain.high, a->gain[i].mean + a->gain[i].half);
        near(r->cells[i].p_worse, a->p[i]);
        near(r->cells[i].p_holm, a->holm[i]);
        near(r->cells[i].lost, a->lost[i]);
        ck_assert(r->cells[i].regression == (a->holm[i] <= 0.05));
        near(r->means[i], a->policy[i]);
        near(r->reference_means[i], a->reference[i]);
    }
    near(r->score.gain.mean, a->score.mean);
    near(r->score.gain.low, a->score.mean - a->score.half);
    near(r->score.gain.high, a->score.mean + a->score.half);
}

START_TEST(a_judgement_is_worked_out_again)
{
    struct judge_result r;
    for (int with = 0; with < 2; with++) {
        if (with == 1) {
            lose();
        }
        struct again a = work_out(with == 1);
        judge_result_of(&suite, &policy, &reference, NULL, &r);
        is_judged(&r, &a);
        ck_assert_uint_eq(r.worst, 2); /* E2E of point b */
        ck_assert_uint_eq(r.n_failed, with == 1 ? 2 : 0);
        ck_assert(isnan(r.headroom));
        double gains[RUNS];
        judge_gains(&suite, &policy, &reference, gains);
        for (uint32_t k = 0; k < RUNS; k++) {
            bool out = with == 1 && k != 2;
            ck_assert(out ? isinf(gains[k]) && gains[k] > 0 : near(gains[k], a.clipped[k]) != 3.0);
        }
        if (with == 1) {
            ck_assert_uint_eq(r.failed_cell, 1 * RUNS + 3); /* the first */
            ck_assert_str_eq(r.failed->message, "out of luck");
            for (uint32_t i = 0; i < POINTS * RUNS; i++) {
                ck_assert(judge_lost(&policy, &reference, i / RUNS, i % RUNS) ==
                          is_lost(i / RUNS, i % RUNS));
            }
        } else {
            ck_assert_ptr_null(r.failed);
        }
        judge_result_fini(&r);
        ck_assert(r.cells == NULL && r.means == NULL && r.reference_means == NULL);
    }
}
END_TEST

/* ln(mean / best) of what is scored and known: less time and more requests are nearer. */
START_TEST(headroom_is_the_mean_distance_to_the_best)
{
    struct certificate c = {0};
    struct again a = work_out(false);
    for (uint32_t i = 0; i < PAIRS; i++) {
        c.rows[i].best = a.policy[i] * (i % METRICS == 0 ? 0.5 + 0.1 * i : 1.5 + 0.1 * i);
    }
    c.rows[1].best = (double)NAN;
    struct judge_result r;
    judge_result_of(&suite, &policy, &reference, &c, &r);
    double want = (-log(0.5) - log(0.9) + log(2.0)) / 3.0; /* pairs 0, 4 and 5 */
    near(r.headroom, want);
    judge_result_fini(&r);
}
END_TEST

START_TEST(a_judgement_is_told_whole)
{
    lose();
    struct certificate c = {0};
    for (uint32_t i = 0; i < PAIRS; i++) {
        c.rows[i].best = 1.0 + i;
    }
    struct again a = work_out(true);
    struct judge_result r;
    judge_result_of(&suite, &policy, &reference, &c, &r);
    r.headroom = 0.25;
    struct document *d = document_new();
    judge_document(&suite, "vtc:a=1", &r, &c, d);
    SCOPED(text_fini) struct text want = {0};
    SCOPED(text_fini) struct text json = {0};
    double p = gsl_cdf_tdist_Q(a.score.mean / (a.score.sd / 2.0), 3);
    double low = exp(a.score.mean - a.score.half);
    double high = exp(a.score.mean + a.score.half);
    text_format(&want,
                "\nvtc:a=1\nscore %.4f [%.4f, %.4f], p %.2g; 4 significant regressions\n"
                "the best known is 28.4 %% better still\n",
                exp(a.score.mean), low, high, p);
    static const char *const of[PAIRS] = {"a", "a", "b", "b", "c", "c"};
    for (int i = 2; i < PAIRS; i++) {
        text_format(&want, "regression: %s.%s, failed or left requests in %d replications\n", of[i],
                    i % 2 == 0 ? E2E : RATE, i < 4 ? 2 : 1);
    }
    for (int i = 0; i < PAIRS; i++) {
        if (i % 2 == 0) {
            text_format(&want,
                        "\n%s\nmetric value reference better by from to best known p (Holm)\n",
                        of[i]);
        }
        text_format(&want, "%s %.4g %.4g %.3f %.3f %.3f %d %.2g\n", i % 2 == 0 ? E2E : RATE,
                    a.policy[i], a.reference[i], exp(a.gain[i].mean),
                    exp(a.gain[i].mean - a.gain[i].half), exp(a.gain[i].mean + a.gain[i].half),
                    1 + i, a.holm[i]);
    }
    shown_is(d, text_end(&want), NULL);
    cJSON *tree = document_json(d);
    near(cJSON_GetObjectItem(tree, "score")->valuedouble, exp(a.score.mean));
    near(cJSON_GetObjectItem(tree, "p_better")->valuedouble, p);
    near(cJSON_GetObjectItem(tree, "headroom_left")->valuedouble, exp(0.25) - 1.0);
    near(cJSON_GetObjectItem(tree, "failed_runs")->valuedouble, 2);
    const cJSON *interval = cJSON_GetObjectItem(tree, "interval");
    near(cJSON_GetObjectItem(interval, "low")->valuedouble, low);
    near(cJSON_GetObjectItem(interval, "high")->valuedouble, high);
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "significant_regressions")), 4);
    for (int i = 0; i < PAIRS; i++) {
        const cJSON *cell =
            cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "cells"), of[i]),
                                i % 2 == 0 ? E2E : RATE);
        const char *const keys[] = {"value", "reference", "gain",   "gain_low", "gain_high",
                                    "best",  "p_worse",   "p_holm", "lost"};
        const double v[] = {a.policy[i],
                            a.reference[i],
                            exp(a.gain[i].mean),
                            exp(a.gain[i].mean - a.gain[i].half),
                            exp(a.gain[i].mean + a.gain[i].half),
                            1.0 + i,
                            a.p[i],
                            a.holm[i],
                            a.lost[i]};
        for (int k = 0; k < 9; k++) {
            near(cJSON_GetObjectItem(cell, keys[k])->valuedouble, v[k]);
        }
        ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(cell, "scored")) == (i < 2 || i > 3));
        const cJSON *row =
            cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "significant_regressions"), i - 2);
        if (i >= 2) {
            OWNED char *name = xformat("%s.%s", of[i], i % 2 == 0 ? E2E : RATE);
            ck_assert_str_eq(cJSON_GetObjectItem(row, "name")->valuestring, name);
            near(cJSON_GetObjectItem(row, "ratio")->valuedouble, exp(-a.gain[i].mean));
        }
    }
    cJSON_Delete(tree);
    judge_result_fini(&r);
}
END_TEST

/* A loss that is one without a failure, and no certificate. */
START_TEST(a_regression_has_its_ratio_and_chance)
{
    struct again a = work_out(false);
    struct judge_result r;
    judge_result_of(&suite, &policy, &reference, NULL, &r);
    struct document *d = document_new();
    judge_document(&suite, "x", &r, NULL, d);
    OWNED char *text = said_text(d);
    OWNED char *want = xformat("2 significant regressions\nregression: b." E2E
                               ", %.3f times worse (p %.2g)\nregression: b." RATE
                               ", %.3f times worse (p %.2g)\n\na\n",
                               exp(-a.gain[2].mean), a.holm[2], exp(-a.gain[3].mean), a.holm[3]);
    ck_assert_msg(strstr(text, want) != NULL, "no %s in %s", want, text);
    judge_result_fini(&r);
}
END_TEST

START_TEST(a_suite_is_told_whole)
{
    struct document *d = document_new();
    judge_document_suite(&suite, "public", 7, d);
    shown_is(d, "made up [00ff], public split: 3 points, 2 scored; 7 replications; reference edf\n",
             "{\"suite\":\"made up\",\"split\":\"public\",\"hash\":\"00ff\",\"frozen\":true,"
             "\"points\":3,\"scored_points\":2,\"replications\":7,\"reference\":\"edf\"}");
    suite.recorded = "ff00";
    struct document *other = document_new();
    judge_document_suite(&suite, "sealed", 1, other);
    shown_is(other,
             "made up [00ff], sealed split: 3 points, 2 scored; 1 replications; reference edf\n"
             "warning: the suite was frozen as [ff00]: machines, models or generators are others "
             "now, and scores do not compare with the archive's\n",
             "{\"suite\":\"made up\",\"split\":\"sealed\",\"hash\":\"00ff\",\"frozen\":false,"
             "\"points\":3,\"scored_points\":2,\"replications\":1,\"reference\":\"edf\"}");
}
END_TEST

/* The first run of the first point is the only one that fails: it is counted and named, and a
 * regression of the first pair. */
START_TEST(the_first_counts_as_any_other)
{
    fails(at(&policy, 0, 0), "at once");
    struct judge_result r;
    judge_result_of(&suite, &policy, &reference, NULL, &r);
    ck_assert(r.n_failed == 1 && r.failed_cell == 0 && r.failed == at(&policy, 0, 0));
    ck_assert(r.cells[0].regression && r.cells[0].lost == 1 && r.cells[1].lost == 1);
    struct document *d = document_new();
    judge_document(&suite, "x", &r, NULL, d);
    OWNED char *text = said_text(d);
    ck_assert_ptr_nonnull(
        strstr(text, "\nregression: a." E2E ", failed or left requests in 1 replications\n"
                     "regression: a." RATE ", failed or left requests in 1 replications\n"));
    ck_assert_ptr_nonnull(strstr(text, "; 4 significant regressions\n")); /* and those of b */
    judge_result_fini(&r);
}
END_TEST

/* ---- certificates ---- */

/* The reference of the least time, and of the most requests; the first of equal ones. */
START_TEST(a_certificate_is_told_and_read_back)
{
    static const double second[PAIRS] = {3, 3, 1, 1, 2, 2};
    static const char *const by[PAIRS] = {"edf", "fcfs", "fcfs", "edf", "edf", "edf"};
    static const char *const of[] = {"a", "b", "c"};
    struct certificate c = {0};
    SCOPED(text_fini) struct text want = {0};
    SCOPED(text_fini) struct text json = {0};
    text_string(&json, "{\"hash\":\"00ff\",\"certificate\":{");
    for (int i = 0; i < PAIRS; i++) {
        c.rows[i] = (struct certificate_row){.reference = {2, second[i]},
                                             .hindsight = i == 3 ? (double)NAN : 0.5 + i,
                                             .best = i % 2 == 0 ? 1.6 : 2.5,
                                             .bound = 0.25 + i};
        OWNED char *hindsight = i == 3 ? xstrdup("-") : xformat("%g", 0.5 + i);
        if (i % 2 == 0) {
            text_format(&want,
                        "\n%s\nmetric reference hindsight best known bound reference / best best "
                        "reference\n",
                        of[i / 2]);
        }
        text_format(&want, "%s 2 %s %s %g 1.25 %s\n", i % 2 == 0 ? E2E : RATE, hindsight,
                    i % 2 == 0 ? "1.6" : "2.5", 0.25 + i, by[i]);
        text_format(&json,
                    "%s%s%s%s\"%s\":{\"reference\":2,\"hindsight\":%s,\"best\":%s,\"bound\":%g,"
                    "\"headroom\":1.25,\"best_by\":\"%s\"}%s",
                    i > 0 ? "," : "", i % 2 == 0 ? "\"" : "", i % 2 == 0 ? of[i / 2] : "",
                    i % 2 == 0 ? "\":{" : "", i % 2 == 0 ? E2E : RATE, i == 3 ? "null" : hindsight,
                    i % 2 == 0 ? "1.6" : "2.5", 0.25 + i, by[i], i % 2 == 1 ? "}" : "");
    }
    text_string(&json, "}}");
    struct document *d = document_new();
    DOCUMENT_VALUES(d, "hash", "00ff");
    certificate_document(&suite, &c, d);
    shown_is(d, text_end(&want), text_end(&json));
    /* The archive lies next to the suite's file. */
    static struct certificate read;
    const char *path = tempfile_make(".archive.json");
    OWNED char *file = xformat("%.*s.json", (int)(strlen(path) - strlen(".archive.json")), path);
    suite.spec.file = file;
    ck_assert(!certificate_read(&suite, &read));
    tempfile_put(text_end(&json));
    memset(&read, 1, sizeof read);
    ck_assert(certificate_read(&suite, &read));
    for (int i = 0; i < PAIRS; i++) {
        ck_assert(read.rows[i].reference[0] == 2 && read.rows[i].best == c.rows[i].best &&
                  read.rows[i].bound == c.rows[i].bound &&
                  (i == 3 ? isnan(read.rows[i].hindsight)
                          : read.rows[i].hindsight == c.rows[i].hindsight));
        ck_assert(read.rows[i].reference[1] == 0.0);
    }
    (void)snprintf(suite.hash, sizeof suite.hash, "00fe");
    ck_assert(!certificate_read(&suite, &read));
    ck_assert(read.rows[0].best == 0.0);
    tempfile_remove();
}
END_TEST

/* ---- runs ---- */

static const char small_suite[] =
    "{\"name\": \"small\", \"suite\": {\"about\": \"a test\", \"references\": [\"fcfs\", \"edf\"]},"
    "\"base\": {\"seed\": 11},"
    "\"rows\": [{\"point\": \"p\", \"workload\": "
    "\"mixed:reactive_per_min=60,proactive_per_min=60,duration_s=6\"},"
    "{\"point\": \"q\", \"seed\": 3, \"workload\": "
    "\"mixed:reactive_per_min=60,proactive_per_min=70,duration_s=6\"}],"
    "\"replications\": 2, \"metrics\": [\"reactive.e2e_s.mean\", \"all.throughput_req_per_min\", "
    "\"energy_j\"]}";

static const struct study_how how = {.parallel = 1, .cpu_limit_s = 60.0};
static struct suite small;
static struct config_policy two[2];
static struct err errors;

static void setup_runs(void)
{
    errors = (struct err)ERR_INIT;
    const char *path = tempfile_make(".json");
    tempfile_put(small_suite);
    ck_assert_int_eq(suite_load(&small, path, &errors), 0);
    tempfile_remove();
    ck_assert_int_eq(config_policy_parse(&two[0], "fcfs", &errors), 0);
    ck_assert_int_eq(config_policy_parse(&two[1], "edf", &errors), 0);
}

/* Replication by replication the best of both references and of the schedule in hindsight, where
 * one is known; the bound is the regret's. */
START_TEST(a_certificate_holds_the_best_of_each_run)
{
    static struct certificate c;
    ck_assert_int_eq(certificate_make(&small, 2, &how, &c, &errors), 0);
    struct judge_runs runs[2];
    for (int i = 0; i < 2; i++) {
        judge_run(&small, &two[i], 2, &how, &runs[i]);
    }
    for (uint32_t point = 0; point < 2; point++) {
        const struct suite_point *p = &small.points[point];
        struct compare_plan plan = {.config = &p->config,
                                    .options = &p->settings.options,
                                    .policies = two,
                                    .n_policies = 2,
                                    .replications = 2,
                                    .how = how,
                                    .arrivals = p->settings.arrivals};
        struct regret g;
        regret_run(&g, &plan);
        for (uint32_t m = 0; m < 3; m++) {
            const char *metric = small.spec.patterns[m];
            const struct certificate_row *row = &c.rows[3 * point + m];
            double v[2][2];
            double best = 0.0;
            for (int i = 0; i < 2; i++) {
                judge_values(&runs[i], point, metric, v[i]);
                near(row->reference[i], (v[i][0] + v[i][1]) / 2.0);
            }
            uint32_t c_of = 0;
            while (c_of < CLAIRVOYANT_METRICS && strcmp(clairvoyant_metrics[c_of], metric) != 0) {
                c_of++;
            }
            ck_assert((c_of == CLAIRVOYANT_METRICS) == (m == 2));
            if (m == 2) { /* no schedule is known by its energy */
                ck_assert(isnan(row->hindsight) && isnan(row->bound));
                near(row->best, (fmin(v[0][0], v[1][0]) + fmin(v[0][1], v[1][1])) / 2.0);
                continue;
            }
            const double *x = &g.best[2 * c_of];
            for (int k = 0; k < 2; k++) {
                best += (m == 1 ? fmax(fmax(v[0][k], v[1][k]), x[k])
                                : fmin(fmin(v[0][k], v[1][k]), x[k])) /
                        2.0;
            }
            near(row->best, best);
            near(row->hindsight, (x[0] + x[1]) / 2.0);
            near(row->bound, (g.bound[2 * c_of] + g.bound[2 * c_of + 1]) / 2.0);
        }
        regret_fini(&g);
    }
    /* from the second replication on is the second replication */
    struct judge_runs later;
    judge_run_from(&small, &two[1], 1, 1, &how, &later);
    for (uint32_t point = 0; point < 2; point++) {
        double all[2];
        double one;
        judge_values(&runs[1], point, E2E, all);
        judge_values(&later, point, E2E, &one);
        ck_assert(one == all[1] && one != all[0]);
    }
    judge_runs_fini(&later);
    judge_runs_fini(&runs[0]);
    judge_runs_fini(&runs[1]);
    small.references[1] = "nobody";
    ck_assert_int_eq(certificate_make(&small, 2, &how, &c, &errors), -EINVAL);
    err_fini(&errors);
}
END_TEST

/* Gains of the mean over points and metrics, replication by replication, as a selection asks for
 * them: the second candidate is the reference, and so gains nothing anywhere. */
static void gains(void *ctx, const bool *left, uint32_t from, uint32_t to, double *const *values)
{
    const struct config_policy *candidates = ctx;
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = from; left[i] && k < to; k++) {
            struct judge_runs mine;
            struct judge_runs other;
            judge_run_from(&small, &candidates[i], k, 1, &how, &mine);
            judge_run_from(&small, &two[0], k, 1, &how, &other);
            values[i][k] = 0.0;
            for (uint32_t pair = 0; pair < 6; pair++) {
                double x;
                double y;
                judge_values(&mine, pair / 3, small.spec.patterns[pair % 3], &x);
                judge_values(&other, pair / 3, small.spec.patterns[pair % 3], &y);
                double g = pair % 3 == 1 ? log(x / y) : log(y / x);
                values[i][k] += fmax(-log(2.0), fmin(log(2.0), g)) / 6.0;
            }
            judge_runs_fini(&mine);
            judge_runs_fini(&other);
        }
    }
}

START_TEST(the_best_is_chosen_by_mean_gains)
{
    struct config_policy of[3];
    static const char *const names_of[] = {"edf", "fcfs", "srpt"};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(config_policy_parse(&of[i], names_of[i], &errors), 0);
    }
    struct select_asked asked = {.confidence_frac = 0.95, .indifference_percent = 5.0, .most = 12};
    struct select_result r;
    choose_best(&small, of, 3, &two[0], &asked, &how, &r);
    struct select_options o = {.confidence_frac = 0.95,
                               .delta = log(1.05),
                               .first = SELECT_FIRST_MIN,
                               .most = 12,
                               .gain = true};
    struct select_result again;
    select_by(&o, 3, gains, of, &again);
    ck_assert(r.best == again.best && r.decided == again.decided && r.runs == again.runs);
    near(r.delta, again.delta);
    ck_assert(r.k == 3 && r.gain);
    for (uint32_t i = 0; i < 3; i++) {
        near(select_mean(&r, i), select_mean(&again, i));
        ck_assert(r.of[i].n == again.of[i].n && r.of[i].left == again.of[i].left);
    }
    select_fini(&r);
    select_fini(&again);
}
END_TEST

static void put_causes(struct text *t, const struct explanation *x)
{
    int64_t ns[EXPLAIN_CAUSE_COUNT];
    memcpy(ns, x->ns, sizeof ns);
    for (int k = 0; k < 3; k++) {
        int most = 0;
        for (int i = 1; i < EXPLAIN_CAUSE_COUNT; i++) {
            most = ns[i] > ns[most] ? i : most;
        }
        if (ns[most] > 0) {
            text_format(t, "%s%.2f s %s", k > 0 ? ", " : "", (double)ns[most] / 1e9,
                        explain_cause_names[most]);
        }
        ns[most] = 0;
    }
}

/* The texts of a judgement in which edf lost most at the second point: each part is asked for of
 * its own, and put into words once more. */
START_TEST(words_say_what_each_part_finds)
{
    struct judge_runs runs[2];
    for (int i = 0; i < 2; i++) {
        judge_run(&small, &two[1 - i], 2, &how, &runs[i]); /* edf, fcfs */
    }
    /* edf's worst replication there */
    double mine[2];
    double other[2];
    judge_values(&runs[0], 1, E2E, mine);
    judge_values(&runs[1], 1, E2E, other);
    uint32_t worst = mine[1] / other[1] > mine[0] / other[0];
    struct study_outcome *second = &runs[0].outcomes.v[1];
    struct judge_result r = {.worst = 3,
                             .n_failed = 3,
                             .failed = second,
                             .failed_cell = 3}; /* the second run of the second point */
    (void)snprintf(second->message, sizeof second->message, "a reason");
    struct words_of w = {.suite = &small,
                         .policy = &two[1],
                         .reference = &two[0],
                         .runs = &runs[0],
                         .reference_runs = &runs[1],
                         .result = &r,
                         .how = how,
                         .falsify = 2};
    struct document *d = document_new();
    words_document(&w, d);
    cJSON *tree = document_json(d);
    const cJSON *in = cJSON_GetObjectItem(tree, "artefacts");
    uint64_t base = small.points[1].settings.options.seed;
    OWNED char *failed = xformat("3 runs failed; the first at q, seed %llu: a reason",
                                 (unsigned long long)config_seed(base, 1));
    ck_assert_str_eq(cJSON_GetObjectItem(in, "failure")->valuestring, failed);
    ck_assert(cJSON_IsNull(cJSON_GetObjectItem(in, "refused")));
    /* the request */
    struct study_cell sides[2] = {suite_cell(&small, 1, &two[1], worst),
                                  suite_cell(&small, 1, &two[0], worst)};
    struct falsify_reason why;
    falsify_explain(sides, E2E, &how, &why);
    ck_assert(why.found && why.seed == config_seed(base, worst));
    const struct explanation *a = &why.request[0].x;
    const struct explanation *b = &why.request[1].x;
    SCOPED(text_fini) struct text t = {0};
    text_format(&t,
                "q, seed %llu: request %u (reactive, %u prompt and %u output tokens) took %.2f s "
                "under edf: ",
                (unsigned long long)why.seed, a->request_id, a->input_tokens, a->output_tokens,
                (double)(a->end_ns - a->arrival_ns) / 1e9);
    put_causes(&t, a);
    text_format(&t, "; %.2f s under fcfs: ", (double)(b->end_ns - b->arrival_ns) / 1e9);
    put_causes(&t, b);
    ck_assert_uint_gt(a->n_blockers, 0);
    for (size_t i = 0; i < a->n_blockers; i++) {
        const struct explain_blocker *x = &why.request[0].first[i];
        text_format(&t, "%s%u (%s, %.2f s)", i == 0 ? "; in its way: " : ", ", x->request_id,
                    x->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive",
                    (double)(x->tail_ns + x->queue_ns + x->shared_ns) / 1e9);
    }
    ck_assert_str_eq(cJSON_GetObjectItem(in, "worst_request")->valuestring, text_end(&t));
    /* the first decision that differs: two logs of the same trace */
    struct two_runs *logs = xcalloc(1, sizeof *logs);
    struct two_runs_options o = {.both = small.points[1].settings.options,
                                 .policy = "edf",
                                 .b_policy = "fcfs",
                                 .work = {.how = how}};
    o.both.seed = why.seed;
    ck_assert_int_eq(two_runs_load(logs, &o, &errors), 0);
    struct trace trace;
    ck_assert_int_eq(config_trace(&small.points[1].settings.options, why.seed,
                                  small.points[1].settings.arrivals, &trace, &errors),
                     0);
    struct two_runs_log l[2];
    two_runs_run(logs, 0, &trace, NULL, &l[0]);
    two_runs_run(logs, 1, &trace, NULL, &l[1]);
    struct divergence v;
    diverge_find(l[0].log, l[1].log, &v);
    ck_assert(v.differs);
    OWNED char *parted =
        xformat("q, seed %llu, decision %llu: edf: %s; fcfs: %s", (unsigned long long)why.seed,
                (unsigned long long)v.line, v.a, v.b);
    ck_assert_str_eq(cJSON_GetObjectItem(in, "first_difference")->valuestring, parted);
    two_runs_log_fini(&l[0]);
    two_runs_log_fini(&l[1]);
    trace_fini(&trace);
    two_runs_fini(logs);
    free(logs);
    /* the worst scenario: the same search by hand */
    struct space *space = xcalloc(1, sizeof *space);
    ck_assert_int_eq(space_init(space, &small.points[1].settings.options, &small.points[1].config,
                                "workload,machine", &errors),
                     0);
    struct falsify_runs search = {
        .space = space, .policy = {&two[1], &two[0]}, .metric = E2E, .how = how};
    struct falsify_options asked = {.metric = E2E,
                                    .budget = 2,
                                    .replications = 2,
                                    .confirm = 8,
                                    .relevance_frac = 0.01,
                                    .seed = base};
    struct falsify_result *f = xcalloc(1, sizeof *f);
    falsify_run(&search, &asked, f);
    OWNED char *command = f->found ? space_command(space, &f->least) : NULL;
    OWNED char *scenario = f->found
                               ? xformat(E2E " is %.3g times [%.3g, %.3g] the reference's with %s",
                                         exp(f->least_confirmed.mean), exp(f->least_confirmed.low),
                                         exp(f->least_confirmed.high), command)
                               : xstrdup("none found");
    ck_assert_str_eq(cJSON_GetObjectItem(in, "worst_scenario")->valuestring, scenario);
    free(space);
    free(f);
    /* people get the same, by name */
    OWNED char *said = said_text(d);
    OWNED char *all = xformat("\nwhat to look at\nfailure: %s\nworst_request: %s\n"
                              "first_difference: %s\nworst_scenario: %s\n",
                              failed, text_end(&t), parted, scenario);
    ck_assert_str_eq(said, all);
    cJSON_Delete(tree);
    judge_runs_fini(&runs[0]);
    judge_runs_fini(&runs[1]);
}
END_TEST

/* Each refusal with its number over all runs, and nothing that is none. */
START_TEST(refused_actions_are_summed_over_runs)
{
    struct judge_runs runs;
    struct judge_runs base;
    judge_run(&small, &two[0], 2, &how, &base);
    judge_run(&small, &two[0], 2, &how, &runs);
    SCOPED(text_fini) struct text want = {0};
    for (int i = 0; i < COUNTER_COUNT; i++) {
        OWNED char *name = xformat("counters.%s", counter_names[i]);
        for (uint32_t k = 0; k < runs.outcomes.n; k++) {
            struct study_outcome *o = &runs.outcomes.v[k];
            for (size_t j = 0; j < o->names->n; j++) {
                if (strcmp(o->names->v[j], name) == 0) {
                    o->values[j] = i % 3 == 1 ? 0.0 : i + 100.0 * k;
                }
            }
        }
        if (i % 3 != 1 && i <= COUNTER_OUTSIDE_SCHEDULE && i != COUNTER_PASS_NO_MEMORY &&
            i != COUNTER_PASS_CANCELLED) {
            text_format(&want, "%s%s %d times",
                        want.n > 0 ? ", " : "actions refused as wrong: ", counter_names[i],
                        4 * i + 600); /* of four runs */
        }
    }
    struct judge_result r = {.worst = 0};
    struct words_of w = {.suite = &small,
                         .policy = &two[0],
                         .reference = &two[0],
                         .runs = &runs,
                         .reference_runs = &base,
                         .result = &r,
                         .how = how};
    struct document *d = document_new();
    words_document(&w, d);
    cJSON *tree = document_json(d);
    const cJSON *in = cJSON_GetObjectItem(tree, "artefacts");
    ck_assert_str_eq(cJSON_GetObjectItem(in, "refused")->valuestring, text_end(&want));
    ck_assert(cJSON_IsNull(cJSON_GetObjectItem(in, "failure")) &&
              cJSON_IsNull(cJSON_GetObjectItem(in, "worst_request")) &&
              cJSON_IsNull(cJSON_GetObjectItem(in, "first_difference")) &&
              cJSON_IsNull(cJSON_GetObjectItem(in, "worst_scenario")));
    cJSON_Delete(tree);
    judge_runs_fini(&runs);
    judge_runs_fini(&base);
}
END_TEST

static const struct suite_row rows[] = {
    CASE("made up", .setup = setup, .teardown = teardown),
    TEST(a_judgement_is_worked_out_again),
    TEST(headroom_is_the_mean_distance_to_the_best),
    TEST(a_judgement_is_told_whole),
    TEST(a_regression_has_its_ratio_and_chance),
    TEST(a_suite_is_told_whole),
    TEST(the_first_counts_as_any_other),
    TEST(a_certificate_is_told_and_read_back),
    CASE("run", .setup = setup_runs, .timeout_s = 60),
    TEST(a_certificate_holds_the_best_of_each_run),
    TEST(the_best_is_chosen_by_mean_gains),
    TEST(words_say_what_each_part_finds),
    TEST(refused_actions_are_summed_over_runs),
};
SUITE_MAIN("arena", rows)
