/* The arithmetic of drive's fit, function by function: samples, regression, tables and lines, by
 * hand or computed a second way. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/drive/fit_impl.h"
#include "sim/base/arena.h"
#include "tests/helpers/suite.h"

static struct samples s;

static void add(double t_s, double a, double b, double c)
{
    struct sample *to = samples_add(&s);
    *to = (struct sample){.t_s = t_s, .x = {a, b, c}};
}

static void setup(void)
{
    s = (struct samples){0};
}

static void teardown(void)
{
    free(s.v);
}

/* ---- samples ---- */

/* Kinds differ in any term, the last as well; equal ones are neighbours. */
START_TEST(kinds_are_told_apart_by_every_term)
{
    ck_assert_uint_eq(samples_kinds(&s), 0);
    add(1, 1, 2, 3);
    ck_assert_uint_eq(samples_kinds(&s), 1);
    add(5, 1, 2, 3);
    ck_assert_uint_eq(samples_kinds(&s), 1);
    add(1, 1, 2, 4);
    add(1, 1, 3, 4);
    add(1, 2, 3, 4);
    add(1, 2, 3, 4);
    s.v[5].x[SAMPLE_TERMS - 1] = 1;
    ck_assert_uint_eq(samples_kinds(&s), 5);
}
END_TEST

/* Samples are sorted by terms, then times. The median of three is the second, and that of four the
 * third. A sample of eight times that is kept, and more is lost. A kind of two loses none. */
START_TEST(a_kernel_that_lost_its_core_is_left_out)
{
    add(9, 2, 0, 0);
    add(1, 2, 0, 0); /* a kind of two */
    add(8.0, 1, 5, 0);
    add(1.0, 1, 5, 0);
    add(1.0, 1, 5, 0); /* median 1: 8 stays */
    add(8.01, 1, 6, 0);
    add(1.0, 1, 6, 0);
    add(0.5, 1, 6, 0); /* 8.01 goes */
    add(17, 0, 1, 0);
    add(15.9, 0, 1, 0);
    add(1, 0, 1, 0);
    add(2, 0, 1, 0); /* of four: 15.9 is the third */
    samples_screen(&s);
    static const double want[][3] = {{1, 0, 1}, {2, 0, 1}, {15.9, 0, 1}, {17, 0, 1},
                                     {1, 1, 5}, {1, 1, 5}, {8, 1, 5},    {0.5, 1, 6},
                                     {1, 1, 6}, {1, 2, 0}, {9, 2, 0}};
    ck_assert_uint_eq(s.n, 11);
    ck_assert_uint_eq(s.lost, 1);
    for (size_t i = 0; i < s.n; i++) {
        ck_assert_msg(s.v[i].t_s == want[i][0] && s.v[i].x[0] == want[i][1] &&
                          s.v[i].x[1] == want[i][2],
                      "%zu: %g %g %g", i, s.v[i].t_s, s.v[i].x[0], s.v[i].x[1]);
    }
    samples_screen(&s); /* what is screened stays */
    ck_assert(s.n == 11 && s.lost == 1);
}
END_TEST

/* Three kinds have 2, 3 and 1 kernels. Errors of single ones are by rank. F of lack of fit has 3 -
 * p and 6 - 3 degrees of freedom. */
START_TEST(a_fit_is_judged_by_repeats)
{
    static const double t[] = {1.1, 0.9, 2.4, 2.0, 2.2, 3.3};
    static const double fitted[] = {1, 1, 2, 2, 2, 4};
    static const double kind[] = {1, 1, 2, 2, 2, 3};
    for (int i = 0; i < 6; i++) {
        add(t[i], kind[i], 0, 0);
        s.v[i].fitted_s = fitted[i];
    }
    s.lost = 4;
    struct fit_part part = {.name = "x"};
    samples_judge(&s, 1, &part);
    ck_assert(part.n == 6 && part.lost == 4);
    /* |fitted / t - 1| is 1/11, 1/9, 1/6, 0, 1/11, 7/33, and sorted 0 .0909 .0909 .1111 .1667
     * .2121. */
    is_near(part.median_frac, 1.0 / 9.0);
    is_near(part.p90_frac, 1.0 / 6.0); /* rank floor(0.9 x 5) = 4 */
    double mean[3] = {0.0, 0.1, -0.175};
    double lack = 2 * mean[0] * mean[0] + 3 * mean[1] * mean[1] + mean[2] * mean[2];
    double pure = 0.1 * 0.1 * 2 + 0.1 * 0.1 + 0.1 * 0.1;
    is_near(part.lack_of_fit_p, gsl_cdf_fdist_Q(lack / 2 / (pure / 3), 2, 3));
    samples_judge(&s, 2, &part);
    is_near(part.lack_of_fit_p, gsl_cdf_fdist_Q(lack / 1 / (pure / 3), 1, 3));
    samples_judge(&s, 3, &part); /* no degree of freedom is left */
    ck_assert(isnan(part.lack_of_fit_p));
    s.n = 1; /* no repeats */
    samples_judge(&s, 0, &part);
    ck_assert(isnan(part.lack_of_fit_p));
    is_near(part.median_frac, 1.0 / 11.0);
    is_near(part.p90_frac, 1.0 / 11.0);
}
END_TEST

