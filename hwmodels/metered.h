/* The joules that a meter reads of a run.
 *
 *     joules = factor (idle x time + joules per byte x bytes per second x busy time) + compiling
 *
 * Bytes per second are those of the device's one-row kernels: one that computes a prompt draws what
 * it draws in decode. `xpusim validate --energy` fits the numbers to published powers, and prints
 * how far they are off (README, "What meters read"). A SoC file has its own in `metered`, or takes
 * those of hwmodels/metered.json. Power limits do not enter: a device is at full speed or idle. */
#pragma once

#include "sim/api/device.h"
#include "sim/base/err.h"
#include "sim/base/json_fields.h"

struct soc;

struct metered {
    int meter;                                 /* enum soc_meter; SOC_METER_UNSTATED: no numbers */
    double idle_watts;                         /* below 0: the machine's idle_power */
    double joules_per_byte[DEVICE_KIND_COUNT]; /* above idle, of decode; below 0: not known */
    double factor;                             /* the machine's own; 1 where nobody read it */
    double spread_factor;                      /* 95 % of readings are within it: 1 / x to x */
    char machines[128];                        /* of shared numbers: beginnings of their names */
};

extern const struct json_fields metered_fields;

/* Gives the machine the shared numbers of the package meter. A file with numbers of its own keeps
 * them. A file whose devices were read at a battery, a board or a wall has no use for a package's.
 * A machine of another class (a phone, a board, a card) gets none. 0, or -EINVAL with errors that
 * name the shared file. */
int metered_complete(struct soc *soc, struct err *e);
