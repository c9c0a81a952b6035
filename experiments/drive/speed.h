/* Speed of kernels in a real run, relative to a machine file. It separates three errors: of the
 * file's kernel costs, of the simulation, and of a computer that was faster or slower in that run.
 */
#pragma once

#include "experiments/run/config.h"
#include "sim/drive/drive.h"

struct speed {
    double device[MACHINE_MAX_DEVICES]; /* predicted over real time; 1 where nothing ran */
    double all;                         /* of all devices; NaN where the file has no such times */
    double
        outside_frac; /* of the time of kernels: rows or keys that the file was not measured at */
};

/* Speed over the kernels that ran whole, by the measured times of c's machine. A kernel with one
 * row counts as slowed next to another device. */
struct speed speed_of_run(const struct drive_report *r, enum drive_clock clock,
                          const struct config *c);
/* Makes c's kernels as fast as they were in the run. */
void speed_apply(struct config *c, const struct speed *s);
