/* A random run (randomrun.h) tried every way that must not matter: collapsed, kernel by kernel with
 * no cost remembered,
 * with passes that repeat in one step, and the first way again. Decisions, metrics, counters and
 * status must be the same, the audit clean, and what a result's numbers cannot be they are not. */
#pragma once

#include "experiments/run/jobs.h"
#include "tests/helpers/randomrun.h"

enum trial_outcome {
    TRIAL_SAME,
    TRIAL_FAILED_ALIKE, /* a message says why */
    TRIAL_NOT_LOADED,   /* parts that do not go together */
    TRIAL_TOO_LONG,
    TRIAL_FINDING, /* a message says what */
    TRIAL_OUTCOMES
};

struct trial {
    enum trial_outcome outcome;
    char message[JOBS_MESSAGE_BYTES];
};

/* Each in a process of its own of at most 4 CPU seconds a way, as many at once as said. */
void trials_run(const struct randomrun *runs, uint32_t n, uint32_t parallel, struct trial *out);
