/* Declarations shared by the files of the measuring protocol. */
#pragma once

#include "hwmodels/backends/host.h"
#include "hwmodels/backends/measure.h"
#include "hwmodels/backends/watchdog.h"
#include "hwmodels/backends/window.h"

#define MEASURE_MAX_DEVICES MACHINE_MAX_DEVICES /* a SoC file holds no more */
#define DRIVER_CALL_S 600.0 /* a driver call (compiling a kernel) that takes longer hangs */

struct measure_target {
    struct backend_info info;
    struct backend_device *device;
    struct plan plan;
    bool hung;
};

struct measure {
    const struct measure_options *o;
    struct backend *backend;
    struct measure_target targets[MEASURE_MAX_DEVICES];
    uint32_t n_targets;
    FILE *out;
    struct err *err;
    struct host_energy energy;
    struct window_options window;
    struct window_side sides[2];
    uint32_t repetition;
    uint32_t steps_done, steps_all, windows_all;
};

/* measure_steps.c: one shape alone; one pair in its bracket. Rows are written, progress shown. */
void measure_alone(struct measure *m, struct measure_target *t, const struct kernel_spec *s);
void measure_pair(struct measure *m, struct measure_target *a, struct measure_target *b,
                  const struct plan_pair *p);
/* Whether a device may be given back: a lost one keeps what it has, for it may still use it. */
bool measure_target_safe(const struct measure *m, const struct measure_target *t);
