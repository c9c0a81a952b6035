/* Importers: each publisher's form by a hand-made file, and refusals that name the place. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/units.h"
#include "traces/traces.h"

static struct err err;
static struct trace t;
static char path[] = "/tmp/check-import-XXXXXX";

static void setup(void)
{
    err = (struct err)ERR_INIT;
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    t = (struct trace){0};
}

static void teardown(void)
{
    err_fini(&err);
    trace_fini(&t);
    (void)remove(path);
}

static void put(const char *text)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static struct trace_import_losses lost;

/* Imports a text and returns how many requests were left out. */
static size_t import(const char *format, const char *text)
{
    put(text);
    int rc = trace_import_counted(format, path, &t, &lost, &err);
    ck_assert_msg(rc == 0, "%s", err.n > 0 ? err.lines[0] : "no message");
    return lost.failed;
}

static void expect_row(size_t i, int64_t arrival_ns, uint32_t input, uint32_t output, int cls)
{
    const struct trace_row *r = &t.rows[i];
    ck_assert_int_eq(r->arrival_ns, arrival_ns);
    ck_assert_uint_eq(r->input_tokens, input);
    ck_assert_uint_eq(r->output_tokens, output);
    ck_assert_uint_eq(r->max_output_tokens, trace_default_limit(output));
    ck_assert_int_eq(r->cls, cls);
    ck_assert_uint_eq(r->request_id, i);
    ck_assert_uint_eq(r->turn, 0);
    ck_assert_uint_eq(r->next, TRACE_NO_ROW);
}

START_TEST(plain_files_keep_their_times_and_classes)
{
    ck_assert_uint_eq(import("plain", "input_tokens,arrival_s,class,output_tokens\n"
                                      "10,2.5,proactive,1\n20,0.25,,2\n30,1,reactive,3\n"),
                      0);
    ck_assert_uint_eq(t.n, 3);
    expect_row(0, 250 * NS_PER_MS, 20, 2, 0); /* sorted by arrival */
    expect_row(1, 1 * NS_PER_S, 30, 3, 0);
    expect_row(2, 2500 * NS_PER_MS, 10, 1, 1);
    ck_assert_uint_eq(t.n_first, 3); /* three sessions */
}
END_TEST

/* The form of the 2023 files: seven decimals, no zone. Times count from the earliest row: 0.4194100
 * - 46.6805900 + 60 = 13.73882 s over midnight of the last of February in a leap year. */
START_TEST(azure_dates_count_from_the_first_request)
{
    (void)import("azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                          "2024-02-29 23:59:46.6805900,4808,10\n"
                          "2024-03-01 00:00:00.4194100,3180,8\n");
    ck_assert_uint_eq(t.n, 2);
    expect_row(0, 0, 4808, 10, 0);
    expect_row(1, 13738820000, 3180, 8, 0);
}
END_TEST

/* The form of the 2024 files has a zone. 02:00:01+02:00 is 00:00:01 UTC, 23:30-00:30 is midnight:
 * rows 0.25, 0, 1 s after midnight UTC. */
START_TEST(azure_zones_are_taken_into_account)
{
    (void)import("azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                          "2024-05-10 00:00:00.25+00:00,1,1\n"
                          "2024-05-09T23:30:00-00:30,2,2\n"
                          "2024-05-10 02:00:01+02:00,3,3\n"
                          "2024-05-10 00:00:02Z,4,4\n");
    ck_assert_uint_eq(t.n, 4);
    expect_row(0, 0, 2, 2, 0);
    expect_row(1, 250 * NS_PER_MS, 1, 1, 0);
    expect_row(2, 1 * NS_PER_S, 3, 3, 0);
    expect_row(3, 2 * NS_PER_S, 4, 4, 0);
}
END_TEST

START_TEST(burstgpt_failures_are_left_out_and_counted)
{
    ck_assert_uint_eq(
        import("burstgpt",
               "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
               "5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,0,1087,Conversation log\n"
               "118,GPT-4,417,276,693,API log\n"),
        1);
    ck_assert_uint_eq(t.n, 2);
    expect_row(0, 5 * NS_PER_S, 472, 18, 0);
    expect_row(1, 118 * NS_PER_S, 417, 276, 0);
}
END_TEST

