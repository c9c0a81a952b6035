/* Logs of one's own (`plain`): dates, ends of answers, users and tools. And columns that no
 * importer reads. */
#include <string.h>

#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/traces.h"

static struct trace t;
static struct trace_import_losses lost;

/* Returns the first error, kept, or NULL. */
static const char *error_as(const char *format, const char *text)
{
    SCOPED(err_fini) struct err err = ERR_INIT;
    struct trace_import_options o = TRACE_IMPORT_DEFAULTS;
    o.format = format;
    trace_fini(&t);
    const char *path = tempfile_make("");
    tempfile_put(text);
    int rc = trace_import(&o, path, &t, &lost, &err);
    tempfile_remove();
    return rc != 0 ? xkeep(xstrdup(err.lines[0])) : NULL;
}

static const char *error_of(const char *text)
{
    return error_as("plain", text);
}

static void import(const char *text)
{
    ck_assert_ptr_null(error_of(text));
}

static void teardown(void)
{
    trace_fini(&t);
}

/* A log by dates, with the ends of its answers: the second turn begins 9 - 4 = 5 s after the first
 * one's end, and the first request is at zero. Without dates seconds stay. Nothing has a use for
 * `kind`. */
START_TEST(plain_files_may_have_dates_ends_and_columns_without_a_use)
{
    import("arrival_s,kind,input_tokens,output_tokens,session_id,e2e_s\n"
           "2026-03-02 08:00:10,eve,10,5,a,4\n"
           "2026-03-02T08:00:19,eve,30,6,a,\n");
    ck_assert_uint_eq(t.n, 2);
    ck_assert_int_eq(t.rows[0].arrival_ns, 0);
    ck_assert_int_eq(t.rows[1].arrival_ns, 5 * NS_PER_S); /* a later turn's gap */
    ck_assert_uint_eq(lost.gaps_from_arrivals, 0);
    ck_assert_str_eq(lost.unread, "kind");
    import("arrival_s,input_tokens,output_tokens,session_id,e2e_s\n7,10,5,a,4\n");
    ck_assert_int_eq(t.rows[0].arrival_ns, 7 * NS_PER_S);
    ck_assert_ptr_null(lost.unread);
}
END_TEST

/* Seconds since 1970 keep their nanoseconds, which a double has not. The second row is 1 - 0.123456
 * s after the first, then 1 - 0.123456789 s. A tenth digit rounds. A time just below a second stays
 * there, although its double is the next second.*/
