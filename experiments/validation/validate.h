/* Kinds of `xpusim validate`. Each prints, and returns the exit status. */
#pragma once

#include "experiments/run/config.h"
#include "experiments/shell/options.h"
#include "experiments/validation/run_score.h"

/* `xpusim validate --points`: published measurements against what the shipped files predict. */

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

/* `xpusim validate --run`: a measured serving run against its replay. */

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

/* `xpusim validate --energy`: what meters read, against published powers. */

struct validate_energy_options {
    const char *energy; /* a file, or the name of a shipped table */
    const char *unseen; /* another, judged by the first; NULL: each row by the others */
};
extern const struct option_table validate_energy_option_table;

/* Prints. Returns the exit status. */
int validate_energy(const struct validate_energy_options *o, const struct option_output *out,
                    struct err *e);

/* `xpusim validate --corun`: contention models against published co-runs. */

struct validate_corun_options {
    const char *corun; /* a file, or the name of a shipped table */
};
extern const struct option_table validate_corun_option_table;

/* model: the one to look at, with every row; NULL: all, in one table. Prints. Returns the exit
 * status. */
int validate_corun(const struct validate_corun_options *o, const char *model,
                   const struct option_output *out, struct err *e);
