/* The clairvoyant reference of a comparison: every schedule of the class, on every replication's
 * own requests. */
#include <errno.h>
#include <stdlib.h>

#include "experiments/compare/clairvoyant.h"
#include "sim/base/arena.h"
#include "sim/base/text.h"

#define CELLS_PER_WORKER 500 /* short runs of a policy of our own */

static const struct config_policy clairvoyant = {.ops = &policy_clairvoyant_ops,
                                                 .label = "clairvoyant"};

/* A schedule of one replication. */
struct schedule {
    struct clairvoyant_plan plan;
    uint32_t order[CLAIRVOYANT_MAX_JOBS];
    char *text; /* owned: "prefill=0,decode=1,batch=1,reactive_first=0,order=2.1.3" */
};

static char *text_of(const struct clairvoyant_plan *p)
{
    struct text t = {0};
    text_format(&t, "prefill=%u,decode=%u,batch=%u,reactive_first=%u,order=", p->prefill_device,
                p->decode_device, p->max_batch, p->reactive_first);
    for (uint32_t i = 0; i < p->n_order; i++) {
        text_format(&t, "%s%u", i > 0 ? "." : "", p->order[i]);
    }
    return text_end(&t);
}

/* A schedule that fails, or leaves one of the requests unfinished, is none. */
static void take(const struct study_outcome *o, size_t requests, struct clairvoyant_best *best)
{
    if (o->status == -EIO) { /* a worker died or ran out of time */
        best->exhaustive = false;
    }
    if (study_value(o, "all.finished") == (double)requests) {
        double values[CLAIRVOYANT_METRICS];
        for (uint32_t m = 0; m < CLAIRVOYANT_METRICS; m++) {
            values[m] = study_value(o, clairvoyant_metrics[m]);
        }
        clairvoyant_take(best, values);
    }
}

static void run_replication(const struct compare_plan *p, uint32_t replication,
                            struct clairvoyant_best *best)
{
    struct clairvoyant_plan plans[CLAIRVOYANT_MAX_PLANS];
    struct err e = ERR_INIT;
    struct trace t = {0};
    struct study_cell cell = compare_cell(p, 0, replication);
    cell.policy = &clairvoyant;
    cell.samples = RUNNER_SAMPLES_AUTO;
    (void)config_trace(p->options, cell.seed, p->arrivals, &t,
                       &e); /* its cells say what is wrong */
    *best = clairvoyant_nothing();
    uint32_t members = clairvoyant_members(&t, &best->exhaustive);
    uint32_t n = clairvoyant_plans(&p->config->soc.machine, plans) * members;
    struct study_cell *cells = xcalloc((size_t)n + 1, sizeof *cells);
    struct schedule *schedules = xcalloc((size_t)n + 1, sizeof *schedules);
    for (uint32_t i = 0; i < n; i++) {
        struct schedule *s = &schedules[i];
        s->plan = plans[i / members];
        clairvoyant_member(&t, i % members, s->order, &s->plan);
        s->text = text_of(&s->plan);
        cells[i] = cell;
        cells[i].policy_context = &s->plan;
        cells[i].context_key = s->text;
    }
    struct study_how how = p->how;
    how.cells_per_worker = CELLS_PER_WORKER;
    how.store = best->exhaustive ? NULL : how.store; /* quicker than a look into the store */
    struct study_outcomes runs = study_run(cells, n, &how);
    for (uint32_t i = 0; i < n; i++) {
        take(&runs.v[i], t.n, best);
        free(schedules[i].text);
    }
    study_outcomes_fini(&runs);
    free(schedules);
    free(cells);
    trace_fini(&t);
    err_fini(&e);
}

void clairvoyant_run(const struct compare_plan *plan, struct clairvoyant_best *best)
{
    for (uint32_t i = 0; i < plan->replications; i++) {
        run_replication(plan, i, &best[i]);
    }
}
