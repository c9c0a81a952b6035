/* A machine file that rows of a user update (update.h), and the report of it. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/shell/document.h"
#include "experiments/validation/catalog.h"
#include "experiments/validation/measured.h"

/* Updates every device that has rows: its kernel-time numbers with ranges and covariance, and the
 * errors of models that were not measured (`fit.error_sd`). `tree` is a file that soc_parse takes.
 * Its machine is added to `c`. The report goes into `d`, with the benchmark to run next. Returns 0,
 * or -EINVAL with an error for each bad row; the tree is invalid then. */
int measured_update(struct catalog *c, cJSON *tree, struct measured *m, struct document *d,
                    struct err *e);
