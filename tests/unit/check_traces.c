/* A written trace file reads back to equal bytes, and its turns are linked. Every malformed file
 * gets an error with its line and column. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/traces.h"

#define HEADER                                                                                     \
    "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens"

static struct err err;
static const char *path;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    path = tempfile_make("");
}

static void teardown(void)
{
    err_fini(&err);
    tempfile_remove();
}

static void read_well(const char *text, struct trace *t)
{
    tempfile_put(text);
    int rc = trace_read(path, t, &err);
    ck_assert_msg(rc == 0, "%s", err.n > 0 ? err.lines[0] : "no message");
}

/* The printed form; caller frees. */
static char *printed(const struct trace *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    trace_print(out, t);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

static void expect_same(const struct trace *a, const struct trace *b)
{
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_uint_eq(a->n_first, b->n_first);
    ck_assert_uint_eq(a->hash, b->hash);
    for (size_t i = 0; i < a->n; i++) {
        const struct trace_row *x = &a->rows[i], *y = &b->rows[i];
        ck_assert_int_eq(x->arrival_ns, y->arrival_ns);
        ck_assert_uint_eq(x->request_id, y->request_id);
        ck_assert_uint_eq(x->session_id, y->session_id);
        ck_assert_uint_eq(x->input_tokens, y->input_tokens);
        ck_assert_uint_eq(x->output_tokens, y->output_tokens);
        ck_assert_uint_eq(x->prefix_tokens, y->prefix_tokens);
        ck_assert_uint_eq(x->max_output_tokens, y->max_output_tokens);
        ck_assert_uint_eq(x->next, y->next);
        ck_assert_uint_eq(x->turn, y->turn);
        ck_assert_uint_eq(x->cls, y->cls);
        ck_assert_int_eq(x->after_tool, y->after_tool);
    }
}

/* Prints, reads, prints: the same rows and the same bytes. */
static void expect_round_trip(const struct trace *t)
{
    char *first = printed(t);
    struct trace again;
    read_well(first, &again);
    char *second = printed(&again);
    size_t at = 0; /* where they part; whole traces would be too long a message */
    while (first[at] != '\0' && first[at] == second[at]) {
        at++;
    }
    ck_assert_msg(first[at] == second[at], "byte %zu: %.60s, not %.60s", at, &second[at],
                  &first[at]);
    expect_same(t, &again);
    trace_fini(&again);
    free(first);
    free(second);
}

/* ---- round trips ---- */

static const char FULL[] =
    "# xpusim-trace v1\n" HEADER ",max_output_tokens,gap_kind,client_id,priority,prefix_group,"
    "ttft_slo_ms,tbt_slo_ms,deadline_s,cancel_s\n"
    "0,7,0,reactive,0,,100,20,0,256,think,7,0,0,,,,\n"
    "4,8,0,proactive,0.000000001,,1,1,0,1,think,3,-5,2,250,40.5,12,0.000001\n"
    "2,9,0,reactive,100,,5,6,0,6,think,9,1000000,0,0.000001,,,3600\n"
    "1,7,1,reactive,,2.5,140,7,120,512,tool,7,0,0,,,,\n"
    "3,7,2,proactive,,0,150,8,147,1024,think,7,-1,0,,100,0,\n";

START_TEST(a_file_in_our_own_form_comes_back_byte_by_byte)
{
    struct trace t;
    read_well(FULL, &t);
    char *text = printed(&t);
    ck_assert_str_eq(text, FULL);
    free(text);
    ck_assert_uint_eq(t.n, 5);
    ck_assert_uint_eq(t.n_first, 3);
    ck_assert_int_eq(t.rows[1].arrival_ns, 1);
    ck_assert_int_eq(t.rows[2].arrival_ns, 100 * NS_PER_S);
    ck_assert_int_eq(t.rows[3].arrival_ns, 2500 * NS_PER_MS);
    ck_assert_int_eq(t.extras[1].ttft_slo_ns, 250 * NS_PER_MS);
    ck_assert_int_eq(t.extras[1].tbt_slo_ns, 40500 * NS_PER_US);
    ck_assert_int_eq(t.extras[1].deadline_ns, 12 * NS_PER_S);
    ck_assert_int_eq(t.extras[1].cancel_ns, 1000);
    ck_assert_int_eq(t.extras[1].priority, -5);
    ck_assert_uint_eq(t.extras[1].client_id, 3);
    ck_assert_uint_eq(t.extras[1].prefix_group, 2);
    ck_assert_int_eq(t.extras[2].ttft_slo_ns, 1);
    ck_assert_int_eq(t.extras[2].tbt_slo_ns, TIME_NEVER_NS);
    ck_assert_int_eq(t.extras[4].deadline_ns, 0);
    ck_assert(t.rows[3].after_tool && !t.rows[4].after_tool);
    trace_fini(&t);
}
END_TEST

static int64_t any_ns(struct rng *r, int64_t below)
{
    return (int64_t)(rng_uniform(r) * (double)below);
}

/* Instants to the nanosecond over the 31 years that the format gives a session. */
START_TEST(random_traces_come_back_byte_by_byte)
{
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, (uint64_t)_i, 0));
    bool extras = _i % 2 == 1;
    int64_t horizon = _i < 4 ? 1000 * NS_PER_S : 1000000000 * NS_PER_S;
    struct trace_builder b;
    trace_builder_init(&b);
    for (uint32_t s = 0; s < 300; s++) {
        uint32_t turns = 1 + rng_below(&r, 4);
        for (uint16_t turn = 0; turn < turns; turn++) {
            struct trace_row row = {.session_id = s,
                                    .turn = turn,
                                    .cls = (uint8_t)rng_below(&r, 2),
                                    .after_tool = turn > 0 && rng_below(&r, 2) == 1,
                                    .arrival_ns = any_ns(&r, horizon / turns),
                                    .input_tokens = 1 + rng_below(&r, 10000),
                                    .output_tokens = 1 + rng_below(&r, 5000)};
            row.prefix_tokens = turn > 0 ? rng_below(&r, row.input_tokens + 1) : 0;
            row.max_output_tokens = row.output_tokens + rng_below(&r, 100);
            struct trace_extra x = trace_extra_none();
            x.client_id = rng_below(&r, 10);
            x.priority = (int32_t)rng_below(&r, 2001) - 1000;
            x.prefix_group = rng_below(&r, 3);
            int64_t *optional[] = {&x.ttft_slo_ns, &x.tbt_slo_ns, &x.deadline_ns, &x.cancel_ns,
                                   &x.until_ns};
            for (int k = 0; k < 5; k++) {
                *optional[k] = rng_below(&r, 2) == 1 ? any_ns(&r, horizon) : TIME_NEVER_NS;
            }
            trace_builder_add(&b, &row, extras ? &x : NULL);
        }
    }
    struct trace t;
    ck_assert_int_eq(trace_build(&b, true, "random", &t, &err), 0);
    trace_builder_fini(&b);
    ck_assert_uint_eq(t.n_first, 300);
    expect_round_trip(&t);
    trace_fini(&t);
}
END_TEST

