/* Points of results put into named series, for the figures that draw them. */
#pragma once

#include "plots/results.h"

struct series {
    const struct results *results; /* borrowed */
    const char *x;                 /* borrowed; may be NULL */
    struct texts names;
    size_t n_points;
    size_t *of;    /* the series of each point */
    size_t *order; /* points by x */
};

/* x and y, which may be NULL, do not name a series. Kept. */
const struct series *series_of(const struct results *r, const char *x, const char *y);
/* A block per series: x, mean, low, high, runs, overloaded runs; points by x. Returns how many
 * points have overloaded runs. */
size_t series_lines(const struct series *s, const char *metric, struct figure_data *d);
/* Variables title1.. with what each metric is, and its unit: "reactive latency, mean (s)". */
void series_titles(const char *const *metrics, size_t n, struct figure_data *d);
