/* The tools of `xpusim mcp`: what each takes, from the tables of its command, and the command line
 * that its arguments become. This program is started instead of xpusim, and says its words. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/commands/mcp_tools.h"
#include "sim/base/json.h"
#include "sim/base/scope.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "tests/helpers/suite.h"

#define ECHO "XPUSIM_CHECK_ECHO"

/* With the variable set, this program ends before its main: it prints its words, a line each, to
 * standard output, what follows the status in the variable to standard error, and ends with that
 * status. An object there is printed to standard output instead of the words. Standard input must
 * be empty. */
__attribute__((constructor)) static void say(int argc, char **argv)
{
    const char *how = getenv(ECHO);
    if (how != NULL) {
        const char *text = how + strcspn(how, ":") + 1;
        for (int i = 0; i < argc && text[0] != '{'; i++) {
            (void)printf("%s\n", argv[i]);
        }
        (void)fputs(getchar() == EOF ? "" : "there is input\n", stdout);
        (void)fputs(text, text[0] == '{' ? stdout : stderr);
        (void)fflush(NULL);
        _exit(atoi(how));
    }
}

static void asked(const char *tool, const char *arguments, const char *how, const char *want)
{
    ck_assert_int_eq(setenv(ECHO, how, 1), 0);
    SCOPED(json_drop) cJSON *given = cJSON_Parse(arguments);
    ck_assert_msg(given != NULL, "%s", arguments);
    SCOPED(json_drop) cJSON *result = mcp_tools_call(tool, given);
    ck_assert_ptr_nonnull(result);
    OWNED char *is = cJSON_PrintUnformatted(result);
    ck_assert_str_eq(is, want);
}

START_TEST(arguments_are_words)
{
    asked("run",
          "{\"policy\": \"edf\", \"operands\": [\"-x\", 7], \"steady\": true, \"quiet\": false,"
          " \"json\": null, \"set\": [\"a=b c\", 1.5, \"\"], \"seed\": 0, \"z-9\": \"9\"}",
          "0:",
          "{\"content\":[{\"type\":\"text\",\"text\":\"xpusim\\nrun\\n--policy=edf\\n--steady\\n"
          "--set=a=b c\\n--set=1.5\\n--set=\\n--seed=0\\n--z-9=9\\n--json\\n--quiet\\n--\\n-x\\n7"
          "\\n\"}],\"isError\":false}");
    /* Every call has these two; given, they are there once. */
    asked(
        "list", "{\"quiet\": true, \"json\": true}", "0:",
        "{\"content\":[{\"type\":\"text\",\"text\":\"xpusim\\nlist\\n--json\\n--quiet\\n--\\n\"}],"
        "\"isError\":false}");
    asked("judge", "{\"operands\": \"edf\"}", "0:",
          "{\"content\":[{\"type\":\"text\",\"text\":\"xpusim\\narena\\njudge\\n--json\\n--quiet\\n"
          "--\\nedf\\n\"}],\"isError\":false}");
    static const char *const same[] = {"list", "run", "compare", "explain", "falsify"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        OWNED char *want =
            xformat("{\"content\":[{\"type\":\"text\",\"text\":\"xpusim\\n%s\\n--json\\n--quiet\\n"
                    "--\\n\"}],\"isError\":false}",
                    same[i]);
        asked(same[i], "{}", "0:", want);
    }
    ck_assert_ptr_null(mcp_tools_call("arena judge", NULL));
    ck_assert_ptr_null(mcp_tools_call("", NULL));
}
END_TEST

/* Whole numbers of up to 9e15 have all their digits; others are read back as they are. */
START_TEST(numbers_are_words)
{
    asked("list", "{\"operands\": [0, -3, 1e15, 8999999999999999, 1e17, 0.1, -2.5, 1e-7]}", "0:",
          "{\"content\":[{\"type\":\"text\",\"text\":\"xpusim\\nlist\\n--json\\n--quiet\\n--\\n0\\n"
          "-3\\n1000000000000000\\n8999999999999999\\n1e+17\\n0.10000000000000001\\n-2.5\\n"
          "9.9999999999999995e-08\\n\"}],\"isError\":false}");
}
END_TEST

