/* Traces mixed into one: numbers that both have stay apart, and what belongs together stays so. */
#include <string.h>

#include "sim/base/scope.h"
#include "sim/base/text.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

#define HEAD                                                                                       \
    "# xpusim-trace v2%s\nrequest_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"          \
    "output_tokens,prefix_tokens,prefix_group,prefix_of,parent_ids,ends_with,model\n"
/* A request with 100 tokens of group 5, a subagent that begins like it, and work that ends with it.
 * The model of all three is an argument. */
#define BODY(at, model)                                                                            \
    "0,0,0,reactive," at ",,200,10,100,5,,,," model                                                \
    "\n1,1,0,reactive,,0.5,250,10,210,,0,0,," model "\n2,2,0,proactive,3,,300,10,0,,,,1," model    \
    "\n"

static struct trace a, b, mixed;
static struct err err;

static void put(const char *name, const char *events, const char *body)
{
    OWNED char *text = xformat(HEAD "%s", events, body);
    folder_put(name, text);
}

static void setup(void)
{
    folder_enter();
    err = (struct err)ERR_INIT;
    put("a.csv", "", BODY("2", "big"));
    put("b.csv", "", BODY("1", "small"));
    a = b = mixed = (struct trace){0};
}

static void teardown(void)
{
    trace_fini(&a);
    trace_fini(&b);
    trace_fini(&mixed);
    err_fini(&err);
    folder_leave();
}

static uint32_t row_of(uint32_t id)
{
    uint32_t i = 0;
    while (i < mixed.n && mixed.rows[i].request_id != id) {
        i++;
    }
    ck_assert_msg(i < mixed.n, "no request %u", id);
    return i;
}

/* The largest number of the first is group 5, so the second's begin at 6. */
START_TEST(numbers_of_the_second_are_moved)
{
    ck_assert_int_eq(trace_read("a.csv", &a, &err) + trace_read("b.csv", &b, &err), 0);
    const struct trace both[] = {a, b};
    static const char *const names[] = {"a", "b"};
    ck_assert_int_eq(trace_mix(both, names, 2, &mixed, &err), 0);
    ck_assert_uint_eq(mixed.n, 6);
    ck_assert_uint_eq(mixed.graph->n_jobs, 4);
    for (uint32_t base = 0; base <= 6; base += 6) {
        const struct trace_graph *g = mixed.graph;
        uint32_t root = row_of(base);
        uint32_t child = row_of(base + 1);
        uint32_t ended = row_of(base + 2);
        ck_assert_uint_eq(mixed.rows[child].session_id, base + 1);
        ck_assert_uint_eq(mixed.extras[root].prefix_group, base == 0 ? 5 : 11);
        ck_assert_int_eq(mixed.rows[root].arrival_ns, base == 0 ? 2000000000 : 1000000000);
        ck_assert_uint_eq(g->first[root + 1] - g->first[root], 1);
        ck_assert_uint_eq(g->edges[g->first[root]].row, child);
        ck_assert_uint_eq(g->source[child], root);
        ck_assert_uint_eq(g->ends_with[ended], child);
        ck_assert_str_eq(g->models[g->model[child] - 1].name, base == 0 ? "big" : "small");
    }
    ck_assert_uint_ne(mixed.graph->source[row_of(0)], mixed.graph->source[row_of(6)]);
}
END_TEST

