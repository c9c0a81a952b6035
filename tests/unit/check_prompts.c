/* Texts of prompts, put together a second time word by word: what a prompt begins with, how much of
 * an answer, and where the words end that a prefix takes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/observe/prompts.h"
#include "sim/base/base.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

static struct trace trace;
static struct trace_row rows[6];
static struct prompts prompts;

static void setup(void)
{
    memset(rows, 0, sizeof rows);
    trace = (struct trace){.rows = rows, .n = 6, .n_first = 2};
    for (uint32_t i = 0; i < 6; i++) {
        rows[i].request_id = 100 + i;
        rows[i].next = TRACE_NO_ROW;
        rows[i].input_tokens = 10;
    }
}

/* Two bytes a word: a letter that request and place choose, and a blank. */
static char *words(uint32_t n, uint32_t id)
{
    char *t = xcalloc(2 * (size_t)n + 1, 1);
    for (uint32_t i = 0; i < n; i++) {
        t[2 * i] = "aioeuyst"[rng_mix64((uint64_t)id * 4294967296u + i) % 8];
        t[2 * i + 1] = ' ';
    }
    return t;
}

static void is_text(uint32_t row, const char *want, uint32_t want_tokens)
{
    uint32_t tokens;
    const char *text = prompts_text(&prompts, row, &tokens);
    ck_assert_str_eq(text, want);
    ck_assert_uint_eq(tokens, want_tokens);
}

START_TEST(words_are_letters_of_the_request)
{
    static const uint32_t counts[] = {0, 1, 2, 50};
    for (int i = 0; i < 4; i++) {
        OWNED char *is = prompts_words(counts[i], 7);
        OWNED char *want = words(counts[i], 7);
        ck_assert_str_eq(is, want);
    }
    OWNED char *a = prompts_words(20, 7);
    OWNED char *b = prompts_words(20, 8);
    ck_assert_str_ne(a, b);
}
END_TEST

/* Turns: row 1 follows row 0, row 4 follows row 1. A later turn begins with the prompt of the one
 * before and as much of its answer as the prefix reaches. */
START_TEST(a_turn_begins_with_the_last_one_and_its_answer)
{
    rows[0].next = 1;
    rows[1].next = 4;
    rows[1].prefix_tokens = 13;
    rows[1].input_tokens = 20;
    rows[4].prefix_tokens = 5;
    rows[4].input_tokens = 6;
    prompts_init(&prompts, &trace);
    OWNED char *first = words(10, 100);
    is_text(0, first, 10);
    prompts_answer(&prompts, 0, "one ");
    prompts_answer(&prompts, 0, "two ");
    prompts_answer(&prompts, 0, "three ");
    prompts_answer(&prompts, 0, "four ");
    /* 10 words, three quarters of an answer of 19 bytes, then 7 words of its own */
    OWNED char *own = words(20 - 13, 101);
    OWNED char *second = xformat("%s%.*s%s", first, (int)(0.75 * 19), "one two three four ", own);
    is_text(1, second, 20);
    /* 5 of its 20 words: a quarter of the bytes, and one of its own */
    OWNED char *last = words(1, 104);
    OWNED char *third = xformat("%.*s%s", (int)(strlen(second) / 4), second, last);
    is_text(4, third, 6);
}
END_TEST

/* The prefix may be the prompt to the word, the answer to the word, or more than there is; a prompt
 * that is no longer than its prefix has no words of its own. */
