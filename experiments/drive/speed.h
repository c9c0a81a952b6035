/* How fast kernels were in a real run, beside what a machine file says: so that an error of its
 * prices can be told from one of the simulation, and of a computer that was faster or slower in
 * that run from both. */
#pragma once

#include "experiments/run/config.h"
#include "sim/drive/drive.h"

struct speed {
    double device[MACHINE_MAX_DEVICES]; /* predicted over real time; 1 where nothing ran */
    double all;                         /* of all devices; NaN where the file has no such times */
};

/* Of the kernels that ran whole, by the measured times of c's machine; those with one row as slowed
 * beside another engine. */
struct speed speed_of_run(const struct drive_report *r, enum drive_clock clock,
                          const struct config *c);
/* Makes c's kernels as fast as they were in the run. */
void speed_apply(struct config *c, const struct speed *s);
