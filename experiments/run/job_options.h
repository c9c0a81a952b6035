/* How runs are spread over processors: options of every command that makes many of them. */
#ifndef EXPERIMENTS_RUN_JOB_OPTIONS_H
#define EXPERIMENTS_RUN_JOB_OPTIONS_H

#include <stdint.h>

#include "experiments/shell/options.h"

struct job_options {
    uint32_t jobs;       /* at once; all processors when not given */
    double time_limit_s; /* CPU seconds of one run */
};

extern const struct option_table job_option_table;
/* --time-limit alone, for commands that make their runs one after another. */
extern const struct option_table time_limit_option_table;

#endif
