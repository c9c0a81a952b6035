/* The minimisation of a calibration, and what its result is judged by. */
#pragma once

#include <gsl/gsl_multifit_nlinear.h>

#include "experiments/validation/calibrate_space.h"

#define CALIBRATE_PRIOR_SD 1.0 /* of ln(parameter) around the file's value */

struct calibrate_problem {
    struct calibrate_set *set;
    struct calibrate_space space;
    struct soc_runtime base; /* held parameters at their values */
    double sigma;
    size_t n_rows;           /* not left out */
    struct roofline *models; /* of each row of the set: a fit prices it a hundred thousand times */
    uint32_t rounds;
    double at[CALIBRATE_N_PARAMS];              /* v where a solver begins */
    double offset_at[2 * CALIBRATE_MAX_GROUPS]; /* and its coordinates of the offsets */
};

struct calibrate_solver {
    gsl_multifit_nlinear_workspace *w;
    gsl_vector *u; /* the present point */
};

/* At p->at; what it has found becomes the next one's beginning: robust sums have more than one
 * minimum, and holding a parameter must not lead to another. */
void calibrate_solver_init(struct calibrate_solver *v, const struct calibrate_problem *p);
void calibrate_solver_keep(const struct calibrate_solver *v, struct calibrate_problem *p);
void calibrate_solver_fini(struct calibrate_solver *v);
/* One fit from the solver's present point; its J is left for the covariance. 0 or -EINVAL. */
int calibrate_minimise(struct calibrate_problem *p, struct calibrate_solver *v);
/* Fits until the errors' scale rests; rows' ln_error is then that of the end. */
int calibrate_settle(struct calibrate_problem *p, struct calibrate_solver *v);
/* The sum at the solver's minimum. */
double calibrate_objective(const struct calibrate_solver *v);
