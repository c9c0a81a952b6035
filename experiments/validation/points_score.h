/* Errors of predictions of published measurements, by groups of rows.
 *
 * The error of a row is predicted / measured - 1. A group has these statistics:
 *   median, P90   of the absolute error (nearest rank)
 *   bias          the geometric mean of predicted over measured time, minus 1; a rate in tokens per
 *                 second counts as a time
 *   correlation   Pearson's, of predicted and measured, if all rows have the same metric
 * The second pair of columns counts a row that is not predicted as an error of 100 %. */
#pragma once

#include "experiments/validation/predict.h"

struct points_group {
    const char *by;  /* "soc", "device", ... */
    const char *key; /* the group's; borrowed from the points or static */
    size_t n, predicted;
    double median, p90, bias, pearson; /* of predicted rows; NaN: there are none */
    double median_all, p90_all;        /* unpredicted rows as 100 % */
    double inside_frac; /* share of 95 % intervals with the measured value inside; NaN */
};

struct points_scores {
    struct points_group *v; /* kept */
    size_t n;
};

/* (predicted - measured) / measured; NaN: no prediction. */
double points_error(const struct point *p, const struct prediction *q);

/* Scores all latency rows; then by soc, device, metric, model, prompt range and parameters (those
 * of the runtime or of the default); then the other rows by metric. q[i] belongs to points->v[i].
 */
void points_score(const struct points *points, const struct prediction *q,
                  struct points_scores *out);
