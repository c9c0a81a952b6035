/* What falsify measures: two policies simulated on the same requests, and the request that explains
 * a loss best. */
#pragma once

#include "experiments/falsify/falsify.h"
#include "experiments/run/study.h"
#include "sim/metrics/explain.h"

enum { FALSIFY_POLICY, FALSIFY_BASELINE, FALSIFY_SIDES };

struct falsify_runs {
    const struct space *space;
    const struct config_policy *policy[FALSIFY_SIDES];
    const char *metric;
    struct study_how how;
    uint32_t n_runs;
    uint32_t n_failed[FALSIFY_SIDES]; /* runs of one side that failed where the other's did not */
    char message[FALSIFY_SIDES][JOBS_MESSAGE_BYTES]; /* why the first of them did */
};

/* Losses of what was asked for, [point][replication]. Runs that fail, also those of a world that
 * cannot be (a request larger than the KV), give NaN. */
void falsify_runs_measure(struct falsify_runs *r, const struct falsify_ask *ask, double *loss);
/* A search on simulations: what it asks for is run, until it knows. */
void falsify_runs_search(struct falsify_runs *r, const struct falsify_options *o,
                         struct falsify_result *out);

/* The request whose latency differs most between the two sides in one replication of a world, of
 * the metric's class. */
struct falsify_reason {
    uint64_t seed;                                    /* of --seed */
    struct explain *run[FALSIFY_SIDES];               /* owned */
    const struct explanation *request[FALSIFY_SIDES]; /* NULL: none finished on both sides */
};
/* 0, or -EINVAL with an error. falsify_reason_fini in both cases. */
int falsify_reason_find(const struct falsify_runs *r, const struct space_point *p,
                        uint32_t replication, struct falsify_reason *out, struct err *e);
void falsify_reason_fini(struct falsify_reason *x);

/* All that was found, in text and as data. */
void falsify_document(const struct falsify_options *o, const struct falsify_runs *runs,
                      const struct falsify_result *r, const struct falsify_reason *why,
                      struct document *d);
