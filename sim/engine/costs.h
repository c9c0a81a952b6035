/* A cache of kernel costs (costs.c). */
#pragma once

#include "sim/engine/engine.h"

void costs_init(struct engine *e);
/* Fills the times and bytes of a launch's kernels. */
void costs_fill(struct engine *e, struct vexec *v);
/* Counts and reports the booked kernels of a launch, as far as no other launch has the same. */
void costs_leave(struct engine *e, struct vexec *v);
/* Counts and reports all booked kernels, at the end of a run. */
void costs_finish(struct engine *e);

/* Audits that an isolated kernel moves no more bytes than the DDR can in its time. The time was
 * rounded to the nearest ns, so half a ns is added. */
static inline void costs_audit(struct engine *e, const struct kernel_cost *c)
{
    double *over = &e->core.result->audit.ddr_max_over_capacity;
    double peak_bytes_per_ns = e->core.setup->machine->ddr_peak_bytes_per_s * 1e-9;
    double most = peak_bytes_per_ns * ((double)c->load_ns + 0.5);
    *over = c->bytes > *over * most ? c->bytes / most : *over;
}
