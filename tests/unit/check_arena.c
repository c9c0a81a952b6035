/* The arena on made-up runs: judgements, certificates and what they print, each number worked out
 * again. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/arena/judge.h"
#include "tests/helpers/said.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

enum { POINTS = 3, METRICS = 2, RUNS = 4, PAIRS = POINTS * METRICS, NAMES = 5 };
#define E2E "reactive.e2e_s.mean"
#define RATE "all.throughput_req_per_min"

static struct suite_point points[POINTS] = {
    {.name = "a", .scored = true}, {.name = "b"}, {.name = "c", .scored = true}};
static struct suite suite;
static const char *texts[NAMES] = {E2E, RATE, "all.shed", "all.unfinished", "counters.ended_with"};
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

static void fails(struct study_outcome *o, const char *why)
{
    o->status = -1;
    free(o->values);
    o->values = NULL;
    (void)snprintf(o->message, sizeof o->message, "%s", why);
}

/* The policy fails run 3 of the second point and run 0 of the third, and sheds one more than the
 * reference in run 1 of the second. The other two changes lose no run: one leaves fewer requests
 * unfinished, and one trades an unfinished request for a shed one. */
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
        is_near(r->cells[i].gain.mean, a->gain[i].mean);
        is_near(r->cells[i].gain.low, a->gain[i].mean - a->gain[i].half);
        is_near(r->cells[i].gain.high, a->gain[i].mean + a->gain[i].half);
        is_near(r->cells[i].p_worse, a->p[i]);
        is_near(r->cells[i].p_holm, a->holm[i]);
        is_near(r->cells[i].lost, a->lost[i]);
        ck_assert(r->cells[i].regression == (a->holm[i] <= 0.05));
        is_near(r->means[i], a->policy[i]);
        is_near(r->reference_means[i], a->reference[i]);
    }
    is_near(r->score.gain.mean, a->score.mean);
    is_near(r->score.gain.low, a->score.mean - a->score.half);
    is_near(r->score.gain.high, a->score.mean + a->score.half);
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
            ck_assert(out ? isinf(gains[k]) && gains[k] > 0
                          : is_near(gains[k], a.clipped[k]) != 3.0);
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
    }
}
END_TEST

/* The policy left three requests, and the reference one. If two of the three ended with their job,
 * nothing is lost. A run that does not count such requests has refused all three. */
START_TEST(a_request_that_ends_with_its_job_is_not_refused)
{
    double *values = policy.outcomes.v[RUNS + 2].values;
    values[2] = 3.0;
    ck_assert(judge_lost(&policy, &reference, 1, 2));
    values[4] = 2.0;
    ck_assert(!judge_lost(&policy, &reference, 1, 2));
    values[4] = 1.0;
    ck_assert(judge_lost(&policy, &reference, 1, 2));
    values[4] = (double)NAN;
    ck_assert(judge_lost(&policy, &reference, 1, 2));
}
END_TEST

/* A replication without requests is no failure; any other run without a result is one. */
START_TEST(a_replication_without_requests_is_no_failure)
{
    struct study_outcome *of[] = {at(&policy, 1, 2), at(&reference, 1, 2)};
    for (int i = 0; i < 2; i++) {
        fails(of[i], "no requests");
        of[i]->status = STUDY_NO_REQUESTS;
    }
    struct judge_result r;
    judge_result_of(&suite, &policy, &reference, NULL, &r);
    ck_assert(!judge_lost(&policy, &reference, 1, 2) && r.n_failed == 0);
    of[0]->status = -EIO;
    judge_result_of(&suite, &policy, &reference, NULL, &r);
    ck_assert(judge_lost(&policy, &reference, 1, 2) && r.n_failed == 1);
}
END_TEST