START_TEST(splitwise_and_vidur_columns_are_known)
{
    (void)import("splitwise", "request_id,request_type,application_id,arrival_timestamp,batch_size,"
                              "prompt_size,token_size\n0,2,0,0.5,1,100,7\n");
    expect_row(0, 500 * NS_PER_MS, 100, 7, 0);
    trace_fini(&t);
    (void)import("vidur", "arrived_at,num_prefill_tokens,num_decode_tokens\n0.125,64,3\n");
    expect_row(0, 125 * NS_PER_MS, 64, 3, 0);
}
END_TEST

/* Milliseconds; blank lines, unknown keys and block hashes pass. */
START_TEST(mooncake_lines_are_read)
{
    ck_assert_uint_eq(
        import("mooncake",
               "{\"timestamp\": 0, \"input_length\": 6755, \"output_length\": 500, \"hash_ids\": "
               "[0, 1]}\n\n"
               "{\"timestamp\": 3052.5, \"input_length\": 7234, \"output_length\": 794}\n"
               "{\"timestamp\": 4000, \"input_length\": 5, \"output_length\": 0, \"type\": 1}"),
        1);
    ck_assert_uint_eq(t.n, 2);
    expect_row(0, 0, 6755, 500, 0);
    expect_row(1, 3052500 * NS_PER_US, 7234, 794, 0);
}
END_TEST

/* Blocks of 512 tokens. The second request shares block 7 and differs then: 512. The third has both
 * blocks of the first, of which it fills 600 tokens. The fourth starts anew: what follows does not
 * count. The failed one is not there to compute anything, but its blocks have been. */
START_TEST(prefixes_that_are_lost_are_counted)
{
    (void)import("mooncake",
                 "{\"timestamp\":0,\"input_length\":1000,\"output_length\":1,\"hash_ids\":[7,8]}\n"
                 "{\"timestamp\":1,\"input_length\":1000,\"output_length\":1,\"hash_ids\":[7,9]}\n"
                 "{\"timestamp\":2,\"input_length\":600,\"output_length\":1,\"hash_ids\":[7,8]}\n"
                 "{\"timestamp\":3,\"input_length\":900,\"output_length\":1,\"hash_ids\":[4,8]}\n"
                 "{\"timestamp\":4,\"input_length\":900,\"output_length\":0,\"hash_ids\":[7,8]}\n");
    ck_assert_uint_eq(lost.prefix_tokens, 512 + 600);
    ck_assert_uint_eq(lost.input_tokens, 1000 + 1000 + 600 + 900);
    trace_fini(&t);
    (void)import("plain", "arrival_s,input_tokens,output_tokens,prefix_tokens\n"
                          "0,100,1,0\n1,200,1,128\n2,300,0,256\n");
    ck_assert_uint_eq(lost.prefix_tokens, 128);
}
END_TEST

struct bad {
    const char *format, *text;
    const char *has[2]; /* in the only error */
};

#define PLAIN "arrival_s,input_tokens,output_tokens,class\n"
#define AZURE "TIMESTAMP,ContextTokens,GeneratedTokens\n"
#define MOON "{\"timestamp\":1,\"input_length\":2,\"output_length\":3}\n"

