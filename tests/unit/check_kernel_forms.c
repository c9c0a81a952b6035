/* Forms of kernel times, judged on cells that are made by hand: two anchors, the fit, a table. How
 * sure a whole fit is, by degrees of freedom and by scale. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

#include "hwmodels/kernel_fit_impl.h"
#include "hwmodels/kernel_model.h"
#include "sim/base/arena.h"
#include "tests/helpers/suite.h"

static struct kernel_row rows[8];
static struct kernel_cell cells[8];
static struct kernel_fit fit;
static struct fit_problem problem;

/* A product of that many rows that took so long; one row is 1e6 flop. */
static struct kernel_cell *product(uint32_t n_rows, double bytes, double us)
{
    struct kernel_row *r = &rows[fit.n_cells];
    struct kernel_cell *c = &cells[fit.n_cells++];
    *r = (struct kernel_row){
        .op = KERNEL_GEMM, .rows = n_rows, .flop = 1e6 * n_rows, .bytes = bytes};
    *c = (struct kernel_cell){.row = r, .partner = -1, .n = 3, .log_mean = log(us * 1e-6)};
    return c;
}

static void error_is(enum kernel_form form, double want)
{
    const struct kernel_form_error *e = &fit.errors[form][KERNEL_GEMM];
    ck_assert_uint_eq(e->n, 1);
    ck_assert_double_eq_tol(e->median_frac, want, 1e-12);
    ck_assert_double_eq_tol(e->worst_frac, want, 1e-12);
    ck_assert_uint_eq(fit.all[form].n, 1);
    ck_assert_double_eq_tol(fit.all[form].worst_frac, want, 1e-12);
    ck_assert_uint_eq(fit.errors[form][KERNEL_READ].n, 0);
}

/* The least intense known kernel has 4 rows over 1 MB in 10 us, and the most intense 16 rows over 1
 * MB in 40 us. The question is about 8 rows over 0.5 MB, measured 25 us.
 *   anchors  memory 0.5 / 1 * 10 = 5 us, compute 8 / 16 * 40 = 20 us, the larger: 0.2 off
 *   fit      says 35 us: 0.4 off
 *   table    half the way from 4 to 16 rows in logarithms: sqrt(10 * 40) = 20 us, 0.2 off
 * Pairs, cells without a trusted row and those that were fitted are not judged. */
START_TEST(forms_are_judged_by_what_they_say_of_what_was_held_out)
{
    (void)product(4, 1e6, 10);
    (void)product(16, 1e6, 40);
    struct kernel_cell *asked = product(8, 0.5e6, 25);
    asked->held_out = true;
    asked->predicted = 35e-6;
    struct kernel_cell *pair = product(8, 0.5e6, 100);
    pair->held_out = true;
    pair->partner = 0;
    struct kernel_cell *untrusted = product(8, 0.5e6, 1000);
    untrusted->held_out = true;
    untrusted->n = 0;
    fit_judge(&problem);
    error_is(KERNEL_FORM_TWO_ANCHOR, 0.2);
    error_is(KERNEL_FORM_PNORM, 0.4);
    error_is(KERNEL_FORM_TABLE, 0.2);
}
END_TEST

/* The table has 10 us at 4 rows and 160 us at 16: at 8, half the way in logarithms, sqrt(10 * 160)
 * = 40 us: of measured 50 they are 0.2 off. Beyond the ends the table's end counts: 10 us for 2
 * rows, measured 8: 0.25 off; 160 us for 32, measured 200: 0.2. Compute says 8 / 16 * 160 = 80 us
 * of 50: 0.6. */
START_TEST(a_table_is_straight_in_logarithms_and_ends_where_it_ends)
{
    static const struct {
        uint32_t n_rows;
        double us, off;
    } asked[] = {{8, 50, 0.2}, {2, 8, 0.25}, {32, 200, 0.2}};
    for (int i = 0; i < 3; i++) {
        fit.n_cells = 0;
        (void)product(4, 1e6, 10);
        (void)product(16, 1e6, 160);
        product(asked[i].n_rows, 0.5e6, asked[i].us)->held_out = true;
        fit_judge(&problem);
        error_is(KERNEL_FORM_TABLE, asked[i].off);
    }
    fit.n_cells = 2;
    product(8, 0.5e6, 50)->held_out = true;
    fit_judge(&problem);
    error_is(KERNEL_FORM_TWO_ANCHOR, 0.6);
}
END_TEST

