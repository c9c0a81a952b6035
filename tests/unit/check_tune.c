/* Equal tuning: the space it draws from, what it picks, and that only the seed decides. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "experiments/compare/tune.h"
#include "experiments/run/runner.h"
#include "policies/params.h"
#include "policies/registry.h"
#include "sim/base/memory.h"
#include "sim/metrics/metric_table.h"
#include "tests/helpers/suite.h"

#define WORKLOAD "mixed:reactive_per_min=6,proactive_per_min=9,duration_s=40,output_scale=0.5"

enum { DRAWS = 40, REPLICATIONS = 2 };

static struct config_options options;
static struct config config;
static struct err err;
static const char *metric; /* that is tuned for */

static void setup(void)
{
    options = config_options_default();
    options.workload = WORKLOAD;
    options.seed = 5;
    metric = "all.e2e_s.mean";
    err = (struct err)ERR_INIT;
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
}

static void teardown(void)
{
    config_fini(&config);
    err_fini(&err);
}

static struct config_policy policy(const char *spec)
{
    struct config_policy p;
    ck_assert_int_eq(config_policy_parse(&p, spec, &err), 0);
    return p;
}

/* ---- the space ---- */

static bool same(const struct policy_params *a, const struct policy_params *b)
{
    return memcmp(a->v, b->v, a->n * sizeof *a->v) == 0;
}

START_TEST(draws_are_legal_distinct_and_begin_with_what_was_given)
{
    size_t n_policies;
    const struct policy_ops *ops = policy_list(&n_policies)[_i];
    struct config_policy p = policy(ops->name);
    static struct policy_params draws[DRAWS];
    static struct policy_params again[DRAWS];
    uint32_t n = tune_draw(&p, 7, DRAWS, draws, NULL);
    ck_assert(same(&draws[0], &p.params));
    ck_assert_uint_eq(tune_draw(&p, 7, DRAWS, again, NULL), n);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert(same(&draws[i], &again[i]));
        for (uint32_t k = 0; k < i; k++) {
            ck_assert(!same(&draws[i], &draws[k]));
        }
        struct policy_params parsed;
        const char *text = policy_params_format(ops, &draws[i]);
        ck_assert_msg(policy_params_parse(ops, text, &parsed, &err) == 0, "%s: %s", ops->name,
                      text);
        ck_assert_msg(same(&parsed, &draws[i]), "%s: %s", ops->name, text);
    }
}
END_TEST

/* Defaults 100 (0 to 1e6): 12.5 to 800; 0.5 of a share: 0.0625 to 1; 1e6 sequences, "unlimited": 1
 * to 4096; 0 of 1e9: no scale; 0 of 1: all of it. */
static const char *const colours[] = {"red", "green", "blue", NULL};
static const struct policy_param table[] = {
    POLICY_NUMBER("number", 100, 0, 1e6, ""), POLICY_NUMBER("share", 0.5, 0, 1, ""),
    POLICY_INT("sequences", 1e6, 1, 1e6, ""), POLICY_NUMBER("cost", 0, 0, 1e9, ""),
    POLICY_NUMBER("fraction", 0, 0, 1, ""),   POLICY_BOOL("flag", true, ""),
    POLICY_CHOICE("colour", 2, colours, ""),  {.name = NULL},
};
static const struct policy_ops painter = {.name = "painter", .params = table};

static uint32_t draw_painter(const char *label, struct policy_params *out, uint32_t n,
                             uint32_t *n_free)
{
    struct config_policy p = {.ops = &painter, .label = label};
    ck_assert_int_eq(policy_params_parse(&painter, NULL, &p.params, &err), 0);
    return tune_draw(&p, 3, n, out, n_free);
}

START_TEST(ranges_follow_the_default_and_the_legal_range)
{
    static struct policy_params draws[200];
    uint32_t n_free;
    uint32_t n = draw_painter("painter", draws, 200, &n_free);
    static const double low[] = {12.5, 0.0625, 1, 0, 0, 0, 0};
    static const double high[] = {800, 1, 4096, 0, 1, 1, 2};
    ck_assert_uint_eq(n_free, 6);
    ck_assert_uint_gt(n, 150);
    for (int k = 0; k < 7; k++) {
        double least = HUGE_VAL;
        double most = -HUGE_VAL;
        double changed = 0;
        for (uint32_t i = 1; i < n; i++) {
            double x = draws[i].v[k];
            ck_assert_msg(x >= low[k] && (x <= high[k] || x == table[k].def), "%s=%g",
                          table[k].name, x);
            least = x < least ? x : least;
            most = x > most && x != table[k].def ? x : most;
            changed += x != table[k].def;
        }
        if (k == 3) {
            ck_assert(changed == 0);
            continue;
        }
        /* half are changed (3 of 6), of a flag's and a colour's changes 1/2 and 2/3 to another */
        double share = k == 5 ? 0.25 : k == 6 ? 1.0 / 3 : 0.5;
        ck_assert_msg(fabs(changed / n - share) < 0.12, "%s: %g of %u", table[k].name, changed, n);
        ck_assert(k >= 5 || (least < low[k] + 0.2 * (high[k] - low[k]) &&
                             most > low[k] + 0.8 * (high[k] - low[k])));
    }
}
END_TEST

