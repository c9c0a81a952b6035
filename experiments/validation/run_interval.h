/* Uncertainty of the replay of a measured run without any fit: the run on N machines within the
 * known ranges (compare/machines.h: ranges of assumed numbers, covariance of calibrations, left-out
 * errors of the model). Between the resulting order statistics lie 95 % of further machines.
 *
 * There are two kinds of interval: of the mean latency over all requests, which is the question to
 * the configuration, and of each request. For the second kind, the result counts how many measured
 * values are inside. */
#pragma once

#include "experiments/validation/run_score.h"

#define RUN_INTERVAL_LEVEL 0.95

struct run_interval_metric {
    size_t n;                   /* requests that have it */
    double measured, simulated; /* means, seconds; simulated on the file's machine */
    double low, high;           /* of the mean */
    double inside_frac;         /* requests whose measured value lies in its own interval */
};

struct run_interval {
    uint32_t n_machines; /* that ran; 0: no interval */
    uint32_t n_failed;   /* drawn machines on which the run cannot be (memory) */
    uint32_t n_factors;  /* uncertain numbers */
    double level;        /* what n_machines supports */
    struct run_interval_metric metric[RUN_METRIC_COUNT];
};

/* `c` is the loaded configuration of `o`, `simulated` its replay. 0 or -EINVAL with errors. Cost: n
 * replays. */
int run_interval(const struct config_options *o, const struct config *c,
                 const struct config_policy *p, const struct measured_run *run,
                 const struct measured_latency *simulated, uint32_t n, struct run_interval *out,
                 struct err *e);

/* The order statistics [k, n - k + 1] of n draws that hold a further one with at least `level`, as
 * far as n supports it. The rank k is max(1, floor((n + 1) (1 - level) / 2)). */
uint32_t run_interval_rank(uint32_t n, double level);
