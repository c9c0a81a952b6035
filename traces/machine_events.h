/* Events of the machine that a trace carries (sim/api/trace.h): their JSON.
 *
 * {"machine": [{"at_s": 30, "memory_mib": 2000}, ...]} is part of a workload, or a file of its own.
 * In a trace file, the first line has the list behind "machine=". */
#pragma once

#include "sim/api/trace.h"
#include "sim/base/json.h"

/* Reads the key "machine" of an object into the trace, in the place of those it has. 0, or -EINVAL
 * with errors that name file and key. */
int machine_events_get(struct json_obj *o, struct trace *t);
/* Reads them from a file. Its other keys are not looked at, so it may be a workload. */
int machine_events_read(const char *path, struct trace *t, struct err *e);
/* Reads the list from a text. */
int machine_events_of_text(const char *text, const char *path, struct trace *t, struct err *e);
/* The list as a text on one line; the caller frees it by cJSON_free. */
char *machine_events_text(const struct trace *t);
uint64_t machine_events_hash(uint64_t h, const struct trace *t);
