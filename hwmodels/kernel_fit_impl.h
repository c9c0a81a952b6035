/* Declarations shared by the files of the fit. */
#pragma once

#include "hwmodels/kernel_fit.h"

#define FIT_MAX_DEVICES 8
#define FIT_MAX_GROUPS 24

/* Indices of a device's parameters; -1: none. */
struct fit_device {
    const struct kernel_row *row; /* names */
    int attention, read, copy, knob_rate, knob_knee;
};

/* Products of one width on one device. */
struct fit_group {
    int device;
    uint32_t weight_bits;
    int rate, bandwidth, bandwidth_one, knee, launch;
};

struct fit_point {
    int cell;
    uint32_t repetition;
    double log_value; /* without the drift between repetitions */
    double var;       /* variance due to the samples of its window; pooled over its cell */
    double weight;    /* weight of its residual: 1 / standard deviation */
};

struct fit_problem {
    struct kernel_fit *fit;
    struct fit_device devices[FIT_MAX_DEVICES];
    struct fit_group groups[FIT_MAX_GROUPS];
    int n_devices, n_groups;
    int cap, sharpness;
    struct fit_point *points; /* owned; fitted ones only */
    uint32_t n_points;
    double x[KERNEL_FIT_MAX_PARAMS]; /* in fitting coordinates */
    double *covariance; /* owned, n x n, of x; the blocks of isolated and co-running parameters,
                           each from its residuals */
    double dof[2];      /* isolated, co-running */
    double drift_var;   /* variance of the mean over repetitions */
};

/* Rates are fitted as logarithms, knees and sharpness as inverses, launch costs in microseconds. */
double fit_to_x(enum kernel_param p, double value);
double fit_from_x(enum kernel_param p, double x);

/* Index of the cell's latency sensitivity; -1: 0. */
int fit_lambda(const struct kernel_fit *fit, const struct kernel_cell *c);

/* kernel_fit_cells.c: cells, parameters and points from rows, starting values. */
int fit_prepare(struct fit_problem *f, const struct kernel_rows *rows, struct err *e);
/* kernel_fit_stats.c */
void fit_weigh(struct fit_problem *f);        /* weights from scatter and samples */
void fit_remove_drift(struct fit_problem *f); /* with the weights */
void fit_intervals(struct fit_problem *f);    /* after the fit */
void fit_lack_of_fit(struct fit_problem *f);
/* kernel_fit_forms.c: errors on held-out cells. */
void fit_judge(struct fit_problem *f);
