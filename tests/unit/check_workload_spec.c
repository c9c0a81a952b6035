/* Workload specs are lists or JSON files with equal meaning. An error names the wrong key. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/datadir.h"
#include "sim/base/rng.h"
#include "tests/helpers/madetrace.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/traces.h"

static struct err err;
static const char *path;
static struct trace t;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    path = tempfile_make(".json");
    t = (struct trace){0};
}

static void teardown(void)
{
    err_fini(&err);
    trace_fini(&t);
    tempfile_remove();
}

START_TEST(a_json_file_says_the_same_as_a_list)
{
    struct trace other;
    tempfile_put(
        "{\"generator\": \"mixed\", \"reactive_per_min\": 4.5, \"arrival\": \"gamma\", \"cv\": 3,"
        " \"proactive\": \"samsum\"}");
    madetrace(path, 6, &t);
    madetrace("mixed:proactive=samsum,cv=3,reactive_per_min=4.5,arrival=gamma", 6, &other);
    ck_assert_uint_eq(t.hash, other.hash);
    trace_fini(&other);
}
END_TEST

/* ---- refusals ---- */

struct bad {
    const char *spec;
    size_t n;
    const char *has[2]; /* in the last error */
};

static const struct bad BAD[] = {
    {"nothing",
     1,
     {"\"nothing\"", "a task (summary, rag, ui, tweet, texts), a shipped workload (coding-agent"}},
    {"mixedx", 1, {"\"mixedx\""}},
    {"", 1, {"must be mixed"}},
    {"mixed:rate=3", 1, {"unknown key \"rate\"", "reactive_per_min proactive_per_min"}},
    {"mixed:cv", 1, {"\"cv\" must be key=value"}},
    {"mixed:cv=", 1, {"cv: \"\"", "number from 0.05 to 50"}},
    {"mixed:cv=2x", 1, {"cv: \"2x\""}},
    {"mixed:cv=nan", 1, {"cv: \"nan\""}},
    {"mixed:cv=0.01", 1, {"cv: \"0.01\"", "from 0.05 to 50"}},
    {"mixed:reactive_per_min=-1", 1, {"reactive_per_min: \"-1\""}},
    {"mixed:duration_s=0", 1, {"duration_s: \"0\""}},
    {"mixed:sessions=2", 1, {"sessions: \"2\""}},
    {"mixed:users=0,arrival=closed", 1, {"users: \"0\""}},
    {"mixed:users=1.5,arrival=closed", 1, {"users: \"1.5\"", "whole number"}},
    {"mixed:cv=2,cv=3", 1, {"cv", "twice"}},
    {"mixed:arrival=uniform", 1, {"arrival", "poisson, gamma, replay or closed"}},
    {"mixed:arrival=", 1, {"arrival: needs a name"}},
    {"mixed:reactive_per_min=0,proactive_per_min=0", 1, {"both rates are zero"}},
    {"mixed:reactive_per_min=1e6,duration_s=1e8", 1, {"requests expected, at most 5000000"}},
    {"mixed:burst=4,active_share=0.3", 1, {"burst * active_share must be at most 1"}},
    {"mixed:reactive=nosuch", 2, {"dataset \"nosuch\"", "reactive_mixed"}},
    {"mixed:arrival=replay,events=nosuch", 1, {"nosuch"}},
    {"mixed:cv=0,colour=red,users=x", 3, {"users: \"x\""}}, /* all at once */
    {"w1:n=0", 1, {"w1:n=N with N from 1 to 10000000"}},
    {"w1:n=10000001", 1, {"w1:n=N"}},
    {"w1:n=-1", 1, {"w1:n=N"}},
    {"w1:n=5x", 1, {"w1:n=N"}},
    {"w1:", 1, {"w1:n=N"}},
};

static void expect_refused(const char *spec, size_t n, const char *a, const char *b)
{
    ck_assert_int_eq(trace_generate(spec, 1, 1.0, &t, &err), -EINVAL);
    ck_assert_msg(err.n == n, "%s: %zu errors, not %zu; the first: %s", spec, err.n, n,
                  err.n > 0 ? err.lines[0] : "");
    ck_assert_ptr_null(t.rows);
    const char *line = err.lines[n - 1];
    ck_assert_msg(strstr(line, a) != NULL && (b == NULL || strstr(line, b) != NULL), "%s", line);
    err_fini(&err);
}

START_TEST(bad_specs_are_refused_with_their_key)
{
    const struct bad *b = &BAD[_i];
    expect_refused(b->spec, b->n, b->has[0], b->has[1]);
}
END_TEST

