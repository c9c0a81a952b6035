/* The clairvoyant reference of a comparison: every schedule of the class, on every replication's
 * own requests, as cells of a study. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "experiments/compare/clairvoyant.h"
#include "experiments/shell/cli.h"
#include "sim/base/arena.h"
#include "sim/base/text.h"

#define CELLS_PER_WORKER 500 /* short runs of a policy of our own */

/* The schedules of every replication: cells, number ((plan of a replication) * members + member)
 * from its first on. */
struct clairvoyant_search {
    const struct compare_plan *plan;
    struct clairvoyant_best *best; /* by replication */
    struct clairvoyant_plan plans[CLAIRVOYANT_MAX_PLANS];
    uint32_t n_plans;
    struct rounds {
        uint64_t first;
        uint32_t members;
        size_t requests;
    } * of; /* owned; by replication */
    uint64_t n;
    /* in workers only: what the last cell borrows */
    struct clairvoyant_plan told;
    uint32_t order[CLAIRVOYANT_MAX_JOBS];
    struct text text;
};

static const struct config_policy clairvoyant = {.ops = &policy_clairvoyant_ops,
                                                 .label = "clairvoyant"};

static uint32_t replication_of(const struct clairvoyant_search *s, uint64_t cell)
{
    uint32_t rep = s->plan->replications - 1;
    while (s->of[rep].first > cell) {
        rep--;
    }
    return rep;
}

/* "prefill=0,decode=1,batch=1,reactive_first=0,order=2.1.3" */
static void put_text(const struct clairvoyant_plan *p, struct text *t)
{
    t->n = 0;
    text_format(t, "prefill=%u,decode=%u,batch=%u,reactive_first=%u,order=", p->prefill_device,
                p->decode_device, p->max_batch, p->reactive_first);
    for (uint32_t i = 0; i < p->n_order; i++) {
        text_format(t, "%s%u", i > 0 ? "." : "", p->order[i]);
    }
    (void)text_end(t);
}

static int cell(void *ctx, uint64_t index, struct study_cell *out, struct err *e)
{
    struct clairvoyant_search *s = ctx;
    const struct compare_plan *p = s->plan;
    uint32_t rep = replication_of(s, index);
    const struct rounds *of = &s->of[rep];
    uint32_t number = (uint32_t)(index - of->first);
    *out = (struct study_cell){.config = p->config,
                               .options = p->options,
                               .policy = &clairvoyant,
                               .seed = config_seed(p->options->seed, p->first + rep),
                               .arrivals = p->arrivals,
                               .context = &s->told};
    struct trace t = {0};
    int rc = config_trace(p->options, out->seed, p->arrivals, &t, e);
    if (rc == 0) {
        s->told = s->plans[number / of->members];
        clairvoyant_member(&t, number % of->members, s->order, &s->told);
        put_text(&s->told, &s->text);
        out->told = s->text.p;
    }
    trace_fini(&t);
    return rc;
}

/* A schedule that fails, or leaves a request unfinished, is none. */
static void done(void *ctx, uint64_t index, const struct study_outcome *o)
{
    struct clairvoyant_search *s = ctx;
    uint32_t rep = replication_of(s, index);
    if (o->status == -EIO) { /* a worker died or ran out of time */
        s->best[rep].exhaustive = false;
    }
    if (study_value(o, "all.finished") == (double)s->of[rep].requests) {
        double values[CLAIRVOYANT_METRICS];
        for (uint32_t m = 0; m < CLAIRVOYANT_METRICS; m++) {
            values[m] = study_value(o, clairvoyant_metrics[m]);
        }
        clairvoyant_take(&s->best[rep], values);
    }
}

/* How many schedules each replication has. Returns whether some try all orders. */
static bool lay_out(struct clairvoyant_search *s)
{
    const struct compare_plan *p = s->plan;
    bool some = false;
    s->n_plans = clairvoyant_plans(&p->config->soc.machine, s->plans);
    s->of = xcalloc(p->replications + 1, sizeof *s->of);
    for (uint32_t rep = 0; rep < p->replications; rep++) {
        struct err e = ERR_INIT;
        struct trace t = {0};
        struct rounds *of = &s->of[rep];
        uint64_t seed = config_seed(p->options->seed, p->first + rep);
        (void)config_trace(p->options, seed, p->arrivals, &t, &e); /* its cells say what is wrong */
        of->first = s->n;
        of->requests = t.n;
        s->best[rep] = clairvoyant_nothing();
        of->members = clairvoyant_members(&t, &s->best[rep].exhaustive);
        some = some || s->best[rep].exhaustive;
        s->n += (uint64_t)of->members * s->n_plans;
        trace_fini(&t);
        err_fini(&e);
    }
    return some;
}

bool clairvoyant_judge(void *ctx, const struct study_outcomes *came, struct study *next)
{
    struct clairvoyant *c = ctx;
    if (came != NULL) {
        free(c->search->of);
        free(c->search);
        return false;
    }
    c->search = xcalloc(1, sizeof *c->search);
    *c->search = (struct clairvoyant_search){.plan = c->plan, .best = c->best};
    bool short_runs = lay_out(c->search); /* quicker than a look into the store */
    *next = (struct study){.n = c->search->n,
                           .how = c->plan->how,
                           .cells_per_worker = CELLS_PER_WORKER,
                           .reads = true,
                           .ctx = c->search,
                           .cell = cell,
                           .done = done};
    next->how.store = short_runs ? NULL : c->plan->how.store;
    return true;
}
