/* `xpusim validate --corun`: contention models against published co-runs. */
#pragma once

#include "experiments/shell/options.h"
#include "sim/base/base.h"

struct validate_corun_options {
    const char *corun; /* a file, or the name of a shipped table */
};
extern const struct option_table validate_corun_option_table;

/* model: the one to look at, with every row; NULL: all, in one table. Prints. Returns the exit
 * status. */
int validate_corun(const struct validate_corun_options *o, const char *model,
                   const struct option_output *out, struct err *e);
