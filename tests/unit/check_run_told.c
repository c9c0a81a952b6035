/* A measured run against its replay: errors by a second computation, replicas request by request,
 * and all that `validate --run` prints, writes and refuses. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/validation/run_fit.h"
#include "experiments/validation/run_interval.h"
#include "experiments/validation/validate.h"
#include "sim/base/input.h"
#include "sim/base/json.h"
#include "sim/base/units.h"
#include "tests/helpers/said.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

enum { REQUESTS = 9 };

static const uint32_t ids[REQUESTS] = {7, 3, 9, 12, 1, 20, 21, 22, 23};
static const double arrivals[REQUESTS] = {0.5, 1.25, 1.5, 1.75, 2, 2.25, 4, 4.5, 6};
static const uint32_t inputs[REQUESTS] = {100, 400, 60, 900, 30, 200, 50, 640, 80};
static const uint32_t outputs[REQUESTS] = {5, 1, 8, 4, 2, 9, 1, 6, 7};
static const double ttft[REQUESTS] = {0.9, 1.5, 2, 1.1, 0.7, 1.3, 0.4, 2.2, 0.6};
static const double e2e[REQUESTS] = {2, 1.5, 4, 2.5, 0.7, 5, 0.4, 3.5, 2.25};

static struct measured_run run;
static struct validate_run_options options;
static struct config config;
static struct config_policy policy;
static struct err err;
static char *path;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    path = xstrdup(tempfile_make(".csv"));
    SCOPED(text_fini) struct text t = {0};
    text_string(&t, "request_id,arrival_s,input_tokens,output_tokens,ttft_s,e2e_s\n");
    for (int i = 0; i < REQUESTS; i++) {
        text_format(&t, "%u,%g,%u,%u,%g,%g\n", ids[i], arrivals[i], inputs[i], outputs[i], ttft[i],
                    e2e[i]);
    }
    tempfile_put(text_end(&t));
    options = (struct validate_run_options){.config = config_options_default(),
                                            .run = path,
                                            .policy = "fcfs",
                                            .replicas = 1,
                                            .queue = "round-robin",
                                            .max_mape_pct = {INFINITY, INFINITY, INFINITY}};
    options.config.soc = "core-ultra-5-125h";
    options.config.llm = "llama-3.2-3b";
    ck_assert_int_eq(config_load(&config, &options.config, &err), 0);
    ck_assert_int_eq(config_policy_parse(&policy, "fcfs", &err), 0);
    ck_assert_int_eq(measured_run_read(path, &run, &err), 0);
    run.replicas = (struct measured_replicas){1, MEASURED_ROUND_ROBIN};
}

static void teardown(void)
{
    trace_fini(&run.trace);
    config_fini(&config);
    err_fini(&err);
    (void)remove(path);
    free(path);
}

/* ---- errors ---- */

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x;
    double b = *(const double *)y;
    return (a > b) - (a < b);
}

struct again {
    double n[3], mape[3], median[3], p90[3], bias[3], pearson;
};

static struct again work_out(const struct measured_latency *sim, int first, int end)
{
    struct again a = {0};
    for (int m = 0; m < 3; m++) {
        double e[REQUESTS];
        int n = 0;
        for (int i = first; i < end; i++) {
            double s[3] = {sim[i].e2e_s, sim[i].ttft_s,
                           (sim[i].e2e_s - sim[i].ttft_s) / (outputs[i] - 1.0)};
            double r[3] = {e2e[i], ttft[i], (e2e[i] - ttft[i]) / (outputs[i] - 1.0)};
            if (m < 2 || (outputs[i] > 1 && e2e[i] > ttft[i])) {
                e[n] = s[m] / r[m] - 1;
                a.bias[m] += e[n];
                e[n] = fabs(e[n]);
                a.mape[m] += e[n++];
            }
        }
        qsort(e, (size_t)n, sizeof *e, by_size);
        a.n[m] = n;
        a.mape[m] /= n;
        a.bias[m] /= n;
        a.median[m] = n > 0 ? e[(n + 1) / 2 - 1] : (double)NAN;
        a.p90[m] = n > 0 ? e[(9 * n + 9) / 10 - 1] : (double)NAN;
    }
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0, n = end - first;
    for (int i = first; i < end; i++) {
        x += sim[i].e2e_s / n;
        y += e2e[i] / n;
    }
    for (int i = first; i < end; i++) {
        xx += (sim[i].e2e_s - x) * (sim[i].e2e_s - x);
        yy += (e2e[i] - y) * (e2e[i] - y);
        xy += (sim[i].e2e_s - x) * (e2e[i] - y);
    }
    a.pearson = n < 2 ? (double)NAN : xy / sqrt(xx * yy);
    return a;
}

