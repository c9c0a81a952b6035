#include "experiments/validation/run_score.h"

#include <gsl/gsl_statistics_double.h>

#include "sim/base/quantile.h"
#include "sim/engine/sim.h"

const char *const run_metric_names[RUN_METRIC_COUNT] = {"e2e", "ttft", "tpot"};

struct replay {
    struct sim_setup setup;
    struct observer watcher;
    struct measured_latency *out;
    size_t n, left; /* requests to wait for; unfinished ones of them */
};

static void finished(void *self, int64_t now_ns, const struct request *r)
{
    struct replay *p = self;
    p->out[r->id] = (struct measured_latency){
        .ttft_s = units_s_from_ns(r->first_token_ns - r->arrival_ns),
        .e2e_s = units_s_from_ns(now_ns - r->arrival_ns),
    };
    p->left -= r->id < p->n;
    if (p->left == 0) { /* later events cannot change these latencies */
        p->setup.horizon_ns = now_ns;
    }
}

int run_replay_one(const struct config *c, const struct config_policy *p,
                   const struct measured_run *run, size_t n, uint64_t seed,
                   struct measured_latency *out, struct err *e)
{
    struct replay replay = {.out = out, .n = n, .left = n};
    config_setup(c, p, &run->trace, seed, &replay.setup);
    replay.setup.horizon_ns = TIME_NEVER_NS; /* every measured request is compared */
    replay.watcher = (struct observer){.self = &replay, .request_finished = finished};
    replay.setup.observers[replay.setup.n_observers++] = &replay.watcher;
    struct sim_result result;
    int rc = sim_run(&replay.setup, &result);
    if (rc != 0) {
        return err_add(e, "%s", result.message);
    }
    if (replay.left > 0) {
        return err_add(e, "policy %s finished %zu of %zu request%s", p->ops->name, n - replay.left,
                       n, text_plural(n));
    }
    return 0;
}

static double tpot_s(const struct measured_run *run, const struct measured_latency *l, size_t i)
{
    return (l[i].e2e_s - l[i].ttft_s) / ((double)run->trace.rows[i].output_tokens - 1.0);
}

bool run_metric_pair(const struct measured_run *run, const struct measured_latency *simulated,
                     size_t i, enum run_metric metric, double *sim, double *real)
{
    const struct measured_latency *m = run->measured;
    switch (metric) {
    case RUN_METRIC_E2E:
        *sim = simulated[i].e2e_s;
        *real = m[i].e2e_s;
        return true;
    case RUN_METRIC_TTFT:
        *sim = simulated[i].ttft_s;
        *real = m[i].ttft_s;
        return true;
    default:
        if (run->trace.rows[i].output_tokens < 2 || m[i].e2e_s <= m[i].ttft_s) {
            return false;
        }
        *sim = tpot_s(run, simulated, i);
        *real = tpot_s(run, m, i);
        return true;
    }
}

static void error_of(const struct measured_run *run, const struct measured_latency *simulated,
                     size_t first, size_t end, enum run_metric metric, struct run_error *out)
{
    SCOPED(sample_fini) struct sample magnitude;
    SCOPED(sample_fini) struct sample with_sign;
    sample_init(&magnitude, false);
    sample_init(&with_sign, false);
    for (size_t i = first; i < end; i++) {
        double sim;
        double real;
        if (run_metric_pair(run, simulated, i, metric, &sim, &real)) {
            sample_add(&magnitude, fabs(sim / real - 1.0));
            sample_add(&with_sign, sim / real - 1.0);
        }
    }
    *out = (struct run_error){.n = magnitude.n,
                              .mape = sample_mean(&magnitude),
                              .median = sample_quantile(&magnitude, 0.5),
                              .p90 = sample_quantile(&magnitude, 0.9),
                              .bias = sample_mean(&with_sign)};
}

static double pearson(const struct measured_run *run, const struct measured_latency *simulated,
                      size_t first, size_t end)
{
    if (end < first + 2) {
        return (double)NAN;
    }
    size_t stride = sizeof *simulated / sizeof simulated->e2e_s;
    return gsl_stats_correlation(&simulated[first].e2e_s, stride, &run->measured[first].e2e_s,
                                 stride, end - first);
}

void run_score(const struct measured_run *run, const struct measured_latency *simulated,
               size_t first, size_t end, struct run_score *out)
{
    out->n = end - first;
    for (int k = 0; k < RUN_METRIC_COUNT; k++) {
        error_of(run, simulated, first, end, (enum run_metric)k, &out->metric[k]);
    }
    out->e2e_pearson = pearson(run, simulated, first, end);
}
