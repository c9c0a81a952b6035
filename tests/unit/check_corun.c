/* Contention models against co-runs: predictions by hand, and fits that find what made the rows. */
#include "hwmodels/corun.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/datadir.h"
#include "tests/helpers/suite.h"

static const double neutral[CORUN_KNOBS] = {1.0, 1.0, 0.0, 0.0, 1.0, 0.0};

static struct corun_point row(const char *machine, uint32_t victim, double x, double most,
                              uint32_t culprit, double y, double slowdown)
{
    struct corun_point p = {.peak_gbs = 100.0,
                            .victim = victim,
                            .victim_gbs = x,
                            .most_gbs = most,
                            .culprit = culprit,
                            .culprit_gbs = y,
                            .slowdown = slowdown};
    p.machine = xkeep(xstrdup(machine));
    return p;
}

START_TEST(slowdowns_by_hand)
{
    double knob[CORUN_KNOBS];
    memcpy(knob, neutral, sizeof knob);
    struct corun_point p = row("a", CORUN_NPU, 60, 60, CORUN_GPU, 80, 1);
    /* 60 + 80 exceed 100, so each gets half. */
    ck_assert_double_eq_tol(corun_slowdown(contention_find("max-min"), knob, &p), 60.0 / 50, 1e-12);
    ck_assert_double_eq(corun_slowdown(contention_find("none"), knob, &p), 1.0);
    /* Both together get 0.9 of the peak, so each gets 45. */
    knob[CORUN_TOGETHER] = 0.9;
    ck_assert_double_eq_tol(corun_slowdown(contention_find("max-min"), knob, &p), 60.0 / 45, 1e-12);
    /* Weights are 3 and 1 of 90. 67.5 is more than 60, which the NPU gets, and the GPU gets 30. */
    knob[CORUN_WEIGHT] = 3.0;
    ck_assert_double_eq_tol(corun_slowdown(contention_find("weighted"), knob, &p), 1.0, 1e-12);
    struct corun_point q = row("a", CORUN_GPU, 80, 80, CORUN_NPU, 60, 1);
    ck_assert_double_eq_tol(corun_slowdown(contention_find("weighted"), knob, &q), 80.0 / 30,
                            1e-12);
    /* Below the capacity boundness is 30/60, and the others draw 40 of 100: 1 + 0.3 x 0.5 x 0.4. */
    knob[CORUN_TOGETHER] = 1.0;
    knob[CORUN_LATENCY] = 0.3;
    struct corun_point r = row("a", CORUN_NPU, 30, 60, CORUN_GPU, 40, 1);
    ck_assert_double_eq_tol(corun_slowdown(contention_find("latency"), knob, &r), 1.06, 1e-12);
    /* The total of two streams is 120 over 2 x 50 / (1 + 0.3 x 0.5). */
    struct corun_point both = row("a", CORUN_BOTH, 60, 60, CORUN_NPU, 60, 1);
    ck_assert_double_eq_tol(corun_slowdown(contention_find("latency"), knob, &both), 1.2 * 1.15,
                            1e-12);
    /* A demand above the capacity is still met alone, so only the culprit slows it. */
    struct corun_point large = row("a", CORUN_GPU, 150, 150, CORUN_NPU, 10, 1);
    ck_assert_double_eq_tol(corun_slowdown(contention_find("max-min"), knob, &large), 150.0 / 140,
                            1e-12);
}
END_TEST

/* Rows that a model made, of three machines with traffic of their own. */
static void make_rows(const char *model, const double truth[CORUN_KNOBS], struct corun_point *v,
                      size_t n)
{
    static const char *const machines[] = {"a", "b", "c"};
    for (size_t i = 0; i < n; i++) {
        double x = 20.0 + 11.0 * (double)(i % 5);
        double y = 15.0 + 17.0 * (double)(i % 4);
        bool npu = i % 2 == 0;
        v[i] = row(machines[i % 3], npu ? CORUN_NPU : CORUN_GPU, x, 70, npu ? CORUN_GPU : CORUN_NPU,
                   y, 1);
        v[i].slowdown = corun_slowdown(contention_find(model), truth, &v[i]);
    }
}

/* Rows of three machines are made with known numbers. A fit without machine b must find these to
 * 0.01, and be off by less than 0.5 % on b. */
