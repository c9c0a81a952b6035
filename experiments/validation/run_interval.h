/* Uncertainty of the replay of a measured run without any fit: it is simulated on N machines within
 * the known ranges (compare/machines.h: ranges of assumed numbers, covariance of calibrations,
 * left-out errors of the model). The order statistics of the results contain 95 % of further
 * machines.
 *
 * There are two kinds of intervals: of the mean latency over all requests, and of each request's
 * latency. For the second kind, the result has the share of measured values inside. */
#pragma once

#include "experiments/validation/run_score.h"

#define RUN_INTERVAL_LEVEL 0.95

struct run_interval_metric {
    size_t n;                   /* requests with this metric */
    double measured, simulated; /* means, seconds; simulated on the file's machine */
    double low, high;           /* of the mean */
    double inside_frac;         /* share of requests with the measured value in their interval */
};

struct run_interval {
    uint32_t n_machines; /* simulated machines; 0: no interval */
    uint32_t n_failed;   /* drawn machines on which the run is impossible (memory) */
    uint32_t n_factors;  /* uncertain numbers */
    double level;        /* coverage that n_machines supports */
    struct run_interval_metric metric[RUN_METRIC_COUNT];
};

/* `c` is the loaded configuration of `o`, `simulated` its replay. 0 or -EINVAL with errors. Cost: n
 * replays. */
int run_interval(const struct config_options *o, const struct config *c,
                 const struct config_policy *p, const struct measured_run *run,
                 const struct measured_latency *simulated, uint32_t n, struct run_interval *out,
                 struct err *e);

/* A rank k, max(1, floor((n + 1) (1 - level) / 2)). Order statistics k and n - k + 1 of n draws
 * contain a further draw with probability `level`, as far as n allows. */
uint32_t run_interval_rank(uint32_t n, double level);
