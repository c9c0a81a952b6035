/* The energy that a meter would read in a run.
 *
 *     joules = factor (idle x time + joules per byte x bytes per second x busy time) + compiling
 *
 * Bytes per second are those of the device's one-row kernels: prefill draws as much as decode.
 * `xpusim validate --energy` fits the numbers to published powers, and prints the errors (README,
 * "What meters read"). A SoC file has its own numbers in `metered`, or those of
 * hwmodels/metered.json. Power limits are ignored: a device is at full speed or idle. */
#pragma once

#include "sim/api/device.h"
#include "sim/base/err.h"
#include "sim/base/json_fields.h"

struct soc;

struct metered {
    int meter;                                 /* enum soc_meter; SOC_METER_UNSTATED: no numbers */
    double idle_watts;                         /* < 0: the machine's idle_power */
    double joules_per_byte[DEVICE_KIND_COUNT]; /* above idle, in decode; < 0: unknown */
    double factor;                             /* the machine's own; 1 without readings */
    double spread_factor;                      /* 95 % of readings are within a factor 1 / x to x */
    char machines[128];                        /* for shared numbers: prefixes of machine names */
};

extern const struct json_fields metered_fields;

/* Gives the machine the shared numbers of the package meter. A file with its own numbers keeps
 * them. A file whose powers were read at a battery, a board or a wall gets none, nor does a machine
 * of another class (a phone, a board, a card). 0, or -EINVAL with errors that name the shared file.
 */
int metered_complete(struct soc *soc, struct err *e);
