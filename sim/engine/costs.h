/* Costs of the kernels of a launch (costs.c). */
#pragma once

#include "sim/engine/engine.h"

/* Fills the launch's kernel times and bytes. */
void costs_fill(struct engine *e, struct vexec *v);
/* The op of a pass that has its attention. */
static inline enum op_kind costs_attention_op(const struct pass *p)
{
    return p->fused_layers ? OP_LAYER : OP_MHA;
}

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