/* Both streams are texts of the answer, an empty one is left out; any status but 0 is an error; and
 * an object that is printed is data as well. */
START_TEST(answers_have_what_was_printed)
{
    asked("list", "{}", "1:why",
          "{\"content\":[{\"type\":\"text\",\"text\":\"xpusim\\nlist\\n--json\\n--quiet\\n--\\n\"},"
          "{\"type\":\"text\",\"text\":\"why\"}],\"isError\":true}");
    asked("list", "{}", "3:{\"a\": 1}",
          "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"a\\\": 1}\"}],"
          "\"structuredContent\":{\"a\":1},\"isError\":true}");
}
END_TEST

/* An argument that is no option's name, or no text and no number, is refused before anything
 * starts. */
START_TEST(arguments_of_no_use_are_refused)
{
    static const struct {
        const char *arguments, *name;
    } named[] = {{"{\"\": 1}", ""},
                 {"{\"A\": 1}", "A"},
                 {"{\"a b\": 1}", "a b"},
                 {"{\"a_b\": 1}", "a_b"},
                 {"{\"fine\": 1, \"policy\": {}}", "policy"},
                 {"{\"policy\": [[1]]}", "policy"},
                 {"{\"policy\": [\"a\", null]}", "policy"},
                 {"{\"policy\": [true]}", "policy"}};
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        OWNED char *want =
            xformat("{\"content\":[{\"type\":\"text\",\"text\":\"argument \\\"%s\\\": must be an "
                    "option's name with a text, a number, true, false, or a list of these\"}],"
                    "\"isError\":true}",
                    named[i].name);
        asked("run", named[i].arguments, "0:", want);
    }
    static const char *const operands[] = {"{\"operands\": true}", "{\"operands\": {\"a\": 1}}",
                                           "{\"operands\": [\"a\", []]}"};
    for (size_t i = 0; i < sizeof operands / sizeof operands[0]; i++) {
        asked(
            "run", operands[i], "0:",
            "{\"content\":[{\"type\":\"text\",\"text\":\"argument \\\"operands\\\": must be a text "
            "or a list of texts\"}],\"isError\":true}");
    }
    asked("run", "{\"operands\": false}", "0:",
          "{\"content\":[{\"type\":\"text\",\"text\":\"xpusim\\nrun\\n--json\\n--quiet\\n--\\n\"}],"
          "\"isError\":false}");
}
END_TEST

/* ---- what is offered ---- */

/* Makes the schema of an option by hand from its row. */
static cJSON *schema_of(const struct option_row *row)
{
    static const char *const types[] = {
        [OPTION_KIND_FLAG] = "boolean",  [OPTION_KIND_TEXT] = "string",
        [OPTION_KIND_TEXTS] = "array",   [OPTION_KIND_COUNT] = "integer",
        [OPTION_KIND_SEED] = "integer",  [OPTION_KIND_NUMBER] = "number",
        [OPTION_KIND_CHOICE] = "string", [OPTION_KIND_NUMBERS] = "string"};
    const char *type = row->kind != OPTION_KIND_OWN ? types[row->kind]
                       : row->value == NULL         ? "boolean"
                       : row->repeats               ? "array"
                                                    : "string";
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "type", type);
    if (strcmp(type, "array") == 0) {
        cJSON_AddItemToObject(o, "items", cJSON_Parse("{\"type\": \"string\"}"));
    }
    if ((row->kind == OPTION_KIND_COUNT || row->kind == OPTION_KIND_NUMBER) &&
        row->min < row->max) {
        cJSON_AddNumberToObject(o, "minimum", row->min);
        cJSON_AddNumberToObject(o, "maximum", row->max);
    }
    if (row->kind == OPTION_KIND_CHOICE) {
        int n = 0;
        while (row->choices[n] != NULL) {
            n++;
        }
        cJSON_AddItemToObject(o, "enum", cJSON_CreateStringArray(row->choices, n));
    }
    cJSON_AddStringToObject(o, "description", row->help);
    return o;
}