/* ---- regression ---- */

/* Weighted least squares of y = a + b x by its normal equations: weights 1 / t^2, so that errors
 * are relative; then all is scaled to the sum of times. */
START_TEST(a_line_is_that_of_the_normal_equations)
{
    static const double x[] = {1, 2, 4, 8, 16, 3};
    double t[6];
    double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
    for (int i = 0; i < 6; i++) {
        t[i] = (2.0 + 0.5 * x[i]) * (i % 2 == 0 ? 1.05 : 0.97);
        add(t[i], 1, 0, x[i]); /* the term between never varies from 0 */
        double k = 1 / (t[i] * t[i]);
        w += k;
        wx += k * x[i];
        wxx += k * x[i] * x[i];
        wy += k * t[i];
        wxy += k * x[i] * t[i];
    }
    double det = w * wxx - wx * wx;
    double a = (wy * wxx - wxy * wx) / det;
    double b = (wxy * w - wy * wx) / det;
    double chisq = 0, sum = 0, fitted = 0;
    for (int i = 0; i < 6; i++) {
        double r = (a + b * x[i]) / t[i] - 1;
        chisq += r * r;
        sum += t[i];
        fitted += a + b * x[i];
    }
    double var = chisq / (6 - 2);
    double sd[2] = {sqrt(var * wxx / det), sqrt(var * w / det)};
    double scale = sum / fitted;
    struct fit_number c[3];
    samples_regress(&s, 3, c);
    is_near(c[0].value, scale * a);
    is_near(c[0].low, scale * fmax(0, a - 1.96 * sd[0]));
    is_near(c[0].high, scale * (a + 1.96 * sd[0]));
    ck_assert(c[1].value == 0 && c[1].low == 0 && c[1].high == 0);
    is_near(c[2].value, scale * b);
    is_near(c[2].low, scale * (b - 1.96 * sd[1]));
    is_near(c[2].high, scale * (b + 1.96 * sd[1]));
    for (int i = 0; i < 6; i++) {
        is_near(s.v[i].fitted_s, scale * (a + b * x[i]));
    }
}
END_TEST

/* A coefficient that would be negative is none, and the others are fitted again without it: the
 * first as well as the last. */
START_TEST(no_coefficient_is_negative)
{
    for (int turn = 0; turn < 2; turn++) {
        setup();
        double sum = 0;
        double w = 0;
        double wx = 0;
        for (int i = 1; i <= 6; i++) {
            double t = 10.0 * i - 4; /* y = -4 + 10 x */
            add(t, turn == 0 ? 1 : i, turn == 0 ? i : 1, 0);
            sum += t;
            w += i * (double)i / (t * t);
            wx += i / t;
        }
        struct fit_number c[2];
        samples_regress(&s, 2, c);
        int none = turn == 0 ? 0 : 1;
        ck_assert(c[none].value == 0 && c[none].low == 0 && c[none].high == 0);
        double scale = sum / (wx / w * 21);
        is_near(c[1 - none].value, scale * wx / w);
        free(s.v);
    }
    /* The most negative term is dropped first, and then each that is negative without it. One term
     * is left, scaled to the sum of times. t = 10 - 4 y - 3 z. Without y the others' normal
     * equations give z the coefficient (1/7 + 1/3) / (1/49 + 1/9) - (1/10 + 1/6) / (1/100 + 1/36),
     * -3.4. */
    setup();
    add(10, 1, 0, 0);
    add(6, 1, 1, 0);
    add(7, 1, 0, 1);
    add(3, 1, 1, 1);
    struct fit_number left[3];
    samples_regress(&s, 3, left);
    is_near(left[0].value, 26.0 / 4);
    ck_assert(left[1].value == 0 && left[2].value == 0 && left[2].high == 0);
    free(s.v);
    setup(); /* fewer kernels than terms: nothing is known, and nothing is predicted */
    add(1, 1, 2, 0);
    add(2, 1, 3, 0);
    struct fit_number c[3] = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
    samples_regress(&s, 2, c);
    ck_assert(c[0].value == 0 && c[1].value == 0 && c[2].value == 1);
    ck_assert(s.v[0].fitted_s == 0);
}
END_TEST

START_TEST(a_scale_keeps_the_sum)
{
    add(6, 1, 2, 9);
    add(9, 1, 3, 9);
    struct fit_number c[3] = {{1, 0.5, 2}, {1, 0.25, 4}, {7, 7, 7}};
    samples_scale(&s, 2, c); /* 3 and 4: times 15 / 7 */
    is_near(s.v[0].fitted_s, 3 * 15.0 / 7);
    is_near(s.v[1].fitted_s, 4 * 15.0 / 7);
    is_near(c[0].value, 15.0 / 7);
    is_near(c[0].low, 7.5 / 7);
    is_near(c[0].high, 30.0 / 7);
    is_near(c[1].low, 0.25 * 15 / 7);
    is_near(c[1].high, 4 * 15.0 / 7);
    ck_assert(c[2].value == 7);
}
END_TEST

