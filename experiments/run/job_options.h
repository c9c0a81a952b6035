/* How runs are spread over processors: options of every command that makes many of them. */
#pragma once

#include "experiments/run/study.h"
#include "experiments/shell/options.h"

struct job_options {
    struct study_how how; /* all processors when not told; the store while it is open */
    const char *path;     /* of the store; NULL: none */
    bool quiet;
};

extern const struct option_table job_option_table;
/* --time-limit alone, for commands that make their runs one after another. */
extern const struct option_table time_limit_option_table;

/* Opens the store that is asked for; progress is shown to a terminal, unless quiet. 0 or -EINVAL.
 */
int job_options_open(struct job_options *o, bool quiet, struct err *e);
/* Closes it, and unless quiet tells on stderr how many runs it had already. An error is added when
 * it could not be written. */
void job_options_close(struct job_options *o, struct err *e);
