/* Beginnings of prompts in trace files: sources as a line names them, sources that are refused, and
 * the shared part of the prompts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/traces.h"

#define VERSION "# xpusim-trace v2\n"
#define COLUMNS                                                                                    \
    "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,"   \
    "prefix_group,background,ends_with,prefix_of,parent_ids\n"
/* Two agents have the system prompt of group 7. A subagent begins with all of the first agent's
 * turn and 20 tokens of its answer. The first agent has a next turn, and one with its context
 * compacted to the system prompt. The last request shares nothing. */
#define AGENTS                                                                                     \
    "10,0,0,reactive,1,,200,30,150,7,0,,,\n"                                                       \
    "11,1,0,reactive,2,,180,30,150,7,0,,,\n"                                                       \
    "12,2,0,proactive,,0,300,20,220,0,0,,10,10\n"                                                  \
    "13,0,1,reactive,,1,400,20,230,0,0,,,\n"                                                       \
    "14,0,2,reactive,,1,250,20,120,7,0,,,\n"                                                       \
    "15,3,0,reactive,9,,50,20,0,0,0,,,\n"

static struct err e;

static void setup(void)
{
    e = (struct err)ERR_INIT;
}

static void teardown(void)
{
    err_fini(&e);
}

static int read_text(const char *text, struct trace *t)
{
    const char *path = tempfile_make(".csv");
    tempfile_put(text);
    int rc = trace_read(path, t, &e);
    tempfile_remove();
    return rc;
}

static uint32_t row_of(const struct trace *t, uint32_t id)
{
    uint32_t i = 0;
    while (t->rows[i].request_id != id) {
        i++;
    }
    return i;
}

static void check_agents(const struct trace *t)
{
    const uint32_t *source = t->graph->source;
    ck_assert_ptr_nonnull(source);
    ck_assert_uint_eq(t->graph->n_groups, 1);
    uint32_t text = (uint32_t)t->n;
    ck_assert_uint_eq(source[row_of(t, 10)], text);
    ck_assert_uint_eq(source[row_of(t, 11)], text);
    ck_assert_uint_eq(source[row_of(t, 12)], row_of(t, 10));
    ck_assert_uint_eq(source[row_of(t, 13)], row_of(t, 10)); /* the turn before */
    ck_assert_uint_eq(source[row_of(t, 14)], text);
    ck_assert_uint_eq(source[row_of(t, 15)], TRACE_NO_ROW);
}

