/* Reads a timeline of `run --timeline`, event by event. Each line has one event, so memory is
 * constant for any length of run. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/base.h"

/* Calls `event` for each event whose phase (ph) is among the characters of `phases`, in file order;
 * o is valid during the call. counter: pass only counters of that name; NULL: all. Returns 0, or
 * -EINVAL with an error that names file and line. */
int timeline_read(const char *path, const char *phases, const char *counter,
                  void (*event)(void *ctx, const cJSON *o), void *ctx, struct err *e);
/* Calls `take` with the line of each such event. `take` returns false if it is not an event. */
int timeline_lines(const char *path, const char *phases,
                   bool (*take)(void *ctx, char phase, const char *line), void *ctx, struct err *e);

/* Members of an event; 0 and "" if absent. */
double timeline_number(const cJSON *o, const char *name);
double timeline_arg(const cJSON *o, const char *name);
const char *timeline_text(const cJSON *o, const char *name);
const char *timeline_arg_text(const cJSON *o, const char *name);
