/* Warnings about a configuration, before its results. */
#pragma once

#include "experiments/run/config.h"

/* Calls say(to, sentence) for each warning. `text` is valid during the call. The configuration is
 * loaded. The cases are:
 *   an option chose another kernel-time or contention model than the file's numbers were fitted
 *   with;
 *   the file holds measured kernels of another LLM only;
 *   the workload has keys without effect. */
void config_notes(const struct config *c, void (*say)(void *to, const char *text), void *to);

/* Prints them on stderr as warnings, each sentence once per process. */
void config_notes_print(const struct config *c);
