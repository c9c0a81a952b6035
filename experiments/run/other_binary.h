/* One run by another xpusim binary, through `BINARY run --json`, which every version has. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/run/config.h"

/* Runs the machine, requests and settings of the options with the metrics asked for, and waits.
 * decisions: a file for the decision log, or NULL. Returns the result tree (caller owns), or NULL
 * with the first line of the binary's error in message. */
cJSON *other_binary_run(const char *binary, const struct config_options *o, const char *policy,
                        uint64_t seed, const char *decisions, char *message, size_t size);