START_TEST(generated_traces_come_back_byte_by_byte)
{
    static const char *const specs[] = {"mixed:duration_s=3000", "w1:n=2000",
                                        "mixed:reactive=mtrag,sessions=1,duration_s=2000",
                                        "mixed:reactive=bfcl_multiturn,sessions=1,duration_s=2000",
                                        "mixed:arrival=closed,users=7,duration_s=1000"};
    struct trace t;
    ck_assert_int_eq(trace_generate(specs[_i], 5, 1.0, &t, &err), 0);
    ck_assert_uint_gt(t.n, 50);
    expect_round_trip(&t);
    trace_fini(&t);
}
END_TEST

START_TEST(a_written_file_reads_back_and_a_failed_one_leaves_nothing)
{
    struct trace t, again;
    read_well(FULL, &t);
    tempfile_put("");
    ck_assert_int_eq(trace_write(path, &t, &err), 0);
    ck_assert_int_eq(trace_read(path, &again, &err), 0);
    expect_same(&t, &again);
    ck_assert_int_eq(trace_write("/nonexistent/trace.csv", &t, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "/nonexistent/trace.csv: "));
    trace_fini(&t);
    trace_fini(&again);
}
END_TEST

/* ---- meaning ---- */

START_TEST(rows_in_any_order_are_sorted_and_linked)
{
    /* Arrivals are 5 (id 30), 2 (id 10), 5 (id 20) and 9 (id 40). So the order is 10, 30, 20, 40,
     * with the two at 5 as in the file. Then later turns follow by session: session 1 has ids 11,
     * 12, and session 3 has id 31. */
    struct trace t;
    read_well(HEADER "\n"
                     "12,1,2,reactive,,3,9,1,0\n"
                     "30,3,0,proactive,5,,9,1,0\n"
                     "10,1,0,reactive,2,,9,1,0\n"
                     "20,2,0,reactive,5,,9,1,0\n"
                     "31,3,1,proactive,,4,9,1,0\n"
                     "11,1,1,reactive,,6,9,1,0\n"
                     "40,4,0,reactive,9,,9,1,0\n",
              &t);
    static const uint32_t ids[] = {10, 30, 20, 40, 11, 12, 31};
    static const uint32_t next[] = {4,           6, TRACE_NO_ROW, TRACE_NO_ROW, 5, TRACE_NO_ROW,
                                    TRACE_NO_ROW};
    ck_assert_uint_eq(t.n, 7);
    ck_assert_uint_eq(t.n_first, 4);
    for (size_t i = 0; i < 7; i++) {
        ck_assert_uint_eq(t.rows[i].request_id, ids[i]);
        ck_assert_uint_eq(t.rows[i].next, next[i]);
    }
    ck_assert_ptr_null(t.extras);
    trace_fini(&t);
}
END_TEST

