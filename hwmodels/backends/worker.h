/* One thread pinned to one core with a queue of jobs: a CPU core that behaves like a device.
 *
 * Workers run at ordinary priority: real-time workers on all cores would starve the controlling
 * thread. A job cannot be stopped while it runs; waiting for it always ends by its timeout. */
#pragma once

#include "hwmodels/backends/backend.h"

struct worker;

/* NULL with an error when the core does not exist or may not be used. */
struct worker *worker_start(uint32_t core, struct err *e);
/* Waits for the running job, drops the others, frees. */
void worker_stop(struct worker *w);

/* Tickets, results and errors as in struct backend_ops. */
int64_t worker_submit(struct worker *w, void (*run)(void *arg), void *arg);
int worker_wait(struct worker *w, int64_t ticket, int64_t timeout_ns);
int worker_stamps(struct worker *w, int64_t ticket, struct backend_stamps *out);
int64_t worker_cancel(struct worker *w, int64_t ticket);
int64_t worker_busy_ns(struct worker *w); /* processor time of finished jobs */

/* Sleeps on the monotonic clock. */
void worker_sleep(int64_t span_ns);

/* Fills out with the numbers of the cores this process may use; returns how many there are. */
uint32_t worker_cores(uint32_t *out, uint32_t cap);
