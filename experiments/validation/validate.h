/* The kinds of `xpusim validate`. Each prints its result and returns the exit status. */
#pragma once

#include "experiments/run/config.h"
#include "experiments/shell/options.h"
#include "experiments/validation/run_score.h"

/* `xpusim validate --points`: compares published measurements with predictions of the shipped
 * files. */

struct validate_points_options {
    const char *points;                 /* a file, or the name of a shipped table */
    double max_median_pct, max_p90_pct; /* INFINITY: no limit */
    bool rows;
    uint32_t leave_machine_out; /* models measured on each left-out machine; 0: none is left out */
    bool accuracy;              /* errors and coverage by what was unseen (accuracy.h) */
    const char *against;        /* an earlier result to compare with; NULL: none */
    const char *unseen;         /* table of machines to predict; NULL: those of `points` */
};
extern const struct option_table validate_points_option_table;

/* `config` has the settings of the simulation, and `soc` to select rows of one SoC (a name, or a
 * file that replaces the shipped one; NULL: all). Returns the exit status: 1 if an error is above a
 * limit, 2 for bad input. */
int validate_points(const struct validate_points_options *o, const struct config_options *config,
                    const struct option_output *out, struct err *e);

/* `xpusim validate --run`: compares a measured serving run with its replay. */

struct validate_run_options {
    struct config_options config; /* SoC and model are required; the run is the workload */
    const char *run, *policy, *fit, *fit_on, *requests;
    uint32_t replicas;
    const char *queue;                     /* a name of queues (validate_run.c) */
    uint32_t uncertainty;                  /* machines to draw if nothing is fitted; 0: none */
    double max_mape_pct[RUN_METRIC_COUNT]; /* INFINITY: no limit */
};
extern const struct option_table validate_run_option_table; /* all but config */

/* Returns the exit status: 1 if an error is above a limit or the replay fails, 2 for bad input. */
int validate_run(const struct validate_run_options *o, const struct option_output *out,
                 struct err *e);

/* `xpusim validate --energy`: compares predicted meter readings with published powers. */

struct validate_energy_options {
    const char *energy; /* a file, or the name of a shipped table */
    const char *unseen; /* another one, predicted from the first; NULL: each row from the others */
};
extern const struct option_table validate_energy_option_table;

/* Prints. Returns the exit status. */
int validate_energy(const struct validate_energy_options *o, const struct option_output *out,
                    struct err *e);

/* `xpusim validate --corun`: compares contention models with published co-runs. */

struct validate_corun_options {
    const char *corun; /* a file, or the name of a shipped table */
};
extern const struct option_table validate_corun_option_table;

/* model: the contention model to print with every row; NULL: all in one table. Returns the exit
 * status. */
int validate_corun(const struct validate_corun_options *o, const char *model,
                   const struct option_output *out, struct err *e);
