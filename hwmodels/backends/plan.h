/* The measurement plan: isolated shapes, and pairs of shapes that run together.
 *
 * Shapes cover what a fit needs:
 *   products       from one row (the memory anchor) to many (the compute anchor), the knee between
 *   tiny products  launch cost
 *   others         attention, plain streams, the intensity knob
 * Further shapes are held out and test the fit: row counts between the fitted ones, other matrices,
 * other contexts. Pairs cover memory loads from slight to far above its capacity. */
#pragma once

#include "hwmodels/backends/backend.h"

enum plan_size {
    PLAN_TINY,  /* seconds: does everything work */
    PLAN_SMALL, /* about a minute per repetition */
    PLAN_FULL   /* matrices of a 7B model */
};

#define PLAN_MAX_KERNELS 128
#define PLAN_MAX_PAIRS 64

struct plan {
    struct kernel_spec kernels[PLAN_MAX_KERNELS];
    uint32_t n;
};

struct plan_pair {
    struct kernel_spec side[2];
    bool held_out;
};

struct plan_pairs {
    struct plan_pair pairs[PLAN_MAX_PAIRS];
    uint32_t n;
};

extern const char *const plan_sizes[]; /* "tiny", "small", "full" by the enum; NULL ends them */

/* Shapes of one device. */
void plan_kernels(const struct backend_info *d, enum plan_size size, struct plan *out);

/* Pairs of two devices: side[0] runs on a, side[1] on b. */
void plan_pairs(const struct backend_info *a, const struct backend_info *b, enum plan_size size,
                struct plan_pairs *out);
/* Each kind of kernel of one next to each of the other: read, copy, products of 1, 2 and many rows,
 * attention of prompts and of decodes. */
void plan_every_pair(const struct backend_info *a, const struct backend_info *b,
                     enum plan_size size, struct plan_pairs *out);