START_TEST(every_option_is_offered)
{
    static const struct {
        const char *name;
        const struct command *group;
        const char *command;
        bool needed; /* words that belong to no option */
    } tools[] = {{"list", NULL, "list", true},        {"run", NULL, "run", false},
                 {"compare", NULL, "compare", false}, {"explain", NULL, "explain", false},
                 {"falsify", NULL, "falsify", false}, {"judge", &cmd_arena, "arena judge", true}};
    SCOPED(json_drop) cJSON *all = mcp_tools_list();
    const cJSON *list = cJSON_GetObjectItem(all, "tools");
    ck_assert_int_eq(cJSON_GetArraySize(list), sizeof tools / sizeof tools[0]);
    for (int t = 0; t < cJSON_GetArraySize(list); t++) {
        const struct command *const *from =
            tools[t].group != NULL ? tools[t].group->subcommands : commands();
        const struct command *c = NULL;
        for (; *from != NULL; from++) {
            c = strcmp((*from)->name, tools[t].command) == 0 ? *from : c;
        }
        ck_assert_ptr_nonnull(c);
        SCOPED(json_drop) cJSON *want = cJSON_CreateObject();
        OWNED char *text = xformat("%s. %s\nUsage: %s %s", c->summary, c->about, c->name, c->usage);
        cJSON_AddStringToObject(want, "name", tools[t].name);
        cJSON_AddStringToObject(want, "description", text);
        cJSON *schema = cJSON_AddObjectToObject(want, "inputSchema");
        cJSON_AddStringToObject(schema, "type", "object");
        cJSON *properties = cJSON_AddObjectToObject(schema, "properties");
        uint32_t n = 0;
        for (const struct option_child *k = c->children; k->table != NULL; k++) {
            bool shows = k->table == &option_output_table || k->table == &option_json_table ||
                         k->table == &option_quiet_table;
            for (size_t i = 0; i < k->table->n && !shows; i++) {
                const struct option_row *row = &k->table->rows[i];
                OWNED char *name = xformat("%s%s", k->prefix != NULL ? k->prefix : "", row->name);
                if (!row->hidden) {
                    cJSON_AddItemToObject(properties, name, schema_of(row));
                    n++;
                }
            }
        }
        ck_assert_uint_gt(n, 3);
        if (c->operands.max > 0) {
            cJSON *o = cJSON_AddObjectToObject(properties, "operands");
            cJSON_AddStringToObject(o, "type", "array");
            cJSON_AddItemToObject(o, "items", cJSON_Parse("{\"type\": \"string\"}"));
            cJSON_AddStringToObject(o, "description", c->operands.name);
        }
        if (c->operands.min > 0) {
            cJSON_AddItemToObject(schema, "required", cJSON_Parse("[\"operands\"]"));
        }
        ck_assert_int_eq(c->operands.min > 0, tools[t].needed);
        cJSON_AddFalseToObject(schema, "additionalProperties");
        OWNED char *wanted = cJSON_PrintUnformatted(want);
        OWNED char *is = cJSON_PrintUnformatted(cJSON_GetArrayItem(list, t));
        ck_assert_str_eq(is, wanted);
    }
}
END_TEST

static const struct suite_row rows[] = {
    CASE("calls"),
    TEST(arguments_are_words),
    TEST(numbers_are_words),
    TEST(answers_have_what_was_printed),
    TEST(arguments_of_no_use_are_refused),
    TEST(every_option_is_offered),
};
SUITE_MAIN("mcp tools", rows)
