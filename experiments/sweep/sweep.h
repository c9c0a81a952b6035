/* Runs an experiment in worker processes, and adds the missing runs to a store. */
#pragma once

#include "experiments/run/study.h"
#include "experiments/run/warnings.h"
#include "experiments/sweep/spec.h"

/* `until` stops at the first narrow interval, and so prefers values that are close together by
 * chance. Below this number of replications its intervals would cover 89 to 93 % (COVERAGE.md). */
#define SWEEP_UNTIL_LEAST 10

struct sweep_options {
    struct study_how how; /* sweep_run sets its store */
    /* Run i belongs to shard i % shards; with `until`, all runs of point i do. */
    uint32_t shard, shards;
    uint64_t memory_limit_bytes; /* of a worker; 0: none */
    bool fail_fast;              /* stop at the first failure */
};

struct sweep_result {
    uint64_t done, found, failed; /* replications: run now, found in the store, failed now */
    uint64_t empty;               /* replications without requests, which are no failures */
    uint64_t points_open;         /* with `until`: points still too wide at max_replications */
    bool interrupted;             /* by Ctrl-C or SIGTERM, or fail_fast; the store is valid */
    char first_failure[600];      /* run and reason; "": none */
    int64_t experiment;           /* its number in the store */
    /* The point with the most kernel time outside the calibrated range, and its shares. */
    struct extrapolated extrapolated;
    uint64_t extrapolated_point;
};

/* Number of the experiment in the store, by its text and this binary's revision; created if
 * missing. */
int64_t sweep_experiment(const struct spec *spec, struct store *store);

/* Number of its runs that the store has, from this experiment or another, for the present machines,
 * models and traces. Cost: makes the trace of each run. */
uint64_t sweep_there(const struct spec *spec, struct store *store);

/* Runs an experiment. SIGINT and SIGTERM stop it; their handlers are restored afterwards. Memory
 * does not grow with the number of runs; with `until` it takes 8 bytes per point. Returns 0, or
 * -errno with an error if the store or the processes failed. Failed runs are results. */
int sweep_run(const struct spec *spec, struct store *store, const struct sweep_options *opt,
              struct sweep_result *out, struct err *e);
