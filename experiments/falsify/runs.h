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
    } request[FALSIFY_SIDES];                           /* valid when found */
    char message[JOBS_MESSAGE_BYTES];                   /* why it could not be looked for; "" */
};

struct falsify_runs {
    const struct falsify_options *options; /* borrowed, as space, policies and result */
    const struct space *space;
    const struct config_policy *policy[FALSIFY_SIDES];
    const char *metric;
    struct study_how how;
    uint32_t n_runs;
    uint32_t n_failed[FALSIFY_SIDES]; /* runs of one side that failed where the other's did not */
    char message[FALSIFY_SIDES][JOBS_MESSAGE_BYTES]; /* why the first of them did */
    struct falsify_result *result;
    struct falsify_reason reason; /* of the loss that is left in the end */
    struct falsify *search;       /* owned, while it is judging; NULL when it explains */
    struct falsify_ask ask;       /* what is running */
};

/* The cells of r->ask, and their losses [point][replication]. Runs that fail, also those of a
 * scenario that cannot be (a request larger than the KV), give NaN. */
void falsify_runs_ask(struct falsify_runs *r, struct study *next);
void falsify_runs_take(struct falsify_runs *r, const struct study_outcomes *came, double *loss);
/* A search on simulations, then the two runs that explain what was found; ctx: struct
 * falsify_runs. */
study_judge falsify_judge;

/* All that was found, in text and as data. */
void falsify_document(const struct falsify_options *o, const struct falsify_runs *runs,
                      const struct falsify_result *r, struct document *d);
