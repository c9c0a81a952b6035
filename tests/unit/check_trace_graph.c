/* Request graphs in files: what a line says, what is refused, and what a graph looks like. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

#define HEAD                                                                                       \
    "# xpusim-trace v2\n"                                                                          \
    "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,"   \
    "background,ends_with,parent_ids\n"
/* A parent, two children after gaps, the parent's next turn that waits for both, a background
 * request that ends with that turn, and another job of one request. */
#define DIAMOND                                                                                    \
    "0,0,0,reactive,1,,200,30,0,0,,\n"                                                             \
    "1,1,0,proactive,,0.5,300,20,0,0,,0\n"                                                         \
    "2,2,0,proactive,,0.25,100,20,0,0,,0+2\n"                                                      \
    "3,0,1,reactive,,1,400,20,230,0,,1;2+3.5\n"                                                    \
    "4,4,0,proactive,,0,500,40,0,1,3,0\n"                                                          \
    "9,9,0,reactive,0.5,,10,10,0,0,,\n"

static struct err e;
static char path[] = "/tmp/xpusim-graph-XXXXXX";

static void setup(void)
{
    e = (struct err)ERR_INIT;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
}

static void teardown(void)
{
    (void)unlink(path);
    (void)strcpy(path + strlen(path) - 6, "XXXXXX");
    err_fini(&e);
}

static int read_text(const char *text, struct trace *t)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
    return trace_read(path, t, &e);
}

static uint32_t row_of(const struct trace *t, uint32_t id)
{
    uint32_t i = 0;
    while (t->rows[i].request_id != id) {
        i++;
    }
    return i;
}

/* The gap of the edge between two requests; -1: there is none. */
static int64_t gap_of(const struct trace *t, uint32_t from, uint32_t to)
{
    const struct trace_graph *g = t->graph;
    uint32_t row = row_of(t, from);
    for (uint32_t k = g->first[row]; k < g->first[row + 1]; k++) {
        if (g->edges[k].row == row_of(t, to)) {
            return g->edges[k].gap_ns;
        }
    }
    return -1;
}

static void check_diamond(const struct trace *t)
{
    const struct trace_graph *g = t->graph;
    ck_assert_ptr_nonnull(g);
    ck_assert_uint_eq(t->n, 6);
    ck_assert_uint_eq(t->n_first, 2); /* 9 at 0.5 s, 0 at 1 s */
    ck_assert_uint_eq(t->rows[0].request_id, 9);
    ck_assert_uint_eq(t->rows[1].request_id, 0);
    ck_assert_int_eq(gap_of(t, 0, 1), 0);
    ck_assert_int_eq(gap_of(t, 0, 2), 2 * NS_PER_S);
    ck_assert_int_eq(gap_of(t, 0, 3), 0); /* the turn before, unsaid */
    ck_assert_int_eq(gap_of(t, 1, 3), 0);
    ck_assert_int_eq(gap_of(t, 2, 3), 7 * NS_PER_S / 2);
    ck_assert_int_eq(gap_of(t, 0, 4), 0);
    ck_assert_int_eq(gap_of(t, 3, 4), -1);
    ck_assert_uint_eq(g->n_parents[row_of(t, 3)], 3);
    ck_assert_int_eq(t->rows[row_of(t, 3)].arrival_ns, NS_PER_S);
    ck_assert_uint_eq(t->rows[row_of(t, 0)].next, row_of(t, 3));
    ck_assert_uint_eq(g->n_jobs, 2);
    ck_assert_uint_eq(g->job[0], 0);
    for (uint32_t id = 0; id <= 4; id++) {
        ck_assert_uint_eq(g->job[row_of(t, id)], 1);
        ck_assert_uint_eq(g->background[row_of(t, id)], id == 4);
    }
    ck_assert_uint_eq(g->ends_with[row_of(t, 4)], row_of(t, 3));
    ck_assert_uint_eq(g->ends_with[row_of(t, 3)], TRACE_NO_ROW);
}

