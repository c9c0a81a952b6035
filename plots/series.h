/* Points of results grouped into named series, for the figures that draw them. */
#pragma once

#include "plots/results.h"

struct series {
    const struct results *results; /* borrowed */
    const char *x;                 /* borrowed; may be NULL */
    struct texts names;
    size_t n_points;
    size_t *of;    /* per point: its series */
    size_t *order; /* points in order of x */
};

/* Groups points by all axes except x and y, which may be NULL. Never freed. */
const struct series *series_of(const struct results *r, const char *x, const char *y);
/* Writes a block per series: x, mean, low, high, runs, overloaded runs; in order of x. Returns the
 * number of points with overloaded runs. */
size_t series_lines(const struct series *s, const char *metric, struct figure_data *d);
/* Writes variables title1.. with each metric's title and unit: "reactive latency, mean (s)". */
void series_titles(const char *const *metrics, size_t n, struct figure_data *d);