START_TEST(times_are_read_to_the_nanosecond)
{
    static const struct {
        const char *first, *second;
        int64_t apart_ns;
    } rows[] = {
        {"1715300000.123456", "1715300001", 876544000},
        {"1715300000.123456789", "1715300001.0", 876543211},
        {"1715300000.1234567894", "1715300001.00000000051", 876543212},
        {"1715300000.9999999", "1715300000.99999994", 40},
        {"1.7153e9", "1715300000.5", 500000000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        OWNED char *text = xformat("arrival_s,input_tokens,output_tokens\n%s,1,1\n%s,1,1\n",
                                   rows[i].first, rows[i].second);
        import(text);
        ck_assert_int_eq(t.rows[0].arrival_ns, 0);
        ck_assert_int_eq(t.rows[1].arrival_ns, rows[i].apart_ns);
    }
    ck_assert_ptr_nonnull(
        error_of("arrival_s,input_tokens,output_tokens\n99999999999999999999.5,1,1\n"));
}
END_TEST

/* The first row decides. Seconds next to dates would be fifty years apart. */
START_TEST(plain_files_have_dates_or_seconds)
{
    const char *const mixed[] = {"arrival_s,input_tokens,output_tokens\n5,10,5\n"
                                 "2026-03-02 08:00:10,10,5\n",
                                 "arrival_s,input_tokens,output_tokens\n2026-03-02 08:00:10,10,5\n"
                                 "5,10,5\n"};
    for (int i = 0; i < 2; i++) {
        const char *why = error_of(mixed[i]);
        ck_assert_ptr_nonnull(why);
        ck_assert_msg(strstr(why, ":3: column arrival_s: ") != NULL, "%s", why);
    }
}
END_TEST

/* Three sessions of two users: eve's two share a client, which is no session's number, and who has
 * no name is a client of its own. The second turn of session a follows a tool. */
START_TEST(plain_files_may_have_users_and_tools)
{
    import("arrival_s,input_tokens,output_tokens,session_id,user,after_tool\n"
           "0,10,5,a,eve,\n1,20,5,b,bob,0\n2,30,5,c,eve,0\n3,40,5,d,,\n4,50,5,a,eve,1\n");
    ck_assert_uint_eq(t.n, 5);
    const struct trace_extra *x = t.extras;
    ck_assert_uint_eq(x[0].client_id, x[2].client_id);
    ck_assert_uint_eq(x[0].client_id, x[4].client_id);
    ck_assert_uint_ne(x[0].client_id, x[1].client_id);
    ck_assert(x[0].client_id >= 5 && x[1].client_id >= 5);
    ck_assert_uint_eq(x[3].client_id, t.rows[3].session_id);
    ck_assert_uint_eq(t.rows[4].input_tokens, 50); /* the later turn */
    ck_assert(t.rows[4].after_tool && !t.rows[0].after_tool && !t.rows[1].after_tool);
    ck_assert_ptr_null(lost.unread);
}
END_TEST

/* Azure's file of 2025 says how many images a prompt has, which a trace cannot. An index that a
 * table wrote into the file has no name. */
START_TEST(azure_images_are_noted)
{
    ck_assert_ptr_null(error_as("azure", ",TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n"
                                         "0,2024-10-15T12:00:00.269Z,0,770,491\n"
                                         "1,2024-10-15T12:00:05.819Z,1,949,126\n"));
    ck_assert_uint_eq(t.n, 2);
    ck_assert_int_eq(t.rows[1].arrival_ns, 5550 * NS_PER_MS);
    ck_assert_uint_eq(t.rows[1].input_tokens, 949);
    ck_assert_str_eq(lost.unread, "NumImages");
}
END_TEST

/* One of four rows has no prompt, one no answer and one neither; the last counts as failed. A line
 * of Mooncake without a prompt is left out, too; in a session it is refused. */
START_TEST(requests_without_a_prompt_are_left_out)
{
    ck_assert_ptr_null(error_as("azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                                         "2023-11-16 18:00:00.0,374,44\n"
                                         "2023-11-16 18:00:01.0,0,109\n"
                                         "2023-11-16 18:00:02.0,5,0\n"
                                         "2023-11-16 18:00:03.0,0,0\n"));
    ck_assert_uint_eq(t.n, 1);
    ck_assert_uint_eq(lost.rows, 1);
    ck_assert_uint_eq(lost.promptless, 1);
    ck_assert_uint_eq(lost.failed, 2);
    ck_assert_ptr_null(error_as("mooncake",
                                "{\"timestamp\":0,\"input_length\":0,\"output_length\":9}\n"
                                "{\"timestamp\":5,\"input_length\":8,\"output_length\":9}\n"));
    ck_assert_uint_eq(t.n, 1);
    ck_assert_uint_eq(lost.promptless, 1);
    ck_assert_ptr_nonnull(strstr(error_of("arrival_s,input_tokens,output_tokens\n1,0,5\n"),
                                 "no requests: all 1 failed at their source or lack prompt"));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("import of own logs", .teardown = teardown),
    TEST(plain_files_may_have_dates_ends_and_columns_without_a_use),
    TEST(times_are_read_to_the_nanosecond),
    TEST(plain_files_have_dates_or_seconds),
    TEST(plain_files_may_have_users_and_tools),
    TEST(azure_images_are_noted),
    TEST(requests_without_a_prompt_are_left_out),
};
SUITE_MAIN("own logs", suite)
