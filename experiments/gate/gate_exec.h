/* One run by another xpusim binary, through what every version has: `BINARY run --json`. */
#ifndef EXPERIMENTS_GATE_GATE_EXEC_H
#define EXPERIMENTS_GATE_GATE_EXEC_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "experiments/gate/gate.h"

/* Runs it and waits. decisions: a file for its decision log, or NULL. The result tree (caller
 * owns), or NULL with the first line of its complaint in message. */
cJSON *gate_exec(const char *binary, const struct gate_group *g, const char *policy, uint64_t seed,
                 const char *decisions, char *message, size_t size);

#endif
