/* Both sides of a scenario: which of them failed and what it said, whose requests are compared, and
 * what a fit begins with. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/conformance/conformance.h"
#include "experiments/falsify/runs.h"
#include "experiments/validation/calibrate.h"
#include "experiments/validation/calibrate_space.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

static struct config_options options;
static struct config config;
static struct space space;
static struct config_policy policies[2]; /* fcfs, and one that needs what is not there */
static struct err err;
static const struct study_how how = {.parallel = 1, .cpu_limit_s = 60.0};

static void setup(void)
{
    err = (struct err)ERR_INIT;
    options = config_options_default();
    options.workload = "mixed:reactive_per_min=30,proactive_per_min=30,duration_s=10";
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    ck_assert_int_eq(space_init(&space, &options, &config, "workload", &err), 0);
    ck_assert_int_eq(config_policy_parse(&policies[0], "fcfs", &err), 0);
    ck_assert_int_eq(config_policy_parse(&policies[1], "edf", &err), 0);
}

static void teardown(void)
{
    config_fini(&config);
    err_fini(&err);
}

static int fails_a(struct study_cell *c, struct err *e)
{
    (void)c;
    return err_add(e, "the policy's words");
}

static int fails_b(struct study_cell *c, struct err *e)
{
    (void)c;
    return err_add(e, "the baseline's words");
}

/* The side that failed says why; of two the policy. */
START_TEST(the_failed_side_says_why)
{
    static const struct {
        bool a, b;
        const char *message;
    } all[] = {{true, false, "the policy's words"},
               {false, true, "the baseline's words"},
               {true, true, "the policy's words"},
               {false, false, ""}};
    for (int i = 0; i < 4; i++) {
        struct study_cell sides[2];
        for (int k = 0; k < 2; k++) {
            bool fails = k == 0 ? all[i].a : all[i].b;
            sides[k] = (struct study_cell){.config = &config,
                                           .options = &options,
                                           .policy = &policies[k],
                                           .seed = 5 + (uint64_t)k,
                                           .load = !fails   ? NULL
                                                   : k == 0 ? fails_a
                                                            : fails_b};
        }
        sides[1].seed = 5;
        struct falsify_reason r;
        falsify_explain(sides, "all.e2e_s.mean", &how, &r);
        ck_assert(r.seed == 5);
        if (all[i].message[0] == '\0') {
            ck_assert_str_eq(r.message, "");
        } else {
            ck_assert_ptr_nonnull(strstr(r.message, all[i].message));
            ck_assert(!r.found);
        }
    }
}
END_TEST

/* Runs that fail on one side only are that side's; on both they are nobody's. A request that is
 * larger than the KV of a machine makes both fail. */
START_TEST(failures_are_counted_on_their_side)
{
    /* a policy whose parameter no run takes */
    static struct config_policy broken;
    ck_assert_int_eq(config_policy_parse(&broken, "npu-serial", &err), 0);
    options.soc = "w1-reference";
    config_fini(&config);
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    struct space_point points[2] = {space_nominal(&space), space_nominal(&space)};
    struct falsify_ask ask = {.points = points, .n_points = 2, .first = 3, .n = 2};
    for (int i = 0; i < 3; i++) {
        struct falsify_runs r = {.space = &space, .metric = "all.e2e_s.mean", .how = how};
        r.policy[0] = i == 0 || i == 2 ? &broken : &policies[0];
        r.policy[1] = i == 1 || i == 2 ? &broken : &policies[0];
        double loss[4];
        falsify_simulate(&r, &ask, loss);
        ck_assert_uint_eq(r.n_runs, 8);
        ck_assert_uint_eq(r.n_failed[0], i == 0 ? 4 : 0);
        ck_assert_uint_eq(r.n_failed[1], i == 1 ? 4 : 0);
        ck_assert((r.message[0][0] != '\0') == (i == 0));
        ck_assert((r.message[1][0] != '\0') == (i == 1));
        for (int k = 0; k < 4; k++) {
            ck_assert(isnan(loss[k]));
        }
    }
}
END_TEST

