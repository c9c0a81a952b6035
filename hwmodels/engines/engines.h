/* Engines as shared objects: found by name, opened once, kept to the end of the process. */
#pragma once

#include "hwmodels/engines/bench.h"
#include "sim/api/engine.h"
#include "sim/base/err.h"

/* The engine of that name, or NULL with an error added: why it is not there, and what to do. Looked
 * for in $XPUSIM_ENGINES, in engines/ beside the program (or beside a folder above it), and where
 * `make install` puts it. */
const struct engine_ops *engine_find(const char *name, struct err *e);
/* Its single kernels, for `xpusim measure`; NULL with an error added. */
const struct engine_bench_ops *engine_bench_find(const char *name, struct err *e);
