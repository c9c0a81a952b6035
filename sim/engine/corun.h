/* A launch that co-runs with one other job (corun.c). */
#pragma once

#include "sim/engine/ddr.h"

void corun_init(struct engine *e);
/* Moves the launch over the end of its piece of work, and over later ends. Later ones come before
 * that instant and before the other job's end. Time moves to the last of them. Preconditions: the
 * two jobs share the DDR at full speed. The first end comes before the other's, and only the launch
 * takes notice of it. passes: this holds for ends of later kernels, too. The launch's last kernel
 * is never passed. */
void corun_step(struct engine *e, struct vexec *v, struct job *other, bool passes,
                int64_t before_ns);
/* Reports the DDR intervals that are not reported yet. To be called at the end of a run. */
void corun_report(struct engine *e);
