#include "experiments/falsify/runs.h"

#include "experiments/run/models.h"
#include "sim/metrics/metric_table.h"

/* Writes a struct falsify_request for every row. */
static void write_requests(void *state, const struct trace *t, FILE *to)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct explanation *x = explain_find(state, t->rows[i].request_id);
        struct falsify_request r = {.job = t->graph != NULL ? t->graph->job[i] : UINT32_MAX};
        if (x != NULL) {
            r.x = *x;
            r.x.n_blockers = x->n_blockers < FALSIFY_BLOCKERS ? x->n_blockers : FALSIFY_BLOCKERS;
            memcpy(r.first, x->blockers, r.x.n_blockers * sizeof *r.first);
        }
        (void)fwrite(&r, sizeof r, 1, to);
    }
}

/* The scenario of a cell, which its `from` points to. */
struct scenario {
    const struct space *space;
    const struct space_point *point;
};

static int load(struct study_cell *c, struct err *e)
{
    const struct scenario *s = c->from;
    struct config_options *o = xmalloc(sizeof *o);
    struct config *own = xcalloc(1, sizeof *own);
    space_options(s->space, s->point, o);
    c->options = o;
    c->config = own;
    return config_load(own, o, e);
}

/* Runs both sides of every point in every replication. Outcomes are in the order (point * n +
 * replication) * FALSIFY_SIDES + side. */
static struct study_outcomes run_sides(struct falsify_runs *r, const struct falsify_ask *ask)
{
    uint32_t n = FALSIFY_SIDES * ask->n_points * ask->n;
    OWNED struct study_cell *cells = xcalloc((size_t)n + 1, sizeof *cells);
    OWNED struct scenario *scenarios = xcalloc(ask->n_points + 1, sizeof *scenarios);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i / FALSIFY_SIDES;
        scenarios[at / ask->n] = (struct scenario){r->space, &ask->points[at / ask->n]};
        cells[i] = (struct study_cell){
            .policy = r->policy[i % FALSIFY_SIDES],
            .seed = config_seed(r->space->options->seed, ask->first + at % ask->n),
            .load = load,
            .from = &scenarios[at / ask->n],
        };
    }
    struct study_outcomes runs = study_run(cells, n, &r->how);
    r->n_runs += n;
    return runs;
}

/* Whether a battery was empty before all requests were served, including those still to arrive. */
static bool is_cut(const struct study_outcome *sides)
{
    return study_battery_empty(&sides[FALSIFY_POLICY]) ||
           study_battery_empty(&sides[FALSIFY_BASELINE]);
}

/* ln(policy / baseline), inverted if more is better. NaN: not finite, or a battery was empty. */
static double loss_of(const struct falsify_runs *r, const struct study_outcome *sides)
{
    double ratio = log(study_value(&sides[FALSIFY_POLICY], r->metric) /
                       study_value(&sides[FALSIFY_BASELINE], r->metric));
    return !isfinite(ratio) || is_cut(sides) ? (double)NAN
           : metric_is_gain(r->metric)       ? -ratio
                                             : ratio;
}

static void note_failures(struct falsify_runs *r, const struct study_outcome *sides)
{
    for (int i = 0; i < FALSIFY_SIDES; i++) {
        if (sides[i].status != 0 && sides[1 - i].status == 0 && r->n_failed[i]++ == 0) {
            memcpy(r->message[i], sides[i].message, sizeof r->message[i]);
        }
    }
}

void falsify_simulate(void *ctx, const struct falsify_ask *ask, double *loss)
{
    struct falsify_runs *r = ctx;
    SCOPED(study_outcomes_fini) struct study_outcomes runs = run_sides(r, ask);
    for (uint32_t i = 0; i < runs.n / FALSIFY_SIDES; i++) {
        loss[i] = loss_of(r, &runs.v[i * FALSIFY_SIDES]);
        note_failures(r, &runs.v[i * FALSIFY_SIDES]);
        r->n_cut += is_cut(&runs.v[i * FALSIFY_SIDES]);
    }
}

/* ---- the request that explains the loss ---- */

