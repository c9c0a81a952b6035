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

/* A struct falsify_request for every row. */
static void say(void *heard, const struct trace *t, FILE *to)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct explanation *x = explain_find(heard, t->rows[i].request_id);
        struct falsify_request r = {.x.finished = false};
        if (x != NULL) {
            r.x = *x;
            r.x.n_blockers = x->n_blockers < FALSIFY_BLOCKERS ? x->n_blockers : FALSIFY_BLOCKERS;
            memcpy(r.first, x->blockers, r.x.n_blockers * sizeof *r.first);
        }
        (void)fwrite(&r, sizeof r, 1, to);
    }
}

/* Cell number (point * n + replication) * FALSIFY_SIDES + side. In the worker, which ends
 * afterwards, so nothing is freed. */
static int cell(void *ctx, uint64_t index, struct study_cell *out, struct err *e)
{
    const struct falsify_runs *runs = ctx;
    const struct falsify_ask *ask = &runs->ask;
    uint32_t scenario = (uint32_t)(index / FALSIFY_SIDES);
    struct config_options *o = xmalloc(sizeof *o);
    struct config *c = xcalloc(1, sizeof *c);
    space_options(runs->space, &ask->points[scenario / ask->n], o);
    *out = (struct study_cell){
        .config = c,
        .options = o,
        .policy = runs->policy[index % FALSIFY_SIDES],
        .seed = config_seed(runs->space->options->seed, ask->first + scenario % ask->n),
    };
    int rc = config_load(c, o, e);
    if (rc == 0 && runs->search == NULL) {
        out->heard = explain_new(&c->soc.machine, EXPLAIN_ALL);
        explain_price(out->heard, &c->truth.model);
        out->observer = explain_observer(out->heard);
        out->say = say;
    }
    return rc;
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

/* ---- the request that says why ---- */

/* The replication that lost most. */
static uint32_t worst_of(const struct falsify_result *r, uint32_t n)
{
    uint32_t worst = 0;
    for (uint32_t i = 1; i < n; i++) {
        worst = r->least_loss[i] > r->least_loss[worst] ? i : worst;
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

/* Both sides met the same rows. */
static void take_reason(struct falsify_runs *r, const struct study_outcome *sides)
{
    struct falsify_reason *out = &r->reason;
    const struct falsify_request *a = sides[FALSIFY_POLICY].said;
    const struct falsify_request *b = sides[FALSIFY_BASELINE].said;
    const struct study_outcome *failed = a == NULL ? &sides[FALSIFY_POLICY] : NULL;
    failed = failed == NULL && b == NULL ? &sides[FALSIFY_BASELINE] : failed;
    if (failed != NULL) {
        memcpy(out->message, failed->message, sizeof out->message);
        return;
    }
    int64_t most = 0;
    for (size_t i = 0; i < sides[FALSIFY_POLICY].said_bytes / sizeof *a; i++) {
        int64_t longer = latency_ns(&a[i]) - latency_ns(&b[i]);
        if (a[i].x.finished && b[i].x.finished && of_class(r->metric, &a[i].x) && longer > most) {
            most = longer;
            out->found = true;
            out->request[FALSIFY_POLICY] = a[i];
            out->request[FALSIFY_BASELINE] = b[i];
        }
    }
}

static void ask_reason(struct falsify_runs *r, struct study *next)
{
    const struct falsify_result *found = r->result;
    r->ask = (struct falsify_ask){&found->least, 1, worst_of(found, r->options->confirm), 1};
    r->reason.seed = config_seed(r->space->options->seed, r->ask.first);
    falsify_runs_ask(r, next);
}

bool falsify_judge(void *ctx, const struct study_outcomes *came, struct study *next)
{
    struct falsify_runs *r = ctx;
    if (came == NULL) {
        r->search = falsify_open(r->options, r->space, r->result);
    } else if (r->search == NULL) {
        take_reason(r, came->v);
        return false;
    } else {
        double *loss = xmalloc((came->n / FALSIFY_SIDES + 1) * sizeof *loss);
        falsify_runs_take(r, came, loss);
        falsify_take(r->search, loss);
        free(loss);
    }
    if (falsify_next(r->search, &r->ask)) {
        falsify_runs_ask(r, next);
        return true;
    }
    falsify_close(r->search);
    r->search = NULL;
    if (r->result->found) {
        ask_reason(r, next);
    }
    return r->result->found;
}