START_TEST(what_is_stated_is_left_alone)
{
    static struct policy_params draws[60];
    uint32_t n_free;
    uint32_t n = draw_painter("painter:share=0.5,colour=blue", draws, 60, &n_free);
    ck_assert_uint_eq(n_free, 4);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert(draws[i].v[1] == 0.5 && draws[i].v[6] == 2);
    }
    n = draw_painter("painter:number=1,share=1,sequences=1,fraction=0,flag=1,colour=red", draws, 60,
                     &n_free);
    ck_assert_uint_eq(n_free, 0);
    ck_assert_uint_eq(n, 1);
}
END_TEST

/* ---- training ---- */

static struct compare_plan plan_of(const struct config_policy *p, uint32_t n, uint32_t parallel)
{
    return (struct compare_plan){.config = &config,
                                 .options = &options,
                                 .policies = p,
                                 .n_policies = n,
                                 .replications = 3,
                                 .how.parallel = parallel,
                                 .arrivals = CONFIG_AS_WRITTEN};
}

static struct compare_result given;

static void run_tune(const struct compare_plan *plan, uint32_t budget, struct tune *out)
{
    struct tune_options o = {.budget = budget, .replications = REPLICATIONS, .metric = metric};
    ck_assert_int_eq(tune_check(plan, &o, &err), 0);
    compare_run(plan, &given);
    tune_run(out, plan, &o, &given);
}

static void end_tune(struct tune *t)
{
    compare_result_fini(&t->tuned);
    free(t->of);
    compare_result_fini(&given);
}

/* Returns the objective in a training replication. */
static double run_of(const struct config_policy *p, uint64_t seed, uint32_t k)
{
    SCOPED(trace_fini) struct trace t = {0};
    SCOPED(runner_result_fini) struct runner_result r;
    struct runner_options opt = {0};
    ck_assert_int_eq(config_trace(&options, config_seed(seed, k), CONFIG_AS_WRITTEN, &t, &err), 0);
    int rc = runner_run(&config, p, &t, config_seed(seed, k), &opt, &r, &err);
    return rc == 0 ? metric_list_find(&r.metrics, metric)->value : HUGE_VAL;
}

/* Its mean over the training replications, run one by one. */
static double value_of(const struct config_policy *p, uint64_t seed)
{
    double sum = 0.0;
    for (uint32_t k = 0; k < REPLICATIONS; k++) {
        sum += run_of(p, seed, k);
    }
    return sum / REPLICATIONS;
}

START_TEST(the_best_of_the_drawn_configurations_is_chosen)
{
    struct config_policy p = policy("openvino-cb:device=igpu"); /* all others can start */
    struct compare_plan plan = plan_of(&p, 1, 2);
    struct tune t;
    run_tune(&plan, 9, &t);
    static struct policy_params draws[9 * TUNE_DRAWS];
    uint32_t n = tune_draw(&p, options.seed, 9 * TUNE_DRAWS, draws, NULL);
    ck_assert_uint_ge(n, 9);
    double best = HUGE_VAL;
    uint32_t which = 0;
    for (uint32_t i = 0; i < 9; i++) {
        struct config_policy q = p;
        q.params = draws[i];
        double x = value_of(&q, t.seed);
        which = x < best ? i : which;
        best = x < best ? x : best;
    }
    ck_assert_uint_eq(t.of[0].n_tried, 9);
    ck_assert_double_eq_tol(t.of[0].tuned_value, best, 1e-12 * best);
    ck_assert(same(&t.of[0].tuned.params, &draws[which]));
    ck_assert_uint_gt(which, 0); /* or this test shows little */
    ck_assert_double_lt(t.of[0].tuned_value, t.of[0].given_value);
    end_tune(&t);
}
END_TEST

/* A configuration that is behind stops earlier than the best one. Both values are of the same
 * replications, however many these were. */
