/* Chooses the similar chip of a new machine by its measured rows: the shipped machine under whose
 * copy these times are most probable (update_ln_evidence). Copies of other machines are no
 * candidates, nor are machines that have no entry for a row's device, runtime and width. */
#pragma once

#include "experiments/shell/document.h"
#include "experiments/validation/catalog.h"
#include "experiments/validation/measured.h"
#include "hwmodels/soc_sibling.h"

/* The name of the machine, kept, with a note in `d` about it and the next ones. NULL: a row states
 * no runtime, or no machine has all of the rows. `how` has the data sheet; its `like` is not used.
 * The models of the rows are in `c`. Cost: some milliseconds per machine and row. */
const char *measured_like(struct catalog *c, const struct soc_sibling *how,
                          const struct measured *m, struct document *d);
