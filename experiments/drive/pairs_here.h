/* Which kernels slow each other on the processors of a machine that is calibrated.
 *
 * Kernels of a calibration co-run, too. But they share the model's weights in the last-level cache,
 * so their bytes are no traffic of the memory. Here each processor has a pool of its own. The plan
 * is the shortest one of `measure --pairs`. It takes 20 s on an idle machine. */
#pragma once

#include "hwmodels/pairs.h"
#include "sim/drive/drive.h"

/* Measures the first two devices, two repetitions. 0: *out has the machine's names of devices.
 * -EINVAL: `why` says what prevents it: the processor-time clock, a device that is
 * no processor of its own, or rows without a pair. */
int pairs_here(const struct drive_options *d, const struct machine *m, struct pairs *out,
               struct err *why);
