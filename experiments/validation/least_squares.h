/* Robust least squares with numbers of at least 0, for few numbers.
 *
 * Minimises the sum of w (sum over k of a[k] x[k] - y)^2. Rows further off than 1.5 robust standard
 * deviations weigh less (Huber). A row whose y is 1 and whose columns are divided by what was
 * measured has a relative error. Pure, deterministic; some 20 x rows x numbers^2. */
#pragma once

#include <stddef.h>

#define LEAST_SQUARES_MAX 8 /* numbers */

/* a: n rows of `numbers` columns, one after another. x, in and out: where to start, 0 is fine. */
void least_squares_fit(const double *a, const double *y, size_t n, int numbers, double *x);
