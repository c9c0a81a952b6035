/* Commands as tools of the Model Context Protocol: their options are the arguments. */
#pragma once

#include <cjson/cJSON.h>

/* {"tools": [{name, description, inputSchema}, ...]}. The caller frees it. */
cJSON *mcp_tools_list(void);

/* Runs the command of a tool with --json in its own process, and returns its output: {content,
 * structuredContent, isError}, or NULL for an unknown tool. arguments: an object, or NULL. The
 * caller frees the result. */
cJSON *mcp_tools_call(const char *name, const cJSON *arguments);
