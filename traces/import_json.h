/* Declarations shared by readers of JSON formats. */
#pragma once

#include "traces/import.h"

#define IMPORT_MAX_NS 4e18 /* of clocks that count from 1970 */

/* Where an error is: a line of a file, or the n-th request of a document. */
struct import_place {
    const char *path;
    const char *what; /* "" or "request " */
    unsigned long long number;
    struct err *e;
};

static inline const cJSON *import_get(const cJSON *o, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(o, key);
}

void import_refuse(const struct import_place *p, const char *key, const char *what);
/* An instant; 0 and an error where c, said to be of this key, is none. */
int64_t import_ns(const cJSON *c, const char *key, const struct import_place *p);
/* Reads and closes a file. Returns what the caller deletes; NULL and an error if it is no JSON. */
cJSON *import_document(FILE *in, const char *path, struct err *e);

/* Formats that keep what was said and not how many tokens it was (import_text.c): genai-perf's
 * profile export, and conversations as sharegpt has them. Both read and close `in`. */
void import_genai_perf(struct import *im, FILE *in, const char *path, struct err *e);
void import_sharegpt(struct import *im, FILE *in, const char *path, struct err *e);
