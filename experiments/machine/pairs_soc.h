/* Co-running kernels of a machine into its SoC file.
 *
 * `ddr.together` and `ddr.queueing` are fitted to the slowdowns, under the contention model that
 * the file states (else `latency`). Their ranges are fits to the ends of the slowdowns' intervals.
 * A number that the pairs do not show keeps its value and range, and its source says so. The cap is
 * not shown where no pair asks for more than the memory gives. The strength is not where its range
 * would be no narrower than the one in the file. Two kernels that reach more than `ddr.peak` raise
 * it. Weights of devices are how they share the cap, for the model `weighted`. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/shell/document.h"
#include "hwmodels/pairs.h"

/* Reads rows of `measure --pairs`. 0 or -EINVAL with errors. */
int pairs_soc_read(const char *path, struct pairs *out, struct err *e);

/* tree: a SoC file that loads, and loads afterwards. `d` gets a note for each number. */
void pairs_soc_put(const struct pairs *p, cJSON *tree, struct document *d);
