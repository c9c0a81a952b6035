/* The runs that named quantities need: a study per round, since a search for the sustained rate
 * knows its next rate only when the one before is done. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/claims/quantities_impl.h"
#include "experiments/compare/compare.h"
#include "experiments/run/study.h"
#include "sim/base/arena.h"

/* One replication of a cell, and how far it has come. */
struct task {
    struct quantity_cell *cell;
    uint32_t replication;
    uint32_t rate; /* of a search: index of the next one */
    double before; /* its metric at the rate before; 0 without load */
    bool done;
    char message[JOBS_MESSAGE_BYTES]; /* why it failed; "" */
};

struct round {
    struct task **tasks; /* those not done */
    uint64_t seed;
};

static int cell(void *ctx, uint64_t index, struct study_cell *out, struct err *e)
{
    const struct round *r = ctx;
    const struct task *t = r->tasks[index];
    const struct quantity_cell *c = t->cell;
    struct config_options *o = xmalloc(sizeof *o); /* the process ends: nothing is freed */
    (void)e;
    *o = c->options;
    if (c->n_rates > 0) {
        char *workload = xmalloc(CONFIG_PARAMS_BYTES);
        (void)quantity_put_rate(c->workload, c->rates[t->rate], workload, CONFIG_PARAMS_BYTES);
        o->workload = workload;
    }
    *out = (struct study_cell){.config = &c->config,
                               .options = o,
                               .policy = &c->chosen,
                               .seed = compare_seed(r->seed, t->replication),
                               .arrivals = CONFIG_AS_WRITTEN};
    return 0;
}

/* Rates rise up to the first whose metric is above the limit; the sustained one lies between. */
static void take_rate(struct task *t, const struct study_outcome *o, double *found)
{
    const struct quantity_cell *c = t->cell;
    double x = study_value(o, c->metric);
    if (x > c->at_most && t->rate > 0) {
        double frac = (c->at_most - t->before) / (x - t->before);
        *found = c->rates[t->rate - 1] + frac * (c->rates[t->rate] - c->rates[t->rate - 1]);
    }
    t->before = isnan(x) ? 0.0 : x; /* no request at so low a rate */
    t->rate++;
    t->done = x > c->at_most || t->rate == c->n_rates;
}

static void take(struct task *t, const struct study_outcome *o, uint32_t replications)
{
    struct quantity_cell *c = t->cell;
    t->done = true;
    memcpy(t->message, o->message, sizeof t->message);
    if (o->status == 0 && c->n_rates > 0) {
        take_rate(t, o, &c->values[t->replication]);
    } else if (o->status == 0) {
        for (size_t k = 0; k < c->names.n; k++) {
            c->values[k * replications + t->replication] =
                study_value_near(o, k, c->names.v[k].name);
        }
    }
}

static void run_rounds(struct task *tasks, uint32_t n, const struct quantities_options *o)
{
    struct round r = {.tasks = xcalloc(n + 1, sizeof *r.tasks), .seed = o->seed};
    for (;;) {
        uint32_t left = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (!tasks[i].done) {
                r.tasks[left++] = &tasks[i];
            }
        }
        if (left == 0) {
            break;
        }
        struct study s = {.n = left, .how = o->how, .ctx = &r, .cell = cell};
        struct study_outcomes outcomes;
        study_run(&s, &outcomes);
        for (uint32_t i = 0; i < left; i++) {
            take(r.tasks[i], &outcomes.v[i], o->replications);
        }
        study_outcomes_fini(&outcomes);
    }
    free(r.tasks);
}

/* Room for the values of a used cell, all undefined. */
static void make_room(struct quantity_cell *c, uint32_t replications)
{
    size_t n = (c->n_rates > 0 ? 1 : c->names.n) * replications;
    c->values = xmalloc((n + 1) * sizeof *c->values);
    for (size_t i = 0; i < n; i++) {
        c->values[i] = METRIC_UNDEFINED;
    }
}

int quantities_compute(struct quantities *q, const struct quantities_options *o, struct err *e)
{
    struct task *tasks = xcalloc((size_t)q->n_cells * o->replications + 1, sizeof *tasks);
    uint32_t n = 0;
    q->replications = o->replications;
    q->seed = o->seed;
    for (uint32_t i = 0; i < q->n_cells; i++) {
        if (q->cells[i]->used) {
            make_room(q->cells[i], o->replications);
        }
    }
    for (uint32_t k = 0; k < o->replications; k++) {
        for (uint32_t i = 0; i < q->n_cells; i++) {
            if (q->cells[i]->used) {
                tasks[n++] = (struct task){.cell = q->cells[i], .replication = k};
            }
        }
    }
    run_rounds(tasks, n, o);
    int rc = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct quantity_cell *c = tasks[i].cell;
        if (tasks[i].message[0] != '\0') {
            (void)err_add(e, "%s: %s, %s, replication %" PRIu32 ": %s", c->path, c->policy,
                          c->workload, tasks[i].replication, tasks[i].message);
            rc = -EIO;
        }
    }
    free(tasks);
    return rc;
}
