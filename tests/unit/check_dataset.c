/* Data sets: the shipped ones are what their table says, and the loader takes nothing else. */
#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/csvfile.h"
#include "sim/base/datadir.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/arrivals.h"
#include "traces/traces.h"

static struct err err;
static struct dataset data;
static const char *path;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    path = tempfile_make("");
    data = (struct dataset){0};
}

static void teardown(void)
{
    err_fini(&err);
    dataset_fini(&data);
    tempfile_remove();
}

static void load(const char *name)
{
    int rc = dataset_load(name, &data, &err);
    ck_assert_msg(rc == 0, "%s", err.n > 0 ? err.lines[0] : "no message");
}

/* Rows and conversations of the table in traces/datasets/README.md, in the order of the names. */
static const struct {
    const char *name;
    size_t n, n_sessions;
} shipped[] = {
    {"bfcl", 2501, 0},           {"bfcl_multiturn", 1142, 200},
    {"cnn_dailymail", 280, 0},   {"droidtask_ui", 718, 158},
    {"lmsys_chat", 1024, 0},     {"mtrag", 842, 110},
    {"mtrag_append", 842, 110},  {"proactive_mixed", 681, 0},
    {"proactivebench", 227, 12}, {"proactivebench_models", 908, 48}, /* 12 sessions of 4 models */
    {"reactive_mixed", 2400, 0}, {"samsum", 819, 0},
    {"specbench_rag", 80, 0},    {"specbench_summary", 80, 0},
    {"tweet_reply", 400, 0},
};
enum { SHIPPED = sizeof shipped / sizeof shipped[0] };

START_TEST(shipped_sets_have_the_rows_their_table_says)
{
    load(shipped[_i].name);
    ck_assert_uint_eq(data.n, shipped[_i].n);
    ck_assert_uint_eq(data.n_sessions, shipped[_i].n_sessions);
}
END_TEST

START_TEST(whoever_asks_for_none_is_told_them_all)
{
    char names[512] = "dataset \"nonesuch\": shipped ones are";
    for (size_t i = 0, n = strlen(names); i < SHIPPED; i++) {
        n += (size_t)snprintf(names + n, sizeof names - n, " %s", shipped[i].name);
    }
    ck_assert_int_eq(dataset_load("nonesuch", &data, &err), -EINVAL);
    ck_assert_str_eq(err.lines[err.n - 1], names);
}
END_TEST

/* A cache that holds a session's last request has its prompt and answer, and the answer's end mark,
 * which output_tokens does not count. */
START_TEST(a_prefix_is_never_longer_than_what_the_last_request_left)
{
    load(shipped[_i].name);
    for (size_t i = 0; i < data.n; i++) {
        const struct dataset_row *r = &data.rows[i];
        ck_assert_uint_le(r->prefix_tokens, r->input_tokens);
        if (r->turn == 0) {
            ck_assert_uint_eq(r->prefix_tokens, 0);
        } else {
            ck_assert_uint_eq(r->session, data.rows[i - 1].session);
            ck_assert_uint_eq(r->turn, data.rows[i - 1].turn + 1);
            ck_assert_uint_le(r->prefix_tokens,
                              data.rows[i - 1].input_tokens + data.rows[i - 1].output_tokens + 1);
        }
    }
}
END_TEST

/* Two-sided truncated normal: mean mu + s (phi(a) - phi(b)) / (Phi(b) - Phi(a)); a and b are the
 * cuts half a token outside the smallest and largest length kept. s bounds its deviation. */
static void expect_log_mean(bool output, double mu, double s, double low, double high)
{
    double a = (log(low - 0.5) - mu) / s;
    double b = (log(high + 0.5) - mu) / s;
    double p = gsl_cdf_ugaussian_P(b) - gsl_cdf_ugaussian_P(a);
    double want = mu + s * (gsl_ran_ugaussian_pdf(a) - gsl_ran_ugaussian_pdf(b)) / p;
    double sum = 0.0;
    for (size_t i = 0; i < data.n; i++) {
        uint32_t x = output ? data.rows[i].output_tokens : data.rows[i].input_tokens;
        ck_assert(x >= low && x <= high);
        sum += log(x);
    }
    ck_assert_double_eq_tol(sum / (double)data.n, want, 4.0 * s / sqrt((double)data.n));
}

