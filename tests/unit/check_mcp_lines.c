/* `xpusim mcp` takes messages and gives answers, tested line by line and whole. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/commands/mcp_tools.h"
#include "sim/base/json.h"
#include "sim/base/version.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

static char *answers(const char *lines)
{
    folder_put("in", lines);
    ck_assert_ptr_nonnull(freopen("in", "rb", stdin));
    static const char *const none[] = {NULL};
    struct said s = commanded(&cmd_mcp, none);
    ck_assert_int_eq(s.status, EXIT_OK);
    ck_assert_str_eq(s.err, "");
    free(s.err);
    return s.out;
}

static void answer_is(const char *line, const char *want)
{
    OWNED char *is = answers(line);
    OWNED char *whole = xformat("%s%s", want, want[0] != '\0' ? "\n" : "");
    ck_assert_str_eq(is, whole);
}

#define ERROR(id_, code_, message_)                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":" id_ ",\"error\":{\"code\":" code_ ",\"message\":\"" message_    \
    "\"}}"
#define REQUEST(id_, method_, rest_)                                                               \
    "{\"jsonrpc\":\"2.0\",\"id\":" id_ ",\"method\":\"" method_ "\"" rest_ "}"
#define PARSE ERROR("null", "-32700", "a message is a line of JSON")
#define NONE "not a request of JSON-RPC 2.0"

static const struct {
    const char *line, *answer;
} lines[] = {
    {REQUEST("1", "ping", ""), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"},
    {REQUEST("\"x\"", "ping", ",\"params\":{}"),
     "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}"},
    /* An identifier comes back with all its digits. */
    {REQUEST("9007199254740991", "ping", ""),
     "{\"jsonrpc\":\"2.0\",\"id\":9007199254740991,\"result\":{}}"},
    /* a notification, an empty line and an answer have none */
    {"{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}", ""},
    {" \t\r\n\n", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":1}", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{}}", ""},
    /* These are no message, or none of this kind. */
    {"{\"jsonrpc\":", PARSE},
    {"{} {}", PARSE},
    {REQUEST("1", "ping", "") " x", PARSE},
    {"7", ERROR("null", "-32600", NONE)},
    {"[]", ERROR("null", "-32600", NONE)},
    {"{\"id\":3,\"method\":\"ping\"}", ERROR("3", "-32600", NONE)},
    {"{\"jsonrpc\":\"1.0\",\"id\":3,\"method\":\"ping\"}", ERROR("3", "-32600", NONE)},
    {"{\"jsonrpc\":2.0,\"id\":3,\"method\":\"ping\"}", ERROR("3", "-32600", NONE)},
    {REQUEST("null", "ping", ""), ERROR("null", "-32600", NONE)},
    {REQUEST("[1]", "ping", ""), ERROR("null", "-32600", NONE)},
    {REQUEST("4", "ping", ",\"params\":[1]"), ERROR("4", "-32600", NONE)},
    {"{\"jsonrpc\":\"2.0\",\"id\":5}", ERROR("5", "-32600", "a request has a method")},
    {"{\"jsonrpc\":\"2.0\"}", ERROR("null", "-32600", "a request has a method")},
    {"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7}", ERROR("5", "-32600", "a request has a method")},
    {REQUEST("6", "tools", ""), ERROR("6", "-32601", "no such method")},
    {REQUEST("7", "initialize", ""),
     ERROR("7", "-32602", "initialize needs protocolVersion as a text")},
    {REQUEST("7", "initialize", ",\"params\":{\"protocolVersion\":1}"),
     ERROR("7", "-32602", "initialize needs protocolVersion as a text")},
    {REQUEST("8", "tools/call", ",\"params\":{\"arguments\":{}}"),
     ERROR("8", "-32602", "tools/call needs a name, and arguments as an object")},
    {REQUEST("8", "tools/call", ",\"params\":{\"name\":\"list\",\"arguments\":[]}"),
     ERROR("8", "-32602", "tools/call needs a name, and arguments as an object")},
    {REQUEST("9", "tools/call", ",\"params\":{\"name\":\"sweep\",\"arguments\":{}}"),
     ERROR("9", "-32602", "there is no such tool: tools/list names them")},
    {REQUEST("9", "tools/call", ",\"params\":{\"name\":\"list\",\"arguments\":{\"A\":1}}"),
     "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
     "\"argument "
     "\\\"A\\\": must be an option's name with a text, a number, true, false, or a list of "
     "these\"}],\"isError\":true}}"},
};

