/* How runs are spread over processors: options of every command that makes many of them. */
#pragma once

#include "experiments/run/runner.h"
#include "experiments/run/study.h"
#include "experiments/shell/options.h"

struct job_options {
    struct study_how how; /* all processors by default; the store while it is open */
    const char *path;     /* of the store; NULL: none */
};

extern const struct option_table job_option_table;
/* --time-limit alone, for commands that make their runs one after another. */
extern const struct option_table time_limit_option_table;

/* The contents of distributions (runner_samples), for commands that report quantiles. */
struct sample_options {
    bool sketch, exact;
};
extern const struct option_table sample_option_table;
/* An error is added when both are given. */
enum runner_samples sample_options_choice(const struct sample_options *o, struct err *e);

/* Does a command's work with the requested store open. Progress is shown on a terminal, unless
 * quiet. Afterwards, unless quiet, stderr reports how many runs the store had already. Returns what
 * the work returned, or -EINVAL when the store cannot be opened. An error is added when the store
 * could not be written. */
int job_options_work(struct job_options *o, bool quiet, int (*work)(void *values, struct err *e),
                     void *values, struct err *e);
