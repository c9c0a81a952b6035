/* `xpusim mcp`: serves the Model Context Protocol (modelcontextprotocol.io, revision 2025-11-25)
 * over standard input and output. Each line is a message of JSON-RPC 2.0. */
#define _GNU_SOURCE /* getline */
#include "experiments/commands/commands.h"
#include "experiments/commands/mcp_tools.h"
#include "sim/base/json.h"
#include "sim/base/version.h"
#include "sim/base/words.h"

/* Errors of JSON-RPC 2.0, section 5.1. */
enum rpc_error {
    RPC_PARSE = -32700,
    RPC_REQUEST = -32600,
    RPC_METHOD = -32601,
    RPC_PARAMS = -32602
};

/* Revisions that begin with `initialize`, newest first. All have the same tools. */
static const char *const revisions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05",
                                        NULL};

static const char instructions[] =
    "xpusim simulates schedulers of LLM requests on laptops with an NPU, an iGPU and a CPU. `list` "
    "names policies, machines, models and metrics. `run` and `compare` simulate. `explain` says "
    "why a request took so long. `falsify` finds the scenario in which a policy loses most. "
    "`judge` scores a policy on a frozen suite. Arguments are the options of the commands.";

/* Answers with the result, which it takes, or if that is NULL with the error. */
static void answer(const cJSON *id, cJSON *result, enum rpc_error error, const char *why)
{
    SCOPED(json_drop) cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "jsonrpc", "2.0");
    cJSON_AddItemToObject(o, "id", id != NULL ? cJSON_Duplicate(id, true) : cJSON_CreateNull());
    if (result != NULL) {
        cJSON_AddItemToObject(o, "result", result);
    } else {
        JSON_MEMBERS(cJSON_AddObjectToObject(o, "error"), "code", error, "message", why);
    }
    OWNED char *line = json_text(o, false);
    (void)printf("%s\n", line);
    (void)fflush(stdout);
}

static cJSON *initialize(const cJSON *params)
{
    const cJSON *wanted = json_member(params, "protocolVersion");
    if (!cJSON_IsString(wanted)) {
        return NULL;
    }
    /* The answer to an unknown revision is the newest one, and the client decides. */
    int known = words_find(revisions, wanted->valuestring);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "protocolVersion", revisions[known > 0 ? known : 0]);
    cJSON_AddObjectToObject(cJSON_AddObjectToObject(o, "capabilities"), "tools");
    JSON_MEMBERS(cJSON_AddObjectToObject(o, "serverInfo"), "name", "xpusim", "version",
                 XPUSIM_VERSION);
    cJSON_AddStringToObject(o, "instructions", instructions);
    return o;
}

static void call(const cJSON *id, const cJSON *params)
{
    const cJSON *name = json_member(params, "name");
    const cJSON *arguments = json_member(params, "arguments");
    if (!cJSON_IsString(name) || (arguments != NULL && !cJSON_IsObject(arguments))) {
        answer(id, NULL, RPC_PARAMS, "tools/call needs a name, and arguments as an object");
        return;
    }
    answer(id, mcp_tools_call(name->valuestring, arguments), RPC_PARAMS,
           "there is no such tool: tools/list names them");
}

static void request(const cJSON *id, const char *method, const cJSON *params)
{
    if (strcmp(method, "initialize") == 0) {
        answer(id, initialize(params), RPC_PARAMS, "initialize needs protocolVersion as a text");
    } else if (strcmp(method, "ping") == 0) {
        answer(id, cJSON_CreateObject(), RPC_PARAMS, "");
    } else if (strcmp(method, "tools/list") == 0) {
        answer(id, mcp_tools_list(), RPC_PARAMS, "");
    } else if (strcmp(method, "tools/call") == 0) {
        call(id, params);
    } else {
        answer(id, NULL, RPC_METHOD, "no such method");
    }
}

static void receive(const cJSON *message)
{
    const cJSON *version = json_member(message, "jsonrpc");
    const cJSON *id = json_member(message, "id");
    const cJSON *method = json_member(message, "method");
    const cJSON *params = json_member(message, "params");
    bool named = cJSON_IsString(id) || cJSON_IsNumber(id);
    if (!cJSON_IsObject(message) || !cJSON_IsString(version) ||
        strcmp(version->valuestring, "2.0") != 0 || (id != NULL && !named) ||
        (params != NULL && !cJSON_IsObject(params))) {
        answer(named ? id : NULL, NULL, RPC_REQUEST, "not a request of JSON-RPC 2.0");
    } else if (!cJSON_IsString(method)) {
        bool response =
            cJSON_HasObjectItem(message, "result") || cJSON_HasObjectItem(message, "error");
        if (!response) { /* responses are ignored, because this server sends no requests */
            answer(id, NULL, RPC_REQUEST, "a request has a method");
        }
    } else if (id != NULL) { /* else a notification, which changes nothing here */
        request(id, method->valuestring, params);
    }
}

static int serve(void *values UNUSED, struct err *e UNUSED)
{
    OWNED char *line = NULL;
    size_t room = 0;
    /* A language model may have written the plug-in, and nobody has read it. */
    (void)setenv("XPUSIM_JAIL", "on", 0);
    for (ssize_t n = 0; (n = getline(&line, &room, stdin)) > 0;) {
        if (strspn(line, " \t\r\n") == (size_t)n) {
            continue;
        }
        const char *end = NULL;
        SCOPED(json_drop) cJSON *message = cJSON_ParseWithLengthOpts(line, (size_t)n, &end, false);
        bool whole = message != NULL && strspn(end, " \t\r\n") == (size_t)(line + n - end);
        if (whole) {
            receive(message);
        } else {
            answer(NULL, NULL, RPC_PARSE, "a message is a line of JSON");
        }
    }
    return EXIT_OK;
}

#define OPTIONS struct mcp_options
struct mcp_options {
    bool unused; /* the command has no options */
};

const struct command cmd_mcp = {
    .name = "mcp",
    .summary = "serve the main commands to a language model",
    .usage = "",
    .about = "A server of the Model Context Protocol over standard input and output, for programs "
             "that start it. Each tool is a command, its arguments are the command's options, and "
             "its answer is what --json prints. A run may write the files that its options name.",
    .children = (const struct option_child[]){{0}},
    .bytes = sizeof(OPTIONS),
    .run = serve,
};
