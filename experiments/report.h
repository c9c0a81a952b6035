/* One self-contained HTML page of a comparison: `xpusim compare --json` in, a page out that needs
 * no network and reads without JavaScript (which only sorts tables). */
#ifndef EXPERIMENTS_REPORT_H
#define EXPERIMENTS_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "sim/base/err.h"

struct report_input {
    const char *path;  /* of the file, for messages and to say how to repeat it */
    const cJSON *tree; /* a result of `compare --json`; borrowed */
};

/* Is this what compare writes? Errors name file and key. */
int report_check(const struct report_input *in, struct err *e);

/* Writes the page. Precondition: every input passed report_check. */
void report_write(const struct report_input *in, size_t n, FILE *out);

#endif
