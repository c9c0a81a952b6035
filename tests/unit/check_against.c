/* Simulated runs are compared with real ones. Times of three policies are made up, and every number
 * is computed again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/drive/against.h"
#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/words.h"
#include "tests/helpers/suite.h"

enum { POLICIES = 3, REPEATS = 2, MODELS = 2, REQUESTS = 7 };

static struct against against;
static struct document *d;
static cJSON *tree;

/* Real times of a policy: some factor, with a spread over the repeats. Request 5 has one token, and
 * so no time per token; request 6 ends in repeat 1 alone, and request 4 in no simulation. */
static void put(struct request_times *t, double factor, bool real, uint32_t repeat)
{
    t->n = REQUESTS;
    free(t->v);
    t->v = xcalloc(REQUESTS, sizeof *t->v);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        double x = factor * (1.0 + 0.1 * sin(3.0 * i + repeat));
        t->v[i] = (struct request_time){.finished = real ? i != 6 || repeat == 1 : i != 4,
                                        .cls = i % 3 == 1 ? REQUEST_CLASS_PROACTIVE
                                                          : REQUEST_CLASS_REACTIVE,
                                        .ttft_s = x * (i + 1),
                                        .tpot_s = i == 5 ? (double)NAN : 0.1 * x * (i + 2),
                                        .e2e_s = 3.0 * x * (i + 1)};
    }
}

static void setup(void)
{
    /* Policies a and b are 1 and 1.05 times as fast, within the spread of their repeats; c is 3. */
    static const double real[] = {1.0, 1.05, 3.0};
    static const double simulated[] = {1.2, 1.0, 2.5};
    against = (struct against){.n_policies = POLICIES,
                               .n_models = MODELS,
                               .repeats = REPEATS,
                               .models = {"m1", "m2"},
                               .trace = "t.csv",
                               .engines = xstrdup("an engine"),
                               .clock = "cpu"};
    for (uint32_t p = 0; p < POLICIES; p++) {
        struct against_policy *q = &against.policies[p];
        (void)snprintf(q->label, sizeof q->label, "%c", (char)('a' + p));
        q->n_real = REPEATS;
        for (uint32_t k = 0; k < REPEATS; k++) {
            put(&q->real[k].times, real[p] * (k == 0 ? 1.0 : 1.08), true, k);
            put(&q->at_speed[k], real[p] * 1.01 * (k + 1), false, 7);
            q->speed[k] = (struct speed){.all = 1.5 + k + p, .outside_frac = 0.125 * (k + 1)};
            q->real[k].foreign_frac = 0.04 + 0.05 * k + 0.001 * p;
            q->real[k].steal_frac = 0.02;
            q->real[k].load_before = 0.5 + k;
            q->real[k].end_s = 60 + k;
            q->real[k].report.realtime = k == 1;
            q->real[k].report.token_hash = 0xabc0 + k;
        }
        for (uint32_t m = 0; m < MODELS; m++) {
            put(&q->simulated[m], simulated[p] * (m + 1), false, 9);
        }
    }
    d = document_new();
    against_document(&against, d);
    tree = document_json(d);
}

static void teardown(void)
{
    cJSON_Delete(tree);
    for (uint32_t p = 0; p < POLICIES; p++) {
        for (uint32_t k = 0; k < REPEATS; k++) {
            free(against.policies[p].real[k].times.v);
            free(against.policies[p].at_speed[k].v);
        }
        for (uint32_t m = 0; m < MODELS; m++) {
            free(against.policies[p].simulated[m].v);
        }
    }
    free(against.engines);
}

/* ---- the second computation ---- */

static const char *const keys[] = {"ttft_s", "tpot_s", "e2e_s"};

static double of(const struct request_times *t, uint32_t i, int m)
{
    const double v[] = {t->v[i].ttft_s, t->v[i].tpot_s, t->v[i].e2e_s};
    return t->v[i].finished ? v[m] : (double)NAN;
}

static double error_of(const struct request_times *x, const struct request_times *y, int m)
{
    double sum = 0.0;
    double n = 0.0;
    for (uint32_t i = 0; i < REQUESTS; i++) {
        double e = of(x, i, m) / of(y, i, m);
        if (!isnan(e)) {
            sum += e > 1.0 ? e - 1.0 : 1.0 - e;
            n += 1.0;
        }
    }
    return sum / n;
}

static double class_mean(const struct request_times *t, int cls, int m)
{
    double sum = 0.0;
    double n = 0.0;
    for (uint32_t i = 0; i < REQUESTS; i++) {
        if (!isnan(of(t, i, m)) && (int)t->v[i].cls == cls) {
            sum += of(t, i, m);
            n += 1.0;
        }
    }
    return sum / n;
}

