/* Traces that a generator makes, and the tables that their lengths come from. */
#pragma once

#include "traces/traces.h"

/* The test fails with the first message where the spec is refused. `out` is the caller's. */
void madetrace(const char *spec, uint64_t seed, struct trace *out);

struct table {
    uint32_t (*v)[4];
    size_t n;
};
/* Reads traces/datasets/NAME.csv without the loader. `form` takes so many fields, in the order
 * given. The caller frees v. */
struct table table_read(const char *name, const char *form, int fields);