START_TEST(errors_are_of_the_requests_asked_for)
{
    struct measured_latency sim[REQUESTS];
    for (int i = 0; i < REQUESTS; i++) {
        sim[i] = (struct measured_latency){ttft[i] * (0.7 + 0.11 * i), e2e[i] * (1.4 - 0.09 * i)};
    }
    static const int parts[][2] = {{0, 9}, {0, 3}, {3, 9}, {1, 2}, {7, 9}, {2, 4}};
    for (int p = 0; p < 6; p++) {
        int first = parts[p][0];
        int end = parts[p][1];
        struct run_score s;
        run_score(&run, sim, (size_t)first, (size_t)end, &s);
        struct again a = work_out(sim, first, end);
        ck_assert_uint_eq(s.n, (size_t)(end - first));
        for (int m = 0; m < 3; m++) {
            ck_assert_double_eq((double)s.metric[m].n, a.n[m]);
            if (a.n[m] > 0) {
                is_near(s.metric[m].mape, a.mape[m]);
                is_near(s.metric[m].median, a.median[m]);
                is_near(s.metric[m].p90, a.p90[m]);
                is_near(s.metric[m].bias, a.bias[m]);
            }
        }
        is_near(s.e2e_pearson, a.pearson);
    }
}
END_TEST

/* ---- replicas ---- */

/* The requests of a replica, as a run of one machine. */
static void replay_part(const size_t *of, size_t n, struct measured_latency *out)
{
    struct measured_run part = {.trace = {.n = n, .n_first = n, .hash = run.trace.hash}};
    part.trace.rows = xcalloc(n + 1, sizeof *part.trace.rows);
    for (size_t i = 0; i < n; i++) {
        part.trace.rows[i] = run.trace.rows[of[i]];
        part.trace.rows[i].request_id = part.trace.rows[i].session_id = (uint32_t)i;
    }
    ck_assert_int_eq(n == 0 ? 0 : run_replay_one(&config, &policy, &part, n, 1, out, &err), 0);
    free(part.trace.rows);
}

/* Each request goes round, or to who has the fewest that are not finished, the first of equals. */
START_TEST(replicas_serve_what_their_queue_sends_them)
{
    for (uint32_t machines = 1; machines <= 3; machines++) {
        for (int queue = 0; queue < 2; queue++) {
            size_t of[3][REQUESTS];
            size_t n[3] = {0};
            for (size_t i = 0; i < REQUESTS; i++) {
                uint32_t to = (uint32_t)(i % machines);
                size_t fewest = SIZE_MAX;
                for (uint32_t k = 0; queue == 1 && k < machines; k++) {
                    struct measured_latency sim[REQUESTS];
                    replay_part(of[k], n[k], sim);
                    size_t left = 0;
                    for (size_t j = 0; j < n[k]; j++) {
                        left += run.trace.rows[of[k][j]].arrival_ns + llround(sim[j].e2e_s * 1e9) >
                                run.trace.rows[i].arrival_ns;
                    }
                    if (left < fewest) {
                        fewest = left;
                        to = k;
                    }
                }
                of[to][n[to]++] = i;
            }
            struct measured_latency want[REQUESTS];
            for (uint32_t k = 0; k < machines; k++) {
                struct measured_latency sim[REQUESTS];
                replay_part(of[k], n[k], sim);
                for (size_t j = 0; j < n[k]; j++) {
                    want[of[k][j]] = sim[j];
                }
            }
            run.replicas = (struct measured_replicas){
                machines, queue == 1 ? MEASURED_LEAST_OUTSTANDING : MEASURED_ROUND_ROBIN};
            static const size_t asked[] = {REQUESTS, 4, 1};
            for (int a = 0; a < 3; a++) {
                struct measured_latency is[REQUESTS];
                ck_assert_int_eq(run_replay(&config, &policy, &run, asked[a], 1, is, &err), 0);
                for (size_t i = 0; i < asked[a]; i++) {
                    ck_assert_msg(is[i].e2e_s == want[i].e2e_s && is[i].ttft_s == want[i].ttft_s,
                                  "%u replicas, queue %d: request %zu", machines, queue, i);
                }
            }
        }
    }
}
END_TEST

