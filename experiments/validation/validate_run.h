/* `xpusim validate --run`: a measured serving run against its replay. */
#pragma once

#include "experiments/run/config.h"
#include "experiments/shell/options.h"
#include "experiments/validation/run_score.h"

struct validate_run_options {
    struct config_options config; /* SoC and model must be given; the run is the workload */
    const char *run, *policy, *fit, *fit_on, *requests;
    uint32_t replicas;
    const char *queue;                     /* a name of queues (validate_run.c) */
    uint32_t uncertainty;                  /* machines drawn where nothing is fitted; 0: none */
    double max_mape_pct[RUN_METRIC_COUNT]; /* INFINITY: no limit */
};
extern const struct option_table validate_run_option_table; /* all but config */

/* Prints. Returns the exit status: 1 when an error is above a stated limit or the replay fails, 2
 * for bad input. */
int validate_run(const struct validate_run_options *o, const struct option_output *out,
                 struct err *e);
