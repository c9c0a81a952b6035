/* Numbers that are the same bytes on every processor: rounding, and Student's distribution. */
#include <math.h>

#include "sim/base/portable.h"
#include "tests/helpers/suite.h"

START_TEST(what_differs_in_the_last_digits_is_equal)
{
    /* One p-value, as a processor with fused multiply-add has it and as one without. */
    ck_assert(portable_round(0.076672087611926551) == portable_round(0.076672087611926537));
    ck_assert(portable_round(0.076672087611926551) == 0.0766720876119);
    for (double x = 1e-300; x < 1e300;
         x *= 9.7) { /* neighbours are equal, unless a half is between */
        double a = portable_round(x);
        ck_assert(fabs(a / x - 1.0) <= 5e-12);
        ck_assert(a == portable_round(a));
        ck_assert(portable_round(-x) == -a);
    }
}
END_TEST

START_TEST(whole_numbers_zero_and_what_is_not_finite_stay)
{
    ck_assert(portable_round(0.0) == 0.0);
    ck_assert(portable_round(163840.0) == 163840.0);
    ck_assert(portable_round(999999999999.0) == 999999999999.0);
    ck_assert(portable_round(0.1) == 0.1);
    ck_assert(isnan(portable_round((double)NAN)));
    ck_assert(portable_round((double)INFINITY) > 1e308);
    ck_assert(portable_exp(0.0) == 1.0);
    ck_assert(portable_exp(1.0) == 2.71828182846);
}
END_TEST

START_TEST(student_is_that_of_its_closed_forms)
{
    /* One degree of freedom is Cauchy's: P(T > 1) = 1/2 - atan(1)/pi = 1/4. Two: P(T > t) = 1/2 -
     * t / (2 sqrt(2 + t^2)), which is 1/2 - 1/4 at t = sqrt(2/3). Its quantile at p is
     * (2p - 1) sqrt(2 / (4 p (1 - p))). */
    ck_assert(portable_student_above(1.0, 1.0) == 0.25);
    ck_assert(portable_student_above(sqrt(2.0 / 3.0), 2.0) == 0.25);
    double p = 0.975;
    double two = (2.0 * p - 1.0) * sqrt(2.0 / (4.0 * p * (1.0 - p)));
    ck_assert_double_eq_tol(portable_student_quantile(p, 2.0), two, 1e-11 * two);
    ck_assert_double_eq_tol(portable_student_quantile(p, 1e9), 1.959963984540, 1e-8);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("portable"),
    TEST(what_differs_in_the_last_digits_is_equal),
    TEST(whole_numbers_zero_and_what_is_not_finite_stay),
    TEST(student_is_that_of_its_closed_forms),
};
SUITE_MAIN("portable", suite)