START_TEST(a_fit_finds_what_made_the_rows)
{
    static const struct {
        const char *model;
        double truth[CORUN_KNOBS];
    } cases[] = {{"max-min", {0.78, 1, 0, 0, 1, 0}},
                 {"weighted", {0.8, 1.7, 0, 0, 1, 0}},
                 {"latency", {0.93, 1, 0.37, 0, 1, 0}},
                 {"beside", {0.85, 1, 0, 0, 1, 0.22}}};
    static const char *machines[] = {"a", "b", "c"};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct corun_point v[60];
        make_rows(cases[c].model, cases[c].truth, v, 60);
        struct corun_points p = {v, 60, machines, 3};
        const struct contention_ops *model = contention_find(cases[c].model);
        double knob[CORUN_KNOBS];
        memcpy(knob, neutral, sizeof knob);
        corun_fit(model, &p, NULL, "b", knob);
        for (int k = 0; k < CORUN_KNOBS; k++) {
            ck_assert_msg(fabs(knob[k] - cases[c].truth[k]) < 0.01, "%s %s: %g, made with %g",
                          cases[c].model, corun_knob_names[k], knob[k], cases[c].truth[k]);
        }
        ck_assert_double_lt(corun_error(model, knob, &p, "b", NULL), 0.005);
    }
}
END_TEST

START_TEST(a_machine_left_out_has_no_part_in_its_fit)
{
    struct corun_point v[60];
    double truth[CORUN_KNOBS] = {0.8, 1, 0, 0, 1, 0};
    make_rows("max-min", truth, v, 60);
    for (size_t i = 0; i < 60; i++) { /* what b says is absurd */
        v[i].slowdown *= strcmp(v[i].machine, "b") == 0 ? 3.0 : 1.0;
    }
    static const char *machines[] = {"a", "b", "c"};
    struct corun_points p = {v, 60, machines, 3};
    double knob[CORUN_KNOBS];
    memcpy(knob, neutral, sizeof knob);
    corun_fit(contention_find("max-min"), &p, NULL, "b", knob);
    ck_assert_double_eq_tol(knob[CORUN_TOGETHER], 0.8, 0.01);
    /* every machine counts the same: the mean of 0, ln 3 and 0 */
    ck_assert_double_eq_tol(corun_error(contention_find("max-min"), truth, &p, NULL, NULL),
                            log(3.0) / 3, 1e-9);
}
END_TEST

/* Machines a, b and c have 1, 2 and 6 rows, which are off by factors of 2, 3 and 5. */
START_TEST(a_machine_counts_as_one_however_many_rows_it_has)
{
    static const char *machines[] = {"a", "b", "c"};
    static const double factor[] = {2.0, 3.0, 5.0};
    static const uint32_t of[] = {0, 1, 1, 2, 2, 2, 2, 2, 2};
    struct corun_point v[9];
    double truth[CORUN_KNOBS] = {0.8, 1, 0, 0, 1, 0};
    make_rows("max-min", truth, v, 9);
    for (size_t i = 0; i < 9; i++) {
        v[i].machine = machines[of[i]];
        v[i].slowdown *= factor[of[i]];
    }
    struct corun_points p = {v, 9, machines, 3};
    const struct contention_ops *model = contention_find("max-min");
    for (int m = 0; m < 3; m++) {
        ck_assert_double_eq_tol(corun_error(model, truth, &p, machines[m], NULL), log(factor[m]),
                                1e-12);
        ck_assert_double_eq_tol(corun_error(model, truth, &p, NULL, machines[m]),
                                log(30.0 / factor[m]) / 2, 1e-12);
    }
    ck_assert_double_eq_tol(corun_error(model, truth, &p, NULL, NULL), log(30.0) / 3, 1e-12);
}
END_TEST

START_TEST(what_no_row_sees_stays_where_it_starts)
{
    /* demands far below any cap: no share depends on a weight, and none on the cap */
    struct corun_point v[] = {row("a", CORUN_NPU, 10, 10, CORUN_GPU, 20, 1),
                              row("b", CORUN_GPU, 20, 20, CORUN_CPU, 10, 1)};
    static const char *machines[] = {"a", "b"};
    struct corun_points p = {v, 2, machines, 2};
    for (double weight = 0.5; weight < 4.0; weight += 1.1) {
        double knob[CORUN_KNOBS] = {0.9, weight, 0, 0, 1, 0};
        corun_fit(contention_find("weighted"), &p, NULL, NULL, knob);
        ck_assert_double_eq_tol(knob[CORUN_TOGETHER], 0.9, 1e-3);
        ck_assert_double_eq_tol(knob[CORUN_WEIGHT], weight, 1e-2);
    }
}
END_TEST

