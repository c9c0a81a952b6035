/* Traces of weka: which subagents a request has waited for, at the instant where that changes. */
#include <stdio.h>

#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/traces.h"

#define MS (NS_PER_S / 1000)

static struct err err;
static struct trace t;
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

static int import(const char *text)
{
    struct trace_import_losses lost;
    struct trace_import_options o = TRACE_IMPORT_DEFAULTS;
    tempfile_put(text);
    t = (struct trace){0};
    return trace_import(&o, path, &t, &lost, &err);
}

static uint32_t row_of(uint32_t id)
{
    uint32_t i = 0;
    while (i < t.n && t.rows[i].request_id != id) {
        i++;
    }
    ck_assert_uint_lt(i, t.n);
    return i;
}

#define SESSION(requests)                                                                          \
    "{\"id\":\"s\",\"models\":[\"m\"],\"block_size\":64,\"hash_id_scope\":\"local\",\"requests\":" \
    "[" requests "]}\n"
#define REQUEST(t, more) "{\"t\":" t ",\"type\":\"n\",\"model\":\"m\",\"in\":64,\"out\":2" more "}"

/* A subagent works from 1 s on, and its parent sends the next request at 4 s. It has waited for a
 * subagent that ends before that or just then, and not for one that ends a ms later. */
START_TEST(weka_subagents_that_end_just_in_time_are_waited_for)
{
    static const char *const takes[] = {"2.999", "3", "3.001"};
    for (int i = 0; i < 3; i++) {
        static const char first[] = REQUEST("0", ",\"api_time\":0.5");
        static const char last[] = REQUEST("4", "");
        char text[1024];
        (void)snprintf(text, sizeof text,
                       SESSION("%s,{\"t\":1,\"type\":\"subagent\",\"requests\":"
                               "[{\"t\":1,\"type\":\"n\",\"model\":\"m\",\"in\":64,\"out\":2,"
                               "\"api_time\":%s}]},%s"),
                       first, takes[i], last);
        ck_assert_int_eq(import(text), 0);
        uint32_t nested = row_of(1);
        uint32_t next = row_of(2);
        ck_assert(t.graph->background[nested] == (i == 2));
        ck_assert_uint_eq(t.graph->n_parents[next], i == 2 ? 1 : 2);
        ck_assert_int_eq(t.rows[next].arrival_ns, i == 0 ? MS : i == 1 ? 0 : 3500 * MS);
        trace_fini(&t);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("import weka", .setup = setup, .teardown = teardown),
    TEST(weka_subagents_that_end_just_in_time_are_waited_for),
};
SUITE_MAIN("import weka", suite)