START_TEST(a_selection_compares_over_the_replications_of_both)
{
    struct config_policy p = policy("vtc");
    struct compare_plan plan = plan_of(&p, 1, 2);
    struct tune t;
    struct tune_options o = {
        .budget = 9,
        .replications = REPLICATIONS,
        .metric = "all.e2e_s.mean",
        .select = {.confidence_frac = 0.9, .indifference_percent = 1, .most = 40}};
    compare_run(&plan, &given);
    tune_run(&t, &plan, &o, &given);
    ck_assert(t.of[0].changed[0] != '\0');
    double sum[2] = {0.0, 0.0};
    uint32_t found = 0;
    for (uint32_t k = 0; k < 40 && found == 0; k++) {
        sum[0] += run_of(&p, t.seed, k);
        sum[1] += run_of(&t.of[0].tuned, t.seed, k);
        bool same_given = fabs(sum[0] / (k + 1) - t.of[0].given_value) < 1e-9;
        bool same_tuned = fabs(sum[1] / (k + 1) - t.of[0].tuned_value) < 1e-9;
        found = same_given && same_tuned ? k + 1 : 0;
    }
    ck_assert_uint_ge(found, SELECT_FIRST_MIN);
    struct document *d = document_new();
    tune_document(&plan, &t, NULL, 0, d);
    SCOPED(json_drop) cJSON *tree = document_json(d);
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "training_seeds")),
                     SELECT_FIRST_MIN);
    end_tune(&t);
}
END_TEST

/* fcfs has one parameter with five devices: the NPU cannot run it, there is no GPU, and auto is the
 * iGPU: three configurations, however large the budget. */
START_TEST(configurations_that_cannot_start_do_not_use_up_the_budget)
{
    struct config_policy p[] = {policy("fcfs"), policy("fcfs:device=cpu")};
    struct compare_plan plan = plan_of(p, 2, 2);
    struct tune t;
    run_tune(&plan, 12, &t);
    ck_assert_uint_eq(t.of[0].n_free, 1);
    ck_assert_uint_eq(t.of[0].n_tried, 3);
    ck_assert_uint_eq(t.of[0].n_out, 0);
    ck_assert_uint_eq(t.of[1].n_free, 0);
    ck_assert_uint_eq(t.of[1].n_tried, 1);
    ck_assert_str_eq(t.of[1].changed, "");
    ck_assert_double_lt(t.of[0].tuned_value, t.of[1].tuned_value);
    end_tune(&t);
}
END_TEST

/* A policy that sheds every request with a predicted wait makes the other ones fast. It must not
 * win. */
START_TEST(configurations_that_drop_requests_are_out)
{
    struct config_policy p = policy("agent-xpu-v1:shed=true,shed_queue=0,shed_wait_s=0");
    struct compare_plan plan = plan_of(&p, 1, 2);
    struct tune t;
    run_tune(&plan, 3, &t);
    const double *shed = compare_values(&given, 0, "all.shed");
    ck_assert_double_gt(shed[0] + shed[1] + shed[2], 0.0);
    ck_assert(isnan(t.of[0].given_value));
    ck_assert_uint_ge(t.of[0].n_out, 1);
    end_tune(&t);
}
END_TEST

/* One of the two training replications has no reactive request, or no request at all. The other one
 * decides. */
START_TEST(a_replication_without_the_class_does_not_count)
{
    config_fini(&config);
    options.workload = _i == 0 ? "mixed:reactive_per_min=2,proactive_per_min=12,duration_s=40"
                               : "mixed:reactive_per_min=2,proactive_per_min=0,duration_s=40";
    options.seed = 4;
    metric = "reactive.e2e_s.mean";
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    struct config_policy p = policy("fcfs");
    struct compare_plan plan = plan_of(&p, 1, 2);
    struct tune t;
    run_tune(&plan, 3, &t);
    double x[] = {_i == 0 ? run_of(&p, t.seed, 0) : (double)NAN, run_of(&p, t.seed, 1)};
    ck_assert(isnan(x[0]) && isfinite(x[1]));
    SCOPED(trace_fini) struct trace first = {0};
    ck_assert_int_eq(config_trace(&options, t.seed, CONFIG_AS_WRITTEN, &first, &err),
                     _i == 0 ? 0 : -ENODATA);
    ck_assert_uint_eq(t.of[0].n_out, 0);
    ck_assert_double_eq_tol(t.of[0].given_value, x[1], 1e-12 * x[1]);
    end_tune(&t);
}
END_TEST

START_TEST(training_seeds_are_no_test_seeds)
{
    struct config_policy p = policy("fcfs");
    struct compare_plan plan = plan_of(&p, 1, 1);
    struct tune t;
    run_tune(&plan, 1, &t);
    for (uint32_t i = 0; i < REPLICATIONS; i++) {
        for (uint32_t k = 0; k < plan.replications; k++) {
            ck_assert_uint_ne(config_seed(t.seed, i), config_seed(options.seed, k));
        }
    }
    end_tune(&t);
}
END_TEST

