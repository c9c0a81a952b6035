/* Results of many runs as points: axes (policy, load, parameters) and metrics with intervals.
 *
 * Reads `compare --json` (with or without --load), `sweep --export csv` and plain CSV. In a CSV,
 * rows with equal axes are replications, and give a mean and a 95 % interval. Columns M.low and
 * M.high of a column M are used as they are. The axes of a sweep export are its set.* columns.
 * Those of a plain CSV are its text columns and the ones named as x and y. */
#pragma once

#include "plots/figure.h"

/* Number of runs of a point, and of OVERLOADED ones, whose means grow with their length. Both are 0
 * if unknown. */
struct results_load {
    unsigned runs, overloaded;
};

struct results {
    struct frame *points;      /* a row per point: axes, and NAME.mean .low .high of metrics */
    struct texts axes;         /* names of the columns that are axes */
    struct results_load *load; /* per point */
    const char **input;        /* per point: label of its input */
    const struct figure_request *request; /* borrowed */
};

struct results_value {
    double mean, low, high; /* NaN if undefined */
};

/* All inputs of the request together; never freed. NULL with errors. */
const struct results *results_load(const struct figure_request *request, struct err *e);
size_t results_n(const struct results *r);

/* Value of an axis; NULL if the point has none. */
const char *results_axis(const struct results *r, size_t i, const char *axis);
/* False, with *out unchanged, if the axis has no number. */
bool results_axis_number(const struct results *r, size_t i, const char *axis, double *out);
/* The numeric axis for x or y: `asked`, else the first candidate (NULL-terminated) that varies,
 * else any numeric axis but `not_this` that varies. NULL with an error if there is none. */
const char *results_pick_axis(const struct results *r, const char *asked,
                              const char *const *candidates, const char *not_this, const char *what,
                              struct err *e);
/* Names the point by the policy and the axes that vary, except x and y; without any by its input.
 * Never freed (xkeep). */
const char *results_label(const struct results *r, size_t i, const char *x, const char *y);

/* False, with NaN, if the point has no such metric. */
bool results_metric(const struct results *r, size_t i, const char *metric,
                    struct results_value *out);
struct results_load results_overload(const struct results *r, size_t i);
/* "overloaded in 5 of 20 runs", or "" if none is. Never freed (xkeep). */
const char *results_mark(const struct results *r, size_t i);
/* Whether some point has the metric. */
bool results_has(const struct results *r, const char *metric);
/* Returns 0, or -ENODATA with an error that names similar metrics if no point has a number of
 * it. */
int results_require(const struct results *r, const char *metric, struct err *e);

/* For results only: inputs as points (results_load.c), and CSV inputs (results_csv.c). */

/* Records the number of failed runs of an input, which the figure's heading shows. */
void results_put_failed(const struct figure_input *in, double failed);

/* Adds an empty point of this input. Later calls fill it. */
void results_begin_point(struct results *r, const struct figure_input *in);
/* Sets an axis of the last point, unless the value is absent or an empty text. */
void results_put_axis(struct results *r, const char *name, struct frame_value v);

int results_add_csv(struct results *r, const struct figure_input *in, struct err *e);
