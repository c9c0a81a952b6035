/* Costs of kernels, remembered (costs.c). */
#pragma once

#include "sim/core/kernels.h"
#include "sim/engine/engine.h"

/* Costs of the kernels of similar passes. */
struct costs {
    uint64_t key[4];
    bool known[OP_KIND_COUNT];
    /* All kernels of a whole pass but those of attention. */
    bool whole;                      /* they are known */
    int64_t others_ns;               /* of the pass */
    uint64_t others, others_outside; /* kernels; those outside the model's envelope */
    uint32_t layers;                 /* of its model */
    uint64_t passes;                 /* that ran alone, whose DDR bytes are not reported yet */
    struct work_shape attention;     /* of the attention that is known: a key has one op with any */
    struct kernel_run run[OP_KIND_COUNT];
};

void costs_init(struct engine *e);
/* Fills the launch's kernel times and bytes. */
void costs_fill(struct engine *e, struct vexec *v);
/* n whole passes ran alone: books their kernels but those of attention. */
void costs_book(struct engine *e, struct costs *p, uint64_t n);
/* Reports the DDR bytes that are not reported yet: at the end of a run. */
void costs_report(struct engine *e);
static inline double costs_peak_bytes_per_ns(const struct engine *e)
{
    return e->core.setup->machine->ddr_peak_bytes_per_s * 1e-9;
}

/* A kernel's isolated traffic, as a share of what the DDR could move in its time. Returns `over` if
 * that is more. The time was rounded to the nearest ns. */
static inline double costs_over_capacity(double over, double peak_bytes_per_ns, int64_t t_ns,
                                         double bytes)
{
    double most = peak_bytes_per_ns * ((double)t_ns + 0.5);
    return bytes > over * most ? bytes / most : over;
}