/* ---- tables ---- */

/* Lots end at powers of two: 1; 2; 3 and 4; 5 and 8; 9. Means with their intervals. */
START_TEST(rows_are_in_lots_of_powers_of_two)
{
    static const double rows[] = {1, 1, 2, 3, 4, 5, 8, 8, 9};
    static const double t[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    for (int i = 0; i < 9; i++) {
        add(t[i], rows[i], 0, 0);
    }
    struct fit_table table;
    samples_table(&s, &table);
    static const struct {
        double rows, mean, n, squares;
    } want[] = {{1, 1.5, 2, 5}, {2, 3, 1, 9}, {3.5, 4.5, 2, 41}, {7, 7, 3, 149}, {9, 9, 1, 81}};
    ck_assert_uint_eq(table.n, 5);
    for (int k = 0; k < 5; k++) {
        double sd =
            want[k].n > 1
                ? sqrt((want[k].squares / want[k].n - want[k].mean * want[k].mean) / want[k].n)
                : 0;
        is_near(table.rows[k], want[k].rows);
        is_near(table.s[k].value, want[k].mean);
        is_near(table.s[k].low, want[k].mean - 1.96 * sd);
        is_near(table.s[k].high, want[k].mean + 1.96 * sd);
    }
    /* between two rows by a line, below and above by the ends */
    samples_table_fitted(&s, &table);
    is_near(s.v[0].fitted_s, 1.5);
    is_near(s.v[3].fitted_s, 3 + 1.5 * (3 - 2) / 1.5);
    is_near(s.v[6].fitted_s, 7 + 2 * (8.0 - 7) / 2);
    is_near(s.v[8].fitted_s, 9);
}
END_TEST

/* Times may not fall with rows: lots that do are pooled with those before, as far as it takes. */
START_TEST(lots_that_fall_are_pooled)
{
    static const double rows[] = {1, 2, 4, 4, 8, 16};
    static const double t[] = {5, 4, 3, 5, 4.5, 9};
    for (int i = 0; i < 6; i++) {
        add(t[i], rows[i], 0, 0);
    }
    struct fit_table table;
    samples_table(&s, &table);
    /* 5 and 4 make 4.5 of two. With 4 of two, (5 + 4 + 3 + 5) / 4 = 4.25 of four, at 11 / 4 rows.
     * The others are 4.5 and 9. */
    ck_assert_uint_eq(table.n, 3);
    is_near(table.rows[0], 11.0 / 4);
    is_near(table.s[0].value, 4.25);
    double sd = sqrt(((25 + 16 + 9 + 25) / 4.0 - 4.25 * 4.25) / 4);
    is_near(table.s[0].high, 4.25 + 1.96 * sd);
    is_near(table.rows[1], 8);
    is_near(table.s[1].value, 4.5);
    is_near(table.s[2].value, 9);
}
END_TEST

/* ---- lines ---- */

static struct fit_line line_of(const double *x, const double *y, int n)
{
    struct fit_line l = {0};
    for (int i = 0; i < n; i++) {
        l.n += 1;
        l.x += x[i];
        l.y += y[i];
        l.xx += x[i] * x[i];
        l.xy += x[i] * y[i];
    }
    fit_line_solve(&l);
    return l;
}

START_TEST(a_line_neither_falls_nor_begins_below_zero)
{
    static const double x[] = {1, 2, 3};
    static const double up[] = {5, 7, 9};
    static const double down[] = {9, 7, 5};
    static const double steep[] = {1, 4, 7};
    static const double same[] = {2, 2, 2};
    struct fit_line l = line_of(x, up, 3);
    is_near(l.slope_s, 2);
    is_near(l.fixed_s, 3);
    l = line_of(x, down, 3);
    ck_assert(l.slope_s == 0);
    is_near(l.fixed_s, 7);
    l = line_of(x, steep, 3);
    ck_assert(l.fixed_s == 0);
    is_near(l.slope_s, 2);
    l = line_of(same, up, 3);
    ck_assert(l.slope_s == 0);
    is_near(l.fixed_s, 7);
    l = line_of(x, up, 0);
    ck_assert(l.slope_s == 0 && l.fixed_s == 0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("pieces of a fit", .setup = setup, .teardown = teardown),
    TEST(kinds_are_told_apart_by_every_term),
    TEST(a_kernel_that_lost_its_core_is_left_out),
    TEST(a_fit_is_judged_by_repeats),
    TEST(a_line_is_that_of_the_normal_equations),
    TEST(a_scale_keeps_the_sum),
    TEST(rows_are_in_lots_of_powers_of_two),
    TEST(lots_that_fall_are_pooled),
    TEST(a_line_neither_falls_nor_begins_below_zero),
    TEST(no_coefficient_is_negative),
};
SUITE_MAIN("pieces of a fit", suite)