static void near(const cJSON *o, double want, const char *what)
{
    ck_assert_msg(cJSON_IsNumber(o) && fabs(o->valuedouble - want) <= 1e-9 * fabs(want),
                  "%s: %g, worked out %g", what, o != NULL ? o->valuedouble : (double)NAN, want);
}

static const cJSON *at(const cJSON *o, const char *a, const char *b)
{
    const cJSON *inner = cJSON_GetObjectItem(o, a);
    return b != NULL ? cJSON_GetObjectItem(inner, b) : inner;
}

/* Means over repeats, of the machine's files one after the other; of the first alone what is of the
 * run: speed, and the errors with kernels of that speed. */
START_TEST(errors_are_means_over_repeats)
{
    const cJSON *rows = cJSON_GetObjectItem(tree, "errors");
    ck_assert_int_eq(cJSON_GetArraySize(rows), POLICIES * MODELS);
    for (int r = 0; r < POLICIES * MODELS; r++) {
        const struct against_policy *p = &against.policies[r / MODELS];
        const struct request_times *x = &p->simulated[r % MODELS];
        const cJSON *row = cJSON_GetArrayItem(rows, r);
        ck_assert_str_eq(at(row, "policy", NULL)->valuestring, p->label);
        ck_assert_str_eq(at(row, "soc", NULL)->valuestring, r % MODELS == 0 ? "m1" : "m2");
        for (int m = 0; m < 3; m++) {
            double mape = 0.0;
            double speed = 0.0;
            for (int k = 0; k < REPEATS; k++) {
                mape += error_of(x, &p->real[k].times, m) / REPEATS;
                speed += error_of(&p->at_speed[k], &p->real[k].times, m) / REPEATS;
            }
            near(at(row, "mape", keys[m]), mape, "mape");
            double sum = 0.0;
            double n = 0.0;
            for (uint32_t i = 0; i < REQUESTS; i++) {
                double first = of(&p->real[0].times, i, m);
                double second = of(&p->real[1].times, i, m);
                double mean = isnan(first) ? second : (first + second) / 2.0;
                if (!isnan(of(x, i, m) / mean)) {
                    sum += fabs(of(x, i, m) / mean - 1.0);
                    n += 1.0;
                }
            }
            near(at(row, "mape_of_means", keys[m]), sum / n, "mape_of_means");
            double real = (error_of(&p->real[0].times, &p->real[1].times, m) +
                           error_of(&p->real[1].times, &p->real[0].times, m)) /
                          2.0;
            near(at(row, "real_mape", keys[m]), real, "real_mape");
            const cJSON *s = at(row, "mape_at_speed", keys[m]);
            if (r % MODELS == 0) {
                near(s, speed, "mape_at_speed");
            } else {
                ck_assert(cJSON_IsNull(s));
            }
        }
        /* The interval holds the mean of those that ended in every repeat, and is wide. */
        double low = at(row, "low", "e2e_s")->valuedouble;
        double high = at(row, "high", "e2e_s")->valuedouble;
        double mean = at(row, "mape", "e2e_s")->valuedouble;
        ck_assert(low < mean && mean < high);
        near(at(row, "foreign_frac", NULL), 0.11 + 0.001 * (r / MODELS),
             "the highest of the repeats");
        near(at(row, "disturbed_runs", NULL), 1, "above 10 %");
        if (r % MODELS == 0) {
            near(at(row, "kernels", NULL), 2.0 + r / MODELS, "kernels");
            near(at(row, "outside_frac", NULL), 0.1875, "outside");
        } else {
            ck_assert(cJSON_IsNull(at(row, "kernels", NULL)) &&
                      cJSON_IsNull(at(row, "outside_frac", NULL)));
        }
    }
}
END_TEST

START_TEST(means_are_of_each_class)
{
    const cJSON *rows = cJSON_GetObjectItem(tree, "means");
    ck_assert_int_eq(cJSON_GetArraySize(rows), 2 * POLICIES);
    for (int r = 0; r < 2 * POLICIES; r++) {
        const struct against_policy *p = &against.policies[r % POLICIES];
        const cJSON *row = cJSON_GetArrayItem(rows, r);
        int cls = r / POLICIES;
        ck_assert_str_eq(at(row, "class", NULL)->valuestring, words_classes[cls]);
        ck_assert_str_eq(at(row, "policy", NULL)->valuestring, p->label);
        for (int m = 0; m < 3; m++) {
            double real =
                (class_mean(&p->real[0].times, cls, m) + class_mean(&p->real[1].times, cls, m)) /
                2.0;
            near(at(row, keys[m], "real"), real, "real");
            near(at(row, keys[m], "simulated"), class_mean(&p->simulated[0], cls, m), "simulated");
        }
    }
}
END_TEST

