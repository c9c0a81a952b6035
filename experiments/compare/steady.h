/* Steady-state means of one long run: latencies of its requests in order of arrival, the transient
 * dropped, the rest in batches (stats_steady). For when one long trace says more than many short
 * ones. */
#pragma once

#include "experiments/shell/document.h"
#include "sim/api/observer.h"

struct steady; /* latencies of finished requests; O(requests) memory */

struct steady *steady_new(void);
/* The observer to register; lives as long as s. */
struct observer *steady_observer(struct steady *s);

/* After the run: adds "steady", a row per class and latency. Classes without requests are left out.
 * 0, or -EINVAL with a reason per series that has no steady state; overloaded: the run's verdict.
 */
int steady_document(const struct steady *s, bool overloaded, struct document *d, struct err *e);
