/* The measurements of falsify: simulates two policies on the same requests, and finds the request
 * that explains a loss best. */
#pragma once

#include "experiments/falsify/falsify.h"
#include "experiments/run/study.h"
#include "sim/metrics/explain.h"

enum { FALSIFY_POLICY, FALSIFY_BASELINE, FALSIFY_SIDES };

#define FALSIFY_BLOCKERS 3 /* reported for a request */

/* The request of the metric's class that takes longest under the policy, compared with the
 * baseline, in one replication of a scenario. */
struct falsify_reason {
    uint64_t seed; /* for --seed */
    bool found;    /* some request finished on both sides, and took longer */
    struct falsify_request {
        struct explanation x;                           /* its blockers are `first` */
        struct explain_blocker first[FALSIFY_BLOCKERS]; /* the longest */
        uint32_t job;                                   /* of a request graph; UINT32_MAX: none */
    } request[FALSIFY_SIDES];                           /* valid when found */
    char message[JOBS_MESSAGE_BYTES];                   /* why the search for it failed, or "" */
};

struct falsify_runs {
    const struct space *space; /* borrowed, like the policies */
    const struct config_policy *policy[FALSIFY_SIDES];
    const char *metric;
    struct study_how how;
    uint32_t n_runs;
    uint32_t n_failed[FALSIFY_SIDES];                /* runs that failed only on this side */
    char message[FALSIFY_SIDES][JOBS_MESSAGE_BYTES]; /* failure of the first of them */
    uint32_t n_cut;               /* pairs without a ratio: an empty battery ended a run */
    struct falsify_reason reason; /* for the final loss */
};

/* Simulates both sides; ctx: struct falsify_runs. Failed runs, including those of an impossible
 * scenario (a request larger than the KV), give NaN. So do runs that an empty battery ends, because
 * no metric counts the loss of unfinished requests. */
falsify_measure falsify_simulate;
/* Runs two cells of the same requests, and finds the request that lost most. The cells are
 * complete, or complete themselves by load. This function sets their observers. */
void falsify_explain(const struct study_cell sides[FALSIFY_SIDES], const char *metric,
                     const struct study_how *how, struct falsify_reason *out);
/* Searches by simulation, then makes the two runs that explain the loss. */
void falsify_run(struct falsify_runs *r, const struct falsify_options *o,
                 struct falsify_result *out);

/* Adds all findings, as text and data. */
void falsify_document(const struct falsify_options *o, const struct falsify_runs *runs,
                      const struct falsify_result *r, struct document *d);