START_TEST(a_graph_is_read_as_it_is_written)
{
    struct trace t;
    struct trace again;
    ck_assert_msg(read_text(HEAD DIAMOND, &t) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    check_diamond(&t);
    ck_assert_int_eq(trace_write(path, &t, &e), 0);
    ck_assert_int_eq(trace_read(path, &again, &e), 0);
    check_diamond(&again);
    ck_assert_uint_eq(t.hash, again.hash);
    ck_assert_uint_eq(t.hash, trace_hash(&t));
    trace_fini(&again);
    trace_fini(&t);
}
END_TEST

START_TEST(every_part_of_a_graph_is_in_its_hash)
{
    static const char *const other[] = {
        HEAD "0,0,0,reactive,1,,200,30,0,0,,\n1,1,0,proactive,,0.5,300,20,0,0,,0\n",
        HEAD "0,0,0,reactive,1,,200,30,0,0,,\n1,1,0,proactive,,0.5,300,20,0,0,,0+1\n",
        HEAD "0,0,0,reactive,1,,200,30,0,0,,\n1,1,0,proactive,,0.5,300,20,0,1,,0\n",
        HEAD "0,0,0,reactive,1,,200,30,0,0,,\n1,1,0,proactive,,0.5,300,20,0,0,0,0\n",
        HEAD "0,0,0,reactive,1,,200,30,0,0,,\n1,1,0,proactive,0.5,,300,20,0,0,,\n",
    };
    uint64_t seen[5];
    for (size_t i = 0; i < 5; i++) {
        struct trace t;
        ck_assert_msg(read_text(other[i], &t) == 0, "%s", e.n > 0 ? e.lines[0] : "");
        seen[i] = t.hash;
        for (size_t k = 0; k < i; k++) {
            ck_assert_uint_ne(seen[k], seen[i]);
        }
        trace_fini(&t);
    }
}
END_TEST

/* The diamond has 0, then 1 and 2 and 4, then 3: three levels, of which the widest has three. One
 * request is alone. If all are answered at once, 2 arrives 2 + 0.25 s after 0, and 3 another 3.5 +
 * 1 s later. */
START_TEST(depth_and_width_are_as_by_hand)
{
    struct trace t;
    struct trace_graph_stats s;
    ck_assert_int_eq(read_text(HEAD DIAMOND, &t), 0);
    trace_graph_stats(&t, &s);
    ck_assert_uint_eq(s.jobs, 2);
    ck_assert_uint_eq(s.forks, 1);
    ck_assert_uint_eq(s.joins, 1);
    ck_assert_uint_eq(s.background, 1);
    ck_assert_uint_eq(s.depth, 3);
    ck_assert_uint_eq(s.width, 3);
    ck_assert_double_eq(s.depth_mean, 2.0);
    ck_assert_double_eq(s.width_mean, 2.0);
    ck_assert_double_eq(s.gaps_s, 6.75);
    ck_assert_double_eq(s.gaps_s_mean, 6.75 / 2);
    trace_fini(&t);
    /* No request waits for one that comes 9 s later in the background. */
    ck_assert_int_eq(read_text(HEAD "0,0,0,reactive,1,,200,30,0,0,,\n"
                                    "1,1,0,proactive,,9,300,20,0,1,,0\n",
                               &t),
                     0);
    trace_graph_stats(&t, &s);
    ck_assert_double_eq(s.gaps_s, 0.0);
    trace_fini(&t);
}
END_TEST

/* 0 ends, its client's next job begins with 1, whose next turn is 2. The first has one level; the
 * second has two, counted from its own beginning. Written and read it is the same. */
START_TEST(a_job_may_wait_for_another_job)
{
    static const char text[] =
        "# xpusim-trace v2\n"
        "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,"
        "starts_job,parent_ids\n"
        "0,0,0,reactive,1,,200,30,0,0,\n"
        "1,1,0,reactive,,2,300,20,0,1,0\n"
        "2,1,1,reactive,,1,400,20,320,0,\n";
    struct trace t;
    struct trace again;
    struct trace_graph_stats s;
    ck_assert_msg(read_text(text, &t) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    ck_assert_int_eq(trace_write(path, &t, &e), 0);
    ck_assert_int_eq(trace_read(path, &again, &e), 0);
    ck_assert_uint_eq(t.hash, again.hash);
    for (uint32_t id = 0; id <= 2; id++) {
        ck_assert_uint_eq(again.graph->job[row_of(&again, id)], id > 0);
        ck_assert_uint_eq(again.graph->starts_job[row_of(&again, id)], id == 1);
    }
    trace_graph_stats(&again, &s);
    ck_assert_uint_eq(s.jobs, 2);
    ck_assert_uint_eq(s.depth, 2);
    ck_assert_double_eq(s.depth_mean, 1.5);
    ck_assert_double_eq(s.gaps_s, 1.0); /* from 1 on: the 2 s before it are no part of its job */
    again.graph->starts_job[row_of(&again, 1)] = false;
    ck_assert_uint_ne(t.hash, trace_hash(&again));
    trace_fini(&again);
    trace_fini(&t);
}
END_TEST

START_TEST(a_part_keeps_its_edges_and_no_row_loses_a_parent)
{
    struct trace t;
    struct trace part;
    ck_assert_int_eq(read_text(HEAD DIAMOND, &t), 0);
    bool keep[6] = {false};
    keep[row_of(&t, 0)] = keep[row_of(&t, 2)] = true;
    ck_assert_int_eq(trace_subset(&t, keep, &part), 0);
    ck_assert_uint_eq(part.n, 2);
    ck_assert_int_eq(gap_of(&part, 0, 2), 2 * NS_PER_S);
    trace_fini(&part);
    keep[row_of(&t, 0)] = false;
    ck_assert_int_eq(trace_subset(&t, keep, &part), -EINVAL);
    trace_fini(&t);
}
END_TEST

/* Request 1 ends with request 0. Without that nothing ends it. */
START_TEST(a_part_without_what_ends_a_row_keeps_the_row)
{
    struct trace t;
    struct trace part;
    ck_assert_int_eq(read_text("# xpusim-trace v2\n"
                               "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"
                               "output_tokens,prefix_tokens,ends_with\n"
                               "0,0,0,reactive,0,,9,9,0,\n"
                               "1,1,0,reactive,0,,9,9,0,0\n",
                               &t),
                     0);
    bool keep[2] = {false};
    keep[row_of(&t, 1)] = true;
    ck_assert_int_eq(trace_subset(&t, keep, &part), 0);
    ck_assert(part.n == 1 && part.rows[0].request_id == 1);
    ck_assert(part.graph == NULL || part.graph->ends_with[0] == TRACE_NO_ROW);
    trace_fini(&part);
    trace_fini(&t);
}
END_TEST

START_TEST(what_is_no_graph_is_refused_with_its_line)
{
    static const struct {
        const char *rows, *says;
    } bad[] = {
        {"0,0,0,reactive,1,,9,9,0,0,,7\n", ":3: "},
        {"0,0,0,reactive,,1,9,9,0,0,,7\n", "there is no request 7"},
        {"0,0,0,reactive,,1,9,9,0,0,,0\n", "waits for itself"},
        {"0,0,0,reactive,,1,9,9,0,0,,1\n1,1,0,reactive,,1,9,9,0,0,,0\n", "waits for itself"},
        {"0,0,0,reactive,1,,9,9,0,0,,\n1,1,0,reactive,,1,9,9,0,0,,0;0\n", "waits twice"},
        {"0,0,0,reactive,1,,9,9,0,0,,\n1,0,1,reactive,,1,9,9,0,0,,0\n", "waits twice"},
        {"0,0,0,reactive,1,,9,9,0,0,9,\n", "ends_with: there is no other request 9"},
        {"0,0,0,reactive,1,,9,9,0,0,0,\n", "ends_with: there is no other request 0"},
        {"0,0,0,reactive,1,,9,9,0,2,,\n", "background"},
        {"0,0,0,reactive,1,,9,9,0,0,,\n1,1,0,reactive,2,1,9,9,0,0,,0\n", "must be empty"},
        {"0,0,0,reactive,1,,9,9,0,0,,\n1,1,0,reactive,,,9,9,0,0,,0\n", "needed for turn 0 after"},
        {"0,0,0,reactive,1,,9,9,0,0,,\n1,1,0,reactive,,1,9,9,0,0,,0+\n", "request ids with gaps"},
        {"0,0,0,reactive,1,,9,9,0,0,,\n1,1,0,reactive,,1,9,9,0,0,,0+-1\n", "request ids with gaps"},
        {"0,0,0,reactive,1,,9,9,0,0,,\n1,1,0,reactive,,1,9,9,0,0,,0;\n", "request ids with gaps"},
        {"0,0,0,reactive,1,,9,9,0,0,,\n1,1,0,reactive,,1,9,9,0,0,,x\n", "request ids with gaps"},
        {"0,0,0,reactive,1,,9,9,0,0,,\n1,1,0,reactive,,1,9,9,0,0,,4294967296\n",
         "request ids with gaps"},
        {"0,0,1,reactive,,1,9,9,0,0,,\n", "turn 1 has no turn 0 before it"},
        {"0,0,0,reactive,999999999,,9,9,0,0,,\n1,1,0,reactive,,999999999,9,9,0,0,,0\n",
         "over 31 years"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct trace t;
        char text[1024];
        (void)snprintf(text, sizeof text, HEAD "%s", bad[i].rows);
        ck_assert_int_eq(read_text(text, &t), -EINVAL);
        ck_assert_msg(strstr(e.lines[0], bad[i].says) != NULL, "%zu: \"%s\"", i, e.lines[0]);
        err_fini(&e);
        e = (struct err)ERR_INIT;
    }
}
END_TEST

/* Chains of turns are chains, with any first line. */
START_TEST(the_first_version_has_no_graph)
{
    static const char rows[] = "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"
                               "output_tokens,prefix_tokens\n"
                               "0,0,0,reactive,1,,9,9,0\n1,0,1,reactive,,1,20,9,10\n";
    struct trace one;
    struct trace two;
    char text[512];
    (void)snprintf(text, sizeof text, "# xpusim-trace v1\n%s", rows);
    ck_assert_int_eq(read_text(text, &one), 0);
    ck_assert_ptr_null(one.graph);
    (void)snprintf(text, sizeof text, "# xpusim-trace v2\n%s", rows);
    ck_assert_int_eq(read_text(text, &two), 0);
    ck_assert_ptr_nonnull(two.graph);
    ck_assert_int_eq(gap_of(&two, 0, 1), 0);
    ck_assert_int_eq(two.rows[1].arrival_ns, one.rows[1].arrival_ns);
    trace_fini(&one);
    trace_fini(&two);
    ck_assert_int_eq(read_text("# xpusim-trace v3\n", &one), -EINVAL);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("trace graph", .setup = setup, .teardown = teardown),
    TEST(a_graph_is_read_as_it_is_written),
    TEST(every_part_of_a_graph_is_in_its_hash),
    TEST(depth_and_width_are_as_by_hand),
    TEST(a_job_may_wait_for_another_job),
    TEST(a_part_keeps_its_edges_and_no_row_loses_a_parent),
    TEST(a_part_without_what_ends_a_row_keeps_the_row),
    TEST(what_is_no_graph_is_refused_with_its_line),
    TEST(the_first_version_has_no_graph),
};
SUITE_MAIN("trace_graph", suite)
