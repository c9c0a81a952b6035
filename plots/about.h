/* The description inside a file of results (experiments/run/about.h writes it): its kind, policy,
 * model, machine and workload. JSON has it as the member "about", a timeline as otherData, a CSV as
 * comment lines "# key: value" before its header. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/base.h"

/* An object of texts, empty but for its kind when the file says nothing: of a JSON file without
 * "about" the kind is "json", of a CSV "table", of several comparisons (`compare --store --json`)
 * "compare-store". *tree is all of a JSON file but a timeline, else NULL. The caller frees both.
 * Errors when it cannot be opened (NULL) or is malformed. */
cJSON *about_read(const char *path, cJSON **tree, struct err *e);
/* Reads it from a tree. The caller frees it. */
cJSON *about_of(const cJSON *tree);
/* "" when it is not said. */
const char *about_fact(const cJSON *about, const char *key);
/* Is one of the words of `kinds` among those of its kind? */
bool about_is(const cJSON *about, const char *kinds);
