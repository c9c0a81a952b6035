/* Makes the runs that quantities need, in steps, because a search for the sustained rate needs the
 * result of one rate before the next. */
#include "experiments/claims/quantities_impl.h"
#include "experiments/compare/compare.h"
#include "experiments/run/study.h"

/* The progress of a replication of a cell. */
struct task {
    struct quantity_cell *cell;
    uint32_t replication;
    uint32_t rate; /* for a search: index of the next rate */
    double before; /* its metric at the previous rate; 0 without load */
    bool done;
    char message[JOBS_MESSAGE_BYTES]; /* why it failed; "" */
};

struct tasks {
    struct task *v; /* owned */
    uint32_t n;
    struct quantities_options options;
};

char *quantity_put_rate(const char *workload, double rate)
{
    const char *at = strstr(workload, QUANTITY_RATE_MARK);
    return at == NULL ? NULL
                      : xformat("%.*s%.10g%s", (int)(at - workload), workload, rate,
                                at + strlen(QUANTITY_RATE_MARK));
}

/* In the worker: sets the next rate of a search, and the drawn machine. */
static int load(struct study_cell *out, struct err *e)
{
    const struct task *t = out->from;
    const struct quantity_cell *c = t->cell;
    if (c->n_rates > 0) {
        struct config_options *o = xmalloc(sizeof *o);
        *o = c->options;
        o->workload = quantity_put_rate(c->workload, c->rates[t->rate]);
        out->options = o;
    }
    if (c->drawn.n_draws == 0) {
        return 0;
    }
    struct config *own = xcalloc(1, sizeof *own);
    out->config = own;
    return machines_load(&c->drawn, out->options, t->replication / QUANTITIES_MACHINE_TRACES, 0,
                         0.0, own, e);
}

static struct study_cell cell_of(const struct tasks *all, const struct task *t)
{
    const struct quantity_cell *c = t->cell;
    bool drawn = c->drawn.n_draws > 0;
    uint32_t trace = drawn ? t->replication % QUANTITIES_MACHINE_TRACES : t->replication;
    return (struct study_cell){.config = &c->config,
                               .options = &c->options,
                               .policy = &c->chosen,
                               .seed = config_seed(all->options.seed, trace),
                               .arrivals = CONFIG_AS_WRITTEN,
                               .load = drawn || c->n_rates > 0 ? load : NULL,
                               .from = t};
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
    t->before = isnan(x) ? 0.0 : x; /* no request at this low rate */
    t->rate++;
    t->done = x > c->at_most || t->rate == c->n_rates;
}

static void take(struct task *t, const struct study_outcome *o, uint32_t replications)
{
    struct quantity_cell *c = t->cell;
    t->done = true;
    bool empty = o->status == STUDY_NO_REQUESTS; /* counts for nobody */
    if (!empty) {
        memcpy(t->message, o->message, sizeof t->message);
    }
    if ((o->status == 0 || empty) && c->n_rates > 0) {
        take_rate(t, o, &c->values[t->replication]);
    } else if (o->status == 0) {
        for (size_t k = 0; k < c->names.n; k++) {
            c->values[k * replications + t->replication] =
                study_value_near(o, k, c->names.v[k].name);
        }
    }
}

/* Runs the next step of every unfinished task. False: all are finished. */
static bool step(struct tasks *all)
{
    OWNED struct study_cell *cells = xcalloc((size_t)all->n + 1, sizeof *cells);
    OWNED struct task **left = xcalloc((size_t)all->n + 1, sizeof(struct task *));
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        if (!all->v[i].done) {
            left[n] = &all->v[i];
            cells[n++] = cell_of(all, &all->v[i]);
        }
    }
    SCOPED(study_outcomes_fini) struct study_outcomes runs = study_run(cells, n, &all->options.how);
    for (uint32_t i = 0; i < n; i++) {
        take(left[i], &runs.v[i], all->options.replications);
    }
    return n > 0;
}

/* Allocates the values of a used cell, all undefined. */
static void make_room(struct quantity_cell *c, uint32_t replications)
{
    size_t n = (c->n_rates > 0 ? 1 : c->names.n) * replications;
    c->values = xmalloc((n + 1) * sizeof *c->values);
    for (size_t i = 0; i < n; i++) {
        c->values[i] = METRIC_UNDEFINED;
    }
}

/* Adds the tasks of a book: every used cell, by replication. */
static void add_book(struct tasks *r, struct quantities *q)
{
    q->replications = r->options.replications;
    q->seed = r->options.seed;
    for (uint32_t k = 0; k < q->replications; k++) {
        for (uint32_t i = 0; i < q->n_cells; i++) {
            if (q->cells[i]->used) {
                r->v[r->n++] = (struct task){.cell = q->cells[i], .replication = k};
            }
        }
    }
    for (uint32_t i = 0; i < q->n_cells; i++) {
        if (q->cells[i]->used) {
            make_room(q->cells[i], q->replications);
        }
    }
}

/* Draws the machines of every used cell: the same ones for equal machine and model. */
static int draw_machines(const struct quantities *q, uint32_t n, struct err *e)
{
    int rc = 0;
    for (uint32_t i = 0; i < q->n_cells && n > 0 && rc == 0; i++) {
        struct quantity_cell *c = q->cells[i];
        rc = c->used ? machines_draw(&c->config, &c->options, n, &c->drawn, e) : 0;
    }
    return rc;
}

int quantities_run(struct quantities *books, uint32_t n_books, const struct quantities_options *o,
                   struct err *e)
{
    size_t most = 1;
    for (uint32_t i = 0; i < n_books; i++) {
        most += (size_t)books[i].n_cells * o->replications;
        if (draw_machines(&books[i], o->machines, e) != 0) {
            return -EINVAL;
        }
    }
    struct tasks all = {.v = xcalloc(most, sizeof *all.v), .options = *o};
    for (uint32_t i = 0; i < n_books; i++) {
        add_book(&all, &books[i]);
    }
    while (step(&all)) {
    }
    int rc = 0;
    for (uint32_t i = 0; i < all.n; i++) {
        const struct task *t = &all.v[i];
        if (t->message[0] != '\0') {
            (void)err_add(e, "%s: %s, %s, replication %" PRIu32 ": %s", t->cell->path,
                          t->cell->policy, t->cell->workload, t->replication, t->message);
            rc = -EIO;
        }
    }
    free(all.v);
    return rc;
}