/* Finds the least error of a model's two numbers on a fine grid. */
static double least_on_grid(const struct contention_ops *model, const struct corun_points *p,
                            const char *without, enum corun_knob other, double low, double high)
{
    double least = (double)INFINITY;
    for (int i = 0; i <= 100; i++) {
        for (int k = 0; k <= 100; k++) {
            double knob[CORUN_KNOBS];
            memcpy(knob, neutral, sizeof knob);
            knob[CORUN_TOGETHER] = 0.6 + 0.004 * i;
            knob[other] = low + (high - low) * k / 100;
            least = fmin(least, corun_error(model, knob, p, NULL, without));
        }
    }
    return least;
}

/* Shipped rows, each machine left out in turn: no point of a grid is better than the fit, but for
 * what the pull to the start may cost: 1e-5 for each number. And the rows in another order end in
 * the same place. */
START_TEST(no_point_of_a_grid_is_better_and_the_order_of_rows_means_nothing)
{
    static const struct {
        const char *model;
        enum corun_knob other;
        double low, high;
    } cases[] = {{"weighted", CORUN_WEIGHT, 0.2, 5.0},
                 {"latency", CORUN_LATENCY, 0.0, 2.0},
                 {"beside", CORUN_BESIDE, 0.0, 2.0},
                 {"max-min", CORUN_LATENCY, 0.0, 0.0}};
    struct err e = {0};
    struct corun_points p;
    ck_assert_int_eq(corun_read(datadir_path("hwmodels/points/corun.csv"), &p, &e), 0);
    struct corun_point *turned = malloc(p.n * sizeof *turned);
    for (size_t i = 0; i < p.n; i++) {
        turned[i] = p.v[p.n - 1 - i];
    }
    struct corun_points q = {turned, p.n, p.machines, p.n_machines};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const struct contention_ops *model = contention_find(cases[c].model);
        for (size_t m = 0; m < p.n_machines; m++) {
            double knob[CORUN_KNOBS];
            double other[CORUN_KNOBS];
            memcpy(knob, neutral, sizeof knob);
            memcpy(other, neutral, sizeof other);
            corun_fit(model, &p, NULL, p.machines[m], knob);
            corun_fit(model, &q, NULL, p.machines[m], other);
            double best = least_on_grid(model, &p, p.machines[m], cases[c].other, cases[c].low,
                                        cases[c].high);
            ck_assert_double_le(corun_error(model, knob, &p, NULL, p.machines[m]), best + 2e-5);
            for (int k = 0; k < CORUN_KNOBS; k++) {
                ck_assert_double_eq_tol(knob[k], other[k], 1e-3);
            }
        }
    }
    free(turned);
}
END_TEST

START_TEST(shipped_rows_repeat_the_traffic_that_they_come_from)
{
    struct err e = {0};
    struct corun_points p;
    ck_assert_int_eq(corun_read(datadir_path("hwmodels/points/corun.csv"), &p, &e), 0);
    ck_assert_uint_ge(p.n_machines, 4);
    /* The source's table has 52.10 alone and 26.3 together for the GPU, and 54.09 and 49.8 for the
     * NPU. */
    ck_assert_double_eq_tol(p.v[0].victim_gbs / p.v[0].slowdown, 26.3, 0.01);
    ck_assert_double_eq_tol(p.v[1].victim_gbs / p.v[1].slowdown, 49.8, 0.01);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(slowdowns_by_hand),
    TEST(a_fit_finds_what_made_the_rows),
    TEST(a_machine_counts_as_one_however_many_rows_it_has),
    TEST(a_machine_left_out_has_no_part_in_its_fit),
    TEST(what_no_row_sees_stays_where_it_starts),
    TEST(no_point_of_a_grid_is_better_and_the_order_of_rows_means_nothing),
    TEST(shipped_rows_repeat_the_traffic_that_they_come_from),
};
SUITE_MAIN("corun", suite)
