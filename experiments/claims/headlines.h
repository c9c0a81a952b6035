/* Prints the headlines of the papers in one table: checks that a claims file marks `headline`.
 *
 * A row has the published value and the simulated one on two machines, each with the 95 % interval
 * of its mean over traces. With machines drawn within the known ranges it also has the range over
 * these (the model's uncertainty). */
#pragma once

#include "experiments/claims/claims.h"

/* Keeps only the headlines. Returns -EINVAL with an error if there is none. */
int claims_headlines(struct claims *c, struct err *e);

/* Range of a check over drawn machines. Machine i has the value
 *   mean + (1/T) sum over t of (drawn->x[i T + t] - file->x[t]),   T = QUANTITIES_MACHINE_TRACES:
 * the difference from the file's machine on the same traces, which removes most of the spread
 * between traces. The range is that of claim_check (2.5 to 97.5 %); of fewer than CLAIM_TRACES
 * machines it is minimum to maximum. Returns how many machines have a value. Without any, low and
 * high are NaN. file->x needs T values. */
uint32_t headline_range(const struct claim_check *file, const struct claim_check *drawn,
                        uint32_t machines, double *low, double *high);

/* Adds the table. `drawn`: the same claims on `machines` drawn machines, without independent ones;
 * or NULL. `reasons`: also prints the members decides and takes. */
void headlines_document(const struct claims *c, const struct claims *drawn, uint32_t machines,
                        bool reasons, struct document *d);
