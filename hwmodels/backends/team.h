/* Several cores that run one job together: a device of n threads. */
#pragma once

#include "sim/base/base.h"

struct team; /* opaque */

/* A thread pinned to each of the cores but the first, which is the caller's. NULL with an error. */
struct team *team_start(const uint32_t *cores, uint32_t n, struct err *e);
void team_stop(struct team *t); /* NULL: nothing */
/* part(arg, i) for i = 0 .. n - 1, each on its own core, number 0 on the calling thread. Returns
 * when all are done. One caller at a time. */
void team_run(struct team *t, void (*part)(void *arg, uint32_t i), void *arg);