/* ln(mean / best) of what is scored and known: less time and more requests are nearer. */
START_TEST(headroom_is_the_mean_distance_to_the_best)
{
    struct certificate c = {.replications = RUNS};
    struct again a = work_out(false);
    for (uint32_t i = 0; i < PAIRS; i++) {
        c.rows[i].best = a.policy[i] * (i % METRICS == 0 ? 0.5 + 0.1 * i : 1.5 + 0.1 * i);
    }
    c.rows[1].best = (double)NAN;
    struct judge_result r;
    judge_result_of(&suite, &policy, &reference, &c, &r);
    double want = (-log(0.5) - log(0.9) + log(2.0)) / 3.0; /* pairs 0, 4 and 5 */
    is_near(r.headroom, want);
    c.replications = RUNS + 1; /* the best of other requests */
    judge_result_of(&suite, &policy, &reference, &c, &r);
    ck_assert(isnan(r.headroom));
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
        text_format(&want, "regression: %s.%s, failed or left requests in %s\n", of[i],
                    i % 2 == 0 ? E2E : RATE, i < 4 ? "2 replications" : "1 replication");
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
    is_near(cJSON_GetObjectItem(tree, "score")->valuedouble, exp(a.score.mean));
    is_near(cJSON_GetObjectItem(tree, "p_better")->valuedouble, p);
    is_near(cJSON_GetObjectItem(tree, "headroom_left")->valuedouble, exp(0.25) - 1.0);
    is_near(cJSON_GetObjectItem(tree, "failed_runs")->valuedouble, 2);
    const cJSON *interval = cJSON_GetObjectItem(tree, "interval");
    is_near(cJSON_GetObjectItem(interval, "low")->valuedouble, low);
    is_near(cJSON_GetObjectItem(interval, "high")->valuedouble, high);
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
            is_near(cJSON_GetObjectItem(cell, keys[k])->valuedouble, v[k]);
        }
        ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(cell, "scored")) == (i < 2 || i > 3));
        const cJSON *row =
            cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "significant_regressions"), i - 2);
        if (i >= 2) {
            OWNED char *name = xformat("%s.%s", of[i], i % 2 == 0 ? E2E : RATE);
            ck_assert_str_eq(cJSON_GetObjectItem(row, "name")->valuestring, name);
            is_near(cJSON_GetObjectItem(row, "ratio")->valuedouble, exp(-a.gain[i].mean));
        }
    }
    cJSON_Delete(tree);
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
}
END_TEST

START_TEST(a_suite_is_told_whole)
{
    struct document *d = document_new();
    judge_document_suite(&suite, "public", 7, "edf", d);
    shown_is(d, "made up [00ff], public split: 3 points, 2 scored; 7 replications; reference edf\n",
             "{\"suite\":\"made up\",\"split\":\"public\",\"hash\":\"00ff\",\"frozen\":true,"
             "\"points\":3,\"scored_points\":2,\"replications\":7,\"reference\":\"edf\"}");
    suite.recorded = "ff00";
    struct document *other = document_new();
    judge_document_suite(&suite, "sealed", 1, "fcfs", other);
    shown_is(other,
             "made up [00ff], sealed split: 3 points, 2 scored; 1 replication; reference fcfs\n"
             "warning: the suite was frozen as [ff00]: machines, models or generators are others "
             "now, and scores do not compare with the archive's\n",
             "{\"suite\":\"made up\",\"split\":\"sealed\",\"hash\":\"00ff\",\"frozen\":false,"
             "\"points\":3,\"scored_points\":2,\"replications\":1,\"reference\":\"fcfs\"}");
    suite.recorded = ""; /* of a user's own, perhaps */
    struct document *own = document_new();
    judge_document_suite(&suite, "public", 1, "fcfs", own);
    shown_is(
        own,
        "made up [00ff], public split: 3 points, 2 scored; 1 replication; reference fcfs\n"
        "note: the suite's file states no hash. With \"hash\": \"00ff\" in its \"suite\" later "
        "judgements warn of changes\n",
        "{\"suite\":\"made up\",\"split\":\"public\",\"hash\":\"00ff\",\"frozen\":false,"
        "\"points\":3,\"scored_points\":2,\"replications\":1,\"reference\":\"fcfs\"}");
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
        strstr(text, "\nregression: a." E2E ", failed or left requests in 1 replication\n"
                     "regression: a." RATE ", failed or left requests in 1 replication\n"));
    ck_assert_ptr_nonnull(strstr(text, "; 4 significant regressions\n")); /* and those of b */
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

static const struct suite_row rows[] = {
    CASE("made up", .setup = setup, .teardown = teardown),
    TEST(a_judgement_is_worked_out_again),
    TEST(a_request_that_ends_with_its_job_is_not_refused),
    TEST(a_replication_without_requests_is_no_failure),
    TEST(headroom_is_the_mean_distance_to_the_best),
    TEST(a_judgement_is_told_whole),
    TEST(a_regression_has_its_ratio_and_chance),
    TEST(a_suite_is_told_whole),
    TEST(the_first_counts_as_any_other),
    TEST(a_certificate_is_told_and_read_back),
};
SUITE_MAIN("arena", rows)