/* Returns the replication with the largest loss. One without a value has none. */
static uint32_t worst_of(const struct falsify_result *r, uint32_t n)
{
    uint32_t worst = 0;
    for (uint32_t i = 1; i < n; i++) {
        bool more = isnan(r->least_loss[worst]) || r->least_loss[i] > r->least_loss[worst];
        worst = more ? i : worst;
    }
    return r->least_first + worst;
}

static bool of_class(const char *metric, const struct explanation *x)
{
    bool reactive = strncmp(metric, "reactive.", 9) == 0;
    bool proactive = strncmp(metric, "proactive.", 10) == 0;
    return (!reactive && !proactive) || (x->cls == REQUEST_CLASS_REACTIVE) == reactive;
}

static int64_t latency_ns(const struct falsify_request *r)
{
    return r->x.end_ns - r->x.arrival_ns;
}

/* Finds the request that lost most. Both sides have the same rows, so an index is one request. */
static void take_reason(struct falsify_reason *out, const char *metric,
                        const struct study_outcome *sides)
{
    const struct falsify_request *a = sides[FALSIFY_POLICY].observed;
    const struct falsify_request *b = sides[FALSIFY_BASELINE].observed;
    const struct study_outcome *failed = a == NULL ? &sides[FALSIFY_POLICY] : NULL;
    failed = failed == NULL && b == NULL ? &sides[FALSIFY_BASELINE] : failed;
    if (failed != NULL) {
        memcpy(out->message, failed->message, sizeof out->message);
        return;
    }
    int64_t most = 0;
    for (size_t i = 0; i < sides[FALSIFY_POLICY].observed_bytes / sizeof *a; i++) {
        int64_t longer = latency_ns(&a[i]) - latency_ns(&b[i]);
        if (a[i].x.finished && b[i].x.finished && of_class(metric, &a[i].x) && longer > most) {
            most = longer;
            out->found = true;
            out->request[FALSIFY_POLICY] = a[i];
            out->request[FALSIFY_BASELINE] = b[i];
        }
    }
}

/* Loads the original cell in `from`, and observes its run. */
static int load_explained(struct study_cell *c, struct err *e)
{
    *c = *(const struct study_cell *)c->from;
    int rc = c->load != NULL ? c->load(c, e) : 0;
    if (rc == 0) {
        c->observer_state = explain_new(&c->config->soc.machine, EXPLAIN_ALL);
        for (uint32_t m = 0; m <= c->config->n_more; m++) {
            explain_price(c->observer_state, &models_roofline(c->config, m)->model);
        }
        c->observer = explain_observer(c->observer_state);
        c->observer_write = write_requests;
    }
    return rc;
}

void falsify_explain(const struct study_cell sides[FALSIFY_SIDES], const char *metric,
                     const struct study_how *how, struct falsify_reason *out)
{
    struct study_cell cells[FALSIFY_SIDES];
    for (int i = 0; i < FALSIFY_SIDES; i++) {
        cells[i] = sides[i];
        cells[i].load = load_explained;
        cells[i].from = &sides[i];
    }
    SCOPED(study_outcomes_fini) struct study_outcomes runs = study_run(cells, FALSIFY_SIDES, how);
    *out = (struct falsify_reason){.seed = sides[FALSIFY_POLICY].seed};
    take_reason(out, metric, runs.v);
}

void falsify_run(struct falsify_runs *r, const struct falsify_options *o,
                 struct falsify_result *out)
{
    falsify_search(o, r->space, falsify_simulate, r, out);
    if (out->found) {
        uint32_t worst = worst_of(out, o->confirm);
        struct scenario at = {r->space, &out->least};
        struct study_cell sides[FALSIFY_SIDES];
        for (int i = 0; i < FALSIFY_SIDES; i++) {
            sides[i] = (struct study_cell){.policy = r->policy[i],
                                           .seed = config_seed(r->space->options->seed, worst),
                                           .load = load,
                                           .from = &at};
        }
        falsify_explain(sides, r->metric, &r->how, &r->reason);
    }
}
