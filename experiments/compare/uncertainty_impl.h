/* The statistics of uncertainty.h, on runs that are done. */
#pragma once

#include "experiments/compare/uncertainty.h"

/* Fills pairs and best_frac from value and the machines' scores. */
void uncertainty_analyse(struct uncertainty *u);

/* Leaves the factors that are shown: the first that are not idle, UNCERTAINTY_TOP of them. Finds
 * the one whose measurement helps most. */
void uncertainty_conclude(struct uncertainty_pair *p);

/* Which replication run `repeat` on a machine is: all take turns. */
static inline uint32_t uncertainty_replication(const struct compare_plan *plan, uint32_t machine,
                                               uint32_t repeat)
{
    /* The replications of the comparison itself, in turn: their differences on the file's machine
     * are known and serve as a control. */
    return (machine * UNCERTAINTY_REPEATS + repeat) % plan->replications;
}

/* First-order index of x for y (n pairs): adjusted R^2 of a quadratic, at least 0. `fit` (n values,
 * or NULL) receives E[y | x]. */
double uncertainty_first_order(const double *x, const double *y, const size_t *pick, size_t n,
                               double *fit);
