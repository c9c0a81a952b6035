/* How runs are spread over processors: options of every command that makes many of them. */
#pragma once

#include <stdint.h>

#include "experiments/shell/options.h"
#include "experiments/store/store.h"

struct job_options {
    uint32_t jobs;       /* at once; all processors when not given */
    double time_limit_s; /* CPU seconds of one run */
    const char *path;    /* of the store; NULL: none */
    struct store *store; /* between job_options_open and job_options_close; NULL: none */
};

extern const struct option_table job_option_table;
/* --time-limit alone, for commands that make their runs one after another. */
extern const struct option_table time_limit_option_table;

/* Opens the store that is asked for. 0 or -EINVAL. */
int job_options_open(struct job_options *o, struct err *e);
/* Closes it, and unless quiet tells on stderr how many runs it had already. 0, or -EIO with an
 * error when it could not be written. */
int job_options_close(struct job_options *o, bool quiet, struct err *e);
