/* Arithmetic over named values is tested here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/expr.h"
#include "tests/helpers/suite.h"

static int lookup(void *ctx, const char *name, double *out, char *message)
{
    (void)ctx;
    if (strcmp(name, "a") == 0) {
        *out = 6.0;
    } else if (strcmp(name, "run_1:reactive.e2e_s.mean") == 0) {
        *out = 2.5;
    } else {
        (void)snprintf(message, EXPR_MESSAGE_BYTES, "no quantity \"%.60s\"", name);
        return -1;
    }
    return 0;
}

static const struct expr_names names = {NULL, lookup};

static double value(const char *text)
{
    char message[EXPR_MESSAGE_BYTES] = "";
    double v = -99.0;
    ck_assert_msg(expr_eval(text, &names, &v, message) == 0, "%s: %s", text, message);
    return v;
}

static void refused(const char *text, const char *why)
{
    char message[EXPR_MESSAGE_BYTES] = "";
    double v;
    ck_assert_msg(expr_eval(text, &names, &v, message) != 0, "%s was taken", text);
    ck_assert_msg(strstr(message, why) != NULL, "%s: %s", text, message);
}

START_TEST(products_bind_tighter_than_sums_and_both_group_from_the_left)
{
    ck_assert_double_eq(value("2 + 3 * 4"), 14.0);
    ck_assert_double_eq(value("(2 + 3) * 4"), 20.0);
    ck_assert_double_eq(value("20 - 5 - 3"), 12.0);
    ck_assert_double_eq(value("24 / 4 / 3"), 2.0);
    ck_assert_double_eq(value("-2 * -3"), 6.0);
    ck_assert_double_eq(value("4 - -1e1"), 14.0);
}
END_TEST

START_TEST(names_with_metrics_and_functions_are_values)
{
    ck_assert_double_eq(value("100 * (1 - run_1:reactive.e2e_s.mean / a)"), 100.0 * (1 - 2.5 / 6));
    ck_assert_double_eq(value("max(a, min(9, 7)) + abs(1 - a)"), 12.0);
}
END_TEST

START_TEST(division_by_zero_is_what_ieee_says)
{
    ck_assert(isinf(value("1 / (a - 6)")));
    ck_assert(isnan(value("(a - 6) / 0")));
}
END_TEST

START_TEST(what_is_no_expression_is_refused_with_its_place)
{
    refused("", "");
    refused("a +", "");
    refused("(a", "");
    refused("a b", "");
    refused("1 ** 2", "");
    refused("max(a)", "");
    refused("nonesuch / 2", "nonesuch");
    /* depth is bounded: a thousand parentheses must not reach the stack's end */
    char deep[2002];
    memset(deep, '(', 1000);
    memset(deep + 1000, ')', 1000);
    deep[2000] = '\0';
    refused(deep, "");
}
END_TEST

/* Each has two mistakes or more, as what lacks a parenthesis often does: the message is of the
 * first one and its place. */
START_TEST(the_first_mistake_is_the_one_that_is_told)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"(nonesuch + 1", "at \"nonesuch + 1\": no quantity \"nonesuch\""},
        {"max(nonesuch)", "at \"nonesuch)\": no quantity \"nonesuch\""},
        {"max(1, other) + (2", "at \"other) + (2\": no quantity \"other\""},
        {"one + two", "at \"one + two\": no quantity \"one\""},
        {"min(1, 2 3) 4", "at \"3) 4\": a closing parenthesis is missing"},
        {"abs(max(a) b", "at \") b\": a second argument is missing"},
        {"root(4) 5 (", "at \" 5 (\": no such function: min, max, abs"},
        {"2 * (* 3", "at \"* 3\": a number, a name or a parenthesis is expected"},
        {"2 3 nonesuch", "at \"3 nonesuch\": an operator is expected"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char message[EXPR_MESSAGE_BYTES];
        double v;
        ck_assert_int_eq(expr_eval(rows[i].text, &names, &v, message), -1);
        ck_assert_str_eq(message, rows[i].message);
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(products_bind_tighter_than_sums_and_both_group_from_the_left),
    TEST(names_with_metrics_and_functions_are_values),
    TEST(division_by_zero_is_what_ieee_says),
    TEST(what_is_no_expression_is_refused_with_its_place),
    TEST(the_first_mistake_is_the_one_that_is_told),
};
SUITE_MAIN("expr", suite)