/* A policy that batches lets later requests end before earlier ones. Asked for the first n, a
 * replay continues until all of these have ended. Each has the latency that it has in the whole. */
START_TEST(the_first_requests_are_all_there_whoever_ends_before_them)
{
    struct config_policy batches;
    struct measured_latency whole[REQUESTS];
    uint32_t overtaken = 0;
    ck_assert_int_eq(config_policy_parse(&batches, "vllm-v1", &err), 0);
    ck_assert_int_eq(run_replay_one(&config, &batches, &run, REQUESTS, 1, whole, &err), 0);
    for (size_t n = 1; n < REQUESTS; n++) {
        struct measured_latency first[REQUESTS];
        memset(first, 0, sizeof first);
        ck_assert_int_eq(run_replay_one(&config, &batches, &run, n, 1, first, &err), 0);
        for (size_t i = 0; i < n; i++) {
            ck_assert(first[i].e2e_s == whole[i].e2e_s && first[i].ttft_s == whole[i].ttft_s);
            overtaken += run.trace.rows[n].arrival_ns + llround(whole[n].e2e_s * 1e9) <
                         run.trace.rows[i].arrival_ns + llround(whole[i].e2e_s * 1e9);
        }
    }
    ck_assert_uint_gt(overtaken, 0);
}
END_TEST

/* ---- what is printed ---- */

static void put_numbers(struct text *t, const char *label, const struct again *a, int n)
{
    text_format(t, "%s %d", label, n);
    for (int m = 0; m < 3; m++) {
        text_format(t, " %.2f %.2f %.2f %+.2f", 100 * a->mape[m], 100 * a->median[m],
                    100 * a->p90[m], 100 * a->bias[m]);
    }
    text_string(t, "\n");
}

static void is_object(const cJSON *o, const struct again *a, int n)
{
    static const char *const metrics[] = {"e2e", "ttft", "tpot"};
    is_near(cJSON_GetObjectItem(o, "n")->valuedouble, n);
    for (int m = 0; m < 3; m++) {
        const char *const kinds[] = {"mape", "median", "p90", "bias"};
        const double v[] = {a->mape[m], a->median[m], a->p90[m], a->bias[m]};
        for (int k = 0; k < 4; k++) {
            OWNED char *key = xformat("%s_%s", metrics[m], kinds[k]);
            is_near(cJSON_GetObjectItem(o, key)->valuedouble, v[k]);
        }
    }
    is_near(cJSON_GetObjectItem(o, "e2e_pearson")->valuedouble, a->pearson);
}

static int told(const char *form, char **out, char **errors)
{
    struct option_output o = {.form = form};
    said_catch();
    int status = validate_run(&options, &o, &err);
    char *text;
    said_caught(&text, errors);
    char *to = text; /* columns are one blank apart */
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == ' ' && (to == text || to[-1] == ' ' || to[-1] == '\n')) {
            continue;
        }
        *to++ = *p;
    }
    *to = '\0';
    *out = text;
    return status;
}

