/* What `xpusim characterize --csv` prints: one value per row, columns study, device, what, x_name,
 * x, metric, value, unit. Some figures read it beside plain CSV. */
#pragma once

#include "plots/figure.h"

/* Is the only input such a file? False as well when it cannot be read: the caller says so. */
bool study_is(const struct figure_request *q);

/* For the figures whose plain form is elsewhere. */
int figure_batch_study(const struct figure_request *q, struct figure_data *d, struct err *e);
int figure_chunk_study(const struct figure_request *q, struct figure_data *d, struct err *e);
int figure_draft_study(const struct figure_request *q, struct figure_data *d, struct err *e);
int figure_corun_study(const struct figure_request *q, struct figure_data *d, struct err *e);