START_TEST(a_prefix_ends_at_a_word)
{
    static const struct {
        uint32_t prefix, input;
        int from_prompt, from_answer; /* bytes; -1: all */
        uint32_t own;
    } all[] = {
        {10, 20, -1, 0, 10}, /* the prompt, whole */
        {9, 20, 18, 0, 11},  /* a word less */
        {11, 20, -1, 2, 9},  /* and a word of two of the answer's */
        {12, 20, -1, -1, 8}, /* all of it */
        {15, 20, -1, -1, 8}, /* no more than there is: the rest is its own */
        {12, 12, -1, -1, 0}, /* nothing of its own */
        {12, 11, -1, 2, 0},  /* cut where it ends */
        {12, 10, -1, 0, 0},  {3, 2, 4, 0, 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        setup();
        rows[0].next = 1;
        rows[1].prefix_tokens = all[i].prefix;
        rows[1].input_tokens = all[i].input;
        prompts_init(&prompts, &trace);
        OWNED char *first = words(10, 100);
        is_text(0, first, 10);
        prompts_answer(&prompts, 0, "Ab");
        prompts_answer(&prompts, 0, "Cd");
        OWNED char *own = words(all[i].own, 101);
        OWNED char *want =
            xformat("%.*s%.*s%s", all[i].from_prompt < 0 ? 20 : all[i].from_prompt, first,
                    all[i].from_answer < 0 ? 4 : all[i].from_answer, "AbCd", own);
        is_text(1, want, all[i].input);
    }
}
END_TEST

/* Characters of several bytes are not cut: half of "aäöü" (7 bytes) is 3, an end within one. */
START_TEST(a_character_stays_whole)
{
    rows[0].next = 1;
    rows[1].prefix_tokens = 11;
    rows[1].input_tokens = 11;
    prompts_init(&prompts, &trace);
    OWNED char *first = words(10, 100);
    is_text(0, first, 10);
    prompts_answer(&prompts, 0, "a\xc3\xa4");
    prompts_answer(&prompts, 0, "\xc3\xb6\xc3\xbc");
    OWNED char *want = xformat("%sa\xc3\xa4", first);
    is_text(1, want, 11);
}
END_TEST

/* A request graph names streams: rows, and groups behind them. A stream that was never sent, or
 * that a row does not have, gives no words. */
START_TEST(a_stream_is_a_row_or_a_group)
{
    uint32_t source[6] = {TRACE_NO_ROW, 0, 7, 6, 5, TRACE_NO_ROW};
    struct trace_graph graph = {.source = source, .n_groups = 2};
    trace.graph = &graph;
    rows[0].next = 5; /* the graph's streams count, not the session's turns */
    for (int i = 1; i < 6; i++) {
        rows[i].prefix_tokens = 4;
    }
    prompts_init(&prompts, &trace);
    OWNED char *first = words(10, 100);
    is_text(0, first, 10);
    OWNED char *own1 = words(6, 101);
    OWNED char *want1 = xformat("%.8s%s", first, own1);
    is_text(1, want1, 10);
    OWNED char *group1 = words(4, 0x80000001u);
    OWNED char *own2 = words(6, 102);
    OWNED char *want2 = xformat("%s%s", group1, own2);
    is_text(2, want2, 10);
    OWNED char *group0 = words(4, 0x80000000u);
    OWNED char *own3 = words(6, 103);
    OWNED char *want3 = xformat("%s%s", group0, own3);
    is_text(3, want3, 10);
    OWNED char *want4 = words(10, 104); /* its stream was not sent */
    is_text(4, want4, 10);
    OWNED char *want5 = words(10, 105); /* it has none */
    is_text(5, want5, 10);
}
END_TEST

/* A server's tokens are fixed + per word x words: words are rounded, and at least one. */
START_TEST(lengths_follow_the_servers_line)
{
    static const struct {
        double fixed, per_word;
        uint32_t tokens, words, said;
    } all[] = {
        {0, 1, 10, 10, 10},  {3, 1, 10, 7, 10},    {0, 2, 10, 5, 10},  {1, 1.5, 10, 6, 10},
        {0, 1.5, 10, 7, 11}, {2, 0.5, 10, 16, 10}, {20, 1, 10, 1, 21}, {10, 1, 10, 1, 11},
        {9.6, 1, 10, 1, 11}, {0, 4, 1, 1, 4},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        setup();
        prompts_init(&prompts, &trace);
        prompts.fixed = all[i].fixed;
        prompts.per_word = all[i].per_word;
        rows[3].input_tokens = all[i].tokens;
        OWNED char *want = words(all[i].words, 103);
        is_text(3, want, all[i].said);
    }
}
END_TEST

/* A prefix is as many words as its tokens are: the fixed ones are not of it. */
START_TEST(a_prefix_is_words_of_the_servers_line)
{
    static const struct {
        double fixed, per_word;
        uint32_t prefix, words;
    } all[] = {{0, 1, 8, 8}, {3, 1, 8, 5}, {2, 2, 8, 3}, {0, 0.5, 4, 8}, {6, 1, 5, 0}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        setup();
        rows[0].next = 1;
        prompts_init(&prompts, &trace);
        OWNED char *first = words(10, 100);
        is_text(0, first, 10);
        prompts.fixed = all[i].fixed;
        prompts.per_word = all[i].per_word;
        rows[1].prefix_tokens = all[i].prefix;
        rows[1].input_tokens = (uint32_t)(all[i].fixed + 12 * all[i].per_word);
        uint32_t said;
        const char *text = prompts_text(&prompts, 1, &said);
        OWNED char *own = words(12 - all[i].words, 101);
        OWNED char *want = xformat("%.*s%s", (int)(2 * all[i].words), first, own);
        ck_assert_str_eq(text, want);
        ck_assert_uint_eq(said, rows[1].input_tokens);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("prompts", .setup = setup),
    TEST(words_are_letters_of_the_request),
    TEST(a_turn_begins_with_the_last_one_and_its_answer),
    TEST(a_prefix_ends_at_a_word),
    TEST(a_character_stays_whole),
    TEST(a_stream_is_a_row_or_a_group),
    TEST(lengths_follow_the_servers_line),
    TEST(a_prefix_is_words_of_the_servers_line),
};
SUITE_MAIN("prompts", suite)
