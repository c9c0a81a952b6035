/* The error of a machine file derived from a similar chip (its sibling): of every row that another
 * SoC's fitted entry predicted, scaled by datasheet rate and DDR peak (left_out "soc" of
 * hwmodels/residuals.csv). The fit of the sibling has not seen a row of the machine, of its
 * family's pool neither. */
#pragma once

#include "hwmodels/conformal.h"

enum transfer_kin { TRANSFER_ANY, TRANSFER_WITHIN_FAMILY, TRANSFER_ACROSS_FAMILIES };

struct transfer_query {
    const char *from, *to; /* NULL: any */
    enum device_kind kind;
    enum conformal_phase phase;
    enum transfer_kin kin;
};

/* |predicted / measured - 1| of the rows that match. */
struct transfer_error {
    size_t n, pairs;              /* rows; (from, to) with a row */
    double median_frac, p90_frac; /* of rows; NaN without one */
    double bias_frac;             /* median of predicted / measured - 1 */
    double least_frac, most_frac; /* of the pairs' medians */
};

/* How a machine of the family is related to the SoC whose numbers it has; TRANSFER_ANY where the
 * table has no row of that SoC. */
enum transfer_kin transfer_kin_of(const struct conformal *c, const char *from, const char *family);

struct transfer_error transfer_error_of(const struct conformal *c, const struct transfer_query *q);

/* The pairs of the table in its order; at most `max` are written. Returns how many there are. */
struct transfer_pair {
    const char *from, *to; /* borrowed from the table */
    enum device_kind kind;
    bool within_family;
};
size_t transfer_pairs(const struct conformal *c, struct transfer_pair *out, size_t max);
