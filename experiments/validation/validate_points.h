/* `xpusim validate --points`: published measurements against what the shipped files predict. */
#pragma once

#include <stdbool.h>

#include "experiments/run/config.h"
#include "experiments/shell/options.h"

struct validate_points_options {
    const char *points;                 /* a file, or the name of a shipped table */
    double max_median_pct, max_p90_pct; /* INFINITY: no limit */
    bool rows;
    uint32_t leave_machine_out; /* models measured on each machine left out; 0: none is */
    bool accuracy;              /* errors and coverage by what was unseen, instead of every row */
    const char *against;        /* an earlier result of it; NULL: none */
    const char *unseen;         /* table of machines to judge by; NULL: those of `points` */
};
extern const struct option_table validate_points_option_table;

/* `config` gives the settings of the simulation, and `soc`: rows of this SoC alone (a name, or a
 * file that replaces the shipped one); NULL: all. Prints. Returns the exit status: 1 when an error
 * is above a stated limit, 2 for bad input. */
int validate_points(const struct validate_points_options *o, const struct config_options *config,
                    const struct option_output *out, struct err *e);
