/* Options of all commands that make many runs: processes, limits, store. */
#pragma once

#include "experiments/run/runner.h"
#include "experiments/run/study.h"
#include "experiments/shell/options.h"

struct job_options {
    struct study_how how; /* all processors by default; the store while it is open */
    const char *path;     /* path of the store; NULL: none */
};

extern const struct option_table job_option_table;
/* Only --time-limit, for commands that make their runs sequentially. */
extern const struct option_table time_limit_option_table;

/* Options that choose runner_samples, for commands that report quantiles. */
struct sample_options {
    bool sketch, exact;
};
extern const struct option_table sample_option_table;
/* Adds an error if both are given. */
enum runner_samples sample_options_choice(const struct sample_options *o, struct err *e);

/* Does a command's work with the requested store open. Unless quiet, shows progress on a terminal,
 * and afterwards prints on stderr how many runs the store had already. Returns the result of
 * `work`, or -EINVAL if the store cannot be opened. Adds an error if it cannot be written. */
int job_options_work(struct job_options *o, bool quiet, int (*work)(void *values, struct err *e),
                     void *values, struct err *e);
