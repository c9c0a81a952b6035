/* Fitting the kernel-time parameters of one runtime entry of a SoC file to measured latencies.
 *
 * A set is the rows of one (device, runtime, weight width), with those of SoCs of the same family
 * scaled to this one: rate by the device's peak, bandwidth by the DDR's.
 *
 * The fit minimises the losses of errors and of parameters:
 *
 *     sum_i rho(ln(predicted_i / measured_i) / s)  +  sum_k ((v_k - v0_k) / PRIOR_SD)^2
 *
 * The loss of errors is Cauchy's, rho(z) = c^2 ln(1 + (z / c)^2). Their robust standard deviation s
 * is renewed until it settles. v_k is the logarithm of parameter k (of 1 + x for those that may be
 * 0), kept inside physical bounds by a logistic transform. The starting value is v0_k, and PRIOR_SD
 * is 1 (a factor of e). Each inner step is GSL's Levenberg-Marquardt, over times that are not
 * rounded. The order of the rows decides nothing.
 *
 * Rows of one SoC under one exact runtime version are a group, when they are of at least two
 * models. (With one model, the version's pace and the model's cannot be separated.) Where there are
 * several groups, each has a rate and a bandwidth of its own around the pool's, ln of their ratio
 * N(0, CALIBRATE_OFFSET_SD^2). The entry gets the mean of its own SoC's groups, or the pool's when
 * it has none.
 *
 * The result is what the file will contain. A parameter that the points do not determine is kept at
 * its starting value, and one that runs into its bound at the bound. This happens one at a time,
 * and the others are fitted again. Standard errors come from the covariance of those fitted at the
 * end. The range of one at its bound reaches to where, all others refitted, the sum has risen by 4.
 */
#pragma once

#include "experiments/validation/predict.h"

enum calibrate_param {
    CALIBRATE_RATE,          /* flop/s */
    CALIBRATE_BANDWIDTH,     /* bytes/s */
    CALIBRATE_LAUNCH,        /* s */
    CALIBRATE_FILL,          /* rows */
    CALIBRATE_ATTENTION,     /* 1 */
    CALIBRATE_WIDTH,         /* columns; free where the file has it */
    CALIBRATE_ONE_BANDWIDTH, /* of one-row kernels; free where the file gives them their own */
    CALIBRATE_ONE_LAUNCH,
    CALIBRATE_ENQUEUE,        /* s; free where the file has it */
    CALIBRATE_PROMPT_ENQUEUE, /* s; free where the file has it */
    CALIBRATE_SPECIAL,        /* share of the rate; free where the file has it */
    CALIBRATE_N_PARAMS
};

extern const char *const calibrate_param_names[CALIBRATE_N_PARAMS]; /* keys of a SoC file */

struct calibrate_row {
    const struct point *point;
    struct predict_case k;
    double seconds;                     /* measured, of the pass */
    double rate_scale, bandwidth_scale; /* its SoC's over the fitted one's */
    int group;                          /* -1: none */
    bool left_out;
    double ln_error; /* result: ln(predicted / measured) */
};

#define CALIBRATE_MAX_GROUPS 24
struct calibrate_group {
    const char *soc, *runtime; /* borrowed from a point */
    bool own;                  /* of the fitted SoC */
};

struct calibrate_set {
    const struct soc *soc;
    uint8_t device;
    uint32_t runtime;           /* entry of the device */
    bool roofline;              /* fit rate, bandwidth, launch and attention; no fills */
    struct calibrate_row *rows; /* owned */
    size_t n;
    struct calibrate_group groups[CALIBRATE_MAX_GROUPS];
    uint32_t n_groups;
};

enum calibrate_state {
    CALIBRATE_ABSENT, /* not a parameter of this entry */
    CALIBRATE_FITTED,
    CALIBRATE_HELD,  /* not determined by the points: its starting value */
    CALIBRATE_BOUND, /* at its physical bound */
};

struct calibrate_fit {
    struct soc_runtime params; /* of the entry: with its own groups' offsets */
    enum calibrate_state state[CALIBRATE_N_PARAMS];
    double value[CALIBRATE_N_PARAMS];                          /* SI units */
    double se[CALIBRATE_N_PARAMS];                             /* of value; fitted ones */
    double low[CALIBRATE_N_PARAMS], high[CALIBRATE_N_PARAMS];  /* two standard errors, or profile */
    double covariance[CALIBRATE_N_PARAMS][CALIBRATE_N_PARAMS]; /* of the v; 0 unless fitted */
    double offset[CALIBRATE_MAX_GROUPS][2]; /* of each group's ln rate and ln bandwidth */
    double sigma;                           /* robust standard deviation of ln_error */
    uint32_t rounds;
    size_t n_used, n_models;
};

/* An entry of a SoC file as it was before it was ever fitted. */
struct soc_runtime calibrate_start(const struct soc_runtime *r);

/* The rows of `points` that belong to an entry. Empty sets are fine. */
void calibrate_collect(const struct catalog *c, const struct points *points, const struct soc *soc,
                       uint8_t device, uint32_t runtime, struct calibrate_set *out);
void calibrate_set_fini(struct calibrate_set *s);

/* Forms the groups of the rows that are not left out; one that is belongs to its version's, if the
 * others form it. Every fit begins so. */
void calibrate_group(struct calibrate_set *s);

/* Fits the rows not left out; fills every row's ln_error, left out or not. 0, or -EINVAL with an
 * error that says why not: too few points or models, points that do not determine rate and
 * bandwidth, a measurement no machine with this DDR can make, no convergence. */
int calibrate_fit(struct calibrate_set *s, struct calibrate_fit *out, struct err *e);

/* ln(predicted / measured) of a row by parameters of its set's SoC, scaled as the row says. */
double calibrate_error(const struct calibrate_row *row, const struct soc_runtime *params);

/* ln(predicted / measured) of a row by the entry's starting values, fitted to nothing. */
double calibrate_start_error(const struct calibrate_set *s, const struct calibrate_row *row);

/* Fits once more without each model in turn; ln_error of a row is then of the fit that did not see
 * its model; where too little remains for one, of the starting values. Returns how many those are.
 */
size_t calibrate_leave_one_out(struct calibrate_set *s);

/* Fits once more without each source in turn. Where too little remains, ln_error is NaN. */
size_t calibrate_leave_source_out(struct calibrate_set *s);
