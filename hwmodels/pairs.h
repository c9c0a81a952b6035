/* Co-running kernels, from `measure --pairs`: slowdowns, and the bandwidth of the memory.
 *
 * A cell is a victim's kind of kernel next to a culprit's. Its slowdown is the mean over
 * repetitions, with Student's 95 % interval. The memory's cap is the highest bandwidth that any two
 * kernels reached together. It is a cap only if a pair demands more (PAIRS_ABOVE times); otherwise
 * it is a lower bound. Below the cap a victim's loss is its mean slowdown minus 1. Above it the
 * weights of devices are their shares, if both are slowed.
 *
 * Rows with few samples are left out. Disturbed rows count, because their samples are those in
 * which both kernels had their cores (backends/window.h). */
#pragma once

#include "hwmodels/kernel_rows.h"

#define PAIRS_ABOVE 1.1
#define PAIRS_MIN_SAMPLES 5

struct pairs_mean {
    double value, low, high; /* low and high are NaN with one repetition */
    uint32_t n;
};

/* A kind of kernel on a device. */
struct pairs_side {
    const char *device, *model;                 /* from the rows */
    double alone_bytes_per_s, both_bytes_per_s; /* DDR traffic, isolated and in this pair */
};

struct pairs_cell {
    struct pairs_side victim, culprit;
    struct pairs_mean slowdown;
    bool above; /* their demands exceed the cap */
};

struct pairs_loss {
    const char *device, *model; /* from the rows */
    struct pairs_mean frac;     /* loss below the cap, over culprits and repetitions */
};

struct pairs {
    struct pairs_cell *cells; /* kept */
    size_t n;
    struct pairs_loss *losses; /* kept; for victims below the cap */
    size_t n_losses;
    double most_bytes_per_s;  /* highest bandwidth of a pair */
    double asked_bytes_per_s; /* highest demand of a pair */
    bool saturated;           /* most_bytes_per_s is the cap */
    const char *devices[2];
    struct pairs_mean share; /* share of the first device in pairs above the cap; n 0: none */
    size_t rows, left_out;   /* observations, and those with too few samples */
};

/* Evaluates the rows of one machine. Returns 0, or -EINVAL with an error if there is no pair. */
int pairs_make(struct pairs *out, const struct kernel_rows *rows, struct err *e);