START_TEST(bad_spec_files_are_refused_with_file_and_key)
{
    expect_refused("/nonexistent.json", 1, "/nonexistent.json", NULL);
    tempfile_put("{\"cv\": 2,\n \"users\": }");
    expect_refused(path, 1, ":2:", path);
    tempfile_put("[1]");
    expect_refused(path, 1, "must be an object", path);
    tempfile_put("{\"generator\": \"w1\"}");
    expect_refused(path, 1, "generator: must be mixed", path);
    tempfile_put("{\"cv\": true}");
    expect_refused(path, 1, "cv: must be a number or text", path);
    tempfile_put("{\"speed\": 1, \"cv\": 99}");
    expect_refused(path, 2, "cv: \"99\"", path);
}
END_TEST

START_TEST(tasks_are_so_many_requests_of_so_many_users)
{
    /* 10 requests of 4 users: two users send 3, two send 2; first turns at 0, later ones 1.5 s
     * after the answer. */
    madetrace("summary:n=10,concurrent=4,gap_s=1.5", 2, &t);
    ck_assert_uint_eq(t.n, 10);
    ck_assert_uint_eq(t.n_first, 4);
    uint32_t later = 0;
    for (size_t i = 0; i < t.n; i++) {
        ck_assert_int_eq(t.rows[i].arrival_ns, t.rows[i].turn == 0 ? 0 : 1500000000);
        ck_assert_uint_eq(t.rows[i].prefix_tokens, 0);
        ck_assert_int_eq(t.rows[i].cls, 0);
        later += t.rows[i].turn == 2;
    }
    ck_assert_uint_eq(later, 2);
}
END_TEST

START_TEST(every_task_has_its_own_lengths_and_bad_keys_are_told)
{
    static const char *const tasks[] = {"summary", "rag", "ui", "tweet"};
    uint64_t hash[4];
    for (int i = 0; i < 4; i++) {
        madetrace(tasks[i], 2, &t);
        ck_assert_uint_eq(t.n, 40);
        hash[i] = t.hash;
        for (int k = 0; k < i; k++) {
            ck_assert_uint_ne(hash[k], hash[i]);
        }
        trace_fini(&t);
    }
    static const char *const bad[] = {"ui:n=0",     "ui:n=1.5",  "ui:n=2,n=3",
                                      "ui:wings=2", "ui:gap_s=", "ui:n=100000,concurrent=1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(trace_generate(bad[i], 1, 1.0, &t, &err), -EINVAL);
        ck_assert_uint_eq(err.n, 1);
        ck_assert_ptr_nonnull(strstr(err.lines[0], bad[i]));
        err_fini(&err);
        err = (struct err)ERR_INIT;
    }
}
END_TEST

static const char *const UNREAD_BASES[] = {
    "reactive_per_min=20",
    "reactive_per_min=20,arrival=gamma",
    "reactive_per_min=20,arrival=replay",
    "arrival=closed",
    "reactive_per_min=20,burst=1.9",
    "reactive_per_min=20,sessions=1,reactive=mtrag,proactive=bfcl_multiturn",
    "arrival=closed,burst=1.9,sessions=1,reactive=mtrag,proactive=bfcl_multiturn",
};

/* A key is said to be without effect exactly where another value of it makes the same requests. */
START_TEST(keys_that_nothing_reads_are_named)
{
    static const char *const keys[][3] = {
        {"cv", "0.7", "3"},
        {"think_s", "7", "11"},
        {"tool_s", "0.3", "5"},
        {"users", "2", "3"},
        {"active_share", "0.3", "0.5"},
        {"activity_period_s", "20", "90"},
        {"events", "azure_conv_2023", "azure_code_2023"},
        {"input_cap", "100", "200"},
        {"reactive_output_scale", "0.5", "2"},
    };
    const char *base = UNREAD_BASES[_i];
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        uint64_t hash[2];
        OWNED char *said = NULL;
        for (int i = 0; i < 2; i++) {
            OWNED char *spec =
                xformat("mixed:duration_s=200,%s,%s=%s", base, keys[k][0], keys[k][1 + i]);
            madetrace(spec, 3, &t);
            hash[i] = t.hash;
            trace_fini(&t);
            said = i == 1 ? trace_workload_unread(spec) : NULL;
        }
        OWNED char *named = xformat("%s (needs ", keys[k][0]);
        ck_assert_msg((said == NULL) == (hash[0] != hash[1]), "%s: %s", base, keys[k][0]);
        ck_assert(said == NULL || strstr(said, named) != NULL);
    }
    tempfile_put("{\"generator\": \"mixed\", \"users\": 3, \"cv\": 3}");
    OWNED char *both = trace_workload_unread(path);
    ck_assert_ptr_nonnull(strstr(both, "cv (needs arrival=gamma), users (needs arrival=closed)"));
    ck_assert_ptr_null(trace_workload_unread("w1:n=3"));
    ck_assert_ptr_null(trace_workload_unread("coding-agent"));
}
END_TEST

