#define _GNU_SOURCE /* posix_spawn_file_actions, environ */
#include "experiments/commands/mcp_tools.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "sim/base/input.h"
#include "sim/base/json.h"
#include "sim/base/words.h"

#define OPERANDS "operands" /* the argument for words that belong to no option */

static const struct {
    const char *name, *command;
} tools[] = {{"list", "list"},       {"run", "run"},         {"compare", "compare"},
             {"explain", "explain"}, {"falsify", "falsify"}, {"judge", "arena judge"}};
#define N_TOOLS (sizeof tools / sizeof tools[0])

static const struct command *command_of(const char *full)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    OWNED char *first = xformat("%.*s", (int)strcspn(full, " "), full);
    const struct command *c = command_find(first, &e);
    for (const struct command *const *s = c->subcommands; s != NULL && *s != NULL; s++) {
        c = strcmp((*s)->name, full) == 0 ? *s : c;
    }
    return c;
}

/* ---- schemas of arguments ---- */

static cJSON *of_type(const char *type)
{
    return JSON_MEMBERS(cJSON_CreateObject(), "type", type);
}

static cJSON *list_of(const char *type)
{
    cJSON *o = of_type("array");
    cJSON_AddItemToObject(o, "items", of_type(type));
    return o;
}

static cJSON *within(cJSON *o, const struct option_row *row)
{
    bool bounded = row->max > row->min;
    return JSON_MEMBERS(o, "minimum", FRAME_IF(bounded, row->min), "maximum",
                        FRAME_IF(bounded, row->max));
}

static cJSON *schema_of(const struct option_row *row)
{
    cJSON *o = NULL;
    switch (row->kind) {
    case OPTION_KIND_FLAG:
        return of_type("boolean");
    case OPTION_KIND_COUNT:
        return within(of_type("integer"), row);
    case OPTION_KIND_SEED:
        return of_type("integer");
    case OPTION_KIND_NUMBER:
        return within(of_type("number"), row);
    case OPTION_KIND_TEXTS:
        return list_of("string");
    case OPTION_KIND_CHOICE:
        o = of_type("string");
        cJSON *all = cJSON_AddArrayToObject(o, "enum");
        for (const char *const *c = row->choices; *c != NULL; c++) {
            cJSON_AddItemToArray(all, cJSON_CreateString(*c));
        }
        return o;
    case OPTION_KIND_OWN:
        return row->value == NULL ? of_type("boolean")
               : row->repeats     ? list_of("string")
                                  : of_type("string");
    case OPTION_KIND_NUMBERS: /* "0.5,0.9" */
    case OPTION_KIND_TEXT:
        break;
    }
    return of_type("string");
}

/* Adds an option. The output options are left out, because results are always JSON. */
static void add_property(void *properties, const struct option_child *child,
                         const struct option_row *row, const char *name)
{
    if (child == NULL || row->hidden || child->table == &option_output_table ||
        child->table == &option_json_table || child->table == &option_quiet_table) {
        return;
    }
    cJSON_AddItemToObject(properties, name, JSON_MEMBERS(schema_of(row), "description", row->help));
}

static cJSON *tool_of(size_t i)
{
    const struct command *c = command_of(tools[i].command);
    OWNED char *text = xformat("%s. %s\nUsage: %s %s", c->summary, c->about, c->name, c->usage);
    cJSON *tool = JSON_MEMBERS(cJSON_CreateObject(), "name", tools[i].name, "description", text);
    cJSON *schema = of_type("object");
    cJSON_AddItemToObject(tool, "inputSchema", schema);
    cJSON *properties = cJSON_AddObjectToObject(schema, "properties");
    options_visit(c, add_property, properties);
    if (c->operands.max > 0) {
        cJSON_AddItemToObject(properties, OPERANDS,
                              JSON_MEMBERS(list_of("string"), "description", c->operands.name));
    }
    if (c->operands.min > 0) {
        cJSON *required = cJSON_AddArrayToObject(schema, "required");
        cJSON_AddItemToArray(required, cJSON_CreateString(OPERANDS));
    }
    cJSON_AddFalseToObject(schema, "additionalProperties");
    return tool;
}

cJSON *mcp_tools_list(void)
{
    cJSON *result = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(result, "tools");
    for (size_t i = 0; i < N_TOOLS; i++) {
        cJSON_AddItemToArray(list, tool_of(i));
    }
    return result;
}

/* ---- arguments as a command line ---- */

/* Adds a word, and frees the text. */
static void add(struct texts *w, char *text)
{
    texts_add(w, text);
    free(text);
}