START_TEST(what_a_file_leaves_out_has_its_default)
{
    /* Columns are in another order, without a version line, with CRLF, comments and blank lines.
     * Without a limit 20 tokens get 256, and 200 get the first power of two >= 400, 512. Without a
     * client the session is it. */
    struct trace t;
    read_well("session_id,request_id,class,turn,gap_s,arrival_s,output_tokens,input_tokens,"
              "prefix_tokens,priority\r\n"
              "# a comment\r\n"
              "\r\n"
              "5,1,reactive,0,,1.5,20,10,0,\r\n"
              "\"6\",2,\"proactive\",0,,2,200,10,0,3",
              &t);
    ck_assert_uint_eq(t.n, 2);
    ck_assert_int_eq(t.rows[0].arrival_ns, 1500 * NS_PER_MS);
    ck_assert_uint_eq(t.rows[0].max_output_tokens, 256);
    ck_assert_uint_eq(t.rows[1].max_output_tokens, 512);
    ck_assert_uint_eq(t.rows[1].cls, 1);
    ck_assert_uint_eq(t.extras[0].client_id, 5);
    ck_assert_int_eq(t.extras[0].priority, 0);
    ck_assert_int_eq(t.extras[0].cancel_ns, TIME_NEVER_NS);
    ck_assert_uint_eq(t.extras[1].client_id, 6);
    ck_assert_int_eq(t.extras[1].priority, 3);
    trace_fini(&t);
}
END_TEST

START_TEST(the_default_limit_is_a_power_of_two_and_at_least_twice_the_output)
{
    static const uint32_t pairs[][2] = {{1, 256},    {128, 256},   {129, 512},   {256, 512},
                                        {257, 1024}, {1000, 2048}, {1024, 2048}, {5000, 16384}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        ck_assert_uint_eq(trace_default_limit(pairs[i][0]), pairs[i][1]);
    }
}
END_TEST

START_TEST(every_field_counts_in_the_hash)
{
    /* FULL with one field changed, in each column but turn (which needs its session): all hashes
     * differ. */
    static const char *const edits[][2] = {{"\n4,8", "\n5,8"},
                                           {"4,8,0,", "4,6,0,"},
                                           {"2,9,0,reactive", "2,9,0,proactive"},
                                           {"0.000000001", "0.000000002"},
                                           {",2.5,", ",2.4,"},
                                           {",100,20,", ",101,20,"},
                                           {",20,0,", ",21,0,"},
                                           {"140,7,120", "140,7,121"},
                                           {",512,", ",513,"},
                                           {"tool", "think"},
                                           {"think,3,", "think,4,"},
                                           {",-5,", ",-6,"},
                                           {"-5,2,", "-5,1,"},
                                           {",250,", ",251,"},
                                           {"40.5", "40.4"},
                                           {",12,0.0", ",13,0.0"},
                                           {"0.000001\n2", "0.000002\n2"}};
    enum { N = sizeof edits / sizeof edits[0] };
    uint64_t hashes[N + 1];
    for (size_t i = 0; i <= N; i++) {
        char text[sizeof FULL + 8];
        memcpy(text, FULL, sizeof FULL);
        if (i < N) {
            char *at = strstr(text, edits[i][0]);
            ck_assert_msg(at != NULL, "%s", edits[i][0]);
            (void)snprintf(at, sizeof text - (size_t)(at - text), "%s%s", edits[i][1],
                           FULL + (at - text) + strlen(edits[i][0]));
        }
        struct trace t;
        read_well(text, &t);
        hashes[i] = t.hash;
        trace_fini(&t);
        for (size_t j = 0; j < i; j++) {
            ck_assert_msg(hashes[j] != hashes[i], "edits %zu and %zu", j, i);
        }
    }
}
END_TEST

