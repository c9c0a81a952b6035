#include "experiments/compare/clairvoyant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
                /* One by one and all together are the two ends of batching; what lies between is
                 * left to policies. */
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
    for (uint32_t i = 0; i < CLAIRVOYANT_METRICS; i++) { /* a NaN loses */
        best->value[i] = metric_is_gain(clairvoyant_metrics[i]) ? fmax(best->value[i], values[i])
                                                                : fmin(best->value[i], values[i]);
    }
    best->schedules++;
}

static int by_id(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x;
    uint32_t b = *(const uint32_t *)y;
    return (a > b) - (a < b);
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
    /* Every number is one permutation of the same sorted list, so that parts of them can be run
     * anywhere. */
    qsort(order, n, sizeof *order, by_id);
    for (uint32_t i = 0; i < n; i++) { /* the number's digits in the factorial system */
        below /= n - i;
        uint32_t at = i + number / below % (n - i);
        uint32_t first = order[at];
        memmove(&order[i + 1], &order[i], (at - i) * sizeof *order);
        order[i] = first;
    }
}