/* Another width, another device and another kind of kernel are other families. */
START_TEST(anchors_are_of_the_family)
{
    (void)product(4, 1e6, 10);
    (void)product(16, 1e6, 40);
    product(64, 1e6, 1)->group = 1;
    product(64, 1e6, 1)->device = 1;
    struct kernel_cell *stream = product(1, 1e9, 1);
    rows[fit.n_cells - 1].op = KERNEL_COPY;
    ck_assert_ptr_nonnull(stream);
    product(8, 0.5e6, 25)->held_out = true;
    fit_judge(&problem);
    error_is(KERNEL_FORM_TWO_ANCHOR, 0.2);
    error_is(KERNEL_FORM_TABLE, 0.2);
}
END_TEST

/* 3e6 flop at 1 Gflop/s and 4e6 bytes at 1 GB/s, a knee of 2, launch 1 ms: 1 + sqrt(9 + 16) = 6 ms,
 * so 2/3 GB/s are drawn. That is 3/4 of the cap, 8/9 GB/s of sharpness 2: F = 5/4. Others draw 7/12
 * of the cap, 4/3 in all: F = 5/3. The memory part is 4/3 as long, and 7/12 / (5/3) = 7/20 of the
 * memory is kept busy: 1 + sqrt(9 + (16/3)^2) + 7/20 * 6 / 2 ms. */
START_TEST(sharing_lengthens_as_the_formula_says)
{
    const struct kernel_curve c = {1e9, 1e9, 1e-3, 2.0};
    const struct kernel_contention m = {8e9 / 9.0, 2.0};
    double others = 7.0 / 12.0 * m.cap_bytes_per_s;
    double together_ms = 1.0 + sqrt(9.0 + 256.0 / 9.0) + 0.35 * 3.0;
    ck_assert_double_eq_tol(kernel_model_seconds(&c, 3e6, 4e6), 6e-3, 1e-15);
    ck_assert_double_eq_tol(kernel_model_slowdown(&c, 3e6, 4e6, others, &m, 0.5), together_ms / 6.0,
                            1e-12);
    ck_assert_double_eq_tol(kernel_model_slowdown(&c, 3e6, 4e6, 0.0, &m, 0.5), 1.0, 1e-12);
}
END_TEST

static void setup(void)
{
    memset(&fit, 0, sizeof fit);
    fit.cells = cells;
    problem.fit = &fit;
}

/* ---- the whole fit ---- */

/* Products of many rows have four numbers: rate, bandwidth, knee and launch. So five rows of one
 * repetition leave one degree of freedom. The drift of a second repetition takes another one. */
START_TEST(each_further_repetition_takes_a_degree_of_freedom)
{
    static const struct {
        uint32_t shapes, again; /* rows of the first and of the second repetition */
        bool enough;
    } cases[] = {{4, 0, false}, {5, 0, true}, {4, 1, false}, {4, 2, true}};
    const struct kernel_curve curve = {2e12, 40e9, 50e-6, 2.0};
    struct kernel_rows made = {.n = 0};
    struct err e = ERR_INIT;
    static struct kernel_fit whole;
    for (uint32_t i = 0; i < cases[_i].shapes + cases[_i].again; i++) {
        bool second = i >= cases[_i].shapes;
        struct kernel_row *row = kernel_rows_add(&made);
        const struct kernel_spec s = {.op = KERNEL_GEMM,
                                      .weight_bits = 8,
                                      .act_bits = 16,
                                      .rows = 4u << 2 * (second ? i - cases[_i].shapes : i),
                                      .n = 2048,
                                      .k = 2048};
        kernel_row_set_spec(row, &s);
        row->device = "npu";
        row->runtime = "rt";
        row->metric = KERNEL_METRIC_MS;
        row->repetition = second;
        row->value =
            1e3 * kernel_model_seconds(&curve, row->flop, row->bytes) * (1.0 + 1e-3 * sin(2.3 * i));
    }
    int rc = kernel_fit_run(&whole, &made, &e);
    ck_assert_msg((rc == 0) == cases[_i].enough, "%s", e.n > 0 ? e.lines[0] : "");
    ck_assert(rc == 0 || strstr(e.lines[0], "measure more repetitions") != NULL);
    err_fini(&e);
}
END_TEST

