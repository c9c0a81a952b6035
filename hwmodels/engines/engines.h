/* Engines as shared objects: found by name, opened once, never closed. */
#pragma once

#include "hwmodels/engines/bench.h"
#include "sim/api/engine.h"

/* Finds an inference backend by name. NULL with an error that has the reason and a remedy. The
 * search goes through $XPUSIM_ENGINES, engines/ next to the program (or next to a folder above it),
 * and the folder of `make install`. */
const struct engine_ops *engine_find(const char *name, struct err *e);
/* Finds the single kernels of openvino, for `xpusim measure`; NULL with an error. */
const struct engine_bench_ops *engine_bench_find(struct err *e);
/* The folder with compiled kernels for later runs, in the user's cache folder; the caller frees it.
 * NULL: there is none. */
char *engine_cache(void);
