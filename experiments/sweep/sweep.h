/* Runs an experiment into a store: what is missing of it, in worker processes. */
#pragma once

#include "experiments/run/study.h"
#include "experiments/run/warnings.h"
#include "experiments/sweep/spec.h"

struct sweep_options {
    struct study_how how;   /* the store is sweep_run's */
    uint32_t shard, shards; /* this one of so many: run number i belongs to i % shards, or, with
                               `until`, all runs of point i */
    uint64_t memory_limit_bytes; /* of a worker; 0: none */
    bool fail_fast;              /* stop at the first failure */
};

struct sweep_result {
    uint64_t done, found, failed; /* replications: run now, in the store already, failed now */
    uint64_t points_open;         /* with `until`: points left at max_replications, wider */
    bool interrupted;             /* by Ctrl-C or SIGTERM, or fail_fast; the store is valid */
    char first_failure[600];      /* which, and why; "" without */
    int64_t experiment;           /* its number in the store */
    /* The point whose kernels lie outside the calibrated range most, and how far. */
    struct extrapolated extrapolated;
    uint64_t extrapolated_point;
};

/* Number of the experiment in the store, made when it is not there: of its text and this binary's
 * revision. */
int64_t sweep_experiment(const struct spec *spec, struct store *store);

/* How many of its runs the store has, of the machines, models and traces as they are now. Makes the
 * trace of each run that is there. */
uint64_t sweep_there(const struct spec *spec, struct store *store);

/* Runs an experiment. Meanwhile SIGINT and SIGTERM stop it; afterwards they have their former
 * meaning again. Memory does not grow with the number of runs; with `until` it takes 8 bytes per
 * point. 0, or -errno with an error added when the store or the processes failed; failed runs are
 * results here. */
int sweep_run(const struct spec *spec, struct store *store, const struct sweep_options *opt,
              struct sweep_result *out, struct err *e);
