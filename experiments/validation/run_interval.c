#include "experiments/validation/run_interval.h"

#include <gsl/gsl_sort.h>

#include "experiments/compare/machines.h"

uint32_t run_interval_rank(uint32_t n, double level)
{
    uint32_t k = (uint32_t)floor((n + 1.0) * (1.0 - level) / 2.0 + 1e-9);
    return k > 0 ? k : 1;
}

/* The interval of n values, which it sorts. */
static void between(double *v, uint32_t n, double *low, double *high)
{
    uint32_t k = run_interval_rank(n, RUN_INTERVAL_LEVEL);
    gsl_sort(v, 1, n);
    *low = v[k - 1];
    *high = v[n - k];
}

/* drawn: n replays, one after another. */
static void judge(const struct measured_run *run, const struct measured_latency *simulated,
                  const struct measured_latency *drawn, uint32_t n, enum run_metric metric,
                  struct run_interval_metric *out)
{
    OWNED double *mean = xcalloc(n, sizeof *mean);
    OWNED double *one = xmalloc(n * sizeof *one);
    size_t inside = 0;
    *out = (struct run_interval_metric){0};
    for (size_t i = 0; i < run->trace.n; i++) {
        double sim;
        double real;
        if (!run_metric_pair(run, simulated, i, metric, &sim, &real)) {
            continue;
        }
        out->n++;
        out->measured += real;
        out->simulated += sim;
        for (uint32_t k = 0; k < n; k++) {
            (void)run_metric_pair(run, &drawn[(size_t)k * run->trace.n], i, metric, &one[k], &real);
            mean[k] += one[k];
        }
        double low;
        double high;
        between(one, n, &low, &high);
        inside += low <= real && real <= high;
    }
    between(mean, n, &out->low, &out->high);
    double count = (double)out->n;
    out->measured /= count;
    out->simulated /= count;
    out->low /= count;
    out->high /= count;
    out->inside_frac = (double)inside / count;
}

int run_interval(const struct config_options *o, const struct config *c,
                 const struct config_policy *p, const struct measured_run *run,
                 const struct measured_latency *simulated, uint32_t n, struct run_interval *out,
                 struct err *e)
{
    SCOPED(machines_fini) struct machines m;
    *out = (struct run_interval){0};
    int rc = machines_draw(c, o, n, &m, e);
    if (rc != 0) {
        return rc;
    }
    out->n_factors = m.n_factors;
    OWNED struct measured_latency *drawn = xmalloc((size_t)n * run->trace.n * sizeof *drawn);
    for (uint32_t i = 0; i < n; i++) {
        SCOPED(config_fini) struct config one;
        SCOPED(err_fini) struct err failed = ERR_INIT;
        bool ran = machines_load(&m, o, i, 0, 0.0, &one, &failed) == 0 &&
                   run_replay(&one, p, run, run->trace.n, o->seed,
                              &drawn[(size_t)out->n_machines * run->trace.n], &failed) == 0;
        out->n_machines += ran;
        out->n_failed += !ran;
    }
    uint32_t ran = out->n_machines;
    for (int k = 0; k < RUN_METRIC_COUNT && ran > 0; k++) {
        judge(run, simulated, drawn, ran, (enum run_metric)k, &out->metric[k]);
    }
    out->level = 1.0 - 2.0 * run_interval_rank(ran, RUN_INTERVAL_LEVEL) / (ran + 1.0);
    return 0;
}
