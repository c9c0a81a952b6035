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

struct quantities_rounds {
    struct task *tasks; /* owned */
    struct task **left; /* owned: those not done */
    uint32_t n, n_left;
    struct quantities_options options;
};

static int cell(void *ctx, uint64_t index, struct study_cell *out, struct err *e)
{
    const struct quantities_rounds *r = ctx;
    const struct task *t = r->left[index];
    const struct quantity_cell *c = t->cell;
    struct config_options *o = xmalloc(sizeof *o); /* the process ends: nothing is freed */
    (void)e;
    *o = c->options;
    if (c->n_rates > 0) {
        o->workload = quantity_put_rate(c->workload, c->rates[t->rate]);
    }
    *out = (struct study_cell){.config = &c->config,
                               .options = o,
                               .policy = &c->chosen,
                               .seed = config_seed(r->options.seed, t->replication),
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

bool quantities_judge(void *ctx, const struct study_outcomes *came, struct study *next)
{
    struct quantities_rounds *r = ctx;
    for (uint32_t i = 0; came != NULL && i < r->n_left; i++) {
        take(r->left[i], &came->v[i], r->options.replications);
    }
    r->n_left = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        if (!r->tasks[i].done) {
            r->left[r->n_left++] = &r->tasks[i];
        }
    }
    *next = (struct study){.n = r->n_left, .how = r->options.how, .ctx = r, .cell = cell};
    return r->n_left > 0;
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

/* The tasks of a book: every used cell, replication by replication. */
static void add_book(struct quantities_rounds *r, struct quantities *q)
{
    q->replications = r->options.replications;
    q->seed = r->options.seed;
    for (uint32_t k = 0; k < q->replications; k++) {
        for (uint32_t i = 0; i < q->n_cells; i++) {
            if (q->cells[i]->used) {
                r->tasks[r->n++] = (struct task){.cell = q->cells[i], .replication = k};
            }
        }
    }
    for (uint32_t i = 0; i < q->n_cells; i++) {
        if (q->cells[i]->used) {
            make_room(q->cells[i], q->replications);
        }
    }
}

struct quantities_rounds *quantities_open(struct quantities *books, uint32_t n_books,
                                          const struct quantities_options *o)
{
    struct quantities_rounds *r = xcalloc(1, sizeof *r);
    size_t most = 1;
    for (uint32_t i = 0; i < n_books; i++) {
        most += (size_t)books[i].n_cells * o->replications;
    }
    *r = (struct quantities_rounds){.tasks = xcalloc(most, sizeof *r->tasks),
                                    .left = xcalloc(most, sizeof *r->left),
                                    .options = *o};
    for (uint32_t i = 0; i < n_books; i++) {
        add_book(r, &books[i]);
    }
    return r;
}

int quantities_close(struct quantities_rounds *r, struct err *e)
{
    int rc = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct task *t = &r->tasks[i];
        const struct quantity_cell *c = t->cell;
        if (t->message[0] != '\0') {
            (void)err_add(e, "%s: %s, %s, replication %" PRIu32 ": %s", c->path, c->policy,
                          c->workload, t->replication, t->message);
            rc = -EIO;
        }
    }
    free(r->left);
    free(r->tasks);
    free(r);
    return rc;
}
