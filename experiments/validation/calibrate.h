/* Fits the kernel-time parameters of a runtime entry of a SoC file to measured latencies.
 *
 * A set has the rows of one (device, runtime, weight width). Rows of SoCs of the same family are
 * scaled to this one: rate by the device's peak, bandwidth by the DDR's.
 *
 * The fit minimises a loss of the errors plus one of the parameters.
 *
 *     sum_i rho(ln(predicted_i / measured_i) / s)  +  sum_k ((v_k - v0_k) / PRIOR_SD)^2
 *
 * Here rho is Cauchy's loss, rho(z) = c^2 ln(1 + (z / c)^2). The scale s is the errors' robust
 * standard deviation, iterated to convergence. The coordinate v_k is the logarithm of parameter k
 * (of 1 + x for those that may be 0), kept inside physical bounds by a logistic transform. The
 * starting value is v0_k, and PRIOR_SD is 1 (a factor of e). Each inner step is GSL's
 * Levenberg-Marquardt, on unrounded times. The result does not depend on the order of rows.
 *
 * Rows of one SoC under one exact runtime version are a group, when they are of at least two
 * models. (With one model, the effects of version and model cannot be separated.) If there are
 * several groups, each has its own rate and bandwidth; ln of their ratio to the pool's is N(0,
 * CALIBRATE_OFFSET_SD^2). The entry gets the mean of the groups of its own SoC, or the pool's
 * values if it has none.
 *
 * The result goes into the file. A parameter that the points do not determine is fixed at its
 * starting value, and one that reaches its bound at the bound. Parameters are fixed one at a time,
 * and the others are fitted again. Standard errors come from the covariance of the parameters still
 * free at the end. They take the errors of rows as independent, but rows of one model share an
 * error (hwmodels/spread.h). For decodes of iGPUs, with 2.3 rows a model, they should be 1.2 times
 * as large. For prompts of NPUs, with 2.6 rows, it is 1.5 times. The range of one at its bound is
 * its profile: it extends to where the sum, minimised over all others, has risen by 4. */
#pragma once

#include "experiments/validation/predict.h"

enum calibrate_param {
    CALIBRATE_RATE,          /* flop/s */
    CALIBRATE_BANDWIDTH,     /* bytes/s */
    CALIBRATE_LAUNCH,        /* s */
    CALIBRATE_FILL,          /* rows */
    CALIBRATE_ATTENTION,     /* 1 */
    CALIBRATE_WIDTH,         /* columns; free if the file has it */
    CALIBRATE_ONE_BANDWIDTH, /* of one-row kernels; free if the file has separate values */
    CALIBRATE_ONE_LAUNCH,
    CALIBRATE_ENQUEUE,        /* s; free if the file has it */
    CALIBRATE_PROMPT_ENQUEUE, /* s; free if the file has it */
    CALIBRATE_SPECIAL,        /* share of the rate; free if the file has it */
    CALIBRATE_N_PARAMS
};

extern const char *const calibrate_param_names[CALIBRATE_N_PARAMS]; /* keys of a SoC file */

struct calibrate_row {
    const struct point *point;
    struct predict_case k;
    double seconds;                     /* measured time of the pass */
    double rate_scale, bandwidth_scale; /* of its SoC over the fitted SoC */
    int group;                          /* -1: none */
    bool left_out;
    double ln_error; /* result: ln(predicted / measured) */
};

#define CALIBRATE_MAX_GROUPS 24
struct calibrate_group {
    const char *soc, *runtime; /* borrowed from a point */
    bool own;                  /* belongs to the fitted SoC */
};

struct calibrate_set {
    const struct soc *soc;
    uint8_t device;
    uint32_t runtime;           /* index of the device's entry */
    bool roofline;              /* fit rate, bandwidth, launch and attention, but no fills */
    struct calibrate_row *rows; /* owned */
    size_t n;
    struct calibrate_group groups[CALIBRATE_MAX_GROUPS];
    uint32_t n_groups;
};

enum calibrate_state {
    CALIBRATE_ABSENT, /* not a parameter of this entry */
    CALIBRATE_FITTED,
    CALIBRATE_HELD,  /* at its starting value: not determined by the points */
    CALIBRATE_BOUND, /* at its physical bound */
};

struct calibrate_fit {
    struct soc_runtime params; /* of the entry, with the offsets of its SoC's groups */
    enum calibrate_state state[CALIBRATE_N_PARAMS];
    double value[CALIBRATE_N_PARAMS];                          /* SI units */
    double se[CALIBRATE_N_PARAMS];                             /* standard error, if fitted */
    double low[CALIBRATE_N_PARAMS], high[CALIBRATE_N_PARAMS];  /* two standard errors, or profile */
    double covariance[CALIBRATE_N_PARAMS][CALIBRATE_N_PARAMS]; /* of the v; 0 unless fitted */
    double offset[CALIBRATE_MAX_GROUPS][2]; /* of each group's ln rate and ln bandwidth */
    double sigma;                           /* robust standard deviation of ln_error */
    uint32_t rounds;
    size_t n_used, n_models;
};

/* The starting values of an entry: those before any fit. */
struct soc_runtime calibrate_start(const struct soc_runtime *r);

/* Collects the rows of `points` that belong to an entry. The set may be empty. */
void calibrate_collect(const struct catalog *c, const struct points *points, const struct soc *soc,
                       uint8_t device, uint32_t runtime, struct calibrate_set *out);
void calibrate_set_fini(struct calibrate_set *s);

/* Makes the groups from rows that are not left out. A left-out row belongs to its version's group
 * if that exists. Every fit calls it first. */
void calibrate_group(struct calibrate_set *s);

/* Fits the rows not left out, and fills ln_error of all rows. Returns 0, or -EINVAL with an error:
 * too few points or models, points that do not determine rate and bandwidth, a measurement that is
 * impossible with this DDR, or no convergence. */
int calibrate_fit(struct calibrate_set *s, struct calibrate_fit *out, struct err *e);

/* ln(predicted / measured) of a row with parameters of its set's SoC, scaled to the row's SoC. */
double calibrate_error(const struct calibrate_row *row, const struct soc_runtime *params);

/* ln(predicted / measured) of a row with the entry's starting values. */
double calibrate_start_error(const struct calibrate_set *s, const struct calibrate_row *row);

/* Leaves out each model in turn and fits again. ln_error of a row is then that of the fit without
 * its model, or of the starting values if too few rows remain for a fit. Returns the number of
 * models without a fit. */
size_t calibrate_leave_one_out(struct calibrate_set *s);

/* Leaves out each source in turn and fits again. ln_error is NaN if too few rows remain. */
size_t calibrate_leave_source_out(struct calibrate_set *s);
