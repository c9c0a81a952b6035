/* Fits the numbers of a SoC file to measured kernels.
 *
 * Nonlinear least squares (GSL) of kernel_model.h on the logarithms of all trusted rows, in two
 * stages. The first fits isolated times. The second fits slowdowns of pairs with the first stage's
 * numbers, and includes their errors. So a wrong contention model cannot bend the isolated times.
 * Estimated are:
 *   per device                  attention rate, stream and copy bandwidth, rate and knee of the
 *                               intensity knob
 *   per device, weight width    rate P, bandwidth B, one-row bandwidth, knee p, launch cost
 *   for the machine             shared cap C and its sharpness q
 *   per kernel and width        latency sensitivity
 *
 * Standard errors come from the covariance. Intervals are simultaneous over all parameters
 * (Bonferroni), 95 %. Drift between repetitions is taken out of the residuals and put into the
 * errors of every rate, because it moves them all together. A lack-of-fit test compares the misfit
 * of the model with the scatter of repetitions. It flags a model that is wrong by more than 1 %
 * (root mean square) beyond chance at the 1 % level. Rows of set "held" are never fitted; they are
 * for the comparison with two other models (kernel_form). */
#pragma once

#include "hwmodels/kernel_model.h"
#include "hwmodels/kernel_rows.h"

#define KERNEL_FIT_MAX_PARAMS 96

enum kernel_param {
    KERNEL_PARAM_RATE,          /* P, flop/s: matrix products */
    KERNEL_PARAM_BANDWIDTH,     /* B, bytes/s: more than one row */
    KERNEL_PARAM_BANDWIDTH_ONE, /* bytes/s: one row */
    KERNEL_PARAM_KNEE,          /* p */
    KERNEL_PARAM_LAUNCH,        /* t, s */
    KERNEL_PARAM_ATTENTION,     /* flop/s of attention: P e_a */
    KERNEL_PARAM_READ,          /* bytes/s */
    KERNEL_PARAM_COPY,          /* bytes/s, read and written */
    KERNEL_PARAM_KNOB_RATE,     /* flop/s */
    KERNEL_PARAM_KNOB_KNEE,     /* p of the knob */
    KERNEL_PARAM_CAP,           /* C, bytes/s: the machine */
    KERNEL_PARAM_SHARPNESS,     /* q: the machine */
    KERNEL_PARAM_LAMBDA,        /* fraction: one kernel */
    KERNEL_PARAM_COUNT
};

struct kernel_estimate {
    enum kernel_param param;
    const char *device, *runtime; /* from the rows; "" for the machine */
    uint32_t weight_bits;         /* 0: any */
    enum kernel_op op;            /* LAMBDA */
    double value, low, high;      /* interval; its ends may be infinite */
    bool resolved;                /* the data determine it: the interval is narrower than half its
                                     value (launch and lambda: it excludes 0, or is narrow) */
};

/* One kernel of one device, isolated or co-running with one partner, over all repetitions. */
struct kernel_cell {
    const struct kernel_row *row; /* one of its rows, for amounts and names; borrowed */
    int partner;                  /* isolated cell of the partner; -1: this cell is isolated */
    int group;                    /* products and attention: index of the curve; -1 none */
    int device;
    bool held_out;
    uint32_t n;       /* trusted rows */
    double log_mean;  /* mean logarithm of seconds or of the slowdown */
    double low, high; /* over repetitions */
    double predicted; /* the fit's seconds or slowdown */
};

struct kernel_lack_of_fit {
    bool tested; /* false without repetitions, or with fewer cells than parameters */
    double f, p;
    double misfit_frac; /* root mean square beyond scatter */
    double noise_frac;  /* scatter of one repetition */
    bool wrong;
};

/* Three models, compared on held-out shapes. */
enum kernel_form {
    KERNEL_FORM_TWO_ANCHOR, /* max() through the most memory- and the most compute-bound shape */
    KERNEL_FORM_PNORM,      /* the fit */
    KERNEL_FORM_TABLE,      /* interpolation of measurements */
    KERNEL_FORM_COUNT
};

struct kernel_form_error {
    uint32_t n;
    double median_frac, worst_frac; /* absolute relative errors */
};

struct kernel_fit {
    struct kernel_estimate params[KERNEL_FIT_MAX_PARAMS];
    uint32_t n_params;
    struct kernel_cell *cells; /* kept */
    uint32_t n_cells;
    struct kernel_lack_of_fit alone, together;
    struct kernel_form_error errors[KERNEL_FORM_COUNT][KERNEL_OP_COUNT]; /* held-out, by op */
    struct kernel_form_error all[KERNEL_FORM_COUNT];
    double drift_frac; /* standard deviation between repetitions */
    uint32_t n_points, n_flagged, n_repetitions, iterations;
};

const char *kernel_param_name(enum kernel_param p);
const char *kernel_form_name(enum kernel_form f);

/* Fits. rows must outlive the fit. 0; -EINVAL with errors: too few trusted rows, or no
 * convergence; *fit is then empty. Cost: seconds for some thousand rows. */
int kernel_fit_run(struct kernel_fit *fit, const struct kernel_rows *rows, struct err *e);

/* Finds an estimate, or NULL. weight_bits 0: any. */
const struct kernel_estimate *kernel_fit_find(const struct kernel_fit *fit, enum kernel_param p,
                                              const char *device, uint32_t weight_bits);

/* Numbers of a SoC file that are not fitted. */
struct kernel_soc_options {
    const char *name;
    double ddr_peak_bytes_per_s; /* datasheet; 0: the highest that the fit shows */
    double memory_bytes;         /* 0: from the rows, else assumed */
};

/* Writes a strict SoC file (soc.h): fitted numbers with their intervals, all others assumed and
 * marked so. Replaces path only when complete. Returns 0, or -EINVAL with errors, also if a rate or
 * bandwidth is not resolved. */
int kernel_fit_write_soc(const struct kernel_fit *fit, const struct kernel_rows *rows,
                         const struct kernel_soc_options *o, const char *path, struct err *e);
