#include "experiments/falsify/runs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/compare.h"
#include "experiments/run/runner.h"
#include "sim/base/arena.h"
#include "sim/metrics/metric_table.h"

/* One replication of one world. */
struct outcome {
    double value[FALSIFY_SIDES];
    bool failed[FALSIFY_SIDES];
    char message[FALSIFY_SIDES][JOBS_MESSAGE_BYTES];
};

struct batch {
    const struct falsify_runs *runs;
    const struct space_point *points;
    uint32_t first, n;
};

static int load(const struct falsify_runs *r, const struct space_point *p, uint64_t seed,
                struct space_options *o, struct config *c, struct trace *t, struct err *e)
{
    space_options(r->space, p, o);
    return config_load(c, &o->options, e) == 0 &&
                   config_trace(&o->options, seed, (struct config_arrivals){0}, t, e) == 0
               ? 0
               : -EINVAL;
}

/* In the worker: the process ends afterwards, so nothing is freed. */
static void run_world(void *ctx, uint32_t index, struct job_result *out)
{
    const struct batch *b = ctx;
    const struct falsify_runs *runs = b->runs;
    uint32_t replication = b->first + index % b->n;
    uint64_t seed = compare_seed(runs->space->options->seed, replication);
    struct err e = ERR_INIT;
    struct space_options *o = xcalloc(1, sizeof *o);
    struct config *c = xcalloc(1, sizeof *c);
    struct trace t = {0};
    struct outcome *x = xcalloc(1, sizeof *x);
    if (load(runs, &b->points[index / b->n], seed, o, c, &t, &e) != 0) {
        out->status = -EINVAL;
        (void)snprintf(out->message, sizeof out->message, "%s", e.n > 0 ? e.lines[0] : "");
        return;
    }
    for (int i = 0; i < FALSIFY_SIDES; i++) {
        struct runner_options opt = {0};
        struct runner_result r;
        int rc = runner_run(c, runs->policy[i], &t, seed, &opt, &r, &e);
        const struct metric *m = metric_list_find(&r.metrics, runs->metric);
        x->failed[i] = rc != 0;
        x->value[i] = rc == 0 && m != NULL ? m->value : METRIC_UNDEFINED;
        (void)snprintf(x->message[i], sizeof x->message[i], "%.*s", JOBS_MESSAGE_BYTES - 1,
                       r.sim.message);
    }
    out->data = x;
    out->size = sizeof *x;
}

static double loss_of(const struct falsify_runs *r, const struct outcome *x)
{
    double ratio = log(x->value[FALSIFY_POLICY] / x->value[FALSIFY_BASELINE]);
    return !isfinite(ratio) ? (double)NAN : metric_is_gain(r->metric) ? -ratio : ratio;
}

static void note_failures(struct falsify_runs *r, const struct outcome *x)
{
    for (int i = 0; i < FALSIFY_SIDES; i++) {
        if (x->failed[i] && !x->failed[1 - i] && r->n_failed[i]++ == 0) {
            memcpy(r->message[i], x->message[i], sizeof r->message[i]);
        }
    }
}

void falsify_runs_measure(void *ctx, const struct space_point *points, uint32_t n_points,
                          uint32_t first, uint32_t n, double *loss)
{
    struct falsify_runs *r = ctx;
    struct batch b = {r, points, first, n};
    uint32_t n_jobs = n_points * n;
    struct job_result *results = xcalloc(n_jobs, sizeof *results);
    struct jobs j = {.n = n_jobs,
                     .parallel = r->parallel,
                     .cpu_limit_s = r->cpu_limit_s,
                     .progress = r->progress,
                     .ctx = &b,
                     .run = run_world};
    jobs_run(&j, results);
    for (uint32_t i = 0; i < n_jobs; i++) {
        const struct outcome *x = results[i].data;
        loss[i] = x != NULL ? loss_of(r, x) : (double)NAN;
        if (x != NULL) {
            note_failures(r, x);
        }
        free(results[i].data);
    }
    r->n_runs += FALSIFY_SIDES * n_jobs;
    free(results);
}

/* ---- the request that says why ---- */

static bool of_class(const char *metric, const struct explanation *x)
{
    bool reactive = strncmp(metric, "reactive.", 9) == 0;
    bool proactive = strncmp(metric, "proactive.", 10) == 0;
    return (!reactive && !proactive) || (x->cls == REQUEST_CLASS_REACTIVE) == reactive;
}

static void pick(const struct falsify_runs *r, const struct trace *t, struct falsify_reason *out)
{
    int64_t most = 0;
    for (size_t i = 0; i < t->n; i++) {
        uint32_t id = t->rows[i].request_id;
        const struct explanation *a = explain_find(out->run[FALSIFY_POLICY], id);
        const struct explanation *b = explain_find(out->run[FALSIFY_BASELINE], id);
        if (a == NULL || b == NULL || !a->finished || !b->finished || !of_class(r->metric, a)) {
            continue;
        }
        int64_t longer = (a->end_ns - a->arrival_ns) - (b->end_ns - b->arrival_ns);
        if (longer > most) {
            most = longer;
            out->request[FALSIFY_POLICY] = a;
            out->request[FALSIFY_BASELINE] = b;
        }
    }
}

int falsify_reason_find(const struct falsify_runs *r, const struct space_point *p,
                        uint32_t replication, struct falsify_reason *out, struct err *e)
{
    *out = (struct falsify_reason){.seed = compare_seed(r->space->options->seed, replication)};
    struct space_options *o = xcalloc(1, sizeof *o);
    struct config *c = xcalloc(1, sizeof *c);
    struct trace t = {0};
    int rc = load(r, p, out->seed, o, c, &t, e);
    for (int i = 0; i < FALSIFY_SIDES && rc == 0; i++) {
        out->run[i] = explain_new(&c->soc.machine, EXPLAIN_ALL);
        struct runner_options opt = {.observer = explain_observer(out->run[i])};
        struct runner_result x;
        rc = runner_run(c, r->policy[i], &t, out->seed, &opt, &x, e);
        if (rc != 0) {
            (void)err_add(e, "%s", x.sim.message);
        }
        runner_result_fini(&x);
    }
    if (rc == 0) {
        pick(r, &t, out);
    }
    trace_fini(&t);
    config_fini(c);
    free(c);
    free(o);
    return rc;
}

void falsify_reason_fini(struct falsify_reason *x)
{
    for (int i = 0; i < FALSIFY_SIDES; i++) {
        explain_free(x->run[i]);
    }
    *x = (struct falsify_reason){0};
}