START_TEST(a_prompt_has_the_source_that_its_line_names)
{
    struct trace t;
    ck_assert_msg(read_text(VERSION COLUMNS AGENTS, &t) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    check_agents(&t);
    trace_fini(&t);
}
END_TEST

START_TEST(what_is_written_is_read_with_the_same_hash)
{
    struct trace t;
    struct trace again;
    ck_assert_int_eq(read_text(VERSION COLUMNS AGENTS, &t), 0);
    const char *path = tempfile_make(".csv");
    ck_assert_int_eq(trace_write(path, &t, &e), 0);
    ck_assert_int_eq(trace_read(path, &again, &e), 0);
    tempfile_remove();
    check_agents(&again);
    ck_assert_uint_eq(t.hash, again.hash);
    trace_fini(&again);
    trace_fini(&t);
}
END_TEST

/* A session alone that names the turn before it: stated, and so it stays when it is written. */
START_TEST(the_turn_before_may_be_named_too)
{
    static const char rows[] = "0,0,0,reactive,1,,20,3,0,0,0,,,\n1,0,1,reactive,,1,40,3,20,0,0,,";
    struct trace silent;
    struct trace named;
    char text[1024];
    (void)snprintf(text, sizeof text, VERSION COLUMNS "%s,\n", rows);
    ck_assert_int_eq(read_text(text, &silent), 0);
    ck_assert_ptr_null(silent.graph->source);
    (void)snprintf(text, sizeof text, VERSION COLUMNS "%s0,\n", rows);
    ck_assert_int_eq(read_text(text, &named), 0);
    ck_assert_ptr_nonnull(named.graph->source);
    ck_assert_uint_eq(named.graph->source[1], 0);
    ck_assert_uint_ne(silent.hash, named.hash);
    trace_fini(&silent);
    trace_fini(&named);
}
END_TEST

/* Prefixes are 150 + 150 + 220 + 230 + 120. The system prompt is computed once: 150 less, and not
 * of what could be reused. */
START_TEST(the_shareable_tokens_are_all_but_the_first_of_each)
{
    struct trace t;
    ck_assert_int_eq(read_text(VERSION COLUMNS AGENTS, &t), 0);
    uint64_t by_class[REQUEST_CLASS_COUNT];
    ck_assert_uint_eq(trace_shareable_tokens(&t, by_class), 870 - 150);
    ck_assert_uint_eq(by_class[REQUEST_CLASS_REACTIVE], 150 + 230 + 120);
    ck_assert_uint_eq(by_class[REQUEST_CLASS_PROACTIVE], 220);
    trace_fini(&t);
}
END_TEST

START_TEST(a_part_keeps_its_sources_and_no_row_loses_its_own)
{
    struct trace t;
    struct trace part;
    ck_assert_int_eq(read_text(VERSION COLUMNS AGENTS, &t), 0);
    bool keep[6] = {false};
    keep[row_of(&t, 11)] = keep[row_of(&t, 15)] = true;
    ck_assert_int_eq(trace_subset(&t, keep, &part), 0);
    ck_assert_uint_eq(part.graph->source[row_of(&part, 11)], part.n);
    trace_fini(&part);
    keep[row_of(&t, 12)] = true; /* which waits for 10, and begins like it */
    ck_assert_int_eq(trace_subset(&t, keep, &part), -EINVAL);
    trace_fini(&t);
}
END_TEST

START_TEST(a_source_that_cannot_be_is_refused_with_its_line)
{
#define FIRST "0,0,0,reactive,1,,20,10,0,0,0,,,\n"
    static const struct {
        const char *rows, *says;
    } bad[] = {
        {FIRST "1,1,0,reactive,2,,40,9,20,0,0,,7,\n", ":4: request 1: column prefix_of: there is"},
        {FIRST "1,1,0,reactive,2,,40,9,31,0,0,,0,\n", "more than prompt and answer of request 0"},
        {FIRST "1,1,0,reactive,2,,40,9,20,3,0,,0,\n", "a prompt begins with one text"},
        {FIRST "1,1,0,reactive,2,,40,9,20,0,0,,1,\n", "begins with itself"},
        {"0,0,0,reactive,1,,20,9,5,0,0,,1,\n1,1,0,reactive,2,,40,9,5,0,0,,0,\n", "with itself"},
        {FIRST "1,1,0,reactive,2,,40,9,41,0,0,,0,\n", "larger than input_tokens"},
        {FIRST "1,1,0,reactive,2,,40,9,20,0,0,,,\n", "neither prefix_of nor prefix_group names"},
        {FIRST "1,1,0,reactive,2,,40,9,20,0,0,,x,\n", "prefix_of"},
        {"0,0,0,reactive,1,,20,10,9,4,0,,,\n1,0,1,reactive,,2,40,9,31,0,0,,,\n",
         "more than prompt and answer of request 0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct trace t;
        char text[1024];
        (void)snprintf(text, sizeof text, VERSION COLUMNS "%s", bad[i].rows);
        ck_assert_int_eq(read_text(text, &t), -EINVAL);
        ck_assert_msg(strstr(e.lines[0], bad[i].says) != NULL, "%zu: \"%s\"", i, e.lines[0]);
        err_fini(&e);
        e = (struct err)ERR_INIT;
    }
}
END_TEST

/* A group means nothing in the first version, and prefix_of needs the second. */
START_TEST(the_first_version_names_no_content)
{
    static const char head[] = "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"
                               "output_tokens,prefix_tokens,";
    struct trace t;
    char text[512];
    (void)snprintf(text, sizeof text, "%sprefix_group\n0,0,0,reactive,1,,9,9,0,3\n", head);
    ck_assert_int_eq(read_text(text, &t), 0);
    ck_assert_ptr_null(t.graph);
    trace_fini(&t);
    (void)snprintf(text, sizeof text, "%sprefix_of\n0,0,0,reactive,1,,9,9,0,\n", head);
    ck_assert_int_eq(read_text(text, &t), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.lines[0], "prefix_of"));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("trace content", .setup = setup, .teardown = teardown),
    TEST(a_prompt_has_the_source_that_its_line_names),
    TEST(what_is_written_is_read_with_the_same_hash),
    TEST(the_turn_before_may_be_named_too),
    TEST(the_shareable_tokens_are_all_but_the_first_of_each),
    TEST(a_part_keeps_its_sources_and_no_row_loses_its_own),
    TEST(a_source_that_cannot_be_is_refused_with_its_line),
    TEST(the_first_version_names_no_content),
};
SUITE_MAIN("trace_content", suite)