/* A value as a word. NULL: it is neither a text nor a number. */
static char *word_of(const cJSON *value)
{
    if (cJSON_IsString(value)) {
        return xstrdup(value->valuestring);
    }
    if (!cJSON_IsNumber(value)) {
        return NULL;
    }
    double v = value->valuedouble;
    return v == floor(v) && fabs(v) < 9e15 ? xformat("%.0f", v) : xformat("%.17g", v);
}

/* Every call has these. */
static const char *const always[] = {"json", "quiet", NULL};

/* Adds --name=value for each value. False: a value has a wrong type. The command checks names. */
static bool add_argument(struct texts *w, const cJSON *it, bool operands)
{
    bool there = cJSON_IsTrue(it) && !operands && words_find(always, it->string) >= 0;
    if (cJSON_IsFalse(it) || cJSON_IsNull(it) || there) {
        return true;
    }
    if (cJSON_IsTrue(it) && !operands) {
        add(w, xformat("--%s", it->string));
        return true;
    }
    bool list = cJSON_IsArray(it);
    for (const cJSON *v = list ? it->child : it; v != NULL; v = list ? v->next : NULL) {
        OWNED char *word = word_of(v);
        if (word == NULL) {
            return false;
        }
        add(w, operands ? xstrdup(word) : xformat("--%s=%s", it->string, word));
    }
    return true;
}

/* Makes the words of the command. Returns an error, which the caller frees, or NULL. */
static char *command_line(const char *command, const cJSON *arguments, struct texts *w)
{
    add(w, xstrdup("xpusim"));
    for (const char *at = command; *at != '\0'; at += at[0] == ' ') {
        size_t n = strcspn(at, " ");
        add(w, xformat("%.*s", (int)n, at));
        at += n;
    }
    const cJSON *operands = NULL;
    const cJSON *it = NULL;
    cJSON_ArrayForEach (it, arguments) {
        bool own = strcmp(it->string, OPERANDS) == 0;
        operands = own ? it : operands;
        bool named =
            it->string[0] != '\0' &&
            strspn(it->string, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(it->string);
        if (!named || (!own && !add_argument(w, it, false))) {
            return xformat("argument \"%s\": must be an option's name with a text, a number, true, "
                           "false, or a list of these",
                           it->string);
        }
    }
    for (int i = 0; always[i] != NULL; i++) {
        add(w, xformat("--%s", always[i]));
    }
    add(w, xstrdup("--"));
    return operands == NULL || add_argument(w, operands, true)
               ? NULL
               : xstrdup("argument \"" OPERANDS "\": must be a text or a list of texts");
}

/* ---- the command's process ---- */

static void add_text(cJSON *content, const char *text)
{
    if (text[0] != '\0') {
        cJSON_AddItemToArray(content, JSON_MEMBERS(of_type("text"), "text", text));
    }
}

static cJSON *result_of(int status, const char *out, const char *err)
{
    cJSON *result = cJSON_CreateObject();
    cJSON *content = cJSON_AddArrayToObject(result, "content");
    cJSON *tree = cJSON_Parse(out);
    add_text(content, out);
    add_text(content, err);
    if (cJSON_IsObject(tree)) {
        cJSON_AddItemToObject(result, "structuredContent", tree);
    } else {
        cJSON_Delete(tree);
    }
    cJSON_AddBoolToObject(result, "isError", status != 0);
    return result;
}

/* Runs the command in its own process, because it may use all memory, or a policy may end it. */
static cJSON *start(struct texts *w)
{
    FILE *out = tmpfile();
    FILE *err = tmpfile();
    if (out == NULL || err == NULL) {
        out_of_memory(0);
    }
    posix_spawn_file_actions_t files;
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, fileno(out), STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&files, fileno(err), STDERR_FILENO);
    w->v = xgrow(w->v, w->n, sizeof *w->v);
    w->v[w->n] = NULL; /* the end of the arguments */
    pid_t pid = 0;
    int rc = posix_spawn(&pid, "/proc/self/exe", &files, NULL, w->v, environ);
    int status = 1;
    while (rc == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    (void)posix_spawn_file_actions_destroy(&files);
    OWNED char *said = input_said(out);
    OWNED char *complaint = input_said(err);
    return result_of(status, said, rc == 0 ? complaint : strerror(rc));
}

cJSON *mcp_tools_call(const char *name, const cJSON *arguments)
{
    for (size_t i = 0; i < N_TOOLS; i++) {
        if (strcmp(tools[i].name, name) == 0) {
            SCOPED(texts_fini) struct texts w = {.v = NULL};
            OWNED char *wrong = command_line(tools[i].command, arguments, &w);
            return wrong == NULL ? start(&w) : result_of(2, "", wrong);
        }
    }
    return NULL;
}
