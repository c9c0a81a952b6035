/* Replays a measured serving run under a named policy, and computes the errors of the replay.
 *
 * Relative error of a request: simulated / measured - 1. Over a set of requests: MAPE, median and
 * P90 (nearest rank) are of its absolute value, and bias is its signed mean. All are shares (0.02
 * is 2 %). TPOT = (E2E - TTFT) / (output tokens - 1); requests with one output token or a TPOT of 0
 * have none. */
#pragma once

#include "experiments/run/config.h"
#include "traces/measured.h"

/* Simulates the run's arrivals and token counts until the first n requests have finished; out[i]
 * belongs to run->trace.rows[i], for finished requests. The configuration is that of one replica.
 * Returns 0, or the failure of the run (-errno) with its message added to e. Cost: a simulation of
 * the run; with a queue that selects the replica with the fewest requests, one per request. */
int run_replay(const struct config *c, const struct config_policy *p,
               const struct measured_run *run, size_t n, uint64_t seed,
               struct measured_latency *out, struct err *e);

/* Like run_replay, on one machine, regardless of the run's replicas. */
int run_replay_one(const struct config *c, const struct config_policy *p,
                   const struct measured_run *run, size_t n, uint64_t seed,
                   struct measured_latency *out, struct err *e);

enum run_metric { RUN_METRIC_E2E, RUN_METRIC_TTFT, RUN_METRIC_TPOT, RUN_METRIC_COUNT };
extern const char *const run_metric_names[RUN_METRIC_COUNT]; /* "e2e", "ttft", "tpot" */

struct run_error {
    size_t n;
    double mape, median, p90, bias; /* NaN without requests */
};

struct run_score {
    size_t n;
    struct run_error metric[RUN_METRIC_COUNT];
    double e2e_pearson; /* NaN for fewer than two requests */
};

/* Errors of requests first .. end - 1, in order of arrival. */
void run_score(const struct measured_run *run, const struct measured_latency *simulated,
               size_t first, size_t end, struct run_score *out);
/* Fills a request's simulated and measured value; false: it has none. */
bool run_metric_pair(const struct measured_run *run, const struct measured_latency *simulated,
                     size_t i, enum run_metric metric, double *sim, double *real);