/* Up to 4 events come at 0 to 2 s, in any order. They count in the order of their instants, and of
 * the list where these are equal. A battery is drawn from only when it has had a charge. */
START_TEST(a_battery_has_a_charge_before_it_is_drawn_from)
{
    struct rng r;
    uint32_t refused = 0;
    rng_init(&r, rng_key(1, RNG_TEST, 119, 0));
    for (int k = 0; k < 300; k++) {
        char text[512] = "[";
        uint32_t at_s[4], kind[4], n = 1 + rng_below(&r, 4);
        bool charged = false, known = true;
        for (uint32_t i = 0; i < n; i++) {
            static const char *const sets[] = {"\"battery_j\": 5", "\"source\": \"battery\"",
                                               "\"source\": \"mains\"",
                                               "\"source\": \"battery\", \"battery_j\": 5"};
            size_t len = strlen(text);
            at_s[i] = rng_below(&r, 3);
            kind[i] = rng_below(&r, 4);
            (void)snprintf(text + len, sizeof text - len, "%s{\"at_s\": %u, %s}%s",
                           i > 0 ? ", " : "", at_s[i], sets[kind[i]], i + 1 == n ? "]" : "");
        }
        for (uint32_t now = 0; now < 3; now++) {
            for (uint32_t i = 0; i < n; i++) {
                charged = charged || (at_s[i] == now && kind[i] % 3 == 0);
                known = known && (at_s[i] != now || kind[i] != 1 || charged);
            }
        }
        SCOPED(err_fini) struct err e = ERR_INIT;
        int rc = machine_events_of_text(text, "a", &t, &e);
        ck_assert_msg((rc == 0) == known, "%s", text);
        refused += rc != 0;
        trace_fini(&t);
        t = (struct trace){0};
    }
    ck_assert(refused > 50 && refused < 250);
}
END_TEST

/* A job every 20 s: at 0, 20 and 40 s within 50 s, and at 0 within 5 s. A rate of 2 halves its
 * 20 s. */
START_TEST(a_workload_of_agents_runs_for_a_stated_duration)
{
    static const struct {
        const char *keys;
        size_t jobs;
    } cases[] = {{"", 3},
                 {":duration_s=5", 1},
                 {":duration_s=100.5", 6},
                 {":duration_s=0", 3},
                 {":duration_s=100.5,rate=2", 11}};
    tempfile_put("{\"duration_s\": 50, \"clients\": [{\"name\": \"a\", \"every_s\": 20, "
                 "\"prompt_tokens\": 9, \"answer_tokens\": 9}]}");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char spec[256];
        (void)snprintf(spec, sizeof spec, "%s%s", path, cases[i].keys);
        ck_assert_int_eq(trace_generate(spec, 1, 1.0, &t, &err), 0);
        ck_assert_uint_eq(t.n, cases[i].jobs);
        trace_fini(&t);
    }
    t = (struct trace){0};
}
END_TEST

/* Next to the file that names it, if it is there. */
START_TEST(a_file_is_looked_for_next_to_who_names_it)
{
    const char *name = strrchr(path, '/') + 1;
    OWNED char *sibling = xformat("%.*sno-such.json", (int)(name - path), path);
    ck_assert_str_eq(datadir_next_to(sibling, name), name); /* it is not there yet */
    tempfile_put("{}");
    ck_assert_str_eq(datadir_next_to(sibling, name), path);
    ck_assert_str_eq(datadir_next_to("no-such.json", name), name);
    ck_assert_str_eq(datadir_next_to("/no/such/folder.json", name), name);
    ck_assert_str_eq(datadir_next_to("/no/such/folder.json", path), path);
    ck_assert_str_eq(datadir_next_to(sibling, path), path);
    ck_assert_str_eq(datadir_next_to("/.", "tmp"), "tmp"); /* a name of a shipped file */
}
END_TEST

static const struct suite_row suite[] = {
    CASE("workload_spec", .setup = setup, .teardown = teardown),
    TEST(a_json_file_says_the_same_as_a_list),
    TEST(tasks_are_so_many_requests_of_so_many_users),
    TEST(every_task_has_its_own_lengths_and_bad_keys_are_told),
    LOOP(bad_specs_are_refused_with_their_key, (sizeof BAD / sizeof BAD[0])),
    LOOP(keys_that_nothing_reads_are_named, sizeof UNREAD_BASES / sizeof UNREAD_BASES[0]),
    TEST(a_battery_has_a_charge_before_it_is_drawn_from),
    TEST(bad_spec_files_are_refused_with_file_and_key),
    TEST(a_workload_of_agents_runs_for_a_stated_duration),
    TEST(a_file_is_looked_for_next_to_who_names_it),
};
SUITE_MAIN("workload_spec", suite)
