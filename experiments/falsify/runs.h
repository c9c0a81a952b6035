/* The measurements of falsify: two policies simulated on the same requests, and the request that
 * explains a loss best. */
#pragma once

#include "experiments/falsify/falsify.h"
#include "experiments/run/study.h"
#include "sim/metrics/explain.h"

enum { FALSIFY_POLICY, FALSIFY_BASELINE, FALSIFY_SIDES };

#define FALSIFY_BLOCKERS 3 /* reported for a request */

/* The request whose latency differs most between the two sides in one replication of a scenario, of
 * the metric's class. */
struct falsify_reason {
    uint64_t seed; /* of --seed */
    bool found;    /* some request finished on both sides */
    struct falsify_request {
        struct explanation x;                           /* its blockers are `first` */
        struct explain_blocker first[FALSIFY_BLOCKERS]; /* the longest */
        uint32_t job;                                   /* of a request graph; UINT32_MAX: none */
    } request[FALSIFY_SIDES];                           /* valid when found */
    char message[JOBS_MESSAGE_BYTES];                   /* why it could not be looked for; "" */
};

struct falsify_runs {
    const struct space *space; /* borrowed, as the policies */
    const struct config_policy *policy[FALSIFY_SIDES];
    const char *metric;
    struct study_how how;
    uint32_t n_runs;
    uint32_t n_failed[FALSIFY_SIDES]; /* runs of one side that failed where the other's did not */
    char message[FALSIFY_SIDES][JOBS_MESSAGE_BYTES]; /* why the first of them did */
    uint32_t n_cut; /* pairs of which an empty battery ended a run: they have no ratio */
    struct falsify_reason reason; /* of the loss that is left in the end */
};

/* Simulates both sides; ctx: struct falsify_runs. Runs that fail, also those of a scenario that
 * cannot be (a request larger than the KV), give NaN. So do runs that a battery ends, since no
 * metric has what the unfinished requests lost. */
falsify_measure falsify_simulate;
/* Runs two cells of the same requests, and finds the request that lost most. The cells are complete
 * or complete themselves (load). Their observers are set here. */
void falsify_explain(const struct study_cell sides[FALSIFY_SIDES], const char *metric,
                     const struct study_how *how, struct falsify_reason *out);
/* A search on simulations, then the two runs that explain its loss. */
void falsify_run(struct falsify_runs *r, const struct falsify_options *o,
                 struct falsify_result *out);

/* All that was found, in text and as data. */
void falsify_document(const struct falsify_options *o, const struct falsify_runs *runs,
                      const struct falsify_result *r, struct document *d);