static const struct bad BAD[] = {
    {"nosuch", "", {"format \"nosuch\"", "azure, burstgpt, mooncake, plain, splitwise, vidur"}},
    {"plain", "", {"empty"}},
    {"plain", PLAIN, {"no requests"}},
    {"plain", PLAIN "0,1,0,\n", {"no requests"}}, /* the only one failed */
    {"plain", "arrival_s,input_tokens\n1,2\n", {"no column \"output_tokens\""}},
    {"plain", PLAIN "-1,5,5,\n", {":2: column arrival_s"}},
    {"plain", PLAIN "0,5,5,\n1,0,5,\n", {":3: column input_tokens"}},
    {"plain", PLAIN "0,5,-5,\n", {":2: column output_tokens"}},
    {"plain", PLAIN "0,5,5,urgent\n", {":2: column class: \"urgent\"", "reactive or proactive"}},
    {"azure", PLAIN "0,5,5,\n", {"no column"}},
    {"azure", AZURE "1700000000,5,5\n", {":2: column TIMESTAMP", "YYYY-MM-DD"}},
    {"azure", AZURE "2023-02-29 00:00:00,5,5\n", {":2: column TIMESTAMP"}},
    {"azure", AZURE "2023-13-01 00:00:00,5,5\n", {":2: column TIMESTAMP"}},
    {"azure", AZURE "2023-11-16 24:00:00,5,5\n", {":2: column TIMESTAMP"}},
    {"azure", AZURE "2023-11-16 10:60:00,5,5\n", {":2: column TIMESTAMP"}},
    {"azure", AZURE "2023-11-16 10:00:nan,5,5\n", {":2: column TIMESTAMP"}},
    {"azure", AZURE "2023-11-16x10:00:00,5,5\n", {":2: column TIMESTAMP"}},
    {"azure", AZURE "2023-11-16 10:00:00+1,5,5\n", {":2: column TIMESTAMP"}},
    {"azure", AZURE "2023-11-16 10:00:00+01:00Z,5,5\n", {":2: column TIMESTAMP"}},
    {"mooncake", "", {"no requests"}},
    {"mooncake", MOON "[1]\n", {":2: must be one JSON object"}},
    {"mooncake", MOON MOON "{\"timestamp\":1,\n", {":3: must be one JSON object"}},
    {"mooncake", "{} {}\n", {":1: must be one JSON object"}},
    {"mooncake", "{\"timestamp\":-1,\"input_length\":2,\"output_length\":3}", {":1: timestamp"}},
    {"mooncake", "{\"timestamp\":1,\"input_length\":0,\"output_length\":3}", {":1: input_length"}},
    {"mooncake",
     "{\"timestamp\":1,\"input_length\":2,\"output_length\":3.5}",
     {":1: output_length", "whole number"}},
    {"mooncake", "{\"timestamp\":\"1\",\"input_length\":2,\"output_length\":3}", {":1: timestamp"}},
    {"mooncake", "{\"timestamp\":1,\"output_length\":3}", {":1: input_length"}},
};

START_TEST(malformed_files_are_refused_with_their_place)
{
    const struct bad *b = &BAD[_i];
    put(b->text);
    ck_assert_int_eq(trace_import(b->format, path, &t, &err), -EINVAL);
    ck_assert_ptr_null(t.rows);
    ck_assert_msg(err.n >= 1, "case %d gives no error", _i);
    const char *line = err.lines[err.n - 1];
    for (int k = 0; k < 2 && b->has[k] != NULL; k++) {
        ck_assert_msg(strstr(line, b->has[k]) != NULL, "case %d, no '%s' in: %s", _i, b->has[k],
                      line);
    }
}
END_TEST

START_TEST(a_missing_file_is_named_in_every_format)
{
    for (const char *const *f = trace_formats(); *f != NULL; f++) {
        ck_assert_int_eq(trace_import(*f, "/nonexistent", &t, &err), -EINVAL);
        ck_assert_uint_eq(err.n, 1);
        ck_assert_ptr_nonnull(strstr(err.lines[0], "/nonexistent: "));
        err_fini(&err);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("import");
    TCase *c = tcase_create("import");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, plain_files_keep_their_times_and_classes);
    tcase_add_test(c, azure_dates_count_from_the_first_request);
    tcase_add_test(c, azure_zones_are_taken_into_account);
    tcase_add_test(c, burstgpt_failures_are_left_out_and_counted);
    tcase_add_test(c, splitwise_and_vidur_columns_are_known);
    tcase_add_test(c, mooncake_lines_are_read);
    tcase_add_test(c, prefixes_that_are_lost_are_counted);
    tcase_add_loop_test(c, malformed_files_are_refused_with_their_place, 0,
                        (int)(sizeof BAD / sizeof BAD[0]));
    tcase_add_test(c, a_missing_file_is_named_in_every_format);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
