/* Policy parameters are read from strict text, and written as the same text. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "policies/params.h"
#include "tests/helpers/suite.h"

static const char *const modes[] = {"off", "on", "auto", NULL};

static const struct policy_param table[] = {
    POLICY_NUMBER("rate", 0.5, 0.0, 1.0, ""),
    POLICY_INT("limit", 8, 1, 1e9, ""),
    POLICY_NUMBER("age_s", 60, 0, (double)INFINITY, ""),
    POLICY_BOOL("split", true, ""),
    POLICY_CHOICE("mode", 2, modes, ""),
    {.name = NULL},
};

static const struct policy_ops ops = {.name = "toy", .params = table};
static const struct policy_ops bare = {.name = "bare"};

static struct policy_params params;
static struct err err;

static void setup(void)
{
    err = (struct err)ERR_INIT;
}

static void teardown(void)
{
    err_fini(&err);
}

/* The one error that a text gives must contain each of these. */
static void expect_error(const char *text, const char *a, const char *b)
{
    err_fini(&err);
    err = (struct err)ERR_INIT;
    ck_assert_int_eq(policy_params_parse(&ops, text, &params, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    ck_assert_msg(strstr(err.lines[0], a) != NULL && strstr(err.lines[0], b) != NULL, "%s",
                  err.lines[0]);
}

START_TEST(no_text_gives_the_defaults)
{
    ck_assert_int_eq(policy_params_parse(&ops, NULL, &params, &err), 0);
    ck_assert_uint_eq(params.n, 5);
    ck_assert_double_eq(params.v[0], 0.5);
    ck_assert_double_eq(params.v[4], 2.0);
    ck_assert_int_eq(policy_params_parse(&bare, "", &params, &err), 0);
    ck_assert_uint_eq(params.n, 0);
}
END_TEST

START_TEST(values_of_every_type_are_read_and_written_back)
{
    ck_assert_int_eq(policy_params_parse(&ops,
                                         "mode=off,limit=1000,rate=0.125,split=false,age_s=inf",
                                         &params, &err),
                     0);
    ck_assert_double_eq(params.v[1], 1000.0);
    ck_assert_double_eq(params.v[3], 0.0);
    const char *text = policy_params_format(&ops, &params);
    ck_assert_str_eq(text, "rate=0.125,limit=1000,age_s=inf,split=false,mode=off");
    struct policy_params again;
    ck_assert_int_eq(policy_params_parse(&ops, text, &again, &err), 0);
    ck_assert_mem_eq(&again, &params, sizeof again);
    ck_assert_ptr_eq(policy_params_format(&ops, &again), text);
}
END_TEST

/* Two values of the last of 60 parameters with names of 300 letters are two texts: fingerprints
 * tell runs apart by them. */
START_TEST(a_text_of_parameters_holds_the_last_of_many_with_long_names)
{
    enum { N = 60, LONG = 300 };
    static char names[N][LONG + 1];
    static struct policy_param many[N + 1];
    struct policy_ops long_ops = {.name = "long", .params = many};
    for (int i = 0; i < N; i++) {
        (void)snprintf(names[i], sizeof names[i], "%0300d", i);
        many[i] = (struct policy_param)POLICY_NUMBER(names[i], 1, 0, 9, "");
    }
    ck_assert_int_eq(policy_params_parse(&long_ops, "", &params, &err), 0);
    params.v[N - 1] = 2;
    const char *text = policy_params_format(&long_ops, &params);
    ck_assert_uint_eq(strlen(text), N * (LONG + strlen("=1,")) - 1);
    ck_assert_str_eq(text + strlen(text) - 3, "9=2");
}
END_TEST

START_TEST(errors_name_the_key_and_what_is_accepted)
{
    expect_error("rat=1", "rat", "rate, limit, age_s, split, mode");
    expect_error("rate=1.5", "rate=1.5", "from 0 to 1");
    expect_error("rate=abc", "rate=abc", "number");
    expect_error("rate=nan", "rate=nan", "number");
    expect_error("rate=", "rate=", "number");
    expect_error("rate=inf", "rate=inf", "number"); /* bounded above */
    expect_error("limit=1.5", "limit=1.5", "whole number");
    expect_error("limit=0", "limit=0", "from 1 to 1000000000");
    expect_error("limit=5x", "limit=5x", "whole number");
    expect_error("split=yes", "split=yes", "true or false");
    expect_error("mode=max", "mode=max", "off, on, auto");
    expect_error("rate", "'rate'", "key=value");
    expect_error("=3", "'=3'", "key=value");
    expect_error("rate=1,,limit=3", "''", "key=value");
    expect_error("rate=1,rate=0.5", "rate", "twice");
}
END_TEST

START_TEST(all_errors_of_a_text_come_at_once)
{
    ck_assert_int_eq(policy_params_parse(&ops, "x=1,rate=7,mode=on,limit=z", &params, &err),
                     -EINVAL);
    ck_assert_uint_eq(err.n, 3);
    ck_assert_double_eq(params.v[4], 1.0);
    ck_assert_int_eq(policy_params_parse(&bare, "x=1", &params, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[3], "no parameters"));
}
END_TEST

static const char *const kinds[] = {"plain", "slow", "off", NULL};
static const char *const kind_presets[] = {"", "rate=0.25,mode=on", "mode=off"};
static const struct policy_param kind_table[] = {
    POLICY_CHOICE("kind", 0, kinds, ""),
    POLICY_NUMBER("rate", 0.5, 0.0, 1.0, ""),
    POLICY_CHOICE("mode", 2, modes, ""),
    {.name = NULL},
};
static const struct policy_ops system_ops = {
    .name = "systems", .params = kind_table, .presets = kind_presets};

START_TEST(a_preset_replaces_defaults_and_yields_to_what_is_given)
{
    static const struct {
        const char *text;
        double rate, mode;
    } cases[] = {{"", 0.5, 2},
                 {"kind=plain", 0.5, 2},
                 {"kind=slow", 0.25, 1},
                 {"rate=0.75,kind=slow", 0.75, 1}, /* the order does not matter */
                 {"kind=slow,rate=0.75", 0.75, 1},
                 {"kind=off,mode=auto", 0.5, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(policy_params_parse(&system_ops, cases[i].text, &params, &err), 0);
        ck_assert_double_eq(params.v[1], cases[i].rate);
        ck_assert_double_eq(params.v[2], cases[i].mode);
        /* The full text, read again, says the same. */
        struct policy_params again;
        const char *text = policy_params_format(&system_ops, &params);
        ck_assert_int_eq(policy_params_parse(&system_ops, text, &again, &err), 0);
        ck_assert_double_eq(again.v[1], cases[i].rate);
        ck_assert_double_eq(again.v[2], cases[i].mode);
    }
    ck_assert_int_eq(policy_params_parse(&system_ops, "kind=slow,rate=7", &params, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("params", .setup = setup, .teardown = teardown),
    TEST(no_text_gives_the_defaults),
    TEST(values_of_every_type_are_read_and_written_back),
    TEST(a_text_of_parameters_holds_the_last_of_many_with_long_names),
    TEST(a_preset_replaces_defaults_and_yields_to_what_is_given),
    TEST(errors_name_the_key_and_what_is_accepted),
    TEST(all_errors_of_a_text_come_at_once),
};
SUITE_MAIN("params", suite)
