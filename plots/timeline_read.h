/* Reads a timeline that `run --timeline` wrote, event by event. Each line has one event, so memory
 * is constant for any length of run. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/base.h"

/* Calls `event` for each event whose phase (ph) is among the characters of `phases`, in file order;
 * the event lives until the call returns. counter: of counters, only those of that name; NULL: all.
 * 0, or -EINVAL with an error that names file and line. */
int timeline_read(const char *path, const char *phases, const char *counter,
                  void (*event)(void *ctx, const cJSON *o), void *ctx, struct err *e);
/* Calls `take` with the line of each such event. It returns false where that is no event. */
int timeline_lines(const char *path, const char *phases,
                   bool (*take)(void *ctx, char phase, const char *line), void *ctx, struct err *e);

/* Fields; 0 and "" when absent. */
double timeline_number(const cJSON *o, const char *name);
double timeline_arg(const cJSON *o, const char *name);
const char *timeline_text(const cJSON *o, const char *name);
const char *timeline_arg_text(const cJSON *o, const char *name);