/* The parameters that the files state. */
START_TEST(drawn_rows_follow_the_law_their_file_states)
{
    load("samsum");
    expect_log_mean(false, 4.93, 0.60, 11, 1000);
    expect_log_mean(true, 3.09, 0.53, 1, 200);
    /* The mean product of two standard normals with correlation r is r; variance (1 + r^2) / n. */
    double sum = 0.0;
    for (size_t i = 0; i < data.n; i++) {
        sum += (log(data.rows[i].input_tokens) - 4.93) / 0.60 *
               (log(data.rows[i].output_tokens) - 3.09) / 0.53;
    }
    double variance = 1.0 + 0.61 * 0.61;
    ck_assert_double_eq_tol(sum / (double)data.n, 0.61, 4.0 * sqrt(variance / (double)data.n));
    dataset_fini(&data);
    load("lmsys_chat");
    expect_log_mean(false, 3.59, 0.99, 11, 1037);
    expect_log_mean(true, 4.47, 1.35, 1, 761);
}
END_TEST

/* Every row of a mix is a row of its set, used at most as often as it is there. */
static void expect_mix(const char *mix, const char *const names[3], uint64_t first_id, size_t each)
{
    char relative[200];
    (void)snprintf(relative, sizeof relative, "traces/datasets/%s.csv", mix);
    struct dataset sets[3];
    for (int k = 0; k < 3; k++) {
        ck_assert_int_eq(dataset_load(names[k], &sets[k], &err), 0);
    }
    struct csvfile *f = csvfile_open(datadir_path(relative), &err);
    ck_assert_ptr_nonnull(f);
    size_t n[3] = {0};
    while (csvfile_next(f, &err) == 1) {
        uint64_t k = csvfile_u64(f, 0, first_id, first_id + 2, &err) - first_id;
        uint64_t in = csvfile_u64(f, 1, 1, UINT32_MAX, &err);
        uint64_t out = csvfile_u64(f, 2, 1, UINT32_MAX, &err);
        size_t j = 0;
        while (j < sets[k].n &&
               (sets[k].rows[j].input_tokens != in || sets[k].rows[j].output_tokens != out)) {
            j++;
        }
        ck_assert_msg(j < sets[k].n, "%s: no row %d,%d left in %s", mix, (int)in, (int)out,
                      names[k]);
        sets[k].rows[j].input_tokens = 0; /* used */
        n[k]++;
    }
    csvfile_close(f);
    ck_assert_uint_eq(err.n, 0);
    for (int k = 0; k < 3; k++) {
        ck_assert_uint_eq(n[k], each);
        dataset_fini(&sets[k]);
    }
}

START_TEST(mixes_hold_equal_shares_of_rows_of_their_sets)
{
    expect_mix("proactive_mixed",
               (const char *const[]){"proactivebench", "samsum", "cnn_dailymail"}, 1, 227);
    expect_mix("reactive_mixed", (const char *const[]){"lmsys_chat", "mtrag", "bfcl"}, 4, 800);
}
END_TEST

START_TEST(a_file_of_ones_own_is_loaded_by_its_path)
{
    tempfile_put(
        "# mine\nafter_tool,conversation_id,output_tokens,input_tokens,prefix_tokens,note\n"
        "0,7,5,100,30,a\n1,7,6,140,104,b\n0,3,8,50,0,c\n");
    load(path);
    ck_assert_uint_eq(data.n, 3);
    ck_assert_uint_eq(data.n_sessions, 2);
    ck_assert_uint_eq(data.rows[0].prefix_tokens, 0); /* nothing before a first turn */
    ck_assert_uint_eq(data.rows[1].prefix_tokens, 104);
    ck_assert_uint_eq(data.rows[1].turn, 1);
    ck_assert(data.rows[1].after_tool);
    ck_assert_uint_eq(data.rows[2].turn, 0);
    ck_assert_uint_eq(data.rows[2].session, 2);
}
END_TEST