/* Losses of points and replications in their places, each by its own two runs. */
START_TEST(losses_are_of_their_own_runs)
{
    struct space_point points[2] = {space_nominal(&space), space_nominal(&space)};
    for (uint32_t i = 0; i < space.n; i++) {
        points[1].u[i] = fmin(1.0, points[0].u[i] + 0.25);
    }
    static const char *const metrics[] = {"all.e2e_s.mean", "all.throughput_req_per_min"};
    for (int m = 0; m < 2; m++) {
        struct falsify_runs r = {.space = &space,
                                 .policy = {&policies[1], &policies[0]},
                                 .metric = metrics[m],
                                 .how = how,
                                 .n_runs = 10};
        struct falsify_ask ask = {.points = points, .n_points = 2, .first = 1, .n = 2};
        double loss[4];
        falsify_simulate(&r, &ask, loss);
        ck_assert_uint_eq(r.n_runs, 18);
        for (uint32_t i = 0; i < 4; i++) {
            struct config_options o;
            struct config own;
            space_options(&space, &points[i / 2], &o);
            ck_assert_int_eq(config_load(&own, &o, &err), 0);
            struct study_cell cells[2];
            for (int k = 0; k < 2; k++) {
                cells[k] = (struct study_cell){.config = &own,
                                               .options = &o,
                                               .policy = &policies[1 - k],
                                               .seed = config_seed(options.seed, 1 + i % 2)};
            }
            struct study_outcomes out = study_run(cells, 2, &how);
            double x = study_value(&out.v[0], metrics[m]);
            double y = study_value(&out.v[1], metrics[m]);
            ck_assert_double_eq_tol(loss[i], m == 0 ? log(x / y) : log(y / x), 1e-12);
            study_outcomes_fini(&out);
            config_fini(&own);
        }
    }
}
END_TEST

/* Losses of fcfs and edf on a battery of so many joules (0: none), and how many are cut. */
static uint32_t cuts(double joules, int first, double *loss)
{
    struct space_point point = space_nominal(&space);
    struct falsify_ask ask = {.points = &point, .n_points = 1, .first = 0, .n = 1};
    struct falsify_runs r = {.space = &space,
                             .policy = {&policies[first], &policies[1 - first]},
                             .metric = "all.e2e_s.mean",
                             .how = how};
    options.machine = NULL;
    if (joules > 0.0) {
        options.machine = tempfile_make(".json");
        OWNED char *text = xformat("{\"machine\": [{\"at_s\": 0, \"battery_j\": %.17g, "
                                   "\"battery_full_j\": 1e6, \"source\": \"battery\"}]}",
                                   joules);
        tempfile_put(text);
    }
    falsify_simulate(&r, &ask, loss);
    if (joules > 0.0) {
        tempfile_remove();
    }
    return r.n_cut;
}

/* fcfs draws more than edf for the same requests. A battery between the two gives out on one side
 * alone, whichever of the two that is, and then there is no loss. */
START_TEST(an_empty_battery_on_either_side_is_no_loss)
{
    double joules[2];
    for (int k = 0; k < 2; k++) {
        struct study_cell cell = {.config = &config,
                                  .options = &options,
                                  .policy = &policies[k],
                                  .seed = config_seed(options.seed, 0)};
        struct study_outcomes out = study_run(&cell, 1, &how);
        joules[k] = study_value(&out.v[0], "energy_j");
        study_outcomes_fini(&out);
    }
    ck_assert_double_gt(joules[0], 1.1 * joules[1]);
    double batteries[] = {0.0, 1.2 * joules[0], (joules[0] + joules[1]) / 2.0, 0.9 * joules[1]};
    for (int i = 0; i < 4; i++) {
        for (int first = 0; first < 2; first++) {
            double loss;
            ck_assert_uint_eq(cuts(batteries[i], first, &loss), i < 2 ? 0 : 1);
            ck_assert(isfinite(loss) == (i < 2));
        }
    }
}
END_TEST

