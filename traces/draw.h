/* A number of a workload: a constant, a distribution, or a column of a data set.
 *
 * In JSON: 800, {"distribution": "uniform", "min": 2, "max": 8}, {"distribution": "exponential",
 * "mean": 30}, {"distribution": "gamma" or "lognormal", "mean": 4, "cv": 2}, or {"dataset":
 * "mtrag", "column": "output_tokens"}. `min` and `max` limit drawn values. */
#pragma once

#include "sim/base/json.h"

enum draw_kind {
    DRAW_NONE, /* the key is missing */
    DRAW_UNIFORM,
    DRAW_EXPONENTIAL,
    DRAW_GAMMA,
    DRAW_LOGNORMAL,
    DRAW_COLUMN,
    DRAW_CONSTANT
};

/* The values of one column, in a linked list. */
struct draw_column {
    const char *file, *name;
    double *v; /* owned */
    size_t n;
    struct draw_column *next; /* owned */
};

struct draw {
    enum draw_kind kind;
    double mean, cv, min, max;        /* a constant is the mean */
    const struct draw_column *column; /* borrowed */
};

/* A key and its range. */
struct draw_rule {
    const char *key;
    double min, max;
    bool whole; /* rounded */
};

/* Reads a key that may be missing. Errors name file and key path. New columns are added to the
 * list, for draw_columns_free. */
struct draw draw_read(struct json_obj *o, const struct draw_rule *rule,
                      struct draw_column **columns);
void draw_columns_free(struct draw_column *columns);

/* The value of a stream: a pure function of its arguments. Numbers of one stream are independent,
 * except that those of one data set are from one row. Precondition: d is not DRAW_NONE. */
double draw_value(const struct draw *d, uint64_t stream, uint32_t number, bool whole);