#define TITLES "error, % n E2E MAPE median P90 bias TTFT median P90 bias TPOT median P90 bias\n"

START_TEST(a_replay_is_told_whole)
{
    for (int i = 0; i < 2; i++) {
        options.replicas = i == 0 ? 1 : 2;
        options.queue = i == 0 ? "round-robin" : "least-outstanding";
        options.uncertainty = i == 0 ? 5 : 0;
        run.replicas = (struct measured_replicas){
            options.replicas, i == 0 ? MEASURED_ROUND_ROBIN : MEASURED_LEAST_OUTSTANDING};
        struct measured_latency sim[REQUESTS];
        struct measured_latency roof[REQUESTS];
        ck_assert_int_eq(run_replay(&config, &policy, &run, REQUESTS, 1, sim, &err), 0);
        struct config_options with = options.config;
        struct config other;
        char set[] = "sim.hwmodel=roofline";
        with.sets[with.n_sets++] = set;
        ck_assert_int_eq(config_load(&other, &with, &err), 0);
        ck_assert_int_eq(run_replay(&other, &policy, &run, REQUESTS, 1, roof, &err), 0);
        config_fini(&other);
        struct again all = work_out(sim, 0, REQUESTS);
        struct again bound = work_out(roof, 0, REQUESTS);
        OWNED char *print = config_fingerprint(&config, &policy, &run.trace, 1);
        SCOPED(text_fini) struct text want = {0};
        text_format(&want,
                    "fcfs on %score-ultra-5-125h, llama-3.2-3b\n%s: 9 measured requests, arrivals "
                    "over 5.5 s, 8.25 s in all\n\n%s",
                    i == 0 ? "" : "2 replicas (least-outstanding) of ", path, TITLES);
        put_numbers(&want, "all", &all, REQUESTS);
        put_numbers(&want, "roofline of the file", &bound, REQUESTS);
        struct run_interval x = {0};
        if (i == 0) {
            ck_assert_int_eq(
                run_interval(&options.config, &config, &policy, &run, sim, 5, &x, &err), 0);
            text_format(&want,
                        "\nnothing fitted: %.1f %% of 5 machines drawn from the known ranges (%u "
                        "uncertain numbers of the file, left-out errors of the form) lie between\n"
                        "mean, s requests measured the file's from to holds the truth requests "
                        "inside\n",
                        100 * x.level, x.n_factors);
            for (int m = 0; m < 3; m++) {
                static const char *const titles[] = {"E2E", "TTFT", "TPOT"};
                const struct run_interval_metric *k = &x.metric[m];
                text_format(&want, "%s %zu %.4g %.4g %.4g %.4g %s %.1f %%\n", titles[m], k->n,
                            k->measured, k->simulated, k->low, k->high,
                            k->measured >= k->low && k->measured <= k->high ? "yes" : "NO",
                            100 * k->inside_frac);
            }
        }
        text_format(&want,
                    "E2E Pearson %.4f over all; the roofline, nothing fitted, is an upper bound of "
                    "speed\n\n%s\n",
                    all.pearson, print);
        OWNED char *text = NULL;
        OWNED char *said = NULL;
        ck_assert_int_eq(told("text", &text, &said), 0);
        ck_assert_str_eq(text, text_end(&want));
        ck_assert_str_eq(said, "");
        OWNED char *json = NULL;
        ck_assert_int_eq(told("json", &json, NULL), 0);
        SCOPED(json_drop) cJSON *tree = cJSON_Parse(json);
        is_near(cJSON_GetObjectItem(tree, "replicas")->valuedouble, options.replicas);
        ck_assert_str_eq(cJSON_GetObjectItem(tree, "queue")->valuestring, options.queue);
        ck_assert_str_eq(cJSON_GetObjectItem(tree, "fingerprint")->valuestring, print);
        ck_assert_str_eq(cJSON_GetObjectItem(tree, "run")->valuestring, path);
        is_object(tree, &all, REQUESTS);
        const cJSON *parts = cJSON_GetObjectItem(tree, "parts");
        ck_assert_int_eq(cJSON_GetArraySize(parts), 1);
        is_object(cJSON_GetObjectItem(parts, "all"), &all, REQUESTS);
        is_object(cJSON_GetObjectItem(tree, "roofline"), &bound, REQUESTS);
        const cJSON *interval = cJSON_GetObjectItem(tree, "interval");
        ck_assert((interval != NULL) == (i == 0));
        ck_assert((cJSON_GetObjectItem(tree, "intervals") != NULL) == (i == 0));
        if (i == 0) {
            is_near(cJSON_GetObjectItem(interval, "machines")->valuedouble, x.n_machines);
            is_near(cJSON_GetObjectItem(interval, "failed")->valuedouble, x.n_failed);
            is_near(cJSON_GetObjectItem(interval, "factors")->valuedouble, x.n_factors);
            is_near(cJSON_GetObjectItem(interval, "level")->valuedouble, x.level);
        }
        ck_assert_ptr_null(cJSON_GetObjectItem(tree, "fit"));
        ck_assert_ptr_null(cJSON_GetObjectItem(tree, "lack_of_fit"));
    }
}
END_TEST

