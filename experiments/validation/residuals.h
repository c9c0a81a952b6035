/* Errors of calibrations on rows that they have not seen, as a table. Intervals rest on it
 * (hwmodels/conformal.h).
 *
 * With left_out "model", the row's model was left out of the fit of its SoC's own entry. With
 * left_out "soc", the entry of another SoC (`by`) predicts the row, scaled by datasheet rate and
 * DDR peak. It is an entry of the same kind of device, runtime family and weight width. Where a
 * family pools SoCs, it was fitted again without the row's SoC. That is the error of a machine made
 * from a similar chip. */
#pragma once

#include "experiments/validation/calibrate.h"
#include "hwmodels/conformal.h"

/* Fits every entry of every SoC that has rows of its own and writes the table. Returns how many
 * rows it has. `npu_share` is that of soc_share_read. Cost: one fit per model and entry. */
size_t residuals_write(const struct catalog *c, const struct points *points, const char *name,
                       double npu_share, FILE *out);

/* Such a table for people: models by family and phase, and machines made from a sibling pair by
 * pair. Decode rows count from a context of 100 tokens on, as prefill rows do from that length. */
void left_out_table_print(const struct conformal *c, FILE *out);
void transfer_table_print(const struct conformal *c, FILE *out);
