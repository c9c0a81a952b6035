/* Sessions in Mooncake's lines: linked by their blocks, and as AIPerf and Dynamo write them. */
#include <errno.h>

#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/traces.h"

static struct err err;
static struct trace t;
static const char *path;
static struct trace_import_losses lost;
static struct trace_import_options how;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    path = tempfile_make("");
    t = (struct trace){0};
    how = (struct trace_import_options)TRACE_IMPORT_DEFAULTS;
}

static void teardown(void)
{
    err_fini(&err);
    trace_fini(&t);
    tempfile_remove();
}

static void import_with(const char *text)
{
    tempfile_put(text);
    int rc = trace_import(&how, path, &t, &lost, &err);
    ck_assert_msg(rc == 0, "%s", err.n > 0 ? err.lines[0] : "no message");
}

static void expect_turn(size_t i, uint32_t turn, int64_t t_ns, uint32_t input, uint32_t prefix)
{
    ck_assert_uint_eq(t.rows[i].turn, turn);
    ck_assert_int_eq(t.rows[i].arrival_ns, t_ns);
    ck_assert_uint_eq(t.rows[i].input_tokens, input);
    ck_assert_uint_eq(t.rows[i].prefix_tokens, prefix);
}

/* The second prompt continues both whole blocks of the first (the third is not whole), 1024 tokens;
 * the third request shares one block with them only, the fourth continues the second. */
START_TEST(mooncake_prompts_that_continue_one_another_are_linked_when_asked)
{
    static const char text[] =
        "{\"timestamp\":0,\"input_length\":1100,\"output_length\":9,\"hash_ids\":[1,2,3]}\n"
        "{\"timestamp\":4000,\"input_length\":1700,\"output_length\":9,\"hash_ids\":[1,2,4,5]}\n"
        "{\"timestamp\":5000,\"input_length\":600,\"output_length\":9,\"hash_ids\":[1,6]}\n"
        "{\"timestamp\":9000,\"input_length\":2100,\"output_length\":9,"
        "\"hash_ids\":[1,2,4,7,8]}\n";
    import_with(text);
    ck_assert_uint_eq(t.n_first, 4);
    ck_assert_uint_eq(lost.prefix_tokens, 1024 + 512 + 1536);
    trace_fini(&t);
    how.link = true;
    import_with(text);
    ck_assert_uint_eq(t.n_first, 2);
    expect_turn(0, 0, 0, 1100, 0);
    expect_turn(1, 0, 5 * NS_PER_S, 600, 0);
    expect_turn(2, 1, 4 * NS_PER_S, 1700, 1024);
    expect_turn(3, 2, 5 * NS_PER_S, 2100, 1536);
    ck_assert_uint_eq(lost.prefix_tokens, 512);
}
END_TEST

/* The first prompt is two whole blocks, and only the third one continues both. */
START_TEST(a_last_block_that_is_whole_must_be_continued_too)
{
    how.link = true;
    import_with("{\"timestamp\":0,\"input_length\":1024,\"output_length\":9,\"hash_ids\":[1,2]}\n"
                "{\"timestamp\":4000,\"input_length\":1100,\"output_length\":9,"
                "\"hash_ids\":[1,3,4]}\n"
                "{\"timestamp\":5000,\"input_length\":1100,\"output_length\":9,"
                "\"hash_ids\":[1,2,5]}\n");
    ck_assert_uint_eq(t.n_first, 2);
    expect_turn(1, 0, 4 * NS_PER_S, 1100, 0);
    expect_turn(2, 1, 5 * NS_PER_S, 1100, 1024);
}
END_TEST

/* AIPerf's sessions: each length is that of what is new. The second turn has 300 + 40 + 150 tokens
 * and waits 2 s, the third 490 + 20 + 50 and follows at once. Turns of b are 4 s apart, and c has
 * both: its answer ended at 6 s. A text may be a hash: x's two blocks are shared, 1024 of 1100. */
START_TEST(turns_say_what_is_new_in_them)
{
    static const char text[] =
        "{\"session_id\":\"a\",\"timestamp\":0,\"input_length\":300,\"output_length\":40,\"hash_"
        "ids\":[1]}\n"
        "{\"session_id\":\"b\",\"timestamp\":1000,\"input_length\":600,\"output_length\":7,\"hash_"
        "ids\":[2,3]}\n"
        "{\"session_id\":\"a\",\"delay\":2000,\"input_length\":150,\"output_length\":20,\"hash_"
        "ids\":[4]}\n"
        "{\"session_id\":\"a\",\"input_length\":50,\"output_length\":9,\"hash_ids\":[5]}\n"
        "{\"session_id\":\"b\",\"timestamp\":5000,\"input_length\":10,\"output_length\":7}\n"
        "{\"session_id\":\"c\",\"timestamp\":5500,\"input_length\":1100,\"output_length\":7,"
        "\"hash_ids\":[\"x\",\"y\",\"z\"]}\n"
        "{\"session_id\":\"c\",\"timestamp\":7500,\"delay_ms\":1500,\"input_tokens\":3,"
        "\"output_tokens\":7}\n"
        "{\"timestamp\":8000,\"input_length\":1100,\"output_length\":7,\"hash_ids\":[\"x\",\"y\","
        "\"q\"]}\n";
    import_with(text);
    ck_assert_uint_eq(t.n_first, 4);
    expect_turn(4, 1, 2 * NS_PER_S, 490, 340);
    expect_turn(5, 2, 0, 560, 510);
    expect_turn(6, 1, 4 * NS_PER_S, 617, 607);
    expect_turn(7, 1, 1500 * NS_PER_MS, 1110, 1107);
    ck_assert_uint_eq(lost.grown, 4);
    ck_assert_uint_eq(lost.gaps_from_arrivals, 1);
    ck_assert_uint_eq(lost.prefix_tokens, 1024);
    ck_assert_uint_eq(lost.input_tokens, 300 + 600 + 490 + 560 + 617 + 1100 + 1110 + 1100);
}
END_TEST