/* ---- malformed files ---- */

#define GOOD "1,1,0,reactive,0,,10,5,0\n"

/* A file, how many errors it gives, and what the last of them must contain. */
struct bad {
    const char *text;
    size_t n;
    const char *has[2];
};

static const struct bad BAD[] = {
    {"", 1, {"empty"}},
    {"# xpusim-trace v1\n", 1, {"empty"}},
    {HEADER "\n", 1, {"no requests"}},
    {"# xpusim-trace v3\n" HEADER "\n" GOOD, 1, {"xpusim-trace v3", "v1"}},
    {"# xpusim-trace v10\n" HEADER "\n" GOOD, 1, {"xpusim-trace v10"}},
    {HEADER ",colour\n1,1,0,reactive,0,,10,5,0,red\n", 1, {"unknown column \"colour\""}},
    {HEADER ",turn\n1,1,0,reactive,0,,10,5,0,0\n", 1, {":1:", "\"turn\" is given twice"}},
    /* Required columns are removed. */
    {"session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens\n",
     1,
     {"no column \"request_id\""}},
    {"request_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens\n",
     1,
     {"no column \"session_id\""}},
    {"request_id,session_id,turn,class,arrival_s,gap_s\n",
     3,
     {"no column \"prefix_tokens\"", "request_id,session_id,turn"}},
    /* This is a log of the user's own, without 8 of the columns. One error shows how to import it.
     */
    {"start,prompt_tokens,output_tokens\n0,5,5\n",
     1,
     {"is no xpusim trace", "`xpusim trace import`"}},
    {"# xpusim-run v1\nrequest_id,arrival_s,input_tokens,output_tokens,e2e_s\n0,0,5,5,1\n",
     1,
     {"begins as the format \"plain\" does"}},
    {HEADER "\n" GOOD "2,2,0,reactive,0,,10,5\n", 1, {":3:", "8 fields, the header has 9"}},
    {HEADER "\n" GOOD "2,2,0,reactive,0,,10,5,0,0\n", 1, {":3:", "10 fields"}},
    {HEADER "\n" GOOD "2,2,0,\"reactive,0,,10,5,0\n", 1, {":3:"}},
    {HEADER "\n" GOOD "2,2,0,rea\"ctive,0,,10,5,0\n", 1, {":3:"}},
    /* Each has one wrong value, on line 3. */
    {HEADER "\n" GOOD "x,2,0,reactive,0,,10,5,0\n", 1, {":3:", "column request_id: \"x\""}},
    {HEADER "\n" GOOD "-1,2,0,reactive,0,,10,5,0\n", 1, {":3:", "column request_id: \"-1\""}},
    {HEADER "\n" GOOD "4294967295,2,0,reactive,0,,10,5,0\n", 1, {":3:", "column request_id"}},
    {HEADER "\n" GOOD "2,,0,reactive,0,,10,5,0\n", 1, {":3:", "column session_id: \"\""}},
    {HEADER "\n" GOOD "2,1.5,0,reactive,0,,10,5,0\n", 1, {":3:", "column session_id: \"1.5\""}},
    {HEADER "\n" GOOD "2,2,65536,reactive,1,,10,5,0\n", 1, {":3:", "column turn: \"65536\""}},
    {HEADER "\n" GOOD "2,2,0,Reactive,0,,10,5,0\n", 1, {":3:", "column class: \"Reactive\""}},
    {HEADER "\n" GOOD "2,2,0,reactive,-1,,10,5,0\n", 1, {":3:", "column arrival_s: \"-1\""}},
    {HEADER "\n" GOOD "2,2,0,reactive,nan,,10,5,0\n", 1, {":3:", "column arrival_s: \"nan\""}},
    {HEADER "\n" GOOD "2,2,0,reactive,inf,,10,5,0\n", 1, {":3:", "column arrival_s: \"inf\""}},
    {HEADER "\n" GOOD "2,2,0,reactive,1s,,10,5,0\n", 1, {":3:", "column arrival_s: \"1s\""}},
    {HEADER "\n" GOOD "2,2,0,reactive,1e10,,10,5,0\n", 1, {":3:", "column arrival_s: \"1e10\""}},
    {HEADER "\n" GOOD "2,2,0,reactive,,,10,5,0\n", 1, {":3:", "column arrival_s: needed"}},
    {HEADER "\n" GOOD "2,2,0,reactive,0,1,10,5,0\n", 1, {":3:", "column gap_s: must be empty"}},
    {HEADER "\n" GOOD "2,1,1,reactive,,,10,5,0\n", 1, {":3:", "column gap_s: needed"}},
    /* 1e9 s is the most of one gap: 0.5 s + 1e9 s are too much together, said once */
    {HEADER
     "\n1,1,0,reactive,0.5,,10,5,0\n2,1,1,reactive,,1e9,10,5,0\n3,1,2,reactive,,1e9,10,5,0\n",
     1,
     {":3:", "column gap_s: session 1: arrival and gaps add up to over 31 years"}},
    {HEADER "\n" GOOD "2,1,1,reactive,,-2,10,5,0\n", 1, {":3:", "column gap_s: \"-2\""}},
    {HEADER "\n" GOOD "2,1,1,reactive,1,1,10,5,0\n", 1, {":3:", "arrival_s: must be empty"}},
    {HEADER "\n" GOOD "2,2,0,reactive,0,,0,5,0\n", 1, {":3:", "column input_tokens: \"0\""}},
    {HEADER "\n" GOOD "2,2,0,reactive,0,,1e3,5,0\n", 1, {":3:", "column input_tokens: \"1e3\""}},
    {HEADER "\n" GOOD "2,2,0,reactive,0,,10,0,0\n", 1, {":3:", "column output_tokens: \"0\""}},
    {HEADER "\n" GOOD "2,2,0,reactive,0,,10,100000001,0\n", 1, {":3:", "column output_tokens"}},
    {HEADER "\n" GOOD "2,1,1,reactive,,1,10,5,11\n", 1, {":3:", "prefix_tokens: larger than"}},
    {HEADER "\n" GOOD "2,2,0,reactive,0,,10,5,1\n", 1, {":3:", "column prefix_tokens: must be 0"}},
    {HEADER "\n" GOOD "2,2,0,reactive,0,,10,5,\n", 1, {":3:", "column prefix_tokens: \"\""}},
    {HEADER ",max_output_tokens\n1,1,0,reactive,0,,10,5,0,4\n",
     1,
     {":2:", "max_output_tokens: smaller than output_tokens"}},
    {HEADER ",max_output_tokens\n1,1,0,reactive,0,,10,5,0,many\n", 2, {":2:", "max_output_tokens"}},
    {HEADER ",gap_kind\n1,1,0,reactive,0,,10,5,0,pause\n",
     1,
     {":2:", "column gap_kind: \"pause\""}},
    {HEADER ",client_id\n1,1,0,reactive,0,,10,5,0,-1\n", 1, {":2:", "column client_id: \"-1\""}},
    {HEADER ",prefix_group\n1,1,0,reactive,0,,10,5,0,a\n", 1, {":2:", "prefix_group: \"a\""}},
    {HEADER ",priority\n1,1,0,reactive,0,,10,5,0,high\n", 1, {":2:", "priority: \"high\""}},
    {HEADER ",priority\n1,1,0,reactive,0,,10,5,0,2000000\n", 1, {":2:", "priority: \"2000000\""}},
    {HEADER ",priority\n1,1,0,reactive,0,,10,5,0,1.5\n", 1, {":2:", "column priority: \"1.5\""}},
    {HEADER ",ttft_slo_ms\n1,1,0,reactive,0,,10,5,0,-1\n", 1, {":2:", "ttft_slo_ms: \"-1\""}},
    {HEADER ",tbt_slo_ms\n1,1,0,reactive,0,,10,5,0,1ms\n", 1, {":2:", "tbt_slo_ms: \"1ms\""}},
    {HEADER ",deadline_s\n1,1,0,reactive,0,,10,5,0,inf\n", 1, {":2:", "deadline_s: \"inf\""}},
    {HEADER ",cancel_s\n1,1,0,reactive,0,,10,5,0,x\n", 1, {":2:", "column cancel_s: \"x\""}},
    {HEADER ",parent_ids\n1,1,0,reactive,0,,10,5,0,7\n", 1, {":2:", "column parent_ids"}},
    /* what only the whole file shows */
    {HEADER "\n" GOOD "1,2,0,reactive,0,,10,5,0\n",
     1,
     {":3:", "column request_id: 1 is given twice"}},
    {HEADER "\n" GOOD "2,1,0,reactive,3,,10,5,0\n", 1, {"session 1 starts twice"}},
    {HEADER "\n" GOOD "2,2,1,reactive,,1,10,5,0\n", 1, {":3:", "session 2: turn 1 has no turn 0"}},
    {HEADER "\n" GOOD "2,1,2,reactive,,1,10,5,0\n", 1, {":3:", "session 1: turn 2 has no turn 1"}},
    {HEADER "\n2,1,1,reactive,,1,10,5,0\n", 1, {":2:", "session 1: turn 1 has no turn 0"}},
    {HEADER "\n" GOOD "2,1,1,reactive,,1,10,5,0\n3,1,1,reactive,,1,10,5,0\n",
     1,
     {":4:", "session 1: turn 1 is given twice"}},
    /* all of a file's errors come at once: lines 2, 3 (two), 5 */
    {HEADER "\nx,1,0,reactive,0,,10,5,0\n2,2,0,neither,,,10,5,0\n3,3,0,reactive,0,,10,5,0\n"
            "4,4,0,reactive,0,,10,5,0.5\n",
     4,
     {":5:", "column prefix_tokens: \"0.5\""}},
};

