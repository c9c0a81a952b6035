/* The error of a machine file derived from a similar chip (its sibling), over all rows that another
 * SoC's fitted entry predicted, scaled by datasheet rate and DDR peak (left_out "soc" of
 * hwmodels/residuals.csv). The fit of the sibling included no row of the machine, not even in the
 * pool of its family. */
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
    size_t n, pairs;              /* rows, and pairs (from, to) with a row */
    double median_frac, p90_frac; /* over rows; NaN without rows */
    double bias_frac;             /* median of predicted / measured - 1 */
    double least_frac, most_frac; /* range of the pairs' medians */
};

/* How a machine of the family is related to the SoC whose numbers it has; TRANSFER_ANY if the table
 * has no row of that SoC. */
enum transfer_kin transfer_kin_of(const struct conformal *c, const char *from, const char *family);

struct transfer_error transfer_error_of(const struct conformal *c, const struct transfer_query *q);

/* Lists the pairs of the table in its order, at most `max`. Returns their total number. */
struct transfer_pair {
    const char *from, *to; /* borrowed from the table */
    enum device_kind kind;
    bool within_family;
};
size_t transfer_pairs(const struct conformal *c, struct transfer_pair *out, size_t max);