START_TEST(each_message_has_its_answer)
{
    answer_is(lines[_i].line, lines[_i].answer);
}
END_TEST

/* All of them after each other, with an end of line at the end or not. */
START_TEST(messages_are_answered_in_turn)
{
    SCOPED(text_fini) struct text in = {0};
    SCOPED(text_fini) struct text want = {0};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        text_format(&in, "%s%s", i > 0 ? "\n" : "", lines[i].line);
        text_format(&want, "%s%s", lines[i].answer, lines[i].answer[0] != '\0' ? "\n" : "");
    }
    OWNED char *is = answers(text_end(&in));
    ck_assert_str_eq(is, text_end(&want));
}
END_TEST

/* A revision that is known is taken; the newest answers any other. */
START_TEST(a_client_is_greeted)
{
    static const char *const asked[] = {"2025-11-25", "2025-06-18", "2025-03-26",
                                        "2024-11-05", "1999-01-01", ""};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        OWNED char *line = xformat(
            REQUEST("1", "initialize", ",\"params\":{\"protocolVersion\":\"%s\"}"), asked[i]);
        OWNED char *is = answers(line);
        SCOPED(json_drop) cJSON *tree = cJSON_Parse(is);
        const cJSON *r = cJSON_GetObjectItem(tree, "result");
        const char *said = json_string(r, "protocolVersion");
        ck_assert_str_eq(said, i < 4 ? asked[i] : "2025-11-25");
        OWNED char *can = cJSON_PrintUnformatted(cJSON_GetObjectItem(r, "capabilities"));
        ck_assert_str_eq(can, "{\"tools\":{}}");
        OWNED char *info = cJSON_PrintUnformatted(cJSON_GetObjectItem(r, "serverInfo"));
        ck_assert_str_eq(info, "{\"name\":\"xpusim\",\"version\":\"" XPUSIM_VERSION "\"}");
        ck_assert_uint_gt(strlen(json_string(r, "instructions")), 100);
    }
}
END_TEST

START_TEST(tools_are_listed)
{
    OWNED char *is = answers(REQUEST("1", "tools/list", ""));
    SCOPED(json_drop) cJSON *tools = mcp_tools_list();
    OWNED char *list = cJSON_PrintUnformatted(tools);
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(is);
    OWNED char *result = cJSON_PrintUnformatted(cJSON_GetObjectItem(tree, "result"));
    ck_assert_str_eq(result, list);
}
END_TEST

/* Commands of a tool run plug-ins in a jail, unless somebody has set XPUSIM_JAIL. */
START_TEST(plugins_of_a_model_are_confined)
{
    ck_assert_int_eq(unsetenv("XPUSIM_JAIL"), 0);
    answer_is("", "");
    ck_assert_str_eq(getenv("XPUSIM_JAIL"), "on");
    ck_assert_int_eq(setenv("XPUSIM_JAIL", "off", 1), 0);
    answer_is("", "");
    ck_assert_str_eq(getenv("XPUSIM_JAIL"), "off");
}
END_TEST

static const struct suite_row rows[] = {
    CASE("lines", .setup = folder_enter, .teardown = folder_leave),
    LOOP(each_message_has_its_answer, sizeof lines / sizeof lines[0]),
    TEST(messages_are_answered_in_turn),
    TEST(a_client_is_greeted),
    TEST(tools_are_listed),
    TEST(plugins_of_a_model_are_confined),
};
SUITE_MAIN("mcp", rows)
