/* Declarations shared by the two files of the bound. */
#pragma once

#include "experiments/compare/bound.h"

/* Sums of doubles here and integer instants there: far above what rounding of either can add. */
#define BOUND_ROUNDING_FRAC 1e-9

/* Rows, (query, key) pairs and keys a request brings to every layer, as few as can be. */
struct bound_work {
    double input;
    double prefill_rows, prefill_pairs;
    uint32_t decode_passes; /* after the first token */
    double decode_rows;
    double decode_keys; /* read by those passes; pairs too, at least */
};

struct bound_work bound_work(const struct bound *b, const struct trace_row *row);