/* a and b overlap over their repeats in every class and metric, and c is slower than both, really
 * and simulated. So one pair of three is tied, and the other two agree. b is simulated faster than
 * a, which does not count. But where one repeat is drawn twice they are apart, and one of three
 * disagrees: that is the lower bound. */
START_TEST(the_order_leaves_out_what_is_tied)
{
    const cJSON *rows = cJSON_GetObjectItem(tree, "order");
    ck_assert_int_eq(cJSON_GetArraySize(rows), 2 * 3 * (MODELS + 1));
    for (int r = 0; r < 18; r++) {
        static const char *const socs[] = {"m1", "m2", "real"};
        const cJSON *row = cJSON_GetArrayItem(rows, r);
        ck_assert_str_eq(at(row, "class", NULL)->valuestring, words_classes[r / 9]);
        ck_assert_str_eq(at(row, "metric", NULL)->valuestring, keys[r / 3 % 3]);
        ck_assert_str_eq(at(row, "soc", NULL)->valuestring, socs[r % 3]);
        near(at(row, "tied", NULL), 1, "tied");
        near(at(row, "high", NULL), 1, "high");
        double tau = at(row, "tau", NULL)->valuedouble;
        if (r % 3 == 2) { /* the mean over draws of reality; most of these agree with themselves */
            ck_assert(tau > 1.0 / 3.0 && tau < 1.0);
        } else {
            near(at(row, "tau", NULL), 1, "tau");
            near(at(row, "low", NULL), 1.0 / 3.0, "low");
        }
        near(at(row, "pairs", NULL), 3, "pairs");
    }
    /* When c is simulated as the fastest, two of two disagree. */
    put(&against.policies[2].simulated[1], 0.1, false, 9);
    struct against_tau t = against_tau(&against, 1, AGAINST_E2E, REQUEST_CLASS_REACTIVE);
    ck_assert(t.tau == -1.0 && t.low == -1.0 && t.pairs == 3 && t.tied == 1);
    ck_assert_double_eq_tol(t.high, -1.0 / 3.0, 1e-12); /* a drawn slower than b agrees */
    /* When c is simulated between them, one pair agrees and one does not. */
    put(&against.policies[2].simulated[1], 2.2, false, 9);
    t = against_tau(&against, 1, AGAINST_E2E, REQUEST_CLASS_REACTIVE);
    ck_assert(t.tau == 0.0);
    against.n_policies = 1;
    t = against_tau(&against, 0, AGAINST_E2E, REQUEST_CLASS_REACTIVE);
    ck_assert(isnan(t.tau) && t.pairs == 0 && t.tied == 0);
    against.n_policies = POLICIES;
    against.repeats = 1; /* reality alone cannot be compared with anything */
    t = against_tau_real(&against, AGAINST_E2E, REQUEST_CLASS_REACTIVE);
    ck_assert(isnan(t.tau) && isnan(t.low) && t.pairs == 3);
    t = against_tau(&against, 0, AGAINST_E2E, REQUEST_CLASS_REACTIVE); /* and no interval */
    ck_assert(t.tau == 1.0 && isnan(t.low) && isnan(t.high));
}
END_TEST