/* Fitted on the first requests: parts, the number with its range, and the rows that are written. */
START_TEST(a_fit_is_told_whole)
{
    static const struct {
        const char *on;
        int n;
    } all[] = {{"first:0.5", 5}};
    for (int i = 0; i < 1; i++) {
        const char *rows = NULL;
        OWNED char *file = xformat("%s.rows", path);
        options.fit = "soc.devices.igpu.runtimes.0.rate";
        options.fit_on = all[i].on;
        options.requests = file;
        options.uncertainty = 3; /* none where something is fitted */
        struct run_fit fit = {.n_keys = 0};
        int n = all[i].n;
        ck_assert_int_eq(run_fit_keys(&config, options.fit, &fit, &err), 0);
        ck_assert_int_eq(run_fit(&options.config, &policy, &run, (size_t)n, &fit, &err), 0);
        struct config fitted;
        ck_assert_int_eq(run_fit_load(&options.config, &fit, &fitted, &err), 0);
        struct measured_latency sim[REQUESTS];
        struct measured_latency roof[REQUESTS];
        ck_assert_int_eq(run_replay(&fitted, &policy, &run, REQUESTS, 1, sim, &err), 0);
        struct config_options with = options.config;
        struct config other;
        char set[] = "sim.hwmodel=roofline";
        with.sets[with.n_sets++] = set;
        ck_assert_int_eq(config_load(&other, &with, &err), 0);
        ck_assert_int_eq(run_replay(&other, &policy, &run, REQUESTS, 1, roof, &err), 0);
        config_fini(&other);
        struct again on = work_out(sim, 0, n);
        struct again unseen = work_out(sim, n, REQUESTS);
        struct again both = work_out(sim, 0, REQUESTS);
        struct again bound = work_out(roof, 0, REQUESTS);
        OWNED char *print = config_fingerprint(&fitted, &policy, &run.trace, 1);
        config_fini(&fitted);
        const struct run_fit_key *k = &fit.key[0];
        SCOPED(text_fini) struct text want = {0};
        text_format(&want,
                    "fcfs on core-ultra-5-125h, llama-3.2-3b\n%s: 9 measured requests, arrivals "
                    "over 5.5 s, 8.25 s in all\n\nfitted on the first %d requests (measured "
                    "latencies of the other %d not used), %u simulations%s\n",
                    path, n, REQUESTS - n, fit.evaluations, fit.converged ? "" : ", NOT CONVERGED");
        text_string(&want, "number file fitted +- 2 se moved\n");
        text_format(&want, "%s %s %.5g %.5g ", k->path, k->unit, k->datasheet, k->fitted);
        if (k->at_bound) {
            text_string(&want, "at its bound");
        } else if (isnan(k->se)) {
            text_string(&want, "-");
        } else {
            text_format(&want, "%.2g", 2 * k->se);
        }
        text_format(&want, " %+.1f %%", 100 * (k->fitted / k->datasheet - 1));
        if (k->fitted < k->low || k->fitted > k->high) {
            text_format(&want, " outside the file's range %g..%g", k->low, k->high);
        }
        text_string(&want, "\n\n" TITLES);
        bool lacks = on.median[0] > RUN_FIT_LACK_FRAC;
        OWNED char *verdict =
            lacks ? xformat("LACK OF FIT: no values of these numbers bring E2E of the requests "
                            "fitted to nearer than %.3g %% (limit %g %%): another form, policy or "
                            "run\n",
                            100 * on.median[0], 100 * RUN_FIT_LACK_FRAC)
                  : xformat("the form fits: E2E of the requests fitted to within %.2g %% in the "
                            "median (limit %g %%)\n",
                            100 * on.median[0], 100 * RUN_FIT_LACK_FRAC);
        put_numbers(&want, "fitted on", &on, n);
        if (n < REQUESTS) {
            put_numbers(&want, "unseen", &unseen, REQUESTS - n);
        }
        put_numbers(&want, "all", &both, REQUESTS);
        put_numbers(&want, "roofline of the file", &bound, REQUESTS);
        text_string(&want, verdict);
        text_format(&want,
                    "E2E Pearson %.4f over all; the roofline, nothing fitted, is an upper bound of "
                    "speed\n\n%s\n",
                    both.pearson, print);
        OWNED char *text = NULL;
        OWNED char *json = NULL;
        ck_assert_int_eq(told("text", &text, NULL), 0);
        ck_assert_str_eq(text, text_end(&want));
        SCOPED(text_fini) struct text csv = {0};
        text_string(&csv, "request_id,arrival_s,input_tokens,output_tokens,part,ttft_s,"
                          "simulated_ttft_s,e2e_s,simulated_e2e_s\n");
        for (int r = 0; r < REQUESTS; r++) {
            text_format(&csv, "%u,%.9f,%u,%u,%s,%.9f,%.9f,%.9f,%.9f\n", ids[r], arrivals[r],
                        inputs[r], outputs[r], r < n ? "fit" : "unseen", ttft[r], sim[r].ttft_s,
                        e2e[r], sim[r].e2e_s);
        }
        OWNED char *written = input_text(file, 1 << 16, &err);
        ck_assert_str_eq(written, text_end(&csv));
        (void)remove(file);
        options.requests = rows;
        ck_assert_int_eq(told("json", &json, NULL), 0);
        SCOPED(json_drop) cJSON *tree = cJSON_Parse(json);
        const cJSON *f = cJSON_GetObjectItem(tree, "fit");
        is_near(cJSON_GetObjectItem(f, "n")->valuedouble, n);
        is_near(cJSON_GetObjectItem(f, "evaluations")->valuedouble, fit.evaluations);
        is_near(cJSON_GetObjectItem(f, "objective_before")->valuedouble, fit.objective_before);
        is_near(cJSON_GetObjectItem(f, "objective")->valuedouble, fit.objective);
        ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(f, "converged")) == fit.converged);
        ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(tree, "lack_of_fit")) == lacks);
        const cJSON *number = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "fitted"), 0);
        ck_assert_str_eq(cJSON_GetObjectItem(number, "path")->valuestring, k->path);
        ck_assert_str_eq(cJSON_GetObjectItem(number, "unit")->valuestring, k->unit);
        static const char *const keys[] = {"datasheet", "low", "high", "value"};
        const double v[] = {k->datasheet, k->low, k->high, k->fitted};
        for (int m = 0; m < 4; m++) {
            is_near(cJSON_GetObjectItem(number, keys[m])->valuedouble, v[m]);
        }
        is_near(cJSON_GetObjectItem(number, "moved_frac")->valuedouble,
                k->fitted / k->datasheet - 1);
        ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(number, "at_bound")) == k->at_bound);
        const cJSON *parts = cJSON_GetObjectItem(tree, "parts");
        ck_assert_int_eq(cJSON_GetArraySize(parts), n < REQUESTS ? 3 : 2);
        is_object(cJSON_GetObjectItem(parts, "fit"), &on, n);
        is_object(cJSON_GetObjectItem(parts, "all"), &both, REQUESTS);
        if (n < REQUESTS) {
            is_object(cJSON_GetObjectItem(parts, "unseen"), &unseen, REQUESTS - n);
        }
        is_object(tree, &both, REQUESTS);
        ck_assert_ptr_null(cJSON_GetObjectItem(tree, "interval"));
    }
}
END_TEST

