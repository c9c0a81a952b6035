/* The minimisation of a calibration, and the state that its files share. */
#pragma once

#include <gsl/gsl_multifit_nlinear.h>

#include "experiments/validation/calibrate_space.h"

#define CALIBRATE_PRIOR_SD 1.0 /* of ln(parameter) around the file's value */

struct calibrate_problem {
    struct calibrate_set *set;
    struct calibrate_space space;
    struct soc_runtime base; /* fixed parameters have their values here */
    double sigma;
    size_t n_rows;           /* not left out */
    struct roofline *models; /* of each row of the set; a fit evaluates them some 100,000 times */
    uint32_t rounds;
    double at[CALIBRATE_N_PARAMS];              /* v at which a solver starts */
    double offset_at[2 * CALIBRATE_MAX_GROUPS]; /* the same for the coordinates of offsets */
};

struct calibrate_solver {
    gsl_multifit_nlinear_workspace *w;
    gsl_vector *u; /* the present point */
};

/* A solver starts at p->at, and calibrate_solver_keep stores its result there for the next one.
 * Robust sums have several minima, and fixing a parameter must not lead to a different one. */
void calibrate_solver_init(struct calibrate_solver *v, const struct calibrate_problem *p);
void calibrate_solver_keep(const struct calibrate_solver *v, struct calibrate_problem *p);
void calibrate_solver_fini(struct calibrate_solver *v);
/* One fit from the solver's present point. Its Jacobian remains for the covariance. 0 or -EINVAL.
 */
int calibrate_minimise(struct calibrate_problem *p, struct calibrate_solver *v);
/* Fits until sigma has converged. Then fills the rows' ln_error. */
int calibrate_settle(struct calibrate_problem *p, struct calibrate_solver *v);
/* The sum at the solver's minimum. */
double calibrate_objective(const struct calibrate_solver *v);
