/* Writes the results of co-running kernels into the machine's SoC file.
 *
 * `ddr.together` and `ddr.queueing` are fitted to the slowdowns, under the contention model that
 * the file states (else `latency`). Their ranges are fits to the ends of the slowdowns' intervals.
 * A number that the pairs do not determine keeps its value and range, and its source says so. The
 * cap is not determined if no pair demands more bandwidth than the memory has. The strength is not
 * if its range would be no narrower than that in the file. If two kernels reach more than
 * `ddr.peak`, it is raised. Device weights are their shares of the cap, for the model `weighted`.
 */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/shell/document.h"
#include "hwmodels/pairs.h"

/* Reads rows of `measure --pairs`. Returns 0, or -EINVAL with errors. */
int pairs_soc_read(const char *path, struct pairs *out, struct err *e);

/* tree: a valid SoC file, and it stays valid. `d` gets a note for each number. */
void pairs_soc_put(const struct pairs *p, cJSON *tree, struct document *d);