START_TEST(malformed_files_are_refused_with_line_and_column)
{
    const struct bad *b = &BAD[_i];
    struct trace t;
    tempfile_put(b->text);
    bool empty = strcmp(b->has[0], "no requests") == 0;
    ck_assert_int_eq(trace_read(path, &t, &err), empty ? -ENODATA : -EINVAL);
    ck_assert_msg(err.n == b->n, "case %d: %zu errors, not %zu; the first: %s", _i, err.n, b->n,
                  err.n > 0 ? err.lines[0] : "");
    ck_assert_ptr_null(t.rows);
    const char *line = err.lines[err.n - 1];
    ck_assert_msg(strncmp(line, path, strlen(path)) == 0, "case %d names no file: %s", _i, line);
    for (int k = 0; k < 2 && b->has[k] != NULL; k++) {
        ck_assert_msg(strstr(line, b->has[k]) != NULL, "case %d, no '%s' in: %s", _i, b->has[k],
                      line);
    }
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    struct trace t;
    ck_assert_int_eq(trace_read("/nonexistent.csv", &t, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "/nonexistent.csv: "));
}
END_TEST

/* ---- statistics ---- */

START_TEST(statistics_by_hand)
{
    /* Reactive first turns are at 0, 10, 40 s: 2 gaps in 40 s = 3 per minute. Gaps are 10 and 30,
     * with mean 20, standard deviation sqrt(200) = 14.1421 and CV 0.707107. Inputs are 100, 200,
     * 300 and, as a later turn, 400. Their mean is 250, p50 is value number 2 = 200, and p90 is
     * number 4. The prefix is 100 of 1000 tokens: 0.1. The proactive class has one request and no
     * rate. */
    struct trace t;
    read_well(HEADER "\n0,0,0,reactive,0,,100,1,0\n1,1,0,reactive,10,,200,2,0\n"
                     "2,2,0,reactive,40,,300,3,0\n3,3,0,proactive,45,,50,9,0\n"
                     "4,1,1,reactive,,7,400,10,100\n",
              &t);
    struct trace_stats s;
    trace_stats(&t, &s);
    ck_assert_uint_eq(s.n, 5);
    ck_assert_uint_eq(s.n_sessions, 4);
    ck_assert_double_eq_tol(s.span_s, 45.0, 1e-12);
    const struct trace_class_stats *c = &s.cls[0];
    ck_assert_uint_eq(c->n, 4);
    ck_assert_double_eq_tol(c->rate_per_min, 3.0, 1e-12);
    ck_assert_double_eq_tol(c->gap_cv, 0.70710678, 1e-8);
    ck_assert_double_eq_tol(c->input_mean, 250.0, 1e-12);
    ck_assert_double_eq(c->input_p50, 200.0);
    ck_assert_double_eq(c->input_p90, 400.0);
    ck_assert_double_eq(c->input_max, 400.0);
    ck_assert_double_eq_tol(c->output_mean, 4.0, 1e-12); /* (1 + 2 + 3 + 10) / 4 */
    ck_assert_double_eq(c->output_p50, 2.0);
    ck_assert_double_eq_tol(c->prefix_frac, 0.1, 1e-12);
    ck_assert_uint_eq(s.cls[1].n, 1);
    ck_assert_double_nan(s.cls[1].rate_per_min);
    ck_assert_double_nan(s.cls[1].gap_cv);
    ck_assert_double_eq(s.cls[1].output_p99, 9.0);
    trace_fini(&t);
}
END_TEST