/* Limits hold at the error itself and fail below it, of each metric that has one. */
START_TEST(limits_are_of_the_errors)
{
    struct measured_latency sim[REQUESTS];
    ck_assert_int_eq(run_replay(&config, &policy, &run, REQUESTS, 1, sim, &err), 0);
    struct again a = work_out(sim, 0, REQUESTS);
    static const char *const names[] = {"e2e", "ttft", "tpot"};
    for (int m = 0; m < 3; m++) {
        for (int over = 0; over < 2; over++) {
            double limit = 100 * a.mape[m] * (over ? 1 - 1e-9 : 1 + 1e-9);
            for (int k = 0; k < 3; k++) {
                options.max_mape_pct[k] = k == m ? limit : (double)INFINITY;
            }
            OWNED char *text = NULL;
            OWNED char *said = NULL;
            ck_assert_int_eq(told("json", &text, &said), over);
            OWNED char *want = over ? xformat("xpusim: all: %s MAPE %.2f %% is above %g %%\n",
                                              names[m], 100 * a.mape[m], limit)
                                    : xstrdup("");
            ck_assert_str_eq(said, want);
        }
    }
}
END_TEST

static void refused(const char *want)
{
    struct option_output o = {.form = "json"};
    said_catch();
    int status = validate_run(&options, &o, &err);
    said_caught(NULL, NULL);
    ck_assert_int_eq(status, 2);
    ck_assert_uint_ge(err.n, 1);
    ck_assert_str_eq(err.lines[0], want);
    err_fini(&err);
    err = (struct err)ERR_INIT;
}

