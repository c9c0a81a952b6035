/* Suites that compute instants by hand share one scenario, one script, and these fixtures. */
#pragma once

#include "tests/helpers/script.h"
#include "tests/helpers/suite.h"

extern struct scenario sc; /* that of rules.h */
extern struct script x;

/* Fixtures. byhand_igpu_setup: the script serves on the iGPU, and attention is dynamic. */
void byhand_setup(void);
void byhand_igpu_setup(void);
void byhand_teardown(void);

/* Two layers; on the NPU and the iGPU a kernel takes 4 ms for QKV, 6 for attention, 8 for FFN and 1
 * for the head, and draws so many GB/s; attention is dynamic. */
void byhand_toy(double gb_per_s);

/* Runs sc with that step, and checks that it ended well and adds up. */
void byhand_run(void (*step)(struct sched *s, struct script *y), const struct scenario_request *q,
                uint32_t n);
