/* The command's own checks: made-up ones that hold and fail, in each form, and that none is
 * missing. */
#include <string.h>

#include "experiments/selftest/selftest.h"
#include "sim/base/base.h"
#include "tests/helpers/said.h"
#include "tests/helpers/suite.h"

static bool holds(char *why, size_t size)
{
    (void)snprintf(why, size, "not said");
    return true;
}

static bool fails(char *why, size_t size)
{
    (void)snprintf(why, size, "1 is 2");
    return false;
}

START_TEST(checks_that_fail_say_why)
{
    static const struct selftest tests[] = {
        {"first", fails}, {"second", holds}, {"third", fails}, {"fourth", holds}};
    static const char json[] =
        "{\"checks\":[{\"verdict\":\"FAILED\",\"check\":\"first\",\"failed\":true,"
        "\"why\":\"1 is 2\"},{\"verdict\":\"ok\",\"check\":\"second\",\"failed\":false},"
        "{\"verdict\":\"FAILED\",\"check\":\"third\",\"failed\":true,\"why\":\"1 is 2\"},"
        "{\"verdict\":\"ok\",\"check\":\"fourth\",\"failed\":false}]}";
    struct document *all = document_new();
    ck_assert_uint_eq(selftest_run(tests, 4, false, all), 2);
    OWNED char *text = said_text(all);
    ck_assert_ptr_nonnull(strstr(text, "FAILED first 1 is 2\nok second"));
    ck_assert_ptr_nonnull(strstr(text, "FAILED third 1 is 2\nok fourth"));
    OWNED char *data = said_json(all);
    ck_assert_str_eq(data, json);
    struct document *quiet = document_new();
    ck_assert_uint_eq(selftest_run(tests, 4, true, quiet), 2);
    OWNED char *few = said_text(quiet);
    ck_assert_ptr_nonnull(strstr(few, "FAILED first 1 is 2\nFAILED third 1 is 2\n"));
    ck_assert_ptr_null(strstr(few, "ok"));
    OWNED char *same = said_json(quiet);
    ck_assert_str_eq(same, json);
}
END_TEST

START_TEST(no_check_is_missing)
{
    static const char *const names[] = {
        "max-min sharing gives small demands all and splits the rest",
        "quantiles use the nearest rank",
        "paired intervals are Student's",
        "a lone request takes the sum of its kernels and host costs",
        "a drained run conserves requests and energy",
        "the same seed gives the same bytes",
        "collapsing undisturbed kernels changes no result"};
    ck_assert_uint_eq(selftest_n_closed_forms, 7);
    for (int i = 0; i < 7; i++) {
        char why[512] = "";
        ck_assert_str_eq(selftest_closed_forms[i].name, names[i]);
        ck_assert_msg(selftest_closed_forms[i].holds(why, sizeof why), "%s", why);
    }
    ck_assert_uint_eq(controls_count(), 7);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("selftest", .timeout_s = 60),
    TEST(checks_that_fail_say_why),
    TEST(no_check_is_missing),
};
SUITE_MAIN("selftest", suite)
