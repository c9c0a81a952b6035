/* Steady-state means of one long run: latencies of requests in order of arrival, without the
 * initial transient, in batches (stats_steady). Use it where one long trace is more informative
 * than many short ones. */
#pragma once

#include "experiments/shell/document.h"
#include "sim/api/observer.h"

struct steady; /* latencies of finished requests; O(requests) memory */

struct steady *steady_new(void);
/* The observer to register. It lives as long as s. */
struct observer *steady_observer(struct steady *s);

/* Called after the run. Adds the table "steady", a row per class and latency, without empty
 * classes. overloaded: the run's verdict. Returns 0, or -EINVAL with an error for each series
 * without a steady state. */
int steady_document(const struct steady *s, bool overloaded, struct document *d, struct err *e);