START_TEST(runs_and_requests_are_all_there)
{
    const cJSON *all = cJSON_GetObjectItem(tree, "drive");
    ck_assert_int_eq(cJSON_GetArraySize(all), POLICIES);
    for (int p = 0; p < POLICIES; p++) {
        const struct against_policy *q = &against.policies[p];
        const cJSON *o = cJSON_GetArrayItem(all, p);
        ck_assert_str_eq(at(o, "policy", NULL)->valuestring, q->label);
        for (int k = 0; k < REPEATS; k++) {
            OWNED char *is = cJSON_PrintUnformatted(cJSON_GetArrayItem(at(o, "runs", NULL), k));
            OWNED char *want = xformat(
                "{\"foreign_frac\":%.10g,\"steal_frac\":0.02,\"load_before\":%g,\"disturbed\":%s,"
                "\"realtime\":%s,\"duration_s\":%d,\"tokens\":\"000000000000abc%d\"}",
                q->real[k].foreign_frac, 0.5 + k, k == 1 ? "true" : "false",
                k == 1 ? "true" : "false", 60 + k, k);
            ck_assert_str_eq(is, want);
        }
        int n = 0;
        for (int i = 0; i < REQUESTS; i++) {
            for (int k = 0; k < REPEATS; k++) {
                if (i == 4 || (i == 6 && k == 0)) {
                    continue;
                }
                const cJSON *row = cJSON_GetArrayItem(at(o, "requests", NULL), n++);
                ck_assert_str_eq(at(row, "class", NULL)->valuestring,
                                 i % 3 == 1 ? "proactive" : "reactive");
                ck_assert_double_eq(at(row, "repeat", NULL)->valuedouble, k);
                for (int m = 0; m < 3; m++) {
                    OWNED char *real = xformat("real_%s", keys[m]);
                    OWNED char *sim = xformat("sim_%s", keys[m]);
                    if (m == 1 && i == 5) {
                        ck_assert(cJSON_IsNull(at(row, real, NULL)) &&
                                  cJSON_IsNull(at(row, sim, NULL)));
                    } else {
                        near(at(row, real, NULL), of(&q->real[k].times, (uint32_t)i, m), real);
                        near(at(row, sim, NULL), of(&q->simulated[0], (uint32_t)i, m), sim);
                    }
                }
            }
        }
        ck_assert_int_eq(cJSON_GetArraySize(at(o, "requests", NULL)), n);
    }
}
END_TEST

START_TEST(people_see_the_same_numbers)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    document_put(d, "text", f);
    (void)fclose(f);
    ck_assert_ptr_eq(strstr(text, "t.csv, clock cpu, 2 repeats; an engine\n\n"), text);
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "errors"), 0);
    OWNED char *e2e =
        xformat(" %.1f [%.1f, %.1f] %% ", 100.0 * at(row, "mape", "e2e_s")->valuedouble,
                100.0 * at(row, "low", "e2e_s")->valuedouble,
                100.0 * at(row, "high", "e2e_s")->valuedouble);
    ck_assert_msg(strstr(text, e2e) != NULL, "no%sin\n%s", e2e, text);
    ck_assert_ptr_nonnull(strstr(text, "\nreactive TTFT   "));
    ck_assert_ptr_nonnull(strstr(text, "\nproactive E2E   "));
    ck_assert_ptr_nonnull(strstr(text, " 1.00 [0.33, 1.00] "));
    ck_assert_ptr_nonnull(strstr(text, " 1 of 3\n"));
    ck_assert_ptr_nonnull(strstr(text, "took in a run; above 10 % it is disturbed."));
    ck_assert_ptr_nonnull(strstr(text, " 11 % "));
    free(text);
}
END_TEST

/* Every request of a run takes so long. */
static void even(struct request_times *t, double e2e_s)
{
    for (uint32_t i = 0; i < REQUESTS; i++) {
        t->v[i] = (struct request_time){.finished = true, .e2e_s = e2e_s};
    }
}

/* Repeats of a take 1 and 2, and those of b begin at 1.5, 2 or 2.5. Reality orders two policies
 * whose repeats lie apart. Where they share one instant it does not, from either side. */
START_TEST(repeats_that_touch_are_tied)
{
    static const double begins[] = {1.5, 2.0, 2.5};
    against.n_policies = 2;
    for (int i = 0; i < 6; i++) {
        for (uint32_t k = 0; k < REPEATS; k++) {
            even(&against.policies[i % 2].real[k].times, 1.0 + k);
            even(&against.policies[1 - i % 2].real[k].times, begins[i / 2] + k);
        }
        for (uint32_t p = 0; p < 2; p++) {
            even(&against.policies[p].simulated[0], 1.0 + p);
        }
        struct against_tau t = against_tau(&against, 0, AGAINST_E2E, REQUEST_CLASS_COUNT);
        bool apart = begins[i / 2] > 2.0;
        ck_assert_uint_eq(t.pairs, 1);
        ck_assert_uint_eq(t.tied, apart ? 0 : 1);
        ck_assert(apart ? t.tau == (i % 2 == 0 ? 1.0 : -1.0) : isnan(t.tau));
    }
    against.n_policies = POLICIES;
}
END_TEST

static const struct suite_row suite[] = {
    CASE("against", .setup = setup, .teardown = teardown),
    TEST(errors_are_means_over_repeats),
    TEST(means_are_of_each_class),
    TEST(the_order_leaves_out_what_is_tied),
    TEST(repeats_that_touch_are_tied),
    TEST(runs_and_requests_are_all_there),
    TEST(people_see_the_same_numbers),
};
SUITE_MAIN("simulated against real", suite)