/* 200 requests, inputs 1 to 200 in no order and outputs twice as large: the p-quantile is number
 * 200 p. */
START_TEST(quantiles_of_lengths_by_hand)
{
    char text[16384] = HEADER "\n";
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t k = i * 77 % 200 + 1; /* 77 and 200 have no common factor */
        char line[96];
        (void)snprintf(line, sizeof line, "%u,%u,0,reactive,%u,,%u,%u,0\n", i, i, i, k, 2 * k);
        strcat(text, line);
    }
    struct trace t;
    read_well(text, &t);
    struct trace_stats s;
    trace_stats(&t, &s);
    const struct trace_class_stats *c = &s.cls[0];
    const double got[] = {c->input_p50,  c->input_p90,  c->input_p99,  c->input_max,
                          c->output_p50, c->output_p90, c->output_p99, c->output_max};
    static const double want[] = {100, 180, 198, 200};
    for (int i = 0; i < 8; i++) {
        ck_assert_double_eq(got[i], i < 4 ? want[i] : 2.0 * want[i - 4]);
    }
    trace_fini(&t);
}
END_TEST

/* Targets of the command line are for requests that carry none, each target by itself. */
START_TEST(targets_of_a_trace_go_before_defaults)
{
    struct trace t;
    read_well(HEADER ",ttft_slo_ms,tbt_slo_ms\n"
                     "0,0,0,reactive,0,,10,5,0,700,\n"
                     "1,1,0,reactive,0,,10,5,0,,30\n"
                     "2,2,0,reactive,0,,10,5,0,,\n",
              &t);
    trace_set_slos(&t, 2000 * NS_PER_MS, 200 * NS_PER_MS);
    static const int64_t ttft_ms[] = {700, 2000, 2000};
    static const int64_t tbt_ms[] = {200, 30, 200};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(t.extras[i].ttft_slo_ns, ttft_ms[i] * NS_PER_MS);
        ck_assert_int_eq(t.extras[i].tbt_slo_ns, tbt_ms[i] * NS_PER_MS);
    }
    trace_fini(&t);
    read_well(HEADER "\n0,0,0,reactive,0,,10,5,0\n", &t);
    trace_set_slos(&t, TIME_NEVER_NS, 200 * NS_PER_MS);
    ck_assert_int_eq(t.extras[0].ttft_slo_ns, TIME_NEVER_NS);
    ck_assert_int_eq(t.extras[0].tbt_slo_ns, 200 * NS_PER_MS);
    trace_fini(&t);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("traces", .setup = setup, .teardown = teardown),
    TEST(a_file_in_our_own_form_comes_back_byte_by_byte),
    LOOP(random_traces_come_back_byte_by_byte, 6),
    LOOP(generated_traces_come_back_byte_by_byte, 5),
    TEST(a_written_file_reads_back_and_a_failed_one_leaves_nothing),
    TEST(rows_in_any_order_are_sorted_and_linked),
    TEST(what_a_file_leaves_out_has_its_default),
    TEST(targets_of_a_trace_go_before_defaults),
    TEST(the_default_limit_is_a_power_of_two_and_at_least_twice_the_output),
    TEST(every_field_counts_in_the_hash),
    LOOP(malformed_files_are_refused_with_line_and_column, (sizeof BAD / sizeof BAD[0])),
    TEST(a_missing_file_is_named),
    TEST(statistics_by_hand),
    TEST(quantiles_of_lengths_by_hand),
};
SUITE_MAIN("traces", suite)
