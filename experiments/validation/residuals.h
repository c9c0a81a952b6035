/* What calibrations get wrong on what they have not seen: the errors that intervals rest on
 * (hwmodels/conformal.h), as a table.
 *
 * left_out "model": the row's model was left out of the fit of its SoC's own entry. left_out "soc":
 * the row is predicted by the entry of another SoC (`by`) of the same kind of device, runtime
 * family and weight width, scaled by datasheet rate and DDR peak, fitted again without the row's
 * SoC where a family pools them: what a machine made from a sibling is off by. */
#pragma once

#include <stdio.h>

#include "experiments/validation/calibrate.h"

/* Fits every entry of every SoC that has rows of its own and writes the table. Returns how many
 * rows it has. Cost: one fit per model and entry. */
size_t residuals_write(const struct catalog *c, const struct points *points, const char *name,
                       FILE *out);
