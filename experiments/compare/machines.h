/* Machines within the known ranges: joint draws of every uncertain number of a SoC file.
 *
 * A factor is one uncertain number of the configuration's machine:
 *   range      [low, high] of the file: half of the draws on either side of its value, uniform (in
 *              the logarithm where low is above 0)
 *   fit        parameters of one calibrated entry together: normal with the covariance that the
 *              calibration left in the file
 *   residual   error of a calibration on a model it has not seen, of a device and a phase:
 *              a draw of the left-out errors (hwmodels/conformal.h), as a factor of time; it moves
 *              the entry's rate (prefill) or bandwidth (decode)
 * Only runtime entries that the model runs on count. Peaks of datasheets, which no time depends on,
 * do not. Neither do the memory, which an owner knows, and steps of frequency, whose speeds rise.
 *
 * Draws are a Latin hypercube: each factor's n values come one from each n-th of its distribution,
 * paired at random, so that means settle faster than with independent draws. */
#pragma once

#include "experiments/run/config.h"

#define MACHINES_MAX_FACTORS 120
#define MACHINES_LEVEL_FRAC 0.95 /* of the draws, between which results are printed */

enum machine_factor_kind { MACHINE_RANGE, MACHINE_FIT, MACHINE_RESIDUAL };

/* A number by its name in the file. */
struct machine_number {
    const char *name;
    const char *measure; /* what to run to know it */
    double offset;       /* added before its logarithm is taken, in the file's unit; 0: nothing */
    bool capped;         /* nothing draws more than the DDR has */
};

struct machine_factor {
    /* "soc.devices.npu.runtimes.0.rate"; residuals: "residual.npu.prefill". Nobody frees the texts.
     */
    const char *path, *unit;
    enum machine_factor_kind kind;
    const struct machine_number *number;
    const char *name;          /* in path: the number's, behind its device and entry */
    int device;                /* index; -1: it is the machine's */
    bool decode;               /* of residuals; else prefill */
    double nominal, low, high; /* in the file's unit; residuals: factors of time, 1 nominal */
    uint32_t group;            /* fits: first factor of the entry's joint draw */
};

struct machines {
    struct machine_factor factor[MACHINES_MAX_FACTORS];
    uint32_t n_factors;
    uint32_t n_draws;
    double ddr_peak;  /* GB/s, of the file */
    double pl2_watts; /* of the file */
    /* Measured rows that residuals are drawn from, by kind of device and phase, and those of them
     * between the 2.5 and 97.5 % points of draws made without their model. */
    size_t n_rows, n_rows_inside;
    double *value; /* owned; [draw][factor] */
    double *z;     /* owned; [draw][factor], its standard normal score, independent of the others */
};

/* The factors of a loaded configuration, without draws. 0 or -EINVAL (too many). */
int machines_find(const struct config *c, struct machines *m, struct err *e);

/* Finds the factors of a loaded configuration and draws n machines, with the seed of its options. 0
 * or -EINVAL (no residuals table, too many factors, or together with what the options set more than
 * can be set). machines_fini in every case. */
int machines_draw(const struct config *c, const struct config_options *o, uint32_t n,
                  struct machines *out, struct err *e);
void machines_fini(struct machines *m);

/* Loads the configuration of machine `draw`; or, with draw UINT32_MAX, the file's with factor k at
 * x. config_fini is needed in every case. */
int machines_load(const struct machines *m, const struct config_options *o, uint32_t draw,
                  uint32_t k, double x, struct config *c, struct err *e);
