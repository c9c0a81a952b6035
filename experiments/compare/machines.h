/* Machines within the known ranges: joint draws of every uncertain number of a SoC file.
 *
 * A factor is one uncertain number of the configuration's machine:
 *   range      [low, high] of the file: half of the draws below its value and half above, uniform
 *              on each side (in the logarithm if low > 0)
 *   fit        parameters of one calibrated entry together: normal with the covariance that the
 *              calibration left in the file
 *   residual   error of a calibration on a model it has not seen, of a device, a model and a
 *              phase: a draw of the left-out errors (hwmodels/conformal.h), as a factor of time; it
 *              moves the model's rate (prefill) or bandwidth (decode)
 * Only runtime entries that a model of the run uses count. Not varied are datasheet peaks, on which
 * no time depends, the memory size, which an owner knows, and frequency steps, whose speeds must
 * rise.
 *
 * Draws are a Latin hypercube: each factor has one value in each of n equally likely intervals,
 * paired at random, so that means converge faster than with independent draws. */
#pragma once

#include "experiments/run/config.h"

#define MACHINES_MAX_FACTORS 240
#define MACHINES_LEVEL_FRAC 0.95 /* share of the draws within printed ranges */

enum machine_factor_kind { MACHINE_RANGE, MACHINE_FIT, MACHINE_RESIDUAL };

/* A number by its name in the file. */
struct machine_number {
    const char *name;
    const char *measure; /* the command that measures it */
    double offset;       /* added before its logarithm is taken, in the file's unit; 0: nothing */
    bool capped;         /* draws are at most the DDR's peak */
};

struct machine_factor {
    /* "soc.devices.npu.runtimes.0.rate"; residuals: "residual.npu.prefill", of a further model
     * "residual.npu.NAME.prefill". Nobody frees the texts. */
    const char *path, *unit;
    enum machine_factor_kind kind;
    const struct machine_number *number;
    const char *name;          /* within path: the number's key, after device and entry */
    int device;                /* index; -1: a number of the machine */
    bool decode;               /* of residuals; else prefill */
    uint32_t model;            /* of residuals: number of the model */
    double nominal, low, high; /* in the file's unit; residuals: factors of time, 1 nominal */
    uint32_t group;            /* fits: first factor of the entry's joint draw */
};

struct machines {
    struct machine_factor factor[MACHINES_MAX_FACTORS];
    uint32_t n_factors;
    uint32_t n_draws;
    double ddr_peak;  /* GB/s, of the file */
    double pl2_watts; /* of the file */
    /* Measured rows from which residuals are drawn, by kind of device and phase. inside: those
     * between the 2.5 and 97.5 % points of draws made without their model. */
    size_t n_rows, n_rows_inside;
    double *value; /* owned; [draw][factor] */
    double *z;     /* owned; [draw][factor], its standard normal score, independent of the others */
};

/* Finds the factors of a loaded configuration, without draws. Returns 0, or -EINVAL: too many. */
int machines_find(const struct config *c, struct machines *m, struct err *e);

/* Finds the factors of a loaded configuration and draws n machines, with the seed of its options. 0
 * or -EINVAL (no residuals table, too many factors, or too many settings together with those of the
 * options). machines_fini in every case. */
int machines_draw(const struct config *c, const struct config_options *o, uint32_t n,
                  struct machines *out, struct err *e);
void machines_fini(struct machines *m);

/* Loads the configuration of machine `draw`. With draw UINT32_MAX it is the file's machine with
 * factor k at x. config_fini is needed in every case. */
int machines_load(const struct machines *m, const struct config_options *o, uint32_t draw,
                  uint32_t k, double x, struct config *c, struct err *e);
