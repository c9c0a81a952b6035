/* Measured serving runs: order, ids, and every malformed row refused with its line. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/helpers/suite.h"
#include "traces/measured.h"

#define HEAD "request_id,arrival_s,input_tokens,output_tokens,ttft_s,e2e_s\n"

static char path[64];
static struct measured_run run;
static struct err err;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    memset(&run, 0, sizeof run);
    (void)snprintf(path, sizeof path, "/tmp/xpusim-check_measured.%ld.csv", (long)getpid());
}

static void teardown(void)
{
    trace_fini(&run.trace);
    err_fini(&err);
    (void)remove(path);
}

static int read_text(const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
    return measured_run_read(path, &run, &err);
}

static void refused(const char *text, const char *why)
{
    ck_assert_int_eq(read_text(text), -EINVAL);
    ck_assert_uint_ge(err.n, 1);
    ck_assert_msg(strstr(err.lines[0], why) != NULL, "%s", err.lines[0]);
}

START_TEST(rows_come_in_order_of_arrival_with_what_was_measured)
{
    ck_assert_int_eq(read_text("# xpusim-run v1\n" HEAD "7,2.5,30,3,0.3,0.9\n"
                               "4,0.5,10,1,0.1,0.1\n"
                               "9,1.5,20,2,0.2,0.4\n"),
                     0);
    ck_assert_uint_eq(run.trace.n, 3);
    ck_assert_uint_eq(run.trace.n_first, 3);
    const uint32_t ids[] = {4, 9, 7};
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(run.ids[i], ids[i]);
        ck_assert_uint_eq(run.trace.rows[i].request_id, i);
        ck_assert_uint_eq(run.trace.rows[i].input_tokens, 10 * (i + 1));
        ck_assert_uint_eq(run.trace.rows[i].output_tokens, i + 1);
        ck_assert_int_eq(run.trace.rows[i].arrival_ns, 500000000 + 1000000000 * (int64_t)i);
        ck_assert_double_eq_tol(run.measured[i].ttft_s, 0.1 * (i + 1), 1e-12);
    }
    ck_assert_double_eq(run.measured[2].e2e_s, 0.9);
}
END_TEST

START_TEST(columns_may_stand_in_any_order_and_others_are_ignored)
{
    ck_assert_int_eq(read_text("e2e_s,ttft_s,note,output_tokens,input_tokens,arrival_s,request_id\n"
                               "2,1,x,5,6,0,3\n"),
                     0);
    ck_assert_uint_eq(run.trace.rows[0].input_tokens, 6);
    ck_assert_double_eq(run.measured[0].e2e_s, 2);
}
END_TEST

START_TEST(the_shipped_run_has_its_300_requests)
{
    ck_assert_int_eq(measured_run_read("vllm-rtx-pro-6000-llama-3.1-8b", &run, &err), 0);
    ck_assert_uint_eq(run.trace.n, 300);
    /* Its first and last lines. */
    ck_assert_double_eq(run.measured[0].e2e_s, 15.713402);
    ck_assert_double_eq(run.measured[299].ttft_s, 20.270694);
}
END_TEST

START_TEST(malformed_rows_are_refused_with_their_line)
{
    static const struct {
        const char *row, *why;
    } cases[] = {
        {"0,0,10,5,0.1", ":3: 5 fields"},
        {"x,0,10,5,0.1,0.2", ":3: column request_id"},
        {"0,-1,10,5,0.1,0.2", ":3: column arrival_s"},
        {"0,nan,10,5,0.1,0.2", ":3: column arrival_s"},
        {"0,1e300,10,5,0.1,0.2", ":3: column arrival_s"},
        {"0,0,0,5,0.1,0.2", ":3: column input_tokens"},
        {"0,0,10,0,0.1,0.2", ":3: column output_tokens"},
        {"0,0,10,5,0,0.2", ":3: column ttft_s"},
        {"0,0,10,5,,0.2", ":3: column ttft_s"},
        {"0,0,10,5,0.1,inf", ":3: column e2e_s"},
        {"0,0,10,5,0.3,0.2", ":3: column e2e_s: 0.2 is before the first token"},
        {"1,0,10,5,0.1,0.2", ":3: column request_id: 1 is given twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        (void)snprintf(text, sizeof text, HEAD "1,0,10,5,0.1,0.2\n%s\n", cases[i].row);
        refused(text, cases[i].why);
        teardown();
        setup();
    }
}
END_TEST

START_TEST(files_that_are_no_runs_are_refused)
{
    refused("request_id,arrival_s,input_tokens,output_tokens,ttft_s,e2e_s,status\n"
            "1,0.5,10,0,,,refused\n2,0.6,10,0,,,http\n",
            "none of the 2 requests has the status ok");
    teardown();
    setup();
    refused(HEAD, "no requests");
    teardown();
    setup();
    refused("", "empty");
    teardown();
    setup();
    refused("request_id,arrival_s,input_tokens,output_tokens,ttft_s\n0,0,1,1,1\n", "e2e_s");
    teardown();
    setup();
    refused("# xpusim-run v9\n" HEAD "0,0,10,5,0.1,0.2\n", "version");
    teardown();
    setup();
    ck_assert_int_eq(measured_run_read("nonesuch", &run, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "nonesuch.csv"));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("reading", .setup = setup, .teardown = teardown),
    TEST(rows_come_in_order_of_arrival_with_what_was_measured),
    TEST(columns_may_stand_in_any_order_and_others_are_ignored),
    TEST(the_shipped_run_has_its_300_requests),
    TEST(malformed_rows_are_refused_with_their_line),
    TEST(files_that_are_no_runs_are_refused),
};
SUITE_MAIN("measured runs", suite)
