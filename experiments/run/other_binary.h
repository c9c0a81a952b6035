/* One run by another xpusim binary, through what every version has: `BINARY run --json`. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/run/config.h"

/* Runs machine, requests and settings of the options and waits. decisions: a file for its decision
 * log, or NULL. The result tree (caller owns), or NULL with the first line of its complaint in
 * message. */
cJSON *other_binary_run(const char *binary, const struct config_options *o, const char *policy,
                        uint64_t seed, const char *decisions, char *message, size_t size);