START_TEST(results_do_not_depend_on_how_many_run_at_once)
{
    struct config_policy p[] = {policy("openvino-cb"), policy("edf")};
    char *text[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct compare_plan plan = plan_of(p, 2, 1 + 3 * i);
        struct tune t;
        run_tune(&plan, 5, &t);
        struct document *d = document_new();
        tune_document(&plan, &t, NULL, 0, d);
        cJSON *o = document_json(d);
        text[i] = cJSON_Print(o);
        cJSON_Delete(o);
        end_tune(&t);
    }
    ck_assert_str_eq(text[0], text[1]);
    cJSON_free(text[0]);
    cJSON_free(text[1]);
}
END_TEST

START_TEST(throughput_is_a_gain_and_latency_is_not)
{
    ck_assert(metric_is_gain("all.throughput_req_per_min"));
    ck_assert(metric_is_gain("reactive.slo_attainment_frac"));
    ck_assert(!metric_is_gain(TUNE_DEFAULT_METRIC));
    ck_assert(!metric_is_gain("energy_j_per_token"));
}
END_TEST

/* Three differences of 2, 6, 5 and 9: mean 5.5, standard error 2.887 / 2, t = 3.81. Alone that is
 * significant (t of 3 degrees at 5 % is 3.18), among three it is not (t at 5 % / 3 is 4.86). */
START_TEST(what_is_printed_is_corrected_together)
{
    const struct config_policy policies[] = {policy("edf:max_batch=4"), policy("edf")};
    struct metric names[] = {{"m", 0.0}};
    double of_given[] = {100, 100, 100, 100, 102, 106, 105, 109};
    double of_tuned[] = {102, 106, 105, 109, 104, 112, 110, 118};
    struct compare_result as_given = {.n_policies = 2,
                                      .replications = 4,
                                      .n_metrics = 1,
                                      .n_plain = 1,
                                      .names = names,
                                      .values = of_given};
    struct compare_plan plan = plan_of(policies, 2, 1);
    struct tune_policy of[2] = {{.changed = ""}, {.changed = ""}};
    struct tune t = {.plan = &plan,
                     .options = {1, 1, "m"},
                     .n_policies = 2,
                     .of = of,
                     .given = &as_given,
                     .tuned = as_given};
    t.tuned.values = of_tuned;
    static const char *const metrics[] = {"m"};
    struct document *d = document_new();
    tune_document(&plan, &t, metrics, 1, d);
    cJSON *tree = document_json(d);
    const cJSON *edf = cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "policies"), "edf");
    const cJSON *m = cJSON_GetObjectItem(cJSON_GetObjectItem(edf, "metrics"), "m");
    static const char lost[] = "(not significant after Holm's correction)";
    ck_assert_ptr_nonnull(strstr(cJSON_GetObjectItem(m, "verdict")->valuestring, lost));
    ck_assert_ptr_nonnull(strstr(cJSON_GetObjectItem(m, "baseline_verdict")->valuestring, lost));
    ck_assert_double_eq_tol(cJSON_GetObjectItem(m, "p_holm")->valuedouble, 3.0 * 0.0318, 0.0003);
    cJSON_Delete(tree);
    /* Both are edf, and the baseline is the one with 4. */
    OWNED char *text = NULL;
    size_t size = 0;
    FILE *f = memory_stream(&text, &size);
    document_print(d, &(struct option_output){0}, f);
    memory_stream_close(f, &text);
    ck_assert_msg(strstr(text, " tuned vs tuned edf:max_batch=4\n") != NULL, "%s", text);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("space", .setup = setup, .teardown = teardown),
    LOOP_OVER(draws_are_legal_distinct_and_begin_with_what_was_given, suite_policies),
    TEST(ranges_follow_the_default_and_the_legal_range),
    TEST(what_is_stated_is_left_alone),
    TEST(throughput_is_a_gain_and_latency_is_not),
    CASE("training", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(the_best_of_the_drawn_configurations_is_chosen),
    TEST(a_selection_compares_over_the_replications_of_both),
    TEST(configurations_that_cannot_start_do_not_use_up_the_budget),
    TEST(configurations_that_drop_requests_are_out),
    LOOP(a_replication_without_the_class_does_not_count, 2),
    TEST(training_seeds_are_no_test_seeds),
    TEST(results_do_not_depend_on_how_many_run_at_once),
    TEST(what_is_printed_is_corrected_together),
};
SUITE_MAIN("tune", suite)
