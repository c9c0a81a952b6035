/* Results of many runs as points: axes (policy, load, parameters) and metrics with intervals.
 *
 * Reads `compare --json` (with or without --load), `sweep --export csv` and plain CSV. In a CSV,
 * rows of equal axes are replications, and give a mean and a 95 % interval. Columns M.low and
 * M.high of a column M are taken as they are. The axes of a sweep export are its set.* columns.
 * Those of a plain CSV are its text columns and the ones named as x and y. */
#pragma once

#include "plots/figure.h"

/* Runs behind a point, and how many of them were OVERLOADED: their means grow with their length. 0
 * of 0 where it is not said. */
struct results_load {
    unsigned runs, overloaded;
};

struct results {
    struct frame *points;      /* a row each; axes, and NAME.mean .low .high of metrics */
    struct texts axes;         /* columns of points that are axes */
    struct results_load *load; /* of each point */
    const char **input;        /* the label of each point's input */
    const struct figure_request *request; /* borrowed */
};

struct results_value {
    double mean, low, high; /* NaN where not defined */
};

/* All inputs of the request together, which are kept. NULL with errors. */
const struct results *results_load(const struct figure_request *request, struct err *e);
size_t results_n(const struct results *r);

/* NULL when the point has no such axis. */
const char *results_axis(const struct results *r, size_t i, const char *axis);
/* False, and *out as it was, when it has none. */
bool results_axis_number(const struct results *r, size_t i, const char *axis, double *out);
/* The numeric axis to draw against: what was asked for, else the first of the NULL-ended list that
 * varies, else any numeric axis that does. NULL with an error when there is none. */
const char *results_pick_axis(const struct results *r, const char *asked,
                              const char *const *candidates, const char *not_this, const char *what,
                              struct err *e);
/* Names the point by every axis in which points differ, but x and y; without one by its input.
 * Nobody frees it. */
const char *results_label(const struct results *r, size_t i, const char *x, const char *y);

/* False, and NaN, when the point does not have it. */
bool results_metric(const struct results *r, size_t i, const char *metric,
                    struct results_value *out);
struct results_load results_overload(const struct results *r, size_t i);
/* "overloaded in 5 of 20 runs", "" of none. Nobody frees it. */
const char *results_mark(const struct results *r, size_t i);
/* Has some point the metric? */
bool results_has(const struct results *r, const char *metric);
/* -ENODATA with an error when no point has a number of the metric: it names similar ones that
 * have. */
int results_require(const struct results *r, const char *metric, struct err *e);

/* Inside results: how inputs become points (results_load.c), and the CSV half (results_csv.c). */

/* So many of an input's runs failed: its figures say so above themselves. */
void results_put_failed(const struct figure_input *in, double failed);

/* A point of this input without anything; what follows is of it. */
void results_begin_point(struct results *r, const struct figure_input *in);
/* An axis of the last point, unless the value is absent or an empty text. */
void results_put_axis(struct results *r, const char *name, struct frame_value v);

int results_add_csv(struct results *r, const struct figure_input *in, struct err *e);
