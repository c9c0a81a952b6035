/* Measures the slowdowns of co-running kernels on the processors of the calibrated machine.
 *
 * Kernels of a calibration co-run, too, but share the model's weights in the last-level cache, so
 * their bytes are not DDR traffic. Here each processor has its own buffers. The plan is the
 * shortest of `measure --pairs`. It takes 20 s on an idle machine. */
#pragma once

#include "hwmodels/pairs.h"
#include "sim/drive/drive.h"

/* Measures the first two devices, two repetitions. Returns 0; *out has the machine's names of
 * devices. -EINVAL: `why` has the reason: the processor-time clock, a device that is not a separate
 * processor, or rows without a pair. */
int pairs_here(const struct drive_options *d, const struct machine *m, struct pairs *out,
               struct err *why);