START_TEST(what_cannot_be_asked_is_refused)
{
    static const char needs[] = "validate --run needs --run, --soc, --llm and --policy";
    struct validate_run_options good = options;
    options.run = NULL;
    refused(needs);
    options = good;
    options.policy = NULL;
    refused(needs);
    options = good;
    options.config.soc = NULL;
    refused(needs);
    options = good;
    options.config.llm = NULL;
    refused(needs);
    options = good;
    static const char takes[] =
        "validate --run takes its requests from the run: no --trace, --workload";
    options.config.trace = "x.csv";
    refused(takes);
    options = good;
    options.config.workload = "w1";
    refused(takes);
    options = good;
    options.fit_on = "first:0.5";
    refused("--fit-on needs --fit");
    options.fit = "soc.devices.igpu.runtimes.0.rate";
    options.fit_on = "last:0.5";
    refused("--fit-on last:0.5: must be first:SHARE, as in first:0.3");
    options = good;
}
END_TEST

static const struct suite_row suite[] = {
    CASE("a run told", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(errors_are_of_the_requests_asked_for),
    TEST(replicas_serve_what_their_queue_sends_them),
    TEST(the_first_requests_are_all_there_whoever_ends_before_them),
    TEST(a_replay_is_told_whole),
    TEST(a_fit_is_told_whole),
    TEST(limits_are_of_the_errors),
    TEST(what_cannot_be_asked_is_refused),
};
SUITE_MAIN("a run told", suite)
