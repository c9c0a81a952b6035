/* The parameters of a calibration and the coordinates in which it searches them. */
#pragma once

#include <gsl/gsl_vector.h>

#include "experiments/validation/calibrate.h"

#define CALIBRATE_OFFSET_SD                                                                        \
    0.15 /* prior sd of a group's ln rate and ln bandwidth around the pool's \ */

/* Parameter k in terms of v: exp(v), or `offset` (exp(v) - 1) for those that may be 0. A coordinate
 * u of the search is v's logit between its bounds. If the rows are of several groups, each group's
 * two offsets follow the free parameters, in units of CALIBRATE_OFFSET_SD. */
struct calibrate_space {
    double low[CALIBRATE_N_PARAMS], high[CALIBRATE_N_PARAMS]; /* of v */
    double start[CALIBRATE_N_PARAMS];                         /* of v: the file's values */
    double offset[CALIBRATE_N_PARAMS];                        /* 0: v is ln x */
    int index[CALIBRATE_N_PARAMS];                            /* parameter of each coordinate */
    int n;                                                    /* free parameters */
    int n_groups;                                             /* with offsets; 0: none */
};

/* By parameter: the offset added before the logarithm, in SI units; 0: none. */
extern const double calibrate_offsets[CALIBRATE_N_PARAMS];

/* Physical bounds: at most the DDR's peak and the datasheet's rate in FP16 (twice that in INT8, of
 * quantised weights), at least a thousandth. */
void calibrate_space_fill(const struct calibrate_set *set, const struct soc_runtime *r,
                          struct calibrate_space *s);
/* Removes a parameter from the search. The caller sets its value. */
void calibrate_space_hold(struct calibrate_space *s, int k);
/* All coordinates: parameters and offsets. */
size_t calibrate_space_size(const struct calibrate_space *s);

double calibrate_v_of(double x, double offset);
double calibrate_x_of(double v, double offset);
/* v of the i-th free parameter; its position between the bounds (0 to 1); and the coordinate u of a
 * parameter's v. */
double calibrate_v_at(const struct calibrate_space *s, const gsl_vector *u, int i);
double calibrate_t_at(const struct calibrate_space *s, const gsl_vector *u, int i);
double calibrate_u_at(const struct calibrate_space *s, int k, double v);
/* ln of a group's rate (which 0) or bandwidth (1) over the pool's. */
double calibrate_offset_at(const struct calibrate_space *s, const gsl_vector *u, int group,
                           int which);

void calibrate_param_set(struct soc_runtime *r, int k, double x);
double calibrate_param_get(const struct soc_runtime *r, int k);
/* `base` with the free parameters of u. */
struct soc_runtime calibrate_params_at(const struct calibrate_space *s,
                                       const struct soc_runtime *base, const gsl_vector *u);
