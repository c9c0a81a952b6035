/* Reading a log of decisions: what its head and its lines must be. tests/golden/replay.sh runs
 * them. */
#include <stdlib.h>
#include <string.h>

#include "policies/replay.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

static const char *path;

static void setup(void)
{
    path = tempfile_make("");
}

static void teardown(void)
{
    tempfile_remove();
}

static struct replay *read_good(const char *text)
{
    struct err e = ERR_INIT;
    tempfile_put(text);
    struct replay *r = replay_read(path, &e);
    ck_assert_msg(r != NULL, "%s", e.n > 0 ? e.lines[0] : "");
    ck_assert_uint_eq(e.n, 0);
    return r;
}

/* Its policy has the recorded name, also one of a letter, and the recorded flags. */
START_TEST(a_log_has_the_name_and_the_flags_of_its_policy)
{
    struct replay *r = read_good("policy x flags=6\n1 0 note key=a n=1 = 0\n");
    struct replay *other = read_good("policy x flags=6\n1 0 note key=a n=2 = 0\n");
    ck_assert_str_eq(replay_policy(r)->name, "x");
    ck_assert_uint_eq(replay_policy(r)->flags, 6);
    ck_assert_ptr_null(replay_policy(r)->params);
    ck_assert_uint_ne(replay_hash(r), replay_hash(other)); /* every line is part of it */
    replay_free(other);
    other = read_good("policy y flags=6\n1 0 note key=a n=1 = 0\n");
    ck_assert_uint_ne(replay_hash(r), replay_hash(other));
    replay_free(other);
    other = read_good("policy x flags=6\n1 0 note key=a n=1 = 0\n");
    ck_assert_uint_eq(replay_hash(r), replay_hash(other));
    replay_free(other);
    other = read_good("policy x flags=6 drafter=suffix\n");
    ck_assert_str_eq(replay_policy(other)->params[0].name, "drafter");
    ck_assert_str_eq(replay_policy(other)->params[0].choices[0], "suffix");
    replay_free(other);
    replay_free(r);
    replay_free(NULL);
}
END_TEST

START_TEST(what_is_no_log_is_refused_with_its_line)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", ": empty"},
        {"policy x\n", ":1: must start with \"policy NAME flags=N\""},
        {"fcfs flags=1\n", ":1: must start with \"policy NAME flags=N\""},
        {"policy x flags=1\n1 0 note = 0\n1 0 note 0\n", ":3: not a line of a decision log"},
        {"policy x flags=1\n1 note = 0\n", ":2: not a line of a decision log"},
        {"policy x flags=1\nnote = 0\n", ":2: not a line of a decision log"},
        {"policy x flags=1\n=\n", ":2: not a line of a decision log"},
        {"policy x flags=1\n\n", ":2: not a line of a decision log"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err e = ERR_INIT;
        char want[300];
        tempfile_put(rows[i].text);
        ck_assert_ptr_null(replay_read(path, &e));
        ck_assert_uint_eq(e.n, 1);
        (void)snprintf(want, sizeof want, "%s%s", path, rows[i].says);
        ck_assert_str_eq(e.lines[0], want);
        err_fini(&e);
    }
    struct err e = ERR_INIT;
    ck_assert_ptr_null(replay_read("/nonexistent/log", &e));
    ck_assert_uint_eq(e.n, 1);
    err_fini(&e);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("replay", .setup = setup, .teardown = teardown),
    TEST(a_log_has_the_name_and_the_flags_of_its_policy),
    TEST(what_is_no_log_is_refused_with_its_line),
};
SUITE_MAIN("replay", suite)
