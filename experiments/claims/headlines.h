/* The headlines of the papers in one table: the checks that a claims file marks `headline`.
 *
 * A row has the published value, and this simulator's on two machines, each with the 95 % interval
 * of its mean over traces. With machines drawn within their known ranges it also has the range that
 * these show (the model's part of the doubt). */
#pragma once

#include "experiments/claims/claims.h"

/* Keeps the headlines alone; -EINVAL with an error when there is none. */
int claims_headlines(struct claims *c, struct err *e);

/* Range of a check over drawn machines. Machine i has the value
 *   mean + (1/T) sum over t of (drawn->x[i T + t] - file->x[t]),   T = QUANTITIES_MACHINE_TRACES:
 * it differs from the file's machine on the same traces, so most of the traces' spread is gone. The
 * range is that of claim_check (2.5 to 97.5 %); of fewer than CLAIM_TRACES machines it is the least
 * to the most. Returns how many machines have a value; low and high are NaN for none. file->x needs
 * T values. */
uint32_t headline_range(const struct claim_check *file, const struct claim_check *drawn,
                        uint32_t machines, double *low, double *high);

/* Adds the table. `drawn`: the same claims on `machines` drawn machines, without independent ones;
 * or NULL. `reasons`: people also see what decides and what it would take. */
void headlines_document(const struct claims *c, const struct claims *drawn, uint32_t machines,
                        bool reasons, struct document *d);
