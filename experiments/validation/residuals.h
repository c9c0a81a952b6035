/* Writes the errors of calibrations on left-out rows as a table, from which intervals are made
 * (hwmodels/conformal.h).
 *
 * With left_out "model", the row's model was left out of the fit of its SoC's own entry. With
 * left_out "soc", the entry of another SoC (`by`) predicts the row, scaled by datasheet rate and
 * DDR peak. It is an entry of the same kind of device, runtime family and weight width. If a family
 * pools SoCs, it is fitted again without the row's SoC. So this is the error of a machine made from
 * a similar chip. */
#pragma once

#include "experiments/validation/calibrate.h"
#include "hwmodels/conformal.h"

/* Fits every entry of every SoC that has rows of its own and writes the table. Returns how many
 * rows it has. `npu_share` is that of soc_share_read. Cost: one fit per model and entry. */
size_t residuals_write(const struct catalog *c, const struct points *points, const char *name,
                       double npu_share, FILE *out);

/* Print such a table: models by family and phase; machines made from a sibling, by pair. Only
 * prompts and contexts of at least 100 tokens count. */
void left_out_table_print(const struct conformal *c, FILE *out);
void transfer_table_print(const struct conformal *c, FILE *out);
