/* The reproducer of a run that failed because of its policy: the smallest trace with the same
 * failure, the decisions and the timeline up to it, and the command that repeats it. */
#pragma once

#include "experiments/run/config.h"

#define TROUBLE_LIMIT_S 20.0

/* The end of a run: by itself, or by that of its process. */
struct trouble_end {
    int status;      /* of sim_result; 0: its process died */
    int exit_status; /* of a process that died (job_result), else 0 */
    uint64_t events; /* number of events; 0: unknown */
};

struct trouble {
    const struct config *config;
    const struct config_policy *policy;
    const struct config_options *options; /* for the command */
    const struct trace *trace;
    double cpu_limit_s;
    double took_s;   /* time of the failed run */
    const char *dir; /* output folder, created if missing */
};

/* Whether the policy caused the failure and it can be repeated: not for errors of the input or a
 * time limit. */
bool trouble_is(const struct trouble_end *end);
/* Writes trace.csv, decisions and timeline.json (not after a crash) to the folder, and prints the
 * command, or one sentence if the folder cannot be written. Makes at most some hundred runs, fewer
 * of long ones, each in its own process. If the policy is a program, all of them have
 * TROUBLE_LIMIT_S together, and it may get a shorter limit for an answer. */
void trouble_leave(const struct trouble *t, const struct trouble_end *end, FILE *out);
