/* Robust non-negative least squares with few unknowns.
 *
 * Minimises the sum of w (sum over k of a[k] x[k] - y)^2. Rows with errors above 1.5 robust
 * standard deviations have less weight (Huber). For relative errors, divide a row's columns by its
 * measured value and set y to 1. Pure, deterministic; some 20 x rows x numbers^2. */
#pragma once

#include <stddef.h>

#define LEAST_SQUARES_MAX 8 /* unknowns */

/* a: n rows of `numbers` columns. x, in and out: the start, which may be 0. */
void least_squares_fit(const double *a, const double *y, size_t n, int numbers, double *x);
