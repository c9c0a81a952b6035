/* The reproducer of a run that its policy broke: the smallest trace on which it fails the same way,
 * the decisions and the timeline up to there, and the command that shows it again. */
#pragma once

#include "experiments/run/config.h"

#define TROUBLE_LIMIT_S 20.0

/* How a run ended: by itself, or by the death of its process. */
struct trouble_end {
    int status;      /* of sim_result; 0 when its process died */
    int exit_status; /* of a process that died (job_result), else 0 */
    uint64_t events; /* that it took; 0: nobody knows */
};

struct trouble {
    const struct config *config;
    const struct config_policy *policy;
    const struct config_options *options; /* for the command */
    const struct trace *trace;
    double cpu_limit_s;
    double took_s;   /* the run that failed */
    const char *dir; /* to write to, made when missing */
};

/* Is it of the policy's making, and can it be made again? Not what input is to blame for, nor a
 * limit of time. */
bool trouble_is(const struct trouble_end *end);
/* Writes trace.csv, decisions and timeline.json (which a crash has none of) to the folder, and says
 * so with the command. A folder that cannot be written is one sentence. Makes at most some hundred
 * runs, each in a process of its own, and of long ones fewer. A program as a policy has
 * TROUBLE_LIMIT_S for all of them, and may get a shorter limit for an answer. */
void trouble_leave(const struct trouble *t, const struct trouble_end *end, FILE *out);
