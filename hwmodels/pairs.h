/* Co-running kernels, as `measure --pairs` finds them: who slows whom, and what the memory gives.
 *
 * A cell is a victim's kind of kernel next to a culprit's. Its slowdown is the mean over
 * repetitions; the interval is Student's of 95 %. The memory's cap is the highest bandwidth that
 * any two kernels reached together. It is a cap only where some pair would ask for more by itself
 * (PAIRS_ABOVE times); otherwise the cap is at least that. Below it a victim's loss is its mean
 * slowdown minus 1. Above it the weights of devices are how they share it, where both are slowed.
 *
 * Rows whose samples are few are left out. Disturbed ones count: their samples are those in which
 * both kernels had their cores (backends/window.h). */
#pragma once

#include "hwmodels/kernel_rows.h"

#define PAIRS_ABOVE 1.1
#define PAIRS_MIN_SAMPLES 5

struct pairs_mean {
    double value, low, high; /* low and high NaN: one repetition */
    uint32_t n;
};

/* A kind of kernel on a device. */
struct pairs_side {
    const char *device, *model;                 /* the rows' texts */
    double alone_bytes_per_s, both_bytes_per_s; /* of DDR, isolated and in this pair */
};

struct pairs_cell {
    struct pairs_side victim, culprit;
    struct pairs_mean slowdown;
    bool above; /* together they ask for more than the memory gives */
};

struct pairs_loss {
    const char *device, *model; /* the rows' texts */
    struct pairs_mean frac;     /* below the cap, over culprits and repetitions */
};

struct pairs {
    struct pairs_cell *cells; /* kept */
    size_t n;
    struct pairs_loss *losses; /* kept; of victims that met a culprit below the cap */
    size_t n_losses;
    double most_bytes_per_s;  /* reached together */
    double asked_bytes_per_s; /* by the pair that asks for most */
    bool saturated;           /* most is the cap */
    const char *devices[2];
    struct pairs_mean share; /* of the first device in pairs above the cap; n 0: there is none */
    size_t rows, left_out;   /* observations; those with too few samples */
};

/* From the rows of one machine. 0, or -EINVAL with an error: there is no pair. */
int pairs_make(struct pairs *out, const struct kernel_rows *rows, struct err *e);
