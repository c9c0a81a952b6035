/* Measuring isolated and co-running kernels on the devices of a backend (`xpusim measure`).
 *
 * Protocol. Each repetition measures every shape in isolation, in an order of its own. Then it
 * measures every pair in the bracket a b | a and b | a b. The slowdown of a kernel is its
 * co-running time over the mean of its isolated times just before and after, so slow drift cancels.
 * Weights rotate through memory beyond the last-level cache. The first call is recorded apart.
 * Repetitions can be spread over time.
 *
 * A window is repeated when others used the processor, the hypervisor took it away, or the worker
 * lost its core. It is then kept with a flag. Nothing waits longer than its deadline. */
#pragma once

#include "hwmodels/backends/backend.h"
#include "hwmodels/backends/plan.h"
#include "hwmodels/kernel_rows.h"

struct measure_options {
    const struct backend_ops *backend;
    struct backend_options backend_options;
    const char *devices; /* "cpu0,cpu1"; NULL: the first two */
    const char *soc;     /* name in the rows */
    const char *source;  /* of the rows: what measured them, when */
    enum plan_size size;
    uint32_t repetitions;
    uint32_t min_samples;      /* of a window */
    uint32_t retries;          /* of a window that was disturbed */
    double window_s, spread_s; /* spread: pause between repetitions */
    double deadline_s;         /* of a window, beyond four times its expected time */
    double foreign_limit_frac, steal_limit_frac;
    const char *proc_dir, *rapl_dir, *accel_dir;
    uint64_t seed; /* of the order of shapes */
    bool alone_only;
    bool pairs_only;     /* every kind next to every other, and nothing else */
    uint32_t steps_done; /* so many steps of an interrupted measurement are in the file already */
    void (*step)(void *ctx, uint32_t steps); /* after each further one; NULL: nobody asks */
    void *step_ctx;
    bool progress; /* a bar on stderr */
    bool announce; /* before: who else uses the processors, and how long it takes; on stderr */
};

/* Defaults: native, small plan, 5 repetitions, windows of 0.3 s with 5 samples, 1 retry, 10 s of
 * deadline, 5 % foreign and 2 % stolen processor time at most. */
void measure_options_init(struct measure_options *o);

/* Memory per device that weights rotate through where nobody names it. Says on stderr when this
 * computer has too little. */
uint64_t measure_pool_bytes(const struct measure_options *o);

/* Writes the file (head and rows, flushed row by row). 0; -EINVAL: cannot start (errors added);
 * -ETIMEDOUT: a device stopped answering: its rows are flagged "deadline", the others complete. */
int measure_run(const struct measure_options *o, FILE *out, struct err *e);