START_TEST(malformed_sets_are_refused)
{
    static const struct {
        const char *text, *has;
    } bad[] = {
        {"", "empty"},
        {"input_tokens,output_tokens\n", "no rows"},
        {"input_tokens,answer\n1,2\n", "no column \"output_tokens\""},
        {"input_tokens,output_tokens\n0,2\n", ":2: column input_tokens"},
        {"input_tokens,output_tokens\n5,x\n", ":2: column output_tokens"},
        {"input_tokens,output_tokens,prefix_tokens\n5,1,6\n", ":2: column prefix_tokens"},
        {"input_tokens,output_tokens,after_tool\n5,1,2\n", ":2: column after_tool"},
        {"input_tokens,output_tokens,session_id\n5,1,-2\n", ":2: column session_id"},
        /* two conversations whose turns take turns would be four of one turn */
        {"input_tokens,output_tokens,task_id\n5,1,0\n6,1,1\n7,1,1\n8,1,0\n",
         ":5: column task_id: \"0\" is there again: its rows must follow each other"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tempfile_put(bad[i].text);
        ck_assert_int_eq(dataset_load(path, &data, &err), -EINVAL);
        ck_assert_msg(strstr(err.lines[0], bad[i].has) != NULL, "%s", err.lines[0]);
        ck_assert_ptr_null(data.rows);
        err_fini(&err);
    }
}
END_TEST

/* Gaps inside recordings only: 1, 3 and 0, 8; mean 12 / 4 = 3. */
START_TEST(events_are_the_gaps_inside_each_recording)
{
    struct events ev;
    tempfile_put("session_id,arrival_s\n1,10\n1,11\n1,14\n2,5\n2,5\n2,13\n");
    ck_assert_int_eq(events_load(path, &ev, &err), 0);
    ck_assert_uint_eq(ev.n, 4);
    ck_assert_double_eq(ev.gap_s[0], 1);
    ck_assert_double_eq(ev.gap_s[1], 3);
    ck_assert_double_eq(ev.gap_s[2], 0);
    ck_assert_double_eq(ev.gap_s[3], 8);
    ck_assert_double_eq(ev.mean_s, 3);
    events_fini(&ev);
    ck_assert_int_eq(events_load("proactivebench_events", &ev, &err), 0);
    ck_assert_uint_eq(ev.n, 227 - 12); /* 227 events in 12 recordings */
    events_fini(&ev);
}
END_TEST

START_TEST(events_that_go_back_or_stand_still_are_refused)
{
    struct events ev;
    tempfile_put("arrival_s\n1\n3\n2\n");
    ck_assert_int_eq(events_load(path, &ev, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[0], ":4: column arrival_s: before the row above"));
    err_fini(&err);
    tempfile_put("arrival_s,session_id\n1,7\n3,7\n2,4\n5,7\n");
    ck_assert_int_eq(events_load(path, &ev, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[0], ":5: column session_id: \"7\" is there again"));
    err_fini(&err);
    tempfile_put("arrival_s\n1\n1\n");
    ck_assert_int_eq(events_load(path, &ev, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "two events at different times"));
    ck_assert_ptr_null(ev.gap_s);
}
END_TEST

/* The environment goes first; a path without it lies in the tree that holds this program. */
START_TEST(the_data_folder_can_be_named_by_the_environment)
{
    ck_assert_int_eq(setenv("XPUSIM_DATA_DIR", "/some/where", 1), 0);
    ck_assert_str_eq(datadir_path("a/b.csv"), "/some/where/a/b.csv");
    ck_assert_int_eq(unsetenv("XPUSIM_DATA_DIR"), 0);
    ck_assert_int_eq(access(datadir_path("traces/datasets/bfcl.csv"), R_OK), 0);
}
END_TEST

/* A name of 250 letters in a folder of 5,000: nothing of it is lost. */
START_TEST(a_path_is_as_long_as_its_parts)
{
    char name[251];
    char folder[5001];
    (void)snprintf(name, sizeof name, "%0250d", 0);
    (void)snprintf(folder, sizeof folder, "%05000d", 0);
    ck_assert_int_eq(setenv("XPUSIM_DATA_DIR", folder, 1), 0);
    const char *found = datadir_named(name, "a", ".csv");
    ck_assert_uint_eq(strlen(found), 5000 + strlen("/a/") + 250 + strlen(".csv"));
    ck_assert_str_eq(found + 5000 + strlen("/a/") + 250, ".csv");
    ck_assert_ptr_eq(datadir_named(name, "a", ".csv"), found);
    ck_assert_int_eq(unsetenv("XPUSIM_DATA_DIR"), 0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("dataset", .setup = setup, .teardown = teardown),
    LOOP(shipped_sets_have_the_rows_their_table_says, SHIPPED),
    TEST(whoever_asks_for_none_is_told_them_all),
    LOOP(a_prefix_is_never_longer_than_what_the_last_request_left, SHIPPED),
    TEST(drawn_rows_follow_the_law_their_file_states),
    TEST(mixes_hold_equal_shares_of_rows_of_their_sets),
    TEST(a_file_of_ones_own_is_loaded_by_its_path),
    TEST(malformed_sets_are_refused),
    TEST(events_are_the_gaps_inside_each_recording),
    TEST(events_that_go_back_or_stand_still_are_refused),
    TEST(the_data_folder_can_be_named_by_the_environment),
    TEST(a_path_is_as_long_as_its_parts),
};
SUITE_MAIN("dataset", suite)
