/* Errors on what calibrations have not seen, for people: models by family and phase, and machines
 * made from a sibling pair by pair. */
#pragma once

#include <stdio.h>

#include "hwmodels/conformal.h"

/* Decode rows count from a context of 100 tokens on, as prefill rows do from that length. */
void left_out_table_print(const struct conformal *c, FILE *out);
void transfer_table_print(const struct conformal *c, FILE *out);
