/* Declarations shared by the two files of the bound. */
#pragma once

#include "experiments/compare/bound.h"

/* Slack, far above the rounding errors of the bounds' doubles and the runs' integer instants. */
#define BOUND_ROUNDING_FRAC 1e-9

/* The least rows, (query, key) pairs and keys that a request adds to every layer. */
struct bound_work {
    double input;
    double prefill_rows, prefill_pairs;
    uint32_t decode_passes; /* after the first token */
    double decode_rows;
    double decode_keys; /* read by those passes; also a lower bound of their pairs */
};

struct bound_work bound_work(const struct bound *b, const struct trace_row *row);
