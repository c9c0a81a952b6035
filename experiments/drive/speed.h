/* Speed of kernels in a real run, relative to a machine file. It separates errors of the file's
 * kernel costs, errors of the simulation, and the computer's varying speed. */
#pragma once

#include "experiments/run/config.h"
#include "sim/drive/drive.h"

struct speed {
    double device[MACHINE_MAX_DEVICES]; /* predicted over real time; 1: no kernels ran */
    double all;                         /* of all devices; NaN: the file has no measured times */
    double outside_frac; /* share of kernel time outside the file's measured rows and keys */
};

/* Speed over complete kernels, from the measured times of c's machine. One-row kernels are expected
 * to be slower next to another device. */
struct speed speed_of_run(const struct drive_report *r, enum drive_clock clock,
                          const struct config *c);
/* Scales c's kernels to the speed of the run. */
void speed_apply(struct config *c, const struct speed *s);
