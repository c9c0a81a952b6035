#include "experiments/falsify/runs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/compare.h"
#include "experiments/run/runner.h"
#include "experiments/run/study.h"
#include "sim/base/arena.h"
#include "sim/metrics/metric_table.h"

/* Cell number (point * n + replication) * FALSIFY_SIDES + side. In the worker, which ends
 * afterwards, so nothing is freed. */
static int cell(void *ctx, uint64_t index, struct study_cell *out, struct err *e)
{
    const struct falsify_runs *runs = ctx;
    const struct falsify_ask *ask = &runs->ask;
    uint32_t world = (uint32_t)(index / FALSIFY_SIDES);
    struct space_options *o = xcalloc(1, sizeof *o);
    struct config *c = xcalloc(1, sizeof *c);
    space_options(runs->space, &ask->points[world / ask->n], o);
    *out = (struct study_cell){
        .config = c,
        .options = &o->options,
        .policy = runs->policy[index % FALSIFY_SIDES],
        .seed = compare_seed(runs->space->options->seed, ask->first + world % ask->n),
    };
    return config_load(c, &o->options, e);
}

/* NaN where one of the two has no value. */
static double loss_of(const struct falsify_runs *r, const struct study_outcome *sides)
{
    double ratio = log(study_value(&sides[FALSIFY_POLICY], r->metric) /
                       study_value(&sides[FALSIFY_BASELINE], r->metric));
    return !isfinite(ratio) ? (double)NAN : metric_is_gain(r->metric) ? -ratio : ratio;
}

static void note_failures(struct falsify_runs *r, const struct study_outcome *sides)
{
    for (int i = 0; i < FALSIFY_SIDES; i++) {
        if (sides[i].status != 0 && sides[1 - i].status == 0 && r->n_failed[i]++ == 0) {
            memcpy(r->message[i], sides[i].message, sizeof r->message[i]);
        }
    }
}

void falsify_runs_ask(struct falsify_runs *r, struct study *next)
{
    *next = (struct study){
        .n = FALSIFY_SIDES * r->ask.n_points * r->ask.n, .how = r->how, .ctx = r, .cell = cell};
}

void falsify_runs_take(struct falsify_runs *r, const struct study_outcomes *came, double *loss)
{
    for (uint32_t i = 0; i < came->n / FALSIFY_SIDES; i++) {
        loss[i] = loss_of(r, &came->v[i * FALSIFY_SIDES]);
        note_failures(r, &came->v[i * FALSIFY_SIDES]);
    }
    r->n_runs += came->n;
}

bool falsify_judge(void *ctx, const struct study_outcomes *came, struct study *next)
{
    struct falsify_runs *r = ctx;
    if (came == NULL) {
        r->search = falsify_open(r->options, r->space, r->result);
    } else {
        double *loss = xmalloc((came->n / FALSIFY_SIDES + 1) * sizeof *loss);
        falsify_runs_take(r, came, loss);
        falsify_take(r->search, loss);
        free(loss);
    }
    if (!falsify_next(r->search, &r->ask)) {
        falsify_close(r->search);
        return false;
    }
    falsify_runs_ask(r, next);
    return true;
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
    space_options(r->space, p, o);
    int rc = config_load(c, &o->options, e);
    if (rc == 0) {
        rc = config_trace(&o->options, out->seed, (struct config_arrivals){0}, &t, e);
    }
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
