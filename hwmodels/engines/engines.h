/* Engines as shared objects: found by name, opened once, kept to the end of the process. */
#pragma once

#include "hwmodels/engines/bench.h"
#include "sim/api/engine.h"

/* The inference backend of that name, or NULL with an error that says why it is missing and what to
 * do. The search goes through $XPUSIM_ENGINES, engines/ next to the program (or next to a folder
 * above it), and the folder of `make install`. */
const struct engine_ops *engine_find(const char *name, struct err *e);
/* Single kernels of openvino, for `xpusim measure`; NULL with an error added. */
const struct engine_bench_ops *engine_bench_find(struct err *e);
/* The folder in which compiled kernels are kept for later runs, in the user's folder of caches; the
 * caller frees it. NULL where there is none. */
char *engine_cache(void);
