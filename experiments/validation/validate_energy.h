/* `xpusim validate --energy`: what meters read, against published powers. */
#pragma once

#include "experiments/shell/options.h"
#include "sim/base/base.h"

struct validate_energy_options {
    const char *energy; /* a file, or the name of a shipped table */
};
extern const struct option_table validate_energy_option_table;

/* Prints. Returns the exit status. */
int validate_energy(const struct validate_energy_options *o, const struct option_output *out,
                    struct err *e);
