/* A cache of kernel costs (costs.c). */
#pragma once

#include "sim/core/kernels.h"
#include "sim/engine/engine.h"

/* Costs of the kernels of similar passes. */
struct costs {
    uint64_t key[4];
    bool known[OP_KIND_COUNT];
    /* Sums over a whole pass without attention: */
    bool whole;                      /* they are valid */
    int64_t others_ns;               /* duration */
    uint64_t others, others_outside; /* kernels; those outside the calibrated range */
    uint32_t layers;                 /* layers of its model */
    uint64_t passes;                 /* isolated passes whose DDR bytes are not reported yet */
    struct work_shape attention;     /* shape of the attention whose cost it has */
    struct kernel_run run[OP_KIND_COUNT];
};

void costs_init(struct engine *e);
/* Fills the times and bytes of a launch's kernels. */
void costs_fill(struct engine *e, struct vexec *v);
/* Books the kernels of n isolated whole passes, without attention. */
void costs_book(struct engine *e, struct costs *p, uint64_t n);
/* Reports the remaining DDR bytes, at the end of a run. */
void costs_report(struct engine *e);
static inline double costs_peak_bytes_per_ns(const struct engine *e)
{
    return e->core.setup->machine->ddr_peak_bytes_per_s * 1e-9;
}

/* Returns the larger of `over` and a kernel's isolated traffic over what the DDR can move in its
 * time. The time was rounded to the nearest ns, so half a ns is added. */
static inline double costs_over_capacity(double over, double peak_bytes_per_ns, int64_t t_ns,
                                         double bytes)
{
    double most = peak_bytes_per_ns * ((double)t_ns + 0.5);
    return bytes > over * most ? bytes / most : over;
}
