/* The data of the live page: documents of commands, packed into the page as they are but for what
 * the page never shows. Its script unpacks them in the browser. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/base.h"

/* Words of the kinds of files that the page shows alive (plots/about.h). */
#define LIVE_KINDS "view compare load"

/* Metrics that the page shows over load; NULL-ended. */
extern const char *const live_load_metrics[];

/* Writes one document as an element of the page: deflated, in base64, with its kind and the name
 * of its file. Configurations, seeds and statistics that the page never shows are left out.
 * Memory: the text of the document. */
void live_write(FILE *out, const char *kind, const char *name, const cJSON *tree);

/* The simulator for a page (`make wasm`): its bytes, to be freed, from build/xpusim.wasm. NULL with
 * an error where it is not there. */
unsigned char *live_simulator(size_t *n, struct err *e);
/* Writes it as an element of the page, deflated, in base64. */
void live_write_simulator(FILE *out, const unsigned char *v, size_t n);
