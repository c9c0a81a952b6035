/* The data of the live page: documents of commands, packed into the page without members that it
 * never shows. Its script unpacks them in the browser. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/base.h"

/* Kinds of files that the page shows interactively (plots/about.h). */
#define LIVE_KINDS "view compare load"

/* Metrics that the page shows over load; NULL-ended. */
extern const char *const live_load_metrics[];

/* Writes one document as an element of the page: deflated, in base64, with its kind and the name
 * of its file. Configurations, seeds and statistics that the page never shows are left out.
 * Memory: the text of the document. */
void live_write(FILE *out, const char *kind, const char *name, const cJSON *tree);

/* The bytes of the simulator for a page (`make wasm`), from build/xpusim.wasm, for free(). NULL
 * with an error if the file is missing. */
unsigned char *live_simulator(size_t *n, struct err *e);
/* Writes it as an element of the page, deflated, in base64. */
void live_write_simulator(FILE *out, const unsigned char *v, size_t n);
