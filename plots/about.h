/* What a file of results says of itself (experiments/run/about.h writes it): of what kind it is,
 * and which policy, model, machine and workload it is of. JSON has it as the member "about", a
 * timeline as otherData, a CSV as comment lines "# key: value" before its header. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

/* An object of texts, empty when the file says nothing, or cannot be read: who draws of it says so.
 * Of a JSON file without "about" the kind is "json", of a CSV "table". The caller frees it. */
cJSON *about_read(const char *path);
/* "" when it is not said. */
const char *about_fact(const cJSON *about, const char *key);
/* Is one of the words of `kinds` among those of its kind? */
bool about_is(const cJSON *about, const char *kinds);

/* The first character that is not blank is a brace. */
bool about_looks_like_json(const char *path);
