#include "experiments/compare/clairvoyant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/runner.h"
#include "sim/metrics/metric_table.h"

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

void clairvoyant_merge(struct clairvoyant_best *into, const struct clairvoyant_best *from)
{
    for (uint32_t i = 0; i < CLAIRVOYANT_METRICS; i++) { /* a NaN loses */
        into->value[i] = metric_is_gain(clairvoyant_metrics[i])
                             ? fmax(into->value[i], from->value[i])
                             : fmin(into->value[i], from->value[i]);
    }
    into->schedules += from->schedules;
    into->exhaustive = into->exhaustive && from->exhaustive;
}

/* Runs one member. One that fails, or leaves a request unfinished, is none. */
static void try_plan(const struct config *c, const struct trace *t, uint64_t seed,
                     const struct clairvoyant_plan *plan, struct clairvoyant_best *best)
{
    struct config_policy p = {.ops = &policy_clairvoyant_ops, .label = "clairvoyant"};
    struct runner_options opt = {.policy_context = plan};
    struct runner_result r;
    struct err e = ERR_INIT;
    struct clairvoyant_best one = clairvoyant_nothing();
    if (runner_run(c, &p, t, seed, &opt, &r, &e) == 0 && r.sim.audit.finished == t->n) {
        one.schedules = 1;
        for (uint32_t i = 0; i < CLAIRVOYANT_METRICS; i++) {
            one.value[i] = metric_list_find(&r.metrics, clairvoyant_metrics[i])->value;
        }
        clairvoyant_merge(best, &one);
    }
    runner_result_fini(&r);
    err_fini(&e);
}

static int by_id(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x;
    uint32_t b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t x = *a;
    *a = *b;
    *b = x;
}

/* The next order in lexicographic order; false after the last. */
static bool next_order(uint32_t *id, uint32_t n)
{
    uint32_t i = n - 1; /* the longest falling tail starts here */
    while (i > 0 && id[i - 1] >= id[i]) {
        i--;
    }
    if (i == 0) {
        return false;
    }
    uint32_t j = n - 1;
    while (id[j] <= id[i - 1]) {
        j--;
    }
    swap(&id[i - 1], &id[j]);
    for (uint32_t a = i, b = n - 1; a < b; a++, b--) {
        swap(&id[a], &id[b]);
    }
    return true;
}

static void all_orders(const struct config *c, const struct trace *t, uint64_t seed,
                       struct clairvoyant_plan plan, struct clairvoyant_best *out)
{
    uint32_t order[CLAIRVOYANT_MAX_JOBS];
    uint32_t n = (uint32_t)t->n;
    for (uint32_t i = 0; i < n; i++) {
        order[i] = t->rows[i].request_id;
    }
    qsort(order, n, sizeof *order, by_id);
    plan.order = order;
    plan.n_order = n;
    do {
        try_plan(c, t, seed, &plan, out);
    } while (next_order(order, n));
}

void clairvoyant_search(const struct config *c, const struct trace *t, uint64_t seed,
                        const struct clairvoyant_plan *plan, struct clairvoyant_best *out)
{
    *out = clairvoyant_nothing();
    struct clairvoyant_plan p = *plan;
    if (t->n > 0 && t->n <= CLAIRVOYANT_MAX_JOBS) {
        all_orders(c, t, seed, p, out);
        return;
    }
    out->exhaustive = false;
    p.order = NULL;
    for (int first = 0; first < 2; first++) {
        p.reactive_first = first != 0;
        try_plan(c, t, seed, &p, out);
    }
}
