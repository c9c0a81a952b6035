/* What to measure: shapes alone, and pairs of shapes together.
 *
 * Shapes cover what a fit needs: products from one row (the memory anchor) to many (the compute
 * anchor) with the knee between, tiny ones for the launch cost, attention, plain streams and the
 * intensity knob. Others are held out and judge the fit: row counts between the fitted ones, other
 * matrices, other contexts. Pairs span the memory's load from slight to far above what it gives. */
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

/* Index of "tiny", "small", "full"; -1 for others. */
int plan_size_find(const char *name);

/* Shapes of one device. */
void plan_kernels(const struct backend_info *d, enum plan_size size, struct plan *out);

/* Pairs of two devices: side[0] runs on a, side[1] on b. */
void plan_pairs(const struct backend_info *a, const struct backend_info *b, enum plan_size size,
                struct plan_pairs *out);
