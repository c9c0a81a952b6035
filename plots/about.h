/* The description in a file of results (written by experiments/run/about.h): its kind, policy,
 * model, machine and workload. In JSON it is the member "about", in a timeline otherData, and in a
 * CSV comment lines "# key: value" before the header. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/base.h"

/* Reads the description, an object of strings. A file without one gets a kind only: "json" for
 * JSON, "table" for CSV, "compare-store" for several comparisons (`compare --store --json`). Output
 * of `compare --select` has the kind "selection". *tree is the whole tree of a JSON file that
 * is no timeline, else NULL. The caller frees both. Returns NULL with an error if the file cannot
 * be opened; adds errors if it is malformed. */
cJSON *about_read(const char *path, cJSON **tree, struct err *e);
/* The description in a tree. The caller frees it. */
cJSON *about_of(const cJSON *tree);
/* The value of a key, or "". */
const char *about_fact(const cJSON *about, const char *key);
/* Whether the kind, a list of words, has a word of `kinds`. */
bool about_is(const cJSON *about, const char *kinds);