static const char *const stream_devices[] = {"npu", "igpu"};
static const enum kernel_op stream_ops[] = {KERNEL_READ, KERNEL_COPY};

static struct kernel_row *add_stream(struct kernel_rows *to, int device, int op, uint64_t mb)
{
    struct kernel_row *row = kernel_rows_add(to);
    const struct kernel_spec s = {
        .op = stream_ops[op], .weight_bits = 32, .rows = 1, .stream_bytes = mb << 20};
    kernel_row_set_spec(row, &s);
    row->device = stream_devices[device];
    row->runtime = "rt";
    return row;
}

/* Four streams have bandwidths that are known to about a percent. Their slowdowns
 * together are nearer to the model than their weights say. Slowdowns depend on shares of the cap.
 * If all bandwidths were larger by a factor, so would be the cap. So its logarithm moves by s_i
 * with that of bandwidth i, where the s_i add up to
 * 1. It has the variance v sum s_i^2 of theirs, which is from v / 4 to v where none is negative. */
START_TEST(the_cap_is_as_uncertain_as_the_bandwidths_that_it_is_of)
{
    static const double bytes_per_s[2][2] = {{40e9, 30e9}, {60e9, 50e9}};
    const struct kernel_contention truth = {70e9, 4.0};
    const char *models[2][2];
    struct kernel_rows made = {.n = 0};
    struct err e = ERR_INIT;
    static struct kernel_fit whole;
    for (int k = 0; k < 24; k++) {
        int device = k % 2, op = k / 2 % 2;
        struct kernel_row *row = add_stream(&made, device, op, 64 + (uint64_t)k / 4);
        models[device][op] = k < 4 ? row->model : models[device][op];
        row->metric = KERNEL_METRIC_MS;
        row->value =
            1e3 * row->bytes / bytes_per_s[device][op] * exp(k / 4 % 2 == 0 ? 0.02 : -0.02);
    }
    for (int k = 0; k < 8; k++) {
        int device = k % 2, op = k / 2 % 2, other = k / 4;
        struct kernel_row *row = add_stream(&made, device, op, 64);
        const struct kernel_curve curve = {HUGE_VAL, bytes_per_s[device][op], 0.0, 1.0};
        row->metric = KERNEL_METRIC_SLOWDOWN;
        row->partner =
            xkeep(xformat("%s:%s", stream_devices[1 - device], models[1 - device][other]));
        row->value = kernel_model_slowdown(&curve, row->flop, row->bytes,
                                           bytes_per_s[1 - device][other], &truth, 0.0) *
                     exp(0.003 * sin(2.3 * k));
    }
    ck_assert_msg(kernel_fit_run(&whole, &made, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    /* The residuals of 24 rows and four numbers are +-2 %, and six rows have each bandwidth. */
    double v = 24 * 0.02 * 0.02 / (24 - 4) / 6;
    const struct kernel_estimate *read = kernel_fit_find(&whole, KERNEL_PARAM_READ, "npu", 0);
    const struct kernel_estimate *cap = kernel_fit_find(&whole, KERNEL_PARAM_CAP, "", 0);
    ck_assert_uint_eq(whole.n_params, 6); /* all hold together by Bonferroni */
    double sd = log(read->high / read->low) / 2 / gsl_cdf_tdist_Pinv(1 - 0.025 / 6, 20);
    ck_assert_double_eq_tol(sd * sd / v, 1.0, 1e-3);
    sd = log(cap->high / cap->low) / 2 / gsl_cdf_tdist_Pinv(1 - 0.025 / 6, 8 - 2);
    ck_assert_msg(sd * sd > v / 4 && sd * sd < v, "%g of a bandwidth's variance", sd * sd / v);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("forms", .setup = setup),
    TEST(forms_are_judged_by_what_they_say_of_what_was_held_out),
    TEST(a_table_is_straight_in_logarithms_and_ends_where_it_ends),
    TEST(anchors_are_of_the_family),
    TEST(sharing_lengthens_as_the_formula_says),
    LOOP(each_further_repetition_takes_a_degree_of_freedom, 4),
    TEST(the_cap_is_as_uncertain_as_the_bandwidths_that_it_is_of),
};
SUITE_MAIN("kernel forms", suite)
