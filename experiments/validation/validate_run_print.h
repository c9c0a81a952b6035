/* Results of `xpusim validate --run`, as a document and one line per request. */
#pragma once

#include "experiments/shell/document.h"
#include "experiments/validation/run_fit.h"
#include "experiments/validation/run_interval.h"
#include "experiments/validation/run_score.h"

#define VALIDATE_RUN_MAX_PARTS 3

struct validate_run_part {
    const char *name; /* "fit", "unseen", "all" */
    bool fitted_on;   /* every request of it was: its error says nothing about prediction */
    struct run_score score;
};

struct validate_run_result {
    const struct config *config; /* with the fitted values; all pointers but simulated borrowed */
    const struct config_policy *policy;
    const struct measured_run *run;
    const char *name; /* of the run, as the user wrote it */
    uint64_t seed;
    const struct run_fit *fit; /* NULL: nothing fitted */
    struct measured_latency *simulated;
    struct validate_run_part parts[VALIDATE_RUN_MAX_PARTS];
    uint32_t n_parts;
    struct run_interval interval; /* n_machines 0: none */
    struct run_score roofline; /* of the file's own numbers, all requests: upper bound of speed */
};

/* Errors are shares: 0.02 is 2 %. Top level: over all requests. */
void validate_run_document(const struct validate_run_result *r, struct document *d);
/* request_id, arrival_s, tokens, part, measured and simulated latencies. 0 or -EINVAL with an error
 * added; a failed write leaves nothing. */
int validate_run_write(const struct validate_run_result *r, const char *path, struct err *e);
