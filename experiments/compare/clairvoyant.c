#include "experiments/compare/clairvoyant.h"

#include <gsl/gsl_sort_uint.h>

#include "sim/metrics/metric_table.h"
#include "sim/metrics/metrics.h"

const char *const clairvoyant_metrics[CLAIRVOYANT_METRICS] = {
    "reactive.ttft_s.mean",
    "reactive.e2e_s.mean",
    "proactive.e2e_s.mean",
    "all.ttft_s.mean",
    "all.e2e_s.mean",
    "reactive.norm_e2e_per_token_s.mean",
    "all.norm_e2e_per_token_s.mean",
    "all.throughput_req_per_min",
};

uint32_t clairvoyant_plans(const struct machine *m, struct clairvoyant_plan *out)
{
    uint32_t n = 0;
    for (uint8_t p = 0; p < m->n_devices; p++) {
        for (uint8_t d = 0; d < m->n_devices; d++) {
            if (clairvoyant_can_prefill(m, p) && clairvoyant_can_decode(m, d)) {
                out[n++] = (struct clairvoyant_plan){
                    .prefill_device = p, .decode_device = d, .max_batch = 1};
                /* No batching and full batching are the two extremes; the class has nothing
                 * between. */
                out[n] = out[n - 1];
                out[n++].max_batch = UINT32_MAX;
            }
        }
    }
    return n;
}

struct clairvoyant_best clairvoyant_nothing(void)
{
    struct clairvoyant_best b = {.exhaustive = true};
    for (uint32_t i = 0; i < CLAIRVOYANT_METRICS; i++) {
        b.value[i] = METRIC_UNDEFINED;
    }
    return b;
}

void clairvoyant_take(struct clairvoyant_best *best, const double *values)
{
    for (uint32_t i = 0; i < CLAIRVOYANT_METRICS; i++) { /* NaN never replaces a value */
        best->value[i] = metric_is_gain(clairvoyant_metrics[i]) ? fmax(best->value[i], values[i])
                                                                : fmin(best->value[i], values[i]);
    }
    best->schedules++;
}

uint32_t clairvoyant_members(const struct trace *t, bool *exhaustive)
{
    *exhaustive = t->n > 0 && t->n <= CLAIRVOYANT_MAX_JOBS;
    uint32_t orders = 1;
    for (uint32_t i = 2; *exhaustive && i <= t->n; i++) {
        orders *= i;
    }
    /* Too many requests for all orders: shortest first, with and without classes. */
    return *exhaustive ? orders : 2;
}

void clairvoyant_member(const struct trace *t, uint32_t number, uint32_t *order,
                        struct clairvoyant_plan *plan)
{
    bool exhaustive = false;
    uint32_t below = clairvoyant_members(t, &exhaustive);
    uint32_t n = exhaustive ? (uint32_t)t->n : 0;
    plan->order = exhaustive ? order : NULL;
    plan->n_order = n;
    plan->reactive_first = !exhaustive && number != 0;
    for (uint32_t i = 0; i < n; i++) {
        order[i] = t->rows[i].request_id;
    }
    /* Each number is a permutation of the same sorted list, so parts of the range can run anywhere.
     */
    gsl_sort_uint(order, 1, n);
    for (uint32_t i = 0; i < n; i++) { /* digits of the number in the factorial system */
        below /= n - i;
        uint32_t at = i + number / below % (n - i);
        uint32_t first = order[at];
        memmove(&order[i + 1], &order[i], (at - i) * sizeof *order);
        order[i] = first;
    }
}

/* ---- runs ---- */

#define CELLS_PER_WORKER 500 /* short runs of a built-in policy */

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

/* A schedule that fails, or leaves requests unfinished, does not count. */
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
    SCOPED(err_fini) struct err e = ERR_INIT;
    SCOPED(trace_fini) struct trace t = {0};
    struct study_cell cell = compare_cell(p, 0, replication);
    cell.policy = &clairvoyant;
    cell.samples = RUNNER_SAMPLES_AUTO;
    (void)config_trace(p->options, cell.seed, p->arrivals, &t, &e); /* its cells have the errors */
    *best = clairvoyant_nothing();
    uint32_t members = clairvoyant_members(&t, &best->exhaustive);
    uint32_t n = clairvoyant_plans(&p->config->soc.machine, plans) * members;
    OWNED struct study_cell *cells = xcalloc((size_t)n + 1, sizeof *cells);
    OWNED struct schedule *schedules = xcalloc((size_t)n + 1, sizeof *schedules);
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
    how.store = best->exhaustive ? NULL : how.store; /* faster than a look-up in the store */
    SCOPED(study_outcomes_fini) struct study_outcomes runs = study_run(cells, n, &how);
    for (uint32_t i = 0; i < n; i++) {
        take(&runs.v[i], t.n, best);
        free(schedules[i].text);
    }
}

void clairvoyant_run(const struct compare_plan *plan, struct clairvoyant_best *best)
{
    for (uint32_t i = 0; i < plan->replications; i++) {
        run_replication(plan, i, &best[i]);
    }
}
