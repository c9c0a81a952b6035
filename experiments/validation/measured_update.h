/* Updates a machine file with a user's rows (update.h), and reports the changes. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/shell/document.h"
#include "experiments/validation/catalog.h"
#include "experiments/validation/measured_like.h"

/* Updates every device with rows: its kernel-time numbers with ranges and covariance, and the
 * errors of models that were not measured (`fit.error_sd`). `tree` is a valid SoC file; its machine
 * is added to `c`. The report goes into `d`, with the benchmark to run next. Returns 0, or -EINVAL
 * with an error for each bad row; then the tree is invalid. */
int measured_update(struct catalog *c, cJSON *tree, struct measured *m,
                    const struct measured_like *like, struct document *d, struct err *e);