/* The request that lost most, of the metric's class alone, with both of its explanations. */
START_TEST(the_reason_is_the_request_that_lost_most)
{
    static const char *const metrics[] = {"all.e2e_s.mean", "reactive.e2e_s.mean",
                                          "proactive.ttft_s.p90"};
    int64_t longest[3];
    for (int m = 0; m < 3; m++) {
        struct study_cell sides[2];
        for (int k = 0; k < 2; k++) {
            sides[k] = (struct study_cell){
                .config = &config, .options = &options, .policy = &policies[1 - k], .seed = 11};
        }
        struct falsify_reason r;
        falsify_explain(sides, metrics[m], &how, &r);
        longest[m] = 0;
        if (r.found) {
            const struct explanation *a = &r.request[0].x;
            const struct explanation *b = &r.request[1].x;
            ck_assert(a->request_id == b->request_id && a->cls == b->cls &&
                      a->arrival_ns == b->arrival_ns);
            ck_assert(m == 0 || (a->cls == REQUEST_CLASS_REACTIVE) == (m == 1));
            longest[m] = a->end_ns - a->arrival_ns - (b->end_ns - b->arrival_ns);
            ck_assert(longest[m] > 0);
            ck_assert(r.request[0].job == UINT32_MAX && a->n_blockers <= FALSIFY_BLOCKERS);
            int64_t sum = 0;
            for (int i = 0; i < EXPLAIN_CAUSE_COUNT; i++) {
                sum += a->ns[i];
            }
            ck_assert(sum == a->end_ns - a->arrival_ns);
        }
    }
    ck_assert(longest[0] > 0);
    ck_assert(longest[0] == (longest[1] > longest[2] ? longest[1] : longest[2]));
}
END_TEST

/* ---- a run that ended ---- */

START_TEST(a_run_fails_by_its_status_or_by_what_it_left)
{
    static struct scenario sc;
    sc.trace.n = 3;
    for (int i = 0; i < 6; i++) {
        sc.result.status = i % 2 == 0 ? 0 : -1;
        sc.result.audit.finished = (uint64_t)(2 + i / 2);
        ck_assert(conformance_failed(&sc) == (i != 2)); /* status 0, and 3 of 3 */
    }
}
END_TEST

/* ---- where a fit begins ---- */

/* Every number that the file states as its start takes the place of the fitted one, and nothing
 * else changes; without such numbers the entry is as it is. */
START_TEST(a_fit_begins_where_the_file_says)
{
    struct soc_runtime r = {.runtime = "ov-2025",
                            .weight_bits = 8,
                            .many = {.flop_per_s = 1, .bytes_per_s = 2, .launch_s = 3},
                            .one = {.flop_per_s = 4, .bytes_per_s = 5, .launch_s = 6},
                            .fill_rows = 7,
                            .attention_frac = 8,
                            .width_fill = 9,
                            .enqueue_s = 20,
                            .knee = 10,
                            .start = {.flop_per_s = 11,
                                      .bytes_per_s = 12,
                                      .launch_s = 13,
                                      .fill_rows = 14,
                                      .attention_frac = 15,
                                      .width_fill = 16,
                                      .one_bytes_per_s = 17,
                                      .one_launch_s = 18,
                                      .enqueue_s = 19}};
    struct soc_runtime b = calibrate_start(&r);
    ck_assert(b.many.flop_per_s == 1 && b.one.launch_s == 6 && b.width_fill == 9 &&
              b.enqueue_s == 20);
    r.start.given = true;
    b = calibrate_start(&r);
    ck_assert_double_eq(b.many.flop_per_s, 11);
    ck_assert_double_eq(b.one.flop_per_s, 11);
    ck_assert_double_eq(b.many.bytes_per_s, 12);
    ck_assert_double_eq(b.many.launch_s, 13);
    ck_assert_double_eq(b.one.bytes_per_s, 17);
    ck_assert_double_eq(b.one.launch_s, 18);
    ck_assert_double_eq(b.fill_rows, 14);
    ck_assert_double_eq(b.attention_frac, 15);
    ck_assert_double_eq(b.width_fill, 16);
    ck_assert_double_eq(b.enqueue_s, 19);
    ck_assert_double_eq(b.knee, 10);
    ck_assert(b.weight_bits == 8 && b.start.given && strcmp(b.runtime, "ov-2025") == 0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("sides", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(the_failed_side_says_why),
    TEST(failures_are_counted_on_their_side),
    TEST(losses_are_of_their_own_runs),
    TEST(an_empty_battery_on_either_side_is_no_loss),
    TEST(the_reason_is_the_request_that_lost_most),
    CASE("ends and starts"),
    TEST(a_run_fails_by_its_status_or_by_what_it_left),
    TEST(a_fit_begins_where_the_file_says),
};
SUITE_MAIN("sides", suite)