/* Dynamo's: the second prompt has the first block of the first, so lengths are those of whole
 * prompts. Blocks of 64 tokens; nobody says when sessions begin. */
START_TEST(turns_have_whole_prompts_where_these_continue_one_another)
{
    how.block_tokens = 64;
    how.rate_per_min = 6.0;
    import_with(
        "{\"session_id\":\"a\",\"input_length\":100,\"output_length\":40,\"hash_ids\":[1,2]}\n"
        "{\"session_id\":\"b\",\"input_length\":50,\"output_length\":5,\"hash_ids\":[9]}\n"
        "{\"session_id\":\"a\",\"delay\":70,\"input_length\":200,\"output_length\":9,"
        "\"hash_ids\":[1,3,4,5]}\n");
    ck_assert_uint_eq(t.n_first, 2);
    expect_turn(2, 1, 70 * NS_PER_MS, 200, 64);
    ck_assert_int_gt(t.rows[0].arrival_ns, 0);
    ck_assert_int_gt(t.rows[1].arrival_ns, t.rows[0].arrival_ns);
    ck_assert(lost.no_times && lost.grown == 0);
}
END_TEST

/* A line of session a, whose first begins at 2 ms with 9 tokens. */
#define SESSION(members) "{\"session_id\":\"a\",\"output_length\":3," members "}\n"
#define PLAIN "{\"timestamp\":1,\"input_length\":2,\"output_length\":3}\n"
#define BEGUN SESSION("\"timestamp\":2,\"input_length\":9")

static const struct {
    const char *text, *has[2]; /* in the only error */
} BAD[] = {
    {SESSION("\"input_length\":9"), {":1: timestamp: is missing; without any"}},
    {PLAIN SESSION("\"input_length\":9"), {":2: timestamp: is missing"}},
    {BEGUN SESSION("\"input_length\":0"), {":2: input_length"}},
    {BEGUN SESSION("\"timestamp\":\"3\",\"input_length\":9"), {":2: timestamp"}},
    {BEGUN SESSION("\"timestamp\":1,\"input_length\":9"),
     {":2: timestamp: the turn before it begins later"}},
    {BEGUN SESSION("\"timestamp\":5,\"delay\":4,\"input_length\":9"),
     {":2: delay: the turn before it begins later"}},
    {BEGUN SESSION("\"delay\":\"3\",\"input_length\":9"), {":2: delay: must be a number"}},
    {BEGUN SESSION("\"delay\":1e12,\"input_length\":9"), {":2: delay: its session lasts too long"}},
    {SESSION("\"timestamp\":1,\"delay\":3,\"input_length\":9"),
     {":1: delay: no turn before it in its session"}},
    {BEGUN SESSION("\"input_length\":99999990"),
     {":2: input_length: more than 100000000 tokens with the turns before"}},
    {"{\"session_id\":5,\"timestamp\":1,\"input_length\":2,\"output_length\":3}",
     {":1: session_id: must be a text"}},
    {"{\"session_id\":\"a\",\"timestamp\":1,\"input_length\":2,\"output_length\":0}",
     {":1: output_length"}},
    {"{\"timestamp\":1,\"input_length\":512,\"output_length\":3,\"hash_ids\":[1,2]}",
     {":1: hash_ids: 2 blocks of 512 tokens are more than the prompt", "--block-tokens"}},
    {"{\"timestamp\":1,\"input_length\":9,\"output_length\":3,\"hash_ids\":{\"a\":1}}",
     {":1: hash_ids: must be a list"}},
    {"{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":1,\"input_length\":9,"
     "\"output_length\":3,\"hash_ids\":[null]}",
     {":1: hash_ids: must be a list"}},
};

START_TEST(wrong_lines_are_refused_with_their_place)
{
    tempfile_put(BAD[_i].text);
    ck_assert_int_eq(trace_import(&how, path, &t, NULL, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    for (int k = 0; k < 2 && BAD[_i].has[k] != NULL; k++) {
        ck_assert_msg(strstr(err.lines[0], BAD[_i].has[k]) != NULL, "case %d, no '%s' in: %s", _i,
                      BAD[_i].has[k], err.lines[0]);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("import", .setup = setup, .teardown = teardown),
    TEST(mooncake_prompts_that_continue_one_another_are_linked_when_asked),
    TEST(a_last_block_that_is_whole_must_be_continued_too),
    TEST(turns_say_what_is_new_in_them),
    TEST(turns_have_whole_prompts_where_these_continue_one_another),
    LOOP(wrong_lines_are_refused_with_their_place, (sizeof BAD / sizeof BAD[0])),
};
SUITE_MAIN("import_mooncake", suite)
