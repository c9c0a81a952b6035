/* Importers: each publisher's form by a hand-made file, and refusals that name the place. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/api/request.h"
#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/traces.h"

static struct err err;
static struct trace t;
static const char *path;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    path = tempfile_make("");
    t = (struct trace){0};
}

static void teardown(void)
{
    err_fini(&err);
    trace_fini(&t);
    tempfile_remove();
}

static struct trace_import_losses lost;

/* Imports a text and returns how many requests were left out. */
static size_t import(const char *format, const char *text)
{
    tempfile_put(text);
    struct trace_import_options o = TRACE_IMPORT_DEFAULTS;
    o.format = format;
    int rc = trace_import(&o, path, &t, &lost, &err);
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

/* As `observe` writes it. */
START_TEST(comments_may_precede_the_columns)
{
    (void)import(NULL, "# xpusim-run v1\n# observed at x\n"
                       "request_id,arrival_s,input_tokens,output_tokens,status\n7,2.5,10,1,ok\n");
    ck_assert_uint_eq(t.n, 1);
    expect_row(0, 2500 * NS_PER_MS, 10, 1, 0);
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

/* The third prompt continues the first's 1024 tokens. Its third block is also behind those in the
 * file. */
START_TEST(a_prefix_ends_with_its_prompt)
{
    tempfile_put(
        "{\"timestamp\":0,\"input_length\":1024,\"output_length\":1,\"hash_ids\":[1,2]}\n"
        "{\"timestamp\":1,\"input_length\":1024,\"output_length\":1,\"hash_ids\":[3,5]}\n"
        "{\"timestamp\":2,\"input_length\":2048,\"output_length\":1,\"hash_ids\":[1,2,3,4]}\n");
    struct trace_import_options o = TRACE_IMPORT_DEFAULTS;
    o.format = "mooncake";
    o.link = true;
    ck_assert_int_eq(trace_import(&o, path, &t, &lost, &err), 0);
    ck_assert_uint_eq(t.rows[2].prefix_tokens, 1024);
}
END_TEST

/* Blocks have 512 tokens. The second request shares block 7 and differs then: 512. The third has
 * both blocks of the first, of which it fills 600 tokens. The fourth begins with another block, so
 * the next one does not count. The failed one is not there to compute anything, but its blocks have
 * been. */
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

/* genai-perf does not ask for the server's usage by default. Then pieces of the answer are counted
 * (two, one empty), and 20 characters of prompt at 4 a token are 5. */
START_TEST(genai_perf_without_usage_is_counted_by_its_texts)
{
    (void)import(
        "genai-perf",
        "{\"experiments\":[{\"requests\":[{\"timestamp\":1000000000,\"request_inputs\":{"
        "\"payload\":\"{\\\"messages\\\":[{\\\"content\\\":\\\"abcd efgh ijkl mnop \\\"}]}\"},"
        "\"response_timestamps\":[1,2,3,2000000000],\"response_outputs\":["
        "{\"response\":\"data: {\\\"delta\\\": {\\\"content\\\": \\\"\\\"}}\"},"
        "{\"response\":\"data: {\\\"delta\\\": {\\\"content\\\": \\\" a\\\"}}\"},"
        "{\"response\":\"data: {\\\"delta\\\": {\\\"content\\\":\\\" b\\\"}}\"},"
        "{\"response\":\"data: [DONE]\"}]}]}]}");
    ck_assert_uint_eq(t.n, 1);
    expect_row(0, 0, 5, 2, 0);
    ck_assert(lost.estimated && !lost.no_times);
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
    {"nosuch",
     "",
     {"format \"nosuch\"", "aiperf, azure, bailian, burstgpt, claude-code, codex, copilot, dynamo, "
                           "genai-perf, guidellm, inference-perf, mooncake, openai, otel"}},
    {"plain", "", {"empty"}},
    {"plain", PLAIN, {"no requests"}},
    {"plain", PLAIN "0,1,0,\n", {"no requests"}}, /* the only one failed */
    {"plain", "arrival_s,input_tokens\n1,2\n", {"no column \"output_tokens\""}},
    {"plain", PLAIN "-1,5,5,\n", {":2: column arrival_s"}},
    {"plain", PLAIN "0,5,5,\n1,-1,5,\n", {":3: column input_tokens"}},
    {"plain", PLAIN "0,5,-5,\n", {":2: column output_tokens"}},
    {"plain", PLAIN "0,5,5,urgent\n", {":2: column class: \"urgent\"", "reactive or proactive"}},
    {"azure", "TIMESTAMP,ContextTokens,Tokens\n0,5,5\n", {"no column"}},
    {"azure", PLAIN "0,5,5,\n", {"not azure: it begins as plain does"}},
    {"mooncake", "{\"chat_id\":1,\"timestamp\":1,\"input_length\":2}", {"as bailian does"}},
    {NULL, "a,b\n1,2\n", {"not a format that is known", "aiperf, azure"}},
    {NULL, " \n", {": empty"}},
    {"openai",
     "{\"object\":\"x\",\"created\":1,\"usage\":{\"completion_tokens\":1}}",
     {":1: prompt_tokens"}},
    {"openai", "{\"object\":\"x\",\"created\":1,\"usage\":null}", {"no requests: all 1 failed"}},
    {"openai",
     "{\"created_at\":1,\"usage\":{\"input_tokens\":2,\"prompt_tokens\":3}}",
     {":1: output_tokens"}},
    {NULL, "request_id,session_id,turn,arrival_s,input_tokens,output_tokens\n", {"not a format"}},
    {"sharegpt", "[]", {"--rate-per-min"}},
    {"vllm", "{\"input_lens\":[1],\"output_lens\":[1]}", {"start_times"}},
    {"genai-perf",
     "{\"experiments\":[{\"requests\":[{\"timestamp\":1}]}]}",
     {"request 0", "no text in request_inputs"}},
    {"inference-perf",
     "[{\"start_time\":1,\"end_time\":2,\"info\":{\"input_tokens\":5}}]",
     {"request 0: info.response_metrics.output_tokens"}},
    {"guidellm",
     "{\"guidellm_version\":1,\"benchmarks\":[{\"requests\":{\"successful\":[{}]}}]}",
     {"request 0: prompt_tokens"}},
    {NULL,
     "[{\"id\":1,\"run_type\":\"llm\",\"start_time\":\"2026-11-29T10:00:00\"}]",
     {"request 0: info: missing", "no result of inference-perf"}},
    {"otel",
     "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"a\"}]}]}]}",
     {"none of its spans has gen_ai.usage.input_tokens", "llm.token_count.prompt"}},
    {"otel", /* 4 s in milliseconds, and 120 tokens */
     "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"startTimeUnixNano\":\"1764400000000\","
     "\"endTimeUnixNano\":\"1764400004000\",\"attributes\":[{\"key\":\"gen_ai.usage.input_tokens\","
     "\"value\":{\"intValue\":\"9\"}},{\"key\":\"gen_ai.usage.output_tokens\",\"value\":{"
     "\"intValue\":\"120\"}}]}]}]}]}",
     {"each answer takes less than 0.1 ms a token", "in nanoseconds?"}},
    {"otel", "{\"resourceSpans\":", {":1: malformed JSON"}},
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
    {"mooncake", "{\"timestamp\":1,\"input_length\":-1,\"output_length\":3}", {":1: input_length"}},
    {"mooncake",
     "{\"timestamp\":1,\"input_length\":2,\"output_length\":3.5}",
     {":1: output_length", "whole number"}},
    {"mooncake", "{\"timestamp\":\"1\",\"input_length\":2,\"output_length\":3}", {":1: timestamp"}},
    {"mooncake", "{\"timestamp\":1,\"output_length\":3}", {":1: input_length"}},
};

static struct trace_import_options how = TRACE_IMPORT_DEFAULTS;

static void import_with(const char *text)
{
    tempfile_put(text);
    int rc = trace_import(&how, path, &t, &lost, &err);
    ck_assert_msg(rc == 0, "%s", err.n > 0 ? err.lines[0] : "no message");
    how = (struct trace_import_options)TRACE_IMPORT_DEFAULTS;
}

static void expect_turn(size_t i, uint32_t turn, int64_t t_ns, uint32_t input, uint32_t prefix)
{
    ck_assert_uint_eq(t.rows[i].turn, turn);
    ck_assert_int_eq(t.rows[i].arrival_ns, t_ns);
    ck_assert_uint_eq(t.rows[i].input_tokens, input);
    ck_assert_uint_eq(t.rows[i].prefix_tokens, prefix);
}

/* Chat 2 answers chat 1: 64 s - 62.5 s later, and its first two blocks of 16 tokens are chat 1's.
 * Chat 3 answers chat 1 too: a branch, a session of its own. A cache of all sessions could serve
 * two blocks of chat 4 (32 tokens of its 40) and of chat 3 (32), but the trace keeps none of
 * them. */
START_TEST(bailian_chats_are_turns_and_blocks_of_16_tokens_their_prefixes)
{
    import_with("{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":62.5,\"input_length\":40,"
                "\"output_length\":5,\"turn\":1,\"hash_ids\":[7,8,9]}\n"
                "{\"chat_id\":2,\"parent_chat_id\":1,\"timestamp\":64,\"input_length\":60,"
                "\"output_length\":5,\"turn\":2,\"hash_ids\":[7,8,10,11]}\n"
                "{\"chat_id\":3,\"parent_chat_id\":1,\"timestamp\":65,\"input_length\":50,"
                "\"output_length\":5,\"turn\":2,\"hash_ids\":[7,8,12,13]}\n"
                "{\"chat_id\":4,\"parent_chat_id\":-1,\"timestamp\":66,\"input_length\":40,"
                "\"output_length\":5,\"turn\":1,\"hash_ids\":[7,8,14]}\n");
    ck_assert_str_eq(lost.format, "bailian");
    ck_assert_uint_eq(t.n_first, 3);
    expect_turn(0, 0, 62500 * NS_PER_MS, 40, 0);
    expect_turn(1, 0, 65 * NS_PER_S, 50, 0);
    expect_turn(2, 0, 66 * NS_PER_S, 40, 0);
    expect_turn(3, 1, 1500 * NS_PER_MS, 60, 32);
    ck_assert_uint_eq(t.rows[0].next, 3);
    ck_assert_uint_eq(lost.prefix_tokens, 64);
    ck_assert_uint_eq(lost.gaps_from_arrivals, 1);
}
END_TEST

/* Prompts share their leading blocks with the first that had them, whichever its session: 1024 of
 * the first, 512 of it, and 1536 of the second. That is all that a cache of all blocks would serve.
 * Where the first request is not taken, the second one's prompt is the first with its blocks. */
START_TEST(mooncake_prompts_share_their_blocks_when_asked)
{
    static const char text[] =
        "{\"timestamp\":0,\"input_length\":1100,\"output_length\":9,\"hash_ids\":[1,2,3]}\n"
        "{\"timestamp\":4000,\"input_length\":1700,\"output_length\":9,\"hash_ids\":[1,2,4,5]}\n"
        "{\"timestamp\":5000,\"input_length\":600,\"output_length\":9,\"hash_ids\":[1,6]}\n"
        "{\"timestamp\":9000,\"input_length\":2100,\"output_length\":9,"
        "\"hash_ids\":[1,2,4,7,8]}\n";
    static const uint32_t prefix[] = {0, 1024, 512, 1536};
    static const uint32_t source[] = {TRACE_NO_ROW, 0, 0, 1};
    how.share = true;
    import_with(text);
    ck_assert_uint_eq(t.n_first, 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(t.rows[i].prefix_tokens, prefix[i]);
        ck_assert_uint_eq(t.graph->source[i], source[i]);
    }
    ck_assert_uint_eq(lost.prefix_tokens, 0);
    trace_fini(&t);
    how.share = true;
    how.from_s = 3.0;
    import_with(text);
    ck_assert_uint_eq(t.n, 3);
    ck_assert_uint_eq(t.graph->source[0], TRACE_NO_ROW);
    ck_assert_uint_eq(t.graph->source[1], 0);
    ck_assert_uint_eq(t.graph->source[2], 0);
    uint64_t by_class[REQUEST_CLASS_COUNT];
    ck_assert_uint_eq(trace_shareable_tokens(&t, by_class), 512 + 1536);
}
END_TEST

/* Two prompts with the same last block, which is not whole: all of the first's 700 tokens. */
START_TEST(a_block_that_is_not_whole_is_shared_as_far_as_it_goes)
{
    static const char text[] =
        "{\"timestamp\":0,\"input_length\":700,\"output_length\":9,\"hash_ids\":[1,2]}\n"
        "{\"timestamp\":4000,\"input_length\":700,\"output_length\":9,\"hash_ids\":[1,2]}\n";
    how.share = true;
    import_with(text);
    ck_assert_uint_eq(t.rows[1].prefix_tokens, 700);
}
END_TEST

/* A token has 4 characters. Answers of other models than OpenAI's are answers, too: 2 tokens of
 * prompt and 1 of answer, then 2 + 1 + 1 and 3. */
START_TEST(sharegpt_answers_are_of_any_model)
{
    static const char *const who[] = {"gpt", "assistant", "chatgpt", "bing", "bard"};
    for (size_t i = 0; i < sizeof who / sizeof who[0]; i++) {
        OWNED char *text = xformat("[{\"conversations\":["
                                   "{\"from\":\"human\",\"value\":\"12345678\"},"
                                   "{\"from\":\"%s\",\"value\":\"1234\"},"
                                   "{\"from\":\"user\",\"value\":\"\xc3\xa4\xc3\xb6\"},"
                                   "{\"from\":\"%s\",\"value\":\"123456789\"}]}]",
                                   who[i], who[i]);
        how.rate_per_min = 6.0;
        import_with(text);
        ck_assert_uint_eq(t.n, 2);
        expect_turn(0, 0, t.rows[0].arrival_ns, 2, 0);
        expect_turn(1, 1, 10 * NS_PER_S, 4, 3);
        ck_assert_uint_eq(t.rows[0].output_tokens, 1);
        ck_assert_uint_eq(t.rows[1].output_tokens, 3);
        trace_fini(&t);
    }
}
END_TEST

/* BurstGPT's second release has sessions and how long an answer took: the gap is 100 - (50 + 43) s,
 * and times count from the first request. With --history a prompt of 1400 begins with 906 + 446.
 * After an answer without a time the gap counts from its arrival: 130 - 100 s. */
START_TEST(burstgpt_sessions_have_gaps_from_the_end_of_the_answer)
{
    static const char text[] =
        "\xef\xbb\xbfTimestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,"
        "Total tokens,Log Type\n"
        "50.0,a-1,43,GPT-4,906,446,1352,Conversation log\n"
        "61.0,b-2,2,ChatGPT,36.0,29,65,Conversation log\n"
        "100.0,a-1,,GPT-4,1400,10,1410,Conversation log\n"
        "130.0,a-1,5,GPT-4,1500,10,1510,Conversation log\n";
    how.history = true;
    import_with(text);
    expect_turn(0, 0, 0, 906, 0);
    expect_turn(1, 0, 11 * NS_PER_S, 36, 0);
    expect_turn(2, 1, 7 * NS_PER_S, 1400, 1352);
    expect_turn(3, 2, 30 * NS_PER_S, 1500, 1410);
    ck_assert_uint_eq(lost.gaps_from_arrivals, 1);
}
END_TEST

/* Turns at 0, 10 and 20 s, answered at 60, 15 and 25 s: two turns are sent while the first answer
 * still runs, and wait for it. The turn at 65 s comes 5 s after it, not 65 - 25 s after the answer
 * before itself. */
START_TEST(turns_that_were_sent_early_wait_and_delay_no_later_one)
{
    import_with("Timestamp,Session ID,Elapsed time,Request tokens,Response tokens\n"
                "0,a,60,100,10\n10,a,5,100,10\n20,a,5,100,10\n65,a,1,100,10\n");
    expect_turn(1, 1, 0, 100, 0);
    expect_turn(2, 2, 0, 100, 0);
    expect_turn(3, 3, 5 * NS_PER_S, 100, 0);
    ck_assert_uint_eq(lost.early, 2);
}
END_TEST

/* The source's cache served 900 tokens, of which the turn before left 110. Nobody left the 50 of a
 * first turn: 790 + 50 were another session's. */
START_TEST(a_turn_begins_with_no_more_than_the_turn_before_left)
{
    import_with("arrival_s,input_tokens,output_tokens,session_id,prefix_tokens\n"
                "0,100,10,a,50\n20,1000,2,a,900\n");
    expect_turn(0, 0, 0, 100, 0);
    expect_turn(1, 1, 20 * NS_PER_S, 1000, 110);
    ck_assert_uint_eq(lost.prefix_tokens, 840);
}
END_TEST

/* Ten sessions, one a second from 0 s on, the third with a later turn. */
START_TEST(a_trace_is_cut_scaled_and_thinned_by_sessions)
{
    char text[1024] = "session_id,arrival_s,input_tokens,output_tokens,class\n";
    for (int i = 0; i < 10; i++) {
        (void)snprintf(text + strlen(text), 64, "%d,%d,%d,1,\n", i, i, 100 + i);
    }
    (void)strcat(text, "2,9.5,500,1,\n");
    how.from_s = 2.0;
    how.to_s = 5.0;
    how.rate_scale = 4.0;
    how.cls = "proactive";
    import_with(text); /* sessions 2, 3, 4, at 0, 1/4, 2/4 s; the gap of 7.5 s stays */
    ck_assert_uint_eq(t.n, 4);
    expect_turn(0, 0, 0, 102, 0);
    expect_turn(1, 0, 250 * NS_PER_MS, 103, 0);
    expect_turn(2, 0, 500 * NS_PER_MS, 104, 0);
    expect_turn(3, 1, 7500 * NS_PER_MS, 500, 0);
    ck_assert_int_eq(t.rows[3].cls, REQUEST_CLASS_PROACTIVE);
    trace_fini(&t);
    size_t kept = 0; /* of 200 draws each with a half: 100 +- 7, five sigma */
    for (uint64_t seed = 1; seed <= 20; seed++) {
        how.sample_frac = 0.5;
        how.seed = seed;
        import_with(text);
        kept += t.n_first;
        trace_fini(&t);
    }
    ck_assert_uint_gt(kept, 65);
    ck_assert_uint_lt(kept, 135);
    t = (struct trace){0};
}
END_TEST

/* Documents and records: 40 characters over 4 are 10 tokens, the second prompt is 10 + 20 + 5. */
START_TEST(conversations_spans_and_results_of_benchmarks_are_read)
{
    how.rate_per_min = 6.0;
    import_with("[{\"conversations\":[{\"from\":\"human\",\"value\":"
                "\"0123456789012345678901234567890123456789\"},{\"from\":\"gpt\",\"value\":"
                "\"01234567890123456789012345678901234567890123456789012345678901234567890123456789"
                "\"},{\"from\":\"human\",\"value\":\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                "0123456789012345\"},{\"from\":\"gpt\",\"value\":\"abcde\"}]}]");
    ck_assert(lost.estimated);
    expect_turn(0, 0, t.rows[0].arrival_ns, 10, 0);
    expect_turn(1, 1, 10 * NS_PER_S, 35, 30);
    ck_assert_uint_eq(t.rows[1].output_tokens, 2);
    trace_fini(&t);
    import_with("{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"startTimeUnixNano\":"
                "\"1716400000000000001\",\"endTimeUnixNano\":\"1716400002000000001\","
                "\"attributes\":[{\"key\":\"gen_ai.conversation.id\",\"value\":{\"stringValue\":"
                "\"c\"}},{\"key\":\"gen_ai.usage.input_tokens\",\"value\":{\"intValue\":\"97\"}},"
                "{\"key\":\"gen_ai.usage.output_tokens\",\"value\":{\"intValue\":\"52\"}}]}]}]}]}\n"
                "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"startTimeUnixNano\":"
                "\"1716400003500000004\",\"endTimeUnixNano\":\"1716400004000000000\","
                "\"attributes\":[{\"key\":\"gen_ai.conversation.id\",\"value\":{\"stringValue\":"
                "\"c\"}},{\"key\":\"gen_ai.usage.input_tokens\",\"value\":{\"intValue\":\"180\"}},"
                "{\"key\":\"gen_ai.usage.output_tokens\",\"value\":{\"intValue\":\"10\"}}]}]}]}]}");
    expect_turn(0, 0, 0, 97, 0);
    expect_turn(1, 1, 1500000003, 180, 0);
    trace_fini(&t);
    import_with("{\"input_lens\":[100,200,5],\"output_lens\":[3,2,0],\"ttfts\":[0.1,0.2,0],"
                "\"itls\":[[0.05],[0.1],[]],\"start_times\":[10.5,12.0,13.0]}");
    ck_assert_uint_eq(lost.failed, 1);
    expect_turn(0, 0, 0, 100, 0);
    expect_turn(1, 0, 1500 * NS_PER_MS, 200, 0);
    trace_fini(&t);
    /* a warm-up is no request, an error is a failed one; turn 0 begins a session again */
    import_with(
        "{\"metadata\":{\"benchmark_phase\":\"warmup\"},\"metrics\":{}}\n"
        "{\"metadata\":{\"conversation_id\":\"c\",\"turn_index\":0,\"request_start_ns\":"
        "1000000000,\"request_end_ns\":2000000000},\"metrics\":{\"input_sequence_length\":"
        "{\"value\":50},\"output_sequence_length\":{\"value\":4}},\"error\":null}\n"
        "{\"metadata\":{\"conversation_id\":\"c\",\"turn_index\":1,\"request_start_ns\":"
        "5000000000},\"metrics\":{\"input_sequence_length\":{\"value\":70},"
        "\"output_sequence_length\":{\"value\":4}}}\n"
        "{\"metadata\":{\"conversation_id\":\"c\",\"turn_index\":0,\"request_start_ns\":"
        "8000000000},\"metrics\":{\"input_sequence_length\":{\"value\":50},"
        "\"output_sequence_length\":{\"value\":4}}}\n"
        "{\"metadata\":{\"request_start_ns\":1},\"metrics\":{},\"error\":{\"code\":503}}\n");
    ck_assert_uint_eq(t.n_first, 2);
    ck_assert_uint_eq(lost.failed, 1);
    expect_turn(1, 0, 7 * NS_PER_S, 50, 0);
    expect_turn(2, 1, 3 * NS_PER_S, 70, 0);
    trace_fini(&t);
    import_with(
        "{\"experiments\":[{\"requests\":[{\"timestamp\":1000000000,"
        "\"response_timestamps\":[1500000000],\"response_outputs\":[{\"response\":"
        "\"data: {\\\"usage\\\":{\\\"prompt_tokens\\\":100,\\\"completion_tokens\\\":7}}\"}]}]}]}");
    expect_turn(0, 0, 0, 100, 0);
    ck_assert_uint_eq(t.rows[0].output_tokens, 7);
}
END_TEST

START_TEST(malformed_files_are_refused_with_their_place)
{
    const struct bad *b = &BAD[_i];
    tempfile_put(b->text);
    struct trace_import_options o = TRACE_IMPORT_DEFAULTS;
    o.format = b->format;
    ck_assert_int_eq(trace_import(&o, path, &t, NULL, &err), -EINVAL);
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
        struct trace_import_options o = TRACE_IMPORT_DEFAULTS;
        o.format = *f;
        ck_assert_int_eq(trace_import(&o, "/nonexistent", &t, NULL, &err), -EINVAL);
        ck_assert_uint_eq(err.n, 1);
        ck_assert_ptr_nonnull(strstr(err.lines[0], "/nonexistent: "));
        err_fini(&err);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("import", .setup = setup, .teardown = teardown),
    TEST(plain_files_keep_their_times_and_classes),
    TEST(comments_may_precede_the_columns),
    TEST(azure_dates_count_from_the_first_request),
    TEST(azure_zones_are_taken_into_account),
    TEST(burstgpt_failures_are_left_out_and_counted),
    TEST(splitwise_and_vidur_columns_are_known),
    TEST(mooncake_lines_are_read),
    TEST(genai_perf_without_usage_is_counted_by_its_texts),
    TEST(bailian_chats_are_turns_and_blocks_of_16_tokens_their_prefixes),
    TEST(mooncake_prompts_share_their_blocks_when_asked),
    TEST(a_block_that_is_not_whole_is_shared_as_far_as_it_goes),
    TEST(sharegpt_answers_are_of_any_model),
    TEST(burstgpt_sessions_have_gaps_from_the_end_of_the_answer),
    TEST(turns_that_were_sent_early_wait_and_delay_no_later_one),
    TEST(a_turn_begins_with_no_more_than_the_turn_before_left),
    TEST(a_trace_is_cut_scaled_and_thinned_by_sessions),
    TEST(conversations_spans_and_results_of_benchmarks_are_read),
    TEST(a_prefix_ends_with_its_prompt),
    TEST(prefixes_that_are_lost_are_counted),
    LOOP(malformed_files_are_refused_with_their_place, (sizeof BAD / sizeof BAD[0])),
    TEST(a_missing_file_is_named_in_every_format),
};
SUITE_MAIN("import", suite)
