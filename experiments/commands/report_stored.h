/* Comparisons of a store as files, for a page whose figures read files. */
#pragma once

#include "experiments/shell/options.h"
#include "sim/base/err.h"

struct stored_files {
    char *dir;           /* owned; NULL: none was made */
    char **path, **name; /* owned: where each is, and what the page calls it */
    uint32_t n;
};

/* Writes every comparison of the store, as `compare --store STORE --json` has them. 0 or -EINVAL;
 * stored_files_fini, which removes them, is needed in both cases. */
int stored_files_write(const char *store, struct stored_files *out, struct err *e);
void stored_files_fini(struct stored_files *f);
