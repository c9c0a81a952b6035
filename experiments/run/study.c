#include "experiments/run/study.h"

#include <stdlib.h>
#include <string.h>

#include "experiments/run/jobs.h"
#include "experiments/run/runner.h"
#include "sim/base/arena.h"

static void fail(struct job_result *out, const char *message)
{
    out->status = -1;
    (void)snprintf(out->message, sizeof out->message, "%.*s", JOBS_MESSAGE_BYTES - 1, message);
}

/* In the worker: the process ends afterwards, so nothing is freed. */
static void run_cell(void *ctx, uint32_t index, struct job_result *out)
{
    const struct study *s = ctx;
    struct study_cell c;
    struct err e = ERR_INIT;
    struct trace t = {0};
    if (s->cell(s->ctx, index, &c, &e) != 0 ||
        config_trace(c.options, c.seed, c.arrivals, &t, &e) != 0) {
        fail(out, e.n > 0 ? e.lines[0] : "unknown error");
        return;
    }
    struct runner_options opt = {.sketch = s->sketch};
    struct runner_result r;
    if (runner_run(c.config, c.policy, &t, c.seed, &opt, &r, &e) != 0) {
        fail(out, r.sim.message);
        return;
    }
    double *values = xmalloc((r.metrics.n + 1) * sizeof *values);
    for (size_t i = 0; i < r.metrics.n; i++) {
        values[i] = r.metrics.v[i].value;
    }
    out->data = values;
    out->size = r.metrics.n * sizeof *values;
}

struct study_outcome *study_run(const struct study *s)
{
    struct study_outcome *o = xcalloc(s->n + 1, sizeof *o);
    struct job_result *results = xcalloc(s->n + 1, sizeof *results);
    struct study own = *s;
    struct jobs j = {.n = s->n,
                     .parallel = s->parallel,
                     .cpu_limit_s = s->cpu_limit_s,
                     .progress = s->progress,
                     .ctx = &own,
                     .run = run_cell};
    jobs_run(&j, results);
    for (uint32_t i = 0; i < s->n; i++) {
        o[i].status = results[i].status;
        memcpy(o[i].message, results[i].message, sizeof o[i].message);
        o[i].values = results[i].data;
        o[i].n_values = results[i].size / sizeof *o[i].values;
    }
    free(results);
    return o;
}

void study_outcomes_free(struct study_outcome *o, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free(o[i].values);
    }
    free(o);
}
