/* Errors of predictions of published measurements, by group of rows.
 *
 * The error of a row is predicted / measured - 1. A group has these statistics:
 *   median, P90   of the absolute error (nearest rank)
 *   bias          the geometric mean of predicted over measured time, less 1; a rate in tokens
 *                 per second counts as the time it means
 *   correlation   Pearson's, of predicted and measured, where all rows are of one metric
 * The second pair of columns counts a row that is not predicted as an error of 100 %. */
#pragma once

#include "experiments/validation/predict.h"

struct points_group {
    const char *by;  /* "soc", "device", ... */
    const char *key; /* the group's; borrowed from the points or static */
    size_t n, predicted;
    double median, p90, bias, pearson; /* of predicted rows; NaN where there are none */
    double median_all, p90_all;        /* unpredicted rows as 100 % */
    double inside_frac; /* measured within the 95 % interval, of rows with one; NaN */
};

struct points_scores {
    struct points_group *v; /* kept */
    size_t n;
};

/* (predicted - measured) / measured; NaN for a row without a prediction. */
double points_error(const struct point *p, const struct prediction *q);

/* Latency rows: all of them, then by soc, device, metric, model, prompt range and parameters (the
 * runtime's own or the default's); then the other rows by metric. q[i] belongs to points->v[i]. */
void points_score(const struct points *points, const struct prediction *q,
                  struct points_scores *out);