/* Sessions that are clients of their own stay so next to a file that names clients. */
START_TEST(what_only_one_file_states_holds_for_its_rows)
{
    folder_put("chains.csv", "# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,"
                             "input_tokens,output_tokens,prefix_tokens\n0,4,0,reactive,0,,50,5,0\n"
                             "1,4,1,reactive,,1,70,5,55\n");
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_trace, "mix", "a.csv", "chains.csv", "-o", "m.csv");
    ck_assert_msg(s.status == EXIT_OK, "%s", s.err);
    ck_assert_int_eq(trace_read("m.csv", &mixed, &err), 0);
    ck_assert_uint_eq(mixed.n, 5);
    uint32_t first = row_of(6);
    ck_assert_uint_eq(mixed.rows[first].next, row_of(7));
    ck_assert_uint_eq(mixed.extras[first].client_id, 10);
    ck_assert_uint_eq(mixed.rows[row_of(7)].prefix_tokens, 55);
    ck_assert_uint_eq(mixed.graph->source[row_of(7)], first); /* the turn before */
    ck_assert_uint_eq(mixed.graph->model[first], 0);          /* the default one */
}
END_TEST

/* A file is mixed with itself. Two rows have one session, client or shared text where they are of
 * one copy and have it in the file, and no number is of both copies. */
START_TEST(equal_numbers_of_two_files_are_not_one)
{
    folder_put("c.csv", "# xpusim-trace v2\nrequest_id,session_id,turn,class,arrival_s,gap_s,"
                        "input_tokens,output_tokens,prefix_tokens,client_id,prefix_group\n"
                        "0,0,0,reactive,1,,50,5,20,7,3\n1,1,0,reactive,2,,50,5,20,7,3\n"
                        "2,2,0,reactive,3,,50,5,20,8,4\n3,3,0,proactive,4,,50,5,0,9,\n");
    ck_assert_int_eq(trace_read("c.csv", &a, &err), 0);
    const struct trace both[] = {a, a};
    static const char *const names[] = {"c", "c"};
    ck_assert_int_eq(trace_mix(both, names, 2, &mixed, &err), 0);
    ck_assert_uint_eq(mixed.n, 8);
    for (uint32_t i = 0; i < 8; i++) {
        for (uint32_t k = 0; k < 8; k++) {
            /* The second copy's numbers begin at 10, behind client 9. */
            uint32_t at[2] = {row_of(i < 4 ? i : 6 + i), row_of(k < 4 ? k : 6 + k)};
            const struct trace_extra *x = &mixed.extras[at[0]];
            const struct trace_extra *y = &mixed.extras[at[1]];
            bool copy = i / 4 == k / 4;
            ck_assert_int_eq(x->client_id == y->client_id,
                             copy && a.extras[i % 4].client_id == a.extras[k % 4].client_id);
            ck_assert_int_eq(x->prefix_group == y->prefix_group,
                             (copy || i % 4 == 3) &&
                                 a.extras[i % 4].prefix_group == a.extras[k % 4].prefix_group);
            ck_assert_int_eq(mixed.rows[at[0]].session_id == mixed.rows[at[1]].session_id, i == k);
        }
    }
}
END_TEST

/* One machine cannot follow two lists of events. */
START_TEST(events_of_two_machines_are_refused)
{
    put("c.csv", " machine=[{\"at_s\":30,\"memory_mib\":2000}]", BODY("1", "big"));
    SCOPED(said_fini) struct said one = COMMANDED(cmd_trace, "mix", "a.csv", "c.csv");
    ck_assert_int_eq(one.status, EXIT_OK);
    ck_assert_ptr_nonnull(strstr(one.out, "machine=[{\"at_s\":30,\"memory_mib\":2000}]"));
    SCOPED(said_fini) struct said two = COMMANDED(cmd_trace, "mix", "c.csv", "c.csv");
    ck_assert_int_eq(two.status, EXIT_BAD_INPUT);
    ck_assert_str_eq(two.err,
                     "xpusim: error: c.csv: a trace before it has events of the machine, too\n");
}
END_TEST

static const struct suite_row rows[] = {
    CASE("mix", .setup = setup, .teardown = teardown),
    TEST(numbers_of_the_second_are_moved),
    TEST(what_only_one_file_states_holds_for_its_rows),
    TEST(equal_numbers_of_two_files_are_not_one),
    TEST(events_of_two_machines_are_refused),
};
SUITE_MAIN("trace mix", rows)
